package history

import "math/bits"

// index finds the slot of a node.
type index struct {
	byNode []uint32 // slot+1, or 0; nil where there are too many nodes for it
	places places
}

// newIndex is a list by node where the nodes are known, and few enough that it takes no more than places.
func newIndex(slots, nodes int) index {
	if 0 < nodes && nodes <= 2*placesPerSlot*slots {
		return index{byNode: make([]uint32, nodes)}
	}
	return index{places: make(places, placesPerSlot*slots)}
}

// find looks for the slot of a node.
func (x *index) find(node uint32) (s uint32, ok bool) {
	if x.byNode != nil {
		s = x.byNode[node]
		return s - 1, s > 0
	}
	return x.places.find(node)
}

// put enters a node, and returns the slot that it led to before, if any.
func (x *index) put(node, s uint32) (old uint32, replaced bool) {
	if x.byNode != nil {
		old, replaced = x.find(node)
		x.byNode[node] = s + 1
		return old, replaced
	}
	return x.places.put(node, s)
}

// remove takes out a node, which is there.
func (x *index) remove(node uint32) {
	if x.byNode != nil {
		x.byNode[node] = 0
		return
	}
	x.places.remove(node)
}

// near reads memory where a node is, or would be: its slot+1, that of another node, or 0.
func (x *index) near(node uint32) uint32 {
	switch {
	case x.byNode != nil:
		return x.byNode[node]
	case len(x.places) > 0:
		return uint32(x.places[x.places.home(node)])
	}
	return 0
}

// places are a hash table with open addressing and linear probing, at most half full. A deletion shifts the
// entries behind it back, so that look-ups do not slow down with time. Nodes lie in the table, not in the slots alone: a probe
// reads memory in one place.
type places []uint64 // a node in the upper half, its slot+1 in the lower; 0 is free

// placesPerSlot keeps the table at most half full: probes for what is there look at 1.5 places on average, others at 2.5.
const placesPerSlot = 2

// find looks for the entry of a node. Without any slot there are no places, and nothing to look through.
func (x places) find(node uint32) (s uint32, ok bool) {
	if len(x) == 0 {
		return 0, false
	}
	for p := x.home(node); x[p] != 0; p = x.after(p) {
		if uint32(x[p]>>32) == node {
			return uint32(x[p]) - 1, true
		}
	}
	return 0, false
}

// put enters a node, and returns the slot that it led to before, if any.
func (x places) put(node, s uint32) (old uint32, replaced bool) {
	p := x.home(node)
	for ; x[p] != 0; p = x.after(p) {
		if uint32(x[p]>>32) == node {
			old, replaced = uint32(x[p])-1, true
			break
		}
	}
	x[p] = uint64(node)<<32 | uint64(s+1)
	return old, replaced
}

// remove takes out a node, which is there. An entry that follows in the run of taken places moves into the hole, unless its home
// lies behind the hole: a probe from there would not find it.
func (x places) remove(node uint32) {
	hole := x.home(node)
	for uint32(x[hole]>>32) != node {
		hole = x.after(hole)
	}
	for p := x.after(hole); x[p] != 0; p = x.after(p) {
		if home := x.home(uint32(x[p] >> 32)); x.distance(home, p) >= x.distance(hole, p) {
			x[hole] = x[p]
			hole = p
		}
	}
	x[hole] = 0
}

// home is where the probe for a node starts. Multiplying by the golden ratio spreads runs of nodes (Knuth, The Art of Computer
// Programming 3, section 6.4), and scaling by the upper bits lets the table have any size.
func (x places) home(node uint32) int {
	home, _ := bits.Mul64(uint64(node)*0x9e3779b97f4a7c15, uint64(len(x)))
	return int(home)
}

// after is the place that a probe looks at next.
func (x places) after(p int) int {
	if p++; p == len(x) {
		return 0
	}
	return p
}

// distance is how many places a probe walks from place a to reach place b.
func (x places) distance(a, b int) int {
	if a <= b {
		return b - a
	}
	return b - a + len(x)
}
