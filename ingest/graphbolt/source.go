package graphbolt

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
)

// Source is a GraphBolt dataset.
type Source struct {
	ingest.Plain
	dir       string // that paths start in
	metadata  string // path of the metadata.yaml that is read
	schema    ingest.Schema
	relations []relation    // by Schema.Relations
	tables    []*array      // by Schema.Tables
	labels    []*targets    // by Schema.Labels
	splits    []*targets    // by Schema.Splits
	held      map[int]*held // by Schema.Relations, of those that have some
	files     []string      // all that is read
	memory    int64         // of the ingest
}

var _ ingest.Source = (*Source)(nil)

// Open reads metadata.yaml in a folder, and the forms of the files that it names.
//
// memory is the bytes of the whole ingest, 0 for 1 GiB. A pickle may take [pickle.Share] of it.
func Open(path string, memory int64) (*Source, error) {
	m, dir, from, err := find(path)
	if err != nil {
		return nil, err
	}
	s := &Source{dir: dir, memory: memory, metadata: from, files: []string{from}, held: map[int]*held{}, schema: ingest.Schema{Name: m.Name}}
	if s.schema.Name == "" {
		if dir, err = filepath.Abs(dir); err == nil {
			s.schema.Name = filepath.Base(dir)
		}
	}
	steps := []func(*metadata) error{s.findNodes, s.findEdges, s.findFeatures, s.findTasks}
	if m.Graph == nil {
		steps = []func(*metadata) error{s.findTopology, s.findFeatures, s.findTasks}
	}
	for _, find := range steps {
		if err := find(m); err != nil {
			return nil, fmt.Errorf("%s: %w", from, err)
		}
	}
	if s.schema.Identity, err = ingest.Files(s.files...); err != nil {
		return nil, err
	}
	return s, nil
}

// homogeneous reports whether types go unnamed, since there is one of each.
func (g *graph) homogeneous() bool {
	return len(g.Nodes) == 1 && len(g.Edges) == 1 && g.Nodes[0].Type == "" && g.Edges[0].Type == ""
}

func (s *Source) findNodes(m *metadata) error {
	if len(m.Graph.Nodes) == 0 {
		return fmt.Errorf("graph.nodes is empty; each type of node has a num there")
	}
	for i, n := range m.Graph.Nodes {
		where := fmt.Sprintf("graph.nodes[%d]", i)
		if n.Num == nil || *n.Num < 0 {
			return fmt.Errorf("%s: num is missing or negative; it is the number of nodes", where)
		}
		name := n.Type
		if name == "" && !m.Graph.homogeneous() {
			return fmt.Errorf("%s: no type; only a graph of one node entry and one edge entry, both without, goes without", where)
		}
		if name == "" {
			name = "node"
		}
		s.schema.NodeTypes = append(s.schema.NodeTypes, ingest.NodeType{Name: name, Count: *n.Num})
	}
	return nil
}

func (s *Source) findEdges(m *metadata) error {
	for i, e := range m.Graph.Edges {
		where := fmt.Sprintf("graph.edges[%d]", i)
		r := ingest.Relation{Src: "node", Name: "to", Dst: "node"}
		if !m.Graph.homogeneous() {
			var err error
			if r, err = s.parseRelation(e.Type); err != nil {
				return fmt.Errorf("%s: %w", where, err)
			}
		}
		path, err := s.path(e.file)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		files, edges, err := s.openEdges(path, e.Format)
		if err != nil {
			return fmt.Errorf("%s: %w", where, err)
		}
		r.Edges = edges
		if s.schema.Relation(r.Key()) >= 0 {
			return fmt.Errorf("%s: edges of type %q are there twice", where, e.Type)
		}
		s.schema.Relations, s.relations = append(s.schema.Relations, r), append(s.relations, files)
	}
	return nil
}

// parseRelation reads "src:rel:dst".
func (s *Source) parseRelation(typ string) (r ingest.Relation, err error) {
	parts := strings.Split(typ, ":")
	if len(parts) != 3 {
		return r, fmt.Errorf("type %q; a type of edges is SRC:RELATION:DST", typ)
	}
	for _, end := range []string{parts[0], parts[2]} {
		if _, err := s.nodeType(end); err != nil {
			return r, fmt.Errorf("type %q: %w", typ, err)
		}
	}
	return ingest.Relation{Src: parts[0], Name: parts[1], Dst: parts[2]}, nil
}

// nodeType finds a type; the empty name is the only one's.
func (s *Source) nodeType(name string) (ingest.NodeType, error) {
	var names []string
	for _, t := range s.schema.NodeTypes {
		if t.Name == name || name == "" && len(s.schema.NodeTypes) == 1 {
			return t, nil
		}
		names = append(names, t.Name)
	}
	return ingest.NodeType{}, fmt.Errorf("there is no node type %q in graph.nodes, only %s", name,
		strings.Join(names, ", "))
}

// path is where a file is, which must be inside the dataset, and remembers it.
func (s *Source) path(f file) (string, error) {
	if f.Path == "" {
		return "", fmt.Errorf("no path")
	}
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return "", fmt.Errorf("path %q leads out of the dataset; paths are relative to its folder", f.Path)
	}
	path := filepath.Join(s.dir, filepath.FromSlash(f.Path))
	if !slices.Contains(s.files, path) {
		s.files = append(s.files, path)
	}
	return path, nil
}

// array opens a file of numbers, or gives the reason to pass over it.
func (s *Source) array(f file) (a *array, skip string, err error) {
	path, err := s.path(f)
	if err != nil {
		return nil, "", err
	}
	switch f.Format {
	case "numpy", "torch":
		a, err = s.openArray(path, f.Format)
	default:
		return nil, "", fmt.Errorf("%s: format %q; arrays are numpy or torch", path, f.Format)
	}
	if isUnsupported(err) {
		return nil, err.Error(), nil
	}
	if err == nil && !a.header.Type.Number() {
		return nil, fmt.Sprintf("%s: it is %s, which holds no numbers", path, a.header.String()), nil
	}
	return a, "", err
}

func (s *Source) skip(format string, args ...any) {
	s.schema.Skipped = append(s.schema.Skipped, fmt.Sprintf(format, args...))
}

// findFeatures lays down tables, and the columns that edges keep.
func (s *Source) findFeatures(m *metadata) error {
	if m.Graph != nil {
		for i, f := range m.Graph.Features {
			if err := s.findFeature(f, true); err != nil {
				return fmt.Errorf("graph.feature_data[%d]: %w", i, err)
			}
		}
	}
	for i, f := range m.Features {
		if m.Graph == nil && f.Domain == "edge" {
			s.skip("%s: rows of edges are in the order of the original files, which preprocessing does not keep; bring these back", f.Path)
			continue
		}
		if err := s.findFeature(f, false); err != nil {
			return fmt.Errorf("feature_data[%d]: %w", i, err)
		}
	}
	return nil
}

func (s *Source) findFeature(f feature, sampling bool) error {
	if f.Name == "" {
		return fmt.Errorf("no name")
	}
	t := ingest.Table{Name: f.Name}
	rows, of := int64(0), ""
	at := -1 // of the relation
	switch f.Domain {
	case "graph":
		s.skip("%s: features of the whole graph are not kept", f.Path)
		return nil
	case "node":
		n, err := s.nodeType(f.Type)
		if err != nil {
			return err
		}
		t.NodeType, rows, of = n.Name, n.Count, fmt.Sprintf("%d nodes of type %s", n.Count, n.Name)
	case "edge":
		r := ingest.Relation{Src: "node", Name: "to", Dst: "node"}
		if f.Type != "" || len(s.schema.Relations) != 1 {
			var err error
			if r, err = s.parseRelation(f.Type); err != nil {
				return err
			}
		}
		if at = s.schema.Relation(r.Key()); at < 0 {
			return fmt.Errorf("there are no edges of type %q in graph.edges", f.Type)
		}
		t.Relation, rows = r.Key(), s.schema.Relations[at].Edges
		of = fmt.Sprintf("%d edges of type %s", rows, f.Type)
	default:
		return fmt.Errorf("domain %q; features are of a node, an edge or the graph", f.Domain)
	}
	a, skip, err := s.array(f.file)
	if err != nil || skip != "" {
		if skip != "" {
			s.skip("%s", skip)
		}
		return err
	}
	if len(a.header.Shape) == 0 || len(a.header.Shape) > 2 || a.columns() == 0 {
		s.skip("%s: it is %s, and features are rows of numbers", a.path, a.header.String())
		return nil
	}
	if rows >= 0 && a.rows() != rows {
		return fmt.Errorf("%s: %d rows, and there are %s; correct what is wrong, or fetch both again", a.path, a.rows(), of)
	}
	if a.columns() > ingest.MaxColumns {
		return fmt.Errorf("%s: %d columns; a row has at most %d", a.path, a.columns(), ingest.MaxColumns)
	}
	if sampling && at >= 0 && s.addColumn(at, f.Name, a) {
		return nil
	}
	if slices.ContainsFunc(s.schema.Tables, func(o ingest.Table) bool {
		return o.Name == t.Name && o.NodeType == t.NodeType && o.Relation == t.Relation
	}) {
		s.skip("%s: there is a table %s of the same type already", a.path, t.Name)
		return nil
	}
	t.Dim = int(a.columns())
	s.schema.Tables, s.tables = append(s.schema.Tables, t), append(s.tables, a)
	return nil
}

// addColumn keeps an array beside the edges of a relation, if it is a column.
func (s *Source) addColumn(at int, name string, a *array) bool {
	c, ok := columnOf(a)
	if !ok {
		return false
	}
	r := &s.schema.Relations[at]
	if name == "id" || slices.ContainsFunc(r.Columns, func(o ingest.EdgeColumn) bool { return o.Name == name }) {
		s.skip("%s: edges have a column %s already", a.path, name)
		return true
	}
	if a.header.Type.Kind == npy.Float && a.header.Type.Size == 8 {
		s.skip("%s: its values are rounded to 32 bits", a.path)
	}
	r.Columns = append(r.Columns, ingest.EdgeColumn{Name: name, Elem: c.elem})
	s.relations[at].columns = append(s.relations[at].columns, c)
	return true
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{HeldEdges: s.HeldEdges, HeldPool: s.HeldPool}
}

// Schema returns the schema that Open made.
func (s *Source) Schema(context.Context) (*ingest.Schema, error) { return new(s.schema), nil }

// Edges streams the edges of one type, in the order of their file.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	return s.relations[relation].each(ctx, emit)
}

// Rows streams the features of one type.
func (s *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	a := s.tables[table]
	return a.matrix(ctx, ingest.RowsOf(a.path, emit))
}

// Labels streams a task's labels of the nodes of one type.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	return s.labels[label].each(ctx, s.metadata, emit)
}

// Split streams the nodes of one set of a task.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	return s.splits[split].seeds(ctx, part, emit)
}
