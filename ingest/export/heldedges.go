package export

import (
	"encoding/binary"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// heldEdges are the held-out edges of one part that are written: those whose both ends are.
type heldEdges struct {
	store.HeldEdges
	src, dst         *numbering
	from, to         []store.NodeID // of all edges of the part
	poolFrom, poolTo []store.NodeID
	written          int64 // edges
	whole            bool  // all of them are written: only then are their negatives and the pool
	srcEach, dstEach int64 // negatives of each edge
	pairs            int64 // of the pool
	dir              string
}

// held finds the held-out edges of relation i.
func (e *exporter) held(i int, p store.HeldPart) (h heldEdges, ok bool) {
	if h.HeldEdges, ok = e.ds.HeldEdges(i, p); !ok {
		return h, false
	}
	r := &e.m.Relations[i]
	h.src, h.dst = e.typeOf(r.Src), e.typeOf(r.Dst)
	h.dir = r.Key() + "/" + p.String() + "/"
	h.from, h.to = h.Ends()
	for k := range h.from {
		if h.has(k) {
			h.written++
		}
	}
	h.whole = h.src.count == h.src.typ.Count && h.dst.count == h.dst.typ.Count
	if !h.whole {
		return h, true
	}
	if f := h.Part.SrcNegatives; f != nil {
		h.srcEach = f.Cols
	}
	if f := h.Part.DstNegatives; f != nil {
		h.dstEach = f.Cols
	}
	h.poolFrom, h.poolTo = h.Pool()
	h.pairs = int64(len(h.poolFrom))
	return h, true
}

// has reports whether edge k is written.
func (h *heldEdges) has(k int) bool {
	return h.src.row[h.from[k]] != none && h.dst.row[h.to[k]] != none
}

// array writes an array of int64s, which fill appends to what it is given, a piece at a time: n
// pieces.
func (e *exporter) array(name string, n int, fill func(b []byte, k int) []byte, shape ...int64) error {
	return e.records(name, npy.AppendHeader(nil, "<i8", shape...), n, fill)
}

func appendRow(b []byte, n *numbering, v store.NodeID) []byte {
	return binary.LittleEndian.AppendUint64(b, uint64(n.row[v]))
}

// pair appends the rows of two nodes.
func (h *heldEdges) pair(b []byte, u, v store.NodeID) []byte {
	return appendRow(appendRow(b, h.src, u), h.dst, v)
}

func (h *heldEdges) edge(b []byte, k int) []byte {
	if !h.has(k) {
		return b
	}
	return h.pair(b, h.from[k], h.to[k])
}

// manifestEdgeSplit is where the held-out edges of a relation are.
type manifestEdgeSplit struct {
	Name  string       `json:"name"`
	Valid manifestHeld `json:"valid"`
	Test  manifestHeld `json:"test"`
}

type manifestHeld struct {
	Edges        int64             `json:"edges"`
	File         string            `json:"file"` // (edges, 2)
	SrcNegatives string            `json:"src_negatives,omitempty"`
	DstNegatives string            `json:"dst_negatives,omitempty"`
	Pool         string            `json:"pool,omitempty"`
	Columns      map[string]string `json:"columns,omitempty"`
}

// writeHeld writes the held-out edges of relation i as arrays, with all that goes with them.
func (e *exporter) writeHeld(i int, m *manifestRelation) error {
	s := e.m.Relations[i].EdgeSplit
	if s == nil {
		return nil
	}
	m.EdgeSplit = &manifestEdgeSplit{Name: s.Name}
	for p, to := range []*manifestHeld{&m.EdgeSplit.Valid, &m.EdgeSplit.Test} {
		h, _ := e.held(i, store.HeldPart(p))
		to.Edges, to.File = h.written, h.dir+"edges.npy"
		if err := e.array(to.File, h.Len(), h.edge, h.written, 2); err != nil {
			return err
		}
		for _, list := range []struct {
			to   *string
			name string
			each int64
			of   func(k int) []store.NodeID
			n    *numbering
		}{{&to.SrcNegatives, "src-negatives.npy", h.srcEach, h.SrcNegatives, h.src}, {&to.DstNegatives, "dst-negatives.npy", h.dstEach, h.DstNegatives, h.dst}} {
			if list.each == 0 {
				continue
			}
			*list.to = h.dir + list.name
			if err := e.array(*list.to, h.Len(), func(b []byte, k int) []byte {
				for _, v := range list.of(k) {
					b = appendRow(b, list.n, v)
				}
				return b
			}, h.written, list.each); err != nil {
				return err
			}
		}
		if h.poolFrom != nil {
			to.Pool = h.dir + "pool.npy"
			if err := e.array(to.Pool, len(h.poolFrom), func(b []byte, k int) []byte { return h.pair(b, h.poolFrom[k], h.poolTo[k]) }, h.pairs, 2); err != nil {
				return err
			}
		}
		for _, c := range h.Part.Columns {
			if c.Name == store.EdgeID {
				continue
			}
			if to.Columns == nil {
				to.Columns = map[string]string{}
			}
			to.Columns[c.Name] = h.dir + "columns/" + c.Name + ".npy"
			if err := e.writeHeldColumn(to.Columns[c.Name], &h, c); err != nil {
				return err
			}
		}
	}
	e.skipNegatives(i)
	return nil
}

func (e *exporter) writeHeldColumn(name string, h *heldEdges, c store.Column) error {
	values, size := h.Column(c.Name), c.Elem.Size()
	return e.records(name, npy.AppendHeader(nil, descr(c.Elem), h.written), h.Len(), func(b []byte, k int) []byte {
		if h.has(k) {
			b = append(b, values[k*size:(k+1)*size]...)
		}
		return b
	})
}

// skipNegatives reports negatives and pools that a sample lacks.
func (e *exporter) skipNegatives(i int) {
	for p := range store.HeldTest + 1 {
		if h, _ := e.held(i, p); !h.whole && (h.Part.SrcNegatives != nil || h.Part.DstNegatives != nil || h.Part.PoolSrc != nil) {
			e.skip("%s, %v: what the held-out edges are ranked among is of all nodes, and not of a sample", e.m.Relations[i].Key(), p)
		}
	}
}

// boltLinks are the sets of GraphBolt's task of link prediction, by part, that relation i has. The
// pairs of a set are edges, then what they are ranked among.
func (e *exporter) boltLinks(i int, typ string) (sets [3]boltSet, err error) {
	r := &e.m.Relations[i]
	seeds := func(path string) []boltData { return []boltData{{"seeds", "numpy", path}} }
	train := r.Key() + "/train/edges.npy"
	sets[0] = boltSet{typ, seeds(train)}
	if err := e.writeFile(train, func(out *file) error {
		if err := out.write(npy.AppendHeader(nil, "<i8", e.report.Relations[i].Edges, 2)); err != nil {
			return err
		}
		var b []byte
		return e.eachEdge(i, func(c *edges) error {
			b = b[:0]
			for k, u := range c.src {
				b = binary.LittleEndian.AppendUint64(b, uint64(u))
				b = binary.LittleEndian.AppendUint64(b, uint64(c.dst[k]))
			}
			return out.write(b)
		})
	}); err != nil {
		return sets, err
	}
	for p := range store.HeldTest + 1 {
		h, _ := e.held(i, p)
		if h.srcEach > 0 {
			e.skip("%s, %v: GraphBolt has no place for nodes in the place of sources; {format} npy writes them", r.Key(), p)
		}
		if h.dstEach > 0 && h.poolFrom != nil {
			e.skip("%s, %v: GraphBolt has pairs for all edges or for each; {format} npy writes both", r.Key(), p)
			h.pairs, h.poolFrom = 0, nil
		}
		for _, c := range h.Part.Columns {
			if c.Name != store.EdgeID {
				e.skip("%s, %v: GraphBolt has no place for column %s of held-out edges; {format} npy writes it", r.Key(), p, c.Name)
			}
		}
		n, each := h.Len(), int(h.dstEach)
		others := len(h.poolFrom)
		if each > 0 {
			others = n // pieces
		}
		rows := h.written + h.pairs + h.written*h.dstEach
		set := boltSet{typ, seeds(h.dir + "edges.npy")}
		if err := e.array(h.dir+"edges.npy", n+others, func(b []byte, k int) []byte {
			switch {
			case k < n:
				return h.edge(b, k)
			case each == 0:
				return h.pair(b, h.poolFrom[k-n], h.poolTo[k-n])
			}
			for _, v := range h.DstNegatives(k - n) {
				b = h.pair(b, h.from[k-n], v)
			}
			return b
		}, rows, 2); err != nil {
			return sets, err
		}
		if rows > h.written {
			path := h.dir + "labels.npy"
			set.Data = append(set.Data, boltData{"labels", "numpy", path})
			if err := e.array(path, int(rows), func(b []byte, k int) []byte {
				if int64(k) < h.written {
					return binary.LittleEndian.AppendUint64(b, 1)
				}
				return binary.LittleEndian.AppendUint64(b, 0)
			}, rows); err != nil {
				return sets, err
			}
		}
		if each > 0 {
			path := h.dir + "indexes.npy"
			set.Data = append(set.Data, boltData{"indexes", "numpy", path})
			if err := e.array(path, int(rows), func(b []byte, k int) []byte {
				if k >= n {
					k = (k - n) / each
				}
				return binary.LittleEndian.AppendUint64(b, uint64(k))
			}, rows); err != nil {
				return sets, err
			}
		}
		sets[1+p] = set
	}
	e.skipNegatives(i)
	return sets, nil
}

// heldBytes are the bytes of an edge split in the dataset.
func heldBytes(s *store.EdgeSplit) (n int64) {
	for _, part := range []*store.HeldOut{&s.Valid, &s.Test} {
		n += part.Src.Bytes + part.Dst.Bytes
		for _, f := range []*store.File{part.SrcNegatives, part.DstNegatives, part.PoolSrc, part.PoolDst} {
			if f != nil {
				n += f.Bytes
			}
		}
		for _, c := range part.Columns {
			n += c.Values.Bytes
		}
	}
	return n
}
