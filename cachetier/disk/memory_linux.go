package disk

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
)

// AvailableMemory is the kernel's estimate of what can be used without swapping: free memory and the page cache that
// it would give up. sysinfo(2) has no such figure: its free memory leaves the page cache out.
func AvailableMemory() (int64, error) {
	info, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, err
	}
	return parseAvailable(info)
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
