package history

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndexAgainstMap puts nodes into slots and takes them out again.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		// Few nodes, at either end of their range, or of a list by node.
		first, nodes := uint32(math.MaxUint32-15), 0
		if rapid.Bool().Draw(t, "list") {
			first, nodes = 0, 31
		}
		slots, x := make([]slot, n), newIndex(n, nodes)
		require.Equal(t, nodes > 0 && n >= 8, x.byNode != nil)
		want := map[uint32]uint32{}
		node := rapid.Map(rapid.Uint32Range(0, 30), func(v uint32) uint32 { return first + v })
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
				got, ok := x.find(first + i)
				at, has := want[first+i]
				if ok != has || ok && got != at {
					t.Fatalf("%d is at %d %v, want %d %v", first+i, got, ok, at, has)
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
	for _, nodes := range []int{0, 100, 1000, 4000, 4001} {
		r := newRing(Options{}, Kept{Slots: 1000, Nodes: nodes}, &rule{})
		bytes := len(r.slots)*int(unsafe.Sizeof(slot{})) + 8*len(r.index.places) + 4*len(r.index.byNode)
		require.LessOrEqual(t, bytes, 1000*BytesPerSlot)
		if nodes > 0 {
			require.Equal(t, 12_000+min(4*nodes, 16_000), bytes)
		}
	}
	require.LessOrEqual(t, BytesPerSlot, 40)
}
