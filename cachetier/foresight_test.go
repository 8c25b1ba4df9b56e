package cachetier_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
)

// cacheOnly opens a stack under Belady that has only a cache. The cache has an even number of
// slots, at least 8 and fewer than half of the rows of f.
func cacheOnly(t *testing.T, f *store.Features, lookahead int) (s *cachetier.Stack, slots uint32) {
	for bytes := int64(20 * f.RowBytes()); ; bytes++ {
		s, err := cachetier.Open(bg, f, cachetier.Options{HostBytes: bytes, Policy: cachetier.Belady, Lookahead: lookahead})
		require.NoError(t, err)
		_, hot, n, ahead := s.Layout()
		require.Zero(t, hot)
		if n >= 8 && n%2 == 0 && ahead == lookahead {
			require.Less(t, n, f.Rows()/2)
			t.Cleanup(func() { require.NoError(t, s.Close()) })
			return s, uint32(n)
		}
		require.NoError(t, s.Close())
	}
}

// ids returns the numbers from lo to hi-1.
func ids(lo, hi uint32) (list []uint32) {
	for ; lo < hi; lo++ {
		list = append(list, lo)
	}
	return list
}

// readBy returns how many rows are read for each step of the groups after the first. They are all
// expected at once, when the first group is done.
func readBy(t *testing.T, s *cachetier.Stack, f *store.Features, groups ...[][]uint32) (rows []int64) {
	_, err := runAll(s, f, groups[:1], 1, false)
	require.NoError(t, err)
	last := s.Stats().Disk.Rows
	after, err := runAll(s, f, groups[1:], len(groups), false)
	require.NoError(t, err)
	for _, st := range after {
		rows, last = append(rows, st.Disk.Rows-last), st.Disk.Rows
	}
	return rows
}

// TestBeladySeesItsOwnGroup: when a group does not fit, its first window keeps the row that the
// rest of the group wants, though by its number that row would be evicted first.
func TestBeladySeesItsOwnGroup(t *testing.T) {
	f := table(t, tableRows, 100)
	s, n := cacheOnly(t, f, 0)
	full := [][]uint32{ids(n, 2*n)}
	rest := append(ids(n/2, n), 2*n-1)
	require.Equal(t, []int64{int64(n / 2), int64(n / 2)}, readBy(t, s, f, full, [][]uint32{ids(0, n/2), rest}),
		"row %d is in the cache", 2*n-1)
}

// TestBeladySeesLaterGroups: Belady looks ahead as far as it may, and no further.
func TestBeladySeesLaterGroups(t *testing.T) {
	f := table(t, tableRows, 100)
	for lookahead, again := range map[int]int64{0: 1, 1: 0} {
		s, n := cacheOnly(t, f, lookahead)
		full, wanted := [][]uint32{ids(n, 2*n)}, [][]uint32{{2*n - 1}}
		require.Equal(t, []int64{int64(n / 2), again}, readBy(t, s, f, full, [][]uint32{ids(0, n/2)}, wanted))
	}
}

// TestWindowsAreFull: a window has as many steps as fit in the cache, and may fill it exactly.
func TestWindowsAreFull(t *testing.T) {
	f := table(t, tableRows, 100)
	s, n := cacheOnly(t, f, 0)
	steps := [][]uint32{ids(0, n/2), ids(n/4, n), ids(n, n+1), ids(0, n-1), ids(n-1, n), ids(n, n+1)}
	s.Expect(steps)
	var windows []int
	for w := next(t, s); w != nil; w = next(t, s) {
		require.NoError(t, w.Load(bg))
		for i := range w.Steps() {
			require.NoError(t, w.Gather(bg, i, make([]byte, len(steps[i])*f.RowBytes())))
		}
		steps = steps[w.Steps():]
		windows = append(windows, w.Steps())
		w.Release()
	}
	require.Equal(t, []int{2, 2, 2}, windows)
	require.Empty(t, steps)
}
