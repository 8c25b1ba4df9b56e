package setting

import (
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// ByName is a text for each of some names: NAME=TEXT, repeated or with blanks between.
type ByName struct {
	at   *map[string]string
	kind string
}

// PerName returns a ByName that sets at. kind shows how it is written, as TYPE=INPUT.
func PerName(at *map[string]string, kind string) *ByName { return &ByName{at, kind} }

// Set adds names, or gives names that are there a new text.
func (v *ByName) Set(text string) error {
	return eachNamed(text, v.kind, func(name, value string) bool {
		if name != "" {
			put(v.at, name, value)
		}
		return name != ""
	})
}

func (v *ByName) String() string {
	return joinNamed(*v.at, func(value string) string { return value })
}

// Type shows how it is written.
func (v *ByName) Type() string { return v.kind }

// ListsByName is a list of words for each of some names: NAME=WORD,WORD.
type ListsByName struct {
	at   *map[string][]string
	kind string
	now  map[string]bool // names that Set was given
}

// ListPerName returns a ListsByName that sets at. kind shows how it is written.
func ListPerName(at *map[string][]string, kind string) *ListsByName {
	return &ListsByName{at: at, kind: kind, now: map[string]bool{}}
}

// Set adds words to the list of each name. The first call for a name replaces the list that was
// there.
func (v *ListsByName) Set(text string) error {
	return eachNamed(text, v.kind, func(name, value string) bool {
		if name == "" {
			return false
		}
		words := strings.Split(value, ",")
		if v.now[name] {
			words = slices.Concat((*v.at)[name], words)
		}
		v.now[name] = true
		put(v.at, name, words)
		return true
	})
}

func (v *ListsByName) String() string {
	return joinNamed(*v.at, func(words []string) string { return strings.Join(words, ",") })
}

// Type shows how it is written.
func (v *ListsByName) Type() string { return v.kind }

// IntsByName is a list of numbers for all, and own lists for some names: 15,10 NAME=5,5.
type IntsByName struct {
	all   *[]int
	own   *map[string][]int
	kind  string
	given bool            // all was
	now   map[string]bool // names that Set was given
}

// IntsPerName returns an IntsByName that sets all and own. kind shows how it is written.
func IntsPerName(all *[]int, own *map[string][]int, kind string) *IntsByName {
	return &IntsByName{all: all, own: own, kind: kind, now: map[string]bool{}}
}

// Set reads numbers for all, or for names, or both.
func (v *IntsByName) Set(text string) error {
	var errs []error
	plain := 0
	err := eachNamed(text, v.kind, func(name, value string) bool {
		numbers, err := ParseInts(value)
		switch {
		case err != nil:
			errs = append(errs, err)
		case name == "":
			*v.all, v.given = numbers, true
			plain++
		default:
			put(v.own, name, numbers)
			v.now[name] = true
		}
		return plain <= 1
	})
	return errors.Join(append(errs, err)...)
}

// String prints what Set was given, or all numbers if Set was not called.
func (v *IntsByName) String() string {
	var words []string
	shown := *v.own
	if len(v.now) > 0 || v.given {
		shown = maps.Clone(shown)
		maps.DeleteFunc(shown, func(name string, _ []int) bool { return !v.now[name] })
	}
	if v.given || len(v.now) == 0 && len(*v.all) > 0 {
		words = append(words, FormatInts(*v.all))
	}
	if named := joinNamed(shown, FormatInts); named != "" {
		words = append(words, named)
	}
	return strings.Join(words, " ")
}

// Given reports whether the numbers for all were given.
func (v *IntsByName) Given() bool { return v.given }

// Type shows how it is written.
func (v *IntsByName) Type() string { return v.kind }

var blanksOfLists = regexp.MustCompile(`\s*,\s*`)

// eachNamed calls take with each word of text, cut at its first "=". Without "=" the name is empty.
// It returns an error if take returns false, a side of "=" is empty, or text has no words.
func eachNamed(text, kind string, take func(name, value string) bool) error {
	words := strings.Fields(blanksOfLists.ReplaceAllString(text, ","))
	for _, word := range words {
		name, value, ok := strings.Cut(word, "=")
		if !ok {
			name, value = "", word
		}
		if ok && (name == "" || value == "") || !take(name, value) {
			return fmt.Errorf("%q: write %s", text, kind)
		}
	}
	if len(words) == 0 {
		return fmt.Errorf("%q: write %s", text, kind)
	}
	return nil
}

// put sets a name in a copy of the map, which others may share.
func put[V any](at *map[string]V, name string, value V) {
	m := maps.Clone(*at)
	if m == nil {
		m = map[string]V{}
	}
	m[name] = value
	*at = m
}

func joinNamed[V any](of map[string]V, text func(V) string) string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(of)) {
		words = append(words, name+"="+text(of[name]))
	}
	return strings.Join(words, " ")
}
