package build

import (
	"cmp"
	"fmt"
	"runtime"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
)

const (
	// baseBytes is the memory of every ingest, whatever it reads: the program, the source's chunks
	// and inflaters, a section's buffers.
	baseBytes = 64 << 20
	// workBytes is the least that passes can work in.
	workBytes = 64 << 20
	// defaultMemory is the default of Options.Memory.
	defaultMemory = 1 << 30
	// maxWorkers bounds the goroutines of a pass: beyond, they wait for the disk.
	maxWorkers = 8
)

// LeastMemory is the least Options.Memory that works for any graph; every node adds to it.
const LeastMemory = baseBytes + workBytes

// workers is the number of goroutines of a pass.
func workers() int { return min(runtime.GOMAXPROCS(0), maxWorkers) }

// hold is memory that grows with the number of nodes, and is counted.
func (b *builder) hold(bytes int64) (*kernels.HostBuf, error) {
	if b.held+bytes+LeastMemory > b.Memory {
		return nil, b.tooLittle(b.held + bytes + LeastMemory)
	}
	buf, err := kernels.NewHostBuf(int(bytes))
	if err == nil {
		b.held += bytes
		b.mostHeld = max(b.mostHeld, b.held)
	}
	return buf, err
}

// release ends a hold and sets *buf to nil. If *buf is nil, it does nothing.
func (b *builder) release(buf **kernels.HostBuf) {
	if *buf != nil {
		b.held -= int64(len((*buf).Bytes()))
		(*buf).Close()
		*buf = nil
	}
}

func (b *builder) tooLittle(need int64) error { return &memoryError{b.Memory, need} }

// memoryError reports that memory is too small. Passes that are done stay, and a Build with more
// memory goes on after them.
type memoryError struct{ have, need int64 }

func (e *memoryError) Error() string {
	const unit = 1 << 20
	return fmt.Sprintf("{memory} %d MiB is too little for this graph: it needs at least %d MiB, most of it a few bytes for each of its nodes",
		e.have/unit, (e.need+unit-1)/unit)
}

// checkMemory refuses a budget that is too small for the nodes that are declared.
func (b *builder) checkMemory() error {
	if need := b.forecast().LeastMemory; need > b.Memory {
		return b.tooLittle(need)
	}
	return nil
}

// hooks let tests have on ten edges what else takes ten million: buckets that do not fit, placers
// that spill, dictionaries of many parts, runs of texts; and a journal after every pass. Zero is
// the real thing.
type hooks struct {
	records, lists int64 // that a sorter has room for
	buckets        int   // of edges
	placed         int64 // bytes that a placer has room for
	parts          int   // of a dictionary
	texts          int64 // bytes of texts that are sorted at a time, or held
	packed         int   // bytes of a bucket that shares a file
	block          int   // the most bytes of a block that extsort writes
	shares         int   // small relations between two types that share sections
	means          int64 // bytes that sums and rows of means have room for
	aggregates     int64 // nodes whose aggregates are computed at a time
	journal        bool  // a journal after every pass
	done           func(pass string)
}

// forTexts is the memory that texts take while they are sorted, or held.
func (b *builder) forTexts() int64 { return cmp.Or(b.test.texts, b.room()/3) }

// forPlacer is memory, for rows that are placed; an error when that is too little.
func (b *builder) forPlacer(rows int64, width int, memory int64) (int64, error) {
	if least := extsort.PlacerMemory(rows, width); memory < least {
		return 0, b.tooLittle(b.Memory - memory + least)
	}
	return cmp.Or(b.test.placed, memory), nil
}

// room returns the bytes that a pass may take now, or each half of it where it sorts and parts at
// once.
func (b *builder) room() int64 {
	room := max(b.Memory-baseBytes-b.held, workBytes)
	if b.halved {
		room /= 2
	}
	return room
}

// sorting divides the room of a pass that sorts edges.
type sorting struct {
	workers        int
	records, lists int64 // that fit in a bucket, which one worker sorts
}

func (b *builder) sorting(width, inputs int) sorting {
	s := sorting{workers: workers()}
	each := b.room()/int64(s.workers) - extsort.SorterBytes(0, 0, width, inputs)
	perRecord := (extsort.SorterBytes(1<<20, 0, width, 1) - extsort.SorterBytes(0, 0, width, 1)) >> 20
	if perRecord += 4; width > 8 { // of a combiner
		perRecord += int64(width)
	}
	s.records = cmp.Or(b.test.records, min(each/4*3/perRecord, 1<<31)) // places within a bucket are 32 bits
	s.lists = cmp.Or(b.test.lists, each/4/int64(4*inputs))
	return s
}

// fit makes room for the largest buckets there are and not for more.
func (s *sorting) fit(given, reverse []extsort.Bucket, width int, ranges *extsort.Ranges) {
	records, lists := int64(0), int64(0)
	for i, b := range given {
		n := b.Bytes
		if reverse != nil {
			n += reverse[i].Bytes
		}
		lo, end := ranges.Bounds(i)
		records, lists = max(records, n/int64(width)), max(lists, int64(end-lo))
	}
	s.records, s.lists = max(1, min(s.records, records)), max(1, min(s.lists, lists))
}

// spread returns how many buckets of edges to make, so that each fits a sorter, and the size of the
// blocks to write them by. edges is -1 when nobody knows. inputs buckets are sorted together.
func (b *builder) spread(edges, lists int64, width, inputs int) (buckets, block int) {
	s := b.sorting(width, inputs)
	if edges < 0 {
		edges = unknownEdges
	}
	// A little more, since ranges of nodes do not hold equally many.
	buckets = int(max(edges*int64(inputs)/(min(s.records*2/3, bucketEdges)+1), lists/(s.lists+1)) + 1)
	room := b.room() / 4 * 3
	for block = extsort.MaxBlock; block > extsort.MinBlock && extsort.WriterBytes(buckets, block)*int64(inputs) > room; {
		block /= 2
	}
	if edges < fewEdges {
		block = minPartBlock
	}
	most := int(room/int64(inputs)/int64(block)) - 8
	return cmp.Or(b.test.buckets, max(1, min(buckets, most, maxBuckets))), block
}

const (
	unknownEdges = 1 << 28
	// bucketEdges are as many as sort in a second-level cache and a half; with more, sorting waits
	// for memory, and too few buckets leave workers idle.
	bucketEdges = 1 << 21
	// fewEdges do not need large blocks.
	fewEdges = 1 << 15
	// maxBuckets keeps an Appender's staging in the cache, and files few; beyond, buckets are
	// parted again.
	maxBuckets = 1024
)
