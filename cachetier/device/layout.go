package device

import (
	"errors"
	"fmt"
	"math"
)

// Layout says where slots and rows lie in the region. Slot s is the s-th from the start. Rows lie at multiples of RowBytes
// from the start, the places of a grid, and row v takes the v-th place from the end of it. So both sides are as well aligned as
// the region and their widths allow.
type Layout struct {
	// Bytes of the region. Any size works: 0, and less than a row, too.
	Bytes int64
	// SlotBytes is the width of the widest embedding. 0: there are none, and features have the region.
	SlotBytes int
	// RowBytes is the width of a feature row. 0: there are none.
	RowBytes int
	// Rows is how many feature rows there are, in the region or not.
	Rows int
}

// Validate reports every field that makes no sense.
func (l Layout) Validate() error {
	var errs []error
	if l.Bytes < 0 {
		errs = append(errs, fmt.Errorf("a region of %d bytes: use 0 for none", l.Bytes))
	}
	if l.SlotBytes < 0 {
		errs = append(errs, fmt.Errorf("embeddings of %d bytes: use 0 for none", l.SlotBytes))
	}
	if l.RowBytes < 0 || l.Rows < 0 {
		errs = append(errs, fmt.Errorf("%d rows of %d bytes: use 0 for none", l.Rows, l.RowBytes))
	}
	if int64(l.Rows) > math.MaxUint32+1 {
		errs = append(errs, fmt.Errorf("%d rows: ids are 32 bits", l.Rows))
	}
	return errors.Join(errs...)
}

// Slots is how many slots fit into a region without rows; at most 2³²-2, since the number of a slot has 32 bits.
func (l Layout) Slots() int {
	if l.SlotBytes == 0 {
		return 0
	}
	return int(min(l.Bytes/int64(l.SlotBytes), math.MaxUint32-1))
}

// Features is how many rows fit beside slots [0, slots). They are the rows [0, Features).
func (l Layout) Features(slots int) int {
	if l.RowBytes == 0 {
		return 0
	}
	row := int64(l.RowBytes)
	covered := (int64(slots)*int64(l.SlotBytes) + row - 1) / row // places of the grid that slots reach into
	return int(min(max(l.grid()-covered, 0), int64(l.Rows)))
}

// SlotOffset is the byte at which slot s starts.
func (l Layout) SlotOffset(s uint32) int64 { return int64(s) * int64(l.SlotBytes) }

// GridRow is the place of row v in the grid, counted from the start of the region, as kernels that gather want it. It is for
// v < Features(0) alone.
func (l Layout) GridRow(v uint32) int64 { return l.grid() - 1 - int64(v) }

// FeatureOffset is the byte at which row v starts. It is for v < Features(0) alone.
func (l Layout) FeatureOffset(v uint32) int64 { return l.GridRow(v) * int64(l.RowBytes) }

// grid is how many places the grid has.
func (l Layout) grid() int64 { return l.Bytes / int64(l.RowBytes) }

// Span is the feature rows [Lo, Hi).
type Span struct{ Lo, Hi int }

// Len is how many there are.
func (s Span) Len() int { return s.Hi - s.Lo }
