package disk

import (
	"errors"
	"fmt"
	"math"
)

// Kind names a way to read.
type Kind string

const (
	// Auto is Mmap if the files fit in half of the memory available at Open. Otherwise it is Uring
	// or Pread: the faster one if Options.Probe measures them, else the first that works here. It
	// is the default: an empty Kind means Auto.
	Auto Kind = "auto"
	// Uring reads past the page cache (O_DIRECT) by io_uring: one goroutine keeps many reads under
	// way with few system calls. It takes the least processor time. Where the kernel has no
	// io_uring, or a sandbox denies it, Uring becomes Pread.
	Uring Kind = "uring"
	// Pread reads past the page cache with one system call for each read, from as many goroutines
	// as there are reads under way. Where the file system cannot bypass the page cache, Pread and
	// Uring become Buffered.
	Pread Kind = "pread"
	// Buffered is Pread through the page cache. A cached page costs a system call; a page that is
	// not cached blocks only the goroutine that reads it.
	Buffered Kind = "buffered"
	// Mmap reads through the memory map of the file: the fastest way to cached pages. It requests
	// the pages of the next extents ahead (MADV_WILLNEED), since a page fault blocks one of the
	// threads that run Go code.
	Mmap Kind = "mmap"
)

// Kinds are the values for Options.Kind, Auto first.
var Kinds = []Kind{Auto, Uring, Pread, Buffered, Mmap}

// MaxDepth bounds the reads under way. Each may hold a thread, and Go stops at 10,000 threads.
const MaxDepth = 1024

// defaultDepth keeps an NVMe or virtio disk busy; more reads only wait in its queue. With a ring it
// is better that they wait there than for a goroutine that waits for a processor.
const (
	defaultDepth     = 64
	defaultRingDepth = 256
)

const (
	// smallBuffer is the size in bytes of buffers for small reads, which cost the device little
	// more than being asked. Many of them under way pay off: a goroutine that had to wait for a
	// processor then finds many done. With both cores busy, 256 gave twice the reads of 64.
	smallBuffer = 16 << 10
	// maxWide bounds the larger reads under way: 64 × 256 KiB keep any disk busy for milliseconds.
	maxWide = 64
	// maxBatch bounds the reads served before the ring is filled again: some 5 µs of copying rows.
	maxBatch = 16
)

// slotsOf returns the number of small and of wide buffers of Uring at a depth, and the number of
// reads it serves at a time. There is a batch more of slots than of reads under way, so that the
// next reads are submitted before a batch is served. That gives 0.96 of fio's reads, against 0.88.
func slotsOf(depth int) (small, wide, batch int) {
	batch = min(max(1, depth/4), maxBatch)
	return depth + batch, min(depth, maxWide) + batch, batch
}

// BufferBytes returns the most memory that the buffers of a Reader take with Options.Depth of
// depth, whatever its kind.
func BufferBytes(depth int) int64 {
	pool := depth * MaxExtent
	if depth == 0 {
		depth, pool = defaultRingDepth, defaultDepth*MaxExtent
	}
	small, wide, _ := slotsOf(depth)
	return int64(max(wide*MaxExtent+small*smallBuffer, pool))
}

// ReaderBytes returns the most memory that the buffers of a Reader take at a depth, with
// Options.For a file of so many bytes.
func ReaderBytes(file int64, depth int) int64 {
	return min(BufferBytes(depth), max(file, BufferBytes(1)))
}

// DepthWithin returns the largest depth, at least 1, whose buffers fit in so many bytes. It returns
// 0, the default, if the buffers of the default fit.
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

// MaxExtent bounds the extents that Merge makes of several requests. Starting a read costs as much
// as transferring about 14 KB; at 256 KiB that is 5 %, and a buffer for each read under way is
// still small.
const MaxExtent = 256 << 10

// Validate returns an error for an unknown name.
func (k Kind) Validate() error {
	switch k {
	case "", Auto, Uring, Pread, Buffered, Mmap:
		return nil
	}
	return fmt.Errorf("unknown disk engine %q: use auto, uring, pread, buffered or mmap", string(k))
}

// Options configures a Reader. The zero value works, and no option changes the bytes that are lent.
type Options struct {
	// Kind of engine. Default Auto.
	Kind Kind
	// Depth bounds the reads under way, up to MaxDepth. Default: under Uring 256, at most 64 of
	// them larger than 16 KiB; under Pread and Buffered 64; under Mmap one for each thread that
	// runs Go code. By default Uring takes 24 MiB for buffers. Pread and Buffered take up to Depth
	// × MaxExtent.
	Depth int
	// Direct keeps Auto from Mmap and the page cache, for callers whose memory budget includes the
	// page cache.
	Direct bool
	// Probe measures the device in Open, for about 400 ms, if the files have 64 MiB or more. Auto
	// then takes the faster engine, and Merge uses the measured costs.
	Probe bool
	// Costs, if not zero, are the costs that Merge uses, and Probe does nothing. The costs of an
	// earlier Reader give the same extents as it had.
	Costs Costs
	// Faults, for tests and for measurements with a Rate, returns the fault for each read. Default:
	// none.
	Faults Faults

	within int // bound on the depth, set by For; 0: none
}

// For returns o for files of so many bytes in total, bytes still to be written included. The
// buffers then take no more memory than the files have, or than one read needs if that is more.
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
