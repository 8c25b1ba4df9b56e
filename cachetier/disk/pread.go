package disk

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"sync"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// pool reads with positioned reads from several goroutines.
type pool struct {
	files   []store.SectionFile
	workers int

	mu      sync.Mutex
	buffers []*kernels.HostBuf // of MaxStretch bytes each, unused now; at most workers exist
}

func (p *pool) read(take func() (Stretch, bool), serve func(s Stretch, b []byte) error) error {
	return together(p.workers, take, func() worker { return &preader{pool: p, serve: serve} })
}

func (p *pool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, b := range p.buffers {
		b.Close()
	}
	p.buffers = nil
}

// preader is one of the goroutines.
type preader struct {
	*pool
	buffer *kernels.HostBuf
	serve  func(s Stretch, b []byte) error
}

func (w *preader) read(s Stretch) error {
	if s.Size > MaxStretch { // one piece, as a long neighbour list; rare
		b := make([]byte, s.Size)
		if err := readFull(&w.files[s.File], b, s.Offset); err != nil {
			return err
		}
		return w.serve(s, b)
	}
	if w.buffer == nil {
		var err error
		if w.buffer, err = w.take(); err != nil {
			return err
		}
	}
	b := w.buffer.Bytes()[:s.Size]
	if err := readFull(&w.files[s.File], b, s.Offset); err != nil {
		return err
	}
	return w.serve(s, b)
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

func readFull(f *store.SectionFile, b []byte, offset int64) error {
	n, err := f.File.ReadAt(b, offset)
	switch {
	case n == len(b):
		return nil
	case errors.Is(err, io.EOF):
		return &store.SectionError{Dataset: f.Dataset, Section: f.Section, Offset: offset + int64(n), Err: fmt.Errorf(
			"the file ends %d bytes into a read of %d: it was truncated while in use; restore it and run gnnstore verify", n, len(b))}
	}
	var path *fs.PathError // names the file as it was opened; Path says where it lies
	if errors.As(err, &path) {
		err = path.Err
	}
	return fmt.Errorf("read %d bytes of %s at 0x%x: %w", len(b), f.Path, offset, err)
}
