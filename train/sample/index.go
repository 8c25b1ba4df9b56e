package sample

import (
	"math"
	"math/bits"
)

// index numbers node ids in the order in which they first appear.
//
// It is a hash table with linear probing, bounded by the batch and not by the graph, until the
// table would take as much as an array over all nodes: from there on it is the array. Both hold
// base plus the position of an id. Entries from before the last begin lie below base and count as
// absent, so one addition forgets them all.
type index struct {
	nodes int      // ids are below it; 0: any may come, and there is no array
	table []uint64 // slots: an id in the lower half, base + position in the upper; a power of two of them
	array []uint32 // by id: base + position
	base  uint32   // at least 1, so that cleared entries lie below it
	n     uint32   // positions given
}

// chunk is the number of ids that are numbered between two checks of the room.
const chunk = 1024

// begin forgets all ids, and numbers known, whose ids differ from each other.
func (x *index) begin(known []uint32) {
	x.base += x.n
	x.n = 0
	x.fit(nil, len(known))
	x.enter(known)
}

// number turns ids into positions, in place, and appends new ids to known, which has all ids so far
// in the order of their positions. It stops at the first id that is no node: bad is its place, or
// -1.
func (x *index) number(ids, known []uint32) (all []uint32, bad int) {
	for at := 0; at < len(ids); at += chunk {
		some := ids[at:min(at+chunk, len(ids))]
		x.fit(known, len(some))
		known = grow(known, len(some)+1) // an id is written there before it is known to be new
		room := known[:len(known)+len(some)+1]
		if x.array != nil {
			bad = x.numberByArray(some, room)
		} else {
			bad = x.numberByTable(some, room)
		}
		if known = room[:x.n]; bad >= 0 {
			return known, at + bad
		}
	}
	return known, -1
}

// numberByArray has no branch that depends on ids: reads of dozens of them are under way at a time.
func (x *index) numberByArray(ids, room []uint32) (bad int) {
	array, base, n := x.array, x.base, x.n
	defer func() { x.n = n }()
	for e, u := range ids {
		if int64(u) >= int64(len(array)) {
			return e
		}
		pos, isNew := array[u]-base, uint32(0)
		if pos >= n {
			isNew = 1
		}
		pos = min(pos, n)
		array[u] = base + pos
		room[n] = u
		n += isNew
		ids[e] = pos
	}
	return -1
}

func (x *index) numberByTable(ids, room []uint32) (bad int) {
	table, base, n := x.table, x.base, x.n
	defer func() { x.n = n }()
	mask, shift, limit := uint64(len(table)-1), x.shift(), x.limit()
	for e, u := range ids {
		if uint64(u) >= limit {
			return e
		}
		for i := uint64(u) * golden >> (shift & 63); ; i++ {
			slot := table[i&mask]
			pos := uint32(slot>>32) - base
			if pos >= n {
				table[i&mask] = uint64(base+n)<<32 | uint64(u)
				room[n], ids[e] = u, n
				n++
				break
			}
			if uint32(slot) == u {
				ids[e] = pos
				break
			}
		}
	}
	return -1
}

// add numbers id if it is new, and reports whether it was. There must be room in the table.
func (x *index) add(id uint32) bool {
	i, pos := x.find(id)
	if pos < x.n {
		return false
	}
	x.table[i] = uint64(x.base+x.n)<<32 | uint64(id)
	x.n++
	return true
}

// find returns the slot of id, or the slot to put it into, and its position, which is not below n
// if id is absent.
func (x *index) find(id uint32) (slot uint64, pos uint32) {
	mask := uint64(len(x.table) - 1)
	for i := uint64(id) * golden >> (x.shift() & 63); ; i++ {
		slot := x.table[i&mask]
		if pos := uint32(slot>>32) - x.base; pos >= x.n || uint32(slot) == id {
			return i & mask, pos
		}
	}
}

// shift returns the right shift that leaves of a 64-bit hash the number of a slot.
func (x *index) shift() int { return 64 - bits.TrailingZeros(uint(len(x.table))) }

func (x *index) limit() uint64 {
	if x.nodes == 0 {
		return 1 << 32
	}
	return uint64(x.nodes)
}

// fit makes room for more ids beside known, which has all ids so far.
func (x *index) fit(known []uint32, more int) {
	want := len(known) + more
	if full := uint64(x.base)+uint64(want) > math.MaxUint32; full || x.base == 0 {
		clear(x.table)
		clear(x.array)
		x.renumber(known)
	}
	if x.array != nil || 2*want <= len(x.table) {
		return
	}
	slots := 1 << bits.Len(uint(max(2*want, 128)-1))
	if x.nodes > 0 && 4*x.nodes <= 8*slots {
		x.table, x.array = nil, make([]uint32, x.nodes)
	} else {
		x.table = make([]uint64, slots)
	}
	x.renumber(known)
}

// renumber enters known into a table or an array that is clear.
func (x *index) renumber(known []uint32) {
	x.base, x.n = 1, 0
	if x.array != nil || x.table != nil {
		x.enter(known)
	}
}

// enter numbers ids, which differ from each other and from all before.
func (x *index) enter(ids []uint32) {
	if x.array != nil {
		for _, u := range ids {
			x.array[u] = x.base + x.n
			x.n++
		}
		return
	}
	for _, u := range ids {
		x.add(u)
	}
}
