package cachetier

import (
	"context"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
)

// Records is a table whose rows are rewritten by steps. It keeps the rows itself and knows where
// the newest version of each is. Package mutable implements it. Its methods may be called at any
// time, and may call the functions that they are given from several goroutines.
type Records interface {
	Rows() int
	RowBytes() int
	// Read reads n rows; row returns their numbers, ascending and none twice. It calls put with the
	// index of each and its bytes, several at once; the bytes are lent until put returns. It fails
	// if ctx ends.
	Read(ctx context.Context, n int, row func(i int) uint32, put func(i int, b []byte)) (disk.Traffic, error)
	// Takes returns what such a Read would count now, without reading.
	Takes(n int, row func(i int) uint32) disk.Traffic
	// Write replaces n rows; row returns their numbers, ascending and none twice, and their bytes.
	// After an error any of them may have been replaced.
	Write(n int, row func(i int) (v uint32, b []byte)) error

	// Kind, Why, Live and Costs describe the disk.Reader that reads.
	Kind() disk.Kind
	Why() string
	Live() disk.Live
	Costs() disk.Costs
}

// recordReader makes Records a source.
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
