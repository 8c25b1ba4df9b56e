package store

import "fmt"

// FeatureWriter writes the rows of a table, each once, in any order. Adjacent rows are written
// together. A shard whose rows came in order is closed after its last row.
type FeatureWriter struct {
	table    Table
	w        *Writer
	shards   []*sectionWriter // nil before their first row
	finished []bool
	shard    int64 // rows in each shard but the last
	rows     int64
	rowBytes int
	stride   int64
	padded   []byte // buffer for whole rows with their padding
}

// AddTable begins a feature table of rows × dim elements, F16 or F32.
func (w *Writer) AddTable(name, nodeType string, e Elem, rows int64, dim int) (*FeatureWriter, error) {
	if err := checkNames("table", nodeType, name); err != nil {
		return nil, err
	}
	return w.addTable(Table{Name: name, NodeType: nodeType, Elem: e, Dim: int64(dim)}, rows)
}

// AddEdgeTable begins a feature table of rows × dim elements, F16 or F32, for the edges of the
// relation with this Key. Row i belongs to the edges whose column "id" is i.
func (w *Writer) AddEdgeTable(name, relation string, e Elem, rows int64, dim int) (*FeatureWriter, error) {
	err := checkNames("table", name)
	if err == nil {
		err = checkNames("relation", splitKey(relation)...)
	}
	if err != nil {
		return nil, err
	}
	return w.addTable(Table{Name: name, Relation: relation, Elem: e, Dim: int64(dim)}, rows)
}

// AddStreamTable begins a feature table of rows × dim elements, F16 or F32, for the events of a
// stream. Row i belongs to event i.
func (w *Writer) AddStreamTable(name, stream string, e Elem, rows int64, dim int) (*FeatureWriter, error) {
	if err := checkNames("table", stream, name); err != nil {
		return nil, err
	}
	return w.addTable(Table{Name: name, Stream: stream, Elem: e, Dim: int64(dim)}, rows)
}

func (w *Writer) addTable(t Table, rows int64) (*FeatureWriter, error) {
	f, err := w.newTable(t, rows)
	if err == nil {
		_, err = f.open(0)
	}
	return f, err
}

// newTable returns a writer that has no file yet.
func (w *Writer) newTable(t Table, rows int64) (*FeatureWriter, error) {
	if t.Elem != F16 && t.Elem != F32 {
		panic("store: features are F16 or F32")
	}
	if t.Dim < 1 {
		return nil, fmt.Errorf("table %s: %d columns; a table has at least one", t.Name, t.Dim)
	}
	rowBytes := t.Dim * int64(t.Elem.Size())
	stride := RowStride(rowBytes)
	f := &FeatureWriter{
		table: t, w: w, rows: rows, shard: max(1, w.shardBytes/stride), rowBytes: int(rowBytes), stride: stride,
		padded: make([]byte, max(1, (64<<10)/stride)*stride),
	}
	shards := max(1, (rows+f.shard-1)/f.shard)
	f.shards, f.finished = make([]*sectionWriter, shards), make([]bool, shards)
	f.table.Shards = make([]File, shards)
	return f, nil
}

// Done returns the number of rows in closed shards, counted from the first row up to the first
// shard that is not closed. They survive a crash once [Writer.PartsWith] has listed them.
func (f *FeatureWriter) Done() int64 { return min(int64(f.closed())*f.shard, f.rows) }

// closed returns the number of closed shards before the first that is not closed.
func (f *FeatureWriter) closed() int {
	n := 0
	for n < len(f.finished) && f.finished[n] {
		n++
	}
	return n
}

// open returns the file of shard i, and makes it if needed.
func (f *FeatureWriter) open(i int64) (*sectionWriter, error) {
	if f.finished[i] {
		panic("store: a row is written twice: those before it in its shard all were")
	}
	if f.shards[i] == nil {
		s, err := f.w.section(f.table.shardPath(int(i)), f.table.Elem, f.table.Dim, f.stride, i*f.shard)
		if err != nil {
			return nil, err
		}
		f.shards[i] = s
	}
	return f.shards[i], nil
}

// finish closes shard i.
func (f *FeatureWriter) finish(i int64) (err error) {
	s, err := f.open(i)
	if err != nil {
		return err
	}
	f.finished[i] = true
	f.table.Shards[i], err = s.close(min(f.shard, f.rows-i*f.shard))
	return err
}

// Put writes row v: dim elements as little-endian bytes.
func (f *FeatureWriter) Put(v NodeID, row []byte) error {
	if len(row) != f.rowBytes {
		panic("store: Put of a row that does not belong to the table")
	}
	return f.PutRowsAt(int64(v), row)
}

// PutRows writes rows v, v+1, …: dim elements each, as little-endian bytes, without padding.
func (f *FeatureWriter) PutRows(v NodeID, rows []byte) error { return f.PutRowsAt(int64(v), rows) }

// PutRowsAt is PutRows for tables of edges, which may have more rows than NodeID can number.
func (f *FeatureWriter) PutRowsAt(first int64, rows []byte) error {
	count := int64(len(rows) / f.rowBytes)
	if len(rows)%f.rowBytes != 0 || first < 0 || first > f.rows || count > f.rows-first {
		panic("store: Put of rows that do not belong to the table")
	}
	for count > 0 {
		i, row := first/f.shard, first%f.shard
		n := min(count, min(f.shard, f.rows-i*f.shard)-row)
		s, err := f.open(i)
		if err != nil {
			return err
		}
		if err := f.put(s, row*f.stride, rows[:n*int64(f.rowBytes)]); err != nil {
			return err
		}
		if first, count, rows = first+n, count-n, rows[n*int64(f.rowBytes):]; first == min((i+1)*f.shard, f.rows) &&
			s.inOrder() {
			if err := f.finish(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// put writes rows with their padding at offset off of a shard.
func (f *FeatureWriter) put(s *sectionWriter, off int64, rows []byte) error {
	if int64(f.rowBytes) == f.stride {
		return s.put(off, rows)
	}
	for len(rows) > 0 {
		n := 0
		for at := int64(0); at < int64(len(f.padded)) && n < len(rows); at += f.stride {
			copy(f.padded[at:], rows[n:n+f.rowBytes])
			n += f.rowBytes
		}
		size := int64(n/f.rowBytes) * f.stride
		if err := s.put(off, f.padded[:size]); err != nil {
			return err
		}
		off, rows = off+size, rows[n:]
	}
	return nil
}

// Close ends the table. Rows that were never Put are zeros.
func (f *FeatureWriter) Close() error {
	for i, done := range f.finished {
		if done {
			continue
		}
		if err := f.finish(int64(i)); err != nil {
			return err
		}
	}
	f.w.manifest.Tables = append(f.w.manifest.Tables, f.table)
	return nil
}
