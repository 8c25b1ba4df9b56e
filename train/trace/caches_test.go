package trace

import (
	"context"
	"math/bits"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// missesOf replays batches through what simulator makes, and returns the misses of each batch and
// cache.
func missesOf(t require.TestingT, dir string, nodes int, batches [][]uint32, caches int, simulator func(r *requests) simulator) []int64 {
	r, err := newRequests(dir)
	require.NoError(t, err)
	defer r.close()
	for _, b := range batches {
		require.NoError(t, r.add(b))
	}
	require.NoError(t, r.finish())
	s := simulator(r)
	defer s.close()
	misses, err := r.replay(context.Background(), s, caches)
	require.NoError(t, err)
	return misses
}

func lruMisses(t require.TestingT, dir string, nodes int, batches [][]uint32, sizes []uint32) []int64 {
	return missesOf(t, dir, nodes, batches, len(sizes), func(*requests) simulator {
		s, err := newLRU(nodes, sizes)
		require.NoError(t, err)
		return s
	})
}

func sieveMisses(t require.TestingT, dir string, nodes int, batches [][]uint32, size uint32) []int64 {
	return missesOf(t, dir, nodes, batches, 1, func(*requests) simulator {
		s, err := newSieve(nodes, size)
		require.NoError(t, err)
		return s
	})
}

func beladyMisses(t require.TestingT, dir string, nodes int, batches [][]uint32, size uint32) []int64 {
	return missesOf(t, dir, nodes, batches, 1, func(r *requests) simulator {
		require.NoError(t, r.link(context.Background(), nodes))
		return newBelady(r.count(), size)
	})
}

func staticMisses(t require.TestingT, dir string, nodes int, batches [][]uint32, sizes []uint32) []int64 {
	return missesOf(t, dir, nodes, batches, len(sizes), func(*requests) simulator { return &static{sizes} })
}

// plain returns the misses of a simple cache: rows in a slice, and a rule that changes it for each
// request and reports a hit.
func plain(batches [][]uint32, rule func(v uint32, place int) (hit bool)) (misses []int64) {
	place := 0
	for _, b := range batches {
		n := int64(0)
		for _, v := range b {
			if !rule(v, place) {
				n++
			}
			place++
		}
		misses = append(misses, n)
	}
	return misses
}

func plainLRU(batches [][]uint32, size int) []int64 {
	var rows []uint32 // the latest first
	return plain(batches, func(v uint32, _ int) bool {
		i := slices.Index(rows, v)
		if i >= 0 {
			rows = slices.Delete(rows, i, i+1)
		}
		rows = slices.Insert(rows, 0, v)
		rows = rows[:min(size, len(rows))]
		return i >= 0
	})
}

// plainSieve is algorithm 1 of the paper, the newest first.
func plainSieve(batches [][]uint32, size int) []int64 {
	var rows []uint32
	visited := map[uint32]bool{}
	hand := -1 // a place in rows; -1: at the tail
	return plain(batches, func(v uint32, _ int) bool {
		if slices.Contains(rows, v) {
			visited[v] = true
			return true
		}
		if len(rows) == size {
			if hand < 0 {
				hand = len(rows) - 1
			}
			for visited[rows[hand]] {
				visited[rows[hand]] = false
				if hand--; hand < 0 {
					hand = len(rows) - 1
				}
			}
			rows = slices.Delete(rows, hand, hand+1)
			hand-- // what was newer; -1 if that was the newest
		}
		rows = slices.Insert(rows, 0, v)
		if hand >= 0 {
			hand++
		}
		visited[v] = false
		return false
	})
}

// plainBelady searches the future of every row that it holds.
func plainBelady(batches [][]uint32, size int) []int64 {
	all := slices.Concat(batches...)
	rows := map[uint32]bool{}
	next := func(v uint32, place int) int {
		if i := slices.Index(all[place+1:], v); i >= 0 {
			return i
		}
		return len(all)
	}
	return plain(batches, func(v uint32, place int) bool {
		hit := rows[v]
		rows[v] = true
		if len(rows) > size {
			farthest := v
			for u := range rows {
				if next(u, place) > next(farthest, place) {
					farthest = u
				}
			}
			delete(rows, farthest)
		}
		return hit
	})
}

// fewest is the misses of the best of all ways to fill and empty a cache, rows passing by or not.
// Sets of rows are bits.
func fewest(batches [][]uint32, size int) int64 {
	best := map[uint32]int64{0: 0} // by what the cache holds
	for _, v := range slices.Concat(batches...) {
		after := map[uint32]int64{}
		for held, misses := range best {
			if held>>v&1 == 0 {
				misses++
			}
			with := held | 1<<v
			for out := -1; out < 32; out++ {
				kept := with
				if out >= 0 {
					kept &^= 1 << out
				}
				if old, ok := after[kept]; bits.OnesCount32(kept) <= size && (!ok || misses < old) {
					after[kept] = misses
				}
			}
		}
		best = after
	}
	least := int64(1 << 40)
	for _, misses := range best {
		least = min(least, misses)
	}
	return least
}

// column returns the misses of cache i of several.
func column(misses []int64, i, caches int) (of []int64) {
	for ; i < len(misses); i += caches {
		of = append(of, misses[i])
	}
	return of
}

// skewed is batches of different rows, the low ones more often; some are empty.
func skewed(t *rapid.T, nodes, most int) [][]uint32 {
	row := rapid.Custom(func(t *rapid.T) uint32 {
		return min(rapid.Uint32Range(0, uint32(nodes-1)).Draw(t, "row"), rapid.Uint32Range(0, uint32(nodes-1)).Draw(t, "or"))
	})
	return rapid.SliceOfN(rapid.SliceOfNDistinct(row, 0, nodes, rapid.ID[uint32]), 1, most).Draw(t, "batches")
}

// TestCachesAgreeWithPlainOnes: batch by batch, at all sizes; and Belady misses least of all.
func TestCachesAgreeWithPlainOnes(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		nodes := rapid.IntRange(1, 40).Draw(t, "nodes")
		batches := skewed(t, nodes, 25)
		sizes := rapid.SliceOfNDistinct(rapid.Uint32Range(1, uint32(nodes)), 1, min(4, nodes), rapid.ID[uint32]).Draw(t, "sizes")
		slices.Sort(sizes)
		lru, first := lruMisses(t, dir, nodes, batches, sizes), staticMisses(t, dir, nodes, batches, sizes)
		for i, size := range sizes {
			best := beladyMisses(t, dir, nodes, batches, size)
			require.Equal(t, plainBelady(batches, int(size)), best, "belady %d", size)
			sieve := sieveMisses(t, dir, nodes, batches, size)
			require.Equal(t, plainSieve(batches, int(size)), sieve, "sieve %d", size)
			require.Equal(t, plainLRU(batches, int(size)), column(lru, i, len(sizes)), "lru %d of %d", size, sizes)
			require.Equal(t, plain(batches, func(v uint32, _ int) bool { return v < size }), column(first, i, len(sizes)), "static %d", size)
			require.LessOrEqual(t, sum(best), sum(sieve))
			require.LessOrEqual(t, sum(best), sum(column(lru, i, len(sizes))))
		}
	})
}

// TestBeladyIsOptimal: no way to use a cache misses less, all of them tried.
func TestBeladyIsOptimal(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		const nodes = 6
		batches := skewed(t, nodes, 5)
		size := rapid.IntRange(1, nodes).Draw(t, "size")
		require.Equal(t, fewest(batches, size), sum(beladyMisses(t, dir, nodes, batches, uint32(size))))
	})
}

// TestManyBlocks: batches that lie across blocks of the file, and places beyond two levels of
// bitmaps.
func TestManyBlocks(t *testing.T) {
	const nodes, size = 3000, 100
	var batches [][]uint32
	x := uint64(1)
	for range 500 {
		seen := map[uint32]bool{}
		var b []uint32
		for range 1500 {
			x = x*6364136223846793005 + 1442695040888963407
			v := min(uint32(x>>33)%nodes, uint32(x>>45)%nodes)
			if !seen[v] {
				seen[v] = true
				b = append(b, v)
			}
		}
		batches = append(batches, b)
	}
	require.Greater(t, len(slices.Concat(batches...)), 2*blockLen)
	dir := t.TempDir()
	require.Equal(t, plainLRU(batches, size), lruMisses(t, dir, nodes, batches, []uint32{size}))
	require.Equal(t, plainSieve(batches, size), sieveMisses(t, dir, nodes, batches, size))

	// Of Belady, the places of next requests.
	r, err := newRequests(dir)
	require.NoError(t, err)
	defer r.close()
	for _, b := range batches {
		require.NoError(t, r.add(b))
	}
	require.NoError(t, r.finish())
	require.NoError(t, r.link(context.Background(), nodes))
	all := slices.Concat(batches...)
	last := map[uint32]int{}
	want := make([]uint32, len(all))
	for i, v := range slices.Backward(all) {
		want[i] = never
		if at, ok := last[v]; ok {
			want[i] = uint32(at)
		}
		last[v] = i
	}
	require.NoError(t, r.each(context.Background(), false, func(at int64, block []uint32) {
		require.Equal(t, want[at:at+int64(len(block))], block)
	}))
}

// TestPlaces against a map.
func TestPlaces(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.Uint32Range(1, 300000).Draw(t, "n")
		p, want := newPlaces(int64(n)), map[uint32]bool{}
		for range 200 {
			if x := rapid.Uint32Range(0, n-1).Draw(t, "x"); want[x] || rapid.IntRange(0, 3).Draw(t, "remove") == 0 {
				require.Equal(t, want[x], p.remove(x))
				delete(want, x)
			} else {
				p.add(x)
				want[x] = true
			}
			require.EqualValues(t, len(want), p.n)
			if len(want) > 0 {
				most := uint32(0)
				for x := range want {
					most = max(most, x)
				}
				require.Equal(t, most, p.last())
			}
		}
	})
}
