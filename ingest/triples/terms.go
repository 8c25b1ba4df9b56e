package triples

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// term reads an IRI, a prefixed name, a blank node with a label, or a literal.
func (t *turtle) term(c byte) (node []byte, literal bool, err error) {
	switch {
	case c == '{':
		err = fmt.Errorf("a { begins a graph of TriG, which is not read; convert it: %s", converters[".trig"])
	case c == '<':
		node, err = t.iri()
	case c == '"' || c == '\'':
		literal = true
		node, err = t.literal(c)
	case c == '+' || c == '-' || c >= '0' && c <= '9' || c == '.' && t.digitBehind():
		literal = true
		node, err = t.number()
	case c == '_':
		node, err = t.label()
	case c == ':':
		node, err = t.prefixed("")
	default:
		word := t.word()
		if t.byte() == ':' {
			node, err = t.prefixed(word)
			break
		}
		if word != "true" && word != "false" {
			if c == 0 {
				return nil, false, errors.New("the file is not text: it holds a zero byte; make it again")
			}
			if word == "" {
				return nil, false, fmt.Errorf(`%q begins no term; a term is <IRI>, prefix:name, _:label, "text", a number, [ or (`, rune(c))
			}
			return nil, false, fmt.Errorf("%q is no term: prefixed names have a colon, and texts have quotes", lines.Clip([]byte(word)))
		}
		literal, node = true, []byte(`"`+word+`"^^<`+xsdNS+`boolean>`)
	}
	if err != nil {
		return nil, false, err
	}
	if len(node) == 0 {
		return nil, false, errors.New("the IRI is empty, and means the file itself; @base gives the file an IRI")
	}
	if len(node) > ingest.MaxIDBytes { // a literal, since names are bounded
		node = shortened(node)
	}
	return node, literal, nil
}

// prefixed reads the name behind a prefix, from the colon on.
func (t *turtle) prefixed(prefix string) ([]byte, error) {
	iri, ok := t.prefixes[prefix]
	if !ok {
		name := lines.Clip([]byte(prefix))
		return nil, fmt.Errorf("prefix %q is not declared: add @prefix %s: <…> . before it", name, name)
	}
	t.skip()
	if t.byte() == '-' {
		return nil, errors.New("a prefixed name begins with a letter, a digit, _ or :, and not with -; write \\- for it")
	}
	return t.name([]byte(iri), true)
}

// label reads a blank node with a label.
func (t *turtle) label() ([]byte, error) {
	if h := t.peek(3); len(h) < 3 || h[1] != ':' || !isName(h[2]) || h[2] == '-' {
		return nil, errors.New("a blank node is _: and a label of letters and digits")
	}
	t.skip()
	t.skip()
	return t.name([]byte("_:"), false)
}

// name appends the name that follows to node. A local name, behind a prefix, may have colons and
// escapes.
func (t *turtle) name(node []byte, local bool) ([]byte, error) {
	for {
		c := t.byte()
		switch {
		case isName(c) || local && c == ':':
		case c == '.' && t.stopInside(local):
		case local && c == '\\':
			t.skip()
			if c = t.byte(); strings.IndexByte("_~.-!$&'()*+,;=/?#@%", c) < 0 {
				return nil, errors.New("a backslash in a prefixed name is followed by one of _~.-!$&'()*+,;=/?#@%")
			}
		case local && c == '%':
			if h := t.peek(3); len(h) < 3 || !isHex(h[1]) || !isHex(h[2]) {
				return nil, errors.New("a percent sign in a prefixed name is followed by two hexadecimal digits")
			}
		default:
			return node, nil
		}
		if node = append(node, c); len(node) > ingest.MaxIDBytes {
			return nil, tooLong("a name", ingest.MaxIDBytes)
		}
		t.skip()
	}
}

// number reads an integer, a decimal or a double.
func (t *turtle) number() ([]byte, error) {
	text, kind, digits := []byte{'"'}, "integer", 0
	for {
		c := t.byte()
		switch {
		case c >= '0' && c <= '9':
			digits++
		case len(text) == 1 && (c == '+' || c == '-'):
		case c == '.' && kind == "integer" && (t.digitBehind() || digits > 0 && t.exponentBehind()):
			kind = "decimal"
		case (c == 'e' || c == 'E') && kind != "double" && digits > 0:
			kind, digits = "double", 0
			if s := t.peek(2); len(s) == 2 && (s[1] == '+' || s[1] == '-') {
				text = append(text, c)
				t.skip()
				c = s[1]
			}
		case digits == 0 || isName(c):
			return nil, fmt.Errorf("%q begins no number", lines.Clip(append(text[1:], t.peek(1)...)))
		default:
			return append(text, `"^^<`+xsdNS+kind+`>`...), nil
		}
		if text = append(text, c); len(text) > ingest.MaxIDBytes {
			return nil, tooLong("a number", ingest.MaxIDBytes)
		}
		t.skip()
	}
}

// iri reads an IRI in angle brackets, and resolves it.
func (t *turtle) iri() ([]byte, error) {
	t.skip()
	var text []byte
	for {
		c, err := t.textByte("an IRI", text, ingest.MaxIDBytes)
		if err != nil {
			return nil, err
		}
		switch {
		case c == '>':
			t.skip()
			if text = resolved(t.base, text); len(text) > ingest.MaxIDBytes { // with a long base
				return nil, tooLong("an IRI", ingest.MaxIDBytes)
			}
			return text, nil
		case c == '<' && len(text) == 0:
			return nil, errors.New("<< begins a quoted triple of RDF-star, which is not read")
		case c == '\\':
			r, err := t.escape(false)
			if err != nil {
				return nil, err
			}
			if r <= ' ' || strings.ContainsRune(`<>"{}|^`+"`\\", r) {
				return nil, fmt.Errorf("\\u%04X is not allowed in an IRI", r)
			}
			text = utf8.AppendRune(text, r)
			continue
		case c <= ' ' || strings.IndexByte(`<"{}|^`+"`", c) >= 0:
			return nil, fmt.Errorf("%q in an IRI; is its > missing, or should it be %%%02X?", rune(c), c)
		}
		text = append(text, c)
		t.skip()
	}
}

// literal reads a text with its language or type, and writes it as N-Triples has it.
func (t *turtle) literal(quote byte) ([]byte, error) {
	long := false
	if q := t.peek(3); len(q) == 3 && q[1] == quote && q[2] == quote {
		long = true
		t.skip()
		t.skip()
	}
	t.skip()
	text := []byte{'"'}
	for {
		c, err := t.textByte("a literal", text, lines.MaxLine)
		if err != nil {
			return nil, err
		}
		switch {
		case c == quote && !long:
			t.skip()
			return t.typed(append(text, '"'))
		case c == quote && bytes.Equal(t.peek(3), []byte{quote, quote, quote}):
			for range 3 {
				t.skip()
			}
			if t.byte() == quote {
				return nil, fmt.Errorf("more than three quotes end a long text; write those of the text as \\%c", quote)
			}
			return t.typed(append(text, '"'))
		case c == '\\':
			r, err := t.escape(true)
			if err != nil {
				return nil, err
			}
			text = appendEscaped(text, r)
			continue
		case (c == '\n' || c == '\r') && !long:
			return nil, errors.New("no quote ends the text on its line; three quotes begin and end texts of several lines")
		case c == '"' || isControl(rune(c)):
			text = appendEscaped(text, rune(c))
		default:
			text = append(text, c)
		}
		t.skip()
	}
}

// textByte returns the next byte of an IRI or a literal, which begins with text. The end of the
// file is an error.
func (t *turtle) textByte(what string, text []byte, most int) (byte, error) {
	if len(text) > most {
		return 0, tooLong(what, most)
	}
	return t.byte(), cutShort(t.end())
}

// typed reads the language or the type behind a text.
func (t *turtle) typed(text []byte) ([]byte, error) {
	switch t.byte() {
	case '@':
		t.skip()
		language := len(text) + 1
		text = append(text, '@')
		for c := t.byte(); isName(c) && c != '_' && c < 0x80; c = t.byte() {
			if text = append(text, c); len(text)-language > ingest.MaxIDBytes {
				return nil, tooLong("a language", ingest.MaxIDBytes)
			}
			t.skip()
		}
		if len(text) == language || text[language] < 'A' {
			return nil, errors.New("a language as in @en follows the @")
		}
	case '^':
		noType := errors.New("^^ and an IRI name the type of a text")
		t.skip()
		if t.byte() != '^' {
			return nil, noType
		}
		t.skip()
		c, err := t.inner()
		if err != nil {
			return nil, err
		}
		if c == '"' || c == '\'' { // a type has no type of its own
			return nil, noType
		}
		node, literal, err := t.term(c)
		if err != nil {
			return nil, err
		}
		if literal || bytes.HasPrefix(node, []byte("_:")) {
			return nil, noType
		}
		return fmt.Appendf(text, "^^<%s>", node), nil
	}
	return text, nil
}

// escape reads an escape, and returns its character.
func (t *turtle) escape(literal bool) (rune, error) {
	r, size, err := cutEscape(t.peek(len(`\U0010FFFF`)), literal)
	if err != nil {
		return 0, err
	}
	for range size {
		t.skip()
	}
	return r, nil
}

func tooLong(what string, most int) error {
	return fmt.Errorf("%s of more than %d bytes; is its end missing?", what, most)
}
