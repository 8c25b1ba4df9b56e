package generate

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

// mixed is a small graph of the kind with traits, all of it labelled.
func mixed(t *testing.T, o Options) (*Source, *sourcetest.Graph) {
	o.Nodes, o.Edges, o.Train, o.Valid, o.Test = 40_000, 600_000, 0.6, 0.2, 0.2
	s := open(t, "citations", o)
	return s, read(t, s)
}

// correlation is Spearman's: of ranks, with equal values in any order.
func correlation(x, y []int) float64 {
	rank := func(x []int) []float64 {
		order := make([]int, len(x))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return x[a] - x[b] })
		r := make([]float64, len(x))
		for at, i := range order {
			r[i] = float64(at)/float64(len(x)) - 0.5
		}
		return r
	}
	sum, a, b := 0.0, rank(x), rank(y)
	for i := range a {
		sum += a[i] * b[i]
	}
	return 12 * sum / float64(len(x))
}

// TestLeaves: almost half of the nodes have one edge or none leading to them, the others follow the
// power law, and what leads to a node says nothing of what leads from it. In the other kinds the
// two go together.
func TestLeaves(t *testing.T) {
	s, g := mixed(t, Options{Dim: 1})
	m := measure(s, 0, g)
	var counts [2]int
	for _, d := range m.in {
		if d < 2 {
			counts[d]++
		}
	}
	require.InDelta(t, 0.15, float64(counts[0])/40_000, 0.005)
	require.InDelta(t, 0.30, float64(counts[1])/40_000, 0.005)
	require.InDelta(t, 2.5, exponent(m.in, 500), 0.2)
	require.InDelta(t, 0, correlation(m.in, m.out), 0.02) // four standard deviations
	require.InDelta(t, 0.7+0.3*byChance(s), m.inside, 0.003)

	other := open(t, "papers100m", Options{Nodes: 40_000, Edges: 600_000, Dim: 1})
	m = measure(other, 0, read(t, other))
	require.Greater(t, correlation(m.in, m.out), 0.3)
	require.NotContains(t, m.in, 0)
}

// TestClassesAreNoCommunities: each half of a community has two classes, in shares that move with
// time, and each class two halves.
func TestClassesAreNoCommunities(t *testing.T) {
	s, g := mixed(t, Options{Dim: 1, Classes: 10})
	var swapped, all [periods]float64
	for v, class := range g.Labels[0] {
		pool, period, _ := s.traits.home(uint32(v))
		require.Equal(t, pool/2, int(class)/2)
		all[period]++
		if pool != int(class) {
			swapped[period]++
		}
	}
	for p := range periods {
		require.InDelta(t, swapsFirst+(swapsLast-swapsFirst)*float64(p)/(periods-1), swapped[p]/all[p], 0.04)
	}
}

// TestTime: the split is by time, in sizes that are exact; communities grow and fade.
func TestTime(t *testing.T) {
	s, g := mixed(t, Options{Dim: 1})
	at := make([]bool, 40_000)
	lo := 0
	for part, ids := range g.Splits[0].Numbers() {
		require.Len(t, ids, []int{24_000, 8_000, 8_000}[part])
		for _, v := range ids {
			_, _, when := s.traits.home(uint32(v))
			require.True(t, int(when) >= lo && int(when) < lo+len(ids))
			require.False(t, at[when])
			at[when] = true
		}
		lo += len(ids)
	}
	// Of the classes' shares, the train and the test part differ by more than chance: χ², 39
	// degrees of freedom.
	var shares [3][40]float64
	for part, ids := range g.Splits[0].Numbers() {
		for _, v := range ids {
			shares[part][g.Labels[0][v]]++
		}
	}
	square := 0.0
	for c := range 40 {
		both := (shares[0][c] + shares[2][c]) / 32_000
		for part, n := range map[int]float64{0: 24_000, 2: 8_000} {
			d := shares[part][c] - n*both
			square += d * d / (n * both)
		}
	}
	require.Greater(t, square, 500.0, "below 73 in all but one of a thousand graphs without drift")
	// What is not asked for is the newest, and has no label.
	few := open(t, "citations", Options{Nodes: 1000, Edges: 1, Dim: 1, Train: 0.5})
	for v := range uint32(1000) {
		_, _, when := few.traits.home(v)
		require.Equal(t, when < 500, few.part(v) == int(ingest.Train))
		require.Equal(t, when < 500, few.label(v) >= 0)
	}
}

// TestTraits: noise is strong in a few directions that all share; means move; and within a
// community the halves have the same mean, while the product of two traits tells them apart.
func TestTraits(t *testing.T) {
	const dim = 64
	s, g := mixed(t, Options{Dim: dim, Classes: 4})
	f := s.traits
	dot := func(a, b []float32) (sum float64) {
		for i := range a {
			sum += float64(a[i]) * float64(b[i])
		}
		return sum
	}
	unitOf := func(v []float32) []float32 {
		u, length := slices.Clone(v), float32(math.Sqrt(dot(v, v)))
		for i := range u {
			u[i] /= length
		}
		return u
	}
	variance := func(direction []float32) float64 {
		sum, squares := 0.0, 0.0
		for v := range 40_000 {
			x := dot(g.Rows[0][v*dim:(v+1)*dim], direction)
			sum, squares = sum+x/40_000, squares+x*x/40_000
		}
		return squares - sum*sum
	}
	for i := range f.strong {
		require.Greater(t, variance(unitOf(f.strong[i])), 8.0, "direction %d", i)
	}
	weak := make([]float32, dim)
	var total float64
	for i := range weak {
		weak[i] = 1
		total += variance(weak)
		weak[i] = 0
	}
	require.Greater(t, 4*variance(unitOf(f.strong[0])), 0.3*total, "of all variance")

	// The directions of the two traits, by the sums of the signs' rows.
	first, second := make([]float32, dim), make([]float32, dim)
	for i := range dim {
		first[i] = f.directions[1][i] - f.directions[0][i]
		second[i] = f.directions[2][i] - f.directions[0][i]
	}
	a, b := unitOf(first), unitOf(second)
	var mean [4][dim]float64 // by pool
	var product, size [4]float64
	var when, along, rows [2][2]float64 // by community, early and late
	for v := range uint32(40_000) {
		pool, period, _ := f.home(v)
		row := g.Rows[0][int(v)*dim : int(v+1)*dim]
		size[pool]++
		product[pool] += dot(row, a) * dot(row, b)
		for i, x := range row {
			mean[pool][i] += float64(x)
		}
		c, late := pool/2, 2*period/periods
		when[c][late] += float64(period) / (periods - 1)
		along[c][late] += dot(row, unitOf(f.moves[c*dim:(c+1)*dim]))
		rows[c][late]++
	}
	for pool := range 4 {
		product[pool] /= size[pool]
		for i := range dim {
			mean[pool][i] /= size[pool]
		}
	}
	for c := range 2 {
		move := f.moves[c*dim : (c+1)*dim]
		way := (when[c][1]/rows[c][1] - when[c][0]/rows[c][0]) * math.Sqrt(dot(move, move))
		require.InDelta(t, way, along[c][1]/rows[c][1]-along[c][0]/rows[c][0], 0.2)
		require.Greater(t, way, 0.4)
		require.Greater(t, product[2*c]-product[2*c+1], 2.0)
		apart := 0.0
		for i := range dim {
			d := mean[2*c][i] - mean[2*c+1][i]
			apart += d * d
		}
		require.Less(t, math.Sqrt(apart), 0.35, "of halves, whose traits are %v long", traitLength*s.shape.signal)
	}
}
