package sample

import (
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// whiteboard draws batches as the papers describe it: a list at a time, with maps and sorts, and numbers as floats. It shares
// with samplers what the hashes are, and the table of quantiles.
type whiteboard struct {
	Config
	topo lists
	// unsure is set where a number lies so near to its bound that rounding decides.
	unsure bool
}

// pick is a drawn neighbour, and how many it stands for, the inverse of its probability, or how often it was visited.
type pick struct {
	id     uint32
	counts float64
}

// batch is the blocks of seeds under z.
func (w *whiteboard) batch(z Z, seeds []uint32) []Block {
	blocks := make([]Block, len(w.Fanouts))
	dst := slices.Clone(seeds)
	for hop := range w.Fanouts {
		layer := len(w.Fanouts) - hop
		blocks[layer-1] = w.block(dst, w.picks(z, hop, dst), layer > 1 || w.RevInput)
		dst = blocks[layer-1].Src
	}
	return blocks
}

// picks are those of each destination at a hop.
func (w *whiteboard) picks(z Z, hop int, dst []uint32) [][]pick {
	k, layer := w.Fanouts[hop], uint64(len(w.Fanouts)-hop)
	if w.LayerDependency {
		layer = 0
	}
	first, next := Hash(z.First, layer), Hash(z.Next, layer)
	// number is that of x in a sequence of numbers, uniform from 0 to 1 or, drifting, of the normal distribution.
	drifts := w.Smoothed && z.Drift > 0
	number := func(first, next uint64, x uint32) float64 {
		at := (uint64(x) + 1) * golden
		if !drifts {
			return (float64(mix(first+at)) + 0.5) * 0x1p-64
		}
		c := z.Drift * math.Pi / 2
		return math.Cos(c)*quantile(mix(first+at)) + math.Sin(c)*quantile(mix(next+at))
	}
	uniform := func(first, next uint64, x uint32) float64 {
		if n := number(first, next, x); drifts {
			return normalTail(-n)
		} else {
			return n
		}
	}
	bound := func(p float64) float64 {
		if drifts {
			return normalQuantile(p)
		}
		return p
	}
	ofVertex := func(x uint32) float64 { return number(first, next, x) }

	if w.Kind == LaborStar && k > 0 {
		return w.star(dst, k, func(x uint32) float64 { return uniform(first, next, x) })
	}
	all := make([][]pick, len(dst))
	for i, v := range dst {
		list := w.topo[v]
		ofPlace := func(x uint32) float64 { return number(listKey(first, v), listKey(next, v), x) }
		behind := 1.0
		if k != All && k < len(list) {
			behind = float64(len(list)) / float64(k)
		}
		take := func(places []int) {
			for _, p := range places {
				all[i] = append(all[i], pick{list[p], behind})
			}
		}
		switch {
		case k == 0:
		case w.Kind == RW:
			all[i] = w.visits(v, k, listKey(first, v))
		case w.Weighted:
			all[i] = w.weighted(v, k, func(x uint32) float64 { return uniform(listKey(first, v), listKey(next, v), x) })
		case k == All || k >= len(list):
			take(lowestOf(len(list), len(list), func(uint32) float64 { return 0 }))
		case w.Kind == NS && !w.Smoothed:
			take(floyds(len(list), k, listKey(first, v)))
		case w.Kind == NS:
			take(sorted(lowestOf(len(list), k, ofPlace)))
		case w.Poisson:
			p, kept := float64(k)/float64(len(list)), []int(nil)
			for at, t := range list {
				if n := ofVertex(t); n <= bound(p) {
					kept = append(kept, at)
				}
				w.unsure = w.unsure || math.Abs(ofVertex(t)-bound(p)) < 1e-4 && drifts // the table's error
			}
			if room := k + int(8*math.Sqrt(float64(k))) + 16; len(kept) > room {
				kept = lowestOf(len(list), room, func(x uint32) float64 { return ofVertex(list[x]) })
			}
			take(sorted(kept))
		default:
			take(sorted(lowestOf(len(list), k, func(x uint32) float64 { return ofVertex(list[x]) })))
		}
	}
	return all
}

// lowestOf are the k of n places that have the lowest numbers, the first of equal ones.
func lowestOf(n, k int, number func(x uint32) float64) []int {
	places := make([]int, n)
	for i := range places {
		places[i] = i
	}
	sort.SliceStable(places, func(i, j int) bool { return number(uint32(places[i])) < number(uint32(places[j])) })
	return places[:k]
}

func sorted(places []int) []int {
	sort.Ints(places)
	return places
}

// floyds is Floyd's algorithm with a set.
func floyds(d, k int, key uint64) (places []int) {
	set := map[int]bool{}
	for j := d - k; j < d; j++ {
		t := draw(key, j-(d-k), j+1)
		if set[t] {
			t = j
		}
		set[t] = true
		places = append(places, t)
	}
	return places
}

// weighted draws places one after the other, which is to take the lowest of exponential numbers with the rates w; each counts
// w over the probability that its number is below the lowest that is left.
func (w *whiteboard) weighted(v uint32, k int, uniform func(x uint32) float64) (chosen []pick) {
	weights, number := w.topo.Weights(v), map[int]float64{}
	var places []int
	for at, x := range weights {
		if x > 0 {
			places = append(places, at)
			number[at] = -math.Log(uniform(uint32(at))) / float64(x)
		}
	}
	sort.Slice(places, func(i, j int) bool { return number[places[i]] < number[places[j]] })
	p := func(int) float64 { return 1 }
	if k != All && k < len(places) {
		tau := number[places[k]]
		p = func(at int) float64 { return 1 - math.Exp(-float64(weights[at])*tau) }
		places = places[:k]
	}
	for _, at := range sorted(places) {
		chosen = append(chosen, pick{w.topo[v][at], float64(weights[at]) / p(at)})
	}
	return chosen
}

// visits walks and counts.
func (w *whiteboard) visits(v uint32, k int, key uint64) (chosen []pick) {
	first, times := map[uint32]int{}, map[uint32]int{}
	for walk := range w.Walk.Walks {
		at := v
		for step := range w.Walk.Length {
			i := walk*w.Walk.Length + step
			number := mix(key + uint64(i+1)*golden)
			if step > 0 && float64(mix(number))*0x1p-64 < w.Walk.Restart {
				at = v
			}
			list := w.topo[at]
			if len(list) == 0 {
				at = v // for the next step
				continue
			}
			at = list[draw(key, i, len(list))]
			if _, known := first[at]; !known {
				first[at] = i
			}
			times[at]++
		}
	}
	delete(times, v)
	for u, n := range times {
		chosen = append(chosen, pick{u, float64(n)})
	}
	sort.Slice(chosen, func(i, j int) bool {
		a, b := chosen[i], chosen[j]
		return a.counts > b.counts || a.counts == b.counts && first[a.id] < first[b.id]
	})
	return chosen[:min(k, len(chosen))]
}

// probabilities are those of LABOR-*, by destination and place, from the fixed point itself: c_s by bisection.
func (w *whiteboard) probabilities(dst []uint32, k int) [][]float64 {
	pi := map[uint32]float64{}
	for _, v := range dst {
		for _, t := range w.topo[v] {
			pi[t] = 1
		}
	}
	for last := math.Inf(1); ; {
		p, top := make([][]float64, len(dst)), map[uint32]float64{}
		for i, v := range dst {
			var own []float64
			for _, t := range w.topo[v] {
				own = append(own, pi[t])
			}
			variance := func(c float64) (sum float64) {
				for _, x := range own {
					sum += 1 / min(1, c*x)
				}
				return sum
			}
			d, lo, hi := float64(len(own)), 0.0, 1.0
			for variance(hi) > d {
				hi *= 2
			}
			for range 60 {
				if mid := (lo + hi) / 2; variance(mid) > d*d/min(float64(k), d)*(1+1e-15) {
					lo = mid
				} else {
					hi = mid
				}
			}
			for at, t := range w.topo[v] {
				p[i] = append(p[i], min(1, hi*own[at]))
				top[t] = max(top[t], hi)
			}
		}
		expected := 0.0
		for t, c := range top {
			expected += min(1, c*pi[t])
		}
		w.unsure = w.unsure || math.Abs(1-expected/last-1e-4) < 1e-6
		if expected >= last*(1-1e-4) {
			return p
		}
		last = expected
		for t, c := range top {
			pi[t] *= c
		}
	}
}

// star draws by probabilities, at most 16 fanouts of them.
func (w *whiteboard) star(dst []uint32, k int, uniform func(x uint32) float64) [][]pick {
	all, probabilities := make([][]pick, len(dst)), w.probabilities(dst, k)
	for i, v := range dst {
		list, p := w.topo[v], probabilities[i]
		share := func(x uint32) float64 { return uniform(list[x]) / p[x] }
		order := lowestOf(len(list), len(list), share)
		kept := sort.Search(len(order), func(n int) bool { return share(uint32(order[n])) >= 1 })
		for _, at := range order {
			w.unsure = w.unsure || math.Abs(share(uint32(at))-1) < 1e-4
		}
		stay := kept
		if stay > 16*k && k < len(list) {
			stay = 16 * k
			a, b := order[stay-1], order[stay]
			w.unsure = w.unsure || list[a] != list[b] && share(uint32(b)) < share(uint32(a))*(1+1e-4)
		}
		for _, at := range sorted(order[:stay]) {
			all[i] = append(all[i], pick{list[at], float64(kept) / float64(stay) / p[at]})
		}
	}
	return all
}

// block numbers picks, and adds what Options want.
func (w *whiteboard) block(dst []uint32, picks [][]pick, reversed bool) Block {
	degree := func(v uint32) float64 { // without self loops, and with the one that is added
		n := 1.0
		for _, u := range w.topo[v] {
			if u != v {
				n++
			}
		}
		return n
	}
	b, pos := Block{Dst: len(dst), Src: slices.Clone(dst)}, map[uint32]uint32{}
	for i, v := range dst {
		pos[v] = uint32(i)
	}
	weighs := w.Weighted || w.Kind == LaborStar || w.Kind == RW
	for i, v := range dst {
		b.Start = append(b.Start, uint32(len(b.Nbr)))
		total := 0.0
		for _, p := range picks[i] {
			total += p.counts
		}
		add := func(u uint32, weight float64) {
			if _, ok := pos[u]; !ok {
				pos[u] = uint32(len(b.Src))
				b.Src = append(b.Src, u)
			}
			b.Nbr = append(b.Nbr, pos[u])
			if w.GCN || weighs {
				b.Weight = append(b.Weight, float32(weight))
			}
		}
		for _, p := range picks[i] {
			switch {
			case w.SelfLoops && p.id == v:
			case w.GCN:
				add(p.id, p.counts/math.Sqrt(degree(p.id)*degree(v)))
			case w.SelfLoops: // beside one that counts 1
				add(p.id, p.counts)
			default:
				add(p.id, p.counts/total)
			}
		}
		if w.SelfLoops && w.GCN {
			add(v, 1/degree(v))
		} else if w.SelfLoops {
			add(v, 1)
		}
		b.End = append(b.End, uint32(len(b.Nbr)))
	}
	if reversed {
		b.RevStart = []uint32{0}
		for p := range b.Src {
			for i := range b.Dst {
				for e := b.Start[i]; e < b.End[i]; e++ {
					if b.Nbr[e] == uint32(p) {
						b.RevDst = append(b.RevDst, uint32(i))
						b.RevEdge = append(b.RevEdge, e)
					}
				}
			}
			b.RevStart = append(b.RevStart, uint32(len(b.RevDst)))
		}
		if !w.RevEdges && len(b.Weight) == 0 {
			b.RevEdge = nil
		}
	}
	return b
}

// someSeeds are different nodes of topo: few, or all.
func someSeeds(t *rapid.T, topo lists) []uint32 {
	if rapid.Bool().Draw(t, "all seeds") {
		all := make([]uint32, len(topo))
		for v := range all {
			all[v] = uint32(v)
		}
		Shuffle(all, rapid.Uint64().Draw(t, "order"), 0)
		return all
	}
	return rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(len(topo)-1)), 0, len(topo), rapid.ID[uint32]).Draw(t, "seeds")
}

func TestSamplerEqualsReference(t *testing.T) {
	makeKnots()
	compared, unsure, edges := 0, 0, map[Kind]int{}
	rapid.Check(t, func(t *rapid.T) {
		topo, c := graph(t), config(t)
		s := NewSampler(topo, c)
		var b Batch
		for range 10 { // the same buffers again
			seeds, z := someSeeds(t, topo), anyZ(t)
			require.NoError(t, s.Sample(&b, z, seeds))
			w := whiteboard{Config: c, topo: topo}
			blocks := w.batch(z, seeds)
			if compared++; w.unsure {
				unsure++
				continue
			}
			weights := make([][]float32, len(blocks))
			for l := range blocks {
				weights[l], blocks[l].Weight = blocks[l].Weight, b.Blocks[l].Weight
			}
			require.Empty(t, difference(&Batch{seeds, blocks}, &b), "%+v", c)
			for l := range blocks {
				require.Len(t, b.Blocks[l].Weight, len(weights[l]), "layer %d", l)
				for e, x := range weights[l] {
					require.InEpsilon(t, x, b.Blocks[l].Weight[e], 1e-4, "layer %d, edge %d of %+v", l, e, c)
				}
			}
			require.Equal(t, b.Inputs(), b.Blocks[0].Src)
			edges[c.Kind] += len(b.Blocks[0].Nbr)
		}
	})
	t.Logf("%d of %d unsure; edges %v", unsure, compared, edges)
	require.Less(t, unsure, compared/5, "of %d", compared)
}
