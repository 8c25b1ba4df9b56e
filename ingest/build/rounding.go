package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"sync"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/kernels"
)

// float16 keeps 11 bits of a value whose magnitude is 2⁻¹⁴ to 65504: real features round by at most
// a part in 2048, as half precision always does. Values that round by more, or should not round at
// all, are counted by column and refused:
//
//   - a value beyond 65504, which is infinite;
//   - a whole number beyond 2048 that changes, in a column where most values beyond 2048 are whole: a count, a year, an id;
//   - a value below 2⁻¹⁴ that changes by more than 1 %, perhaps to 0, where it matters: no value of its column reaches 2⁻¹⁴, or
//     more than half of the column's rows change so. Other tiny values lie beside some that are far larger, and what they lose
//     is less than what those lose; they are counted only.

const (
	halfInf    = 0x7c00
	halfMax    = 0x7bff    // 65504
	halfLeast  = 0x1p-14   // the least magnitude with all bits
	halfWhole  = 1 << 11   // whole numbers up to it are exact
	tinyChange = 1.0 / 100 // relative, by which a tiny value may change
)

// rounding counts what a table loses to float16.
type rounding struct {
	mu      sync.Mutex
	columns map[int]*columnRounding
	lossy   bool  // what is lost is counted and never refused
	small   []int // columns without a value of halfLeast or more so far
	beyond  loss  // values past 65504
}

// columnRounding counts the values of one column that are out of the ordinary.
type columnRounding struct {
	tiny              loss
	rounded           loss  // whole numbers
	wholes, fractions int64 // of the values beyond 2048
}

// loss is a number of values, and the first of them in the table.
type loss struct {
	n, at int64
	text  string
}

// add counts a value, number at of the table.
func (l *loss) add(at int64, text func() string) {
	if l.n++; l.n == 1 || at < l.at {
		l.at, l.text = at, text()
	}
}

// join counts what another counted.
func (l *loss) join(m loss) {
	if m.n > 0 && (l.n == 0 || m.at < l.at) {
		l.at, l.text = m.at, m.text
	}
	l.n += m.n
}

func (r *rounding) begin(dim int) {
	r.columns, r.small = map[int]*columnRounding{}, make([]int, dim)
	for c := range r.small {
		r.small[c] = c
	}
}

// see looks for values of halfLeast or more in the columns that have shown none: whole rows.
func (r *rounding) see(values []float32, dim int) {
	for row := values; len(row) > 0 && len(r.small) > 0; row = row[dim:] {
		left := r.small[:0]
		for _, c := range r.small {
			if x := row[c]; x < halfLeast && x > -halfLeast {
				left = append(left, c)
			}
		}
		r.small = left
	}
}

// convertPiece is the number of values that one goroutine converts at a time.
const convertPiece = 1 << 14

// convert fills out with the elements of values, rows from p on.
func (w *tableWriter) convert(p ingest.Place, values []float32, out []byte) error {
	size := w.b.elem().Size()
	if w.b.Normalize == NormalizeRow && w.spec.Relation == "" && !w.rep.Made {
		values = w.normalized(values)
	}
	w.see(values, w.spec.Dim)
	var failed error
	failedAt := len(values)
	_ = parallel(context.Background(), len(values), convertPiece, func(lo, hi int) {
		if err := w.convertValues(p, lo, values[lo:hi], out[lo*size:hi*size]); err != nil {
			w.mu.Lock()
			defer w.mu.Unlock()
			if lo < failedAt {
				failed, failedAt = err, lo
			}
		}
	})
	return failed
}

// normalized returns rows whose magnitudes sum to 1; rows of zeros, and those that convert refuses,
// are as they were. The sum is taken in float64 from the first column to the last, so it is the
// same everywhere.
func (w *tableWriter) normalized(values []float32) []float32 {
	dim := w.spec.Dim
	if cap(w.scaled) < len(values) {
		w.scaled = make([]float32, len(values))
	}
	scaled := w.scaled[:len(values)]
	_ = parallel(context.Background(), len(values)/dim, max(1, convertPiece/dim), func(lo, hi int) {
		for row := lo * dim; row < hi*dim; row += dim {
			from, to, sum := values[row:row+dim], scaled[row:row+dim], 0.0
			for _, x := range from {
				sum += math.Abs(float64(x))
			}
			if sum == 0 || sum-sum != 0 {
				sum = 1
			}
			for c, x := range from {
				to[c] = float32(float64(x) / sum)
			}
		}
	})
	return scaled
}

// convertValues fills out from values, which begin at value at of a chunk. Those beyond float16
// become its largest.
func (w *tableWriter) convertValues(p ingest.Place, at int, values []float32, out []byte) error {
	if w.b.DType == F32 {
		if err := checkFinite(p, at, w.spec.Dim, values); err != nil {
			return err
		}
		for k, x := range values {
			binary.LittleEndian.PutUint32(out[4*k:], math.Float32bits(x))
		}
		return nil
	}
	var half [1024]uint16
	for done := 0; done < len(values); done += len(half) {
		part := values[done:min(done+len(half), len(values))]
		halves := half[:len(part)]
		kernels.Float32ToHalf(halves, part)
		if !packHalves(out[2*done:], halves) && !ordinary(part) {
			if err := checkFinite(p, at+done, w.spec.Dim, part); err != nil {
				return err
			}
			w.account(p, at+done, part, halves)
			packHalves(out[2*done:], halves)
		}
	}
	return nil
}

// ordinary reports whether all values are 0 or of a magnitude from halfLeast to halfWhole.
func ordinary(values []float32) bool {
	const least, most = 0x38800000, 0x45000000 // their bits
	odd := int32(0)
	for _, x := range values {
		u := int32(math.Float32bits(x) & 0x7fffffff)
		odd |= (u-least)&-u | (most - u) // negative when 0 < u < least, or u > most
	}
	return odd >= 0
}

// account counts what values lose as halves. Infinite halves become the largest finite ones.
func (w *tableWriter) account(p ingest.Place, at int, values []float32, halves []uint16) {
	dim := w.spec.Dim
	var back [1024]float32
	kernels.HalfToFloat32(back[:len(halves)], halves)
	w.mu.Lock()
	defer w.mu.Unlock()
	for k, x := range values {
		size := max(x, -x)
		if x == 0 || size >= halfLeast && size <= halfWhole {
			continue
		}
		row, col := p.First+int64((at+k)/dim), (at+k)%dim
		number := row*int64(dim) + int64(col)
		text := func() string {
			return fmt.Sprintf("%s: row %d, column %d (counting from 0) is %v", p.File, row, col, x)
		}
		if halves[k]&halfInf == halfInf {
			w.beyond.add(number, text)
			halves[k] = halves[k]&0x8000 | halfMax
			continue
		}
		change := math.Abs(float64(x) - float64(back[k]))
		if size < halfLeast && change <= tinyChange*float64(size) {
			continue
		}
		c := w.columns[col]
		if c == nil {
			c = &columnRounding{}
			w.columns[col] = c
		}
		switch {
		case size < halfLeast:
			c.tiny.add(number, text)
		case x != float32(math.Trunc(float64(x))):
			c.fractions++
		default:
			if c.wholes++; change > 0 {
				c.rounded.add(number, text)
			}
		}
	}
}

// packHalves writes halves as bytes and reports whether all magnitudes are from halfLeast to below
// halfWhole, as in nearly all dense features.
func packHalves(dst []byte, halves []uint16) bool {
	// Sums of a half's exponent reach its top bit, and no further, when it is from halfLeast on,
	// and from halfWhole on.
	const exponents, tops, least, whole = 0x7c007c007c007c00, 0x8000800080008000, 0x7c007c007c007c00, 0x1800180018001800
	some, large := uint64(tops), uint64(0)
	for ; len(halves) >= 4; halves, dst = halves[4:], dst[8:] {
		w := uint64(halves[0]) | uint64(halves[1])<<16 | uint64(halves[2])<<32 | uint64(halves[3])<<48
		some &= w&exponents + least
		large |= w&exponents + whole
		binary.LittleEndian.PutUint64(dst, w)
	}
	for i, h := range halves {
		some &= uint64(h&halfInf)*0x0001000100010001 + least
		large |= uint64(h&halfInf) + whole
		binary.LittleEndian.PutUint16(dst[2*i:], h)
	}
	return some&tops == tops && large&tops == 0
}

// checkFinite refuses NaN and infinities. values[0] is value at of a chunk.
func checkFinite(p ingest.Place, at, dim int, values []float32) error {
	for k, x := range values {
		if x-x != 0 {
			row, col := p.First+int64((at+k)/dim), (at+k)%dim
			return fmt.Errorf("%s: row %d, column %d (counting from 0) is %v; features are finite numbers, so replace it", p.File, row, col, x)
		}
	}
	return nil
}

// checkRounding reports what the table lost, and refuses what it should not have.
func (w *tableWriter) checkRounding() error {
	small := map[int]bool{}
	for _, c := range w.small {
		small[c] = true
	}
	var rounded, tiny loss // that are refused
	for c, lost := range w.columns {
		if lost.wholes > lost.fractions {
			rounded.join(lost.rounded)
		}
		if w.rep.Tiny += lost.tiny.n; small[c] || 2*lost.tiny.n > w.count {
			tiny.join(lost.tiny)
		}
	}
	w.rep.Overflowed, w.rep.Rounded = w.beyond.n, rounded.n
	switch {
	case w.b.Clamp, w.lossy:
	case w.beyond.n > 0:
		return fmt.Errorf("%s, and %d values in all are beyond float16, which ends at 65504; scale the column in a schema of tables, store {dtype} f32, or {clamp} them", w.beyond.text, w.beyond.n)
	case rounded.n > 0:
		return fmt.Errorf("%s, and %d whole numbers in all would change in float16, which rounds those beyond 2048; store {dtype} f32, or {clamp} to round them",
			rounded.text, rounded.n)
	case tiny.n > 0:
		return fmt.Errorf("%s, and %d values in all are too small for float16, which has all its bits from 6.1e-05 on; scale them, store {dtype} f32, or {clamp} to round them",
			tiny.text, tiny.n)
	}
	return nil
}
