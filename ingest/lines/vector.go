package lines

import (
	"bytes"
	"fmt"
	"math"
)

// IsVector reports whether a cell has the form of a vector of numbers: in brackets, or parted by
// semicolons or commas. Two numbers with a comma between are none, and neither are groups of three
// digits: they may be one number.
func (n Numerals) IsVector(cell []byte) bool {
	switch {
	case len(cell) < 2:
		return false
	case cell[0] == '[' || cell[0] == '(', bytes.IndexByte(cell, ';') >= 0:
		return true
	case n.Comma:
		return false // a comma is a decimal mark
	}
	first, rest, ok := bytes.Cut(cell, []byte{','})
	if !ok || len(first) == 0 {
		return false
	}
	parts, blanks, thousands := 1, true, true
	for part := range bytes.SplitSeq(rest, []byte{','}) {
		blanks = blanks && len(part) > 0 && part[0] == ' '
		thousands = thousands && len(part) == 3 && len(bytes.Trim(part, "0123456789")) == 0
		parts++
	}
	return blanks || parts > 2 && !thousands
}

// closing is the end of a vector by its beginning.
var closing = map[byte]byte{'[': ']', '(': ')'}

// AppendVector appends the numbers of a cell that IsVector. In brackets they are parted by
// semicolons, commas or blanks, as in [0.1 0.2], [0.1, 0.2] or (1; 2).
func (n Numerals) AppendVector(dst []float32, cell []byte) ([]float32, error) {
	return appendVector(n, dst, cell)
}

// AppendFloats is AppendVector for numbers of 64 bits. They have the range of 32 bits.
func (n Numerals) AppendFloats(dst []float64, cell []byte) ([]float64, error) {
	return appendVector(n, dst, cell)
}

func appendVector[F float32 | float64](n Numerals, dst []F, cell []byte) ([]F, error) {
	text := bytes.TrimSpace(cell)
	bracketed := false
	if len(text) > 0 && closing[text[0]] != 0 {
		if text[len(text)-1] != closing[text[0]] || len(text) < 2 {
			return dst, fmt.Errorf("%q: the bracket of the vector does not close", ClipText(string(cell)))
		}
		text, bracketed = bytes.TrimSpace(text[1:len(text)-1]), true
	}
	if bytes.ContainsAny(text, "[]()") {
		return dst, fmt.Errorf("%q: a list within a list, and a cell holds one vector; write a column for each", ClipText(string(cell)))
	}
	by := byte(0)
	switch {
	case bytes.IndexByte(text, ';') >= 0:
		by = ';'
	case bytes.IndexByte(text, ',') >= 0 && !n.Comma:
		by = ','
	}
	if by != 0 {
		text = bytes.TrimSuffix(text, []byte{by}) // (1,) is Python's
	}
	if len(text) == 0 {
		return dst, fmt.Errorf("%q is a vector without numbers", ClipText(string(cell)))
	}
	parts := bytes.FieldsSeq(text)
	if by != 0 {
		parts = bytes.SplitSeq(text, []byte{by})
	}
	for part := range parts {
		part = bytes.TrimSpace(part)
		if by == 0 && bracketed { // [0,5, 0,7] with decimal commas
			part = bytes.TrimSuffix(part, []byte{','})
		}
		x, err := n.Float(part, 64)
		if err != nil || math.Abs(x) > math.MaxFloat32 || x != x {
			return dst, fmt.Errorf("%q in a vector is not a finite number of 32 bits", ClipText(string(part)))
		}
		dst = append(dst, F(x))
	}
	return dst, nil
}
