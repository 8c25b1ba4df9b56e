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

// Options describes a table and how it is stored.
type Options struct {
	Place

	// Rows is the number of rows, at most 2³²-1, and RowBytes the size of each.
	Rows, RowBytes int
	// Initial fills dst with the first value of a row, for a row that was never written. Several
	// goroutines call it at once. Default nil: zeros.
	Initial func(dst []byte, row uint32)

	// Expected estimates how many rows are written between two checkpoints. If they are a good part
	// of all rows, the space of a file is allocated at once, else write by write. Default 0: write
	// by write.
	Expected int
	// Kept is the number of checkpoints that exist at a time, and Touched the most rows that the
	// run writes: they set the space on disk that must be free. Defaults 1, and all rows.
	Kept, Touched int

	// Lag is the number of steps after which a written row is seen: see cachetier.Stack.Write.
	// Default 1.
	Lag int
	// Cache sets the memory of the cache, and how files are read. Mmap counts as Buffered here, and
	// nothing is probed, since no file exists yet.
	Cache cachetier.Options
}

// Place names a table's files: where they are, and which run they belong to.
type Place struct {
	// FS has the files. Default vfs.Default.
	FS vfs.FS
	// Dir is a directory for this table alone, inside the run directory. The table makes it if need
	// be.
	Dir string
	// Run identifies what the rows belong to: run, dataset, table, and anything else without which
	// they are useless. Files with another Run are refused.
	Run string
}

// Validate reports every invalid option. Open checks the options in Cache.
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

// maxRowBytes bounds a row: 16 MiB are far more than any record has, and little enough for several
// to be in memory.
const maxRowBytes = 16 << 20

// FixedBytes returns the memory that a table of so many rows takes beside its cache: for each row
// its file and its place in the spill, the lists of generations, and buffers for writing.
func FixedBytes(rows int) int64 { return 5*int64(rows) + 3*int64(rows)/8 + putBytes + copyBytes }

// DiskBytes returns the most space that the table takes on disk.
func (o Options) DiskBytes() int64 {
	touched := int64(cmp.Or(o.Touched, o.Rows))
	generations := int64(cmp.Or(o.Kept, 1) + 2)
	stride := strideOf(o.RowBytes)
	return generations*(touched*stride+headerSize+listHeader+int64(o.Rows)/8) + int64(o.spillRows())*stride
}

// Table is a cachetier.Stack over rows that steps rewrite, and the files from which it resumes
// after a crash.
type Table struct {
	*cachetier.Stack
	options Options
	rows    *rows
	begun   bool
	shown   int64 // step of the newest checkpoint, while Show shows another one
	closed  bool
}

// Mark is the record of a table in a checkpoint. Resume goes on from it.
type Mark struct {
	Step     int64 `json:"step"`
	Rows     int   `json:"rows"`
	RowBytes int   `json:"row_bytes"`
	// Generations names the lists of rows that make up the checkpoint, in Options.Dir, the oldest
	// first. When a later Retain drops a checkpoint, its list is merged into the next one.
	Generations []string `json:"generations"`
}

// Stats counts what was written since Open. Its JSON keys are stable.
type Stats struct {
	RowsTouched  int64 `json:"rows_touched"`  // rows ever written since Begin or Clear, also by runs before a Resume
	RowsWritten  int64 `json:"rows_written"`  // rows written to files; a row counts each time
	RowsCopied   int64 `json:"rows_copied"`   // rows copied from one generation to another
	BytesWritten int64 `json:"bytes_written"` // bytes of these rows, in whole pages, and of lists
	BytesReread  int64 `json:"bytes_reread"`  // bytes read to fill up pages written in part
}

// Open makes a table in which no row is written. It neither reads nor changes files; Begin or
// Resume does. One of them must be called before a row is written: it sets where the run begins.
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

// In sets where the files are, for a caller that did not know it in Open. Call it before Begin and
// Resume.
func (t *Table) In(p Place) {
	if p.FS == nil {
		p.FS = vfs.Default
	}
	t.options.Place = p
	t.rows.fs, t.rows.dir, t.rows.shape.run = p.FS, p.Dir, runID(p.Run)
}

// Close frees memory and closes files. Rows that are in no checkpoint are lost. A second Close does
// nothing.
func (t *Table) Close() error {
	err := t.Stack.Close()
	if !t.closed {
		t.closed = true
		t.rows.free()
	}
	return err
}

// Begin removes the files of an earlier run, and begins with no row written.
func (t *Table) Begin(ctx context.Context) error { return t.begin(ctx, none) }

// Resume goes on from a checkpoint. It removes what was written after it. If the checkpoint cannot
// be read, the files stay as they were.
func (t *Table) Resume(ctx context.Context, m Mark) error {
	if err := t.Check(m); err != nil {
		return err
	}
	return t.begin(ctx, m.Step)
}

// Look opens the table as of a checkpoint, for reading only. It writes no file, so it also works on
// a run of another user. Write panics afterwards. Show may follow, but not Begin or Resume.
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

// Need returns the disk space that the table may still take, beyond what it has there now.
func (t *Table) Need() int64 {
	need := t.options.DiskBytes()
	for _, g := range t.rows.below {
		need -= g.count * t.rows.stride
	}
	return need
}

// Room returns an error if the file system of dir has less than need bytes left. A file system that
// does not report its space passes.
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

// Check returns an error if the table cannot go on from the checkpoint m. It changes nothing.
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

// Write calls cachetier.Stack.Write. It panics if the run has not begun.
func (t *Table) Write(places []uint32, src []byte) error {
	if !t.begun {
		panic("mutable: Write before Begin or Resume")
	}
	return t.Stack.Write(places, src)
}

// WriteAll calls cachetier.Stack.WriteAll. It panics if the run has not begun.
func (t *Table) WriteAll(src []byte) error {
	if !t.begun {
		panic("mutable: WriteAll before Begin or Resume")
	}
	return t.Stack.WriteAll(src)
}

// Update calls cachetier.Stack.Update. It panics if the run has not begun.
func (t *Table) Update(places []uint32, change func(i int, row []byte)) error {
	if !t.begun {
		panic("mutable: Update before Begin or Resume")
	}
	return t.Stack.Update(places, change)
}

// Put replaces n rows, which row gives in ascending order, none twice: by the rows of a file,
// before the first step. The caller calls Reload after the last Put. After an error any of the n
// rows may be replaced.
func (t *Table) Put(n int, row func(i int) (v uint32, b []byte)) error {
	if !t.begun {
		panic("mutable: Put before Begin or Resume")
	}
	if err := t.rows.Write(n, row); err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	return nil
}

// Checkpoint makes all rows written so far durable, as the checkpoint of this step, and returns the
// Mark that the caller records for it. step is above the steps of earlier checkpoints; if it is the
// last one's step and nothing was written since, Checkpoint returns that one. Until the caller's
// record is on disk, the table goes back to the checkpoint before. Nobody may plan, load, gather or
// write meanwhile. A checkpoint has the newest rows. With a lag above 1, it does not have the older
// values that the next steps still see: see cachetier.Stack.Undos.
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

// Retain keeps the checkpoints of these steps and drops all others. Before the call, the caller has
// removed its records of those, durably. Their rows are merged into the checkpoints after them, or
// removed. The caller calls it after each Checkpoint and Resume, while nobody plans, loads, gathers
// or writes. If it ends early, by an error or a crash, nothing is lost, and the next call does the
// rest.
func (t *Table) Retain(ctx context.Context, steps ...int64) error { return t.rows.retain(ctx, steps) }

// Show resets the table to a kept checkpoint, for reading: Write panics until ShowNow. It panics if
// a written row is in no checkpoint. Nobody may plan, load, gather or write meanwhile.
func (t *Table) Show(ctx context.Context, step int64) error {
	if next := &t.rows.next; t.dirty() || t.rows.spill.live > 0 || next.slot != 0 || next.fresh {
		panic("mutable: Show of a table with rows that no checkpoint has")
	}
	if t.begun {
		t.begun, t.shown = false, t.rows.next.after
	}
	return t.show(ctx, step)
}

// ShowNow resets the table to its state before Show, if Show was called. After an error it can be
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

// Clear resets all rows as if never written, as node state is reset at the start of an epoch.
// Existing checkpoints keep their rows. Nobody may plan, load, gather or write meanwhile.
func (t *Table) Clear(ctx context.Context) error {
	if err := t.rows.clear(); err != nil {
		return err
	}
	return t.Reload(ctx)
}

// Counts returns what was written since Open. It may be called at any time.
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

// Each calls do with the current bytes of each row that was ever written, in ascending order. The
// bytes are lent until do returns; an error of do ends the loop. Nobody may plan, load, gather or
// write meanwhile.
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

// runID returns the hash that stands for Place.Run in files.
func runID(run string) (id [16]byte) { return xxh3.HashString128(run).Bytes() }

// each calls do with each row of a word, which is word w of a set.
func each(w int, word uint64, do func(v uint32)) {
	for ; word != 0; word &= word - 1 {
		do(uint32(w<<6 + bits.TrailingZeros64(word)))
	}
}
