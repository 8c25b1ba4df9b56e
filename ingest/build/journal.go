package build

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// The journal lists the passes that are done and the files of their results, so that a killed
// ingest goes on after the last of them. A pass syncs its files before a new journal, which names
// them, replaces the old one. Then the files that the new journal does not name are removed.

const (
	journalName = "journal.json"
	spillName   = "spill"
	// journalEvery is the work that may be lost: passes that took less together are not worth the
	// syncs.
	journalEvery = time.Second
	// saveShare spaces journals: the next is written once passes have run this many times as long
	// as the last took to write. A journal of thousands of relations is large.
	saveShare = 10
)

// state is everything that passes leave for later ones, but for the dataset's sections.
type state struct {
	Key          string                    `json:"key"`   // of source and options
	Spill        string                    `json:"spill"` // the directory of what is spilled; "" is the one beside the journal
	Counts       []int64                   `json:"counts"`
	Relations    []relation                `json:"relations"`
	Tables       []tableState              `json:"tables"`
	Dictionaries []dictionary              `json:"dictionaries"`
	Parted       []parted                  `json:"parted,omitempty"` // see mean.go
	Arrays       map[string]extsort.Bucket `json:"arrays"`           // of the node types, by kind and number
	Generation   int                       `json:"generation"`       // of the newest array
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
			b.state.Generation++
			kept, err := b.area.Keep(fmt.Sprintf("%s.%d", name, b.state.Generation), buf.Bytes())
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
	if err == nil {
		text, err = json.Marshal(journal{checksum(text), text})
	}
	if err != nil {
		return err
	}
	if err := b.area.Sync(); err != nil {
		return err
	}
	if err := replaceFile(b.FS, b.work, journalName, text); err != nil {
		return fmt.Errorf("write %s: %w", journalName, err)
	}
	b.journaled = len(b.report.Passes)
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

// key identifies the ingest that a journal is of: "" when the source cannot tell whether it is the
// same. Memory and directories may change between two tries.
func (b *builder) key() (string, error) {
	if b.schema.Identity == "" {
		return "", nil
	}
	text, err := json.Marshal([]any{journalVersion, b.schema, b.record(), b.Name})
	return checksum(text), err
}

// journalVersion changes when the meaning of a journal or of the files it names does.
const journalVersion = 2

// readJournal returns what an interrupted ingest of this source with these options left in work, or
// nil. It is called with the writer's lock held.
func (b *builder) readJournal(work string) *store.Manifest {
	old, there := b.parseJournal(work)
	if !there {
		return nil
	}
	why := "of another ingest"
	switch {
	case old == nil:
		why = "with a damaged journal"
	case old.Manifest == nil || old.Manifest.Version != store.Version:
		why = "of another version of gnnstore"
	case old.Key != b.state.Key:
	case !b.whole(old, work):
		why = "without some of its files"
	default:
		b.resumed, b.journaled = old, len(old.Report.Passes)
		return old.Manifest
	}
	b.clearStranger(old)
	b.note("%s.partial held unfinished work %s, and it is gone", b.out, why)
	return nil
}

// anyJournal returns what an interrupted ingest left, whatever it read.
func (b *builder) anyJournal(work string) *store.Manifest {
	old, _ := b.parseJournal(work)
	if old == nil || old.Manifest == nil || old.Manifest.Version != store.Version {
		return nil
	}
	b.journaled = len(old.Report.Passes)
	return old.Manifest
}

// journal is the file: a state, and a checksum of its text.
type journal struct {
	XXH3  string          `json:"xxh3"`
	State json.RawMessage `json:"state"`
}

func checksum(text []byte) string { return fmt.Sprintf("%016x", xxh3.Hash(text)) }

// parseJournal reads the journal and reports whether there is one. The state is nil if it is
// unreadable.
func (b *builder) parseJournal(work string) (_ *state, there bool) {
	text, err := readFile(b.FS, b.FS.PathJoin(work, journalName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false
	}
	var j journal
	old := new(state)
	if err != nil || json.Unmarshal(text, &j) != nil || j.XXH3 != checksum(j.State) || json.Unmarshal(j.State, old) != nil {
		return nil, true
	}
	return old, true
}

func readFile(fsys vfs.FS, name string) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, 1<<28))
}

// outside returns the directory for spilled data in Options.Tmp, or "" where Tmp is not set. A
// checksum of this dataset's full name tells it apart from the directories of other datasets.
func (b *builder) outside() (string, error) {
	if b.Tmp == "" {
		return "", nil
	}
	tmp := b.Tmp
	if vfs.Root(b.FS) == vfs.Default {
		var err error
		if tmp, err = filepath.Abs(tmp); err != nil { // the next Build may run elsewhere
			return "", err
		}
	}
	fi, err := b.FS.Stat(tmp)
	if errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("{tmp} %s: no such directory; make it first", b.Tmp)
	}
	if err != nil {
		return "", fmt.Errorf("{tmp}: %w", err)
	}
	if !fi.IsDir() {
		return "", fmt.Errorf("{tmp} %s: not a directory; choose one", b.Tmp)
	}
	return b.FS.PathJoin(tmp, b.outsideName()), nil
}

func (b *builder) outsideName() string {
	full, err := filepath.Abs(b.out)
	if err != nil {
		full = b.out
	}
	return "gnnstore-" + checksum([]byte(full))
}

// spillDir returns the directory of the spilled files that a state names.
func (b *builder) spillDir(s *state, work string) string {
	if s.Spill == "" {
		return b.FS.PathJoin(work, spillName)
	}
	return s.Spill
}

// whole reports whether all files that a state names are there, but for the dataset's sections.
func (b *builder) whole(s *state, work string) bool {
	area := extsort.At(b.FS, b.spillDir(s, work))
	return !slices.ContainsFunc(s.buckets(), func(bucket extsort.Bucket) bool { return !area.Has(bucket) })
}

// clearStranger removes the spill of a state that is not resumed, if it lies outside the writer's
// directory, which the writer clears.
func (b *builder) clearStranger(s *state) {
	if s != nil && s.Spill != "" && b.FS.PathBase(s.Spill) == b.outsideName() {
		_ = b.FS.RemoveAll(s.Spill) // it takes space, and does no other harm
	}
}

// openJournal finds what an interrupted ingest left, or begins anew.
func (b *builder) openJournal() error {
	outside, err := b.outside()
	if err != nil {
		return err
	}
	if b.work, err = b.w.WorkDir(); err != nil {
		return err
	}
	old := b.resumed
	if _, err := b.FS.Stat(b.FS.PathJoin(b.work, journalName)); err != nil && old != nil {
		b.clearStranger(old)
		b.note("%s.partial held unfinished work without some of its sections, and it is gone", b.out)
		old, b.journaled = nil, 0
	}
	if old == nil {
		b.state.Spill = outside
		dir := b.spillDir(b.state, b.work)
		if err := b.FS.RemoveAll(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("spill directory: %w", err)
		}
		return b.openArea(dir)
	}
	if err := b.openArea(b.spillDir(old, b.work)); err != nil {
		return err
	}
	b.state = old
	b.report = old.Report
	b.report.Resumed = len(b.report.Passes)
	b.saved = time.Now()
	return b.restore()
}

func (b *builder) openArea(dir string) (err error) {
	if b.area, err = extsort.Open(b.FS, dir); err == nil {
		b.area.Packed, b.area.Block = b.test.packed, b.test.block
	}
	return err
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
		all = slices.Concat(all, r.Given, r.Reverse, r.Merged, r.Stored, r.Keyed, r.Held)
		if r.Stream != nil {
			all = slices.Concat(all, r.Stream.Runs, r.Stream.Places)
		}
	}
	for _, t := range s.Tables {
		all = append(all, t.Buckets...)
	}
	for _, d := range s.Dictionaries {
		all = slices.Concat(all, d.Rows, d.Gathered, []extsort.Bucket{d.Sorted})
	}
	for _, p := range s.Parted {
		all = append(all, p.Buckets...)
	}
	for _, a := range s.Arrays {
		all = append(all, a)
	}
	return all
}

// leave ends a Build that did not succeed. What is whole stays where it was before this Build
// began, where the user interrupted it, and where it wants more memory; it goes otherwise.
func (b *builder) leave(cause error) error {
	var memory *memoryError
	if b.journaled > 0 && (!b.begun || errors.Is(cause, context.Canceled) || errors.As(cause, &memory)) {
		err := b.w.Leave()
		b.kept = err == nil
		return err
	}
	err := b.w.Abort()
	if b.area != nil && b.state.Spill != "" {
		err = errors.Join(err, b.area.RemoveAll())
	}
	return err
}
