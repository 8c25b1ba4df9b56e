package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// Names, messages and file names come from whoever made a file, and a terminal obeys what some of
// their characters say. All that commands print goes through a visible writer, which lets none of
// these through; printf keeps a text from filling lines that are not its own. What redraws a line
// goes past them, by screenOf.

// visible writes text for people: what moves a cursor, colours, or hides becomes a question mark,
// but for tabs and ends of lines.
type visible struct{ io.Writer }

func (v visible) Write(p []byte) (int, error) {
	shown := p
	if bytes.ContainsFunc(p, obeyed) || bytes.ContainsFunc(p, broken) {
		shown = bytes.Map(func(c rune) rune {
			if obeyed(c) && c != '\n' && c != '\t' {
				return '?'
			}
			return c
		}, p) // and a byte that is no UTF-8 becomes a replacement character
	}
	if _, err := v.Writer.Write(shown); err != nil {
		return 0, err
	}
	return len(p), nil
}

// obeyed reports whether a terminal does not show c but acts on it: control characters of both
// sets, ends of lines and paragraphs, and characters that turn the direction of text.
func obeyed(c rune) bool {
	return unicode.IsControl(c) || unicode.In(c, unicode.Bidi_Control, unicode.Zl, unicode.Zp)
}

func broken(c rune) bool { return c == unicode.ReplacementChar }

// clean returns a text that stays within its line.
func clean(text string) string {
	return strings.Map(func(c rune) rune {
		if obeyed(c) {
			return '?'
		}
		return c
	}, text)
}

// printf is fmt.Fprintf with texts and errors that stay within their lines.
func printf(w io.Writer, format string, args ...any) {
	safe := make([]any, len(args))
	for i, a := range args {
		safe[i] = a
		if err, ok := a.(error); ok {
			safe[i] = clean(err.Error())
		} else if reflect.ValueOf(a).Kind() == reflect.String {
			safe[i] = clean(fmt.Sprint(a))
		}
	}
	fmt.Fprintf(w, format, safe...)
}

// screenOf returns the terminal behind a writer, or nil if there is none.
func screenOf(w io.Writer) *os.File {
	for {
		switch under := w.(type) {
		case *output:
			w = under.Writer
		case visible:
			w = under.Writer
		case *onceWriter:
			w = under.Writer
		case *os.File:
			if term.IsTerminal(int(under.Fd())) {
				return under
			}
			return nil
		default:
			return nil
		}
	}
}

// columnsOf returns the width of a terminal.
func columnsOf(tty *os.File) int {
	width, _, err := term.GetSize(int(tty.Fd()))
	if err != nil || width < 20 {
		return 80
	}
	return width
}
