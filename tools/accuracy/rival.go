package main

import (
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/metric"
)

// meanSigns is the ROC-AUC by which the share of negative ratings that the source of a test edge
// gave, and of those that its destination got, tell whether its own is negative, over the edges
// that are trained on. Each share is as with one more rating of the mean of all, which made it the
// best of some simple scores: means of the ratings themselves come to five points less.
func meanSigns(dataset string, _ int) (auc float64, note string, err error) {
	ds, err := store.Open(dataset)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	err = store.Guard(func() (err error) {
		g := ds.Graph(0)
		rating := g.Column("rating")
		held, ok := ds.HeldEdges(0, store.HeldTest)
		if rating == nil || !ok {
			return fmt.Errorf("%s: relation %s has no ratings, or no edge split", dataset, g.Relation.Key())
		}
		gave, got, all := make([]share, g.Sources()), make([]share, g.Nodes()), share{}
		for e := range g.Edges() {
			u, v := g.Edge(e)
			for _, m := range []*share{&gave[u], &got[v], &all} {
				if m.n++; rating.At(e) < 0 {
					m.negative++
				}
			}
		}
		of, err := metric.NewLinks(metric.ROCAUC)
		if err != nil {
			return err
		}
		values := held.Column("rating")
		src, dst := held.Ends()
		for i, u := range src {
			score := []float32{float32(-gave[u].with(all) - got[dst[i]].with(all))}
			if rating.Number(values, i) < 0 {
				of.Add(nil, score)
			} else {
				of.Add(score, nil)
			}
		}
		auc, err = of.Value()
		return err
	})
	return auc, "", err
}

// share counts the negative ones among n ratings.
type share struct{ negative, n float64 }

// with is the share with one more rating, of the share of others.
func (m share) with(others share) float64 { return (m.negative + others.negative/others.n) / (m.n + 1) }
