package topology

import (
	"context"
	"fmt"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// Options sets how much of the topology is in memory, and how the rest is read. No option changes
// the lists that are delivered.
type Options struct {
	// Bytes is the budget for resident data: all offsets, and the lists, weights, values and rows
	// of the first nodes. Less than [LeastBytes] is an error; more than everything takes changes
	// nothing. Buffers of the reader and the result of SelfLoops come on top.
	Bytes int64
	// Weights is a column of float32 weights for the edges of the same graph. They are resident
	// where lists are; ReadWeights reads the others. Default: edges have none.
	Weights *store.EdgeColumn
	// Values are columns of the same graph, which may include the one in Weights (it is then held
	// twice). They are resident where lists are, as wide as in the file; ReadValues reads the
	// others. Default: edges have none.
	Values []*store.EdgeColumn
	// Rows is a column of the same graph, u32 or u64, with the number of the row that each edge has
	// in a table. Row numbers are resident where lists are, as wide as in the file; ReadRows reads
	// the others. Default: edges have none.
	Rows *store.EdgeColumn
	// Node returns the node of a list, where the graph has the lists of some nodes alone. Default
	// nil: list v is node v's.
	Node func(list uint32) uint32
	// How the files are read.
	disk.Options
}

// MaxPart is the most neighbours that Read lends at once. Longer lists come in parts, so that no
// graph makes a read larger.
const MaxPart = disk.MaxExtent / 4

// LeastBytes returns the least budget that works for g: the memory of its offsets.
func LeastBytes(g *store.Graph) int64 {
	lines, wide := offsetBytes(g.Nodes(), g.Edges())
	return lines + wide
}

// ListBytes returns the memory of all lists of g: 4 bytes an edge, 4 more with weights (see
// Options.Weights), and the bytes of values (see Options.Values and Options.Rows). With a budget of
// LeastBytes plus ListBytes everything is resident.
func ListBytes(g *store.Graph, weights *store.EdgeColumn, values ...*store.EdgeColumn) int64 {
	return EdgeBytes(weights, values...) * g.Edges()
}

// AllBytes returns the least budget with which all lists of g are resident, without weights or
// values.
func AllBytes(g *store.Graph) int64 { return LeastBytes(g) + ListBytes(g, nil) }

// EdgeBytes returns the memory of an edge: its neighbour, and its weight and values if there are
// any.
func EdgeBytes(weights *store.EdgeColumn, values ...*store.EdgeColumn) int64 {
	n := int64(4)
	if weights != nil {
		n += 4
	}
	for _, c := range values {
		n += int64(c.Column.Elem.Size())
	}
	return n
}

// Tier is the topology of one relation, partly in memory. Read, ReadWeights, ReadValues, ReadRows
// and SelfLoops wait for each other, and check their contexts when it is their turn. All other
// methods are safe for concurrent use, also beside these. Nothing may run beside Close, and only
// Stats beside Resize.
type Tier struct {
	graph       *store.Graph
	reader      *disk.Reader
	nodes       int
	offsets     *offsets
	offsetsRead disk.Traffic // traffic of reading them
	ids         column[uint32]
	weightsOf   column[float32] // if there are any
	valuesOf    []column[float32]
	rowsOf      column[uint32] // if there are any
	node        func(list uint32) uint32
	edgeBytes   int64 // of an edge in memory: EdgeBytes, and the number of its row
	prefix

	mu struct { // held during reads
		sync.Mutex
		long  []int // scratch of Read
		loops *loops
	}

	stats struct {
		sync.Mutex
		Stats
	}
}

// Open reads the offsets of g, and as many lists, from the first on, as the budget holds. The graph
// stays the caller's and must stay open until Close. Impossible offsets and neighbours that do not
// exist are a *store.SectionError; an invalid weight is the error of store.EdgeColumn.CheckWeights.
// ctx applies to Open alone: its end is an error.
func Open(ctx context.Context, g *store.Graph, o Options) (_ *Tier, err error) {
	if err := o.Options.Validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if err := checkBudget(g, o.Bytes); err != nil {
		return nil, err
	}
	t := &Tier{graph: g, nodes: g.Nodes(), node: o.Node, edgeBytes: EdgeBytes(o.Weights, o.Values...)}
	if o.Rows != nil {
		t.edgeBytes += int64(o.Rows.Column.Elem.Size())
	}
	offsets, neighbors := g.Sections()
	files := []store.SectionFile{offsets, neighbors}
	t.ids = column[uint32]{file: 1, size: 4, lend: store.NodeIDs, of: idAt, check: t.checkIDs}
	t.ids.first = uint64(g.FirstEdge())
	if w := o.Weights; w != nil {
		if err := checkColumn(w, g); err != nil {
			return nil, err
		}
		t.weightsOf = column[float32]{file: len(files), size: 4, lend: store.Float32s, of: floatAt, check: w.CheckWeights}
		files = append(files, w.Section())
	}
	for _, c := range o.Values {
		mustBeOf(c, g)
		t.valuesOf = append(t.valuesOf, valueColumn(c, len(files)))
		files = append(files, c.Section())
	}
	if c := o.Rows; c != nil {
		mustBeOf(c, g)
		t.rowsOf = rowColumn(c, len(files))
		files = append(files, c.Section())
	}
	if t.reader, err = disk.Open(ctx, files, o.Options.For(disk.Size(files))); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	if t.offsets, t.offsetsRead, err = readOffsets(ctx, g, t.reader); err != nil {
		return nil, fmt.Errorf("topology: offsets: %w", err)
	}
	t.stats.Warmup.Seconds = t.offsetsRead.Seconds
	if err = t.hold(ctx, o.Bytes); err != nil {
		return nil, err
	}
	return t, nil
}

// checkIDs returns an error if part of v's list names a neighbour that does not exist.
func (t *Tier) checkIDs(v uint32, _ int, list []uint32) error {
	top := uint32(0)
	for _, u := range list {
		top = max(top, u)
	}
	if len(list) > 0 && int(top) >= t.graph.Sources() {
		return t.graph.CorruptNeighbor(v, top)
	}
	return nil
}

// Nodes returns the number of nodes that have a list.
func (t *Tier) Nodes() int { return t.nodes }

// Edges returns the number of edges.
func (t *Tier) Edges() int64 { return t.graph.Edges() }

// Resident returns the number of nodes whose lists are in memory: the nodes below it. Ingest
// numbers nodes so that the lists that training reads most come first.
func (t *Tier) Resident() uint32 { return t.resident }

// Degree returns the number of v's in-neighbours. It panics if v is no node.
func (t *Tier) Degree(v uint32) int {
	if int(v) >= t.nodes {
		panic(fmt.Sprintf("topology: Degree(%d), and there are %d nodes", v, t.nodes))
	}
	lo, hi := t.offsets.span(v)
	return int(hi - lo)
}

// Neighbors returns the in-neighbours of v, ascending. It panics if v is not below Resident. The
// slice is borrowed: read-only, and valid until Resize or Close.
func (t *Tier) Neighbors(v uint32) []uint32 {
	if v >= t.resident {
		panic(fmt.Sprintf("topology: Neighbors(%d), and %d lists are resident", v, t.resident))
	}
	lo, hi := t.offsets.span(v)
	return t.lists[lo:hi:hi]
}

// Read reads the lists of nodes, which must be ascending, not below Resident, and have neighbours;
// otherwise it panics. It reads in file order, and through a gap between two lists where that costs
// less than another read. serve gets the list of nodes[i]; a list longer than MaxPart comes in
// parts, each from neighbour from on. Several goroutines call serve at once, with lists and with
// parts of one list; part is valid until serve returns. After the first error, from serve, the file
// or ctx, no more lists come.
func (t *Tier) Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return read(ctx, t, &t.ids, nodes, int64(len(nodes)), serve)
}

// Engine returns the engine that reads the disk, and why it was chosen, as a sentence.
func (t *Tier) Engine() (kind disk.Kind, why string) { return t.reader.Kind(), t.reader.Why() }

// Costs returns the costs of reading, as far as they are known.
func (t *Tier) Costs() disk.Costs { return t.reader.Costs() }

// Close frees the memory. A second Close does nothing.
func (t *Tier) Close() {
	t.reader.Close()
	if t.offsets != nil {
		t.offsets.close()
	}
	t.prefix.close()
	if t.mu.loops != nil {
		t.mu.loops.memory.Close()
		t.mu.loops = nil
	}
}
