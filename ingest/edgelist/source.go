package edgelist

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// Source is a graph in tables.
type Source struct {
	ingest.Plain
	o        Options
	form     form
	files    []string // of the edge list
	skipped  []string
	left     []string // columns of edges that are passed over
	kept     []keptColumn
	edgeDim  int      // columns of edge features
	edgeCols []string // titles of the columns of edge features
	edgeWide []int    // numbers in a cell of each, as the first file with rows tells
	keptCols []string // titles of kept
	text     bool     // ids are text
	sample   idSample // of the first file that has rows
	edges    int      // rows in the samples of all files
	declared int64    // number of nodes by a comment in the file, 0 without one
	forgive  *lines.Tolerance
	table    *nodeTable
	kinds    kinds
	remarks  []string
	classes  *classes // of labels of events
	types    *classes // of events
	made     *Made    // the form of a graph that another reader opened; nil: tables in files
	features *featureMap
	array    *featureArray
	ids      []int64 // of the nodes that edges name, ascending, for the map of features; nil when they are 0…n-1
	nodes    int64
	schema   *ingest.Schema // nil until the first call of Schema
}

var _ ingest.Source = (*Source)(nil)

// Open reads the first rows of an edge list, a file or a folder of them, and of what the Options
// name.
func Open(path string, o Options) (*Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	if len(o.Ends) > 0 {
		o.Src, o.Dst, o.Weight = o.Ends[0], o.Ends[1], strings.Join(o.Ends[2:], "")
	}
	f, err := o.form()
	if err != nil {
		return nil, err
	}
	s := &Source{o: o, form: f}
	if s.files, err = findFiles(path); err != nil {
		return nil, err
	}
	if o.Events {
		if err := s.findTime(); err != nil {
			return nil, err
		}
	}
	if err := s.open(); err != nil {
		return nil, err
	}
	return s, nil
}

// open reads the first rows of the files.
func (s *Source) open() (err error) {
	s.o.follow()
	s.forgive = lines.NewTolerance(s.o.SkipBad)
	if s.kept, err = s.o.keptColumns(); err != nil {
		return err
	}
	if err := s.sampleEdges(); err != nil {
		return err
	}
	if s.o.Nodes != "" {
		if s.table, err = openNodes(&s.o, s.form, s.made); err != nil {
			return err
		}
		s.text = s.text || s.o.IDType != "int" && s.table.text
		s.table.text, s.table.forgive = s.text, s.forgive
	}
	switch {
	case s.o.featureArray() != "":
		return s.openArray()
	case s.o.Features != "":
		if s.text {
			return fmt.Errorf("%s: its ids are text, and {node_features} is a map from integers; if they are integers, say "+
				"{id_type} int", s.files[0])
		}
		s.features = &featureMap{path: s.o.Features}
	}
	return nil
}

// sampleEdges reads the first rows of each file. It refuses a file that lacks a column before
// anything large is read, finds out whether ids are integers or text, and notes which columns are
// skipped.
func (s *Source) sampleEdges() error {
	for _, path := range s.files {
		r, err := s.openEdges(path, s.newForms())
		if err != nil {
			return err
		}
		err = s.sampleEdgesOf(r)
		r.Close()
		if err != nil {
			return err
		}
	}
	if s.edges == 0 && s.o.Nodes == "" && s.made == nil {
		return errors.New(s.files[0] + ": there are no edges in it, and no {nodes} to know the nodes from")
	}
	if s.text = s.o.IDType == "text" || s.o.IDType != "int" && s.sample.text(); s.text && s.o.Count > 0 {
		return fmt.Errorf("%s: its ids are text, and {node_count} is of nodes whose ids are integers from 0; leave it out", s.files[0])
	}
	for _, path := range s.files {
		if s.made != nil {
			break
		}
		if err := errors.Join(s.refuseCounts(path), s.refuseTriples(path)); err != nil {
			return err
		}
	}
	return s.settleTypes()
}

func (s *Source) sampleEdgesOf(r *edgeReader) error {
	if r.Name() == s.files[0] {
		s.declared = r.nodes
		s.findKinds(r)
		s.noteLeft(r)
	}
	if err := s.measureEdges(r); err != nil {
		return err
	}
	if s.edgeCols == nil {
		for _, i := range r.features {
			s.edgeCols = append(s.edgeCols, r.name(i))
		}
	}
	if s.keptCols == nil {
		for _, c := range r.kept {
			s.keptCols = append(s.keptCols, r.name(c.at))
		}
	}
	r.comments = false // lines that look like comments may be rows with text ids
	sample, err := sampleIDs(r.table, r.src, r.dst)
	if err != nil {
		return err
	}
	if s.edges == 0 {
		s.sample = sample
	}
	s.sample.zeros = s.sample.zeros || sample.zeros // an id that is text in one file is text in all
	s.edges += sample.rows
	if s.o.IDType == "int" || sample.rows == 0 {
		return nil
	}
	return sample.sure(r.table, s.o.Header, s.namesEnds(r.table))
}

// measureEdges finds how many numbers the cells of edge features hold.
func (s *Source) measureEdges(r *edgeReader) error {
	if s.edgeWide != nil || len(r.features) == 0 {
		// The builder refuses files that differ.
		s.edgeDim = max(s.edgeDim, sum(s.edgeWide)+len(r.features)-len(s.edgeWide))
		return nil
	}
	t, err := s.openList(r.Name())
	if err != nil {
		return err
	}
	defer t.Close()
	wide, rows, err := t.widths(r.features, missing)
	if err != nil || !rows && s.edgeDim > 0 {
		return err
	}
	if s.edgeDim = sum(wide); s.edgeDim > ingest.MaxColumns {
		return fmt.Errorf("%s: %s: %d columns of features, and %d are the most", r.Name(), edgeFeatures, s.edgeDim, ingest.MaxColumns)
	}
	if rows {
		s.edgeWide = wide
	}
	if of := s.o.followed(); of != nil && rows {
		return followWidths(s.o.Like, r.Name(), of, wide)
	}
	return nil
}

// noteLeft notes the columns of edges that are not read, and the flag that would have them read.
func (s *Source) noteLeft(r *edgeReader) {
	read := marked(r.columns, r.features)
	for _, c := range r.kept {
		read[c.at] = true
	}
	left := func(i int) bool {
		numbers := s.o.RowsBeside && i < len(r.header) && (r.header[i] == "" || r.header[i] == s.o.RowColumn)
		typed := s.o.Types != "" && i < len(r.header) && r.header[i] == s.o.Types
		return i != r.src && i != r.dst && !read[i] && !numbers && !typed
	}
	if s.left = r.names(left); len(s.left) == 0 {
		return
	}
	note := fmt.Sprintf("%s: %d of the edges' columns are left behind (%s)", r.Name(), len(s.left), lines.List(s.left))
	switch {
	case s.o.RowsBeside:
	case s.o.Events:
		note += fmt.Sprintf("; {edge_features} %s makes columns of numbers features", r.numbers(left))
	default:
		note += "; {edge_columns} keeps those of numbers"
	}
	s.skipped = append(s.skipped, note)
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{
		Describe: s.Describe, MissingRows: s.MissingRows, Remarks: s.Remarks, BadRows: s.forgive.BadRows,
	}
}

// Schema reads the table of nodes and the map of features through on its first call, where there
// are such. It reads the edges as well when a comment declares the number of nodes, to check it,
// and when the map of features needs the ids of all nodes.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	return ingest.ScanOnce(ctx, &s.schema, s.scan)
}

func (s *Source) scan(ctx context.Context) (*ingest.Schema, error) {
	node := ingest.NodeType{Name: "node"}
	to := ingest.Relation{Src: "node", Name: "to", Dst: "node", Edges: -1, Left: s.left, Columns: s.edgeColumns()}
	schema := &ingest.Schema{Name: name(s.files[0]), Skipped: slices.Clone(s.skipped)}
	if len(s.files) > 1 {
		schema.Name = name(filepath.Dir(s.files[0]))
	}
	var err error
	if schema.Identity, err = ingest.Files(s.paths()...); err != nil {
		return nil, err
	}
	said := s.o
	said.Like = nil                               // its address says nothing
	schema.Identity += fmt.Sprintf("%+v\n", said) // the options choose the columns, which the schema does not name
	switch {
	case s.table != nil:
		if err := s.table.scan(ctx); err != nil {
			return nil, err
		}
		if err := s.table.askWords(&s.o); err != nil {
			return nil, err
		}
		node.Count, node.IDs = s.table.rows, s.table.kind()
		schema.Skipped = append(schema.Skipped, s.table.skipped...)
		if s.table.label >= 0 {
			schema.Labels = []ingest.Label{{
				Name: "label", NodeType: "node", ClassNames: s.table.names, Classes: len(s.table.names), Numbers: s.table.values,
				Multi: s.table.multi.set() && !s.table.multi.oneHot,
			}}
		}
		if s.table.split.set() {
			schema.Splits = []ingest.Split{{Name: "given", NodeType: "node"}}
		}
		if len(s.table.features) > 0 {
			schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: sum(s.table.widths)}}
		} else {
			schema.NoFeatures = strings.Join(s.table.unread, "; ")
		}
	case s.made != nil:
		if node.Count = s.made.Count; s.made.First != 0 {
			node.IDs = ingest.IntIDs
		}
	case s.text:
		node.IDs, node.Gathered = ingest.TextIDs, true
	case s.o.Count > 0:
		node.Count = s.o.Count
	case s.array != nil:
		node.Count = s.array.Len()
	case s.features != nil:
		if node.Count, to.Edges, err = s.gather(ctx); err != nil {
			return nil, err
		}
		if s.ids != nil {
			node.IDs = ingest.IntIDs
		}
	default:
		node.IDs, node.Gathered = ingest.IntIDs, true
		if s.declared == 0 || len(s.files) > 1 || s.o.Bipartite {
			break
		}
		largest, edges, err := s.largest(ctx)
		if err != nil {
			return nil, err
		}
		if to.Edges = edges; largest < s.declared {
			node = ingest.NodeType{Name: "node", Count: s.declared}
		} else {
			schema.Skipped = append(schema.Skipped, fmt.Sprintf("%s: the count of %d nodes: there is an id %d, so the nodes are those "+
				"that edges name", s.files[0], s.declared, largest))
		}
	}
	if s.made != nil {
		schema.Undirected = s.made.Undirected
		if s.o.SkipBad == 0 && s.made.Rows >= 0 {
			to.Edges = s.made.Rows * max(s.made.Each, 1)
		}
	}
	s.nodes = node.Count
	if s.array != nil {
		if err := s.settleArray(ctx); err != nil {
			return nil, err
		}
		schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: s.array.Dim()}}
		schema.Skipped = append(schema.Skipped, s.array.notes()...)
	}
	schema.Relations = []ingest.Relation{to}
	if s.features != nil {
		if err := s.features.scan(ctx); err != nil {
			return nil, renamed(s.features.path, err)
		}
		if s.features.dim > 0 {
			schema.Tables = []ingest.Table{{Name: "feat", NodeType: "node", Dim: s.features.dim}}
		}
	}
	if s.o.EventLabel != "" {
		if err := s.learnClasses(ctx); err != nil {
			return nil, err
		}
	}
	if s.o.Types != "" {
		if err := s.learnTypes(ctx); err != nil {
			return nil, err
		}
	}
	if dim := s.edgeDim + s.types.count(); dim > 0 {
		schema.Tables = append(schema.Tables, ingest.Table{Name: "edge_feat", Relation: to.Key(), Dim: dim})
	}
	schema.NodeTypes = []ingest.NodeType{node}
	if s.o.Events {
		s.eventsSchema(schema)
	}
	return schema, nil
}

// Describe returns the names of the feature columns, in the order of the schema: nodes, then edges.
func (s *Source) Describe() (d ingest.Description) {
	switch {
	case s.array != nil:
		d.Tables = append(d.Tables, build.Unnamed(s.array.Key(), s.array.Dim()))
	case s.features != nil && s.features.dim > 0:
		d.Tables = append(d.Tables, build.Unnamed(filepath.Base(s.features.path), s.features.dim))
	case s.features == nil && s.table != nil && len(s.table.features) > 0:
		d.Tables = append(d.Tables, encodings(s.table.titles, s.table.widths))
	}
	if s.edgeDim+s.types.count() > 0 {
		columns := encodings(s.edgeCols, s.edgeWide)
		if s.types != nil {
			columns = append(columns, store.Encoding{
				Name: s.o.Types, Width: int64(s.types.count()), Kind: store.CategoryColumn, Encoder: store.OneHot,
				Categories: s.types.Names,
			})
		}
		d.Tables = append(d.Tables, columns)
	}
	if s.table != nil && s.table.label >= 0 {
		d.Labels = []string{s.table.labelled}
	}
	if s.o.TimeUnit != "" {
		d.Options = map[string]string{"time-unit": s.o.TimeUnit}
	}
	if !s.o.Events {
		d.Relations = [][]string{s.keptCols}
	}
	return d
}

// paths are all files that are read.
func (s *Source) paths() []string {
	paths := slices.Clone(s.files)
	features := s.o.Features
	if path := s.o.featureArray(); path != "" {
		features = path
	}
	for _, p := range []string{s.o.Nodes, features} {
		if p != "" {
			paths = append(paths, p)
		}
	}
	return paths
}

// gather collects the ids in the edges, for a map of features. It returns the numbers of nodes and
// edges.
func (s *Source) gather(ctx context.Context) (nodes, edges int64, err error) {
	var seen idSet
	err = s.eachEdge(ctx, func(c ingest.EdgeChunk) error {
		for i, u := range c.Src {
			seen.add(u)
			seen.add(c.Dst[i])
		}
		edges += int64(len(c.Src))
		return nil
	})
	if err != nil {
		return 0, 0, err
	}
	s.ids = nil
	nodes, dense := seen.count()
	if !dense {
		s.ids = seen.ascending()
	}
	return nodes, edges, nil
}

// largest finds the largest id, and counts the edges.
func (s *Source) largest(ctx context.Context) (id, edges int64, err error) {
	err = s.eachEdge(ctx, func(c ingest.EdgeChunk) error {
		for i, u := range c.Src {
			id = max(id, u, c.Dst[i])
		}
		edges += int64(len(c.Src))
		return nil
	})
	return id, edges, err
}

// name is the name of a file without the extensions of its format.
func name(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		path = abs // "." has no name
	}
	base := filepath.Base(path)
	for _, ext := range []string{".gz", ".zst", ".csv", ".tsv", ".txt", ".edges", ".el", ".parquet", ".pq", ".mtx", ".graphml", ".xml", ".json", ".tar", ".tgz", ".zip"} {
		if cut := strings.TrimSuffix(base, ext); cut != "" {
			base = cut
		}
	}
	return base
}

// NodeIDs streams the ids of the table's rows. Without a table, it streams the ids that were
// gathered for a map of features, in ascending order.
func (s *Source) NodeIDs(ctx context.Context, nodeType int, emit func(ingest.IDChunk) error) error {
	if nodeType != 0 {
		panic("edgelist: no such node type")
	}
	if s.table == nil && s.made != nil {
		return s.countedIDs(ctx, emit)
	}
	if s.table == nil && s.ids == nil {
		panic("edgelist: the nodes have no list")
	}
	if s.table == nil {
		return ingest.Parts(ctx, s.files[0], s.ids, func(place ingest.Place, ids []int64) error {
			return emit(ingest.IDChunk{Place: place, IDs: ids})
		})
	}
	return s.nodeIDs(ctx, func(*nodeRow) bool { return true }, emit)
}

// nodeIDs streams the ids of the table's rows that are wanted.
func (s *Source) nodeIDs(ctx context.Context, wanted func(r *nodeRow) bool, emit func(ingest.IDChunk) error) error {
	out := ingest.Chunks(ctx, emit)
	c := &out.Chunk
	c.File = s.table.path
	return out.End(s.table.each(ctx, false, func(r *nodeRow) error {
		if !wanted(r) {
			return nil
		}
		if s.text {
			c.Texts.Append(r.text)
		} else {
			c.IDs = append(c.IDs, r.id)
		}
		return out.Added()
	}))
}

// Edges streams the edge list, file by file.
func (s *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if relation != 0 {
		panic("edgelist: no such relation")
	}
	s.remarks, s.kinds.rows, s.kinds.sides = nil, 0, [2]idBits{}
	err := s.eachEdge(ctx, func(c ingest.EdgeChunk) error {
		if s.kinds.on {
			s.kinds.add(c)
		}
		return emit(c)
	})
	if err != nil {
		return err
	}
	return s.judgeKinds(ctx)
}

// Rows streams the features of nodes, from the table or the map, or of edges.
func (s *Source) Rows(ctx context.Context, i int, emit func(ingest.RowChunk) error) error {
	if s.schema == nil || i < 0 || i >= len(s.schema.Tables) {
		panic("edgelist: no such table")
	}
	if s.schema.Tables[i].Relation != "" {
		return s.edgeRows(ctx, emit)
	}
	if s.array != nil {
		return s.array.emit(ctx, s.nodes, emit)
	}
	if s.features != nil {
		dim := int64(s.schema.Tables[i].Dim)
		return s.mappedRows(ctx, max(ingest.ChunkBytes/4/dim, 1), dim, emit)
	}
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = s.table.path
	s.table.bare = 0
	return out.End(s.table.each(ctx, true, func(r *nodeRow) error {
		if r.bare {
			s.table.bare++
		}
		out.Chunk.Values = append(out.Chunk.Values, r.features...)
		return out.Added()
	}))
}

func (s *Source) mappedRows(ctx context.Context, chunkRows, dim int64, emit func(ingest.RowChunk) error) error {
	ids := s.ids
	if s.table != nil && !s.table.dense {
		ids = make([]int64, 0, s.nodes)
		err := s.NodeIDs(ctx, 0, func(c ingest.IDChunk) error { ids = append(ids, c.IDs...); return nil })
		if err != nil {
			return err
		}
	}
	start, columns, lacks, err := s.features.load(ctx, s.nodes, newRowIndex(ids, s.nodes).row)
	if err != nil {
		return err
	}
	if lacks >= 0 && s.o.Missing == "refuse" {
		id := lacks
		if ids != nil {
			id = ids[lacks]
		}
		return fmt.Errorf("%s: node %d is not in it, and %d in all are not; add them, or say {missing_features} zeros", s.features.path, id, s.features.missing)
	}
	chunk := make([]float32, min(chunkRows, s.nodes)*dim)
	place := ingest.Place{File: s.features.path}
	for ; place.First < s.nodes; place.First += chunkRows {
		if err := ctx.Err(); err != nil {
			return err
		}
		n := min(chunkRows, s.nodes-place.First)
		values := chunk[:n*dim]
		clear(values)
		for i := range n {
			row := place.First + i
			for _, c := range columns[start[row]:start[row+1]] {
				values[i*dim+int64(c)] = 1
			}
		}
		if err := emit(ingest.RowChunk{Place: place, Values: values}); err != nil {
			return err
		}
	}
	return nil
}

// Labels streams the column of labels.
func (s *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	if label != 0 || s.schema == nil || len(s.schema.Labels) == 0 {
		panic("edgelist: no such label")
	}
	out := ingest.Chunks(ctx, emit)
	out.Chunk.File = s.table.path
	return out.End(s.table.each(ctx, false, func(r *nodeRow) error {
		switch {
		case !s.table.multi.set():
			out.Chunk.Values = append(out.Chunk.Values, r.class)
		case s.table.multi.oneHot:
			class, _ := single(r.classes)
			out.Chunk.Values = append(out.Chunk.Values, class)
		default:
			out.Chunk.Values = append(out.Chunk.Values, r.classes...)
		}
		return out.Added()
	}))
}

// Split streams the nodes of a part.
func (s *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if split != 0 || s.schema == nil || len(s.schema.Splits) == 0 {
		panic("edgelist: no such split")
	}
	return s.nodeIDs(ctx, func(r *nodeRow) bool { return r.part == int(part) }, emit)
}

// MissingRows is the number of nodes that have no features, in the map or the table.
func (s *Source) MissingRows(table int) int64 {
	if s.schema.Tables[table].Relation != "" {
		return 0
	}
	switch {
	case s.array != nil:
		return 0
	case s.features != nil:
		return s.features.missing
	}
	return s.table.bare
}

// Close closes the file of features.
func (s *Source) Close() error {
	if s.array == nil {
		return nil
	}
	return s.array.Close()
}

// Remarks returns the assumptions that the last reading of the edges made.
func (s *Source) Remarks() []string {
	if s.made == nil {
		return s.remarks
	}
	return append(slices.Clone(s.made.Remarks), s.remarks...)
}

// isRange reports whether err is of a number that is too large, not of text that is no number.
func isRange(err error) bool { return errors.Is(err, strconv.ErrRange) }
