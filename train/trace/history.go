package trace

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// histories traces runs that use hidden rows again, under each sampler and κ.
func (r *run) histories(ctx context.Context) error {
	if err := r.openHistory(ctx); err != nil {
		return err
	}
	for _, kind := range r.Samplers {
		for _, kappa := range r.Kappas {
			if err := r.reused(ctx, kind, kappa); err != nil {
				return err
			}
		}
	}
	return nil
}

// reused traces runs that use hidden rows again, under one sampler and κ, and one that does not.
func (r *run) reused(ctx context.Context, kind sample.Kind, kappa int) error {
	h := r.report.History
	s, name := r.stream(kind, kappa)
	t := way{run: r, stream: s, from: h.WarmupSteps, name: name, lists: !kind.Walks()}
	sizing, err := t.size(ctx)
	if err != nil {
		return err
	}
	variants := r.History.variants(r.report.EpochSteps)
	kept, prefixes := make([][]history.Kept, len(variants)), []int64{0}
	for i, v := range variants {
		switch {
		case !v.Reuses():
		case v.slots.Share > 0:
			kept[i] = sizing.Hottest(v.slots.Share)
		default:
			kept[i] = sizing.Kept(v.Settings, h.SlotBytes)
		}
		if bytes := h.bytes(kept[i]); h.EqualBytes && !slices.Contains(prefixes, bytes) {
			prefixes = append(prefixes, bytes)
		}
	}
	plain, slabs, err := t.without(ctx, prefixes)
	if err != nil {
		return err
	}
	d := HistoryDraws{Sampler: kind, Kappa: kappa, Without: plain, Variants: []HistoryVariant{}}
	if len(slabs) > 0 {
		d.Without.Windows = slabs[0]
	}
	for i, v := range variants {
		got, err := t.with(ctx, v, kept[i])
		if err != nil {
			return err
		}
		got.InputRows = plain.Rows
		if p := slices.Index(prefixes, got.SlotsBytes); p > 0 {
			got.Prefix = slabs[p]
		}
		d.Variants = append(d.Variants, got)
	}
	h.Draws = append(h.Draws, d)
	return nil
}

// bytes returns the bytes of the slots of kept.
func (h *HistoryReport) bytes(kept []history.Kept) (n int64) {
	for _, k := range kept {
		n += int64(k.Slots) * h.SlotBytes
	}
	return n
}

// openHistory finds the settings that all traces of hidden rows share.
func (r *run) openHistory(ctx context.Context) error {
	o := r.History
	h := HistoryReport{
		Verdicts: "by a hash", PGrad: o.PGrad, Start: o.variants(r.report.EpochSteps)[0].HistoryStart, Hidden: o.Hidden,
		SlotBytes: history.SlotBytes(o.Hidden), WindowBytes: o.WindowBytes, Window: o.Window, EqualBytes: o.EqualBytes, Draws: []HistoryDraws{},
	}
	h.WarmupSteps = min(r.report.Steps/2, o.settled(r.report.EpochSteps))
	h.MeasuredSteps = r.report.Steps - h.WarmupSteps
	r.report.History = &h
	if o.WindowBytes == 0 {
		return nil
	}
	if len(r.tables) == 0 {
		return fmt.Errorf("{window_bytes}: %s: batches read no type that has a table, so there are no windows to plan; leave it out", r.report.Dataset)
	}
	var largest *data.Type
	for _, t := range r.tables {
		of := r.data.Input(t.number)
		if of.Features == nil {
			return fmt.Errorf("{window_bytes}: %s: type %s has no table of features, and other rows have no windows here; leave it out", r.report.Dataset, of.Name)
		}
		if largest == nil || int64(of.Nodes)*int64(of.Features.RowBytes()) > int64(largest.Nodes)*int64(largest.Features.RowBytes()) {
			largest = of
		}
	}
	costs, from, err := o.DiskCosts, "given", error(nil)
	if costs == (disk.Costs{}) {
		costs, from, err = measure(ctx, largest.Features)
	}
	h.DiskCosts, h.Disk = &costs, from
	return err
}

// measure measures the costs of the disk under f past the page cache, as training does. The text
// describes how.
func measure(ctx context.Context, f *store.Features) (disk.Costs, string, error) {
	var files []store.SectionFile
	for _, s := range f.Shards() {
		files = append(files, s.SectionFile)
	}
	d, err := disk.Open(ctx, files, disk.Options{Direct: true, Probe: true})
	if err != nil {
		return disk.Costs{}, "", err
	}
	defer d.Close()
	return d.Costs(), d.Why(), nil
}

// way is one pass through the batches of a trace.
type way struct {
	*run
	stream
	from  int  // the first step that is counted
	lists bool // batches show which neighbour lists are read
	name  string
	parts []float64 // share of each table in the bytes that steps read
}

// size looks at the first batches of the run.
func (t *way) size(ctx context.Context) (*history.Sizing, error) {
	s := t.stream
	s.steps = min(history.SizedBy, s.epochSteps, s.steps)
	sizing := history.NewSizing(t.reach, s.steps, func(typ int) *history.Heat {
		return history.HeatOf(t.data.Types[typ].Nodes, t.data.Ordered(), t.data.InDegree(typ, t.reach.Drawn()))
	})
	rowBytes := make([]int64, len(t.data.Types)+len(t.data.EdgeTables))
	for _, of := range t.tables {
		if f := t.data.Input(of.number).Features; f != nil {
			rowBytes[of.number] = int64(f.RowBytes())
		} else {
			rowBytes[of.number] = 3 * 4 * int64(t.data.Input(of.number).Embed)
		}
	}
	bytes, all := make([]float64, len(t.tables)), 0.0
	err := t.draw(ctx, s, func(_ int, b *sample.Batch) error {
		sizing.Add(b, rowBytes)
		for i, of := range t.tables {
			n := float64(len(b.Inputs()[of.number])) * float64(rowBytes[of.number])
			bytes[i], all = bytes[i]+n, all+n
		}
		return nil
	})
	t.parts = bytes
	for i := range bytes {
		t.parts[i] /= max(all, 1)
	}
	return sizing, err
}

// without counts steps that use nothing again, and plans their windows, in a slab for each of
// prefixes.
func (t *way) without(ctx context.Context, prefixes []int64) (StepReads, []*Windows, error) {
	var slabs []*slab
	defer func() {
		for _, s := range slabs {
			s.close()
		}
	}()
	bytes := t.report.History.WindowBytes
	for _, prefix := range prefixes {
		if bytes == 0 {
			break
		}
		s, err := t.slab(bytes, min(prefix, bytes), mostWindow, true)
		if err != nil {
			return StepReads{}, nil, err
		}
		slabs = append(slabs, s)
	}
	n := t.count()
	err := t.draw(ctx, t.stream, func(step int, b *sample.Batch) error {
		t.show("draw "+t.name, int64(step+1), int64(t.steps), "batches")
		return n.add(step, b, slabs)
	})
	if err != nil {
		return StepReads{}, nil, err
	}
	var windows []*Windows
	for i, s := range slabs {
		w := s.finish(t.from)
		w.PrefixBytes = min(prefixes[i], bytes)
		w.SlabBytes = bytes - w.PrefixBytes
		windows = append(windows, w)
	}
	return n.reads(), windows, nil
}

// slab returns a slab of so many bytes for the rows of windows.
func (t *way) slab(bytes, prefix int64, most int, foresees bool) (*slab, error) {
	var tables []*data.Type
	for _, of := range t.tables {
		tables = append(tables, t.data.Input(of.number))
	}
	var graphs []*store.Graph
	if t.lists {
		t.eachList(func(_, relation int) { graphs = append(graphs, t.data.Relations[relation].Graph) })
	}
	if w := t.History.Window; w > 0 {
		most = min(most, w)
	}
	return newSlab(tables, t.parts, graphs, bytes, prefix, most, foresees, *t.report.History.DiskCosts)
}

// eachList calls do for each layer and relation that batches draw from.
func (t *way) eachList(do func(layer, relation int)) {
	for l := range t.reach.Relations {
		for i, drawn := range t.reach.Relations[l] {
			if drawn {
				do(l, i)
			}
		}
	}
}

// with counts steps that use rows again, with the settings v, and plans their windows. A step is
// written back as soon as it is drawn: only its batch is needed.
func (t *way) with(ctx context.Context, v variant, kept []history.Kept) (got HistoryVariant, err error) {
	h := t.report.History
	cache, err := history.New(history.Options{
		Seed: t.seed, Layers: len(t.Fanouts), Types: len(t.data.Types), PGrad: v.PGrad, TStale: v.TStale, Lag: v.HistoryLag, Start: v.HistoryStart, Kept: kept,
	})
	if err != nil {
		return got, err
	}
	got = HistoryVariant{TStale: v.TStale, Lag: v.HistoryLag, Asked: v.slots.String(), SlotsBytes: h.bytes(kept), Layers: []HistoryLayer{}}
	var slabs []*slab
	rest := h.WindowBytes
	if h.EqualBytes {
		rest = max(0, rest-got.SlotsBytes)
	}
	if h.WindowBytes > 0 {
		s, err := t.slab(rest, 0, max(1, v.HistoryLag/2), v.HistoryLag > 1)
		if err != nil {
			return got, err
		}
		defer s.close()
		slabs = append(slabs, s)
	}
	s, n, name := t.stream, t.count(), fmt.Sprintf("draw %s, t_stale %d, K %d, slots %v", t.name, v.TStale, v.HistoryLag, v.slots)
	s.expand, s.most, s.cut = cache.Group, v.HistoryLag, t.from
	before := cache.Stats()
	err = t.draw(ctx, s, func(step int, b *sample.Batch) error {
		cache.WriteBack(step, t.verdicts(step, cache.Planned(step), b))
		if step == t.from-1 {
			before = cache.Stats()
		}
		t.show(name, int64(step+1), int64(s.steps), "batches")
		return n.add(step, b, slabs)
	})
	if err != nil {
		return got, err
	}
	got.StepReads = n.reads()
	for _, s := range slabs {
		got.Windows = s.finish(t.from)
		got.Windows.SlabBytes = rest
	}
	for i, st := range cache.Stats() {
		name := ""
		if len(t.report.Types) > 0 {
			name = t.data.Types[st.Type].Name
		}
		got.add(HistoryLayer{
			Layer: st.Layer, Type: name, Slots: st.Slots, Bytes: int64(st.Slots) * h.SlotBytes, Live: st.Live, Counts: st.Counts.Sub(before[i].Counts),
		})
	}
	return got, nil
}

// verdictTag begins the words of a stand-in for a gradient. Other numbers of a seed begin with
// others: packages sample, task and history.
const verdictTag = 22

// verdicts stands in for the gradients of a step, which nobody has computed: the norm of a live
// node is a hash of (seed, layer, type, step, node), uniform in 24 bits. So of each layer and type
// p_grad is accepted, at random and anew in each step.
func (t *way) verdicts(step int, p *history.Planned, b *sample.Batch) []history.Measured {
	all := make([]history.Measured, len(p.Parts))
	for k := range p.Parts {
		part := &p.Parts[k]
		if part.Idle() {
			continue
		}
		key := sample.Hash(t.seed, verdictTag, uint64(part.Layer), uint64(part.Type), uint64(step))
		m := history.Measured{Nodes: b.Layers[part.Layer].Nodes[part.Type].Src, Norms: make([]float32, part.Live)}
		for i, v := range m.Nodes {
			m.Norms[i] = float32(sample.Fold(key, uint64(v)) >> 40)
		}
		all[k] = m
	}
	return all
}

// counting adds up what steps read and compute, from the first on that is counted.
type counting struct {
	*way
	steps       int
	rows, lists int64
	computed    []int64 // by layer
}

func (t *way) count() *counting { return &counting{way: t, computed: make([]int64, len(t.Fanouts))} }

// add counts a step, and adds it to slabs.
func (n *counting) add(step int, b *sample.Batch, slabs []*slab) error {
	a := new(asked)
	err := store.Guard(func() error { // degrees are mapped
		if n.way.lists {
			n.eachList(func(l, i int) { a.lists = append(a.lists, n.wanted(b, l, &n.data.Relations[i])) })
		}
		return nil
	})
	if err != nil {
		return err
	}
	inputs := b.Inputs()
	for _, t := range n.tables {
		a.rows = append(a.rows, inputs[t.number])
	}
	if step >= n.from {
		n.steps++
		for _, ids := range a.rows {
			n.rows += int64(len(ids))
		}
		for _, nodes := range a.lists {
			n.lists += int64(len(nodes))
		}
		for l := range b.Layers {
			for _, f := range b.Layers[l].Nodes {
				n.computed[l] += int64(f.Dst)
			}
		}
	}
	if len(slabs) == 0 {
		return nil
	}
	for i, ids := range a.rows {
		a.rows[i] = slices.Clone(ids) // the batch is drawn anew
	}
	return store.Guard(func() error { // offsets are mapped
		for _, s := range slabs {
			s.add(a)
		}
		return nil
	})
}

// wanted returns the destinations of a layer that have neighbours of a relation, so that their
// lists are drawn from.
func (n *counting) wanted(b *sample.Batch, layer int, r *data.Relation) (nodes []uint32) {
	f := &b.Layers[layer].Nodes[r.Dst]
	for _, v := range f.Src[:f.Dst] {
		if r.Degree(v) > 0 {
			nodes = append(nodes, v)
		}
	}
	return nodes
}

// reads returns the means of a step.
func (n *counting) reads() StepReads {
	r := StepReads{Rows: float64(n.rows) / float64(n.steps), Lists: float64(n.lists) / float64(n.steps)}
	for _, c := range n.computed {
		r.ComputedNodes = append(r.ComputedNodes, float64(c)/float64(n.steps))
	}
	return r
}
