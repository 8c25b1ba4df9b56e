// Package disk reads rows of a feature table, many at a time and in file order.
//
// A [Reader] takes a batch of [Request]s, sorted by row, and copies each row to its place in the caller's buffer. It
// reads through the table's memory map ([Mmap]) or with positioned reads from many goroutines ([Pread]); [Open] picks
// one, and [Reader.Why] says why in a sentence. The rows delivered are the same.
//
// Memory: the destination is the caller's; mapped rows are read only while Read runs. A Reader keeps merge buffers
// between calls (see [Pread]) and no goroutine. One Read runs at a time.
//
// Start reading at [Reader.Read], then pool.next, where requests become reads.
package disk

import (
	"errors"
	"fmt"
	"runtime"
	"time"

	"github.com/gnnstore/gnnstore/store"
)

// Table is what is read: a *store.Features, or a file of a test. Rows are numbered across shards, which are listed in
// ascending order.
type Table interface {
	Rows() int
	RowBytes() int
	// Row lends the mapped bytes of row v, RowBytes long; it is called inside store.Guard only.
	Row(v uint32) []byte
	Shards() []store.Shard
}

// Kind names a way to read.
type Kind string

const (
	// Auto is Mmap if the table fits in half of the memory that is available when it is opened, else Pread. It is the
	// default: an empty Kind means Auto.
	Auto Kind = "auto"
	// Mmap copies rows out of the table's memory map: the fastest way to rows that the page cache holds. A fault holds
	// one of the threads that run Go code, so cold rows come one at a time per reader.
	Mmap Kind = "mmap"
	// Pread reads with many system calls in flight, a merge buffer of 128 KiB for each reader that needs one. A row in the
	// page cache costs a system call, a cold one stops nobody else.
	Pread Kind = "pread"
)

// MaxReaders bounds the goroutines of a Reader, each of which may hold a thread: Go stops at 10,000 threads.
const MaxReaders = 1024

// defaultPreads is the number of reads in flight under Pread: 64 to 128 keep an NVMe or virtio disk busy, and more only
// wait in its queue.
const defaultPreads = 64

// Validate refuses a name that is no Kind.
func (k Kind) Validate() error {
	switch k {
	case "", Auto, Mmap, Pread:
		return nil
	}
	return fmt.Errorf("unknown disk engine %q: use auto, mmap or pread", string(k))
}

// Request asks for one row: its number in the upper half, and in the lower half its place in the destination, counted
// in rows. So sorting requests as numbers puts them in file order.
type Request uint64

// Want makes a Request.
func Want(row, place uint32) Request { return Request(row)<<32 | Request(place) }

// Row is the row asked for.
func (q Request) Row() uint32 { return uint32(q >> 32) }

// Place is where it goes: to the RowBytes bytes at Place × RowBytes.
func (q Request) Place() uint32 { return uint32(q) }

// Traffic is what reading cost.
type Traffic struct {
	Rows    int64   // rows delivered
	Reads   int64   // requests to the file: system calls, or rows copied out of the map
	Bytes   int64   // bytes of the file asked for, padding between merged rows included
	Seconds float64 // from the call to its return
}

// Add adds u.
func (t *Traffic) Add(u Traffic) {
	t.Rows += u.Rows
	t.Reads += u.Reads
	t.Bytes += u.Bytes
	t.Seconds += u.Seconds
}

// Reader reads rows of one table. One Read runs at a time.
type Reader struct {
	kind   Kind
	why    string
	engine engine
	table  Table
}

// engine is a way to read: want is sorted, asks for no row twice, and fits dst and the table.
type engine interface {
	read(dst []byte, want []Request) (reads, bytes int64, err error)
}

// Open makes a Reader of t with at most readers goroutines; 0 means 64 for Pread, and for Mmap one for each thread that
// runs Go code. The table stays the caller's, and must stay open while the Reader is in use.
func Open(kind Kind, t Table, readers int) (*Reader, error) {
	if err := kind.Validate(); err != nil {
		return nil, fmt.Errorf("disk: %w", err)
	}
	if readers < 0 || readers > MaxReaders {
		return nil, fmt.Errorf("disk: %d readers: use 1 to %d, or 0 for the default", readers, MaxReaders)
	}
	if t.RowBytes() < 1 {
		return nil, errors.New("disk: the table has no columns")
	}
	r := &Reader{kind: kind, why: "it was asked for", table: t}
	if kind == Auto || kind == "" {
		var size int64
		for _, s := range t.Shards() {
			size += s.Rows * s.Stride
		}
		available, err := AvailableMemory()
		r.kind, r.why = choose(size, available, err)
	}
	if r.kind == Mmap {
		if readers == 0 {
			readers = runtime.GOMAXPROCS(0)
		}
		r.engine = &mapped{table: t, readers: readers}
	} else {
		if readers == 0 {
			readers = defaultPreads
		}
		r.engine = &pool{shards: t.Shards(), rowBytes: t.RowBytes(), readers: readers}
	}
	return r, nil
}

// Kind is the way chosen: Mmap or Pread.
func (r *Reader) Kind() Kind { return r.kind }

// Why says in a sentence why that way was chosen.
func (r *Reader) Why() string { return r.why }

// Read copies each row wanted to its place in dst, and says what that cost. want is in ascending order and asks for no
// row twice. Rows, reads and bytes depend on want and the table alone, not on the number of readers. After an error
// the places wanted hold anything.
func (r *Reader) Read(dst []byte, want []Request) (Traffic, error) {
	if len(want) == 0 {
		return Traffic{}, nil
	}
	if last := want[len(want)-1].Row(); int(last) >= r.table.Rows() {
		return Traffic{}, fmt.Errorf("disk: row %d of a table of %d rows", last, r.table.Rows())
	}
	start := time.Now()
	reads, bytes, err := r.engine.read(dst, want)
	if err != nil {
		return Traffic{}, fmt.Errorf("disk: %w", err)
	}
	return Traffic{Rows: int64(len(want)), Reads: reads, Bytes: bytes, Seconds: time.Since(start).Seconds()}, nil
}

// choose is the decision of Auto for a table of size bytes. Half of the memory, because the caches and the training
// itself want the other half.
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
