// Package disk reads stretches of files, many at a time and in file order, and lends the bytes of each to whoever wanted
// them. It knows nothing of rows or neighbour lists: feature rows and topology come through the same [Reader].
//
// Callers know what they will want next, so they ask for much at once. [Reader.Merge] makes few [Stretch]es out of many
// wanted pieces: a gap is read through where that costs less than another read, which [Costs] says. [Reader.Read] has
// as many stretches under way as suits the device, and calls back with each as it comes.
//
// Memory: a Reader owns its buffers, which lie outside the Go heap, and gives them up in Close. What it lends to a
// callback is read-only and valid until that returns.
//
// Start reading at [Reader.Read], then [Reader.Merge].
package disk

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/store"
)

// Kind names a way to read.
type Kind string

const (
	// Auto is Mmap if the files fit in half of the memory that is available when they are opened, else Pread. It is the
	// default: an empty Kind means Auto.
	Auto Kind = "auto"
	// Mmap reads through the memory map of the file: the fastest way to what the page cache holds. The pages of the next
	// stretches are asked for ahead (MADV_WILLNEED), since a fault holds one of the threads that run Go code.
	Mmap Kind = "mmap"
	// Pread reads with many system calls in flight, each into a buffer of its own. What is in the page cache costs a system
	// call, a cold stretch stops nobody else.
	Pread Kind = "pread"
)

// Kinds are the ways that can be asked for.
var Kinds = []Kind{Auto, Mmap, Pread}

// MaxDepth bounds the reads under way, each of which may hold a thread: Go stops at 10,000 threads.
const MaxDepth = 1024

// defaultDepth keeps an NVMe or virtio disk busy; more reads only wait in its queue.
const defaultDepth = 64

// MaxStretch bounds the stretches that Merge makes of several pieces: at 256 KiB starting a read, which costs as much as
// about 14 KB of transfer, is down to 5 %, and a buffer for each one under way is still small.
const MaxStretch = 256 << 10

// Validate refuses a name that is no Kind.
func (k Kind) Validate() error {
	switch k {
	case "", Auto, Mmap, Pread:
		return nil
	}
	return fmt.Errorf("unknown disk engine %q: use auto, mmap or pread", string(k))
}

// Options says how to read. The zero value works.
type Options struct {
	// Kind of engine. Default Auto.
	Kind Kind
	// Depth is how many reads are under way at most, up to MaxDepth. Default 64, and under Mmap one for each thread that
	// runs Go code.
	Depth int
}

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	err := o.Kind.Validate()
	if o.Depth < 0 || o.Depth > MaxDepth {
		err = errors.Join(err, fmt.Errorf("%d reads at a time: use 1 to %d, or 0 for the default", o.Depth, MaxDepth))
	}
	return err
}

// Stretch is a piece of a file that is read at once.
type Stretch struct {
	File   int // of those that Open got
	Offset int64
	Size   int // at least 1

	// Lo and Hi are the caller's: Merge makes them the first piece and the one after the last.
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

// Reader reads stretches of some files. One Read runs at a time; the other methods are safe for concurrent use.
type Reader struct {
	kind   Kind
	why    string
	costs  Costs
	files  []store.SectionFile
	engine engine
}

// engine is a way to read. read asks take for stretches until it gives none, and lends the bytes of each to serve.
type engine interface {
	read(take func() (Stretch, bool), serve func(s Stretch, b []byte) error) error
	close()
}

// Open makes a Reader of files, which stay the caller's and must stay open until Close.
func Open(files []store.SectionFile, o Options) (*Reader, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	r := &Reader{kind: o.Kind, why: "it was asked for", costs: assumed, files: files}
	if o.Kind == Auto || o.Kind == "" {
		var size int64
		for _, f := range files {
			size += f.Size
		}
		available, err := AvailableMemory()
		r.kind, r.why = choose(size, available, err)
	}
	depth := o.Depth
	if r.kind == Mmap {
		if depth == 0 {
			depth = runtime.GOMAXPROCS(0)
		}
		r.engine = &mapped{files: files, workers: depth}
	} else {
		if depth == 0 {
			depth = defaultDepth
		}
		r.engine = &pool{files: files, workers: depth}
	}
	return r, nil
}

// Close gives up the buffers. A second Close does nothing.
func (r *Reader) Close() { r.engine.close() }

// Kind is the way chosen: Mmap or Pread.
func (r *Reader) Kind() Kind { return r.kind }

// Why says in a sentence why that way was chosen.
func (r *Reader) Why() string { return r.why }

// Costs is what reading costs, as far as it is known.
func (r *Reader) Costs() Costs { return r.costs }

// Read reads each stretch that next gives until it gives none, and lends its bytes to serve. next is called by one goroutine
// at a time, in order; serve by several at once, inside store.Guard. Reads and bytes depend on the stretches alone. After
// the first error, from serve or from a file, no more is asked of next; Read returns it when all its goroutines have ended.
func (r *Reader) Read(next func() (Stretch, bool), serve func(s Stretch, b []byte) error) (Traffic, error) {
	began := time.Now()
	var t Traffic
	var out error // a stretch that leads out of its file
	err := r.engine.read(func() (Stretch, bool) {
		s, ok := next()
		if !ok || out != nil {
			return s, false
		}
		if f := &r.files[s.File]; s.Offset < 0 || s.Size < 1 || s.Offset > f.Size-int64(s.Size) {
			out = &store.SectionError{Dataset: f.Dataset, Section: f.Section, Offset: s.Offset,
				Err: fmt.Errorf("%d bytes are wanted, and the file has %d", s.Size, f.Size)}
			return s, false
		}
		t.Reads++
		t.Bytes += int64(s.Size)
		return s, true
	}, serve)
	if err = errors.Join(out, err); err != nil {
		return Traffic{}, fmt.Errorf("disk: %w", err)
	}
	t.Seconds = time.Since(began).Seconds()
	return t, nil
}

// together has n goroutines at work on what take gives, each with a worker of its own, and returns the first error. A
// goroutine starts when the one before it has found work.
func together(n int, take func() (Stretch, bool), start func() worker) error {
	var mu sync.Mutex // of take, and of failed
	failed := false
	next := func() (s Stretch, ok bool) {
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

// worker reads a stretch at a time.
type worker interface {
	read(s Stretch) error
	close()
}

// choose is the decision of Auto for files of size bytes. Half of the memory, because the caches and the training itself
// want the other half.
func choose(size, available int64, err error) (Kind, string) {
	switch {
	case err != nil:
		return Mmap, fmt.Sprintf("how much memory is available is not known (%v), and mmap adapts to what there is", err)
	case size <= available/2:
		return Mmap, fmt.Sprintf("the table of %s fits in half of the %s of available memory", gibibytes(size), gibibytes(available))
	default:
		return Pread, fmt.Sprintf("the table of %s does not fit in half of the %s of available memory, and page faults would stop the threads that compute",
			gibibytes(size), gibibytes(available))
	}
}

func gibibytes(n int64) string {
	if n < 1<<30/10 {
		return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
	}
	return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
}
