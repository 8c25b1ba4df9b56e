package table

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

const maxSchema = 1 << 20 // bytes of YAML

// document reads YAML into values that know their lines. Its first problem stays, and what is read
// after it is empty.
type document struct {
	path     string
	anywhere bool // paths may lead out of the schema's folder
	text     form // of text, in entries that choose none
	err      error
}

// object is a mapping.
type object struct {
	doc  *document
	line int
	what string // it is, for messages: "an entry of nodes"
	keys map[string]*yaml.Node
}

// word is a scalar and its place.
type word struct {
	text string
	line int
}

func (w word) set() bool { return w.line > 0 }

// open reads the document; known are the keys of its top. other converts a document of another form
// to a schema, and returns nil if the document is a schema already.
func (d *document) open(known []string, other func(path string, text []byte) ([]byte, error)) *object {
	f, err := store.OpenFile(d.path)
	if err != nil {
		d.err = err
		return &object{doc: d}
	}
	defer f.Close()
	text := make([]byte, maxSchema+1)
	n, err := readFull(f, text)
	if err == nil && n > maxSchema {
		err = fmt.Errorf("%s: longer than %d bytes; is this a schema?", d.path, maxSchema)
	}
	if err != nil {
		d.err = err
		return &object{doc: d}
	}
	made, err := other(d.path, text[:n])
	if err != nil {
		d.err = err
		return &object{doc: d}
	}
	if made != nil {
		d.path += ", as {infer} writes it"
		return d.parse(made, known...)
	}
	return d.parse(text[:n], known...)
}

func (d *document) parse(text []byte, known ...string) *object {
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		first, _, _ := strings.Cut(err.Error(), "\n")
		d.err = fmt.Errorf("%s: not YAML: %s", d.path, lines.ClipText(strings.TrimPrefix(first, "yaml: ")))
		return &object{doc: d}
	}
	if len(root.Content) == 0 {
		d.err = fmt.Errorf("%s: there is nothing in it; list edges, and nodes that have features or labels", d.path)
		return &object{doc: d}
	}
	return d.object(root.Content[0], "a schema", known...)
}

func (d *document) errorf(line int, format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf("%s: line %d: %w", d.path, line, fmt.Errorf(format, args...))
	}
}

// object reads a mapping and refuses keys that are not known.
func (d *document) object(n *yaml.Node, what string, known ...string) *object {
	o := &object{doc: d, line: n.Line, what: what, keys: map[string]*yaml.Node{}}
	if n.Kind != yaml.MappingNode {
		d.errorf(n.Line, "%s is expected here, with some of the keys %s", what, strings.Join(known, ", "))
		return o
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := d.word(n.Content[i], "a key")
		switch _, again := o.keys[key.text]; {
		case again:
			d.errorf(key.line, "key %s is there twice", lines.ClipText(key.text))
		case len(known) > 0 && !slices.Contains(known, key.text):
			d.errorf(key.line, "%s has no key %q; %sthere are %s", what, lines.ClipText(key.text),
				nearest(key.text, known), strings.Join(known, ", "))
		}
		o.keys[key.text] = n.Content[i+1]
	}
	return o
}

// word reads a scalar.
func (d *document) word(n *yaml.Node, what string) word {
	if n.Kind != yaml.ScalarNode || n.ShortTag() == "!!null" {
		d.errorf(n.Line, "%s is expected here, which is one word", what)
		return word{}
	}
	return word{n.Value, n.Line}
}

// words reads one scalar, or a list of them.
func (d *document) words(n *yaml.Node, what string) (list []word) {
	if n.Kind != yaml.SequenceNode {
		return []word{d.word(n, what+", or a list,")}
	}
	for _, item := range n.Content {
		list = append(list, d.word(item, what))
	}
	return list
}

func (o *object) has(key string) bool { return o.keys[key] != nil }

// word is the scalar at a key, not set without one.
func (o *object) word(key string) word {
	if n := o.keys[key]; n != nil {
		return o.doc.word(n, "the value of "+key)
	}
	return word{}
}

func (o *object) words(key string) []word {
	if n := o.keys[key]; n != nil {
		return o.doc.words(n, "the value of "+key)
	}
	return nil
}

// need is the scalar at a key that must be there.
func (o *object) need(key, why string) word {
	w := o.word(key)
	if !w.set() {
		o.doc.errorf(o.line, "%s needs %s: %s", o.what, key, why)
	}
	return w
}

// list calls visit for the items at a key.
func (o *object) list(key string, visit func(n *yaml.Node)) {
	n := o.keys[key]
	if n == nil {
		return
	}
	if n.Kind != yaml.SequenceNode {
		o.doc.errorf(n.Line, "%s is a list; begin each entry with a dash", key)
		return
	}
	for _, item := range n.Content {
		visit(item)
	}
}
