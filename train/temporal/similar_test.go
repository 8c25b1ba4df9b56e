package temporal

import (
	"cmp"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// similarByHand finds the nodes similar to one by comparing it with all others. Partners are the
// other ends of a node's latest events before one, up to recent of them.
func similarByHand(s storetest.StreamSpec, place uint32, before int64, recent int) []uint32 {
	partners := func(v uint32) map[uint32]bool {
		all, n := map[uint32]bool{}, 0
		for i := before - 1; i >= 0; i-- {
			a, b := s.Src[i], s.Dst[i]
			if s.Items > 0 {
				b += uint32(s.Users)
			}
			for _, ends := range [][2]uint32{{a, b}, {b, a}} {
				if ends[0] == v && n < recent {
					all[ends[1]] = true
					n++
				}
			}
		}
		return all
	}
	counts := map[uint32]int{}
	for w := range partners(place) {
		for u := range partners(w) {
			if u != place {
				counts[u]++
			}
		}
	}
	similar := slices.Sorted(maps.Keys(counts))
	slices.SortStableFunc(similar, func(a, b uint32) int { return cmp.Compare(counts[b], counts[a]) })
	return similar[:min(len(similar), SimilarNodes)]
}

// TestSimilar compares with a search of all events, for nodes asked in any order, as of any event.
func TestSimilar(t *testing.T) {
	found := 0
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 5))
		s := randomStream(rng, 150, 20+int(seed%3)*20, int(seed%2)*30)
		e := open(t, s)
		for _, recent := range []int{recentPartners, 4, 1} {
			similar, err := newSimilar(e, recent)
			require.NoError(t, err)
			similar.list -= uint32(rng.IntN(300)) // so that the numbers overflow
			for range 150 {
				place, before := uint32(rng.Int64N(e.Places())), rng.Int64N(e.Len()+1)
				want := similarByHand(s, place, before, recent)
				require.Equal(t, append([]uint32{}, want...), append([]uint32{}, similar.Of(place, before)...), "seed %d, node %d before %d, recent %d", seed, place, before, recent)
				found += len(want)
			}
			similar.Close()
		}
	}
	require.Greater(t, found, 1000)
}

// TestSimilarDamage: a forged file ends in an error that names it.
func TestSimilarDamage(t *testing.T) {
	for file, want := range map[string]string{
		"near.u64": "stream/events/near.u64 at 0x1000: event 0 is of node 2 of 2; run gnnstore verify", "dst.u32": "stream/events/dst.u32 at 0x100c: event 3 is of node 2 of 2; run gnnstore verify",
	} {
		dir := storetest.BuildStream(t, sixEvents)
		storetest.Forge(t, dir, "stream/events/"+file, store.PageSize+12, []byte{2})
		d, err := store.Open(dir)
		require.NoError(t, err)
		defer d.Close()
		e := d.Events(0)
		if file == "near.u64" {
			var similar *Similar
			similar, err = NewSimilar(e)
			require.NoError(t, err)
			defer similar.Close()
			err = store.Guard(func() error {
				for place := range e.Places() {
					similar.Of(uint32(place), e.Len())
				}
				return nil
			})
		} else {
			var b *Baselines
			b, err = NewBaselines(e, 0)
			require.NoError(t, err)
			defer b.Close()
			err = b.Score(t.Context(), &Step{From: 0, To: e.Len(), Negatives: Negatives{AllNodes(e), 1, 1}}, nil)
		}
		require.ErrorContains(t, err, want)
	}
}
