package triples

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// unescaped replaces escapes by their characters, so that one term has one spelling. In a literal,
// quotes, backslashes and control characters are escaped, as in the canonical N-Triples of RDF 1.2.
// In an IRI other escapes than numbers are refused. A term without escapes and control characters
// is returned as it is.
func unescaped(term []byte, literal bool) ([]byte, error) {
	at := bytes.IndexByte(term, '\\')
	if literal {
		at = slices.IndexFunc(term, func(b byte) bool { return b == '\\' || isControl(rune(b)) })
	}
	if at < 0 {
		return term, nil
	}
	out := bytes.Clone(term[:at])
	for rest := term[at:]; len(rest) > 0; {
		switch {
		case rest[0] == '\\':
			r, size, err := cutEscape(rest, literal)
			if err != nil {
				return nil, err
			}
			if !literal && (isControl(r) || r == '"' || r == '\\') {
				return nil, fmt.Errorf("%s is not allowed in an IRI", rest[:size])
			}
			if rest = rest[size:]; literal {
				out = appendEscaped(out, r)
			} else {
				out = utf8.AppendRune(out, r)
			}
			continue
		case literal && isControl(rune(rest[0])):
			out = appendEscaped(out, rune(rest[0]))
		default:
			out = append(out, rest[0])
		}
		rest = rest[1:]
	}
	return out, nil
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// appendEscaped appends a character of a literal as N-Triples writes it.
func appendEscaped(text []byte, r rune) []byte {
	if at := strings.IndexRune("\t\b\n\r\f\"\\", r); at >= 0 {
		return append(text, '\\', `tbnrf"\`[at])
	}
	if isControl(r) {
		return fmt.Appendf(text, "\\u%04X", r)
	}
	return utf8.AppendRune(text, r)
}

// cutEscape returns the character and the size of the escape that begins text. Escapes like \t are
// for literals alone.
func cutEscape(text []byte, literal bool) (r rune, size int, err error) {
	digits := 0
	if len(text) > 1 {
		if at := strings.IndexByte(`tbnrf"'\`, text[1]); literal && at >= 0 {
			return rune("\t\b\n\r\f\"'\\"[at]), 2, nil
		}
		digits = map[byte]int{'u': 4, 'U': 8}[text[1]]
	}
	escape := text[:min(len(text), 2+digits)]
	n, err := strconv.ParseUint(string(escape[min(2, len(escape)):]), 16, 32)
	if digits == 0 || len(escape) < 2+digits || err != nil || n > utf8.MaxRune || !utf8.ValidRune(rune(n)) {
		return 0, 0, fmt.Errorf("%q is no escape; they are \\uXXXX and \\UXXXXXXXX with the hexadecimal number of a character, "+
			"and in literals also \\t, \\n and the like", lines.Clip(escape))
	}
	return rune(n), len(escape), nil
}
