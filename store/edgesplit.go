package store

import (
	"fmt"
	"slices"
	"unicode/utf8"
)

// EdgeSplit holds edges out of a relation's topology, for link prediction; the edges that stay are
// the training edges. In a symmetric relation each held-out edge appears once, in one of its two
// directions, and the topology has neither direction. A relation that is the reverse of another has
// no split of its own: it lacks the edges that the other holds out.
type EdgeSplit struct {
	Name  string  `json:"name"` // how the edges were chosen, for people: "random:0.85/0.05/0.1", "given"
	Valid HeldOut `json:"valid"`
	Test  HeldOut `json:"test"`
}

// HeldOut is one part of an EdgeSplit. Edge i goes from row i of Src to row i of Dst, both U32
// sections of stored ids.
type HeldOut struct {
	Edges int64 `json:"edges"`
	Src   File  `json:"src,omitzero"` // both are left out where the relation shares sections
	Dst   File  `json:"dst,omitzero"`
	// SrcNegatives and DstNegatives hold, for each edge, the nodes that replace its source or its
	// destination in a ranking: U32, with a column for each such node. They come with the data, or
	// are absent.
	SrcNegatives *File `json:"src_negatives,omitempty"`
	DstNegatives *File `json:"dst_negatives,omitempty"`
	// PoolSrc and PoolDst are the two ends of pairs that are not edges. All edges of the part are
	// ranked among these. Both are set or neither.
	PoolSrc *File `json:"pool_src,omitempty"`
	PoolDst *File `json:"pool_dst,omitempty"`
	// Columns are values of the edges. Each has the name and element type of a column of the
	// relation.
	Columns []Column `json:"columns,omitempty"`
}

// HeldPart selects a part of an EdgeSplit.
type HeldPart int

const (
	HeldValid HeldPart = iota
	HeldTest
)

func (p HeldPart) String() string { return [...]string{"valid", "test"}[p] }

// parts returns both parts, indexed by HeldPart.
func (s *EdgeSplit) parts() [2]*HeldOut { return [2]*HeldOut{&s.Valid, &s.Test} }

// ends returns the sections of node ids, nil for absent ones, with the names of their files. source
// is true for sections of source nodes.
func (h *HeldOut) ends() []heldSection {
	return []heldSection{
		{"src", &h.Src, true}, {"dst", &h.Dst, false},
		{"src-negatives", h.SrcNegatives, true}, {"dst-negatives", h.DstNegatives, false},
		{"pool-src", h.PoolSrc, true}, {"pool-dst", h.PoolDst, false},
	}
}

// heldSection is a section of node ids, and the name of its file.
type heldSection struct {
	name   string
	file   *File
	source bool
}

// files returns the split's own sections.
func (s *EdgeSplit) files() (fs []*File) {
	for _, part := range s.parts() {
		for _, e := range part.ends() {
			if e.file != nil && e.file.Path != "" {
				fs = append(fs, e.file)
			}
		}
		for i := range part.Columns {
			fs = append(fs, &part.Columns[i].Values)
		}
	}
	return fs
}

// HeldBytes returns the bytes of the relation's held-out edges.
func (r *Relation) HeldBytes() (n int64) {
	if r.EdgeSplit != nil {
		for _, f := range r.EdgeSplit.files() {
			n += f.Bytes
		}
	}
	return n
}

// maxSplitName bounds the length of an edge split's name, which holds the specification that made
// it.
const maxSplitName = 1000

func (r *Relation) heldPath(p HeldPart, name string) string {
	return "edges/" + r.Key() + "/" + p.String() + "/" + name + ".u32"
}

func (r *Relation) heldColumnPath(p HeldPart, c Column) string {
	return "edges/" + r.Key() + "/" + p.String() + "/columns/" + c.Name + "." + c.Elem.String()
}

// checkEdgeSplit compares the manifest's sections of an edge split with what their places need.
func (r *Relation) checkEdgeSplit() (errs []error) {
	s := r.EdgeSplit
	if s == nil {
		return nil
	}
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("relation %s: edge split: %w", r.Key(), fmt.Errorf(format, args...)))
	}
	if s.Name == "" || len(s.Name) > maxSplitName || !utf8.ValidString(s.Name) {
		fail("its name is %.100q; it is one to %d bytes of UTF-8", s.Name, maxSplitName)
	}
	if r.ReverseOf != "" {
		fail("it is the reverse of %s, whose split is its own", r.ReverseOf)
	}
	for i, part := range s.parts() {
		p := HeldPart(i)
		if r.Lists != nil {
			own := func(e heldSection) bool { return e.file != nil && *e.file != File{} }
			if len(part.Columns) > 0 || slices.ContainsFunc(part.ends(), own) {
				fail("%v: it has sections of its own, and its relation shares some", p)
			}
			continue
		}
		for _, e := range part.ends() {
			if e.file == nil {
				continue
			}
			rows, cols := part.Edges, int64(1)
			switch e.file {
			case part.SrcNegatives, part.DstNegatives:
				if cols = e.file.Cols; cols < 1 {
					fail("%s: %d columns", e.file.Path, cols)
				}
			case part.PoolSrc, part.PoolDst:
				rows = e.file.Rows
			}
			errs = append(errs, shape(e.file, r.heldPath(p, e.name), U32, rows, cols))
		}
		if (part.PoolSrc == nil) != (part.PoolDst == nil) || part.PoolSrc != nil && part.PoolSrc.Rows != part.PoolDst.Rows {
			fail("%v: the two ends of its pool are not as many", p)
		}
		if len(part.Columns) != len(s.Valid.Columns) {
			fail("%v: %d columns, and valid has %d", p, len(part.Columns), len(s.Valid.Columns))
		}
		for j := range part.Columns {
			c := &part.Columns[j]
			if v := s.Valid.Columns; j < len(v) && v[j].Name != c.Name {
				fail("%v: column %s, where valid has %s", p, c.Name, v[j].Name)
			}
			if k, ok := r.column(c.Name); !ok || r.Columns[k].Elem != c.Elem {
				fail("%v: column %s of %v, and the relation has no such", p, c.Name, c.Elem)
			}
			if slices.ContainsFunc(part.Columns[:j], func(o Column) bool { return o.Name == c.Name }) {
				fail("%v: there are two columns %s", p, c.Name)
			}
			errs = append(errs, shape(&c.Values, r.heldColumnPath(p, *c), c.Elem, part.Edges, 1))
			if c.Values.First != 0 {
				fail("%s: first row %d of a section without shards", c.Values.Path, c.Values.First)
			}
		}
	}
	return errs
}

// HeldEdges are the edges of one part of an edge split. Its slices are borrowed, like all that a
// Dataset lends. Methods are safe for concurrent use. A page that fails its checksum, or an id that
// is not a node, panics with an error that [Guard] returns.
type HeldEdges struct {
	Part *HeldOut
	d    *Dataset
	// sources and targets are the numbers of nodes of types Src and Dst.
	sources, targets int64
	place            sharedPlace // of the relation
	part             HeldPart
}

// HeldEdges returns a part of the edge split of relation i of the manifest, or false if the
// relation has no edge split.
func (d *Dataset) HeldEdges(i int, p HeldPart) (HeldEdges, bool) {
	r := &d.manifest.Relations[i]
	if r.EdgeSplit == nil {
		return HeldEdges{}, false
	}
	src, _ := d.NodeType(r.Src)
	dst, _ := d.NodeType(r.Dst)
	return HeldEdges{r.EdgeSplit.parts()[p], d, src.Count, dst.Count, d.places[i], p}, true
}

// Len returns the number of edges.
func (h HeldEdges) Len() int { return int(h.Part.Edges) }

// Ends returns the two ends of each edge, after checking all of them.
func (h HeldEdges) Ends() (src, dst []NodeID) {
	if h.place.of != nil {
		ends := h.place.of.held()[h.part]
		return h.some(&ends.Src, h.sources), h.some(&ends.Dst, h.targets)
	}
	return h.all(&h.Part.Src, h.sources), h.all(&h.Part.Dst, h.targets)
}

// Pool returns the two ends of the pairs that are not edges, after checking all of them; nil if
// none are given.
func (h HeldEdges) Pool() (src, dst []NodeID) {
	return h.all(h.Part.PoolSrc, h.sources), h.all(h.Part.PoolDst, h.targets)
}

// SrcNegatives returns the nodes that replace the source of edge i in a ranking; nil if none are
// given. It checks only these.
func (h HeldEdges) SrcNegatives(i int) []NodeID { return h.row(h.Part.SrcNegatives, i, h.sources) }

// DstNegatives is SrcNegatives for the destination of edge i.
func (h HeldEdges) DstNegatives(i int) []NodeID { return h.row(h.Part.DstNegatives, i, h.targets) }

// Column returns the values of a column as little-endian bytes, after checking all its pages. It
// returns nil if the part has no such column.
func (h HeldEdges) Column(name string) []byte {
	i := slices.IndexFunc(h.Part.Columns, func(c Column) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return h.d.sections[h.Part.Columns[i].Values.Path].whole()
}

func (h HeldEdges) all(f *File, nodes int64) []NodeID {
	if f == nil {
		return nil
	}
	ids := cast[NodeID](h.d.sections[f.Path].whole())
	h.inRange(f, 0, ids, nodes)
	return ids
}

// some returns the relation's ids in a section that it shares, after checking them.
func (h HeldEdges) some(f *File, nodes int64) []NodeID {
	s, lo, hi := h.d.sections[f.Path], h.place.held[h.part], h.place.held[h.part]+h.Part.Edges
	s.touch(4*lo, 4*hi)
	ids := cast[NodeID](s.payload())[lo:hi:hi]
	h.inRange(f, lo, ids, nodes)
	return ids
}

func (h HeldEdges) row(f *File, i int, nodes int64) []NodeID {
	if f == nil {
		return nil
	}
	s, lo, hi := h.d.sections[f.Path], int64(i)*f.Cols, (int64(i)+1)*f.Cols
	s.touch(4*lo, 4*hi)
	ids := cast[NodeID](s.payload())[lo:hi:hi]
	h.inRange(f, lo, ids, nodes)
	return ids
}

// inRange panics if one of ids, which are entries of f from entry first on, is not a node.
func (h HeldEdges) inRange(f *File, first int64, ids []NodeID, nodes int64) {
	for i, v := range ids {
		if int64(v) >= nodes {
			err := fmt.Errorf("entry %d is node %d of %d; run gnnstore verify", first+int64(i), v, nodes)
			panic(&SectionError{h.d.path, f.Path, PageSize + 4*(first+int64(i)), err})
		}
	}
}
