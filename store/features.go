package store

// Features is one feature table: rows of Dim elements, in shards. There is a row for each node,
// edge id or event.
type Features struct {
	Table     *Table
	shards    []Shard
	data      [][]byte // payload of each shard
	shardRows uint64
	rows      int
	rowBytes  int
}

// Shard locates the rows of one shard, for readers that do their own reading.
type Shard struct {
	SectionFile
	FirstRow   int64
	Rows       int64
	DataOffset int64 // byte in the file where the first row begins
	Stride     int64 // bytes from one row to the next
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

// Rows returns the number of rows.
func (f *Features) Rows() int { return f.rows }

// Dim returns the number of columns.
func (f *Features) Dim() int { return int(f.Table.Dim) }

// Elem returns the element type, F16 or F32.
func (f *Features) Elem() Elem { return f.Table.Elem }

// RowBytes returns the size of a row in bytes, without padding.
func (f *Features) RowBytes() int { return f.rowBytes }

// Row returns v's row as little-endian bytes, RowBytes long. The slice is borrowed: read-only, and
// valid until the Dataset is closed. Safe for concurrent use. A row past the end panics, since ids
// are checked where they enter. A page that fails its checksum panics with an error that [Guard]
// returns.
func (f *Features) Row(v NodeID) []byte { return f.RowAt(uint64(v)) }

// RowAt is Row for tables of edges: a row number there, from the relation's column "id", may exceed
// 32 bits.
func (f *Features) RowAt(i uint64) []byte {
	shard := i / f.shardRows
	at := int64(i%f.shardRows) * f.shards[shard].Stride
	f.shards[shard].s.touch(at, at+int64(f.rowBytes))
	return f.data[shard][at : at+int64(f.rowBytes) : at+int64(f.rowBytes)]
}

// Shards returns where the rows lie on disk.
func (f *Features) Shards() []Shard { return f.shards }
