package sample

import (
	"context"
	"errors"
	"slices"
	"sort"
)

// Without has the edges of one relation that a batch is drawn without, at every layer. The draws
// equal draws from a graph that never had these edges, bit for bit. So a link can be scored that no
// message has passed along. Only edges to seeds can be left out.
//
// The seed n of the relation's destination type is drawn from without all of its edges from
// Src[Start[n]:Start[n+1]], ascending and each once. An empty Start leaves all edges in.
type Without struct{ Start, Src []uint32 }

// Fill sets w to the edges in pairs, for so many seeds. A pair has the seed's number in the upper
// half, and a source in the lower. Fill sorts pairs; a pair that comes twice counts once.
func (w *Without) Fill(seeds int, pairs []uint64) {
	slices.Sort(pairs)
	w.Start, w.Src = resize(w.Start, seeds+1), w.Src[:0]
	clear(w.Start)
	for _, p := range slices.Compact(pairs) {
		w.Src = append(w.Src, uint32(p))
		w.Start[p>>32+1]++
	}
	for i := range seeds {
		w.Start[i+1] += w.Start[i]
	}
}

// Of returns the sources that destination i of a layer is drawn without. Seeds are the first
// destinations.
func (w *Without) Of(i int) []uint32 {
	if i+1 >= len(w.Start) {
		return nil
	}
	return w.Src[w.Start[i]:w.Start[i+1]]
}

// without returns b's Without of relation r.
func (b *Batch) without(r int) Without {
	if len(b.Without) == 0 {
		return Without{}
	}
	return b.Without[r]
}

// shorter holds the rest of a list that loses edges.
type shorter struct {
	list
	lost []uint32 // places of the neighbours that were left out, ascending
}

// leave sets s to l without its neighbours in src. Both ascend. Long lists lose few neighbours, so
// the rest is copied in long parts.
func (s *shorter) leave(l *list, src []uint32) {
	s.ids, s.weights, s.lost = s.ids[:0], s.weights[:0], s.lost[:0]
	from := 0 // first place that is not copied yet
	keep := func(to int) {
		s.ids = append(s.ids, l.ids[from:to]...)
		if l.weights != nil {
			s.weights = append(s.weights, l.weights[from:to]...)
		}
	}
	for _, u := range src {
		n, _ := slices.BinarySearch(l.ids[from:], u)
		at := from + n
		end := at
		for ; end < len(l.ids) && l.ids[end] == u; end++ {
			s.lost = append(s.lost, uint32(end))
		}
		if end > at {
			keep(at)
			from = end
		}
	}
	keep(len(l.ids))
	s.degree = len(s.ids)
}

// restore turns places in a shortened list into places in the whole list. lost has the places that
// were left out.
func restore(places, lost []uint32) {
	for i, p := range places {
		for _, l := range lost {
			if l > p {
				break
			}
			p++
		}
		places[i] = p
	}
}

// chooseWithout is choose for destination i of j, whose list l loses edges. It fills the places
// that the block has for the destination; they are enough for draws from the whole list.
func (c *chooser) chooseWithout(cfg *Config, j *job, i int, l *list) error {
	b := j.block
	c.left.leave(l, j.without.Of(i))
	b.lost[i] = uint32(len(c.left.lost))
	n := cfg.room(c.left.degree, j.draws.fanout)
	out, values, places := b.drawn(i)[:n], b.values(i), b.placesOf(i)
	if values != nil {
		values = values[:n]
	}
	if places != nil {
		places = places[:n]
	}
	n, err := c.choose(cfg, &j.draws, j.dst[i], &c.left.list, out, values, places)
	if places != nil {
		restore(places[:n], c.left.lost)
	}
	b.End[i] = b.Start[i] + uint32(n)
	var weight *WeightError
	if errors.As(err, &weight) {
		at := []uint32{uint32(weight.Place)}
		restore(at, c.left.lost)
		weight.Place = int(at[0])
	}
	return err
}

// shorten leaves the edges out of j's whole lists.
func (j *job) shorten() {
	j.lost = j.lost[:0]
	for i := range max(len(j.without.Start)-1, 0) {
		j.lost = append(j.lost, nil)
		src, l := j.without.Of(i), &j.whole[i]
		if len(src) == 0 {
			continue
		}
		all := l.ids
		l.ids = l.ids[:0]
		for place, u := range all {
			if _, out := slices.BinarySearch(src, u); out {
				j.lost[i] = append(j.lost[i], uint32(place))
			} else {
				l.ids = append(l.ids, u)
			}
		}
		l.degree = len(l.ids)
		j.block.lost[i] = uint32(len(j.lost[i]))
	}
}

// held is a list that is not resident and loses edges. It is read whole, since the number of
// neighbours that are left is not known before.
type held struct {
	dst     int // index of the destination
	room    uint32
	ids     []uint32
	weights []float32
}

// hold notes that destination i is drawn from once its list is there.
func (j *job) hold(i int) {
	b := j.block
	j.held = append(j.held, held{dst: i, room: b.End[i] - b.Start[i]})
	b.End[i] = b.Start[i] // nothing yet
}

// heldOf returns the held list of destination i, or nil.
func (j *job) heldOf(i int) *held {
	n := sort.Search(len(j.held), func(n int) bool { return j.held[n].dst >= i })
	if n == len(j.held) || j.held[n].dst != i {
		return nil
	}
	return &j.held[n]
}

// readHeld reads the held lists of jobs, all of one relation, and draws from them.
func (s *Sampler) readHeld(ctx context.Context, jobs []job) error {
	lists := int64(0)
	for i := range jobs {
		lists += int64(len(jobs[i].held))
		jobs[i].makeHeld(s.Weighted)
	}
	if lists == 0 {
		return nil
	}
	s.holding = true
	defer func() { s.holding = false }()
	err := s.passes(jobs, lists, func() error {
		return jobs[0].topo.Read(ctx, s.nodes, func(i, from int, part []uint32) error {
			return s.keep(ctx, jobs, i, func(h *held) { copy(h.ids[from:], part) })
		})
	})
	if err == nil && s.Weighted {
		err = s.passes(jobs, lists, func() error {
			return jobs[0].weighted.ReadWeights(ctx, s.nodes, func(i, from int, part []float32) error {
				return s.keep(ctx, jobs, i, func(h *held) { copy(h.weights[from:], part) })
			})
		})
	}
	if err != nil {
		return err
	}
	return s.each(ctx, len(jobs), func(d *drawer, i int) error { return d.chooseHeld(&jobs[i]) })
}

// makeHeld gives the held lists of j their places in its arena.
func (j *job) makeHeld(weighted bool) {
	ids, weights := 0, 0
	for _, h := range j.held {
		ids += j.topo.Degree(j.dst[h.dst])
	}
	if weighted {
		weights = ids
	}
	j.arena, j.weights = resize(j.arena, ids), resize(j.weights, weights)
	ids = 0
	for n := range j.held {
		h := &j.held[n]
		end := ids + j.topo.Degree(j.dst[h.dst])
		h.ids = j.arena[ids:end]
		if weighted {
			h.weights = j.weights[ids:end]
		}
		ids = end
	}
}

// chooseHeld draws from the held lists of j, which have been read.
func (d *drawer) chooseHeld(j *job) error {
	for _, h := range j.held {
		j.block.End[h.dst] = j.block.Start[h.dst] + h.room
		if err := d.chooseWithout(&d.Config, j, h.dst, &list{ids: h.ids, weights: h.weights, degree: len(h.ids)}); err != nil {
			return err
		}
	}
	return nil
}

// keep calls copy for each held list of node number i of a pass, and returns the error of ctx.
func (s *Sampler) keep(ctx context.Context, jobs []job, i int, copy func(h *held)) error {
	for at := s.first[i]; at < s.first[i+1]; at++ {
		j, n, _ := s.of(jobs, int(at))
		copy(j.heldOf(n))
	}
	return ctx.Err()
}

// heldBytes returns the bytes that b keeps at a hop for lists of relation r that lose edges. dst
// are the destinations of the hop. A worker keeps the lists that it owns, for all workers. Lists of
// other owners are assumed to be as long as its own.
func (s *Sampler) heldBytes(r *relation, b *Batch, dst []uint32) (n int64) {
	without := b.without(r.number)
	own := s.how().own
	whole := own != nil && own.whole // then it keeps a copy of cold lists anyway
	part, isPart := r.topo.(interface{ Has(v uint32) bool })
	all, has := int64(0), int64(0)
	for i, v := range dst[:min(len(dst), max(len(without.Start)-1, 0))] {
		if len(without.Of(i)) == 0 {
			continue
		}
		if all++; isPart && !part.Has(v) {
			continue
		}
		if has++; (v >= r.resident) != whole {
			n += 4 * int64(r.topo.Degree(v))
		}
	}
	n = n * all / max(has, 1)
	if s.Weighted {
		n *= 2
	}
	return n
}

// checkWithout panics where edges cannot be left out.
func (s *Sampler) checkWithout(e Expander, batches []*Batch) {
	for _, b := range batches {
		switch {
		case len(b.Without) == 0:
		case len(b.Without) != s.known:
			panic("sample: Sample: a batch without edges of another number of relations")
		case s.NoBlocks:
			panic("sample: Sample: batches without blocks have no edges to leave out")
		case s.how().walks || e != nil:
			panic("sample: Sample: walks, and batches of an Expander, are drawn from all edges")
		}
	}
}
