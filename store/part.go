package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Part describes a dataset that is one of several parts of a whole. It stores neighbour lists,
// columns of edges, original ids and features only for the nodes that it owns, in ascending order.
// A rule deals out the rows of edge tables. NodeType.Count, the ids in neighbour lists, labels,
// splits and held-out edges are the same as in the whole.
//
// So an index into a Graph's lists, an IDs or a Features is a row of the part: see [Part.Nodes].
type Part struct {
	Of    string `json:"of"`    // the seal of the whole
	Index int    `json:"index"` // of this part, from 0
	Parts int    `json:"parts"`
	Owner string `json:"owner"` // how nodes were dealt out: ByRule, or ByRange
	// Ends has the ends of the parts' ranges, by node type: see [OwnersByRange]. Nil by rule.
	Ends [][]NodeID `json:"ends,omitempty"`
	// Edges has the whole's edges by relation, and Rows the rows of the whole's tables, in the
	// order of the manifest.
	Edges []int64 `json:"edges"`
	Rows  []int64 `json:"rows"`
}

// MaxParts bounds the parts of a dataset.
const MaxParts = 4096

// PartPath returns the path of a part in the directory of all parts.
func PartPath(dir string, index int) string {
	return filepath.Join(dir, fmt.Sprintf("part-%d.gnn", index))
}

// StoredNodes returns how many nodes of type i the dataset has: all of them, or its part of them.
func (m *Manifest) StoredNodes(i int) int64 { return m.Part.Nodes(i).Count(m.NodeTypes[i].Count) }

// own returns what the dataset owns of a node type.
func (m *Manifest) own(nodeType string) Own {
	return m.Part.Nodes(slices.IndexFunc(m.NodeTypes, func(t NodeType) bool { return t.Name == nodeType }))
}

// EdgesOf returns the number of edges of relation i in the whole.
func (m *Manifest) EdgesOf(i int) int64 {
	if m.Part == nil {
		return m.Relations[i].Edges
	}
	return m.Part.Edges[i]
}

// RowsOf returns the number of rows of table i in the whole.
func (m *Manifest) RowsOf(i int) (n int64) {
	if m.Part != nil {
		return m.Part.Rows[i]
	}
	for _, s := range m.Tables[i].Shards {
		n += s.Rows
	}
	return n
}

// Whole returns the seal of the dataset, or of the whole that it is a part of.
func (m *Manifest) Whole() string {
	if m.Part == nil {
		return m.Seal
	}
	return m.Part.Of
}

// Place returns the path that users give for the dataset: its own, or the directory of the parts.
func (d *Dataset) Place() string {
	if d.manifest.Part == nil {
		return d.path
	}
	return filepath.Dir(filepath.Clean(d.path))
}

// check returns every error in a manifest's part.
func (p *Part) check(m *Manifest) error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf("part: "+format, args...)) }
	if p.Parts < 1 || p.Parts > MaxParts || p.Index < 0 || p.Index >= p.Parts {
		fail("part %d of %d", p.Index, p.Parts)
		return errors.Join(errs...) // rows cannot be counted
	}
	switch {
	case p.Owner == ByRange && len(p.Ends) == len(m.NodeTypes):
		for i := range m.NodeTypes {
			t := &m.NodeTypes[i]
			if err := checkEnds(p.Ends[i], p.Parts, t.Count); err != nil {
				fail("node type %s: %w", t.Name, err)
			}
		}
	case p.Owner == ByRange:
		fail("ranges of %d node types; the manifest has %d", len(p.Ends), len(m.NodeTypes))
	case p.Owner != ByRule:
		fail("owners by %q; this build knows %s and %s", p.Owner, ByRule, ByRange)
	case p.Ends != nil:
		fail("owners by %s, and ranges as well", ByRule)
	}
	if len(p.Of) != 32 || strings.Trim(p.Of, "0123456789abcdef") != "" {
		fail("the seal of the whole is %q", p.Of)
	}
	if len(p.Edges) != len(m.Relations) || len(p.Rows) != len(m.Tables) {
		fail("counts for %d relations and %d tables; the manifest has %d and %d",
			len(p.Edges), len(p.Rows), len(m.Relations), len(m.Tables))
		return errors.Join(errs...)
	}
	for i := range m.Relations {
		r := &m.Relations[i]
		if p.Edges[i] < r.Edges {
			fail("relation %s: %d edges, more than the whole's %d", r.Key(), r.Edges, p.Edges[i])
		}
	}
	for i, rows := range p.Rows {
		if rows < 0 {
			fail("table %s: %d rows in the whole", m.Tables[i].Name, rows)
		}
	}
	for i := range m.NodeTypes {
		if t := &m.NodeTypes[i]; t.Names != nil {
			fail("node type %s: a part cannot have names", t.Name)
		}
	}
	if len(m.Streams) > 0 {
		fail("a part cannot have streams")
	}
	return errors.Join(errs...)
}

// IsParts reports whether dir holds something named part-*.gnn and has no manifest.
func IsParts(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, manifestName))
	return err != nil && len(partsIn(dir)) > 0
}

// partsIn returns the paths of the parts in a directory.
func partsIn(dir string) (paths []string) {
	entries, _ := os.ReadDir(dir) // of one that cannot be read, Open says why
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "part-") && strings.HasSuffix(e.Name(), ".gnn") {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths
}

// CountParts returns the number of parts that the whole was divided into, as the first part found
// in dir records it.
func CountParts(dir string) (int, error) {
	if len(partsIn(dir)) == 0 {
		return 0, fmt.Errorf("%s: no part-0.gnn, nor another part", dir)
	}
	d, err := OpenOne(dir)
	if err != nil {
		return 0, err
	}
	defer d.Close()
	if d.manifest.Part == nil {
		return 0, fmt.Errorf("%s: %s", d.path, notPart)
	}
	return d.manifest.Part.Parts, nil
}

const notPart = "it is a whole dataset, not a part; gnnstore partition makes parts"

// OpenOne is Open, or for a directory of parts it opens the first part found there.
func OpenOne(path string) (*Dataset, error) {
	if IsParts(path) {
		path = partsIn(path)[0]
	}
	return Open(path)
}

// OpenPart opens part index in a directory of parts, for one of so many workers.
func OpenPart(dir string, index, workers int) (*Dataset, error) {
	path := PartPath(dir, index)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: missing; worker %d of %d reads it, so copy it to this machine", path, index, workers)
	}
	d, err := Open(path)
	if err != nil {
		return nil, err
	}
	switch part := d.manifest.Part; {
	case part == nil:
		err = fmt.Errorf("%s: %s", path, notPart)
	case part.Index != index:
		err = fmt.Errorf("%s: it is part %d of %d, but is named as another; rename it to part-%d.gnn",
			path, part.Index, part.Parts, part.Index)
	case part.Parts != workers:
		err = fmt.Errorf("%s: it is one of %d parts, and there are %d workers; give each part a worker: "+
			"{dist} local:%d, or mpi:%d", path, part.Parts, workers, part.Parts, part.Parts)
	}
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}
