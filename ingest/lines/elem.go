package lines

import (
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/store"
)

// EdgeType returns the element of a column of edges whose type a user names: f32, i64, i32 or u8,
// or s, ms, us or ns for dates, which become integers of 64 bits in that unit. The unit of the
// other types is 0.
func EdgeType(name string) (elem store.Elem, unit Unit, ok bool) {
	if unit, ok = Units[name]; ok {
		return store.I64, unit, true
	}
	for _, elem := range []store.Elem{store.F32, store.I64, store.I32, store.U8} {
		if name == elem.String() {
			return elem, 0, true
		}
	}
	return 0, 0, false
}

// Fit returns an error if an element of integers does not hold n.
func Fit(n int64, elem store.Elem) error {
	low, high := int64(math.MinInt64), int64(math.MaxInt64)
	switch elem {
	case store.I32:
		low, high = math.MinInt32, math.MaxInt32
	case store.U8:
		low, high = 0, math.MaxUint8
	}
	if n < low || n > high {
		return fmt.Errorf("%d is not a value of %v, which go from %d to %d; choose another type", n, elem, low, high)
	}
	return nil
}
