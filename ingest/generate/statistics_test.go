package generate

import (
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestBijection(t *testing.T) {
	for _, n := range []uint32{1, 2, 3, 4, 5, 15, 16, 17, 1000, 65535, 65536, 100_003} {
		b := newBijection(n, uint64(n))
		seen := make([]bool, n)
		for rank := range n {
			id := b.id(rank)
			require.False(t, seen[id], "%d of %d", id, n)
			seen[id] = true
			require.Equal(t, rank, b.rank(id))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, math.MaxUint32).Draw(t, "n")
		b := newBijection(n, rapid.Uint64().Draw(t, "key"))
		rank := rapid.Uint32Range(0, n-1).Draw(t, "rank")
		id := b.id(rank)
		require.Less(t, id, n)
		require.Equal(t, rank, b.rank(id))
		high, low := b.digits(n - 1)
		require.EqualValues(t, uint64(n-1)/b.base, high)
		require.EqualValues(t, uint64(n-1)%b.base, low)
	})
}

// TestScattered: neighbours in rank are not neighbours in id.
func TestScattered(t *testing.T) {
	const n = 1 << 20
	b := newBijection(n, 7)
	var buckets [64]int
	apart := 0.0
	for rank := range uint32(1 << 14) { // the first community, say
		buckets[b.id(rank)/(n/64)]++
		apart += math.Abs(float64(b.id(rank)) - float64(b.id(rank+1)))
	}
	for _, k := range buckets {
		require.InDelta(t, 256, k, 80) // five standard deviations
	}
	require.InDelta(t, n/3, apart/(1<<14), n/50) // of two random ids
}

func TestCommunities(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, 100_000).Draw(t, "n")
		classes := rapid.IntRange(1, 300).Draw(t, "classes")
		cs := newCommunities(n, classes)
		require.Equal(t, classes, cs.count())
		require.True(t, slices.IsSorted(cs.first))
		require.Equal(t, n, cs.first[classes])
		if n >= uint32(classes) {
			for c := range classes {
				require.NotZero(t, cs.size(c))
			}
		}
		rank := rapid.Uint32Range(0, n-1).Draw(t, "rank")
		c := cs.of(rank)
		require.True(t, cs.first[c] <= rank && rank < cs.first[c+1])
	})
	// Of full size.
	cs := newCommunities(math.MaxUint32, 172)
	require.Less(t, len(cs.guide), guideBlocks+1)
	require.Equal(t, 171, cs.of(math.MaxUint32-1))
	require.InDelta(t, 9.1, float64(cs.size(0))/float64(cs.size(171)), 0.1, "(171 + 21)/21")
}

// TestQuantile: the density at 0 is hubs, and a share y of the ends has its inverse.
func TestQuantile(t *testing.T) {
	for _, hubs := range []float64{1.5, 30, 1000, 10_000} {
		q := newQuantile(hubs)
		require.InDelta(t, 0, q.at(0), 1e-12)
		require.InDelta(t, 1, q.at(1), 1e-12)
		require.InEpsilon(t, hubs, 1e-9/q.at(1e-9), 1e-3)
		for y := 0.0; y < 1; y += 0.01 {
			require.Less(t, q.at(y), q.at(y+0.01))
		}
	}
}

// measured has the statistics of a relation that tests check.
type measured struct {
	in, out           []int // by id
	inside            float64
	loops, duplicates int
}

func measure(s *Source, i int, g *sourcetest.Graph) measured {
	r := s.relations[i]
	m := measured{in: make([]int, r.dst.count), out: make([]int, r.src.count)}
	seen := map[[2]int64]bool{}
	for k, u := range g.Edges[i].Src {
		v := g.Edges[i].Dst[k]
		m.in[v]++
		m.out[u]++
		if r.src.of(r.src.ids.rank(uint32(u))) == r.dst.of(r.dst.ids.rank(uint32(v))) {
			m.inside += 1 / float64(len(g.Edges[i].Src))
		}
		if u == v && r.src == r.dst {
			m.loops++
		}
		if e := [2]int64{u, v}; seen[e] {
			m.duplicates++
		} else {
			seen[e] = true
		}
	}
	return m
}

// exponent is Hill's estimate (A simple general approach to inference about the tail of a
// distribution, 1975) from the largest k degrees.
func exponent(degrees []int, k int) float64 {
	d := slices.Clone(degrees)
	slices.Sort(d)
	slices.Reverse(d)
	sum := 0.0
	for _, x := range d[:k] {
		sum += math.Log(float64(x) / float64(d[k]))
	}
	return 1 + float64(k)/sum
}

func TestDegrees(t *testing.T) {
	o := Options{Nodes: 40_000, Edges: 600_000, Dim: 1, Classes: 20}
	s := open(t, "papers100m", o)
	g := read(t, s)
	m := measure(s, 0, g)
	for name, degrees := range map[string][]int{"in": m.in, "out": m.out} {
		sum := 0
		for _, d := range degrees {
			sum += d
		}
		require.Equal(t, 600_000, sum)
		require.InDelta(t, 2.5, exponent(degrees, 500), 0.2, name)
		require.InDelta(t, 2.5, exponent(degrees, 4000), 0.2, name)
	}
	// In-degrees of a community follow the curve one by one.
	c := 3
	size, edges := s.types[0].size(c), s.relations[0].first[c+1]-s.relations[0].first[c]
	q := newQuantile(10_000)
	j, sum := uint32(0), 0
	for y := 0.5; y < float64(edges) && j < size; y++ {
		for ; place(q.at(y/float64(edges)), size) > j; j++ {
			require.GreaterOrEqual(t, m.in[s.types[0].ids.id(s.types[0].first[c]+j)], 1)
			sum += m.in[s.types[0].ids.id(s.types[0].first[c]+j)]
			require.Equal(t, int(y), sum, "node %d", j)
		}
	}
	require.Equal(t, size-1, j)

	require.InDelta(t, s.shape.homophily+(1-s.shape.homophily)*byChance(s), m.inside, 0.003)
	require.Greater(t, m.loops, 0)
	require.Less(t, m.loops, 6000)
	require.Less(t, m.duplicates, 60_000)
	t.Logf("%d self loops, %d repeated edges of %d", m.loops, m.duplicates, len(g.Edges[0].Src))
}

// byChance is the share of edges to anyone that stay in the community.
func byChance(s *Source) (share float64) {
	n := float64(s.types[0].count)
	for c := range s.types[0].communities.count() {
		share += float64(s.types[0].size(c)) / n * float64(s.types[0].size(c)) / n
	}
	return share
}

// TestHomophily: the share of edges within communities is as asked for, between types as well.
func TestHomophily(t *testing.T) {
	for _, h := range []float64{0.2, 1} {
		s := open(t, "mag240m", Options{Nodes: 200_000, Edges: 300_000, Dim: 1, Classes: 12, Homophily: h})
		g := read(t, s)
		for i, r := range s.relations {
			if r.dst.count < 1000 {
				continue // few institutions make no statistics
			}
			require.InDelta(t, h+(1-h)*byChance(s), measure(s, i, g).inside, 0.01)
		}
	}
}

// TestFeatures: noise of 1 a column about means that are Signal long and differ, and no more of a
// row says anything.
func TestFeatures(t *testing.T) {
	const dim, classes, signal = 64, 5, 3
	s := open(t, "papers100m", Options{Nodes: 20_000, Edges: 1, Dim: dim, Classes: classes, Signal: signal, Train: 1})
	g := read(t, s)
	var mean [classes][dim]float64
	var size [classes]float64
	for v, c := range g.Labels[0] {
		size[c]++
		for i, x := range g.Rows[0][v*dim : (v+1)*dim] {
			mean[c][i] += float64(x)
		}
	}
	squares, fourth := 0.0, 0.0
	for c := range mean {
		length := 0.0
		for i := range mean[c] {
			mean[c][i] /= size[c]
			require.InDelta(t, s.features.means[c*dim+i], mean[c][i], 6/math.Sqrt(size[c]))
			length += mean[c][i] * mean[c][i]
		}
		require.InDelta(t, signal, math.Sqrt(length), 0.25*signal)
	}
	for v, c := range g.Labels[0] {
		for i, x := range g.Rows[0][v*dim : (v+1)*dim] {
			d := float64(x) - mean[c][i]
			squares += d * d / float64(len(g.Rows[0]))
			fourth += d * d * d * d / float64(len(g.Rows[0]))
		}
	}
	require.InDelta(t, 1, squares, 0.01)
	require.InDelta(t, 3, fourth/squares/squares, 0.1, "as a normal distribution's")
	// Columns of a row that share a hash are independent.
	products := 0.0
	for v := range 20_000 {
		c := g.Labels[0][v]
		products += (float64(g.Rows[0][v*dim]) - mean[c][0]) * (float64(g.Rows[0][v*dim+1]) - mean[c][1]) / 20_000
	}
	require.InDelta(t, 0, products, 0.04)
}

// TestParts: the split's sizes scale, and its nodes are scattered over ids and classes.
func TestParts(t *testing.T) {
	s := open(t, "papers100m", Options{Scale: 0.001, Dim: 1})
	require.Equal(t, [3]int64{1207, 125, 214}, s.shape.parts)
	require.Equal(t, [3]int64{600, 300, 100}, open(t, "reddit", Options{Nodes: 1000, Train: 0.6, Valid: 0.3, Test: 0.1}).shape.parts)
	require.Equal(t, [3]int64{2, 1, 1}, open(t, "papers100m", Options{Nodes: 172}).shape.parts, "none is empty")
	g := read(t, s)
	half, classes := 0, map[int32]int{}
	for _, v := range g.Splits[0][ingest.Train].Numbers {
		if v < 111_060/2 {
			half++
		}
		classes[g.Labels[0][v]]++
	}
	require.InDelta(t, 1207/2, half, 90)
	require.Greater(t, len(classes), 150)
}

// TestWeakAloneStrongTogether measures, at full size, what the best possible guess of a class makes
// of a node's own row, which bounds every model without neighbours, and what it makes of the mean
// of its in-neighbours' rows, which is much of what one layer of GraphSAGE sees. Both know the
// classes' means, so that neither depends on the training nodes.
func TestWeakAloneStrongTogether(t *testing.T) {
	for _, kind := range []string{"papers100m", "reddit", "products", "mag240m"} {
		s := open(t, kind, Options{Dim: 96}) // only the speed of this test depends on it
		i := len(s.relations) - 1            // of mag240m: papers cite papers
		r, p, f := s.relations[i], s.types[0], s.features
		prior := make([]float64, p.communities.count())
		center := make([]float64, f.dim)
		for c := range prior {
			prior[c] = float64(p.size(c)) / float64(p.count)
			for k := range center {
				center[k] += prior[c] * float64(f.means[c*f.dim+k])
			}
		}
		// guess returns the likeliest class for the mean of n rows, a share of them from it and the
		// rest from any.
		guess := func(row []float64, n, share float64) (best int) {
			most := math.Inf(-1)
			for c := range prior {
				fit := math.Log(prior[c]) / n
				for k, x := range row {
					m := share*float64(f.means[c*f.dim+k]) + (1-share)*center[k]
					fit -= (x - m) * (x - m) / 2
				}
				if fit > most {
					best, most = c, fit
				}
			}
			return best
		}
		alone, together, nodes := 0, 0, 0
		row := make([]float32, f.dim)
		src, dst := make([]int64, 4096), make([]int64, 4096)
		for sample := range int64(200) {
			r.fill(src, dst, sample*(r.edges/200))
			from := 0
			for from < len(dst) && dst[from] == dst[0] { // maybe not all of its edges
				from++
			}
			if from == len(dst) {
				continue // a hub
			}
			to := from
			for to < len(dst) && dst[to] == dst[from] {
				to++
			}
			c := p.of(p.ids.rank(uint32(dst[from])))
			own, sum := make([]float64, f.dim), make([]float64, f.dim)
			f.row(row, uint32(dst[from]))
			for k, x := range row {
				own[k] = float64(x)
			}
			for _, u := range src[from:to] {
				f.row(row, uint32(u))
				for k, x := range row {
					sum[k] += float64(x) / float64(to-from)
				}
			}
			nodes++
			if guess(own, 1, 1) == c {
				alone++
			}
			if guess(sum, float64(to-from), r.homophily) == c {
				together++
			}
		}
		t.Logf("%s: of %d nodes, %d by their own row, %d by their neighbours' mean", kind, nodes, alone, together)
		require.Greater(t, nodes, 150)
		require.Less(t, float64(alone), 0.36*float64(nodes), kind)
		require.Greater(t, float64(together), 0.6*float64(nodes), kind)
	}
}
