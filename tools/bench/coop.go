package main

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Sizes of what coop draws: seeds of a step, of all workers, and steps.
const (
	coopSeeds = 1024
	coopSteps = 16
)

// coopFanouts are from the seeds outward.
var coopFanouts = []int{10, 10, 10}

// coopHot is the part of the rows that each worker is taken to hold, of the first nodes: a
// dataset of --order degree has its hottest nodes first.
const coopHot = 0.05

// drawnBy has what V workers draw in a step, on average over the steps.
type drawnBy struct {
	inputs, edges, frontier float64 // of the worker that has most
	all                     float64 // inputs of all workers
	cold                    float64 // of them, beyond what each worker holds
	parts                   fromOwners
}

// fromOwners has what workers ask each other for where each owns nodes: lists, the neighbours that
// come for them, and rows, of the worker that has most. Then the rows that the busiest owner reads,
// that all owners read, and those beyond the rows that each owner holds.
type fromOwners struct {
	lists, neighbors, rows float64
	reads, all, cold       float64
}

// countWorkers counts what each of several workers draws for its share of a step's seeds, alone.
// No step is trained. The counts follow from the seeds, so there are no turns.
func countWorkers(ctx context.Context, c *comparison) error {
	d, err := data.OpenToDraw(c.ds, data.Options{})
	if err != nil {
		return err
	}
	if isTyped(d) || len(d.Train) < coopSeeds*coopSteps {
		return fmt.Errorf("%s: coop draws from a graph of one type and relation, for %d training nodes", c.dataset, coopSeeds*coopSteps)
	}
	sample.Shuffle(d.Train, 1, 1)
	fmt.Fprintf(c.out, "%s: %s; %d seeds a step in all, fanouts %v, %d steps. Each of V workers draws for its share alone. Thousands "+
		"a step: inputs, edges of the last hop and its destinations, of the worker that has most; inputs of all; and those past the "+
		"first %.0f %% of the rows:\n\n", c.base(), extent(d), coopSeeds, coopFanouts, coopSteps, 100*coopHot)
	fmt.Fprintf(c.out, "| sampler | V | S³ | E² | S² | all S³ | cold |\n|---|---|---|---|---|---|---|\n")
	parts := ""
	for _, kind := range []sample.Kind{sample.NS, sample.Labor0} {
		s := sample.NewTyped(d.Schema(), []sample.Topology{d.Relations[0].AtHand(false)}, sample.Config{Kind: kind, Fanouts: coopFanouts}, 1)
		for workers := 1; workers <= 16; workers *= 2 {
			var n drawnBy
			err := store.Guard(func() (err error) {
				n, err = drawByWorkers(ctx, d, s, workers)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.out, "| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f |\n", kind, workers, n.inputs, n.edges, n.frontier, n.all, n.cold)
			o := &n.parts
			parts += fmt.Sprintf("| %s | %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", kind, workers, o.lists, o.neighbors, o.rows, o.reads, o.all,
				o.cold)
		}
	}
	fmt.Fprintf(c.out, "\nWhere workers own nodes by the rule. Lists that a worker asks others for, neighbours and rows that come, of the worker "+
		"that has most; rows that the owner reads that reads most, and all; and those past the first %.0f %% of the rows, as many at "+
		"each owner:\n\n| sampler | V | lists | neighbours | rows | reads | all reads | cold |\n|---|---|---|---|---|---|---|---|\n%s",
		100*coopHot, parts)
	return nil
}

func drawByWorkers(ctx context.Context, d *data.Data, s *sample.Sampler, workers int) (n drawnBy, err error) {
	hot := uint32(coopHot * float64(d.Types[0].Nodes))
	var b sample.Batch
	for step := range coopSteps {
		seeds := d.Train[step*coopSeeds : (step+1)*coopSeeds]
		var inputs, edges, frontier int
		own := newOwners(workers)
		for w := range workers {
			lo, hi := dist.Share(len(seeds), w, workers)
			if err := s.SampleOne(ctx, &b, sample.Alone(1, 1, step), seeds[lo:hi]); err != nil {
				return n, err
			}
			last := &b.Layers[0]
			inputs = max(inputs, len(last.Nodes[0].Src))
			edges, frontier = max(edges, len(last.Blocks[0].Nbr)), max(frontier, last.Nodes[0].Dst)
			own.add(w, &b)
			n.all += float64(len(last.Nodes[0].Src))
			for _, v := range last.Nodes[0].Src {
				if v >= hot {
					n.cold++
				}
			}
		}
		own.addTo(&n.parts, hot)
		n.inputs, n.edges, n.frontier = n.inputs+float64(inputs), n.edges+float64(edges), n.frontier+float64(frontier)
	}
	o := &n.parts
	for _, x := range []*float64{
		&n.inputs, &n.edges, &n.frontier, &n.all, &n.cold, &o.lists, &o.neighbors, &o.rows, &o.reads, &o.all, &o.cold,
	} {
		*x /= 1000 * coopSteps
	}
	return n, nil
}

// owners counts, for a step, what workers ask each other for.
type owners struct {
	lists, neighbors, rows int
	reads                  []map[uint32]bool // by owner
	of                     store.Owners
}

func newOwners(workers int) *owners {
	o := &owners{of: store.OwnersByRule(workers)}
	for range workers {
		o.reads = append(o.reads, map[uint32]bool{})
	}
	return o
}

// add counts the batch of worker w.
func (o *owners) add(w int, b *sample.Batch) {
	lists, neighbors, rows := 0, 0, 0
	for l := range b.Layers {
		block, nodes := &b.Layers[l].Blocks[0], &b.Layers[l].Nodes[0]
		for i, v := range nodes.Src[:nodes.Dst] {
			if o.of.Owner(v) != w {
				lists++
				neighbors += int(block.End[i] - block.Start[i])
			}
		}
	}
	for _, v := range b.Layers[0].Nodes[0].Src {
		q := o.of.Owner(v)
		o.reads[q][v] = true
		if q != w {
			rows++
		}
	}
	o.lists, o.neighbors, o.rows = max(o.lists, lists), max(o.neighbors, neighbors), max(o.rows, rows)
}

// addTo adds the step to n. Each owner holds hot rows, its first ones.
func (o *owners) addTo(n *fromOwners, hot uint32) {
	reads := 0
	for _, rows := range o.reads {
		reads = max(reads, len(rows))
		n.all += float64(len(rows))
		for v := range rows {
			if o.of.RowOf(v) >= hot {
				n.cold++
			}
		}
	}
	n.lists, n.neighbors, n.rows = n.lists+float64(o.lists), n.neighbors+float64(o.neighbors), n.rows+float64(o.rows)
	n.reads += float64(reads)
}
