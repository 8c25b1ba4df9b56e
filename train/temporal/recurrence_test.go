package temporal

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
)

// TestRecurrence compares with batches whose nodes are counted one by one, on streams among users
// and between two types. The short streams have no whole batch.
func TestRecurrence(t *testing.T) {
	sizes := []int{5, 20, 90}
	for _, events := range []int{3, 60, 90, 91, 500} {
		for _, items := range []int{0, 8} {
			spec := randomStream(rand.New(rand.NewPCG(uint64(events), 3)), events, 12, items)
			e := open(t, spec)
			got, err := Recurrence(e, 0, e.Len(), sizes)
			require.NoError(t, err)
			require.NoError(t, store.Guard(func() error {
				span := min(90, events)
				windows := max(1, events/span)
				for i, size := range sizes {
					ends, nodes := 0, 0
					for w := range windows {
						lo := 0
						if windows > 1 {
							lo = w * (events - span) / (windows - 1)
						}
						times := map[uint32]int{}
						src, dst := e.Ends(int64(lo), int64(min(lo+size, lo+span)))
						for k := range src {
							times[src[k]]++
							if v := uint32(e.Place(dst[k])); v != src[k] {
								times[v]++
							}
						}
						for _, n := range times {
							ends, nodes = ends+n, nodes+1
						}
					}
					require.InDelta(t, float64(ends)/float64(nodes), got[i], 1e-12, "%d events, batches of %d", events, size)
				}
				return nil
			}))
		}
	}
}
