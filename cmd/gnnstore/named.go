package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// named is a flag that takes NAME=VALUE again and again, or several with blanks between; and, where plain is not nil, a value
// without a name as well.
type named struct {
	of    map[string]string
	plain *string
	kind  string
}

func (n *named) Set(s string) error {
	for _, word := range strings.Fields(s) {
		name, value, ok := strings.Cut(word, "=")
		switch {
		case ok && name != "" && value != "":
			if n.of == nil {
				n.of = map[string]string{}
			}
			n.of[name] = value
		case !ok && n.plain != nil:
			*n.plain = word
		default:
			return fmt.Errorf("%q: write %s", word, n.kind)
		}
	}
	return nil
}

func (n *named) String() string {
	var words []string
	if n.plain != nil && *n.plain != "" {
		words = append(words, *n.plain)
	}
	for _, name := range slices.Sorted(maps.Keys(n.of)) {
		words = append(words, name+"="+n.of[name])
	}
	return strings.Join(words, " ")
}

func (n *named) Type() string { return n.kind }
