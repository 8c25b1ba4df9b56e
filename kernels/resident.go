package kernels

import (
	"bytes"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// ResidentBytes returns the bytes that the process has in memory. own is RssAnon + RssShmem. file
// is RssFile, mapped file pages that the system takes back at will. Where there is no /proc, own is
// the largest resident size so far, and file 0.
func ResidentBytes() (own, file int64) {
	b, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return largestResident(), 0
	}
	anon, _ := kibOf(b, "RssAnon:")
	shm, _ := kibOf(b, "RssShmem:")
	file, _ = kibOf(b, "RssFile:")
	return anon + shm, file
}

// ProcessorSeconds returns the processor time of the process in seconds, 0 where it is unknown.
func ProcessorSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

func largestResident() int64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	if runtime.GOOS == "darwin" {
		return int64(u.Maxrss) // bytes there, and KiB elsewhere
	}
	return int64(u.Maxrss) * 1024
}

// kibOf is a line of a file in /proc, in bytes.
func kibOf(b []byte, key string) (int64, bool) {
	for line := range bytes.Lines(b) {
		if rest, ok := bytes.CutPrefix(line, []byte(key)); ok {
			fields := bytes.Fields(rest)
			if len(fields) == 0 {
				return 0, false
			}
			kib, err := strconv.ParseInt(string(fields[0]), 10, 53)
			return kib << 10, err == nil
		}
	}
	return 0, false
}
