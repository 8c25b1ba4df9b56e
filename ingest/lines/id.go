package lines

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
)

// ID reads a node's id that is an integer from 0. Its digits stand as they print, so 007 and +7 are
// texts. 12.0 is 12, as tables have it whose column was one of floats, if no digit can be lost: it
// is below 2⁵³, and an exponent leaves out no digits (see [Rounded]).
func ID(cell []byte) (int64, bool) {
	n := 0
	for n < len(cell) && cell[n]-'0' <= 9 {
		n++
	}
	if n == 0 || n > 19 || n > 1 && cell[0] == '0' {
		return 0, false
	}
	if n < len(cell) {
		v, err := Float(cell, 64)
		if err != nil || Rounded(cell) {
			return 0, false
		}
		return Whole(v)
	}
	v := uint64(0)
	for _, c := range cell {
		v = v*10 + uint64(c-'0')
	}
	return int64(v), v <= math.MaxInt64
}

// Rounded reports whether a cell is a number with an exponent that stands for digits which are not
// written, as in 1.24E+11. Spreadsheets write integers of more than 11 digits so.
func Rounded(cell []byte) bool {
	e := bytes.IndexAny(cell, "eE")
	if e < 1 {
		return false
	}
	exponent, err := strconv.Atoi(string(cell[e+1:]))
	if err != nil {
		return false
	}
	if _, err := Float(cell, 64); err != nil {
		return false
	}
	_, fraction, _ := bytes.Cut(cell[:e], []byte("."))
	return exponent > len(fraction)
}

// Spreadsheet reports whether a cell is [Rounded] in the form of spreadsheets, which no text has by
// chance: a capital E and a sign.
func Spreadsheet(cell []byte) bool { return bytes.Contains(cell, []byte("E+")) && Rounded(cell) }

// RefuseRounded is the error for an id that is [Rounded].
func RefuseRounded(cell []byte) error {
	return fmt.Errorf("%q is a number whose last digits are left out, as spreadsheets write long ids; "+
		"export the column as text, with all digits", Clip(cell))
}

// Zeros reports whether a cell is digits with zeros in front, which an integer would lose.
func Zeros(cell []byte) bool {
	return len(cell) > 1 && cell[0] == '0' && len(bytes.Trim(cell, "0123456789")) == 0
}
