package graphfile

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// nodeLink is a graph in JSON, by a first reading of it: two lists of objects at its top.
type nodeLink struct {
	path     string
	lists    [2]objects // nodes and edges
	directed bool
	said     bool // whether edges are directed
	numbered bool // nodes have no ids, and edges name them by number
	keys     []string
}

// objects is a list of objects whose keys are attributes.
type objects struct {
	key      string // of the list: "nodes"; "" where there is none
	rows     int64
	values   int64 // in all objects, to find lists whose objects have few of the attributes
	fields   []field
	byName   map[string]int
	identity bool   // the columns begin with the number of the row
	first    string // kind of the first object's source, for edges
}

// field is an attribute of objects: a cell, or one for each of Width numbers in a list.
type field struct {
	name  string
	kind  fieldKind
	width int
	text  bool // some value is text
}

type fieldKind uint8

const (
	unknownField fieldKind = iota // null so far
	cellField
	vectorField // lists of numbers, all of one length
	listField   // lists of texts, or of several lengths: one cell
	nestedField // objects, and lists of lists: left behind
)

// OpenNodeLink opens a graph in node-link JSON.
func OpenNodeLink(path string, o edgelist.Options) (*edgelist.Source, error) {
	g := &nodeLink{path: path}
	if err := g.scan(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if err := g.settle(&o); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	made := &edgelist.Made{
		Unit: "edge", Rows: g.lists[1].rows, Undirected: !g.directed,
		Nodes: func() (io.ReadCloser, error) { return g.open(0) },
		Edges: func() (io.ReadCloser, error) { return g.open(1) },
	}
	made.Texts = map[string]bool{}
	for _, f := range g.lists[0].fields {
		made.Texts[f.name] = f.text || f.kind == listField
	}
	if !g.said {
		made.Remarks = append(made.Remarks, path+": it does not say whether edges are directed, so they are taken as undirected, as NetworkX does")
	}
	if g.numbered {
		made.Remarks = append(made.Remarks, path+": nodes have no id, so edges name them by their number from 0")
	}
	for i, what := range []string{"nodes", "edges"} {
		var nested []string
		for _, f := range g.lists[i].fields {
			if f.kind == nestedField {
				nested = append(nested, lines.ClipText(f.name))
			}
		}
		if len(nested) > 0 {
			made.Skipped = append(made.Skipped, fmt.Sprintf("%s: attributes of %s with objects or lists of lists (%s)", path, what, strings.Join(nested[:min(len(nested), 12)], ", ")))
		}
	}
	return edgelist.OpenMade(path, made, o)
}

// settle chooses what Options leave open.
func (g *nodeLink) settle(o *edgelist.Options) error {
	nodes, edges := &g.lists[0], &g.lists[1]
	switch {
	case nodes.key == "" || edges.key == "":
		return g.notNodeLink()
	case nodes.rows == 0:
		return errors.New("its list of nodes is empty")
	}
	if _, named := nodes.byName["id"]; !named && o.ID == "" {
		if edges.first == "text" {
			return errors.New("its nodes have no id, and edges name them by texts; say {id} with the attribute of nodes that edges name")
		}
		g.numbered, nodes.identity = true, true
	}
	for _, end := range []struct {
		option *string
		name   string
	}{{&o.Src, "source"}, {&o.Dst, "target"}} {
		if _, there := edges.byName[end.name]; there && *end.option == "" {
			*end.option = end.name
		}
	}
	for i, names := range [][]string{{o.ID, "id"}, {o.Src, o.Dst}} {
		for _, name := range names {
			if at, there := g.lists[i].byName[name]; there && g.lists[i].fields[at].kind > cellField {
				return fmt.Errorf("attribute %q, which names nodes, holds lists or objects; write ids as numbers or texts", lines.ClipText(name))
			}
		}
	}
	if at, there := edges.byName[weight]; there && o.Weight == "" && edges.fields[at].kind == cellField {
		o.Weight = weight
	}
	o.Columns, o.EdgeFeatures = nodes.expand(o.Columns), edges.expand(o.EdgeFeatures)
	for i := range g.lists {
		if n := len(g.lists[i].header()); n > lines.MaxCells {
			return fmt.Errorf("%d columns in list %q, and %d are the most", n, g.lists[i].key, lines.MaxCells)
		}
		l := &g.lists[i]
		if fields := int64(len(l.fields)); fields > fewFields && l.values < l.rows*fields/fieldsPerValue {
			return fmt.Errorf("list %q has %d attributes, and fewer than one in %d of them at an object; write each node's own "+
				"as a list of its numbers", l.key, len(l.fields), fieldsPerValue)
		}
	}
	return nil
}

// notNodeLink refuses other JSON.
func (g *nodeLink) notNodeLink() error {
	has := func(key string) bool { return slices.Contains(g.keys, key) }
	convert := func(function string) error {
		return fmt.Errorf("JSON in another form; write it in node-link form: import json, networkx; "+
			"json.dump(networkx.node_link_data(networkx.%s(json.load(open(FILE)))), open('graph.json', 'w'))", function)
	}
	switch {
	case has("adjacency"):
		return convert("adjacency_graph")
	case has("elements"):
		return convert("cytoscape_graph")
	case has("children"):
		return convert("tree_graph")
	}
	return errors.New("JSON without a list nodes and a list links or edges at its top, as node-link JSON has them")
}

// header returns the names of the columns.
func (l *objects) header() (names []string) {
	if l.identity {
		names = append(names, "id")
	}
	for _, f := range l.fields {
		names = append(names, f.columns()...)
	}
	return names
}

func (f *field) columns() []string {
	switch f.kind {
	case nestedField:
		return nil
	case vectorField:
		names := make([]string, f.width)
		for i := range names {
			names[i] = f.name + "." + strconv.Itoa(i)
		}
		return names
	}
	return []string{f.name}
}

// expand puts the columns of lists of numbers in the place of their names.
func (l *objects) expand(names []string) (all []string) {
	for _, name := range names {
		if at, there := l.byName[name]; there && l.fields[at].kind == vectorField {
			all = append(all, l.fields[at].columns()...)
		} else {
			all = append(all, name)
		}
	}
	return all
}

// scan reads the file through, for the attributes.
func (g *nodeLink) scan() error {
	f, err := openFile(g.path)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), g.path+": "))
	}
	defer f.Close()
	t := newTokens(f)
	err = topLevel(t, func(key string, kind byte) error {
		if slices.Contains(g.keys, key) {
			return t.errorf("key %q is there twice", lines.ClipText(key))
		}
		if g.keys = append(g.keys, key); len(g.keys) > mostKeys {
			return t.errorf("more than %d keys at its top, and a graph has a few", mostKeys)
		}
		which, list := listOf(key)
		switch {
		case key == "directed" && kind == otherToken:
			g.directed, g.said = string(t.raw) == "true", true
		case list && kind == '[':
			l := &g.lists[which]
			if l.key != "" {
				return t.errorf("it has a list %q and a list %q; keep one of them", l.key, key)
			}
			*l = objects{key: key, byName: map[string]int{}}
			return l.scan(t)
		}
		return t.skip(kind)
	})
	return err
}

const mostKeys = 1 << 10

// A row has a cell for each attribute, so many attributes that nearly no object has would make far
// more text than the file has.
const (
	fewFields      = 100
	fieldsPerValue = 50
)

// listOf returns the list that a key at the top is of: 0 nodes, 1 edges.
func listOf(key string) (which int, ok bool) {
	switch key {
	case "nodes":
		return 0, true
	case "links", "edges":
		return 1, true
	}
	return 0, false
}

var errEnds = errors.New("the file ends within the graph; it is truncated, so fetch it again")

// topLevel visits the keys of the object that a text is, each with the kind of its value's first
// token. visit reads the value to its end.
func topLevel(t *tokens, visit func(key string, kind byte) error) error {
	if kind, err := t.start(); err != nil {
		return err
	} else if kind != '{' {
		return t.errorf("it does not start with {, as node-link JSON does")
	}
	err := eachKey(t, func(byte) error {
		raw, err := t.unquoted()
		if err != nil {
			return err
		}
		key := string(raw)
		kind, err := t.value()
		if err != nil {
			return err
		}
		return visit(key, kind)
	})
	if err != nil {
		return err
	}
	if _, err := t.next(); err != io.EOF {
		if err == nil {
			err = t.errorf("something follows the end of the graph; write one graph a file")
		}
		return err
	}
	return nil
}

// start reads the first token, after a byte order mark.
func (t *tokens) start() (byte, error) {
	for t.end < 3 && t.err == nil {
		if err := t.more(0); err != nil && err != io.EOF {
			return 0, err
		}
	}
	if t.end >= 3 && string(t.buf[:3]) == "\ufeff" {
		t.pos = 3
	}
	kind, err := t.next()
	if err == io.EOF {
		return 0, errors.New("the file is empty; fetch it again")
	}
	return kind, err
}

// some is next, and refuses the end of the file.
func (t *tokens) some() (byte, error) {
	kind, err := t.next()
	if err == io.EOF {
		return 0, t.errorf("%w", errEnds)
	}
	return kind, err
}

// value reads the colon behind a key, and the first token of its value.
func (t *tokens) value() (byte, error) {
	kind, err := t.some()
	if err == nil && kind != ':' {
		err = t.errorf("a colon follows a key")
	}
	if err != nil {
		return 0, err
	}
	return t.some()
}

// eachKey visits the keys of the object whose bracket was read. visit reads the value.
func eachKey(t *tokens, visit func(kind byte) error) error {
	return each(t, '}', func(kind byte) error {
		if kind != textToken {
			return t.errorf("a key in quotes belongs here")
		}
		return visit(kind)
	})
}

// each visits what lies between a bracket, which was read, and its end, parted by commas.
func each(t *tokens, end byte, visit func(kind byte) error) error {
	for first := true; ; first = false {
		kind, err := t.some()
		if err != nil {
			return err
		}
		if kind == end && first {
			return nil
		}
		if err := visit(kind); err != nil {
			return err
		}
		kind, err = t.some()
		switch {
		case err != nil:
			return err
		case kind == end:
			return nil
		case kind != ',':
			return t.errorf("a comma or %q belongs here", end)
		}
	}
}

// scan reads a list through, for the attributes of its objects.
func (l *objects) scan(t *tokens) error {
	return each(t, ']', func(kind byte) error {
		if kind != '{' {
			return t.errorf("%s %d is no object, as nodes and edges are", l.key, l.rows)
		}
		l.rows++
		next := 0
		return eachKey(t, func(byte) error {
			at, err := l.field(t, next)
			if err != nil {
				return err
			}
			next = at + 1
			kind, err := t.value()
			if err != nil {
				return err
			}
			if l.rows == 1 && l.fields[at].name == "source" {
				l.first = map[byte]string{textToken: "text"}[kind]
			}
			l.values++
			return l.fields[at].learn(t, kind)
		})
	})
}

// field returns the index of the attribute that the key names. It tries next first, since most
// objects have their keys in the same order.
func (l *objects) field(t *tokens, next int) (int, error) {
	if next < len(l.fields) && string(t.raw) == l.fields[next].name {
		return next, nil
	}
	name, err := t.unquoted()
	if err != nil {
		return 0, err
	}
	at, there := l.byName[string(name)]
	if there {
		return at, nil
	}
	if at = len(l.fields); at == lines.MaxCells {
		return 0, t.errorf("more than %d attributes in list %q", lines.MaxCells, l.key)
	}
	l.fields = append(l.fields, field{name: string(name)})
	l.byName[string(name)] = at
	return at, nil
}

// learn reads a value, and settles what the attribute is.
func (f *field) learn(t *tokens, kind byte) error {
	is, width := cellField, 1
	switch kind {
	case textToken:
		f.text = true
	case otherToken:
		cell, err := t.cell()
		if err != nil || cell == nil {
			return err
		}
	case '[':
		is, width = vectorField, 0
		err := each(t, ']', func(kind byte) error {
			width++
			switch kind {
			case textToken:
				is = max(is, listField)
			case otherToken:
				_, err := t.cell()
				return err
			default:
				is = nestedField
				return t.skip(kind)
			}
			return nil
		})
		if err != nil {
			return err
		}
		if width == 0 {
			is = max(is, listField)
		}
	default:
		is = nestedField
		if err := t.skip(kind); err != nil {
			return err
		}
	}
	switch {
	case f.kind == unknownField:
		f.kind, f.width = is, width
	case f.kind == vectorField && is == vectorField && f.width != width:
		f.kind = listField
	case f.kind != is && min(f.kind, is) == cellField && max(f.kind, is) < nestedField:
		f.kind = listField // a value alone, and several
	default:
		f.kind = max(f.kind, is)
	}
	return nil
}

// objectRows makes rows of a list of objects.
type objectRows struct {
	*objects
	t     *tokens
	row   int64
	cells []cell
	first []int  // columns of the fields
	data  []byte // of the cells
	began bool
}

// cell is a part of objectRows.data.
type cell struct {
	from, to     int
	given, quote bool
}

func (g *nodeLink) open(which int) (io.ReadCloser, error) {
	f, err := openFile(g.path)
	if err != nil {
		return nil, err
	}
	l := &g.lists[which]
	r := &objectRows{objects: l, t: newTokens(f)}
	at := 0
	if l.identity {
		at = 1
	}
	for _, f := range l.fields {
		r.first = append(r.first, at)
		at += len(f.columns())
	}
	r.cells = make([]cell, at)
	return readCloser{newRows(appendHeader(l.header()), r.next), f}, nil
}

var errChanged = errors.New("the file changed while it was read")

// begin reads up to the list.
func (r *objectRows) begin() error {
	found := errors.New("found")
	err := topLevel(r.t, func(key string, kind byte) error {
		if key == r.key && kind == '[' {
			return found
		}
		return r.t.skip(kind)
	})
	if err == found {
		return nil
	}
	if err == nil {
		err = errChanged
	}
	return err
}

// next appends the row of the next object.
func (r *objectRows) next(text []byte) ([]byte, error) {
	if r.row == r.rows {
		return text, io.EOF // the first reading has looked at what follows
	}
	if !r.began {
		r.began = true
		if err := r.begin(); err != nil {
			return text, err
		}
	} else if kind, err := r.t.some(); err != nil {
		return text, err
	} else if kind != ',' {
		return text, errChanged
	}
	if kind, err := r.t.some(); err != nil {
		return text, err
	} else if kind != '{' {
		return text, errChanged
	}
	if err := r.object(); err != nil {
		return text, err
	}
	if r.identity {
		text = strconv.AppendInt(text, r.row, 10)
	}
	for i := range r.cells {
		if i > 0 {
			text = append(text, ',')
		}
		switch c := &r.cells[i]; {
		case c.quote:
			text = appendQuoted(text, r.data[c.from:c.to])
		case c.given:
			text = append(text, r.data[c.from:c.to]...)
		}
	}
	r.row++
	return append(text, '\n'), nil
}

// object reads an object into cells.
func (r *objectRows) object() error {
	clear(r.cells)
	r.data = r.data[:0]
	next, fields := 0, len(r.fields)
	return eachKey(r.t, func(byte) error {
		at, err := r.field(r.t, next)
		if err != nil {
			return err
		}
		if at >= fields {
			return errChanged
		}
		next = at + 1
		kind, err := r.t.value()
		if err != nil {
			return err
		}
		f := &r.fields[at]
		switch {
		case f.kind == nestedField:
			return r.t.skip(kind)
		case f.kind == unknownField || r.cells[r.first[at]].given:
			if f.kind == unknownField && string(r.t.raw) == "null" {
				return nil
			}
			return r.t.errorf("attribute %q is there twice", lines.ClipText(f.name))
		case f.kind == vectorField:
			return r.vector(kind, r.first[at], f.width)
		case kind == '[':
			return r.list(r.first[at])
		}
		return r.value(kind, r.first[at])
	})
}

// text returns the text of a value that is no list and no object.
func (r *objectRows) text(kind byte) ([]byte, error) {
	switch kind {
	case textToken:
		return r.t.unquoted()
	case otherToken:
		return r.t.cell()
	}
	return nil, errChanged
}

// value keeps a value as a cell.
func (r *objectRows) value(kind byte, at int) error {
	text, err := r.text(kind)
	if err != nil {
		return err
	}
	from := len(r.data)
	r.data = append(r.data, text...)
	r.cells[at] = cell{from, len(r.data), true, kind == textToken}
	return nil
}

// vector keeps a list of numbers as cells.
func (r *objectRows) vector(kind byte, at, width int) error {
	if kind != '[' { // null
		return nil
	}
	n := 0
	return each(r.t, ']', func(kind byte) error {
		if n == width {
			return errChanged
		}
		n++
		return r.value(kind, at+n-1)
	})
}

// list keeps a list as one cell, [a, b].
func (r *objectRows) list(at int) error {
	from := len(r.data)
	r.data = append(r.data, '[')
	err := each(r.t, ']', func(kind byte) error {
		text, err := r.text(kind)
		if len(r.data) > from+1 {
			r.data = append(r.data, ", "...)
		}
		r.data = append(r.data, text...)
		return err
	})
	r.data = append(r.data, ']')
	r.cells[at] = cell{from, len(r.data), true, true}
	return err
}
