package device_test

import (
	"maps"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/device"
)

// reference is the definition of right: FreshGNN's Algorithm 1 with a delay of k steps, in plain maps that are kept for
// each step, and a ring in plain slices.
type reference struct {
	o      device.Options // with every default filled
	seen   map[int]map[device.Key]device.Version
	inUse  []device.Version              // by age
	keys   map[device.Version]device.Key // what was written there; a hole has none
	leases map[device.Version]int
	free   []uint32
	inRing map[uint32]bool
	limit  int
	rows   map[int]int // in the region after a step
}

func newReference(o device.Options) *reference {
	r := &reference{
		o:      o,
		seen:   map[int]map[device.Key]device.Version{o.FirstStep - 1: {}},
		keys:   map[device.Version]device.Key{},
		leases: map[device.Version]int{},
		inRing: map[uint32]bool{},
		limit:  o.MaxSlots,
	}
	r.rows = map[int]int{o.FirstStep - 1: r.rowsBeside(0)}
	return r
}

// visible is the index that step i plans with.
func (r *reference) visible(i int) map[device.Key]device.Version {
	return r.seen[max(i-r.o.Staleness, r.o.FirstStep-1)]
}

func (r *reference) find(i int, k device.Key) (device.Version, bool) {
	v, ok := r.visible(i)[k]
	if !ok || i-int(v.Stamp) > r.o.MaxAge {
		return device.Version{}, false
	}
	return v, true
}

// features is how many rows step i can read whenever it runs: those that no step from i-k on lacks.
func (r *reference) features(i int) int {
	least := r.rows[i-1]
	for j := max(i-r.o.Staleness, r.o.FirstStep-1); j < i; j++ {
		least = min(least, r.rows[j])
	}
	return least
}

// wanted says that v must stay when step i writes: a step after i may use it, or one from i on leases it, or it is not
// there yet.
func (r *reference) wanted(i int, v device.Version) bool {
	if int(v.Stamp) > i-r.o.Staleness || r.leases[v] >= i {
		return true
	}
	k, written := r.keys[v]
	found, ok := r.visible(i)[k]
	return written && ok && found == v && i+1-int(v.Stamp) <= r.o.MaxAge
}

func (r *reference) reserve(i, n int) []uint32 {
	for len(r.inUse) > 0 && !r.wanted(i, r.inUse[0]) {
		r.free = append(r.free, r.inUse[0].Slot)
		r.inUse = r.inUse[1:]
	}
	r.free = slices.DeleteFunc(r.free, func(s uint32) bool {
		if int(s) >= r.limit {
			delete(r.inRing, s)
			return true
		}
		return false
	})
	var given []uint32
	for range n {
		var s uint32
		if len(r.free) > 0 {
			s, r.free = r.free[0], r.free[1:]
		} else {
			for r.inRing[s] {
				s++
			}
			if int(s) >= r.limit {
				break
			}
			r.inRing[s] = true
		}
		given = append(given, s)
		r.inUse = append(r.inUse, device.Version{Slot: s, Stamp: uint32(i)})
	}
	r.rows[i] = r.rowsBeside(r.top())
	return given
}

func (r *reference) top() int {
	top := 0
	for s := range r.inRing {
		top = max(top, int(s)+1)
	}
	return top
}

// rowsBeside counts, from the hottest on, the rows that begin at or behind the end of the slots.
func (r *reference) rowsBeside(top int) int {
	l := r.o.Layout
	if l.RowBytes == 0 {
		return 0
	}
	rows, at := 0, l.Bytes-l.Bytes%int64(l.RowBytes)
	for rows < l.Rows && at-int64(l.RowBytes) >= int64(top)*int64(l.SlotBytes) {
		at -= int64(l.RowBytes)
		rows++
	}
	return rows
}

func (r *reference) writeBack(j int, slots []uint32, keys []device.Key, vetoes []device.Version) {
	next := maps.Clone(r.seen[j-1])
	for n, k := range keys {
		if k.Layer > 0 {
			v := device.Version{Slot: slots[n], Stamp: uint32(j)}
			next[k], r.keys[v] = v, k
		}
	}
	for _, v := range vetoes {
		if found, ok := next[r.keys[v]]; ok && found == v {
			delete(next, r.keys[v])
		}
	}
	r.seen[j] = next
}
