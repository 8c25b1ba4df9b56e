package main

import (
	"go/ast"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// commentColumns is where lines of comments end.
const commentColumns = 100

// reflow wraps the paragraphs of comments that have a line beyond commentColumns, in all files but
// generated ones. It leaves code, lists, headings, directives and the output of examples as they
// are.
func reflow(root string, packages []*pkg) error {
	for _, p := range packages {
		for _, f := range p.files {
			if ast.IsGenerated(f.syntax) {
				continue
			}
			was := strings.Join(f.text, "\n")
			now := strings.Join(reflowed(f.text), "\n")
			if now == was {
				continue
			}
			if err := os.WriteFile(filepath.Join(root, f.path), []byte(now), 0o666); err != nil {
				return err
			}
		}
	}
	return nil
}

var (
	commentLine = regexp.MustCompile(`^(\t*)// (\S.*)$`)
	// A line that begins so stands for itself.
	ownLine = regexp.MustCompile(`^(#|- |\* |\d+\. |Output:|Unordered output:|Deprecated:|\[[^\]]+\]: |\+build|nolint|Code generated)`)
)

// reflowed returns the lines of a file with its long paragraphs wrapped.
func reflowed(lines []string) (out []string) {
	raw := false // inside a string of several lines
	for i := 0; i < len(lines); {
		m := commentLine.FindStringSubmatch(lines[i])
		if raw || m == nil || ownLine.MatchString(m[2]) {
			if m == nil {
				raw = raw != (strings.Count(lines[i], "`")%2 == 1)
			}
			if m != nil && strings.HasSuffix(m[2], "utput:") { // what follows is compared with an example
				for ; i < len(lines) && strings.HasPrefix(strings.TrimSpace(lines[i]), "//"); i++ {
					out = append(out, lines[i])
				}
				continue
			}
			out = append(out, lines[i])
			i++
			continue
		}
		indent, end, long := m[1], i, false
		var words []string
		for ; end < len(lines); end++ {
			next := commentLine.FindStringSubmatch(lines[end])
			if next == nil || next[1] != indent || ownLine.MatchString(next[2]) {
				break
			}
			words = append(words, strings.Fields(next[2])...)
			long = long || columns(lines[end]) > commentColumns
		}
		if long {
			out = append(out, wrapped(indent+"//", words)...)
		} else {
			out = append(out, lines[i:end]...)
		}
		i = end
	}
	return out
}

// wrapped returns words in lines that begin with prefix. A line has at least one word.
func wrapped(prefix string, words []string) (lines []string) {
	line := prefix
	for _, w := range words {
		if line != prefix && columns(line)+1+columns(w) > commentColumns {
			lines = append(lines, line)
			line = prefix
		}
		line += " " + w
	}
	return append(lines, line)
}

// columns is the width of a line whose tabs are four columns wide.
func columns(line string) int { return len([]rune(strings.ReplaceAll(line, "\t", "    "))) }
