package step

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Feed carries a batch to the backend: its blocks, its feature rows, its labels. Its buffers grow
// to the largest batch and stay. What a method returned is valid until its next call.
type Feed struct {
	be     kernels.Backend
	graphs []model.Graph
	now    arrays           // of the step under way
	before *arrays          // of the step before; nil where the host writes the backend's memory
	used   int              // elements of now[blockInts] that windows of blocks have
	rows   []kernels.Buffer // of features, by type, and behind them of tables of edges
	parts  []kernels.Buffer // of features that are not on the device, by type
	where  kernels.Buffer   // of features, where some are on the device
	hidden []kernels.Buffer // rows of a lower layer, in evaluation; by type
	halves []kernels.Buffer // the same in float16
	host   []uint32
	got    []float32      // of Download
	void   kernels.Tensor // flag: the loss, or the norm of the gradients, is not finite
	came   [2]fetched     // by steps under way, in turn

	labels model.Labels // those that are input

	staging *kernels.Staging
	ids     [][]uint32  // the parts that are joined to an array of integers
	weights [][]float32 // and of floats
	count   []uint32    // 0, 1, 2 and so on
	places  []uint32    // what origins lists
	from    [][]uint32  // at and back of each frontier
}

// arrays has the buffers of what goes up for a step, by kind.
type arrays [arrayKinds]kernels.Buffer

// Kinds of arrays.
const (
	blockInts   = iota // of Blocks, one list behind the other
	blockFloats        // weights and values of edges
	labelInts          // of labels that are input
	labelFloats
	givenInts   // of Upload
	givenFloats // of UploadFloats
	givenLists  // of Ints
	haloInts    // of Cooperation
	largest     // of FetchLargest
	arrayKinds
)

// newFeed makes a Feed without buffers. Close frees the buffers it got. Where the host does not
// write to the backend's memory, a step may still be computing when the next one's arrays go up: so
// two steps in a row have arrays of their own.
func newFeed(be kernels.Backend) *Feed {
	f := &Feed{be: be, staging: kernels.NewStaging(be), void: kernels.NewTensor(be, kernels.U32, 1, 1)}
	if _, writes := be.Host(f.void); !writes {
		f.before = new(arrays)
	}
	return f
}

// Blocks uploads the blocks of layers: their integers at once, and their weights and values. rows
// has the rows that they read of each table of edges. Where rows of hidden layers come from slots,
// it uploads their places too.
func (f *Feed) Blocks(layers []sample.Layer, rows ...kernels.Tensor) []model.Graph {
	f.ids, f.weights, f.places, f.from = f.ids[:0], f.weights[:0], f.places[:0], f.from[:0]
	most := 0 // edges that have values
	for i := range layers {
		for t := range layers[i].Nodes {
			nodes := &layers[i].Nodes[t]
			var at, back []uint32
			if i > 0 {
				at, back = f.origins(nodes, layers[i-1].Nodes[t].Dst)
			}
			f.from = append(f.from, at, back)
			f.ids = append(f.ids, nodes.Src, at, back)
		}
		for k := range layers[i].Blocks {
			b := &layers[i].Blocks[k]
			f.ids = append(f.ids, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge, b.Rows)
			f.weights = append(f.weights, b.Weight, b.Values)
			if len(b.Values) > 0 || len(b.Rows) > 0 {
				most = max(most, len(b.Nbr))
			}
		}
	}
	if most > 0 {
		f.ids = append(f.ids, f.counting(most+1))
	}
	ids, weights := total(f.ids), total(f.weights)
	floats := f.room(blockFloats, kernels.F32, weights)
	ints := f.room(blockInts, kernels.U32, ids)
	f.used = 0
	f.staging.JoinU32(kernels.Tensor{Buf: ints, Type: kernels.U32, Rows: ids, Cols: 1}, f.ids...)
	f.staging.JoinF32(kernels.Tensor{Buf: floats, Type: kernels.F32, Rows: weights, Cols: 1}, f.weights...)

	if len(f.graphs) != len(layers) {
		f.graphs = make([]model.Graph, len(layers))
	}
	count := kernels.Tensor{Buf: ints, Type: kernels.U32, Off: ids - (most + 1), Rows: most + 1, Cols: 1}
	weights = 0
	from := f.from
	for i := range layers { // in the order in which they were joined
		g := &f.graphs[i]
		g.Nodes, g.Edges, g.Labels = g.Nodes[:0], g.Edges[:0], nil
		for _, nodes := range layers[i].Nodes {
			g.Nodes = append(g.Nodes, model.Frontier{Dst: nodes.Dst, IDs: f.next(nodes.Src), At: f.next(from[0]), Back: f.next(from[1])})
			from = from[2:]
		}
		for k := range layers[i].Blocks {
			b := &layers[i].Blocks[k]
			w := kernels.Tensor{Buf: floats, Type: kernels.F32, Off: weights, Rows: len(b.Weight), Cols: 1}
			weights += len(b.Weight)
			g.Edges = append(g.Edges, model.Edges{Weight: w, Adjacency: kernels.Adjacency{
				Start: f.next(b.Start), End: f.next(b.End), Nbr: f.next(b.Nbr),
				RevStart: f.next(b.RevStart), RevDst: f.next(b.RevDst), RevEdge: f.next(b.RevEdge),
			}})
			if at := f.next(b.Rows); at.Rows > 0 {
				g.Edges[k].BringRows(rows[b.Table], at, count)
			}
			if n := len(b.Values); n > 0 {
				edges := len(b.Nbr)
				g.Edges[k].Bring(kernels.Tensor{Buf: floats, Type: kernels.F32, Off: weights, Rows: edges, Cols: n / edges}, count)
				weights += n
			}
		}
	}
	if most > 0 {
		f.used += count.Rows
	}
	return f.graphs
}

// counting is 0 to n-1.
func (f *Feed) counting(n int) []uint32 {
	for i := len(f.count); i < n; i++ {
		f.count = append(f.count, uint32(i))
	}
	return f.count[:n]
}

// total is the number of elements of all parts.
func total[T any](parts [][]T) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// room returns the buffer of a kind for the step under way, of n elements at least. What it held is
// lost.
func (f *Feed) room(kind int, t kernels.DType, n int) kernels.Buffer {
	f.grow(&f.now[kind], t, n)
	if f.before != nil { // so that the first step takes the memory of both
		f.grow(&f.before[kind], t, n)
	}
	return f.now[kind]
}

// next returns the next window of the blocks' integers. It is as long as v.
func (f *Feed) next(v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: f.now[blockInts], Type: kernels.U32, Off: f.used, Rows: len(v), Cols: 1}
	f.used += len(v)
	return t
}

// Upload copies v to the backend. The tensor is valid until the next call.
func (f *Feed) Upload(v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: f.room(givenInts, kernels.U32, len(v)), Type: kernels.U32, Rows: len(v), Cols: 1}
	f.be.UploadU32(t, v)
	return t
}

// Gather fetches rows through the tiers, one for each of ids, nodes of type t, and leaves the host
// cache as it is. They are valid until the next call for the same type.
func (f *Feed) Gather(ctx context.Context, t int, s *cachetier.Stack, elem kernels.DType, ids []uint32) (kernels.Tensor, error) {
	cols := s.RowBytes() / elem.Size()
	f.growOf(&f.rows, t, elem, len(ids)*cols)
	x := kernels.Tensor{Buf: f.rows[t], Type: elem, Rows: len(ids), Cols: cols}
	hot, apart := s.Apart()
	if !apart {
		return x, f.staging.Fill(x, func(dst []byte) error { return s.Peek(ctx, dst, ids) })
	}
	f.host = append(f.host[:0], make([]uint32, len(ids))...)
	came := x
	came.Rows = s.Places(ids, f.host)
	f.growOf(&f.parts, t, elem, came.Len())
	came.Buf = f.parts[t]
	if err := f.staging.Fill(came, func(dst []byte) error { return s.PeekBeyond(ctx, dst, ids) }); err != nil {
		return x, err
	}
	f.grow(&f.where, kernels.U32, len(ids))
	at := kernels.Tensor{Buf: f.where, Type: kernels.U32, Rows: len(ids), Cols: 1}
	f.staging.JoinU32(at, f.host)
	f.be.RowsOf(x, hot, came, at)
	return x, nil
}

// RowsOf copies rows place[id] of below, one for each of ids, nodes of type t. They are valid until
// the next call for that type.
func (f *Feed) RowsOf(t int, below kernels.Tensor, ids, place []uint32) kernels.Tensor {
	f.growOf(&f.hidden, t, kernels.F32, len(ids)*below.Cols)
	x := kernels.Tensor{Buf: f.hidden[t], Type: kernels.F32, Rows: len(ids), Cols: below.Cols}
	f.host = f.host[:0]
	for _, id := range ids {
		f.host = append(f.host, place[id])
	}
	f.be.GatherRows(x, below, f.Upload(f.host))
	return x
}

// Hidden has fill write rows of a lower layer, each of so many columns, for nodes of type t. They
// are valid until the next call for that type.
func (f *Feed) Hidden(t int, elem kernels.DType, rows, cols int, fill func(dst []byte) error) (kernels.Tensor, error) {
	all := &f.hidden
	if elem == kernels.F16 {
		all = &f.halves
	}
	f.growOf(all, t, elem, rows*cols)
	x := kernels.Tensor{Buf: (*all)[t], Type: elem, Rows: rows, Cols: cols}
	return x, f.staging.Fill(x, fill)
}

// UploadFloats copies v, rows of cols numbers, to the backend. The tensor is valid until the next
// call.
func (f *Feed) UploadFloats(v []float32, cols int) kernels.Tensor {
	buf := f.room(givenFloats, kernels.F32, len(v))
	t := kernels.Tensor{Buf: buf, Type: kernels.F32, Rows: len(v) / cols, Cols: cols}
	f.be.UploadF32(t, v)
	return t
}

// Ints copies lists of integers to the backend, a tensor for each. They are valid until the next
// call.
func (f *Feed) Ints(lists ...[]uint32) (all []kernels.Tensor) {
	n := total(lists)
	buf := f.room(givenLists, kernels.U32, n)
	f.staging.JoinU32(kernels.Tensor{Buf: buf, Type: kernels.U32, Rows: n, Cols: 1}, lists...)
	n = 0
	for _, l := range lists {
		all = append(all, kernels.Tensor{Buf: buf, Type: kernels.U32, Off: n, Rows: len(l), Cols: 1})
		n += len(l)
	}
	return all
}

// Download copies t to the host. The numbers are valid until the next call.
func (f *Feed) Download(t kernels.Tensor) []float32 {
	f.got = append(f.got[:0], make([]float32, t.Len())...)
	f.be.DownloadF32(f.got, t)
	return f.got
}

// Read has read see the bytes of t, F32 and little-endian. They are lent for the call.
func (f *Feed) Read(t kernels.Tensor, read func(b []byte) error) error {
	return f.staging.Read(t, read)
}

// growOf grows the buffer of type t.
func (f *Feed) growOf(all *[]kernels.Buffer, t int, elem kernels.DType, n int) {
	for len(*all) <= t {
		*all = append(*all, nil)
	}
	f.grow(&(*all)[t], elem, n)
}

// grow makes b at least n elements long. What it held is lost.
func (f *Feed) grow(b *kernels.Buffer, t kernels.DType, n int) {
	kernels.GrowBuffer(f.be, b, t, n, n+n/4)
}

// Close frees the buffers.
func (f *Feed) Close() {
	for i := range f.now {
		kernels.FreeBuffers(f.be, &f.now[i])
		if f.before != nil {
			kernels.FreeBuffers(f.be, &f.before[i])
		}
	}
	kernels.FreeBuffers(f.be, &f.where)
	kernels.FreeTensors(f.be, f.void)
	f.void = kernels.Tensor{}
	for _, all := range [][]kernels.Buffer{f.rows, f.parts, f.hidden, f.halves} {
		for t := range all {
			kernels.FreeBuffers(f.be, &all[t])
		}
	}
	f.staging.Close()
}

// BadRow finds the first element of rows that is NaN or infinite.
func (f *Feed) BadRow(rows kernels.Tensor) (row, col int, v float32, ok bool) {
	wide := kernels.NewTensor(f.be, kernels.F32, 1, rows.Cols)
	defer f.be.Free(wide.Buf)
	host := make([]float32, rows.Cols)
	for row := range rows.Rows {
		f.be.Convert(wide, rows.Slice(row, row+1))
		f.be.DownloadF32(host, wide)
		if col := NotFinite(host); col >= 0 {
			return row, col, host[col], true
		}
	}
	return 0, 0, 0, false
}

// NotFinite is the place of the first element that is NaN or infinite, or -1.
func NotFinite(v []float32) int { return slices.IndexFunc(v, func(x float32) bool { return x-x != 0 }) }
