package policy

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSieveHand follows the hand of SIEVE through windows of one row: after evicting the newest row
// it goes on at the oldest, not at the next row to come.
func TestSieveHand(t *testing.T) {
	k, err := New(Config{Kind: Sieve, Rows: 10, Slots: 2})
	require.NoError(t, err)
	defer k.Close()
	for i, c := range []struct {
		row  uint32
		held []uint32
	}{
		{1, []uint32{1}},
		{2, []uint32{1, 2}},
		{1, []uint32{1, 2}}, // 1 is visited
		{3, []uint32{1, 3}}, // so the hand passes over 1; 2 is evicted
		{4, []uint32{3, 4}}, // back at the oldest, 1, whose mark is cleared
		{3, []uint32{3, 4}},
		{4, []uint32{3, 4}},
		{5, []uint32{4, 5}}, // the hand passes over both, then evicts the oldest
	} {
		x, _ := k.Window(asSet(10, rows{c.row: true}), nil)
		require.Equal(t, c.held, slices.Sorted(maps.Keys(asRows(x.Rows()))), "window %d, of row %d", i, c.row)
	}
}
