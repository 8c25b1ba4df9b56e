package train

import (
	"bytes"
	"os"
	"runtime"
	"runtime/debug"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
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

// heapLimit keeps the Go heap within what a budget for the whole process leaves: GOMEMLIMIT is the budget less what lies
// outside the heap. Its zero value limits nothing.
type heapLimit struct {
	budget  int64
	outside int64
	before  int64 // the limit to put back
}

// minHeap is what the Go heap gets though the rest takes the whole budget: below it the collector would never rest.
const minHeap = 64 << 20

// follow adjusts the limit to what lies outside the heap now.
func (l *heapLimit) follow() {
	outside := kernels.HostBytes() + kernels.MaxSpareBytes
	if l.budget == 0 || outside == l.outside {
		return
	}
	before := debug.SetMemoryLimit(max(l.budget-outside, minHeap))
	if l.outside == 0 {
		l.before = before
	}
	l.outside = outside
}

func (l *heapLimit) close() {
	if l.outside != 0 {
		debug.SetMemoryLimit(l.before)
		l.outside = 0
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
