package temporal

import (
	"cmp"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// open opens a stream for the length of the test.
func open(t testing.TB, s storetest.StreamSpec) *store.Events {
	t.Helper()
	d, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d.Events(0)
}

// newSampler is closed at the test's end.
func newSampler(t testing.TB, e *store.Events, o SamplerOptions) *Sampler {
	t.Helper()
	s, err := NewSampler(t.Context(), e, o)
	require.NoError(t, err)
	t.Cleanup(s.Close)
	return s
}

// randomStream makes events. A third of them share their time with the event before, and some go
// from a node to itself.
func randomStream(rng *rand.Rand, events, users, items int) storetest.StreamSpec {
	s := storetest.StreamSpec{Users: users, Items: items, TimeScale: math.Ldexp(1, rng.IntN(8)-4) * 1.1}
	now, others := rng.NormFloat64()*100, items
	if items == 0 {
		others = users
	}
	for range events {
		if rng.IntN(3) > 0 {
			now += rng.ExpFloat64()
		}
		u, v := rng.IntN(users), rng.IntN(others)
		if items == 0 && rng.IntN(5) == 0 {
			v = u
		}
		s.Src, s.Dst, s.Times = append(s.Src, uint32(u)), append(s.Dst, uint32(v)), append(s.Times, now)
	}
	return s
}

// reference draws batches by looking at the whole stream for each root, with all that it knows in
// maps.
type reference struct {
	storetest.StreamSpec
	fanout  int
	uniform bool
	deliver bool
	blends  bool
}

type halfEdge struct {
	place uint32 // of the neighbour
	event int
}

func (r *reference) ends(event int) (u, v uint32) {
	u, v = r.Src[event], r.Dst[event]
	if r.Items > 0 {
		v += uint32(r.Users)
	}
	return u, v
}

// met reports whether the node at place is an end of one of the first events.
func (r *reference) met(place uint32, events int64) bool {
	for i := range int(events) {
		if u, v := r.ends(i); u == place || v == place {
			return true
		}
	}
	return false
}

// candidates are the neighbours of the node at a place before time t, the newest first.
func (r *reference) candidates(place uint32, t float64) (all []halfEdge) {
	for i := range r.Times {
		if r.Times[i] >= t {
			continue
		}
		u, v := r.ends(i)
		if u == place {
			all = append(all, halfEdge{v, i})
		}
		if v == place {
			all = append(all, halfEdge{u, i})
		}
	}
	slices.Reverse(all)
	return all
}

// part is ⌊n·hash/2⁶⁴⌋.
func part(hash uint64, n int) int {
	x := new(big.Int).SetUint64(hash)
	return int(x.Rsh(x.Mul(x, big.NewInt(int64(n))), 64).Int64())
}

func (r *reference) neighbors(place uint32, t float64, key uint64) []halfEdge {
	all := r.candidates(place, t)
	if len(all) <= r.fanout || !r.uniform {
		return all[:min(len(all), r.fanout)]
	}
	var drawn []halfEdge
	for i := range r.fanout { // they are numbered from the oldest on
		drawn = append(drawn, all[len(all)-1-part(sample.Hash(key, uint64(place), math.Float64bits(t), uint64(i)), len(all))])
	}
	return drawn
}

func (r *reference) draw(p Step) *Batch {
	b := &Batch{From: p.From, To: p.To}
	nodes, events, rows, roots := map[uint32]uint32{}, map[int]uint32{}, map[string]uint32{}, map[uint32]uint32{}
	row := func(place uint32, t float64) uint32 {
		key := fmt.Sprint(place, " at ", t)
		if _, ok := rows[key]; !ok {
			if _, ok := nodes[place]; !ok {
				nodes[place] = uint32(len(nodes))
				b.Nodes = append(b.Nodes, place)
			}
			rows[key] = uint32(len(rows))
			b.RowNode = append(b.RowNode, nodes[place])
			b.RowTime = append(b.RowTime, (t-r.Times[0])*r.TimeScale)
		}
		return rows[key]
	}
	event := func(i int) uint32 {
		if _, ok := events[i]; !ok {
			events[i] = uint32(len(events))
			b.Events = append(b.Events, uint32(i))
		}
		return events[i]
	}
	root := func(place uint32, t float64) uint32 {
		z := row(place, t)
		if _, ok := roots[z]; !ok {
			roots[z] = uint32(len(roots))
			b.Roots = append(b.Roots, z)
			b.NearStart = append(b.NearStart, uint32(len(b.NearRow)))
			for _, n := range r.neighbors(place, t, p.Key) {
				if r.deliver {
					break
				}
				near := row(n.place, r.Times[n.event])
				b.NearRow = append(b.NearRow, near)
				b.NearEvent = append(b.NearEvent, event(n.event))
				b.NearRoot = append(b.NearRoot, roots[z])
				b.Since = append(b.Since, b.RowTime[z]-b.RowTime[near])
			}
			b.NearEnd = append(b.NearEnd, uint32(len(b.NearRow)))
		}
		return roots[z]
	}
	for _, a := range p.Asks {
		b.Src, b.Dst = append(b.Src, root(a.Src, a.Time)), append(b.Dst, root(a.Dst, a.Time))
	}
	last := map[uint32]int{}
	for i := int(p.From); i < int(p.To); i++ {
		u, v := r.ends(i)
		last[u], last[v] = i, i
	}
	for i := int(p.From); i < int(p.To); i++ {
		u, v := r.ends(i)
		t := r.Times[i]
		if !p.StateOnly {
			b.Each = p.Each
			b.Src, b.Dst = append(b.Src, root(u, t)), append(b.Dst, root(v, t))
			for j := range p.Each {
				k := part(sample.Hash(p.Key, uint64(i), uint64(j)), len(p.Population))
				b.Negatives = append(b.Negatives, root(p.Population[k], t))
			}
		}
		if last[u] != i && last[v] != i {
			continue
		}
		rowU, rowV := row(u, t), row(v, t)
		if last[u] == i && u != v {
			b.Writes = append(b.Writes, Write{nodes[u], rowU, rowV, event(i)})
		}
		if last[v] == i {
			b.Writes = append(b.Writes, Write{nodes[v], rowV, rowU, event(i)})
		}
	}
	if p.From == p.To && !p.StateOnly {
		b.Each = p.Each
	}
	if r.blends && p.Seen > 0 && len(b.Roots) > 0 {
		defer r.blend(b, p, nodes)
	}
	if !r.deliver {
		return b
	}
	for _, m := range r.mails(p) {
		if _, ok := nodes[m.place]; !ok {
			nodes[m.place] = uint32(len(nodes))
			b.Nodes = append(b.Nodes, m.place)
		}
		u, v := r.ends(m.event)
		t := r.Times[m.event]
		own, other := row(u, t), row(v, t)
		if m.dst {
			own, other = other, own
		}
		b.Mails = append(b.Mails, Write{nodes[m.place], own, other, event(m.event)})
	}
	return b
}

// blend looks for the roots whose node had its last event longer ago than 99 in 100, by the state
// that the step sees, and for similar nodes that had one since then.
func (r *reference) blend(b *Batch, p Step, nodes map[uint32]uint32) {
	last := func(place uint32) (t float64) {
		t = -1
		for i := range int(p.Seen) {
			if u, v := r.ends(i); u == place || v == place {
				t = (r.Times[i] - r.Times[0]) * r.TimeScale
			}
		}
		return t
	}
	var since []float64
	for _, row := range b.Roots {
		if t := last(b.Nodes[b.RowNode[row]]); t >= 0 {
			since = append(since, b.RowTime[row]-t)
		}
	}
	limit := quantile(slices.Sorted(slices.Values(since)), 0.99)
	for _, row := range b.Roots {
		v := b.Nodes[b.RowNode[row]]
		if last(v) < 0 || b.RowTime[row]-last(v) <= limit {
			continue
		}
		var of []uint32
		for _, u := range similarByHand(r.StreamSpec, v, p.From, recentPartners) {
			if last(u) > last(v) && b.RowTime[row]-last(u) < limit {
				of = append(of, u)
			}
		}
		if len(of) == 0 {
			continue
		}
		if b.Blended = append(b.Blended, row); len(b.BlendStart) == 0 {
			b.BlendStart = []uint32{0}
		}
		for _, u := range of {
			if _, ok := nodes[u]; !ok {
				nodes[u] = uint32(len(nodes))
				b.Nodes = append(b.Nodes, u)
			}
			b.Similar = append(b.Similar, nodes[u])
		}
		b.BlendStart = append(b.BlendStart, uint32(len(b.Similar)))
	}
}

// sent is a mail to the node at a place, of an event's source or destination.
type sent struct {
	place    uint32
	event    int
	dst, own bool
}

// mails are the best of those that each node of a step could get, by the first of these.
func (r *reference) mails(p Step) (best []sent) {
	var all []sent
	for i := int(p.From); i < int(p.To); i++ {
		u, v := r.ends(i)
		for _, end := range []sent{{u, i, false, true}, {v, i, true, true}} {
			for _, n := range r.neighbors(end.place, r.Times[i], p.Key) {
				all = append(all, sent{n.place, i, end.dst, false})
			}
			all = append(all, end)
		}
	}
	var order []uint32
	of := map[uint32][]sent{}
	for _, m := range all {
		if of[m.place] == nil {
			order = append(order, m.place)
		}
		of[m.place] = append(of[m.place], m)
	}
	for _, place := range order {
		mine := of[place]
		slices.SortStableFunc(mine, func(a, b sent) int {
			own := func(m sent) int {
				if m.own {
					return 1
				}
				return 0
			}
			return cmp.Or(cmp.Compare(r.Times[a.event], r.Times[b.event]), cmp.Compare(own(a), own(b)), cmp.Compare(a.event, b.event))
		})
		best = append(best, mine[len(mine)-1])
	}
	return best
}

// plain is a copy of b without what does not count: how much room there is, and whether what is
// empty is nil.
func plain(b *Batch) Batch {
	c := *b
	c.bytes = 0
	for _, list := range c.lists() {
		*list = append([]uint32{}, *list...)
	}
	c.RowTime, c.Since = append([]float64{}, c.RowTime...), append([]float64{}, c.Since...)
	c.Writes, c.Mails = append([]Write{}, c.Writes...), append([]Write{}, c.Mails...)
	return c
}

// steps cuts events from from on into batches. Some of them compute state only.
func steps(from, events int64, size int, n Negatives, stateOnly func(i int) bool) (all []Step) {
	for ; from < events; from += int64(size) {
		all = append(all, Step{From: from, To: min(from+int64(size), events), StateOnly: stateOnly(len(all)), Negatives: n})
	}
	return all
}

// drawAll draws all steps, group of them at a time.
func drawAll(t testing.TB, s *Sampler, all []Step, group int) (batches []Batch) {
	t.Helper()
	into := make([]*Batch, group)
	for i := range into {
		into[i] = &Batch{}
	}
	for len(all) > 0 {
		n := min(group, len(all))
		require.NoError(t, s.Draw(t.Context(), all[:n], into[:n]))
		for _, b := range into[:n] {
			batches = append(batches, plain(b))
		}
		all = all[n:]
	}
	return batches
}

// TestSamplerAgreesWithReference: entry by entry, on streams of all shapes, whatever the batches,
// groups, workers and the place to begin.
func TestSamplerAgreesWithReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	blended := 0
	for i, shape := range [][3]int{{1, 1, 0}, {1, 1, 1}, {2, 1, 0}, {60, 1, 0}, {90, 7, 0}, {90, 5, 4}, {120, 40, 1}, {100, 3, 30}} {
		spec := randomStream(rng, shape[0], shape[1], shape[2])
		if i == 4 {
			spec.Times = slices.Repeat([]float64{-3.5}, shape[0]) // all at one time
		}
		e := open(t, spec)
		for _, fanout := range []int{0, 1, 3, 100} {
			for kind := range 4 {
				uniform, deliver := kind&1 == 1, kind&2 == 2
				r := &reference{spec, fanout, uniform, deliver, rng.IntN(2) == 0}
				o := SamplerOptions{Fanout: fanout, Uniform: uniform, Deliver: deliver, Blend: r.blends, Workers: 1 + rng.IntN(3)}
				for _, size := range []int{1, 7, 50, 500} {
					items, err := Destinations(e, 0, e.Len())
					require.NoError(t, err)
					n := Negatives{items, rng.IntN(3), rng.Uint64()}
					if rng.IntN(2) == 0 {
						n.Population = AllNodes(e)
					}
					from := int64(rng.IntN(len(spec.Times)))
					mask := rng.Uint64() & rng.Uint64()
					all := steps(from, e.Len(), size, n, func(i int) bool { return mask>>(i%64)&1 == 1 })
					for k := range all {
						all[k].Seen = max(0, all[k].From-int64(rng.IntN(2*size)))
					}
					s := newSampler(t, e, o)
					require.NoError(t, s.Seek(t.Context(), from))
					got := drawAll(t, s, all, 1+rng.IntN(9))
					for k, p := range all {
						require.Equal(t, plain(r.draw(p)), got[k], "stream %d, fanout %d, uniform %v, deliver %v, %+v", i, fanout, uniform, deliver, p)
						for _, row := range got[k].Blended {
							require.True(t, r.met(got[k].Nodes[got[k].RowNode[row]], p.Seen), "a node without an event is blended")
							blended++
						}
					}
					s.Close()
				}
			}
		}
	}
	require.Greater(t, blended, 100)
}
