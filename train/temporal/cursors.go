package temporal

import (
	"context"
	"fmt"
	"math"
	"sort"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// cursors say of each node how many half-edges of its list are before the time at hand: these are
// the candidates for its neighbours. They move with the time and not with the events, so that
// events at one time do not see each other, and no entry has to be passed over.
type cursors struct {
	memory *kernels.HostBuf
	counts []uint32 // by place; nil without neighbours
	done   int64    // events that are counted: those before the first event at time now
	now    float64
}

// scan is the number of events that are counted between two checks of the context.
const scan = 1 << 16

// seek moves the cursors to their places when event is drawn.
func (c *cursors) seek(ctx context.Context, e *store.Events, event int64) error {
	at := func(i int64) float64 { return e.Times(i, i+1)[0] }
	to := event
	if event < e.Len() {
		c.now = at(event)
		to = int64(sort.Search(int(event), func(i int) bool { return !(at(int64(i)) < c.now) }))
	}
	if to < c.done {
		clear(c.counts)
		c.done = 0
	}
	return c.advance(ctx, e, to)
}

// advance counts the events up to to.
func (c *cursors) advance(ctx context.Context, e *store.Events, to int64) error {
	return eachScan(ctx, &c.done, to, func(lo, hi int64) error { return c.count(e, lo, hi) })
}

// eachScan goes through the events *done to to-1, at most scan at a time. It calls use for events
// lo to hi-1, and then sets *done to hi.
func eachScan(ctx context.Context, done *int64, to int64, use func(lo, hi int64) error) error {
	for *done < to {
		if err := ctx.Err(); err != nil {
			return err
		}
		hi := min(*done+scan, to)
		if err := use(*done, hi); err != nil {
			return err
		}
		*done = hi
	}
	return nil
}

// reach moves on to a time: the events before it are counted.
func (c *cursors) reach(ctx context.Context, e *store.Events, t float64) error {
	if t == c.now {
		return nil
	}
	for size := int64(16); c.done < e.Len(); size = min(4*size, scan) {
		times := e.Times(c.done, min(c.done+size, e.Len()))
		n := sort.Search(len(times), func(i int) bool { return !(times[i] < t) })
		if err := c.advance(ctx, e, c.done+int64(n)); err != nil {
			return err
		}
		if n < len(times) {
			break
		}
	}
	c.now = t
	return nil
}

// count counts the events lo to hi-1.
func (c *cursors) count(e *store.Events, lo, hi int64) error {
	src, dst := e.Ends(lo, hi)
	first := uint32(e.Place(0))
	for i, u := range src {
		v := first + dst[i]
		c.counts[u]++
		c.counts[v]++
		if c.counts[u] == 0 || c.counts[v] == 0 {
			return fmt.Errorf("stream %s: a node is the end of more than %d events", e.Stream.Name, uint32(math.MaxUint32))
		}
	}
	return nil
}

// walk moves the cursors through steps, and notes which half-edges each of those who ask in them
// wants.
func (s *Sampler) walk(ctx context.Context, steps []Step) error {
	s.lists.begin()
	for i := range steps {
		p := &steps[i]
		if err := ctx.Err(); err != nil {
			return err
		}
		src, dst := s.events.Ends(p.From, p.To)
		if !s.options.Deliver {
			for _, a := range p.Asks {
				if err := s.reach(ctx, s.events, a.Time); err != nil {
					return err
				}
				s.ask(a.Src, a.Time, p.Key)
				s.ask(a.Dst, a.Time, p.Key)
			}
			if p.StateOnly {
				continue // cursors are where the next root wants them
			}
		}
		for k, t := range s.events.Times(p.From, p.To) {
			event := p.From + int64(k)
			if err := s.reach(ctx, s.events, t); err != nil {
				return err
			}
			s.ask(src[k], t, p.Key)
			s.ask(s.firstDst+dst[k], t, p.Key)
			if s.options.Deliver {
				continue
			}
			for j := range p.Each {
				s.ask(p.Of(event, j), t, p.Key)
			}
		}
	}
	return nil
}

// ask notes what the node at a place wants at time t, which is now: its newest candidates, or some
// that are drawn. That is a function of place, time and key.
func (s *Sampler) ask(place uint32, t float64, key uint64) {
	if n := s.counts[place]; n > 0 {
		lo, hi := s.events.List(int64(place))
		if uint64(n) > hi-lo {
			panic(s.events.Corrupt(&s.events.Stream.Offsets, 8*int64(place), "the node at place %d has %d half-edges, and is the end of %d events", place, hi-lo, n))
		}
		f := s.options.Fanout
		if !s.options.Uniform || int64(n) <= int64(f) {
			take := uint32(min(int64(n), int64(f)))
			s.want(lo+uint64(n-take), take)
		} else {
			key := sample.Hash(key, uint64(place), math.Float64bits(positiveZero(t)))
			for i := range f {
				s.want(lo+uint64(below(sample.Fold(key, uint64(i)), int(n))), 1)
			}
		}
	}
	s.ends = append(s.ends, uint32(len(s.wants)))
}

// positiveZero is t, but of the two zeros, which are equal, the positive one: to be hashed.
func positiveZero(t float64) float64 {
	if t == 0 {
		return 0
	}
	return t
}
