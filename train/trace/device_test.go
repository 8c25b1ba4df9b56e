package trace

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// drawnBy returns the rows of some batches whose draws are shared by kappa of them.
func drawnBy(t *testing.T, ds *store.Dataset, kappa, steps int) (batches [][]uint32) {
	s := sample.NewSampler(sample.AtHand(ds.Graph(0)), sample.Config{Kind: sample.Labor0, Fanouts: []int{5, 3}}, 1)
	schedule, rng := sample.Schedule{Seed: 7, Kappa: kappa}, uint64(3)
	for step := range steps {
		var seeds []uint32
		for range 20 {
			rng = sample.Fold(rng, uint64(step))
			if v := uint32(rng % 2000); len(seeds) == 0 || v > seeds[len(seeds)-1] {
				seeds = append(seeds, v)
			}
		}
		var b sample.Batch
		require.NoError(t, s.SampleOne(t.Context(), &b, schedule.At(step), seeds))
		batches = append(batches, append([]uint32(nil), b.Inputs()[0]...))
	}
	return batches
}

// busRows returns how many rows of batches, in groups of so many steps, come to a device that has
// hot rows, and others under a policy.
func busRows(
	t *testing.T, ds *store.Dataset, batches [][]uint32, group, hot, dynamic int, p cachetier.Policy,
) int64 {
	f := ds.Features(0)
	size := int64(f.RowBytes())
	bytes := size * int64(hot+dynamic)
	region, err := device.New(kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{})), 0, device.Size(bytes))
	require.NoError(t, err)
	defer region.Close()
	s, err := cachetier.Open(t.Context(), f, cachetier.Options{
		DeviceBytes: bytes, DynamicBytes: size * int64(dynamic), DevicePolicy: p, Region: region, HostBytes: 1 << 20,
	})
	require.NoError(t, err)
	defer s.Close()
	groups := slices.Collect(slices.Chunk(batches, group))
	s.Expect(groups[0])
	for i := range groups {
		if i+1 < len(groups) { // one is drawn ahead
			s.Expect(groups[i+1])
		}
		for left := groups[i]; len(left) > 0; {
			n := s.Fit()
			w, err := s.Next(t.Context(), n)
			require.NoError(t, err)
			require.NoError(t, w.Load(t.Context()))
			for k, ids := range left[:n] {
				at := make([]uint32, len(ids))
				require.NoError(t, w.Gather(t.Context(), k, make([]byte, int64(w.Places(k, at))*size)))
			}
			w.Release()
			left = left[n:]
		}
	}
	return s.Stats().Tiers.Device.RowsMissed
}

// TestBusRows counts the rows that go over the bus to a device. Without a policy, a trace of a
// static cache counts the same rows. With LRU, a trace counts about as many: it decides request by
// request, and the device step by step. Belady brings no more rows than LRU. Batches that share
// their draws bring fewer than independent ones.
func TestBusRows(t *testing.T) {
	const nodes, steps, group, hot = 2000, 192, 16, 100
	ds, err := store.Open(storetest.Build(t, storetest.Communities(nodes, 4, 8, 24, 2)))
	require.NoError(t, err)
	defer ds.Close()
	for _, share := range []int{20, 5} { // a twentieth and a fifth of the rows
		dynamic := nodes / share
		came := map[cachetier.Policy][]int64{} // by κ
		for _, kappa := range []int{1, 64, 256} {
			batches := drawnBy(t, ds, kappa, steps)
			var cold [][]uint32 // the rows that are not hot
			for _, b := range batches {
				var rows []uint32
				for _, v := range b {
					if v >= hot {
						rows = append(rows, v)
					}
				}
				cold = append(cold, rows)
			}
			dir, sum := t.TempDir(), func(misses []int64) (n int64) {
				for _, m := range misses {
					n += m
				}
				return n
			}
			of := func(p cachetier.Policy) int64 { return busRows(t, ds, batches, group, hot, dynamic, p) }
			none := busRows(t, ds, batches, group, hot+dynamic, 0, cachetier.None)
			lru, belady := of(cachetier.LRU), of(cachetier.Belady)
			require.Equal(t, sum(staticMisses(t, dir, nodes, batches, []uint32{uint32(hot + dynamic)})), none)
			tracedLRU := sum(lruMisses(t, dir, nodes, cold, []uint32{uint32(dynamic)}))
			traced := sum(beladyMisses(t, dir, nodes, cold, uint32(dynamic)))
			require.InEpsilon(t, tracedLRU, lru, 0.1)
			require.LessOrEqual(t, belady, lru)
			t.Logf("κ %d, a dynamic part of 1/%d: rows a step: static %d, lru %d (trace %d), belady %d (trace %d)",
				kappa, share, none/steps, lru/steps, tracedLRU/steps, belady/steps, traced/steps)
			// With all of the future known, no request by request decision is better.
			few, best := batches[:17], sum(beladyMisses(t, dir, nodes, cold[:17], uint32(dynamic)))
			require.LessOrEqual(t, busRows(t, ds, few, 17, hot, dynamic, cachetier.Belady), best)
			came[cachetier.LRU] = append(came[cachetier.LRU], lru)
			came[cachetier.Belady] = append(came[cachetier.Belady], belady)
		}
		for p, n := range came {
			require.Less(t, n[1], n[0], p)
			require.Less(t, n[2], n[0], p)
		}
	}
}
