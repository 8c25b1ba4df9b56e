package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"
)

// ReadRelation reads the finished relation with this Key back, into memory that the caller owns.
// The list of node v is neighbors[offsets[v]:offsets[v+1]]. It is for a relation with sections of
// its own; ReadShared reads the others.
func (w *Writer) ReadRelation(key string) (offsets []uint64, neighbors []NodeID, err error) {
	r, err := w.OpenRelation(key)
	if err != nil {
		return nil, nil, err
	}
	offsets, neighbors = make([]uint64, r.relation.Offsets.Rows), make([]NodeID, r.relation.Edges)
	if err = r.Offsets(0, offsets); err == nil {
		err = r.Neighbors(0, neighbors)
	}
	return offsets, neighbors, errors.Join(err, r.Close())
}

// ReadShared reads the lists of all relations between two types that share sections back, into
// memory that the caller owns. List k is the in-neighbours of nodes[k] by some relation,
// neighbors[starts[k]:starts[k+1]]. All are nil if there are no such relations.
func (w *Writer) ReadShared(src, dst string) (nodes []NodeID, starts []uint64, neighbors []NodeID, err error) {
	w.mustBeOpen()
	i := slices.IndexFunc(w.manifest.Shared, func(s Shared) bool { return s.Src == src && s.Dst == dst })
	if i < 0 {
		return nil, nil, nil, nil
	}
	s := &w.manifest.Shared[i]
	nodes, starts = make([]NodeID, s.Nodes.Rows), make([]uint64, s.Starts.Rows)
	neighbors = make([]NodeID, s.Neighbors.Rows)
	err = errors.Join(w.readBack(&s.Nodes, 0, bytesOf(nodes)), w.readBack(&s.Starts, 0, bytesOf(starts)),
		w.readBack(&s.Neighbors, 0, bytesOf(neighbors)))
	return nodes, starts, neighbors, err
}

// readBack fills dst with the payload of a finished section from offset at on.
func (w *Writer) readBack(f *File, at int64, dst []byte) error {
	s, err := w.openBack(f)
	if err != nil {
		return err
	}
	return errors.Join(s.readAt(at, dst), s.Close())
}

// Shares reports whether the finished relation with this Key shares sections.
func (w *Writer) Shares(key string) bool {
	i := slices.IndexFunc(w.manifest.Relations, func(r Relation) bool { return r.Key() == key })
	return i >= 0 && w.manifest.Relations[i].Lists != nil
}

// RelationReader reads a finished relation back in parts, past the page cache if possible. It is
// for one goroutine.
type RelationReader struct {
	relation           Relation
	offsets, neighbors *sectionReader // offsets is nil where the relation shares sections

	// Of a relation that shares sections: its lists, and its first edge in neighbors.
	lists  []NodeID
	starts []uint64
	edge   int64
}

// OpenRelation opens the finished relation with this Key. The caller closes it before the dataset
// is sealed.
func (w *Writer) OpenRelation(key string) (*RelationReader, error) {
	w.mustBeOpen()
	i := slices.IndexFunc(w.manifest.Relations, func(r Relation) bool { return r.Key() == key })
	if i < 0 {
		panic("store: reading back of a relation that is not written: " + key)
	}
	r := &RelationReader{relation: w.manifest.Relations[i]}
	var err error
	if r.relation.Lists != nil {
		return r, r.openShared(w, w.manifest.sharedPlaces()[i])
	}
	if r.offsets, err = w.openBack(&r.relation.Offsets); err != nil {
		return nil, err
	}
	if r.neighbors, err = w.openBack(&r.relation.Neighbors); err != nil {
		return nil, errors.Join(err, r.offsets.Close())
	}
	return r, nil
}

// openShared reads the lists of a relation that shares sections: it is small.
func (r *RelationReader) openShared(w *Writer, place sharedPlace) (err error) {
	r.edge = place.edge
	r.lists, r.starts = make([]NodeID, *r.relation.Lists), make([]uint64, *r.relation.Lists+1)
	err = errors.Join(w.readBack(&place.of.Nodes, 4*place.list, bytesOf(r.lists)),
		w.readBack(&place.of.Starts, 8*place.list, bytesOf(r.starts)))
	if err != nil {
		return err
	}
	r.neighbors, err = w.openBack(&place.of.Neighbors)
	return err
}

// Edges returns the number of edges.
func (r *RelationReader) Edges() int64 { return r.relation.Edges }

// Offsets fills dst with offsets first, first+1, …. The list of node v extends from offset v to
// offset v+1, so there is one more offset than nodes.
func (r *RelationReader) Offsets(first int64, dst []uint64) error {
	if r.offsets != nil {
		return r.offsets.readAt(8*first, bytesOf(dst))
	}
	k, _ := slices.BinarySearch(r.lists, NodeID(first)) // the first list that begins there or later
	for i := range dst {
		for k < len(r.lists) && int64(r.lists[k]) < first+int64(i) {
			k++
		}
		dst[i] = r.starts[k] - uint64(r.edge)
	}
	return nil
}

// Neighbors fills dst with neighbours, from entry first on.
func (r *RelationReader) Neighbors(first int64, dst []NodeID) error {
	return r.neighbors.readAt(4*(r.edge+first), bytesOf(dst))
}

// Close closes the files.
func (r *RelationReader) Close() error {
	err := r.neighbors.Close()
	if r.offsets != nil {
		err = errors.Join(r.offsets.Close(), err)
	}
	return err
}

// TableReader reads a finished table of nodes back in parts, past the page cache if possible. It is
// for one goroutine.
type TableReader struct {
	table    Table
	w        *Writer
	rowBytes int64
	shard    *sectionReader // the open one, which was read last; nil if none is open
	at       int            // its index, or -1
	padded   []byte         // buffer for rows with their padding
}

// OpenTable opens a finished table of a node type. The caller closes it before the dataset is
// sealed.
func (w *Writer) OpenTable(name, nodeType string) *TableReader {
	w.mustBeOpen()
	i := slices.IndexFunc(w.manifest.Tables, func(t Table) bool { return t.Relation == "" && t.NodeType == nodeType && t.Name == name })
	if i < 0 {
		panic("store: reading back of a table that is not written: " + nodeType + "/" + name)
	}
	t := w.manifest.Tables[i]
	return &TableReader{table: t, w: w, rowBytes: t.Dim * int64(t.Elem.Size()), at: -1}
}

// ReadRows fills dst with rows first, first+1, …, without padding.
func (r *TableReader) ReadRows(first int64, dst []byte) error {
	perShard := max(1, r.table.Shards[0].Rows)
	if int64(len(dst))%r.rowBytes != 0 {
		panic("store: ReadRows of a part of a row")
	}
	for len(dst) > 0 {
		i := int(first / perShard)
		if i >= len(r.table.Shards) || first >= r.table.Shards[i].First+r.table.Shards[i].Rows {
			panic("store: ReadRows past the end of a table")
		}
		s := &r.table.Shards[i]
		if r.at != i {
			if err := r.Close(); err != nil {
				return err
			}
			var err error
			if r.shard, err = r.w.openBack(s); err != nil {
				return err
			}
			r.at = i
		}
		n := min(int64(len(dst))/r.rowBytes, s.First+s.Rows-first)
		if err := r.readShard((first-s.First)*s.Stride, s.Stride, dst[:n*r.rowBytes]); err != nil {
			return err
		}
		first, dst = first+n, dst[n*r.rowBytes:]
	}
	return nil
}

// readShard fills dst with rows of the open shard, from payload offset off on.
func (r *TableReader) readShard(off, stride int64, dst []byte) error {
	if stride == r.rowBytes {
		return r.shard.readAt(off, dst)
	}
	rows := max(1, writeBuffer/stride)
	if r.padded == nil {
		r.padded = make([]byte, rows*stride)
	}
	for len(dst) > 0 {
		n := min(rows, int64(len(dst))/r.rowBytes)
		if err := r.shard.readAt(off, r.padded[:n*stride]); err != nil {
			return err
		}
		for i := range n {
			copy(dst[i*r.rowBytes:(i+1)*r.rowBytes], r.padded[i*stride:])
		}
		off, dst = off+n*stride, dst[n*r.rowBytes:]
	}
	return nil
}

// Close closes the open file, if there is one.
func (r *TableReader) Close() error {
	if r.shard == nil {
		return nil
	}
	err := r.shard.Close()
	r.shard, r.at = nil, -1
	return err
}

// sectionReader reads the payload of a finished section, and checks each page against its checksum.
type sectionReader struct {
	spec   *File
	file   vfs.File
	direct directMode
	buf    []byte // the whole pages read last; they begin at payload offset at
	at     int64
	sums   []uint32 // of each page; nil before the first read
}

func (w *Writer) openBack(spec *File) (*sectionReader, error) {
	f, err := w.fs.Open(w.fs.PathJoin(w.partial, spec.Path))
	if err != nil {
		return nil, fmt.Errorf("read %s back: %w", spec.Path, err)
	}
	s := &sectionReader{spec: spec, file: f, buf: pageBuffer()}
	s.direct.set(f, true)
	return s, nil
}

// readAt fills dst with payload from offset off on. It reads whole pages, up to the size of the
// buffer. What is left in the buffer serves the next call.
func (s *sectionReader) readAt(off int64, dst []byte) error {
	for len(dst) > 0 {
		if off >= s.at && off < s.at+int64(len(s.buf)) {
			n := copy(dst, s.buf[off-s.at:])
			off, dst = off+int64(n), dst[n:]
			continue
		}
		s.at = off / PageSize * PageSize
		want := min(int64(cap(s.buf)), s.spec.sumsAt()-PageSize-s.at)
		if want <= 0 {
			return s.fail(io.ErrUnexpectedEOF)
		}
		s.buf = s.buf[:want]
		err := s.read(PageSize+s.at, s.buf)
		if err == nil {
			err = s.check()
		}
		if err != nil {
			s.buf = s.buf[:0]
			return s.fail(err)
		}
	}
	return nil
}

// read fills pages with the file's bytes from offset at on.
func (s *sectionReader) read(at int64, pages []byte) error {
	n, err := s.file.ReadAt(pages, at)
	if errors.Is(err, syscall.EINVAL) {
		s.direct.refuse(s.file)
		n, err = s.file.ReadAt(pages, at)
	}
	switch {
	case n == len(pages):
		return nil
	case err == nil || errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return err
}

// check compares the pages of buf with their checksums. The first call reads the checksums.
func (s *sectionReader) check() error {
	if s.sums == nil {
		header, sums := alignedPages(PageSize), alignedPages(roundUp(s.spec.pages()*sumBytes, PageSize))
		if err := errors.Join(s.read(0, header), s.read(s.spec.sumsAt(), sums)); err != nil {
			return err
		}
		if _, err := checkHeader(header, s.spec, Version); err != nil {
			return err
		}
		if got, want := xxh3.Hash(sums), binary.LittleEndian.Uint64(header[sumsField:]); got != want {
			return fmt.Errorf("its page checksums hash to %016x, and its header says %016x; remove the unfinished dataset and ingest again", got, want)
		}
		s.sums = cast[uint32](sums)
	}
	for at := int64(0); at < int64(len(s.buf)); at += PageSize {
		page := (s.at + at) / PageSize
		if got, want := pageSum(s.buf[at:]), s.sums[page]; got != want {
			return fmt.Errorf("the checksum of the page at %#x is %08x, and %08x was written; remove the unfinished dataset and ingest again",
				PageSize+page*PageSize, got, want)
		}
	}
	return nil
}

func (s *sectionReader) fail(err error) error {
	return fmt.Errorf("read %s back: %w", s.spec.Path, err)
}

// Close closes the file.
func (s *sectionReader) Close() error {
	if err := s.file.Close(); err != nil {
		return s.fail(err)
	}
	return nil
}

// ColumnReader reads a column of the edges of a finished relation back in parts. It is for one
// goroutine.
type ColumnReader struct {
	column EdgeColumn
	values *sectionReader
}

// OpenColumn opens a column of the finished relation with this Key. The caller closes it before the
// dataset is sealed.
func (w *Writer) OpenColumn(key, name string) (*ColumnReader, error) {
	w.mustBeOpen()
	i := slices.IndexFunc(w.manifest.Relations, func(r Relation) bool { return r.Key() == key })
	if i < 0 {
		panic("store: reading back of a relation that is not written: " + key)
	}
	k, ok := w.manifest.Relations[i].column(name)
	if !ok {
		panic("store: reading back of a column that is not written: " + key + " " + name)
	}
	c := &ColumnReader{column: EdgeColumn{Column: &w.manifest.Relations[i].Columns[k]}}
	var err error
	c.values, err = w.openBack(&c.column.Column.Values)
	return c, err
}

// Numbers fills dst with the values of edges first, first+1, …, in the order of the lists. buf is
// memory for the call, with 8 bytes for each.
func (c *ColumnReader) Numbers(first int64, dst []float64, buf []byte) error {
	size := c.column.Column.Elem.Size()
	buf = buf[:len(dst)*size]
	if err := c.values.readAt(first*int64(size), buf); err != nil {
		return err
	}
	for i := range dst {
		dst[i] = c.column.Number(buf, i)
	}
	return nil
}

// Close closes the file.
func (c *ColumnReader) Close() error { return c.values.Close() }
