package disk

import (
	"math"
	"testing"
	"testing/fstest"

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

func TestCgroupMemory(t *testing.T) {
	f := func(want int64, files map[string]string) {
		t.Helper()
		root := fstest.MapFS{}
		for name, content := range files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		require.Equal(t, want, cgroupMemory(root))
	}
	f(math.MaxInt64, nil)
	f(math.MaxInt64, map[string]string{"proc/self/cgroup": "0::/a\n9:cpu:/a\nnonsense\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"})
	f(800, map[string]string{
		"proc/self/cgroup":                 "0::/a/b\n",
		"sys/fs/cgroup/a/b/memory.max":     "max\n",
		"sys/fs/cgroup/a/b/memory.current": "1\n",
		"sys/fs/cgroup/a/memory.max":       "1000\n",
		"sys/fs/cgroup/a/memory.current":   "500\n",
		"sys/fs/cgroup/a/memory.stat":      "anon 200\ninactive_file 100\nactive_file 200\n",
	})
	f(0, map[string]string{
		"proc/self/cgroup": "4:memory:/x\n0::/\n",
		"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000\n",
		"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1200\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.usage_in_bytes":   "1200\n",
	})
	f(7, map[string]string{ // a name that only the host knows
		"proc/self/cgroup":               "0::/../../host/name\n",
		"sys/fs/cgroup/memory.max":       "10\n",
		"sys/fs/cgroup/memory.current":   "3\n",
		"sys/fs/cgroup/name/memory.stat": "",
	})
}
