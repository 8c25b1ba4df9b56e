package device

// slot is what the ledger knows of a slot. The slots are one array of structs, since most methods want several fields of one
// slot. Reserve sets the stamp; WriteBack sets node and layer later, and until then they are those of the embedding before.
type slot struct {
	node  uint32
	stamp uint32 // the last step that it was given to
	lease uint32 // the last planned step that reads it
	next  uint32 // the slot behind it in its queue
	layer uint8  // 0: a hole
	live  bool   // the index has it
	in    bool   // belongs to the ring
}

// slotBytes is the size of a slot.
const slotBytes = 20

// ring is the slots that embeddings may have now: a queue of those in use, the oldest first, and a queue of free ones.
type ring struct {
	slots []slot // all that can join
	used  queue
	free  queue

	limit  int // slots from here on leave the ring when they are free
	lowest int // the lowest slot that is not in the ring
	top    int // the end of the slots in the ring: embeddings touch nothing behind it
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

// take makes a slot the youngest in use: the free one that waits longest, or else one that joins the ring. ok is false if there
// is neither.
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

// settle takes a free slot that is in no queue: it joins the free ones, or leaves the ring if the limit is below it.
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

// setLimit bounds the ring at slot limit. Free slots beyond it leave at once, the others when they are released. Every step
// calls it, so it returns early unless the limit falls.
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
