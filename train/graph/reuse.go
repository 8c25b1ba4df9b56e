package graph

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/bits"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// reuse has the hidden rows of earlier steps that a run uses again. cache is nil and slots are
// empty before open, and also later if no row is ever used again.
type reuse struct {
	history.Settings // without auto
	be               kernels.Backend
	options          history.Options
	cache            *history.Cache
	slots            []kernels.Tensor // of each of options.Kept: F16, a row a slot
	parts            []*device.Part   // of the device region, which have the slots; none with rings
	rings            *device.Rings    // that have the slots where the host cannot address the region
	hidden           int              // columns of a row
	cold             bool
	snapshot         history.Snapshot

	held     [2]step.Held  // of steps under way, in turn, as are stores
	stores   [2][]int      // of each of held.Store its index in options.Kept
	places   [2][][]uint32 // with rings, held.Store's To
	measured []history.Measured
	pruned   []float64 // of each of options.Kept: run.HistoryLayer.PrunedRows
	audited  []run.AuditSums
	audit    *audit // nil: nothing is compared
	sizing   *history.Sizing
	degrees  int64 // bytes of the degrees of nodes that other parts own
	starved  bool  // a note said that rows find no slot
}

// any reports whether the run uses hidden rows again: planReuse has found layers to keep.
func (u *reuse) any() bool { return u != nil && len(u.options.Kept) > 0 }

// planReuse decides which hidden rows are kept, before the memory is split.
func (c *core) planReuse(ctx context.Context) error {
	if !c.History {
		return nil
	}
	u := &reuse{Settings: c.Settings.Resolve(c.task.Steps()), be: c.Backend, hidden: c.Hidden}
	c.reuse = u
	if !u.Reuses() {
		return nil
	}
	if err := c.size(ctx); err != nil {
		return err
	}
	if c.HistoryBytes != history.Rest {
		c.keep(c.HistoryBytes)
		return nil
	}
	c.keep(math.MaxInt64) // the rest of the memory is not known yet
	return nil
}

// keep lets the kept rows take this many bytes, or history.Auto.
func (c *core) keep(bytes int64) {
	u := c.reuse
	u.HistoryBytes = bytes
	kept := c.keptBy(u.Settings)
	u.options = history.Options{
		Seed: c.Seed, Layers: c.Layers, Types: len(c.data.Types), PGrad: u.PGrad, TStale: u.TStale, Lag: u.HistoryLag, Start: u.HistoryStart, Kept: kept,
	}
	u.pruned, u.audited = make([]float64, len(kept)), make([]run.AuditSums, len(kept))
	if len(kept) > 0 {
		c.tiers.MostSteps = max(1, u.HistoryLag/2)
	}
}

// keptBy returns the rows to keep by s, and the slots of this worker for them. The bytes in s are
// for one worker. Workers that compute together divide the slots, since each keeps rows of its own
// nodes; so all of their bytes count.
func (c *core) keptBy(s history.Settings) []history.Kept {
	workers := 1
	if c.tiers.Cooperative() {
		workers = c.Hooks.Group.Size()
	}
	if s.HistoryBytes != history.Auto {
		s.HistoryBytes = min(s.HistoryBytes, math.MaxInt64/int64(workers)) * int64(workers)
	}
	kept := c.reuse.sizing.Kept(s, history.SlotBytes(c.Hidden))
	for k := range kept {
		kept[k].Slots = (kept[k].Slots + workers - 1) / workers
	}
	return kept
}

// keepRest gives kept rows the memory that other parts leave, if the run asks for that, and records
// the number. m measures a step that keeps rows of all nodes. Of several workers, all take the
// least that one has. keepRest reports whether anything changed.
func (c *core) keepRest(ctx context.Context, m tiers.Measure) (bool, error) {
	if !c.History || c.HistoryBytes != history.Rest {
		return false, nil
	}
	if !c.reuse.Reuses() {
		c.HistoryBytes = 0
		return false, nil
	}
	m.History, m.Slots = c.reuse.degrees, 0
	all, err := c.gatherNumbers(ctx, []float64{float64(c.tiers.Rest(m))})
	if err != nil {
		return false, err
	}
	rest := all[0][0]
	for _, other := range all {
		rest = min(rest, other[0])
	}
	c.HistoryBytes = min(int64(rest), c.reuse.bytes()+1<<20-1) >> 20 << 20
	c.Note("history: other parts leave %d MiB for kept rows; {history_bytes} %dMiB repeats the run with any memory", c.HistoryBytes>>20, c.HistoryBytes>>20)
	c.keep(c.HistoryBytes)
	return true, nil
}

// begin starts with an empty cache before a step.
func (u *reuse) begin(step int) (err error) {
	u.options.First = step
	u.cache, err = history.New(u.options)
	return err
}

// bytes returns the memory of the slots and their index.
func (u *reuse) bytes() (n int64) {
	if u == nil {
		return 0
	}
	for _, k := range u.options.Kept {
		n += int64(k.Slots) * history.SlotBytes(u.hidden)
	}
	return n
}

// slotBytes returns the bytes of the device region that the slots take.
func (u *reuse) slotBytes() (n int64) {
	if u == nil {
		return 0
	}
	var counts []int
	for _, k := range u.options.Kept {
		n += device.SlotsSize(k.Slots, u.hidden)
		counts = append(counts, k.Slots)
	}
	if device.Apart(u.be) {
		return device.RingsSize(u.hidden, counts...)
	}
	return n
}

// memory returns the bytes of kept rows and their index, and of the degrees that other parts sent.
// In a device region, slots count as rings of whole chunks.
func (u *reuse) memory() int64 {
	if u == nil {
		return 0
	}
	n := u.bytes() + u.degrees
	if !device.Apart(u.be) {
		return n
	}
	for _, k := range u.options.Kept {
		n -= 2 * int64(k.Slots) * int64(u.hidden)
	}
	return n + u.slotBytes()
}

// open makes the slots that planReuse decided on, in the region, before any step.
func (u *reuse) open(region *device.Buffer) error {
	if !u.any() {
		return nil
	}
	slots := make([][]kernels.Tensor, u.options.Layers-1)
	for l := range slots {
		slots[l] = make([]kernels.Tensor, u.options.Types)
	}
	if region.Apart() {
		if err := u.openRings(region); err != nil {
			return err
		}
	}
	for i, k := range u.options.Kept {
		if u.rings == nil {
			part, err := region.Slots(k.Slots, u.hidden)
			if err != nil {
				return err
			}
			u.parts, u.slots = append(u.parts, part), append(u.slots, part.Tensor())
		}
		slots[k.Layer-1][k.Type] = u.slots[i]
	}
	u.held[0].Slots, u.held[1].Slots = slots, slots
	return u.begin(0)
}

func (u *reuse) close() {
	u.audit.close()
	for _, p := range u.parts {
		p.Close()
	}
	if u.rings != nil {
		u.rings.Close()
	}
}

// input returns the slots that a step reads rows from and stores rows in, valid until the step
// after next. It returns nil if the step does neither. If shared, workers share the step's verdict.
// Then it is not nil once rows are kept, since another worker may read or store some.
func (u *reuse) input(now int, shared bool) *step.Held {
	held, stores := &u.held[now%2], &u.stores[now%2]
	held.Store, *stores = held.Store[:0], (*stores)[:0]
	idle := true
	for k, part := range u.cache.Planned(now).Parts {
		idle = idle && part.Idle()
		if n := len(held.Store); len(part.Rows) > 0 {
			if n < cap(held.Store) { // with the memory of Lost
				held.Store = held.Store[:n+1]
			} else {
				held.Store = append(held.Store, step.Store{})
			}
			s := &held.Store[n]
			if n == len(u.places[now%2]) {
				u.places[now%2] = append(u.places[now%2], nil)
			}
			s.Layer, s.Type, s.Rows = part.Layer-1, part.Type, part.Rows
			s.To = u.place(k, part.Slots, &u.places[now%2][n])
			*stores = append(*stores, k)
		}
	}
	if idle && (!shared || now < u.HistoryStart) {
		return nil
	}
	return held
}

// rehearsal returns the layers and the kept rows of b for a step that takes the most memory: all
// rows are computed and stored, and are assembled as if some came from slots.
func (u *reuse) rehearsal(b *sample.Batch) ([]sample.Layer, *step.Held) {
	if !u.any() {
		return b.Layers, nil
	}
	layers, held := slices.Clone(b.Layers), new(step.Held)
	for _, k := range u.options.Kept {
		nodes, s := slices.Clone(layers[k.Layer].Nodes), step.Store{Layer: k.Layer - 1, Type: k.Type}
		f := &nodes[k.Type]
		f.Origin = make([]sample.Origin, len(b.Live(k.Layer, k.Type)))
		for i := range f.Origin {
			f.Origin[i] = sample.Origin{From: sample.Below, Index: uint32((i + 1) % len(f.Origin))} // shifted: rows in order need no assembly
			s.Rows, s.To = append(s.Rows, uint32(i)), append(s.To, uint32(i))
		}
		layers[k.Layer].Nodes = nodes
		held.Store = append(held.Store, s)
	}
	return layers, held
}

// writeBack gives the cache the gradient norms and lost rows of a step, and counts the feature rows
// that the step saved. sum replaces counts by the sums over the workers that share a verdict. Nil:
// this worker decides alone.
func (u *reuse) writeBack(now int, b *sample.Batch, sum func(counts []int64) error) error {
	p, held := u.cache.Planned(now), &u.held[now%2]
	u.measured = append(u.measured[:0], make([]history.Measured, len(p.Parts))...)
	shared := sum != nil && now >= u.HistoryStart
	for k := range p.Parts {
		if part := &p.Parts[k]; shared || !part.Idle() {
			nodes := b.Live(part.Layer, part.Type)
			u.measured[k] = history.Measured{Nodes: nodes, Norms: held.Norms[part.Layer-1][part.Type]}
		}
	}
	if shared {
		if err := u.cache.Limits(u.measured, sum); err != nil {
			return err
		}
	}
	for i, k := range u.stores[now%2] {
		u.measured[k].Overflow = held.Store[i].Lost
	}
	inputs := 0
	for _, ids := range b.Inputs() {
		inputs += len(ids)
	}
	for k := range p.Parts {
		computed := 0
		for _, f := range b.Layers[p.Parts[k].Layer-1].Nodes {
			computed += f.Dst
		}
		u.pruned[k] += float64(len(p.Parts[k].Used)) * float64(inputs) / float64(max(computed, 1))
	}
	u.cache.WriteBack(now, u.measured)
	return nil
}

// report returns the counters of kept rows up to now, or nil without Options.History. types are the
// types of nodes.
func (u *reuse) report(types []data.Type) *run.HistoryOf {
	if u == nil {
		return nil
	}
	h := &run.HistoryOf{TStale: u.TStale, Start: u.HistoryStart, Lag: u.HistoryLag, Cold: u.cold, SlotBytes: history.SlotBytes(u.hidden), Layers: []run.HistoryLayer{}}
	if u.cache == nil {
		return h
	}
	audited, looked := u.allAudited()
	for k, s := range u.cache.Stats() {
		l := run.HistoryLayer{
			Layer: s.Layer, Type: types[s.Type].Name, Slots: s.Slots, Live: s.Live, PrunedRows: int64(u.pruned[k]), Counts: s.Counts,
		}
		if looked {
			l.Audit = u.audited[k].Of()
		}
		h.Add(l)
	}
	if looked {
		h.Audit = audited.Of()
	}
	return h
}

// allAudited adds up the audits of all layers. ok is false if there are none, neither now nor
// before the run was resumed.
func (u *reuse) allAudited() (all run.AuditSums, ok bool) {
	for _, s := range u.audited {
		all.Add(s)
	}
	return all, u.audit != nil || all.Nodes > 0
}

// reuseNotes notes settings of kept rows that have less effect than the user may expect.
func (c *core) reuseNotes() {
	u := c.reuse
	switch {
	case u == nil:
	case !u.Reuses() && c.TStale == history.Auto && u.PGrad > 0:
		c.Note("history: an epoch of %d steps is too short for rows of earlier steps, so none are used again; take a smaller {batch}, or a number for {t_stale}", c.task.Steps())
	case !u.Reuses():
		c.Note("history: with {p_grad} %v and {t_stale} %d no row is ever used again", u.PGrad, u.TStale)
	case u.cache == nil:
		c.Note("history: {history_bytes} %s has no room for a slot of %d bytes, so nothing is kept", kernels.FormatBytes(c.HistoryBytes), history.SlotBytes(u.hidden))
	default:
		switch whole := c.Ends.Most() * c.task.Steps(); {
		case u.HistoryStart >= whole:
			c.Note("history: the run has %d steps, and keeps rows from step %d on ({history_start}), so none are used again; take a smaller {history_start}", whole,
				u.HistoryStart)
		case u.HistoryLag > u.TStale:
			c.Note("history: {history_lag} %d is above {t_stale} %d, so that rows are past use before their gradients decide on them; take at most %d", u.HistoryLag,
				u.TStale, u.TStale)
		case u.HistoryStart+u.HistoryLag >= whole:
			c.Note("history: the run has %d steps, and gradients decide on rows from step %d on ({history_start} and {history_lag}), so on none; take a smaller "+
				"{history_lag}", whole, u.HistoryStart+u.HistoryLag)
		}
		if most := c.tiers.MostSteps; c.Window > most {
			c.Note("history: {window} %d is cut to %d steps, since a step is drawn once the gradients of the one {history_lag} %d before it are known", c.Window, most,
				u.HistoryLag)
		}
	}
}

// starvedShare is the share of refused rows above which a note says so.
const starvedShare = 0.1

// starvation returns a note, once, if rows find no slot. The note has the memory that gives every
// node a slot.
func (u *reuse) starvation(types []data.Type) string {
	if u == nil || u.cache == nil || u.starved {
		return ""
	}
	var n history.Counts
	all := int64(0)
	for _, s := range u.cache.Stats() {
		n.Add(s.Counts)
		all += int64(types[s.Type].Nodes) * history.SlotBytes(u.hidden)
	}
	share := float64(n.Refused) / float64(max(n.Refused+n.Admitted, 1))
	if u.starved = share > starvedShare; !u.starved {
		return ""
	}
	return fmt.Sprintf("history: %.0f %% of the rows that could be kept find no slot; {history_bytes} %dMiB has one for every node", 100*share, (all+1<<20-1)>>20)
}

// pieceBytes is the number of bytes of slots that are written or read at a time.
const pieceBytes = 1 << 18

// pieceRows returns the number of rows of a piece.
func (u *reuse) pieceRows() int { return max(1, pieceBytes/(2*u.hidden)) }

// save writes all slots.
func (u *reuse) save(w io.Writer) error {
	var floats []float32
	var halves []uint16
	var wide kernels.Tensor // rows of a backend that the host cannot read in float16
	defer func() {
		if wide.Buf != nil {
			u.be.Free(wide.Buf)
		}
	}()
	return u.eachPiece(func(rows kernels.Tensor) error {
		if rows.Buf == nil {
			_, err := w.Write(make([]byte, 2*rows.Len()))
			return err
		}
		if b, ok := u.be.Host(rows); ok {
			_, err := w.Write(b)
			return err
		}
		if floats == nil {
			most := u.pieceRows() * u.hidden
			floats, halves = make([]float32, most), make([]uint16, most)
			wide = kernels.Tensor{Buf: u.be.Alloc(kernels.F32, most), Type: kernels.F32, Rows: u.pieceRows(), Cols: u.hidden}
		}
		some := wide.Slice(0, rows.Rows)
		u.be.Convert(some, rows)
		u.be.DownloadF32(floats[:some.Len()], some)
		kernels.Float32ToHalf(halves[:some.Len()], floats[:some.Len()])
		return binary.Write(w, binary.LittleEndian, halves[:some.Len()])
	})
}

// load reads what save has written.
func (u *reuse) load(r io.Reader) error {
	staging := kernels.NewStaging(u.be)
	defer staging.Close()
	return u.eachPiece(func(rows kernels.Tensor) error {
		if rows.Buf == nil {
			_, err := io.CopyN(io.Discard, r, 2*int64(rows.Len()))
			return err
		}
		return staging.Fill(rows, func(b []byte) error {
			_, err := io.ReadFull(r, b)
			return err
		})
	})
}

// size finds, from the run's first batches, how many rows to keep. It draws them one at a time, so
// that only one is in memory. Several workers each draw their shares of these batches.
func (c *core) size(ctx context.Context) error {
	batches := min(history.SizedBy, c.task.Steps())
	inDegree, err := c.inDegree(ctx)
	if err != nil {
		return err
	}
	sizing := history.NewSizing(c.tiers.Reach, batches, func(t int) *history.Heat {
		return history.HeatOf(c.data.Types[t].Nodes, c.data.Ordered(), inDegree(t))
	})
	rowBytes := make([]int64, len(c.data.Types)+len(c.data.EdgeTables))
	for _, n := range c.tiers.Types {
		rowBytes[n] = int64(c.tiers.RowBytes(n))
	}
	for step := range batches {
		b, err := c.batch(ctx, step)
		if err != nil {
			return err
		}
		sizing.Add(b, rowBytes)
	}
	if c.Hooks.Group.Size() > 1 {
		all, err := c.gatherNumbers(ctx, sizing.Sums())
		if err == nil && c.tiers.Cooperative() {
			err = sizing.Merge(all, 1)
		} else if err == nil {
			err = sizing.Merge(all, float64(len(all)))
		}
		if err != nil {
			return err
		}
	}
	c.reuse.sizing = sizing
	return nil
}

// inDegree returns data.InDegree by type. In a part it knows the degrees of nodes of other parts,
// too. There each degree is rounded down to a power of two, or is 0: history.HeatOf needs no more.
func (c *core) inDegree(ctx context.Context) (func(t int) func(v uint32) int, error) {
	part, drawn := c.data.OwnPart(), c.tiers.Reach.Drawn()
	if part == nil || c.data.Ordered() {
		return func(t int) func(v uint32) int { return c.data.InDegree(t, drawn) }, nil
	}
	var own []byte
	rows := make([][]int64, len(c.data.Types)+1) // before each type, by worker
	rows[0] = make([]int64, part.Parts)
	err := store.Guard(func() error {
		for t, n := range c.data.Types {
			degree, has := c.data.InDegree(t, drawn), c.data.Own(t)
			for row := range has.Count(int64(n.Nodes)) {
				own = append(own, byte(bits.Len(uint(degree(has.Node(store.NodeID(row)))))))
			}
			for p := range part.Parts {
				rows[t+1] = append(rows[t+1], rows[t][p]+has.Owners.Count(int64(n.Nodes), p))
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	all, err := c.gather(ctx, own)
	if err != nil {
		return nil, err
	}
	for p, lengths := range all {
		if want := rows[len(c.data.Types)][p]; int64(len(lengths)) != want {
			return nil, fmt.Errorf("%s sends the degrees of %d nodes, and it owns %d",
				c.Hooks.Group.Name(p), len(lengths), want)
		}
		c.reuse.degrees += int64(len(lengths))
	}
	return func(t int) func(v uint32) int {
		owners := c.data.Own(t).Owners
		return func(v uint32) int {
			p := owners.Owner(v)
			return 1 << all[p][rows[t][p]+int64(owners.RowOf(v))] >> 1
		}
	}, nil
}
