package spill

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"golang.org/x/sync/errgroup"
)

// Run holds what was appended, to be read once. The zero Run belongs to no File: use File.NewRun.
type Run struct {
	f     *File
	mu    sync.Mutex
	parts []*part
	bytes int64 // appended and not read, sum over parts
}

// part is a segment of a run.
type part struct {
	segment     int32
	used, count int
	sums        []uint32

	// File.mu guards these.
	state state
	buf   *Buffer // nil once written
	err   error   // of writing
}

type state int

const (
	queued state = iota // waits to be written
	writing
	written
	taken // from its buffer, before it was written
)

func (p *part) offset(f *File) int64 { return int64(p.segment) * int64(f.o.Segment) }

// NewRun returns an empty run.
func (f *File) NewRun() *Run { return &Run{f: f} }

// FullError is the error of an Append that finds no free segment.
type FullError struct{ Bytes int64 } // size of the file

func (e *FullError) Error() string { return fmt.Sprintf("spill: all %d bytes are taken", e.Bytes) }

// Append takes over b and appends its first Used bytes as one piece, which is written in the
// background. A buffer with nothing used is only given back. The error is a *FullError, and then b
// is given back as well.
func (r *Run) Append(b *Buffer) error {
	f := r.f
	if b.Used == 0 {
		f.Return(b)
		return nil
	}
	segment, ok := f.take()
	if !ok {
		f.Return(b)
		return &FullError{f.o.Bytes}
	}
	p := &part{segment: segment, used: b.Used, count: b.Count, sums: sums(b.Bytes[:b.Used]), buf: b}
	r.mu.Lock()
	r.parts = append(r.parts, p)
	r.bytes += int64(p.used)
	r.mu.Unlock()
	f.queue <- p // has room for every buffer, but also holds taken parts until a writer skips them
	return nil
}

// Bytes returns the number of bytes that were appended and not read.
func (r *Run) Bytes() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.bytes
}

// Each lends each appended piece, with its Count, roughly in the order of Append, and frees its
// segment. Up to Depth goroutines call serve at once. Afterwards the run is empty, and may be
// appended to again. The first error of serve or of ctx ends the reading, and pieces not lent by
// then are lost. Damaged pieces are left out, and then the error is an ErrDamaged unless there is
// another.
func (r *Run) Each(ctx context.Context, serve func(b []byte, count int) error) error {
	r.mu.Lock()
	parts := r.parts
	r.parts, r.bytes = nil, 0
	r.mu.Unlock()
	if len(parts) == 0 {
		return ctx.Err()
	}
	next := make(chan *part, len(parts))
	for _, p := range parts {
		next <- p
	}
	close(next)
	g, ctx := errgroup.WithContext(ctx)
	var damaged atomic.Pointer[error] // the first damage found
	for range min(r.f.o.Depth, len(parts)) {
		g.Go(func() error {
			for p := range next {
				if err := ctx.Err(); err != nil {
					r.f.drop(p)
					return err
				}
				bad, err := r.f.lend(p, serve)
				if err != nil {
					return err
				}
				if bad != nil {
					damaged.CompareAndSwap(nil, &bad)
				}
			}
			return nil
		})
	}
	err := g.Wait()
	for p := range next { // after an error
		r.f.drop(p)
	}
	if bad := damaged.Load(); bad != nil && err == nil {
		err = *bad
	}
	return err
}

// Put appends bytes of any size, cut into pieces of one segment, for Whole. Piece n has count n.
func (r *Run) Put(ctx context.Context, b []byte) error {
	for n := 0; len(b) > 0; n++ {
		buf, err := r.f.Buffer(ctx)
		if err != nil {
			return err
		}
		buf.Used, buf.Count = copy(buf.Bytes, b), n
		b = b[buf.Used:]
		if err := r.Append(buf); err != nil {
			return err
		}
	}
	return nil
}

// Whole reads what Put appended, into dst if that is large enough.
func (r *Run) Whole(ctx context.Context, dst []byte) ([]byte, error) {
	n := int(r.Bytes())
	if cap(dst) < n {
		dst = make([]byte, n+n/8)
	}
	dst = dst[:n]
	return dst, r.Each(ctx, func(b []byte, count int) error {
		copy(dst[count*r.f.o.Segment:], b)
		return nil
	})
}

// Drop frees the segments without reading them.
func (r *Run) Drop() {
	r.mu.Lock()
	parts := r.parts
	r.parts, r.bytes = nil, 0
	r.mu.Unlock()
	for _, p := range parts {
		r.f.drop(p)
	}
}

// lend serves the bytes of p, unless they are damaged, and frees its segment. damaged is the damage
// found, err the error of serve.
func (f *File) lend(p *part, serve func(b []byte, count int) error) (damaged, err error) {
	b, back, err := f.fetch(p)
	if err != nil {
		return err, nil
	}
	defer back()
	for i, sum := range sums(b) {
		if sum != p.sums[i] {
			return fmt.Errorf("%s at 0x%x: a page is not as it was written: %w", f.where, p.offset(f)+int64(i)*pageBytes, ErrDamaged), nil
		}
	}
	return nil, serve(b, p.count)
}

// fetch returns the bytes of p, from its buffer if it is not written yet. The caller returns them
// by back, which frees the segment. The error is an ErrDamaged.
func (f *File) fetch(p *part) (b []byte, back func(), err error) {
	f.mu.Lock()
	if p.state == queued {
		p.state = taken
		f.mu.Unlock()
		f.kept.Add(int64(p.used))
		buf := p.buf
		return buf.Bytes[:p.used], func() {
			f.give(p.segment)
			f.free <- buf
		}, nil
	}
	for p.state == writing {
		f.mu.changed.Wait()
	}
	err = p.err
	f.mu.Unlock()
	if err != nil {
		f.give(p.segment)
		return nil, nil, fmt.Errorf("%s at 0x%x: a write failed: %w: %w", f.where, p.offset(f), err, ErrDamaged)
	}
	room := <-f.reads
	n := pages(p.used) * pageBytes
	if err := f.transfer(false, room[:n], p.offset(f)); err != nil {
		f.reads <- room
		f.give(p.segment)
		return nil, nil, fmt.Errorf("%s at 0x%x: %w: %w", f.where, p.offset(f), err, ErrDamaged)
	}
	f.read.Add(int64(n))
	return room[:p.used], func() {
		f.give(p.segment)
		f.reads <- room
	}, nil
}

// drop frees the segment of p without reading it.
func (f *File) drop(p *part) {
	f.mu.Lock()
	switch p.state {
	case queued:
		p.state = taken
		buf := p.buf
		defer func() { f.free <- buf }()
	case writing:
		for p.state == writing {
			f.mu.changed.Wait()
		}
	}
	f.mu.Unlock()
	f.give(p.segment)
}
