package graphfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

// tokens reads the tokens of a JSON text. It takes what Python writes: NaN and Infinity as well.
type tokens struct {
	in     io.Reader
	buf    []byte
	pos    int   // of the next byte in buf
	end    int   // of what is read into buf
	before int64 // bytes of the file before buf
	err    error // of the reader
	at     int64 // byte that the token begins at
	raw    []byte
}

// kinds of tokens; a bracket, comma or colon is its byte.
const (
	textToken  = '"'
	otherToken = '0' // a number, true, false, null, NaN, Infinity
)

func newTokens(in io.Reader) *tokens { return &tokens{in: in, buf: make([]byte, 256<<10)} }

// errorf is about the token read last.
func (t *tokens) errorf(format string, args ...any) error {
	return fmt.Errorf("byte %d: "+format, append([]any{t.at}, args...)...)
}

// more reads more behind the bytes from keep on, which move to the front.
func (t *tokens) more(keep int) error {
	if t.err != nil {
		return t.err
	}
	t.before += int64(keep)
	t.end = copy(t.buf, t.buf[keep:t.end])
	t.pos -= keep
	if t.end == len(t.buf) {
		if t.end >= maxValue {
			return t.errorf("a value takes more than %d bytes", maxValue)
		}
		t.buf = append(t.buf, make([]byte, len(t.buf))...)
	}
	var n int
	n, t.err = t.in.Read(t.buf[t.end:])
	if t.end += n; n > 0 {
		return nil
	}
	return t.err
}

// next returns the kind of the next token; io.EOF after the last. Its text is in raw, without
// quotes, and lent until the next call.
func (t *tokens) next() (kind byte, err error) {
	for {
		for t.pos < t.end {
			switch c := t.buf[t.pos]; c {
			case ' ', '\n', '\t', '\r':
				t.pos++
				continue
			case '{', '}', '[', ']', ',', ':':
				t.at = t.before + int64(t.pos)
				t.pos++
				return c, nil
			case '"':
				return textToken, t.readText()
			default:
				return otherToken, t.readOther()
			}
		}
		if err := t.more(t.pos); err == io.EOF {
			t.at = t.before + int64(t.end)
			return 0, io.EOF
		} else if err != nil {
			return 0, err
		}
	}
}

// readText reads up to the closing quote.
func (t *tokens) readText() error {
	t.at = t.before + int64(t.pos)
	start := t.pos + 1
	searched := start
	for {
		if i := bytes.IndexByte(t.buf[searched:t.end], '"'); i >= 0 {
			quote := searched + i
			slashes := 0
			for quote-slashes > start && t.buf[quote-slashes-1] == '\\' {
				slashes++
			}
			if searched = quote + 1; slashes%2 == 0 {
				t.raw, t.pos = t.buf[start:quote], quote+1
				return nil
			}
			continue
		}
		kept := start - 1
		searched = t.end - kept
		if err := t.more(kept); err == io.EOF {
			return t.errorf("the file ends within a text; it is truncated, so fetch it again")
		} else if err != nil {
			return err
		}
		start = 1
	}
}

// readOther reads a number or a word.
func (t *tokens) readOther() error {
	t.at = t.before + int64(t.pos)
	start := t.pos
	for {
		for ; t.pos < t.end; t.pos++ {
			switch t.buf[t.pos] {
			case ' ', '\n', '\t', '\r', ',', ']', '}', ':', '{', '[', '"':
				t.raw = t.buf[start:t.pos]
				return nil
			}
		}
		err := t.more(start)
		start = 0
		if err == io.EOF {
			t.raw = t.buf[:t.end]
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// unquoted returns the text of a text token, as JSON writes it between quotes.
func (t *tokens) unquoted() ([]byte, error) {
	if !utf8.Valid(t.raw) {
		return nil, t.errorf("the text %q is not UTF-8; convert it: iconv -f CP1252 -t UTF-8 FILE > PLAIN", lines.Clip(t.raw))
	}
	plain := true
	for _, c := range t.raw {
		if c == '\\' || c < ' ' {
			plain = false
			break
		}
	}
	if plain {
		return t.raw, nil
	}
	var text string
	if err := json.Unmarshal(append(append([]byte{'"'}, t.raw...), '"'), &text); err != nil {
		return nil, t.errorf("%q is no text of JSON", lines.Clip(t.raw))
	}
	return []byte(text), nil
}

// cell returns what a number or a word is as a cell: true is 1, and null nothing.
func (t *tokens) cell() ([]byte, error) {
	switch c := t.raw[0]; {
	case c == '-' || c >= '0' && c <= '9':
		if number(t.raw) {
			return t.raw, nil
		}
	}
	switch string(t.raw) {
	case "true":
		return one, nil
	case "false":
		return zero, nil
	case "null":
		return nil, nil
	case "NaN":
		return notANumber, nil
	case "Infinity", "-Infinity":
		return t.raw, nil
	}
	return nil, t.errorf("%s where a value belongs", strconv.Quote(lines.Clip(t.raw)))
}

var one, zero, notANumber = []byte{'1'}, []byte{'0'}, []byte("nan")

// number reports whether a word is a number of JSON: digits, or what encoding/json takes.
func number(word []byte) bool {
	for i, c := range word {
		if c-'0' > 9 || i == 0 && c == '0' && len(word) > 1 {
			return json.Valid(word)
		}
	}
	return true
}

// skip passes over the value that begins with a token of this kind.
func (t *tokens) skip(kind byte) error {
	switch kind {
	case textToken:
		return nil
	case otherToken:
		_, err := t.cell()
		return err
	case '{', '[':
	default:
		return t.errorf("%q where a value belongs", kind)
	}
	open := []byte{kind}
	for len(open) > 0 {
		kind, err := t.next()
		switch {
		case err == io.EOF:
			return t.errorf("the file ends within a value; it is truncated, so fetch it again")
		case err != nil:
			return err
		case kind == '{' || kind == '[':
			if open = append(open, kind); len(open) > maxDepth {
				return t.errorf("values nest more than %d deep, as those of a graph do not", maxDepth)
			}
		case kind == '}' || kind == ']':
			if open[len(open)-1] != kind-2 { // as { and }, [ and ] stand in ASCII
				return t.errorf("%q closes what %q opens", kind, open[len(open)-1])
			}
			open = open[:len(open)-1]
		}
	}
	return nil
}
