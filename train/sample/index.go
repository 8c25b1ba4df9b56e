package sample

import "math/bits"

// index numbers node ids in the order in which they first come. It is a hash table with linear probing, bounded by the
// batch and not by the graph: an array over all nodes would be faster and costs 8 bytes a node for every worker.
// Entries of older generations count as empty, so a reset is one increment.
type index struct {
	slots []indexSlot
	gen   uint32
	n     int

	touched uint32 // a sum of what was read early, so that reading it is not left out
}

type indexSlot struct{ gen, id, pos uint32 }

// reset forgets all ids and makes room for about n.
func (x *index) reset(n int) {
	if want := 1 << bits.Len(uint(max(n, 64)*2)); len(x.slots) < want {
		x.slots = make([]indexSlot, want)
		x.gen = 0
	}
	if x.gen++; x.gen == 0 { // wrapped: old entries would look new
		clear(x.slots)
		x.gen = 1
	}
	x.n = 0
}

// touch brings near the slots in which a search for each of ids begins.
func (x *index) touch(ids []uint32) {
	mask := uint32(len(x.slots) - 1)
	for _, id := range ids {
		x.touched += x.slots[uint32(mix(uint64(id)))&mask].gen
	}
}

// add returns id's position, and whether it is new.
func (x *index) add(id uint32) (pos uint32, isNew bool) {
	if 2*x.n >= len(x.slots) {
		x.grow()
	}
	mask := uint32(len(x.slots) - 1)
	for h := uint32(mix(uint64(id))) & mask; ; h = (h + 1) & mask {
		switch s := &x.slots[h]; {
		case s.gen != x.gen:
			*s = indexSlot{x.gen, id, uint32(x.n)}
			x.n++
			return s.pos, true
		case s.id == id:
			return s.pos, false
		}
	}
}

func (x *index) grow() {
	old, gen := x.slots, x.gen
	x.slots, x.gen = make([]indexSlot, 2*len(old)), 1
	mask := uint32(len(x.slots) - 1)
	for _, s := range old {
		if s.gen != gen {
			continue
		}
		h := uint32(mix(uint64(s.id))) & mask
		for x.slots[h].gen == x.gen {
			h = (h + 1) & mask
		}
		x.slots[h] = indexSlot{x.gen, s.id, s.pos}
	}
}
