package policy

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/kernels"
)

// arrival has the new rows of an Index, as Window left them.
type arrival struct {
	x     *Index
	slots map[uint32]uint32 // of all rows
	fresh []uint32          // ascending
}

// look records the rows and slots of x.
func look(x *Index) (a arrival) {
	a.x, a.slots = x, map[uint32]uint32{}
	for v := range asRows(x.Rows()) {
		slot, _ := x.Slot(v)
		a.slots[v] = slot
	}
	if x.Len() > 0 {
		x.EachNew(0, uint32(64*len(x.rows)-1), func(v, _ uint32) { a.fresh = append(a.fresh, v) })
	}
	return a
}

// freeBy returns the slots that are free once a part is over.
func (a arrival) freeBy(part int) map[uint32]bool {
	free := map[uint32]bool{}
	for _, v := range a.fresh {
		if int(v) < a.x.End(part) {
			free[a.slots[v]] = true
		}
	}
	return free
}

// check compares x with its state in a: the new rows have the same set of slots, one each, and the
// other rows keep theirs.
func (a arrival) check(t *rapid.T) {
	isFresh, had, has := map[uint32]bool{}, map[uint32]bool{}, map[uint32]bool{}
	for _, v := range a.fresh {
		isFresh[v], had[a.slots[v]] = true, true
	}
	for v, slot := range a.slots {
		now, ok := a.x.Slot(v)
		require.True(t, ok)
		if isFresh[v] {
			has[now] = true
		} else {
			require.Equal(t, slot, now)
		}
	}
	require.Equal(t, had, has)
	require.Len(t, has, len(a.fresh))
}

// checkLeft calls Leave for the rows just evicted, some of which later windows want, and checks
// Left.
func checkLeft(t *rapid.T, c *Cache, a *Arrivals, pages *Pages, rng *rand.Rand) {
	some := func() rows {
		r := rows{}
		for v := range uint32(c.Rows) {
			if rng.IntN(3) == 0 {
				r[v] = true
			}
		}
		return r
	}
	among, later := some(), []rows{some(), some(), some(), some()}[:rng.IntN(5)]
	future := asFuture(c.Rows, pages, later)
	defer giveBack(pages, future)
	type leaving struct{ part, window int }
	want, got := map[uint32]leaving{}, map[uint32]leaving{}
	c.EachEvicted(func(v, slot uint32, part int) {
		require.Equal(t, slot, c.EvictedFrom(v))
		if i := slices.IndexFunc(later, func(r rows) bool { return r[v] }); i >= 0 && among[v] {
			want[v] = leaving{part, i}
		}
	})
	require.Equal(t, len(want) > 0, a.Leave(c, asSet(c.Rows, among), future))
	for part := range 1 + Parts {
		left, windows := a.Left(part)
		require.True(t, slices.IsSorted(left))
		for i, v := range left {
			got[v] = leaving{part, int(windows[i])}
		}
	}
	require.Equal(t, want, got)
}

// Rows arrive in any order and portion size, from several goroutines, some of them never or twice:
// each gets a slot that is free by then.
func TestArrivals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{Kind: rapid.SampledFrom([]Kind{Belady, LRU, Sieve, Static}).Draw(t, "kind"), Rows: rapid.SampledFrom([]int{1, 64, 65, 511, 1300}).Draw(t, "rows")}
		config.Slots = rapid.IntRange(1, min(config.Rows, 300)).Draw(t, "slots")
		c, err := New(config)
		require.NoError(t, err)
		defer c.Close()
		a, err := NewArrivals(config.Slots)
		require.NoError(t, err)
		defer a.Close()
		pages, err := NewPages(config.Rows, config.Rows, 3)
		require.NoError(t, err)
		defer pages.Close()
		rng := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		for range rapid.IntRange(1, 6).Draw(t, "windows") {
			need := rows{}
			for range rng.IntN(config.Slots + 1) {
				need[uint32(rng.IntN(config.Rows))] = true
			}
			x, did := c.Window(asSet(config.Rows, need), nil)
			was := look(x)
			a.Begin(x)
			require.Equal(t, did.Admitted, a.Len())
			require.Equal(t, len(was.fresh), a.Len())
			for part := range 1 + Parts {
				require.Len(t, was.freeBy(part), a.End(part))
			}
			require.Equal(t, a.Len(), a.End(Parts))
			checkLeft(t, c, a, pages, rng)
			come := arrive(t, a, was, rng)
			require.Equal(t, a.Len()-come, a.Missing())
			if rng.IntN(4) == 0 { // the load fails
				a.Restore()
				require.Equal(t, was.slots, look(x).slots)
				c.DropNew()
			} else {
				rest(t, a, was, rng)
				was.check(t)
			}
			if c.BeginMarks(); rng.IntN(3) > 0 {
				for v := range need {
					c.Mark([]uint32{v}, 1+rng.IntN(Parts))
				}
			}
			c.Settle()
		}
	})
}

// arrive has rows come from two goroutines, new ones and others, and returns the number of new ones
// that came.
func arrive(t *rapid.T, a *Arrivals, was arrival, rng *rand.Rand) (come int) {
	var rows []uint32
	for v := range was.slots { // new or not
		if rng.IntN(5) > 0 {
			rows = append(rows, v)
		}
	}
	slices.Sort(rows)
	rng.Shuffle(len(rows), func(i, j int) { rows[i], rows[j] = rows[j], rows[i] })
	rows = append(rows, rows[:rng.IntN(len(rows)+1)]...) // some come twice
	for range 3 {
		rows = append(rows, uint32(rng.IntN(64*len(was.x.rows)))) // with or without a slot
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	got := map[uint32]bool{}
	for portions := range slices.Chunk(slices.Collect(slices.Chunk(rows, 1+rng.IntN(40))), 2) {
		for _, portion := range portions {
			wg.Go(func() {
				var ranks []uint32
				for _, v := range portion {
					if rank, ok := a.Find(v); ok {
						ranks = append(ranks, rank)
					}
				}
				first := a.Take(len(ranks))
				for i, rank := range ranks {
					slot := a.Place(rank, first+i)
					part := 0
					for a.End(part) <= first+i {
						part++
					}
					mu.Lock()
					if !was.freeBy(part)[slot] || got[slot] {
						t.Errorf("the slot %d, number %d, cannot be had after part %d", slot, first+i, part)
					}
					got[slot] = true
					mu.Unlock()
				}
			})
		}
		wg.Wait()
	}
	return len(got)
}

// rest calls Rest, and checks that it lists each row that did not come, once and in order.
func rest(t *rapid.T, a *Arrivals, was arrival, rng *rand.Rand) {
	missing := a.Missing()
	list := a.Rest(make([]uint32, 64*(1+rng.IntN(4))))
	var all []uint32
	for rows := list(); len(rows) > 0; rows = list() {
		all = append(all, rows...)
	}
	require.Len(t, all, missing)
	require.True(t, slices.IsSorted(all))
	for _, v := range all {
		require.True(t, slices.Contains(was.fresh, v))
	}
	require.Zero(t, a.Missing())
}

func TestArrivalsTakeWhatTheySay(t *testing.T) {
	for _, slots := range []int{1, 2, 511, 512, 5000} {
		a, err := NewArrivals(slots)
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(a.slots), slots)
		require.GreaterOrEqual(t, len(a.gone), slots)
		require.GreaterOrEqual(t, 64*len(a.here), slots)
		a.Close()
		a.Close()
	}
	_, err := NewArrivals(1 << 50)
	var refused *kernels.MemoryError
	require.ErrorAs(t, err, &refused)
}
