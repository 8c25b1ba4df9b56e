package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// named is a flag that takes NAME=VALUE again and again, or several with blanks between; and, where
// plain is not nil, a value without a name as well.
type named struct {
	of    map[string]string
	plain *string
	given bool // plain was
	kind  string
}

var blanksOfLists = regexp.MustCompile(`\s*,\s*`)

func (n *named) Set(s string) error {
	words := strings.Fields(blanksOfLists.ReplaceAllString(s, ","))
	plain := 0
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case ok && name != "" && value != "":
			if n.of == nil {
				n.of = map[string]string{}
			}
			n.of[name] = value
		case !ok && n.plain != nil && plain == 0:
			*n.plain, n.given = word, true
			plain++
		default:
			return fmt.Errorf("%q: write %s", s, n.kind)
		}
	}
	if len(words) == 0 {
		return fmt.Errorf("%q: write %s", s, n.kind)
	}
	return nil
}

// String is what Set takes: what was given, and of a flag that was not its default.
func (n *named) String() string {
	var words []string
	if n.plain != nil && (n.given || len(n.of) == 0) {
		words = append(words, *n.plain)
	}
	for _, name := range slices.Sorted(maps.Keys(n.of)) {
		words = append(words, name+"="+n.of[name])
	}
	return strings.Join(words, " ")
}

func (n *named) Type() string { return n.kind }
