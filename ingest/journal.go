package ingest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"runtime/debug"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// The journal says which passes are done and where their results lie, so that a killed ingest goes on after the last of
// them. It is replaced as a whole, after what it names is synced; files that no journal names are removed only then.

const (
	journalName = "journal.json"
	spillName   = "spill"
	// journalEvery is how much work may be lost: passes that took less together are not worth the syncs.
	journalEvery = time.Second
)

// state is everything that passes leave for later ones, but for the dataset's sections.
type state struct {
	Key          string                    `json:"key"`   // of source and options
	Spill        string                    `json:"spill"` // the directory of what is spilled
	Counts       []int64                   `json:"counts"`
	Relations    []relation                `json:"relations"`
	Tables       []tableState              `json:"tables"`
	Dictionaries []dictionary              `json:"dictionaries"`
	Arrays       map[string]extsort.Bucket `json:"arrays"` // of the node types, by kind and number
	Skipped      int64                     `json:"skipped"`
	FirstSkipped string                    `json:"first_skipped"`
	Report       *Report                   `json:"report"`
	Manifest     *store.Manifest           `json:"manifest"`
}

// total is the number of nodes.
func (s *state) total() int64 {
	sum := int64(0)
	for _, n := range s.Counts {
		sum += n
	}
	return sum
}

// PassReport is one pass over the data.
type PassReport struct {
	Name         string  `json:"name"`
	Items        int64   `json:"items"`
	Unit         string  `json:"unit"`
	Seconds      float64 `json:"seconds"`
	SpillWritten int64   `json:"spill_written_bytes"`
	SpillRead    int64   `json:"spill_read_bytes"`
	SpillPeak    int64   `json:"spill_bytes"` // on disk after the pass
}

// pass does work unless it is done already, and notes that it is.
func (b *builder) pass(ctx context.Context, name string, total int64, unit string, work func() error) error {
	if slices.ContainsFunc(b.report.Passes, func(p PassReport) bool { return p.Name == name }) {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	b.meter.begin(name, total, unit)
	debug.SetMemoryLimit(max(b.Memory-kernels.HostBytes()-kernels.MaxSpareBytes-b.room()/2, baseBytes)) // the heap's part
	start := time.Now()
	written, read := b.area.Traffic()
	if err := work(); err != nil {
		return err
	}
	items := b.meter.end()
	if err := ctx.Err(); err != nil { // what took no chunk did not look
		return err
	}
	p := PassReport{Name: name, Items: items, Unit: unit, Seconds: time.Since(start).Seconds()}
	p.SpillWritten, p.SpillRead = b.area.Traffic()
	p.SpillWritten, p.SpillRead = p.SpillWritten-written, p.SpillRead-read
	p.SpillPeak = b.area.Held()
	b.report.Passes = append(b.report.Passes, p)
	if time.Since(b.saved) < b.journalEvery {
		return nil
	}
	return b.save()
}

// discard removes buckets as soon as no journal needs them.
func (b *builder) discard(buckets ...extsort.Bucket) { b.discarded = append(b.discarded, buckets...) }

// array is one number for each node of a type, which the journal keeps.
type array struct {
	kind string
	buf  **kernels.HostBuf
}

func (n *nodes) arrays() []array {
	return []array{{"times", &n.times}, {"degree", &n.degree}, {"stored", &n.stored}, {"out", &n.out}}
}

// save writes the journal.
func (b *builder) save() error {
	defer func() { b.saved = time.Now() }()
	if b.state.Key == "" { // it could not be gone on with
		err := b.area.Remove(b.discarded...)
		b.discarded = nil
		return err
	}
	for i, n := range b.nodes {
		for _, a := range n.arrays() {
			name := fmt.Sprintf("%s-%d", a.kind, i)
			old, had := b.state.Arrays[name]
			buf := *a.buf
			if buf == nil {
				if had {
					b.discard(old)
					delete(b.state.Arrays, name)
				}
				continue
			}
			sum := xxh3.Hash(buf.Bytes())
			if had && b.sums[name] == sum {
				continue
			}
			if had {
				b.discard(old)
			}
			b.generation++
			kept, err := b.area.Keep(fmt.Sprintf("%s.%d", name, b.generation), buf.Bytes())
			if err != nil {
				return err
			}
			b.state.Arrays[name], b.sums[name] = kept, sum
		}
	}
	var err error
	if b.state.Manifest, err = b.w.Parts(); err != nil {
		return err
	}
	text, err := json.Marshal(b.state)
	if err != nil {
		return err
	}
	if err := b.area.SyncDir(); err != nil {
		return err
	}
	if err := replaceFile(b.FS, b.work, journalName, text); err != nil {
		return fmt.Errorf("write %s: %w", journalName, err)
	}
	b.journaled = true
	err = b.area.Remove(b.discarded...)
	b.discarded = nil
	return err
}

// replaceFile makes a file hold text, or leaves it as it was.
func replaceFile(fsys vfs.FS, dir, name string, text []byte) error {
	temporary := fsys.PathJoin(dir, name+".new")
	f, err := fsys.Create(temporary, vfs.WriteCategoryUnspecified)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := fsys.Rename(temporary, fsys.PathJoin(dir, name)); err != nil {
		return err
	}
	d, err := fsys.OpenDir(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// key is what a journal is recognised by: "" when the source cannot say that it is the same. Memory and directories may
// change between two tries.
func (b *builder) key() (string, error) {
	if b.schema.Identity == "" {
		return "", nil
	}
	text, err := json.Marshal([]any{journalVersion, b.schema, b.record(), b.Name})
	return fmt.Sprintf("%016x", xxh3.Hash(text)), err
}

// journalVersion changes when the meaning of a journal or of the files it names does.
const journalVersion = 1

// readJournal returns what an interrupted ingest of this source with these options left in work, or nil. It is called with
// the writer's lock held.
func (b *builder) readJournal(work string) *store.Manifest {
	old := b.parseJournal(work)
	if old == nil {
		return nil
	}
	if old.Key != b.state.Key || old.Key == "" || len(old.Relations) != len(b.schema.Relations) || len(old.Counts) != len(b.schema.NodeTypes) {
		b.stranger = old.Spill
		b.note("%s.partial held the unfinished work of another ingest, and it is gone", b.out)
		return nil
	}
	if _, err := b.FS.Stat(old.Spill); err != nil {
		return nil
	}
	b.resumed = old
	return old.Manifest
}

// anyJournal returns what an interrupted ingest left, whatever it read.
func (b *builder) anyJournal(work string) *store.Manifest {
	if old := b.parseJournal(work); old != nil {
		return old.Manifest
	}
	return nil
}

// parseJournal is nil where there is no journal of this version.
func (b *builder) parseJournal(work string) *state {
	text, err := readFile(b.FS, b.FS.PathJoin(work, journalName))
	old := new(state)
	if err != nil || json.Unmarshal(text, old) != nil || old.Manifest == nil || old.Report == nil {
		return nil
	}
	return old
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<28))
}

// openJournal finds what an interrupted ingest left, or begins anew.
func (b *builder) openJournal() error {
	var err error
	if b.work, err = b.w.WorkDir(); err != nil {
		return err
	}
	spill := b.FS.PathJoin(b.work, spillName)
	if b.Tmp != "" {
		full, err := filepath.Abs(b.out)
		if err != nil {
			return err
		}
		spill = b.FS.PathJoin(b.Tmp, fmt.Sprintf("gnnstore-%016x", xxh3.HashString(full)))
	}
	old := b.resumed
	if _, err := b.FS.Stat(b.FS.PathJoin(b.work, journalName)); err != nil {
		old = nil // the writer found that the sections are not as the journal has them
	}
	if old != nil {
		spill = old.Spill
	}
	if dir := b.stranger; dir != "" && filepath.Base(dir) == filepath.Base(spill) { // outside the writer's directory, perhaps
		_ = b.FS.RemoveAll(dir)
	}
	if old == nil {
		if err := b.FS.RemoveAll(spill); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("spill directory: %w", err)
		}
	}
	if b.area, err = extsort.Open(b.FS, spill); err != nil {
		return err
	}
	if old == nil {
		b.state.Spill = spill
		return nil
	}
	b.state = old
	b.report = old.Report
	b.report.Resumed = len(b.report.Passes)
	b.journaled, b.saved = true, time.Now()
	return b.restore()
}

// restore loads the arrays that the journal names, and removes files that it does not.
func (b *builder) restore() error {
	for i, n := range b.nodes {
		n.count = int(b.state.Counts[i])
		for _, a := range n.arrays() {
			kept, ok := b.state.Arrays[fmt.Sprintf("%s-%d", a.kind, i)]
			if !ok {
				continue
			}
			buf, err := b.hold(kept.Bytes)
			if err != nil {
				return err
			}
			*a.buf = buf
			if err := b.area.Fill(kept, buf); err != nil {
				return err
			}
			b.sums[fmt.Sprintf("%s-%d", a.kind, i)] = xxh3.Hash(buf.Bytes())
		}
	}
	return b.area.Retain(b.state.buckets())
}

// buckets are all that the state names.
func (s *state) buckets() []extsort.Bucket {
	var all []extsort.Bucket
	for _, r := range s.Relations {
		all = slices.Concat(all, r.Given, r.Reverse, r.Merged, r.Stored, r.Keyed)
	}
	for _, t := range s.Tables {
		all = append(all, t.Buckets...)
	}
	for _, d := range s.Dictionaries {
		all = slices.Concat(all, d.Rows, d.Gathered, []extsort.Bucket{d.Sorted})
	}
	for _, a := range s.Arrays {
		all = append(all, a)
	}
	return all
}

// leave ends a Build that did not succeed: what is whole stays where the user interrupted it, and goes otherwise.
func (b *builder) leave(cause error) error {
	if b.journaled && (errors.Is(cause, context.Canceled) || b.schema == nil) {
		err := b.w.Leave()
		b.kept = err == nil
		return err
	}
	err := b.w.Abort()
	if b.area != nil && b.Tmp != "" {
		err = errors.Join(err, b.area.RemoveAll())
	}
	return err
}
