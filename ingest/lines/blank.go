package lines

import "bytes"

// Blank means Unicode's White_Space, as in bytes.TrimSpace and bytes.Fields: blanks, tabs, \v, \f,
// NEL and the no-break space. All readers of text use IsBlank, so they agree on blank lines.

// IsBlank reports whether a line holds nothing but blanks.
func IsBlank(text []byte) bool {
	if len(text) > 0 && text[0] > ' ' && text[0] < 0x80 { // nearly every line
		return false
	}
	return len(bytes.TrimSpace(text)) == 0
}
