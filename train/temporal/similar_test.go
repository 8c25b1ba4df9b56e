package temporal

import (
	"cmp"
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// similarByHand finds the nodes similar to each by comparing all pairs of nodes and their partners, of which only the most recent count.
func similarByHand(e *store.Events, to int64, recent int) [][]uint32 {
	places := uint32(e.Places())
	lists := make([][]uint32, places)
	src, dst := e.Ends(0, to)
	for i := len(src) - 1; i >= 0; i-- {
		u, v := src[i], uint32(e.Place(dst[i]))
		for _, ends := range [][2]uint32{{u, v}, {v, u}} {
			if list := &lists[ends[0]]; len(*list) < recent && !slices.Contains(*list, ends[1]) {
				*list = append(*list, ends[1])
			}
		}
	}
	all := make([][]uint32, places)
	for v := range places {
		counts := map[uint32]int{}
		for u := range places {
			for _, w := range lists[v] {
				if u != v && slices.Contains(lists[w], v) && slices.Contains(lists[w], u) {
					counts[u]++
				}
			}
			if counts[u] > 0 {
				all[v] = append(all[v], u)
			}
		}
		slices.SortStableFunc(all[v], func(a, b uint32) int { return cmp.Compare(counts[b], counts[a]) })
		all[v] = all[v][:min(len(all[v]), SimilarNodes)]
	}
	return all
}

func TestSimilar(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 5))
		// More nodes than workers take at a time, of which many have no event.
		s := randomStream(rng, 150, 20+int(seed%3)*200, int(seed%2)*300)
		e := open(t, s)
		to := int64(rng.IntN(len(s.Src) + 1))
		for _, recent := range []int{recentPartners, 4, 1} {
			want := similarByHand(e, to, recent)
			for _, workers := range []int{1, 3} {
				similar, err := newSimilar(t.Context(), e, to, workers, recent)
				require.NoError(t, err)
				for v, list := range want {
					require.Equal(t, append([]uint32{}, list...), append([]uint32{}, similar.Of(uint32(v))...), "seed %d, node %d, recent %d", seed, v, recent)
				}
				similar.Close()
			}
		}
	}
}

func TestSimilarEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewSimilar(ctx, open(t, randomStream(rand.New(rand.NewPCG(1, 6)), 20, 5, 0)), 20, 2)
	require.ErrorIs(t, err, context.Canceled)
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
			_, err = NewSimilar(t.Context(), e, e.Len(), 1)
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

// TestPublicSimilar: the result on public streams is the same of any number of workers. It says how long that takes.
func TestPublicSimilar(t *testing.T) {
	for _, c := range []struct {
		file  string
		train int64
	}{{"jodie_wikipedia_edges/ml_wikipedia.txt", 110232}, {"email_eu_core_temporal/email-Eu-core-temporal.txt.gz", 232634}} {
		e := open(t, publicStream(t, c.file, 2))
		begin := time.Now()
		one, err := NewSimilar(t.Context(), e, c.train, 1)
		require.NoError(t, err)
		defer one.Close()
		took := time.Since(begin)
		begin = time.Now()
		two, err := NewSimilar(t.Context(), e, c.train, 2)
		require.NoError(t, err)
		defer two.Close()
		t.Logf("%s: %v with one worker, %v with two", c.file, took, time.Since(begin))
		require.Equal(t, one.ids, two.ids)
	}
}
