package history

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHeat: each node is of one class, the first nodes are as many as asked for, by degree with
// those that are as hot as the last of them, and no other node is hotter.
func TestHeat(t *testing.T) {
	degree := func(v uint32) int { return int(v*v) % 37 }
	require.Nil(t, HeatOf(0, true, degree))
	for _, ordered := range []bool{true, false} {
		const nodes = 500
		h := HeatOf(nodes, ordered, degree)
		count := make([]int, len(h.nodes))
		for v := range uint32(nodes) {
			count[h.class(v)]++
		}
		require.Equal(t, h.nodes, count)
		for _, n := range []int{0, 1, 63, 64, 200, nodes} {
			first, admitted, coldest := h.first(n), 0, -1
			for v := range uint32(nodes) {
				if first(v) {
					admitted, coldest = admitted+1, max(coldest, h.class(v))
				}
			}
			require.GreaterOrEqual(t, admitted, n)
			for v := range uint32(nodes) {
				require.False(t, !first(v) && h.class(v) < coldest)
			}
			if ordered {
				require.Equal(t, n, admitted)
			}
		}
	}
}
