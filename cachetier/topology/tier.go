package topology

import (
	"fmt"
	"sync"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Options says how much of the topology may be in memory. No option changes the lists that are delivered.
type Options struct {
	// Bytes is the budget of what is resident: all offsets, and the lists of the first nodes. Below [LeastBytes] it is an
	// error; more than everything is cut down to that. The reader's buffers come on top, and so does SelfLoops.
	Bytes int64
	// How cold lists are read.
	disk.Options
}

// MaxPart is the most neighbours that Read lends at once: the rest of a longer list comes in parts of its own, so that
// what is read at a time is bounded whatever the graph.
const MaxPart = disk.MaxStretch / 4

// LeastBytes is the least budget that works for g: the offsets.
func LeastBytes(g *store.Graph) int64 {
	lines, wide := offsetBytes(g.Nodes(), g.Edges())
	return lines + wide
}

// AllBytes is the budget from which on all of g is resident.
func AllBytes(g *store.Graph) int64 { return LeastBytes(g) + 4*g.Edges() }

// Tier is the topology of one relation, partly in memory. Read and SelfLoops wait for each other; all else is safe for
// concurrent use, beside them too. Close wants every other user gone.
type Tier struct {
	graph    *store.Graph
	reader   *disk.Reader
	nodes    int
	offsets  *offsets
	memory   *kernels.HostBuf // of lists
	lists    []uint32         // of the nodes below resident, one behind the other
	resident uint32

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
// must stay open until Close. Offsets that cannot be true, and neighbours that do not exist, are a *store.SectionError.
func Open(g *store.Graph, o Options) (_ *Tier, err error) {
	least := LeastBytes(g)
	if err := o.Options.Validate(); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	if o.Bytes < least {
		return nil, fmt.Errorf("topology: a budget of %d bytes: the offsets of %d nodes and %d edges take %d, the least that "+
			"works", o.Bytes, g.Nodes(), g.Edges(), least)
	}
	t := &Tier{graph: g, nodes: g.Nodes()}
	offsets, neighbors := g.Sections()
	if t.reader, err = disk.Open([]store.SectionFile{offsets, neighbors}, o.Options); err != nil {
		return nil, fmt.Errorf("topology: %w", err)
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	var warmup, more disk.Traffic
	if t.offsets, warmup, err = readOffsets(g, t.reader); err != nil {
		return nil, fmt.Errorf("topology: offsets: %w", err)
	}
	t.resident = t.offsets.prefix(uint64(o.Bytes-least) / 4)
	if t.memory, err = kernels.NewHostBuf(4 * int(t.offsets.at(t.resident))); err != nil {
		return nil, fmt.Errorf("topology: the lists of %d nodes: %w", t.resident, err)
	}
	if more, err = t.load(); err != nil {
		return nil, fmt.Errorf("topology: the lists of %d nodes: %w", t.resident, err)
	}
	t.lists = t.memory.Uint32s()
	warmup.Add(more)
	t.stats.Stats = newStats(g, t.resident, int64(len(t.memory.Bytes())), warmup)
	return t, nil
}

// load reads the resident lists.
func (t *Tier) load() (disk.Traffic, error) {
	b := t.memory.Lend()
	defer t.memory.Return()
	return t.reader.Read(t.edges(0, uint64(len(b))/4), func(s disk.Stretch, part []byte) error {
		copy(b[s.Offset-store.PageSize:], part)
		return t.each(s, part, func(v uint32, _ uint64, part []uint32) error { return t.check(v, part) })
	})
}

// edges are stretches of the neighbours file that hold the edges from lo to hi. Between them they end where a page of the
// file does, so that engines that read whole pages read none twice.
func (t *Tier) edges(lo, hi uint64) func() (disk.Stretch, bool) {
	return func() (s disk.Stretch, ok bool) {
		if lo == hi {
			return s, false
		}
		n := min(hi-lo, MaxPart-lo%MaxPart)
		s = disk.Stretch{File: 1, Offset: place(lo), Size: 4 * int(n)}
		lo += n
		return s, true
	}
}

// each calls do with the lists that b, the bytes of s, has a part of: with v, and where in its list the part begins.
func (t *Tier) each(s disk.Stretch, b []byte, do func(v uint32, from uint64, part []uint32) error) error {
	ids := view(b)
	lo := uint64(s.Offset-store.PageSize) / 4
	for v, e := t.offsets.owner(lo), lo; e < lo+uint64(len(ids)); v++ {
		begin, end := t.offsets.span(v)
		end = min(end, lo+uint64(len(ids)))
		if err := do(v, e-begin, ids[e-lo:end-lo]); err != nil {
			return err
		}
		e = end
	}
	return nil
}

// place is where edge e lies in the neighbours file.
func place(e uint64) int64 { return store.PageSize + 4*int64(e) }

// view lends b as ids, or a copy where it does not lie as those must: engines read to addresses like the offsets in the
// file, so that is rare.
func view(b []byte) []uint32 {
	if ids, ok := store.NodeIDs(b); ok {
		return ids
	}
	aligned := make([]uint32, len(b)/4)
	for i := range aligned {
		aligned[i] = uint32(b[4*i]) | uint32(b[4*i+1])<<8 | uint32(b[4*i+2])<<16 | uint32(b[4*i+3])<<24
	}
	return aligned
}

// check looks for neighbours that do not exist.
func (t *Tier) check(v uint32, list []uint32) error {
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
// valid until Close. Another v panics.
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
// at once as well. What it gets is valid until it returns. After the first error, from serve or from the file, no more lists
// come.
func (t *Tier) Read(nodes []uint32, serve func(i, from int, part []uint32) error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offsets.lines.Lend()
	defer t.offsets.lines.Return()
	wanted := int64(0)
	t.mu.long = t.mu.long[:0]
	for i, v := range nodes {
		n := t.Degree(v)
		if v < t.resident || i > 0 && nodes[i-1] >= v || n == 0 {
			panic(fmt.Sprintf("topology: Read: nodes[%d] is %d, which has %d neighbours, and %d lists are resident",
				i, v, n, t.resident))
		}
		wanted += 4 * int64(n)
		if n > MaxPart {
			t.mu.long = append(t.mu.long, i)
		}
	}
	traffic, err := t.reader.Read(t.stretches(nodes, t.mu.long), func(s disk.Stretch, b []byte) error {
		ids, first := view(b), uint64(s.Offset-store.PageSize)/4
		for i := s.Lo; i < s.Hi; i++ {
			lo, hi := t.offsets.span(nodes[i])
			from := max(lo, first)
			part := ids[from-first : min(hi-first, uint64(len(ids)))]
			if err := t.check(nodes[i], part); err != nil {
				return err
			}
			if err := serve(i, int(from-lo), part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	t.stats.Lock()
	defer t.stats.Unlock()
	t.stats.Cold.Count(int64(len(nodes)), 0, wanted, traffic)
	return nil
}

// stretches are those of the lists of nodes. Lists are merged but for the long ones, which are cut.
func (t *Tier) stretches(nodes []uint32, long []int) func() (disk.Stretch, bool) {
	merged := func(lo, hi int) func() (disk.Stretch, bool) {
		next := t.reader.Merge(hi-lo, func(i int) disk.Piece {
			begin, end := t.offsets.span(nodes[lo+i])
			return disk.Piece{File: 1, Offset: place(begin), Size: 4 * int(end-begin)}
		})
		return func() (disk.Stretch, bool) {
			s, ok := next()
			s.Lo, s.Hi = s.Lo+lo, s.Hi+lo
			return s, ok
		}
	}
	cut := func(i int) func() (disk.Stretch, bool) {
		next := t.edges(t.offsets.span(nodes[i]))
		return func() (disk.Stretch, bool) {
			s, ok := next()
			s.Lo, s.Hi = i, i+1
			return s, ok
		}
	}
	// Turns: the lists before a long one, the long one, the lists before the next.
	begin, inLong := 0, false
	end := func() int {
		if len(long) > 0 {
			return long[0]
		}
		return len(nodes)
	}
	next := merged(begin, end())
	return func() (disk.Stretch, bool) {
		for {
			if s, ok := next(); ok {
				return s, true
			}
			switch {
			case len(long) == 0:
				return disk.Stretch{}, false
			case inLong:
				begin, long, inLong = long[0]+1, long[1:], false
				next = merged(begin, end())
			default:
				inLong = true
				next = cut(long[0])
			}
		}
	}
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
	if t.memory != nil {
		t.memory.Close()
	}
	t.lists, t.resident = nil, 0
	if t.mu.loops != nil {
		t.mu.loops.memory.Close()
		t.mu.loops = nil
	}
}
