package sample

import (
	"cmp"
	"context"
	"math"
	"math/bits"
	"slices"
)

// walking draws by random walks.
var walking = &ownDraws{
	draw: func(s *Sampler, ctx context.Context, jobs []job, _ int) error { return s.walk(ctx, jobs) },
	serve: func(j *job, n, degree, from int, part []uint32) {
		j.walkers.follow(n, degree, from, part)
	},
	bytes: func(s *Sampler, _ *relation, dst []uint32) int64 { return s.walkBytes(len(dst)) },
	scratch: func(s *Sampler, _ *relation, dst []uint32, _ int) (batch, lists, joined int64) {
		return s.walkBytes(len(dst)) + int64(len(dst))*int64(s.Walk.Walks)*pairBytes, 0, 0
	},
}

// walk moves the walkers of jobs through all their steps, and fills blocks with the nodes that they
// visited.
func (s *Sampler) walk(ctx context.Context, jobs []job) error {
	for i := range jobs {
		j := &jobs[i]
		if j.walkers == nil {
			j.walkers = new(walkers)
		}
		j.walkers.begin(s.Walk, &j.draws, j.dst)
		j.lists = j.walkers.at
	}
	for range s.Walk.Length {
		hits, misses, err := s.all(ctx, jobs, func(d *drawer, j *job) (hits, misses int, err error) {
			return d.fillWalk(ctx, j)
		})
		if err == nil && misses > 0 {
			err = s.readLists(ctx, jobs, misses)
		}
		if err == nil {
			err = s.each(ctx, len(jobs), func(_ *drawer, i int) error { return jobs[i].walkers.next(s.schema.Types[0]) })
		}
		if err != nil {
			return err
		}
		jobs[0].topo.Count(hits, misses)
	}
	return s.each(ctx, len(jobs), func(d *drawer, i int) error {
		d.fillVisits(&jobs[i])
		return nil
	})
}

// walkers are the random walks of a hop of a batch. All take a step together, so that its lists can
// be read together.
type walkers struct {
	Walk
	keys   []uint64 // of each destination
	dst    []uint32 // each is the start of Walks walkers, which are next to each other
	at     []uint32 // where each walker is
	visits []uint32 // of each walker, Length nodes; nobody where it had no neighbour to go to
	step   int
	seen   []uint64 // scratch of count
	counts []visit
}

// nobody is no node: ids are below 2³²-1.
const nobody = math.MaxUint32

// visit is a node, how often it was visited, and when first.
type visit struct{ node, times, first uint32 }

// begin puts walkers at each of dst.
func (w *walkers) begin(walk Walk, draws *draws, dst []uint32) {
	w.Walk, w.dst, w.step = walk, dst, 0
	w.keys = resize(w.keys, len(dst))
	w.at = resize(w.at, len(dst)*w.Walks)
	w.visits = resize(w.visits, len(w.at)*w.Length)
	for i, v := range dst {
		w.keys[i] = listKey(draws.first, v)
		for j := range w.Walks {
			w.at[i*w.Walks+j] = v
		}
	}
}

// number returns walker i's random number of this step.
func (w *walkers) number(i int) uint64 {
	return mix(w.keys[i/w.Walks] + uint64(i%w.Walks*w.Length+w.step+1)*golden)
}

// restart sends some walkers back to where they began.
func (w *walkers) restart() {
	if w.step == 0 {
		return
	}
	limit := uint64(w.Restart * 0x1p64)
	for i := range w.at {
		if mix(w.number(i)) < limit {
			w.at[i] = w.dst[i/w.Walks]
		}
	}
}

// follow moves walker i to a random neighbour of its node, if that lies in the part of the list
// that begins at place from.
func (w *walkers) follow(i, degree, from int, part []uint32) {
	place, _ := bits.Mul64(w.number(i), uint64(degree))
	if at := int(place) - from; at >= 0 && at < len(part) {
		w.visits[i*w.Length+w.step] = part[at]
	}
}

// stay notes that walker i's node has no neighbours, or that its list is still to come.
func (w *walkers) stay(i int) { w.visits[i*w.Length+w.step] = nobody }

// next ends the step. Walkers that found no neighbour go back to their start. The error is a
// *NeighborError.
func (w *walkers) next(nodes int) error {
	for i, v := range w.at {
		switch u := w.visits[i*w.Length+w.step]; {
		case u == nobody:
			w.at[i] = w.dst[i/w.Walks]
		case int64(u) >= int64(nodes):
			return &NeighborError{0, v, u, nodes} // the one relation there is
		default:
			w.at[i] = u
		}
	}
	w.step++
	return nil
}

// walkBytes returns the bytes of the walkers of so many destinations.
func (c *Config) walkBytes(dst int) int64 {
	return 4 * int64(dst) * int64(c.Walk.Walks) * int64(c.Walk.Length+1)
}

// fillWalk draws a step of j's walkers from the lists that are at hand. It counts these lists, and
// others.
func (d *drawer) fillWalk(ctx context.Context, j *job) (hits, misses int, err error) {
	w := j.walkers
	w.restart()
	for i := range w.at {
		if i%ahead == 0 {
			if err := d.read(ctx, j.relation, w.at[i:min(i+ahead, len(w.at))]); err != nil {
				return 0, 0, err
			}
		}
		w.stay(i)
		switch l := &d.lists[i%ahead]; {
		case l.degree == 0:
		case l.ids == nil:
			misses++
		default:
			hits++
			w.follow(i, l.degree, 0, l.ids)
		}
	}
	return hits, misses, nil
}

// fillVisits fills j's block with the nodes that the walkers of each destination visited most
// often, the most visited first; of equal ones the one visited earlier. A destination is not its
// own neighbour.
func (d *drawer) fillVisits(j *job) {
	b, w := j.block, j.walkers
	b.start(len(w.dst))
	each := w.Walks * w.Length
	for i, v := range w.dst {
		counts := w.count(v, w.visits[i*each:(i+1)*each])
		counts = counts[:min(j.draws.fanout, len(counts))]
		d.make(b, i, len(counts))
		out, values := b.drawn(i), b.values(i)
		for e, c := range counts {
			out[e], values[e] = c.node, float32(c.times)
		}
	}
}

// count returns the nodes in visits, without v, the most visited first.
func (w *walkers) count(v uint32, visits []uint32) []visit {
	w.seen, w.counts = w.seen[:0], w.counts[:0]
	for i, u := range visits {
		if u != nobody && u != v {
			w.seen = append(w.seen, uint64(u)<<32|uint64(i))
		}
	}
	slices.Sort(w.seen)
	for _, s := range w.seen {
		if n := len(w.counts); n > 0 && w.counts[n-1].node == uint32(s>>32) {
			w.counts[n-1].times++
		} else {
			w.counts = append(w.counts, visit{uint32(s >> 32), 1, uint32(s)})
		}
	}
	slices.SortFunc(w.counts, func(a, b visit) int {
		return cmp.Or(cmp.Compare(b.times, a.times), cmp.Compare(a.first, b.first))
	})
	return w.counts
}
