package history

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestIndexAgainstMap puts nodes into slots and takes them out, or leaves them where a list by node
// is free to keep them.
func TestIndexAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 20).Draw(t, "slots")
		// Few nodes, at either end of the number range, or known for a list by node.
		first, nodes := uint32(math.MaxUint32-15), 0
		if rapid.Bool().Draw(t, "list") {
			first, nodes = 0, 31
		}
		slots, x := make([]slot, n), newIndex(n, nodes)
		listed := x.byNode != nil
		require.Equal(t, nodes > 0 && n >= 16, listed)
		want := map[uint32]Version{} // by node
		node := rapid.Map(rapid.Uint32Range(0, 30), func(v uint32) uint32 { return first + v })
		for stamp := range uint32(rapid.IntRange(1, 200).Draw(t, "operations")) {
			s := uint32(rapid.IntRange(0, n-1).Draw(t, "slot"))
			v := slots[s].node
			at, has := want[v]
			if has && at == (Version{s, slots[s].stamp}) && !(listed && rapid.Bool().Draw(t, "stays")) {
				x.remove(v)
				delete(want, v)
			}
			if rapid.IntRange(0, 3).Draw(t, "put") > 0 {
				v := node.Draw(t, "node")
				slots[s] = slot{v, stamp}
				want[v] = Version{s, stamp}
				x.put(v, want[v])
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
	for _, nodes := range []int{0, 100, 1000, 2000, 2001} {
		r := newPool(Options{TStale: 200}, Kept{Slots: 1000, Nodes: nodes}, &rule{})
		r.ages.of(0, 200, r.slots, r.free.words)
		bits := 8 * (len(r.rejected) + len(r.ages.gone) + len(r.free.words))
		for _, level := range r.free.higher {
			bits += 8 * len(level)
		}
		bytes := 8*len(r.slots) + 4*len(r.ages.sorted) + bits + 8*len(r.index.places) + 8*len(r.index.byNode)
		snapshot := 8*len(r.slots) + 8*len(r.free.words)
		require.LessOrEqual(t, bytes+snapshot, 1000*BytesPerSlot+1000/2+20) // words are whole
		if 0 < nodes && nodes <= 2000 {
			require.Equal(t, 12_392+8*nodes, bytes)
		} else {
			require.Equal(t, 28_392, bytes)
		}
	}
	require.Equal(t, 36, BytesPerSlot)
	require.EqualValues(t, 8, unsafe.Sizeof(slot{}))
}

// TestFreeSlotsAgainstMap: take returns the lowest free slot, whatever was taken and freed before.
func TestFreeSlotsAgainstMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.SampledFrom([]int{0, 1, 63, 64, 65, 200, 4096, 4097, 70_000}).Draw(t, "slots")
		f, free := newFreeSlots(slots), map[uint32]bool{}
		for s := range slots {
			free[uint32(s)] = true
		}
		// all slots below lowest are taken
		lowest, rng := 0, rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "numbers"), 0))
		for range rapid.IntRange(1, 300).Draw(t, "operations") {
			n := rng.IntN(300)
			switch given := rng.IntN(max(lowest, 1)); rng.IntN(4) {
			case 0: // free some slots that were taken
				for s := uint32(given); int(s) < min(slots, given+n) && slots > 0; s++ {
					if !free[s] {
						f.add(s)
						free[s], lowest = true, min(lowest, int(s))
					}
				}
			case 1: // take any slot, out of turn
				if slots > 0 {
					if s := uint32(rng.IntN(slots)); free[s] {
						f.remove(s)
						delete(free, s)
					}
				}
			default:
				for range n {
					for lowest < slots && !free[uint32(lowest)] {
						lowest++
					}
					s, ok := f.take()
					require.Equal(t, lowest < slots, ok)
					if ok {
						require.EqualValues(t, lowest, s)
						delete(free, s)
					}
				}
			}
		}
		for s := range uint32(slots) {
			if f.has(s) != free[s] {
				t.Fatalf("slot %d is free: %v", s, f.has(s))
			}
		}
	})
}

// TestAges: ages finds exactly the slots of a step that are in use, in whatever order steps are
// asked for.
func TestAges(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, stale := range []int{1, 3, 200, mostSpan, 3000, math.MaxInt} {
		slots := make([]slot, 5000)
		for s := range slots {
			slots[s].stamp = rng.Uint32N(4000)
		}
		free := make([]uint64, (len(slots)+63)/64)
		for i := range free {
			free[i] = rng.Uint64() & rng.Uint64()
		}
		a := newAges(stale, len(slots))
		require.Nil(t, a.of(-1, 0, slots, free))
		for _, step := range []int{0, 1, 2, 700, 701, 3999, 4000, 5} {
			var want []uint32
			for s, x := range slots {
				if int(x.stamp) == step && free[s/64]>>(s%64)&1 == 0 {
					want = append(want, uint32(s))
				}
			}
			got := slices.Clone(a.of(step, step+stale, slots, free))
			got = slices.DeleteFunc(got, func(s uint32) bool { return !a.left(s) })
			require.True(t, slices.Equal(want, got))
			if len(want) == 0 {
				continue
			}
			a.freed(want[0])
			require.False(t, a.left(want[0]))
			a.back(want[0], uint32(a.first+a.span)) // a later embedding in the slot
			require.False(t, a.left(want[0]))
			a.back(want[0], uint32(step))
			require.True(t, a.left(want[0]))
		}
		require.Len(t, a.ends, min(stale, mostSpan))
		first := a.first
		a.undone(a.plan + 1)
		require.Equal(t, first, a.first)
		a.undone(a.plan)
		require.Equal(t, notSorted, a.first)
	}
}
