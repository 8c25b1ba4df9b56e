package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"io/fs"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
)

// wordsFile has, for each package, how often its comments use a turn of phrase that makes a reader
// stop, and how many of its lines and sentences are long. No number may exceed the one on record.
const wordsFile = "tools/check/words.json"

// words counts turns of phrase by package and by turn.
type words map[string]map[string]int

// turns are turns of phrase after which a comment often needs a second reading. Name the thing
// instead, or begin with the verb.
var turns = map[string]*regexp.Regexp{
	"is what":          regexp.MustCompile(`\bis what\b`),
	"are those":        regexp.MustCompile(`\bare those\b`),
	"is how":           regexp.MustCompile(`\bis how\b`),
	"says which":       regexp.MustCompile(`\b(says?|tells?) (which|what|whether|how|who|where)\b`),
	"those of":         regexp.MustCompile(`\bthose of\b`),
	"that of":          regexp.MustCompile(`\bthat of\b`),
	"of which":         regexp.MustCompile(`\bof which\b`),
	"does without":     regexp.MustCompile(`\b(do|does|doing) without\b`),
	"there is none of": regexp.MustCompile(`\bthere (is|are) (none|no one|nothing) of\b`),
	"as many as it":    regexp.MustCompile(`\bas (many|much|few|long|far) as (it|they|that|those) (is|are|has|have)\b`),
}

const (
	longComments  = "comment lines over 100 columns"
	longCode      = "code lines over 120 columns"
	longSentences = "sentences over 40 words"
)

// countWords counts the words of a package. Generated files do not count.
func countWords(p *pkg) map[string]int {
	n := map[string]int{}
	for _, f := range p.files {
		if ast.IsGenerated(f.syntax) {
			continue
		}
		inComment := f.commentLines()
		for _, group := range f.syntax.Comments {
			text := group.Text()
			for turn, form := range turns {
				n[turn] += len(form.FindAllStringIndex(strings.Join(strings.Fields(text), " "), -1))
			}
			for _, paragraph := range strings.Split(text, "\n\n") {
				for _, sentence := range sentenceEnd.Split(paragraph, -1) {
					if len(strings.Fields(sentence)) > 40 && !strings.Contains(paragraph, "\n\t") && !strings.HasPrefix(paragraph, "\t") {
						n[longSentences]++
					}
				}
			}
		}
		for i, line := range f.text {
			width := columns(line)
			switch {
			case inComment[i+1] && width > commentColumns && !strings.HasPrefix(line, "//go:"):
				n[longComments]++
			case !inComment[i+1] && width > 120 && strings.Count(line, `"`)+strings.Count(line, "`") < 2:
				n[longCode]++
			}
		}
	}
	maps.DeleteFunc(n, func(_ string, n int) bool { return n == 0 })
	return n
}

// commentLines returns the numbers of the lines that are comments and nothing else.
func (f *file) commentLines() map[int]bool {
	lines := map[int]bool{}
	for _, group := range f.syntax.Comments {
		for _, c := range group.List {
			at := f.fset.Position(c.Pos())
			if strings.TrimSpace(f.text[at.Line-1][:at.Column-1]) == "" {
				lines[at.Line] = true
			}
		}
	}
	return lines
}

// sentenceEnd matches the end of a sentence, or of a part of it before a colon or semicolon.
var sentenceEnd = regexp.MustCompile(`[.:;!?]\s`)

// checkWords compares the words of packages with wordsFile. Without that file there is nothing to
// compare with.
func checkWords(root fs.FS, packages []*pkg) (findings []string, err error) {
	text, err := fs.ReadFile(root, wordsFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var on words
	if err := json.Unmarshal(text, &on); err != nil {
		return nil, fmt.Errorf("%s: %w", wordsFile, err)
	}
	for _, p := range packages {
		got := countWords(p)
		for _, what := range slices.Sorted(maps.Keys(got)) {
			if was := on[p.dir][what]; got[what] > was {
				findings = append(findings, fmt.Sprintf("%s: %q %d times, and %d before: say it plainly", p.dir, what, got[what], was))
			}
		}
	}
	return findings, nil
}

// writeWords writes wordsFile anew.
func writeWords(root string, packages []*pkg) error {
	all := words{}
	for _, p := range packages {
		if n := countWords(p); len(n) > 0 {
			all[p.dir] = n
		}
	}
	text, err := json.MarshalIndent(all, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(root+"/"+wordsFile, append(text, '\n'), 0o666)
}
