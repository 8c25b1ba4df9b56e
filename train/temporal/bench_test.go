package temporal

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// BenchmarkDraw draws from a stream of 300,000 events of 20,000 users and 5,000 items, some of
// which come far oftener than others.
func BenchmarkDraw(b *testing.B) {
	const events, users, items, batch, group = 300_000, 20_000, 5_000, 600, 16
	rng := rand.New(rand.NewPCG(1, 1))
	spec, now := storetest.StreamSpec{Users: users, Items: items}, 0.0
	often := func(n int) uint32 { return uint32(float64(n) * math.Pow(rng.Float64(), 3)) }
	for range events {
		now += rng.ExpFloat64()
		spec.Src, spec.Dst, spec.Times = append(spec.Src, often(users)), append(spec.Dst, often(items)), append(spec.Times, now)
	}
	e := open(b, spec)
	population, err := Destinations(e, 0, events)
	require.NoError(b, err)
	for _, c := range []struct {
		name string
		o    SamplerOptions
	}{
		{"fanout=10/near=newest/engine=mmap", SamplerOptions{Fanout: 10, Disk: disk.Options{Kind: disk.Mmap}}},
		{"fanout=10/near=uniform/engine=mmap", SamplerOptions{Fanout: 10, Uniform: true, Disk: disk.Options{Kind: disk.Mmap}}},
		{"fanout=10/near=newest/engine=uring", SamplerOptions{Fanout: 10, Disk: disk.Options{Kind: disk.Uring}}},
		{"fanout=0", SamplerOptions{}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := newSampler(b, e, c.o)
			all := steps(0, events, batch, Negatives{population, 1, 1}, func(int) bool { return false })
			into := make([]*Batch, group)
			for i := range into {
				into[i] = &Batch{}
			}
			at, roots := len(all)/2, 0
			for b.Loop() {
				if at+group > len(all) {
					at = len(all) / 2
				}
				if s.next != all[at].From {
					b.StopTimer()
					require.NoError(b, s.Seek(b.Context(), all[at].From))
					b.StartTimer()
				}
				require.NoError(b, s.Draw(b.Context(), all[at:at+group], into))
				at += group
				roots += 3 * batch * group
			}
			b.ReportMetric(float64(roots)/b.Elapsed().Seconds(), "roots/s")
		})
	}
}
