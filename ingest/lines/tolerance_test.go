package lines

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTolerance(t *testing.T) {
	bad := errors.New("edges.csv: line 3: no number")
	var none *Tolerance
	require.Equal(t, bad, none.Forgive("edges.csv", 3, bad))
	require.Equal(t, bad, NewTolerance(0).Forgive("edges.csv", 3, bad))
	n, first := none.BadRows()
	require.Zero(t, n)
	require.NoError(t, first)

	two := NewTolerance(2)
	require.NoError(t, two.Forgive("edges.csv", 3, bad))
	require.NoError(t, two.Forgive("edges.csv", 3, bad), "again, in another reading")
	require.NoError(t, two.Forgive("nodes.csv", 3, errors.New("another")))
	err := two.Forgive("nodes.csv", 4, bad)
	require.ErrorIs(t, err, bad)
	require.EqualError(t, err, "edges.csv: line 3: no number; 2 bad rows were passed over before it, which is all that {skip_bad} allows")
	n, first = two.BadRows()
	require.Equal(t, int64(2), n)
	require.Equal(t, bad, first)
}
