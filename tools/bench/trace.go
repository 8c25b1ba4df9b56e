package main

import (
	"context"
	"fmt"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// draws configures the drawing of a trace's batches, with seed 1.
type draws struct {
	sample.Config
	kappa int
}

// plain has the default draws of train.
var plain = draws{sample.Config{Fanouts: fanouts}, 1}

// drawTrace lists the rows that each of so many steps reads, as train draws them, epoch after
// epoch.
func drawTrace(ctx context.Context, ds *store.Dataset, d draws, size, steps int) ([][]uint32, error) {
	train := ds.Split(0).Train
	if len(train) == 0 {
		return nil, fmt.Errorf("%s: its first split has no training nodes", ds.Path())
	}
	samplers := make([]*sample.Sampler, min(runtime.GOMAXPROCS(0), steps))
	for i := range samplers {
		samplers[i] = sample.NewSampler(sample.AtHand(ds.Graph(0)), d.Config, 1)
	}
	schedule := sample.Schedule{Seed: 1, Kappa: d.kappa}
	seeds, trace := make([]uint32, len(train)), make([][]uint32, steps)
	for first, epoch := 0, 1; first < steps; epoch++ {
		copy(seeds, train)
		sample.Shuffle(seeds, 1, epoch)
		batches := slices.Collect(slices.Chunk(seeds, size))
		batches = batches[:min(len(batches), steps-first)]
		g, ctx := errgroup.WithContext(ctx)
		for w, sampler := range samplers {
			g.Go(func() error {
				var b sample.Batch
				for i := w; i < len(batches); i += len(samplers) {
					if err := ctx.Err(); err != nil {
						return err
					}
					if err := sampler.SampleOne(context.Background(), &b, schedule.At(first+i), batches[i]); err != nil {
						return err
					}
					trace[first+i] = slices.Clone(b.Inputs()[0])
				}
				return nil
			})
		}
		if err := g.Wait(); err != nil {
			return nil, err
		}
		first += len(batches)
	}
	return trace, nil
}

// meanRows returns the mean number of rows that a step of trace reads.
func meanRows(trace [][]uint32) float64 {
	n := 0
	for _, ids := range trace {
		n += len(ids)
	}
	return float64(n) / float64(len(trace))
}

// fitting returns how many steps from the start of trace have at most most different rows from
// number hot on; at least 1.
func fitting(trace [][]uint32, rows, hot, most int) int {
	seen := make(policy.Set, policy.SetWords(rows))
	count := 0
	for i, ids := range trace {
		for _, v := range ids {
			if int(v) >= hot && seen.Add(v) {
				count++
			}
		}
		if count > most {
			return max(i, 1)
		}
	}
	return len(trace)
}
