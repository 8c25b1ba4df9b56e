package mutable

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// rows stores the rows of a table in files, as cachetier.Records. Several goroutines may call it at
// once; the calls wait for each other.
type rows struct {
	shape
	fs      vfs.FS
	dir     string
	initial func(dst []byte, row uint32)
	dense   bool // files are allocated whole
	options disk.Options
	why     string // replaces the reader's Why if not empty

	io sync.Mutex // held to read or write files, or to change the set of files

	// state guards the fields below that Takes, Counts, Live and the like read without io: newest,
	// spill.at, reader, past, place, counts and loaded. Who changes them holds io, too.
	state  sync.RWMutex
	memory *kernels.HostBuf
	newest []byte // by row: the slot with its newest record; 0: never written
	below  []*generation
	next   generation // being written; its number is not known yet
	slots  [256]*rowFile
	reader *disk.Reader
	past   disk.Live // totals of earlier readers
	place  [256]int  // by slot: the index among the files of reader, or for files without descriptors the slot
	counts Stats
	loaded bool // set by Begin, Resume, Look and Show

	readOnly bool // set by Look

	spill  spill
	whole  bool   // Write puts its rows and those in the spill into their places: for a checkpoint
	serial uint64 // of the newest row file
	order  []uint32
	put    putter
	copied []byte // buffer of settle, reused
	failed error  // error of a sync, after which nobody knows what is on disk
}

// generation has the rows that were written between two checkpoints.
type generation struct {
	list
	slot byte // 0: it has no rows
}

// newRows returns a table without files.
func newRows(o Options) (_ *rows, err error) {
	t := &rows{
		shape:   shape{rows: o.Rows, rowBytes: o.RowBytes, stride: strideOf(o.RowBytes)},
		initial: o.Initial, dense: int64(o.Expected)*sparse >= int64(o.Rows), next: generation{list: list{after: none}},
	}
	t.options = o.Cache.Disk().For(t.size())
	t.chooseEngine()
	if t.memory, err = kernels.NewHostBuf(o.Rows); err != nil {
		return nil, err
	}
	t.newest, t.spill.rows = t.memory.Bytes(), o.spillRows()
	if t.spill.memory, err = kernels.NewHostBuf(4 * o.Rows); err != nil {
		t.memory.Close()
		return nil, err
	}
	t.spill.at = t.spill.memory.Uint32s()
	if err := t.reopen(); err != nil {
		t.memory.Close()
		t.spill.memory.Close()
		return nil, err
	}
	return t, nil
}

// chooseEngine replaces Mmap, since memory maps are for files that do not change. It turns off the
// probe, since there is no file yet, and resolves Auto by the memory that is available.
func (t *rows) chooseEngine() {
	o := &t.options
	o.Probe = false
	switch {
	case o.Kind == disk.Mmap:
		o.Kind, t.why = disk.Buffered, "rows that change are not read through memory maps"
	case (o.Kind == disk.Auto || o.Kind == "") && !o.Direct:
		available, err := kernels.AvailableMemory()
		if o.Kind = disk.Buffered; err == nil && t.size() > available/2 {
			o.Kind = disk.Uring
		}
		t.why = fmt.Sprintf("of %s with %s of memory to be had", kernels.FormatBytes(t.size()), kernels.FormatBytes(available))
	}
}

// reopen replaces the reader by one of the present files. The caller holds io.
func (t *rows) reopen() error {
	t.state.Lock()
	defer t.state.Unlock()
	defer func() {
		for _, f := range t.slots {
			if f != nil && !f.direct && t.reader.Kind() != disk.Buffered && t.reader.Block() == store.PageSize {
				f.direct = setDirect(f.file, true)
			}
		}
	}()
	var files []store.SectionFile
	for slot, f := range t.slots {
		t.place[slot] = slot
		if f != nil && f.reader != nil {
			t.place[slot] = len(files)
			files = append(files, f.section(t.dir))
		}
	}
	if t.reader != nil {
		t.past = t.live()
		t.reader.Close()
	}
	reader, err := disk.Open(context.Background(), files, t.options)
	if err != nil {
		t.reader, _ = disk.Open(context.Background(), nil, disk.Options{Kind: disk.Buffered}) // opens nothing: no error
		return err
	}
	t.reader = reader
	return nil
}

// free frees memory and closes files.
func (t *rows) free() {
	t.io.Lock()
	defer t.io.Unlock()
	t.state.Lock()
	defer t.state.Unlock()
	t.reader.Close()
	t.dropSpill()
	for _, f := range t.slots {
		if f != nil {
			f.close()
		}
	}
	t.slots = [256]*rowFile{}
	t.memory.Close()
	t.spill.memory.Close()
	t.put.free()
	t.newest = nil
}

// Rows returns the number of rows.
func (t *rows) Rows() int { return t.shape.rows }

// RowBytes returns the size of a row.
func (t *rows) RowBytes() int { return t.rowBytes }

// Kind, Why, Live and Costs describe the reader of the present files; Live also counts what earlier
// readers did.
func (t *rows) Kind() disk.Kind { return t.now().Kind() }

// Why: see Kind.
func (t *rows) Why() string { return cmp.Or(t.why, t.now().Why()) }

// Live: see Kind.
func (t *rows) Live() disk.Live {
	t.state.RLock()
	defer t.state.RUnlock()
	return t.live()
}

// live adds up the work of all readers. Latencies are the newest reader's.
func (t *rows) live() disk.Live {
	l := t.reader.Live()
	l.Reads += t.past.Reads
	l.Bytes += t.past.Bytes
	l.Waited += t.past.Waited
	return l
}

// Costs: see Kind.
func (t *rows) Costs() disk.Costs { return t.now().Costs() }

func (t *rows) now() *disk.Reader {
	t.state.RLock()
	defer t.state.RUnlock()
	return t.reader
}

// sorted lists the indices of n rows, which row gives in ascending order: ordered by the slot that
// has each row, and within a slot by the place of the record. The first unwritten ones are in no
// slot. The list may reuse the memory of order.
func (t *rows) sorted(order []uint32, n int, row func(i int) uint32) (_ []uint32, unwritten int) {
	var ends [257]int
	for i := range n {
		ends[int(t.newest[row(i)])+1]++
	}
	unwritten = ends[1]
	for slot := range 256 {
		ends[slot+1] += ends[slot]
	}
	if cap(order) < n {
		order = make([]uint32, n+n/8)
	}
	order = order[:n]
	for i := range n {
		at := &ends[t.newest[row(i)]]
		order[*at] = uint32(i)
		*at++
	}
	slices.SortFunc(order[ends[spilled-1]:], func(a, b uint32) int { // of the spill, the last slot
		return cmp.Compare(t.spill.at[row(int(a))], t.spill.at[row(int(b))])
	})
	return order, unwritten
}

// request returns the disk request for the record of a row in this slot.
func (t *rows) request(slot byte, row uint32) disk.Request {
	at := row
	if slot == spilled {
		at = t.spill.at[row]
	}
	return disk.Request{File: t.place[slot], Offset: t.offset(at), Size: t.rowBytes + sumSize}
}

// Read reads the newest record of each row, and makes rows that were never written.
func (t *rows) Read(ctx context.Context, n int, row func(i int) uint32, put func(i int, b []byte)) (disk.Traffic, error) {
	t.io.Lock()
	defer t.io.Unlock()
	if n == 0 {
		return disk.Traffic{}, ctx.Err()
	}
	var unwritten int
	t.order, unwritten = t.sorted(t.order, n, row)
	t.make(t.order[:unwritten], row, put)
	order := t.order[unwritten:]
	return t.read(ctx, len(order), func(i int) (byte, uint32) {
		v := row(int(order[i]))
		return t.newest[v], v
	}, func(i int, b []byte) { put(int(order[i]), b) })
}

// read reads n records. at gives the slot and row of each, ordered by slot and by place in its
// file.
func (t *rows) read(ctx context.Context, n int, at func(i int) (slot byte, row uint32), put func(i int, b []byte)) (disk.Traffic, error) {
	next := t.reader.Merge(n, func(i int) disk.Request { return t.request(at(i)) })
	serve := func(s disk.Extent, b []byte) error {
		for i := s.Lo; i < s.Hi; i++ {
			slot, v := at(i)
			offset := t.request(slot, v).Offset
			row, err := t.slots[slot].decode(v, b[offset-s.Offset:][:t.rowBytes+sumSize], offset)
			if err != nil {
				return err
			}
			put(i, row)
		}
		return nil
	}
	if n == 0 {
		return disk.Traffic{}, nil
	}
	slot, _ := at(0)
	traffic, err := t.readExtents(ctx, slot, next, serve)
	if err != nil {
		return traffic, fmt.Errorf("mutable: %w", err)
	}
	return traffic, nil
}

// readExtents reads through the reader. Files without descriptors, as in memory, it reads one
// extent after another; then File is the slot. slot is any slot among the extents.
func (t *rows) readExtents(ctx context.Context, slot byte, next func() (disk.Extent, bool), serve func(disk.Extent, []byte) error) (total disk.Traffic, err error) {
	if t.slots[slot].reader != nil {
		return t.reader.Read(ctx, next, serve)
	}
	for s, ok := next(); ok; s, ok = next() {
		if err := ctx.Err(); err != nil {
			return total, err
		}
		b, f := make([]byte, s.Size), t.slots[s.File]
		if _, err := f.file.ReadAt(b, s.Offset); err != nil {
			return total, &disk.ReadError{Path: f.path, Offset: s.Offset, Size: s.Size, Err: err}
		}
		if err := serve(s, b); err != nil {
			return total, err
		}
		total.Add(t.reader.Takes(s))
	}
	return total, nil
}

// makeChunk is the number of rows that one goroutine makes at a time.
const makeChunk = 256

// make makes rows that were never written, by Options.Initial.
func (t *rows) make(order []uint32, row func(i int) uint32, put func(i int, b []byte)) {
	var taken atomic.Int64
	work := func() {
		b := make([]byte, t.rowBytes)
		for {
			hi := int(taken.Add(makeChunk))
			lo := hi - makeChunk
			if lo >= len(order) {
				return
			}
			for _, i := range order[lo:min(hi, len(order))] {
				if t.initial != nil {
					t.initial(b, row(int(i)))
				}
				put(int(i), b)
			}
		}
	}
	var g sync.WaitGroup
	for range min((len(order)+makeChunk-1)/makeChunk, runtime.GOMAXPROCS(0)) - 1 {
		g.Go(work)
	}
	work()
	g.Wait()
}

// Takes returns the traffic that a Read of these rows would cause now. It does not wait for other
// calls to read or write. Before Begin and Resume, when nobody knows which rows were written, it
// counts all of them as written: a forecast wants that.
func (t *rows) Takes(n int, row func(i int) uint32) (total disk.Traffic) {
	t.state.RLock()
	defer t.state.RUnlock()
	order, unwritten := t.sorted(nil, n, row)
	if t.loaded {
		order = order[unwritten:]
	}
	next := t.reader.Merge(len(order), func(i int) disk.Request {
		v := row(int(order[i]))
		return t.request(t.newest[v], v)
	})
	for s, ok := next(); ok; s, ok = next() {
		total.Add(t.reader.Takes(s))
	}
	return total
}

// Write puts rows, in ascending order, into the spill, or for a checkpoint into their places.
func (t *rows) Write(n int, row func(i int) (uint32, []byte)) error {
	if n == 0 {
		return nil
	}
	t.io.Lock()
	defer t.io.Unlock()
	if t.failed != nil {
		return t.failed
	}
	if t.whole {
		if err := t.settle(n, row); err != nil {
			return fmt.Errorf("mutable: %w", err)
		}
		return nil
	}
	written, err := t.append(n, row)
	t.state.Lock()
	defer t.state.Unlock()
	t.counts.BytesWritten += written
	if err != nil {
		return fmt.Errorf("mutable: %w", err)
	}
	t.counts.RowsWritten += int64(n)
	return nil
}

// gather sets whether Write puts rows into their places.
func (t *rows) gather(whole bool) {
	t.io.Lock()
	defer t.io.Unlock()
	t.whole = whole
}

// dropSpill removes the spill, whose rows nobody needs any more.
func (t *rows) dropSpill() {
	f := t.spill.file
	if f == nil {
		return
	}
	f.close()
	_ = t.fs.Remove(f.path) // or clean does it
	t.slots[spilled], t.spill.file = nil, nil
	t.spill.forget()
}

// start creates a row file for a generation.
func (t *rows) start(g *generation) error {
	f, err := createRows(t.fs, t.dir, t.shape, t.serial+1, t.dense)
	if err != nil {
		return err
	}
	t.serial++
	g.serial, g.slot = f.serial, t.freeSlot()
	t.slots[g.slot] = f
	return t.reopen()
}

// sparse sets when a file is allocated whole: when at least 1/sparse of all rows are expected to be
// written. The expectation may be wrong by that factor.
const sparse = 16

func (t *rows) freeSlot() byte {
	for slot := 1; slot < spilled; slot++ {
		if t.slots[slot] == nil {
			return byte(slot)
		}
	}
	panic("mutable: more generations than a byte can tell apart")
}

// sync syncs f. An error is final, since the system may have dropped what it could not write: all
// later writes return it.
func (t *rows) sync(f *rowFile) error {
	if err := f.file.Sync(); err != nil {
		t.failed = fmt.Errorf("mutable: sync %s: %w", f.path, err)
		return t.failed
	}
	return nil
}

var _ cachetier.Records = (*rows)(nil)
