package mutable_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
)

// BenchmarkSteps reads rows and writes them back, with a checkpoint at the end: rows of a value and
// two moments of 64 columns each, 2,000 a step, in windows as large as the cache allows.
func BenchmarkSteps(b *testing.B) {
	const rows, size, stepRows, steps = 200_000, 3 * 64 * 4, 2000, 100
	for _, kind := range []disk.Kind{disk.Uring, disk.Buffered} {
		for _, percent := range []int64{0, 20, 100} {
			b.Run(fmt.Sprintf("engine=%s/memory=%d%%", kind, percent), func(b *testing.B) {
				table, err := mutable.Open(bg, mutable.Options{
					Place: mutable.Place{Dir: b.TempDir() + "/table"}, Rows: rows, RowBytes: size, Cache: cachetier.Options{HostBytes: rows * size * percent / 99, Engine: kind},
				})
				require.NoError(b, err)
				defer table.Close()
				require.NoError(b, table.Begin(bg))
				rng, checkpoint := rand.New(rand.NewPCG(1, 1)), int64(0)
				got := make([]byte, stepRows*size)
				b.SetBytes(steps * stepRows * size)
				for b.Loop() {
					group := make([][]uint32, steps)
					for i := range group {
						for _, v := range rng.Perm(rows)[:stepRows] {
							group[i] = append(group[i], uint32(v))
						}
					}
					rewrite(b, table, group, got)
					_, err := table.Checkpoint(checkpoint)
					require.NoError(b, err)
					require.NoError(b, table.Retain(bg, checkpoint))
					checkpoint++
				}
				st := table.Counts()
				b.ReportMetric(float64(steps*stepRows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
				b.ReportMetric(float64(st.RowsWritten)/float64(b.N), "written/op")
				b.ReportMetric(float64(st.RowsCopied)/float64(b.N), "copied/op")
			})
		}
	}
}

// rewrite reads the rows of steps and writes them back, in the largest windows that the cache
// holds. got has room for the rows of one step.
func rewrite(b *testing.B, table *mutable.Table, steps [][]uint32, got []byte) {
	table.Expect(steps)
	for n := table.Fit(); n > 0; n = table.Fit() {
		w, err := table.Next(bg, n)
		require.NoError(b, err)
		require.NoError(b, w.Load(bg))
		for i := range n {
			rows := got[:len(steps[i])*table.RowBytes()]
			require.NoError(b, w.Gather(bg, i, rows))
			require.NoError(b, table.WriteAll(rows))
			table.Passed()
		}
		w.Release()
		steps = steps[n:]
	}
}

// BenchmarkCheckpoint moves evicted rows from the spill to their places: the state of 2 M nodes, a
// third of which was written in windows of some 100,000 rows.
func BenchmarkCheckpoint(b *testing.B) {
	const rows, size, stepRows, steps = 2_000_000, 584, 12_000, 80
	for _, kind := range []disk.Kind{disk.Uring, disk.Buffered} {
		b.Run(fmt.Sprintf("engine=%s", kind), func(b *testing.B) {
			table, err := mutable.Open(bg, mutable.Options{
				Place: mutable.Place{Dir: b.TempDir() + "/table"}, Rows: rows, RowBytes: size, Cache: cachetier.Options{HostBytes: 100_000 * size, Engine: kind, Direct: kind == disk.Uring},
			})
			require.NoError(b, err)
			defer table.Close()
			require.NoError(b, table.Begin(bg))
			rng, checkpoint := rand.New(rand.NewPCG(1, 1)), int64(0)
			got := make([]byte, stepRows*size)
			for b.Loop() {
				b.StopTimer()
				group := make([][]uint32, steps)
				for i := range group {
					for range stepRows {
						group[i] = append(group[i], rng.Uint32N(rows))
					}
					slices.Sort(group[i])
					group[i] = slices.Compact(group[i])
				}
				rewrite(b, table, group, got)
				before := table.Counts().BytesWritten
				b.StartTimer()
				_, err := table.Checkpoint(checkpoint)
				require.NoError(b, err)
				b.StopTimer()
				b.ReportMetric(float64(table.Counts().BytesWritten-before)/1e6, "MB/op")
				require.NoError(b, table.Retain(bg, checkpoint))
				checkpoint++
				b.StartTimer()
			}
		})
	}
}
