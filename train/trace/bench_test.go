package trace

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// BenchmarkCaches asks each policy for the rows of batches of a million nodes. Low numbers are hot,
// and a fifth of the rows is cached. Requests of belady are places.
func BenchmarkCaches(b *testing.B) {
	const nodes, size, batch = 1_000_000, 200_000, 50_000
	rng := rand.New(rand.NewPCG(1, 2))
	rows, seen := make([]uint32, 0, 40*batch), make([]int, nodes)
	for len(rows) < cap(rows) {
		x := rng.Float64()
		if v := int(x * x * x * nodes); seen[v] <= len(rows)/batch {
			seen[v] = len(rows)/batch + 1
			rows = append(rows, uint32(v))
		}
	}
	places, next := make([]uint32, len(rows)), make([]uint32, nodes)
	for i := len(rows) - 1; i >= 0; i-- {
		places[i], next[rows[i]] = next[rows[i]]-1, uint32(i)+1
	}
	for _, c := range []struct {
		policy   Policy
		requests []uint32
		start    func() (simulator, error)
	}{
		{Static, rows, func() (simulator, error) { return &static{[]uint32{size}}, nil }},
		{LRU, rows, func() (simulator, error) { return newLRU(nodes, []uint32{size}) }},
		{Sieve, rows, func() (simulator, error) { return newSieve(nodes, size) }},
		{Belady, places, func() (simulator, error) { return newBelady(int64(len(places)), size), nil }},
	} {
		b.Run("policy="+string(c.policy), func(b *testing.B) {
			for b.Loop() {
				s, err := c.start()
				require.NoError(b, err)
				s.ask(c.requests, make([]int64, 1))
				s.close()
			}
			b.ReportMetric(float64(len(c.requests))*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrequests/s")
		})
	}
}
