package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
)

// drawsOrPanics panics, as when there is no memory, at the batch of a step.
type drawsOrPanics struct {
	plan.Sampler
	at int
}

func (s drawsOrPanics) Draw(ctx context.Context, of *plan.Steps, from int, batches []plan.Batch) error {
	if from <= s.at && s.at < from+len(batches) {
		panic(&kernels.MemoryError{Bytes: 1, Err: errTest})
	}
	return s.Sampler.Draw(ctx, of, from, batches)
}

// TestLeft: whatever ends a run early, an error or a panic that is recovered, each stage that other
// workers wait for says so; after a whole run none does.
func TestLeft(t *testing.T) {
	r := newRig(t)
	run := func(change func(c *pipeline.Config), use func(b *pipeline.Gathered) error) (left map[pipeline.Stage]error, err error) {
		var mu sync.Mutex
		left = map[pipeline.Stage]error{}
		c := pipeline.Config{Planner: plan.NewPlanner(r.config(2, 20_000)), Tables: rows, Backend: r.be}
		c.Left = func(s pipeline.Stage, err error) {
			mu.Lock()
			defer mu.Unlock()
			if left[s] == nil {
				left[s] = err
			}
		}
		change(&c)
		p := pipeline.New(c)
		defer p.Close()
		return left, p.Run(t.Context(), steps(0, 40), use)
	}
	well := func(*pipeline.Gathered) error { return nil }
	left, err := run(func(*pipeline.Config) {}, well)
	require.NoError(t, err)
	require.Empty(t, left)

	var memory *kernels.MemoryError
	for _, at := range []int{0, 20, 39} {
		left, err = run(func(c *pipeline.Config) { c.Planner.Sampler = drawsOrPanics{c.Planner.Sampler, at} }, well)
		require.ErrorAs(t, err, &memory)
		require.ErrorAs(t, left[pipeline.Draws], &memory)
		require.Error(t, left[pipeline.Gathers])

		gathered := 0
		left, err = run(func(c *pipeline.Config) {
			c.Late = func(string) {
				if gathered++; gathered == at+1 {
					panic(&kernels.MemoryError{Bytes: 1, Err: errTest})
				}
			}
		}, well)
		require.ErrorAs(t, err, &memory)
		require.ErrorAs(t, left[pipeline.Gathers], &memory)

		left, err = run(func(c *pipeline.Config) { c.Planner.Sampler = broken{c.Planner.Sampler, at} }, well)
		require.ErrorIs(t, err, errTest)
		require.True(t, errors.Is(left[pipeline.Draws], errTest) && left[pipeline.Gathers] != nil)
	}
}

// TestCause: the error of a stage is the result, though other workers, which hear of it first, make
// another stage fail before.
func TestCause(t *testing.T) {
	r := newRig(t)
	heard, ended := make(chan bool), make(chan bool)
	c := pipeline.Config{Planner: plan.NewPlanner(r.config(2, 1<<30)), Tables: rows, Backend: r.be}
	c.Planner.Sampler = broken{c.Planner.Sampler, 37}
	c.Left = func(s pipeline.Stage, _ error) {
		if s == pipeline.Draws {
			close(heard)
			<-ended
		} else {
			close(ended)
		}
	}
	c.Deal = func(context.Context, plan.Batch, int, int, int, []byte, []byte) error {
		<-heard
		return fmt.Errorf("a worker has left: %w", context.Canceled)
	}
	p := pipeline.New(c)
	defer p.Close()
	require.ErrorIs(t, p.Run(t.Context(), steps(36, 40), func(*pipeline.Gathered) error { return nil }), errTest)
}
