// Package disk reads extents of files, many at a time and in file order, and lends the bytes of
// each to whoever wanted them. It knows nothing of rows or neighbour lists: feature rows and
// topology come through the same [Reader].
//
// Callers know what they will want next, so they ask for much at once. [Reader.Merge] turns many
// [Request]s into few [Extent]s: it reads through a gap where that costs less than another read, by
// [Costs]. [Reader.Read] keeps as many extents under way as suits the device, and calls back with
// each as it arrives.
//
// Memory: a Reader owns its buffers, which lie outside the Go heap, and gives them up in Close.
// What it lends to a callback is read-only and valid until that returns.
//
// There are four engines (see [Kind]), and all lend the same bytes. They read whole pages and
// compare them with the checksums they were sealed with: on each read or, through a memory map,
// when a page is first lent. If a device or system lacks what one engine needs, the Reader takes
// the next, and [Reader.Why] says so.
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

// Extent is a range of a file that is read at once.
type Extent struct {
	File   int // index in the files given to Open
	Offset int64
	Size   int // at least 1

	// Lo and Hi are for the caller. Merge sets them to the index of the first request, and to one
	// past the last.
	Lo, Hi int
}

// Traffic is the cost of reading.
type Traffic struct {
	Reads   int64   // one for each extent
	Bytes   int64   // asked of the files, in whole blocks
	Seconds float64 // from the call of Read to its return
}

// Add adds u to t.
func (t *Traffic) Add(u Traffic) {
	t.Reads += u.Reads
	t.Bytes += u.Bytes
	t.Seconds += u.Seconds
}

// Reader reads extents of some files. Only one Read may run at a time, and Close must not be called
// during a Read: both are bugs, and panic. The other methods are safe for concurrent use.
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

// engine is one way to read. read calls take for extents until there are no more, and lends the
// bytes of each to serve.
type engine interface {
	read(take func() (Extent, bool), serve func(s Extent, b []byte) error) error
	alignment() int64 // see Reader.Block
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

// Kind returns the engine in use, never Auto.
func (r *Reader) Kind() Kind { return r.kind }

// Why returns, as a sentence, why that engine was chosen, what was measured, and what was not
// available.
func (r *Reader) Why() string { return r.why }

// Costs returns the costs that Merge uses: given, measured or assumed.
func (r *Reader) Costs() Costs { return r.costs }

// Block returns the unit of reads in bytes: their offsets and sizes are multiples of it. It is
// 4096, the bytes that share a checksum, or more where the device needs it.
func (r *Reader) Block() int64 { return r.engine.alignment() }

// Live returns the counters of the reads so far.
func (r *Reader) Live() Live { return r.meter.read() }

// Read reads each extent that next returns, until there are no more, and lends its bytes to serve.
// One goroutine at a time calls next, in order; several call serve at once. Both run inside
// store.Guard. Read fetches the whole blocks around an extent, so its counts of reads and bytes
// depend only on the extents and Block.
//
// The first error ends the reading: an error of serve or of a file, or the end of ctx, which is
// checked before each extent. After that Read does not call next again, and returns once all its
// goroutines and reads have ended.
func (r *Reader) Read(ctx context.Context, next func() (Extent, bool), serve func(s Extent, b []byte) error) (Traffic, error) {
	r.begin()
	defer r.end()
	began := time.Now()
	var t Traffic
	var out error // the end of ctx, or an extent that is not within its file
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

// Takes returns the reads and bytes that reading s counts as, without reading it.
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

// together runs up to n goroutines, each with its own worker, on the extents of take, and returns
// the first error. Each goroutine starts the next one when it has found work itself.
func together(n int, take func() (Extent, bool), start func() worker) error {
	var mu sync.Mutex // guards take and failed
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

// worker reads one extent at a time.
type worker interface {
	read(s Extent) error
	close()
}
