package history

import "math/bits"

// index finds the slot of a node. It is a hash table with open addressing and linear probing, at most half full. A deletion shifts the
// entries behind it back, so that look-ups do not slow down with time. Nodes lie in the table, not in the slots alone: a probe
// reads memory in one place.
type index []uint64 // a node in the upper half, its slot+1 in the lower; 0 is free

// placesPerSlot keeps the table at most half full: probes for what is there look at 1.5 places on average, others at 2.5.
const placesPerSlot = 2

func newIndex(slots int) index { return make(index, placesPerSlot*slots) }

// find looks for the entry of a node. Without any slot there are no places, and nothing to look through.
func (x index) find(node uint32) (s uint32, ok bool) {
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
func (x index) put(node, s uint32) (old uint32, replaced bool) {
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
func (x index) remove(node uint32) {
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
func (x index) home(node uint32) int {
	home, _ := bits.Mul64(uint64(node)*0x9e3779b97f4a7c15, uint64(len(x)))
	return int(home)
}

// after is the place that a probe looks at next.
func (x index) after(p int) int {
	if p++; p == len(x) {
		return 0
	}
	return p
}

// distance is how many places a probe walks from place a to reach place b.
func (x index) distance(a, b int) int {
	if a <= b {
		return b - a
	}
	return b - a + len(x)
}
