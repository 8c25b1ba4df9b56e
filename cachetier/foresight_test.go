package cachetier_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
)

// cacheOnly opens tiers under Belady that have nothing but a cache, of an even number of slots, at
// least 8 and fewer than half of f.
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

// ids are the numbers from lo to hi, hi not included.
func ids(lo, hi uint32) (list []uint32) {
	for ; lo < hi; lo++ {
		list = append(list, lo)
	}
	return list
}

// readBy is how many rows were read for each step of groups, all of which are expected at once
// after the first one is through.
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

// TestBeladySeesItsOwnGroup: of a group that does not fit, the first window leaves the row that the
// rest wants, though by its number it is the first to go.
func TestBeladySeesItsOwnGroup(t *testing.T) {
	f := table(t, tableRows, 100)
	s, n := cacheOnly(t, f, 0)
	full := [][]uint32{ids(n, 2*n)}
	rest := append(ids(n/2, n), 2*n-1)
	require.Equal(t, []int64{int64(n / 2), int64(n / 2)}, readBy(t, s, f, full, [][]uint32{ids(0, n/2), rest}),
		"row %d is in the cache", 2*n-1)
}

// TestBeladySeesLaterGroups: as far as it may look ahead, and no further.
func TestBeladySeesLaterGroups(t *testing.T) {
	f := table(t, tableRows, 100)
	for lookahead, again := range map[int]int64{0: 1, 1: 0} {
		s, n := cacheOnly(t, f, lookahead)
		full, wanted := [][]uint32{ids(n, 2*n)}, [][]uint32{{2*n - 1}}
		require.Equal(t, []int64{int64(n / 2), again}, readBy(t, s, f, full, [][]uint32{ids(0, n/2)}, wanted))
	}
}

// TestWindowsAreFull: a window has as many steps as have their rows fit, and the step that fills
// the cache exactly is one of them.
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
