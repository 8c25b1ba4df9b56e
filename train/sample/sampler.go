package sample

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
)

// Sampler draws several batches together, hop by hop and relation by relation: at each, the lists
// that are not resident and that any of the batches wants are read in one pass over the file, each
// once, and drawn from as they come. The more batches, the closer together in the file are the
// lists that a pass wants. Weights take a pass more, and random walks one a step; values that edges
// bring along take a pass a column for all hops ([Sampler.Bring]), and the numbers of their rows
// take one ([Sampler.BringRows]).
//
// A batch is the same, bit for bit, whatever is resident, however many batches come together, and
// whichever worker draws them. One goroutine at a time uses a Sampler, and Sample runs workers of
// its own. Beside the batches it takes the memory that [Sampler.Scratch] returns.
type Sampler struct {
	Config
	// Bytes bounds the walks of the batches of a group, and their lists for LABOR-* and Without.
	// When a hop wants more, it draws fewer batches at a time, at least one, so lists may be read
	// more than once. SampleFar takes as much for all that it keeps. It changes no batch. Default
	// 128 MiB.
	Bytes int64
	// Guard runs the work of a worker, and returns its error: store.Guard, for lists that are
	// mapped. Default: nothing is caught.
	Guard func(work func() error) error

	schema    Schema
	known     int             // number of relations of the graph
	relations []relation      // relations with blocks in batches; none with Options.NoBlocks
	sets      [][][]*relation // relations that are drawn together, by hop
	drawers   []drawer
	jobs      []job
	own       []*Batch // of SampleFar
	served    []*Batch // of SampleParts: what was drawn for each worker
	cold
}

// NewSampler draws from a graph of one type and one relation, on up to workers goroutines. With
// Config.Weighted topo is a WeightedTopology. A Config that is not valid panics.
func NewSampler(topo Topology, c Config, workers int) *Sampler {
	return NewTyped(OneType(topo.Nodes()), []Topology{topo}, c, workers)
}

// NewTyped draws from a graph of schema, with the topology of each relation. A Config that does not
// fit it panics.
func NewTyped(schema Schema, topo []Topology, c Config, workers int) *Sampler {
	if err := c.Validate(); err != nil {
		panic("sample: " + err.Error())
	}
	if err := c.Fits(schema); err != nil {
		panic("sample: " + err.Error())
	}
	if len(topo) != len(schema.Relations) {
		panic(fmt.Sprintf("sample: NewTyped: %d relations, and the topology of %d", len(schema.Relations), len(topo)))
	}
	s := &Sampler{Config: c.filled(), Bytes: defaultBytes, schema: schema, known: len(topo)}
	if c.NoBlocks {
		s.schema.Relations = nil
	}
	s.maxPairs, s.parts, s.choosers.New = maxPairs, map[int]*partial{}, func() any { return new(chooser) }
	for i, r := range s.schema.Relations {
		s.relations = append(s.relations, newRelation(i, r, topo[i], &s.Config))
	}
	for hop := range s.Fanouts {
		s.sets = append(s.sets, s.together(hop))
	}
	for range max(1, workers) {
		s.drawers = append(s.drawers, newDrawer(s.schema, s.Config))
	}
	return s
}

// SampleOne is Sample for one batch. seeds has the seeds of each type.
func (s *Sampler) SampleOne(ctx context.Context, b *Batch, batchSeed BatchSeed, seeds ...[]uint32) error {
	return s.Sample(ctx, []*Batch{b}, []BatchSeed{batchSeed}, [][][]uint32{seeds})
}

// Sample fills batches[i] with the layers of seeds[i], a list a type of nodes that differ from each
// other, under z[i]. The draws depend on z, the layer (1 reads features, len(Fanouts) makes the
// seeds), the relation and the nodes. The error is a *NeighborError, a *WeightError, a *ValueError,
// a *RowError, one of the topology's, or ctx's, which ends a draw in the middle of a batch as well;
// batches are undefined then.
func (s *Sampler) Sample(ctx context.Context, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32) error {
	return s.SampleThrough(ctx, nil, batches, batchSeeds, seeds)
}

// SampleThrough is Sample with an Expander: unless it is nil, it chooses after each hop the nodes
// that are drawn further.
func (s *Sampler) SampleThrough(
	ctx context.Context, e Expander, batches []*Batch, batchSeeds []BatchSeed, seeds [][][]uint32,
) error {
	if len(batchSeeds) != len(batches) || len(seeds) != len(batches) {
		panic(fmt.Sprintf("sample: Sample: %d batches, %d batch seeds, %d lists of seeds", len(batches), len(batchSeeds), len(seeds)))
	}
	s.checkWithout(e, batches)
	if err := s.countLoops(ctx); err != nil {
		return err
	}
	for i := range s.drawers {
		s.drawers[i].last = finished{} // another may since have drawn the batch anew
	}
	for i, b := range batches {
		s.drawers[0].begin(b, seeds[i])
		b.dealt, b.halos = nil, nil
	}
	if e == nil && s.how().own == nil && s.atHand() {
		if err := s.drawWhole(ctx, batches, batchSeeds); err != nil {
			return err
		}
		return s.bring(ctx, batches)
	}
	for hop := range s.Fanouts {
		if err := s.drawHop(ctx, batches, batchSeeds, hop); err != nil {
			return err
		}
		err := s.each(ctx, len(batches), func(d *drawer, i int) error {
			err := d.finish(batches[i], hop)
			if err == nil && e == nil {
				d.descend(batches[i], hop)
			}
			return err
		})
		if err == nil && e != nil {
			err = s.expand(ctx, e, batches, hop)
		}
		if err != nil {
			return err
		}
	}
	return s.bring(ctx, batches)
}

// drawHop draws a hop of batches whose destinations are known.
func (s *Sampler) drawHop(ctx context.Context, batches []*Batch, batchSeeds []BatchSeed, hop int) error {
	for _, set := range s.sets[hop] {
		for at := 0; at < len(batches); {
			n := s.fit(set, batches[at:], hop)
			if err := s.draw(ctx, s.begin(set, batches[at:at+n], batchSeeds[at:], hop), n); err != nil {
				return err
			}
			at += n
		}
	}
	return nil
}

// atHand reports whether all lists are in memory.
func (s *Sampler) atHand() bool {
	for _, r := range s.relations {
		if int64(r.resident) < int64(r.topo.Nodes()) {
			return false
		}
	}
	return true
}

// drawWhole draws batches where all lists are in memory: a worker draws one batch through all hops.
// So no worker waits for the others after a hop, and the index of sources stays from hop to hop.
func (s *Sampler) drawWhole(ctx context.Context, batches []*Batch, batchSeeds []BatchSeed) error {
	jobs := s.someJobs(len(batches))
	return s.each(ctx, len(batches), func(d *drawer, i int) error {
		b, j := batches[i], &jobs[i]
		for hop := range s.Fanouts {
			for k := range s.relations {
				s.assign(j, &s.relations[k], b, batchSeeds[i], hop)
				hits, _, err := d.fill(ctx, j)
				if err != nil {
					return err
				}
				j.topo.Count(int64(hits), 0)
			}
			if err := d.finish(b, hop); err != nil {
				return err
			}
			d.descend(b, hop)
		}
		return nil
	})
}

// together groups relations into sets that are drawn at once at a hop: one relation each, or all
// from one type where these share probabilities.
func (s *Sampler) together(hop int) (sets [][]*relation) {
	ofType := map[int]int{} // index of its set
	for i := range s.relations {
		r := &s.relations[i]
		own := s.how().own
		shares := own != nil && own.together && s.FanoutOf(hop, i) != 0
		if n, ok := ofType[r.Src]; ok && shares {
			sets[n] = append(sets[n], r)
			continue
		}
		if shares {
			ofType[r.Src] = len(sets)
		}
		sets = append(sets, []*relation{r})
	}
	return sets
}

// fit counts the batches, from the first on, that draw set together at a hop: as many as Bytes
// allows, at least one.
func (s *Sampler) fit(set []*relation, batches []*Batch, hop int) int {
	bytes := int64(0)
	for i, b := range batches {
		for _, r := range set {
			dst := b.Layers[len(s.Fanouts)-1-hop].Nodes[r.Dst].destinations()
			bytes += s.bytes(r, dst) + s.heldBytes(r, b, dst)
		}
		if i > 0 && bytes > s.Bytes {
			return i
		}
	}
	return len(batches)
}

// begin makes the jobs of set at a hop of batches: first the jobs of the first relation, one a
// batch, then the jobs of the next relation.
func (s *Sampler) begin(set []*relation, batches []*Batch, batchSeeds []BatchSeed, hop int) []job {
	jobs := s.someJobs(len(set) * len(batches))
	for k, r := range set {
		for i, b := range batches {
			s.assign(&jobs[k*len(batches)+i], r, b, batchSeeds[i], hop)
		}
	}
	return jobs
}

// someJobs returns n jobs: old ones with their memory, as far as there are some.
func (s *Sampler) someJobs(n int) []job {
	for len(s.jobs) < n {
		s.jobs = append(s.jobs, job{})
	}
	return s.jobs[:n]
}

// assign makes j the job to draw b's neighbours by r at a hop.
func (s *Sampler) assign(j *job, r *relation, b *Batch, batchSeed BatchSeed, hop int) {
	layer := &b.Layers[len(s.Fanouts)-1-hop]
	draws := s.draws(batchSeed, hop, r.number, r.Src)
	j.begin(r, &layer.Blocks[r.number], layer.Nodes[r.Dst].destinations(), draws)
	j.leave(b.without(r.number))
}

// draw fills the blocks of jobs, n of each relation.
func (s *Sampler) draw(ctx context.Context, jobs []job, n int) error {
	if own := s.how().own; own != nil && jobs[0].draws.fanout != 0 {
		return own.draw(s, ctx, jobs, n)
	}
	hits, misses, err := s.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) { return d.fill(ctx, j) })
	if err == nil && misses > 0 && s.Weighted {
		err = s.readWeights(ctx, jobs, misses)
	}
	if err == nil && misses > 0 {
		err = s.readLists(ctx, jobs, misses)
	}
	if err == nil {
		err = s.readHeld(ctx, jobs)
	}
	if err == nil {
		for i := range jobs {
			misses += int64(len(jobs[i].held))
		}
		jobs[0].topo.Count(hits, misses)
	}
	return err
}

// all calls work for each of jobs, and adds up the lists at hand that it saw (hits), and the others
// (misses).
func (s *Sampler) all(ctx context.Context, jobs []job, work func(d *drawer, j *job) (hits, misses int, err error)) (hits, misses int64, err error) {
	var here, away atomic.Int64
	err = s.each(ctx, len(jobs), func(d *drawer, i int) error {
		h, m, err := work(d, &jobs[i])
		here.Add(int64(h))
		away.Add(int64(m))
		return err
	})
	return here.Load(), away.Load(), err
}

// takeLists fills the whole of each job, all of one relation, with the lists of its destinations.
func (s *Sampler) takeLists(ctx context.Context, jobs []job) error {
	hits, misses, err := s.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) {
		if j.whole, err = d.appendLists(ctx, j.whole[:0], j.relation, j.dst); err != nil {
			return 0, 0, err
		}
		n := 0
		for i, l := range j.whole {
			if l.ids == nil || len(j.without.Of(i)) > 0 {
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
			case len(j.without.Of(i)) > 0:
				n += copy(j.arena[n:], l.ids)
				l.ids = j.arena[n-l.degree : n]
				hits++
			default:
				hits++
			}
		}
		return hits, misses, nil
	})
	if err == nil && misses > 0 {
		err = s.readLists(ctx, jobs, misses)
	}
	if err == nil {
		for i := range jobs {
			jobs[i].shorten()
		}
		jobs[0].topo.Count(hits, misses)
	}
	return err
}

// countLoops asks the topology for self loops before the first batch that needs them: that may read
// all of it.
func (s *Sampler) countLoops(ctx context.Context) error {
	if !s.GCN || s.drawers[0].degree != nil {
		return nil
	}
	topo := s.relations[0].topo // there is just one
	count, err := topo.SelfLoops(ctx)
	if err != nil {
		return err
	}
	for i := range s.drawers {
		s.drawers[i].degree = func(_ int, v uint32) (degree, selves int) { return topo.Degree(v), count(v) }
	}
	return nil
}

// each calls work for 0 to n-1, each once, on the drawers. It returns the error of the lowest
// number that failed. Once ctx has ended, the rest fail with its error.
func (s *Sampler) each(ctx context.Context, n int, work func(d *drawer, i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	run := func(d *drawer) {
		for i := int(next.Add(1)) - 1; i < n; i = int(next.Add(1)) - 1 {
			switch errs[i] = ctx.Err(); {
			case errs[i] != nil:
			case s.Guard == nil:
				errs[i] = work(d, i)
			default:
				errs[i] = s.Guard(func() error { return work(d, i) })
			}
		}
	}
	var others sync.WaitGroup
	for w := 1; w < min(n, len(s.drawers)); w++ {
		others.Go(func() { run(&s.drawers[w]) })
	}
	run(&s.drawers[0])
	others.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
