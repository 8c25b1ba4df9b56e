package lines

import "bytes"

// What is blank is Unicode's White_Space, as bytes.TrimSpace and bytes.Fields have it: blanks and tabs, \v and \f, NEL and the
// no-break space. All readers of text go by these three, so that a line without a cell is blank to each of them.

// IsBlank reports whether a line holds nothing but blanks.
func IsBlank(text []byte) bool {
	if len(text) > 0 && text[0] > ' ' && text[0] < 0x80 { // nearly every line
		return false
	}
	return len(bytes.TrimSpace(text)) == 0
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
