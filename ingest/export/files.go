package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

const fileBuffer = 256 << 10

// file is one that is being written.
type file struct {
	f vfs.File
	w *bufio.Writer
}

func (f *file) write(b []byte) error { _, err := f.w.Write(b); return err }

// writeFile makes a file of the export, lets fill write it, and makes it durable.
func (e *exporter) writeFile(name string, fill func(f *file) error) (err error) {
	path := e.FS.PathJoin(e.dir, filepath.FromSlash(name))
	if dir := e.FS.PathDir(path); !slices.Contains(e.dirs, dir) {
		if err := e.FS.MkdirAll(dir, 0o777); err != nil {
			return err
		}
		e.dirs = append(e.dirs, dir)
	}
	f, err := e.FS.Create(path, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, f.Close()) }() // also when a map turns out damaged
	out := &file{f, bufio.NewWriterSize(f, fileBuffer)}
	if err := fill(out); err != nil {
		return err
	}
	if err := cmp.Or(out.w.Flush(), f.Sync()); err != nil {
		return err
	}
	info, err := f.Stat()
	if err == nil {
		e.report.Files++
		e.report.Bytes += info.Size()
	}
	return err
}

// descr returns NumPy's name for an element type.
func descr(elem store.Elem) string {
	return map[store.Elem]string{
		store.U8: "|u1", store.F16: "<f2", store.F32: "<f4", store.I32: "<i4", store.U32: "<u4", store.I64: "<i8", store.U64: "<u8",
	}[elem]
}

// writeRows writes a table of nodes as an array.
func (e *exporter) writeRows(name string, table int) error {
	f := e.ds.Features(table)
	n := e.typeOf(f.Table.NodeType)
	return e.writeFile(name, func(out *file) error {
		if err := out.write(npy.AppendHeader(nil, descr(f.Elem()), n.count, int64(f.Dim()))); err != nil {
			return err
		}
		r := rows{features: f}
		return n.each(block(f), func(first int64, nodes []store.NodeID) error {
			if err := e.progress("write features", first, n.count, "rows"); err != nil {
				return err
			}
			return out.write(r.gather(len(nodes), func(i int) uint64 { return uint64(nodes[i]) }))
		})
	})
}

// writeIDs writes the original ids of a node type where they are not its rows, and returns the file
// that has them, or "rows".
func (e *exporter) writeIDs(name string, n *numbering) (string, error) {
	if n.dense {
		return "rows", nil
	}
	return name, e.writeFile(name, func(out *file) error {
		if err := out.write(npy.AppendHeader(nil, "<i8", n.count)); err != nil {
			return err
		}
		var b []byte
		return n.each(edgeChunk, func(_ int64, nodes []store.NodeID) error {
			b = b[:0]
			for _, v := range nodes {
				b = binary.LittleEndian.AppendUint64(b, uint64(n.ids.Original(v)))
			}
			return cmp.Or(out.write(b), e.ctx.Err())
		})
	})
}

// writeNames writes the texts that nodes are called by, with their rows, in the order of the
// dataset.
func (e *exporter) writeNames(name string, n *numbering) error {
	return e.writeFile(name, func(out *file) error {
		w := csv.NewWriter(out.w)
		if err := w.Write([]string{"row", "id"}); err != nil {
			return err
		}
		err := n.ids.EachName(e.ctx, func(v store.NodeID, text []byte) error {
			if n.row[v] == none {
				return nil
			}
			return w.Write([]string{strconv.FormatUint(uint64(n.row[v]), 10), string(text)})
		})
		w.Flush()
		return cmp.Or(err, w.Error())
	})
}

// appendLabel appends the label of a node: a class as int64, or int8s, -1 being missing; or a
// number as float32, NaN being missing.
func appendLabel(b []byte, l *store.Labels, v store.NodeID) []byte {
	if l.Label.Numbers {
		return binary.LittleEndian.AppendUint32(b, math.Float32bits(l.Number(v)))
	}
	if !l.Label.Multi {
		return binary.LittleEndian.AppendUint64(b, uint64(int64(l.Class(v))))
	}
	for _, x := range l.Bits(v) {
		if x == store.MissingBit {
			x = 0xff
		}
		b = append(b, x)
	}
	return b
}

func labelHeader(l *store.Labels, rows int64) []byte {
	if l.Label.Multi {
		return npy.AppendHeader(nil, "|i1", rows, int64(l.Classes()))
	}
	if l.Label.Numbers {
		return npy.AppendHeader(nil, "<f4", rows)
	}
	return npy.AppendHeader(nil, "<i8", rows)
}

// writeLabels writes the label of every node.
func (e *exporter) writeLabels(name string, label int) error {
	l := e.ds.Labels(label)
	n := e.typeOf(l.Label.NodeType)
	return e.writeFile(name, func(out *file) error {
		if err := out.write(labelHeader(l, n.count)); err != nil {
			return err
		}
		var b []byte
		return n.each(1024, func(_ int64, nodes []store.NodeID) error {
			b = b[:0]
			for _, v := range nodes {
				b = appendLabel(b, l, v)
			}
			return cmp.Or(out.write(b), e.ctx.Err())
		})
	})
}

// written are the nodes of a part that are written, and their number.
func (e *exporter) written(n *numbering, part []store.NodeID) (count int64) {
	for _, v := range part {
		if int64(v) >= int64(len(n.row)) {
			panic(&store.SectionError{Dataset: e.ds.Path(), Section: "a split of " + n.typ.Name, Offset: -1,
				Err: errNoNode})
		}
		if n.row[v] != none {
			count++
		}
	}
	return count
}

// writePart writes the rows of a part of a split, and, where l is not nil, their labels beside
// them.
func (e *exporter) writePart(name string, n *numbering, part []store.NodeID, l *store.Labels) error {
	header := npy.AppendHeader(nil, "<i8", e.written(n, part))
	if l != nil {
		header = labelHeader(l, e.written(n, part))
	}
	return e.records(name, header, len(part), func(b []byte, k int) []byte {
		switch v := part[k]; {
		case n.row[v] == none:
			return b
		case l != nil:
			return appendLabel(b, l, v)
		default:
			return appendRow(b, n, v)
		}
	})
}

// writeSplit writes the rows of the parts of a split, and returns the files' names.
func (e *exporter) writeSplit(i int) (names [3]string, err error) {
	s, sets := e.m.Splits[i], e.ds.Split(i)
	for part, nodes := range [][]uint32{sets.Train, sets.Valid, sets.Test} {
		names[part] = fmt.Sprintf("split/%s-%v.npy", s.Name, ingest.Part(part))
		if err := e.writePart(names[part], e.typeOf(s.NodeType), nodes, nil); err != nil {
			return names, err
		}
	}
	return names, nil
}

// records writes a file: header, then n records. fill appends record k to b, or nothing.
func (e *exporter) records(name string, header []byte, n int, fill func(b []byte, k int) []byte) error {
	return e.writeFile(name, func(out *file) error {
		if err := out.write(header); err != nil {
			return err
		}
		var b []byte
		for k := range n {
			if b = fill(b, k); len(b) >= 1<<20 || k == n-1 {
				if err := cmp.Or(out.write(b), e.ctx.Err()); err != nil {
					return err
				}
				b = b[:0]
			}
		}
		return nil
	})
}

// arrays are the arrays of a relation's edges, written beside each other.
type arrays struct {
	edges   int64
	src     *bufio.Writer // the first half of edge_index
	dst     *bufio.Writer
	columns []*file // by Relation.Columns; nil for one that is not written
	tables  []edgeTable
	scratch []byte
}

type edgeTable struct {
	rows
	out *file
}

// writeEdges writes the edges of relation i into a folder: edge_index.npy (2, E), a file for each
// column but "id", and one for each table, a row for each edge. It fills in what is where.
func (e *exporter) writeEdges(i int, dir string, m *manifestRelation) error {
	r := &e.m.Relations[i]
	a := &arrays{edges: m.Edges, columns: make([]*file, len(r.Columns))}
	m.File = dir + "/edge_index.npy"
	// Each file is open until all are written: fill nests one in the next.
	fill := func() error { return e.eachEdge(i, func(c *edges) error { return a.write(c) }) }
	for k, spec := range r.Columns {
		if spec.Name == "id" {
			continue
		}
		name := dir + "/" + spec.Name + ".npy"
		if spec.Name == "edge_index" {
			name = dir + "/edge_index-column.npy"
		}
		m.Columns[spec.Name] = name
		fill = e.nest(fill, name, npy.AppendHeader(nil, descr(spec.Elem), a.edges), func(f *file) { a.columns[k] = f })
	}
	for k := range e.m.Tables {
		t := &e.m.Tables[k]
		if t.Relation != r.Key() {
			continue
		}
		name := dir + "/" + t.Name + ".npy"
		if m.Columns[t.Name] != "" || t.Name == "edge_index" {
			name = dir + "/" + t.Name + "-table.npy"
		}
		m.Tables[t.Name] = name
		f := e.ds.Features(k)
		at := len(a.tables)
		a.tables = append(a.tables, edgeTable{rows: rows{features: f}})
		fill = e.nest(fill, name, npy.AppendHeader(nil, descr(f.Elem()), a.edges, t.Dim),
			func(f *file) { a.tables[at].out = f })
	}
	return e.writeFile(m.File, func(f *file) error {
		header := npy.AppendHeader(nil, "<i8", 2, a.edges)
		if err := f.write(header); err != nil {
			return err
		}
		half := int64(len(header)) + 8*a.edges
		a.src, a.dst = f.w, bufio.NewWriterSize(io.NewOffsetWriter(f.f, half), fileBuffer)
		return cmp.Or(fill(), a.dst.Flush())
	})
}

// nest is fill inside the writing of a file.
func (e *exporter) nest(fill func() error, name string, header []byte, set func(f *file)) func() error {
	return func() error {
		return e.writeFile(name, func(f *file) error {
			set(f)
			if err := f.write(header); err != nil {
				return err
			}
			return fill()
		})
	}
}

// write appends some edges to all arrays.
func (a *arrays) write(c *edges) error {
	for _, half := range []struct {
		to   *bufio.Writer
		rows []uint32
	}{{a.src, c.src}, {a.dst, c.dst}} {
		a.scratch = a.scratch[:0]
		for _, row := range half.rows {
			a.scratch = binary.LittleEndian.AppendUint64(a.scratch, uint64(row))
		}
		if _, err := half.to.Write(a.scratch); err != nil {
			return err
		}
	}
	for k, f := range a.columns {
		if f == nil {
			continue
		}
		if err := f.write(c.columns[k]); err != nil {
			return err
		}
	}
	for k := range a.tables {
		t := &a.tables[k]
		for ids := range slices.Chunk(c.ids, block(t.features)) {
			if err := t.out.write(t.gather(len(ids), func(i int) uint64 { return ids[i] })); err != nil {
				return err
			}
		}
	}
	return nil
}
