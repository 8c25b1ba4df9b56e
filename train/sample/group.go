package sample

import (
	"context"
	"fmt"
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
	// or in parts of which each begins at neighbour from; several at once. What it gets is only read, and not kept. The end of
	// ctx is an error.
	Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error
	// SelfLoops gives a function that says how often v is its own neighbour.
	SelfLoops(ctx context.Context) (count func(v uint32) int, err error)
	// Count takes note of lists that were drawn from: so many that were resident, so many that were not.
	Count(hits, misses int64)
}

// WeightedGroupTopology is a GroupTopology whose edges have weights.
type WeightedGroupTopology interface {
	GroupTopology
	// Weights returns the weights of v's edges, v being below Resident, in the order of Neighbors.
	Weights(v uint32) []float32
	// ReadWeights does for weights what Read does for lists.
	ReadWeights(ctx context.Context, nodes []uint32, serve func(i, from int, part []float32) error) error
}

// Group draws several batches together, hop by hop: at each, the lists that are not resident and that any of the batches
// wants are read in one pass over the file, each once, and drawn from as they come. The more batches, the closer together in
// the file are the lists that a pass wants. Weights take a pass more, and random walks one a step.
//
// Batches are those of a [Sampler] over the whole topology, bit for bit, whatever is resident, however many batches come
// together, and whoever draws them. A Group is used by one goroutine at a time, and has workers of its own at work inside
// Sample. Beside the batches it takes what Config.Scratch says.
type Group struct {
	Config
	// Bytes bounds what the batches of a group keep together of walks, and of cold lists for LABOR-*. When a hop wants more, it
	// draws fewer batches at a time, at least one, so that lists may be read more than once. It changes no batch. Default 128 MiB.
	Bytes int64

	topo     GroupTopology
	weighted WeightedGroupTopology // topo, where weights are wanted
	resident uint32
	drawers  []drawer
	jobs     []job
	cold
}

// NewGroup draws from topo as NewSampler does, on up to workers goroutines; with Config.Weighted it is a
// WeightedGroupTopology.
func NewGroup(topo GroupTopology, c Config, workers int) *Group {
	g := &Group{topo: topo, resident: topo.Resident()}
	g.Bytes, g.maxPairs, g.parts, g.choosers.New = defaultBytes, maxPairs, map[int]*partial{}, func() any { return new(chooser) }
	for range max(1, workers) {
		d := newDrawer(topo.Nodes(), c)
		d.near = g.near
		g.drawers = append(g.drawers, d)
	}
	if g.Config = g.drawers[0].Config; g.Weighted {
		g.weighted = topo.(WeightedGroupTopology)
	}
	return g
}

// Sample fills batches[i] with the blocks of seeds[i] under z[i], as [Sampler.Sample] does. The error is a *NeighborError, a
// *WeightError, one of the topology's, or ctx's, which ends a pass over the file as well; batches are undefined then.
func (g *Group) Sample(ctx context.Context, batches []*Batch, z []Z, seeds [][]uint32) error {
	if len(z) != len(batches) || len(seeds) != len(batches) {
		panic(fmt.Sprintf("sample: Group: %d batches, %d z, %d lists of seeds", len(batches), len(z), len(seeds)))
	}
	if err := g.countLoops(ctx); err != nil {
		return err
	}
	for i := range g.drawers {
		g.drawers[i].last = finished{} // another may since have drawn the batch anew
	}
	for i, b := range batches {
		g.drawers[0].begin(b, seeds[i])
	}
	for hop := range g.Fanouts {
		for at := 0; at < len(batches); {
			jobs := g.begin(batches[at:], z[at:], hop)
			if err := g.draw(ctx, jobs); err != nil {
				return err
			}
			at += len(jobs)
		}
		if err := g.each(ctx, len(batches), func(d *drawer, i int) error { return d.finish(batches[i], hop) }); err != nil {
			return err
		}
	}
	return nil
}

// begin makes jobs of a hop of batches, of the first ones, as many as may be drawn together. What a job has grown to serves the
// next in its place, so that this is all there is at a time.
func (g *Group) begin(batches []*Batch, z []Z, hop int) []job {
	bytes := int64(0)
	for i, b := range batches {
		block, dst := g.drawers[0].block(b, hop)
		if bytes += g.bytes(dst); i > 0 && bytes > g.Bytes {
			return g.jobs[:i]
		}
		if i == len(g.jobs) {
			g.jobs = append(g.jobs, job{})
		}
		g.jobs[i].begin(block, dst, g.draws(z[i], hop))
	}
	return g.jobs[:len(batches)]
}

// draw fills the blocks of jobs.
func (g *Group) draw(ctx context.Context, jobs []job) error {
	switch {
	case jobs[0].draws.fanout == 0: // no list is read
	case g.Kind == RW:
		return g.walk(ctx, jobs)
	case g.Kind == LaborStar:
		return g.drawStar(ctx, jobs)
	}
	hits, misses, err := g.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) {
		return d.fill(j.block, j.dst, &j.draws)
	})
	if err == nil && misses > 0 && g.Weighted {
		err = g.readWeights(ctx, jobs, misses)
	}
	if err == nil && misses > 0 {
		err = g.readLists(ctx, jobs, misses)
	}
	if err == nil {
		g.topo.Count(hits, misses)
	}
	return err
}

// all has work done for each of jobs, and adds up how many lists at hand it saw, and how many others.
func (g *Group) all(ctx context.Context, jobs []job, work func(d *drawer, j *job) (hits, misses int, err error)) (hits, misses int64, err error) {
	var here, away atomic.Int64
	err = g.each(ctx, len(jobs), func(d *drawer, i int) error {
		h, m, err := work(d, &jobs[i])
		here.Add(int64(h))
		away.Add(int64(m))
		return err
	})
	return here.Load(), away.Load(), err
}

// walk has the walkers of jobs take their steps, and fills blocks with those whom they visited.
func (g *Group) walk(ctx context.Context, jobs []job) error {
	for i := range jobs {
		j := &jobs[i]
		if j.walkers == nil {
			j.walkers = new(walkers)
		}
		j.walkers.begin(g.Walk, &j.draws, j.dst)
		j.lists = j.walkers.at
	}
	for range g.Walk.Length {
		hits, misses, err := g.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) {
			hits, misses = d.fillWalk(j.walkers)
			return hits, misses, nil
		})
		if err == nil && misses > 0 {
			err = g.readLists(ctx, jobs, misses)
		}
		if err == nil {
			err = g.each(ctx, len(jobs), func(_ *drawer, i int) error { return jobs[i].walkers.next(g.topo.Nodes()) })
		}
		if err != nil {
			return err
		}
		g.topo.Count(hits, misses)
	}
	return g.each(ctx, len(jobs), func(d *drawer, i int) error {
		d.fillVisits(jobs[i].block, jobs[i].walkers, jobs[i].draws.fanout)
		return nil
	})
}

// drawStar copies the lists of jobs that are not resident, and draws from all of them.
func (g *Group) drawStar(ctx context.Context, jobs []job) error {
	hits, misses, err := g.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) {
		j.whole = d.appendLists(j.whole[:0], j.dst)
		n := 0
		for _, l := range j.whole {
			if l.ids == nil {
				n += l.degree
			}
		}
		j.arena = resize(j.arena, n)
		n = 0
		for i := range j.whole {
			switch l := &j.whole[i]; {
			case l.degree == 0:
			case l.ids == nil:
				l.ids = j.arena[n : n+l.degree]
				n += l.degree
				misses++
			default:
				hits++
			}
		}
		return hits, misses, nil
	})
	if err == nil && misses > 0 {
		err = g.readLists(ctx, jobs, misses)
	}
	if err != nil {
		return err
	}
	g.topo.Count(hits, misses)
	return g.each(ctx, len(jobs), func(d *drawer, i int) error {
		j := &jobs[i]
		d.star.lists = j.whole
		d.fillStar(j.block, j.dst, &j.draws)
		d.star.lists = nil
		return nil
	})
}

// near implements drawer.near.
func (g *Group) near(near *[ahead]list, nodes []uint32) {
	for i, v := range nodes {
		if v >= g.resident {
			near[i] = list{degree: g.topo.Degree(v)}
			continue
		}
		ids := g.topo.Neighbors(v)
		near[i] = list{ids: ids, degree: len(ids)}
		if g.Weighted {
			near[i].weights = g.weighted.Weights(v)
		}
	}
}

// countLoops asks the topology for self loops before the first batch that needs them: that may read all of it.
func (g *Group) countLoops(ctx context.Context) error {
	if !g.GCN || g.drawers[0].degree != nil {
		return nil
	}
	count, err := g.topo.SelfLoops(ctx)
	if err != nil {
		return err
	}
	for i := range g.drawers {
		g.drawers[i].degree = func(v uint32) (degree, selves int) { return g.topo.Degree(v), count(v) }
	}
	return nil
}

// each calls work for 0 to n-1, each once, on the drawers, and returns the error of the first that has one. When ctx ends,
// they have its.
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
