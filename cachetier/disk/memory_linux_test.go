package disk

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseAvailable(t *testing.T) {
	n, err := parseAvailable([]byte("MemTotal:       24576000 kB\nMemFree:  100 kB\nMemAvailable:   2048 kB\nBuffers: 1 kB\n"))
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, n)
	for _, bad := range []string{"", "MemTotal: 5 kB\n", "MemAvailable:", "MemAvailable: x kB", "MemAvailable: 99999999999999999999 kB"} {
		_, err := parseAvailable([]byte(bad))
		require.ErrorContains(t, err, "MemAvailable")
	}
	n, err = AvailableMemory()
	require.NoError(t, err)
	require.Positive(t, n)
}
