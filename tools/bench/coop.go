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
		}
	}
	return nil
}

func drawByWorkers(ctx context.Context, d *data.Data, s *sample.Sampler, workers int) (n drawnBy, err error) {
	hot := uint32(coopHot * float64(d.Types[0].Nodes))
	var b sample.Batch
	for step := range coopSteps {
		seeds := d.Train[step*coopSeeds : (step+1)*coopSeeds]
		var inputs, edges, frontier int
		for w := range workers {
			lo, hi := dist.Share(len(seeds), w, workers)
			if err := s.SampleOne(ctx, &b, sample.Alone(1, 1, step), seeds[lo:hi]); err != nil {
				return n, err
			}
			last := &b.Layers[0]
			inputs = max(inputs, len(last.Nodes[0].Src))
			edges, frontier = max(edges, len(last.Blocks[0].Nbr)), max(frontier, last.Nodes[0].Dst)
			n.all += float64(len(last.Nodes[0].Src))
			for _, v := range last.Nodes[0].Src {
				if v >= hot {
					n.cold++
				}
			}
		}
		n.inputs, n.edges, n.frontier = n.inputs+float64(inputs), n.edges+float64(edges), n.frontier+float64(frontier)
	}
	for _, x := range []*float64{&n.inputs, &n.edges, &n.frontier, &n.all, &n.cold} {
		*x /= 1000 * coopSteps
	}
	return n, nil
}
