package history

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndexAgainstMap puts nodes into slots and takes them out again.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		slots, x := make([]slot, n), newIndex(n)
		want := map[uint32]uint32{}
		// Few nodes, at either end of their range.
		node := rapid.Map(rapid.Uint32Range(0, 30), func(v uint32) uint32 { return v - 15 })
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			s := uint32(rapid.IntRange(0, n-1).Draw(t, "slot"))
			if slots[s].live {
				delete(want, slots[s].node)
				x.remove(slots[s].node)
				slots[s].live = false
			}
			if rapid.IntRange(0, 3).Draw(t, "put") > 0 {
				slots[s].node = node.Draw(t, "node")
				was, had := want[slots[s].node]
				old, replaced := x.put(slots[s].node, s)
				require.Equal(t, had, replaced)
				if slots[s].live = true; had {
					require.Equal(t, was, old)
					slots[old].live = false
				}
				want[slots[s].node] = s
			}
			for i := range uint32(31) {
				got, ok := x.find(i - 15)
				at, has := want[i-15]
				if ok != has || ok && got != at {
					t.Fatalf("%d is at %d %v, want %d %v", i-15, got, ok, at, has)
				}
			}
		}
		live := 0
		for i := range slots {
			live += bit(slots[i].live)
		}
		require.Len(t, want, live)
	})
}

func TestBytesPerSlot(t *testing.T) {
	require.EqualValues(t, slotBytes, unsafe.Sizeof(slot{}))
	r := newRing(Options{}, Kept{Slots: 1000}, &rule{})
	require.Equal(t, 1000*BytesPerSlot, len(r.slots)*int(unsafe.Sizeof(slot{}))+8*len(r.index))
	require.LessOrEqual(t, BytesPerSlot, 40)
}
