package temporal

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestQuantile(t *testing.T) {
	require.InDelta(t, 96.16, quantile([]float64{1, 2, 3, 4, 100}, 0.99), 1e-12)
	require.Equal(t, 7.0, quantile([]float64{7}, 0.99))
	require.Equal(t, 4.0, quantile([]float64{1, 4}, 1))
	require.True(t, math.IsNaN(quantile(nil, 0.99)))
}

func TestBlend(t *testing.T) {
	memory := []float32{1, -2}
	Blend(memory, [][]float32{{2, 0}, {4, -4}}, 0.95)
	require.InDeltaSlice(t, []float32{1.1, -2}, memory, 1e-7)

	negative := float32(math.Copysign(0, -1))
	memory = []float32{negative, 1}
	Blend(memory, [][]float32{{float32(math.Inf(1)), float32(math.NaN())}}, 1)
	require.True(t, math.Signbit(float64(memory[0])))
	require.Equal(t, []float32{negative, 1}, memory)
}

// TestFindBlends compares with the rule as it is written, on random batches of which some are empty.
func TestFindBlends(t *testing.T) {
	var b Blends
	found := 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const places = 40
		last, similar := make([]float64, places), make([][]uint32, places)
		for v := range last {
			last[v] = float64(rng.IntN(100) * rng.IntN(2)) // some have had no event
			for range rng.IntN(5) {
				similar[v] = append(similar[v], rng.Uint32N(places))
			}
		}
		var nodes []uint32
		var times []float64
		for range rng.IntN(150) {
			nodes, times = append(nodes, rng.Uint32N(places)), append(times, 100+rng.Float64())
		}
		b.Find(nodes, times, last, func(place uint32) []uint32 { return similar[place] })

		var since []float64
		for i, v := range nodes {
			since = append(since, times[i]-last[v])
		}
		slices.Sort(since)
		var rows []uint32
		var candidates [][]uint32
		for i, v := range nodes {
			limit, delta := quantile(since, 0.99), times[i]-last[v]
			var omega []uint32
			for _, u := range similar[v] {
				if last[u] > last[v] && times[i]-last[u] < limit {
					omega = append(omega, u)
				}
			}
			if delta > limit && len(omega) > 0 {
				rows, candidates = append(rows, uint32(i)), append(candidates, omega)
			}
		}
		require.Equal(t, append([]uint32{}, rows...), append([]uint32{}, b.Rows...))
		require.Len(t, b.Start, len(rows)+1)
		for i, want := range candidates {
			require.Equal(t, want, b.Nodes[b.Start[i]:b.Start[i+1]])
		}
		found += len(rows)
	}
	require.Greater(t, found, 50)
}

// TestFindNoBlends: rows that are all as old as each other are none too old, and nodes without similar ones stay as they are.
func TestFindNoBlends(t *testing.T) {
	var b Blends
	all := func(uint32) []uint32 { return []uint32{0, 1, 2} }
	b.Find([]uint32{0, 1, 2}, []float64{5, 6, 7}, []float64{0, 1, 2}, all)
	require.Empty(t, b.Rows)
	b.Find([]uint32{0, 1, 2}, []float64{50, 6, 7}, []float64{0, 5, 6}, func(uint32) []uint32 { return nil })
	require.Empty(t, b.Rows)
	b.Find([]uint32{0, 1, 2}, []float64{50, 6, 7}, []float64{0, 5, 6}, all)
	require.Equal(t, []uint32{0}, b.Rows)
	require.Equal(t, []uint32{1, 2}, b.Nodes)
}
