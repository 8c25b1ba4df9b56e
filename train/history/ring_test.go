package history

import (
	"math"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndexAgainstMap puts nodes into slots and takes them out again, or lets them outlive their time.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		// Few nodes, at either end of their range, or of a list by node.
		first, nodes := uint32(math.MaxUint32-15), 0
		if rapid.Bool().Draw(t, "list") {
			first, nodes = 0, 31
		}
		slots, x := make([]slot, n), newIndex(n, nodes)
		listed := x.byNode != nil
		require.Equal(t, nodes > 0 && n >= 11, listed)
		want := map[uint32]Version{} // by node
		past := map[Version]bool{}   // those of them that are past use, as a list by node may have
		node := rapid.Map(rapid.Uint32Range(0, 30), func(v uint32) uint32 { return first + v })
		for stamp := range uint32(rapid.IntRange(1, 200).Draw(t, "operations")) {
			s := uint32(rapid.IntRange(0, n-1).Draw(t, "slot"))
			v := slots[s].node
			if at, has := want[v]; has && at == (Version{s, slots[s].stamp}) && !past[at] {
				if rapid.Bool().Draw(t, "outlive") {
					x.outlive(v)
					past[at] = true
				} else {
					x.remove(v)
				}
				if !listed || !past[at] {
					delete(want, v)
				}
			}
			if rapid.IntRange(0, 3).Draw(t, "put") > 0 {
				v := node.Draw(t, "node")
				slots[s] = slot{v, stamp}
				was, had := want[v]
				want[v] = Version{s, stamp}
				old, replaced := x.put(v, want[v])
				require.Equal(t, had, replaced)
				if had && !listed {
					was.Stamp = stamp // which places do not tell
				}
				if had {
					require.Equal(t, was, old)
				}
			}
			for i := range uint32(31) {
				got, ok := x.find(first+i, slots)
				at, has := want[first+i]
				if ok != has || ok && got != at {
					t.Fatalf("%d is at %v %v, want %v %v", first+i, got, ok, at, has)
				}
			}
		}
		if nodes > 0 {
			_, ok := x.find(31, slots)
			require.False(t, ok)
		}
	})
}

func TestBytesPerSlot(t *testing.T) {
	for _, nodes := range []int{0, 100, 1000, 2875, 2876} {
		r := newRing(Options{}, Kept{Slots: 1000, Nodes: nodes}, &rule{})
		bytes := len(r.slots)*int(unsafe.Sizeof(slot{})) + 8*len(r.live) + 8*len(r.index.places) + 8*len(r.index.byNode)
		require.LessOrEqual(t, bytes, 1000*BytesPerSlot)
		if 0 < nodes && nodes <= 2875 {
			require.Equal(t, 8_128+8*nodes, bytes)
		} else {
			require.Equal(t, 24_128, bytes)
		}
	}
	require.LessOrEqual(t, BytesPerSlot, 40)
}
