package rounds

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"
)

// MaxBytes is the largest size of a file that Parse reads.
const MaxBytes = 1 << 20

// Keys of the parts of a file.
var (
	fileKeys = []string{"workers", "links", "paths"}
	linkKeys = []string{"name", "between", "rate", "duplex"}
	pathKeys = []string{"from", "to", "over"}
)

// Parse reads a topology. name is the file, for messages. The text is YAML:
//
//	workers: [a, b, c]                                      # worker 0 is a, worker 1 is b
//	links:
//	  - {between: [a, switch], rate: 10Gbit}                # in each direction
//	  - {name: slow, between: [b, switch], rate: 100MB, duplex: half}
//	  - {between: [c, switch], rate: 10Gbit}
//	paths:                                                  # if the path of fewest links is wrong
//	  - {from: a, to: c, over: [a-switch, c-switch]}
//
// A name that is only in links is a switch, a socket or the like. A rate is a number of B, kB, MB,
// GB, TB, kbit, Mbit, Gbit or Tbit a second. Without a name, a link is called by its ends.
func Parse(name string, text []byte) (*Topology, error) {
	r := reader{name: name}
	b := newBuilder(name)
	top := r.object(r.root(text), "a topology", fileKeys)
	for _, n := range r.list(top["workers"]) {
		r.check(n, b.worker(r.word(n)))
	}
	for _, n := range r.list(top["links"]) {
		r.check(n, b.link(r.link(n)))
	}
	for _, n := range r.list(top["paths"]) {
		from, to, over := r.path(n)
		r.check(n, b.path(from, to, over))
	}
	if r.err != nil {
		return nil, r.err
	}
	t, err := b.finish()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return t, nil
}

// reader reads YAML. Its first error stays; what it reads after that means nothing.
type reader struct {
	name string
	err  error
}

func (r *reader) fail(n *yaml.Node, format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%s: line %d: %w", r.name, n.Line, fmt.Errorf(format, args...))
	}
}

func (r *reader) check(n *yaml.Node, err error) {
	if err != nil {
		r.fail(n, "%w", err)
	}
}

// root returns the only document of the text.
func (r *reader) root(text []byte) *yaml.Node {
	if len(text) > MaxBytes {
		r.err = fmt.Errorf("%s: longer than %d bytes; is this a topology?", r.name, MaxBytes)
		return &yaml.Node{}
	}
	var all [2]yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(text))
	err := d.Decode(&all[0])
	if err == nil && d.Decode(&all[1]) != io.EOF {
		r.err = fmt.Errorf("%s: there is a second document in it; leave one out", r.name)
		return &yaml.Node{}
	}
	if err == io.EOF || err == nil && len(all[0].Content) == 0 {
		r.err = fmt.Errorf("%s: there is nothing in it; list workers and links", r.name)
		return &yaml.Node{}
	}
	if err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		r.err = fmt.Errorf("%s: not YAML: %s", r.name, strings.TrimPrefix(first, "yaml: "))
		return &yaml.Node{}
	}
	return all[0].Content[0]
}

// object returns the values of a mapping by their keys.
func (r *reader) object(n *yaml.Node, what string, known []string) map[string]*yaml.Node {
	if n.Kind != yaml.MappingNode {
		r.fail(n, "%s is expected here, with some of the keys %s", what, strings.Join(known, ", "))
		return nil
	}
	values := map[string]*yaml.Node{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i].Value
		switch {
		case !slices.Contains(known, key):
			r.fail(n.Content[i], "%s has no key %.40q; there are %s", what, key, strings.Join(known, ", "))
		case values[key] != nil:
			r.fail(n.Content[i], "key %s is there twice; leave one out", key)
		}
		values[key] = n.Content[i+1]
	}
	return values
}

// list returns the entries of a list; none where n is nil.
func (r *reader) list(n *yaml.Node) []*yaml.Node {
	switch {
	case n == nil:
		return nil
	case n.Kind != yaml.SequenceNode:
		r.fail(n, "a list is expected here; write [a, b], or begin each entry with a dash")
		return nil
	}
	return n.Content
}

// word returns the text of a scalar; "" where n is nil.
func (r *reader) word(n *yaml.Node) string {
	switch {
	case n == nil:
		return ""
	case n.Kind != yaml.ScalarNode || n.Value == "":
		r.fail(n, "a name or a number is expected here, which is one word")
		return ""
	}
	return n.Value
}

func (r *reader) words(n *yaml.Node) (words []string) {
	for _, item := range r.list(n) {
		words = append(words, r.word(item))
	}
	return words
}

func (r *reader) link(n *yaml.Node) Link {
	of := r.object(n, "a link", linkKeys)
	l := Link{Name: r.word(of["name"])}
	if ends := r.words(of["between"]); len(ends) == 2 {
		l.Ends = [2]string(ends)
	} else {
		r.fail(n, "a link joins two places; write between: [a, b]")
	}
	var ok bool
	if l.BytesPerSecond, ok = parseRate(r.word(of["rate"])); !ok {
		r.fail(n, "a link has a rate a second; write rate: 10Gbit, or rate: 12GB")
	}
	switch duplex := r.word(of["duplex"]); duplex {
	case "", "full":
	case "half":
		l.HalfDuplex = true
	default:
		r.fail(of["duplex"], "duplex: %.40q; write full, the default, or half", duplex)
	}
	return l
}

func (r *reader) path(n *yaml.Node) (from, to string, over []string) {
	of := r.object(n, "a path", pathKeys)
	return r.word(of["from"]), r.word(of["to"]), r.words(of["over"])
}

// parseRate reads a number of bytes or bits a second.
func parseRate(text string) (bytesPerSecond float64, ok bool) {
	text = strings.TrimSuffix(text, "/s")
	for _, unit := range []struct {
		name  string
		bytes float64
	}{
		{"kbit", 1e3 / 8}, {"Mbit", 1e6 / 8}, {"Gbit", 1e9 / 8}, {"Tbit", 1e12 / 8},
		{"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"TB", 1e12}, {"B", 1},
	} {
		if number, found := strings.CutSuffix(text, unit.name); found {
			n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
			return n * unit.bytes, err == nil
		}
	}
	return 0, false
}
