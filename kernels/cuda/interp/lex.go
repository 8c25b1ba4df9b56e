package interp

import (
	"fmt"
	"strings"
)

// maxSource bounds the text that Parse reads. The largest module of the project has 0.2 MB.
const maxSource = 16 << 20

// A token is a word (an opcode, a name, a number), a string, or one character of punctuation.
type token struct {
	text string
	line int
	at   int // offset of its first byte in the source
}

// isWord reports whether c is part of a word. A word may hold dots: ld.global.v4.f32 is one, as is
// the directive .reg.
func isWord(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		c == '_' || c == '$' || c == '%' || c == '.'
}

// lex cuts the source into tokens and drops comments.
func lex(source string) ([]token, error) {
	var tokens []token
	line := 1
	for i := 0; i < len(source); {
		c := source[i]
		start := i
		switch {
		case c == '\n':
			line++
			i++
			continue
		case c == ' ' || c == '\t' || c == '\r':
			i++
			continue
		case strings.HasPrefix(source[i:], "//"):
			for i < len(source) && source[i] != '\n' {
				i++
			}
			continue
		case strings.HasPrefix(source[i:], "/*"):
			end := strings.Index(source[i+2:], "*/")
			if end < 0 {
				return nil, syntaxError(line, "a comment that does not end")
			}
			line += strings.Count(source[i:i+2+end], "\n")
			i += end + 4
			continue
		case c == '"':
			end := strings.IndexAny(source[i+1:], "\"\n")
			if end < 0 || source[i+1+end] != '"' {
				return nil, syntaxError(line, "a string that does not end")
			}
			i += end + 2
		case isWord(c):
			for i < len(source) && (isWord(source[i]) || strings.HasPrefix(source[i:], "::")) {
				if source[i] == ':' {
					i++
				}
				i++
			}
		case strings.IndexByte("{}[](),;:@!|+-=<>", c) >= 0:
			i++
		default:
			return nil, syntaxError(line, fmt.Sprintf("unexpected character %q", c))
		}
		tokens = append(tokens, token{source[start:i], line, start})
	}
	return tokens, nil
}
