package graph

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/infer"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// endRows has the last layer's rows of the nodes that links may join, of sources and of
// destinations. src and dst are the same where both are of one type.
type endRows struct{ src, dst *infer.Kept }

// keep computes the rows of nodes of either end, which ascend. Where both ends are of one type, dst
// has the nodes of both.
func (n *Network) keep(ctx context.Context, src, dst []uint32) (r endRows, err error) {
	if n.c.eval.Walks() {
		return r, errors.New("{sampler} rw weighs the nodes that walks visit, and knows no weights for all neighbours: such a network does not predict")
	}
	_, from, to := n.Relation()
	last := n.c.Layers - 1
	if from == to {
		if r.src, err = n.c.eval.Keep(ctx, last, from, dst, n.rowBytes); err == nil {
			r.dst = r.src
		}
		return r, err
	}
	if r.src, err = n.c.eval.Keep(ctx, last, from, src, n.rowBytes/2); err == nil {
		r.dst, err = n.c.eval.Keep(ctx, last, to, dst, n.rowBytes/2)
	}
	if err != nil {
		r.close()
	}
	return r, err
}

func (r endRows) close() {
	for _, k := range []*infer.Kept{r.src, r.dst} {
		if k != nil {
			k.Close()
		}
	}
}

// rowTable holds rows of nodes on the backend, in ascending order of the nodes.
type rowTable struct {
	be    kernels.Backend
	all   kernels.Tensor
	nodes []uint32
	host  []float32
}

// newRowTable makes a table with room for this many rows.
func newRowTable(be kernels.Backend, rows, cols int) *rowTable {
	return &rowTable{be: be, all: kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Type: kernels.F32, Rows: rows, Cols: cols}}
}

// fill replaces the rows by the rows of the distinct nodes of a list, and returns them.
func (t *rowTable) fill(from *infer.Kept, list []uint32) (kernels.Tensor, error) {
	t.nodes = append(t.nodes[:0], list...)
	slices.Sort(t.nodes)
	t.nodes = slices.Compact(t.nodes)
	t.host = slices.Grow(t.host[:0], len(t.nodes)*t.all.Cols)[:len(t.nodes)*t.all.Cols]
	if err := from.Read(t.host, t.nodes); err != nil {
		return kernels.Tensor{}, err
	}
	rows := t.all.Slice(0, len(t.nodes))
	t.be.UploadF32(rows, t.host)
	return rows, nil
}

// number appends to dst the row number of each node of a list.
func (t *rowTable) number(dst, list []uint32) []uint32 {
	for _, v := range list {
		i, _ := slices.BinarySearch(t.nodes, v)
		dst = append(dst, uint32(i))
	}
	return dst
}

func (t *rowTable) close() { t.be.Free(t.all.Buf) }

// Pairs are some pairs of nodes.
type Pairs struct {
	Src, Dst []uint32
	// Of has the relation of each pair, as its place in data.Links.All; empty where the links of
	// one relation are learnt.
	Of []uint32
	// Given has the numbers of each pair that an edge has besides its label, in the order of
	// data.Data.Given; empty where there are none.
	Given []float32
}

// cut removes the first n pairs and returns them.
func (p *Pairs) cut(n int) (first Pairs) {
	given := len(p.Given) / max(1, len(p.Src))
	of := min(n, len(p.Of))
	first = Pairs{p.Src[:n], p.Dst[:n], p.Of[:of], p.Given[:n*given]}
	p.Src, p.Dst, p.Of, p.Given = p.Src[n:], p.Dst[n:], p.Of[of:], p.Given[n*given:]
	return first
}

// EachPair calls use with pairs, some at a time, which are lent for the length of a call. It may be
// called again, and gives the same pairs.
type EachPair func(use func(Pairs) error) error

// Scores calls do with pairs of nodes and their scores, in a run that learns links. The scores are
// the ones of an evaluation: the larger, the likelier a link. do gets them in the order of pairs,
// which is called twice, and all slices are lent for the length of a call. Memory does not grow
// with their number, and the rows of their nodes are on disk where they do not fit.
func (n *Network) Scores(ctx context.Context, pairs EachPair, do func(p Pairs, scores []float32) error) error {
	if !n.Links() {
		return fmt.Errorf("{what} %s: the run learns %s, and scores are of links", Scores, n.learns())
	}
	return n.eachPair(ctx, pairs, func(p Pairs, x, y kernels.Tensor, from, to []uint32) error {
		return do(p, n.c.task.(*tasks.Links).Scores(x, y, from, to, p.Of))
	})
}

// errPairsChanged is returned if a file of pairs was replaced while the rows of its nodes were
// computed.
var errPairsChanged = errors.New("the pairs are others than when they were first read; run the same command again")

// eachPair calls do with pairs, and with the network's rows of their nodes: row from[i] of x is the
// row of the ith source, and row to[i] of y the row of the ith destination.
func (n *Network) eachPair(
	ctx context.Context, pairs EachPair, do func(p Pairs, x, y kernels.Tensor, from, to []uint32) error,
) (err error) {
	defer kernels.RecoverMemory(&err)
	_, from, to := n.Relation()
	named := [2][]bool{make([]bool, n.c.data.Types[from].Nodes)}
	if named[1] = named[0]; from != to {
		named[1] = make([]bool, n.c.data.Types[to].Nodes)
	}
	err = pairs(func(p Pairs) error {
		for i, u := range p.Src {
			named[0][u], named[1][p.Dst[i]] = true, true
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	var sources []uint32
	if from != to {
		sources = nodesNamed(named[0])
	}
	rows, err := n.keep(ctx, sources, nodesNamed(named[1]))
	if err != nil {
		return err
	}
	defer rows.close()
	most := max(1, int(n.c.eval.ChunkBytes)/(8*rows.src.Cols()))
	x, y := newRowTable(n.c.Backend, most, rows.src.Cols()), newRowTable(n.c.Backend, most, rows.dst.Cols())
	defer x.close()
	defer y.close()
	var numbers [2][]uint32
	err = pairs(func(p Pairs) error {
		for i, u := range p.Src {
			if !named[0][u] || !named[1][p.Dst[i]] {
				return errPairsChanged
			}
		}
		for len(p.Src) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			some := p.cut(min(len(p.Src), most))
			xs, err := x.fill(rows.src, some.Src)
			if err != nil {
				return err
			}
			ys, err := y.fill(rows.dst, some.Dst)
			if err != nil {
				return err
			}
			numbers = [2][]uint32{x.number(numbers[0][:0], some.Src), y.number(numbers[1][:0], some.Dst)}
			if err := do(some, xs, ys, numbers[0], numbers[1]); err != nil {
				return err
			}
			n.c.Peak.Look()
			n.c.tiers.FollowHeap()
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.c.data.Set.Unchanged()
}

// Top calls do with the destinations that score highest with each of the sources, which ascend, as
// [tasks.Links.Top] does; o.Bytes is filled in. The rows of all destinations are on disk where they
// do not fit.
func (n *Network) Top(ctx context.Context, o tasks.TopOptions, sources []uint32, do func(src uint32, dst []uint32, scores []float32) error) (err error) {
	defer kernels.RecoverMemory(&err)
	if !n.Links() {
		return fmt.Errorf("{top} %d: the run learns %s, and scores are of links", o.K, n.learns())
	}
	if o.K < 1 {
		return fmt.Errorf("{top} %d: at least 1", o.K)
	}
	if all := len(n.c.data.Links.All); o.Of < 0 || o.Of >= all {
		return fmt.Errorf("{relation} %d: the run learns the links of %d", o.Of, all)
	}
	_, _, to := n.Relation()
	all := make([]uint32, n.c.data.Types[to].Nodes)
	for v := range all {
		all[v] = uint32(v)
	}
	rows, err := n.keep(ctx, sources, all) // of both ends, if these are of one type
	if err != nil {
		return err
	}
	defer rows.close()
	o.Bytes = n.c.eval.Bytes // hidden rows are not there any more
	show := o.Progress
	o.Progress = func(done, all int64) {
		n.c.Peak.Look()
		if show != nil {
			show(done, all)
		}
	}
	err = n.c.task.(*tasks.Links).Top(ctx, o, sources, rows.src, rows.dst, func(u uint32, dst []uint32, scores []float32) error {
		n.c.tiers.FollowHeap()
		return do(u, dst, scores)
	})
	if err != nil {
		return err
	}
	return n.c.data.Set.Unchanged()
}

// nodesNamed lists the nodes that are set.
func nodesNamed(set []bool) (nodes []uint32) {
	for v, is := range set {
		if is {
			nodes = append(nodes, uint32(v))
		}
	}
	return nodes
}
