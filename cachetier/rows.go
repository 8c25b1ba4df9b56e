package cachetier

import (
	"context"
	"errors"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// Table is what is read: a *store.Features. Rows are numbered across shards, which are listed in ascending order and have,
// but for the last, as many rows each.
type Table interface {
	Rows() int
	RowBytes() int
	Shards() []store.Shard
}

// want is a row and where it goes: its number in the upper half, and in the lower half its place in the destination, counted in
// rows. So sorting wants as numbers puts them in file order.
type want uint64

func newWant(row, place uint32) want { return want(row)<<32 | want(place) }

func (q want) row() uint32 { return uint32(q >> 32) }

// place is where it goes: to the RowBytes bytes at place × RowBytes.
func (q want) place() uint32 { return uint32(q) }

// rowReader reads rows of one table.
type rowReader struct {
	*disk.Reader
	shards   []store.Shard
	rowBytes int
}

func openRows(ctx context.Context, t Table, o disk.Options) (*rowReader, error) {
	if t.RowBytes() < 1 {
		return nil, errors.New("the table has no columns")
	}
	shards := t.Shards()
	files := make([]store.SectionFile, len(shards))
	for i := range shards {
		files[i] = shards[i].SectionFile
	}
	r, err := disk.Open(ctx, files, o)
	return &rowReader{r, shards, t.RowBytes()}, err
}

// request is where a row lies.
func (r *rowReader) request(row uint32) disk.Request {
	i := 0
	if len(r.shards) > 1 {
		i = int(int64(row) / r.shards[0].Rows)
	}
	s := &r.shards[i]
	return disk.Request{File: i, Offset: s.DataOffset + (int64(row)-s.FirstRow)*s.Stride, Size: r.rowBytes}
}

// span is the first and the last row that lie whole in an extent, which is as Merge makes them of requests.
func (r *rowReader) span(s disk.Extent) (first, last uint32) {
	h := &r.shards[s.File]
	from := s.Offset - h.DataOffset
	lo, hi := (from+h.Stride-1)/h.Stride, (from+int64(s.Size-r.rowBytes))/h.Stride
	return uint32(h.FirstRow + lo), uint32(h.FirstRow + min(hi, h.Rows-1))
}

// merge makes extents of wants, which are in ascending order and ask for no row twice.
func (r *rowReader) merge(wants []want) func() (disk.Extent, bool) {
	return r.Merge(len(wants), func(i int) disk.Request { return r.request(wants[i].row()) })
}

// copyTo copies each row wanted to its place in dst, from extents that merge made of wants. After an error the places hold
// anything.
func (r *rowReader) copyTo(dst []byte, wants []want) func(s disk.Extent, b []byte) error {
	return func(s disk.Extent, b []byte) error {
		for _, q := range wants[s.Lo:s.Hi] {
			at, from := int(q.place())*r.rowBytes, r.request(q.row()).Offset-s.Offset
			copy(dst[at:at+r.rowBytes], b[from:from+int64(r.rowBytes)])
		}
		return nil
	}
}

// readRun fills dst with the rows from first on.
func (r *rowReader) readRun(ctx context.Context, dst []byte, first int) (disk.Traffic, error) {
	next := r.Merge(len(dst)/r.rowBytes, func(i int) disk.Request { return r.request(uint32(first + i)) })
	return r.Read(ctx, next, func(s disk.Extent, b []byte) error {
		for i := s.Lo; i < s.Hi; i++ {
			from := r.request(uint32(first+i)).Offset - s.Offset
			copy(dst[i*r.rowBytes:(i+1)*r.rowBytes], b[from:])
		}
		return nil
	})
}
