package lines

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Printable reports whether all of a name can be printed: it is UTF-8 and has no control
// characters, so that a message with the name stays on its line.
func Printable(name string) bool {
	return !strings.ContainsFunc(name, func(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) })
}
