package infer

import (
	"context"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// onDisk is layerwise with the rows of each layer on disk, from where the next one reads them.
func (e *Evaluator) onDisk(ctx context.Context, p *pass, do func(t int, chunk []uint32, y kernels.Tensor) error) (err error) {
	top := p.top()
	identity := e.identity(p.need[top], top)
	e.left = false
	lock, ours, err := e.lockDir()
	if err != nil {
		return err
	}
	defer func() {
		err = errors.Join(err, lock.Release())
		if ours {
			_ = e.fs().Remove(e.Dir) // it stays where somebody has put something there
		}
	}()
	below, first, found, err := e.begin(top, identity)
	ours = ours || found
	defer func() {
		if below != nil {
			below.Close()
		}
	}()
	if err == nil {
		err = e.room(p.need, first)
	}
	if err != nil {
		return err
	}
	inside := false // the layer at hand, that is not whole
	defer func() {
		if err == nil || e.Of == "" {
			err = errors.Join(err, e.removeLayers())
		}
		e.left = err != nil && e.Of != "" && (below != nil || inside)
	}()
	for l := first; ; l++ {
		if l == top {
			return e.overDisk(ctx, p, l, nil, below, do)
		}
		w, err := e.createLayer(l, identity)
		if err != nil {
			return err
		}
		if err = e.fill(ctx, w, p, l, below); err != nil {
			if inside = e.Of != "" && w.ofUse(); inside {
				return errors.Join(err, w.Leave())
			}
			return errors.Join(err, w.Abort())
		}
		if below != nil {
			below.Close()
		}
		if below, err = store.Open(e.layerPath(l)); err != nil {
			return err
		}
		if err := e.removeLayers(layerName(l)); err != nil {
			return err
		}
	}
}

// fill computes layer l for the nodes that p has of it, and seals its rows.
func (e *Evaluator) fill(ctx context.Context, w *layerWriter, p *pass, l int, below *store.Dataset) error {
	for t, nodes := range p.need[l] {
		if err := w.begin(t, nodes); err != nil {
			return err
		}
	}
	if err := e.overDisk(ctx, p, l, w.rows, below, func(t int, _ []uint32, y kernels.Tensor) error { return w.append(t, y) }); err != nil {
		return err
	}
	return w.seal()
}

// overDisk calls do with the rows of layer l, type after type and chunk after chunk, from what is
// on disk: the rows of the layer below, or the features. Those of the first nodes are there
// already: of so many by type, nil for none.
func (e *Evaluator) overDisk(
	ctx context.Context, p *pass, l int, there []int, below *store.Dataset, do func(t int, chunk []uint32, y kernels.Tensor) error,
) error {
	for t, nodes := range p.need[l] {
		if nodes == nil {
			continue
		}
		first := 0
		if there != nil {
			first = there[t]
		}
		if first > 0 && first == nodes.count() {
			continue
		}
		if err := e.typeOverDisk(ctx, p, l, t, first, below, do); err != nil {
			return err
		}
	}
	return nil
}

// typeOverDisk is overDisk for the nodes of one type, but the first ones.
func (e *Evaluator) typeOverDisk(
	ctx context.Context, p *pass, l, t, first int, below *store.Dataset, do func(t int, chunk []uint32, y kernels.Tensor) error,
) error {
	began, nodes := startClock(), p.need[l][t].but(first)
	planned, hold := e.decide(p, l, t, nodes)
	memory := p.memory
	if hold == HoldSums {
		memory = 0
	}
	var rowsOf []nodeSet
	if l > 0 {
		rowsOf = p.need[l-1]
	}
	w, err := e.openWindows(ctx, l, t, below, rowsOf, memory)
	if err != nil {
		return err
	}
	defer w.close()
	done, count := first, first+nodes.count()
	use := func(chunk []uint32, y kernels.Tensor) error {
		if err := do(t, chunk, y); err != nil {
			return err
		}
		done += len(chunk)
		e.came(l, p.top(), t, done, count)
		return nil
	}
	parts := 0
	if hold == HoldSums {
		parts, err = w.bySums(ctx, t, nodes, p.memory, use)
	} else {
		err = w.each(ctx, t, nodes, use)
		parts = w.loaded
	}
	if err != nil {
		return err
	}
	e.report(planned, max(1, parts), w.read(), began) // there are no windows of hubs
	return nil
}

// Left reports whether the newest pass was cut short and has left rows in Options.Dir. An equal
// pass goes on behind them.
func (e *Evaluator) Left() bool { return e.left }

func (e *Evaluator) fs() vfs.FS {
	if e.FS == nil {
		return vfs.Default
	}
	return e.FS
}

func layerName(l int) string { return fmt.Sprintf("layer-%d", l) }

func (e *Evaluator) layerPath(l int) string { return filepath.Join(e.Dir, layerName(l)) }

// elem is the type of numbers on disk.
func (e *Evaluator) elem() store.Elem {
	if e.LayerDtype == 0 {
		return store.F32
	}
	return e.LayerDtype
}

// identity returns the sources of the rows of a pass for these nodes of layer top, as the layers on
// disk record them.
func (e *Evaluator) identity(nodes []nodeSet, top int) map[string]string {
	var inputs []string
	for t := range e.data.Types {
		d := &e.data.Types[t]
		text := fmt.Sprintf("%s %d", d.Name, d.Embed)
		if d.Features != nil {
			text += " " + d.Features.Table.Name
		}
		inputs = append(inputs, text)
	}
	var relations []string
	for _, r := range e.data.Relations {
		text := r.Relation.Key()
		for _, c := range r.Inputs {
			text += " " + c.Column.Name
		}
		if r.RowIDs != nil {
			text += " " + e.data.EdgeTables[r.Table].Name
		}
		relations = append(relations, text)
	}
	h := xxh3.New()
	fmt.Fprintf(h, "%q %d %v %+v %v %v %q %q %s %v %s %s", e.Of, top, e.elem(), e.step.Model.Config, e.Draws.Weighted, e.Draws.Options, inputs,
		relations, e.data.Types[e.data.Target].Name, e.step.Shown != nil, e.data.Split, e.step.Tape.Backend().Name())
	for _, set := range nodes {
		for _, w := range set {
			_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, w)) // it does not fail
		}
	}
	sum := h.Sum128().Bytes()
	return map[string]string{
		"dataset": e.data.Set.Manifest().Seal, "weights": e.step.Model.Hash(), "pass": hex.EncodeToString(sum[:]),
	}
}

// lockName is the lock file of Dir.
const lockName = "lock"

// lockDir makes the directory, if need be, and keeps others out of it. ours says that nobody made
// it but passes.
func (e *Evaluator) lockDir() (lock *store.Lock, ours bool, err error) {
	fsys, name := e.fs(), filepath.Join(e.Dir, lockName)
	for range 100 { // who had it may remove it between two steps
		_, none := fsys.Stat(e.Dir)
		_, left := fsys.Stat(name)
		ours = errors.Is(none, fs.ErrNotExist) || left == nil
		if err := fsys.MkdirAll(e.Dir, 0o777); err != nil {
			return nil, false, fmt.Errorf("make a directory for the rows of layers: %w", err)
		}
		if lock, err = store.TakeLock(fsys, name); !errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	switch {
	case errors.Is(err, store.ErrLocked):
		return nil, false, fmt.Errorf("%s: somebody else keeps the rows of layers there; wait for the end of that, or name another place", e.Dir)
	case err != nil && ours:
		_ = fsys.Remove(e.Dir)
	}
	return lock, ours, err
}

// Tidy removes what passes that were cut short have left in Options.Dir, for who has what they were
// for by another way: in more memory, or of other layers. Where somebody is at work there it does
// nothing.
func (e *Evaluator) Tidy() error {
	names, _ := e.fs().List(e.Dir) // or there is nothing
	if !slices.ContainsFunc(names, func(name string) bool { return name == lockName || layerNames.MatchString(name) }) {
		return nil
	}
	lock, _, err := e.lockDir()
	if err != nil {
		return nil
	}
	err = errors.Join(e.removeLayers(), lock.Release())
	_ = e.fs().Remove(e.Dir) // it stays where somebody has put something there
	return err
}

// begin finds the newest layer of the pass in the directory, if that may go on, and removes what
// else passes have left. below is that layer, nil where there is none; first is the one to compute;
// found says that passes have left something there, of use or not.
func (e *Evaluator) begin(top int, identity map[string]string) (below *store.Dataset, first int, found bool, err error) {
	names, err := e.fs().List(e.Dir)
	if err != nil {
		return nil, 0, false, fmt.Errorf("find the rows of layers: %w", err)
	}
	found = slices.ContainsFunc(names, layerNames.MatchString)
	for l := top - 1; l >= 0 && e.Of != "" && below == nil; l-- {
		ds, err := store.Open(e.layerPath(l))
		if err != nil {
			continue // it is not there, or is of no use
		}
		if !maps.Equal(ds.Manifest().Provenance.Options, identity) || ds.Manifest().Name != layerName(l) {
			ds.Close()
			continue
		}
		below, first = ds, l+1
	}
	keep := []string{layerName(first - 1)}
	if e.Of != "" { // createLayer looks at what it is of
		keep = append(keep, layerName(first)+".partial")
	}
	return below, first, found, e.removeLayers(keep...)
}

// room refuses a file system that has less space left than the rows of two layers take, from layer
// first on, beside what others write there. The error names the size. A file system that does not
// report its space is taken to have room.
func (e *Evaluator) room(need [][]nodeSet, first int) error {
	most := e.mostBytes(need, first, e.elem())
	usage, err := e.fs().GetDiskUsage(e.Dir)
	free := int64(usage.AvailBytes)
	if errors.Is(err, vfs.ErrUnsupported) {
		most, free, err = 0, -1, nil
	}
	if err != nil {
		return fmt.Errorf("space left in %s: %w", e.Dir, err)
	}
	if most <= 0 || most+e.SpaceBeside <= free {
		if e.Space != nil {
			e.Space(max(0, most), free)
		}
		return nil
	}
	remedy := "make room there, or name another place"
	if e.elem() == store.F32 && e.mostBytes(need, first, store.F16)+e.SpaceBeside <= free {
		remedy += "; {layer_dtype} f16 takes half"
	}
	beside := ""
	if e.SpaceBeside > 0 {
		beside = fmt.Sprintf(" beside %s of results", kernels.FormatBytes(e.SpaceBeside))
	}
	return fmt.Errorf("%s: %w: the rows of two layers take %s%s, and it has %s; %s", e.Dir, syscall.ENOSPC, kernels.FormatBytes(most), beside,
		kernels.FormatBytes(free), remedy)
}

// mostBytes returns the bytes that the rows of two layers take at most, from layer first on, beyond
// the rows that are there.
func (e *Evaluator) mostBytes(need [][]nodeSet, first int, elem store.Elem) int64 {
	var most, below, there int64
	for l, wanted := range need[:len(need)-1] {
		bytes := int64(0)
		for _, nodes := range wanted {
			bytes += e.tableBytes(l, nodes.count(), elem)
		}
		if l == first-1 {
			there = bytes
		}
		if l >= first {
			most = max(most, below+bytes)
		}
		below = bytes
	}
	return most - there
}

// idBytes is the bytes of a row on disk beside the row itself: its node, and its place by node.
const idBytes = 8 + 4

// tableBytes returns the bytes of the table of count nodes of layer l on disk: rows, ids, and a
// checksum for each of their pages.
func (e *Evaluator) tableBytes(l, count int, elem store.Elem) int64 {
	bytes := int64(count) * (store.RowStride(int64(e.step.Model.Width(l)*elem.Size())) + idBytes)
	return bytes + bytes/1000 + 8*store.PageSize
}

// layerNames matches the names of layers, sealed or not.
var layerNames = regexp.MustCompile(`^layer-[0-9]+(\.partial)?$`)

// removeLayers removes the layers that passes have left, whole ones and others, except the names in
// but.
func (e *Evaluator) removeLayers(but ...string) error {
	fsys := e.fs()
	names, err := fsys.List(e.Dir)
	if err != nil {
		return fmt.Errorf("clear the rows of layers: %w", err)
	}
	for _, name := range names {
		if layerNames.MatchString(name) && !slices.Contains(but, name) {
			if err := fsys.RemoveAll(filepath.Join(e.Dir, name)); err != nil {
				return fmt.Errorf("clear the rows of layers: %w", err)
			}
		}
	}
	return nil
}

// layerWriter writes the rows of a layer.
type layerWriter struct {
	*store.Writer
	e        *Evaluator
	layer    int
	identity map[string]string
	left     *store.Manifest        // by a pass that was cut short
	tables   []*store.FeatureWriter // by type; nil where it makes none
	rows     []int                  // written so far
	noted    int64                  // of them, in the journal
	halves   []uint16
	bytes    []byte
}

func (e *Evaluator) createLayer(l int, identity map[string]string) (*layerWriter, error) {
	n := len(e.data.Types)
	lw := &layerWriter{e: e, layer: l, identity: identity, tables: make([]*store.FeatureWriter, n), rows: make([]int, n)}
	w, err := store.Create(e.layerPath(l), store.WriterOptions{FS: e.FS, ShardBytes: e.shardBytes, Continue: lw.journal})
	if err == nil {
		lw.Writer = w
		if lw.left, err = w.Parts(); err != nil {
			err = errors.Join(err, w.Leave())
		}
	}
	if err != nil {
		return nil, fmt.Errorf("the rows of layer %d: %w", l+1, err)
	}
	return lw, nil
}

// shardBytes is the size of the rows of a layer that are finished at a time. A pass that goes on
// finds them again. It is half a second of writing.
const shardBytes = 256 << 20

// journaled is the content of the journal of an unfinished layer: the identity of its rows, and the
// rows that are there.
type journaled struct {
	Identity map[string]string `json:"identity"`
	Parts    *store.Manifest   `json:"parts"`
}

const journalName = "journal.json"

// journal returns the parts that a pass of the same identity has left of the layer when it was cut
// short; nil if there are none.
func (w *layerWriter) journal(work string) *store.Manifest {
	f, err := w.e.fs().Open(filepath.Join(work, journalName))
	if err != nil || w.e.Of == "" {
		return nil
	}
	defer f.Close()
	var j journaled
	if json.NewDecoder(f).Decode(&j) != nil || !maps.Equal(j.Identity, w.identity) {
		return nil
	}
	return j.Parts
}

// ofUse reports whether a pass that goes on finds rows of the layer.
func (w *layerWriter) ofUse() bool { return w.noted > 0 || len(w.left.NodeTypes) > 0 }

// note writes down which rows outlive a crash, when there are more than before.
func (w *layerWriter) note() (err error) {
	if w.e.Of == "" {
		return nil
	}
	var under []*store.FeatureWriter
	done := int64(0)
	for _, f := range w.tables {
		if f != nil {
			under, done = append(under, f), done+f.Done()
		}
	}
	if done <= w.noted {
		return nil
	}
	j := journaled{Identity: w.identity}
	if j.Parts, err = w.PartsWith(under...); err != nil {
		return err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return err
	}
	work, err := w.WorkDir()
	if err != nil {
		return err
	}
	if err := writeWhole(w.e.fs(), filepath.Join(work, journalName), text); err != nil {
		return err
	}
	w.noted = done
	return nil
}

// writeWhole puts text in a file of this name, whole or not at all.
func writeWhole(fsys vfs.FS, name string, text []byte) error {
	f, err := fsys.Create(name+".new", vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(name+".new", name); err != nil {
		return err
	}
	d, err := fsys.OpenDir(filepath.Dir(name))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// begin begins the table of nodes of type t. Where there are none it has none.
func (w *layerWriter) begin(t int, nodes nodeSet) error {
	count := nodes.count()
	if count == 0 {
		return nil
	}
	name := w.e.data.Types[t].Name
	if !slices.ContainsFunc(w.left.NodeTypes, func(n store.NodeType) bool { return n.Name == name }) {
		if err := w.writeIDs(name, nodes, count); err != nil {
			return err
		}
	}
	var err error
	if w.tables[t], err = w.ContinueTable("rows", name, w.e.elem(), int64(count), w.e.step.Model.Width(w.layer)); err != nil {
		return err
	}
	w.rows[t] = int(w.tables[t].Done())
	w.noted += w.tables[t].Done()
	return nil
}

// writeIDs writes which nodes the rows of a type are of.
func (w *layerWriter) writeIDs(name string, nodes nodeSet, count int) error {
	ids, err := w.NewNodeType(name, int64(count))
	if err != nil {
		return err
	}
	var original []int64
	var order []uint32
	n := uint32(0)
	flush := func() error {
		err := errors.Join(ids.AppendOriginal(original), ids.AppendOrder(order))
		original, order = original[:0], order[:0]
		return err
	}
	for v := range nodes.all {
		original, order = append(original, int64(v)), append(order, n)
		if n++; len(order) == 1<<12 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return errors.Join(flush(), ids.Close())
}

// append writes the next rows of type t.
func (w *layerWriter) append(t int, y kernels.Tensor) error {
	if err := w.put(t, y); err != nil {
		return err
	}
	return w.note()
}

func (w *layerWriter) put(t int, y kernels.Tensor) error {
	first := w.rows[t]
	w.rows[t] += y.Rows
	if w.e.elem() == store.F32 {
		return w.e.step.Feed.Read(y, func(b []byte) error { return w.tables[t].PutRows(uint32(first), b) })
	}
	wide := w.e.step.Feed.Download(y)
	w.halves = append(w.halves[:0], make([]uint16, len(wide))...)
	if n := kernels.Float32ToHalf(w.halves, wide); n > 0 {
		return fmt.Errorf("layer %d of type %s: {layer_dtype} f16: %d numbers of %d nodes are beyond its range; take f32", w.layer+1,
			w.e.data.Types[t].Name, n, y.Rows)
	}
	w.bytes = w.bytes[:0]
	for _, h := range w.halves {
		w.bytes = append(w.bytes, byte(h), byte(h>>8))
	}
	return w.tables[t].PutRows(uint32(first), w.bytes)
}

// seal makes the layer whole, under its name.
func (w *layerWriter) seal() error {
	for _, f := range w.tables {
		if f != nil {
			if err := f.Close(); err != nil {
				return err
			}
		}
	}
	_, err := w.Seal(store.Manifest{
		Name: layerName(w.layer), Order: "original",
		Provenance: store.Provenance{Tool: "gnnstore", Source: w.e.data.Set.Path(), Options: w.identity},
	})
	return err
}
