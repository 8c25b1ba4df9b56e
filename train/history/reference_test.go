package history_test

import (
	"cmp"
	"maps"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
)

// reference is the rules in plain maps and lists, for one layer and type, a step after the other.
// It shares with Cache what a coin is.
type reference struct {
	history.Options // with defaults
	history.Kept
	entries  map[uint32]history.Version // by node
	rejected map[int]map[history.Version]bool
}

// decision is a plan of the reference.
type decision struct {
	used     map[uint32]history.Version // by node
	computed []uint32                   // nodes
	kept     map[uint32]history.Version
	counts   history.Counts
}

func newReference(o history.Options, k history.Kept) *reference {
	return &reference{Options: o, Kept: k, entries: map[uint32]history.Version{}, rejected: map[int]map[history.Version]bool{}}
}

func (r *reference) clone() *reference {
	c := *r
	c.entries, c.rejected = maps.Clone(r.entries), maps.Clone(r.rejected)
	return &c
}

func (r *reference) coin(v uint32, stamp uint32) bool {
	u := sample.Hash(r.Seed, 21, uint64(r.Layer), uint64(r.Type), uint64(v), uint64(stamp))
	return r.PGrad == 1 || float64(u>>11)*0x1p-53 < r.PGrad // PGrad is a multiple of 2⁻⁵³ in tests
}

// lowest returns the lowest slot that holds no embedding and is not read.
func (r *reference) lowest(read map[uint32]history.Version) (slot uint32, ok bool) {
	inUse := map[uint32]bool{}
	for _, of := range []map[uint32]history.Version{r.entries, read} {
		for _, x := range of {
			inUse[x.Slot] = true
		}
	}
	for s := range uint32(r.Slots) {
		if !inUse[s] {
			return s, true
		}
	}
	return 0, false
}

func (r *reference) plan(i int, live []uint32) decision {
	d := decision{used: map[uint32]history.Version{}, kept: map[uint32]history.Version{}}
	if i < r.Start {
		d.computed = slices.Clone(live)
		return d
	}
	maps.DeleteFunc(r.entries, func(_ uint32, is history.Version) bool {
		gone := r.rejected[i-r.Lag][is]
		if gone {
			d.counts.EvictedGrad++
		}
		return gone
	})
	for _, v := range live {
		is, ok := r.entries[v]
		age := i - int(is.Stamp)
		accepted := int(is.Stamp) <= i-r.Lag
		if !ok || age > r.TStale || !accepted && !r.coin(v, is.Stamp) {
			d.computed = append(d.computed, v)
			continue
		}
		d.used[v] = is
		d.counts.Hits++
		d.counts.Ages += int64(age)
		if !accepted {
			d.counts.ProvisionalHits++
		}
	}
	d.counts.Computed = int64(len(d.computed))
	maps.DeleteFunc(r.entries, func(_ uint32, is history.Version) bool {
		stale := i+1-int(is.Stamp) > r.TStale
		if stale {
			d.counts.EvictedStale++
		}
		return stale
	})
	for _, v := range d.computed {
		if r.Admits != nil && !r.Admits(v) {
			continue
		}
		if _, had := r.entries[v]; had {
			delete(r.entries, v)
			d.counts.Replaced++
		}
		s, ok := r.lowest(d.used)
		if !ok {
			d.counts.Refused++
			continue
		}
		x := history.Version{Slot: s, Stamp: uint32(i)}
		r.entries[v], d.kept[v] = x, x
		d.counts.Admitted++
	}
	return d
}

// measure ranks the gradients of live by sorting them, and adds to the counts of d.
func (r *reference) measure(i int, d *decision, live []uint32, norm map[uint32]float32, overflows map[uint32]bool) {
	finite := func(v uint32) bool { x := float64(norm[v]); return !math.IsNaN(x) && !math.IsInf(x, 0) }
	ranked := slices.Clone(live)
	slices.SortFunc(ranked, func(a, b uint32) int {
		if finite(a) != finite(b) {
			return cmp.Compare(bit(finite(b)), bit(finite(a)))
		}
		if finite(a) && norm[a] != norm[b] {
			return cmp.Compare(norm[a], norm[b])
		}
		return cmp.Compare(a, b)
	})
	bad := map[history.Version]bool{}
	for n, v := range ranked {
		if len(d.kept) == 0 && len(d.used) == 0 {
			break
		}
		reject := n >= int(math.Floor(r.PGrad*float64(len(live)))) || !finite(v)
		if !finite(v) {
			d.counts.NaN++
		}
		if x, ok := d.kept[v]; ok {
			if overflows[v] {
				d.counts.Overflow++
			}
			if reject || overflows[v] {
				bad[x] = true
			}
		}
		if x, ok := d.used[v]; ok && reject {
			bad[x] = true
		}
	}
	for _, x := range d.used {
		if int(x.Stamp) > i-r.Lag && r.rejected[int(x.Stamp)][x] {
			d.counts.UsedRejected++
		}
	}
	r.rejected[i] = bad
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}
