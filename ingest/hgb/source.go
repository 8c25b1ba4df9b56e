package hgb

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

const (
	maxTypes = 4096 // of nodes, and of links; Freebase, the benchmark's largest, has 8 and 36
)

// Options tune the split; the zero value is the benchmark's.
type Options struct {
	Valid float64 // the part of label.dat that validates, default 0.2; negative: none
	Seed  uint64  // of the draw
}

// Validate checks the part that validates.
func (o Options) Validate() error {
	if !(o.Valid < 1) {
		return fmt.Errorf("{valid} %v: a part of the labelled nodes is less than 1", o.Valid)
	}
	return nil
}

// Source is a graph of the benchmark.
type Source struct {
	ingest.Plain
	*files
	o      Options
	info   *info
	types  []nodeType // by number
	runs   []run
	nodes  int64
	links  []linkType // by number
	labels []*labelled
	schema *ingest.Schema // nil until the first call of Schema
	closed bool           // the zip is closed
}

var _ ingest.Source = (*Source)(nil)

type nodeType struct {
	number int
	name   string
	count  int64
	dim    int // -1 until its first node is read, 0 without features
}

// run is a range of ids whose nodes are of one type.
type run struct {
	first int64 // id of its first node
	row   int64 // of its first node, within the type
	typ   int   // index of types
}

type linkType struct {
	number   int
	src, dst int // indices of types
	line     int64
	count    int64
	weighted bool
}

// Open finds the graph in a folder or zip. What it holds is read by the first call of Schema.
func Open(path string, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if o.Valid == 0 {
		o.Valid = 0.2
	}
	f, err := findFiles(path)
	if err != nil {
		return nil, err
	}
	s := &Source{files: f, o: o}
	if f.archive == nil {
		if err := lines.RefusePointer(f.label("info.dat")); err != nil { // readInfo would take it for a file without names
			return nil, err
		}
	}
	if !f.has("link.dat") {
		return nil, errors.Join(fmt.Errorf("%s: no such file; a graph has node.dat and link.dat", f.label("link.dat")),
			s.Close())
	}
	return s, nil
}

// Close closes the zip. A second call does nothing.
func (s *Source) Close() error {
	if s.archive == nil || s.closed {
		return nil
	}
	s.closed = true
	return s.archive.Close()
}

// Schema reads nodes, links and labels through on its first call.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	return ingest.ScanOnce(ctx, &s.schema, s.scan)
}

func (s *Source) scan(ctx context.Context) (*ingest.Schema, error) {
	s.types, s.runs, s.nodes, s.links, s.labels = nil, nil, 0, nil, nil // an earlier call may have been cancelled half-way
	schema := &ingest.Schema{Name: s.name()}
	var err error
	if schema.Identity, err = ingest.Files(s.read()...); err != nil {
		return nil, err
	}
	schema.Identity += fmt.Sprintf("valid %v seed %d\n", s.o.Valid, s.o.Seed)
	if s.info, err = s.readInfo(); err != nil {
		schema.Skipped = append(schema.Skipped, err.Error())
	}
	if err := s.scanNodes(ctx); err != nil {
		return nil, err
	}
	if err := s.scanLinks(ctx); err != nil {
		return nil, err
	}
	if err := s.readLabels(ctx); err != nil {
		return nil, err
	}
	for i := range s.types {
		t := &s.types[i]
		schema.NodeTypes = append(schema.NodeTypes, ingest.NodeType{Name: t.name, Count: t.count})
		if t.dim > 0 {
			schema.Tables = append(schema.Tables, ingest.Table{Name: "feat", NodeType: t.name, Dim: t.dim})
		}
	}
	schema.Relations = s.relations()
	for _, l := range s.labels {
		t := s.types[l.typ]
		schema.Labels = append(schema.Labels, ingest.Label{
			Name: "label", NodeType: t.name, Classes: l.classes, Multi: l.multi,
			ClassNames: s.info.classNames(t.number, l.classes),
		})
		name := "hgb"
		if len(s.labels) > 1 {
			name += "-" + t.name // names are unique over all types
		}
		schema.Splits = append(schema.Splits, ingest.Split{Name: name, NodeType: t.name})
	}
	schema.Skipped = append(schema.Skipped, "node.dat: names of nodes are not kept")
	for _, name := range s.names {
		switch name {
		case "node.dat", "link.dat", "label.dat", "label.dat.test", "info.dat":
		case "label.dat.test_full":
			schema.Skipped = append(schema.Skipped,
				name+": its labels are shuffled on purpose; label.dat.test has true ones for half of the test nodes")
		default:
			schema.Skipped = append(schema.Skipped, name+": it is no part of the graph")
		}
	}
	return schema, nil
}

// name returns the name of the folder, or of the folder inside a zip. Without a folder it
// returns the name of the file.
func (s *Source) name() string {
	if base := filepath.Base(s.dir); base != "." {
		return base
	}
	path := s.path
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // "." has no name
	}
	return strings.TrimSuffix(filepath.Base(path), ".zip")
}

// scanNodes counts the nodes of each type, and learns where they are and how wide their features.
func (s *Source) scanNodes(ctx context.Context) error {
	index := map[int]int{}
	err := s.eachIn(ctx, "node.dat", func(in *lines.Scanner, cells [][]byte) error {
		number, features, err := s.node(in, cells, s.nodes)
		if err != nil {
			return err
		}
		t, ok := index[number]
		if !ok {
			if t = len(s.types); t == maxTypes {
				return in.Errorf("type %d is the %dth, and there are at most %d", number, t+1, maxTypes)
			}
			index[number] = t
			s.types = append(s.types, nodeType{number: number, dim: -1})
		}
		typ := &s.types[t]
		dim := columns(features)
		if typ.dim < 0 {
			typ.dim = dim
		}
		if dim != typ.dim {
			return in.Errorf("%d features, and the first node of type %d has %d; all nodes of a type have the same",
				dim, number, typ.dim)
		}
		if dim > ingest.MaxColumns {
			return in.Errorf("%d features; a node has at most %d", dim, ingest.MaxColumns)
		}
		if n := len(s.runs); n == 0 || s.runs[n-1].typ != t {
			s.runs = append(s.runs, run{s.nodes, typ.count, t})
		}
		typ.count++
		s.nodes++
		return nil
	})
	if err != nil {
		return err
	}
	if s.nodes == 0 {
		return fmt.Errorf("%s: there are no nodes in it; fetch it again", s.label("node.dat"))
	}
	// Types go by number, not by their first nodes.
	order := make([]int, len(s.types))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(s.types[a].number, s.types[b].number) })
	types, place := make([]nodeType, len(order)), make([]int, len(order))
	taken := map[string]bool{}
	for to, from := range order {
		types[to], place[from] = s.types[from], to
		if types[to].name = s.info.typeName(types[to].number); taken[types[to].name] {
			types[to].name = fmt.Sprintf("type%d", types[to].number)
		}
		if taken[types[to].name] {
			return fmt.Errorf("%s: two types are called %s; call them differently", s.label("info.dat"), types[to].name)
		}
		taken[types[to].name] = true
	}
	s.types = types
	for i := range s.runs {
		s.runs[i].typ = place[s.runs[i].typ]
	}
	return nil
}

// node reads a line of node.dat: the number of its type, and the cell of its features.
func (s *Source) node(in *lines.Scanner, cells [][]byte, next int64) (number int, features []byte, err error) {
	if len(cells) != 3 && len(cells) != 4 {
		return 0, nil, in.Errorf("found %d columns; a node has an id, a name, a type and perhaps features, between tabs", len(cells))
	}
	id, ok := integer(cells[0])
	if !ok || id != next {
		return 0, nil, in.ErrorIn(1, "node %q, and %d follows: ids run from 0 in the order of the file",
			lines.Clip(cells[0]), next)
	}
	if number, ok = small(cells[2]); !ok {
		return 0, nil, in.ErrorIn(3, "%q is not the number of a node type", lines.Clip(cells[2]))
	}
	if len(cells) == 4 {
		features = cells[3]
	}
	return number, features, nil
}

// scanLinks counts the links of each type and learns their ends.
func (s *Source) scanLinks(ctx context.Context) error {
	index := map[int]int{}
	err := s.eachIn(ctx, "link.dat", func(in *lines.Scanner, cells [][]byte) error {
		l, err := s.link(in, cells)
		if err != nil {
			return err
		}
		i, ok := index[l.number]
		if !ok {
			if i = len(s.links); i == maxTypes {
				return in.Errorf("link type %d is the %dth, and there are at most %d", l.number, i+1, maxTypes)
			}
			index[l.number] = i
			s.links = append(s.links, linkType{number: l.number, src: l.src.typ, dst: l.dst.typ, line: in.Line()})
		}
		t := &s.links[i]
		if t.src != l.src.typ || t.dst != l.dst.typ {
			return in.Errorf("a link of type %d from %s to %s, and the one in line %d goes from %s to %s", l.number,
				s.types[l.src.typ].name, s.types[l.dst.typ].name, t.line, s.types[t.src].name, s.types[t.dst].name)
		}
		t.count++
		t.weighted = t.weighted || l.weight != 1
		return nil
	})
	slices.SortFunc(s.links, func(a, b linkType) int { return cmp.Compare(a.number, b.number) })
	return err
}

// relations are the link types under their names.
func (s *Source) relations() []ingest.Relation {
	var all []ingest.Relation
	taken := map[string]bool{}
	for _, l := range s.links {
		r := ingest.Relation{Src: s.types[l.src].name, Dst: s.types[l.dst].name, Edges: l.count}
		if r.Name = s.info.relationName(l.number, r.Src, r.Dst); taken[r.Key()] {
			r.Name = fmt.Sprintf("%s-%d", r.Name, l.number)
		}
		if taken[r.Key()] {
			r.Name = fmt.Sprintf("link%d", l.number)
		}
		taken[r.Key()] = true
		if l.weighted {
			r.Columns = []ingest.EdgeColumn{weightColumn}
		}
		all = append(all, r)
	}
	return all
}

// at finds the type and the row of a node.
func (s *Source) at(id int64) (typ int, row int64, ok bool) {
	if id < 0 || id >= s.nodes {
		return 0, 0, false
	}
	i, exact := slices.BinarySearchFunc(s.runs, id, func(r run, id int64) int { return cmp.Compare(r.first, id) })
	if !exact {
		i--
	}
	r := s.runs[i]
	return r.typ, r.row + id - r.first, true
}

// eachIn calls each, and looks at the context every 4096 lines.
func (s *Source) eachIn(ctx context.Context, name string, visit func(in *lines.Scanner, cells [][]byte) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	n := 0
	return s.each(name, func(in *lines.Scanner, cells [][]byte) error {
		if n++; n%4096 == 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
		}
		return visit(in, cells)
	})
}
