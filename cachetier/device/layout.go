package device

import (
	"errors"
	"fmt"
	"math"
)

// Layout says where slots and rows lie in the region. Slots count from its start. Rows lie on the grid of RowBytes,
// which also counts from the start, so that both sides are as well aligned as the region and their widths: row v is the
// v-th from the end of the grid.
type Layout struct {
	// Bytes of the region. Any size works, down to 0 and to less than a row.
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

// Slots is how many slots fit if they have the region to themselves; at most 2³²-2, since a slot is 32 bits.
func (l Layout) Slots() int {
	if l.SlotBytes == 0 {
		return 0
	}
	return int(min(l.Bytes/int64(l.SlotBytes), math.MaxUint32-1))
}

// Features is how many rows are left beside slots [0, slots): the rows [0, Features).
func (l Layout) Features(slots int) int {
	if l.RowBytes == 0 {
		return 0
	}
	row := int64(l.RowBytes)
	covered := (int64(slots)*int64(l.SlotBytes) + row - 1) / row // rows of the grid that slots reach into
	return int(min(max(l.grid()-covered, 0), int64(l.Rows)))
}

// SlotOffset is the byte at which slot s starts.
func (l Layout) SlotOffset(s uint32) int64 { return int64(s) * int64(l.SlotBytes) }

// GridRow is where row v lies when the region is seen as packed rows of RowBytes, as kernels that gather see it. Only
// for v < Features(0).
func (l Layout) GridRow(v uint32) int64 { return l.grid() - 1 - int64(v) }

// FeatureOffset is the byte at which row v starts. Only for v < Features(0).
func (l Layout) FeatureOffset(v uint32) int64 { return l.GridRow(v) * int64(l.RowBytes) }

// grid is how many rows of RowBytes fit.
func (l Layout) grid() int64 { return l.Bytes / int64(l.RowBytes) }

// Span is the feature rows [Lo, Hi).
type Span struct{ Lo, Hi int }

// Len is how many there are.
func (s Span) Len() int { return s.Hi - s.Lo }
