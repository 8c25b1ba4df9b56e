package policy

import (
	"container/list"
	"fmt"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// listLRU is the definition of right: a list in order of use, a map into it.
type listLRU struct {
	capacity int
	order    *list.List // of uint32, newest first
	at       map[uint32]*list.Element
}

func newListLRU(capacity int) *listLRU {
	return &listLRU{capacity: capacity, order: list.New(), at: map[uint32]*list.Element{}}
}

func (c *listLRU) get(id uint32) bool {
	e, ok := c.at[id]
	if ok {
		c.order.MoveToFront(e)
	}
	return ok
}

func (c *listLRU) admit(id uint32) (evicted uint32, full bool) {
	if full = c.order.Len() == c.capacity; full {
		last := c.order.Back()
		evicted = c.order.Remove(last).(uint32)
		delete(c.at, evicted)
	}
	c.at[id] = c.order.PushFront(id)
	return evicted, full
}

func TestLRUAgainstList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		capacity := rapid.IntRange(1, 20).Draw(t, "capacity")
		// Few ids, some of which share a home place or lie at the end of the range, so that probes run long and wrap.
		id := rapid.OneOf(rapid.Uint32Range(0, 40), rapid.Uint32Range(1<<32-10, 1<<32-1),
			rapid.Map(rapid.Uint32Range(0, 9), func(k uint32) uint32 { return k * 0x0e8b2da1 }))
		got, want := NewLRU(capacity), newListLRU(capacity)
		holder := map[int]uint32{} // slot to id
		for step, v := range rapid.SliceOfN(id, 1, 300).Draw(t, "ids") {
			if rapid.IntRange(0, 99).Draw(t, "reset") == 0 {
				got.Reset()
				want = newListLRU(capacity)
				clear(holder)
			}
			slot, hit := got.Get(v)
			if wantHit := want.get(v); hit != wantHit {
				t.Fatalf("step %d: Get(%d) hit %v, want %v", step, v, hit, wantHit)
			}
			if hit {
				if holder[slot] != v {
					t.Fatalf("step %d: Get(%d) = slot %d, which holds %d", step, v, slot, holder[slot])
				}
				continue
			}
			slot, evicted, ok := got.Admit(v)
			old, wantEvicted := want.admit(v)
			if !ok || evicted != wantEvicted || slot < 0 || slot >= capacity {
				t.Fatalf("step %d: Admit(%d) = %d, %v, %v; want evicted %v", step, v, slot, evicted, ok, wantEvicted)
			}
			if before, taken := holder[slot]; taken != evicted || evicted && before != old {
				t.Fatalf("step %d: Admit(%d) took slot %d from %d, want %d (evicted %v)", step, v, slot, before, old, evicted)
			}
			holder[slot] = v
			if got.Len() != want.order.Len() {
				t.Fatalf("step %d: Len %d, want %d", step, got.Len(), want.order.Len())
			}
		}
		for e := want.order.Back(); e != nil; e = e.Prev() {
			if _, ok := got.Get(e.Value.(uint32)); !ok {
				t.Fatalf("%d is gone at the end", e.Value)
			}
		}
	})
}

func TestLRUWithoutCapacity(t *testing.T) {
	c := NewLRU(0)
	_, ok := c.Get(7)
	require.False(t, ok)
	_, evicted, ok := c.Admit(7)
	require.False(t, ok)
	require.False(t, evicted)
	c.Reset()
	require.Zero(t, c.Len())
	require.Panics(t, func() { NewLRU(-1) })
}

func TestNone(t *testing.T) {
	var c None
	_, _, ok := c.Admit(1)
	require.False(t, ok)
	_, ok = c.Get(1)
	require.False(t, ok)
	require.Zero(t, c.Len())
	c.Reset()
}

func TestLRUBytesPerRow(t *testing.T) {
	const rows = 1000
	c := NewLRU(rows)
	bytes := cap(c.nodes)*int(unsafe.Sizeof(node{})) + cap(c.places)*int(unsafe.Sizeof(uint32(0)))
	// make may round up to a size class, which is the allocator's and small; the lengths are ours.
	require.Equal(t, rows*LRUBytesPerRow, bytes)
}

func TestLRUAllocatesOnlyInNew(t *testing.T) {
	c := NewLRU(100)
	v := uint32(0)
	require.Zero(t, testing.AllocsPerRun(1000, func() {
		v = v*1664525 + 1013904223
		if _, ok := c.Get(v >> 24); !ok {
			c.Admit(v >> 24)
		}
	}))
}

func BenchmarkLRU(b *testing.B) {
	for _, rows := range []int{1 << 12, 1 << 20} {
		// ids over twice the capacity: about half of the lookups miss, evict and admit. Over the capacity: all hit.
		for _, span := range []int{1, 2} {
			b.Run(fmt.Sprintf("rows=%d/ids=%dx", rows, span), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				ids := make([]uint32, 1<<20)
				for i := range ids {
					ids[i] = uint32(rng.IntN(rows * span))
				}
				c := NewLRU(rows)
				for v := range uint32(rows) {
					c.Admit(v)
				}
				i := 0
				for b.Loop() {
					v := ids[i&(len(ids)-1)]
					i++
					if _, ok := c.Get(v); !ok {
						c.Admit(v)
					}
				}
			})
		}
	}
}
