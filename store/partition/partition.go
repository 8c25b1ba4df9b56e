// Package partition divides a dataset into parts, so that the disk of each machine holds the part
// of its own worker and nothing else. Start at [Write].
//
// A part is a sealed dataset: see [store.Part]. Workers that train on parts ask each other for
// neighbour lists and rows of features. Which nodes a part gets is decided before the first byte is
// written: by a fixed rule, by the file of another program, or greedily, in several passes over the
// neighbour lists. See [Options].
package partition

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/store"
)

// Options set the number of parts, which nodes they get, and where they go.
type Options struct {
	Parts int
	// By is one of ByRule and ByGreedy, or has files with a part number a line, in the order of the
	// original ids: one file, or, where there are several node types, TYPE=FILE for each. Default
	// ByRule.
	//
	// All but ByRule number the nodes anew: each part owns a range of the nodes of each type.
	By []string
	// Memory is the most that ranges may take, in bytes; 0: any.
	Memory int64
	// Progress, if not nil, is called now and then: a stage has done so many of total nodes or
	// rows.
	Progress func(stage string, done, total int64, unit string)
	FS       vfs.FS // file system of the parts; default the disk
}

// How nodes are dealt out among parts: by a fixed rule, or greedily, each to a part that has many
// of its neighbours.
const (
	ByRule   = store.ByRule
	ByGreedy = "ldg"
)

// Report counts what was written. Its JSON keys are stable.
type Report struct {
	Path  string `json:"path"`
	Of    string `json:"of"` // the seal of the whole, which is renumbered where Owner is "range"
	Parts int    `json:"parts"`
	By    string `json:"by"`    // rule, ldg or file
	Owner string `json:"owner"` // rule or range
	// CrossEdges is the share of the edges whose source has another owner than their destination.
	CrossEdges float64 `json:"cross_edges"`
	Nodes      Load    `json:"nodes"`
	Edges      Load    `json:"edges"`
	Bytes      Load    `json:"bytes"` // on disk
	// TrainNodes counts the nodes that train, by the first split of each type.
	TrainNodes Load     `json:"train_nodes"`
	Skipped    []string `json:"skipped"` // what parts do not have
	Notes      []string `json:"notes"`
	Seconds    float64  `json:"seconds"`
}

// Load counts something in all parts and in the largest.
type Load struct {
	Total   int64 `json:"total"` // of all parts
	Largest int64 `json:"largest"`
	Part    int   `json:"part"` // with the largest
}

// add counts n of a part.
func (l *Load) add(part int, n int64) {
	if l.Total += n; n > l.Largest {
		l.Largest, l.Part = n, part
	}
}

// Skew returns the largest load over the mean; 1 without any load.
func (l Load) Skew(parts int) float64 {
	if l.Total == 0 {
		return 1
	}
	return float64(l.Largest) * float64(parts) / float64(l.Total)
}

// together is the largest number of parts that one pass over the whole writes. Each takes some MiB
// of buffers and some open files.
const together = 32

const (
	partialSuffix = ".partial"
	lockName      = "lock"
)

// Write divides ds into parts in the directory out, which must not exist: all parts, or on an error
// none. It works in OUT.partial, and clears what an interrupted Write left there. It reads ds on
// the calling goroutine, and does not close it.
func Write(ctx context.Context, ds *store.Dataset, out string, o Options) (_ *Report, err error) {
	start, m := time.Now(), ds.Manifest()
	o.FS = cmp.Or(o.FS, vfs.Default)
	switch {
	case o.Parts < 2 || o.Parts > store.MaxParts:
		return nil, fmt.Errorf("{parts} %d: 2 to %d parts", o.Parts, store.MaxParts)
	case m.Part != nil:
		return nil, fmt.Errorf("%s: it is part %d of %d already; divide the whole",
			ds.Path(), m.Part.Index, m.Part.Parts)
	case len(m.Streams) > 0:
		return nil, fmt.Errorf("%s: it has a stream of events, and streams cannot be divided", ds.Path())
	}
	most := int64(0) // nodes of a type
	for _, t := range m.NodeTypes {
		most = max(most, t.Count)
	}
	if most < int64(o.Parts) {
		return nil, fmt.Errorf("{parts} %d: %s has %d nodes; give at most as many parts", o.Parts, ds.Path(), most)
	}
	for i, t := range m.Tables {
		if rows := m.RowsOf(i); rows > math.MaxUint32 {
			return nil, fmt.Errorf("%s: table %s has %d rows; partition takes tables of at most %d",
				ds.Path(), t.Name, rows, uint32(math.MaxUint32))
		}
	}
	out = filepath.Clean(out)
	w := &writer{Options: o, ctx: ctx, ds: ds, m: m, dir: out + partialSuffix}
	if len(o.By) == 0 {
		w.By = []string{ByRule}
	}
	w.report = &Report{Path: out, Parts: o.Parts, Skipped: []string{}, Notes: []string{}}
	files, err := w.checkBy()
	if err != nil {
		return nil, err
	}
	if err := w.begin(out); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.end(err)) }()
	if err := w.clear(); err != nil {
		return nil, err
	}
	if err := w.checkSpace(out); err != nil {
		return nil, err
	}
	w.skip()
	if err := store.Guard(func() error { return w.number(files) }); err != nil {
		return nil, err
	}
	for first := 0; first < o.Parts; first += together {
		if err := w.some(first, min(first+together, o.Parts)); err != nil {
			return nil, err
		}
	}
	if w.edges > 0 {
		w.report.CrossEdges = float64(w.cross) / float64(w.edges)
	}
	if err := w.publish(out); err != nil {
		return nil, err
	}
	w.report.Seconds = time.Since(start).Seconds()
	return w.report, nil
}

// writer is a Write under way.
type writer struct {
	Options
	ctx          context.Context
	ds           *store.Dataset
	m            *store.Manifest
	numbering    *numbering
	dir          string // that is written
	lock         io.Closer
	report       *Report
	edges, cross int64
}

// begin makes and locks the directory.
func (w *writer) begin(out string) error {
	if err := w.refuseExisting(out); err != nil {
		return err
	}
	parent := filepath.Dir(out)
	if _, err := w.FS.Stat(parent); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: no such directory; make it first", parent)
	}
	if names, err := w.FS.List(w.dir); err == nil {
		for _, name := range names {
			if !ours(name) {
				return fmt.Errorf("%s: it holds %s, which gnnstore partition did not write; "+
					"move the directory away or choose another name", w.dir, name)
			}
		}
	}
	if err := w.FS.MkdirAll(w.dir, 0o777); err != nil {
		return err
	}
	lock, err := w.FS.Lock(w.FS.PathJoin(w.dir, lockName))
	if pathError := (*fs.PathError)(nil); errors.As(err, &pathError) {
		_ = w.FS.Remove(w.dir) // succeeds only if the directory is empty
		return fmt.Errorf("%s: %w", w.dir, err)
	} else if err != nil {
		return fmt.Errorf("%s: another partition is writing it", w.dir)
	}
	w.lock = lock
	return nil
}

// ours reports whether a Write makes such a name.
func ours(name string) bool {
	if name == lockName {
		return true
	}
	for i := range store.MaxParts {
		if part := store.PartPath("", i); name == part || name == part+partialSuffix {
			return true
		}
	}
	return false
}

// clear removes everything but the lock.
func (w *writer) clear() error {
	names, err := w.FS.List(w.dir)
	for _, name := range names {
		if err == nil && name != lockName {
			err = w.FS.RemoveAll(w.FS.PathJoin(w.dir, name))
		}
	}
	return err
}

// end removes the directory if the work failed, and unlocks.
func (w *writer) end(failed error) error {
	var err error
	if failed != nil {
		err = w.FS.RemoveAll(w.dir)
	}
	return errors.Join(err, w.lock.Close())
}

// publish gives the directory its name, once all parts are on disk.
func (w *writer) publish(out string) error {
	if err := w.ctx.Err(); err != nil {
		return err
	}
	if err := w.refuseExisting(out); err != nil {
		return err
	}
	if err := w.syncDir(w.dir); err != nil {
		return err
	}
	if err := w.FS.Rename(w.dir, out); err != nil {
		return err
	}
	// The lock travelled with the directory, so that nobody could clear it before the rename.
	err := w.syncDir(w.FS.PathDir(out))
	if err == nil {
		err = w.FS.Remove(w.FS.PathJoin(out, lockName))
	}
	return errors.Join(err, w.syncDir(out))
}

// refuseExisting returns an error if something has the name out, a broken link for example.
func (w *writer) refuseExisting(out string) (err error) {
	if vfs.Root(w.FS) == vfs.Default {
		_, err = os.Lstat(out)
	} else {
		_, err = w.FS.Stat(out)
	}
	if err == nil {
		return fmt.Errorf("%s: it exists already; choose another name", out)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

func (w *writer) syncDir(path string) error {
	d, err := w.FS.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// checkSpace compares the size of the parts with the free space. It passes where the file system
// does not report its space.
func (w *writer) checkSpace(out string) error {
	need := uint64(w.m.Bytes()) + uint64(w.Parts)*(64<<10)
	for _, l := range w.m.Labels {
		need += uint64(l.Values.Bytes) * uint64(w.Parts-1)
	}
	for _, s := range w.m.Splits {
		need += uint64(s.Train.Bytes+s.Valid.Bytes+s.Test.Bytes) * uint64(w.Parts-1)
	}
	for i := range w.m.Relations {
		need += uint64(w.m.Relations[i].HeldBytes()) * uint64(w.Parts-1)
	}
	usage, err := w.FS.GetDiskUsage(filepath.Dir(out))
	if errors.Is(err, vfs.ErrUnsupported) || err == nil && usage.AvailBytes >= need {
		return nil
	}
	if err != nil {
		return fmt.Errorf("space left for %s: %w", out, err)
	}
	return fmt.Errorf("%s: the parts need about %d bytes and %d are free; make room, or write them elsewhere",
		out, need, usage.AvailBytes)
}

// skip notes what parts do not have.
func (w *writer) skip() {
	note := func(format string, args ...any) {
		w.report.Skipped = append(w.report.Skipped, fmt.Sprintf(format, args...))
	}
	for _, t := range w.m.NodeTypes {
		if t.Names != nil {
			note("names of type %s: they stay with the whole", t.Name)
		}
	}
}

// some writes the parts from lo to hi in one pass over the whole.
func (w *writer) some(lo, hi int) (err error) {
	p := &pass{writer: w, lo: lo}
	defer func() {
		for _, part := range p.parts {
			if err != nil {
				err = errors.Join(err, part.Abort())
			}
		}
	}()
	for i := lo; i < hi; i++ {
		part, err := store.Create(store.PartPath(w.dir, i), store.WriterOptions{FS: w.FS})
		if err != nil {
			return err
		}
		p.parts = append(p.parts, part)
	}
	for _, step := range []func() error{p.nodes, p.relations, p.held, p.tables, p.labels, p.encodings} {
		if err := store.Guard(step); err != nil {
			return err
		}
	}
	n := w.numbering
	about := store.Part{Of: n.seal, Parts: w.Parts, Owner: n.kind(), Ends: n.ends, Edges: []int64{}, Rows: []int64{}}
	for i := range w.m.Relations {
		about.Edges = append(about.Edges, w.m.Relations[i].Edges)
	}
	for i := range w.m.Tables {
		about.Rows = append(about.Rows, w.m.RowsOf(i))
	}
	provenance := w.m.Provenance
	for i, part := range p.parts {
		of := about
		of.Index = lo + i
		provenance.Notes = append(w.m.Provenance.Notes[:len(w.m.Provenance.Notes):len(w.m.Provenance.Notes)],
			fmt.Sprintf("part %d of %d of %s, with seal %s, by %s", of.Index, w.Parts, w.ds.Path(), w.m.Seal, w.report.By))
		sealed, err := part.Seal(store.Manifest{
			Name: w.m.Name, Order: w.numbering.order(w.m), Provenance: provenance, Part: &of,
		})
		if err != nil {
			return err
		}
		w.count(of.Index, sealed)
	}
	return nil
}

// count adds a part to the report.
func (w *writer) count(index int, m *store.Manifest) {
	nodes, edges := int64(0), int64(0)
	for i := range m.NodeTypes {
		nodes += m.StoredNodes(i)
	}
	for _, r := range m.Relations {
		edges += r.Edges
	}
	w.report.Nodes.add(index, nodes)
	w.report.Edges.add(index, edges)
	w.report.Bytes.add(index, m.Bytes())
}

// progress reports a stage. Its error is ctx's.
func (w *writer) progress(stage string, done, total int64, unit string) error {
	if w.Progress != nil {
		w.Progress(stage, done, total, unit)
	}
	return w.ctx.Err()
}
