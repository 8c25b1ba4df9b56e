package sample

import (
	"fmt"
	"math"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// reference draws batches as the papers describe it: a list at a time, with maps and sorts, and
// numbers as floats. It shares with samplers what the hashes are, and the table of quantiles.
type reference struct {
	Config
	Schema
	topo    []lists // of each relation
	columns []int   // of values of its edges
	// unsure is set where a number lies so near to its bound that rounding decides.
	unsure bool
}

// pick is a drawn neighbour, and how many it stands for, the inverse of its probability, or how
// often it was visited; and its place in the list.
type pick struct {
	id     uint32
	counts float64
	place  int
}

// batch draws from the seeds of each type under z.
func (w *reference) batch(z BatchSeed, seeds [][]uint32) *Batch {
	b := &Batch{Seeds: seeds, Layers: make([]Layer, len(w.Fanouts))}
	for hop := range w.Fanouts {
		at := len(w.Fanouts) - 1 - hop
		layer := Layer{}
		for t := range w.Types {
			dst := seeds[t]
			if hop > 0 {
				dst = b.Layers[at+1].Nodes[t].Src
			}
			layer.Nodes = append(layer.Nodes, Frontier{Src: slices.Clone(dst), Dst: len(dst)})
		}
		for r, ends := range w.Relations {
			dst := layer.Nodes[ends.Dst].Src[:layer.Nodes[ends.Dst].Dst]
			block := w.block(&layer.Nodes[ends.Src], r, dst, w.picks(z, hop, r, layer.Nodes))
			layer.Blocks = append(layer.Blocks, block)
		}
		for r, ends := range w.Relations {
			if at > 0 || w.RevInput {
				w.reverse(&layer.Blocks[r], len(layer.Nodes[ends.Src].Src))
			}
		}
		b.Layers[at] = layer
	}
	return b
}

// columnsOf returns the number of values that edges of relation r have.
func (w *reference) columnsOf(r int) int {
	if len(w.columns) == 0 {
		return 0
	}
	return w.columns[r]
}

// fanout returns the fanout of relation r at a hop.
func (w *reference) fanout(hop, r int) int {
	for i, own := range w.OfRelation {
		if i == r && len(own) > 0 {
			return own[hop]
		}
	}
	return w.Fanouts[hop]
}

// picks returns the picks of each destination of relation r at a hop.
func (w *reference) picks(z BatchSeed, hop, r int, nodes []Frontier) [][]pick {
	k, layer, topo := w.fanout(hop, r), uint64(len(w.Fanouts)-hop), w.topo[r]
	dst := nodes[w.Relations[r].Dst].destinations()
	if w.LayerDependency {
		layer = 0
	}
	first, next := Hash(z.First, layer), Hash(z.Next, layer)
	number := uint64(r)
	if w.Kind == Labor0 || w.Kind == LaborStar {
		number = uint64(w.Relations[r].Src)
	}
	if number > 0 {
		first, next = Hash(first, number), Hash(next, number)
	}
	// value returns the number of x in a sequence: uniform from 0 to 1 or, with drift, standard
	// normal.
	drifts := w.Smoothed && z.Drift > 0
	value := func(first, next uint64, x uint32) float64 {
		at := (uint64(x) + 1) * golden
		if !drifts {
			return (float64(mix(first+at)) + 0.5) * 0x1p-64
		}
		c := z.Drift * math.Pi / 2
		return math.Cos(c)*quantile(mix(first+at)) + math.Sin(c)*quantile(mix(next+at))
	}
	uniform := func(first, next uint64, x uint32) float64 {
		if n := value(first, next, x); drifts {
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
	ofVertex := func(x uint32) float64 { return value(first, next, x) }

	if w.Kind == LaborStar && k > 0 {
		var lists [][]uint32 // of all relations from this type; r's begin at from
		var fanouts []int
		from := 0
		for other, ends := range w.Relations {
			if other == r {
				from = len(lists)
			}
			if k := w.fanout(hop, other); ends.Src == w.Relations[r].Src && k != 0 {
				for _, v := range nodes[ends.Dst].destinations() {
					lists, fanouts = append(lists, w.topo[other][v]), append(fanouts, k)
				}
			}
		}
		return w.star(lists, fanouts, func(x uint32) float64 { return uniform(first, next, x) })[from:][:len(dst)]
	}
	all := make([][]pick, len(dst))
	for i, v := range dst {
		list := topo[v]
		ofPlace := func(x uint32) float64 { return value(listKey(first, v), listKey(next, v), x) }
		behind := 1.0
		if k != All && k < len(list) {
			behind = float64(len(list)) / float64(k)
		}
		take := func(places []int) {
			for _, p := range places {
				all[i] = append(all[i], pick{list[p], behind, p})
			}
		}
		switch {
		case k == 0:
		case w.Kind == RW:
			all[i] = w.visits(topo, v, k, listKey(first, v))
		case w.Weighted:
			all[i] = w.weighted(topo, v, k, func(x uint32) float64 { return uniform(listKey(first, v), listKey(next, v), x) })
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

// weighted draws places one after the other, which is to take the lowest of exponential numbers
// with the rates w; each counts w over the probability that its number is below the lowest that is
// left.
func (w *reference) weighted(topo lists, v uint32, k int, uniform func(x uint32) float64) (chosen []pick) {
	weights, number := topo.Weights(v), map[int]float64{}
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
		chosen = append(chosen, pick{topo[v][at], float64(weights[at]) / p(at), at})
	}
	return chosen
}

// visits walks and counts.
func (w *reference) visits(topo lists, v uint32, k int, key uint64) (chosen []pick) {
	first, times := map[uint32]int{}, map[uint32]int{}
	for walk := range w.Walk.Walks {
		at := v
		for step := range w.Walk.Length {
			i := walk*w.Walk.Length + step
			number := mix(key + uint64(i+1)*golden)
			if step > 0 && float64(mix(number))*0x1p-64 < w.Walk.Restart {
				at = v
			}
			list := topo[at]
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
		chosen = append(chosen, pick{id: u, counts: float64(n)})
	}
	sort.Slice(chosen, func(i, j int) bool {
		a, b := chosen[i], chosen[j]
		return a.counts > b.counts || a.counts == b.counts && first[a.id] < first[b.id]
	})
	return chosen[:min(k, len(chosen))]
}

// probabilities returns LABOR-*'s probabilities, by list and place, from the fixed point itself:
// c_s by bisection.
func (w *reference) probabilities(lists [][]uint32, fanouts []int) [][]float64 {
	pi := map[uint32]float64{}
	for _, list := range lists {
		for _, t := range list {
			pi[t] = 1
		}
	}
	for last := math.Inf(1); ; {
		p, top := make([][]float64, len(lists)), map[uint32]float64{}
		for i, list := range lists {
			var own []float64
			for _, t := range list {
				own = append(own, pi[t])
			}
			variance := func(c float64) (sum float64) {
				for _, x := range own {
					sum += 1 / min(1, c*x)
				}
				return sum
			}
			d, lo, hi := float64(len(own)), 0.0, 1.0
			k := d
			if fanouts[i] != All {
				k = min(d, float64(fanouts[i]))
			}
			for variance(hi) > d {
				hi *= 2
			}
			for range 60 {
				if mid := (lo + hi) / 2; variance(mid) > d*d/k*(1+1e-15) {
					lo = mid
				} else {
					hi = mid
				}
			}
			for at, t := range list {
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
func (w *reference) star(lists [][]uint32, fanouts []int, uniform func(x uint32) float64) [][]pick {
	all, probabilities := make([][]pick, len(lists)), w.probabilities(lists, fanouts)
	for i, list := range lists {
		k := fanouts[i]
		if k == All {
			continue // picks has no use for it
		}
		p := probabilities[i]
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
			all[i] = append(all[i], pick{list[at], float64(kept) / float64(stay) / p[at], at})
		}
	}
	return all
}

// block numbers the picks of relation r, appends new ones to the sources, and adds what Options ask
// for.
func (w *reference) block(src *Frontier, r int, dst []uint32, picks [][]pick) (b Block) {
	degree := func(v uint32) float64 { // without self loops, and with the one that is added
		n := 1.0
		for _, u := range w.topo[r][v] {
			if u != v {
				n++
			}
		}
		return n
	}
	pos := map[uint32]uint32{}
	for p, u := range src.Src {
		pos[u] = uint32(p)
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
				pos[u] = uint32(len(src.Src))
				src.Src = append(src.Src, u)
			}
			b.Nbr = append(b.Nbr, pos[u])
			if w.GCN || weighs {
				b.Weight = append(b.Weight, float32(weight))
			}
		}
		for _, p := range picks[i] {
			for c := range w.columnsOf(r) {
				b.Values = append(b.Values, valueOf(c, v, p.place))
			}
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
	return b
}

// reverse lists the edges of b by source.
func (w *reference) reverse(b *Block, sources int) {
	b.RevStart = []uint32{0}
	for p := range sources {
		for i := range b.Start {
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

// requireAlike holds what was drawn against the reference: weights nearly, all else to the bit.
func requireAlike(t require.TestingT, want, got *Batch, about string, args ...any) {
	require.Len(t, got.Layers, len(want.Layers))
	for l := range want.Layers {
		require.Len(t, got.Layers[l].Blocks, len(want.Layers[l].Blocks))
		for r := range want.Layers[l].Blocks {
			w, g := &want.Layers[l].Blocks[r], &got.Layers[l].Blocks[r]
			require.Len(t, g.Weight, len(w.Weight), "layer %d, relation %d", l, r)
			for e, x := range w.Weight {
				require.InEpsilon(t, x, g.Weight[e], 1e-4, "layer %d, relation %d, edge %d: %s", l, r, e, fmt.Sprintf(about, args...))
			}
			w.Weight = g.Weight
		}
	}
	require.Empty(t, difference(want, got), about, args)
}

func TestSamplerEqualsReference(t *testing.T) {
	makeKnots()
	compared, unsure, edges := 0, 0, map[Kind]int{}
	rapid.Check(t, func(t *rapid.T) {
		topo, c := graph(t), config(t)
		s := newSingle(topo, c)
		var b Batch
		for range 10 { // the same buffers again
			seeds, z := someSeeds(t, topo), anyZ(t)
			require.NoError(t, s.Sample(&b, z, seeds))
			w := reference{Config: c, Schema: OneType(len(topo)), topo: []lists{topo}}
			want := w.batch(z, [][]uint32{seeds})
			if compared++; w.unsure {
				unsure++
				continue
			}
			requireAlike(t, want, &b, "%+v", c)
			require.Equal(t, b.Inputs(), [][]uint32{b.flat(0).Src})
			edges[c.Kind] += len(b.flat(0).Nbr)
		}
	})
	t.Logf("%d of %d unsure; edges %v", unsure, compared, edges)
	require.Less(t, unsure, compared/5, "of %d", compared)
}
