package disk

import (
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels"
)

// pool reads with positioned reads from several goroutines.
type pool struct {
	source
	workers int
	owns    bool // the descriptors

	large sync.Mutex // held for a stretch that no buffer holds: one at a time bounds their memory

	mu      sync.Mutex
	buffers []*kernels.HostBuf // of MaxStretch bytes each, unused now; at most workers exist
}

func (p *pool) read(take func() (Stretch, bool), serve func(s Stretch, b []byte) error) error {
	return together(p.workers, take, func() worker { return &preader{pool: p, serve: serve} })
}

func (p *pool) alignment() int64 { return p.block }

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.buffers {
		b.Close()
	}
	p.buffers = nil
	if p.owns {
		p.closeOwn()
	}
}

// preader is one of the goroutines.
type preader struct {
	*pool
	buffer *kernels.HostBuf
	serve  func(s Stretch, b []byte) error
}

func (w *preader) read(s Stretch) error {
	if lo, hi := hull(s, w.block); hi-lo > MaxStretch { // one piece, as a long neighbour list; rare
		w.large.Lock()
		defer w.large.Unlock()
		b, err := kernels.NewHostBuf(int(hi - lo))
		if err != nil {
			return err
		}
		defer b.Close()
		return w.readInto(b, s)
	}
	if w.buffer == nil {
		var err error
		if w.buffer, err = w.take(); err != nil {
			return err
		}
	}
	return w.readInto(w.buffer, s)
}

func (w *preader) readInto(b *kernels.HostBuf, s Stretch) error {
	defer b.Return()
	t := w.begin(s, b.Lend())
	began := time.Now()
	w.meter.underWay.Add(1)
	err := w.fill(&t)
	w.meter.underWay.Add(-1)
	w.meter.ended(len(t.buf), time.Since(began))
	if err != nil {
		return err
	}
	return w.serve(s, t.lent())
}

func (w *preader) fill(t *transfer) error {
	for {
		rest, offset := t.rest(w.block)
		fault := w.faults.at(t.stretch.File, offset, len(rest))
		n, err := fault.befall(unix.Pread(w.fds[t.stretch.File], rest, offset))
		if done, err := w.took(t, n, err); done || err != nil {
			return err
		}
	}
}

func (w *preader) close() {
	if w.buffer == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.buffers = append(w.buffers, w.buffer)
}

func (p *pool) take() (*kernels.HostBuf, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if n := len(p.buffers); n > 0 {
		b := p.buffers[n-1]
		p.buffers = p.buffers[:n-1]
		return b, nil
	}
	return kernels.NewHostBuf(MaxStretch)
}
