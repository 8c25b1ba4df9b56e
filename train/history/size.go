package history

import (
	"cmp"
	"math"
	"slices"
)

// Candidate is the nodes of a layer and type whose rows may be kept, in classes of nodes that are
// about as hot, the hottest first.
type Candidate struct {
	Classes []Class
	// Saved is the bytes of feature rows that a step saves by using a kept row in place of one of
	// these nodes.
	Saved float64
}

// Class is so many nodes, and how many of them a step meets, on average.
type Class struct {
	Nodes int
	Met   float64
}

// usualWindow is the steps of a usual window, by which a slot's bytes count: feature rows of these
// steps could lie in its place. It is a constant, since how many slots there are decides results.
const usualWindow = 50

// usualBytes is the least that HistoryBytes auto gives to slots, if steps meet that many nodes. On
// ogbn-arxiv it saves 44 % of the rows; the slots that save more than they take would save 14 %. It
// is a constant for the same reason.
const usualBytes = 64 << 20

// offer is a class of nodes of one candidate.
type offer struct {
	of    int
	nodes int
	met   int     // how many of the nodes t_stale steps meet at most
	saves float64 // bytes that a slot saves in t_stale steps
}

// Slots returns how many rows of each candidate are kept, at slotBytes each, and how many of its
// hottest nodes are admitted. With HistoryBytes auto it takes the larger of two sets: the rows that
// save more than they take, or usualBytes of the rows that save the most, among nodes that t_stale
// steps meet. Otherwise it takes the rows that save the most until HistoryBytes is used up.
func (s Settings) Slots(all []Candidate, slotBytes int64) (slots, admitted []int) {
	if !s.Reuses() {
		return make([]int, len(all)), make([]int, len(all))
	}
	var offers []offer
	stale := float64(s.TStale)
	for i, c := range all {
		for _, class := range c.Classes {
			if class.Nodes > 0 {
				met := min(float64(class.Nodes), math.Ceil(class.Met*stale))
				offers = append(offers, offer{i, class.Nodes, int(met), (class.Met/float64(class.Nodes)*stale - 1) * c.Saved})
			}
		}
	}
	if s.HistoryBytes != Auto {
		for i := range offers {
			offers[i].met = offers[i].nodes
		}
		return fill(offers, len(all), s.HistoryBytes/slotBytes)
	}
	worth, sum := make([]int, len(all)), 0
	least, stopped := float64(slotBytes)*max(1, stale/usualWindow), make([]bool, len(all))
	for _, o := range offers { // a candidate's offers come hottest first
		if stopped[o.of] = stopped[o.of] || !(o.saves > least); !stopped[o.of] {
			worth[o.of], sum = worth[o.of]+o.nodes, sum+o.nodes
		}
	}
	slots, admitted = fill(offers, len(all), usualBytes/slotBytes)
	for _, n := range slots {
		sum -= n
	}
	if sum > 0 {
		return worth, worth
	}
	return slots, admitted
}

// fill gives left slots to the nodes that steps meet; those that save the most come first.
func fill(offers []offer, candidates int, left int64) (slots, admitted []int) {
	slots, admitted = make([]int, candidates), make([]int, candidates)
	// A class is not taken before a hotter one of its candidate.
	lowest := make([]float64, candidates)
	for i := range lowest {
		lowest[i] = math.Inf(1)
	}
	for i, o := range offers {
		lowest[o.of] = min(lowest[o.of], o.saves)
		offers[i].saves = lowest[o.of]
	}
	slices.SortStableFunc(offers, func(a, b offer) int { return cmp.Compare(b.saves, a.saves) })
	for _, o := range offers {
		n := int(min(int64(o.met), left))
		slots[o.of], left = slots[o.of]+n, left-int64(n)
		if n == o.met && (n > 0 || left > 0) {
			n = o.nodes // nodes that are not met now may be met later
		}
		admitted[o.of] += n
	}
	return slots, admitted
}
