package cachetier

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Records is a table whose rows steps rewrite: it brings and keeps them itself, wherever the newest
// of each is. Package mutable has one. Its methods may be called at any time; the functions that
// they are given, by several goroutines.
type Records interface {
	Rows() int
	RowBytes() int
	// Read brings n rows, which row gives in ascending order and none twice. It calls put with the
	// place of each among them and its bytes, several at once; the bytes are lent until put
	// returns. The end of ctx is an error.
	Read(ctx context.Context, n int, row func(i int) uint32, put func(i int, b []byte)) (disk.Traffic, error)
	// Takes is what such a Read is counted as now, without reading.
	Takes(n int, row func(i int) uint32) disk.Traffic
	// Write replaces n rows, which row gives in ascending order and none twice. After an error any
	// of them may be replaced.
	Write(n int, row func(i int) (v uint32, b []byte)) error

	// Kind, Why, Live and Costs are those of the disk.Reader that reads.
	Kind() disk.Kind
	Why() string
	Live() disk.Live
	Costs() disk.Costs
}

// recordReader is Records as a source.
type recordReader struct{ Records }

func (r recordReader) run(ctx context.Context, dst []byte, first int) (disk.Traffic, error) {
	size := r.RowBytes()
	return r.Read(ctx, len(dst)/size, func(i int) uint32 { return uint32(first + i) }, func(i int, b []byte) {
		copy(dst[i*size:(i+1)*size], b)
	})
}

func (r recordReader) wanted(ctx context.Context, dst []byte, wants []want) (disk.Traffic, error) {
	size := r.RowBytes()
	return r.Read(ctx, len(wants), func(i int) uint32 { return wants[i].row() }, func(i int, b []byte) {
		at := int(wants[i].place()) * size
		copy(dst[at:at+size], b)
	})
}

func (r recordReader) fresh(ctx context.Context, list func() []uint32, hot uint32, x *policy.Index, slots []byte) (total disk.Traffic, _ error) {
	size := r.RowBytes()
	for rows := list(); len(rows) > 0; rows = list() {
		t, err := r.Read(ctx, len(rows), func(i int) uint32 { return rows[i] + hot }, func(i int, b []byte) {
			slot, ok := x.Slot(rows[i])
			if !ok {
				panic("cachetier: a new row has no slot")
			}
			copy(slots[int(slot)*size:(int(slot)+1)*size], b)
		})
		if err != nil {
			return total, err
		}
		total.Add(t)
	}
	return total, nil
}

func (r recordReader) takes(list func() []uint32, hot uint32) (total disk.Traffic) {
	for rows := list(); len(rows) > 0; rows = list() {
		total.Add(r.Takes(len(rows), func(i int) uint32 { return rows[i] + hot }))
	}
	return total
}

// Close does nothing: Records are the caller's.
func (r recordReader) Close() {}
