package triples

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// unescaped replaces \u0041 and the like by the letter, so that one term has one spelling, as in
// canonical N-Triples. Quotes, backslashes and control characters of a literal stay escaped. It
// refuses malformed escapes, and in an IRI all other escapes. A term without such a number is
// returned as it is.
func unescaped(term []byte, literal bool) ([]byte, error) {
	at := bytes.IndexByte(term, '\\')
	if at < 0 {
		return term, nil
	}
	out := bytes.Clone(term[:at])
	for rest := term[at:]; len(rest) > 0; {
		if rest[0] != '\\' {
			out, rest = append(out, rest[0]), rest[1:]
			continue
		}
		digits := 0
		if len(rest) > 1 {
			digits = map[byte]int{'u': 4, 'U': 8}[rest[1]]
		}
		if digits == 0 && literal && len(rest) > 1 && bytes.IndexByte([]byte(`tbnrf"'\`), rest[1]) >= 0 {
			out, rest = append(out, rest[:2]...), rest[2:]
			continue
		}
		escape := rest[:min(len(rest), 2+digits)]
		r, err := strconv.ParseUint(string(escape[min(2, len(escape)):]), 16, 32)
		if digits == 0 || len(escape) < 2+digits || err != nil || !utf8.ValidRune(rune(r)) {
			return nil, badEscape(escape)
		}
		rest = rest[len(escape):]
		switch {
		case r >= ' ' && r != '"' && r != '\\' && r != 0x7f:
			out = utf8.AppendRune(out, rune(r))
		case literal:
			out = append(out, escape...)
		default:
			return nil, fmt.Errorf("%s is not allowed in an IRI", escape)
		}
	}
	return out, nil
}

func badEscape(escape []byte) error {
	return fmt.Errorf("%q is no escape; they are \\uXXXX and \\UXXXXXXXX with the hexadecimal number of a character, "+
		"and in literals also \\t, \\n and the like", lines.Clip(escape))
}
