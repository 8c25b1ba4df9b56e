package lines

import (
	"bytes"
	"math"
	"strconv"
)

// Float reads a number of 32 or 64 bits in decimal digits, or one of the words nan, inf and
// infinity. It refuses hexadecimal numbers and underscores, which strconv takes: in a table they
// are not meant as numbers. A number that is too large is infinite, with strconv.ErrRange.
func Float(cell []byte, bits int) (float64, error) {
	if len(cell) > 2 && (cell[1]|' ' == 'x' || cell[2]|' ' == 'x' || bytes.IndexByte(cell, '_') >= 0) {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: string(cell), Err: strconv.ErrSyntax}
	}
	if v, ok := short(cell, bits); ok {
		return v, nil
	}
	return strconv.ParseFloat(string(cell), bits)
}

// tens are powers of ten that a 64-bit float holds exactly. A 32-bit float holds
// the first shortTens of them.
var tens = [...]float64{1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15}

const shortTens = 11

// short reads a number of few digits without an exponent, such as -0.25. A float holds both the
// digits, as an integer, and the power of ten exactly, so one division gives the nearest float. It
// returns false for other cells.
func short(cell []byte, bits int) (v float64, ok bool) {
	digits := cell
	if len(cell) > 0 && (cell[0] == '-' || cell[0] == '+') {
		digits = cell[1:]
	}
	if len(digits) > len(tens) {
		return 0, false
	}
	whole, point := uint64(0), -1
	for i, c := range digits {
		switch {
		case c-'0' <= 9:
			whole = whole*10 + uint64(c-'0')
		case c == '.' && point < 0:
			point = i
		default:
			return 0, false
		}
	}
	fraction := 0
	if point >= 0 {
		fraction = len(digits) - 1 - point
	}
	switch {
	case len(digits) == 0 || point >= 0 && len(digits) == 1:
		return 0, false
	case bits == 64 && whole < 1<<53:
		v = float64(whole) / tens[fraction]
	case bits == 32 && whole < 1<<24 && fraction < shortTens:
		v = float64(float32(whole) / float32(tens[fraction]))
	default:
		return 0, false
	}
	if cell[0] == '-' {
		v = -v
	}
	return v, true
}

// maxDigits is more digits than any 64-bit float has in full.
const maxDigits = 800

// Exact reports whether v, which Float read from a cell, keeps every digit of it: no other number
// of as many digits reads as v. Most integers beyond 2⁵³ fail, and so do most fractions of more
// than 15 digits, unless a float was printed.
func Exact(cell []byte, v float64) bool {
	first, digits := -1, 0
	for i, c := range cell {
		if c == 'e' || c == 'E' {
			break
		}
		if first < 0 && '1' <= c && c <= '9' {
			first = i
		}
		if first >= 0 && c-'0' <= 9 {
			digits++
		}
	}
	if digits <= 15 { // a 64-bit float tells all of these apart
		return true
	}
	if digits > maxDigits {
		return false
	}
	written := strconv.AppendFloat(nil, math.Abs(v), 'e', digits-1, 64)
	// Floats lie closer below a power of two than above it. If v is a power of two, v rounded to
	// that many digits may read as the float below. The shortest form always reads as v.
	if shortest := strconv.AppendFloat(nil, math.Abs(v), 'e', -1, 64); len(shortest) == len(written) {
		written = shortest
	}
	for _, c := range cell[first:] {
		if c == '.' {
			continue
		}
		if c-'0' > 9 {
			break
		}
		if written[0] != c {
			return false
		}
		if written = written[1:]; written[0] == '.' {
			written = written[1:]
		}
	}
	return true
}
