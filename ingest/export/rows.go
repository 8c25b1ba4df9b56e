package export

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/parquet-go/parquet-go"

	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/store"
)

// CSV is a format of [WriteRows], beside NPY and Parquet.
const CSV Format = "csv"

// Kind is the meaning of the numbers in a row.
type Kind int

const (
	Class   Kind = iota // one column: the number of a class
	Flags               // a column a class: 1 where the node has it
	Numbers             // a number a class, or a number that Names has a name for
	Vector              // a list of numbers
)

// RowOptions configure [WriteRows].
type RowOptions struct {
	Format Format // default by the ending of the file's name: .npy, .csv, else Parquet
	Kind   Kind
	Column string   // the name of the column, of Class, Flags and Vector
	Cols   int      // numbers a row
	Rows   int64    // that there will be
	Names  []string // of the classes; empty: their numbers
	Fewer  bool     // there may be fewer rows than Rows, which npy cannot have
	Force  bool     // replace files that there are
	// Original returns the id of a node, if the ids that WriteRows gets lack some; nil: they have
	// all.
	Original func(v store.NodeID) int64
	FS       vfs.FS // default the disk
}

// RowsReport lists the files that were written.
type RowsReport struct {
	Format Format
	Files  []string
	Bytes  int64
}

// FormatOf returns the format that the ending of a file names. A file without ending is Parquet,
// and so is one with an ending that is not known.
func FormatOf(out string) (f Format, known bool) {
	switch strings.ToLower(filepath.Ext(out)) {
	case ".npy":
		return NPY, true
	case ".csv":
		return CSV, true
	case ".parquet", "":
		return Parquet, true
	}
	return Parquet, false
}

// formatOf returns a format that was chosen, or the one of the file.
func formatOf(chosen Format, out string) Format {
	f, _ := FormatOf(out)
	return cmp.Or(chosen, f)
}

// WriteRows writes numbers of nodes to the file out, each row with the id that users know its node
// by: whole, or on an error not at all. fill calls add with the rows, in the order that the file
// has. It is called once there is room, and while nobody else writes the same file.
//
//	parquet  column id, an integer or a text; Class: its name, or number; Flags: a list of those; Numbers: a float column for each class, by
//	         its name, or class_0 and so on; Vector: a list
//	csv      the same in text; a list of classes is joined by semicolons, and a vector has a column a number
//	npy      out.npy: int64, uint8 or float32, classes as numbers; and out.ids.npy, or out.ids.txt with a line for each text
//
// It takes up to 8 MiB, and more of a large parquet file, whose row groups have the root of its
// size times a KiB: see groupBytes.
func WriteRows(out string, ids store.IDs, o RowOptions, fill func(add func(nodes []store.NodeID, rows []float32) error) error) (*RowsReport, error) {
	w := newRowWriter(out, o, key{name: "id", file: "ids", ids: ids, original: o.Original})
	return w.write(out, func() error { return fill(w.add) })
}

func newRowWriter(out string, o RowOptions, keys ...key) *rowWriter {
	o.Format, o.FS = formatOf(o.Format, out), cmp.Or(o.FS, vfs.Default)
	return &rowWriter{RowOptions: o, keys: keys, cells: make([]cell, len(keys))}
}

// write writes what fill adds.
func (w *rowWriter) write(out string, fill func() error) (_ *RowsReport, err error) {
	defer func() {
		for _, f := range w.files {
			err = cmp.Or(err, f.drop(w.FS))
		}
		if w.lock != nil {
			err = cmp.Or(err, w.lock.Release())
		}
	}()
	if err := w.open(filepath.Clean(out)); err != nil {
		return nil, err
	}
	if err := w.begin(); err != nil {
		return nil, err
	}
	if err := fill(); err != nil {
		return nil, err
	}
	return w.finish()
}

// rowWriter is one WriteRows or WritePairs under way.
type rowWriter struct {
	RowOptions
	keys    []key
	files   []*rowFile // of npy one for each key; the last one, of the rows, gets its name last
	lock    *store.Lock
	written int64

	cells   []cell // of a row, one for each key
	sheet   *sheet
	leaves  []int // of the columns of sheet; the keys come first
	csv     *csv.Writer
	record  []string
	scratch []byte
}

// key is a column that identifies a row: a node by its id, a relation, or a time.
type key struct {
	name     string
	file     string                     // what its file is called after, in npy
	ids      store.IDs                  // of nodes
	original func(v store.NodeID) int64 // instead of ids.Original, if not nil
	names    []string                   // of relations, instead
	times    []float64                  // or of each row
}

// texts reports whether the cells are texts; else they are integers.
func (k key) texts() bool { return k.names != nil || k.ids.HasNames() }

// cell is a key's value for a row: a text where the key has texts, else a number; a time is its
// bits.
type cell struct {
	number int64
	text   string
}

// of returns the cell of a node, of a relation by its place among the names, or of a time by its
// row.
func (k key) of(v uint32) (c cell, err error) {
	switch {
	case k.times != nil:
		c.number = int64(math.Float64bits(k.times[v]))
	case k.names != nil:
		c.text = k.names[v]
	case k.ids.HasNames():
		c.text, err = k.ids.Name(v)
	default:
		if c.number = 0; k.original != nil {
			c.number = k.original(v)
		} else {
			c.number = k.ids.Original(v)
		}
	}
	return c, err
}

// rowFile is a file under its temporary name.
type rowFile struct {
	file
	path string
	open bool
	left bool // there is one of the temporary name
}

// open refuses what cannot be written, and creates the files.
func (w *rowWriter) open(out string) error {
	paths := []string{out}
	switch {
	case w.Format == Parquet, w.Format == CSV:
	case w.Format == NPY && w.Fewer:
		return fmt.Errorf("%s: an array says first how many rows it has, and there may be fewer than %d; take {format} csv or parquet", out, w.Rows)
	case w.Format == NPY:
		base := strings.TrimSuffix(out, ".npy")
		paths = nil
		for _, k := range w.keys {
			end := ".npy"
			if k.texts() {
				end = ".txt"
			}
			paths = append(paths, base+"."+k.file+end)
		}
		paths = append(paths, base+".npy")
	default:
		return fmt.Errorf("{format} %q: choose parquet, npy or csv", w.Format)
	}
	if w.Format == Parquet && w.Kind == Numbers && w.Cols > maxColumns {
		return fmt.Errorf("%s: %d classes are more columns than a table in parquet has here (%d); take {format} npy", out, w.Cols, maxColumns)
	}
	for _, path := range paths {
		if err := MayWrite(w.FS, path, w.Force); err != nil {
			return err
		}
	}
	if err := w.room(out); err != nil {
		return err
	}
	var err error
	if w.lock, err = Claim(w.FS, paths[len(paths)-1]); err != nil {
		return err
	}
	for _, path := range paths { // who held it may have finished meanwhile
		if err := MayWrite(w.FS, path, w.Force); err != nil {
			return err
		}
	}
	for _, path := range paths {
		f, err := w.FS.Create(path+".partial", vfs.WriteCategoryUnspecified)
		if err != nil {
			return err
		}
		w.files = append(w.files, &rowFile{file{f, bufio.NewWriterSize(f, fileBuffer)}, path, true, true})
	}
	return nil
}

// MayWrite returns an error if a file of this name cannot be written, for callers that work long
// before they call WriteRows.
func MayWrite(on vfs.FS, path string, force bool) error {
	parent := filepath.Dir(path)
	if _, err := on.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such directory; make it first", parent)
	}
	switch info, err := on.Stat(path); {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s: it is a directory; choose the name of a file", path)
	case err == nil && !info.Mode().IsRegular():
		return fmt.Errorf("%s: it is no ordinary file, and would be replaced by one; choose another name", path)
	case err == nil && !force:
		return fmt.Errorf("%s: it exists already; choose another name, or replace it by {force}", path)
	case err != nil && !errors.Is(err, fs.ErrNotExist):
		return err
	}
	return nil
}

// Claim keeps other processes that call it from writing a file, until the lock is released or this
// process ends. The holder may write over what an ended process left under a temporary name.
func Claim(on vfs.FS, path string) (*store.Lock, error) {
	l, err := store.TakeLock(on, path+".lock")
	if errors.Is(err, store.ErrLocked) {
		return nil, fmt.Errorf("%s: somebody else is writing it; wait for the end of that, or choose another name", path)
	}
	return l, err
}

// maxColumns bounds the columns of a table in parquet, since each has buffers of its own.
const maxColumns = 4096

// Bytes returns how much WriteRows may write for the file out, or WritePairs, whose rows have two
// ids.
func (o RowOptions) Bytes(out string, ids ...store.IDs) int64 {
	row := int64(4 * o.Cols)
	isText := formatOf(o.Format, out) == CSV
	if isText {
		row = int64(12 * o.Cols)
	}
	for _, ids := range ids {
		switch {
		case ids.HasNames():
			row += 32
		case isText:
			row += 12
		default:
			row += 8
		}
	}
	return 1<<20 + o.Rows*row
}

// room compares the size of the output with the free space. A file system that does not tell is
// believed to have it.
func (w *rowWriter) room(out string) error {
	var ids []store.IDs
	for _, k := range w.keys {
		ids = append(ids, k.ids)
	}
	need := w.Bytes(out, ids...)
	free, err := freeFor(w.FS, out)
	if err == nil && uint64(need) > free {
		err = fmt.Errorf("%s: it may take %d bytes and %d are free; make room, or write it elsewhere", out, need, free)
	}
	return err
}

// begin writes what stands before the rows.
func (w *rowWriter) begin() error {
	main := w.files[len(w.files)-1]
	switch w.Format {
	case NPY:
		shape, kind := []int64{w.Rows, int64(w.Cols)}, "<f4"
		switch w.Kind {
		case Class:
			shape, kind = shape[:1], "<i8"
		case Flags:
			kind = "|u1"
		}
		for i, k := range w.keys {
			if k.texts() {
				continue
			}
			kind := "<i8"
			if k.times != nil {
				kind = "<f8"
			}
			if err := w.files[i].write(npy.AppendHeader(nil, kind, w.Rows)); err != nil {
				return err
			}
		}
		return main.write(npy.AppendHeader(nil, kind, shape...))
	case CSV:
		w.csv = csv.NewWriter(main.w)
		return w.csv.Write(w.header())
	}
	w.beginSheet(&main.file)
	return nil
}

// groupBytes returns the size of row groups in a file of so many bytes. A group is in memory until
// it is whole, and its place in the file, some 3 KB, until the file is: so both are small. The size
// depends on nothing else, so that the same rows make the same file.
func groupBytes(file int64) int {
	return int(min(max(math.Sqrt(float64(file)*1024), leastGroup), blockBytes))
}

const leastGroup = 1 << 20

// header returns the header of a csv.
func (w *rowWriter) header() (header []string) {
	for _, k := range w.keys {
		header = append(header, k.name)
	}
	switch w.Kind {
	case Class, Flags:
		return append(header, w.Column)
	}
	for c := range w.Cols {
		name := w.Column + "_" + strconv.Itoa(c)
		if w.Kind == Numbers {
			name = w.columnOf(c)
		}
		header = append(header, name)
	}
	return header
}

// columnOf is the name of a class's column. Numbers have as many digits each, so that names sort as
// they do.
func (w *rowWriter) columnOf(class int) string {
	if class < len(w.Names) && w.Names[class] != "" {
		return w.Names[class]
	}
	return fmt.Sprintf("class_%0*d", len(strconv.Itoa(w.Cols-1)), class)
}

// class is the text of a class.
func (w *rowWriter) class(class int) string {
	if class < len(w.Names) {
		return w.Names[class]
	}
	return strconv.Itoa(class)
}

// beginSheet makes the columns of a table.
func (w *rowWriter) beginSheet(f *file) {
	s := newSheet()
	var names []string
	for _, k := range w.keys {
		id := parquet.Node(int64Node)
		switch {
		case k.times != nil:
			id = parquet.Leaf(parquet.DoubleType)
		case k.texts():
			id = parquet.String()
		}
		names = append(names, s.column(k.name, "", id, 16))
	}
	class := parquet.Node(parquet.Int(32))
	if len(w.Names) > 0 {
		class = parquet.String()
	}
	switch w.Kind {
	case Class:
		names = append(names, s.column(w.Column, "column", class, 8))
	case Flags:
		names = append(names, s.column(w.Column, "column", parquet.List(class), 16))
	case Vector:
		names = append(names, s.column(w.Column, "column", floatsNode, 4*w.Cols))
	case Numbers:
		for c := range w.Cols {
			names = append(names, s.column(w.columnOf(c), "class-"+strconv.Itoa(c), parquet.Leaf(parquet.FloatType), 4))
		}
	}
	s.group = groupBytes(w.Rows * int64(s.size))
	s.begin(f, "rows")
	for _, name := range names {
		w.leaves = append(w.leaves, s.index[name])
	}
	w.sheet = s
}

// add writes some rows of nodes.
func (w *rowWriter) add(nodes []store.NodeID, rows []float32) error {
	for i, v := range nodes {
		if err := w.addRow(rows[i*w.Cols:(i+1)*w.Cols], v); err != nil {
			return err
		}
	}
	return nil
}

// addRow writes a row, which is of these nodes or relations, one for each key.
func (w *rowWriter) addRow(row []float32, of ...uint32) (err error) {
	for i, k := range w.keys {
		if w.cells[i], err = k.of(of[i]); err != nil {
			return err
		}
	}
	w.written++
	switch w.Format {
	case NPY:
		return w.addArray(row)
	case CSV:
		return w.addLine(row)
	}
	return w.addSheet(row)
}

func (w *rowWriter) addArray(row []float32) error {
	for i, k := range w.keys {
		w.scratch = w.scratch[:0]
		if text := w.cells[i].text; !k.texts() {
			w.scratch = binary.LittleEndian.AppendUint64(w.scratch, uint64(w.cells[i].number))
		} else if strings.ContainsAny(text, "\r\n") {
			return fmt.Errorf("%s: the id %q has a line end in it; take {format} parquet or csv", w.files[i].path, text)
		} else {
			w.scratch = append(append(w.scratch, text...), '\n')
		}
		if err := w.files[i].write(w.scratch); err != nil {
			return err
		}
	}
	w.scratch = w.scratch[:0]
	for _, x := range row {
		switch w.Kind {
		case Class:
			w.scratch = binary.LittleEndian.AppendUint64(w.scratch, uint64(x))
		case Flags:
			w.scratch = append(w.scratch, byte(x))
		default:
			w.scratch = binary.LittleEndian.AppendUint32(w.scratch, math.Float32bits(x))
		}
	}
	return w.files[len(w.files)-1].write(w.scratch)
}

func (w *rowWriter) addLine(row []float32) error {
	w.record = w.record[:0]
	for i, k := range w.keys {
		text := w.cells[i].text
		switch {
		case k.times != nil:
			text = timeText(math.Float64frombits(uint64(w.cells[i].number)))
		case !k.texts():
			text = strconv.FormatInt(w.cells[i].number, 10)
		}
		w.record = append(w.record, text)
	}
	switch w.Kind {
	case Class:
		w.record = append(w.record, w.class(int(row[0])))
	case Flags:
		var list []string
		for c, x := range row {
			if x != 0 {
				list = append(list, w.class(c))
			}
		}
		w.record = append(w.record, strings.Join(list, ";"))
	default:
		for _, x := range row {
			w.record = append(w.record, strconv.FormatFloat(float64(x), 'g', -1, 32))
		}
	}
	return w.csv.Write(w.record)
}

// timeText is a time without an exponent, as people write seconds, unless it is tiny or huge.
func timeText(t float64) string {
	if size := math.Abs(t); size != 0 && (size < 1e-6 || size >= 1e21) {
		return strconv.FormatFloat(t, 'g', -1, 64)
	}
	return strconv.FormatFloat(t, 'f', -1, 64)
}

func (w *rowWriter) addSheet(row []float32) error {
	s, leaves := w.sheet, w.leaves
	for i, k := range w.keys {
		v := parquet.Int64Value(w.cells[i].number)
		switch {
		case k.times != nil:
			v = parquet.DoubleValue(math.Float64frombits(uint64(w.cells[i].number)))
		case k.texts():
			v = parquet.ByteArrayValue([]byte(w.cells[i].text))
		}
		s.set(leaves[0], v)
		leaves = leaves[1:]
	}
	class := func(c int) parquet.Value {
		if len(w.Names) > 0 {
			return parquet.ByteArrayValue([]byte(w.class(c)))
		}
		return parquet.Int32Value(int32(c))
	}
	switch w.Kind {
	case Class:
		s.set(leaves[0], class(int(row[0])))
	case Flags:
		s.list(leaves[0])
		for c, x := range row {
			if x != 0 {
				s.add(leaves[0], class(c))
			}
		}
		if len(s.cells[leaves[0]]) == 0 { // an empty list is a cell too
			s.cells[leaves[0]] = append(s.cells[leaves[0]], parquet.Value{}.Level(0, 0, leaves[0]))
		}
	case Vector:
		s.list(leaves[0])
		for _, x := range row {
			s.add(leaves[0], parquet.FloatValue(x))
		}
	case Numbers:
		for c, x := range row {
			s.set(leaves[c], parquet.FloatValue(x))
		}
	}
	return s.end()
}

// finish makes the files durable, and gives them their names.
func (w *rowWriter) finish() (*RowsReport, error) {
	if w.written != w.Rows && !w.Fewer {
		return nil, fmt.Errorf("%s: %d rows of %d", w.files[0].path, w.written, w.Rows)
	}
	if w.sheet != nil {
		if err := w.sheet.w.Close(); err != nil {
			return nil, err
		}
	}
	if w.csv != nil {
		w.csv.Flush()
		if err := w.csv.Error(); err != nil {
			return nil, err
		}
	}
	r := &RowsReport{Format: w.Format}
	for _, f := range w.files {
		if err := cmp.Or(f.w.Flush(), f.f.Sync()); err != nil {
			return nil, err
		}
		info, err := f.f.Stat()
		if err != nil {
			return nil, err
		}
		r.Bytes += info.Size()
		r.Files = append([]string{f.path}, r.Files...)
		f.open = false
		if err := f.f.Close(); err != nil {
			return nil, err
		}
	}
	last := w.files[len(w.files)-1]
	if len(w.files) > 1 && w.Force { // so that nobody takes the ids of one file for the other's
		if err := w.FS.Remove(last.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	for i, f := range w.files {
		if err := w.FS.Rename(f.path+".partial", f.path); err != nil {
			for _, done := range w.files[:i] {
				err = errors.Join(err, w.FS.Remove(done.path))
			}
			return nil, err
		}
		f.left = false
	}
	return r, syncDir(w.FS, filepath.Dir(last.path))
}

// drop closes and removes what is left of a file.
func (f *rowFile) drop(on vfs.FS) (err error) {
	if f.open {
		err = f.f.Close()
		f.open = false
	}
	if f.left {
		err = errors.Join(err, on.Remove(f.path+".partial"))
		f.left = false
	}
	return err
}
