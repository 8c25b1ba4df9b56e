package device

// slot is what is known about a slot. One array of structs: who looks at one field wants the others. Node and layer are
// those of the last WriteBack, which comes after the stamp.
type slot struct {
	node  uint32
	stamp uint32 // the step that it was given to last
	lease uint32 // the last step planned that reads it
	next  uint32 // the slot behind it in its queue
	layer uint8  // 0: a hole
	live  bool   // the index leads here
	in    bool   // belongs to the ring
}

// slotBytes is the size of a slot.
const slotBytes = 20

// ring is the slots that embeddings have: a queue of those in use, in order of age, and behind it a queue of those
// free.
type ring struct {
	slots []slot // all there may be
	used  queue
	free  queue

	limit  int // a slot from here on leaves the ring when it is free
	lowest int // all slots below are in the ring
	top    int // all slots from here on are not: what embeddings may touch ends here
}

// queue is a list through slot.next, first in, first out.
type queue struct {
	first, last uint32 // meaningless while n is 0
	n           int
}

func (q *queue) push(slots []slot, s uint32) {
	if q.n == 0 {
		q.first = s
	} else {
		slots[q.last].next = s
	}
	q.last = s
	q.n++
}

func (q *queue) pop(slots []slot) uint32 {
	s := q.first
	q.first = slots[s].next
	q.n--
	return s
}

// take makes a slot the youngest: one that is free, else one that joins the ring; ok is false if there is neither.
func (r *ring) take() (s uint32, ok bool) {
	switch {
	case r.free.n > 0:
		s = r.free.pop(r.slots)
	case r.lowest < r.limit:
		s = uint32(r.lowest)
		r.slots[s].in = true
		for r.lowest < len(r.slots) && r.slots[r.lowest].in {
			r.lowest++
		}
		r.top = max(r.top, int(s)+1)
	default:
		return 0, false
	}
	r.used.push(r.slots, s)
	return s, true
}

// release frees the oldest slot in use.
func (r *ring) release() { r.settle(r.used.pop(r.slots)) }

// settle puts a slot that is in no queue where free ones belong.
func (r *ring) settle(s uint32) {
	if int(s) < r.limit {
		r.free.push(r.slots, s)
		return
	}
	r.slots[s].in = false
	r.lowest = min(r.lowest, int(s))
	for r.top > 0 && !r.slots[r.top-1].in {
		r.top--
	}
}

// setLimit keeps the ring below slot limit: at once what is free, the others when they are released. It is called for
// each step, so it does nothing unless the limit falls.
func (r *ring) setLimit(limit int) {
	lower := limit < r.limit
	r.limit = limit
	if !lower || r.top <= limit {
		return
	}
	for range r.free.n { // those that stay keep their order
		r.settle(r.free.pop(r.slots))
	}
}
