package policy

import "math/bits"

// queue is SIEVE's: rows in the order in which they came, and a hand that goes from the oldest to
// the newest and again from the oldest. A row that the hand finds visited it passes over, and takes
// the mark away; one that is not loses its slot.
//
// Who needs a row at once has no order among its rows. So the hits of a window come first, then the
// misses in ascending order, each with its eviction. What the window needs itself is passed over,
// except in a step, which can do without slots.
type queue struct {
	nodes   []uint32 // two numbers each: the row, and the node of the next newer one
	visited Set      // rows

	used           int    // nodes that were ever in use
	held           int    // rows
	oldest, newest uint32 // none if there are no rows
	before         uint32 // the node that the hand passed last, none if it is at the oldest
	spare          uint32 // the first node that is free again, the others follow
}

const none = 1<<32 - 1

func (q *queue) row(node uint32) uint32   { return q.nodes[2*node] }
func (q *queue) next(node uint32) *uint32 { return &q.nodes[2*node+1] }
func (q *queue) reset() {
	*q = queue{q.nodes, q.visited, 0, 0, none, none, none, none}
	q.visited.Clear()
}
func (q *queue) stays(v uint32, d *demand) bool { return !d.step && d.need.Has(v) }

// choose takes note of what d needs, and puts rows that lose their slot, or get none, in gone. rows
// have slots now.
func (q *queue) choose(rows, gone Set, slots int, d demand) {
	for w, n := range d.need {
		q.visited[w] |= n & rows[w]
	}
	for w, n := range d.need {
		for m := n &^ rows[w]; m != 0; m &= m - 1 {
			if q.held == slots {
				gone.Add(q.evict(&d))
			}
			q.push(uint32(w<<6 + bits.TrailingZeros64(m)))
		}
	}
}

func (q *queue) evict(d *demand) uint32 {
	for {
		at := q.oldest
		if q.before != none {
			if at = *q.next(q.before); at == none {
				q.before = none
				continue
			}
		}
		v := q.row(at)
		if q.visited.Has(v) {
			q.visited.remove(v)
		} else if !q.stays(v, d) {
			q.unlink(at)
			q.wrap()
			return v
		}
		q.before = at
	}
}

// unlink takes out the node that follows the hand's last.
func (q *queue) unlink(at uint32) {
	after := *q.next(at)
	if q.before == none {
		q.oldest = after
	} else {
		*q.next(q.before) = after
	}
	if q.newest == at {
		q.newest = q.before
	}
	*q.next(at), q.spare = q.spare, at
	q.held--
}

func (q *queue) push(v uint32) {
	at := q.spare
	if at == none {
		at = uint32(q.used)
		q.used++
	} else {
		q.spare = *q.next(at)
	}
	q.nodes[2*at], *q.next(at) = v, none
	if q.newest == none {
		q.oldest = at
	} else {
		*q.next(q.newest) = at
	}
	q.newest = at
	q.held++
}

// keep takes out all but rows. The hand stays where it is.
func (q *queue) keep(rows Set) {
	hand, passed := q.before, uint32(none)
	q.before = none
	for at := q.oldest; at != none; {
		after := *q.next(at)
		if rows.Has(q.row(at)) {
			q.before = at
		} else {
			q.visited.remove(q.row(at))
			q.unlink(at)
		}
		if at == hand {
			passed = q.before
		}
		at = after
	}
	q.before = passed
	q.wrap()
}

// wrap takes the hand back to the oldest row if it has passed them all: what comes later is not
// looked at before that.
func (q *queue) wrap() {
	if q.before == q.newest {
		q.before = none
	}
}
