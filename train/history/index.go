package history

import "math/bits"

// index finds the newest version of a node's embedding.
type index struct {
	byNode []uint64 // slot+1 in the upper half, the stamp in the lower, or 0; nil where there are too many nodes for it
	places places
}

// newIndex returns a list by node if the number of nodes is known and the list takes no more memory
// than places. A look-up in the list reads one address; in places it reads two, one of them in the
// slots.
func newIndex(slots, nodes int) index {
	if 0 < nodes && nodes <= placesPerSlot*slots {
		return index{byNode: make([]uint64, nodes)}
	}
	return index{places: make(places, placesPerSlot*slots)}
}

// find looks for the version of a node, of one of slots. A list by node may have one that is past use, and none of slots any more.
func (x *index) find(node uint32, slots []slot) (v Version, ok bool) {
	if x.byNode != nil {
		if int(node) >= len(x.byNode) {
			return v, false
		}
		return unpack(x.byNode[node])
	}
	s, ok := x.places.find(node)
	if ok {
		v = Version{s, slots[s].stamp}
	}
	return v, ok
}

func unpack(e uint64) (v Version, ok bool) { return Version{uint32(e>>32) - 1, uint32(e)}, e != 0 }

// put enters a node, and returns the version that it led to before, if any. Places have those that live, and do not tell the stamp.
func (x *index) put(node uint32, v Version) (old Version, replaced bool) {
	if x.byNode != nil {
		old, replaced = unpack(x.byNode[node])
		x.byNode[node] = uint64(v.Slot+1)<<32 | uint64(v.Stamp)
		return old, replaced
	}
	s, replaced := x.places.put(node, v.Slot)
	return Version{s, v.Stamp}, replaced
}

// remove takes out a node, which is there.
func (x *index) remove(node uint32) {
	if x.byNode != nil {
		x.byNode[node] = 0
		return
	}
	x.places.remove(node)
}

// outlive takes out a node whose version is past use. In a list by node it may stay, since its stamp says so.
func (x *index) outlive(node uint32) {
	if x.byNode == nil {
		x.places.remove(node)
	}
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

// near reads memory where a node is, or would be: the slot+1 there, or 0.
func (x places) near(node uint32) uint32 { return uint32(x[x.home(node)]) }

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
