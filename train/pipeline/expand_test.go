package pipeline_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// through is an Expander that has everything be drawn.
type through struct{}

func (through) Expand(_ context.Context, _ int, found [][][]uint32) (next [][][]uint32, origins [][][]sample.Origin, err error) {
	for _, types := range found {
		var of [][]sample.Origin
		for _, ids := range types {
			o := make([]sample.Origin, len(ids))
			for i := range o {
				o[i].Index = uint32(i)
			}
			of = append(of, o)
		}
		origins = append(origins, of)
	}
	return found, origins, nil
}

// TestExpand: with any lag, look-ahead and size of groups, and every stage late now and then, steps
// are drawn in order, in groups of half the lag at most. A step is drawn once the step that is the
// lag before it is written back. None waits for ever, and the rows are the same as without Expand.
func TestExpand(t *testing.T) {
	const first, end = 3, 40
	r := newRig(t)
	run := func(lag, group, ahead int) (got [][]byte) {
		c := r.config(2, 1<<20)
		c.Group, c.Ahead = group, ahead
		s, drawn := steps(first, end), first
		var written atomic.Int64
		if lag > 0 {
			c.Sampler = lateSampler{c.Sampler}
			s.Lag = lag
			s.Expand = func(from, n int) sample.Expander {
				require.Equal(t, drawn, from)
				require.LessOrEqual(t, n, max(1, lag/2))
				if last := from + n - 1 - lag; last >= first {
					require.GreaterOrEqual(t, int(written.Load()), last-first+1)
				}
				drawn += n
				return through{}
			}
		}
		p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rows, Backend: r.be})
		defer p.Close()
		require.NoError(t, p.Run(t.Context(), s, func(b *pipeline.Gathered) error {
			if lag > 0 {
				late()
			}
			host, ok := r.be.Host(b.Rows[0])
			require.True(t, ok)
			got = append(got, slices.Clone(host))
			return nil
		}, writer(func(int, *pipeline.Gathered) (plan.Written, error) {
			written.Add(1)
			return nil, nil
		})))
		require.Len(t, got, end-first)
		return got
	}
	want := run(0, 0, 0)
	for _, lag := range []int{1, 2, 3, 7, 100} {
		for _, group := range []int{0, 4} {
			for ahead := range 3 {
				require.Equal(t, want, run(lag, group, ahead), "lag %d, groups of %d, %d ahead", lag, group, ahead)
			}
		}
	}
}
