package trace

import (
	"context"
	"fmt"
)

// reads has the rows that workers read, step by step, in a file for each worker and table. All
// methods of a nil reads do nothing.
type reads struct {
	of [][]*requests // by worker and table
}

// newReads returns nil if the rows are not wanted or no caches are simulated. Otherwise add makes
// the files.
func (r *run) newReads(workers int, wanted bool) *reads {
	if !wanted || len(r.tables) == 0 || len(r.Caches) == 0 {
		return nil
	}
	return &reads{make([][]*requests, workers)}
}

func (r *reads) close() {
	if r == nil {
		return
	}
	for _, of := range r.of {
		for _, requests := range of {
			requests.close()
		}
	}
}

// add appends a step. rows returns the rows of each input that a worker reads.
func (r *reads) add(of *run, rows func(worker int) [][]uint32) error {
	if r == nil {
		return nil
	}
	for p := range r.of {
		read := rows(p)
		for i, t := range of.tables {
			if len(r.of[p]) == i {
				requests, err := newRequests(of.Tmp)
				if err != nil {
					return err
				}
				r.of[p] = append(r.of[p], requests)
			}
			if err := r.of[p][i].add(read[t.number]); err != nil {
				return err
			}
		}
	}
	return nil
}

// judge simulates the workers' caches. It returns their misses, and the number of steps in which
// they are counted.
func (r *reads) judge(ctx context.Context, of *run, kappa int, name string) (all []WorkersCold, steps int, err error) {
	all = []WorkersCold{}
	if r == nil {
		return all, 0, nil
	}
	from := 0
	for p := range r.of {
		for i := range of.tables {
			if err := r.of[p][i].finish(); err != nil {
				return nil, 0, err
			}
			n, err := r.warmup(ctx, of, p, i, kappa)
			if err != nil {
				return nil, 0, err
			}
			from = max(from, n)
		}
	}
	steps = of.report.Steps - from
	misses := make([][]int64, len(of.Policies)*len(of.Caches)) // by worker
	for i := range misses {
		misses[i] = make([]int64, len(r.of))
	}
	for p := range r.of {
		for i := range of.tables {
			t := &of.tables[i]
			missed, err := of.simulate(ctx, t, r.of[p][i], from, fmt.Sprintf("%s, of worker %d", name, p))
			if err != nil {
				return nil, 0, err
			}
			for k, policy := range of.Policies {
				for c := range of.Caches {
					misses[k*len(of.Caches)+c][p] += missed[cache{policy, uint32(t.asked[c].Rows)}]
				}
			}
		}
	}
	for k, policy := range of.Policies {
		for c := range of.Caches {
			var s spread
			s.add(misses[k*len(of.Caches)+c])
			misses := s.over(len(r.of), steps)
			all = append(all, WorkersCold{policy, of.Caches[c].String(), misses, s.sum / float64(steps)})
		}
	}
	return all, steps, nil
}

// warmup returns the number of steps until a worker's largest cache of a table has filled.
func (r *reads) warmup(ctx context.Context, of *run, p, i, kappa int) (steps int, err error) {
	t := &of.tables[i]
	u, err := newReuse(t.nodes, of.report.Steps, groupOf(kappa, of.Smoothed))
	if err != nil {
		return 0, err
	}
	defer u.close()
	if err := r.of[p][i].inBatches(ctx, u.add); err != nil {
		return 0, err
	}
	return t.warmup(u.fresh, kappa), nil
}
