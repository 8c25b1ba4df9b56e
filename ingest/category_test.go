package ingest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestCategory: integers are numbered by value and texts by their bytes, and a negative integer is
// no class.
func TestCategory(t *testing.T) {
	c := NewCategory(10)
	for _, n := range []int64{2000, 9, 10, -1, 2000} {
		c.Learn(IntToken(n, nil))
	}
	require.NoError(t, c.SettleLabel())
	require.Equal(t, []string{"9", "10", "2000"}, c.Names)
	for n, want := range map[int64]int32{9: 0, 10: 1, 2000: 2, -1: -1} {
		id, err := c.Of(IntToken(n, nil))
		require.NoError(t, err)
		require.Equal(t, want, id, n)
	}
	_, err := c.Of(IntToken(11, nil))
	require.ErrorContains(t, err, `"11" is new; the file changed while it was read`)

	c = NewCategory(10)
	for _, text := range []string{"b", "10", "9"} {
		require.NoError(t, c.LearnText(text))
	}
	require.True(t, c.SettleTexts())
	require.Equal(t, []string{"10", "9", "b"}, c.Names)
}
