package lines

import "bytes"

// MaxCells bounds the cells of a line. A reader holds 24 bytes for each, and a line of blanks and
// digits may have millions.
const MaxCells = 1 << 16

// Unquoted returns a cell without the quotes around it, if it has a pair of them.
func Unquoted(cell []byte) []byte {
	if n := len(cell); n >= 2 && cell[0] == '"' && cell[n-1] == '"' {
		return cell[1 : n-1]
	}
	return cell
}

// indexNear is bytes.IndexByte, but faster where c is near: most cells of tables are short.
func indexNear(text []byte, c byte) int {
	const near = 12
	for i, b := range text[:min(len(text), near)] {
		if b == c {
			return i
		}
	}
	if len(text) > near {
		if i := bytes.IndexByte(text[near:], c); i >= 0 {
			return near + i
		}
	}
	return -1
}

// Cells splits a line into cells at the byte by, or at blanks if by is 0, and appends them to
// cells. It returns false if there are more than MaxCells.
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
		end := indexNear(line, by)
		if end < 0 {
			return append(cells, line), true
		}
		cells, line = append(cells, line[:end]), line[end+1:]
	}
}
