package device

import "math/bits"

// Key names an embedding: that of a node after layer 1, 2 … of the network. Layer 0 stands for no embedding.
type Key struct {
	Node  uint32
	Layer uint8
}

// word is k in one number.
func (k Key) word() uint64 { return uint64(k.Layer)<<32 | uint64(k.Node) }

// index finds the slot of a key; the keys themselves lie in the slots. It is a hash table like that of policy.LRU: open
// addressing with linear probing, at most half full. A deletion shifts the entries behind it back, so that look-ups do not slow
// down with time.
type index struct {
	slots  []slot   // the ring's
	places []uint32 // slot+1, 0 is free
}

// placesPerSlot: see policy.LRU.
const placesPerSlot = 2

// BytesPerSlot is the memory that a [Ledger] takes for each slot that there may be.
const BytesPerSlot = slotBytes + 4*placesPerSlot

// find looks for k. Without any slot there are no places, and nothing to look through.
func (x *index) find(k Key) (s uint32, ok bool) {
	if len(x.places) == 0 {
		return 0, false
	}
	for p := x.home(k); x.places[p] != 0; p = x.after(p) {
		s := x.places[p] - 1
		if t := &x.slots[s]; t.node == k.Node && t.layer == k.Layer {
			return s, true
		}
	}
	return 0, false
}

// put enters the key of slot s. It reports whether the key led to another slot before, which is not live any more.
func (x *index) put(s uint32) (replaced bool) {
	t := &x.slots[s]
	p := x.home(Key{t.node, t.layer})
	for x.places[p] != 0 {
		old := &x.slots[x.places[p]-1]
		if old.node == t.node && old.layer == t.layer {
			old.live = false
			replaced = true
			break
		}
		p = x.after(p)
	}
	x.places[p] = s + 1
	t.live = true
	return replaced
}

// remove takes out the key of slot s, which is live. An entry that follows in the run of taken places moves into the hole,
// unless its home lies behind the hole: a probe from there would not find it.
func (x *index) remove(s uint32) {
	hole := x.homeOf(s)
	for x.places[hole] != s+1 {
		hole = x.after(hole)
	}
	for p := x.after(hole); x.places[p] != 0; p = x.after(p) {
		if home := x.homeOf(x.places[p] - 1); x.distance(home, p) >= x.distance(hole, p) {
			x.places[hole] = x.places[p]
			hole = p
		}
	}
	x.places[hole] = 0
	x.slots[s].live = false
}

// home is where the probe for k starts. Multiplying by the golden ratio spreads runs of nodes (Knuth, The Art of Computer
// Programming 3, section 6.4), and scaling by the upper bits lets the table have any size.
func (x *index) home(k Key) int {
	home, _ := bits.Mul64(k.word()*0x9e3779b97f4a7c15, uint64(len(x.places)))
	return int(home)
}

// homeOf is the home of the key in slot s.
func (x *index) homeOf(s uint32) int { return x.home(Key{x.slots[s].node, x.slots[s].layer}) }

// after is the place that a probe looks at next.
func (x *index) after(p int) int {
	if p++; p == len(x.places) {
		return 0
	}
	return p
}

// distance is how many places a probe walks from place a to reach place b.
func (x *index) distance(a, b int) int {
	if a <= b {
		return b - a
	}
	return b - a + len(x.places)
}
