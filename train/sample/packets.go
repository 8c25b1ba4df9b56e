package sample

import (
	"context"
	"encoding/binary"
	"math"
	"sync"
)

// Drawn neighbours go to the part of their step in packets. A packet begins with the number of the
// relation and the number of bytes that follow. Then come lists: each has its number, the number of
// neighbours, the neighbours, and their places in the list if edges bring something along and the
// list loses no edges. A long list that is taken whole comes in several pieces. Such a piece has
// partly set in its number of neighbours, followed by the place of its first neighbour.

// wholeList is set in the number of a list that is wanted whole: the list loses edges, and only the
// step knows which ones.
const wholeList = 1 << 31

const (
	partly      = 1 << 31
	packetBytes = 2 << 10 // a packet is sent once it has this many; the last one may be shorter
	// maxPacket is the size in bytes up to which a writer reuses the memory of a packet. A writer
	// has a packet for each part, and a list of a hub is long.
	maxPacket = 16 << 10
)

// writer collects packets, for one goroutine at a time.
type writer struct {
	chooser
	ids, at []uint32 // neighbours, and their places
	packets [][]byte // by part
}

// writers holds the writers that no goroutine uses at the moment.
type writers struct {
	sync.Mutex
	free []*writer
}

func (w *writers) take() *writer {
	w.Lock()
	defer w.Unlock()
	last := len(w.free) - 1
	if last < 0 {
		return new(writer)
	}
	one := w.free[last]
	w.free = w.free[:last]
	return one
}

func (w *writers) giveBack(one *writer) {
	w.Lock()
	w.free = append(w.free, one)
	w.Unlock()
}

// read reads the lists of r that are wanted at a hop, range by range, and draws from them for all
// steps.
func (h *horizon) read(ctx context.Context, r *relation, hop int) error {
	q := h.hop.queues[r.number]
	h.hop.queues[r.number] = nil
	h.draws = h.draws[:0]
	for _, batchSeed := range h.batchSeeds {
		h.draws = append(h.draws, h.Sampler.draws(batchSeed, hop, r.number, r.Src))
	}
	for _, w := range h.writers.free {
		w.packets = resize(w.packets, len(h.hop.parts))
	}
	defer func(mine []pair) { h.pairs = mine }(h.pairs)
	err := q.each(ctx, h.Sampler, func(nodes nodeRange, pairs []pair) error {
		h.index(r, nodes, pairs)
		if len(h.nodes) == 0 {
			return nil
		}
		clear(h.parts)
		return r.topo.Read(ctx, h.nodes, func(i, from int, part []uint32) error {
			w := h.writers.take()
			defer h.writers.giveBack(w)
			degree := r.topo.Degree(h.nodes[i])
			for at := h.first[i]; at < h.first[i+1]; at++ {
				if err := h.serve(w, r, int(at), degree, from, part); err != nil {
					return err
				}
			}
			return ctx.Err()
		})
	})
	for _, w := range h.writers.free {
		for k := range w.packets {
			if err == nil {
				err = h.send(w, r, k)
			}
		}
	}
	return err
}

// index sorts pairs, whose nodes lie in a range. It sets h.nodes to the nodes that have neighbours,
// h.pairs to the pairs of these nodes, and h.first to the place of each node's first pair.
func (h *horizon) index(r *relation, nodes nodeRange, pairs []pair) {
	h.scratch = resize(h.scratch, len(pairs))
	sortByNode(pairs, h.scratch, nodes)
	h.pairs, h.nodes, h.first = pairs[:0], h.nodes[:0], h.first[:0]
	last, some := int64(-1), false
	for _, p := range pairs {
		if v := p.node(); int64(v) != last {
			if last, some = int64(v), r.topo.Degree(v) > 0; some {
				h.nodes, h.first = append(h.nodes, v), append(h.first, uint32(len(h.pairs)))
			}
		}
		if some {
			h.pairs = append(h.pairs, p)
		}
	}
	h.first = append(h.first, uint32(len(h.pairs)))
}

// serve draws for the pair h.pairs[at]. part is a part of its node's list, from neighbour from on.
func (h *horizon) serve(w *writer, r *relation, at, degree, from int, part []uint32) error {
	v, number := h.pairs[at].node(), h.pairs[at].list()
	first := h.hop.first[r.number]
	if number&^wholeList >= first[h.steps] {
		return errRoom
	}
	step := stepOf(first, number&^wholeList)
	d := &h.draws[step]
	if d.fanout == All || d.fanout >= degree || number&wholeList != 0 {
		w.at = w.at[:0]
		if r.brings() && number&wholeList == 0 {
			w.at = resize(w.at, len(part))
			count(w.at, from)
		}
		if len(part) == degree {
			from = -1
		}
		return h.write(w, r, step, number, from, part, w.at)
	}
	room := h.room(degree, d.fanout)
	w.ids = resize(w.ids, room)
	out, places := w.ids, []uint32(nil)
	if r.brings() {
		w.at = resize(w.at, room)
		places = w.at
	}
	if len(part) == degree {
		whole := list{ids: part, degree: degree}
		n, err := w.choose(&h.Config, d, v, &whole, out, nil, places)
		if err != nil {
			return err
		}
		return h.write(w, r, step, number, -1, out[:n], places[:min(n, len(places))])
	}
	numbers, limit := h.numbers(d, v), uint64(math.MaxUint64)
	if h.Poisson {
		limit, _ = h.limit(&numbers, d.fanout, degree)
	}
	some := h.partial(at, room, limit)
	some.Lock()
	defer some.Unlock()
	n := room
	if h.floyds() {
		some.out, some.places = resize(some.out, room), resize(some.places, room)
		w.floydPart(some.out, some.places, degree, from, part, listKey(d.first, v))
	} else {
		some.show(&h.Config, &numbers, from, part)
	}
	if some.seen += len(part); some.seen < degree {
		return nil
	}
	h.forget(at)
	if h.floyds() {
		out, places = some.out, some.places[:len(places)]
	} else {
		n = takeIDs(out, places, some.chosen())
	}
	return h.write(w, r, step, number, -1, out[:n], places[:min(n, len(places))])
}

// stepOf returns the step that a list belongs to. The lists of step n begin at first[n].
func stepOf(first []uint32, list uint32) int {
	lo, hi := 0, len(first)
	for hi-lo > 1 {
		if mid := int(uint(lo+hi) / 2); first[mid] <= list {
			lo = mid
		} else {
			hi = mid
		}
	}
	return lo
}

// write adds neighbours that a step draws from a list to the packet for the step's part. If from is
// below 0, ids are all that it draws, else the ones from place from on.
func (h *horizon) write(w *writer, r *relation, step int, list uint32, from int, ids, places []uint32) error {
	k := int(h.hop.partOf[step])
	if k >= len(w.packets) { // w is new
		w.packets = resize(w.packets, len(h.hop.parts))
	}
	l := w.packets[k]
	if len(l) == 0 {
		l = append(l, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	l = appendWord(l, int(list))
	if from >= 0 {
		l = appendWord(appendWord(l, len(ids)|partly), from)
	} else {
		l = appendWord(l, len(ids))
	}
	w.packets[k] = append(append(l, bytesOf(ids)...), bytesOf(places)...)
	if len(w.packets[k]) < packetBytes {
		return nil
	}
	return h.send(w, r, k)
}

// send sends w's packet to part k.
func (h *horizon) send(w *writer, r *relation, k int) error {
	l := w.packets[k]
	if len(l) == 0 {
		return nil
	}
	binary.NativeEndian.PutUint32(l, uint32(r.number))
	binary.NativeEndian.PutUint32(l[4:], uint32(len(l)-8))
	if w.packets[k] = l[:0]; cap(l) > maxPacket {
		w.packets[k] = nil
	}
	return h.hop.parts[k].lists.append(l)
}

// place puts the neighbours in packets into the blocks of jobs: the jobs of the steps of p,
// relation by relation.
func (h *horizon) place(p *part, jobs []job, packets []byte) error {
	u := unpacker{src: packets}
	for len(u.src) > 0 {
		r, size := u.word(), u.word()
		if u.bad || r >= len(h.all) || size > len(u.src) {
			return errRoom
		}
		packet := unpacker{src: u.src[:size]}
		u.src = u.src[size:]
		first := h.hop.first[r][p.lo : p.hi+1]
		for len(packet.src) > 0 {
			list, n, from := uint32(packet.word()), packet.word(), -1
			if n&partly != 0 {
				n, from = n&^partly, packet.word()
			}
			held := list&wholeList != 0
			if list &^= wholeList; list < first[0] || list >= first[len(first)-1] {
				return errRoom
			}
			step := stepOf(first, list)
			j, i := &jobs[r*(p.hi-p.lo)+step], int(list-first[step])
			if held && !j.placeHeld(&packet, i, max(from, 0), n) || !held && !j.place(&packet, i, from, n, h.varies()) {
				return errRoom
			}
		}
	}
	return nil
}

// place takes n neighbours of destination i from a packet, and reports whether the packet fits. If
// from is below 0, they are all that i draws: fewer than it has room for only if varies is set.
// Else they are the neighbours from place from on.
func (j *job) place(packet *unpacker, i, from, n int, varies bool) bool {
	b, whole, room := j.block, from < 0, int(j.block.End[i]-j.block.Start[i])
	from = max(from, 0)
	end := from + n
	if end > room || whole && !varies && n < room {
		return false
	}
	unpackInto(packet, b.drawn(i)[from:end:end], n)
	if b.brings {
		unpackInto(packet, b.placesOf(i)[from:end:end], n)
	}
	if whole {
		b.End[i] = b.Start[i] + uint32(n)
	}
	return !packet.bad
}

// placeHeld takes n neighbours from a packet, and reports whether the packet fits. They belong to
// the list of destination i, which loses edges, from place from on.
func (j *job) placeHeld(packet *unpacker, i, from, n int) bool {
	l := j.heldOf(i)
	if l == nil || from+n > len(l.ids) {
		return false
	}
	unpackInto(packet, l.ids[from:from+n:from+n], n)
	return !packet.bad
}
