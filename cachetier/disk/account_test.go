package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAccount checks that each count is added to its own sum, and subtracted from it again.
func TestAccount(t *testing.T) {
	var a Account
	a.Count(3, 1, 300, Traffic{Reads: 2, Bytes: 900, Seconds: 0.5})
	once := Account{Rows: 3, RowsRepeated: 1, BytesWanted: 300, BytesRead: 900, Reads: 2, Seconds: 0.5, Amplification: 3}
	require.Equal(t, once, a)
	a.Count(10, 0, 100, Traffic{Reads: 7, Bytes: 700, Seconds: 0.25})
	require.Equal(t, Account{Rows: 13, RowsRepeated: 1, BytesWanted: 400, BytesRead: 1600, Reads: 9, Seconds: 0.75, Amplification: 4}, a)
	require.Equal(t, Account{Rows: 10, BytesWanted: 100, BytesRead: 700, Reads: 7, Seconds: 0.25, Amplification: 7}, a.Sub(once))
	require.Equal(t, a, once.Add(a.Sub(once)))
	require.Zero(t, a.Sub(a).Amplification)
}
