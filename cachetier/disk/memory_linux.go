package disk

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// AvailableMemory is what can be used without swapping: free memory, and the page cache that the kernel would give up.
// sysinfo(2) has no such figure: its free memory leaves the page cache out. In a memory cgroup it is at most what that has
// left, page cache of its own included.
func AvailableMemory() (int64, error) {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	available, err := parseAvailable(info)
	return min(available, cgroupMemory(os.DirFS("/"))), err
}

func parseAvailable(meminfo []byte) (int64, error) {
	for line := range bytes.Lines(meminfo) {
		fields := bytes.Fields(line)
		if len(fields) < 2 || string(fields[0]) != "MemAvailable:" {
			continue
		}
		kib, err := strconv.ParseInt(string(fields[1]), 10, 53)
		if err != nil {
			return 0, fmt.Errorf("/proc/meminfo: MemAvailable: %w", err)
		}
		return kib << 10, nil
	}
	return 0, errors.New("/proc/meminfo has no MemAvailable")
}

// cgroupFiles are the names that a version of memory cgroups has for the same things.
type cgroupFiles struct {
	mount, limit, usage string
	cache               []string // keys of memory.stat: pages that go when others are wanted
}

var (
	cgroupV1 = cgroupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
	cgroupV2 = cgroupFiles{"sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file", "active_file"}}
)

// cgroupMemory is what the memory cgroup of this process, and those around it, have left: the largest number there is
// where none sets a limit, or none can be seen.
func cgroupMemory(root fs.FS) int64 {
	left := int64(math.MaxInt64)
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return left
	}
	for line := range strings.Lines(string(groups)) { // 4:memory:/name, of version 1, or 0::/name
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) < 3 {
			continue
		}
		var files cgroupFiles
		switch {
		case fields[0] == "0" && fields[1] == "":
			files = cgroupV2
		case fields[1] == "memory":
			files = cgroupV1
		default:
			continue
		}
		// In a container the name may be the host's: then only the top is there to be seen.
		for name := path.Join("/", fields[2]); ; name = path.Dir(name) {
			left = min(left, files.left(root, path.Join(files.mount, name)))
			if name == "/" {
				break
			}
		}
	}
	return left
}

func (c cgroupFiles) left(root fs.FS, dir string) int64 {
	number := func(name string) (int64, bool) {
		b, err := fs.ReadFile(root, path.Join(dir, name))
		if err != nil {
			return 0, false
		}
		n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64) // "max" is no number, and no limit
		return n, err == nil
	}
	limit, ok := number(c.limit)
	used, known := number(c.usage)
	if !ok || !known {
		return math.MaxInt64
	}
	stat, _ := fs.ReadFile(root, path.Join(dir, "memory.stat")) // without, all that is used counts
	for line := range bytes.Lines(stat) {
		key, value, _ := strings.Cut(string(bytes.TrimSpace(line)), " ")
		for _, name := range c.cache {
			if n, err := strconv.ParseInt(value, 10, 64); key == name && err == nil {
				used -= n
			}
		}
	}
	return max(0, limit-max(0, used))
}
