package history

import (
	"cmp"
	"math"
	"slices"
)

// Candidate is the nodes of a layer and type whose rows may be kept, in classes of nodes that are about as hot, the hottest first.
type Candidate struct {
	Classes []Class
	// Saved is the bytes of feature rows that a step saves by using a kept row in place of one of these nodes.
	Saved float64
}

// Class is so many nodes, and how many of them a step meets, on average.
type Class struct {
	Nodes int
	Met   float64
}

// usualWindow is the steps of a usual window, by which a slot's bytes count: feature rows of these steps could lie in its place. It is a constant,
// since how many slots there are decides results.
const usualWindow = 50

// Slots is how many rows of each candidate are kept, the hottest ones, each of which takes so many bytes. With HistoryBytes auto they are those
// that save more than they take (§5.8 of the planner's rules): in t_stale steps a node is met Met ÷ Nodes × t_stale times, and all but the first
// save what computing it would read; its slot takes the place of feature rows, of others in each window. Else they are those that save the most, as
// far as the bytes reach.
func (s Settings) Slots(all []Candidate, slotBytes int64) []int {
	slots := make([]int, len(all))
	if !s.Reuses() {
		return slots
	}
	type offer struct {
		of    int
		nodes int
		saves float64 // bytes that a slot saves in t_stale steps
	}
	var offers []offer
	stale := float64(s.TStale)
	for i, c := range all {
		for _, class := range c.Classes {
			if class.Nodes > 0 {
				offers = append(offers, offer{i, class.Nodes, (class.Met/float64(class.Nodes)*stale - 1) * c.Saved})
			}
		}
	}
	if s.HistoryBytes == Auto {
		least, stopped := float64(slotBytes)*max(1, stale/usualWindow), make([]bool, len(all))
		for _, o := range offers { // of a candidate, the hottest first
			if stopped[o.of] = stopped[o.of] || !(o.saves > least); !stopped[o.of] {
				slots[o.of] += o.nodes
			}
		}
		return slots
	}
	// A class is not taken before a hotter one of its candidate.
	lowest := make([]float64, len(all))
	for i := range lowest {
		lowest[i] = math.Inf(1)
	}
	for i, o := range offers {
		lowest[o.of] = min(lowest[o.of], o.saves)
		offers[i].saves = lowest[o.of]
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.saves, a.saves) })
	left := s.HistoryBytes / slotBytes
	for _, o := range offers {
		n := int(min(int64(o.nodes), left))
		slots[o.of], left = slots[o.of]+n, left-int64(n)
	}
	return slots
}
