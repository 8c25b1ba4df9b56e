package temporal

import (
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/train/sample"
)

// staleQuantile is the share of a batch's rows whose memory counts as recent. The others are
// blended.
const staleQuantile = 0.99

// noEvent is the last time of a node that had no event yet. Scaled times begin at 0.
const noEvent = -1

// BlendRule is the number of the rule by which Blends chooses rows and partners. It grows when a
// change of the rule changes results. Rule 1 found partners in all events of the training part, and
// blended rows of nodes without an event. Runs by rule 1 have no number on record.
const BlendRule = 2

// Blends finds the rows of a batch whose memory is out of date, and the nodes whose memories are
// blended in (MSPipe, arXiv 2402.15113, section 4). It looks at the times of last events alone, so
// that what a batch reads is known before memories are computed.
//
// Its lists are used again by the next Find. One goroutine uses it.
type Blends struct {
	Rows  []uint32 // places of the rows to blend, ascending
	Start []uint32 // row Rows[i] is blended with Nodes[Start[i]:Start[i+1]], which are not empty
	Nodes []uint32 // places

	// Random, if not 0, replaces each similar node by a node of the same type that is as recent,
	// drawn by this key. It is a control, which shows what similarity is worth.
	Random   uint64
	FirstDst uint32 // for Random: the place of the first destination; 0 with one type

	since, sorted []float64
}

// Find looks at rows that are embedded: row i is the node at place nodes[i] at times[i]. last has
// the times of last events by place, or noEvent, in the state that the batch reads. times are
// scaled in the same way.
//
// A row is out of date if its node's last event is longer ago than γ, the 0.99-quantile over the
// rows. It is blended with similar nodes whose last event is later than its node's and less than γ
// ago. Nodes without an event have no memory that could be out of date: they do not count in the
// quantile, and are not blended.
func (b *Blends) Find(nodes []uint32, times, last []float64, similar func(place uint32) []uint32) {
	b.Rows, b.Start, b.Nodes, b.since, b.sorted = b.Rows[:0], append(b.Start[:0], 0), b.Nodes[:0], b.since[:0], b.sorted[:0]
	for i, v := range nodes {
		since := 0.0 // it is below any quantile
		if last[v] >= 0 {
			since = times[i] - last[v]
			b.sorted = append(b.sorted, since)
		}
		b.since = append(b.since, since)
	}
	slices.Sort(b.sorted)
	limit := quantile(b.sorted, staleQuantile)
	for i, v := range nodes {
		if !(b.since[i] > limit) {
			continue
		}
		recent := func(u uint32) bool { return last[u] > last[v] && times[i]-last[u] < limit }
		begin := len(b.Nodes)
		for _, u := range similar(v) {
			if recent(u) {
				b.Nodes = append(b.Nodes, u)
			}
		}
		if len(b.Nodes) == begin {
			continue
		}
		if b.Random != 0 {
			b.replace(b.Nodes[begin:], sample.Hash(b.Random, uint64(v), math.Float64bits(times[i])), uint32(len(last)), recent)
		}
		b.Rows, b.Start = append(b.Rows, uint32(i)), append(b.Start, uint32(len(b.Nodes)))
	}
}

// replace replaces nodes by as many others of their type that are recent, each drawn once. There
// are enough, since nodes are recent themselves.
func (b *Blends) replace(nodes []uint32, key uint64, places uint32, recent func(u uint32) bool) {
	lo, hi := uint32(0), places
	if b.FirstDst > 0 && nodes[0] < b.FirstDst {
		hi = b.FirstDst
	} else if b.FirstDst > 0 {
		lo = b.FirstDst
	}
	fits := func(u uint32, drawn []uint32) bool { return recent(u) && !slices.Contains(drawn, u) }
	for i := range nodes {
		u, tries := lo, 0
		for ; tries < randomTries; tries++ {
			if u = lo + uint32(below(sample.Fold(key, uint64(i*randomTries+tries)), int(hi-lo))); fits(u, nodes[:i]) {
				break
			}
		}
		for !fits(u, nodes[:i]) { // few are recent: take the next one that is
			if u++; u == hi {
				u = lo
			}
		}
		nodes[i] = u
	}
}

// randomTries is the number of nodes that are drawn before all are tried in turn.
const randomTries = 1000

// Blend makes memory keep·memory + (1-keep)·the mean of similar, which is not empty. A keep of 1
// changes no bit.
func Blend(memory []float32, similar [][]float32, keep float64) {
	if keep == 1 {
		return
	}
	for c := range memory {
		sum := 0.0
		for _, row := range similar {
			sum += float64(row[c])
		}
		memory[c] = float32(keep*float64(memory[c]) + (1-keep)*sum/float64(len(similar)))
	}
}

// quantile is the q-quantile of sorted values by linear interpolation, as NumPy has it; NaN of
// none.
func quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	at := q * float64(len(sorted)-1)
	i := int(at)
	if i+1 == len(sorted) {
		return sorted[i]
	}
	return sorted[i] + (at-float64(i))*(sorted[i+1]-sorted[i])
}
