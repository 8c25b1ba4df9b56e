package temporal

import (
	"context"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// lists reads what those who ask in some steps want of the file of half-edges: in its order, what
// overlaps once.
type lists struct {
	reader *disk.Reader
	wants  []want
	ends   []uint32 // by asker: where its wants end
	order  []uint64 // of wants: lo in the upper 33 bits, and the number of the want
	reads  []portion
	near   []store.HalfEdge // what was read
	starts []int            // by step: its first asker

	wanted   int64 // half-edges
	repeated int   // wants that overlap with an earlier one
}

// want is half-edges lo to lo+n-1 of the file; at is where they lie in near.
type want struct {
	lo    uint64
	n, at uint32
}

// portion is a want of the disk: portions do not overlap.
type portion want

const (
	orderBits = 31 // of a want's number; half-edges are numbered in 33
	mostWants = 1 << orderBits
	// mostNear is the largest number of half-edges in one read.
	mostNear = disk.MaxExtent / store.HalfEdgeBytes
)

func (l *lists) begin() {
	l.wants, l.ends, l.wanted = l.wants[:0], l.ends[:0], 0
}

func (l *lists) want(lo uint64, n uint32) {
	l.wanted += int64(n)
	if len(l.wants) == mostWants || l.wanted > math.MaxUint32 {
		panic("temporal: Draw: more pieces of lists than can be numbered; draw fewer steps together")
	}
	l.wants = append(l.wants, want{lo: lo, n: n})
}

// merge makes portions of wants.
func (l *lists) merge() {
	l.order, l.reads, l.repeated = l.order[:0], l.reads[:0], 0
	for i := range l.wants {
		l.order = append(l.order, l.wants[i].lo<<orderBits|uint64(i))
	}
	slices.Sort(l.order)
	var lo, hi uint64 // the union of wants that overlap or touch
	at := uint32(0)   // of lo, in near
	for i, o := range l.order {
		w := &l.wants[o&(mostWants-1)]
		switch {
		case i == 0 || w.lo > hi:
			at = l.cut(lo, hi, at)
			lo, hi = w.lo, w.lo
		case w.lo < hi:
			l.repeated++
		}
		w.at = at + uint32(w.lo-lo)
		hi = max(hi, w.lo+uint64(w.n))
	}
	l.near = slices.Grow(l.near[:0], int(l.cut(lo, hi, at)))
	l.near = l.near[:cap(l.near)]
}

// cut makes portions of half-edges lo to hi-1, which come to lie at at. All but the last end with a
// page of the file.
func (l *lists) cut(lo, hi uint64, at uint32) (end uint32) {
	for lo < hi {
		n := uint32(min(hi-lo, mostNear-lo%mostNear))
		l.reads = append(l.reads, portion{lo, n, at})
		lo, at = lo+uint64(n), at+n
	}
	return at
}

func (p portion) offset() int64 { return store.PageSize + store.HalfEdgeBytes*int64(p.lo) }

// read reads what is wanted.
func (l *lists) read(ctx context.Context) (disk.Traffic, error) {
	l.merge()
	if len(l.reads) == 0 {
		return disk.Traffic{}, nil
	}
	next := l.reader.Merge(len(l.reads), func(i int) disk.Request {
		return disk.Request{Offset: l.reads[i].offset(), Size: store.HalfEdgeBytes * int(l.reads[i].n)}
	})
	return l.reader.Read(ctx, next, func(x disk.Extent, b []byte) error {
		for _, p := range l.reads[x.Lo:x.Hi] {
			store.CopyHalfEdges(l.near[p.at:p.at+p.n], b[p.offset()-x.Offset:])
		}
		return nil
	})
}

// of are the wants of an asker.
func (l *lists) of(asker int) []want {
	from := uint32(0)
	if asker > 0 {
		from = l.ends[asker-1]
	}
	return l.wants[from:l.ends[asker]]
}

func (l *lists) bytes() int64 {
	return 16*int64(cap(l.wants)+cap(l.reads)) + 4*int64(cap(l.ends)) + 8*int64(cap(l.order)+cap(l.starts)) + store.HalfEdgeBytes*int64(cap(l.near))
}
