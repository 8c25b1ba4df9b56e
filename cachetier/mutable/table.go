package mutable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"syscall"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
)

// Options says what a table is, and how it is kept.
type Options struct {
	Place

	// Rows is how many there are, at most 2³²-1, and RowBytes what each has.
	Rows, RowBytes int
	// Initial fills dst with what a row is that was never written. Several goroutines call it at
	// once. Default nil: zeros.
	Initial func(dst []byte, row uint32)

	// Expected is how many rows are written between two checkpoints, as far as one knows. Where
	// they are a good part of all, the space of a file is allocated at once, and not write by
	// write. Default 0: write by write.
	Expected int
	// Kept is how many checkpoints there are at a time, and Touched how many rows the run writes at
	// most: for the space on disk that must be free. Defaults 1, and all rows.
	Kept, Touched int

	// Lag is how many steps after it was written a row is seen: see cachetier.Stack.Write. Default
	// 1.
	Lag int
	// Cache is the memory, and how files are read. Its Mmap is Buffered here, and it measures
	// nothing: Costs are those of files that are there.
	Cache cachetier.Options
}

// Place is where a table's files are, and what they are of.
type Place struct {
	// FS is where the files are. Default vfs.Default.
	FS vfs.FS
	// Dir is the table's own directory, within that of the run. It is made where it does not exist.
	Dir string
	// Run says what the rows belong to: run, dataset, table, and whatever else they are of no use
	// without. Files that say anything else are refused.
	Run string
}

// Validate reports every option that cannot be followed. Those of Cache are looked at by Open.
func (o Options) Validate() error {
	var errs []error
	if o.Rows < 1 || int64(o.Rows) > math.MaxUint32 {
		errs = append(errs, fmt.Errorf("a table of %d rows: use 1 to %d", o.Rows, uint32(math.MaxUint32)))
	}
	if o.RowBytes < 1 || o.RowBytes > maxRowBytes {
		errs = append(errs, fmt.Errorf("rows of %d bytes: use 1 to %d", o.RowBytes, maxRowBytes))
	}
	if o.Kept < 0 || o.Kept > MaxKept {
		errs = append(errs, fmt.Errorf("%d checkpoints at a time: use 1 to %d", o.Kept, MaxKept))
	}
	if o.Touched < 0 || o.Touched > o.Rows {
		errs = append(errs, fmt.Errorf("%d rows are written of %d", o.Touched, o.Rows))
	}
	return errors.Join(errs...)
}

// maxRowBytes bounds a row: 16 MiB are far more than any record has, and few enough for several in
// memory.
const maxRowBytes = 16 << 20

// FixedBytes is what a table of so many rows takes in memory beside its cache: which file has each
// row, and where in the spill, the lists of generations, and memory to write from.
func FixedBytes(rows int) int64 { return 5*int64(rows) + 3*int64(rows)/8 + putBytes + copyBytes }

// DiskBytes is what the table takes on disk at most.
func (o Options) DiskBytes() int64 {
	touched := int64(cmp.Or(o.Touched, o.Rows))
	generations := int64(cmp.Or(o.Kept, 1) + 2)
	stride := strideOf(o.RowBytes)
	return generations*(touched*stride+headerSize+listHeader+int64(o.Rows)/8) + int64(o.spillRows())*stride
}

// Table is rows that steps rewrite: a cachetier.Stack, and the files that it goes on from after a
// crash.
type Table struct {
	*cachetier.Stack
	options Options
	rows    *rows
	begun   bool
	shown   int64 // the newest checkpoint, while Show shows another
	closed  bool
}

// Mark is what a checkpoint says of a table. Resume goes on from it.
type Mark struct {
	Step     int64 `json:"step"`
	Rows     int   `json:"rows"`
	RowBytes int   `json:"row_bytes"`
	// Generations are the lists of rows that it consists of, in Options.Dir, the oldest first.
	// Those of checkpoints that are removed later go over into the ones after them.
	Generations []string `json:"generations"`
}

// Stats counts what was written since Open. Its JSON keys are stable.
type Stats struct {
	RowsTouched  int64 `json:"rows_touched"`  // rows that were ever written: of all runs, since Begin or Clear
	RowsWritten  int64 `json:"rows_written"`  // to files, as often as that was
	RowsCopied   int64 `json:"rows_copied"`   // from generation to generation
	BytesWritten int64 `json:"bytes_written"` // for all of these, in whole pages, and for lists
	BytesReread  int64 `json:"bytes_reread"`  // to write parts of pages
}

// Open makes a table of which no row was written. It reads no file, and changes none, before Begin
// or Resume is called: a table must be told by one of them where its run begins before a row is
// written.
func Open(ctx context.Context, o Options) (*Table, error) {
	if err := o.Validate(); err != nil {
		return nil, fmt.Errorf("mutable: %w", err)
	}
	if err := o.Cache.Validate(); err != nil {
		return nil, fmt.Errorf("mutable: %w", err)
	}
	r, err := newRows(o)
	if err != nil {
		return nil, fmt.Errorf("mutable: %w", err)
	}
	t := &Table{options: o, rows: r}
	t.In(o.Place)
	if t.Stack, err = cachetier.OpenRecords(ctx, r, o.Lag, o.Cache); err != nil {
		r.free()
		return nil, err
	}
	return t, nil
}

// In says where the files are, for who did not know it when the table was opened. Nobody has called
// Begin or Resume yet.
func (t *Table) In(p Place) {
	if p.FS == nil {
		p.FS = vfs.Default
	}
	t.options.Place = p
	t.rows.fs, t.rows.dir, t.rows.shape.run = p.FS, p.Dir, runID(p.Run)
}

// Close gives up memory and files. What no checkpoint has is lost. A second Close does nothing.
func (t *Table) Close() error {
	err := t.Stack.Close()
	if !t.closed {
		t.closed = true
		t.rows.free()
	}
	return err
}

// Begin removes what an earlier run has left, and begins with no row written.
func (t *Table) Begin(ctx context.Context) error { return t.begin(ctx, none) }

// Resume goes on from a checkpoint. What was written after it is removed. An error but for one of
// writing leaves the files as they were.
func (t *Table) Resume(ctx context.Context, m Mark) error {
	if err := t.Check(m); err != nil {
		return err
	}
	return t.begin(ctx, m.Step)
}

// Look opens the table as of a checkpoint, for reading only. It writes no file, so it also works on
// a run of another user. Write panics afterwards. Show may follow; Begin and Resume may not.
func (t *Table) Look(ctx context.Context, m Mark) error {
	if err := t.Check(m); err != nil {
		return err
	}
	t.rows.readOnly = true
	return t.show(ctx, m.Step)
}

func (t *Table) begin(ctx context.Context, step int64) error {
	o := &t.options
	if err := o.FS.MkdirAll(o.Dir, 0o777); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	if err := syncDir(o.FS, o.FS.PathDir(o.Dir)); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	if err := t.rows.load(o, step); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	if err := t.rows.clean(); err != nil {
		return fmt.Errorf("mutable: clean %s: %w", o.Dir, err)
	}
	if err := Room(o.FS, o.Dir, t.Need()); err != nil {
		return err
	}
	t.begun = true
	return t.Reload(ctx)
}

// Need is what the table may take on disk beside what it has there now.
func (t *Table) Need() int64 {
	need := t.options.DiskBytes()
	for _, g := range t.rows.below {
		need -= g.count * t.rows.stride
	}
	return need
}

// Room refuses a file system that has less space left than tables in dir may take. One that does
// not tell is believed to have room.
func Room(fsys vfs.FS, dir string, need int64) error {
	usage, err := fsys.GetDiskUsage(dir)
	if errors.Is(err, vfs.ErrUnsupported) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("mutable: space left in %s: %w", dir, err)
	}
	if need > 0 && uint64(need) > usage.AvailBytes {
		return fmt.Errorf("mutable: %s: %w: the rows that steps rewrite may take %s more, and it has %s; fewer checkpoints take less",
			dir, syscall.ENOSPC, kernels.FormatBytes(need), kernels.FormatBytes(int64(usage.AvailBytes)))
	}
	return nil
}

// Check says why the table cannot go on from a checkpoint, and changes nothing.
func (t *Table) Check(m Mark) error {
	o, s := &t.options, &t.rows.shape
	if m.Rows != o.Rows || m.RowBytes != o.RowBytes {
		return fmt.Errorf("mutable: %s: the checkpoint has %d rows of %d bytes, and the table %d of %d", o.Dir, m.Rows, m.RowBytes, o.Rows, o.RowBytes)
	}
	if m.Step < 0 {
		return fmt.Errorf("mutable: %s: no checkpoint is of step %d", o.Dir, m.Step)
	}
	below, err := walk(o, s, m.Step)
	for _, g := range below {
		if err == nil && g.serial != 0 {
			var f *rowFile
			if f, err = openRows(o.FS, o.Dir, *s, g.serial, false); err == nil {
				f.close()
			}
		}
	}
	if err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	return nil
}

// Write is cachetier.Stack.Write, for a run that has begun.
func (t *Table) Write(places []uint32, src []byte) error {
	if !t.begun {
		panic("mutable: Write before Begin or Resume")
	}
	return t.Stack.Write(places, src)
}

// WriteAll is cachetier.Stack.WriteAll, for a run that has begun.
func (t *Table) WriteAll(src []byte) error {
	if !t.begun {
		panic("mutable: WriteAll before Begin or Resume")
	}
	return t.Stack.WriteAll(src)
}

// Update is cachetier.Stack.Update, for a run that has begun.
func (t *Table) Update(places []uint32, change func(i int, row []byte)) error {
	if !t.begun {
		panic("mutable: Update before Begin or Resume")
	}
	return t.Stack.Update(places, change)
}

// Put replaces n rows, which row gives in ascending order and none twice, before the first step: by
// what a file has of them. After the last call the caller calls Reload. After an error any of them
// may be replaced.
func (t *Table) Put(n int, row func(i int) (v uint32, b []byte)) error {
	if !t.begun {
		panic("mutable: Put before Begin or Resume")
	}
	if err := t.rows.Write(n, row); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	return nil
}

// Checkpoint has all that was written so far outlast a crash, and says what a checkpoint of this
// step, a number above those of earlier ones, has to remember. Until its record is on disk the
// table goes back to the one before. Nobody may plan, load, gather or write meanwhile. A checkpoint
// of the step of the last one, after which nothing was written, is that one. What steps to come
// must not see yet, with a lag above 1, is no part of it: see cachetier.Stack.Undos.
func (t *Table) Checkpoint(step int64) (Mark, error) {
	if !t.begun {
		panic("mutable: Checkpoint before Begin or Resume")
	}
	t.rows.gather(true)
	err := t.Flush()
	t.rows.gather(false)
	if err != nil {
		return Mark{}, err
	}
	if err := t.rows.seal(step); err != nil {
		return Mark{}, err
	}
	m := Mark{Step: step, Rows: t.options.Rows, RowBytes: t.options.RowBytes}
	for _, g := range t.rows.below {
		m.Generations = append(m.Generations, listName(g.number))
	}
	return m, nil
}

// Retain tells which checkpoints there are, by their steps. The records of all others are removed,
// and that is on disk: their rows are merged into those of the checkpoints after them, or removed.
// It is called after each Checkpoint and Resume, while nobody plans, loads, gathers or writes. When
// it ends early, by an error or a crash, nothing is lost, and the next call does the rest.
func (t *Table) Retain(ctx context.Context, steps ...int64) error { return t.rows.retain(ctx, steps) }

// Show has the table be as of a checkpoint that is kept, to be read: Write panics until ShowNow.
// Everything that was written is in a checkpoint. Nobody may plan, load, gather or write meanwhile.
func (t *Table) Show(ctx context.Context, step int64) error {
	if next := &t.rows.next; t.dirty() || t.rows.spill.live > 0 || next.slot != 0 || next.fresh {
		panic("mutable: Show of a table with rows that no checkpoint has")
	}
	if t.begun {
		t.begun, t.shown = false, t.rows.next.after
	}
	return t.show(ctx, step)
}

// ShowNow has the table be as it was before Show, if that was called. After an error it can be
// called again.
func (t *Table) ShowNow(ctx context.Context) error {
	if t.begun {
		return nil
	}
	err := t.show(ctx, t.shown)
	t.begun = err == nil
	return err
}

func (t *Table) show(ctx context.Context, step int64) error {
	if err := t.rows.load(&t.options, step); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	return t.Reload(ctx)
}

func (t *Table) dirty() (some bool) {
	t.EachUnflushed(func(uint32) { some = true })
	return some
}

// Clear has all rows be as if never written, as state is at the start of an epoch. Checkpoints that
// there are keep theirs. Nobody may plan, load, gather or write meanwhile.
func (t *Table) Clear(ctx context.Context) error {
	if err := t.rows.clear(); err != nil {
		return err
	}
	return t.Reload(ctx)
}

// Counts is what was written. It may be called at any time.
func (t *Table) Counts() Stats {
	r := t.rows
	r.state.RLock()
	defer r.state.RUnlock()
	st := r.counts
	t.EachUnflushed(func(v uint32) {
		if r.newest[v] == 0 {
			st.RowsTouched++
		}
	})
	return st
}

// Each calls do with each row that was ever written, in ascending order, as it is now. Nobody may
// plan, load, gather or write meanwhile. An error of do ends it.
func (t *Table) Each(ctx context.Context, do func(row uint32, b []byte) error) error {
	if err := t.Flush(); err != nil {
		return err
	}
	return t.rows.each(ctx, do)
}

func (t *rows) each(ctx context.Context, do func(row uint32, b []byte) error) error {
	most := max(1, int(copyBytes)/t.rowBytes)
	memory := make([]byte, most*t.rowBytes)
	at := func(i int) []byte { return memory[i*t.rowBytes:][:t.rowBytes] }
	var batch []uint32
	for v, slot := range t.newest {
		if slot != 0 {
			batch = append(batch, uint32(v))
		}
		if len(batch) < most && v+1 < len(t.newest) {
			continue
		}
		if _, err := t.Read(ctx, len(batch), func(i int) uint32 { return batch[i] }, func(i int, b []byte) { copy(at(i), b) }); err != nil {
			return err
		}
		for i, v := range batch {
			if err := do(v, at(i)); err != nil {
				return err
			}
		}
		batch = batch[:0]
	}
	return nil
}

// runID is Options.Run in files.
func runID(run string) (id [16]byte) { return xxh3.HashString128(run).Bytes() }

// each calls do with each row of word w of a set.
func each(w int, word uint64, do func(v uint32)) {
	for ; word != 0; word &= word - 1 {
		do(uint32(w<<6 + bits.TrailingZeros64(word)))
	}
}
