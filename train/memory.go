package train

import (
	"bytes"
	"os"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// memoryPeak follows the process's memory; it looks a few times a second at most.
type memoryPeak struct {
	last      time.Time
	rss, file int64
}

func (p *memoryPeak) look() {
	if now := time.Now(); now.Sub(p.last) > 100*time.Millisecond {
		p.last = now
		anon, file := residentBytes()
		p.rss, p.file = max(p.rss, anon), max(p.file, file)
	}
}

// residentBytes is RssAnon + RssShmem and RssFile on Linux; elsewhere the largest resident size, and 0.
func residentBytes() (anon, file int64) {
	if b, err := os.ReadFile("/proc/self/status"); err == nil {
		return statusBytes(b, "RssAnon:") + statusBytes(b, "RssShmem:"), statusBytes(b, "RssFile:")
	}
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0, 0
	}
	if unit := int64(1024); runtime.GOOS != "darwin" {
		return int64(u.Maxrss) * unit, 0
	}
	return int64(u.Maxrss), 0
}

func statusBytes(status []byte, key string) int64 {
	_, after, _ := bytes.Cut(status, []byte(key))
	line, _, _ := bytes.Cut(after, []byte("\n"))
	kb, _ := strconv.ParseInt(string(bytes.TrimSpace(bytes.TrimSuffix(line, []byte("kB")))), 10, 64)
	return kb * 1024
}
