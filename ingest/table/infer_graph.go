package table

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	maxTypedIDs = 1 << 20 // whose types are remembered, to tell the types of ends
	maxLabels   = 1 << 10 // different texts of labels, and of relations
)

// propertyColumns are the columns of a property graph that a table has: of nodes, of edges, or of
// both.
type propertyColumns struct {
	system              string // whose header it is; "": a column has the type of each node
	id, labels          int    // -1 without one
	start, end, kind    int
	space, starts, ends string // of ids, in parentheses
}

// neo4jColumn is a column of neo4j-admin's import: personId:ID(Person), :START_ID, :TYPE.
// https://neo4j.com/docs/operations-manual/current/tools/neo4j-admin/neo4j-admin-import/
var neo4jColumn = regexp.MustCompile(`^[^:]*:(ID|START_ID|END_ID|LABEL|TYPE)(?:\(([^)]*)\))?$`)

// findProperties recognises the headers of neo4j-admin, of APOC's export of a whole graph, and of
// Neptune:
// https://docs.aws.amazon.com/neptune/latest/userguide/bulk-load-tutorial-format-gremlin.html
func findProperties(titles []string) (p propertyColumns, ok bool) {
	p = propertyColumns{id: -1, labels: -1, start: -1, end: -1, kind: -1}
	at := func(name string) int {
		return slices.IndexFunc(titles, func(t string) bool { return strings.EqualFold(strings.TrimSpace(t), name) })
	}
	switch {
	case at("_id") >= 0 && at("_labels") >= 0:
		p.system, p.id, p.labels, p.start, p.end, p.kind = "APOC", at("_id"), at("_labels"), at("_start"), at("_end"), at("_type")
	case at("_start") >= 0 && at("_end") >= 0:
		p.system, p.start, p.end, p.kind = "APOC", at("_start"), at("_end"), at("_type")
	case at("~from") >= 0 && at("~to") >= 0:
		p.system, p.start, p.end, p.kind = "Neptune", at("~from"), at("~to"), at("~label")
	case at("~id") >= 0:
		p.system, p.id, p.labels = "Neptune", at("~id"), at("~label")
	default:
		p.system = "neo4j-admin"
		for i, title := range titles {
			m := neo4jColumn.FindStringSubmatch(strings.TrimSpace(title))
			if m == nil {
				continue
			}
			switch m[1] {
			case "ID":
				p.id, p.space = i, m[2]
			case "START_ID":
				p.start, p.starts = i, m[2]
			case "END_ID":
				p.end, p.ends = i, m[2]
			case "LABEL":
				p.labels = i
			case "TYPE":
				p.kind = i
			}
		}
	}
	return p, p.id >= 0 || p.start >= 0 && p.end >= 0
}

// PropertyGraph returns the system whose header a table has, "" if it has none.
func PropertyGraph(header []string) string {
	if p, ok := findProperties(header); ok {
		return p.system
	}
	return ""
}

// propertyTable is a table of a property graph, read through.
type propertyTable struct {
	*inferred
	propertyColumns
	types     []*propertyType // of its nodes
	relations []*propertyRelation
}

// propertyType is the nodes of one table whose first label is the same.
type propertyType struct {
	*inferred // columns of these rows alone
	name      string
	texts     map[string]bool // of labels
	kind      int             // in propertyGraph
}

// propertyRelation is the edges of one table with one type.
type propertyRelation struct {
	*inferred // columns of these rows alone
	name      string
	pairs     map[[2]int]bool // of types
}

// propertyGraph collects what the tables of a property graph hold.
type propertyGraph struct {
	tables []*propertyTable
	kinds  []string       // names of types
	merged []int          // union-find over kinds
	typeOf map[string]int // by space and id
	full   bool           // some ids are not in typeOf
	lost   int            // ends in no table
}

// properties takes the tables of a property graph for nodes and edges, and leaves the others.
func (g *guess) properties() error {
	p := &propertyGraph{typeOf: map[string]int{}}
	var others []*inferred
	for _, t := range g.tables {
		var titles []string
		for _, c := range t.columns {
			titles = append(titles, c.name)
		}
		if columns, ok := findProperties(titles); ok && t.form.header {
			p.tables = append(p.tables, &propertyTable{inferred: t, propertyColumns: columns})
		} else {
			others = append(others, t)
		}
	}
	others = p.typedTables(others)
	if len(p.tables) == 0 {
		return nil
	}
	g.tables = others
	for _, t := range p.tables {
		if err := t.eachRow(func(cells []value) error { return p.addNode(t, cells) }); err != nil {
			return err
		}
	}
	for _, t := range p.tables {
		if err := t.eachRow(func(cells []value) error { return p.addEdge(t, cells) }); err != nil {
			return err
		}
	}
	p.write(g)
	return nil
}

// nodeTypeNames are the headers of columns with the type of each node.
var nodeTypeNames = []string{"node_type", "nodetype", "ntype", "vertex_type", "entity_type"}

// typedTables takes the tables of nodes that have a column of types, and, if there are some, the
// tables of edges. It returns the other tables.
func (p *propertyGraph) typedTables(tables []*inferred) (others []*inferred) {
	for _, t := range tables {
		id := t.ownID()
		kind := slices.IndexFunc(t.columns, func(c *guessed) bool {
			return c.is(nodeTypeNames...) && c != id && c.missing == 0 && len(c.values) <= manyRelations
		})
		if !t.form.header || id == nil || kind < 0 || t.asPair() != nil {
			others = append(others, t)
			continue
		}
		columns := propertyColumns{id: slices.Index(t.columns, id), labels: kind, start: -1, end: -1, kind: -1}
		p.tables = append(p.tables, &propertyTable{inferred: t, propertyColumns: columns})
	}
	if len(others) == len(tables) {
		return others
	}
	return slices.DeleteFunc(others, func(t *inferred) bool {
		if !t.form.header {
			return false
		}
		e := t.namedPair()
		if e == nil {
			return false
		}
		columns := propertyColumns{id: -1, labels: -1, kind: -1}
		columns.start, columns.end = slices.Index(t.columns, e.src), slices.Index(t.columns, e.dst)
		if e.findRelation(); e.by != nil {
			columns.kind = slices.Index(t.columns, e.by)
		}
		p.tables = append(p.tables, &propertyTable{inferred: t, propertyColumns: columns})
		return true
	})
}

// eachRow reads the files of a table through.
func (t *propertyTable) eachRow(visit func(cells []value) error) error {
	for _, file := range t.files {
		path := filepath.Join(t.dir, filepath.FromSlash(file))
		r, err := t.form.open(path)
		if err != nil {
			return err
		}
		var at []int
		for _, c := range t.columns {
			at = append(at, c.number)
		}
		if err = r.choose(at); err == nil {
			err = eachRowOf(path, r, make([]value, len(at)), visit)
		}
		r.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func eachRowOf(path string, r rows, cells []value, visit func(cells []value) error) error {
	for {
		err := r.next(cells)
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = visit(cells)
		}
		if bad, ok := err.(*rowError); ok {
			err = judge(nil, path, r, bad)
		}
		if err != nil {
			return err
		}
	}
}

// text is the text of a cell; "" without the column.
func text(cells []value, column int) string {
	if column < 0 {
		return ""
	}
	var buf [24]byte
	return string(textOf(&cells[column], buf[:0]))
}

// firstLabel is the first of the labels in a cell: :Person:Actor or Person;Actor.
func firstLabel(labels string) string {
	labels = strings.TrimLeft(labels, ":;")
	if i := strings.IndexAny(labels, ":;"); i >= 0 {
		labels = labels[:i]
	}
	return labels
}

// kind is the number of a type of nodes by its name.
func (p *propertyGraph) kind(name string) int {
	i := slices.Index(p.kinds, name)
	if i < 0 {
		i = len(p.kinds)
		p.kinds, p.merged = append(p.kinds, name), append(p.merged, i)
	}
	return i
}

// unread is the table without what its rows tell.
func (t *inferred) unread() *inferred {
	own := *t
	own.rows, own.columns = 0, nil
	for _, c := range t.columns {
		own.columns = append(own.columns, newGuessed(c.name, c.number, t.form.numerals))
	}
	return &own
}

// sample looks at a row, if it is one of the first.
func (t *inferred) sample(cells []value) {
	if t.rows == sampleRows {
		return
	}
	t.rows++
	for i := range cells {
		t.columns[i].add(&cells[i])
	}
}

func (p *propertyGraph) addNode(t *propertyTable, cells []value) error {
	if t.id < 0 || text(cells, t.id) == "" {
		return nil
	}
	labels := text(cells, t.labels)
	name := cmp.Or(firstLabel(labels), t.space, map[bool]string{true: t.stem}[t.labels < 0], "node")
	i := slices.IndexFunc(t.types, func(k *propertyType) bool { return k.name == name })
	if i < 0 {
		if i = len(t.types); i == maxLabels {
			return &rowError{err: fmt.Errorf("more than %d different labels of nodes", maxLabels)}
		}
		k := &propertyType{inferred: t.unread(), name: name, texts: map[string]bool{}, kind: p.kind(name)}
		t.types = append(t.types, k)
	}
	k := t.types[i]
	if !k.texts[labels] && len(k.texts) < maxLabels {
		k.texts[labels] = true
	}
	k.sample(cells)
	if len(p.typeOf) == maxTypedIDs {
		p.full = true
		return nil
	}
	p.typeOf[t.space+"\x00"+text(cells, t.id)] = k.kind
	return nil
}

func (p *propertyGraph) addEdge(t *propertyTable, cells []value) error {
	if t.start < 0 || t.end < 0 || text(cells, t.start) == "" && text(cells, t.end) == "" {
		return nil
	}
	name := text(cells, t.kind)
	i := slices.IndexFunc(t.relations, func(r *propertyRelation) bool { return r.name == name })
	if i < 0 {
		if i = len(t.relations); i == maxLabels {
			return &rowError{err: fmt.Errorf("more than %d different types of edges", maxLabels)}
		}
		t.relations = append(t.relations, &propertyRelation{inferred: t.unread(), name: name, pairs: map[[2]int]bool{}})
	}
	r := t.relations[i]
	r.sample(cells)
	src, ok := p.typeOf[t.starts+"\x00"+text(cells, t.start)]
	dst, ok2 := p.typeOf[t.ends+"\x00"+text(cells, t.end)]
	if !ok || !ok2 {
		p.lost++
		return nil
	}
	r.pairs[[2]int{src, dst}] = true
	return nil
}

func (p *propertyGraph) root(kind int) int {
	for p.merged[kind] != kind {
		kind = p.merged[kind]
	}
	return kind
}

// merge makes one type of all source types of a relation, and one of all its destination types.
func (p *propertyGraph) merge() {
	for _, t := range p.tables {
		for _, r := range t.relations {
			first := [2]int{-1, -1}
			inOrder := func(a, b [2]int) int { return slices.Compare(a[:], b[:]) }
			for _, pair := range slices.SortedFunc(maps.Keys(r.pairs), inOrder) {
				for side, kind := range pair {
					if first[side] < 0 {
						first[side] = kind
					}
					a, b := p.root(first[side]), p.root(kind)
					p.merged[max(a, b)] = min(a, b)
				}
			}
		}
	}
}

// name is the name of the type that a kind is part of.
func (p *propertyGraph) name(kind int) string {
	root := p.root(kind)
	var names []string
	for k, name := range p.kinds {
		if p.root(k) == root {
			names = append(names, name)
		}
	}
	return cleanName(strings.Join(names, "_"))
}

// write makes entries of nodes and edges.
func (p *propertyGraph) write(g *guess) {
	p.merge()
	for _, t := range p.tables {
		byName := map[string]*inferredNodes{}
		alone := t.start < 0 && len(t.types) == 1
		for _, k := range t.types {
			name := p.name(k.kind)
			n := byName[name]
			if n == nil {
				if i := slices.IndexFunc(g.nodes, func(n *inferredNodes) bool { return n.name == name }); i >= 0 {
					if other := g.nodes[i]; !other.addFiles(t, k) {
						g.notes = append(g.notes, fmt.Sprintf("%s: passed over: nodes of type %s are in %s already, whose columns are called otherwise; "+
							"write both into one form", t.files[0], name, other.files[0]))
					}
					continue
				}
				n = &inferredNodes{inferred: k.inferred, name: name, id: k.columns[t.id]}
				n.passed = map[*guessed]bool{}
				for _, i := range []int{t.labels, t.start, t.end, t.kind} {
					if i >= 0 {
						n.passed[k.columns[i]] = true
					}
				}
				byName[name], g.nodes = n, append(g.nodes, n)
			} else {
				n.add(k.inferred)
				n.merged = n.columns[t.labels]
			}
			if !alone && t.labels >= 0 {
				n.where, n.whereOf = append(n.where, k.patterns()...), t.columns[t.labels]
			}
		}
	}
	for _, t := range p.tables {
		for _, r := range t.relations {
			pair, ok := [2]int{}, false
			for pair = range r.pairs {
				ok = true
				break
			}
			if !ok {
				g.notes = append(g.notes, fmt.Sprintf("%s: passed over: edges of type %s, whose ends are in no table that was read", t.files[0], lines.ClipText(r.name)))
				continue
			}
			e := &inferredEdges{
				inferred: r.inferred, src: r.columns[t.start], dst: r.columns[t.end], from: p.name(pair[0]), to: p.name(pair[1]),
				relation: cleanName(cmp.Or(r.name, t.stem)), why: t.endsText(),
				chosen: chosen{passed: map[*guessed]bool{}},
			}
			for _, i := range []int{t.id, t.labels, t.kind} {
				if i >= 0 {
					e.passed[r.columns[i]] = true
				}
			}
			if t.kind >= 0 && (len(t.relations) > 1 || t.id >= 0) {
				e.where, e.whereOf = []string{r.name}, r.columns[t.kind]
			}
			g.edges = append(g.edges, e)
		}
	}
	if p.lost > 0 {
		why := ""
		if p.full {
			why = fmt.Sprintf("; only the first %d ids were looked at", maxTypedIDs)
		}
		g.notes = append(g.notes, fmt.Sprintf("%d edges have an end that no table lists%s", p.lost, why))
	}
}

// endsText names the columns of the ends for a comment.
func (t *propertyTable) endsText() string {
	text := fmt.Sprintf("columns %s and %s", t.columns[t.start].name, t.columns[t.end].name)
	if t.system != "" {
		text += " of " + t.system
	}
	return text
}

// patterns returns the patterns for where that match the labels of the type's nodes.
func (k *propertyType) patterns() (patterns []string) {
	for labels := range k.texts {
		i := strings.Index(labels, k.name)
		if i < 0 {
			patterns = append(patterns, labels)
			continue
		}
		patterns = append(patterns, labels[:i+len(k.name)])
		if rest := labels[i+len(k.name):]; rest != "" {
			patterns = append(patterns, labels[:i+len(k.name)+1]+"*")
		}
	}
	slices.Sort(patterns)
	return slices.Compact(patterns)
}

// addFiles adds the files of a table to an entry whose columns are called the same.
func (n *inferredNodes) addFiles(t *propertyTable, k *propertyType) bool {
	if n.form != t.form || n.id.key() != t.columns[t.id].key() || len(n.where) > 0 || t.start >= 0 || len(t.types) > 1 {
		return false
	}
	for _, c := range n.columns {
		if !slices.ContainsFunc(t.columns, func(o *guessed) bool { return o.key() == c.key() }) {
			return false
		}
	}
	own := *n.inferred
	own.files = append(slices.Clone(n.files), t.files...)
	n.inferred = &own
	return true
}

// add adds what other rows of the same table have to n's columns.
func (n *inferredNodes) add(other *inferred) {
	n.rows += other.rows
	for i, c := range n.columns {
		o := other.columns[i]
		c.missing, c.absent, c.integers = c.missing+o.missing, c.absent+o.absent, c.integers+o.integers
		c.floats, c.lists, c.large, c.odd = c.floats+o.floats, c.lists+o.lists, c.large || o.large, c.odd || o.odd
		c.unique = c.unique && o.unique
		for v, k := range o.values {
			c.values[v] += k
		}
		for v, k := range o.words {
			c.words[v] += k
		}
		for v, k := range o.widths {
			c.widths[v] += k
		}
	}
}

// writeWhere writes the rows that an entry takes.
func writeWhere(b *bytes.Buffer, column *guessed, patterns []string) {
	if len(patterns) > 0 {
		fmt.Fprintf(b, "    where: {%s: %s}\n", quote(column.key()), quotes(patterns))
	}
}

// base is the name of a column without the type that property graphs write behind it: age:int.
func (c *guessed) base() string {
	if i := strings.IndexByte(c.name, ':'); i > 0 {
		return c.name[:i]
	}
	return c.name
}
