package export

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Format selects the files that a dataset is written as.
type Format string

const (
	NPY       Format = "npy"
	GraphBolt Format = "graphbolt"
	Parquet   Format = "parquet"
)

// Options select what to write; the zero value writes everything as npy.
type Options struct {
	Format   Format // default NPY, or Parquet of a dataset whose edges are events
	Sample   int64  // nodes of a sample, of all types together; default 0: the whole dataset
	Seed     uint64 // of the sample
	Progress func(ingest.Progress)
	FS       vfs.FS // where the files go; default the disk
}

// Validate reports every problem, a line each.
func (o *Options) Validate() error {
	var errs []error
	if !slices.Contains([]Format{"", NPY, GraphBolt, Parquet}, o.Format) {
		errs = append(errs, fmt.Errorf("{format} %q: choose npy, graphbolt or parquet", o.Format))
	}
	if o.Sample < 0 {
		errs = append(errs, fmt.Errorf("{sample} %d: a number of nodes, or 0 for all", o.Sample))
	}
	return errors.Join(errs...)
}

// Report counts what was written.
type Report struct {
	Path      string           `json:"path"`
	Format    Format           `json:"format"`
	Seal      string           `json:"seal"` // of the dataset
	NodeTypes []NodeTypeReport `json:"node_types"`
	Relations []RelationReport `json:"relations"`
	Streams   []StreamReport   `json:"streams,omitempty"`
	Skipped   []string         `json:"skipped"`
	Files     int              `json:"files"`
	Bytes     int64            `json:"bytes"`
	Seconds   float64          `json:"seconds"`
}

// NodeTypeReport counts the nodes of a type that were written, and has their numbering.
type NodeTypeReport struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	Of    int64  `json:"of"`
	IDs   string `json:"ids"` // "rows", or the file or column that has the original ids
}

// RelationReport counts the edges of a relation that were written.
type RelationReport struct {
	Name  string `json:"name"` // src__name__dst
	Edges int64  `json:"edges"`
	Of    int64  `json:"of"`
}

// exporter is one Export under way.
type exporter struct {
	Options
	ctx    context.Context
	ds     *store.Dataset
	m      *store.Manifest
	dir    string   // that is written
	dirs   []string // it and those in it that were made
	types  []*numbering
	report *Report
}

// Export writes ds to the folder out, which must not exist: whole, or on an error not at all. It
// borrows ds, whose maps it reads on the calling goroutine only.
func Export(ctx context.Context, ds *store.Dataset, out string, o Options) (*Report, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	start := time.Now()
	o.FS = cmp.Or(o.FS, vfs.Default)
	out = filepath.Clean(out)
	e := &exporter{Options: o, ctx: ctx, ds: ds, m: ds.Manifest(), dir: out + ".partial"}
	e.report = &Report{
		Path: out, Seal: e.m.Seal,
		NodeTypes: []NodeTypeReport{}, Relations: []RelationReport{}, Skipped: []string{}, // empty, not absent, in JSON
	}
	if err := e.settle(); err != nil {
		return nil, err
	}
	if _, err := e.FS.Stat(out); err == nil {
		return nil, fmt.Errorf("%s: it exists already; choose another name", out)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	parent := filepath.Dir(out)
	if _, err := e.FS.Stat(parent); errors.Is(err, fs.ErrNotExist) { // fail before the long work
		return nil, fmt.Errorf("%s: no such directory; make it first", parent)
	}
	if err := e.alone(); err != nil {
		return nil, err
	}
	err := store.Guard(func() error {
		for _, step := range []func() error{e.check, e.number, e.count, e.checkSpace} {
			if err := step(); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := e.alone(); err != nil { // another may have begun meanwhile
		return nil, err
	}
	if err := e.FS.MkdirAll(e.dir, 0o777); err != nil {
		return nil, err
	}
	e.dirs = []string{e.dir}
	if err := e.writeAll(out); err != nil {
		if rerr := e.FS.RemoveAll(e.dir); rerr != nil {
			err = fmt.Errorf("%w; clearing up failed as well: %w", err, rerr)
		}
		return nil, err
	}
	e.report.Seconds = time.Since(start).Seconds()
	return e.report, nil
}

// alone refuses to write where another export does, or was interrupted.
func (e *exporter) alone() error {
	if _, err := e.FS.Stat(e.dir); err == nil {
		return fmt.Errorf("%s: an export was interrupted, or another is writing it; remove it if no export runs", e.dir)
	}
	return nil
}

// writeAll fills the partial folder and gives it its name.
func (e *exporter) writeAll(out string) error {
	write := map[Format]func() error{NPY: e.writeNPY, GraphBolt: e.writeGraphBolt, Parquet: e.writeParquet}[e.Format]
	if err := store.Guard(write); err != nil {
		return err
	}
	if err := e.writeEncodings(); err != nil {
		return err
	}
	if err := e.ctx.Err(); err != nil {
		return err
	}
	for _, dir := range slices.Backward(e.dirs) {
		if err := syncDir(e.FS, dir); err != nil {
			return err
		}
	}
	if err := e.FS.Rename(e.dir, out); err != nil {
		return err
	}
	return syncDir(e.FS, e.FS.PathDir(out))
}

// syncDir makes the names in a folder durable.
func syncDir(on vfs.FS, path string) error {
	d, err := on.OpenDir(path)
	if err != nil {
		return err
	}
	return cmp.Or(d.Sync(), d.Close())
}

func (e *exporter) skip(format string, args ...any) {
	e.report.Skipped = append(e.report.Skipped, fmt.Sprintf(format, args...))
}

// progress reports a stage now and then; each step of it is a block of some MiB.
func (e *exporter) progress(stage string, done, total int64, unit string) error {
	if e.Progress != nil {
		e.Progress(ingest.Progress{Stage: stage, Done: done, Total: total, Unit: unit})
	}
	return e.ctx.Err()
}

// check verifies, as verify does, that the sections to be read still match their checksums and
// contents. Of a sample's feature rows, which may be few of a large table, only the rows that it
// has are checked, page by page as they are read.
func (e *exporter) check() error {
	all := e.Sample == 0 || e.Sample >= e.nodes()
	wanted := func(path string) bool { return all || !strings.HasPrefix(path, "feat/") }
	return e.ds.CheckParts(e.ctx, wanted, func(done, total int64) {
		_ = e.progress("check", done, total, "bytes") // its error is ctx's, which ends the check
	})
}

// checkSpace compares the size of the output with the free space. A file system that does not tell
// is believed to have it.
func (e *exporter) checkSpace() error {
	need := 1<<20 + e.streamBytes()
	for i, t := range e.m.NodeTypes {
		need += 16 * e.types[i].count
		for _, table := range e.m.Tables {
			if table.NodeType == t.Name {
				need += e.types[i].count * table.Dim * int64(table.Elem.Size())
			}
		}
		for _, l := range e.m.Labels {
			if l.NodeType == t.Name {
				need += e.types[i].count * max(8, l.Classes)
			}
		}
	}
	for i, r := range e.m.Relations {
		edges := e.report.Relations[i].Edges
		need += 16 * edges
		if s := r.EdgeSplit; s != nil {
			need += 16*edges + 6*heldBytes(s)
		}
		for _, c := range r.Columns {
			need += edges * int64(c.Elem.Size())
		}
		for _, table := range e.m.Tables {
			if table.Relation == r.Key() {
				need += edges * table.Dim * int64(table.Elem.Size())
			}
		}
	}
	free, err := freeFor(e.FS, e.report.Path)
	if err == nil && uint64(need) > free {
		err = fmt.Errorf("%s: the export needs about %d bytes and %d are free; make room, write it elsewhere, or take a sample",
			e.report.Path, need, free)
	}
	return err
}

// freeFor returns the bytes that are free for out.
func freeFor(on vfs.FS, out string) (uint64, error) {
	usage, err := on.GetDiskUsage(filepath.Dir(out))
	if errors.Is(err, vfs.ErrUnsupported) {
		return math.MaxUint64, nil
	}
	if err != nil {
		return 0, fmt.Errorf("space left for %s: %w", out, err)
	}
	return usage.AvailBytes, nil
}

// manifest is manifest.json: what the other files are.
type manifest struct {
	Format    Format             `json:"format"`
	Name      string             `json:"name"`
	Seal      string             `json:"dataset_seal"`
	Sample    *sampleOf          `json:"sample,omitempty"`
	NodeTypes []manifestType     `json:"node_types"`
	Relations []manifestRelation `json:"relations"`
	Streams   []manifestStream   `json:"streams,omitempty"`
	Notes     []string           `json:"notes"`
}

type sampleOf struct {
	Nodes int64  `json:"nodes"`
	Seed  uint64 `json:"seed"`
}

type manifestType struct {
	NodeTypeReport
	Tables map[string]string        `json:"tables,omitempty"` // name to file or column
	Labels map[string]manifestLabel `json:"labels,omitempty"`
	Splits map[string]string        `json:"splits,omitempty"` // name to files, * being train, valid and test, or column
	Names  string                   `json:"names,omitempty"`
}

type manifestLabel struct {
	File       string   `json:"file"`
	Classes    int64    `json:"classes"`
	Multi      bool     `json:"multi"`
	Numbers    bool     `json:"numbers,omitempty"`
	ClassNames []string `json:"class_names,omitempty"`
}

type manifestRelation struct {
	RelationReport
	Src     string            `json:"src"`
	Dst     string            `json:"dst"`
	Reverse string            `json:"reverse_of,omitempty"` // the relation that has the same edges the other way round
	File    string            `json:"file"`
	Columns map[string]string `json:"columns,omitempty"`
	Tables  map[string]string `json:"tables,omitempty"`
	// EdgeSplit are the edges that are held out, and so not in File.
	EdgeSplit *manifestEdgeSplit `json:"edge_split,omitempty"`
}

// newManifest has all but the files.
func (e *exporter) newManifest() *manifest {
	m := &manifest{Format: e.Format, Name: e.m.Name, Seal: e.m.Seal, Notes: []string{
		"edges are messages from source to destination, grouped by destination",
		"missing labels are -1",
	}}
	if e.Sample > 0 {
		m.Sample = &sampleOf{e.Sample, e.Seed}
	}
	for i := range e.m.NodeTypes {
		m.NodeTypes = append(m.NodeTypes, manifestType{
			NodeTypeReport: e.report.NodeTypes[i], Tables: map[string]string{}, Labels: map[string]manifestLabel{}, Splits: map[string]string{},
		})
	}
	for i, r := range e.m.Relations {
		m.Relations = append(m.Relations, manifestRelation{
			RelationReport: e.report.Relations[i], Src: r.Src, Dst: r.Dst, Reverse: r.ReverseOf, Columns: map[string]string{}, Tables: map[string]string{},
		})
	}
	return m
}

func (e *exporter) writeManifest(m *manifest) error {
	b, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return e.writeFile("manifest.json", func(f *file) error { return f.write(append(b, '\n')) })
}

// writeEncodings copies the encodings of the dataset, if it has some.
func (e *exporter) writeEncodings() error {
	text, err := e.ds.EncodingsText()
	if text == nil || err != nil {
		return err
	}
	return e.writeFile("encodings.json", func(f *file) error { return f.write(text) })
}
