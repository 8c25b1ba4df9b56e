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

// TestFindBlends compares with the written rule on random batches, some of them empty. Every
// blended row had an event, and so had the nodes that it is blended with. The control blends the
// same rows with as many others of their type.
func TestFindBlends(t *testing.T) {
	var b, control Blends
	found, others := 0, 0
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 1))
		const places, firstDst = 40, 25
		control.Random, control.FirstDst = 1+seed, []uint32{0, firstDst}[seed%2]
		last, similar := make([]float64, places), make([][]uint32, places)
		for v := range last {
			last[v] = noEvent
			if rng.IntN(3) > 0 {
				// the stream's first event has time 0
				last[v] = float64(rng.IntN(100) * rng.IntN(2))
			}
			for range rng.IntN(5) {
				u := rng.Uint32N(places)
				if control.FirstDst == 0 || (u < firstDst) == (v < firstDst) {
					similar[v] = append(similar[v], u)
				}
			}
			slices.Sort(similar[v])
			similar[v] = slices.Compact(similar[v])
		}
		var nodes []uint32
		var times []float64
		for range rng.IntN(150) {
			nodes, times = append(nodes, rng.Uint32N(places)), append(times, 100+rng.Float64())
		}
		of := func(place uint32) []uint32 { return similar[place] }
		b.Find(nodes, times, last, of)
		control.Find(nodes, times, last, of)

		var since []float64
		for i, v := range nodes {
			if last[v] != noEvent {
				since = append(since, times[i]-last[v])
			}
		}
		slices.Sort(since)
		limit := quantile(since, 0.99)
		var rows []uint32
		var candidates [][]uint32
		for i, v := range nodes {
			var omega []uint32
			for _, u := range similar[v] {
				if last[u] > last[v] && times[i]-last[u] < limit {
					omega = append(omega, u)
				}
			}
			if last[v] != noEvent && times[i]-last[v] > limit && len(omega) > 0 {
				rows, candidates = append(rows, uint32(i)), append(candidates, omega)
			}
		}
		require.Equal(t, append([]uint32{}, rows...), append([]uint32{}, b.Rows...))
		require.Len(t, b.Start, len(rows)+1)
		require.Equal(t, b.Rows, control.Rows)
		require.Equal(t, b.Start, control.Start)
		for i, want := range candidates {
			require.Equal(t, want, b.Nodes[b.Start[i]:b.Start[i+1]])
			v := nodes[rows[i]]
			drawn := control.Nodes[b.Start[i]:b.Start[i+1]]
			for j, u := range drawn {
				require.Greater(t, last[u], last[v])
				require.Less(t, times[rows[i]]-last[u], limit)
				require.NotContains(t, drawn[:j], u)
				if control.FirstDst > 0 {
					require.Equal(t, v < firstDst, u < firstDst)
				}
				if u != want[j] {
					others++
				}
			}
		}
		found += len(rows)
	}
	require.Greater(t, found, 50)
	require.Greater(t, others, 50)
}

// TestFindNoBlends: rows of one age are none too old. Nodes without similar ones, or without an
// event, stay as they are.
func TestFindNoBlends(t *testing.T) {
	var b Blends
	all := func(uint32) []uint32 { return []uint32{0, 1, 2} }
	b.Find([]uint32{0, 1, 2}, []float64{5, 6, 7}, []float64{0, 1, 2}, all)
	require.Empty(t, b.Rows)
	b.Find([]uint32{0, 1, 2}, []float64{50, 6, 7}, []float64{0, 5, 6}, func(uint32) []uint32 { return nil })
	require.Empty(t, b.Rows)
	b.Find([]uint32{0, 1, 2}, []float64{50, 6, 7}, []float64{noEvent, 5, 6}, all)
	require.Empty(t, b.Rows)
	b.Find([]uint32{0, 1, 2}, []float64{50, 6, 7}, []float64{0, 5, 6}, all)
	require.Equal(t, []uint32{0}, b.Rows)
	require.Equal(t, []uint32{1, 2}, b.Nodes)

	// A control that finds few nodes by chance tries all.
	last := make([]float64, 100_000)
	for v := range last {
		last[v] = noEvent
	}
	last[0], last[70_000], last[99_999] = 0, 5, 6
	b = Blends{Random: 1}
	b.Find([]uint32{0, 70_000, 99_999}, []float64{50, 6, 7}, last, func(uint32) []uint32 { return []uint32{70_000, 99_999} })
	require.Equal(t, []uint32{70_000, 99_999}, slices.Sorted(slices.Values(b.Nodes)))
}
