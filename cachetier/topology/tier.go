package topology

import (
	"context"
	"fmt"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// Options says how much of the topology may be in memory. No option changes the lists that are
// delivered.
type Options struct {
	// Bytes is the budget of what is resident: all offsets, and the lists, weights, values and rows
	// of the first nodes. Less than [LeastBytes] is an error; more than all lists take changes
	// nothing. Buffers of the reader and what SelfLoops makes come on top.
	Bytes int64
	// Weights of the edges, a column of float32s of the same graph. They are resident where lists
	// are; ReadWeights reads the others. Default: edges have none.
	Weights *store.EdgeColumn
	// Values of the edges, any columns of the same graph. They are resident where lists are, as
	// wide as in the file, those of Weights too; ReadValues reads the others. Default: edges have
	// none.
	Values []*store.EdgeColumn
	// Rows has the number of the row that each edge has in a table, u32 or u64, of the same graph.
	// They are resident where lists are, as wide as in the file; ReadRows reads the others.
	// Default: edges have none.
	Rows *store.EdgeColumn
	// How offsets and lists are read.
	disk.Options
}

// MaxPart is the most neighbours that Read lends at once. Longer lists come in parts, so that no
// graph makes a read larger.
const MaxPart = disk.MaxExtent / 4

// LeastBytes is the least budget that works for g: the offsets.
func LeastBytes(g *store.Graph) int64 {
	lines, wide := offsetBytes(g.Nodes(), g.Edges())
	return lines + wide
}

// ListBytes returns the memory of all lists of g: 4 bytes an edge, 4 more with weights, as in
// Options.Weights, and the bytes of values, as in Options.Values and Options.Rows. With a budget
// of LeastBytes plus ListBytes everything is resident.
func ListBytes(g *store.Graph, weights *store.EdgeColumn, values ...*store.EdgeColumn) int64 {
	return EdgeBytes(weights, values...) * g.Edges()
}

// AllBytes is the least budget with which all lists of g are resident, without weights.
func AllBytes(g *store.Graph) int64 { return LeastBytes(g) + ListBytes(g, nil) }

// EdgeBytes is the memory of an edge: its neighbour, and its weight and values if it has some.
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
// and SelfLoops wait for each other, and look at their contexts once it is their turn; all else is
// safe for concurrent use, beside them too. Resize and Close want every other user gone.
type Tier struct {
	graph       *store.Graph
	reader      *disk.Reader
	nodes       int
	offsets     *offsets
	offsetsRead disk.Traffic // what reading them took
	ids         column[uint32]
	weightsOf   column[float32] // if there are any
	valuesOf    []column[float32]
	rowsOf      column[uint32] // if there are any
	edgeBytes   int64          // of an edge in memory: see EdgeBytes
	prefix

	mu struct { // held by whoever reads
		sync.Mutex
		long  []int // scratch of Read
		loops *loops
	}

	stats struct {
		sync.Mutex
		Stats
	}
}

// Open reads the offsets of g, and as many lists from the first on as the budget holds. The graph
// stays the caller's and must stay open until Close. Offsets that cannot be true, and neighbours
// that do not exist, are a *store.SectionError; a weight that no edge can have is the error of
// store.EdgeColumn.CheckWeights. ctx is for Open alone: its end is an error.
func Open(ctx context.Context, g *store.Graph, o Options) (_ *Tier, err error) {
	if err := o.Options.Validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if err := checkBudget(g, o.Bytes); err != nil {
		return nil, err
	}
	t := &Tier{graph: g, nodes: g.Nodes(), edgeBytes: EdgeBytes(o.Weights, o.Values...)}
	if o.Rows != nil {
		t.edgeBytes += int64(o.Rows.Column.Elem.Size())
	}
	offsets, neighbors := g.Sections()
	files := []store.SectionFile{offsets, neighbors}
	t.ids = column[uint32]{file: 1, size: 4, lend: store.NodeIDs, of: idAt, check: t.checkIDs}
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

// checkIDs looks for neighbours that do not exist.
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

// Nodes is the number of nodes that have a list.
func (t *Tier) Nodes() int { return t.nodes }

// Edges is the number of edges.
func (t *Tier) Edges() int64 { return t.graph.Edges() }

// Resident is how many nodes have their lists in memory: those below it. Ingest numbers nodes so
// that the lists that training reads most come first.
func (t *Tier) Resident() uint32 { return t.resident }

// Degree is the number of v's in-neighbours. A v that is no node panics.
func (t *Tier) Degree(v uint32) int {
	if int(v) >= t.nodes {
		panic(fmt.Sprintf("topology: Degree(%d), and there are %d nodes", v, t.nodes))
	}
	lo, hi := t.offsets.span(v)
	return int(hi - lo)
}

// Neighbors returns the in-neighbours of v, which is below Resident, ascending. The slice is
// borrowed: read-only, and valid until Resize or Close. Another v panics.
func (t *Tier) Neighbors(v uint32) []uint32 {
	if v >= t.resident {
		panic(fmt.Sprintf("topology: Neighbors(%d), and %d lists are resident", v, t.resident))
	}
	lo, hi := t.offsets.span(v)
	return t.lists[lo:hi:hi]
}

// Read reads the lists of nodes, which are ascending, not below Resident, and have neighbours. It
// reads in the order of the file, and reads through a gap between two lists where that costs less
// than another read. serve gets the list of nodes[i]; a list longer than MaxPart comes in parts,
// each from neighbour from on. Several goroutines call serve at once, with lists and with parts of
// one list; part is valid until serve returns. After the first error, from serve, the file or ctx,
// no more lists come.
func (t *Tier) Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return read(ctx, t, &t.ids, nodes, int64(len(nodes)), serve)
}

// Engine is the engine that reads the disk, and a sentence that says why.
func (t *Tier) Engine() (kind disk.Kind, why string) { return t.reader.Kind(), t.reader.Why() }

// Costs is what reading costs, as far as it is known.
func (t *Tier) Costs() disk.Costs { return t.reader.Costs() }

// Close gives up the memory. A second Close does nothing.
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
