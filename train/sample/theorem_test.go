package sample

import (
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestFewerSeedsReachASubset: under one z what some seeds reach is within what more of them reach,
// at every layer (Balin et al., Cooperative Minibatching, the coupling behind theorem 3.1).
// LABOR-*, whose probabilities depend on all seeds, does not claim it.
func TestFewerSeedsReachASubset(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		topo, c := graph(t), config(t)
		if c.Kind == LaborStar {
			c.Kind = Labor0
		}
		seeds, z, s := someSeeds(t, topo), anyZ(t), newSingle(topo, c)
		var all, some Batch
		require.NoError(t, s.Sample(&all, z, seeds))
		require.NoError(t, s.Sample(&some, z, seeds[:rapid.IntRange(0, len(seeds)).Draw(t, "fewer")]))
		for l := range all.Layers {
			require.Subset(t, all.flat(l).Src, some.flat(l).Src, "layer %d of %+v", l, c)
		}
	})
}

// reach returns for each of trials orders the number of nodes that batches of the first seeds read,
// for sizes that are multiples of step.
func reach(t *testing.T, c Config, step, sizes, trials int) (reads [][]float64) {
	topo := skewed(3000, 16)
	s, order := newSingle(topo, c), make([]uint32, topo.Nodes())
	for v := range order {
		order[v] = uint32(v)
	}
	var b Batch
	for trial := range trials {
		Shuffle(order, 1, trial)
		z := BatchSeed{Hash(2, uint64(trial)), Hash(3, uint64(trial)), 0.3}
		own := []float64{0}
		for n := 1; n <= sizes; n++ {
			require.NoError(t, s.Sample(&b, z, order[:n*step]))
			own = append(own, float64(len(b.Inputs()[0])))
		}
		reads = append(reads, own)
	}
	return reads
}

// TestReachIsConcave: E|S³| is concave in |S⁰| (theorem 3.2 there), so that work per seed falls as
// batches grow; and LABOR-0 reads fewer nodes than neighbour sampling does. All with confidence
// intervals; LABOR-* and RW are reported, not judged.
func TestReachIsConcave(t *testing.T) {
	storetest.Long(t)
	const step, sizes, trials = 20, 6, 30
	reads := map[string][][]float64{}
	for _, c := range everyKind() {
		if c = c.with(4, 4, 4); c.Weighted { // the graph has no weights
			continue
		}
		reads[c.name()] = reach(t, c, step, sizes, trials)
		report := ""
		for n := 1; n <= sizes; n++ {
			var size, bend moments
			for _, own := range reads[c.name()] {
				size.add(own[n])
				if n < sizes {
					bend.add(own[n+1] - 2*own[n] + own[n-1])
				}
			}
			report += fmt.Sprintf(" %4d: %6.1f ± %4.1f", n*step, size.mean(), sigmas*size.deviation())
			if n < sizes && c.Kind != LaborStar && c.Kind != RW {
				require.Less(t, bend.mean()-sigmas*bend.deviation(), 0.0, "%s bends up at %d seeds", c.name(), n*step)
				if n == 1 {
					require.Less(t, bend.mean()+sigmas*bend.deviation(), 0.0, "%s is straight", c.name())
				}
			}
		}
		t.Logf("%-52s%s", c.name(), report)
	}
	for _, smoothed := range []bool{false, true} {
		ns, labor := reads[Config{Kind: NS, Smoothed: smoothed}.name()], reads[Config{Kind: Labor0, Smoothed: smoothed}.name()]
		for n := 1; n <= sizes; n++ {
			var saved moments
			for trial := range ns {
				saved.add(ns[trial][n] - labor[trial][n])
			}
			require.Greater(t, saved.mean()-sigmas*saved.deviation(), 0.0, "%d seeds, smoothed %v", n*step, smoothed)
		}
	}
}

// uneven returns a graph in which node 0 has 41 neighbours, itself among them. 20 of them are the
// only neighbours of other nodes, so LABOR-* keeps them for certain: more than it has room for at a
// fanout of 1.
func uneven() weighing {
	topo := weighing{make(lists, 41), nil}
	for u := range uint32(41) {
		topo.lists[0] = append(topo.lists[0], u) // itself as well
		topo.weights = append(topo.weights, float32(1+u%5)*float32(1+u%2*3))
		switch {
		case u > 20:
			topo.lists[u] = []uint32{u - 20}
		case u > 0:
			for w := range 2 * u {
				topo.lists[u] = append(topo.lists[u], w)
			}
		}
	}
	return topo
}

// value returns the value of a node of uneven: larger with more neighbours.
func (w weighing) value(u uint32) float64 { return 1 + float64(len(w.lists[u])) }

// TestSumsAreUnbiased: over draws, the sum over drawn neighbours, each as often as its weight says,
// has the mean that it has over all of them (Horvitz and Thompson 1952): GCN's sums, and sums with
// weights before they are scaled to add up to 1.
func TestSumsAreUnbiased(t *testing.T) {
	const trials = 3000
	topo := uneven()
	seeds := []uint32{0, 7, 20}
	for u := uint32(21); u <= 40; u++ {
		seeds = append(seeds, u)
	}
	sums := func(b flat) (sums [3]float64) {
		for i := range sums {
			for e := b.Start[i]; e < b.End[i]; e++ {
				sums[i] += float64(b.Weight[e]) * topo.value(b.Src[b.Nbr[e]])
			}
		}
		return sums
	}
	for _, c := range everyKind() {
		if c.Kind == RW {
			continue
		}
		for _, gcn := range []bool{true, false} {
			if gcn && c.Weighted || !gcn && !c.Weighted && c.Kind != LaborStar {
				continue
			}
			c.Options = Options{SelfLoops: true, GCN: gcn}
			var all, b Batch
			require.NoError(t, newSingle(topo, c.with(All)).Sample(&all, BatchSeed{}, seeds))
			want := sums(all.flat(0))
			for _, k := range []int{1, 4} {
				s := newSingle(topo, c.with(k))
				var got [3]moments
				for i := range uint64(trials) {
					require.NoError(t, s.Sample(&b, BatchSeed{Hash(8, i), Hash(9, i), 0.4}, seeds))
					for i, sum := range sums(b.flat(0)) {
						got[i].add(sum)
					}
				}
				for i := range got {
					got[i].requireMean(t, want[i], "%s, gcn=%v, fanout %d, seed %d", c.name(), gcn, k, seeds[i])
				}
			}
		}
	}
}

// TestMeansAreWithinTheirBound: what weights that add up to 1 estimate is a ratio of two sums that
// are unbiased, and so off its mean by at most its deviation times the relative deviation of the
// lower one (Hartley and Ross 1954), which falls as 1/k.
func TestMeansAreWithinTheirBound(t *testing.T) {
	const trials = 3000
	topo := uneven()
	for _, c := range []Config{
		{Kind: NS, Weighted: true}, {Kind: NS, Weighted: true, Smoothed: true}, {Kind: LaborStar}, {Kind: LaborStar, Smoothed: true},
		{Kind: Labor0, Poisson: true},
	} {
		above, below := 0.0, 0.0
		for at, u := range topo.lists[0] {
			w := 1.0
			if c.Weighted {
				w = float64(topo.weights[at])
			}
			above += w * topo.value(u)
			below += w
		}
		truth, last := above/below, math.Inf(1)
		for _, k := range []int{2, 8, 32} {
			raw := c.with(k)
			raw.SelfLoops = true
			s, unscaled := newSingle(topo, c.with(k)), newSingle(topo, raw)
			var b, counts Batch
			var mean, size moments
			for i := range uint64(trials) {
				z, seeds := BatchSeed{Hash(10, i), Hash(11, i), 0.4}, []uint32{0, 7, 20}
				require.NoError(t, s.Sample(&b, z, seeds))
				require.NoError(t, unscaled.Sample(&counts, z, seeds))
				block, total, n := b.flat(0), 0.0, 0.0
				for e := block.Start[0]; e < block.End[0]; e++ {
					w := 1 / float64(block.End[0]-block.Start[0])
					if len(block.Weight) > 0 {
						w = float64(block.Weight[e])
					}
					total += w * topo.value(block.Src[block.Nbr[e]])
				}
				mean.add(total)
				if block = counts.flat(0); len(block.Weight) > 0 {
					for e := block.Start[0]; e < block.End[0]; e++ {
						n += float64(block.Weight[e])
					}
				} else {
					n = float64(b.flat(0).End[0])
				}
				size.add(n)
			}
			bound := math.Sqrt(mean.variance()) * math.Sqrt(size.variance()) / size.mean()
			bias := mean.mean() - truth
			require.LessOrEqual(t, math.Abs(bias), bound+sigmas*mean.deviation(), "%s, fanout %d", c.name(), k)
			require.Less(t, bound, last, "%s, fanout %d", c.name(), k)
			t.Logf("%s, fanout %2d: %6.2f of %6.2f, off by %6.3f, at most %6.3f", c.name(), k, mean.mean(), truth, bias, bound)
			last = bound / 2
		}
	}
}
