package disk

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
)

const (
	// probeBytes is the least size of files worth measuring: less is read in a moment whatever it
	// costs, and may lie in the memory of the device.
	probeBytes = 64 << 20
	// probeSize is the size of a small read: a page, the least that most devices read.
	probeSize = 4 << 10
	// probeTime is the time for small reads, for each engine: 4,000 reads of a virtual disk.
	probeTime = 40 * time.Millisecond
	// probeSequence is the time for large reads, some 500 MB. Cloud disks give a burst at first:
	// here 100 MB at 1.7 times the rate that they sustain.
	probeSequence = 300 * time.Millisecond
	// probeMargin is the factor by which Pread must be faster: Uring takes a third of its processor
	// time.
	probeMargin = 1.1
)

// measure returns the costs that the Reader uses: the ones given, or measured ones, or Assumed.
// Under Auto it may change the engine on the way.
func (op *opening) measure(ctx context.Context) (Costs, error) {
	switch {
	case op.Costs != (Costs{}):
		return op.Costs, nil
	case !op.Probe:
		return Assumed, nil
	case op.size < probeBytes:
		op.note("%s are too little to measure the device by", kernels.FormatBytes(op.size))
		return Assumed, nil
	}
	e, kind := op.engine, op.kind
	if kind != Uring && kind != Pread {
		// Measure past the page cache: a read that misses it costs what the device takes.
		src, err := direct(op.files)
		if err != nil {
			op.note("the device cannot be measured (%v)", err)
			return Assumed, nil
		}
		if e, _, err = openRing(op.with(src), defaultRingDepth); err == nil {
			kind = Uring
		} else {
			e, kind = op.pool(src, true), Pread
		}
		defer e.close()
	}
	small, err := op.randomReads(ctx, e)
	if err != nil {
		return Costs{}, err
	}
	beside := ""
	if u, ok := op.engine.(ring); ok && op.auto() {
		p := op.pool(u.opened(), false)
		other, err := op.randomReads(ctx, p)
		if err != nil {
			p.close()
			return Costs{}, err
		}
		if other > probeMargin*small {
			u.discard()
			p.owns = true
			op.engine, op.kind = p, Pread
			e, kind, small, other = p, Pread, other, small
			beside = fmt.Sprintf(" (%s %s)", Uring, thousands(other))
		} else {
			p.close()
			beside = fmt.Sprintf(" (%s %s)", Pread, thousands(other))
		}
	}
	large, err := op.sequence(ctx, e)
	if err != nil {
		return Costs{}, err
	}
	op.note("by %s the device gives %s reads of %d bytes a second%s and %.2f GB/s in sequence", kind, thousands(small), probeSize, beside, large/1e9)
	return Costs{SecondsPerRead: max(1/small-probeSize/large, 1e-7), BytesPerSecond: large}, nil
}

// ring is an engine that can be given up while its files stay open.
type ring interface {
	opened() source
	discard()
}

// anywhere returns a function that returns a random page of the files, each as likely as any other.
// Every probe gets other pages, since the device, or the host of a virtual one, may still have the
// last probe's pages in memory.
func (op *opening) anywhere() func() (file int, offset int64) {
	ends := make([]int64, len(op.files)) // of each file, in pages, with the files laid end to end
	var all int64
	for i, f := range op.files {
		all += f.Size / probeSize
		ends[i] = all
	}
	return func() (int, int64) {
		at := rand.Int64N(all)
		i, _ := slices.BinarySearch(ends, at+1)
		return i, (op.files[i].Size/probeSize - (ends[i] - at)) * probeSize
	}
}

// randomReads returns how many small reads a second e does, all over the files.
func (op *opening) randomReads(ctx context.Context, e engine) (float64, error) {
	anywhere, n := op.anywhere(), 0
	seconds, err := op.timed(ctx, e, probeTime, func() Extent {
		n++
		file, at := anywhere()
		return Extent{File: file, Offset: at, Size: probeSize}
	})
	return float64(n) / seconds, err
}

// sequence returns how many bytes a second e reads in sequence, from a random place on.
func (op *opening) sequence(ctx context.Context, e engine) (float64, error) {
	file, at := op.anywhere()()
	var sum int64
	seconds, err := op.timed(ctx, e, probeSequence, func() Extent {
		for at == op.files[file].Size { // ends: not all files are empty
			file, at = (file+1)%len(op.files), 0
		}
		s := Extent{File: file, Offset: at, Size: int(min(MaxExtent, op.files[file].Size-at))}
		at += int64(s.Size)
		sum += int64(s.Size)
		return s
	})
	return float64(sum) / seconds, err
}

// timed lets e read what next returns for that long, at least once, and returns the seconds until
// the last read ended. The end of ctx is an error.
func (op *opening) timed(ctx context.Context, e engine, long time.Duration, next func() Extent) (seconds float64, err error) {
	began, begun := time.Now(), false // begun: e may take all of long to get ready
	err = e.read(func() (Extent, bool) {
		if begun && time.Since(began) > long || ctx.Err() != nil {
			return Extent{}, false
		}
		begun = true
		return next(), true
	}, func(Extent, []byte) error { return nil })
	return time.Since(began).Seconds(), cmp.Or(err, ctx.Err())
}

// thousands formats n in hundreds from 1,000 on, such as 81,500, and in millions as 1.23 M.
func thousands(n float64) string {
	k := int64(n/100+0.5) * 100
	switch {
	case n < 1000:
		return fmt.Sprint(int64(n))
	case k < 1e6:
		return fmt.Sprintf("%d,%03d", k/1000, k%1000)
	}
	return fmt.Sprintf("%.2f M", n/1e6)
}
