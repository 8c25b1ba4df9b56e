package graphfile

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// attribute is a column of nodes or edges.
type attribute struct {
	name     string
	standard string // value where an element has none
	boolean  bool
	text     bool // by its type
}

// graphML is a GraphML file, as far as its keys tell.
type graphML struct {
	path         string
	nodes, edges []attribute
	keys         map[string][2]int // by id: columns of nodes and edges, -1 where it is of others
	undirected   bool
	remarks      []string
	skipped      []string
}

const (
	maxDepth = 100      // of elements
	maxValue = 16 << 20 // bytes of a value, or of other things between two elements
)

// OpenGraphML opens a graph in GraphML.
func OpenGraphML(path string, o edgelist.Options) (*edgelist.Source, error) {
	g := &graphML{path: path, keys: map[string][2]int{}}
	if err := g.readKeys(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if hasNumbers(g.edges) && o.Weight == "" {
		o.Weight = weight
	}
	texts := map[string]bool{}
	for _, a := range g.nodes {
		texts[a.name] = a.text
	}
	return edgelist.OpenMade(path, &edgelist.Made{
		Unit: "edge", Texts: texts, Rows: -1, Undirected: g.undirected, Remarks: g.remarks, Skipped: g.skipped,
		Nodes: func() (io.ReadCloser, error) { return g.open("node") },
		Edges: func() (io.ReadCloser, error) { return g.open("edge") },
	}, o)
}

// weight is the attribute of edges that is their weight, unless another is named.
const weight = "weight"

// hasNumbers reports whether edges have weights.
func hasNumbers(edges []attribute) bool {
	return slices.ContainsFunc(edges, func(a attribute) bool { return a.name == weight })
}

// elements reads the elements of an XML file. Go's decoder expands no entities but XML's own five.
type elements struct {
	in    *xml.Decoder
	file  io.Closer
	since *limited
	open  []string // names of elements that are not closed
}

// limited bounds what is read between two elements.
type limited struct {
	io.Reader
	left int
}

func (l *limited) Read(b []byte) (int, error) {
	if l.left <= 0 {
		return 0, fmt.Errorf("a value takes more than %d bytes", maxValue)
	}
	n, err := l.Reader.Read(b)
	l.left -= n
	return n, err
}

func openElements(path string) (*elements, error) {
	f, err := openFile(path)
	if err != nil {
		return nil, err
	}
	since := &limited{Reader: f, left: maxValue}
	e := &elements{in: xml.NewDecoder(since), file: f, since: since}
	e.in.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.EqualFold(charset, "us-ascii") || strings.EqualFold(charset, "ascii") {
			return in, nil
		}
		return nil, errors.New("convert it to UTF-8, and say so in its first line")
	}
	return e, nil
}

func (e *elements) Close() error { return e.file.Close() }

// errorf is about the place that was read last.
func (e *elements) errorf(format string, args ...any) error {
	line, _ := e.in.InputPos()
	return fmt.Errorf("line %d: "+format, append([]any{line}, args...)...)
}

// next returns the next start, end or text; io.EOF after the last element.
func (e *elements) next() (xml.Token, error) {
	for {
		e.since.left = maxValue
		token, err := e.in.RawToken()
		if syntax := (*xml.SyntaxError)(nil); errors.As(err, &syntax) {
			return nil, e.errorf("%s; a file that is cut off or not well-formed XML", syntax.Msg)
		}
		if err == io.EOF && len(e.open) > 0 {
			return nil, e.errorf("the file ends within <%s>; it is truncated, so fetch it again", e.open[len(e.open)-1])
		}
		if err == io.EOF {
			return nil, io.EOF
		}
		if err != nil {
			return nil, e.errorf("%s", strings.TrimPrefix(err.Error(), "xml: "))
		}
		switch t := token.(type) {
		case xml.Directive:
			if strings.Contains(string(t), "<!ENTITY") || strings.HasPrefix(string(t), "ENTITY") {
				return nil, e.errorf("it declares entities, which are not read; write their text in their places, and no <!DOCTYPE")
			}
		case xml.StartElement:
			if len(e.open) == maxDepth {
				return nil, e.errorf("elements nest more than %d deep, as those of a graph do not", maxDepth)
			}
			e.open = append(e.open, t.Name.Local)
			return t, nil
		case xml.EndElement:
			if len(e.open) == 0 || e.open[len(e.open)-1] != t.Name.Local {
				return nil, e.errorf("</%s> closes no element that is open", lines.ClipText(t.Name.Local))
			}
			e.open = e.open[:len(e.open)-1]
			return t, nil
		case xml.CharData:
			if len(e.open) > 0 {
				return t, nil
			}
		}
	}
}

// text returns the text of the element that was opened last, and closes it. Elements inside it are
// left out.
func (e *elements) text(dst []byte) ([]byte, error) {
	for depth := len(e.open); len(e.open) >= depth; {
		token, err := e.next()
		if err != nil {
			return dst, err
		}
		if text, ok := token.(xml.CharData); ok && len(e.open) == depth {
			if dst = append(dst, text...); len(dst) > maxValue {
				return dst, e.errorf("a value takes more than %d bytes", maxValue)
			}
		}
	}
	return dst, nil
}

// skip closes the element that was opened last.
func (e *elements) skip() error {
	for depth := len(e.open); len(e.open) >= depth; {
		if _, err := e.next(); err != nil {
			return err
		}
	}
	return nil
}

// attr returns an attribute of an element.
func attr(t xml.StartElement, name string) (string, bool) {
	for _, a := range t.Attr {
		if a.Name.Local == name && a.Name.Space == "" {
			return a.Value, true
		}
	}
	return "", false
}

// readKeys reads up to the first node or edge.
func (g *graphML) readKeys() error {
	e, err := openElements(g.path)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), g.path+": "))
	}
	defer e.Close()
	g.nodes, g.edges = []attribute{{name: "id"}}, []attribute{{name: "source"}, {name: "target"}}
	unnamed := 0
	for {
		token, err := e.next()
		if err == io.EOF {
			return errors.New("there is no <graph> in it; is it GraphML?")
		}
		if err != nil {
			return err
		}
		t, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case len(e.open) == 1 && t.Name.Local != "graphml":
			return e.errorf("it starts with <%s>, and GraphML with <graphml>", lines.ClipText(t.Name.Local))
		case t.Name.Local == "key":
			if err := g.readKey(e, t, &unnamed); err != nil {
				return err
			}
		case t.Name.Local == "graph":
			direction, _ := attr(t, "edgedefault")
			if g.undirected = direction != "directed"; direction != "directed" && direction != "undirected" {
				g.remarks = append(g.remarks, g.path+": the graph has no edgedefault, so its edges are taken as undirected, as NetworkX does")
			}
			if unnamed > 0 {
				g.skipped = append(g.skipped, fmt.Sprintf("%s: %d keys have no attr.name, as programs that draw use them", g.path, unnamed))
			}
			return nil
		}
	}
}

// readKey reads the declaration of an attribute. Keys of one name, which differ in their type, are
// one column.
func (g *graphML) readKey(e *elements, t xml.StartElement, unnamed *int) error {
	id, ok := attr(t, "id")
	if !ok {
		return e.errorf("a <key> without id")
	}
	if _, there := g.keys[id]; there {
		return e.errorf("key %q is there twice", lines.ClipText(id))
	}
	of, _ := attr(t, "for")
	name, named := attr(t, "attr.name")
	kind, _ := attr(t, "attr.type")
	a := attribute{name: name, boolean: kind == "boolean", text: kind == "string"}
	for depth := len(e.open); len(e.open) >= depth; {
		token, err := e.next()
		if err != nil {
			return err
		}
		if t, ok := token.(xml.StartElement); ok && t.Name.Local == "default" {
			text, err := e.text(nil)
			if err != nil {
				return err
			}
			a.standard = string(a.value(text))
		}
	}
	columns := [2]int{-1, -1}
	if !named {
		*unnamed++
		g.keys[id] = columns
		return nil
	}
	for i, list := range []*[]attribute{&g.nodes, &g.edges} {
		if of != "" && of != "all" && of != []string{"node", "edge"}[i] {
			continue
		}
		at := slices.IndexFunc(*list, func(b attribute) bool { return b.name == name })
		if at >= 0 && at <= i { // id, source or target
			return e.errorf("attribute %q of a %s has the name of what GraphML has for itself; rename it", lines.ClipText(name), []string{"node", "edge"}[i])
		}
		if at < 0 {
			at = len(*list)
			if *list = append(*list, a); at == lines.MaxCells {
				return e.errorf("more than %d attributes", lines.MaxCells)
			}
		}
		columns[i] = at
	}
	g.keys[id] = columns
	return nil
}

// value is the text of an attribute as a cell: without blanks around it, and numbers for booleans.
func (a *attribute) value(text []byte) []byte {
	trimmed := strings.TrimSpace(string(text))
	if a.boolean {
		switch strings.ToLower(trimmed) {
		case "true", "1":
			return []byte{'1'}
		case "false", "0":
			return []byte{'0'}
		}
	}
	return []byte(trimmed)
}

// graphRows makes rows of the nodes or the edges.
type graphRows struct {
	*graphML
	e      *elements
	want   string // "node" or "edge"
	which  int    // 0 nodes, 1 edges
	graphs int
	number int64    // of elements of this kind
	cells  [][]byte // of the element
	given  []bool   // cells that the element has
	text   []byte
}

func (g *graphML) open(want string) (io.ReadCloser, error) {
	e, err := openElements(g.path)
	if err != nil {
		return nil, err
	}
	r := &graphRows{graphML: g, e: e, want: want}
	columns := g.nodes
	if want == "edge" {
		r.which, columns = 1, g.edges
	}
	var names []string
	for _, a := range columns {
		names = append(names, a.name)
	}
	r.cells, r.given = make([][]byte, len(columns)), make([]bool, len(columns))
	return readCloser{newRows(appendHeader(names), r.next), e}, nil
}

// next appends the rows of the next node or edge.
func (r *graphRows) next(text []byte) ([]byte, error) {
	for {
		token, err := r.e.next()
		if err != nil {
			return text, err
		}
		t, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch name := t.Name.Local; name {
		case "graph":
			if r.graphs++; r.graphs > 1 {
				return text, r.e.errorf("a second <graph>, beside the first or inside a node; write one graph a file, without graphs in it: " +
					"networkx.write_graphml(GRAPH, 'graph.graphml')")
			}
		case "graphml":
		case "hyperedge":
			return text, r.e.errorf("a <hyperedge> joins more than two nodes, which no edge does; write an edge a pair, or a node for it")
		case r.want:
			return r.element(text, t)
		default: // the other kind, which another reading judges
			if err := r.e.skip(); err != nil {
				return text, err
			}
		}
	}
}

// element appends the row of a node, or of an edge. An undirected edge of a directed graph has two
// rows, one for each direction.
func (r *graphRows) element(text []byte, t xml.StartElement) ([]byte, error) {
	r.number++
	clear(r.given)
	ends := []string{"id"}
	if r.which == 1 {
		ends = []string{"source", "target"}
	}
	for i, name := range ends {
		id, ok := attr(t, name)
		if !ok {
			return text, r.e.errorf("a <%s> without %s", r.want, name)
		}
		r.cells[i], r.given[i] = append(r.cells[i][:0], id...), true
	}
	both := false
	if direction, ok := attr(t, "directed"); ok && r.which == 1 {
		switch {
		case direction == "true" && r.undirected:
			return text, r.e.errorf("edge %d is directed, and the graph undirected; write edgedefault=\"directed\", and directed=\"false\" at edges without direction", r.number)
		case direction == "false" && !r.undirected:
			both = true
		}
	}
	if err := r.data(); err != nil {
		return text, err
	}
	text = r.row(text)
	if both && string(r.cells[0]) != string(r.cells[1]) {
		r.cells[0], r.cells[1] = r.cells[1], r.cells[0]
		text = r.row(text)
	}
	return text, nil
}

// data reads what is inside a node or an edge.
func (r *graphRows) data() error {
	for depth := len(r.e.open); len(r.e.open) >= depth; {
		token, err := r.e.next()
		if err != nil {
			return err
		}
		t, ok := token.(xml.StartElement)
		switch {
		case !ok:
		case t.Name.Local == "graph":
			return r.e.errorf("a <graph> inside a <%s>, which is not read; write its nodes and edges into the outer graph", r.want)
		case t.Name.Local == "data" && len(r.e.open) == depth+1:
			if err := r.datum(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// datum reads a value of the node or edge.
func (r *graphRows) datum(t xml.StartElement) error {
	key, _ := attr(t, "key")
	columns, known := r.keys[key]
	if !known {
		return r.e.errorf("data of a %s has key %q, which no <key> before the graph declares", r.want, lines.ClipText(key))
	}
	at := columns[r.which]
	var err error
	r.text, err = r.e.text(r.text[:0])
	switch {
	case err != nil:
		return err
	case at < 0:
		return nil
	}
	a := &r.columnsOf()[at]
	if r.given[at] {
		return r.e.errorf("attribute %q of a %s is there twice", lines.ClipText(a.name), r.want)
	}
	r.cells[at], r.given[at] = append(r.cells[at][:0], a.value(r.text)...), true
	return nil
}

func (r *graphRows) columnsOf() []attribute {
	if r.which == 0 {
		return r.nodes
	}
	return r.edges
}

func (r *graphRows) row(text []byte) []byte {
	for i, a := range r.columnsOf() {
		if i > 0 {
			text = append(text, ',')
		}
		if r.given[i] {
			text = appendQuoted(text, r.cells[i])
		} else if a.standard != "" {
			text = appendQuoted(text, []byte(a.standard))
		}
	}
	return append(text, '\n')
}
