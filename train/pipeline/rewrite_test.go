package pipeline_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
)

// grown is what a step makes of a row: the sum of all that it has seen of it.
func grown(step int, row uint32, b []byte) []byte {
	out := slices.Clone(b)
	for i := range out {
		out[i] = out[i]*3 + byte(step) + byte(row) + 1
	}
	return out
}

// TestRowsThatStepsRewrite takes a table through the stages: with any lag and budget, and every stage late now and then, each step
// sees what a plain loop says. So does a run after one that an error has cut short, and one without a writer.
func TestRowsThatStepsRewrite(t *testing.T) {
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
				require.NoError(t, p.Run(t.Context(), steps(33, 40), use, back))
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
