package policy

import (
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSieveHand follows the hand of SIEVE, window by window of one row: once it has given up the
// newest row it goes on at the oldest, and not at the one that comes next.
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
		{3, []uint32{1, 3}}, // passed over for it; 2 goes
		{4, []uint32{3, 4}}, // back at the oldest, whose visit is used up
		{3, []uint32{3, 4}},
		{4, []uint32{3, 4}},
		{5, []uint32{4, 5}}, // both are passed over, and then the oldest goes
	} {
		x, _ := k.Window(asSet(10, rows{c.row: true}), nil)
		require.Equal(t, c.held, slices.Sorted(maps.Keys(asRows(x.Rows()))), "window %d, of row %d", i, c.row)
	}
}
