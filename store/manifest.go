package store

import (
	"bytes"
	"cmp"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/zeebo/xxh3"
)

const (
	manifestName = "manifest.json"
	formatName   = "gnnstore"
	// maxManifest bounds the bytes that Open reads; 1 PB in shards of 1 GiB need about 250 MB.
	maxManifest = 1 << 28
)

// Manifest describes a dataset. It is written once, when the dataset is sealed; readers treat it as
// read-only.
type Manifest struct {
	Format     string     `json:"format"`
	Version    int        `json:"version"`
	Name       string     `json:"name"`
	Created    time.Time  `json:"created"`
	Provenance Provenance `json:"provenance"`
	Order      string     `json:"order"` // how nodes were numbered: "access", "degree" or "original"
	NodeTypes  []NodeType `json:"node_types"`
	Relations  []Relation `json:"relations"`
	// Shared are the sections that relations with Lists share, by their two types.
	Shared  []Shared `json:"shared,omitempty"`
	Streams []Stream `json:"streams,omitempty"`
	Tables  []Table  `json:"tables"`
	Labels  []Label  `json:"labels"`
	Splits  []Split  `json:"splits"`
	// Encodings is the file that describes the columns of tables; nil in datasets of earlier
	// builds.
	Encodings *Blob `json:"encodings,omitempty"`
	// Part is set if the dataset is a part of another.
	Part *Part `json:"part,omitempty"`
	// Seal is the dataset's identity: the XXH3-128 of everything above except Created and
	// Provenance. That includes every section's checksum and shape, so equal seals mean equal data.
	Seal string `json:"seal"`
	// Check is the XXH3-64 of the whole manifest with Check empty.
	Check string `json:"check"`
}

// Provenance records where a dataset came from, for people. It is not part of the seal.
type Provenance struct {
	Tool    string            `json:"tool"`
	Source  string            `json:"source"`
	Options map[string]string `json:"options,omitempty"`
	// Counts records what ingest met: "edges_read", "self_loops", "duplicates_merged", …
	Counts map[string]int64 `json:"counts,omitempty"`
	Notes  []string         `json:"notes,omitempty"`
}

// Keys of Provenance.Counts, set if there is one relation and it joins nodes of one type.
// PairsCompared counts the pairs of nodes that ingest looked at, perhaps a sample; PairsBothWays
// counts the pairs among them that have edges in both directions.
const (
	PairsCompared = "pairs_compared"
	PairsBothWays = "pairs_both_ways"
)

// NodeType is one kind of node: Count nodes, numbered 0…Count-1 as stored.
type NodeType struct {
	Name  string `json:"name"`
	Count int64  `json:"count"`
	// Original maps a stored id to its original id, one I64 a node. Order lists the stored ids by
	// ascending original id.
	Original File `json:"original"`
	Order    File `json:"order"`
	// Names holds the texts that users know the nodes by, if they do. Original then holds each
	// node's row in the source.
	Names *Names `json:"names,omitempty"`
}

// Names lists the sorted tables of the names of nodes. Each list is one sorted sequence, cut into
// tables: ByName maps texts to stored ids, ByNode stored ids to texts.
type Names struct {
	ByName []Blob `json:"by_name"`
	ByNode []Blob `json:"by_node"`
}

// lists returns the tables of either order, with the word that stands for the order in their paths.
func (n *Names) lists() [2]struct {
	by    string
	blobs []Blob
} {
	return [2]struct {
		by    string
		blobs []Blob
	}{{byName, n.ByName}, {byNode, n.ByNode}}
}

// Blob is a file without a header page, in a format of its own.
type Blob struct {
	Path  string `json:"path"`
	Bytes int64  `json:"bytes"`
	XXH3  string `json:"xxh3"` // of the whole file
}

// Relation is one kind of edge, stored as in-neighbours of Dst nodes.
type Relation struct {
	Src       string `json:"src"`
	Name      string `json:"name"`
	Dst       string `json:"dst"`
	Edges     int64  `json:"edges"`
	Symmetric bool   `json:"symmetric"` // whenever there is an edge u→v, there is v→u
	// ReverseOf is the Key of a relation that has the same edges reversed, with the same
	// multiplicities. If this relation has a column "id" and no table of its own, its ids are rows
	// of the other's tables.
	ReverseOf string `json:"reverse_of,omitempty"`
	// Lists is set if the relation shares sections with others, and counts its neighbour lists: see
	// [Shared]. It then has neither Offsets nor Neighbors, and no Columns.
	Lists     *int64 `json:"lists,omitempty"`
	Offsets   File   `json:"offsets,omitzero"`   // U64, one more row than Dst has nodes
	Neighbors File   `json:"neighbors,omitzero"` // U32, ascending within a node
	// Blocks is only in a part: U64, for each block of the part's rows the number of its first edge
	// in the whole. A block is a run of rows whose nodes follow each other in the whole.
	Blocks *File `json:"blocks,omitempty"`
	// Columns are the values of the edges.
	Columns []Column `json:"columns,omitempty"`
	// EdgeSplit holds the edges that were held out. They appear in none of the fields above.
	EdgeSplit *EdgeSplit `json:"edge_split,omitempty"`
}

// Column is one value for every edge: a section with one element an edge, in the order of
// Neighbors.
type Column struct {
	Name   string `json:"name"`
	Elem   Elem   `json:"elem"` // 1, 4 or 8 bytes wide; never F64
	Values File   `json:"values"`
}

// EdgeID is the column that holds the edge's number as it was read, U32 or U64.
const EdgeID = "id"

// column returns the index of the column with this name.
func (r *Relation) column(name string) (i int, ok bool) {
	i = slices.IndexFunc(r.Columns, func(c Column) bool { return c.Name == name })
	return i, i >= 0
}

// Key returns the relation's name in paths and messages: src__name__dst.
func (r *Relation) Key() string { return r.Src + "__" + r.Name + "__" + r.Dst }

// Table is a feature matrix of Dim columns. All shards but the last have equally many rows. A table
// has one owner: with NodeType, row i belongs to node i; with Relation, to the edges whose column
// "id" is i; with Stream, to event i.
type Table struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type,omitempty"`
	Relation string `json:"relation,omitempty"` // a Key
	Stream   string `json:"stream,omitempty"`   // its name
	Elem     Elem   `json:"elem"`
	Dim      int64  `json:"dim"`
	Shards   []File `json:"shards"`
}

// Owner returns the name of the node type, relation or stream that the rows belong to.
func (t *Table) Owner() string { return cmp.Or(t.Stream, t.Relation, t.NodeType) }

// Label is a prediction target. Values is I32 with one column (the class, -1 missing); with Multi,
// U8 with Classes columns (0 or 1, 255 missing); with Numbers, F32 with one column (NaN missing).
type Label struct {
	Name       string   `json:"name"`
	NodeType   string   `json:"node_type"`
	Classes    int64    `json:"classes"`
	Multi      bool     `json:"multi"`
	Numbers    bool     `json:"numbers,omitempty"` // the target is a number for each node, not a class
	ClassNames []string `json:"class_names,omitempty"`
	Values     File     `json:"values"`
}

// Split is a named division of the nodes of NodeType. Each part is a U32 section of stored ids,
// strictly ascending.
type Split struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type"`
	Train    File   `json:"train"`
	Valid    File   `json:"valid"`
	Test     File   `json:"test"`
}

// parts returns the sections of train, valid and test, in this order.
func (s *Split) parts() [3]*File { return [3]*File{&s.Train, &s.Valid, &s.Test} }

// Files returns every section, in the order of the manifest.
func (m *Manifest) Files() []*File {
	var fs []*File
	for i := range m.NodeTypes {
		fs = append(fs, &m.NodeTypes[i].Original, &m.NodeTypes[i].Order)
	}
	for i := range m.Relations {
		if m.Relations[i].Lists == nil {
			fs = append(fs, &m.Relations[i].Offsets, &m.Relations[i].Neighbors)
		}
		if f := m.Relations[i].Blocks; f != nil {
			fs = append(fs, f)
		}
		for j := range m.Relations[i].Columns {
			fs = append(fs, &m.Relations[i].Columns[j].Values)
		}
		if s := m.Relations[i].EdgeSplit; s != nil {
			fs = append(fs, s.files()...)
		}
	}
	for i := range m.Shared {
		fs = append(fs, m.Shared[i].files()...)
	}
	for i := range m.Streams {
		fs = append(fs, m.Streams[i].files()...)
	}
	for i := range m.Tables {
		for j := range m.Tables[i].Shards {
			fs = append(fs, &m.Tables[i].Shards[j])
		}
	}
	for i := range m.Labels {
		fs = append(fs, &m.Labels[i].Values)
	}
	for i := range m.Splits {
		fs = append(fs, &m.Splits[i].Train, &m.Splits[i].Valid, &m.Splits[i].Test)
	}
	return fs
}

// Blobs returns every file that is not a section, in the order of the manifest.
func (m *Manifest) Blobs() []*Blob {
	var bs []*Blob
	for i := range m.NodeTypes {
		if m.NodeTypes[i].Names == nil {
			continue
		}
		for _, l := range m.NodeTypes[i].Names.lists() {
			for j := range l.blobs {
				bs = append(bs, &l.blobs[j])
			}
		}
	}
	if m.Encodings != nil {
		bs = append(bs, m.Encodings)
	}
	return bs
}

// Bytes returns the size of all sections and blobs on disk.
func (m *Manifest) Bytes() int64 {
	var n int64
	for _, f := range m.Files() {
		n += f.Bytes
	}
	for _, b := range m.Blobs() {
		n += b.Bytes
	}
	return n
}

// encode returns the canonical text. decodeManifest accepts no other.
func (m *Manifest) encode() ([]byte, error) {
	b, err := json.MarshalIndent(m, "", "  ")
	return append(b, '\n'), err
}

func (m *Manifest) computeSeal() (string, error) {
	c := *m
	c.Created, c.Provenance, c.Seal, c.Check = time.Time{}, Provenance{}, "", ""
	b, err := c.encode()
	if err != nil {
		return "", err
	}
	sum := xxh3.Hash128(b).Bytes()
	return hex.EncodeToString(sum[:]), nil
}

func (m *Manifest) computeCheck() (string, error) {
	c := *m
	c.Check = ""
	b, err := c.encode()
	return hex64(xxh3.Hash(b)), err
}

func hex64(v uint64) string { return fmt.Sprintf("%016x", v) }

// seal fills Seal and Check and returns the bytes to write.
func (m *Manifest) seal() ([]byte, error) {
	var err error
	if m.Seal, err = m.computeSeal(); err != nil {
		return nil, err
	}
	if m.Check, err = m.computeCheck(); err != nil {
		return nil, err
	}
	return m.encode()
}

// decodeManifest decodes a manifest and trusts nothing in it: the text must be canonical, both
// hashes must match, every path must stay inside the dataset, and every size must fit the others.
func decodeManifest(b []byte) (*Manifest, error) {
	if len(b) > maxManifest {
		return nil, fmt.Errorf("larger than %d bytes", maxManifest)
	}
	var probe struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(b, &probe); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	if probe.Format != formatName {
		return nil, fmt.Errorf("format is %q, not %q", probe.Format, formatName)
	}
	if probe.Version < MinVersion || probe.Version > Version {
		return nil, fmt.Errorf("%w %d: this build reads versions %d to %d; use the gnnstore that wrote it, or a newer one",
			ErrVersion, probe.Version, MinVersion, Version)
	}
	m := new(Manifest)
	dec := json.NewDecoder(bytes.NewReader(b))
	dec.DisallowUnknownFields()
	if err := dec.Decode(m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	canon, err := m.encode()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canon, b) {
		return nil, errors.New("the text is not as it was written: it was edited or damaged")
	}
	if sum, err := m.computeCheck(); err != nil || sum != m.Check {
		return nil, fmt.Errorf("checksum is %s, and the file says %s: it was edited or damaged", sum, m.Check)
	}
	if sum, err := m.computeSeal(); err != nil || sum != m.Seal {
		return nil, fmt.Errorf("seal is %s, and the file says %s: it was edited or damaged", sum, m.Seal)
	}
	return m, m.validate()
}

// DecodeManifest decodes a manifest that another file holds, with any blanks in its JSON. It checks
// the manifest as Open does, its hashes included.
func DecodeManifest(text []byte) (*Manifest, error) {
	m := new(Manifest)
	if err := json.Unmarshal(text, m); err != nil {
		return nil, fmt.Errorf("not a manifest: %w", err)
	}
	canon, err := m.encode()
	if err != nil {
		return nil, err
	}
	return decodeManifest(canon)
}

// validate reports every problem at once.
func (m *Manifest) validate() error {
	var errs []error
	fail := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	if m.Name != CleanName(m.Name) {
		fail("the dataset's name is %q; it is one to %d letters, digits, _, - and ., not starting with a .", m.Name, maxPart)
	}
	if m.Order != "access" && m.Order != "degree" && m.Order != "original" {
		fail("nodes are numbered by %q; this build knows access, degree and original", m.Order)
	}
	if m.Part != nil {
		if err := m.Part.check(m); err != nil {
			return err
		}
	}
	seen := map[string]bool{}
	for _, f := range m.Files() {
		if !safePath(f.Path) {
			fail("path %q does not stay inside the dataset", f.Path)
			continue
		}
		if seen[f.Path] {
			fail("%s: listed twice", f.Path)
		}
		seen[f.Path] = true
		if err := f.check(m.Version); err != nil {
			fail("%s: %w", f.Path, err)
		}
	}
	taken := map[[2]string]bool{}
	// named checks the names that key is made of, and that no other thing of this kind has this
	// key.
	named := func(kind, key string, names ...string) {
		if err := checkNames(kind, names...); err != nil {
			errs = append(errs, err)
		}
		if taken[[2]string{kind, key}] {
			fail("%s %s: there are two of that name", kind, key)
		}
		taken[[2]string{kind, key}] = true
	}

	count, stored := map[string]int64{}, map[string]int64{}
	for i := range m.NodeTypes {
		t := &m.NodeTypes[i]
		named("node type", t.Name, t.Name)
		if t.Count < 0 || t.Count > math.MaxUint32 {
			fail("node type %s: %d nodes; ids are 32 bits, so at most %d", t.Name, t.Count, uint32(math.MaxUint32))
		}
		count[t.Name], stored[t.Name] = t.Count, m.StoredNodes(i)
		errs = append(errs,
			shape(&t.Original, t.originalPath(), I64, m.StoredNodes(i), 1),
			shape(&t.Order, t.orderPath(), U32, m.StoredNodes(i), 1))
		if t.Names == nil {
			continue
		}
		for _, l := range t.Names.lists() {
			for j, b := range l.blobs {
				if b.Path != t.namesPath(l.by, j) {
					fail("%q is named where %s belongs", b.Path, t.namesPath(l.by, j))
				}
				if b.Bytes <= 0 || b.Bytes > 1<<62 {
					fail("%s: %d bytes", b.Path, b.Bytes)
				}
			}
			if len(l.blobs) == 0 {
				fail("node type %s: no tables of names %s", t.Name, l.by)
			}
		}
	}
	nodes := func(what, typ string) int64 {
		n, ok := count[typ]
		if !ok {
			fail("%s: no node type %q", what, typ)
		}
		return n
	}
	relations := map[string]*Relation{}
	for i := range m.Relations {
		r := &m.Relations[i]
		named("relation", r.Key(), r.Src, r.Name, r.Dst)
		nodes("relation "+r.Key(), r.Src)
		nodes("relation "+r.Key(), r.Dst)
		if r.Lists == nil {
			errs = append(errs,
				shape(&r.Offsets, r.offsetsPath(), U64, stored[r.Dst]+1, 1),
				shape(&r.Neighbors, r.neighborsPath(), U32, r.Edges, 1))
		}
		errs = append(errs, r.checkColumns())
		relations[r.Key()] = r
		if r.Blocks != nil && m.Part == nil {
			fail("relation %s: only a part has blocks", r.Key())
		} else if r.Blocks != nil {
			errs = append(errs, shape(r.Blocks, r.blocksPath(), U64, m.own(r.Dst).Owners.blocks(stored[r.Dst]), 1))
		}
		for j := range r.Columns {
			c := &r.Columns[j]
			errs = append(errs, shape(&c.Values, r.columnPath(j), c.Elem, r.Edges, 1))
			if c.Values.First != 0 {
				fail("%s: first row %d of a section without shards", c.Values.Path, c.Values.First)
			}
		}
		errs = append(errs, r.checkEdgeSplit()...)
	}
	errs = append(errs, m.checkShared(count)...)
	for i := range m.Relations {
		r := &m.Relations[i]
		if r.ReverseOf == "" {
			continue
		}
		switch of := relations[r.ReverseOf]; {
		case of == nil:
			fail("relation %s: reverse of %q, and there is no such relation", r.Key(), r.ReverseOf)
		case of == r || of.ReverseOf != "" || of.Src != r.Dst || of.Dst != r.Src || m.Part == nil && of.Edges != r.Edges:
			fail("relation %s: %d edges, and it cannot be the reverse of %s with %d", r.Key(), r.Edges, r.ReverseOf, of.Edges)
		}
	}
	events := map[string]int64{}
	for i := range m.Streams {
		s := &m.Streams[i]
		named("stream", s.Name, s.Name)
		errs = append(errs, s.check(nodes("stream "+s.Name, s.Src), nodes("stream "+s.Name, s.Dst))...)
		events[s.Name] = s.Events
	}
	for i := range m.Tables {
		t := &m.Tables[i]
		kind := "table"
		if t.Stream != "" {
			kind = "table of stream" // a stream may have the name of a node type
		}
		named(kind, t.Owner()+"/"+t.Name, t.Name)
		if t.Elem != F16 && t.Elem != F32 {
			fail("table %s: elements are %v; features are f16 or f32", t.Name, t.Elem)
		}
		if t.Dim < 1 || t.Dim > math.MaxInt32 {
			fail("table %s: %d columns", t.Name, t.Dim)
			continue
		}
		next := int64(0)
		for j := range t.Shards {
			s := &t.Shards[j]
			errs = append(errs, shape(s, t.shardPath(j), t.Elem, s.Rows, t.Dim))
			if s.First != next || j > 0 && t.Shards[j-1].Rows != t.Shards[0].Rows {
				fail("%s: shards must follow each other with equal rows", s.Path)
			}
			if s.Rows == 0 && next > 0 {
				fail("%s: empty shard", s.Path)
			}
			next += s.Rows
		}
		if t.Stream != "" {
			n, ok := events[t.Stream]
			switch {
			case t.NodeType+t.Relation != "":
				fail("table %s: of stream %s and of %s", t.Name, t.Stream, t.NodeType+t.Relation)
			case !ok:
				fail("table %s: no stream %q", t.Name, t.Stream)
			case next != n:
				fail("table %s: %d rows for %d events", t.Name, next, n)
			}
		} else if r := relations[t.Relation]; t.Relation == "" {
			nodes("table "+t.Name, t.NodeType)
			if n := stored[t.NodeType]; next != n {
				fail("table %s: %d rows for %d nodes", t.Name, next, n)
			}
		} else if t.NodeType != "" {
			fail("table %s: of node type %s and of relation %s", t.Name, t.NodeType, t.Relation)
		} else if r == nil {
			fail("table %s: no relation %q", t.Name, t.Relation)
		} else if _, ok := r.column(EdgeID); !ok {
			fail("table %s: relation %s has no column %q to find rows by", t.Name, t.Relation, EdgeID)
		} else if m.Part != nil && next != m.Part.TableRows().Count(m.Part.Rows[i]) {
			fail("table %s: %d rows of %d in the whole", t.Name, next, m.Part.Rows[i])
		}
	}
	for i := range m.Labels {
		l := &m.Labels[i]
		named("label", l.NodeType+"/"+l.Name, l.NodeType, l.Name)
		n := nodes("label "+l.Name, l.NodeType)
		if l.Classes < 0 || l.Classes > math.MaxInt32 {
			fail("label %s: %d classes", l.Name, l.Classes)
		}
		switch {
		case l.Numbers && (l.Multi || l.Classes != 0):
			fail("label %s: it is of numbers, and of %d classes", l.Name, l.Classes)
		case l.Multi:
			errs = append(errs, shape(&l.Values, l.path(), U8, n, l.Classes))
		default:
			errs = append(errs, shape(&l.Values, l.path(), l.elem(), n, 1))
		}
	}
	for i := range m.Splits {
		s := &m.Splits[i]
		named("split", s.Name, s.Name)
		n := nodes("split "+s.Name, s.NodeType)
		for j, f := range s.parts() {
			errs = append(errs, shape(f, s.partPath(j), U32, f.Rows, 1))
			if f.Rows > n {
				fail("%s: %d ids for %d nodes", f.Path, f.Rows, n)
			}
		}
	}
	if e := m.Encodings; e != nil && (e.Path != encodingsName || e.Bytes < 1 || e.Bytes > maxEncodings) {
		fail("%q of %d bytes is named where %s belongs", e.Path, e.Bytes, encodingsName)
	}
	return errors.Join(errs...)
}

// shape checks that section f has the path, elements, rows and columns that its place needs.
func shape(f *File, at string, e Elem, rows, cols int64) error {
	if f.Path != at {
		return fmt.Errorf("%q is named where %s belongs", f.Path, at)
	}
	if f.Elem != e || f.Rows != rows || f.Cols != cols {
		return fmt.Errorf("%s: %d×%d %v where %d×%d %v belongs", f.Path, f.Rows, f.Cols, f.Elem, rows, cols, e)
	}
	features := e == F16 || e == F32
	stride := f.Cols * int64(e.Size())
	if features {
		stride = RowStride(stride)
	}
	if f.Stride != stride {
		return fmt.Errorf("%s: stride %d where %d columns of %v take %d", f.Path, f.Stride, f.Cols, e, stride)
	}
	if f.First != 0 && !features {
		return fmt.Errorf("%s: first row %d of a section without shards", f.Path, f.First)
	}
	return nil
}

// safePath reports whether p is a clean relative slash path.
func safePath(p string) bool {
	return p != "" && len(p) <= maxName && filepath.IsLocal(p) && path.Clean(p) == p && p != "." &&
		!strings.ContainsAny(p, "\\\x00") && p != manifestName
}
