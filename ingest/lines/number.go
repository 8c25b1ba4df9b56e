package lines

import (
	"bytes"
	"math"
	"strconv"
)

// Integer reads what Python writes for one: 3, -3, and 3.0 or 1e+06 where it came from a float. A float is an integer
// below 2⁵³ only: beyond, it has lost the ones.
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

// Whole gives a float that is an integer below 2⁵³. From there on a float may stand for its neighbours as well.
func Whole(v float64) (int64, bool) {
	if v != math.Trunc(v) || math.Abs(v) >= 1<<53 {
		return 0, false
	}
	return int64(v), true
}

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

// MaxCells bounds the cells of a line, of which a reader holds 24 bytes each: a line of blanks and digits may have millions.
const MaxCells = 1 << 16

// Cells cuts a line at a byte into cells, which it appends, or at blanks where that is 0. It says false where there are more
// than MaxCells.
func Cells(cells [][]byte, line []byte, by byte) ([][]byte, bool) {
	if by == 0 {
		for field := range bytes.FieldsSeq(line) {
			if len(cells) == MaxCells {
				return cells, false
			}
			cells = append(cells, field)
		}
		return cells, true
	}
	for {
		if len(cells) == MaxCells {
			return cells, false
		}
		end := bytes.IndexByte(line, by)
		if end < 0 {
			return append(cells, line), true
		}
		cells, line = append(cells, line[:end]), line[end+1:]
	}
}
