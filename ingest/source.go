package ingest

import (
	"context"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// Source is one raw graph where its owner left it. Call Schema first: it lists the sections of node
// ids, edges, feature rows, labels and splits. Each section is a stream of chunks. Sections are
// read one at a time, in any order. Each can be read again and then gives the same rows, since a
// builder in bounded memory makes several passes. Another Source that is opened for the same files
// gives the same rows as well. Package ingest/sourcetest tests what is promised here.
//
// The chunks of a section follow each other: the First of a chunk is the number of rows before it.
// A chunk names its file and has one row or more. If it has more than one, its numbers take at most
// [ChunkBytes], and its texts, less those in its last row, at most as much again; columns of edges
// come on top. Its slices are lent for the call of emit: the Source does not touch them during the
// call, and emit may overwrite them. Where the Schema declares a number of nodes or edges, as many
// come. A Source streams: it holds the chunk that it emits, and beside it only what its package
// documents.
//
// A section calls emit in the goroutine that reads it. An error from emit ends the section, which
// returns it as it is and does not call emit again. Once ctx is done no chunk follows, and a
// section that has chunks left ends with an error that wraps ctx's error. A section that ended
// early can be read again, and Schema can be called again. When a section ends, its goroutines have
// ended and its files are closed. Files that serve all sections are open until Close, which may be
// called more than once and at any time between sections.
//
// Errors name file, place, reason and remedy in one line. A Source checks its own form (headers,
// sizes, checksums, row counts against declared counts); ids and values are checked by build.Build,
// which has the place from the chunk.
//
// One goroutine uses a Source at a time.
type Source interface {
	// Schema returns the form of the graph, from metadata where the format has it.
	Schema(ctx context.Context) (*Schema, error)
	// NodeIDs streams the original ids of a node type that has its own and is not Gathered, in row
	// order.
	NodeIDs(ctx context.Context, nodeType int, emit func(IDChunk) error) error
	// Edges streams the edges of Schema.Relations[relation].
	Edges(ctx context.Context, relation int, emit func(EdgeChunk) error) error
	// Rows streams the feature rows of Schema.Tables[table].
	Rows(ctx context.Context, table int, emit func(RowChunk) error) error
	// Labels streams the labels of Schema.Labels[label].
	Labels(ctx context.Context, label int, emit func(LabelChunk) error) error
	// Split streams one part of Schema.Splits[split].
	Split(ctx context.Context, split int, part Part, emit func(IDChunk) error) error
	// Extras returns the functions that only some sources have. They read sections like the others,
	// unless Extras says otherwise.
	Extras() Extras
	Close() error
}

const (
	ChunkBytes = 1 << 20  // most bytes of a chunk: see [Source]
	BlockBytes = 64 << 20 // most bytes of a column-major matrix in memory
	MaxColumns = 1 << 22  // of a table: 16 MiB a row
)

// Schema is the form of a graph. It has types from the start: a homogeneous graph has one node type
// and one relation.
type Schema struct {
	Name      string // of the dataset: "ogbn_arxiv"
	NodeTypes []NodeType
	Relations []Relation
	Tables    []Table
	Labels    []Label
	Splits    []Split
	// Skipped lists data that the source holds and this reader does not read, a sentence each, with
	// the reason.
	Skipped []string
	// Featureless: data of this kind have no features, so that none need be made.
	Featureless bool
	// NoFeatures and NoLabels are for messages where there are none: what the reader found, and
	// what it looked for. "x.npz: no array of features (found emb); looked for x, feat". They are
	// empty where there are features, or labels.
	NoFeatures, NoLabels string
	// BackWanted: networks learn better from this kind of data with reverses, so Build adds them as
	// with Options.Reverse. It does not with Options.OneWay, nor if links are held out: reverses
	// would then be learnt too.
	BackWanted bool
	// Undirected: the source's edges have no direction and come once each, so Build adds the
	// reverses as with Options.Undirected. It does not with Options.Directed.
	Undirected bool
	// Identity is equal for equal contents. It has the parameters of a generated graph, or the
	// names, sizes and times of files (see [Files]). A killed ingest resumes only when the identity
	// is the same as before; "" is never the same.
	Identity string
}

// Width is the number of values that a label has for each node.
func (l *Label) Width() int {
	if l.Multi {
		return l.Classes
	}
	return 1
}

// NodeType returns the number of a node type, or -1.
func (s *Schema) NodeType(name string) int {
	return slices.IndexFunc(s.NodeTypes, func(t NodeType) bool { return t.Name == name })
}

// Relation returns the number of the relation with a key, or -1.
func (s *Schema) Relation(key string) int {
	return slices.IndexFunc(s.Relations, func(r Relation) bool { return r.Key() == key })
}

// IDs is the kind of ids that name the nodes of a type: in NodeIDs, at the ends of edges and in
// splits.
type IDs uint8

const (
	RowIDs  IDs = iota // 0…Count-1
	IntIDs             // distinct int64s
	TextIDs            // distinct texts of 1 to MaxIDBytes bytes
)

// MaxIDBytes is the length of the longest text that is an id.
const MaxIDBytes = 4096

// NodeType is one kind of node. Rows of nodes that have ids of their own are in the order of
// NodeIDs. Rows of Gathered nodes are in ascending order of their ids, texts by their bytes.
type NodeType struct {
	Name  string
	Count int64 // declared number; 0 or -1 when not known beforehand, but always known for RowIDs
	IDs   IDs
	// Gathered: the source has no list of the nodes, so they are the ids that edges name. Such a
	// type has no tables and no labels from the source, since nobody knows its rows beforehand.
	Gathered bool
	// Aggregates asks for columns of the node's edges at the end of its first table, as in
	// "count:*", "count:buys:out", "sum:buys.weight" or "mean:buys.weight:in". RELATION is a name,
	// a Key, or a star for all. Without a direction both are meant.
	Aggregates []string
	// Columns names numbers of the nodes, years, say, that Extras.NodeColumn streams. Only types
	// with RowIDs have them. Edges are split by them, and the dataset does not keep them.
	Columns []string
}

// Relation is one kind of edge, from type Src to type Dst.
type Relation struct {
	Src, Name, Dst string
	Edges          int64        // declared number, -1 when not known beforehand
	Columns        []EdgeColumn // kept beside the neighbours
	Left           []string     // columns of the source that its reader leaves out; see Skipped
	// Parted: the source holds edges out, for link prediction, and its chunks have the part of each
	// edge.
	Parted bool
	// Held describes held-out edges that Extras.HeldEdges streams, apart from the edges of Edges.
	// It is nil where there are none.
	Held *Held
	// Stream marks a relation of events in time instead of edges. The dataset then has a stream of
	// the relation's name, and no topology.
	Stream *Stream
}

// Stream describes a relation that is a stream of events. The relation's Columns are their time
// and, where Label is set, their label. Events may come in any order; events of one time follow
// each other as they came.
type Stream struct {
	Time  string // F64, finite
	Label string // I32: the class of the source from the event on, less than 0 where it is missing
	// Classes and ClassNames describe labels as in Label; 0 and nil where there is one class more
	// than the largest label.
	Classes    int
	ClassNames []string
	// Negatives: Extras.Negatives streams the destinations among which events to validate and to
	// test on are ranked.
	Negatives bool
	// NodeLabels: Extras.NodeLabels streams classes of nodes at times of their own.
	NodeLabels bool
	// About estimates, for a plan, numbers that are known only once the sections are read.
	About About
}

// About estimates the size of a stream from the sizes of files. 0 is not known.
type About struct {
	Events     int64 // where Relation.Edges is not declared
	Lists      int64 // lists of negatives
	Negatives  int64 // nodes in all of these lists
	NodeLabels int64
}

// Held describes the held-out edges of a relation. Its ends are in types of RowIDs.
type Held struct {
	// SrcNegatives and DstNegatives are the numbers of nodes that take the place of each edge's
	// source and destination in a ranking, by store.HeldPart; 0: none are given.
	SrcNegatives, DstNegatives [2]int
	Pool                       [2]bool      // Extras.HeldPool streams pairs that are no edges
	Columns                    []EdgeColumn // some of the relation's
}

// Key names a relation in tables, paths and messages: src__name__dst.
func (r Relation) Key() string { return r.Src + "__" + r.Name + "__" + r.Dst }

// EdgeColumn is one value of every edge of a relation: "weight", F32; "time", I64; "type", U8. Only
// times of events are F64.
type EdgeColumn struct {
	Name string // not "id": that is the edge's number as read, which Options.EdgeIDs keeps
	Elem store.Elem
}

// Table is one feature matrix, Dim columns: a row per node of NodeType, or, when Relation is set
// instead, a row per edge of that relation in the order of Edges.
type Table struct {
	Name, NodeType string
	Relation       string // a Key
	Dim            int
}

// Label is a quantity of the nodes of NodeType that a model learns to predict.
type Label struct {
	Name, NodeType string
	Classes        int      // 0 when not known: then the different labels are numbered in ascending order
	Multi          bool     // any number of classes a node (Classes is known then)
	Numbers        bool     // a number of each node, and no class
	ClassNames     []string // may be nil
}

// Split names three disjoint sets of nodes of NodeType.
type Split struct{ Name, NodeType string }

// Part is one of the three sets of a split.
type Part uint8

const (
	Train Part = iota
	Valid
	Test
)

func (p Part) String() string { return [...]string{"train", "valid", "test"}[p] }

// Texts holds texts one behind the other: the i-th ends before Bytes[Ends[i]].
type Texts struct {
	Bytes []byte
	Ends  []uint32
}

func (t *Texts) Len() int { return len(t.Ends) }

// At lends the i-th text.
func (t *Texts) At(i int) []byte {
	start := uint32(0)
	if i > 0 {
		start = t.Ends[i-1]
	}
	return t.Bytes[start:t.Ends[i]]
}

// Append copies a text to the end.
func (t *Texts) Append(text []byte) {
	t.Bytes = append(t.Bytes, text...)
	t.Ends = append(t.Ends, uint32(len(t.Bytes)))
}

// Reset empties t and keeps its memory.
func (t *Texts) Reset() { t.Bytes, t.Ends = t.Bytes[:0], t.Ends[:0] }

// EdgeChunk holds edges Src[i]→Dst[i]; messages flow from Src to Dst. Ends in a node type of
// TextIDs are in SrcTexts and DstTexts, all others in Src and Dst. Values has, for each column of
// the relation, the bits of each edge's value: math.Float32bits of an F32, the two's complement of
// an I64.
type EdgeChunk struct {
	Place
	Src, Dst           []int64
	SrcTexts, DstTexts Texts
	Values             [][]uint64
	Parts              []Part // of each edge, where the relation is Parted
}

// Len is the number of edges.
func (c *EdgeChunk) Len() int { return max(len(c.Src), c.SrcTexts.Len()) }

// RowChunk holds len(Values)/Dim feature rows for the nodes of rows First, First+1, ….
type RowChunk struct {
	Place
	Values []float32
}

// LabelChunk holds labels for the nodes of rows First, First+1, …: a class each, or, when the label
// is Multi, Classes zeros and ones each. -1 is missing. When the label is Numbers they are the bits
// of a float32 each, finite, or NaN where it is missing.
type LabelChunk struct {
	Place
	Values []int32
}

// IDChunk holds original node ids: IDs, or Texts where the node type has TextIDs.
type IDChunk struct {
	Place
	IDs   []int64
	Texts Texts
}

// Len is the number of ids.
func (c *IDChunk) Len() int { return max(len(c.IDs), c.Texts.Len()) }

// Extras has the functions that only some sources have. The others leave them nil.
type Extras struct {
	// RowsAt fills dst with the feature rows of nodes rows in any order, len(dst)/len(rows) = Dim
	// values each, as a generator can. A builder that renumbers nodes then writes the table once
	// and need not sort it. It is safe for concurrent use. It returns false for a table that only
	// Rows can read.
	RowsAt func(table int, rows []uint32, dst []float32) bool
	// HeldEdges streams the held-out edges of Schema.Relations[relation], where its Held is set.
	// part is Valid or Test.
	HeldEdges func(ctx context.Context, relation int, part Part, emit func(HeldChunk) error) error
	// HeldPool streams the pairs that are no edges, where there are some: chunks without negatives
	// and values. It comes with HeldEdges.
	HeldPool func(ctx context.Context, relation int, part Part, emit func(HeldChunk) error) error
	// Negatives streams the negatives of Schema.Relations[relation]: see Stream.Negatives. The rows
	// of both its types are known beforehand.
	Negatives func(ctx context.Context, relation int, emit func(NegativeChunk) error) error
	// NodeLabels streams the classes of nodes in Schema.Relations[relation]: see Stream.NodeLabels.
	// The rows of the sources' type are known beforehand.
	NodeLabels func(ctx context.Context, relation int, emit func(NodeLabelChunk) error) error
	// NodeColumn streams one of NodeType.Columns from row 0 on.
	NodeColumn func(ctx context.Context, nodeType int, column string, emit func(values []float32) error) error
	// UnfilledRows streams rows as Rows does, with NaN for the numbers of a missing cell, which
	// Rows fills.
	UnfilledRows func(ctx context.Context, table int, emit func(RowChunk) error) error
	// Describe describes the columns of tables. It is called after Schema.
	Describe func() Description
	// MissingRows returns the number of nodes without features, whose rows are zeros, in a table
	// that Rows has streamed.
	MissingRows func(table int) int64
	// Remarks returns the source's remarks on what it read, a sentence each. They are complete once
	// the sections are read.
	Remarks func() []string
	// BadRows returns the number of rows skipped so far, since they could not be read, and the
	// error of the first. A row counts once, however often it is read.
	BadRows func() (n int64, first error)
}

// HeldChunk holds edges Src[i]→Dst[i], rows of negatives as long as Held says, and values as an
// [EdgeChunk] has them.
type HeldChunk struct {
	Place
	Src, Dst                   []int64
	SrcNegatives, DstNegatives []int64
	Values                     [][]uint64
}

// NegativeChunk holds lists of destinations, in any order of events. List i serves all events from
// row Src[i] to row Dst[i] at Times[i]. It ends before Nodes[Ends[i]], and has rows of the
// destination's type. No two lists serve the same events.
type NegativeChunk struct {
	Place    // of lists
	Src, Dst []int64
	Times    []float64
	Ends     []uint32
	Nodes    []int64
}

// NodeLabelChunk holds classes from 0 on of nodes by their rows, at times, in any order, and the
// part of each.
type NodeLabelChunk struct {
	Place
	Nodes   []int64
	Times   []float64
	Classes []int64
	Parts   []Part
}

// Description has the source's names of its columns, in the order of the Schema. Each list may stop
// early: the columns behind its end have no description.
type Description struct {
	Tables    [][]store.Encoding // widths add up to the table's Dim; nil: columns without names
	Labels    []string           // columns or arrays
	Relations [][]string         // of the Columns of each
	Names     []string           // of relations, where the Schema may have cleaned them
	// Options are options of the source that decided values, by flag, for the dataset's record.
	Options map[string]string
}
