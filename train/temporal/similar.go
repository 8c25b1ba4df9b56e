package temporal

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sort"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// SimilarNodes is how many similar nodes a node has at most (MSPipe, arXiv 2402.15113, section 4).
const SimilarNodes = 10

// recentPartners is how many of a node's partners count: those of its latest events. It bounds what a node of millions of events costs, which
// is a step for each pair of its partners.
const recentPartners = 10_000

// noNode fills lists of similar nodes that have fewer.
const noNode = math.MaxUint32

// Similar is the nodes that are most similar to each node of a stream: those that had events with the same nodes. It takes 40 bytes a node
// outside the Go heap, and is safe for concurrent use.
type Similar struct {
	buf *kernels.HostBuf
	ids []uint32 // SimilarNodes a place
}

// SimilarBytes is what Similar takes for so many nodes.
func SimilarBytes(places int64) int64 { return 4 * SimilarNodes * places }

// NewSimilar reads the events up to to-1, those of training: later ones would tell of what is to be predicted. The partners of a node are the
// nodes it had an event with, whichever was the source, each once; of more than ten thousand those of its latest events. Node u is similar to v
// when a partner of v has both among its partners, and the more such partners, the more similar; of equally similar nodes those at smaller
// places go first. The result does not depend on the number of workers.
//
// Beside the result, while it works it takes 8 bytes a node and 4 a partner outside the Go heap, at most 8 an event, and up to 6 bytes a node
// for each worker. It ends early with ctx. Close it.
func NewSimilar(ctx context.Context, e *store.Events, to int64, workers int) (*Similar, error) {
	return newSimilar(ctx, e, to, workers, recentPartners)
}

func newSimilar(ctx context.Context, e *store.Events, to int64, workers, recent int) (*Similar, error) {
	if err := numbered(e); err != nil {
		return nil, err
	}
	places := e.Places()
	p := partners{e: e, to: to, most: recent}
	defer p.close()
	if err := p.find(ctx, workers); err != nil {
		return nil, fmt.Errorf("similar nodes of stream %s: %w", e.Stream.Name, err)
	}
	buf, err := kernels.NewHostBuf(int(SimilarBytes(places)))
	if err != nil {
		return nil, err
	}
	s := &Similar{buf, buf.Uint32s()}
	err = eachPlace(ctx, places, workers, func() func(int64) error {
		c := common{counts: make([]uint16, places)}
		return func(place int64) error {
			c.fill(s.ids[SimilarNodes*place:][:SimilarNodes], uint32(place), &p)
			return nil
		}
	})
	if err != nil {
		s.Close()
		return nil, fmt.Errorf("similar nodes of stream %s: %w", e.Stream.Name, err)
	}
	return s, nil
}

// Of is the places of the nodes similar to the one at place, the most similar first. The slice is borrowed: it is valid until Close.
func (s *Similar) Of(place uint32) []uint32 {
	ids := s.ids[SimilarNodes*int(place):][:SimilarNodes:SimilarNodes]
	if end := slices.Index(ids, noNode); end >= 0 {
		ids = ids[:end:end]
	}
	return ids
}

// Close gives up the memory.
func (s *Similar) Close() { s.buf.Close() }

// partners is the lists of partners of all nodes.
type partners struct {
	e    *store.Events
	to   int64 // events
	most int   // of a node

	ends *kernels.HostBuf
	end  []uint64 // where the list of each place ends; the next begins there
	buf  *kernels.HostBuf
	ids  []uint32 // the lists, one behind the other
}

// find counts first and then writes, so that nothing is allocated that is not needed.
func (p *partners) find(ctx context.Context, workers int) (err error) {
	places := p.e.Places()
	if p.ends, err = kernels.NewHostBuf(int(8 * places)); err != nil {
		return err
	}
	p.end = p.ends.Uint64s()
	pass := func(visit func(place int64, list []uint32)) error {
		return eachPlace(ctx, places, workers, func() func(int64) error {
			var list []uint32
			seen := make([]uint32, places) // by place: the place, plus 1, whose list has it
			return func(place int64) (err error) {
				if list, err = p.read(list[:0], seen, place); err == nil {
					visit(place, list)
				}
				return err
			}
		})
	}
	if err := pass(func(place int64, list []uint32) { p.end[place] = uint64(len(list)) }); err != nil {
		return err
	}
	total := uint64(0)
	for place, n := range p.end {
		total += n
		p.end[place] = total
	}
	if p.buf, err = kernels.NewHostBuf(int(4 * total)); err != nil {
		return err
	}
	p.ids = p.buf.Uint32s()
	return pass(func(place int64, list []uint32) { copy(p.of(uint32(place)), list) })
}

// read appends the partners of a node to list. Those of a node with too many are in ascending order, for has.
func (p *partners) read(list, seen []uint32, place int64) ([]uint32, error) {
	near := p.e.Near(place)
	end := sort.Search(len(near), func(i int) bool { return int64(near[i].Event) >= p.to })
	nodes, first := p.e.Sources, int64(0)
	if p.e.Stream.Src != p.e.Stream.Dst && place < p.e.Sources {
		nodes, first = p.e.Destinations, p.e.Sources
	}
	for i := end - 1; i >= 0 && len(list) < p.most; i-- {
		if int64(near[i].Neighbor) >= nodes {
			lo, _ := p.e.List(place)
			return nil, p.e.Corrupt(&p.e.Stream.Near, store.HalfEdgeBytes*(int64(lo)+int64(i)), "event %d is of node %d of %d", near[i].Event, near[i].Neighbor, nodes)
		}
		if u := uint32(first) + near[i].Neighbor; seen[u] != uint32(place)+1 {
			seen[u] = uint32(place) + 1
			list = append(list, u)
		}
	}
	if len(list) == p.most {
		slices.Sort(list)
	}
	return list, nil
}

// of is the partners of the node at a place.
func (p *partners) of(place uint32) []uint32 {
	lo := uint64(0)
	if place > 0 {
		lo = p.end[place-1]
	}
	return p.ids[lo:p.end[place]]
}

// has tells whether u counts among the partners of w, which is a partner of u.
func (p *partners) has(w, u uint32) bool {
	list := p.of(w)
	if len(list) < p.most {
		return true
	}
	_, found := slices.BinarySearch(list, u)
	return found
}

func (p *partners) close() {
	for _, buf := range []*kernels.HostBuf{p.ends, p.buf} {
		if buf != nil {
			buf.Close()
		}
	}
}

// common counts common partners of one node after another.
type common struct {
	counts  []uint16 // by place, zeros between nodes; at most recentPartners
	touched []uint32 // whose count is not 0
}

// fill writes the nodes similar to the one at a place.
func (c *common) fill(ids []uint32, place uint32, p *partners) {
	c.touched = c.touched[:0]
	for _, w := range p.of(place) {
		if !p.has(w, place) {
			continue
		}
		for _, u := range p.of(w) {
			if c.counts[u] == 0 {
				c.touched = append(c.touched, u)
			}
			c.counts[u]++
		}
	}
	var best [SimilarNodes]uint64 // ascending: the count, and behind it the place, of which smaller ones are more
	for _, u := range c.touched {
		key := uint64(c.counts[u])<<32 | uint64(^u)
		c.counts[u] = 0
		if u == place || key < best[0] {
			continue
		}
		i := 1
		for ; i < len(best) && best[i] < key; i++ {
			best[i-1] = best[i]
		}
		best[i-1] = key
	}
	for i := range ids {
		ids[i] = ^uint32(best[len(best)-1-i])
	}
}

// placesAtOnce is how many places a worker takes at a time: few where some have long lists.
const placesAtOnce = 256

// eachPlace visits all places, in any order, by the visitor that each worker makes for itself.
func eachPlace(ctx context.Context, places int64, workers int, visitor func() func(place int64) error) error {
	var next atomic.Int64
	g, ctx := errgroup.WithContext(ctx)
	for range max(1, min(int64(workers), (places+placesAtOnce-1)/placesAtOnce)) {
		g.Go(func() error {
			return store.Guard(func() error {
				visit := visitor()
				for lo := next.Add(placesAtOnce) - placesAtOnce; lo < places; lo = next.Add(placesAtOnce) - placesAtOnce {
					if err := ctx.Err(); err != nil {
						return err
					}
					for place := lo; place < min(lo+placesAtOnce, places); place++ {
						if err := visit(place); err != nil {
							return err
						}
					}
				}
				return nil
			})
		})
	}
	return g.Wait()
}
