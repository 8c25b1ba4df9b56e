package lines

import (
	"bytes"
	"math"
	"strconv"
)

// Float reads a number of 32 or 64 bits in decimal digits, or one of the words nan, inf and infinity. strconv takes numbers
// in base 16 as well, and underscores: tables that hold these do not mean numbers. A number that is too large is infinite,
// with strconv.ErrRange.
func Float(cell []byte, bits int) (float64, error) {
	if len(cell) > 2 && (cell[1]|' ' == 'x' || cell[2]|' ' == 'x' || bytes.IndexByte(cell, '_') >= 0) {
		return 0, &strconv.NumError{Func: "ParseFloat", Num: string(cell), Err: strconv.ErrSyntax}
	}
	return strconv.ParseFloat(string(cell), bits)
}

// maxDigits is more than any float of 64 bits has when it is written out.
const maxDigits = 800

// Exact reports whether v, which Float read from a cell, keeps every digit of it: no other number of as many digits reads
// as v. An integer beyond 2⁵³ mostly fails, and a fraction of more than 15 digits that did not come from a float.
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
	if digits <= 15 { // a float of 64 bits tells all of these apart
		return true
	}
	if digits > maxDigits {
		return false
	}
	written := strconv.AppendFloat(nil, math.Abs(v), 'e', digits-1, 64)
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
