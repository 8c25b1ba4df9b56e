package lines

import (
	"math"
	"strconv"
)

// Integer reads what Python writes for one: 3, -3, and 3.0 or 1e+06 where it came from a float. A
// float is an integer below 2⁵³ only: beyond, it has lost the ones.
func Integer(cell []byte) (int64, bool) {
	if v, err := strconv.ParseInt(string(cell), 10, 64); err == nil {
		return v, true
	}
	v, err := Float(cell, 64)
	if err != nil {
		return 0, false
	}
	return Whole(v)
}

// Whole returns a float as an integer, if it is one below 2⁵³. Beyond that a float may stand for
// its neighbours too.
func Whole(v float64) (int64, bool) {
	if v != math.Trunc(v) || math.Abs(v) >= 1<<53 {
		return 0, false
	}
	return int64(v), true
}
