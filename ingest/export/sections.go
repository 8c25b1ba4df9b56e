package export

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

const (
	edgeChunk  = 64 << 10 // edges
	blockBytes = 16 << 20 // of feature rows, gathered at a time
)

// edges are some edges of a relation: rows of their ends, the nodes themselves, the bytes of each
// column, and their numbers as read where a table goes by these.
type edges struct {
	src, dst []uint32
	from, to []store.NodeID
	columns  [][]byte
	ids      []uint64
}

func (c *edges) reset() {
	c.src, c.dst, c.from, c.to, c.ids = c.src[:0], c.dst[:0], c.from[:0], c.to[:0], c.ids[:0]
	for k := range c.columns {
		c.columns[k] = c.columns[k][:0]
	}
}

// eachEdge streams the edges of relation i whose both ends are written, in the order of the
// dataset. What emit gets is lent.
func (e *exporter) eachEdge(i int, emit func(c *edges) error) error {
	g := e.ds.Graph(i)
	src, dst := e.typeOf(g.Relation.Src), e.typeOf(g.Relation.Dst)
	columns := make([]*store.EdgeColumn, len(g.Relation.Columns))
	for j, spec := range g.Relation.Columns {
		columns[j] = g.Column(spec.Name)
	}
	c := &edges{columns: make([][]byte, len(columns))}
	id, done := g.Column("id"), int64(0)
	values := make([][]byte, len(columns)) // of the edges of a node
	var ids []byte
	for v, list := range g.Lists() {
		if dst.row[v] == none {
			continue
		}
		for j, column := range columns {
			values[j] = column.Bytes(v)
		}
		if id != nil {
			ids = id.Bytes(v)
		}
		for k, u := range list {
			if int64(u) >= int64(len(src.row)) {
				panic(g.CorruptNeighbor(v, u))
			}
			if src.row[u] == none {
				continue
			}
			c.src, c.dst = append(c.src, src.row[u]), append(c.dst, dst.row[v])
			c.from, c.to = append(c.from, u), append(c.to, v)
			for j, column := range columns {
				size := column.Column.Elem.Size()
				c.columns[j] = append(c.columns[j], values[j][k*size:(k+1)*size]...)
			}
			if id != nil {
				c.ids = append(c.ids, numberOf(ids, k, id.Column.Elem))
			}
			if len(c.src) == edgeChunk {
				done += edgeChunk
				if err := e.progress("write edges", done, e.report.Relations[i].Edges, "edges"); err != nil {
					return err
				}
				if err := emit(c); err != nil {
					return err
				}
				c.reset()
			}
		}
	}
	if err := e.ctx.Err(); err != nil || len(c.src) == 0 {
		return err
	}
	return emit(c)
}

// numberOf is the k-th of unsigned numbers.
func numberOf(b []byte, k int, elem store.Elem) uint64 {
	if elem == store.U32 {
		return uint64(binary.LittleEndian.Uint32(b[4*k:]))
	}
	return binary.LittleEndian.Uint64(b[8*k:])
}

// count counts the edges that will be written.
func (e *exporter) count() error {
	for i, r := range e.m.Relations {
		report := RelationReport{Name: r.Key(), Of: r.Edges, Edges: r.Edges}
		if src, dst := e.typeOf(r.Src), e.typeOf(r.Dst); src.count < src.typ.Count || dst.count < dst.typ.Count {
			report.Edges = 0
			g := e.ds.Graph(i)
			for v, list := range g.Lists() {
				if v%edgeChunk == 0 {
					if err := e.progress("count edges", int64(v), dst.typ.Count, "nodes"); err != nil {
						return err
					}
				}
				if dst.row[v] == none {
					continue
				}
				for _, u := range list {
					if int64(u) >= int64(len(src.row)) {
						panic(g.CorruptNeighbor(v, u))
					}
					if src.row[u] != none {
						report.Edges++
					}
				}
			}
		}
		e.report.Relations = append(e.report.Relations, report)
	}
	return nil
}

// rows are some rows of a table, copied out of its maps.
type rows struct {
	features *store.Features
	bytes    []byte
	order    []uint32
}

// gather copies n rows, in the order in which they lie in their files, and lends them.
func (r *rows) gather(n int, at func(i int) uint64) []byte {
	f, size := r.features, r.features.RowBytes()
	if len(r.bytes) < n*size {
		r.bytes = make([]byte, n*size)
	}
	r.order = r.order[:0]
	for i := range n {
		if at(i) >= uint64(f.Rows()) {
			panic(&store.SectionError{Dataset: filepath.Dir(f.Shards()[0].Path), Section: f.Table.Name, Offset: -1,
				Err: fmt.Errorf("row %d of %d is asked for; run gnnstore verify", at(i), f.Rows())})
		}
		r.order = append(r.order, uint32(i))
	}
	slices.SortFunc(r.order, func(x, y uint32) int { return cmp.Compare(at(int(x)), at(int(y))) })
	for _, i := range r.order {
		copy(r.bytes[int(i)*size:int(i+1)*size], f.RowAt(at(int(i))))
	}
	return r.bytes[:n*size]
}

// block returns the number of rows of a table that are gathered at a time.
func block(f *store.Features) int { return max(blockBytes/f.RowBytes(), 1) }
