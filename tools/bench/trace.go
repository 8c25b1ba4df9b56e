package main

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawTrace lists the rows that each of so many steps reads, as train draws them with seed 1, epoch after epoch.
func drawTrace(ctx context.Context, ds *store.Dataset, size, steps int) ([][]uint32, error) {
	train := ds.Split(0).Train
	if len(train) == 0 {
		return nil, fmt.Errorf("%s: its first split has no training nodes", ds.Path())
	}
	sampler := sample.NewSampler(ds.Graph(0), sample.Config{Fanouts: fanouts})
	schedule := sample.Schedule{Seed: 1, Kappa: 1}
	seeds, b := make([]uint32, len(train)), new(sample.Batch)
	var trace [][]uint32
	for epoch := 1; ; epoch++ {
		copy(seeds, train)
		sample.Shuffle(seeds, 1, epoch)
		for of := range slices.Chunk(seeds, size) {
			if len(trace) == steps {
				return trace, nil
			}
			if err := ctx.Err(); err != nil {
				return nil, err
			}
			if err := sampler.Sample(b, schedule.At(len(trace)), of); err != nil {
				return nil, err
			}
			trace = append(trace, slices.Clone(b.Inputs()))
		}
	}
}

// meanRows is how many rows a step of trace reads.
func meanRows(trace [][]uint32) float64 {
	n := 0
	for _, ids := range trace {
		n += len(ids)
	}
	return float64(n) / float64(len(trace))
}

// fitting is how many steps from the start of trace have their rows from hot on fit in most, each once; at least 1.
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
