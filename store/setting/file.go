package setting

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Line is an option in a file. Name is spelled as in the file, and Number counts lines from 1.
type Line struct {
	Name   string
	Number int
	value  *yaml.Node
}

// ReadLines reads a YAML document of options: a mapping from names to values. A value is one word,
// a list of words, or a mapping from names to words or lists. Errors begin with the path, and
// mostly name the line.
func ReadLines(path string, text []byte) ([]Line, error) {
	var root yaml.Node
	if err := yaml.Load(text, &root); err != nil {
		return nil, notYAML(path, err)
	}
	top := root.Content[0]
	if top.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("%s: line %d: options are expected here, one a line, as in hidden: 64", path, top.Line)
	}
	var lines []Line
	for i := 0; i+1 < len(top.Content); i += 2 {
		key, value := top.Content[i], top.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			return nil, fmt.Errorf("%s: line %d: the name of an option is expected here, as in hidden: 64", path, key.Line)
		}
		lines = append(lines, Line{key.Value, key.Line, value})
	}
	return lines, nil
}

// notYAML returns the error for a text that the library cannot read.
func notYAML(path string, err error) error {
	var wrong *yaml.LoadError
	switch {
	case !errors.As(err, &wrong):
		return fmt.Errorf("%s: not YAML: %s", path, strings.Join(strings.Fields(err.Error()), " "))
	case strings.Contains(wrong.Message, "no documents"):
		return fmt.Errorf("%s: there is nothing in it; write an option a line, as in hidden: 64", path)
	case strings.Contains(wrong.Message, "found multiple"):
		return fmt.Errorf("%s: it has several documents, with --- between them; keep one, since a file describes one run", path)
	case wrong.Mark.Line > 0:
		return fmt.Errorf("%s: line %d: not YAML: %s", path, wrong.Mark.Line, wrong.Message)
	}
	return fmt.Errorf("%s: not YAML: %s", path, wrong.Message)
}

// Text returns the value, which must be one word.
func (l Line) Text() (string, error) {
	if l.value.Kind == yaml.SequenceNode || l.value.Kind == yaml.MappingNode {
		return "", errors.New("it takes one value, and here are several")
	}
	return word(l.value)
}

// word returns a scalar as it is written. Its type in YAML does not matter, since options read
// text.
func word(n *yaml.Node) (string, error) {
	switch {
	case n.Kind == yaml.AliasNode:
		return "", fmt.Errorf("*%.60s: aliases are not followed; write the value itself", n.Value)
	case n.Style&yaml.TaggedStyle != 0:
		return "", fmt.Errorf("%.60s: tags are not read; write the value alone", n.Tag)
	case n.Kind != yaml.ScalarNode:
		return "", errors.New("a list or a mapping is too deep here; write a word")
	case n.ShortTag() == "!!null":
		return "", errors.New("there is no value; write one, or leave the option out")
	}
	return n.Value, nil
}

// words returns the scalars of a list, or of one scalar.
func words(n *yaml.Node) (list []string, err error) {
	items := n.Content
	if n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0 {
		items = []*yaml.Node{n}
	}
	for _, item := range items {
		text, err := word(item)
		if err != nil {
			return nil, err
		}
		list = append(list, text)
	}
	return list, nil
}

// listed is a Value that takes a list of words. joined returns the text that Set reads for them.
type listed interface{ joined(words []string) string }

func (*Slice[T]) joined(words []string) string    { return strings.Join(words, ",") }
func (*ByName) joined(words []string) string      { return strings.Join(words, " ") }
func (*ListsByName) joined(words []string) string { return strings.Join(words, " ") }

// joined puts blanks between words if one has a name, as in a=1,2, else commas.
func (*IntsByName) joined(words []string) string {
	if slices.ContainsFunc(words, func(w string) bool { return strings.Contains(w, "=") }) {
		return strings.Join(words, " ")
	}
	return strings.Join(words, ",")
}

func (*Text) joined(words []string) string { return strings.Join(words, ",") }

// byName is a Value that takes NAME=TEXT for several names.
type byName interface{ perName() }

func (*ByName) perName()      {}
func (*ListsByName) perName() {}
func (*IntsByName) perName()  {}

// textFor returns the value as v.Set reads it.
func (l Line) textFor(v Value) (string, error) {
	n := l.value
	list, _ := v.(listed)
	isListed := takesList(v)
	_, named := v.(byName)
	switch {
	case n.Style&yaml.TaggedStyle != 0:
	case n.Kind == yaml.SequenceNode && isListed:
		all, err := words(n)
		if err != nil {
			return "", err
		}
		return list.joined(all), nil
	case n.Kind == yaml.MappingNode && named:
		var pairs, names []string
		for i := 0; i+1 < len(n.Content); i += 2 {
			name, err := word(n.Content[i])
			if err != nil {
				return "", err
			}
			all, err := words(n.Content[i+1])
			if err != nil {
				return "", fmt.Errorf("%.60s: %w", name, err)
			}
			if slices.Contains(names, name) {
				return "", fmt.Errorf("%.60s is there twice; leave one out", name)
			}
			names, pairs = append(names, name), append(pairs, name+"="+strings.Join(all, ","))
		}
		return list.joined(pairs), nil
	}
	return l.Text()
}

// Items returns the entries of a mapping, such as {log: [1, 2]}. It returns nil if the value is no
// mapping.
func (l Line) Items() (items []Line, err error) {
	n := l.value
	if n.Kind != yaml.MappingNode || n.Style&yaml.TaggedStyle != 0 {
		return nil, nil
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		name, err := word(n.Content[i])
		if err != nil {
			return nil, err
		}
		items = append(items, Line{name, n.Content[i].Line, n.Content[i+1]})
	}
	return items, nil
}

// Words returns the words of a list, or of one word.
func (l Line) Words() ([]string, error) { return words(l.value) }

// Alternatives returns the values that a line lists for an option, as its flag reads them. listed
// is false if the line has one value. If an option takes a list as its value, a list of lists has
// several values, and a list of words has one.
func (b *bound) Alternatives(flag string, l Line) (texts []string, listed bool, err error) {
	v, n := b.value(flag), l.value
	if n.Kind != yaml.SequenceNode || n.Style&yaml.TaggedStyle != 0 {
		text, err := l.textFor(v)
		return []string{text}, false, err
	}
	deep := func(item *yaml.Node) bool { return item.Kind == yaml.SequenceNode || item.Kind == yaml.MappingNode }
	if takesList(v) && len(n.Content) > 0 && !slices.ContainsFunc(n.Content, deep) {
		if slices.ContainsFunc(n.Content, func(item *yaml.Node) bool { return strings.Contains(item.Value, ",") }) {
			return nil, false, errors.New("this list is one value of the option, and one of its words has commas; for several values write a list of " +
				"lists, as in [[15, 10], [5, 5]]")
		}
		text, err := l.textFor(v)
		return []string{text}, false, err
	}
	for _, item := range n.Content {
		text, err := Line{l.Name, item.Line, item}.textFor(v)
		if err != nil {
			return nil, true, err
		}
		texts = append(texts, text)
	}
	return texts, true, nil
}

// TakesList reports whether the value of a flag is a list.
func (b *bound) TakesList(flag string) bool { return takesList(b.value(flag)) }

// Kind returns the kind of value that a flag takes, as help names it.
func (b *bound) Kind(flag string) string { return b.value(flag).Type() }

func (b *bound) value(flag string) Value {
	return b.options[slices.IndexFunc(b.options, func(x option) bool { return x.flag == flag })].value
}

// takesList reports whether a list of words is one value of the option.
func takesList(v Value) bool {
	if text, ok := v.(*Text); ok {
		return text.commas
	}
	_, ok := v.(listed)
	return ok
}

// Find returns the option that a file names by its flag or its key. Dashes and underscores are
// alike.
func (b *bound) Find(name string) (flag, key string, ok bool) {
	name = dashed(name)
	for _, x := range b.options {
		if x.flag == name || dashed(x.key) == name {
			return x.flag, x.key, true
		}
	}
	return "", "", false
}

// dashed returns the name of an option as a flag spells it.
func dashed(name string) string { return strings.ReplaceAll(name, "_", "-") }

// FlagNames returns the flags of all options.
func (b *bound) FlagNames() (flags []string) {
	for _, x := range b.options {
		flags = append(flags, x.flag)
	}
	return flags
}

// Read sets an option as its flag would, to the value of a line. It returns the errors that the
// flag would have left for Err.
func (b *bound) Read(flag string, l Line) error {
	text, err := l.textFor(b.value(flag))
	if err != nil {
		return err
	}
	return b.Give(flag, text)
}

// Give sets an option as its flag would. It returns the errors that the flag would have left for
// Err.
func (b *bound) Give(flag, text string) error {
	old := b.errs
	b.errs = nil
	err := b.flags.Set(flag, text)
	for _, wrong := range b.errs {
		err = errors.Join(err, errors.Unwrap(wrong)) // without the flag
	}
	b.errs = old
	return err
}

// Choice is the value of an option, as its flag reads it.
type Choice struct{ Key, Flag, Text string }

// choices implements Table.Choices.
func (list options) choices(defaults options) (all []Choice) {
	for i, x := range list {
		text := x.value.String()
		_, short := x.value.(Shorthand)
		same := text == defaults[i].value.String()
		if short || x.refused != "" || text == "" || same && !x.byData {
			continue
		}
		all = append(all, Choice{x.key, x.flag, text})
	}
	return all
}
