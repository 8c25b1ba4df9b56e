package triples

import (
	"bytes"
	"fmt"
	"io"
)

// characters gives the bytes of a text, and counts its lines.
type characters struct {
	name string
	r    io.Reader
	buf  []byte
	pos  int   // index of the next byte in buf
	line int64 // line of the next byte, from 1
	past bool  // the next byte is the first of its line
	err  error // ended the reading of r; io.EOF at its end
}

const readAtOnce = 64 << 10

// fill reads more bytes behind those in the buffer.
func (c *characters) fill() {
	if c.err != nil {
		return
	}
	c.buf = append(c.buf[:0], c.buf[c.pos:]...)
	c.pos = 0
	held := len(c.buf)
	if cap(c.buf)-held < readAtOnce {
		c.buf = append(make([]byte, 0, held+2*readAtOnce), c.buf...)
	}
	for n := 0; n == 0 && c.err == nil; {
		n, c.err = c.r.Read(c.buf[held : held+readAtOnce])
		c.buf = c.buf[:held+n]
	}
}

// peek lends the next n bytes, fewer at the end.
func (c *characters) peek(n int) []byte {
	for len(c.buf)-c.pos < n && c.err == nil {
		c.fill()
	}
	return c.buf[c.pos:min(c.pos+n, len(c.buf))]
}

// byte returns the next byte, which stays the next; 0 at the end.
func (c *characters) byte() byte {
	if c.end() != nil {
		return 0
	}
	return c.buf[c.pos]
}

// end returns io.EOF at the end, or the error that cut reading short; nil where a byte follows.
func (c *characters) end() error {
	if c.pos < len(c.buf) {
		return nil
	}
	if c.fill(); c.pos < len(c.buf) {
		return nil
	}
	return c.err
}

// skip moves past the next byte.
func (c *characters) skip() {
	if c.past = c.buf[c.pos] == '\n'; c.past {
		c.line++
	}
	c.pos++
}

// sign returns the next byte that is no blank and in no comment.
func (c *characters) sign() (byte, error) {
	for comment := false; ; c.skip() {
		switch b := c.byte(); {
		case b == 0 && c.end() != nil:
			return 0, c.err
		case b == '\n' || b == '\r':
			comment = false
		case comment || b == ' ' || b == '\t':
		case b == '#':
			comment = true
		default:
			return b, nil
		}
	}
}

// isName reports whether a name may have a byte: a letter, a digit, _, - or a byte beyond ASCII.
func isName(b byte) bool {
	return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= '0' && b <= '9' || b == '_' || b == '-' || b >= 0x80
}

func isHex(b byte) bool {
	return b >= '0' && b <= '9' || b >= 'a' && b <= 'f' || b >= 'A' && b <= 'F'
}

// stopInside reports whether the next byte, a full stop, is inside a name: more of the name follows
// it, perhaps behind other stops. In a local name, colons and escapes belong to it.
func (c *characters) stopInside(local bool) bool {
	for n := 2; ; n++ {
		text := c.peek(n)
		if len(text) < n || n > readAtOnce {
			return false
		}
		switch b := text[n-1]; {
		case b == '.':
		case isName(b):
			return true
		default:
			return local && (b == ':' || b == '%' || b == '\\')
		}
	}
}

// digitBehind reports whether a digit follows the next byte.
func (c *characters) digitBehind() bool {
	text := c.peek(2)
	return len(text) == 2 && text[1] >= '0' && text[1] <= '9'
}

// exponentBehind reports whether an exponent follows the next byte.
func (c *characters) exponentBehind() bool {
	text := c.peek(4)
	if len(text) < 3 || text[1] != 'e' && text[1] != 'E' {
		return false
	}
	if text[2] == '+' || text[2] == '-' {
		text = text[1:]
	}
	return len(text) > 2 && text[2] >= '0' && text[2] <= '9'
}

// peekWord returns the word that follows, without a colon; "" if there is none, or if it is too
// long for a name.
func (c *characters) peekWord() string {
	for n := 0; n < mostWord; n++ {
		text := c.peek(n + 1)
		if len(text) == n+1 && (isName(text[n]) || text[n] == '.' && n > 0) {
			continue
		}
		return string(bytes.TrimRight(text[:n], "."))
	}
	return ""
}

const mostWord = 1 << 10

// keyword returns the word that follows; "" if it is a prefix, which a colon follows.
func (c *characters) keyword() string {
	word := c.peekWord()
	if text := c.peek(len(word) + 1); len(text) > len(word) && text[len(word)] == ':' {
		return ""
	}
	return word
}

// word reads the word that peekWord returns.
func (c *characters) word() string {
	word := c.peekWord()
	if c.pos += len(word); word != "" { // a word has no end of a line in it
		c.past = false
	}
	return word
}

// errorf returns an error with the file and the line. It returns an error of reading instead, if
// there is one: damage explains other errors, and such an error names the file already.
func (c *characters) errorf(format string, args ...any) error {
	if c.err != nil && c.err != io.EOF {
		return c.err
	}
	line := c.line
	if c.err == io.EOF && c.pos == len(c.buf) && c.past { // the last line has an end
		line--
	}
	return fmt.Errorf("%s: line %d: %w", c.name, line, fmt.Errorf(format, args...))
}
