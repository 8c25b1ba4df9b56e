package sample

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
)

// Bounds in this file and its neighbours lie at about p = 1e-6, and all seeds are fixed: what fails
// here is wrong.
const sigmas = 4.9 // on both sides of a normal distribution

// chiSquared is the quantile of the χ² distribution at 1 - 1e-6, by Wilson and Hilferty's
// approximation, which is on the safe side where there are few degrees of freedom.
func chiSquared(degrees int) float64 {
	v := 2 / (9 * float64(degrees))
	return float64(degrees) * math.Pow(1-v+4.753*math.Sqrt(v), 3)
}

// requireShares holds how often each outcome came against its probability, by Pearson's χ². Rare
// outcomes count as one.
func requireShares[K comparable](t *testing.T, p map[K]float64, counts map[K]int, about string, args ...any) {
	t.Helper()
	trials, total := 0, 0.0
	for k, n := range counts {
		require.Positive(t, p[k], "%v cannot be: %s", k, fmt.Sprintf(about, args...))
		trials += n
	}
	x, cells, rare, seldom := 0.0, 0, 0.0, 0
	for k, q := range p {
		total += q
		if e := q * float64(trials); e < 10 {
			rare, seldom = rare+e, seldom+counts[k]
		} else {
			x += (float64(counts[k]) - e) * (float64(counts[k]) - e) / e
			cells++
		}
	}
	require.InDelta(t, 1, total, 1e-9, "probabilities")
	if rare > 10 {
		x += (float64(seldom) - rare) * (float64(seldom) - rare) / rare
		cells++
	} else {
		require.Less(t, float64(seldom), 40.0)
	}
	if cells > 1 {
		require.Less(t, x, chiSquared(cells-1), fmt.Sprintf(about, args...))
	}
}

// requireIndependent holds how often pairs of outcomes came together against the product of how
// often each came.
func requireIndependent(t *testing.T, pairs map[[2]uint64]int, about string, args ...any) {
	t.Helper()
	rows, columns, trials := map[uint64]int{}, map[uint64]int{}, 0
	for k, n := range pairs {
		rows[k[0]] += n
		columns[k[1]] += n
		trials += n
	}
	x, rare, seldom := 0.0, 0.0, 0
	for a, n := range rows {
		for b, m := range columns {
			e, o := float64(n)*float64(m)/float64(trials), pairs[[2]uint64{a, b}]
			if e < 5 {
				rare, seldom = rare+e, seldom+o
			} else {
				x += (float64(o) - e) * (float64(o) - e) / e
			}
		}
	}
	if rare > 0 {
		x += (float64(seldom) - rare) * (float64(seldom) - rare) / max(rare, 1)
	}
	require.Greater(t, len(rows)*len(columns), 3, "outcomes that vary")
	require.Less(t, x, chiSquared((len(rows)-1)*(len(columns)-1)+1), fmt.Sprintf(about, args...))
}

// chosen is the set of destination i's neighbours, which are below 64, a bit each.
func (b flat) chosen(i int) (set uint64) {
	for _, p := range b.Nbr[b.Start[i]:b.End[i]] {
		set |= 1 << b.Src[p]
	}
	return set
}

// sets returns the probability p of every set of ids; sets of probability 0 are left out.
func sets(ids []uint32, p func(set []uint32) float64) map[uint64]float64 {
	all := map[uint64]float64{}
	for bits := range 1 << len(ids) {
		key, set := uint64(0), []uint32(nil)
		for i, u := range ids {
			if bits>>i&1 != 0 {
				key, set = key|1<<u, append(set, u)
			}
		}
		if q := p(set); q > 0 {
			all[key] = q
		}
	}
	return all
}

// alike gives all sets of k the same probability.
func alike(ids []uint32, k int) map[uint64]float64 {
	n := 1.0
	for i := range k {
		n = n * float64(len(ids)-i) / float64(i+1)
	}
	return sets(ids, func(set []uint32) float64 {
		if len(set) != k {
			return 0
		}
		return 1 / n
	})
}

// apart keeps each of ids with a probability of its own.
func apart(ids []uint32, p []float64) map[uint64]float64 {
	return sets(ids, func(set []uint32) float64 {
		q := 1.0
		for i, u := range ids {
			if slices.Contains(set, u) {
				q *= p[i]
			} else {
				q *= 1 - p[i]
			}
		}
		return q
	})
}

// oneByOne draws k of ids, each with a probability in proportion to its weight among those that are
// left.
func oneByOne(ids []uint32, weights []float32, k int) map[uint64]float64 {
	all := map[uint64]float64{}
	var draw func(set uint64, q float64, n int)
	draw = func(set uint64, q float64, n int) {
		left := 0.0
		for i, u := range ids {
			if set>>u&1 == 0 {
				left += float64(weights[i])
			}
		}
		if n == k || left == 0 {
			all[set] += q
			return
		}
		for i, u := range ids {
			if set>>u&1 == 0 && weights[i] > 0 {
				draw(set|1<<u, q*float64(weights[i])/left, n+1)
			}
		}
	}
	draw(0, 1, 0)
	return all
}

// TestSetsAreDrawnAsOftenAsTheyShould: every set of neighbours, so every neighbour and every pair
// as well, and at every drift.
func TestSetsAreDrawnAsOftenAsTheyShould(t *testing.T) {
	storetest.Long(t)
	const trials = 20_000
	// 0 has six neighbours, of which the batch has some for 7 as well, which keeps all of its two
	// at fanouts of 2 and 3.
	weights := []float32{0.5, 3, 0, 1, 2, 8}
	topo := weighing{lists{{1, 2, 3, 4, 5, 6}, {}, {}, {}, {}, {}, {}, {1, 2}, {}}, weights}
	ids := topo.lists[0]
	for _, c := range []struct {
		Config
		want func(c Config, k int) map[uint64]float64
	}{
		{Config{Kind: NS}, func(_ Config, k int) map[uint64]float64 { return alike(ids, k) }},
		{Config{Kind: NS, Weighted: true}, func(_ Config, k int) map[uint64]float64 { return oneByOne(ids, weights, k) }},
		{Config{Kind: Labor0}, func(_ Config, k int) map[uint64]float64 { return alike(ids, k) }},
		{Config{Kind: Labor0, Poisson: true}, func(_ Config, k int) map[uint64]float64 {
			return apart(ids, slices.Repeat([]float64{float64(k) / 6}, 6))
		}},
		{Config{Kind: LaborStar}, func(c Config, k int) map[uint64]float64 {
			w := reference{Config: c}
			p := w.probabilities([][]uint32{topo.lists[0], topo.lists[7]}, []int{k, k})[0]
			require.Greater(t, p[0], p[5], "who is in the batch anyway is kept more readily")
			return apart(ids, p)
		}},
	} {
		for _, k := range []int{2, 3} {
			for _, drift := range []float64{-1, 0, 0.1, 0.5, 0.9} { // -1: not smoothed
				if c.Smoothed = drift >= 0; k == 3 && drift > 0.1 {
					continue
				}
				c.Fanouts = []int{k}
				s, counts := newSingle(topo, c.Config), map[uint64]int{}
				var b Batch
				for i := range uint64(trials) {
					require.NoError(t, s.Sample(&b, BatchSeed{Hash(1, i), Hash(2, i), max(drift, 0)}, []uint32{0, 7}))
					counts[b.flat(0).chosen(0)]++
				}
				requireShares(t, c.want(c.Config, k), counts, "%+v at drift %v", c.Config, drift)
			}
		}
	}
}

// TestParallelEdges: two of three edges come from node 1. NS draws edges; under LABOR-0 node 1 has
// one number, and so no better chances than node 2, but under Poisson each edge has the probability
// k/d.
func TestParallelEdges(t *testing.T) {
	const one, two, trials = 1 << 1, 1 << 2, 20_000
	for _, c := range []struct {
		Config
		want map[uint64]float64
	}{
		{Config{Kind: NS}, map[uint64]float64{one: 2 / 3., two: 1 / 3.}},
		{Config{Kind: NS, Smoothed: true}, map[uint64]float64{one: 2 / 3., two: 1 / 3.}},
		{Config{Kind: Labor0}, map[uint64]float64{one: 1 / 2., two: 1 / 2.}},
		{Config{Kind: Labor0, Poisson: true}, map[uint64]float64{0: 4 / 9., one: 2 / 9., two: 2 / 9., one | two: 1 / 9.}},
	} {
		s, counts := newSingle(lists{{1, 1, 2}, {}, {}}, c.with(1)), map[uint64]int{}
		var b Batch
		for i := range uint64(trials) {
			require.NoError(t, s.Sample(&b, BatchSeed{Hash(1, i), Hash(2, i), 0.5}, []uint32{0}))
			counts[b.flat(0).chosen(0)]++
		}
		requireShares(t, c.want, counts, "%s", c.name())
	}
}

// walksOf enumerates what walks from v visit, in order, each way with its probability. Steps that
// go nowhere visit v, which is not counted.
func walksOf(topo lists, v uint32, w Walk, each func(visits []uint32, p float64)) {
	var visits []uint32
	var begin func(n int, at uint32, p float64)
	step := func(n int, at uint32, p float64) {
		next := topo[at]
		if len(next) == 0 {
			next = []uint32{v}
		}
		for _, u := range next {
			visits = append(visits, u)
			begin(n+1, u, p/float64(len(next)))
			visits = visits[:n]
		}
	}
	begin = func(n int, at uint32, p float64) {
		switch {
		case n == w.Walks*w.Length:
			each(visits, p)
		case n%w.Length == 0:
			step(n, v, p)
		default:
			step(n, v, p*w.Restart)
			step(n, at, p*(1-w.Restart))
		}
	}
	begin(0, v, 1)
}

// roads has parallel edges, a dead end, and a node that is its own neighbour.
var roads = lists{{1, 2, 2, 3}, {0, 2}, {}, {1, 3}}

// TestWalksChooseAsOftenAsTheyShould: whom they choose, in which order, and how much each counts.
func TestWalksChooseAsOftenAsTheyShould(t *testing.T) {
	const trials = 30_000
	for _, c := range []struct {
		Walk
		k int
	}{{Walk{1, 3, 0}, 2}, {Walk{2, 2, 0.25}, 1}, {Walk{3, 2, 0.5}, 3}} {
		want, counts := map[string]float64{}, map[string]int{}
		walksOf(roads, 0, c.Walk, func(visits []uint32, p float64) {
			var order []uint32
			times := map[uint32]float32{}
			for _, u := range visits {
				if times[u]++; u != 0 && times[u] == 1 {
					order = append(order, u)
				}
			}
			slices.SortStableFunc(order, func(a, b uint32) int { return int(times[b] - times[a]) })
			order = append(order[:min(c.k, len(order))], 0)
			times[0] = 1
			var weights []float32
			for _, u := range order {
				weights = append(weights, times[u])
			}
			want[fmt.Sprint(order, weights)] += p
		})
		s := newSingle(roads, Config{Kind: RW, Walk: c.Walk, Fanouts: []int{c.k}, Options: Options{SelfLoops: true}})
		var b Batch
		for i := range uint64(trials) {
			require.NoError(t, s.Sample(&b, BatchSeed{First: Hash(3, i)}, []uint32{0}))
			var order []uint32
			for _, p := range b.flat(0).Nbr {
				order = append(order, b.flat(0).Src[p])
			}
			counts[fmt.Sprint(order, b.flat(0).Weight)]++
		}
		requireShares(t, want, counts, "%+v", c)
	}
}

// TestVisitsAreThoseOfTheChain: powers of the matrix of transitions say how often long walks visit
// each node.
func TestVisitsAreThoseOfTheChain(t *testing.T) {
	const trials = 10_000
	w := Walk{Length: 12, Walks: 8, Restart: 0.3}
	where, want := [4]float64{1}, [4]float64{} // of a walker, and visits so far
	for n := range w.Length {
		if n > 0 {
			for u := range where {
				where[u] *= 1 - w.Restart
			}
			where[0] += w.Restart
		}
		var next [4]float64
		for u, p := range where {
			for _, to := range roads[u] {
				next[to] += p / float64(len(roads[u]))
			}
		}
		for u, p := range next {
			want[u] += p
		}
		next[0] += where[2] // a dead end
		where = next
	}
	s := newSingle(roads, Config{Kind: RW, Walk: w, Fanouts: []int{10}, Options: Options{SelfLoops: true}})
	var visits [4]moments
	var b Batch
	for i := range uint64(trials) {
		require.NoError(t, s.Sample(&b, BatchSeed{First: Hash(4, i)}, []uint32{0}))
		var times [4]float64
		for e, p := range b.flat(0).Nbr {
			times[b.flat(0).Src[p]] = float64(b.flat(0).Weight[e])
		}
		for u, n := range times {
			visits[u].add(n)
		}
	}
	for u := 1; u < len(roads); u++ {
		visits[u].requireMean(t, want[u]*float64(w.Walks), "node %d", u)
	}
}

// moments of a sample.
type moments struct{ n, sum, squares float64 }

func (m *moments) add(x float64) {
	m.n++
	m.sum += x
	m.squares += x * x
}

func (m *moments) mean() float64      { return m.sum / m.n }
func (m *moments) variance() float64  { return max(m.squares/m.n-m.mean()*m.mean(), 0) }
func (m *moments) deviation() float64 { return math.Sqrt(m.variance() / m.n) } // of the mean

func (m *moments) requireMean(t *testing.T, want float64, about string, args ...any) {
	t.Helper()
	require.InDelta(t, want, m.mean(), sigmas*m.deviation()+1e-6*math.Abs(want), fmt.Sprintf(about, args...))
}

// everyKind is a Config of each kind, and of what changes who is drawn.
func everyKind() []Config {
	return []Config{
		{Kind: NS}, {Kind: NS, Smoothed: true}, {Kind: NS, Weighted: true}, {Kind: NS, Weighted: true, Smoothed: true},
		{Kind: Labor0}, {Kind: Labor0, Smoothed: true},
		{Kind: Labor0, Poisson: true}, {Kind: Labor0, Poisson: true, Smoothed: true},
		{Kind: LaborStar}, {Kind: LaborStar, Smoothed: true}, {Kind: RW, Walk: Walk{Length: 2, Walks: 3, Restart: 0.5}},
	}
}

// with is c for other fanouts.
func (c Config) with(fanouts ...int) Config {
	c.Fanouts = fanouts
	return c
}

func (c Config) name() string {
	return fmt.Sprintf("%s,weighted=%v,poisson=%v,smoothed=%v", c.Kind, c.Weighted, c.Poisson, c.Smoothed)
}

// weighing is a topology whose lists all have the same weights.
type weighing struct {
	lists
	weights []float32
}

func (w weighing) Weights(v uint32) []float32 { return w.weights[:len(w.lists[v])] }

// TestWhatIsIndependent: nodes under NS, layers, and the blocks of κ steps. And what is not: nodes
// that share neighbours under LABOR-0, layers with layer dependency, and steps of one block where
// batches are nested.
func TestWhatIsIndependent(t *testing.T) {
	const trials = 10_000
	// The lists are similar, so that draws are often the same.
	similar := lists{{2, 3, 4, 5}, {2, 3, 4, 5}, {3, 4, 5, 6}, {2, 4, 5, 6}, {2, 3, 5, 6}, {2, 3, 4, 6}, {2, 3, 4, 5}}
	topo := weighing{similar, []float32{1, 3, 2, 1}}
	for _, c := range everyKind() {
		t.Run(c.name(), func(t *testing.T) {
			shared := c.with(2, 2)
			shared.LayerDependency = true
			s, dependent := newSingle(topo, c.with(2, 2)), newSingle(topo, shared)
			nodes, layers, steps := map[[2]uint64]int{}, map[[2]uint64]int{}, map[[2]uint64]int{}
			same, last := 0, uint64(0)
			var b, d Batch
			schedule := Schedule{Seed: 5, Kappa: 3}
			for i := range trials {
				z := schedule.At(i * 3)
				if c.Smoothed { // somewhere on the way
					z = BatchSeed{Hash(6, uint64(i)), Hash(7, uint64(i)), float64(i%4) / 4}
				}
				require.NoError(t, s.Sample(&b, z, []uint32{0, 1}))
				one, other, below := b.flat(1).chosen(0), b.flat(1).chosen(1), b.flat(0).chosen(0)
				nodes[[2]uint64{one, other}]++
				layers[[2]uint64{one, below}]++
				if one == other {
					same++
				}
				if i > 0 {
					steps[[2]uint64{last, one}]++
				}
				last = one
				require.NoError(t, dependent.Sample(&d, z, []uint32{0, 1}))
				if c.Kind != LaborStar { // its probabilities depend on all destinations
					require.Equal(t, d.flat(1).chosen(0), d.flat(0).chosen(0), "layers share")
				}
				if !c.Smoothed && i < 100 {
					var next Batch
					for n := 1; n < 3; n++ {
						require.NoError(t, s.Sample(&next, schedule.At(i*3+n), []uint32{0, 1}))
						require.Empty(t, difference(&b, &next))
					}
				}
			}
			requireIndependent(t, layers, "layers")
			requireIndependent(t, steps, "blocks of steps")
			if c.Kind == Labor0 || c.Kind == LaborStar {
				require.Equal(t, trials, same, "nodes that share neighbours keep the same")
			} else {
				requireIndependent(t, nodes, "nodes")
			}
		})
	}
}

// TestSmoothedNumbersAreUniform: at every step of a block, their tails included.
func TestSmoothedNumbersAreUniform(t *testing.T) {
	const n, kappa = 1_500_000, 8
	makeKnots()
	c := Config{Smoothed: true, Fanouts: []int{1}}
	for i := range kappa {
		d := c.draws(Schedule{Seed: uint64(i), Kappa: kappa}.At(kappa+i), 0, 0, 0)
		numbers := d.ofLayer()
		const cells = 64
		share, counts := map[int]float64{}, map[int]int{}
		for cell := range cells {
			share[cell] = 1. / cells
		}
		tails := map[float64]int{1e-3: 0, 1e-4: 0, 1e-5: 0, 1e-6: 0, 3e-7: 0}
		for x := range n {
			u := numbers.uniform(uint32(x))
			counts[int(u*cells)]++
			if nearer := min(u, 1-u); nearer < 1e-3 {
				for p := range tails {
					if nearer < p {
						tails[p]++
					}
				}
			}
		}
		requireShares(t, share, counts, "step %d", i)
		for p, count := range tails {
			expected := 2 * p * float64(n)
			low, high := poissonBounds(expected)
			about := fmt.Sprintf("step %d: %d of %d in the tails of %g; %d to %d are likely", i, count, n, p, low, high)
			require.True(t, low <= count && count <= high, about)
		}
	}
}

// poissonBounds are between which counts of a mean lie but once in 2 million times.
func poissonBounds(mean float64) (low, high int) {
	if mean > 500 {
		return int(mean - 5*math.Sqrt(mean)), int(mean + 5*math.Sqrt(mean))
	}
	below, p := 0.0, math.Exp(-mean)
	low = -1
	for k := 0; ; k++ {
		if below += p; below > 1e-6 && low < 0 {
			low = k
		}
		if below > 1-1e-6 && float64(k) > mean {
			return low, k + 1
		}
		p *= mean / float64(k+1)
	}
}

// TestSmoothedStepsCorrelate: numbers of two steps of a block correlate by the cosine of the angle
// between them, also where a block begins and its seed is the one before's second; and over κ steps
// not at all. Both signs are the same with a probability of 1 - angle/π (Sheppard 1899).
func TestSmoothedStepsCorrelate(t *testing.T) {
	const n, kappa = 100_000, 4
	makeKnots()
	c, signs := Config{Smoothed: true, Fanouts: []int{1}}, make([][]bool, 3*kappa)
	for i := range signs {
		d := c.draws(Schedule{Seed: 1, Kappa: kappa}.At(i), 0, 0, 0)
		numbers := d.ofLayer()
		for x := range uint32(n) {
			signs[i] = append(signs[i], numbers.uniform(x) < 0.5)
		}
	}
	// Of each step, how much it has of the seeds of its block, of the next, …
	direction := func(i int) (v [4]float64) {
		v[i/kappa+1], v[i/kappa] = math.Sincos(float64(i%kappa) / kappa * math.Pi / 2)
		return v
	}
	for i := range signs {
		for j := range i {
			dot, a, b := 0.0, direction(i), direction(j)
			for k := range a {
				dot += a[k] * b[k]
			}
			p, same := 1-math.Acos(min(dot, 1))/math.Pi, 0
			for x := range n {
				if signs[i][x] == signs[j][x] {
					same++
				}
			}
			require.InDelta(t, p, float64(same)/n, sigmas*math.Sqrt(p*(1-p)/n), "steps %d and %d", j, i)
		}
		if i > 0 {
			dot := 0.0
			for k := range direction(i) {
				dot += direction(i)[k] * direction(i - 1)[k]
			}
			require.InDelta(t, math.Cos(math.Pi/2/kappa), dot, 1e-12, "from each step to the next the angle is the same")
		}
	}
}

// TestScheduleOfOneStep: with κ = 1 each batch has a seed of its own, smoothed or not, by the
// schedule alone. With infinite κ all batches have one seed.
func TestScheduleOfOneStep(t *testing.T) {
	topo := lists(wide(300, 20))
	seeds := []uint32{1, 5, 7, 100, 200}
	seen := map[uint64]bool{}
	for i := range 1000 {
		z := Schedule{Seed: 9, Kappa: 1}.At(i)
		require.Zero(t, z.Drift)
		require.False(t, seen[z.First])
		seen[z.First] = true
		require.Equal(t, Schedule{Seed: 9, Kappa: Forever}.At(0).First, Schedule{Seed: 9, Kappa: Forever}.At(i).First)
	}
	for _, c := range everyKind() {
		s := newSingle(topo, c.with(4, 3))
		for i := range 20 {
			z := Schedule{Seed: 9, Kappa: 1}.At(i)
			var scheduled, alone, plain Batch
			require.NoError(t, s.Sample(&scheduled, z, seeds))
			require.NoError(t, s.Sample(&alone, BatchSeed{First: z.First}, seeds))
			require.Empty(t, difference(&alone, &scheduled), c.name())
			if nested := c.with(4, 3); c.Smoothed && (c.Kind != NS || c.Weighted) { // NS has another algorithm for each
				nested.Smoothed = false
				require.NoError(t, newSingle(topo, nested).Sample(&plain, z, seeds))
				require.Empty(t, difference(&plain, &scheduled), c.name())
			}
		}
	}
}
