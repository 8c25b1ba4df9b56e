package sample

import (
	"context"
	"encoding/binary"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestRecordPoolKeepsItsBudget: runs give what was appended to them, and take no more memory than
// there is.
func TestRecordPoolKeepsItsBudget(t *testing.T) {
	s := NewSampler(AtHand(lists{{}}), Config{}, 2)
	rapid.Check(t, func(t *rapid.T) {
		const budget = 6 * chunkBytes
		room := new(spill)
		h := &recordPool{room: room, left: budget}
		runs, want := make([]*waiting, 4), make([][]uint32, 4)
		for i := range runs {
			runs[i] = h.newRun()
		}
		next := uint32(0)
		for range rapid.IntRange(1, 30).Draw(t, "calls") {
			i := rapid.IntRange(0, 3).Draw(t, "run")
			if rapid.IntRange(0, 5).Draw(t, "read") == 0 {
				var mu sync.Mutex
				var got []uint32
				require.NoError(t, runs[i].each(context.Background(), s, func(records []byte) error {
					mu.Lock()
					defer mu.Unlock()
					for ; len(records) > 0; records = records[4:] {
						got = append(got, binary.NativeEndian.Uint32(records))
					}
					return nil
				}))
				slices.Sort(got)
				require.True(t, slices.Equal(want[i], got))
				runs[i], want[i] = h.newRun(), nil
				continue
			}
			record := make([]uint32, rapid.SampledFrom([]int{1, 1000, chunkBytes / 4, chunkBytes}).Draw(t, "words"))
			for k := range record {
				record[k] = next
				next++
			}
			require.NoError(t, runs[i].append(bytesOf(record)))
			want[i] = append(want[i], record...)
			held := int64(len(h.free) * chunkBytes)
			for _, w := range runs {
				for _, c := range w.chunks {
					held += int64(cap(c))
				}
			}
			require.Equal(t, int64(budget), held+h.left)
			require.GreaterOrEqual(t, h.left, int64(0))
		}
	})
}
