package store

import "cmp"

// SharedWriter writes the sections that small relations between two types share: see [Shared]. Call
// Begin for each relation, then AppendList for its nodes and AppendHeld for its held-out edges.
type SharedWriter struct {
	w                        *Writer
	shared                   Shared
	nodes, starts, neighbors *sectionWriter
	held                     [2][2]*sectionWriter // sources and destinations by HeldPart; may be nil
	relations                []Relation
	heldEdges                [2]int64
	lists, edges             int64
}

// NewShared begins the shared sections of relations from src to dst. If split is set, relations may
// have an edge split.
func (w *Writer) NewShared(src, dst string, split bool) (_ *SharedWriter, err error) {
	if err := checkNames("shared sections", src, dst); err != nil {
		return nil, err
	}
	s := &SharedWriter{w: w, shared: Shared{Src: src, Dst: dst}}
	begin := func(path string, e Elem) (section *sectionWriter) {
		if err == nil {
			section, err = w.section(path, e, 1, int64(e.Size()), 0)
		}
		return section
	}
	s.nodes = begin(s.shared.topoPath("nodes.u32"), U32)
	s.starts = begin(s.shared.topoPath("starts.u64"), U64)
	s.neighbors = begin(s.shared.topoPath("neighbors.u32"), U32)
	if split {
		s.shared.Valid, s.shared.Test = new(SharedEnds), new(SharedEnds)
		for p := range HeldTest + 1 {
			s.held[p][0] = begin(s.shared.heldPath(p, "src"), U32)
			s.held[p][1] = begin(s.shared.heldPath(p, "dst"), U32)
		}
	}
	if err != nil {
		return nil, err
	}
	return s, s.starts.append(bytesOf([]uint64{0}))
}

// Begin begins the next relation. reverseOf is as in [Relation], and split names its edge split; ""
// where it has none.
func (s *SharedWriter) Begin(name string, symmetric bool, reverseOf, split string) error {
	r := Relation{Src: s.shared.Src, Name: name, Dst: s.shared.Dst, Lists: new(int64)}
	r.Symmetric, r.ReverseOf = symmetric, reverseOf
	if err := checkNames("relation", r.Src, r.Name, r.Dst); err != nil {
		return err
	}
	if split != "" {
		r.EdgeSplit = &EdgeSplit{Name: toValid(split)}
	}
	s.relations = append(s.relations, r)
	return nil
}

// AppendList writes the in-neighbours, ascending, of a node of the relation that was begun last.
// Nodes are ascending, and have an in-neighbour or more.
func (s *SharedWriter) AppendList(v NodeID, neighbors []NodeID) error {
	r := &s.relations[len(s.relations)-1]
	*r.Lists++
	r.Edges += int64(len(neighbors))
	s.lists++
	s.edges += int64(len(neighbors))
	if err := s.nodes.append(bytesOf([]NodeID{v})); err != nil {
		return err
	}
	if err := s.starts.append(bytesOf([]uint64{uint64(s.edges)})); err != nil {
		return err
	}
	return s.neighbors.append(bytesOf(neighbors))
}

// AppendHeld writes the next held-out edges of the relation that was begun last.
func (s *SharedWriter) AppendHeld(p HeldPart, src, dst []NodeID) error {
	if len(src) != len(dst) {
		panic("store: held-out edges with ends of another number")
	}
	s.relations[len(s.relations)-1].EdgeSplit.parts()[p].Edges += int64(len(src))
	s.heldEdges[p] += int64(len(src))
	if err := s.held[p][0].append(bytesOf(src)); err != nil {
		return err
	}
	return s.held[p][1].append(bytesOf(dst))
}

// Close ends the sections.
func (s *SharedWriter) Close() error {
	var first error // a full disk causes many errors; the first is reported
	end := func(to *File, section *sectionWriter, rows int64) {
		var err error
		*to, err = section.close(rows)
		first = cmp.Or(first, err)
	}
	end(&s.shared.Nodes, s.nodes, s.lists)
	end(&s.shared.Starts, s.starts, s.lists+1)
	end(&s.shared.Neighbors, s.neighbors, s.edges)
	for p, h := range s.shared.held() {
		if h != nil {
			end(&h.Src, s.held[p][0], s.heldEdges[p])
			end(&h.Dst, s.held[p][1], s.heldEdges[p])
		}
	}
	if first == nil {
		s.w.manifest.Shared = append(s.w.manifest.Shared, s.shared)
		s.w.manifest.Relations = append(s.w.manifest.Relations, s.relations...)
	}
	return first
}
