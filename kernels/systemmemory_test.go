package kernels

import (
	"io/fs"
	"runtime"
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestMemoryIn(t *testing.T) {
	of := func(meminfo string) (int64, error) {
		return memoryIn(fstest.MapFS{"proc/meminfo": {Data: []byte(meminfo)}}, "MemAvailable:", cgroupFiles.left)
	}
	n, err := of("MemTotal:       24576000 kB\nMemFree:  100 kB\nMemAvailable:   2048 kB\nBuffers: 1 kB\n")
	require.NoError(t, err)
	require.EqualValues(t, 2<<20, n)
	for _, bad := range []string{"", "MemTotal: 5 kB\n", "MemAvailable:", "MemAvailable: x kB", "MemAvailable: 99999999999999999999 kB"} {
		_, err := of(bad)
		require.ErrorContains(t, err, "MemAvailable")
	}
	_, err = memoryIn(fstest.MapFS{}, "MemTotal:", cgroupFiles.allows)
	require.ErrorIs(t, err, fs.ErrNotExist)
	if runtime.GOOS == "linux" {
		total, err := SystemMemory()
		require.NoError(t, err)
		available, err := AvailableMemory()
		require.NoError(t, err)
		require.Positive(t, available)
		require.LessOrEqual(t, available, total)
	}
}

func TestCgroupMemory(t *testing.T) {
	f := func(left, allowed int64, files map[string]string) {
		t.Helper()
		root := fstest.MapFS{"proc/meminfo": {Data: []byte("MemTotal: 8 kB\nMemAvailable: 4 kB\n")}}
		for name, content := range files {
			root[name] = &fstest.MapFile{Data: []byte(content)}
		}
		n, err := memoryIn(root, "MemAvailable:", cgroupFiles.left)
		require.NoError(t, err)
		require.Equal(t, left, n)
		n, err = memoryIn(root, "MemTotal:", cgroupFiles.allows)
		require.NoError(t, err)
		require.Equal(t, allowed, n)
	}
	f(4096, 8192, nil)
	f(4096, 8192, map[string]string{"proc/self/cgroup": "0::/a\n9:cpu:/a\nnonsense\n", "sys/fs/cgroup/a/memory.max": "max\n", "sys/fs/cgroup/a/memory.current": "5\n"})
	f(800, 1000, map[string]string{
		"proc/self/cgroup":                 "0::/a/b\n",
		"sys/fs/cgroup/a/b/memory.max":     "max\n",
		"sys/fs/cgroup/a/b/memory.current": "1\n",
		"sys/fs/cgroup/a/memory.max":       "1000\n",
		"sys/fs/cgroup/a/memory.current":   "500\n",
		"sys/fs/cgroup/a/memory.stat":      "anon 200\ninactive_file 100\nactive_file 200\n",
	})
	f(0, 1000, map[string]string{
		"proc/self/cgroup": "4:memory:/x\n0::/\n",
		"sys/fs/cgroup/memory/x/memory.limit_in_bytes": "1000\n",
		"sys/fs/cgroup/memory/x/memory.usage_in_bytes": "1200\n",
		"sys/fs/cgroup/memory/memory.limit_in_bytes":   "9223372036854771712\n",
		"sys/fs/cgroup/memory/memory.usage_in_bytes":   "1200\n",
	})
	f(7, 10, map[string]string{ // a name that only the host knows
		"proc/self/cgroup":               "0::/../../host/name\n",
		"sys/fs/cgroup/memory.max":       "10\n",
		"sys/fs/cgroup/memory.current":   "3\n",
		"sys/fs/cgroup/name/memory.stat": "",
	})
}
