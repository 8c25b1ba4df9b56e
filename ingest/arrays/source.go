package arrays

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/pickle"
	"github.com/gnnstore/gnnstore/store"
)

const (
	maxNodes = 1<<32 - 1
)

// Source is a graph in arrays.
type Source struct {
	ingest.Plain
	o      Options
	bag    *bag
	schema ingest.Schema
	nodes  map[string]*nodeType
	edges  []*edges // by relation
	tables []*array
	labels []*label
	splits []*split
	parts  []*parts // that may be splits
	events *stream  // nil for a graph

	noFeatures []error // why arrays of features are not read
}

var _ ingest.Source = (*Source)(nil)

// nodeType describes a type before any section is read.
type nodeType struct {
	index int    // in the schema
	count int64  // -1: one more than the largest id
	from  string // where the count stands, for messages
}

// Open opens a .npy array of edges, an .npz archive, a .pt or .pth file, or a folder of .npy files,
// and reads headers. An archive in the layout of package npz is that package's.
func Open(path string, o Options) (ingest.Source, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	var b *bag
	types := []string(nil)
	switch ext := strings.ToLower(filepath.Ext(path)); {
	case info.IsDir():
		b, err = folderBag(path, &o)
	case isTorch(path):
		b, types, err = torchBag(path, &o)
	case ext == ".npz":
		b, err = npzBag(path, &o)
	case ext == ".npy" || o.raw(path) != nil:
		b, err = npyBag(path, &o)
	default:
		err = fmt.Errorf("%s: a file of arrays ends in .npy, .npz, .pt or .pth; rename it, or say what it is with {raw_array} %s:i8:-1,2", path, filepath.Base(path))
	}
	if err != nil {
		return nil, err
	}
	if strings.EqualFold(filepath.Ext(path), ".npz") && isSciPy(b) && o.Edges == "" {
		b.close()
		if flag := o.named(); flag != "" {
			return nil, fmt.Errorf("%s: its keys are those of a scipy graph, adj_, attr_ and labels, and %s names another; name its edges as well, as in {array_edges} adj_", path, flag)
		}
		s, err := npz.Open(path)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	if b.class == temporalClass {
		ev := Events{Label: o.Labels, Features: o.Features}
		s, err := newStream(b, o, ev)
		if err != nil {
			return nil, err
		}
		return s, nil
	}
	s := &Source{o: o, bag: b, nodes: map[string]*nodeType{}}
	if err := s.findAll(types); err != nil {
		b.close()
		return nil, err
	}
	return s, nil
}

// isSciPy reports whether the archive is one that package npz reads.
func isSciPy(b *bag) bool {
	for _, prefix := range []string{"adj_", "adj_matrix.", "adj.", "adj_matrix_"} {
		if b.has(prefix + "indptr") {
			return true
		}
	}
	return false
}

// findAll lays down the schema.
func (s *Source) findAll(types []string) error {
	if types == nil {
		types = []string{"", "node__to__node"} // one node type and one relation, whose keys have no prefix
	}
	for _, t := range types {
		if strings.Count(t, "__") < 2 {
			if err := s.findNodes(t); err != nil {
				return err
			}
		}
	}
	for _, t := range types {
		if part := strings.Split(strings.TrimSuffix(t, "/"), "__"); len(part) == 3 {
			prefix := t
			if t == "node__to__node" {
				prefix = ""
			}
			if err := s.findRelation(prefix, ingest.Relation{Src: part[0], Name: part[1], Dst: part[2]}); err != nil {
				return err
			}
		}
	}
	if len(s.edges) == 0 {
		return fmt.Errorf("%s: no edges in it%s", s.bag.path, s.found())
	}
	if !slices.ContainsFunc(s.schema.Tables, func(t ingest.Table) bool { return t.NodeType != "" }) {
		s.schema.NoFeatures = s.none("features", featuresFlag, xNames)
		if len(s.noFeatures) > 0 {
			s.schema.NoFeatures = s.noFeatures[0].Error()
		}
	}
	if len(s.schema.Labels) == 0 {
		s.schema.NoLabels = s.none("labels", labelsFlag, ingest.LabelNames)
	}
	for _, n := range timeNames {
		if s.bag.used[n] || !s.bag.has(n) || !HasEvents(s.bag.path) {
			continue
		}
		if a, err := s.bag.get(n); err == nil && len(a.Shape) == 1 && a.Shape[0] == s.edges[0].count {
			s.skip(n, "it may be the times of events, which format events reads as a stream")
			break
		}
		s.bag.used[n] = false
	}
	return s.finish()
}

// finish names the dataset, and lists the arrays that nothing used.
func (s *Source) finish() error {
	name, err := filepath.Abs(s.bag.path)
	if err != nil {
		return err
	}
	if s.schema.Name = filepath.Base(name); filepath.Ext(name) != "" {
		s.schema.Name = stem(name)
	}
	for _, err := range s.noFeatures {
		s.skip("features", strings.TrimPrefix(err.Error(), s.bag.path+": "))
	}
	for _, key := range s.bag.keys {
		if !s.bag.used[key] {
			s.skip(key, "it is not one of the names that are looked for; flags such as {array_features} name others")
		}
	}
	s.schema.Identity, err = ingest.Files(s.bag.files...)
	s.schema.Identity += fmt.Sprintf("%+v\n", s.o)
	if s.events != nil {
		s.schema.Identity += fmt.Sprintf("%+v\n", s.events.Events)
	}
	return err
}

const maxSkipped = 100

func (s *Source) skip(key, why string) {
	switch n := len(s.schema.Skipped); {
	case n < maxSkipped:
		s.schema.Skipped = append(s.schema.Skipped, key+": "+why)
	case n == maxSkipped:
		s.schema.Skipped = append(s.schema.Skipped, "and others")
	}
}

// found lists the keys, for messages about keys that are missing.
func (s *Source) found() string {
	const most = 12
	keys, more := slices.Clone(s.bag.keys), ""
	for _, key := range slices.Sorted(maps.Keys(s.bag.others)) {
		keys = append(keys, key+", which is "+show(s.bag.others[key]))
	}
	if len(keys) > most {
		keys, more = keys[:most], ", …"
	}
	if len(keys) == 0 {
		return " (it has no arrays)"
	}
	return " (found " + strings.Join(keys, ", ") + more + ")"
}

// none is the message for a graph without an array of a kind.
func (s *Source) none(what, flag string, usual []string) string {
	return fmt.Sprintf("%s: no array of %s%s; looked for %s; %s NAME says another", s.bag.path, what, s.found(), strings.Join(usual, ", "), flag)
}

// pick opens the array that the user named, or the first of the usual names that is there; nil
// without one.
func (s *Source) pick(prefix, flag, given string, usual []string) (*array, error) {
	if given != "" {
		key := strings.TrimSuffix(given, ".npy")
		if !s.bag.has(key) && s.bag.has(stem(given)) {
			key = stem(given)
		}
		if s.bag.has(key) {
			return s.bag.get(key)
		}
		if a, err := s.bag.beside(given, &s.o); a != nil || err != nil {
			return a, err
		}
		return nil, fmt.Errorf("%s: there is no %s, which %s names%s", s.bag.path, given, flag, s.found())
	}
	var bad error
	for _, name := range usual {
		if !s.bag.has(prefix + name) {
			if err := s.other(prefix+name, flag); bad == nil {
				bad = err
			}
			continue
		}
		a, err := s.bag.get(prefix + name)
		switch {
		case err != nil && !errors.Is(err, npy.ErrUnsupported):
			return nil, err
		case err == nil && (a.Type.Number() || (flag == labelsFlag || flag == eventLabelFlag) && a.isText()):
			return a, nil
		case err == nil && a.matrix != nil && (flag == edgesFlag || flag == featuresFlag):
			return a, nil
		case err == nil && a.matrix != nil:
			err = fmt.Errorf("%s, and no such matrix is expected here; convert it in Python and save it again: %s = %s.to_dense()", a.form(), name, name)
		case err == nil:
			err = fmt.Errorf("%s, and numbers are expected", a.form())
		}
		if bad == nil {
			bad = err
		}
		if flag == weightsFlag {
			s.skip(prefix+name, strings.TrimPrefix(err.Error(), s.bag.path+": "))
		}
	}
	switch {
	case bad == nil || flag == weightsFlag:
	case flag == featuresFlag: // other features may be made
		s.noFeatures = append(s.noFeatures, bad)
	default:
		return nil, bad
	}
	return nil, nil
}

// other returns an error if key, a usual name, holds something that is no array. It passes over one
// number or text, which may describe the whole graph, unless edges are wanted.
func (s *Source) other(key, flag string) error {
	v, ok := s.bag.others[key]
	if !ok || flag == weightsFlag {
		return nil
	}
	_, isText := pickle.Text(v)
	if flag != edgesFlag && (isText || familyOf(v) == ofNumbers) {
		s.skip(key, "it is "+show(v)+", and no array")
		return nil
	}
	return fmt.Errorf("%s: %s is %s, and an array is expected; save one, or name another by %s", s.bag.path, key, show(v), flag)
}

const (
	edgesFlag    = "{array_edges}"
	featuresFlag = "{array_features}"
	labelsFlag   = "{array_labels}"
	weightsFlag  = "{array_weights}"
)

// valueLabel stands behind the name of labels that are numbers.
const valueLabel = ":value"

// The usual names, as PyTorch Geometric, DGL, OGB, the heterophilous graphs of Platonov et al. and
// many a notebook have them.
var (
	edgeNames   = []string{"edge_index", "edges", "edge_list", "edgelist", "edge_indices", "train_edges"}
	endNames    = [][2]string{{"row", "col"}, {"src", "dst"}, {"source", "target"}, {"sources", "targets"}, {"senders", "receivers"}, {"heads", "tails"}}
	xNames      = []string{"x", "node_features", "node_feat", "node_feats", "features", "feature", "feats", "feat", "attr_matrix"}
	matrixNames = []string{"adj_t", "adj", "adjacency", "adj_matrix", "adjacency_matrix", "A"}
	weightNames = []string{"edge_weight", "edge_weights", "weight", "weights", "edge_attr", "edge_attrs", "edge_features", "edge_feat", "edge_feats"}
	countNames  = []string{"num_nodes", "n_nodes", "num_nodes_list", "_num_nodes"}
)

// findNodes finds what belongs to the nodes of a type.
func (s *Source) findNodes(prefix string) error {
	name, given := strings.TrimSuffix(prefix, "/"), s.o
	if prefix == "" {
		name = "node"
	} else {
		given = Options{}
	}
	t := &nodeType{index: len(s.schema.NodeTypes), count: -1}
	s.nodes[name] = t
	s.schema.NodeTypes = append(s.schema.NodeTypes, ingest.NodeType{Name: name})
	if err := s.declared(prefix, t); err != nil {
		return err
	}
	x, err := s.sparseParts(prefix, given.Features)
	if err == nil && x == nil {
		x, err = s.pick(prefix, featuresFlag, given.Features, xNames)
	}
	if err != nil {
		return err
	}
	if x != nil {
		if !x.isTable() && x.matrix == nil || x.matrix != nil && (x.Shape[1] < 1 || x.Shape[1] > ingest.MaxColumns) {
			return fmt.Errorf("%s, and a row of 1 to %d numbers for each node is expected", x.form(), int64(ingest.MaxColumns))
		}
		if err := t.hold(x); err != nil {
			return err
		}
		s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "feat", NodeType: name, Dim: columns(x)})
		s.tables = append(s.tables, x)
	}
	labels, numbers := strings.CutSuffix(given.Labels, valueLabel)
	if numbers && labels == "" {
		return fmt.Errorf("%s %s: it names no array; say NAME%s", labelsFlag, given.Labels, valueLabel)
	}
	y, err := s.pick(prefix, labelsFlag, labels, ingest.LabelNames)
	if err != nil {
		return err
	}
	if x != nil && y != nil && x.name == y.name {
		return fmt.Errorf("%s: it holds both features and labels, and a network would read what it is to learn; choose two arrays with {array_features} and %s", y.name, labelsFlag)
	}
	if y != nil {
		if err := s.addLabel(name, t, y, numbers); err != nil {
			return err
		}
	}
	return s.findSplit(prefix, name, t, [3]string{given.Train, given.Valid, given.Test})
}

// declared takes the number of nodes from Options.Nodes, or from an array or number of that name.
func (s *Source) declared(prefix string, t *nodeType) error {
	if prefix == "" && s.o.Nodes > 0 {
		t.count, t.from = s.o.Nodes, "{node_count}"
	}
	for _, name := range countNames {
		key := prefix + name
		n, ok := s.bag.numbers[key]
		from := s.bag.path + ": " + key
		if !ok && s.bag.has(key) {
			a, err := s.bag.get(key)
			if err != nil {
				return err
			}
			if from = a.name; a.Len() != 1 {
				return fmt.Errorf("%s, and one number is expected", a.form())
			}
			var one [1]int64
			if _, err := a.ids(1).read(one[:]); err != nil {
				return a.fail(context.Background(), err)
			}
			n, ok = one[0], true
		}
		if !ok || t.count >= 0 {
			continue
		}
		if n < 0 || n > maxNodes {
			return fmt.Errorf("%s: %d is no number of nodes (0 to %d are)", from, n, int64(maxNodes))
		}
		t.count, t.from = n, from
	}
	return nil
}

// hold checks that an array has a row for each node. Where the number of nodes is not known, the
// rows become it.
func (t *nodeType) hold(a *array) error {
	n := a.Shape[0]
	if t.count < 0 {
		if n > maxNodes {
			return fmt.Errorf("%s, and at most %d nodes of a type have room", a.form(), int64(maxNodes))
		}
		t.count, t.from = n, a.name
	}
	if n == t.count {
		return nil
	}
	hint := "; are they of one graph?"
	if len(a.Shape) == 2 && a.Shape[1] == t.count {
		hint = "; it seems to be transposed: save its .T"
	}
	return fmt.Errorf("%s: %d rows, and there are %d nodes by %s%s", a.name, n, t.count, t.from, hint)
}

// isTable reports whether it has a row of numbers for each node or edge.
func (a *array) isTable() bool {
	n := len(a.Shape)
	return a.Type.Number() && (n == 1 || n == 2 && a.Shape[1] >= 1 && a.Shape[1] <= ingest.MaxColumns)
}

func columns(a *array) int {
	if len(a.Shape) == 1 {
		return 1
	}
	return int(a.Shape[1])
}

func (s *Source) addLabel(name string, t *nodeType, y *array, numbers bool) error {
	if numbers && (!y.Type.Number() || len(y.Shape) < 1 || len(y.Shape) > 2 || columns(y) != 1) {
		return fmt.Errorf("%s, and a number for each node is expected; of several columns save the one to learn, or leave out the %s behind its name",
			y.form(), valueLabel)
	}
	fits := len(y.Shape) == 1 || len(y.Shape) == 2 && y.Shape[1] >= 1 && y.Shape[1] <= ingest.MaxClasses
	if !fits || !y.Type.Number() && !(y.isText() && columns(y) == 1) {
		return fmt.Errorf("%s, and a class for each node is expected, a number or text, or 2 to %d zeros and ones", y.form(), ingest.MaxClasses)
	}
	if err := t.hold(y); err != nil {
		return err
	}
	l := ingest.Label{Name: "label", NodeType: name, Numbers: numbers}
	if c := columns(y); c > 1 {
		l.Classes, l.Multi = c, true
	}
	s.schema.Labels = append(s.schema.Labels, l)
	s.labels = append(s.labels, &label{array: y, numbers: numbers})
	return nil
}

// findRelation finds the edges under a prefix, and what belongs to them.
func (s *Source) findRelation(prefix string, r ingest.Relation) error {
	e, err := s.findEdges(prefix)
	if err != nil || e == nil {
		return err
	}
	for _, name := range []string{r.Src, r.Dst} { // a HeteroData need not list a type that has nothing of its own
		if s.nodes[name] == nil {
			s.nodes[name] = &nodeType{index: len(s.schema.NodeTypes), count: -1}
			s.schema.NodeTypes = append(s.schema.NodeTypes, ingest.NodeType{Name: name})
		}
	}
	if e.csr() || e.sized != "" {
		if err := e.fits(s.nodes[r.Src], s.nodes[r.Dst]); err != nil {
			return err
		}
	}
	given := ""
	if prefix == "" {
		given = s.o.Weights
	}
	w, err := s.pick(prefix, weightsFlag, given, weightNames)
	if err != nil {
		return err
	}
	if w == nil && e.data != nil && e.data.Type.Kind != npy.Bool {
		w = e.data
	}
	if w != nil && w != e.data {
		e.whole = false // these weights stay, even if all are 1
	}
	if w == nil && e.dense != nil && e.dense.Type.Kind != npy.Bool {
		w = e.dense
	}
	r.Edges = e.count
	switch {
	case w != nil && e.dense != nil && w != e.dense:
		return fmt.Errorf("%s: edges in the matrix %s have their weights there; leave it out, or save edge_index beside it", w.name, e.dense.key)
	case w != nil && w == e.dense:
		e.weight = w
		r.Columns = []ingest.EdgeColumn{{Name: "weight", Elem: e.weightElem()}}
	case w != nil:
		if !w.isTable() {
			return fmt.Errorf("%s, and a row of 1 to %d numbers for each edge is expected", w.form(), int64(ingest.MaxColumns))
		}
		if w.Shape[0] != e.count {
			return fmt.Errorf("%s: %d rows, and %s has %d edges; are they of one graph?", w.name, w.Shape[0], e.name, e.count)
		}
		if columns(w) == 1 {
			e.weight = w
			r.Columns = []ingest.EdgeColumn{{Name: "weight", Elem: e.weightElem()}}
		} else {
			s.schema.Tables = append(s.schema.Tables, ingest.Table{Name: "edge_feat", Relation: r.Key(), Dim: columns(w)})
			s.tables = append(s.tables, w)
		}
	}
	s.schema.Relations = append(s.schema.Relations, r)
	s.edges = append(s.edges, e)
	return nil
}

func (e *edges) weightElem() store.Elem {
	if e.weight.Type.Floating() {
		return store.F32
	}
	return store.I64
}

// Extras implements [ingest.Source].
func (s *Source) Extras() ingest.Extras {
	return ingest.Extras{Describe: s.Describe}
}

// Schema, on its first call, reads the edges through if nothing else tells the number of nodes, and
// labels that are text or matrices.
func (s *Source) Schema(ctx context.Context) (*ingest.Schema, error) {
	if err := s.learnLabels(ctx); err != nil {
		return nil, err
	}
	if s.events != nil {
		if err := s.settleStream(ctx); err != nil {
			return nil, err
		}
		if s.events.Bipartite {
			return new(s.schema), nil
		}
	}
	unknown := false
	for _, t := range s.nodes {
		unknown = unknown || t.count < 0
	}
	if unknown {
		if err := s.countNodes(ctx); err != nil {
			return nil, err
		}
	}
	for _, t := range s.nodes {
		s.schema.NodeTypes[t.index].Count = t.count
	}
	if err := s.settleMatrices(ctx); err != nil {
		return nil, err
	}
	if err := s.settleParts(ctx); err != nil {
		return nil, err
	}
	return new(s.schema), nil
}

// settleMatrices counts the entries of dense matrices, and drops weights that are all 1.
func (s *Source) settleMatrices(ctx context.Context) error {
	for i, e := range s.edges {
		if !e.whole {
			continue
		}
		if e.dense != nil {
			if err := e.countEntries(ctx); err != nil {
				return err
			}
			s.schema.Relations[i].Edges = e.count
		} else if e.weight != nil {
			var err error
			if e.ones, err = e.onesAlone(ctx); err != nil {
				return err
			}
		}
		if e.ones && e.weight != nil {
			s.schema.Relations[i].Columns, e.weight = nil, nil
		}
		e.whole = false
	}
	return nil
}

// countNodes finds the largest ids of the types whose number nobody declares.
func (s *Source) countNodes(ctx context.Context) error {
	most := map[*nodeType]int64{}
	for i, r := range s.schema.Relations {
		src, dst, e := s.nodes[r.Src], s.nodes[r.Dst], s.edges[i]
		if src.count >= 0 && dst.count >= 0 {
			continue
		}
		c := e.open(ctx)
		for row := int64(0); ; {
			if err := ctx.Err(); err != nil {
				return err
			}
			from, to, err := c.next()
			if err != nil {
				return e.fail(ctx, err)
			}
			if len(from) == 0 {
				break
			}
			for k := range from {
				for _, v := range [2]int64{from[k], to[k]} {
					if v < 0 || v >= maxNodes {
						return fmt.Errorf("%s: row %d: %d is no id (0 to %d are); are ids something else than rows of arrays?", e.name, row+int64(k), v, int64(maxNodes-1))
					}
				}
				most[src] = max(most[src], from[k]+1) // before dst, which may be the same type
				most[dst] = max(most[dst], to[k]+1)
			}
			row += int64(len(from))
		}
	}
	for _, t := range s.nodes {
		if t.count < 0 {
			t.count = most[t]
		}
	}
	return nil
}

// Close closes the files.
func (s *Source) Close() error { return s.bag.close() }

func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.FormatInt(n, 10) + " " + what + "s"
}
