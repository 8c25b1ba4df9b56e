package store

// Features is one feature table: a row of Dim elements a node, an edge as read or an event, in
// shards.
type Features struct {
	Table     *Table
	shards    []Shard
	data      [][]byte // payload of each shard
	shardRows uint64
	rows      int
	rowBytes  int
}

// Shard says where the rows of one shard lie, for readers that do their own reading.
type Shard struct {
	SectionFile
	FirstRow   int64
	Rows       int64
	DataOffset int64 // of the first row
	Stride     int64 // from one row to the next
}

// Features returns table i of the manifest.
func (d *Dataset) Features(i int) *Features {
	t := &d.manifest.Tables[i]
	f := &Features{Table: t, rowBytes: int(t.Dim) * t.Elem.Size()}
	for j := range t.Shards {
		spec := &t.Shards[j]
		s := d.sections[spec.Path]
		f.shards = append(f.shards, Shard{
			SectionFile: s.open(d.path),
			FirstRow:    spec.First, Rows: spec.Rows, DataOffset: PageSize, Stride: spec.Stride,
		})
		f.data = append(f.data, s.payload())
		f.rows += int(spec.Rows)
	}
	if len(f.shards) > 0 {
		f.shardRows = uint64(max(1, f.shards[0].Rows))
	}
	return f
}

// Rows is the number of rows: one a node, one an edge as read, or one an event.
func (f *Features) Rows() int { return f.rows }

// Dim is the number of columns.
func (f *Features) Dim() int { return int(f.Table.Dim) }

// Elem is F16 or F32.
func (f *Features) Elem() Elem { return f.Table.Elem }

// RowBytes is the size of a row without padding.
func (f *Features) RowBytes() int { return f.rowBytes }

// Row returns v's row as little-endian bytes, RowBytes long. The slice is borrowed: read-only, and
// valid until the Dataset is closed. Safe for concurrent use. A row past the end panics: ids are
// checked where they enter. A page that is not as it was sealed panics with a *SectionError, which
// [Guard] returns.
func (f *Features) Row(v NodeID) []byte { return f.RowAt(uint64(v)) }

// RowAt is Row for tables of edges, whose rows are numbered by the column "id" of their relation.
func (f *Features) RowAt(i uint64) []byte {
	shard := i / f.shardRows
	at := int64(i%f.shardRows) * f.shards[shard].Stride
	f.shards[shard].s.touch(at, at+int64(f.rowBytes))
	return f.data[shard][at : at+int64(f.rowBytes) : at+int64(f.rowBytes)]
}

// Shards lists where the rows lie on disk.
func (f *Features) Shards() []Shard { return f.shards }
