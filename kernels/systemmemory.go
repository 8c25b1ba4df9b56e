package kernels

import (
	"bytes"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path"
	"strconv"
	"strings"
)

// SystemMemory returns the memory of the machine in bytes or, if less, the limit of the memory
// cgroup of this process and the groups around it. It fails on a system without /proc.
func SystemMemory() (int64, error) {
	return memoryIn(os.DirFS("/"), "MemTotal:", cgroupFiles.allows)
}

// AvailableMemory returns how much of it can be used without swapping: free memory, and the page
// cache that the kernel would give up. sysinfo(2) has no such figure: its free memory leaves the
// page cache out. The result is at most what a memory cgroup has left, where its own page cache
// counts as left, and at most the address space left.
func AvailableMemory() (int64, error) {
	n, err := memoryIn(os.DirFS("/"), "MemAvailable:", cgroupFiles.left)
	return Addressable(n), err
}

// memoryIn returns a number of /proc/meminfo in bytes, but at most what of returns for each memory
// cgroup that this process is in.
func memoryIn(root fs.FS, key string, of func(c cgroupFiles, root fs.FS, dir string) int64) (int64, error) {
	info, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0, err
	}
	n, ok := kibOf(info, key)
	if !ok {
		return 0, fmt.Errorf("/proc/meminfo has no number for %s", strings.TrimSuffix(key, ":"))
	}
	eachCgroup(root, func(c cgroupFiles, dir string) { n = min(n, of(c, root, dir)) })
	return n, nil
}

// cgroupFiles has the file names of a version of memory cgroups.
type cgroupFiles struct {
	mount, limit, usage string
	cache               []string // keys of memory.stat: pages that go when others are wanted
}

var (
	cgroupV1 = cgroupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", []string{"total_inactive_file", "total_active_file"}}
	cgroupV2 = cgroupFiles{"sys/fs/cgroup", "memory.max", "memory.current", []string{"inactive_file", "active_file"}}
)

// eachCgroup calls do with the memory cgroup of this process and with those around it, as far as
// they can be seen.
func eachCgroup(root fs.FS, do func(c cgroupFiles, dir string)) {
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return
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
			do(files, path.Join(files.mount, name))
			if name == "/" {
				break
			}
		}
	}
}

// allows returns the limit of the group at dir, or the largest int64 where it sets none or none is
// visible.
func (c cgroupFiles) allows(root fs.FS, dir string) int64 {
	if n, ok := number(root, path.Join(dir, c.limit)); ok {
		return n
	}
	return math.MaxInt64
}

// left returns how far the group at dir is below its limit.
func (c cgroupFiles) left(root fs.FS, dir string) int64 {
	limit := c.allows(root, dir)
	used, ok := number(root, path.Join(dir, c.usage))
	if !ok || limit == math.MaxInt64 {
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

// number returns the number in a file. "max" is no number, and means no limit.
func number(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}
