package train

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// feed carries a batch to the backend: its blocks, its feature rows, its labels. Its buffers grow to the largest batch
// and stay; what it returned is invalid after the next call.
type feed struct {
	be     kernels.Backend
	graphs []model.Graph
	ints   kernels.Buffer // the U32 arrays of a batch, one behind the other
	used   int
	floats kernels.Buffer // the edges' weights, likewise
	rows   kernels.Buffer // of features
	hidden kernels.Buffer // rows of a lower layer, in evaluation
	host   []uint32

	staging *kernels.Staging
	ids     [][]uint32  // the parts of ints that blocks uploads
	weights [][]float32 // and of floats
}

func newFeed(be kernels.Backend) *feed { return &feed{be: be, staging: kernels.NewStaging(be)} }

// blocks uploads the blocks of layers, of their one relation: their integers at once, and their weights.
func (f *feed) blocks(layers []sample.Layer) []model.Graph {
	f.ids, f.weights = f.ids[:0], f.weights[:0]
	for i := range layers {
		nodes, b := &layers[i].Nodes[0], &layers[i].Blocks[0]
		f.ids = append(f.ids, nodes.Src, b.Start, b.End, b.Nbr, b.RevStart, b.RevDst, b.RevEdge)
		f.weights = append(f.weights, b.Weight)
	}
	ids, weights := total(f.ids), total(f.weights)
	f.floats = grow(f.be, f.floats, kernels.F32, weights)
	f.reserve(ids + 2*layers[len(layers)-1].Nodes[0].Dst) // room for labels and predictions, too
	f.staging.JoinU32(kernels.Tensor{Buf: f.ints, Type: kernels.U32, Rows: ids, Cols: 1}, f.ids...)
	f.staging.JoinF32(kernels.Tensor{Buf: f.floats, Type: kernels.F32, Rows: weights, Cols: 1}, f.weights...)

	f.graphs, weights = f.graphs[:0], 0
	for i := range layers {
		nodes, b := &layers[i].Nodes[0], &layers[i].Blocks[0]
		w := kernels.Tensor{Buf: f.floats, Type: kernels.F32, Off: weights, Rows: len(b.Weight), Cols: 1}
		weights += len(b.Weight)
		// In the order in which they were joined.
		f.graphs = append(f.graphs, model.Graph{
			Nodes: []model.Frontier{{Dst: nodes.Dst, IDs: f.next(nodes.Src)}},
			Edges: []model.Edges{{Weight: w, Adjacency: kernels.Adjacency{
				Start: f.next(b.Start), End: f.next(b.End), Nbr: f.next(b.Nbr),
				RevStart: f.next(b.RevStart), RevDst: f.next(b.RevDst), RevEdge: f.next(b.RevEdge),
			}}},
		})
	}
	return f.graphs
}

// total is the number of elements of all parts.
func total[T any](parts [][]T) (n int) {
	for _, p := range parts {
		n += len(p)
	}
	return n
}

// reserve makes room for n integers, in the place of those that are there.
func (f *feed) reserve(n int) {
	f.used = 0
	f.ints = grow(f.be, f.ints, kernels.U32, n)
}

// next is the window behind those given out since reserve, as long as v.
func (f *feed) next(v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: f.ints, Type: kernels.U32, Off: f.used, Rows: len(v), Cols: 1}
	f.used += len(v)
	return t
}

// upload copies v to the next window.
func (f *feed) upload(v []uint32) kernels.Tensor {
	t := f.next(v)
	f.be.UploadU32(t, v)
	return t
}

// gather fetches the feature rows of ids through the tiers and leaves the host cache as it is.
func (f *feed) gather(ctx context.Context, s *cachetier.Stack, d *data.Data, ids []uint32) (kernels.Tensor, error) {
	t, dim := d.DType(), d.Features.Dim()
	f.rows = grow(f.be, f.rows, t, len(ids)*dim)
	x := kernels.Tensor{Buf: f.rows, Type: t, Rows: len(ids), Cols: dim}
	return x, f.staging.Fill(x, func(dst []byte) error { return s.Peek(ctx, dst, ids) })
}

// rowsOf copies rows place[id] of below, one for each of ids.
func (f *feed) rowsOf(below kernels.Tensor, ids, place []uint32) kernels.Tensor {
	f.hidden = grow(f.be, f.hidden, kernels.F32, len(ids)*below.Cols)
	x := kernels.Tensor{Buf: f.hidden, Type: kernels.F32, Rows: len(ids), Cols: below.Cols}
	f.host = f.host[:0]
	for _, id := range ids {
		f.host = append(f.host, place[id])
	}
	f.reserve(len(ids))
	f.be.GatherRows(x, below, f.upload(f.host))
	return x
}

// correct counts the rows whose largest logit is their label; a row without one is never right.
func (f *feed) correct(logits kernels.Tensor, labels []uint32) int {
	out := kernels.Tensor{Buf: f.ints, Type: kernels.U32, Off: f.used, Rows: logits.Rows, Cols: 1}
	f.be.ArgMax(out, logits)
	f.host = append(f.host[:0], labels...) // as long as out, and then overwritten
	f.be.DownloadU32(f.host, out)
	n := 0
	for i, c := range f.host {
		if c == labels[i] {
			n++
		}
	}
	return n
}

// grow returns b, or a larger buffer in its place.
func grow(be kernels.Backend, b kernels.Buffer, t kernels.DType, n int) kernels.Buffer {
	if b != nil && b.Len() >= n {
		return b
	}
	if b != nil {
		be.Free(b)
	}
	return be.Alloc(t, n+n/4)
}

func (f *feed) close() {
	for _, b := range []kernels.Buffer{f.ints, f.floats, f.rows, f.hidden} {
		if b != nil {
			f.be.Free(b)
		}
	}
	f.staging.Close()
}
