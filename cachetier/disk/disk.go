// Package disk reads extents of files, many at a time and in file order, and lends the bytes of
// each to whoever wanted them. It knows nothing of rows or neighbour lists: feature rows and
// topology come through the same [Reader].
//
// Callers know what they will want next, so they ask for much at once. [Reader.Merge] makes few
// [Extent]s out of many [Request]s: a gap is read through where that costs less than another read,
// which [Costs] says. [Reader.Read] has as many extents under way as suits the device, and calls
// back with each as it comes.
//
// Memory: a Reader owns its buffers, which lie outside the Go heap, and gives them up in Close.
// What it lends to a callback is read-only and valid until that returns.
//
// There are four engines, of which [Kind] tells; each lends the same bytes, from whole pages that
// it has compared with the checksums they were sealed with: on each read, and through a memory map
// when a page is first lent. A device or a system that lacks what one of them needs gets the next,
// and [Reader.Why] says so.
//
// Start reading at [Reader.Read], then [Reader.Merge].
package disk

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
)

// Extent is a part of a file that is read at once.
type Extent struct {
	File   int // of those that Open got
	Offset int64
	Size   int // at least 1

	// Lo and Hi are the caller's: Merge makes them the first request and the one after the last.
	Lo, Hi int
}

// Traffic is what reading cost.
type Traffic struct {
	Reads   int64   // of the files
	Bytes   int64   // that were asked of them
	Seconds float64 // from the call to its return
}

// Add adds u.
func (t *Traffic) Add(u Traffic) {
	t.Reads += u.Reads
	t.Bytes += u.Bytes
	t.Seconds += u.Seconds
}

// Reader reads extents of some files. One Read runs at a time, and Close waits for none: either is
// a bug, and panics. The other methods are safe for concurrent use.
type Reader struct {
	kind   Kind
	why    string
	costs  Costs
	files  []store.SectionFile
	engine engine
	meter  *meter

	mu struct {
		sync.Mutex
		reading, closed bool
	}
}

// engine is a way to read. read asks take for extents until it gives none, and lends the bytes of
// each to serve.
type engine interface {
	read(take func() (Extent, bool), serve func(s Extent, b []byte) error) error
	alignment() int64 // of the reads, see Reader.Block
	close()
}

// Close gives up the buffers. A second Close does nothing.
func (r *Reader) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.reading {
		panic("disk: Close while a Read is under way")
	}
	if !r.mu.closed {
		r.mu.closed = true
		r.engine.close()
	}
}

// Kind is the way chosen: any but Auto.
func (r *Reader) Kind() Kind { return r.kind }

// Why says in a sentence why that way was chosen, what was measured, and what had to be done
// without.
func (r *Reader) Why() string { return r.why }

// Costs is what reading costs, as far as it is known.
func (r *Reader) Costs() Costs { return r.costs }

// Block is what the offsets and sizes of reads are multiples of: the 4096 bytes that have a
// checksum, or more where the device wants it.
func (r *Reader) Block() int64 { return r.engine.alignment() }

// Live is what was done so far, now.
func (r *Reader) Live() Live { return r.meter.read() }

// Read reads each extent that next gives, until it gives none, and lends its bytes to serve. next
// is called by one goroutine at a time, in order; serve by several at once; both inside
// store.Guard. Of an extent the whole blocks around it are read, so reads and bytes depend on the
// extents and Block alone.
//
// The first error ends the reading: one of serve, one of a file, or the end of ctx, which is looked
// at before each extent. Then no more is asked of next, and Read returns once all its goroutines
// and reads have ended.
func (r *Reader) Read(ctx context.Context, next func() (Extent, bool), serve func(s Extent, b []byte) error) (Traffic, error) {
	r.begin()
	defer r.end()
	began := time.Now()
	var t Traffic
	var out error // the end of ctx, or an extent that leads out of its file
	err := r.engine.read(func() (Extent, bool) {
		if out == nil {
			out = ctx.Err()
		}
		if out != nil {
			return Extent{}, false
		}
		s, ok := next()
		if !ok {
			return s, false
		}
		if f := &r.files[s.File]; s.Offset < 0 || s.Size < 1 || s.Offset > f.Size-int64(s.Size) {
			out = &store.SectionError{Dataset: f.Dataset, Section: f.Section, Offset: s.Offset,
				Err: fmt.Errorf("%d bytes are wanted, and the file has %d", s.Size, f.Size)}
			return s, false
		}
		t.Add(r.Takes(s))
		return s, true
	}, serve)
	if out != nil && !errors.Is(err, out) {
		err = errors.Join(out, err)
	}
	if err != nil {
		return Traffic{}, fmt.Errorf("disk: %w", err)
	}
	t.Seconds = time.Since(began).Seconds()
	return t, nil
}

// Takes is what reading s is counted as, without reading it.
func (r *Reader) Takes(s Extent) Traffic {
	lo, hi := hull(s, r.Block())
	return Traffic{Reads: 1, Bytes: hi - lo}
}

func (r *Reader) begin() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.closed {
		panic("disk: Read after Close")
	}
	if r.mu.reading {
		panic("disk: Read while another is under way")
	}
	r.mu.reading = true
	r.meter.start()
}

func (r *Reader) end() {
	r.meter.stop()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.mu.reading = false
}

// together runs n goroutines on what take gives, each with a worker of its own, and returns the
// first error. A goroutine starts when the one before it has found work.
func together(n int, take func() (Extent, bool), start func() worker) error {
	var mu sync.Mutex // of take, and of failed
	failed := false
	next := func() (s Extent, ok bool) {
		mu.Lock()
		defer mu.Unlock()
		if failed {
			return s, false
		}
		return take()
	}
	var g errgroup.Group
	var work func(more int) error
	work = func(more int) error {
		err := store.Guard(func() error {
			w := start()
			defer w.close()
			for s, ok := next(); ok; s, ok = next() {
				if more > 0 {
					n := more - 1
					more = 0
					g.Go(func() error { return work(n) })
				}
				if err := w.read(s); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			mu.Lock()
			failed = true
			mu.Unlock()
		}
		return err
	}
	g.Go(func() error { return work(n - 1) })
	return g.Wait()
}

// worker reads an extent at a time.
type worker interface {
	read(s Extent) error
	close()
}
