package cachetier_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// The table of the benchmarks has 128 MiB, far more than the processor's caches. Batches are as
// large as in a three-layer sample.
const (
	benchRows  = 1 << 19
	benchDim   = 128
	benchBatch = 1 << 16
)

// benchDataset returns the path of a sealed dataset with that table.
func benchDataset(b *testing.B) string {
	row := make([]float32, benchDim)
	return storetest.Build(b, storetest.Spec{Nodes: benchRows, Dim: benchDim, Row: func(v int) []float32 {
		row[v%benchDim] = float32(v % 100)
		return row
	}})
}

func reportRows(b *testing.B) {
	b.ReportMetric(float64(b.N)*benchBatch/b.Elapsed().Seconds(), "rows/s")
}

// BenchmarkGatherWarm gathers random rows. In all cases but one the whole table is in one place:
// the device region, the host cache, or the page cache, from which either engine reads it.
func BenchmarkGatherWarm(b *testing.B) {
	d, err := store.Open(benchDataset(b))
	require.NoError(b, err)
	defer d.Close()
	f := d.Features(0)
	const all = 1 << 40
	for _, c := range []struct {
		name string
		o    cachetier.Options
	}{
		{"tier=device", cachetier.Options{DeviceBytes: all}},
		{"tier=host", cachetier.Options{HostBytes: all}},
		{"tier=disk/engine=mmap", cachetier.Options{Engine: disk.Mmap}},
		{"tier=disk/engine=pread", cachetier.Options{Engine: disk.Pread}},
		// A quarter of the table is in the cache. Three rows in four are read and admitted, and
		// evict another row.
		{"tier=mixed/engine=mmap", cachetier.Options{Engine: disk.Mmap, HostBytes: benchRows * (benchDim*2 + 17) / 4, Policy: cachetier.LRU}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s, err := cachetier.Open(bg, f, c.o)
			require.NoError(b, err)
			defer s.Close()
			rng := rand.New(rand.NewPCG(1, 2))
			batches := make([][]uint32, 16)
			for i := range batches {
				batches[i] = make([]uint32, benchBatch)
				for j := range batches[i] {
					batches[i][j] = rng.Uint32N(benchRows)
				}
			}
			dst := make([]byte, benchBatch*f.RowBytes())
			fill := make([]uint32, benchRows)
			for v := range fill {
				fill[v] = uint32(v)
			}
			for lo := 0; lo < benchRows; lo += benchBatch {
				require.NoError(b, s.Gather(bg, dst, fill[lo:lo+benchBatch]))
			}
			b.SetBytes(int64(len(dst)))
			i := 0
			for b.Loop() {
				if err := s.Gather(bg, dst, batches[i%len(batches)]); err != nil {
					b.Fatal(err)
				}
				i++
			}
			reportRows(b)
		})
	}
}

// BenchmarkGatherRepeats gathers batches in which each row is wanted once or eight times on
// average, without a cache.
func BenchmarkGatherRepeats(b *testing.B) {
	d, err := store.Open(benchDataset(b))
	require.NoError(b, err)
	defer d.Close()
	f := d.Features(0)
	for _, repeats := range []uint32{1, 8} {
		b.Run(fmt.Sprintf("repeats=%d", repeats), func(b *testing.B) {
			s, err := cachetier.Open(bg, f, cachetier.Options{Engine: disk.Mmap})
			require.NoError(b, err)
			defer s.Close()
			ids := make([]uint32, benchBatch)
			rng := rand.New(rand.NewPCG(3, 4))
			for i := range ids {
				ids[i] = rng.Uint32N(benchBatch / repeats)
			}
			dst := make([]byte, benchBatch*f.RowBytes())
			b.SetBytes(int64(len(dst)))
			for b.Loop() {
				if err := s.Gather(bg, dst, ids); err != nil {
					b.Fatal(err)
				}
			}
			reportRows(b)
		})
	}
}

// BenchmarkWindow runs groups of steps through their windows: planning, loading from the page
// cache, and gathering.
func BenchmarkWindow(b *testing.B) {
	d, err := store.Open(benchDataset(b))
	require.NoError(b, err)
	defer d.Close()
	f := d.Features(0)
	rng := rand.New(rand.NewPCG(5, 6))
	steps := make([][]uint32, 64)
	for i := range steps {
		steps[i] = distinct(rng, benchRows, benchBatch/8)
	}
	for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
		for _, w := range []int{1, 8, 32} {
			b.Run(fmt.Sprintf("engine=%s/steps=%d", engine, w), func(b *testing.B) {
				s, err := cachetier.Open(bg, f, cachetier.Options{Engine: engine, HostBytes: benchRows * benchDim * 2 / 3, Lookahead: 2})
				require.NoError(b, err)
				defer s.Close()
				dst := make([]byte, benchBatch/8*f.RowBytes())
				b.SetBytes(int64(len(steps) * len(dst)))
				for b.Loop() {
					for i := 0; i < len(steps); i += w {
						s.Expect(steps[i : i+w])
						for win := next(b, s); win != nil; win = next(b, s) {
							require.NoError(b, win.Load(bg))
							for i := range win.Steps() {
								require.NoError(b, win.Gather(bg, i, dst))
							}
							win.Release()
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(steps)*benchBatch/8), "ns/row")
			})
		}
	}
}

// distinct draws n different ids, small ones more often.
func distinct(rng *rand.Rand, rows, n int) []uint32 {
	seen := make(map[uint32]bool, n)
	ids := make([]uint32, 0, n)
	for len(ids) < n {
		x := rng.Float64()
		if v := uint32(x * x * x * float64(rows)); !seen[v] {
			seen[v] = true
			ids = append(ids, v)
		}
	}
	return ids
}

// wide is a table of papers100M's shape that is never read.
type wide struct{}

func (wide) Rows() int     { return 111_000_000 }
func (wide) RowBytes() int { return 256 }
func (w wide) Shards() []store.Shard {
	return []store.Shard{{Rows: int64(w.Rows()), DataOffset: 4096, Stride: 256}}
}

// BenchmarkForecast plans windows over that table and merges their reads: all of the work but
// reading and copying. The cache of 4 GiB is never written to.
func BenchmarkForecast(b *testing.B) {
	rng := rand.New(rand.NewPCG(7, 8))
	trace := make([][]uint32, 16)
	rows := 0
	for i := range trace {
		trace[i] = distinct(rng, wide{}.Rows(), 380_000)
		rows += len(trace[i])
	}
	for _, w := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("steps=%d", w), func(b *testing.B) {
			s, err := cachetier.Open(bg, wide{}, cachetier.Options{HostBytes: 4 << 30, Lookahead: 2, Engine: disk.Pread})
			require.NoError(b, err)
			defer s.Close()
			var f cachetier.Forecast
			for b.Loop() {
				f, err = s.Forecast(trace, w)
				require.NoError(b, err)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
			b.ReportMetric(f.All.Seconds/float64(f.All.Steps), "device-s/step")
		})
	}
}
