package cachetier

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
)

// Table is the table to read: a *store.Features. Rows are numbered across shards. Shards are listed
// in ascending order, and all but the last have the same number of rows.
type Table interface {
	Rows() int
	RowBytes() int
	Shards() []store.Shard
}

// want is a row and where it goes. The upper half is the row's number, and the lower half its place
// in the destination, counted in rows. So sorting wants as numbers puts them in file order.
type want uint64

func newWant(row, place uint32) want { return want(row)<<32 | want(place) }

func (q want) row() uint32 { return uint32(q >> 32) }

// place returns where the row goes: to the RowBytes bytes at place × RowBytes.
func (q want) place() uint32 { return uint32(q) }

// source reads rows from disk: a rowReader for a Table, a recordReader for Records.
type source interface {
	// run fills dst with the rows from first on.
	run(ctx context.Context, dst []byte, first int) (disk.Traffic, error)
	// wanted reads the row of each want to its place in dst. wants are ascending and ask for no row
	// twice. After an error those places are undefined.
	wanted(ctx context.Context, dst []byte, wants []want) (disk.Traffic, error)
	// fresh reads new rows of x into their slots. list returns them, ascending and some at a time,
	// until it returns none. They are numbered from hot.
	fresh(ctx context.Context, list func() []uint32, hot uint32, x *policy.Index, slots []byte) (disk.Traffic, error)
	// takes returns what reading such rows would count, without reading them.
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

// request returns where a row lies.
func (r *rowReader) request(row uint32) disk.Request {
	i := 0
	if len(r.shards) > 1 {
		i = int(int64(row) / r.shards[0].Rows)
	}
	s := &r.shards[i]
	return disk.Request{File: i, Offset: s.DataOffset + (int64(row)-s.FirstRow)*s.Stride, Size: r.rowBytes}
}

// span returns the first and the last row that lie whole in an extent that Merge made of requests
// for rows.
func (r *rowReader) span(s disk.Extent) (first, last uint32) {
	h := &r.shards[s.File]
	from := s.Offset - h.DataOffset
	lo, hi := (from+h.Stride-1)/h.Stride, (from+int64(s.Size-r.rowBytes))/h.Stride
	return uint32(h.FirstRow + lo), uint32(h.FirstRow + min(hi, h.Rows-1))
}

// wanted copies rows from the extents that Merge makes of wants.
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

// run copies consecutive rows.
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

// fresh copies rows from extents. When an extent arrives, the list of its rows may be gone, so they
// are looked up again.
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

// extents returns a function that lists the extents of the rows from list, one list after another.
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
