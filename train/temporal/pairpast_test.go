package temporal

import (
	"cmp"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// pastByHand computes the features of a pair at a scaled time by going through all events before
// one.
func pastByHand(spec storetest.StreamSpec, before int, src, dst uint32, t float64) (columns []float32) {
	r := reference{StreamSpec: spec}
	for _, ofPair := range []bool{true, false} {
		count, last := 0, 0.0
		for i := range before {
			u, v := r.ends(i)
			if v == dst && (u == src || !ofPair) {
				count, last = count+1, (spec.Times[i]-spec.Times[0])*cmp.Or(spec.TimeScale, 1)
			}
		}
		if count == 0 {
			columns = append(columns, 0, 0, 0)
			continue
		}
		columns = append(columns, 1, float32(math.Log1p(t-last)/10), float32(math.Log1p(float64(count))/10))
	}
	return columns
}

// TestPairsKnowTheEventsBeforeTheBatch compares the pair features of batches with a loop over all
// events before the batch, however they are drawn, and for asks; many events have equal times.
func TestPairsKnowTheEventsBeforeTheBatch(t *testing.T) {
	for seed := range uint64(6) {
		rng := rand.New(rand.NewPCG(seed, 5))
		const events, size = 120, 7
		spec := randomStream(rng, events, 9, int(seed%2)*5)
		e := open(t, spec)
		n, err := CountPairs(t.Context(), e, 1<<20)
		require.NoError(t, err)
		s, err := NewSampler(t.Context(), e, SamplerOptions{Fanout: 3, Pairs: true, Workers: 2})
		require.NoError(t, err)
		defer s.Close()
		population, err := Destinations(e, 0, e.Len())
		require.NoError(t, err)
		negatives := Negatives{Population: population, Each: 2, Key: seed}

		b := new(Batch)
		require.NoError(t, s.Draw(t.Context(), []Step{{From: 0, To: size, Negatives: negatives}}, []*Batch{b}))
		require.Equal(t, make([]float32, 3*size*PairColumns), b.Pairs, "nothing is known before OpenPairs")
		require.NoError(t, s.OpenPairs(n))

		check := func(b *Batch) {
			var want []float32
			at := func(root uint32) (uint32, float64) {
				row := b.Roots[root]
				return b.Nodes[b.RowNode[row]], b.RowTime[row]
			}
			for k, root := range append(append([]uint32{}, b.Dst...), b.Negatives...) {
				of := k
				if k >= len(b.Src) {
					of = (k - len(b.Src)) / b.Each
				}
				src, time := at(b.Src[of])
				dst, _ := at(root)
				want = append(want, pastByHand(spec, int(b.From), src, dst, time)...)
			}
			require.Equal(t, want, append([]float32(nil), b.Pairs...), "events from %d on", b.From)
		}
		for range 8 {
			from := int64(rng.IntN(events))
			require.NoError(t, s.Seek(t.Context(), from))
			var steps []Step
			var batches []*Batch
			for at := from; at < events; at += size {
				steps, batches = append(steps, Step{From: at, To: min(at+size, events), Negatives: negatives, StateOnly: rng.IntN(4) == 0}), append(batches, new(Batch))
			}
			require.NoError(t, s.Draw(t.Context(), steps, batches))
			for _, b := range batches {
				check(b)
			}
		}
		require.NoError(t, s.Seek(t.Context(), 50))
		var asks []Ask
		for range 20 { // of any two nodes; no event can have some of these pairs
			asks = append(asks, Ask{Src: rng.Uint32N(uint32(e.Places())), Dst: rng.Uint32N(uint32(e.Places())), Time: spec.Times[50]})
		}
		require.NoError(t, s.Draw(t.Context(), []Step{{From: 50, To: 50, Asks: asks}}, []*Batch{b}))
		check(b)
		require.Equal(t, int64(4*e.Places()), s.Fixed(), "PairBytes says what pairs take beside it")
	}
}

// TestCountPairs counts like a map, also in tables that are too small for all pairs.
func TestCountPairs(t *testing.T) {
	spec := randomStream(rand.New(rand.NewPCG(1, 6)), 3000, 60, 0)
	e := open(t, spec)
	all := map[[2]uint32]bool{}
	for i := range spec.Src {
		all[[2]uint32{spec.Src[i], spec.Dst[i]}] = true
	}
	for _, limit := range []int64{1 << 20, 16 << 10, 7 << 10} {
		n, err := CountPairs(t.Context(), e, limit)
		require.NoError(t, err)
		require.Equal(t, int64(len(all)), n)
	}
}
