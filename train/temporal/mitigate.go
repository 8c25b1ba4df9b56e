package temporal

import (
	"math"
	"slices"
)

// staleQuantile is the share of a batch's rows whose memory is recent enough: of the others, those that had no event for longest, similar nodes
// are asked.
const staleQuantile = 0.99

// Blends says which rows of a batch have their memory blended with that of similar nodes, since it is out of date (MSPipe, arXiv 2402.15113,
// section 4). It depends on times of last events alone, and not on memory: so what it reads is known before the batch is.
//
// Its lists are used again by the next Find. One goroutine uses it.
type Blends struct {
	Rows  []uint32 // to blend, in ascending order
	Start []uint32 // row Rows[i] is blended with Nodes[Start[i]:Start[i+1]], which are not empty
	Nodes []uint32 // places

	since, sorted []float64
}

// Find looks at rows that are embedded: row i is the node at place nodes[i] at times[i]. Times of last events are by place, 0 without, in the
// version of state that the batch reads, and times are scaled as there.
//
// A row is out of date when its node's last event is longer ago than γ, the 0.99-quantile over the rows. Of the nodes that are similar to its
// own it is blended with those that had an event after its node had, less than γ before the row.
func (b *Blends) Find(nodes []uint32, times, last []float64, similar func(place uint32) []uint32) {
	b.Rows, b.Start, b.Nodes, b.since = b.Rows[:0], append(b.Start[:0], 0), b.Nodes[:0], b.since[:0]
	for i, v := range nodes {
		b.since = append(b.since, times[i]-last[v])
	}
	b.sorted = append(b.sorted[:0], b.since...)
	slices.Sort(b.sorted)
	limit := quantile(b.sorted, staleQuantile)
	for i, v := range nodes {
		if !(b.since[i] > limit) {
			continue
		}
		for _, u := range similar(v) {
			if last[u] > last[v] && times[i]-last[u] < limit {
				b.Nodes = append(b.Nodes, u)
			}
		}
		if end := uint32(len(b.Nodes)); end > b.Start[len(b.Rows)] {
			b.Rows, b.Start = append(b.Rows, uint32(i)), append(b.Start, end)
		}
	}
}

// Blend makes memory keep·memory + (1-keep)·the mean of similar, which is not empty. A keep of 1 changes no bit.
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

// quantile is the q-quantile of sorted values by linear interpolation, as NumPy has it; NaN of none.
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
