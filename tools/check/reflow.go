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
			now := strings.Join(reflowed(f.text, f.commentLines()), "\n")
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
	ownLine = regexp.MustCompile(`^(#|- |\* |\d+\. |Deprecated:|\[[^\]]+\]: |\+build|nolint|Code generated)`)
)

// reflowed returns the lines of a file with its long paragraphs wrapped. comments has the numbers
// of the lines that are comments and nothing else, from 1.
func reflowed(lines []string, comments map[int]bool) (out []string) {
	paragraph := func(i int) (indent, text string, ok bool) {
		m := commentLine.FindStringSubmatch(lines[i])
		if m == nil || !comments[i+1] || ownLine.MatchString(m[2]) {
			return "", "", false
		}
		return m[1], m[2], true
	}
	for i := 0; i < len(lines); {
		if comments[i+1] && exampleOutput.MatchString(strings.TrimSpace(lines[i])) {
			for ; i < len(lines) && comments[i+1]; i++ {
				out = append(out, lines[i])
			}
			continue
		}
		indent, _, ok := paragraph(i)
		if !ok {
			out = append(out, lines[i])
			i++
			continue
		}
		end, long := i, false
		var words []string
		for ; end < len(lines); end++ {
			at, text, ok := paragraph(end)
			if !ok || at != indent {
				break
			}
			words = append(words, strings.Fields(text)...)
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
