package policy

import "math/bits"

// queue is the queue of SIEVE: rows in the order in which they came, and a hand that moves from the
// oldest to the newest and then starts again at the oldest. The hand passes over a visited row and
// clears its mark; a row that is not visited loses its slot.
//
// A window needs all its rows at once, in no order. So its hits count first, then the misses in
// ascending order, each with its eviction. The hand passes over the rows that the window needs
// itself. In a step it does not, since a step can read rows without a slot.
type queue struct {
	nodes   []uint32 // two numbers for each node: its row, and the node of the next newer row
	visited Set      // rows

	used           int    // number of nodes that were ever in use
	held           int    // rows
	oldest, newest uint32 // none if there are no rows
	before         uint32 // the node that the hand passed last; none if the hand is at the oldest
	spare          uint32 // head of the list of free nodes
}

const none = 1<<32 - 1

func (q *queue) row(node uint32) uint32   { return q.nodes[2*node] }
func (q *queue) next(node uint32) *uint32 { return &q.nodes[2*node+1] }
func (q *queue) reset() {
	*q = queue{q.nodes, q.visited, 0, 0, none, none, none, none}
	q.visited.Clear()
}
func (q *queue) stays(v uint32, d *demand) bool { return !d.step && d.need.Has(v) }

// choose marks the rows of d.need that are in the queue as visited, and puts into gone the rows
// that lose their slot, or get none. rows has the rows that have slots now.
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

// unlink removes node at, which is the first node that the hand has not passed.
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

// keep removes all rows but these from the queue. The hand stays where it is.
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

// wrap moves the hand back to the oldest row if it has passed all rows, so that it reaches the
// oldest before any row that comes later.
func (q *queue) wrap() {
	if q.before == q.newest {
		q.before = none
	}
}
