package pipeline_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
)

// grown returns the new bytes of a row after a step. They depend on all steps that changed the row.
func grown(step int, row uint32, b []byte) []byte {
	out := slices.Clone(b)
	for i := range out {
		out[i] = out[i]*3 + byte(step) + byte(row) + 1
	}
	return out
}

// TestRowsThatStepsRewrite takes a table through the stages: with any lag and budget, and every
// stage late now and then, each step sees what a plain loop says. So does a run after one that an
// error has cut short, and one without a writer.
func TestRowsThatStepsRewrite(t *testing.T) {
	storetest.Long(t)
	const size = 32
	for lag := 1; lag <= 3; lag++ {
		for _, host := range []int64{0, 12_000, 20_000, 1 << 20} {
			t.Run(fmt.Sprintf("lag=%d/host=%d", lag, host), func(t *testing.T) {
				r := newRig(t)
				table, err := mutable.Open(t.Context(), mutable.Options{
					Place: mutable.Place{Dir: filepath.Join(t.TempDir(), "table")}, Rows: 500, RowBytes: size, Lag: lag, Cache: cachetier.Options{
						HostBytes: host, Engine: disk.Pread, Readers: 4,
						Faults: func(int, int64, int) disk.Fault { late(); return disk.Fault{} },
					},
				})
				require.NoError(t, err)
				defer table.Close()
				require.NoError(t, table.Begin(t.Context()))
				c := r.config(2, 20_000)
				c.Sampler, c.Tables, c.Group = lateSampler{c.Sampler}, []*cachetier.Stack{table.Stack}, 5
				p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rowsOfLag(lag), Backend: r.be})
				defer p.Close()

				seen, pending := map[uint32][]byte{}, []map[uint32][]byte{}
				row := func(v uint32) []byte {
					if b, ok := seen[v]; ok {
						return b
					}
					return make([]byte, size)
				}
				apply := func(steps int) {
					for _, wrote := range pending[:steps] {
						for v, b := range wrote {
							seen[v] = b
						}
					}
					pending = pending[steps:]
				}
				use := func(b *pipeline.Gathered) error {
					late()
					got, ok := r.be.Host(b.Rows[0])
					require.True(t, ok)
					wrote := map[uint32][]byte{}
					for i, v := range b.Batch.Inputs()[0] {
						require.Equal(t, row(v), got[i*size:(i+1)*size], "step %d, row %d", b.Step, v)
						wrote[v] = grown(b.Step, v, row(v))
					}
					if pending = append(pending, wrote); len(pending) == lag {
						apply(1)
					}
					return nil
				}
				back := writer(func(step int, b *pipeline.Gathered) (plan.Written, error) {
					late()
					got, _ := r.be.Host(b.Rows[0])
					ids := b.Batch.Inputs()[0]
					var src []byte
					for i, v := range ids {
						src = append(src, grown(step, v, got[i*size:(i+1)*size])...)
					}
					return plan.Written{ids}, table.WriteAll(src)
				})
				require.NoError(t, p.Run(t.Context(), steps(0, 25), use, back))
				apply(len(pending)) // a range sees all that those before it wrote
				require.ErrorIs(t, p.Run(t.Context(), steps(25, 40), func(b *pipeline.Gathered) error {
					if b.Step == 33 {
						return errTest
					}
					return use(b)
				}, back), errTest)
				apply(len(pending))
				before := p.Stats()
				require.NoError(t, p.Alone(t.Context(), steps(33, 40), use, back))
				did := p.Stats().Sub(before)
				require.LessOrEqual(t, did.Sample+did.Load+did.Gather+did.Step+did.Write, did.Run)
				require.ErrorIs(t, p.Alone(t.Context(), steps(40, 42), func(*pipeline.Gathered) error { return errTest }), errTest)
				apply(len(pending))
				_, err = table.Checkpoint(40)
				require.NoError(t, err)
				written := 0
				require.NoError(t, table.Each(t.Context(), func(v uint32, b []byte) error {
					written++
					require.Equal(t, row(v), b)
					return nil
				}))
				require.Len(t, seen, written)
				require.NoError(t, p.Run(t.Context(), steps(0, 20), func(b *pipeline.Gathered) error {
					got, _ := r.be.Host(b.Rows[0])
					for i, v := range b.Batch.Inputs()[0] {
						require.Equal(t, row(v), got[i*size:(i+1)*size])
					}
					return nil
				}))
			})
		}
	}
}

// TestLagGoesOn: ranges that follow each other see of the steps before what one range would have,
// also where a step tells early that it has written, where more steps have buffers, where the stack
// has forgotten what was planned, and where what is not seen yet went through Undos.
func TestLagGoesOn(t *testing.T) {
	const size, end = 32, 30
	for _, lag := range []int{1, 2, 4} {
		for _, host := range []int64{0, 12_000, 1 << 20} {
			for _, early := range []bool{false, true} {
				t.Run(fmt.Sprintf("lag=%d/host=%d/early=%v", lag, host, early), func(t *testing.T) {
					r := newRig(t)
					table, err := mutable.Open(t.Context(), mutable.Options{
						Place: mutable.Place{Dir: filepath.Join(t.TempDir(), "table")}, Rows: 500, RowBytes: size, Lag: 1, Cache: cachetier.Options{HostBytes: host},
					})
					require.NoError(t, err)
					defer table.Close()
					table.SetLag(lag)
					require.NoError(t, table.Begin(t.Context()))
					c := r.config(2, 20_000)
					c.Sampler, c.Tables = lateSampler{c.Sampler}, []*cachetier.Stack{table.Stack}
					p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rowsOfLag(lag), Backend: r.be, Buffers: lag + 2})
					defer p.Close()

					var states []map[uint32][]byte // after each step
					row := func(step int, v uint32) []byte {
						if at := step - lag; at >= 0 && states[at][v] != nil {
							return states[at][v]
						}
						return make([]byte, size)
					}
					write := func(step int, b *pipeline.Gathered) (plan.Written, error) {
						late()
						var src []byte
						ids := b.Batch.Inputs()[0]
						for _, v := range ids {
							src = append(src, grown(step, v, row(step, v))...)
						}
						return plan.Written{ids}, table.WriteAll(src)
					}
					use := func(b *pipeline.Gathered) error {
						late()
						got, _ := r.be.Host(b.Rows[0])
						after := map[uint32][]byte{}
						if b.Step > 0 {
							after = maps.Clone(states[b.Step-1])
						}
						ids := b.Batch.Inputs()[0]
						for i, v := range ids {
							require.Equal(t, row(b.Step, v), got[i*size:(i+1)*size], "step %d, row %d", b.Step, v)
							after[v] = grown(b.Step, v, row(b.Step, v))
						}
						states = append(states, after)
						w, err := write(b.Step, b)
						if err == nil && early {
							err = b.WriteBack(w)
							late()
						}
						return err
					}
					for i, from := range []int{0, 7, 8, 9, 20} {
						s := steps(from, append([]int{7, 8, 9, 20}, end)[i])
						s.Follows = i > 0
						require.NoError(t, p.Run(t.Context(), s, use))
						if i%2 == 0 {
							p.Planner.Reset()
						}
						if i%3 == 0 {
							undos := table.Undos()
							require.Equal(t, min(lag-1, 2) > 0, len(undos) > 0)
							table.Settle()
							require.Empty(t, table.Undos())
							table.Undone(undos)
							require.Equal(t, undos, table.Undos())
						}
					}
					require.Len(t, states, end)
				})
			}
		}
	}
}

// TestLagAfterACut: a range that goes on where one was cut, whose steps were gathered ahead, sees
// what an uncut one would.
func TestLagAfterACut(t *testing.T) {
	const size, end = 32, 40
	for _, lag := range []int{2, 3, 5} {
		r := newRig(t)
		table, err := mutable.Open(t.Context(), mutable.Options{
			Place: mutable.Place{Dir: filepath.Join(t.TempDir(), "table")}, Rows: 500, RowBytes: size, Lag: lag, Cache: cachetier.Options{HostBytes: 1 << 20},
		})
		require.NoError(t, err)
		defer table.Close()
		require.NoError(t, table.Begin(t.Context()))
		c := r.config(2, 1<<20)
		c.Tables = []*cachetier.Stack{table.Stack}
		p := pipeline.New(pipeline.Config{Planner: plan.NewPlanner(c), Tables: rowsOfLag(lag), Backend: r.be, Buffers: lag + 2})
		defer p.Close()
		var states []map[uint32][]byte // after each step
		from := 0
		for from < end {
			s, cut := steps(from, end), from+1+rand.IntN(7)
			s.Follows = from > 0
			err := p.Run(t.Context(), s, func(b *pipeline.Gathered) error {
				got, _ := r.be.Host(b.Rows[0])
				after, ids := map[uint32][]byte{}, b.Batch.Inputs()[0]
				if b.Step > 0 {
					after = maps.Clone(states[b.Step-1])
				}
				var src []byte
				for i, v := range ids {
					seen := make([]byte, size)
					if at := b.Step - lag; at >= 0 && states[at][v] != nil {
						seen = states[at][v]
					}
					if !bytes.Equal(seen, got[i*size:(i+1)*size]) {
						return fmt.Errorf("lag %d, step %d of a range from %d: row %d is not what it was", lag, b.Step, from, v)
					}
					after[v] = grown(b.Step, v, seen)
					src = append(src, after[v]...)
				}
				time.Sleep(200 * time.Microsecond) // others are gathered meanwhile
				states = append(states, after)
				if err := errors.Join(table.WriteAll(src), b.WriteBack(nil)); err != nil || b.Step+1 < cut {
					return err
				}
				return errTest
			})
			if from = len(states); from < end {
				require.ErrorIs(t, err, errTest)
			}
		}
	}
}
