package kernels

import (
	"bytes"
	"io/fs"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// MemoryLimits returns the memory of the machine, and the least limit of the memory cgroups around
// this process, which is 0 if none of them has a limit. [SystemMemory] is the smaller one. It fails
// on a system without /proc.
func MemoryLimits() (machine, cgroup int64, err error) {
	least := int64(math.MaxInt64)
	eachCgroup(os.DirFS("/"), func(c cgroupFiles, dir string) { least = min(least, c.allows(os.DirFS("/"), dir)) })
	none := func(cgroupFiles, fs.FS, string) int64 { return math.MaxInt64 }
	if machine, err = memoryIn(os.DirFS("/"), "MemTotal:", none); err != nil {
		return 0, 0, err
	}
	if least < machine { // of version 1, a group without a limit has one of nearly 2⁶³
		cgroup = least
	}
	return machine, cgroup, nil
}

// LockableMemory returns the bytes of memory that this process may lock, RLIMIT_MEMLOCK, which
// shells set by ulimit -l. limited is false where there is no limit.
func LockableMemory() (limit int64, limited bool) {
	var r unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_MEMLOCK, &r) != nil || r.Cur >= math.MaxInt64 {
		return 0, false
	}
	return int64(r.Cur), true
}

// HugePages returns "always", "madvise" or "never": when the system backs memory with pages of 2
// MiB. It returns "" if the system has no such setting. A HostBuf asks for them.
func HugePages() string {
	text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled") // always [madvise] never
	if err != nil {
		return ""
	}
	return chosenIn(text)
}

// chosenIn returns the word in brackets.
func chosenIn(text []byte) string {
	_, rest, _ := bytes.Cut(text, []byte("["))
	word, _, _ := bytes.Cut(rest, []byte("]"))
	return string(word)
}
