package parquet

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	reference "github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/compress"
	"github.com/parquet-go/parquet-go/deprecated"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// record has a column for every encoding and form that can be read.
type record struct {
	Text    string    `parquet:"text,plain"`
	Dict    string    `parquet:"dict,dict"`
	Lengths string    `parquet:"lengths,delta"`
	Maybe   *string   `parquet:"maybe,optional,dict"`
	Int     int64     `parquet:"int,plain"`
	Delta   int64     `parquet:"delta,delta"`
	Small   int32     `parquet:"small,delta"`
	Uint    uint32    `parquet:"uint"`
	Dicted  *int32    `parquet:"dicted,optional,dict"`
	Float   float32   `parquet:"float,split"`
	Double  *float64  `parquet:"double,optional"`
	DictF   float64   `parquet:"dictf,dict"`
	Truth   bool      `parquet:"truth"`
	Maybe2  *bool     `parquet:"truth2,optional"`
	Vector  []float32 `parquet:"vector,list"`
	Longs   []int64   `parquet:"longs"`
	Halves  []*int32  `parquet:"halves,list,optional"`
	Nested  struct {
		A *int64 `parquet:"a,optional"`
	} `parquet:"nested"`
	Day deprecated.Int96 `parquet:"day"`
}

func records(t *rapid.T) []record {
	text := rapid.SampledFrom([]string{"", "a", "ab", "00260881", "é ü", strings.Repeat("w", 300)})
	long := rapid.Custom(func(t *rapid.T) int64 {
		return rapid.SampledFrom([]int64{0, 1, -1, 7, math.MaxInt64, math.MinInt64, 1 << 40}).Draw(t, "") + int64(rapid.IntRange(-3, 300).Draw(t, ""))
	})
	small := rapid.Int32()
	var out []record
	for range rapid.IntRange(0, 150).Draw(t, "rows") {
		r := record{
			Text: text.Draw(t, ""), Dict: text.Draw(t, ""), Lengths: text.Draw(t, ""), Int: long.Draw(t, ""), Delta: long.Draw(t, ""), Small: small.Draw(t, ""),
			Uint: rapid.Uint32().Draw(t, ""), Float: float32(small.Draw(t, "")), DictF: float64(small.Draw(t, "") % 5), Truth: rapid.Bool().Draw(t, ""),
		}
		if rapid.Bool().Draw(t, "") {
			r.Maybe, r.Dicted, r.Double, r.Maybe2, r.Nested.A = &r.Dict, &r.Small, &r.DictF, &r.Truth, &r.Delta
		}
		for i := range rapid.IntRange(0, 4).Draw(t, "") {
			r.Vector, r.Longs = append(r.Vector, float32(i)), append(r.Longs, r.Int/2)
			if i == 2 {
				r.Halves = append(r.Halves, nil)
			} else {
				r.Halves = append(r.Halves, &r.Small)
			}
		}
		out = append(out, r)
	}
	return out
}

// cells returns the cells of a record as they should be read here.
func (r *record) cells() map[string]any {
	list := func(n int, at func(i int) float64) any {
		l := []float64{}
		for i := range n {
			l = append(l, at(i))
		}
		return fmt.Sprint(l)
	}
	bit := map[bool]int64{true: 1}
	m := map[string]any{
		"text": r.Text, "dict": r.Dict, "lengths": r.Lengths, "maybe": nil, "int": r.Int, "delta": r.Delta, "small": int64(r.Small), "uint": int64(r.Uint),
		"dicted": nil, "float": float64(r.Float), "double": nil, "dictf": r.DictF, "truth": bit[r.Truth], "truth2": nil, "nested.a": nil,
		"vector": list(len(r.Vector), func(i int) float64 { return float64(r.Vector[i]) }),
		"longs":  list(len(r.Longs), func(i int) float64 { return float64(r.Longs[i]) }),
		"halves": list(len(r.Halves), func(i int) float64 {
			if r.Halves[i] == nil {
				return math.NaN()
			}
			return float64(*r.Halves[i])
		}),
	}
	if r.Maybe != nil {
		m["maybe"], m["dicted"], m["double"], m["truth2"], m["nested.a"] = *r.Maybe, int64(*r.Dicted), *r.Double, bit[*r.Maybe2], *r.Nested.A
	}
	if len(r.Halves) == 0 {
		m["halves"] = nil // optional: the writer says null
	}
	return m
}

func write[T any](t require.TestingT, rows []T, groups int, options ...reference.WriterOption) []byte {
	var b bytes.Buffer
	w := reference.NewGenericWriter[T](&b, options...)
	for i, r := range rows {
		_, err := w.Write([]T{r})
		require.NoError(t, err)
		if groups > 0 && i%groups == groups-1 {
			require.NoError(t, w.Flush())
		}
	}
	require.NoError(t, w.Close())
	return b.Bytes()
}

func open(b []byte) (*File, error) { return New("t.parquet", bytes.NewReader(b), int64(len(b))) }

// readable are the columns that have a kind.
func readable(f *File) (columns []int) {
	for i, c := range f.Columns() {
		if c.Kind != Null {
			columns = append(columns, i)
		}
	}
	return columns
}

// all reads all that can be read, and calls visit for each row.
func all(f *File, visit func(cells map[string]any)) error {
	columns := readable(f)
	rows := f.Rows(columns)
	values := make([]Value, len(columns))
	for n := int64(0); ; n++ {
		err := rows.Next(values)
		if err == io.EOF {
			if n != f.NumRows() {
				return fmt.Errorf("%d rows of %d", n, f.NumRows())
			}
			return nil
		}
		if err != nil {
			return err
		}
		if rows.Row() != n {
			return fmt.Errorf("row %d is called %d", n, rows.Row())
		}
		cells := map[string]any{}
		for i, v := range values {
			name := f.Columns()[columns[i]].Name
			switch v.Kind {
			case Null:
				cells[name] = nil
			case Int:
				cells[name] = v.Int
			case Float:
				cells[name] = v.Float
			case Text:
				cells[name] = string(v.Text)
			case List:
				cells[name] = fmt.Sprint(v.List)
			}
		}
		visit(cells)
	}
}

var codecs = []compress.Codec{&reference.Uncompressed, &reference.Snappy, &reference.Gzip, &reference.Zstd, &reference.Lz4Raw}

// TestAgainstWriter reads what the reference writes: every encoding, codec and version of pages,
// small pages and groups.
func TestAgainstWriter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := records(t)
		codec := rapid.SampledFrom(codecs).Draw(t, "codec")
		file := write(t, want, rapid.SampledFrom([]int{0, 7, 100}).Draw(t, "groups"), reference.Compression(codec),
			reference.DataPageVersion(rapid.IntRange(1, 2).Draw(t, "version")), reference.PageBufferSize(rapid.SampledFrom([]int{64, 1000, 1 << 20}).Draw(t, "page")))
		f, err := open(file)
		require.NoError(t, err)
		i := 0
		require.NoError(t, all(f, func(got map[string]any) {
			require.Equal(t, want[i].cells(), got, "row %d", i)
			i++
		}))
		require.Equal(t, len(want), i)
	})
}

func TestColumns(t *testing.T) {
	type odd struct {
		Map   map[string]int64 `parquet:"map"`
		Names []string         `parquet:"names,list"`
		Price int64            `parquet:"price,decimal(2:10)"`
		Key   [16]byte         `parquet:"key,uuid"`
		Parts []struct{ A, B int64 }
	}
	f, err := open(write(t, []odd{{Names: []string{"a"}}}, 0))
	require.NoError(t, err)
	why := map[string]string{}
	for _, c := range f.Columns() {
		require.Equal(t, Null, c.Kind)
		why[c.Name] = c.Why
	}
	require.Contains(t, why["map"], "a list of lists, or a map")
	delete(why, "map")
	require.Equal(t, map[string]string{
		"names": "a list of text", "price": "decimals; cast them to double", "key": "bytes of fixed length; cast them to text",
		"Parts": "one of several columns of that name, or a list of structs",
	}, why)
	f, err = open(write(t, []record{}, 0))
	require.NoError(t, err)
	require.Equal(t, Column{Name: "text", Kind: Text}, f.Columns()[0])
	require.Equal(t, Column{Name: "day", Why: "INT96; cast it to a 64-bit integer"}, f.Columns()[len(f.Columns())-1])
	require.Panics(t, func() { f.Rows([]int{len(f.Columns()) - 1}) })
}

// sample is a file with something of everything.
func sample(t require.TestingT, options ...reference.WriterOption) []byte {
	var rows []record
	for i := range 60 {
		r := record{Text: fmt.Sprint("n", i), Dict: fmt.Sprint(i % 3), Lengths: "x", Int: int64(i), Delta: int64(i) << 33, Vector: make([]float32, i%4)}
		if i%2 == 0 {
			r.Maybe, r.Nested.A = &r.Dict, &r.Int
		}
		rows = append(rows, r)
	}
	return write(t, rows, 25, options...)
}

// TestDamaged: a file that is cut short or changed is an error of one line, or reads: not all bytes
// have a checksum.
func TestDamaged(t *testing.T) {
	whole := sample(t, reference.Compression(&reference.Snappy))
	read := func(b []byte) error {
		f, err := open(b)
		if err == nil {
			err = all(f, func(map[string]any) {})
		}
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			require.True(t, strings.HasPrefix(err.Error(), "t.parquet: "), err)
		}
		return err
	}
	require.NoError(t, read(whole))
	for n := 0; n < len(whole); n += 31 {
		require.Error(t, read(whole[:n]))
	}
	bad := bytes.Clone(whole)
	for i := 0; i < len(bad); i += 23 {
		bad[i] ^= 0x55
		_ = read(bad)
		bad[i] ^= 0x55
	}
}

func TestRefuses(t *testing.T) {
	whole := sample(t)
	footer := func(n uint32) []byte {
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(b[len(b)-8:], n)
		return b
	}
	encrypted := bytes.Clone(whole)
	copy(encrypted[len(encrypted)-4:], "PARE")
	large := make([]byte, maxFooter+1000)
	copy(large, "PAR1")
	binary.LittleEndian.PutUint32(large[len(large)-8:], maxFooter+1)
	copy(large[len(large)-4:], "PAR1")
	for _, c := range []struct {
		b    []byte
		want string
	}{
		{nil, "t.parquet: not a Parquet file: it has 0 bytes"},
		{[]byte("id,name\n1,abcdefgh\n"), `t.parquet: not a Parquet file: it starts with "id,n"`},
		{whole[:len(whole)-1], "t.parquet: a Parquet file without its end: truncated or damaged; fetch it again"},
		{footer(math.MaxUint32), "t.parquet: a Parquet file without its end: truncated or damaged; fetch it again"},
		{footer(10), "t.parquet: its footer cannot be read"},
		{encrypted, "t.parquet: an encrypted Parquet file; write it without encryption"},
		{large, "t.parquet: a footer of 67108865 bytes, and 67108864 are the most; write larger row groups, or several files"},
	} {
		_, err := open(c.b)
		require.ErrorContains(t, err, c.want)
	}
	_, err := Open(filepath.Join(t.TempDir(), "none"))
	require.ErrorIs(t, err, os.ErrNotExist)
	_, err = Open(t.TempDir())
	require.ErrorContains(t, err, "it is a directory, not a file")
	path := filepath.Join(t.TempDir(), "t.parquet")
	require.NoError(t, os.WriteFile(path, whole, 0o644))
	f, err := Open(path)
	require.NoError(t, err)
	require.EqualValues(t, 60, f.NumRows())
	require.NoError(t, f.Close())
}

// thriftFile is a file whose footer is these bytes.
func thriftFile(footer string) []byte {
	return binary.LittleEndian.AppendUint32([]byte("PAR1"+footer), uint32(len(footer)))
}

// TestHostileFooters: what a footer declares is not allocated, nor followed down.
func TestHostileFooters(t *testing.T) {
	schemaOf := func(n int) string { // a list of n structs that end at once
		return "\x15\x02\x19" + "\xfc" + string(binary.AppendUvarint(nil, uint64(n)))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for _, footer := range []string{
		schemaOf(math.MaxInt32),
		schemaOf(1<<20) + strings.Repeat("\x00", 1<<20) + "\x00",
		strings.Repeat("\x1c", 1<<20),          // structs in structs
		"\x19" + strings.Repeat("\x19", 1<<20), // lists in lists
		"\x18\xff\xff\xff\xff\x07",
		"\x1b\xff\xff\xff\xff\x07\x11",
		"\x1f",
	} {
		_, err := open(append(thriftFile(footer), "PAR1"...))
		require.ErrorContains(t, err, "its footer cannot be read")
	}
	runtime.ReadMemStats(&after)
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(64<<20))
}

// TestRunsAreNotKept: a page of a few bytes may say that it has two billion values; they are given,
// not stored.
func TestRunsAreNotKept(t *testing.T) {
	r := runs{b: binary.AppendUvarint(nil, 1<<33), width: 0}
	for range 1000 {
		_, err := r.next()
		require.NoError(t, err)
	}
	r = runs{b: []byte{}, width: 3}
	_, err := r.next()
	require.ErrorIs(t, err, errEncoding)
	_, err = newDeltas([]byte{0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	require.NoError(t, err)
	_, err = newLengthTexts([]byte{0x80, 1, 4, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 0})
	require.ErrorIs(t, err, errEncoding)
	// lz4 that does not decode ends.
	_, err = inflate(nil, []byte{0xff, 0xff}, 100, 7)
	require.ErrorContains(t, err, "it does not inflate")
	_, err = inflate(nil, []byte{1}, 100, 4)
	require.ErrorContains(t, err, "packed by BROTLI, and snappy, gzip, zstd and LZ4_RAW can be read")
}

// TestBombs: what inflates to more or less than it says is refused.
func TestBombs(t *testing.T) {
	zeros := make([]byte, 1<<20)
	for _, codec := range codecs[1:] {
		packed, err := codec.Encode(nil, zeros)
		require.NoError(t, err)
		_, err = inflate(nil, packed, 1000, codec.CompressionCodec())
		require.Error(t, err, codec.String())
		packed, err = codec.Encode(nil, zeros[:1000])
		require.NoError(t, err)
		_, err = inflate(nil, packed, 1001, codec.CompressionCodec())
		require.Error(t, err, codec.String())
		b, err := inflate(nil, packed, 1000, codec.CompressionCodec())
		require.NoError(t, err, codec.String())
		require.Equal(t, zeros[:1000], b)
	}
}

// TestPrefixes: DELTA_BYTE_ARRAY, which a record cannot ask for.
func TestPrefixes(t *testing.T) {
	words := []string{"", "a", "ab", "abc", "abd", "b", "ba", strings.Repeat("x", 1000), strings.Repeat("x", 1001), ""}
	encoded, err := reference.DeltaByteArray.EncodeByteArray(nil, []byte(strings.Join(words, "")), offsets(words))
	require.NoError(t, err)
	p, err := newPrefixTexts(encoded)
	require.NoError(t, err)
	for _, want := range words {
		got, err := p.next()
		require.NoError(t, err)
		require.Equal(t, want, string(got))
	}
	_, err = p.next()
	require.ErrorIs(t, err, errEncoding)
}

func offsets(words []string) []uint32 {
	at := []uint32{0}
	for _, w := range words {
		at = append(at, at[len(at)-1]+uint32(len(w)))
	}
	return at
}

// FuzzParquet: whatever the bytes, the end is rows or an error of one line, and little memory.
func FuzzParquet(f *testing.F) {
	f.Add(sample(f))
	f.Add(sample(f, reference.Compression(&reference.Snappy), reference.DataPageVersion(1)))
	f.Add(sample(f, reference.Compression(&reference.Lz4Raw), reference.PageBufferSize(64)))
	f.Add(sample(f, reference.Compression(&reference.Zstd)))
	f.Add([]byte("PAR1\x15\x02\x19\xfc\xff\xff\xff\xff\x07\x09\x00\x00\x00PAR1"))
	f.Fuzz(func(t *testing.T, b []byte) {
		file, err := open(b)
		if err == nil {
			columns := readable(file)
			rows := file.Rows(columns)
			values := make([]Value, len(columns))
			for range 10_000 {
				if err = rows.Next(values); err != nil {
					break
				}
			}
		}
		if err != nil && strings.Contains(err.Error(), "\n") {
			t.Fatalf("not one line: %q", err)
		}
	})
}

// FuzzPage reads pages behind their checksums: of any type, encoding, codec and depth.
func FuzzPage(f *testing.F) {
	f.Add([]byte("\x03\x00\x00\x00abc\x01\x00\x00\x00d"), uint8(6), uint8(0), uint8(0), uint8(0), int32(2), uint16(14))
	f.Add([]byte("\x04\x00\x00\x00\x02\x00\x02\x01\x01\x00\x00\x00"), uint8(1), uint8(0), uint8(0), uint8(3), int32(2), uint16(12))
	f.Add([]byte{0x80, 1, 4, 3, 2, 4, 1, 0, 0, 0, 7, 7, 7, 7}, uint8(2), uint8(5), uint8(0), uint8(0), int32(3), uint16(14))
	f.Add([]byte("\x02\x04ab"), uint8(6), uint8(8), uint8(1), uint8(16), int32(3), uint16(2))
	f.Fuzz(func(t *testing.T, b []byte, kind, encoding, codec, form uint8, values int32, size uint16) {
		l := leaf{physical: format.Type(kind % 8), length: 2, half: kind%8 == 7, unsigned: form&8 != 0, maxDef: int(form & 3), maxRep: int(form >> 2 & 1)}
		if l.physical == format.Int96 {
			return // which no Column reads
		}
		if l.maxRep == 1 {
			l.maxDef, l.listDef = l.maxDef+1, 1
		}
		c := cursor{file: &File{size: int64(len(b))}, leaf: &l, in: bufio.NewReader(bytes.NewReader(b)), codec: format.CompressionCodec(codec % 8)}
		h := format.PageHeader{CompressedPageSize: int32(len(b)), UncompressedPageSize: int32(size)}
		switch form >> 4 & 3 {
		case 0:
			h.DataPageHeader.Valid = true
			h.DataPageHeader.V = format.DataPageHeader{NumValues: values, Encoding: format.Encoding(encoding % 10), DefinitionLevelEncoding: format.RLE, RepetitionLevelEncoding: format.RLE}
		case 1:
			h.Type, h.DictionaryPageHeader.Valid = format.DictionaryPage, true
			h.DictionaryPageHeader.V = format.DictionaryPageHeader{NumValues: values}
		default:
			h.Type, h.DataPageHeaderV2.Valid = format.DataPageV2, true
			h.DataPageHeaderV2.V = format.DataPageHeaderV2{NumValues: values, Encoding: format.Encoding(encoding % 10), DefinitionLevelsByteLength: int32(size % 7), RepetitionLevelsByteLength: int32(size % 3)}
		}
		err := c.read(&h)
		if err == nil && form>>4&3 == 1 { // a page that counts the dictionary up
			c.left, c.encoding, c.index = 4, format.RLEDictionary, runs{b: []byte{3, 0b11100100, 0}, width: 2}
			c.leaf.maxDef, c.leaf.maxRep = 0, 0
		}
		var v Value
		for range 5000 {
			if err != nil || c.left == 0 {
				break
			}
			if l.maxRep > 0 {
				err = c.nextList(&v)
			} else {
				err = c.next(&v)
			}
		}
	})
}

// FuzzDecoders: the decoders end.
func FuzzDecoders(f *testing.F) {
	f.Add([]byte{0x80, 1, 4, 3, 2, 4, 1, 0, 0, 0, 7, 7, 7, 7}, uint8(3))
	f.Add([]byte{8, 1, 5, 0xaa, 0xbb}, uint8(1))
	f.Fuzz(func(t *testing.T, b []byte, width uint8) {
		r := runs{b: b, width: uint(width % 33)}
		d, err := newDeltas(b)
		for range 5000 {
			_, _ = r.next()
			if err == nil {
				_, err = d.next()
			}
		}
		p, err := newPrefixTexts(b)
		for range 5000 {
			if err == nil {
				_, err = p.next()
			}
		}
	})
}

func BenchmarkRows(b *testing.B) {
	type edge struct {
		Src string `parquet:"src"`
		Dst string `parquet:"dst"`
	}
	const n = 500_000
	rows := make([]edge, n)
	for i := range rows {
		rows[i] = edge{fmt.Sprintf("user-%010d", i*7919%n), fmt.Sprintf("item-%010d", i*31%n)}
	}
	for _, kind := range []struct {
		name    string
		options []reference.WriterOption
	}{
		{"delta-plain", nil}, {"delta-snappy", []reference.WriterOption{reference.Compression(&reference.Snappy)}},
		{"plain-snappy", []reference.WriterOption{reference.Compression(&reference.Snappy), reference.DefaultEncoding(&reference.Plain)}},
		{"dict-zstd", []reference.WriterOption{reference.Compression(&reference.Zstd), reference.DefaultEncoding(&reference.RLEDictionary)}},
	} {
		file := write(b, rows, 0, kind.options...)
		b.Run("ids="+kind.name, func(b *testing.B) {
			b.SetBytes(int64(len(file)))
			for b.Loop() {
				f, err := open(file)
				require.NoError(b, err)
				r, cells, total := f.Rows([]int{0, 1}), make([]Value, 2), 0
				for {
					if err := r.Next(cells); err == io.EOF {
						break
					} else if err != nil {
						b.Fatal(err)
					}
					total += len(cells[0].Text) + len(cells[1].Text)
				}
				require.Equal(b, 30*n, total)
			}
			b.ReportMetric(float64(n)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrows/s")
		})
	}
}
