package temporal

import (
	"github.com/gnnstore/gnnstore/store"
)

// recurrenceWindows is the number of parts of the stream that [Recurrence] reads. At 600 events
// each that takes a moment, and the mean varies by less than a hundredth, even on streams that
// change all the time.
const recurrenceWindows = 256

// Recurrence returns how many events a node has in a batch of each of sizes, on average over the
// nodes of the batch, among events from to to-1. sizes ascend. It looks at batches spread evenly
// over these events. An event from a node to itself counts once.
func Recurrence(e *store.Events, from, to int64, sizes []int) ([]float64, error) {
	span := min(int64(sizes[len(sizes)-1]), to-from)
	windows := min(recurrenceWindows, max(1, (to-from)/max(1, span)))
	ends, nodes := make([]float64, len(sizes)), make([]float64, len(sizes))
	seen := map[uint32]bool{}
	err := store.Guard(func() error {
		for w := range windows {
			lo := from
			if windows > 1 {
				lo += w * (to - from - span) / (windows - 1)
			}
			src, dst := e.Ends(lo, lo+span)
			clear(seen)
			count, next := 0, 0
			for i := range src {
				u, v := src[i], uint32(e.Place(dst[i]))
				seen[u], seen[v] = true, true
				if count++; u != v {
					count++
				}
				// a short part is its own longest batch
				for ; next < len(sizes) && (i+1 == sizes[next] || i+1 == len(src)); next++ {
					ends[next] += float64(count)
					nodes[next] += float64(len(seen))
				}
			}
		}
		return nil
	})
	for i := range ends {
		if nodes[i] > 0 {
			ends[i] /= nodes[i]
		}
	}
	return ends, err
}
