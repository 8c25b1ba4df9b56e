package npy

import (
	"fmt"
	"math"
)

// ReadClasses is like ReadInt64s for labels: the number of a class, and -1 where it is missing,
// which is NaN or anything negative. Fractions and numbers past int32 are errors that name the
// element.
func (r *Reader) ReadClasses(dst []int32) (int, error) {
	t := r.header.Type
	switch t.Kind {
	case Unicode, Bytes:
		return 0, r.notNumbers()
	case Float:
		return readAll(r, dst, func(dst []int32, raw []byte) error {
			wide := grow(&r.wide, len(dst))
			decode(wide, raw, t)
			for i, v := range wide {
				switch {
				case math.IsNaN(v) || v < 0 && v == math.Trunc(v):
					dst[i] = -1
				case v > math.MaxInt32 || v != math.Trunc(v):
					return fmt.Errorf("element %d is %v, not the number of a class", r.next+int64(i), v)
				default:
					dst[i] = int32(v)
				}
			}
			return nil
		})
	default:
		return readAll(r, dst, func(dst []int32, raw []byte) error {
			whole := grow(&r.whole, len(dst))
			decode(whole, raw, t)
			for i, v := range whole {
				if v > math.MaxInt32 || v < 0 && t.Kind == Uint {
					return fmt.Errorf("element %d is not the number of a class", r.next+int64(i))
				}
				dst[i] = int32(max(v, -1))
			}
			return nil
		})
	}
}

// grow returns n elements of a buffer that is kept.
func grow[T any](buf *[]T, n int) []T {
	if len(*buf) < n {
		*buf = make([]T, n)
	}
	return (*buf)[:n]
}
