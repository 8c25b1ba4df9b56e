// Package data finds in a dataset what a run needs: types of nodes and relations between them, one
// label, the parts of a split and the names that users know.
//
// A [Data] is opened once ([Open]), and training, plans and evaluation share it. Its methods may be
// called by several goroutines at once. Methods that read mapped memory do so inside store.Guard,
// their own or the caller's.
package data

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Data holds what a run uses of a dataset. The dataset stays open for as long as the Data is used.
type Data struct {
	Set *store.Dataset
	// Types and Relations are numbered by their place in the manifest. With Options.Relation there
	// are that relation and its ends alone.
	Types     []Type
	Relations []Relation
	// EdgeTables are the tables that networks read rows of edges from, as if the edges of a
	// relation were nodes of a type. A batch's inputs list the Types first and then these: see
	// Input.
	EdgeTables []Type
	Target     int // the type of the nodes that are learnt, whose label and split these are
	Labels     *store.Labels
	Split      string // its name
	// Train, Valid and Test are the parts of the split, without the nodes that have no label.
	// Unlabelled counts the nodes that are left out.
	Train, Valid, Test []uint32
	Unlabelled         int
	// Links are the links that are learnt, nil where nodes are learnt. With Links there are no
	// labels and no parts of nodes.
	Links *Links
	// EdgeLabel is the label of the edges in Links; nil where the run learns which nodes they join.
	EdgeLabel *EdgeLabel
	// NoLabels says that no node has a label. Labels then only describes the label that a network
	// was trained on.
	NoLabels bool
}

// Type is a type of nodes.
type Type struct {
	Name  string
	Nodes int
	// Features is its input, nil where it has no table or must not use one. Embed is then the
	// number of columns of its learnt rows, 0 where all nodes share one row. Where both are set,
	// Features has rows that were learnt on another dataset, and they are not learnt here.
	Features *store.Features
	Embed    int

	number int // in the manifest
}

// Rows returns the number of its rows that the dataset has: all, or a part's own.
func (t *Type) Rows() int64 {
	if t.Features != nil {
		return int64(t.Features.Rows())
	}
	return int64(t.Nodes)
}

// Relation is the edges from nodes of type Src to nodes of type Dst.
type Relation struct {
	*store.Graph
	Src, Dst int
	Weights  *store.EdgeColumn // of the edges, nil unless Options asked for them and there are some
	// Inputs are the columns of the edges that networks read.
	Inputs []*store.EdgeColumn
	// RowIDs has the row of each edge in table number Table of Data.EdgeTables; nil where networks
	// do not read such rows.
	RowIDs *store.EdgeColumn
	Table  int

	own    store.Own // nodes of type Dst; Graph and the columns go by its rows
	number int       // in the manifest
}

// Options selects the part of a dataset that a run uses.
type Options struct {
	Split    string // empty where the target has just one
	Weighted bool   // the weights of the edges, too
	// Target is the type of nodes to learn, empty where just one has a label and a split. Links
	// says that the links of a relation are learnt. Target then names the relation, and is empty
	// where just one has an edge split.
	Target string
	Links  bool
	// EdgeLabel names the column of these edges that is learnt: COLUMN, whose different values are
	// classes; COLUMN:sign, negative values and all others; or COLUMN:value, numbers. It goes with
	// Links.
	EdgeLabel string
	// Uses says that a trained network is used on the dataset, so labels, a split and held-out
	// edges may be missing. Label then describes the labels that the network was trained on. For a
	// label of edges, LabelOfEdges does, from EdgeLabel.Elsewhere.
	Uses         bool
	Label        *store.Label
	LabelOfEdges *EdgeLabel
	// Learnt has rows by type that were learnt on another dataset. They take the place of learnt
	// rows.
	Learnt map[string]*store.Features
	// Together learns the links of all relations where Target names none and they are within one
	// type.
	Together bool
	// Gather returns the bytes that each worker gives, by worker, where each opens its own part.
	// All of them call it. Default nil: the dataset is a whole, or EdgeLabel is empty.
	Gather func(own []byte) ([][]byte, error)
	// Relation is the one relation to use, by name or key; empty: all of them.
	Relation string
	// Inputs gives the input of a type's nodes, by its name: Table, Embed or Constant. A type that
	// it leaves out has its first table. Without a table it has Embed with Hidden columns where the
	// rows take up to EmbedBytes, else Constant.
	Inputs map[string]string
	Hidden int
	// EdgeInputs are the columns of edges that networks read, by name or key of their relation, or
	// the one word Table, which may name the table as in "table:NAME".
	EdgeInputs map[string][]string
}

// What nodes of a type can have for input: the rows of a table, which may be named as in
// "table:NAME"; learnt rows of their own, of so many columns, as in "embed:64"; or one learnt row
// for all of them.
const (
	Table    = "table"
	Embed    = "embed"
	Constant = "constant"
)

// EmbedBytes bounds learnt rows that nobody has asked for. Each counts with two moments, whatever
// its optimizer keeps.
const EmbedBytes = 1 << 30

// MaxEmbed is the largest number of columns of learnt rows.
const MaxEmbed = 1 << 16

// maxClasses bounds the logits of a batch: a thousand seeds take 4 GB of them.
const maxClasses = 1 << 20

// Open finds the parts of a dataset that a run needs. Its error names a missing part and what to
// do, or the label, split or section that is damaged.
func Open(ds *store.Dataset, o Options) (*Data, error) {
	d, err := openGraph(ds, o.Relation)
	if err != nil {
		return nil, err
	}
	if err := d.FindInputs(o.Inputs, o.Hidden); err != nil {
		return nil, err
	}
	for i := range d.Types {
		if t := &d.Types[i]; t.Features == nil {
			t.Features = o.Learnt[t.Name]
		}
	}
	if o.Links {
		err = d.openLinks(o.Target, o.Uses, o.Together)
	} else {
		err = d.openNodes(o)
	}
	if err != nil {
		return nil, err
	}
	if o.Weighted {
		d.useWeights()
	}
	if err := d.useEdgeInputs(o.EdgeInputs); err != nil {
		return nil, err
	}
	switch {
	case o.LabelOfEdges != nil:
		d.EdgeLabel = o.LabelOfEdges
	case o.EdgeLabel != "":
		if err := d.openEdgeLabel(o.EdgeLabel, o.Gather); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// openNodes finds the type of nodes that is learnt, its label and its split, each the one of that
// name or the only one.
func (d *Data) openNodes(o Options) error {
	if err := d.findTarget(o.Target, "so nothing to learn"); err != nil {
		return err
	}
	m, split := d.Set.Manifest(), o.Split
	label := slices.IndexFunc(m.Labels, func(l store.Label) bool { return l.NodeType == d.Types[d.Target].Name })
	switch {
	case label < 0 && o.Uses:
		d.NoLabels, d.Labels = true, &store.Labels{Label: o.Label}
		if _, chosen := d.choose(split); chosen >= 0 {
			d.Split = m.Splits[chosen].Name
		}
		return nil
	case label < 0 && len(d.Types) > 1:
		return d.fail("{target} %s: its nodes have no labels, so nothing to learn", d.Types[d.Target].Name)
	case label < 0:
		return d.fail("no labels, so nothing to learn")
	}
	if n := m.Labels[label].Classes; n < 1 && !m.Labels[label].Numbers {
		return d.fail("label %s has no classes: every label is missing", m.Labels[label].Name)
	} else if n > maxClasses {
		return d.fail("label %s has %d classes; at most %d are trained: labels that look like ids are no classes",
			m.Labels[label].Name, n, maxClasses)
	}
	names, chosen := d.choose(split)
	if chosen < 0 && o.Uses {
		d.Labels = d.Set.Labels(label)
		return nil
	}
	if chosen < 0 {
		if split == "" && len(names) == 0 {
			return d.fail("no split; ingest it again with {split} random:0.6/0.2/0.2 or per-class:20/30")
		}
		return d.fail("no split %q; {split} takes one of: %s", split, some(names))
	}
	d.Labels, d.Split = d.Set.Labels(label), m.Splits[chosen].Name
	err := store.Guard(func() (err error) {
		sets := d.Set.Split(chosen)
		for _, p := range []struct {
			dst *[]uint32
			src []uint32
		}{{&d.Train, sets.Train}, {&d.Valid, sets.Valid}, {&d.Test, sets.Test}} {
			if *p.dst, err = d.Set.Labelled(p.src, d.Types[d.Target].Nodes, d.Labels); err != nil {
				return err
			}
			d.Unlabelled += len(p.src) - len(*p.dst)
		}
		return nil
	})
	if err != nil {
		return err
	}
	if len(d.Train) == 0 && !o.Uses {
		return d.fail("split %s has no training node with a label", d.Split)
	}
	return nil
}

// fail returns an error about the dataset.
func (d *Data) fail(format string, args ...any) error {
	return fmt.Errorf("%s: %s", d.Set.Path(), fmt.Sprintf(format, args...))
}

// openGraph finds types and relations: all of them, or one relation and its types.
func openGraph(ds *store.Dataset, only string) (*Data, error) {
	m, d := ds.Manifest(), &Data{Set: ds}
	numbers := map[string]int{} // of types that are used
	use := func(name string) int {
		if n, ok := numbers[name]; ok {
			return n
		}
		i := slices.IndexFunc(m.NodeTypes, func(t store.NodeType) bool { return t.Name == name })
		numbers[name] = len(d.Types)
		d.Types = append(d.Types, Type{Name: name, Nodes: int(m.NodeTypes[i].Count), number: i})
		return numbers[name]
	}
	if only == "" {
		for _, t := range m.NodeTypes {
			use(t.Name)
		}
	}
	var keys []string
	for i := range m.Relations {
		r := &m.Relations[i]
		keys = append(keys, r.Key())
		if only == "" || only == r.Name || only == r.Key() {
			src, dst := use(r.Src), use(r.Dst)
			d.Relations = append(d.Relations, Relation{Graph: ds.Graph(i), Src: src, Dst: dst, own: d.Own(dst), number: i})
		}
	}
	switch {
	case only == "" || len(d.Relations) == 1:
		return d, nil
	case len(d.Relations) == 0:
		return nil, d.fail("no relation %s; {relation} takes one of: %s", only, some(keys))
	}
	keys = nil
	for _, r := range d.Relations {
		keys = append(keys, r.Relation.Key())
	}
	return nil, d.fail("{relation} %s: there are %s; give one of these keys", only, some(keys))
}

// FindInputs finds what the nodes of each type have for input; see Options.Inputs and Hidden. Open
// calls it. A run that changes its hidden width calls it again.
func (d *Data) FindInputs(inputs map[string]string, hidden int) error {
	for name := range inputs {
		if !slices.ContainsFunc(d.Types, func(t Type) bool { return t.Name == name }) {
			return d.fail("{input} %s=%s: no node type %s; there are %s", name, inputs[name], name, d.typeNames())
		}
	}
	for i := range d.Types {
		t := &d.Types[i]
		t.Features, t.Embed = nil, 0
		given, asked := inputs[t.Name]
		kind, name, named := strings.Cut(given, ":")
		switch {
		case kind == Constant && !named:
			continue
		case kind == Embed:
			cols, err := strconv.Atoi(name)
			if err != nil || cols < 1 || cols > MaxEmbed {
				return d.fail("{input} %s=%s: embed:D has 1 to %d columns", t.Name, given, MaxEmbed)
			}
			t.Embed = cols
			continue
		case asked && kind != Table || named && name == "":
			return d.fail("{input} %s=%s: there are table, table:NAME, embed:D and constant", t.Name, given)
		}
		if t.Features = d.table(i, name); t.Features == nil && asked {
			return d.fail("{input} %s=%s: type %s has no such table", t.Name, given, t.Name)
		}
		switch {
		case t.Features != nil || t.Nodes == 0:
		case int64(t.Nodes)*int64(hidden)*12 <= EmbedBytes:
			t.Embed = hidden
		}
	}
	return nil
}

// CheckInputs refuses a graph of one type that has one learnt row for all nodes, unless inputs ask
// for it: such a row does not tell nodes apart. hidden must be the run's width.
func (d *Data) CheckInputs(inputs map[string]string, hidden int) error {
	t := &d.Types[0]
	if d.several() || t.Features != nil || t.Embed > 0 || t.Nodes == 0 || inputs[t.Name] == Constant {
		return nil
	}
	most := EmbedBytes / 12 / int64(t.Nodes)
	return d.fail("no features, and learnt rows of %d columns for its %d nodes take more than %d MiB; ask for them by {input} %s=embed:%d, or ingest it again "+
		"with {features} degree, random:D or fastrp:D", hidden, t.Nodes, EmbedBytes>>20, t.Name, max(most, 1))
}

// several reports whether there are several types or relations.
func (d *Data) several() bool { return len(d.Types) > 1 || len(d.Relations) > 1 }

// table returns type t's table of a name, or its first where the name is empty; nil where there is
// none.
func (d *Data) table(t int, name string) *store.Features {
	for i, table := range d.Set.Manifest().Tables {
		if table.NodeType == d.Types[t].Name && (name == "" || table.Name == name) {
			return d.Set.Features(i)
		}
	}
	return nil
}

func (d *Data) typeNames() string {
	var names []string
	for _, t := range d.Types {
		names = append(names, t.Name)
	}
	return some(names)
}

// findTarget finds the type that is learnt: the one of that name, or the only one that can be.
// Where there is none, the error goes on with without.
func (d *Data) findTarget(name, without string) error {
	m := d.Set.Manifest()
	var can []string // types with a label and a split
	d.Target = -1
	for i, t := range d.Types {
		labelled := slices.ContainsFunc(m.Labels, func(l store.Label) bool { return l.NodeType == t.Name })
		split := slices.ContainsFunc(m.Splits, func(s store.Split) bool { return s.NodeType == t.Name })
		if labelled && split {
			can = append(can, t.Name)
		}
		if t.Name == name || name == "" && labelled && split {
			d.Target = i
		}
	}
	switch {
	case name != "" && d.Target < 0:
		return d.fail("{target} %s: there are the node types %s", name, d.typeNames())
	case len(d.Types) == 1:
		d.Target = 0
	case name != "":
	case len(can) == 0:
		return d.fail("no type of nodes with a label and a split, %s", without)
	case len(can) > 1:
		return d.fail("the types %s have labels and splits; say by {target} which one to take", someOf(can, " and "))
	}
	return nil
}

// Schema returns the types and relations by number.
func (d *Data) Schema() (s sample.Schema) {
	for _, t := range d.Types {
		s.Types = append(s.Types, t.Nodes)
	}
	for _, r := range d.Relations {
		s.Relations = append(s.Relations, sample.Relation{Src: r.Src, Dst: r.Dst})
	}
	return s
}

// Seeds returns nodes of the target as a list by type.
func (d *Data) Seeds(nodes []uint32) [][]uint32 {
	seeds := make([][]uint32, len(d.Types))
	seeds[d.Target] = nodes
	return seeds
}

// OfRelation returns fanouts by number of a relation, from fanouts by its name or key; nil for a
// relation that has none.
func (d *Data) OfRelation(fanouts map[string][]int) ([][]int, error) {
	if len(fanouts) == 0 {
		return nil, nil
	}
	var keys []string
	all := make([][]int, len(d.Relations))
	used := map[string]bool{}
	for i, r := range d.Relations {
		keys = append(keys, r.Relation.Key())
		for _, name := range []string{r.Relation.Name, r.Relation.Key()} { // the key is the more exact
			if f, ok := fanouts[name]; ok {
				all[i], used[name] = f, true
			}
		}
	}
	for name := range fanouts {
		if !used[name] {
			return nil, d.fail("{fanout} %s: no relation of that name; there are %s", name, some(keys))
		}
	}
	return all, nil
}

// Ordered reports whether batches meet nodes with small numbers most, as after an ingest that
// orders them.
func (d *Data) Ordered() bool { return d.Set.Manifest().Order != "original" }

// InDegree gives the number of edges that lead to a node of a type, over the relations that are
// drawn from. In a part, v must be a node that the part owns.
func (d *Data) InDegree(typ int, drawn []bool) func(v uint32) int {
	var into []*Relation
	for i := range d.Relations {
		if r := &d.Relations[i]; drawn[i] && r.Dst == typ {
			into = append(into, r)
		}
	}
	return func(v uint32) (degree int) {
		for _, r := range into {
			degree += r.Degree(v)
		}
		return degree
	}
}

// weightColumn is the column that ingest keeps the weights of edges in.
const weightColumn = "weight"

// useWeights finds the weights of edges.
func (d *Data) useWeights() {
	for i := range d.Relations {
		r := &d.Relations[i]
		if c := r.Column(weightColumn); c != nil && c.Column.Elem == store.F32 {
			r.Weights = c
		}
	}
}

// CheckWeights checks the weights of the relations that are drawn from. At least one of them must
// have weights, and weights must be float32.
func (d *Data) CheckWeights(drawn []bool) (err error) {
	some := false
	for i, r := range d.Relations {
		c := r.Column(weightColumn)
		switch {
		case !drawn[i]:
		case r.Weights != nil:
			some = true
		case c != nil:
			return fmt.Errorf("%s: {weighted}: column %s of relation %s is %v, and weights are f32; ingest them as numbers with a "+
				"fraction, or leave {weighted} out", d.Set.Path(), weightColumn, r.Relation.Key(), c.Column.Elem)
		default:
			err = fmt.Errorf("%s: {weighted}: the edges of relation %s have no column %s; ingest them with their weights "+
				"({weight} names the column of a CSV), or leave {weighted} out", d.Set.Path(), r.Relation.Key(), weightColumn)
		}
	}
	if some {
		return nil
	}
	return err
}

// UnusedColumns returns the names of the columns of edges that a run does not use.
func (d *Data) UnusedColumns() (names []string) {
	for i, r := range d.Relations {
		for _, c := range r.Relation.Columns {
			switch {
			case d.EdgeLabel != nil && i == d.Links.Relation && c.Name == d.EdgeLabel.Name:
			case c.Name == store.EdgeID || c.Name == weightColumn && r.Weights != nil || r.reads(c.Name):
			case len(d.Relations) > 1:
				names = append(names, c.Name+" of "+r.Relation.Key())
			default:
				names = append(names, c.Name)
			}
		}
	}
	return names
}

// Lists returns the neighbour lists of the relation, with the weights of its edges where they
// count. A part has lists for the nodes that it owns, under the nodes' numbers.
func (r Relation) Lists() sample.Lists {
	switch {
	case !r.own.Whole() && r.Weights != nil:
		return ownWeighted{ownGraph{r.Graph, r.own}, r.Weights}
	case !r.own.Whole():
		return ownGraph{r.Graph, r.own}
	case r.Weights == nil:
		return r.Graph
	}
	return weightedGraph{r.Graph, r.Weights}
}

// Has reports whether the dataset has v's list: a part has only the lists of nodes that it owns.
func (r Relation) Has(v uint32) bool {
	_, own := r.own.Row(v)
	return own
}

// Linked reports whether v's list, which the dataset has, contains u.
func (r Relation) Linked(u, v uint32) bool {
	_, linked := slices.BinarySearch(r.Neighbors(r.own.MustRow(v)), u)
	return linked
}

// OwnLists yields the nodes that have in-neighbours, and these. Of a part it yields only nodes that
// the part owns.
func (r Relation) OwnLists(yield func(v uint32, list []uint32) bool) {
	for row, list := range r.Graph.Lists() {
		if !yield(r.own.Node(row), list) {
			return
		}
	}
}

// Degree returns the number of v's in-neighbours. Of a part, v is a node that it owns.
func (r Relation) Degree(v uint32) int { return r.Graph.Degree(r.own.MustRow(v)) }

// ownGraph has the lists of the nodes that a part owns.
type ownGraph struct {
	*store.Graph
	own store.Own
}

func (g ownGraph) Neighbors(v uint32) []uint32 { return g.Graph.Neighbors(g.own.MustRow(v)) }

// ownWeighted is ownGraph with weights.
type ownWeighted struct {
	ownGraph
	weights *store.EdgeColumn
}

func (g ownWeighted) Weights(v uint32) []float32 {
	return store.EdgeValues[float32](g.weights, g.own.MustRow(v))
}

// AtHand returns the relation as a sample.Topology that is read through its map. Where a run is
// weighted, edges without weights of their own weigh 1.
func (r Relation) AtHand(weighted bool) sample.Topology {
	t := sample.AtHand(r.Lists())
	if weighted && r.Weights == nil {
		return sample.Unweighted(t)
	}
	return t
}

// weightedGraph is sample.Lists with weights.
type weightedGraph struct {
	*store.Graph
	weights *store.EdgeColumn
}

func (g weightedGraph) Weights(v uint32) []float32 { return store.EdgeValues[float32](g.weights, v) }

// corrupt returns an ErrCorrupt for damage that Open does not look for.
func (d *Data) corrupt(format string, args ...any) error {
	return fmt.Errorf("%s: %w: %s; run gnnstore verify", d.Set.Path(), store.ErrCorrupt, fmt.Sprintf(format, args...))
}

// AllEdges returns the number of edges of relation r in the whole dataset.
func (d *Data) AllEdges(r int) int64 {
	return d.Set.Manifest().EdgesOf(d.Relations[r].number)
}

// Part returns a part of the split, with the nodes that have no label: train, valid or test.
func (d *Data) Part(name string) (nodes []uint32, err error) { return d.PartOf(d.Split, name) }

// PartOf is Part of another split of the target.
func (d *Data) PartOf(split, name string) (nodes []uint32, err error) {
	target := d.Types[d.Target]
	i := slices.IndexFunc(d.Set.Manifest().Splits, func(s store.Split) bool { return s.Name == split && s.NodeType == target.Name })
	switch {
	case i < 0 && split == "":
		return nil, d.fail("{nodes} %s: nodes of type %s have no split; give all, or a file with an id a line", name, target.Name)
	case i < 0:
		return nil, d.fail("{nodes}: nodes of type %s have no split %s", target.Name, split)
	}
	err = store.Guard(func() error {
		sets := d.Set.Split(i)
		nodes, err = d.Set.Labelled(map[string][]uint32{"train": sets.Train, "valid": sets.Valid, "test": sets.Test}[name], target.Nodes, nil)
		return err
	})
	return nodes, err
}

// Classes appends the class of each node to dst. A node without a class is an error.
func (d *Data) Classes(dst []uint32, nodes []uint32) ([]uint32, error) {
	for _, v := range nodes {
		c := d.Labels.Class(v)
		if c < 0 || int(c) >= d.Labels.Classes() {
			return nil, d.corrupt("node %d has class %d of %d", v, c, d.Labels.Classes())
		}
		dst = append(dst, uint32(c))
	}
	return dst, nil
}

// Name returns the id by which users know a node of a type, or the stored id where that cannot be
// read.
func (d *Data) Name(t int, v uint32) (name string) {
	row, own := d.Own(t).Row(v)
	if !own {
		return fmt.Sprintf("%d as stored", v)
	}
	err := store.Guard(func() error {
		name = strconv.FormatInt(d.IDs(t).Original(row), 10)
		return nil
	})
	if err != nil {
		name = fmt.Sprintf("%d as stored", v)
	}
	return name
}

// IDs returns the ids by which users know the nodes of a type.
func (d *Data) IDs(t int) store.IDs { return d.Set.IDs(d.Types[t].number) }

// SumBytes returns the bytes outside the Go heap that page checksums take. They cover the label;
// the topology, weights, values and tables of the relations that are drawn from; and the tables of
// the types that are read.
func (d *Data) SumBytes(drawn, read []bool) (n int64) {
	var files []store.SectionFile
	shared := map[[2]string]bool{} // types whose relations share sections that are among files
	if d.Labels != nil && !d.NoLabels {
		files = append(files, d.Labels.Section())
	}
	for i, x := range d.Relations {
		if !drawn[i] {
			continue
		}
		if key := [2]string{x.Relation.Src, x.Relation.Dst}; !x.Shares() || !shared[key] {
			files = append(files, x.Files()...)
			shared[key] = shared[key] || x.Shares()
		}
		if x.Weights != nil {
			files = append(files, x.Weights.Section())
		}
		for _, c := range x.Brought() {
			files = append(files, c.Section())
		}
	}
	for k, is := range d.DrawnTables(drawn) {
		for _, s := range d.EdgeTables[k].Features.Shards() {
			if is {
				files = append(files, s.SectionFile)
			}
		}
	}
	for i, t := range d.Types {
		if !read[i] || t.Features == nil {
			continue
		}
		for _, s := range t.Features.Shards() {
			files = append(files, s.SectionFile)
		}
	}
	for i := range files {
		n += files[i].SumBytes()
	}
	return n
}

// Input returns the value of Options.Inputs that gives the type the input it has.
func (t *Type) Input() string {
	switch {
	case t.Embed > 0:
		return Embed + ":" + strconv.Itoa(t.Embed)
	case t.Features != nil:
		return Table + ":" + t.Features.Table.Name
	}
	return Constant
}

// Input returns input number n of a batch: first come all types of nodes, then EdgeTables.
func (d *Data) Input(n int) *Type {
	if n < len(d.Types) {
		return &d.Types[n]
	}
	return &d.EdgeTables[n-len(d.Types)]
}

// Dim returns the number of columns of the type's input, 0 where all nodes share one row.
func (t *Type) Dim() int {
	if t.Features == nil {
		return t.Embed
	}
	return t.Features.Dim()
}

// Learns reports whether some type has rows that are learnt here.
func (d *Data) Learns() bool {
	return slices.ContainsFunc(d.Types, func(t Type) bool { return t.Features == nil && t.Embed > 0 })
}

// HasRows reports whether nodes of the type have input rows of their own.
func (t *Type) HasRows() bool { return t.Dim() > 0 }

// DType returns the element type of the type's rows on a backend.
func (t *Type) DType() kernels.DType {
	if t.Features != nil && t.Features.Elem() == store.F16 {
		return kernels.F16
	}
	return kernels.F32
}
