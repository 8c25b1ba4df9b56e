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

// find looks for the version of a node, of one of slots. A list by node may have one that is past
// use, and none of slots any more.
func (x *index) find(node uint32, slots []slot) (v Version, ok bool) {
	_, v, ok = x.look(node, slots)
	return v, ok
}

// look does what find does, and returns the place for set.
func (x *index) look(node uint32, slots []slot) (place int, v Version, ok bool) {
	if x.byNode != nil {
		if int(node) >= len(x.byNode) {
			return int(node), v, false
		}
		v, ok = unpack(x.byNode[node])
		return int(node), v, ok
	}
	if len(x.places) == 0 {
		return 0, v, false
	}
	p := x.places.look(node)
	if x.places[p] == 0 {
		return p, v, false
	}
	s := uint32(x.places[p]) - 1
	return p, Version{s, slots[s].stamp}, true
}

// set enters a node at the place that look returned. Nothing else may have changed since.
func (x *index) set(place int, node uint32, v Version) {
	if x.byNode != nil {
		x.byNode[place] = pack(v)
		return
	}
	x.places[place] = uint64(node)<<32 | uint64(v.Slot+1)
}

func pack(v Version) uint64 { return uint64(v.Slot+1)<<32 | uint64(v.Stamp) }

func unpack(e uint64) (v Version, ok bool) { return Version{uint32(e>>32) - 1, uint32(e)}, e != 0 }

// put enters a node, in the place of an older version if there is one.
func (x *index) put(node uint32, v Version) {
	place := int(node)
	if x.byNode == nil {
		place = x.places.look(node)
	}
	x.set(place, node, v)
}

// remove takes out a node, which is there.
func (x *index) remove(node uint32) {
	if x.byNode != nil {
		x.byNode[node] = 0
		return
	}
	x.places.remove(node)
}

// places are a hash table with open addressing and linear probing, at most half full. A deletion
// shifts the entries behind it back, so that look-ups do not slow down with time. Nodes lie in the
// table, not in the slots alone: a probe reads memory in one place.
type places []uint64 // a node in the upper half, its slot+1 in the lower; 0 is free

// placesPerSlot keeps the table at most half full: probes for what is there look at 1.5 places on
// average, others at 2.5.
const placesPerSlot = 2

// look returns the place of a node, or the free place where a node that is not there belongs.
func (x places) look(node uint32) int {
	return x.from(x.home(node), node)
}

// from looks from place p on, which lies between the node's home and its place.
func (x places) from(p int, node uint32) int {
	for x[p] != 0 && uint32(x[p]>>32) != node {
		p = x.after(p)
	}
	return p
}

// remove takes out a node, which is there. An entry that follows in the run of taken places moves
// into the hole, unless its home lies behind the hole: a probe from there would not find it.
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

// home is where the probe for a node starts. Multiplying by the golden ratio spreads runs of nodes
// (Knuth, The Art of Computer Programming 3, section 6.4), and scaling by the upper bits lets the
// table have any size.
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

// distance returns how many places a probe walks from place a to reach place b.
func (x places) distance(a, b int) int {
	if a <= b {
		return b - a
	}
	return b - a + len(x)
}
