package store

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
)

// Graph is the topology of one relation: the in-neighbours of each destination node, as compressed
// sparse rows.
type Graph struct {
	Relation *Relation
	offsets  []uint64
	edges    []NodeID
	nodes    int // of the destination type
	columns  []EdgeColumn
	sources  int64 // the number of source nodes
	own      Own   // of the nodes of the destination type
	blocks   blocks
	path     string
	files    [2]SectionFile // of offsets and neighbours
	// shared is set if the graph shares its sections. offsets then has the number of the first edge
	// of each list, counted in the shared section, and at its end the number behind the last edge.
	shared *sharedLists
}

// EdgeColumn holds one value for every edge of a Graph.
type EdgeColumn struct {
	Column *Column
	graph  *Graph
	data   []byte
	file   SectionFile
}

// Graph returns the topology of relation i of the manifest.
func (d *Dataset) Graph(i int) *Graph {
	r := &d.manifest.Relations[i]
	if r.Lists != nil {
		return d.sharedGraph(i)
	}
	src, _ := d.NodeType(r.Src)
	offsets, neighbors := d.sections[r.Offsets.Path], d.sections[r.Neighbors.Path]
	g := &Graph{
		Relation: r,
		offsets:  cast[uint64](offsets.payload()),
		edges:    cast[NodeID](neighbors.payload()),
		nodes:    int(offsets.spec.Rows) - 1,
		sources:  src.Count,
		own:      d.manifest.own(r.Dst),
		path:     d.path,
		files:    [2]SectionFile{offsets.open(d.path), neighbors.open(d.path)},
	}
	if r.Blocks != nil {
		s := d.sections[r.Blocks.Path]
		g.blocks = blocks{cast[uint64](s.payload()), s, uint64(d.manifest.EdgesOf(i))}
	}
	for j := range r.Columns {
		c := &r.Columns[j]
		s := d.sections[c.Values.Path]
		g.columns = append(g.columns, EdgeColumn{c, g, s.payload(), s.open(d.path)})
	}
	return g
}

// Column returns the column of that name, or nil.
func (g *Graph) Column(name string) *EdgeColumn {
	if i, ok := g.Relation.column(name); ok {
		return &g.columns[i]
	}
	return nil
}

// Bytes returns the values of v's edges as little-endian bytes, in the order of [Graph.Neighbors].
// The slice is borrowed, and damaged data panics, as there. Safe for concurrent use.
func (c *EdgeColumn) Bytes(v NodeID) []byte {
	lo, hi := c.graph.list(v)
	size := uint64(c.Column.Elem.Size())
	c.file.s.touch(int64(lo*size), int64(hi*size))
	return c.data[lo*size : hi*size : hi*size]
}

// Graph returns the graph whose edges the column belongs to.
func (c *EdgeColumn) Graph() *Graph { return c.graph }

// Section returns the file of the values, for readers that do their own reading. The value of edge
// e, numbered as in [Graph.Sections], begins at byte [PageSize] + e times the element's size.
func (c *EdgeColumn) Section() SectionFile { return c.file }

// CheckWeights returns an error for the first value of part that is not a weight: weights are
// finite and at least 0, since neighbours are drawn in proportion to them. part holds the values of
// v's edges from the edge at index from on. The column must hold float32s.
func (c *EdgeColumn) CheckWeights(v NodeID, from int, part []float32) error {
	for i, w := range part {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return c.badWeight(v, from+i, w)
		}
	}
	return nil
}

// badWeight returns the error for weight w of v's i-th edge. The format promises finite values, so
// NaN and infinity are corruption. It allows negative values: those are merely no weights.
func (c *EdgeColumn) badWeight(v NodeID, i int, w float32) error {
	lo, _ := c.graph.list(v)
	path, at := c.Column.Values.Path, PageSize+4*(int64(lo)+int64(i))
	err := fmt.Errorf("edge %d, of %s, has the weight %v", int64(lo)+int64(i), c.graph.node(v), w)
	if w-w != 0 {
		return c.graph.corrupt(path, at, err)
	}
	return fmt.Errorf("%s: %s at 0x%x: %w; edges are drawn by weights of at least 0: ingest such, or draw without weights",
		c.graph.path, path, at, err)
}

// Float returns the i-th value in b as a float32. b holds values of the column as they lie in its
// file. An integer that float32 cannot represent is rounded to the nearest value.
func (c *EdgeColumn) Float(b []byte, i int) float32 {
	le := binary.LittleEndian
	switch c.Column.Elem {
	case U8:
		return float32(b[i])
	case F32:
		return math.Float32frombits(le.Uint32(b[4*i:]))
	case I32:
		return float32(int32(le.Uint32(b[4*i:])))
	case U32:
		return float32(le.Uint32(b[4*i:]))
	case I64:
		return float32(int64(le.Uint64(b[8*i:])))
	case U64:
		return float32(le.Uint64(b[8*i:]))
	}
	panic("store: column " + c.Column.Name + " holds " + c.Column.Elem.String()) // the manifest has no other
}

// Number is Float in float64, which represents all integers up to 2⁵³.
func (c *EdgeColumn) Number(b []byte, i int) float64 {
	le := binary.LittleEndian
	switch c.Column.Elem {
	case I32:
		return float64(int32(le.Uint32(b[4*i:])))
	case U32:
		return float64(le.Uint32(b[4*i:]))
	case I64:
		return float64(int64(le.Uint64(b[8*i:])))
	case U64:
		return float64(le.Uint64(b[8*i:]))
	}
	return float64(c.Float(b, i))
}

// At returns the value of edge e, numbered as by [Graph.Edge], as a float64. It panics as Bytes
// does.
func (c *EdgeColumn) At(e int64) float64 {
	size := int64(c.Column.Elem.Size())
	c.file.s.touch(e*size, (e+1)*size)
	return c.Number(c.data[e*size:(e+1)*size], 0)
}

// Row returns the i-th row number in b. b holds values of the column [EdgeID] as they lie in its
// file. A number beyond 32 bits becomes 4,294,967,295, a row that no table numbered in 32 bits has.
func (c *EdgeColumn) Row(b []byte, i int) uint32 {
	switch c.Column.Elem {
	case U32:
		return binary.LittleEndian.Uint32(b[4*i:])
	case U64:
		return uint32(min(binary.LittleEndian.Uint64(b[8*i:]), math.MaxUint32))
	}
	panic("store: column " + c.Column.Name + " holds " + c.Column.Elem.String() + ", which numbers no rows")
}

// CorruptValue returns the error for a value x of v's i-th edge that is NaN or infinite, which the
// format forbids.
func (c *EdgeColumn) CorruptValue(v NodeID, i int, x float32) error {
	return c.corruptAt(v, i, func(edge int64) error {
		return fmt.Errorf("edge %d, of %s, has the value %v", edge, c.graph.node(v), x)
	})
}

// CorruptRow returns the error for a number, of v's i-th edge, that is not below rows, the number
// of rows of the edge table.
func (c *EdgeColumn) CorruptRow(v NodeID, i, rows int) error {
	return c.corruptAt(v, i, func(edge int64) error {
		return fmt.Errorf("edge %d, of %s, has row %.0f, and the table has %d", edge, c.graph.node(v), c.At(edge), rows)
	})
}

func (c *EdgeColumn) corruptAt(v NodeID, i int, why func(edge int64) error) error {
	lo, _ := c.graph.list(v)
	edge := int64(lo) + int64(i)
	return c.graph.corrupt(c.Column.Values.Path, PageSize+int64(c.Column.Elem.Size())*edge, why(edge))
}

// EdgeValues returns [EdgeColumn.Bytes] as a slice of T. It panics if T is not the column's element
// type.
func EdgeValues[T uint8 | float32 | int32 | uint32 | int64 | uint64](c *EdgeColumn, v NodeID) []T {
	if elemOf[T]() != c.Column.Elem {
		panic("store: column " + c.Column.Name + " holds " + c.Column.Elem.String())
	}
	return cast[T](c.Bytes(v))
}

func elemOf[T scalar]() Elem {
	switch any(*new(T)).(type) {
	case uint8:
		return U8
	case float32:
		return F32
	case int32:
		return I32
	case uint32:
		return U32
	case int64:
		return I64
	case uint64:
		return U64
	}
	return 0
}

// Nodes returns the number of destination nodes.
func (g *Graph) Nodes() int { return g.nodes }

// Sources returns the number of source nodes: neighbours are ids below it.
func (g *Graph) Sources() int { return int(g.sources) }

// Edges returns the number of edges.
func (g *Graph) Edges() int64 { return int64(len(g.edges)) }

// Sections returns the files of the topology, for readers that do their own reading. offsets[v] is
// the u64 at byte [PageSize] + 8·v of the first file, and node v's list starts at byte PageSize +
// 4·offsets[v] of the second. Where the graph shares sections, the first file has the starts of
// lists instead, and the graph's edges begin in the second at [Graph.FirstEdge]; Lists yields them.
func (g *Graph) Sections() (offsets, neighbors SectionFile) { return g.files[0], g.files[1] }

// Degree returns the number of v's in-neighbours. It panics as Neighbors does.
func (g *Graph) Degree(v NodeID) int {
	lo, hi := g.list(v)
	return int(hi - lo)
}

// EdgesOf returns the numbers of v's edges, from lo up to but without hi: see [Graph.Edge].
func (g *Graph) EdgesOf(v NodeID) (lo, hi uint64) { return g.list(v) }

// Neighbors returns v's in-neighbours, ascending. The slice is borrowed: read-only, and valid until
// the Dataset is closed. Safe for concurrent use. An impossible offset, or a page that fails its
// checksum, panics with an error that [Guard] returns.
func (g *Graph) Neighbors(v NodeID) []NodeID {
	lo, hi := g.list(v)
	g.touchEdges(lo, hi)
	return g.edges[lo:hi:hi] // cap == len: an append copies instead of scribbling on v+1
}

// touchEdges checks the pages of edges lo to hi-1.
func (g *Graph) touchEdges(lo, hi uint64) {
	first := g.FirstEdge()
	g.files[1].s.touch(4*(first+int64(lo)), 4*(first+int64(hi)))
}

// Edge returns the two ends of edge e. Edges are numbered in the order of the neighbour lists: node
// 0's list first, then node 1's, and so on. It finds e's list by binary search over the nodes. It
// panics as Neighbors does, and if the source is not a node.
func (g *Graph) Edge(e int64) (src, dst NodeID) {
	if g.shared != nil {
		dst = g.sharedOwner(e)
	} else {
		dst = g.ownerOf(e)
	}
	g.touchEdges(uint64(e), uint64(e)+1)
	if src = g.edges[e]; int64(src) >= g.sources {
		panic(g.CorruptNeighbor(dst, src))
	}
	return src, dst
}

// ownerOf returns the node whose list has edge e, of a graph with sections of its own.
func (g *Graph) ownerOf(e int64) NodeID {
	lo, hi := 0, g.Nodes() // v is in [lo, hi)
	for hi-lo > 1 {
		mid := lo + (hi-lo)/2
		g.files[0].s.touch(8*int64(mid), 8*int64(mid)+8)
		if int64(g.offsets[mid]) <= e {
			lo = mid
		} else {
			hi = mid
		}
	}
	if from, to := g.list(NodeID(lo)); e < int64(from) || e >= int64(to) {
		panic(g.badList(NodeID(lo)))
	}
	return NodeID(lo)
}

// list returns the range of v's edges in g.edges.
func (g *Graph) list(v NodeID) (lo, hi uint64) {
	if g.shared != nil && int64(v) < int64(g.nodes) {
		return g.sharedList(v)
	}
	if int64(v) < int64(g.nodes) {
		g.files[0].s.touch(8*int64(v), 8*int64(v)+16)
		if lo, hi = g.offsets[v], g.offsets[v+1]; lo <= hi && hi <= uint64(len(g.edges)) {
			return lo, hi
		}
	}
	panic(g.badList(v))
}

func (g *Graph) badList(v NodeID) *SectionError {
	if int64(v) >= int64(g.nodes) {
		err := fmt.Errorf("neighbour id %d, and there are %d nodes", v, g.Nodes())
		return g.corrupt(g.files[1].Section, -1, err)
	}
	err := fmt.Errorf("%s has edges %d to %d of %d", g.node(v), g.offsets[v], g.offsets[v+1], len(g.edges))
	return g.corrupt(g.Relation.Offsets.Path, PageSize+8*int64(v), err)
}

// CorruptNeighbor returns the error for a neighbour u of v that is not a node. Neighbors does not
// check ids. Whoever uses a neighbour as an index compares it with [Graph.Sources] first, and
// panics with this error, which [Guard] returns.
func (g *Graph) CorruptNeighbor(v, u NodeID) *SectionError {
	at := int64(-1)
	if i := slices.Index(g.Neighbors(v), u); i >= 0 {
		lo, _ := g.list(v)
		at = PageSize + 4*(g.FirstEdge()+int64(lo)+int64(i))
	}
	err := fmt.Errorf("%s has neighbour %d, and there are %d nodes", g.node(v), u, g.sources)
	return g.corrupt(g.files[1].Section, at, err)
}

// node names the node of list v.
func (g *Graph) node(v NodeID) string {
	if g.own.Whole() {
		return fmt.Sprintf("node %d", v)
	}
	return fmt.Sprintf("node %d, in row %d,", g.own.Node(v), v)
}

func (g *Graph) corrupt(section string, at int64, err error) *SectionError {
	return &SectionError{g.path, section, at, fmt.Errorf("%w; run gnnstore verify", err)}
}
