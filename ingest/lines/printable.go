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

// Clip shortens a cell for a message.
func Clip(cell []byte) string {
	const most = 40
	if len(cell) <= most {
		return string(cell)
	}
	return strings.ToValidUTF8(string(cell[:most]), "") + "…"
}

// ClipText shortens a name for a message of one line, with ? in place of control characters.
func ClipText(name string) string {
	return Clip([]byte(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return '?'
		}
		return r
	}, name)))
}

// List joins names for a message: the first twelve, each shortened.
func List(names []string) string {
	const most = 12
	var short []string
	for _, n := range names[:min(len(names), most)] {
		short = append(short, ClipText(n))
	}
	if len(names) > most {
		short = append(short, "…")
	}
	return strings.Join(short, ", ")
}
