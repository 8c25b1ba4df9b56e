package sample

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"
	"sync/atomic"
)

// GroupTopology is what a Group reads: degrees and some lists are in memory, the others are read many at a time. A
// topology.Tier is one. All but Read is called by several goroutines at once.
type GroupTopology interface {
	Topology // Neighbors of nodes below Resident only
	// Degree is the number of v's in-neighbours.
	Degree(v uint32) int
	// Resident is how many nodes, the first ones, have their lists in memory.
	Resident() uint32
	// Read reads the lists of nodes, which ascend, are not below Resident and have neighbours. serve gets each list, whole
	// or in parts of which each begins at neighbour from; several at once. What it gets is only read, and not kept.
	Read(nodes []uint32, serve func(i, from int, part []uint32) error) error
	// SelfLoops gives a function that says how often v is its own neighbour.
	SelfLoops() (count func(v uint32) int, err error)
	// Count takes note of lists that were drawn from: so many that were resident, so many that were not.
	Count(hits, misses int64)
}

// Group draws several batches together, hop by hop: at each, the lists that are not resident and that any of the batches
// wants are read in one pass over the file, each once, and drawn from as they come, so that none is kept. The more
// batches, the closer together in the file are the lists that a pass wants.
//
// Batches are those of a [Sampler] over the whole topology, bit for bit, whatever is resident, however many batches come
// together, and whoever draws them. A Group is used by one goroutine at a time, and has workers of its own at work inside
// Sample. Beside the batches, and what a Sampler keeps for each worker, it takes up to GroupBytes.
type Group struct {
	topo     GroupTopology
	resident uint32
	drawers  []drawer
	pickers  sync.Pool // of *picker, for lists as they come

	maxPairs int
	bases    []uint32 // of each batch: its first destination, counted over all batches of the group
	keys     []uint64 // of each batch: layerKey
	pairs    []pair
	scratch  []pair
	nodes    []uint32 // of a pass, ascending
	first    []uint32 // of each of them: its first pair
}

// pair is a destination whose list is cold: the node in the upper half, and in the lower which destination of the group
// it is. So sorting pairs as numbers puts lists in the order of the file.
type pair uint64

func (p pair) node() uint32        { return uint32(p >> 32) }
func (p pair) destination() uint32 { return uint32(p) }

// maxPairs is how many cold lists a pass draws from. When a hop wants more, it makes several passes, each over a range of
// nodes, so that every list is still read once, and all of them in the order of the file.
const maxPairs = 1 << 21

// GroupBytes bounds what a Group keeps of a pass: pairs, scratch to sort them, nodes and where their pairs begin. A pass over
// the 65,536th part of the nodes is not split further, so groups of more than 32 batches may take more in theory.
const GroupBytes = PairBytes * maxPairs

// PairBytes is what a cold list that a batch draws from takes in it.
const PairBytes = 8 + 8 + 4 + 4

// NewGroup draws from topo as NewSampler does, on up to workers goroutines.
func NewGroup(topo GroupTopology, c Config, workers int) *Group {
	g := &Group{topo: topo, resident: topo.Resident(), maxPairs: maxPairs}
	g.pickers.New = func() any { return new(picker) }
	for range max(1, workers) {
		d := newDrawer(topo.Nodes(), c)
		d.near = g.near
		g.drawers = append(g.drawers, d)
	}
	return g
}

// Sample fills batches[i] with the blocks of seeds[i] under z[i], as [Sampler.Sample] does. The error is a *NeighborError, one
// of the topology's, or ctx's, which ends a pass over the file as well; batches are undefined then.
func (g *Group) Sample(ctx context.Context, batches []*Batch, z []Z, seeds [][]uint32) error {
	if len(z) != len(batches) || len(seeds) != len(batches) {
		panic(fmt.Sprintf("sample: Group: %d batches, %d z, %d lists of seeds", len(batches), len(z), len(seeds)))
	}
	if err := g.countLoops(); err != nil {
		return err
	}
	for i, b := range batches {
		g.drawers[0].begin(b, seeds[i])
	}
	for hop := range g.drawers[0].Fanouts {
		var hits, misses atomic.Int64
		err := g.each(ctx, len(batches), func(d *drawer, i int) error {
			h, m := d.fill(batches[i], z[i], hop)
			hits.Add(int64(h))
			misses.Add(int64(m))
			return nil
		})
		if err == nil && misses.Load() > 0 {
			err = g.readCold(ctx, batches, z, hop, int(misses.Load()))
		}
		if err != nil {
			return err
		}
		g.topo.Count(hits.Load(), misses.Load())
		if err := g.each(ctx, len(batches), func(d *drawer, i int) error { return d.finish(batches[i], hop) }); err != nil {
			return err
		}
	}
	return nil
}

// near implements drawer.near.
func (g *Group) near(near *[ahead]list, nodes []uint32) {
	for i, v := range nodes {
		if v < g.resident {
			ids := g.topo.Neighbors(v)
			near[i] = list{ids, len(ids)}
		} else {
			near[i] = list{nil, g.topo.Degree(v)}
		}
	}
}

// countLoops asks the topology for self loops before the first batch that needs them: that may read all of it.
func (g *Group) countLoops() error {
	if !g.drawers[0].GCN || g.drawers[0].degree != nil {
		return nil
	}
	count, err := g.topo.SelfLoops()
	if err != nil {
		return err
	}
	for i := range g.drawers {
		g.drawers[i].degree = func(v uint32) (degree, selves int) { return g.topo.Degree(v), count(v) }
	}
	return nil
}

// each calls work for the batches 0 to n-1, each once, on the drawers, and returns the error of the first batch that has
// one. When ctx ends, batches have its.
func (g *Group) each(ctx context.Context, n int, work func(d *drawer, i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	run := func(d *drawer) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			if errs[i] = ctx.Err(); errs[i] == nil {
				errs[i] = work(d, i)
			}
		}
	}
	var others sync.WaitGroup
	for w := 1; w < min(n, len(g.drawers)); w++ {
		others.Go(func() { run(&g.drawers[w]) })
	}
	run(&g.drawers[0])
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// readCold draws from the lists that fill left out, of which there are misses.
func (g *Group) readCold(ctx context.Context, batches []*Batch, z []Z, hop, misses int) error {
	g.bases, g.keys = g.bases[:0], g.keys[:0]
	total := 0
	for i, b := range batches {
		_, dst := g.drawers[0].block(b, hop)
		g.bases, g.keys = append(g.bases, uint32(total)), append(g.keys, g.drawers[0].layerKey(z[i], hop))
		if total += len(dst); int64(total) > math.MaxUint32 {
			panic("sample: more than 4,294,967,295 destinations in a group; use fewer or smaller batches")
		}
	}
	g.pairs = slices.Grow(g.pairs[:0], min(misses, g.maxPairs))
	for _, part := range g.parts(batches, hop, misses) {
		g.collect(batches, hop, part)
		if err := g.topo.Read(g.nodes, func(i, from int, list []uint32) error {
			g.draw(batches, hop, i, from, list)
			return ctx.Err()
		}); err != nil {
			return err
		}
	}
	return nil
}

// draw draws from the list of nodes[i], of which part begins at neighbour from, for every destination that wants it.
func (g *Group) draw(batches []*Batch, hop, i, from int, part []uint32) {
	p := g.pickers.Get().(*picker)
	defer g.pickers.Put(p)
	v := g.nodes[i]
	degree := g.topo.Degree(v)
	for _, q := range g.pairs[g.first[i]:g.first[i+1]] {
		at := sort.Search(len(g.bases), func(i int) bool { return g.bases[i] > q.destination() }) - 1
		block, _ := g.drawers[0].block(batches[at], hop)
		dst := q.destination() - g.bases[at]
		out, key := block.Nbr[block.Start[dst]:block.End[dst]], listKey(g.keys[at], v)
		if len(part) == degree {
			p.choose(out, part, key)
		} else {
			p.choosePart(out, degree, from, part, key)
		}
	}
}

// nodeRange is the nodes from lo to hi, hi not included.
type nodeRange struct{ lo, hi uint64 }

// parts splits the nodes into ranges with at most maxPairs cold lists each, as far as that goes without a finer count.
func (g *Group) parts(batches []*Batch, hop, misses int) []nodeRange {
	all := nodeRange{uint64(g.resident), uint64(g.topo.Nodes())}
	if misses <= g.maxPairs {
		return []nodeRange{all}
	}
	const countBits = 16
	shift := max(0, bits.Len64(all.hi)-countBits)
	counts := make([]int, all.hi>>shift+1)
	g.cold(batches, hop, all, func(v, _ uint32) { counts[v>>shift]++ })
	var parts []nodeRange
	n, lo := 0, all.lo
	for c, count := range counts {
		if n > 0 && n+count > g.maxPairs {
			cut := uint64(c) << shift
			parts = append(parts, nodeRange{lo, cut})
			n, lo = 0, cut
		}
		n += count
	}
	return append(parts, nodeRange{lo, all.hi})
}

// cold calls do with the destinations of a hop that lie in part, where nothing is resident, and have something to draw: with
// the node, and which destination of the group it is.
func (g *Group) cold(batches []*Batch, hop int, part nodeRange, do func(v, destination uint32)) {
	for i, b := range batches {
		block, dst := g.drawers[0].block(b, hop)
		for at, v := range dst {
			if uint64(v) >= part.lo && uint64(v) < part.hi && block.Start[at] < block.End[at] {
				do(v, g.bases[i]+uint32(at))
			}
		}
	}
}

// collect sets pairs to those of part, sorted, nodes to theirs, each once, and first to where each of them begins.
func (g *Group) collect(batches []*Batch, hop int, part nodeRange) {
	g.pairs = g.pairs[:0]
	g.cold(batches, hop, part, func(v, destination uint32) { g.pairs = append(g.pairs, pair(v)<<32|pair(destination)) })
	g.scratch = resize(g.scratch, len(g.pairs))
	sortByNode(g.pairs, g.scratch, part)
	g.nodes, g.first = g.nodes[:0], g.first[:0]
	for i, p := range g.pairs {
		if v := p.node(); len(g.nodes) == 0 || g.nodes[len(g.nodes)-1] != v {
			g.nodes, g.first = append(g.nodes, v), append(g.first, uint32(i))
		}
	}
	g.first = append(g.first, uint32(len(g.pairs)))
}

// sortByNode sorts pairs, whose nodes lie in part, by radix: the lowest bits first, keeping the order of what is equal.
func sortByNode(pairs, scratch []pair, part nodeRange) {
	const digit = 11 // a table of 2,048 counts stays in the fastest cache
	var counts [1 << digit]int
	from, to := pairs, scratch
	for shift := 0; (part.hi-part.lo)>>shift > 0; shift += digit {
		clear(counts[:])
		at := func(p pair) int { return int(uint64(p.node())-part.lo) >> shift & (1<<digit - 1) }
		for _, p := range from {
			counts[at(p)]++
		}
		n := 0
		for i, count := range counts {
			counts[i] = n
			n += count
		}
		for _, p := range from {
			i := at(p)
			to[counts[i]] = p
			counts[i]++
		}
		from, to = to, from
	}
	if len(pairs) > 0 && &from[0] != &pairs[0] {
		copy(pairs, from)
	}
}
