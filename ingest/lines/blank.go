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
