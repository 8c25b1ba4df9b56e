package main

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	learn "github.com/gnnstore/gnnstore/train/task"
)

// citedLinks is the number of links of a part that are measured, and citedAmong the number of nodes
// that each is ranked among, as in the flags of cites.
const (
	citedLinks = 5000
	citedAmong = 1000
)

// simpleCitations is the better MRR of two simple scores of a link, on the test links and
// candidates that a run of this seed has: how many neighbours its ends have in common, and the
// product of their features. note has both.
func simpleCitations(dataset string, seed int) (best float64, note string, err error) {
	ds, err := store.Open(dataset)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	err = store.Guard(func() error {
		d, err := data.Open(ds, data.Options{Links: true})
		if err != nil {
			return err
		}
		links, err := learn.NewLinks(d, learn.Options{Metric: metric.MRR, Batch: 1, Seed: uint64(seed)},
			learn.LinkOptions{EvalNegatives: fmt.Sprint("uniform:", citedAmong), EvalEdges: citedLinks}, model.Dot)
		if err != nil {
			return err
		}
		common, err := meanReciprocal(links, commonNeighbours(d.Relations[d.Links.Relation].Graph))
		if err != nil {
			return err
		}
		product, err := meanReciprocal(links, productOf(d.Types[d.Target].Features))
		if err != nil {
			return err
		}
		best, note = max(common, product), fmt.Sprintf(" (common neighbours %.4f, products of features %.4f)", common, product)
		return nil
	})
	return best, note, err
}

// meanReciprocal is the MRR of the test links by a score.
func meanReciprocal(links *learn.Links, score func(u uint32, all []uint32) []float32) (float64, error) {
	of, err := metric.NewLinks(metric.MRR)
	if err != nil {
		return 0, err
	}
	var all []uint32
	err = links.Candidates(context.Background(), learn.Test, func(u, v uint32, instead []uint32) {
		all = append(append(all[:0], v), instead...)
		scores := score(u, all)
		of.Add(scores[:1], scores[1:])
	})
	if err != nil {
		return 0, err
	}
	return of.Value()
}

// commonNeighbours counts the neighbours that u has in common with each of some nodes; one that is
// there twice counts twice for them.
func commonNeighbours(g *store.Graph) func(u uint32, all []uint32) []float32 {
	of := make([]uint32, g.Nodes()) // whose neighbour a node was last, from 1
	return func(u uint32, all []uint32) []float32 {
		for _, w := range g.Neighbors(u) {
			of[w] = u + 1
		}
		scores := make([]float32, len(all))
		for i, v := range all {
			for _, w := range g.Neighbors(v) {
				if of[w] == u+1 {
					scores[i]++
				}
			}
		}
		return scores
	}
}

// productOf returns a function that multiplies the features of u with the features of each node in
// all, and returns the products.
func productOf(f *store.Features) func(u uint32, all []uint32) []float32 {
	row := func(dst []float32, v uint32) {
		bytes := f.Row(v)
		if f.Elem() == store.F32 {
			for i := range dst {
				dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(bytes[4*i:]))
			}
			return
		}
		halves := make([]uint16, len(dst))
		for i := range halves {
			halves[i] = binary.LittleEndian.Uint16(bytes[2*i:])
		}
		kernels.HalfToFloat32(dst, halves)
	}
	a, b := make([]float32, f.Dim()), make([]float32, f.Dim())
	return func(u uint32, all []uint32) []float32 {
		row(a, u)
		scores := make([]float32, len(all))
		for i, v := range all {
			row(b, v)
			for k, x := range a {
				scores[i] += x * b[k]
			}
		}
		return scores
	}
}
