package cachetier_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/spill"
	"github.com/gnnstore/gnnstore/store"
)

// processor returns the processor time of this process so far, in ns, kernel included.
func processor(b *testing.B) int64 {
	var u syscall.Rusage
	require.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &u))
	return u.Utime.Nano() + u.Stime.Nano()
}

// BenchmarkHorizons reads the rows of 24 windows from the table's file: window by window, and by a
// horizon. Each window wants some 8.6 % of a table of 256-byte rows, as on a graph of 111 M nodes
// under 8 GiB.
//
// It counts the rows that were not in memory when their window came. ns/row is the processor time
// for such a row, kernel included: to read and place it, or to scan it (scan-ns/row), write it to a
// spill, read it back, check it and place it. The policy and planning take plan-ns/row more, either
// way. Drawing and gathering are left out.
//
// Run it by hand: files lie in GNNSTORE_BENCH_DIR, or in the directory for temporary files. That
// should not be in memory.
func BenchmarkHorizons(b *testing.B) {
	const windows, share = 24, 0.086
	if dir := os.Getenv("GNNSTORE_BENCH_DIR"); dir != "" {
		b.Setenv("TMPDIR", dir)
	}
	d, err := store.Open(benchDataset(b))
	require.NoError(b, err)
	defer d.Close()
	f := d.Features(0)
	rng := rand.New(rand.NewPCG(1, 2))
	steps := make([][]uint32, windows)
	for i := range steps {
		for v := range uint32(benchRows) {
			if rng.Float64() < share {
				steps[i] = append(steps[i], v)
			}
		}
	}
	for _, engine := range []disk.Kind{disk.Uring, disk.Pread} {
		for _, joined := range []bool{false, true} {
			b.Run(fmt.Sprintf("engine=%s/join=%t", engine, joined), func(b *testing.B) {
				o := cachetier.Options{HostBytes: benchRows * benchDim * 2 / 10, Engine: engine, Direct: true, Lookahead: 2}
				s, err := cachetier.Open(bg, f, o)
				require.NoError(b, err)
				defer s.Close()
				file, err := spill.Create(spill.Options{Dir: b.TempDir(), Bytes: 512 << 20, Buffers: windows + 12, Depth: 8})
				require.NoError(b, err)
				defer file.Close()
				ok, err := s.Join(bg, file, windows+2, f.Rows(), f, o)
				require.NoError(b, err)
				require.True(b, ok)
				var planning, all, scan meter
				dst := make([]byte, len(steps[0])*f.RowBytes())
				for b.Loop() {
					h := s.NewHorizon()
					for i, ids := range steps {
						if !joined {
							continue
						}
						planning.of(b, func() {
							if i > 0 {
								h.Cut()
							}
							for _, half := range halves(ids) {
								require.True(b, h.Add(half))
							}
						})
					}
					planning.of(b, h.Done)
					scan.of(b, func() { require.NoError(b, h.Scan(bg)) })
					for _, ids := range steps {
						var w *cachetier.Window
						planning.of(b, func() {
							if joined {
								w, err = h.Next(bg, halves(ids))
							} else {
								s.Expect(halves(ids))
								w, err = s.Next(bg, s.Fit())
							}
							require.NoError(b, err)
							w.Keep()
						})
						all.of(b, func() { require.NoError(b, w.Load(bg)) })
						for i, half := range halves(ids) {
							require.NoError(b, w.Gather(bg, i, dst[:len(half)*f.RowBytes()]))
						}
						w.Release()
					}
					h.Close()
				}
				st := s.Stats()
				rows := float64(st.Tiers.Host.BytesRead / st.RowBytes)
				b.ReportMetric((all.ns+scan.ns)/rows, "ns/row")
				b.ReportMetric(scan.ns/rows, "scan-ns/row")
				b.ReportMetric(planning.ns/rows, "plan-ns/row")
				b.ReportMetric(float64(st.Disk.BytesRead)/rows, "B-read/row")
				if st.Join != nil {
					b.ReportMetric(float64(st.Join.Spilled+st.Join.Forwarded)/rows, "spilled/row")
				}
			})
		}
	}
}

// halves splits ids into a window of two steps.
func halves(ids []uint32) [][]uint32 { return slices.Collect(slices.Chunk(ids, len(ids)/2+1)) }

// meter adds up processor time.
type meter struct{ ns float64 }

func (m *meter) of(b *testing.B, work func()) {
	began := processor(b)
	work()
	m.ns += float64(processor(b) - began)
}
