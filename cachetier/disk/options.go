package disk

import (
	"errors"
	"fmt"
	"math"
)

// Kind names a way to read.
type Kind string

const (
	// Auto is Mmap if the files fit in half of the memory that is available when they are opened.
	// Else it is Uring or Pread: the faster one where Options.Probe has them measured, and else the
	// first that works here. It is the default: an empty Kind means Auto.
	Auto Kind = "auto"
	// Uring reads past the page cache (O_DIRECT), many reads under way by a few system calls of one
	// goroutine (io_uring). It takes the least of the processor. Where the kernel has no io_uring,
	// or a sandbox denies it, it becomes Pread.
	Uring Kind = "uring"
	// Pread reads past the page cache with a system call each, from as many goroutines as there are
	// reads under way. Where the file system cannot do without the page cache, it and Uring become
	// Buffered.
	Pread Kind = "pread"
	// Buffered is Pread through the page cache. What that holds costs a system call; what it does
	// not stops nobody else.
	Buffered Kind = "buffered"
	// Mmap reads through the memory map of the file: the fastest way to what the page cache holds.
	// The pages of the next extents are asked for ahead (MADV_WILLNEED), since a fault holds one of
	// the threads that run Go code.
	Mmap Kind = "mmap"
)

// Kinds are the ways that can be asked for.
var Kinds = []Kind{Auto, Uring, Pread, Buffered, Mmap}

// MaxDepth bounds the reads under way, each of which may hold a thread: Go stops at 10,000 threads.
const MaxDepth = 1024

// defaultDepth keeps an NVMe or virtio disk busy; more reads only wait in its queue. A ring has
// them wait there rather than for a goroutine that waits for a processor.
const (
	defaultDepth     = 64
	defaultRingDepth = 256
)

const (
	// smallBuffer is for reads that cost the device little more than being asked. Many of them
	// under way are worth it: a goroutine that waits for a processor finds as many done. With both
	// cores at work 256 gave twice the reads of 64.
	smallBuffer = 16 << 10
	// maxWide bounds the reads under way that are larger: 64 × 256 KiB are milliseconds of any
	// disk.
	maxWide = 64
	// maxBatch is how many are served before the ring is filled again: some 5 µs of copying rows.
	maxBatch = 16
)

// slotsOf is how many small and wide buffers Uring has at a depth, and how many reads it serves at
// a time. There are slots for a batch more than is under way, so that the next reads are handed
// over before one is served: 0.96 of fio's reads, against 0.88.
func slotsOf(depth int) (small, wide, batch int) {
	batch = min(max(1, depth/4), maxBatch)
	return depth + batch, min(depth, maxWide) + batch, batch
}

// BufferBytes is what the buffers of a Reader take at most with Options.Depth, whatever its kind.
func BufferBytes(depth int) int64 {
	pool := depth * MaxExtent
	if depth == 0 {
		depth, pool = defaultRingDepth, defaultDepth*MaxExtent
	}
	small, wide, _ := slotsOf(depth)
	return int64(max(wide*MaxExtent+small*smallBuffer, pool))
}

// ReaderBytes returns what the buffers of a Reader take at a depth, with Options.For a file of so
// many bytes.
func ReaderBytes(file int64, depth int) int64 {
	return min(BufferBytes(depth), max(file, BufferBytes(1)))
}

// DepthWithin is the largest depth, at least 1, whose buffers take up to so many bytes; 0, which is
// the default, where that is as large.
func DepthWithin(bytes int64) int {
	if bytes >= BufferBytes(0) {
		return 0
	}
	depth := 1
	for BufferBytes(depth+1) <= bytes {
		depth++
	}
	return depth
}

// MaxExtent bounds the extents that Merge makes of several requests: at 256 KiB starting a read,
// which costs as much as about 14 KB of transfer, is down to 5 %, and a buffer for each one under
// way is still small.
const MaxExtent = 256 << 10

// Validate refuses a name that is no Kind.
func (k Kind) Validate() error {
	switch k {
	case "", Auto, Uring, Pread, Buffered, Mmap:
		return nil
	}
	return fmt.Errorf("unknown disk engine %q: use auto, uring, pread, buffered or mmap", string(k))
}

// Options says how to read. The zero value works; none changes the bytes that are lent.
type Options struct {
	// Kind of engine. Default Auto.
	Kind Kind
	// Depth is how many reads are under way at most, up to MaxDepth. Default 256 under Uring, of
	// which 64 are larger than 16 KiB; 64 under Pread and Buffered; and under Mmap one for each
	// thread that runs Go code. Uring takes 25 MiB for buffers, and Pread and Buffered up to Depth
	// × MaxExtent.
	Depth int
	// Direct has Auto leave Mmap and the page cache out, for who has a budget that it would be in.
	Direct bool
	// Probe measures the device in Open, for about 400 ms, where the files have 64 MiB or more:
	// Auto takes the engine that was faster, and Merge goes by what was measured.
	Probe bool
	// Costs, if they are not zero, are what Merge goes by: those of an earlier Reader make the same
	// extents as it did.
	Costs Costs
	// Faults, for tests, says what befalls each read. Default: nothing.
	Faults Faults

	within int // depth that For found; 0: any
}

// For returns o for files of so many bytes in all. Count bytes that are still to be written. The
// buffers take no more than the files, but for those of one read.
func (o Options) For(bytes int64) Options {
	o.within = DepthWithin(bytes)
	return o
}

// Validate reports every option that cannot be followed.
func (o Options) Validate() error {
	errs := []error{o.Kind.Validate()}
	if o.Depth < 0 || o.Depth > MaxDepth {
		errs = append(errs, fmt.Errorf("%d reads at a time: use 1 to %d, or 0 for the default", o.Depth, MaxDepth))
	}
	if c := o.Costs; c != (Costs{}) && !(positive(c.SecondsPerRead) && positive(c.BytesPerSecond)) {
		errs = append(errs, fmt.Errorf("costs of %v seconds a read and %v bytes a second: both are above 0", c.SecondsPerRead, c.BytesPerSecond))
	}
	return errors.Join(errs...)
}

func positive(x float64) bool { return x > 0 && !math.IsInf(x, 0) }
