package bench

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/sample"
)

// graph is a topology in memory: v has the in-neighbours nbr[offsets[v]:offsets[v+1]].
type graph struct {
	offsets []uint64
	nbr     []uint32
}

// Nodes implements sample.Lists.
func (g *graph) Nodes() int { return len(g.offsets) - 1 }

// Neighbors implements sample.Lists.
func (g *graph) Neighbors(v uint32) []uint32 { return g.nbr[g.offsets[v]:g.offsets[v+1]] }

// generate makes a graph of so many nodes with degree in-neighbours in the mean, between half and
// one and a half of it each. Low ids are neighbours more often, as in a dataset that is numbered by
// degree: the chance of id u falls as 1/√u.
func generate(nodes, degree int, seed uint64) *graph {
	g := &graph{offsets: make([]uint64, 1, nodes+1), nbr: make([]uint32, 0, nodes*degree)}
	for v := range nodes {
		first := len(g.nbr)
		for e := range degree/2 + int(sample.Hash(seed, 1, uint64(v))%uint64(degree+1)) {
			x := float64(sample.Hash(seed, 2, uint64(v), uint64(e))>>11) / (1 << 53)
			g.nbr = append(g.nbr, uint32(float64(nodes)*x*x))
		}
		slices.Sort(g.nbr[first:])
		g.offsets = append(g.offsets, uint64(len(g.nbr)))
	}
	return g
}

// seedsOf are n nodes of g, each once.
func (g *graph) seedsOf(n int, seed uint64) []uint32 {
	all := make([]uint32, g.Nodes())
	for v := range all {
		all[v] = uint32(v)
	}
	sample.Shuffle(all, seed, 1)
	return all[:n]
}

// lists are dsts lists of degree entries, which name rows of a table.
func lists(be kernels.Backend, dsts, degree, rows int) kernels.Adjacency {
	start, end, nbr := make([]uint32, dsts), make([]uint32, dsts), make([]uint32, dsts*degree)
	for i := range start {
		start[i], end[i] = uint32(i*degree), uint32((i+1)*degree)
	}
	for i := range nbr {
		nbr[i] = uint32(sample.Hash(1, uint64(i)) % uint64(rows))
	}
	return kernels.Adjacency{Start: column(be, start), End: column(be, end), Nbr: column(be, nbr)}
}

// reverse adds to g its edges by source. There are rows sources.
func reverse(be kernels.Backend, g kernels.Adjacency, rows int) kernels.Adjacency {
	start, end, nbr := make([]uint32, g.Start.Rows), make([]uint32, g.Start.Rows), make([]uint32, g.Nbr.Rows)
	be.DownloadU32(start, g.Start)
	be.DownloadU32(end, g.End)
	be.DownloadU32(nbr, g.Nbr)
	from := make([]uint32, rows+1)
	for _, u := range nbr {
		from[u+1]++
	}
	for u := range rows {
		from[u+1] += from[u]
	}
	dst, at := make([]uint32, len(nbr)), slices.Clone(from)
	for i := range start {
		for _, u := range nbr[start[i]:end[i]] {
			dst[at[u]] = uint32(i)
			at[u]++
		}
	}
	g.RevStart, g.RevDst = column(be, from), column(be, dst)
	return g
}

func newMatrix(be kernels.Backend, rows, cols int) kernels.Tensor {
	return kernels.NewTensor(be, kernels.F32, rows, cols)
}

// filled is a matrix of numbers in [-1, 1).
func filled(be kernels.Backend, rows, cols int) kernels.Tensor {
	t := newMatrix(be, rows, cols)
	host := make([]float32, cols)
	for r := range rows {
		for c := range host {
			host[c] = float32(int16((r*cols+c)*0x9e37)) / (1 << 15)
		}
		be.UploadF32(t.Slice(r, r+1), host)
	}
	return t
}

// halves is a matrix of float16s in (-1, 1).
func halves(be kernels.Backend, rows, cols int) kernels.Tensor {
	t := kernels.NewTensor(be, kernels.F16, rows, cols)
	host := make([]uint16, cols)
	for r := range rows {
		for c := range host {
			host[c] = 0x3800 | uint16((r*cols+c)*0x9e37)&0x83ff // ±0.5 to ±1
		}
		be.UploadHalf(t.Slice(r, r+1), host)
	}
	return t
}

func column(be kernels.Backend, v []uint32) kernels.Tensor {
	t := kernels.NewTensor(be, kernels.U32, len(v), 1)
	be.UploadU32(t, v)
	return t
}
