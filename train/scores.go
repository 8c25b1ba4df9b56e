package train

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/infer"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// endRows are rows that the last layer makes of nodes that links may join: of sources and of destinations, which are one where both are of
// one type.
type endRows struct{ src, dst *infer.Kept }

// keep computes them, of so many nodes of either end, ascending; where both ends are of one type, of nodes of src and of dst together.
func (n *Network) keep(ctx context.Context, src, dst []uint32) (r endRows, err error) {
	if n.t.eval.Walks() {
		return r, errors.New("{sampler} rw weighs the nodes that walks visit, and knows no weights for all neighbours: such a network does not predict")
	}
	if all := n.t.data.Links.All; len(all) > 1 {
		return r, fmt.Errorf("{what} scores: the run learns the links of %d relations together, and scores are of one as yet; take embeddings", len(all))
	}
	_, from, to := n.t.links.Relation()
	last := n.t.Layers - 1
	if from == to {
		all := slices.Concat(src, dst)
		slices.Sort(all)
		if r.src, err = n.t.eval.Keep(ctx, last, from, slices.Compact(all), n.rowBytes); err == nil {
			r.dst = r.src
		}
		return r, err
	}
	if r.src, err = n.t.eval.Keep(ctx, last, from, src, n.rowBytes/2); err == nil {
		r.dst, err = n.t.eval.Keep(ctx, last, to, dst, n.rowBytes/2)
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

// rowTable is rows on the backend, of nodes in ascending order.
type rowTable struct {
	be    kernels.Backend
	all   kernels.Tensor
	nodes []uint32
	host  []float32
}

// newRowTable has room for so many rows.
func newRowTable(be kernels.Backend, rows, cols int) *rowTable {
	return &rowTable{be: be, all: kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Type: kernels.F32, Rows: rows, Cols: cols}}
}

// fill makes the rows those of the distinct nodes of a list.
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

// number appends the row of each node of a list.
func (t *rowTable) number(dst, list []uint32) []uint32 {
	for _, v := range list {
		i, _ := slices.BinarySearch(t.nodes, v)
		dst = append(dst, uint32(i))
	}
	return dst
}

func (t *rowTable) close() { t.be.Free(t.all.Buf) }

// Scores calls do with pairs of nodes, which a run of links has learnt to tell from others, and their scores: those that an evaluation gives
// them, the larger the likelier a link. pairs gives them, some at a time, and is called twice; do gets them in its order, and all slices are
// lent for the length of a call. Memory does not grow with their number, and the rows of their nodes are on disk where they do not fit.
func (n *Network) Scores(
	ctx context.Context, pairs func(use func(src, dst []uint32) error) error, do func(src, dst []uint32, scores []float32) error,
) (err error) {
	defer kernels.RecoverMemory(&err)
	if !n.Links() {
		return fmt.Errorf("{what} %s: the run learns classes of nodes, and scores are of links", Scores)
	}
	_, from, to := n.t.links.Relation()
	named := [2][]bool{make([]bool, n.t.data.Types[from].Nodes), make([]bool, n.t.data.Types[to].Nodes)}
	err = pairs(func(src, dst []uint32) error {
		for i, u := range src {
			named[0][u], named[1][dst[i]] = true, true
		}
		return ctx.Err()
	})
	if err != nil {
		return err
	}
	rows, err := n.keep(ctx, nodesNamed(named[0]), nodesNamed(named[1]))
	if err != nil {
		return err
	}
	defer rows.close()
	most := max(1, int(n.t.eval.ChunkBytes)/(8*rows.src.Cols()))
	x, y := newRowTable(n.t.be, most, rows.src.Cols()), newRowTable(n.t.be, most, rows.dst.Cols())
	defer x.close()
	defer y.close()
	var numbers [2][]uint32
	err = pairs(func(src, dst []uint32) error {
		for len(src) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			m := min(len(src), most)
			xs, err := x.fill(rows.src, src[:m])
			if err != nil {
				return err
			}
			ys, err := y.fill(rows.dst, dst[:m])
			if err != nil {
				return err
			}
			numbers = [2][]uint32{x.number(numbers[0][:0], src[:m]), y.number(numbers[1][:0], dst[:m])}
			if err := do(src[:m], dst[:m], n.t.links.Scores(xs, ys, numbers[0], numbers[1])); err != nil {
				return err
			}
			n.t.peak.Look()
			n.t.tiers.FollowHeap()
			src, dst = src[m:], dst[m:]
		}
		return nil
	})
	if err != nil {
		return err
	}
	return n.t.data.Set.Unchanged()
}

// Top calls do with the destinations that score highest with each of the sources, which ascend, as [tasks.Links.Top] does; o.Bytes is filled
// in. The rows of all destinations are on disk where they do not fit.
func (n *Network) Top(ctx context.Context, o tasks.TopOptions, sources []uint32, do func(src uint32, dst []uint32, scores []float32) error) (err error) {
	defer kernels.RecoverMemory(&err)
	if !n.Links() {
		return fmt.Errorf("{top} %d: the run learns classes of nodes, and scores are of links", o.K)
	}
	if o.K < 1 {
		return fmt.Errorf("{top} %d: at least 1", o.K)
	}
	_, _, to := n.Relation()
	all := make([]uint32, n.t.data.Types[to].Nodes)
	for v := range all {
		all[v] = uint32(v)
	}
	rows, err := n.keep(ctx, sources, all)
	if err != nil {
		return err
	}
	defer rows.close()
	o.Bytes = n.t.eval.Bytes / 2 // hidden rows are not there any more
	show := o.Progress
	o.Progress = func(done, all int64) {
		n.t.peak.Look()
		if show != nil {
			show(done, all)
		}
	}
	err = n.t.links.Top(ctx, o, sources, rows.src, rows.dst, func(u uint32, dst []uint32, scores []float32) error {
		n.t.tiers.FollowHeap()
		return do(u, dst, scores)
	})
	if err != nil {
		return err
	}
	return n.t.data.Set.Unchanged()
}

// Relation is the one whose links the network has learnt, by its number, and the types of both ends.
func (n *Network) Relation() (number, src, dst int) { return n.t.links.Relation() }

// nodesNamed lists those that are set.
func nodesNamed(set []bool) (nodes []uint32) {
	for v, is := range set {
		if is {
			nodes = append(nodes, uint32(v))
		}
	}
	return nodes
}
