package plan

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPopularity: of graphs whose batches were drawn, the different nodes that so many steps want,
// by what the first one wants; see popularity.
func TestPopularity(t *testing.T) {
	for _, c := range []struct {
		name          string
		count, wanted int64
		measured      map[float64]float64
		within        float64
	}{
		{"rows, 10 M nodes", 10_000_000, 48_894, map[float64]float64{24: 970_336, 81: 2_624_656, 180: 4_528_228, 405: 6_882_438, 909: 8_824_049}, 0.06},
		{"lists of its last hop", 10_000_000, 9023, map[float64]float64{24: 201_239, 180: 1_259_579, 909: 4_267_846}, 0.06},
		{"rows, 56 M nodes", 55_529_978, 489_401, map[float64]float64{16: 6_302_607, 54: 16_598_231, 180: 34_502_552}, 0.06},
		{"rows, ogbn-arxiv", 169_343, 3685, map[float64]float64{8: 25_020, 36: 70_134, 180: 133_134, 909: 164_395}, 0.15},
		{"lists of its last hop", 169_343, 972, map[float64]float64{8: 7766, 81: 51_313, 909: 146_491}, 0.12},
	} {
		p := popularityOf(c.count, float64(c.wanted))
		require.InEpsilon(t, c.wanted, p.of(1), 1e-6, c.name)
		for steps, measured := range c.measured {
			require.InEpsilon(t, measured, p.of(steps), c.within, "%s: %g steps", c.name, steps)
		}
		require.InEpsilon(t, c.wanted, p.distinct(p.uses(float64(c.wanted))), 1e-6)
	}
	all := popularityOf(100, 100)
	require.InDelta(t, 100, all.of(1), 1e-6, "each step wants all")
	require.InDelta(t, 100, all.of(1e9), 1e-6)
	require.Zero(t, popularityOf(100, 0).of(0))
	require.Less(t, popularityOf(100, 0).of(1e6), 1.0)
}
