package cachetier

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
)

// Table is what is read: a *store.Features. Rows are numbered across shards, which are listed in
// ascending order and have, but for the last, as many rows each.
type Table interface {
	Rows() int
	RowBytes() int
	Shards() []store.Shard
}

// want is a row and where it goes: its number in the upper half, and in the lower half its place in
// the destination, counted in rows. So sorting wants as numbers puts them in file order.
type want uint64

func newWant(row, place uint32) want { return want(row)<<32 | want(place) }

func (q want) row() uint32 { return uint32(q >> 32) }

// place is where it goes: to the RowBytes bytes at place × RowBytes.
func (q want) place() uint32 { return uint32(q) }

// source brings rows from disk: of a Table a rowReader, of Records a recordReader.
type source interface {
	// run fills dst with the rows from first on.
	run(ctx context.Context, dst []byte, first int) (disk.Traffic, error)
	// wanted brings the row of each of wants, which are in ascending order and ask for no row
	// twice, to its place in dst. After an error the places hold anything.
	wanted(ctx context.Context, dst []byte, wants []want) (disk.Traffic, error)
	// fresh brings new rows of x to their slots. list gives them, ascending and some at a time,
	// until it gives none; they are counted from hot.
	fresh(ctx context.Context, list func() []uint32, hot uint32, x *policy.Index, slots []byte) (disk.Traffic, error)
	// takes is what bringing such rows is counted as, without reading them.
	takes(list func() []uint32, hot uint32) disk.Traffic

	Kind() disk.Kind
	Why() string
	Live() disk.Live
	Costs() disk.Costs
	Close()
}

// rowReader reads rows of one table.
type rowReader struct {
	*disk.Reader
	shards   []store.Shard
	rowBytes int
}

func openRows(ctx context.Context, t Table, o disk.Options) (*rowReader, error) {
	shards := t.Shards()
	files := make([]store.SectionFile, len(shards))
	for i := range shards {
		files[i] = shards[i].SectionFile
	}
	r, err := disk.Open(ctx, files, o.For(disk.Size(files)))
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

// span is the first and the last row that lie whole in an extent, which is as Merge makes them of
// requests.
func (r *rowReader) span(s disk.Extent) (first, last uint32) {
	h := &r.shards[s.File]
	from := s.Offset - h.DataOffset
	lo, hi := (from+h.Stride-1)/h.Stride, (from+int64(s.Size-r.rowBytes))/h.Stride
	return uint32(h.FirstRow + lo), uint32(h.FirstRow + min(hi, h.Rows-1))
}

// wanted copies rows from extents that it makes of wants.
func (r *rowReader) wanted(ctx context.Context, dst []byte, wants []want) (disk.Traffic, error) {
	next := r.Merge(len(wants), func(i int) disk.Request { return r.request(wants[i].row()) })
	return r.Read(ctx, next, func(s disk.Extent, b []byte) error {
		for _, q := range wants[s.Lo:s.Hi] {
			at, from := int(q.place())*r.rowBytes, r.request(q.row()).Offset-s.Offset
			copy(dst[at:at+r.rowBytes], b[from:from+int64(r.rowBytes)])
		}
		return nil
	})
}

// run copies rows that follow each other.
func (r *rowReader) run(ctx context.Context, dst []byte, first int) (disk.Traffic, error) {
	next := r.Merge(len(dst)/r.rowBytes, func(i int) disk.Request { return r.request(uint32(first + i)) })
	return r.Read(ctx, next, func(s disk.Extent, b []byte) error {
		for i := s.Lo; i < s.Hi; i++ {
			from := r.request(uint32(first+i)).Offset - s.Offset
			copy(dst[i*r.rowBytes:(i+1)*r.rowBytes], b[from:])
		}
		return nil
	})
}

// fresh copies rows from extents. By the time that one is there its list may be gone, so its rows
// are found anew.
func (r *rowReader) fresh(ctx context.Context, list func() []uint32, hot uint32, x *policy.Index, slots []byte) (disk.Traffic, error) {
	size := r.rowBytes
	return r.Read(ctx, r.extents(list, hot), func(t disk.Extent, b []byte) error {
		first, last := r.span(t)
		x.EachNew(first-hot, last-hot, func(v, slot uint32) {
			from := int(r.request(v+hot).Offset - t.Offset)
			copy(slots[int(slot)*size:(int(slot)+1)*size], b[from:])
		})
		return nil
	})
}

// extents are those of the rows that list gives, list after list.
func (r *rowReader) extents(list func() []uint32, hot uint32) func() (disk.Extent, bool) {
	var next func() (disk.Extent, bool)
	return func() (disk.Extent, bool) {
		for {
			if next != nil {
				if t, ok := next(); ok {
					return t, true
				}
			}
			rows := list()
			if len(rows) == 0 {
				return disk.Extent{}, false
			}
			next = r.Merge(len(rows), func(i int) disk.Request { return r.request(rows[i] + hot) })
		}
	}
}

func (r *rowReader) takes(list func() []uint32, hot uint32) (t disk.Traffic) {
	next := r.extents(list, hot)
	for extent, ok := next(); ok; extent, ok = next() {
		t.Add(r.Takes(extent))
	}
	return t
}
