package ingest

import "context"

// Source is one raw graph where its owner left it. It is read a section at a time, and every section can be read again:
// a builder in bounded memory makes several passes. A Source holds no section in memory beyond the chunk it emits, and
// a chunk's slices are lent for the call of emit only. An error from emit ends the section and comes back as it is.
//
// Errors name file, place, reason and remedy in one line. A Source checks its own form (headers, sizes, checksums,
// row counts against declared counts); ids and values are checked by the [Builder], which has the place from the chunk.
//
// One goroutine uses a Source at a time.
type Source interface {
	// Schema says what there is, from metadata where the format has it.
	Schema(ctx context.Context) (*Schema, error)
	// NodeIDs streams the original ids of a node type whose ExternalIDs is set, in row order.
	NodeIDs(ctx context.Context, nodeType int, emit func(IDChunk) error) error
	// Edges streams the edges of Schema.Relations[relation].
	Edges(ctx context.Context, relation int, emit func(EdgeChunk) error) error
	// Rows streams the feature rows of Schema.Tables[table].
	Rows(ctx context.Context, table int, emit func(RowChunk) error) error
	// Labels streams the labels of Schema.Labels[label].
	Labels(ctx context.Context, label int, emit func(LabelChunk) error) error
	// Split streams one part of Schema.Splits[split].
	Split(ctx context.Context, split int, part Part, emit func(IDChunk) error) error
	Close() error
}

// Schema is the form of a graph: typed from the start, so that a homogeneous graph is one node type and one relation.
type Schema struct {
	Name      string // of the dataset: "ogbn_arxiv"
	NodeTypes []NodeType
	Relations []Relation
	Tables    []Table
	Labels    []Label
	Splits    []Split
	// Skipped says, a sentence each, what the source holds and this reader passes over, and why.
	Skipped []string
}

// NodeType is one kind of node. Without ExternalIDs its nodes are 0…Count-1; with it NodeIDs gives any distinct int64s,
// and edges and splits speak in those.
type NodeType struct {
	Name        string
	Count       int64
	ExternalIDs bool
}

// Relation is one kind of edge, from type Src to type Dst.
type Relation struct {
	Src, Name, Dst string
	Edges          int64 // declared number, -1 when not known beforehand
}

// Table is one feature matrix, Dim columns, a row per node of NodeType.
type Table struct {
	Name, NodeType string
	Dim            int
}

// Label is what a model learns to predict about the nodes of NodeType.
type Label struct {
	Name, NodeType string
	Classes        int      // 0 when not known: then one more than the largest
	Multi          bool     // any number of classes a node (Classes is known then)
	ClassNames     []string // may be nil
}

// Split names three disjoint sets of nodes of NodeType.
type Split struct{ Name, NodeType string }

// Part is one of the three sets of a split.
type Part int

const (
	Train Part = iota
	Valid
	Test
)

func (p Part) String() string { return [...]string{"train", "valid", "test"}[p] }

// Place says where a chunk came from, for messages: row First+i of File is the chunk's i-th.
type Place struct {
	File  string
	First int64 // number of the chunk's first row in its section, from 0
}

// EdgeChunk holds edges Src[i]→Dst[i]; messages flow from Src to Dst.
type EdgeChunk struct {
	Place
	Src, Dst []int64
}

// RowChunk holds len(Values)/Dim feature rows for the nodes of rows First, First+1, ….
type RowChunk struct {
	Place
	Values []float32
}

// LabelChunk holds labels for the nodes of rows First, First+1, …: a class each, or, when the label is Multi, Classes
// zeros and ones each. -1 is missing.
type LabelChunk struct {
	Place
	Values []int32
}

// IDChunk holds original node ids.
type IDChunk struct {
	Place
	IDs []int64
}
