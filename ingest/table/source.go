package table

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// Options are settings beside the schema.
type Options struct {
	Memory      int64 // of the ingest; joined files take up to a quarter; default 1 GiB
	SkipBad     int64 // rows that may be passed over; default none
	FollowLinks bool  // follow paths and symbolic links out of the schema's folder
	// Decimal and Thousands are the marks in numbers of text, as in edgelist.Options, in entries of
	// the schema that choose none.
	Decimal, Thousands string
	// Encoding names the encoding of text, as in edgelist.Options, in entries of the schema that
	// choose none.
	Encoding string

	Like *ingest.Like // encodes tables as another dataset's; default nil: by their own values
}

// form reads the options about the text of tables.
func (o *Options) form() (f form, err error) {
	if f.numerals, err = lines.ParseNumerals(o.Decimal, o.Thousands); err != nil {
		return f, err
	}
	f.encoding, err = lines.ParseEncoding(o.Encoding)
	return f, err
}

// Source is a graph in tables that a schema describes.
type Source struct {
	ingest.Plain
	schema  *schema
	bad     *lines.Tolerance
	forgive forgiver // skips bad rows as bad allows
	edges   []*edges

	// What each section of the Schema is read from. Schema fills these lists:
	form      *ingest.Schema
	nodes     []*nodes
	relations []relation
	tables    []tableOf
	labels    []*nodes
	splits    []*nodes
}

// relation is one relation of an entry.
type relation struct {
	*edges
	kind int32
}

// tableOf is where a table comes from: nodes or edges.
type tableOf struct {
	nodes *nodes
	edges relation
	index int // in the tables of these
}

var _ ingest.Source = (*Source)(nil)

// Open reads a schema, and the beginnings of the files that it names. Its errors about the schema
// are a [*SchemaError].
func Open(path string, o Options) (*Source, error) {
	s, err := open(path, o)
	return s, inSchemaFile(path, err)
}

func open(path string, o Options) (*Source, error) {
	sch, err := readSchema(path, o)
	if err != nil {
		return nil, err
	}
	bad := lines.NewTolerance(o.SkipBad)
	s := &Source{schema: sch, bad: bad, forgive: forgiving(bad), edges: sch.edges, nodes: sch.nodes}
	if !o.FollowLinks {
		for _, file := range s.files()[1:] { // the schema itself was named by the user
			if err := build.CheckLink(filepath.Dir(path), file); err != nil {
				return nil, err
			}
		}
	}
	memory := cmp.Or(o.Memory, 1<<30)
	for _, n := range sch.nodes {
		for _, j := range n.joins {
			j.memory = memory / 4 / int64(len(n.joins))
		}
		if err := n.checkAll(); err != nil {
			return nil, err
		}
	}
	for _, e := range sch.edges {
		if err := e.check(e.reader(true, e.tables).columns); err != nil {
			return nil, err
		}
	}
	if o.Like != nil {
		if err := sch.follow(o.Like); err != nil {
			return nil, err
		}
	}
	for _, n := range sch.nodes {
		if err := n.checkUnknown(n.tables); err != nil {
			return nil, err
		}
	}
	for _, e := range sch.edges {
		if err := e.checkUnknown(e.tables); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{Describe: s.Describe, UnfilledRows: s.UnfilledRows, BadRows: s.bad.BadRows, Remarks: s.Remarks}
}

// Schema reads what must be known beforehand on its first call: the first rows of every entry, and
// whole tables that have labels or categories, name relations, or have no column of ids.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	form, err := ingest.ScanOnce(ctx, &s.form, s.scan)
	return form, inSchemaFile(s.schema.path, err)
}

func (s *Source) scan(ctx context.Context) (*ingest.Schema, error) {
	form := &ingest.Schema{Name: s.schema.name, BackWanted: s.schema.reverse}
	var err error
	if form.Identity, err = ingest.Files(s.files()...); err != nil {
		return nil, err
	}
	all := slices.Clone(s.schema.nodes)
	byName := map[string]*nodes{}
	for _, n := range all {
		byName[n.name] = n
		if !n.gathered {
			if err := n.settle(ctx, s.forgive); err != nil {
				return nil, err
			}
		}
	}
	for _, e := range s.edges {
		for _, name := range []string{e.src, e.dst} {
			if byName[name] == nil { // no nodes are declared
				byName[name] = &nodes{name: name, gathered: true}
				all = append(all, byName[name])
			}
		}
	}
	for _, n := range all {
		if !n.gathered {
			continue
		}
		if n.ids = n.declared; n.ids == autoIDs {
			if err := s.gatheredIDs(ctx, n); err != nil {
				return nil, err
			}
		}
	}
	if form.Skipped, err = s.checkWhere(ctx); err != nil {
		return nil, err
	}
	s.nodes, s.relations, s.tables, s.labels, s.splits = all, nil, nil, nil, nil
	for _, n := range all {
		s.describeNodes(form, n)
	}
	for _, e := range s.edges {
		e.srcIDs, e.dstIDs = byName[e.src].ids, byName[e.dst].ids
		if err := e.settle(ctx, s.forgive); err != nil {
			return nil, err
		}
		s.describeEdges(form, e)
	}
	seen := map[string]bool{}
	for i, r := range form.Relations {
		if seen[r.Key()] {
			return nil, fmt.Errorf("%s: line %d: there are edges of %s:%s:%s in two entries; list their files in one",
				s.schema.path, s.relations[i].line, r.Src, r.Name, r.Dst)
		}
		seen[r.Key()] = true
	}
	if len(form.Splits) > 1 {
		for i := range form.Splits {
			form.Splits[i].Name = form.Splits[i].NodeType
		}
	}
	return form, nil
}

// Remarks returns the rows that make no edge, and the joined ones that name no node.
func (s *Source) Remarks() (notes []string) {
	for _, e := range s.edges {
		if e.empty > 0 {
			notes = append(notes, fmt.Sprintf("%s: %d rows have no %s or no %s, and make no edge", e.files[0], e.empty, lines.ClipText(e.from.text), lines.ClipText(e.to.text)))
		}
	}
	for _, n := range s.schema.nodes {
		notes = append(notes, n.strays()...)
	}
	return notes
}

// files are all that the schema names, and itself.
func (s *Source) files() []string {
	files := []string{s.schema.path}
	for _, n := range s.schema.nodes {
		files = append(files, n.files...)
		for _, j := range n.joins {
			files = append(files, j.files...)
		}
		for _, part := range n.splitFiles {
			if part != nil {
				files = append(files, part.files...)
			}
		}
	}
	for _, e := range s.edges {
		files = append(files, e.files...)
	}
	return files
}

// gatheredIDs finds out whether ids are integers or text, for nodes that only edges name.
func (s *Source) gatheredIDs(ctx context.Context, n *nodes) error {
	n.ids = intIDs
	for _, e := range s.edges {
		if e.src != n.name && e.dst != n.name {
			continue
		}
		integers, err := e.sampleIDs(ctx, n.name)
		if err != nil {
			return err
		}
		if !integers {
			n.ids = autoTextIDs
		}
	}
	return nil
}

func (s *Source) describeNodes(form *ingest.Schema, n *nodes) {
	form.NodeTypes = append(form.NodeTypes, n.nodeType())
	for i := range n.tables {
		m := &n.tables[i]
		form.Tables = append(form.Tables, ingest.Table{Name: m.name, NodeType: n.name, Dim: m.width()})
		s.tables = append(s.tables, tableOf{nodes: n, index: i})
	}
	form.Skipped = append(form.Skipped, notes(n.tables)...)
	if n.label.set() {
		form.Labels = append(form.Labels, ingest.Label{
			Name: "label", NodeType: n.name, Classes: n.classes.Len(), ClassNames: n.classes.Names,
		})
		if name := n.listedLabels(); name != "" {
			column := lines.ClipText(n.label.text)
			form.Skipped = append(form.Skipped, fmt.Sprintf("%s: line %d: label: column %s: %q is a class of its own; labels: %s reads "+
				"it as a list of classes", s.schema.path, n.label.line, column, lines.ClipText(name), column))
		}
		s.labels = append(s.labels, n)
	}
	if n.multi.set() {
		names := n.multi.names()
		form.Labels = append(form.Labels, ingest.Label{
			Name: "label", NodeType: n.name, Multi: true, Classes: len(names), ClassNames: names,
		})
		s.labels = append(s.labels, n)
	}
	if n.value.set() {
		form.Labels = append(form.Labels, ingest.Label{Name: "label", NodeType: n.name, Numbers: true})
		s.labels = append(s.labels, n)
	}
	if n.hasSplit {
		form.Splits = append(form.Splits, ingest.Split{Name: "given", NodeType: n.name})
		s.splits = append(s.splits, n)
	}
}

// notes returns what was done to columns that their values alone decide.
func notes(tables []matrix) []string {
	return slices.Concat(filled(tables), taken(tables), pruned(tables), constants(tables))
}

func (s *Source) describeEdges(form *ingest.Schema, e *edges) {
	for i := range e.names {
		r := e.relationAt(i)
		form.Relations = append(form.Relations, r)
		s.relations = append(s.relations, relation{e, int32(i)})
		for k := range e.tables {
			m := &e.tables[k]
			form.Tables = append(form.Tables, ingest.Table{Name: m.name, Relation: r.Key(), Dim: m.width()})
			s.tables = append(s.tables, tableOf{edges: relation{e, int32(i)}, index: k})
		}
	}
	form.Skipped = append(form.Skipped, notes(e.tables)...)
	if note := e.cleaned(); note != "" {
		form.Skipped = append(form.Skipped, note)
	}
}

// NodeIDs streams the column of ids.
func (s *Source) NodeIDs(ctx context.Context, nodeType int, emit func(ingest.IDChunk) error) error {
	s.opened(nodeType, len(s.nodes))
	n := s.nodes[nodeType]
	if n.gathered {
		panic("table: nodes that are gathered have no list")
	}
	r := n.reader(false, s.unused(n.tables))
	return s.emitIDs(ctx, emit, func(add func(path string, id int64, text []byte) error) error {
		return r.each(ctx, s.forgive, func(path string) error { return add(path, r.number, r.text) })
	})
}

// unused returns the tables that a pass must read although it emits no features. These are all if
// bad rows may be passed over, since a row with a bad feature is passed over in every pass.
func (s *Source) unused(tables []matrix) []matrix {
	if s.bad.None() {
		return nil
	}
	return tables
}

// emitIDs makes chunks of the ids that each gives.
func (s *Source) emitIDs(
	ctx context.Context, emit func(ingest.IDChunk) error, each func(add func(path string, id int64, text []byte) error) error,
) error {
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	return out.End(each(func(path string, id int64, text []byte) error {
		if err := out.In(path); err != nil {
			return err
		}
		if text != nil {
			c.Texts.Append(text)
		} else {
			c.IDs = append(c.IDs, id)
		}
		return out.Added()
	}))
}

// Edges streams the rows of a relation.
func (s *Source) Edges(ctx context.Context, i int, emit func(ingest.EdgeChunk) error) error {
	s.opened(i, len(s.relations))
	rel := s.relations[i]
	r := rel.reader(false, s.unused(rel.tables))
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	c.Values = make([][]uint64, len(rel.columns))
	return out.End(r.each(ctx, s.forgive, func(path string) error {
		if r.kind != rel.kind {
			return nil
		}
		if err := out.In(path); err != nil {
			return err
		}
		if r.srcText != nil {
			c.SrcTexts.Append(r.srcText)
		} else {
			c.Src = append(c.Src, r.src)
		}
		if r.dstText != nil {
			c.DstTexts.Append(r.dstText)
		} else {
			c.Dst = append(c.Dst, r.dst)
		}
		for k, v := range r.values {
			c.Values[k] = append(c.Values[k], v)
		}
		if rel.at > 0 {
			out.Line(rel.at)
		}
		return out.Added()
	}))
}

// Rows streams a table of features.
func (s *Source) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	return s.rows(ctx, i, false, emit)
}

// UnfilledRows streams the rows as Rows does, with NaN for missing numbers.
func (s *Source) UnfilledRows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	return s.rows(ctx, i, true, emit)
}

func (s *Source) rows(ctx context.Context, i int, unfilled bool, emit func(ingest.RowChunk) error) error {
	s.opened(i, len(s.tables))
	t := s.tables[i]
	out := ingest.Chunks(ctx, emit)
	add := func(path string, row []float32) error {
		if err := out.In(path); err != nil {
			return err
		}
		out.Chunk.Values = append(out.Chunk.Values, row...)
		return out.Added()
	}
	if t.nodes != nil {
		r := t.nodes.reader(false, t.nodes.tables)
		r.features.unfilled = unfilled
		return out.End(r.each(ctx, s.forgive, func(path string) error { return add(path, r.features.rows[t.index]) }))
	}
	r := t.edges.reader(false, t.edges.tables)
	r.features.unfilled = unfilled
	return out.End(r.each(ctx, s.forgive, func(path string) error {
		if r.kind != t.edges.kind {
			return nil
		}
		return add(path, r.features.rows[t.index])
	}))
}

// Labels streams a column of labels.
func (s *Source) Labels(ctx context.Context, i int, emit func(ingest.LabelChunk) error) error {
	s.opened(i, len(s.labels))
	r := s.labels[i].reader(false, s.unused(s.labels[i].tables))
	out := ingest.Chunks(ctx, emit)
	return out.End(r.each(ctx, s.forgive, func(path string) error {
		if err := out.In(path); err != nil {
			return err
		}
		if r.multi.set() {
			out.Chunk.Values = append(out.Chunk.Values, r.multiClasses...)
		} else {
			out.Chunk.Values = append(out.Chunk.Values, r.class)
		}
		return out.Added()
	}))
}

// Split streams the ids of a part: of the rows that say so, or of the files that list them.
func (s *Source) Split(ctx context.Context, i int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	s.opened(i, len(s.splits))
	n := s.splits[i]
	return s.emitIDs(ctx, emit, func(add func(path string, id int64, text []byte) error) error {
		if n.splitFiles == [3]*entry{} {
			r := n.reader(false, s.unused(n.tables))
			return r.each(ctx, s.forgive, func(path string) error {
				if r.part != int(part) {
					return nil
				}
				return add(path, r.number, r.text)
			})
		}
		files := n.splitFiles[part]
		if files == nil {
			return nil
		}
		for _, path := range files.files {
			list, c, err := files.list(path, n.id)
			if err != nil {
				return err
			}
			err = list.eachOf(ctx, path, s.forgive, []column{c}, func(path string, cells []value) error {
				number, text, err := n.ids.id(&cells[0], nil, list.form.numerals)
				if err != nil {
					return &rowError{c.text, err}
				}
				return add(path, number, text)
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// opened panics on a section that the schema does not list.
func (s *Source) opened(i, n int) {
	if s.form == nil || i < 0 || i >= n {
		panic("table: no such section in the Schema")
	}
}
