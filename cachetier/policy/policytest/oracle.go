// Package policytest implements the rules of package policy with plain maps, a row at a time.
// Package policy, and the tiers that use it, must agree with it. Start at [Oracle.Change].
package policytest

import (
	"cmp"
	"container/list"
	"maps"
	"slices"
)

// Rows is a set of rows.
type Rows = map[uint32]bool

// Change counts the rows of one change, as policy.Change does.
type Change struct{ Hits, Misses, Admitted, Evicted int }

// Oracle is the reference implementation of a policy.Cache of the same kind. Make one with [New].
type Oracle struct {
	Held  map[uint32]int // row to the change of its last use, or under SIEVE of its admission
	Clock int            // changes so far

	kind  string
	slots int
	order *list.List // SIEVE's queue of rows, newest first
	hand  *list.Element
	seen  map[uint32]bool // visited, under SIEVE
}

// New returns an Oracle for the policy of this name, whose slots are all free.
func New(kind string, slots int) *Oracle {
	return &Oracle{kind: kind, slots: slots, Held: map[uint32]int{}, order: list.New(), seen: map[uint32]bool{}}
}

// Change plans a window, or a step if step is set, that needs the rows of need. future is the known
// need of later windows, the nearest first.
func (o *Oracle) Change(need Rows, future []Rows, step bool) (c Change) {
	o.Clock++
	before := maps.Clone(o.Held)
	var misses []uint32
	for _, v := range slices.Sorted(maps.Keys(need)) {
		if _, ok := o.Held[v]; ok {
			c.Hits++
		} else {
			misses = append(misses, v)
		}
	}
	switch o.kind {
	case "none":
		// Rows from before do not count as hits.
		c.Hits, misses = 0, slices.Sorted(maps.Keys(need))
		c.Evicted = len(before)
		clear(o.Held)
		if !step {
			o.insert(misses)
			c.Admitted = len(misses)
		}
		c.Misses = len(misses)
		return c
	case "sieve":
		o.sieve(need, misses, step)
	default:
		o.insert(slices.Collect(maps.Keys(need)))
		var may []uint32
		for v := range o.Held {
			if step || !need[v] {
				may = append(may, v)
			}
		}
		o.leaveFirst(may, future)
		for _, v := range may[:max(0, len(o.Held)-o.slots)] {
			delete(o.Held, v)
		}
	}
	c.Misses = len(misses)
	for v := range o.Held {
		if _, ok := before[v]; !ok {
			c.Admitted++
		}
	}
	for v := range before {
		if _, ok := o.Held[v]; !ok {
			c.Evicted++
		}
	}
	return c
}

func (o *Oracle) insert(need []uint32) {
	for _, v := range need {
		o.Held[v] = o.Clock
	}
}

// leaveFirst sorts rows in the order of eviction.
func (o *Oracle) leaveFirst(rows []uint32, future []Rows) {
	use := func(v uint32) int {
		for i, f := range future {
			if f[v] {
				return i
			}
		}
		return len(future)
	}
	slices.SortFunc(rows, func(a, b uint32) int {
		first := 0
		switch o.kind {
		case "belady":
			first = cmp.Compare(use(b), use(a))
		case "lru":
			first = cmp.Compare(o.Held[a], o.Held[b])
		}
		return cmp.Or(first, cmp.Compare(b, a))
	})
}

// sieve follows the paper's algorithm 1.
func (o *Oracle) sieve(need Rows, misses []uint32, step bool) {
	for v := range need {
		if _, ok := o.Held[v]; ok {
			o.seen[v] = true
		}
	}
	for _, v := range misses {
		if len(o.Held) == o.slots {
			e := o.hand
			for {
				if e == nil {
					e = o.order.Back()
				}
				w := e.Value.(uint32)
				if o.seen[w] {
					delete(o.seen, w)
				} else if step || !need[w] {
					break
				}
				e = e.Prev()
			}
			o.hand = e.Prev()
			delete(o.Held, o.order.Remove(e).(uint32))
		}
		o.order.PushFront(v)
		o.Held[v] = o.Clock
	}
}

// Drop removes rows whose bytes never came.
func (o *Oracle) Drop(lost Rows) {
	for e := o.order.Front(); e != nil; {
		next := e.Next()
		if v := e.Value.(uint32); lost[v] {
			if e == o.hand {
				o.hand = e.Prev()
			}
			o.order.Remove(e)
			delete(o.seen, v)
		}
		e = next
	}
	for v := range lost {
		delete(o.Held, v)
	}
}
