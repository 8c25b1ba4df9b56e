package policy

import "math"

// LRUBytesPerRow is the memory that an [LRU] takes per row of capacity: a 12-byte node and two 4-byte places of the
// hash table. The struct itself is not counted.
const LRUBytesPerRow = 12 + 4*placesPerRow

// placesPerRow makes the hash table half full at most: a lookup of a row that is present then looks at 1.5 places on
// average, of one that is absent at 2.5 (Knuth, The Art of Computer Programming 3, section 6.4).
const placesPerRow = 2

// LRU keeps the rows used last: a row that is admitted to a full cache throws out the one unused for longest.
//
// Each slot has a node, and the nodes in use form a ring in order of use. So the oldest row is the one before the
// newest, and an admission that evicts only turns the ring by one. The hash table is open addressing with linear
// probing; deletion shifts the followers back, so there are no tombstones and lookups do not slow down with time.
type LRU struct {
	nodes  []node
	places []uint32 // slot+1, 0 is free: memory that comes zeroed needs no filling
	newest uint32   // slot; meaningless while used is 0
	used   int
}

// node is what is known about a slot. One array of structs: a hit reads and writes all three fields, and the cache
// line that holds them is what it waits for.
type node struct {
	id, prev, next uint32 // next leads to older rows
}

// NewLRU makes an LRU of capacity rows; 0 is allowed and admits nothing. It panics if capacity is negative or more
// than 2³²-2, since slots are 32 bits.
func NewLRU(capacity int) *LRU {
	if capacity < 0 || capacity > math.MaxUint32-1 {
		panic("policy: NewLRU: capacity out of range")
	}
	return &LRU{nodes: make([]node, capacity), places: make([]uint32, placesPerRow*capacity)}
}

// Len is the number of rows held.
func (c *LRU) Len() int { return c.used }

// Cap is the number of rows that fit.
func (c *LRU) Cap() int { return len(c.nodes) }

// Get finds the slot of id and makes it the row used last.
func (c *LRU) Get(id uint32) (slot int, ok bool) {
	if c.used == 0 {
		return 0, false
	}
	p := c.home(id)
	for {
		s := c.places[p]
		if s == 0 {
			return 0, false
		}
		if c.nodes[s-1].id == id {
			c.touch(s - 1)
			return int(s - 1), true
		}
		if p++; p == len(c.places) {
			p = 0
		}
	}
}

// Admit gives id a slot and makes it the row used last. id must be absent: Get has just missed it. evicted says that
// the slot was taken from the row unused for longest; ok is false only if the capacity is 0.
func (c *LRU) Admit(id uint32) (slot int, evicted, ok bool) {
	if len(c.nodes) == 0 {
		return 0, false, false
	}
	var s uint32
	if c.used < len(c.nodes) {
		s = uint32(c.used)
		c.used++
		c.link(s)
	} else {
		s = c.nodes[c.newest].prev
		c.remove(s)
		c.newest = s
		evicted = true
	}
	c.nodes[s].id = id
	p := c.home(id)
	for c.places[p] != 0 {
		if p++; p == len(c.places) {
			p = 0
		}
	}
	c.places[p] = s + 1
	return int(s), evicted, true
}

// Reset forgets every row.
func (c *LRU) Reset() {
	clear(c.places)
	c.used = 0
}

// touch moves slot s to the front of the ring.
func (c *LRU) touch(s uint32) {
	switch s {
	case c.newest:
	case c.nodes[c.newest].prev: // the oldest already stands where the newest belongs
		c.newest = s
	default:
		n := c.nodes[s]
		c.nodes[n.prev].next = n.next
		c.nodes[n.next].prev = n.prev
		c.link(s)
	}
}

// link puts slot s, which is in no ring, between the oldest and the newest and makes it the newest.
func (c *LRU) link(s uint32) {
	n := &c.nodes[s]
	if c.used == 1 { // the first row
		n.prev, n.next = s, s
	} else {
		first := &c.nodes[c.newest]
		n.prev, n.next = first.prev, c.newest
		c.nodes[first.prev].next = s
		first.prev = s
	}
	c.newest = s
}

// remove takes slot s out of the hash table and closes the hole: each follower in the run of taken places moves back
// if its home is not after the hole, since a probe from there would stop at the hole before it reached the follower.
func (c *LRU) remove(s uint32) {
	hole := c.home(c.nodes[s].id)
	for c.places[hole] != s+1 {
		if hole++; hole == len(c.places) {
			hole = 0
		}
	}
	for p := hole; ; {
		if p++; p == len(c.places) {
			p = 0
		}
		f := c.places[p]
		if f == 0 {
			break
		}
		if home := c.home(c.nodes[f-1].id); c.distance(home, p) >= c.distance(hole, p) {
			c.places[hole] = f
			hole = p
		}
	}
	c.places[hole] = 0
}

// distance is how many places a probe walks from place a to reach place b.
func (c *LRU) distance(a, b int) int {
	if a <= b {
		return b - a
	}
	return b - a + len(c.places)
}

// home is where the probe for id starts. The product spreads runs of ids by the golden ratio (Knuth, same section);
// scaling by its upper bits, unlike a mask, lets the table have any size, so a budget buys what it should.
func (c *LRU) home(id uint32) int {
	return int(uint64(id*0x9e3779b1) * uint64(len(c.places)) >> 32)
}
