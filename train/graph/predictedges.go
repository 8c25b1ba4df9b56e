package graph

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// PredictEdges calls do with pairs and with the network's predictions, EdgeColumns numbers a pair.
// A pair is taken for an edge of the relation whose edges the run has learnt, and gets the same
// bits as that edge in an evaluation. Else it is as Scores. Predictions are better for edges that
// were trained on than for others, since messages pass along them.
func (n *Network) PredictEdges(ctx context.Context, what string, pairs EachPair, do func(p Pairs, rows []float32) error) error {
	edges, ok := n.c.task.(*tasks.Edges)
	if !ok {
		return fmt.Errorf("{what} %s: the run learns no edges", what)
	}
	convert := n.converter(what)
	return n.eachPair(ctx, pairs, func(p Pairs, x, y kernels.Tensor, from, to []uint32) error {
		logits := edges.Logits(x, y, from, to, p.Given)
		return do(p, convert(logits, len(logits)/len(p.Src)))
	})
}

// EdgesOf returns the number of edges in a part of the edge split, train, valid or test, and a
// function that gives them with their Given numbers. Training edges come by destination, the others
// as they are stored.
func (n *Network) EdgesOf(part string) (count int64, each EachPair, err error) {
	d := n.c.data
	r, given := d.Relations[d.Links.Relation], d.Given()
	if part == tasks.Train.String() {
		return r.Edges(), func(use func(Pairs) error) error { return store.Guard(func() error { return trainedEdges(d, use) }) }, nil
	}
	p, h := store.HeldValid, d.Links.Valid
	switch part {
	case tasks.Valid.String():
	case tasks.Test.String():
		p, h = store.HeldTest, d.Links.Test
	default:
		return 0, nil, fmt.Errorf("{edges} %s: there are train, valid, test and all", part)
	}
	return int64(h.Len()), func(use func(Pairs) error) error {
		return store.Guard(func() error {
			if h.Len() == 0 {
				return nil
			}
			src, dst := h.Ends()
			values := map[*store.EdgeColumn][]byte{}
			for _, c := range given {
				b, err := d.HeldValues(h, p, c)
				if err != nil {
					return err
				}
				values[c] = b
			}
			var some Pairs
			most := d.GivenAtOnce(tasks.GivenEdges)
			for lo := 0; lo < h.Len(); lo += most {
				hi := min(lo+most, h.Len())
				some.Src, some.Dst, some.Given = append(some.Src[:0], src[lo:hi]...), append(some.Dst[:0], dst[lo:hi]...), some.Given[:0]
				for i := lo; i < hi; i++ {
					some.Given = d.AppendGiven(some.Given, given, func(c *store.EdgeColumn) float64 { return c.Number(values[c], i) })
				}
				if err := use(some); err != nil {
					return err
				}
			}
			return nil
		})
	}, nil
}

// trainedEdges calls use with the training edges, which are the edges in the topology.
func trainedEdges(d *data.Data, use func(Pairs) error) error {
	r, given := d.Relations[d.Links.Relation], d.Given()
	values := map[*store.EdgeColumn][]byte{}
	var some Pairs
	most := d.GivenAtOnce(tasks.GivenEdges)
	flush := func() error {
		err := use(some)
		some.Src, some.Dst, some.Given = some.Src[:0], some.Dst[:0], some.Given[:0]
		return err
	}
	for v := range uint32(r.Nodes()) {
		for _, c := range given {
			values[c] = c.Bytes(v)
		}
		for i, u := range r.Neighbors(v) {
			some.Src, some.Dst = append(some.Src, u), append(some.Dst, v)
			some.Given = d.AppendGiven(some.Given, given, func(c *store.EdgeColumn) float64 { return c.Number(values[c], i) })
			if len(some.Src) < most {
				continue
			}
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return flush()
}
