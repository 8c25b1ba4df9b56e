package temporal

import (
	"math"
	"math/bits"
)

// table numbers keys in the order in which they first come: a hash table with linear probing, which
// grows with the batches and not with the stream. A key is known by a tag of 32 bits. Where that is
// less than the key, whoever asks compares the keys.
//
// A slot has the tag in its lower half, and in the upper base plus the number. What came before the
// last begin lies below base and counts as absent, so that forgetting it all is an addition.
type table struct {
	slots []uint64 // a power of two
	base  uint32   // at least 1, so that empty slots lie below
	n     uint32   // numbers given
}

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio

// begin forgets all keys.
func (x *table) begin() {
	if x.slots == nil {
		x.slots = make([]uint64, 256)
	}
	if x.base += x.n; x.base == 0 || x.base > math.MaxUint32/2 {
		clear(x.slots)
		x.base = 1
	}
	x.n = 0
}

// start returns the slot at which the search for a tag starts.
func (x *table) start(tag uint32) uint64 {
	return uint64(tag) * golden >> (64 - bits.TrailingZeros(uint(len(x.slots)))&63)
}

// find is the number of the next key with a tag, from a slot on, and the slot that it is in. If
// there is none, it is n, and the slot is where put puts it.
func (x *table) find(tag uint32, slot uint64) (number uint32, at uint64) {
	mask := uint64(len(x.slots) - 1)
	for ; ; slot++ {
		s := x.slots[slot&mask]
		if number = uint32(s>>32) - x.base; number >= x.n {
			return x.n, slot
		}
		if uint32(s) == tag {
			return number, slot
		}
	}
}

// put numbers a key that is new.
func (x *table) put(tag uint32, slot uint64) {
	x.slots[slot&uint64(len(x.slots)-1)] = uint64(x.base+x.n)<<32 | uint64(tag)
	if x.n++; 2*int(x.n) > len(x.slots) {
		x.grow()
	}
}

// grow doubles the slots.
func (x *table) grow() {
	old := x.slots
	x.slots = make([]uint64, 2*len(old))
	mask := uint64(len(x.slots) - 1)
	for _, s := range old {
		if uint32(s>>32)-x.base < x.n {
			i := x.start(uint32(s))
			for x.slots[i&mask] != 0 {
				i++
			}
			x.slots[i&mask] = s
		}
	}
}

// number is the number of a key that is its own tag.
func (x *table) number(key uint32) (number uint32, isNew bool) {
	number, slot := x.find(key, x.start(key))
	if isNew = number == x.n; isNew {
		x.put(key, slot)
	}
	return number, isNew
}
