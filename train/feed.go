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
}

func newFeed(be kernels.Backend) *feed { return &feed{be: be, staging: kernels.NewStaging(be)} }

// blocks uploads the blocks of b.
func (f *feed) blocks(blocks []sample.Block) []model.Graph {
	n, weights := 0, 0
	for i := range blocks {
		b := &blocks[i]
		n += len(b.Src) + 2*b.Dst + len(b.Nbr) + len(b.RevStart) + len(b.RevDst) + len(b.RevEdge)
		weights += len(b.Weight)
	}
	f.floats = grow(f.be, f.floats, kernels.F32, weights)
	f.reserve(n + 2*blocks[len(blocks)-1].Dst) // room for labels and predictions, too
	f.graphs = f.graphs[:0]
	weights = 0
	for i := range blocks {
		b := &blocks[i]
		w := kernels.Tensor{Buf: f.floats, Type: kernels.F32, Off: weights, Rows: len(b.Weight), Cols: 1}
		f.be.UploadF32(w, b.Weight)
		weights += len(b.Weight)
		f.graphs = append(f.graphs, model.Graph{Dst: b.Dst, IDs: f.upload(b.Src), Weight: w, Adjacency: kernels.Adjacency{
			Start: f.upload(b.Start), End: f.upload(b.End), Nbr: f.upload(b.Nbr),
			RevStart: f.upload(b.RevStart), RevDst: f.upload(b.RevDst), RevEdge: f.upload(b.RevEdge),
		}})
	}
	return f.graphs
}

func (f *feed) reserve(n int) {
	f.used = 0
	f.ints = grow(f.be, f.ints, kernels.U32, n)
}

func (f *feed) upload(v []uint32) kernels.Tensor {
	t := kernels.Tensor{Buf: f.ints, Type: kernels.U32, Off: f.used, Rows: len(v), Cols: 1}
	f.be.UploadU32(t, v)
	f.used += len(v)
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
	// The mean of one row is that row, to the bit.
	f.reserve(2*len(ids) + 1)
	f.host = f.host[:0]
	for i := range len(ids) + 1 {
		f.host = append(f.host, uint32(i))
	}
	ends := f.upload(f.host)
	for i, id := range ids {
		f.host[i] = place[id]
	}
	f.be.NeighborMean(x, below, kernels.Adjacency{
		Start: ends.Slice(0, len(ids)), End: ends.Slice(1, len(ids)+1), Nbr: f.upload(f.host[:len(ids)]),
	})
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
