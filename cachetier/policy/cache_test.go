package policy

import (
	"maps"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier/policy/policytest"
	"github.com/gnnstore/gnnstore/kernels"
)

type rows = policytest.Rows

// asSet returns r as a Set of a table of n rows.
func asSet(n int, r rows) Set {
	s := make(Set, SetWords(n))
	for v := range r {
		s.Add(v)
	}
	return s
}

// asFuture returns rs as sets of a table of n rows, every other one packed into pages.
func asFuture(n int, pages *Pages, rs []rows) (sets []Rows) {
	for i, r := range rs {
		s := asSet(n, r)
		if i%2 == 0 {
			sets = append(sets, s)
		} else if packed, ok := pages.Pack(s, pages.All()); ok {
			sets = append(sets, packed)
		} else {
			panic("more sets than pages")
		}
	}
	return sets
}

// giveBack returns the packed sets to pages.
func giveBack(pages *Pages, sets []Rows) {
	for _, s := range sets {
		if packed, ok := s.(*Packed); ok {
			pages.Return(packed)
		}
	}
}

func asRows(s Set) rows {
	r := rows{}
	for w, word := range s {
		each(w, word, func(v uint32) { r[v] = true })
	}
	return r
}

// drawRows draws at most this many rows; about half of them are among the lowest 71, so that they
// lie close together.
func drawRows(t *rapid.T, n, most int, label string) rows {
	id := rapid.OneOf(rapid.Uint32Range(0, uint32(n-1)), rapid.Uint32Range(0, uint32(min(n-1, 70))))
	r := rows{}
	for _, v := range rapid.SliceOfN(id, 0, most).Draw(t, label) {
		r[v] = true
	}
	return r
}

func TestCacheAgainstOracle(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		config := Config{Kind: rapid.SampledFrom(Kinds).Draw(t, "kind"), Rows: rapid.SampledFrom([]int{1, 60, 64, 511, 512, 1300, 9000}).Draw(t, "rows")}
		config.Slots = rapid.IntRange(1, min(config.Rows, 130)).Draw(t, "slots")
		c, err := New(config)
		require.NoError(t, err)
		defer c.Close()
		pages, err := NewPages(config.Rows, 100, 4)
		require.NoError(t, err)
		defer pages.Close()
		o := policytest.New(string(config.Kind), config.Slots)
		slotOf := map[uint32]uint32{}
		parts := map[uint32]int{} // slot to the part in which its row is used last
		for range rapid.IntRange(1, 25).Draw(t, "changes") {
			step := rapid.Bool().Draw(t, "step")
			most := config.Slots
			if step {
				most = 2 * config.Slots
			}
			need := drawRows(t, config.Rows, most, "need")
			var future []rows
			for range rapid.IntRange(0, 4).Draw(t, "foreseen") {
				future = append(future, drawRows(t, config.Rows, 100, "later"))
			}
			foreseen := asFuture(config.Rows, pages, future)
			before := asRows(c.Now().Rows())
			old := c.Now()
			oldSlots := maps.Clone(slotOf)
			var got Change
			if step {
				if config.Kind == None {
					got.Evicted = c.Forget()
					before = rows{}
				}
				n := c.Step(asSet(config.Rows, need), foreseen)
				n.Evicted += got.Evicted
				got = n
			} else {
				var x *Index
				x, got = c.Window(asSet(config.Rows, need), foreseen)
				require.Same(t, x, c.Now())
				require.NotSame(t, old, x)
				require.Equal(t, before, asRows(old.Rows()), "the index before stays")
				for v, s := range oldSlots {
					was, ok := old.Slot(v)
					require.True(t, ok)
					require.Equal(t, s, was)
				}
			}
			giveBack(pages, foreseen)
			want := Change(o.Change(need, future, step))
			if config.Kind == None {
				got.Hits, want.Hits = 0, 0
				got.Misses, got.Admitted = want.Misses, want.Admitted
			}
			require.Equal(t, want, got)
			held := slices.Sorted(maps.Keys(o.Held))
			require.Equal(t, held, slices.Sorted(maps.Keys(asRows(c.Now().Rows()))))
			slotOf = checkIndex(t, c, need, before, step)
			if !step && config.Kind != None {
				checkEnds(t, c.Now(), slotOf, before, parts)
			}
			clear(parts)
			if !step && c.Marks() {
				c.BeginMarks()
				rows := slices.Sorted(maps.Keys(need))
				c.Mark(rows, 1)
				c.Mark(withAbsent(rows, slotOf, config.Rows), 1)
				for _, v := range rows {
					part := rapid.IntRange(1, Parts).Draw(t, "part")
					c.Mark([]uint32{v}, part)
					parts[slotOf[v]] = part
				}
			}
			if config.Kind != None {
				for v, s := range slotOf {
					if was, ok := oldSlots[v]; ok {
						require.Equal(t, was, s, "rows keep their slots")
					}
				}
			}
			if !step && config.Kind != None && rapid.IntRange(0, 9).Draw(t, "lost") == 0 {
				lost := rows{}
				for v := range need {
					if !before[v] {
						lost[v] = true
					}
				}
				c.DropNew()
				clear(parts)
				o.Drop(lost)
				slotOf = checkIndex(t, c, rows{}, rows{}, true)
				require.Equal(t, slices.Sorted(maps.Keys(o.Held)), slices.Sorted(maps.Keys(slotOf)))
			}
		}
	})
}

// checkEnds checks that End puts each new row after the part of the previous window for which its
// slot waited.
func checkEnds(t *rapid.T, x *Index, slots map[uint32]uint32, before rows, parts map[uint32]int) {
	for v, s := range slots {
		if before[v] {
			continue
		}
		for part := range 1 + Parts {
			require.Equal(t, parts[s] <= part, int(v) < x.End(part), "row %d in a slot that is free after part %d, at part %d", v, parts[s], part)
		}
	}
}

// checkIndex looks up every row in every way, and returns the slots.
func checkIndex(t *rapid.T, c *Cache, need, before rows, step bool) map[uint32]uint32 {
	x := c.Now()
	slots, taken := map[uint32]uint32{}, map[uint32]bool{}
	var fresh []uint32
	for v := range uint32(c.Rows) {
		s, ok := x.Slot(v)
		require.Equal(t, x.Rows().Has(v), ok)
		if !ok {
			continue
		}
		require.False(t, taken[s], "slot %d has two rows", s)
		require.Less(t, int(s), c.Slots)
		slots[v], taken[s] = s, true
		if !step && need[v] && (!before[v] || c.Kind == None) {
			fresh = append(fresh, v)
		}
	}
	require.Equal(t, x.Len(), len(slots))
	if c.Kind != None {
		for s := range uint32(c.Slots) {
			require.Equal(t, !taken[s], freeSlot(c, s))
		}
	}
	var walk Walk
	var walked []uint32
	for buf := make([]uint32, 7); ; {
		n := walk.Next(x, buf)
		if n == 0 {
			break
		}
		walked = append(walked, buf[:n]...)
	}
	require.Equal(t, fresh, walked)
	first, last := uint32(c.Rows/3), uint32(c.Rows*2/3)
	var between []uint32
	x.EachNew(first, last, func(v, slot uint32) {
		require.Equal(t, slots[v], slot)
		between = append(between, v)
	})
	inside := slices.DeleteFunc(slices.Clone(fresh), func(v uint32) bool { return v < first || v > last })
	require.True(t, slices.Equal(inside, between), "%v, want %v", between, inside)
	var use, want []uint32
	news := 0
	for v, s := range slots {
		if v%2 == 0 {
			continue // some rows stay new
		}
		if use, want = append(use, v), append(want, s); slices.Contains(fresh, v) {
			news++
		}
	}
	found := make([]uint32, len(use))
	for _, news := range []int{news, 0} { // the second time no use is the first
		first, ok := x.Use(use, found)
		require.True(t, ok)
		require.Equal(t, want, append([]uint32(nil), found...))
		require.Equal(t, news, first)
	}
	if len(slots) < c.Rows {
		none := uint32(0)
		for x.Rows().Has(none) {
			none++
		}
		_, ok := x.Use([]uint32{none}, found[:0:0])
		require.False(t, ok)
	}
	if len(fresh) > 0 {
		for _, v := range fresh { // new again, for DropNew
			r, _ := x.rank(v)
			x.fresh.Add(r)
		}
	}
	return slots
}

// withAbsent returns rows and, among them, all rows of the table that have no slot.
func withAbsent(rows []uint32, slotOf map[uint32]uint32, table int) (all []uint32) {
	for v := range uint32(table) {
		if _, has := slotOf[v]; !has || slices.Contains(rows, v) {
			all = append(all, v)
		}
	}
	return all
}

// TestBeladyIsOptimal compares the misses with the fewest that any choice of rows can reach.
func TestBeladyIsOptimal(t *testing.T) {
	const n = 6
	rapid.Check(t, func(t *rapid.T) {
		slots := rapid.IntRange(1, 4).Draw(t, "slots")
		trace := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) rows { return drawRows(t, n, 4, "step") }), 1, 8).Draw(t, "trace")
		c, err := New(Config{Kind: Belady, Rows: n, Slots: slots})
		require.NoError(t, err)
		defer c.Close()
		pages, err := NewPages(n, n, len(trace))
		require.NoError(t, err)
		defer pages.Close()
		misses := 0
		for i, need := range trace {
			later := asFuture(n, pages, trace[i+1:])
			misses += c.Step(asSet(n, need), later).Misses
			giveBack(pages, later)
		}
		require.Equal(t, fewestMisses(trace, slots, n), misses)
	})
}

// fewestMisses returns the fewest misses of a trace: after every step it tries every set of at most
// slots rows that were held or needed.
func fewestMisses(trace []rows, slots, n int) int {
	best := map[uint64]int{0: 0} // rows kept to the fewest misses so far
	for _, need := range trace {
		var wanted uint64
		for v := range need {
			wanted |= 1 << v
		}
		after := map[uint64]int{}
		for held, misses := range best {
			misses += Set{wanted &^ held}.Len()
			for keep := range uint64(1) << n {
				if keep&^(held|wanted) != 0 || (Set{keep}).Len() > slots {
					continue
				}
				if m, ok := after[keep]; !ok || misses < m {
					after[keep] = misses
				}
			}
		}
		best = after
	}
	return slices.Min(slices.Collect(maps.Values(best)))
}

// TestLRUOfManyAges has rows whose last uses lie further apart than one byte counts, and two bytes.
func TestLRUOfManyAges(t *testing.T) {
	const n = 300
	c, err := New(Config{Kind: LRU, Rows: n, Slots: 200})
	require.NoError(t, err)
	defer c.Close()
	o := policytest.New("lru", 200)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		jump := []uint32{1, 1, 200, 70_000, 20_000_000}[rng.IntN(5)]
		c.clock += jump
		o.Clock += int(jump)
		need := rows{}
		for range rng.IntN(4) {
			need[rng.Uint32N(n)] = true
		}
		if c.clock > 1<<31 {
			break
		}
		require.Equal(t, Change(o.Change(need, nil, true)), c.Step(asSet(n, need), nil))
	}
	require.Equal(t, slices.Sorted(maps.Keys(o.Held)), slices.Sorted(maps.Keys(asRows(c.Now().Rows()))))
}

func TestMemory(t *testing.T) {
	start := kernels.HostBytes()
	for _, kind := range Kinds {
		for _, slots := range []int{1, 63, 1000, 100_000} {
			config := Config{Kind: kind, Rows: 1_000_000, Slots: slots}
			require.LessOrEqual(t, config.Bytes(), config.FixedBytes()+int64(slots)*config.SlotBytes())
			c, err := New(config)
			require.NoError(t, err)
			require.EqualValues(t, config.Bytes(), len(c.words.Bytes())+len(c.numbers.Bytes())+len(c.marks.Bytes()))
			c.Close()
			c.Close()
		}
	}
	require.Equal(t, start, kernels.HostBytes())
	require.Panics(t, func() { New(Config{Kind: LRU, Rows: 3, Slots: 4}) })
	require.Panics(t, func() { New(Config{Kind: "fifo", Rows: 3, Slots: 3}) })
	c, err := New(Config{Kind: Belady, Rows: 100, Slots: 1})
	require.NoError(t, err)
	defer c.Close()
	require.Panics(t, func() { c.Window(asSet(100, rows{1: true, 2: true}), nil) })
}

func TestChangesAllocateNothing(t *testing.T) {
	const n = 5000
	need := [2]Set{make(Set, SetWords(n)), make(Set, SetWords(n))}
	for v := range uint32(400) {
		need[0].Add(v * 7)
		need[1].Add(v * 11)
	}
	future := []Rows{need[0], need[1]}
	for _, kind := range Kinds {
		c, err := New(Config{Kind: kind, Rows: n, Slots: 500})
		require.NoError(t, err)
		i := 0
		require.LessOrEqual(t, testing.AllocsPerRun(20, func() {
			c.Window(need[i%2], future[(i+1)%2:])
			c.Step(need[(i+1)%2], future[i%2:])
			i++
		}), 2.0, "%s: room for a part of the future", kind)
		c.Close()
	}
}

func TestKindsAreKnown(t *testing.T) {
	for _, kind := range Kinds {
		require.NoError(t, kind.Validate())
	}
	require.EqualError(t, Kind("fifo").Validate(), `unknown cache policy "fifo": use belady, lru, sieve, static or none`)
}

func freeSlot(c *Cache, s uint32) bool {
	return slices.ContainsFunc(c.free, func(f Set) bool { return f.Has(s) })
}
