package kernels

import (
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestResidentBytes(t *testing.T) {
	if runtime.GOOS != "linux" {
		own, file := ResidentBytes()
		require.Positive(t, own+file)
		return
	}
	own, file := ResidentBytes()
	require.Greater(t, own, int64(1<<20))
	require.Greater(t, file, int64(1<<20))
	total, err := SystemMemory()
	require.NoError(t, err)
	require.Greater(t, total, own)
}

func TestKibOf(t *testing.T) {
	n, ok := kibOf([]byte("MemTotal:       24576000 kB\nRssAnon:\t  12 kB\n"), "RssAnon:")
	require.True(t, ok)
	require.EqualValues(t, 12<<10, n)
	for _, bad := range []string{"", "RssAnon:", "RssAnon: x kB", "RssAnon: 99999999999999999999 kB", "xRssAnon: 1 kB"} {
		_, ok := kibOf([]byte(bad), "RssAnon:")
		require.False(t, ok, bad)
	}
}
