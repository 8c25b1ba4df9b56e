package pipeline_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
)

// writer is a Writer of one function.
type writer func(step int, b *pipeline.Gathered) (plan.Written, error)

func (w writer) WriteBack(step int, b *pipeline.Gathered) (plan.Written, error) { return w(step, b) }

// late sleeps for a while, most times.
func late() {
	if n := rand.IntN(4); n > 0 {
		time.Sleep(time.Duration(rand.IntN(100*n)) * time.Microsecond)
	}
}

// lateSampler draws late.
type lateSampler struct{ plan.Sampler }

func (s lateSampler) Draw(ctx context.Context, of *plan.Steps, from int, batches []plan.Batch) error {
	late()
	return s.Sampler.Draw(ctx, of, from, batches)
}

// watched calls gathering before rows are gathered.
type watched struct {
	kernels.Backend
	gathering func()
}

func (w watched) Host(t kernels.Tensor) ([]byte, bool) {
	w.gathering()
	return w.Backend.Host(t)
}

// passed has the counters and rows that a step saw.
type passed struct {
	step int
	read cachetier.Stats
	rows []byte
}

// TestLag: with any lag, and every stage late now and then, steps come in the same order with the
// same rows and counters as without; a step is gathered once the write-back of that lag before it
// is done, and exactly the used steps are written back.
func TestLag(t *testing.T) {
	run := func(lag int, delayed bool) (got []passed) {
		r := newRig(t)
		o := cachetier.Options{HostBytes: 3000}
		c, before := r.config(2, 20_000), func() {}
		if delayed {
			before = late
			c.Sampler = lateSampler{c.Sampler}
			o.Faults = func(int, int64, int) disk.Fault {
				return disk.Fault{Delay: time.Duration(rand.IntN(50)) * time.Microsecond}
			}
		}
		stack, err := cachetier.Open(t.Context(), r.ds.Features(0), o)
		require.NoError(t, err)
		defer stack.Close()
		c.Tables = []*cachetier.Stack{stack}
		var written atomic.Int64
		gathered, first := 0, 3
		be := watched{r.be, func() {
			before()
			if lag > 0 && int(written.Load()) < gathered+1-lag {
				t.Errorf("step %d is gathered before the write-back of step %d", first+gathered, first+gathered-lag)
			}
			gathered++
		}}
		p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rowsOfLag(lag), Backend: be})
		defer p.Close()
		var used []int
		write := func(step int, b *pipeline.Gathered) (plan.Written, error) {
			before()
			rows, ok := r.be.Host(b.Rows[0])
			require.True(t, ok)
			read := b.Read[0]
			read.Disk.Seconds, read.Warmup.Seconds = 0, 0
			got = append(got, passed{step, read, slices.Clone(rows)})
			return plan.Written{{uint32(step)}}, nil
		}
		count := func(int, *pipeline.Gathered) (plan.Written, error) {
			written.Add(1) // the last writer: from here on the planner may know
			return nil, nil
		}
		require.NoError(t, p.Run(t.Context(), steps(first, 40), func(b *pipeline.Gathered) error {
			before()
			used = append(used, b.Step)
			return nil
		}, writer(write), writer(count)))
		for i, g := range got {
			require.Equal(t, used[i], g.step)
		}
		require.Len(t, got, 40-first)
		return got
	}
	want := run(0, false)
	for lag := range 4 {
		require.Equal(t, want, run(lag, true), "lag %d", lag)
	}
}

// TestLagWithoutWriters: then a step is written back when it was used.
func TestLagWithoutWriters(t *testing.T) {
	r := newRig(t)
	var used atomic.Int64
	gathered := 0
	be := watched{r.be, func() {
		if int(used.Load()) < gathered {
			t.Errorf("step %d is gathered before step %d was used", gathered, gathered-1)
		}
		gathered++
	}}
	p := pipeline.New(pipeline.Config{
		Planner: plan.NewPlanner(r.config(1, 20_000)), Tables: rowsOfLag(1), Backend: be,
	})
	defer p.Close()
	require.NoError(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error {
		used.Add(1)
		return nil
	}))
	require.Equal(t, 40, gathered)
}

// TestWriteErrors: an error of a writer, of use or of the context ends the run, in whichever order
// they come; what was used before the end of the context is written back, and a later run works.
func TestWriteErrors(t *testing.T) {
	r := newRig(t)
	for _, lag := range []int{0, 1, 2} {
		p := pipeline.New(pipeline.Config{
			Planner: plan.NewPlanner(r.config(2, 20_000)), Tables: rowsOfLag(lag), Backend: r.be,
		})
		for _, at := range []int{0, 7, 38, 39} {
			failing := writer(func(step int, _ *pipeline.Gathered) (plan.Written, error) {
				if step == at {
					return nil, errTest
				}
				return nil, nil
			})
			used := 0
			require.ErrorIs(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { used++; return nil }, failing), errTest)
			require.GreaterOrEqual(t, used, at+1)
			if lag > 0 {
				require.LessOrEqual(t, used, at+lag)
			}
			tooMany := writer(func(int, *pipeline.Gathered) (plan.Written, error) { return make(plan.Written, 2), nil })
			require.ErrorContains(t, p.Run(t.Context(), steps(0, 40), func(*pipeline.Gathered) error { return nil }, tooMany), "wrote to 2 tables")

			for _, end := range []error{errTest, context.Canceled} {
				ctx, cancel := context.WithCancel(t.Context())
				written, used := 0, 0
				err := p.Run(ctx, steps(0, 40), func(b *pipeline.Gathered) error {
					if b.Step == at {
						if end == errTest {
							return errTest
						}
						cancel()
					}
					used++
					return nil
				}, writer(func(int, *pipeline.Gathered) (plan.Written, error) {
					late()
					written++
					return nil, nil
				}))
				if at == 39 && end == context.Canceled {
					require.NoError(t, err, "every step was used")
				} else {
					require.ErrorIs(t, err, end)
				}
				require.Equal(t, used, written)
			}
		}
		p.Close()
	}
}

// TestEndOfTheWait cancels a run whose gather waits for a write-back.
func TestEndOfTheWait(t *testing.T) {
	r := newRig(t)
	p := pipeline.New(pipeline.Config{
		Planner: plan.NewPlanner(r.config(2, 20_000)), Tables: rowsOfLag(1), Backend: r.be,
	})
	defer p.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	require.ErrorIs(t, p.Run(ctx, steps(0, 40), func(*pipeline.Gathered) error { return nil },
		writer(func(step int, _ *pipeline.Gathered) (plan.Written, error) {
			if step == 5 {
				time.Sleep(5 * time.Millisecond) // the gather of step 6 waits by then, or soon
				cancel()
			}
			return nil, nil
		})), context.Canceled)
}
