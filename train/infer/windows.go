package infer

import (
	"context"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// windows brings the rows of the layer below, which are on disk, for chunks of a layer: the rows of
// many chunks in one pass. Below the first layer are the features.
type windows struct {
	e      *Evaluator
	layer  int
	stacks []*cachetier.Stack // by type; nil where the layer below has no rows, or others bring them
	places []places           // of nodes in them; empty of features, which all nodes have
	ahead  int64              // bytes that chunks may take before they are used

	chunks []*chunk // drawn, in their order; those beyond drawn are for reuse
	drawn  int
	bytes  int64 // of the drawn chunks
	loaded int   // windows
}

// chunk is nodes and what the layer reads for them.
type chunk struct {
	nodes []uint32
	batch sample.Batch
	rows  [][]uint32 // by type: of the layer below, in the order of the batch's inputs
}

// openWindows opens the tables below layer l that it reads for nodes of type t, with memory for
// their rows and for chunks. need is the nodes that below has rows of.
func (e *Evaluator) openWindows(ctx context.Context, l, t int, below *store.Dataset, need []nodeSet, memory int64) (_ *windows, err error) {
	types := len(e.data.Types)
	w := &windows{e: e, layer: l, stacks: make([]*cachetier.Stack, types), places: make([]places, types), ahead: memory / 4}
	defer func() {
		if err != nil {
			w.close()
		}
	}()
	tables := e.tablesBelow(l, t, below)
	all := int64(0)
	for _, f := range tables {
		if f != nil {
			all += tableRows(f)
		}
	}
	if all == 0 {
		w.ahead = 0
	}
	for from, f := range tables {
		if f == nil {
			continue
		}
		o := e.Tables
		o.DeviceBytes, o.StaticBytes, o.Lookahead, o.Prewarm, o.Policy = 0, 0, 0, false, cachetier.Belady
		o.HostBytes = int64(float64(memory-w.ahead) * (float64(tableRows(f)) / float64(all)))
		if w.stacks[from], err = cachetier.Open(ctx, f, o); err != nil {
			return nil, fmt.Errorf("the rows of layer %d, type %s: %w", l, e.data.Types[from].Name, err)
		}
		if l > 0 {
			w.places[from] = newPlaces(need[from])
		}
	}
	return w, nil
}

// tablesBelow returns the tables, by type, that layer l reads for nodes of type t: the tables of
// below, or for the first layer the features that no attached table has in memory as a whole.
func (e *Evaluator) tablesBelow(l, t int, below *store.Dataset) []*store.Features {
	tables := make([]*store.Features, len(e.data.Types))
	for from := range tables {
		d := &e.data.Types[from]
		switch {
		case !e.reads(l, t, from):
		case l == 0 && d.Features != nil && d.Nodes > 0 && !e.holdsAll(from):
			tables[from] = d.Features
		case l > 0:
			all := below.Manifest().Tables
			if i := slices.IndexFunc(all, func(table store.Table) bool { return table.NodeType == d.Name }); i >= 0 {
				tables[from] = below.Features(i)
			}
		}
	}
	return tables
}

// reads reports whether layer l reads rows of type from for nodes of type t: rows of these nodes
// themselves, or of sources.
func (e *Evaluator) reads(l, t, from int) bool {
	if t == from {
		return true
	}
	for r, rel := range e.data.Relations {
		if rel.Dst == t && rel.Src == from && e.reach.Relations[l][r] {
			return true
		}
	}
	return false
}

// holdsAll reports whether the attached table of type t has all rows in memory.
func (e *Evaluator) holdsAll(t int) bool {
	s := e.tables[t]
	if s == nil {
		return false
	}
	tiers := s.Stats().Tiers
	return tiers.Device.UsedRows+tiers.Host.UsedRows >= tiers.Disk.CapacityRows
}

// tableRows is the bytes of the rows of f.
func tableRows(f *store.Features) int64 { return int64(f.Rows()) * int64(f.RowBytes()) }

// elem is the type of the numbers in the table of a type.
func (w *windows) elem(from int) kernels.DType {
	switch {
	case w.layer == 0:
		return w.e.data.Types[from].DType()
	case w.e.elem() == store.F16:
		return kernels.F16
	}
	return kernels.F32
}

// row is where the table of type from has node v.
func (w *windows) row(from int, v uint32) uint32 {
	if w.layer == 0 {
		return v
	}
	return w.places[from].of(v)
}

// read returns the reads of the stacks so far.
func (w *windows) read() (sum cachetier.Disk) {
	for _, s := range w.stacks {
		if s != nil {
			stats := s.Stats()
			sum = sum.Add(stats.Disk).Add(stats.Warmup)
		}
	}
	return sum
}

func (w *windows) close() {
	w.e.read = w.e.read.Add(w.read())
	for _, s := range w.stacks {
		if s != nil {
			s.Close()
		}
	}
	if w.chunks = nil; w.ahead > heapBytes {
		debug.FreeOSMemory()
	}
}

// heapBytes bounds the memory of drawn chunks that is left to the garbage collector's own time.
// More than that is freed at once: the next work needs it outside of the Go heap.
const heapBytes = 16 << 20

// each calls do with the rows that the layer makes of nodes of type t, a chunk at a time.
func (w *windows) each(ctx context.Context, t int, nodes nodeSet, do func(nodes []uint32, y kernels.Tensor) error) error {
	err := w.e.chunks(nodes, t, w.layer, func(nodes []uint32) error {
		if w.e.hub(w.layer, t, nodes) {
			if err := w.use(ctx, t, do); err != nil {
				return err
			}
			y, err := w.e.inParts(ctx, w.layer, t, nodes[0], w.peek(ctx))
			if err != nil {
				return err
			}
			return do(nodes, y)
		}
		if err := w.draw(ctx, t, nodes); err != nil {
			return err
		}
		if w.bytes < w.ahead {
			return nil
		}
		return w.use(ctx, t, do)
	})
	if err != nil {
		return err
	}
	return w.use(ctx, t, do)
}

// draw draws a chunk ahead.
func (w *windows) draw(ctx context.Context, t int, nodes []uint32) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if w.drawn == len(w.chunks) {
		w.chunks = append(w.chunks, &chunk{rows: make([][]uint32, len(w.stacks))})
	}
	c := w.chunks[w.drawn]
	c.nodes = append(c.nodes[:0], nodes...)
	if err := w.e.draw(ctx, &c.batch, w.layer, t, c.nodes); err != nil {
		return err
	}
	for from, ids := range c.batch.Inputs()[:len(w.stacks)] {
		c.rows[from] = c.rows[from][:0]
		if w.stacks[from] == nil {
			continue
		}
		for _, v := range ids {
			c.rows[from] = append(c.rows[from], w.row(from, v))
		}
		w.bytes += 4 * int64(len(ids))
	}
	w.bytes += c.batch.Bytes() + 4*int64(len(nodes))
	w.drawn++
	return nil
}

// use computes the layer for the chunks that are drawn, a window after the other, while the next
// one is read.
func (w *windows) use(ctx context.Context, t int, do func(nodes []uint32, y kernels.Tensor) error) (err error) {
	chunks := w.chunks[:w.drawn]
	w.drawn, w.bytes = 0, 0
	if len(chunks) == 0 {
		return nil
	}
	if !slices.ContainsFunc(w.stacks, func(s *cachetier.Stack) bool { return s != nil }) {
		for _, c := range chunks {
			y, err := w.compute(ctx, t, c, nil, 0)
			if err == nil {
				err = do(c.nodes, y)
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	for from, s := range w.stacks {
		if s == nil {
			continue
		}
		steps := make([][]uint32, len(chunks))
		for i, c := range chunks {
			steps[i] = c.rows[from]
		}
		s.Expect(steps)
	}
	ctx, stop := context.WithCancel(ctx)
	ready := make(chan []*cachetier.Window)
	var loading sync.WaitGroup
	var failed error
	defer func() {
		stop()
		loading.Wait()
		if err == nil {
			err = failed
		}
	}()
	loading.Go(func() {
		defer close(ready)
		failed = store.Guard(func() error { return w.load(ctx, len(chunks), ready) })
	})
	for window := range ready {
		steps := w.steps(window)
		for i, c := range chunks[:steps] {
			y, err := w.compute(ctx, t, c, window, i)
			if err == nil {
				err = do(c.nodes, y)
			}
			if err != nil {
				return err
			}
		}
		chunks = chunks[steps:]
		for _, part := range window {
			if part != nil {
				part.Release()
			}
		}
		w.loaded++
	}
	return nil
}

// peek brings rows at once, and leaves what waits for others where it is.
func (w *windows) peek(ctx context.Context) hiddenRows {
	var rows []uint32
	return func(from int, ids []uint32) (kernels.Tensor, error) {
		if w.stacks[from] == nil {
			return kernels.Tensor{}, nil
		}
		rows = rows[:0]
		for _, v := range ids {
			rows = append(rows, w.row(from, v))
		}
		return w.hidden(from, len(ids), func(dst []byte) error { return w.stacks[from].Peek(ctx, dst, rows) })
	}
}

// hidden has fill write n rows of type from.
func (w *windows) hidden(from, n int, fill func(dst []byte) error) (kernels.Tensor, error) {
	elem := w.elem(from)
	return w.e.step.Feed.Hidden(from, elem, n, w.stacks[from].RowBytes()/elem.Size(), fill)
}

// load reads window after window of chunks, as many chunks as fit the cache of every table, and
// gives them to ready.
func (w *windows) load(ctx context.Context, chunks int, ready chan<- []*cachetier.Window) error {
	for chunks > 0 {
		steps := chunks
		for _, s := range w.stacks {
			if s != nil {
				steps = min(steps, s.Fit())
			}
		}
		window := make([]*cachetier.Window, len(w.stacks))
		for from, s := range w.stacks {
			if s == nil {
				continue
			}
			var err error
			if window[from], err = s.Next(ctx, steps); err != nil {
				return err
			}
		}
		for _, part := range window {
			if part != nil {
				if err := part.Load(ctx); err != nil {
					return err
				}
			}
		}
		select {
		case ready <- window:
		case <-ctx.Done():
			return ctx.Err()
		}
		chunks -= steps
	}
	return nil
}

// steps returns the number of chunks in a window.
func (w *windows) steps(window []*cachetier.Window) int {
	for _, part := range window {
		if part != nil {
			return part.Steps()
		}
	}
	panic("infer: a window of no table")
}

// compute is the layer for c, which is step i of window.
func (w *windows) compute(ctx context.Context, t int, c *chunk, window []*cachetier.Window, i int) (kernels.Tensor, error) {
	return w.e.compute(ctx, &c.batch, w.layer, t, func(from int, ids []uint32) (kernels.Tensor, error) {
		if w.stacks[from] == nil {
			return kernels.Tensor{}, nil
		}
		return w.hidden(from, len(ids), func(dst []byte) error { return window[from].Gather(ctx, i, dst) })
	})
}
