package topology

import (
	"context"
	"fmt"
	"math"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// Options says how much of the topology may be in memory. No option changes the lists that are delivered.
type Options struct {
	// Bytes is the budget of what is resident: all offsets, and the lists and weights of the first nodes. Below [LeastBytes]
	// it is an error; more than everything is cut down to that. The reader's buffers come on top, and so does SelfLoops.
	Bytes int64
	// Weights are those of the edges, a column of float32s of the same graph: they are resident where lists are, and else read
	// by ReadWeights. Default: edges have none.
	Weights *store.EdgeColumn
	// How cold lists are read.
	disk.Options
}

// MaxPart is the most neighbours that Read lends at once: the rest of a longer list comes in parts of its own, so that
// what is read at a time is bounded whatever the graph.
const MaxPart = disk.MaxExtent / 4

// LeastBytes is the least budget that works for g: the offsets.
func LeastBytes(g *store.Graph) int64 {
	lines, wide := offsetBytes(g.Nodes(), g.Edges())
	return lines + wide
}

// ListBytes is what all lists of g take: 4 bytes an edge, and 4 more for its weight where weights, Options.Weights, are not
// nil. From a budget of LeastBytes and this on all is resident.
func ListBytes(g *store.Graph, weights *store.EdgeColumn) int64 {
	return edgeBytes(weights) * g.Edges()
}

// AllBytes is the budget from which on all of g is resident, weights aside.
func AllBytes(g *store.Graph) int64 { return LeastBytes(g) + ListBytes(g, nil) }

func edgeBytes(weights *store.EdgeColumn) int64 {
	if weights == nil {
		return 4
	}
	return 8
}

// Tier is the topology of one relation, partly in memory. Read, ReadWeights and SelfLoops wait for each other, and look at their
// contexts once it is their turn; all else is safe for concurrent use, beside them too. Resize and Close want every other user
// gone.
type Tier struct {
	graph       *store.Graph
	reader      *disk.Reader
	nodes       int
	offsets     *offsets
	offsetsRead disk.Traffic // what reading them took
	ids         column[uint32]
	values      column[float32] // of weights, if there are any
	edgeBytes   int64           // of an edge in memory: its neighbour, and its weight if there are any
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

// Open reads the offsets of g, and as many lists from the first on as the budget holds. The graph stays the caller's and
// must stay open until Close. Offsets that cannot be true, and neighbours that do not exist, are a *store.SectionError;
// weights that are none are what store.EdgeColumn.CheckWeights says of them. ctx is for Open alone: its end is an error.
func Open(ctx context.Context, g *store.Graph, o Options) (_ *Tier, err error) {
	if err := o.Options.Validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if err := checkBudget(g, o.Bytes); err != nil {
		return nil, err
	}
	t := &Tier{graph: g, nodes: g.Nodes(), edgeBytes: edgeBytes(o.Weights)}
	offsets, neighbors := g.Sections()
	files := []store.SectionFile{offsets, neighbors}
	t.ids = column[uint32]{file: 1, lend: store.NodeIDs, of: func(bits uint32) uint32 { return bits }, check: t.checkIDs}
	if w := o.Weights; w != nil {
		if err := checkColumn(w, g); err != nil {
			return nil, err
		}
		t.values = column[float32]{file: len(files), lend: store.Float32s, of: math.Float32frombits, check: w.CheckWeights}
		files = append(files, w.Section())
	}
	if t.reader, err = disk.Open(ctx, files, o.Options); err != nil {
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

// Resident is how many nodes have their lists in memory: those below it. Ingest numbers nodes so that the lists that
// training reads most come first.
func (t *Tier) Resident() uint32 { return t.resident }

// Degree is the number of v's in-neighbours. A v that is no node panics.
func (t *Tier) Degree(v uint32) int {
	if int(v) >= t.nodes {
		panic(fmt.Sprintf("topology: Degree(%d), and there are %d nodes", v, t.nodes))
	}
	lo, hi := t.offsets.span(v)
	return int(hi - lo)
}

// Neighbors returns the in-neighbours of v, which is below Resident, ascending. The slice is borrowed: read-only, and
// valid until Resize or Close. Another v panics.
func (t *Tier) Neighbors(v uint32) []uint32 {
	if v >= t.resident {
		panic(fmt.Sprintf("topology: Neighbors(%d), and %d lists are resident", v, t.resident))
	}
	lo, hi := t.offsets.span(v)
	return t.lists[lo:hi:hi]
}

// Read reads the lists of nodes, which are ascending, not below Resident, and have neighbours: in the order of the file,
// with what lies between two lists read through where that costs less than another read. serve gets the list of nodes[i],
// several of them at once; a list longer than MaxPart comes in parts, of which each begins at neighbour from of it, several
// at once as well. What it gets is valid until it returns. After the first error, from serve, the file or ctx, no more lists
// come.
func (t *Tier) Read(ctx context.Context, nodes []uint32, serve func(i, from int, part []uint32) error) error {
	return read(ctx, t, &t.ids, nodes, int64(len(nodes)), serve)
}

// Engine is the way the disk is read, and in a sentence why.
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
