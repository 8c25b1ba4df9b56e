package sample

import (
	"context"
	"math"
	"math/bits"
	"slices"
	"sort"
	"sync"
)

// job holds the lists of a relation that one batch draws from at a hop, to fill a block.
type job struct {
	*relation
	block *Block
	dst   []uint32
	draws draws
	// lists are the nodes whose lists are wanted: dst, or where the walkers are. Once the block is
	// drawn, the job is only for Values.
	lists   []uint32
	drawn   bool
	walkers *walkers // of RW
	whole   []list   // of LABOR-*: all lists; arena has those not resident or losing edges
	arena   []uint32
	// Edges that the batch is drawn without.
	without Without
	held    []held // ascending; their lists in arena
	weights []float32
	lost    [][]uint32 // of LABOR-*: by seed, the places of the neighbours that its list lost
}

func (j *job) begin(r *relation, b *Block, dst []uint32, d draws) {
	j.relation, j.block, j.dst, j.draws, j.lists, j.drawn = r, b, dst, d, dst, false
	j.without, j.held = Without{}, j.held[:0]
	b.columns, b.brings, b.Table = r.columns, r.brings(), r.table
}

// leave makes j draw without the edges in w.
func (j *job) leave(w Without) {
	j.without = w
	j.block.lost = resize(j.block.lost, max(len(w.Start)-1, 0))
	clear(j.block.lost)
}

// cold is the state of a Sampler for passes over the file.
type cold struct {
	choosers sync.Pool // of *chooser, for lists as they come

	maxPairs int
	bases    []uint32 // by job: the number of its first list, counted over all jobs
	holding  bool     // the pass reads held lists
	pairs    []pair
	scratch  []pair
	nodes    []uint32 // of the pass, ascending
	first    []uint32 // of each of them: its first pair

	mu    sync.Mutex
	parts map[int]*partial // lists that have come in part, by index of their pair
}

// pair is a list that a job wants. The upper half is the node, the lower half the number of the
// list in the group. Sorted as numbers, pairs are in the order of the file.
type pair uint64

func (p pair) node() uint32 { return uint32(p >> 32) }
func (p pair) list() uint32 { return uint32(p) }

// maxPairs bounds the cold lists that a pass draws from. When a hop wants more, it makes several
// passes, each over a range of nodes, so that every list is still read once, and all of them in the
// order of the file. A pass over the 65,536th part of the nodes is not split further, so groups of
// more than 32 batches may take more in theory.
const maxPairs = 1 << 21

// pairBytes is the memory that a pass takes for a cold list that a batch draws from.
const pairBytes = 8 + 8 + 4 + 4

// readLists draws from the lists of jobs, all of one relation, that are not resident. There are at
// most misses of them.
func (s *Sampler) readLists(ctx context.Context, jobs []job, misses int64) error {
	if s.Weighted { // weights have chosen the places already
		for i := range jobs {
			jobs[i].remember()
		}
	}
	return s.passes(jobs, misses, func() error {
		return jobs[0].topo.Read(ctx, s.nodes, func(i, from int, part []uint32) error {
			c := s.choosers.Get().(*chooser)
			defer s.choosers.Put(c)
			for at := s.first[i]; at < s.first[i+1]; at++ {
				if err := s.serve(c, jobs, int(at), from, part); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	})
}

// remember copies places from Nbr to places, for lists that are not resident. Nbr holds places
// until these lists come.
func (j *job) remember() {
	b := j.block
	if !b.brings {
		b.places = append(b.places[:0], b.Nbr...)
		return
	}
	for i, v := range j.dst { // resident lists have their places already
		if v >= j.resident {
			copy(b.placesOf(i), b.drawn(i))
		}
	}
}

// serve draws for pair number at from a part of its list, which begins at neighbour from.
func (s *Sampler) serve(c *chooser, jobs []job, at, from int, part []uint32) (err error) {
	j, n, v := s.of(jobs, at)
	degree := j.topo.Degree(v)
	if own := s.how().own; own != nil {
		own.serve(j, n, degree, from, part)
		return nil
	}
	b := j.block
	out, places, k := b.drawn(n), b.placesOf(n), j.draws.fanout
	switch {
	case s.Weighted:
		for e := b.Start[n]; e < b.End[n]; e++ {
			if i := int(b.places[e]) - from; i >= 0 && i < len(part) {
				b.Nbr[e] = part[i]
			}
		}
	case k == All || k >= degree:
		copy(out[from:], part)
		if places != nil {
			count(places[from:][:len(part)], from)
		}
	case s.floyds():
		c.floydPart(out, places, degree, from, part, listKey(j.draws.first, v))
	case len(part) == degree:
		m := 0
		m, err = c.choose(&s.Config, &j.draws, v, &list{ids: part, degree: degree}, out, nil, places)
		b.End[n] = b.Start[n] + uint32(m)
	default:
		numbers, limit := s.numbers(&j.draws, v), uint64(math.MaxUint64)
		if s.Poisson {
			limit, _ = s.limit(&numbers, k, degree)
		}
		p := s.partial(at, len(out), limit)
		p.Lock()
		defer p.Unlock()
		p.show(&s.Config, &numbers, from, part)
		if p.seen += len(part); p.seen == degree {
			s.forget(at)
			b.End[n] = b.Start[n] + uint32(takeIDs(out, places, p.chosen()))
		}
	}
	return err
}

// readWeights chooses places of neighbours, by their weights, from the lists of jobs that are not
// resident.
func (s *Sampler) readWeights(ctx context.Context, jobs []job, misses int64) error {
	return s.passes(jobs, misses, func() error {
		return jobs[0].weighted.ReadWeights(ctx, s.nodes, func(i, from int, part []float32) error {
			c := s.choosers.Get().(*chooser)
			defer s.choosers.Put(c)
			for at := s.first[i]; at < s.first[i+1]; at++ {
				if err := s.serveWeights(c, jobs, int(at), from, part); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	})
}

// serveWeights is serve for weights.
func (s *Sampler) serveWeights(c *chooser, jobs []job, at, from int, part []float32) error {
	j, n, v := s.of(jobs, at)
	b, degree := j.block, j.topo.Degree(v)
	out, values := b.drawn(n), b.values(n)
	if len(part) == degree {
		m, err := c.weighted(&j.draws, v, part, out, values)
		b.End[n] = b.Start[n] + uint32(m)
		return err
	}
	p := s.partial(at, len(out)+1, math.MaxUint64)
	p.Lock()
	defer p.Unlock()
	numbers := j.draws.ofList(v)
	if bad := p.offerWeights(&numbers, from, part); bad >= 0 {
		return &WeightError{j.number, v, bad, part[bad-from]}
	}
	if p.seen += len(part); p.seen == degree {
		s.forget(at)
		b.End[n] = b.Start[n] + uint32(p.takeWeighted(out, values))
	}
	return nil
}

// partial is an unfinished choice from a list that comes in parts.
type partial struct {
	sync.Mutex
	selection
	seen int // neighbours

	out, places []uint32 // of Floyd's algorithm, where no block has place for them
}

// partial returns the choice for a pair. A new one keeps keep candidates, with numbers up to limit.
func (s *Sampler) partial(at, keep int, limit uint64) *partial {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.parts[at]
	if p == nil {
		p = new(partial)
		p.reset(keep, limit)
		s.parts[at] = p
	}
	return p
}

// forget drops the partial of a pair whose list is through.
func (s *Sampler) forget(at int) {
	s.mu.Lock()
	delete(s.parts, at)
	s.mu.Unlock()
}

// of returns the job that wants the list of pair number at, the index of the list in the job, and
// the list's node.
func (s *Sampler) of(jobs []job, at int) (j *job, n int, v uint32) {
	p := s.pairs[at]
	i := sort.Search(len(s.bases), func(i int) bool { return s.bases[i] > p.list() }) - 1
	return &jobs[i], int(p.list() - s.bases[i]), p.node()
}

// passes splits the nodes into ranges with at most maxPairs cold lists of jobs, and calls read for
// each. Before the call it sets s.nodes, s.pairs and s.first to the lists of the range.
func (s *Sampler) passes(jobs []job, misses int64, read func() error) error {
	s.bases = s.bases[:0]
	total := 0
	for i := range jobs {
		s.bases = append(s.bases, uint32(total))
		if total += len(jobs[i].lists); int64(total) > math.MaxUint32 {
			panic("sample: more than 4,294,967,295 lists in a group; use fewer or smaller batches")
		}
	}
	s.pairs = slices.Grow(s.pairs[:0], min(int(misses), s.maxPairs))
	for _, r := range s.ranges(jobs, misses) {
		s.collect(jobs, r)
		clear(s.parts)
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// nodeRange is the nodes from lo to hi, hi not included.
type nodeRange struct{ lo, hi uint64 }

// ranges splits the nodes into ranges with at most maxPairs cold lists each. A range of the finest
// count may have more.
func (s *Sampler) ranges(jobs []job, misses int64) []nodeRange {
	all := nodeRange{uint64(jobs[0].resident), uint64(jobs[0].topo.Nodes())}
	if misses <= int64(s.maxPairs) {
		return []nodeRange{all}
	}
	const countBits = 16
	shift := max(0, bits.Len64(all.hi)-countBits)
	counts := make([]int, all.hi>>shift+1)
	s.wanted(jobs, all, func(v, _ uint32) { counts[v>>shift]++ })
	var ranges []nodeRange
	n, lo := 0, all.lo
	for c, count := range counts {
		if n > 0 && n+count > s.maxPairs {
			cut := uint64(c) << shift
			ranges = append(ranges, nodeRange{lo, cut})
			n, lo = 0, cut
		}
		n += count
	}
	return append(ranges, nodeRange{lo, all.hi})
}

// wanted calls do for each list of jobs whose node lies in r and that a job draws from. Its
// arguments are the node, and the number of the list in the group. No list of r is resident.
func (s *Sampler) wanted(jobs []job, r nodeRange, do func(v, list uint32)) {
	for i := range jobs {
		j := &jobs[i]
		for n, v := range j.lists {
			if uint64(v) >= r.lo && uint64(v) < r.hi && s.wants(j, n, v) {
				do(v, s.bases[i]+uint32(n))
			}
		}
	}
}

// wants reports whether job j draws from list n, the list of node v.
func (s *Sampler) wants(j *job, n int, v uint32) bool {
	if s.holding {
		return v >= j.resident && len(j.held) > 0 && j.heldOf(n) != nil
	}
	if !j.drawn && s.how().own != nil {
		return j.topo.Degree(v) > 0
	}
	return j.block.Start[n] < j.block.End[n]
}

// collect sets s.pairs to the sorted pairs of r, s.nodes to their nodes, each once, and s.first to
// the place of each node's first pair.
func (s *Sampler) collect(jobs []job, r nodeRange) {
	s.pairs = s.pairs[:0]
	s.wanted(jobs, r, func(v, list uint32) { s.pairs = append(s.pairs, pair(v)<<32|pair(list)) })
	s.scratch = resize(s.scratch, len(s.pairs))
	sortByNode(s.pairs, s.scratch, r)
	s.nodes, s.first = s.nodes[:0], s.first[:0]
	for i, p := range s.pairs {
		if v := p.node(); len(s.nodes) == 0 || s.nodes[len(s.nodes)-1] != v {
			s.nodes, s.first = append(s.nodes, v), append(s.first, uint32(i))
		}
	}
	s.first = append(s.first, uint32(len(s.pairs)))
}

// sortByNode sorts pairs, whose nodes lie in r, by radix: the lowest bits first, so that equal
// nodes keep their order.
func sortByNode(pairs, scratch []pair, r nodeRange) {
	const digit = 11 // a table of 2,048 counts stays in the fastest cache
	var counts [1 << digit]int
	from, to := pairs, scratch
	for shift := 0; (r.hi-r.lo)>>shift > 0; shift += digit {
		clear(counts[:])
		at := func(p pair) int { return int(uint64(p.node())-r.lo) >> shift & (1<<digit - 1) }
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
