package store

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"sort"
)

// Shared names the sections that many small relations from Src to Dst share: those with
// Relation.Lists. Their lists follow each other in the order of the manifest, and only nodes that
// have in-neighbours have a list. So a thousand relations take the room of their edges, and a few
// files.
type Shared struct {
	Src       string `json:"src"`
	Dst       string `json:"dst"`
	Nodes     File   `json:"nodes"`     // U32, the node of each list, ascending within a relation
	Starts    File   `json:"starts"`    // U64, where each list begins in Neighbors; one row more
	Neighbors File   `json:"neighbors"` // U32, ascending within a list
	// Valid and Test are the ends of the held-out edges of these relations. Both are set, or
	// neither where no relation has an edge split.
	Valid *SharedEnds `json:"valid,omitempty"`
	Test  *SharedEnds `json:"test,omitempty"`
}

// SharedEnds are the ends of held-out edges, U32, one relation's behind another's.
type SharedEnds struct {
	Src File `json:"src"`
	Dst File `json:"dst"`
}

// held returns the sections of held-out edges by HeldPart, nil where there are none.
func (s *Shared) held() [2]*SharedEnds { return [2]*SharedEnds{s.Valid, s.Test} }

// topology returns the sections of the lists.
func (s *Shared) topology() []*File { return []*File{&s.Nodes, &s.Starts, &s.Neighbors} }

func (s *Shared) files() []*File {
	fs := s.topology()
	for _, h := range s.held() {
		if h != nil {
			fs = append(fs, &h.Src, &h.Dst)
		}
	}
	return fs
}

func (s *Shared) key() string { return s.Src + "__" + s.Dst }

func (s *Shared) topoPath(name string) string { return "topo/" + s.key() + "/" + name }

func (s *Shared) heldPath(p HeldPart, name string) string {
	return "edges/" + s.key() + "/" + p.String() + "/" + name + ".u32"
}

// sharedPlace is the extent of a relation in the sections that it shares.
type sharedPlace struct {
	of         *Shared // nil: the relation has sections of its own
	list, edge int64   // numbers of the first
	held       [2]int64
}

// sharedPlaces returns the place of each relation.
func (m *Manifest) sharedPlaces() []sharedPlace {
	places := make([]sharedPlace, len(m.Relations))
	next := map[[2]string]*sharedPlace{}
	for i := range m.Shared {
		s := &m.Shared[i]
		next[[2]string{s.Src, s.Dst}] = &sharedPlace{of: s}
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		p := next[[2]string{r.Src, r.Dst}]
		if r.Lists == nil || p == nil {
			continue
		}
		places[i] = *p
		p.list, p.edge = p.list+*r.Lists, p.edge+r.Edges
		if r.EdgeSplit != nil {
			p.held[HeldValid] += r.EdgeSplit.Valid.Edges
			p.held[HeldTest] += r.EdgeSplit.Test.Edges
		}
	}
	return places
}

// checkShared compares the shared sections with the relations that share them. nodes counts the
// nodes of each type.
func (m *Manifest) checkShared(nodes map[string]int64) (errs []error) {
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	type left struct {
		*Shared
		lists, edges int64 // that no relation has had so far
		held         [2]int64
		relations    int
	}
	all := map[[2]string]*left{}
	for i := range m.Shared {
		s := &m.Shared[i]
		if all[[2]string{s.Src, s.Dst}] != nil {
			fail("shared sections %s: there are two", s.key())
		}
		if err := checkNames("shared sections", s.Src, s.Dst); err != nil {
			errs = append(errs, err)
		}
		l := &left{Shared: s, lists: s.Nodes.Rows, edges: s.Neighbors.Rows}
		errs = append(errs,
			shape(&s.Nodes, s.topoPath("nodes.u32"), U32, s.Nodes.Rows, 1),
			shape(&s.Starts, s.topoPath("starts.u64"), U64, s.Nodes.Rows+1, 1),
			shape(&s.Neighbors, s.topoPath("neighbors.u32"), U32, s.Neighbors.Rows, 1))
		if (s.Valid == nil) != (s.Test == nil) {
			fail("shared sections %s: one part of held-out edges without the other", s.key())
		}
		for p, h := range s.held() {
			if h == nil {
				continue
			}
			l.held[p] = h.Src.Rows
			errs = append(errs,
				shape(&h.Src, s.heldPath(HeldPart(p), "src"), U32, h.Src.Rows, 1),
				shape(&h.Dst, s.heldPath(HeldPart(p), "dst"), U32, h.Src.Rows, 1))
		}
		all[[2]string{s.Src, s.Dst}] = l
	}
	if len(m.Shared) > 0 && m.Part != nil {
		fail("a part shares no sections")
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.Lists == nil {
			continue
		}
		l := all[[2]string{r.Src, r.Dst}]
		switch lists := *r.Lists; {
		case l == nil:
			fail("relation %s: it shares sections, and %s and %s have none", r.Key(), r.Src, r.Dst)
			continue
		case r.Offsets != File{} || r.Neighbors != File{} || r.Blocks != nil || len(r.Columns) > 0:
			fail("relation %s: it shares sections, and has some of its own", r.Key())
		case lists < 0 || r.Edges < lists || (lists == 0) != (r.Edges == 0) ||
			lists > nodes[r.Dst] || lists > l.lists || r.Edges > l.edges:
			fail("relation %s: %d lists of %d edges do not fit into the sections that it shares", r.Key(), lists, r.Edges)
			continue
		}
		l.lists, l.edges, l.relations = l.lists-*r.Lists, l.edges-r.Edges, l.relations+1
		if r.EdgeSplit == nil {
			continue
		}
		if l.Valid == nil || l.Test == nil {
			fail("relation %s: it holds edges out, and the sections that it shares have none", r.Key())
			continue
		}
		for p, part := range r.EdgeSplit.parts() {
			if part.Edges < 0 || part.Edges > l.held[p] {
				fail("relation %s: %d held-out edges do not fit into the sections that it shares", r.Key(), part.Edges)
				continue
			}
			l.held[p] -= part.Edges
		}
	}
	for i := range m.Shared {
		l := all[[2]string{m.Shared[i].Src, m.Shared[i].Dst}]
		if l.Shared == &m.Shared[i] && (l.relations == 0 || l.lists+l.edges+l.held[0]+l.held[1] != 0) {
			fail("shared sections %s: %d lists, %d edges and %d held-out edges are of no relation",
				l.key(), l.lists, l.edges, l.held[0]+l.held[1])
		}
	}
	return errs
}

// sharedGraph returns the topology of relation i, which shares its sections.
func (d *Dataset) sharedGraph(i int) *Graph {
	r, place := &d.manifest.Relations[i], d.places[i]
	src, _ := d.NodeType(r.Src)
	dst, _ := d.NodeType(r.Dst)
	nodes, starts := d.sections[place.of.Nodes.Path], d.sections[place.of.Starts.Path]
	neighbors := d.sections[place.of.Neighbors.Path]
	lists := *r.Lists
	return &Graph{
		Relation: r,
		offsets:  cast[uint64](starts.payload())[place.list : place.list+lists+1],
		edges:    cast[NodeID](neighbors.payload())[place.edge : place.edge+r.Edges],
		nodes:    int(dst.Count),
		sources:  src.Count,
		own:      d.manifest.own(r.Dst),
		path:     d.path,
		files:    [2]SectionFile{starts.open(d.path), neighbors.open(d.path)},
		shared:   &sharedLists{place, cast[NodeID](nodes.payload())[place.list : place.list+lists], nodes},
	}
}

// sharedLists are the nodes of a graph's lists, and its place in the sections that it shares.
type sharedLists struct {
	sharedPlace
	nodes   []NodeID
	section *section // of nodes
}

// node returns the node of list k.
func (s *sharedLists) node(k int) NodeID {
	at := 4 * (s.list + int64(k))
	s.section.touch(at, at+4)
	return s.nodes[k]
}

// find returns the index of node v's list. If v has no list, it returns the index of the next one.
func (s *sharedLists) find(v NodeID) (k int, has bool) {
	k = sort.Search(len(s.nodes), func(k int) bool { return s.node(k) >= v })
	return k, k < len(s.nodes) && s.nodes[k] == v
}

// sharedRange returns the range in g.edges of list k of a graph that shares sections.
func (g *Graph) sharedRange(k int) (lo, hi uint64) {
	s, n := g.shared, uint64(len(g.edges))
	g.files[0].s.touch(8*(s.list+int64(k)), 8*(s.list+int64(k))+16)
	lo, hi = g.offsets[k]-uint64(s.edge), g.offsets[k+1]-uint64(s.edge)
	if lo > hi || hi > n {
		err := fmt.Errorf("%s has edges %d to %d of %d", g.node(s.node(k)), lo, hi, n)
		panic(g.corrupt(s.of.Starts.Path, PageSize+8*(s.list+int64(k)), err))
	}
	return lo, hi
}

// sharedList returns the range in g.edges of v's edges. A node without a list has an empty range,
// where its edges would be.
func (g *Graph) sharedList(v NodeID) (lo, hi uint64) {
	k, has := g.shared.find(v)
	if has {
		return g.sharedRange(k)
	}
	if k == len(g.shared.nodes) {
		return uint64(len(g.edges)), uint64(len(g.edges))
	}
	lo, _ = g.sharedRange(k)
	return lo, lo
}

// sharedOwner returns the node whose list has edge e.
func (g *Graph) sharedOwner(e int64) NodeID {
	k := sort.Search(len(g.shared.nodes), func(k int) bool {
		_, hi := g.sharedRange(k)
		return hi > uint64(e)
	})
	if k < len(g.shared.nodes) {
		if lo, _ := g.sharedRange(k); lo <= uint64(e) {
			return g.shared.node(k)
		}
	}
	panic(g.corrupt(g.shared.of.Starts.Path, -1, fmt.Errorf("no list of %s has edge %d", g.Relation.Key(), e)))
}

// Lists yields each node that has in-neighbours, and its list, ascending by node. If the graph
// shares sections, it visits the lists alone, else all nodes. It panics as Neighbors does, and the
// lists are borrowed as in Neighbors.
func (g *Graph) Lists() iter.Seq2[NodeID, []NodeID] {
	return func(yield func(NodeID, []NodeID) bool) {
		if g.shared == nil {
			for v := range NodeID(g.nodes) {
				if list := g.Neighbors(v); len(list) > 0 && !yield(v, list) {
					return
				}
			}
			return
		}
		for k := range g.shared.nodes {
			v := g.shared.node(k)
			if int64(v) >= int64(g.nodes) {
				err := fmt.Errorf("list %d is of node %d of %d", k, v, g.nodes)
				panic(g.corrupt(g.shared.of.Nodes.Path, PageSize+4*(g.shared.list+int64(k)), err))
			}
			lo, hi := g.sharedRange(k)
			g.touchEdges(lo, hi)
			if !yield(v, g.edges[lo:hi:hi]) {
				return
			}
		}
	}
}

// Degrees yields the numbers of in-neighbours of the nodes that have some, ascending by node. It
// reads no edges, and panics as Neighbors does.
func (g *Graph) Degrees() iter.Seq[int] {
	return func(yield func(int) bool) {
		if g.shared == nil {
			for v := range NodeID(g.nodes) {
				if n := g.Degree(v); n > 0 && !yield(n) {
					return
				}
			}
			return
		}
		for k := range g.shared.nodes {
			if lo, hi := g.sharedRange(k); !yield(int(hi - lo)) {
				return
			}
		}
	}
}

// Shares reports whether the graph shares its sections with other relations, so that Sections
// returns other files: see [Graph.FirstEdge].
func (g *Graph) Shares() bool { return g.shared != nil }

// FirstEdge returns the number that the graph's first edge has in its section of neighbours: 0
// unless it shares it.
func (g *Graph) FirstEdge() int64 {
	if g.shared == nil {
		return 0
	}
	return g.shared.edge
}

// Files returns the files of the topology, as Sections and one more where the graph shares them.
func (g *Graph) Files() []SectionFile {
	if g.shared != nil {
		return append(g.files[:], g.shared.section.open(g.path))
	}
	return g.files[:]
}

// specs returns the sections of the topology.
func (g *Graph) specs() []*File {
	if g.shared != nil {
		return g.shared.of.topology()
	}
	return []*File{&g.Relation.Offsets, &g.Relation.Neighbors}
}

// ListOffsets fills dst with the numbers of the first edges of nodes first, first+1, and so
// on. The number of edges follows the last node. It panics as Neighbors does.
func (g *Graph) ListOffsets(first int, dst []uint64) {
	if g.shared == nil {
		g.files[0].s.touch(8*int64(first), 8*int64(first+len(dst)))
		copy(dst, g.offsets[first:])
		return
	}
	k, _ := g.shared.find(NodeID(first))
	for i := range dst {
		for k < len(g.shared.nodes) && int(g.shared.node(k)) < first+i {
			k++
		}
		if dst[i] = uint64(len(g.edges)); k < len(g.shared.nodes) {
			dst[i], _ = g.sharedRange(k)
		}
	}
}

// Bytes returns the bytes of the topology: of shared sections, the part that is the relation's.
func (g *Graph) Bytes() int64 {
	if g.shared != nil {
		return 12**g.Relation.Lists + 4*g.Relation.Edges
	}
	return g.Relation.Offsets.Bytes + g.Relation.Neighbors.Bytes
}

// checkShared verifies the shared sections, and the relations that share them.
func (v *verifier) checkShared() {
	graphs := map[*Shared][]*Graph{}
	for i, place := range v.d.places {
		if place.of != nil {
			graphs[place.of] = append(graphs[place.of], v.d.Graph(i))
		}
	}
	each := func(s *Shared, check func(g *Graph) error) func() error {
		return func() error {
			for _, g := range graphs[s] {
				if err := check(g); err != nil {
					return fmt.Errorf("relation %s: %w", g.Relation.Key(), err)
				}
			}
			return nil
		}
	}
	for i := range v.d.manifest.Shared {
		s := &v.d.manifest.Shared[i]
		src, _ := v.d.NodeType(s.Src)
		dst, _ := v.d.NodeType(s.Dst)
		v.check(&s.Starts, each(s, (*Graph).checkSharedStarts))
		v.check(&s.Nodes, each(s, (*Graph).checkSharedNodes))
		v.check(&s.Neighbors, each(s, (*Graph).checkSharedNeighbors), &s.Starts, &s.Nodes)
		for _, h := range s.held() {
			if h == nil {
				continue
			}
			for file, nodes := range map[*File]int64{&h.Src: src.Count, &h.Dst: dst.Count} {
				v.check(file, func() error {
					HeldEdges{d: v.d}.inRange(file, 0, cast[NodeID](v.d.sections[file.Path].payload()), nodes)
					return nil
				})
			}
		}
	}
}

// checkSharedStarts checks that the graph's lists begin with its first edge, hold an edge each, and
// end behind its last.
func (g *Graph) checkSharedStarts() error {
	if first := g.offsets[0]; first != uint64(g.shared.edge) {
		return fmt.Errorf("its lists begin at %d, and its edges at %d", first, g.shared.edge)
	}
	if !slices.IsSorted(g.offsets) || len(slices.Compact(slices.Clone(g.offsets))) != len(g.offsets) {
		return errors.New("the starts of its lists do not increase")
	}
	if last := g.offsets[len(g.offsets)-1]; last != uint64(g.shared.edge+g.Edges()) {
		return fmt.Errorf("its lists end at %d, and its edges at %d", last, g.shared.edge+g.Edges())
	}
	return nil
}

func (g *Graph) checkSharedNodes() error {
	for k, v := range g.shared.nodes {
		if int64(v) >= int64(g.nodes) {
			return fmt.Errorf("list %d is of node %d of %d", k, v, g.nodes)
		}
		if k > 0 && v <= g.shared.nodes[k-1] {
			return fmt.Errorf("list %d is of node %d, which does not follow %d", k, v, g.shared.nodes[k-1])
		}
	}
	return nil
}

func (g *Graph) checkSharedNeighbors() error {
	for v, list := range g.Lists() {
		if err := checkList(v, list, uint32(g.sources)); err != nil {
			return err
		}
	}
	return nil
}
