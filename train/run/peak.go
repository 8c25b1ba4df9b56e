package run

import (
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

// Peak is the largest memory of the process that was measured: its own, and of mapped files. It is
// safe for concurrent use.
type Peak struct {
	own, file atomic.Int64
	last      atomic.Int64 // when Look looked, in ns since 1970
}

// Bytes returns the largest own memory and the largest memory of mapped files seen so far. On Linux
// these are RssAnon + RssShmem, and RssFile.
func (p *Peak) Bytes() (own, file int64) { return p.own.Load(), p.file.Load() }

// raise makes the peak at least as large, as it was before a run was resumed.
func (p *Peak) raise(own, file int64) {
	raise(&p.own, own)
	raise(&p.file, file)
}

func raise(n *atomic.Int64, least int64) {
	for at := n.Load(); at < least && !n.CompareAndSwap(at, least); at = n.Load() {
	}
}

// Look measures the memory. It does nothing within a tenth of a second of its last call.
func (p *Peak) Look() {
	now, last := time.Now().UnixNano(), p.last.Load()
	if now-last > int64(100*time.Millisecond) && p.last.CompareAndSwap(last, now) {
		p.raise(kernels.ResidentBytes())
	}
}

// watchInterval is the time between measurements: short beside a step that takes much memory. A
// measurement takes some 40 µs.
const watchInterval = 20 * time.Millisecond

// Watch measures the memory again and again until stop is called. Between two steps much memory is
// free again, so a measurement there alone would miss the peak.
func (p *Peak) Watch() (stop func()) {
	ticker, done, ended := time.NewTicker(watchInterval), make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-ticker.C:
				p.raise(kernels.ResidentBytes())
			case <-done:
				return
			}
		}
	}()
	return func() {
		ticker.Stop()
		close(done)
		<-ended
	}
}
