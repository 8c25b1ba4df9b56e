package device

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndexAgainstMap puts keys into slots and takes them out again.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		slots := make([]slot, n)
		x := index{slots: slots, places: make([]uint32, placesPerSlot*n)}
		want := map[Key]uint32{}
		// Few keys, at either end of the range of nodes.
		key := rapid.Custom(func(t *rapid.T) Key {
			return Key{rapid.Uint32Range(0, 30).Draw(t, "node") - 15, rapid.Uint8Range(1, 3).Draw(t, "layer")}
		})
		for range rapid.IntRange(1, 200).Draw(t, "operations") {
			s := uint32(rapid.IntRange(0, n-1).Draw(t, "slot"))
			if slots[s].live {
				delete(want, Key{slots[s].node, slots[s].layer})
				x.remove(s)
			}
			if rapid.IntRange(0, 3).Draw(t, "put") > 0 {
				k := key.Draw(t, "key")
				slots[s].node, slots[s].layer = k.Node, k.Layer
				_, had := want[k]
				require.Equal(t, had, x.put(s))
				want[k] = s
			}
			for node := -15; node <= 15; node++ {
				for layer := range uint8(4) {
					k := Key{uint32(node), layer}
					got, ok := x.find(k)
					at, has := want[k]
					if ok != has || ok && got != at {
						t.Fatalf("%v is at %d %v, want %d %v", k, got, ok, at, has)
					}
				}
			}
		}
		live := 0
		for i := range slots {
			if slots[i].live {
				live++
			}
		}
		require.Len(t, want, live)
	})
}

func TestBytesPerSlot(t *testing.T) {
	require.EqualValues(t, slotBytes, unsafe.Sizeof(slot{}))
	l, err := NewLedger(Options{Layout: Layout{Bytes: 8000, SlotBytes: 8}, MaxAge: 1})
	require.NoError(t, err)
	require.Equal(t, 1000*BytesPerSlot, len(l.ring.slots)*int(unsafe.Sizeof(slot{}))+4*len(l.index.places))
}

// TestVetoQueueReusesItsMemory pushes and pops for long: the memory is bounded by what waits.
func TestVetoQueueReusesItsMemory(t *testing.T) {
	var q vetoQueue
	pushed, popped := uint32(0), uint32(0)
	for step := range 1000 {
		for range step % 7 {
			q.push(step, []Version{{Slot: pushed}})
			pushed++
		}
		for {
			v, ok := q.pop(step - 5)
			if !ok {
				break
			}
			require.Equal(t, popped, v.Slot)
			popped++
		}
	}
	require.LessOrEqual(t, cap(q.waiting), 256)
	require.Equal(t, int(pushed-popped), len(q.waiting)-q.first)
}
