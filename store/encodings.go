package store

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

const (
	encodingsName = "encodings.json"
	// maxEncodings bounds the text, and maxTableEncodings one table's part of it. Tables beyond
	// that have their columns folded.
	maxEncodings      = 64 << 20
	maxTableEncodings = 32 << 20
)

// Encodings describe what the numbers of a dataset mean: which columns a table was made of, by
// which rule, and how edges were stored. A network reads columns by position, so another dataset
// must have the same ones. The text is JSON with a checksum.
type Encodings struct {
	Tables    []TableEncoding    `json:"tables"`
	Relations []RelationEncoding `json:"relations"`
	Labels    []LabelEncoding    `json:"labels,omitempty"`
	Streams   []StreamEncoding   `json:"streams,omitempty"`
	// Check is XXH3-64 of the text with Check empty.
	Check string `json:"check"`
}

// TableEncoding describes the columns of a [Table], in order. Their widths add up to its Dim.
type TableEncoding struct {
	Name     string `json:"name"`
	NodeType string `json:"node_type,omitempty"`
	Relation string `json:"relation,omitempty"`
	Stream   string `json:"stream,omitempty"`
	// Made names the features that ingest made from Seed, such as "fastrp:128". It is empty if the
	// table was read.
	Made string `json:"made,omitempty"`
	Seed uint64 `json:"seed,omitempty"`
	// Normalize is "row" if ingest normalised the rows, else empty.
	Normalize string     `json:"normalize,omitempty"`
	Columns   []Encoding `json:"columns"`
}

// Kinds of columns.
const (
	NumberColumn   = "number"
	VectorColumn   = "vector"   // numbers in one cell, or columns that have no names
	CategoryColumn = "category" // texts, or integers that stand for names
	DateColumn     = "date"     // dates, with or without times
	FoldedColumns  = "folded"   // all columns together, if there are too many to describe each
)

// Encoders of categories.
const (
	OneHot        = "onehot" // a column for each category, in order; a missing value is all zeros
	CategoryIndex = "index"  // the category's number from 0; a missing value is -1
	// HashedCategory has 1 or -1 in one of Width columns, both chosen by a hash of the category, as
	// in Weinberger et al., "Feature Hashing for Large Scale Multitask Learning". A missing value
	// is all zeros, and Categories is empty.
	HashedCategory = "hash"
)

// Kinds of columns that ingest computes from the edges of a node. Each holds the logarithm of 1
// more than a magnitude, with the sign of the number.
const (
	AggregateCount = "count" // of edges
	AggregateSum   = "sum"   // of a column of the edges
	AggregateMean  = "mean"
)

// Rules for missing numbers.
const (
	MissingZero      = "0"
	MissingMean      = "mean"
	MissingIndicator = "indicator" // zeros, and a further column that is 1 there and 0 elsewhere
)

// UnknownBucket is the rule by which categories that are not listed share a number of their own,
// behind the others.
const UnknownBucket = "bucket"

// Encoding describes a column of the source, and how the table encodes it.
type Encoding struct {
	Name string `json:"name,omitempty"` // in the source; empty if columns have no names
	From string `json:"from,omitempty"` // array or file, of columns without names
	Kind string `json:"kind"`
	// Encoder is OneHot, CategoryIndex or HashedCategory. Only categories have one.
	Encoder string `json:"encoder,omitempty"`
	// Aggregate is AggregateCount, AggregateSum or AggregateMean if ingest computed the column from
	// the edges of the node; empty if the source has it.
	Aggregate string `json:"aggregate,omitempty"`
	Width     int64  `json:"width"`
	// Unit is the unit of the numbers, such as cm; empty if it is not known.
	Unit string `json:"unit,omitempty"`
	// Missing is the rule for missing numbers; empty: they are refused. Filled counts the missing
	// cells, which Means replaced.
	Missing    string    `json:"missing,omitempty"`
	Filled     int64     `json:"filled,omitempty"`
	Means      []float32 `json:"means,omitempty"`
	Categories []string  `json:"categories,omitempty"` // all, in the order of their numbers
	// Scale names the rule that scaled the numbers; empty: they are not scaled. The rule learnt
	// Scalings: one for each number of a cell, or for each year and age of a date. Means are not
	// scaled.
	Scale    string    `json:"scale,omitempty"`
	Scalings []Scaling `json:"scalings,omitempty"`
	// Parts lists the numbers that a date has become, such as "year" and "age", in their order. An
	// age is the time from the date to Reference.
	Parts     []string `json:"parts,omitempty"`
	Reference string   `json:"reference,omitempty"`
	// Unknown is the rule for categories that are not listed; empty: they are refused.
	Unknown string `json:"unknown,omitempty"`
	XXH3    string `json:"xxh3,omitempty"` // XXH3-128 of the folded columns' JSON
}

// RelationEncoding describes how the edges of a relation were stored.
type RelationEncoding struct {
	Relation string `json:"relation"` // a Key
	// From is the relation's name in the source, if the dataset has another. ReverseOf is the Key
	// of the relation whose edges ingest turned round to make this one.
	From       string `json:"from,omitempty"`
	ReverseOf  string `json:"reverse_of,omitempty"`
	Undirected bool   `json:"undirected,omitempty"`
	SelfLoops  string `json:"self_loops"` // "keep", "drop" or "add"
	// Duplicates is "keep", "merge", or the rule for values of merged edges: "first", "sum", "max"
	// or "mean".
	Duplicates string           `json:"duplicates"`
	Columns    []ColumnEncoding `json:"columns,omitempty"`
}

// ColumnEncoding names the source's column that became a [Column] of edges.
type ColumnEncoding struct {
	Name string `json:"name"`
	From string `json:"from"`           // empty if it is not known
	Elem Elem   `json:"elem,omitempty"` // 0 in datasets of earlier builds
}

// LabelEncoding describes the values of a [Label], and names the source's column. Datasets of
// earlier builds have the column alone, and so have labels whose classes take too much room.
type LabelEncoding struct {
	Name       string   `json:"name"`
	NodeType   string   `json:"node_type"`
	From       string   `json:"from"` // empty if it is not known
	Classes    int64    `json:"classes,omitempty"`
	Multi      bool     `json:"multi,omitempty"`
	Numbers    bool     `json:"numbers,omitempty"`
	ClassNames []string `json:"class_names,omitempty"`
}

// StreamEncoding describes the events of a [Stream]. It does not name the source's columns of times
// and labels, which an export calls by other names.
type StreamEncoding struct {
	Stream     string   `json:"stream"`
	Src        string   `json:"src"`
	Dst        string   `json:"dst"`
	TimeScale  float64  `json:"time_scale"`
	Classes    int64    `json:"classes,omitempty"`
	ClassNames []string `json:"class_names,omitempty"`
}

// Known reports whether the values are described, and not only the column.
func (l *LabelEncoding) Known() bool { return l.Numbers || l.Classes > 0 }

// maxClassTexts bounds the bytes of class names in encodings.
const maxClassTexts = 8 << 20

// EncodingOf describes the values of a label. It leaves the classes out if their names take too
// much room; the manifest has them in any case.
func (l *Label) EncodingOf(from string) LabelEncoding {
	e := LabelEncoding{Name: l.Name, NodeType: l.NodeType, From: from}
	if fitClasses(l.ClassNames) {
		e.Classes, e.Multi, e.Numbers, e.ClassNames = l.Classes, l.Multi, l.Numbers, l.ClassNames
	}
	return e
}

// EncodingOf describes the events of a stream. It leaves the classes out if their names take too
// much room.
func (s *Stream) EncodingOf() StreamEncoding {
	e := StreamEncoding{Stream: s.Name, Src: s.Src, Dst: s.Dst, TimeScale: s.TimeScale}
	if fitClasses(s.ClassNames) {
		e.Classes, e.ClassNames = s.Classes, s.ClassNames
	}
	return e
}

func fitClasses(names []string) bool {
	size := 0
	for _, name := range names {
		size += 6*len(name) + 8
	}
	return size <= maxClassTexts
}

// Owner returns the node type, relation or stream that the table belongs to.
func (t *TableEncoding) Owner() string {
	return (&Table{NodeType: t.NodeType, Relation: t.Relation, Stream: t.Stream}).Owner()
}

// Named reports whether columns can be compared by their names.
func (t *TableEncoding) Named() bool {
	return slices.ContainsFunc(t.Columns, func(c Encoding) bool { return c.Name != "" || c.Kind == FoldedColumns })
}

// Of returns the encoding of the table with the name and owner of t, or nil.
func (e *Encodings) Of(t *Table) *TableEncoding {
	for i := range e.Tables {
		o := &e.Tables[i]
		if o.Name == t.Name && o.NodeType == t.NodeType && o.Relation == t.Relation && o.Stream == t.Stream {
			return o
		}
	}
	return nil
}

// Relation returns the encoding of the relation with this Key, or nil.
func (e *Encodings) Relation(key string) *RelationEncoding {
	for i := range e.Relations {
		if e.Relations[i].Relation == key {
			return &e.Relations[i]
		}
	}
	return nil
}

// Encode returns the canonical text, the only one that DecodeEncodings accepts. It first folds the
// columns of tables that take too much room into a checksum: then they can only be compared as a
// whole. Texts that are not UTF-8 are replaced as in the manifest.
func (e *Encodings) Encode() ([]byte, error) {
	c := *e
	c.Tables = slices.Clone(e.Tables)
	c.Check = ""
	c.Relations, c.Labels = slices.Clone(e.Relations), slices.Clone(e.Labels)
	for i := range c.Relations {
		r := &c.Relations[i]
		r.From = toValid(r.From)
		r.Columns = slices.Clone(r.Columns)
		for j := range r.Columns {
			r.Columns[j].From = toValid(r.Columns[j].From)
		}
	}
	for i := range c.Labels {
		l := &c.Labels[i]
		l.From, l.ClassNames = toValid(l.From), validNames(l.ClassNames)
	}
	c.Streams = slices.Clone(e.Streams)
	for i := range c.Streams {
		s := &c.Streams[i]
		s.ClassNames = validNames(s.ClassNames)
	}
	room := int64(maxEncodings / 2) // the rest is for relations and labels; more of them is an error
	for i := range c.Tables {
		t := &c.Tables[i]
		t.Columns = validEncodings(t.Columns)
		size := int64(0)
		for j := range t.Columns {
			size += t.Columns[j].size()
		}
		if size > min(room, maxTableEncodings) {
			if err := t.fold(); err != nil {
				return nil, err
			}
			size = 256
		}
		room -= size
	}
	text, err := c.text()
	if err != nil {
		return nil, err
	}
	c.Check = hex64(xxh3.Hash(text))
	text, err = c.text()
	if err == nil && len(text) > maxEncodings {
		err = fmt.Errorf("%s would take %d bytes, and %d are the most", encodingsName, len(text), maxEncodings)
	}
	return text, err
}

// text returns e as JSON. It does not change e.
func (e *Encodings) text() ([]byte, error) {
	b, err := json.MarshalIndent(e, "", " ")
	return append(b, '\n'), err
}

// size returns an upper bound of the encoding's JSON in bytes. An escape is up to six times as long
// as its character.
func (c *Encoding) size() int64 {
	n := int64(256 + 6*len(c.Name) + 6*len(c.From) + 24*len(c.Means))
	for _, name := range c.Categories {
		n += int64(16 + 6*len(name))
	}
	for i := range c.Scalings {
		n += c.Scalings[i].size()
	}
	return n
}

// fold replaces all columns with one that holds their checksum.
func (t *TableEncoding) fold() error {
	h, width := xxh3.New(), int64(0)
	for i := range t.Columns {
		if err := json.NewEncoder(h).Encode(&t.Columns[i]); err != nil {
			return err
		}
		width += t.Columns[i].Width
	}
	t.Columns = []Encoding{folded(h, width)}
	return nil
}

func folded(h *xxh3.Hasher, width int64) Encoding {
	sum := h.Sum128().Bytes()
	return Encoding{Kind: FoldedColumns, Width: width, XXH3: hex.EncodeToString(sum[:])}
}

// NumberColumns describes up to mostNumbers columns one by one.
const mostNumbers = 1 << 16

// NumberColumns describes columns of numbers by their names, in their order.
func NumberColumns(names []string) []Encoding {
	if len(names) > mostNumbers {
		h := xxh3.New()
		for _, name := range names {
			_ = json.NewEncoder(h).Encode(name) // neither call fails
		}
		return []Encoding{folded(h, int64(len(names)))}
	}
	columns := make([]Encoding, len(names))
	for i, name := range names {
		columns[i] = Encoding{Name: name, Kind: NumberColumn, Width: 1}
	}
	return columns
}

// validEncodings copies columns and makes their texts valid UTF-8, which JSON requires.
func validEncodings(columns []Encoding) []Encoding {
	columns = slices.Clone(columns)
	for i := range columns {
		c := &columns[i]
		c.Name, c.From, c.Categories = toValid(c.Name), toValid(c.From), validNames(c.Categories)
	}
	return columns
}

// validNames returns names, or a copy with those made valid that are not.
func validNames(names []string) []string {
	if slices.ContainsFunc(names, func(s string) bool { return !utf8.ValidString(s) }) {
		return toValidAll(names)
	}
	return names
}

// DecodeEncodings decodes a text that Encode made. It checks everything, since the file may be
// damaged.
func DecodeEncodings(text []byte) (*Encodings, error) {
	if len(text) > maxEncodings {
		return nil, fmt.Errorf("larger than %d bytes", maxEncodings)
	}
	e := new(Encodings)
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(e); err != nil {
		return nil, fmt.Errorf("no description of columns that this build reads: %w", err)
	}
	canon, err := e.text()
	if err != nil {
		return nil, err
	}
	if !bytes.Equal(canon, text) {
		return nil, errors.New("the text is not as it was written: it was edited or damaged")
	}
	check := e.Check
	e.Check = ""
	plain, err := e.text()
	if e.Check = check; err != nil {
		return nil, err
	}
	if sum := hex64(xxh3.Hash(plain)); sum != check {
		return nil, fmt.Errorf("checksum is %s, and the text says %s: it was edited or damaged", sum, check)
	}
	return e, e.validate()
}

// validate reports all problems that can be found without the manifest.
func (e *Encodings) validate() error {
	var errs []error
	for i := range e.Tables {
		t := &e.Tables[i]
		for j := range t.Columns {
			if err := t.Columns[j].validate(); err != nil {
				errs = append(errs, fmt.Errorf("table %s of %s, column %d: %w", t.Name, t.Owner(), j, err))
			}
		}
		if t.Normalize != "" && t.Normalize != "row" {
			errs = append(errs, fmt.Errorf("table %s of %s: rows are normalised by %q", t.Name, t.Owner(), t.Normalize))
		}
	}
	for _, r := range e.Relations {
		if !slices.Contains([]string{"keep", "drop", "add"}, r.SelfLoops) || !slices.Contains([]string{"keep", "merge", "first", "sum", "max", "mean"}, r.Duplicates) {
			errs = append(errs, fmt.Errorf("relation %s: self loops %q, duplicates %q", r.Relation, r.SelfLoops, r.Duplicates))
		}
	}
	for _, l := range e.Labels {
		names := int64(len(l.ClassNames))
		if l.Classes < 0 || l.Numbers && (l.Multi || l.Classes > 0) || names > 0 && names != l.Classes {
			errs = append(errs, fmt.Errorf("label %s of %s: %d classes, and names for %d", l.Name, l.NodeType, l.Classes, names))
		}
	}
	for _, s := range e.Streams {
		names := int64(len(s.ClassNames))
		if s.Classes < 0 || names > 0 && names != s.Classes || !(s.TimeScale > 0 && s.TimeScale <= math.MaxFloat64) {
			errs = append(errs, fmt.Errorf("stream %s: %d classes, names for %d, and times that are multiplied with %v",
				s.Stream, s.Classes, names, s.TimeScale))
		}
	}
	return errors.Join(errs...)
}

// MaxUnit bounds the bytes of a unit.
const MaxUnit = 64

// FitsUnit reports whether a text may be a unit: it is short, and all of it can be seen.
func FitsUnit(text string) bool {
	return text != "" && len(text) <= MaxUnit && utf8.ValidString(text) &&
		!strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (c *Encoding) validate() error {
	numbers := c.Width
	if c.Missing == MissingIndicator {
		numbers--
	}
	categories, bucket := int64(len(c.Categories)), int64(0)
	if c.Unknown == UnknownBucket {
		bucket = 1
	}
	switch {
	case c.Width < 1 || c.Width > math.MaxInt32 || numbers < 1:
		return fmt.Errorf("%d columns wide", c.Width)
	case c.Unknown != "" && (c.Unknown != UnknownBucket || c.Kind != CategoryColumn):
		return fmt.Errorf("a %s with the rule %q for unknown categories", c.Kind, c.Unknown)
	case c.Kind == CategoryColumn && (c.Encoder == OneHot && c.Width != max(categories+bucket, 1) || c.Encoder == CategoryIndex && c.Width != 1):
		return fmt.Errorf("%d columns for %d categories by %s", c.Width, categories, c.Encoder)
	case c.Kind == CategoryColumn && c.Encoder != OneHot && c.Encoder != CategoryIndex && c.Encoder != HashedCategory:
		return fmt.Errorf("encoder %q", c.Encoder)
	case c.Encoder == HashedCategory && (categories > 0 || c.Unknown != ""):
		return errors.New("hashed categories with a list of them, or a rule for unknown ones")
	case c.Unit != "" && (!FitsUnit(c.Unit) || c.Kind != NumberColumn && c.Kind != VectorColumn && c.Kind != DateColumn):
		return fmt.Errorf("a %s with the unit %q", c.Kind, c.Unit)
	case !slices.Contains([]string{"", AggregateCount, AggregateSum, AggregateMean}, c.Aggregate) || c.Aggregate != "" && c.Kind != NumberColumn:
		return fmt.Errorf("a %s that is the %q of edges", c.Kind, c.Aggregate)
	case c.Kind == NumberColumn && numbers != 1:
		return fmt.Errorf("%d columns for one number", c.Width)
	case c.Kind != CategoryColumn && (c.Encoder != "" || categories > 0):
		return fmt.Errorf("a %s with categories", c.Kind)
	case !slices.Contains([]string{NumberColumn, VectorColumn, CategoryColumn, DateColumn, FoldedColumns}, c.Kind):
		return fmt.Errorf("kind %q", c.Kind)
	case !slices.Contains([]string{"", MissingZero, MissingMean, MissingIndicator}, c.Missing):
		return fmt.Errorf("missing numbers by %q", c.Missing)
	case c.Missing == MissingMean && int64(len(c.Means)) != c.Width || c.Missing != MissingMean && len(c.Means) > 0:
		return fmt.Errorf("%d means for %d numbers", len(c.Means), c.Width)
	case c.Filled < 0:
		return fmt.Errorf("%d cells were filled", c.Filled)
	case (c.Kind == FoldedColumns) != (len(c.XXH3) == 32):
		return errors.New("a checksum of columns where none belongs, or none where one does")
	}
	return c.validateScale(numbers)
}

// fits checks that e describes every table of the manifest, and nothing that the manifest lacks.
func (e *Encodings) fits(m *Manifest) error {
	for i := range m.Tables {
		t := &m.Tables[i]
		of, width := e.Of(t), int64(0)
		if of == nil {
			return fmt.Errorf("says nothing of table %s of %s", t.Name, t.Owner())
		}
		for _, c := range of.Columns {
			width += c.Width
		}
		if width != t.Dim {
			return fmt.Errorf("table %s of %s: %d columns are described, and it has %d", t.Name, t.Owner(), width, t.Dim)
		}
	}
	if len(e.Tables) != len(m.Tables) {
		return fmt.Errorf("describes %d tables, and there are %d", len(e.Tables), len(m.Tables))
	}
	there := map[string]bool{}
	for i := range m.Relations {
		there[m.Relations[i].Key()] = true
	}
	for _, r := range e.Relations {
		if !there[r.Relation] {
			return fmt.Errorf("describes relation %s, and there is none", r.Relation)
		}
	}
	for _, l := range e.Labels {
		at := slices.IndexFunc(m.Labels, func(o Label) bool { return o.Name == l.Name && o.NodeType == l.NodeType })
		if at < 0 {
			return fmt.Errorf("describes label %s of %s, and there is none", l.Name, l.NodeType)
		}
		if o := &m.Labels[at]; l.Known() && (l.Classes != o.Classes || l.Numbers != o.Numbers || l.Multi != o.Multi) {
			return fmt.Errorf("describes %d classes of label %s of %s, and it has %d", l.Classes, l.Name, l.NodeType, o.Classes)
		}
	}
	for _, s := range e.Streams {
		same := func(o Stream) bool { return o.Name == s.Stream && o.Src == s.Src && o.Dst == s.Dst }
		if !slices.ContainsFunc(m.Streams, same) {
			return fmt.Errorf("describes stream %s of %s and %s, and there is none", s.Stream, s.Src, s.Dst)
		}
	}
	return nil
}

// AddEncodings writes the meaning of the dataset's columns. Call it once, after all tables,
// relations and labels.
func (w *Writer) AddEncodings(e *Encodings) error {
	text, err := e.Encode()
	if err == nil {
		var read *Encodings
		if read, err = DecodeEncodings(text); err == nil { // never publish what readers refuse
			err = read.fits(&w.manifest)
		}
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", encodingsName, err)
	}
	f, err := w.create(encodingsName)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(text, 0)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("write %s: %w", encodingsName, err)
	}
	w.manifest.Encodings = &Blob{Path: encodingsName, Bytes: int64(len(text)), XXH3: hex64(xxh3.Hash(text))}
	return nil
}

// Encodings returns the meaning of the dataset's columns, or nil for a dataset of an earlier build,
// which does not record it.
func (d *Dataset) Encodings() (*Encodings, error) {
	text, err := d.EncodingsText()
	if text == nil || err != nil {
		return nil, err
	}
	e, err := DecodeEncodings(text)
	if err == nil {
		err = e.fits(d.manifest)
	}
	if err != nil {
		return nil, &SectionError{d.path, encodingsName, -1, err}
	}
	return e, nil
}

// EncodingsText returns the text of Encodings after checking its checksum, or nil if there is none.
func (d *Dataset) EncodingsText() ([]byte, error) {
	spec := d.manifest.Encodings
	if spec == nil {
		return nil, nil
	}
	text := make([]byte, spec.Bytes)
	if _, err := io.ReadFull(io.NewSectionReader(d.encodings, 0, spec.Bytes), text); err != nil {
		return nil, &SectionError{d.path, encodingsName, -1, err}
	}
	if sum := hex64(xxh3.Hash(text)); sum != spec.XXH3 {
		return nil, &SectionError{d.path, encodingsName, -1, fmt.Errorf("checksum is %s, and the manifest says %s: %s", sum, spec.XXH3, restore)}
	}
	return text, nil
}
