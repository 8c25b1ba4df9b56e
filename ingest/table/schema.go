package table

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// schema is a document, checked as far as it goes without the tables.
type schema struct {
	path string
	name string
	// reverse adds a relation the other way for each that has none, unless an option says
	// otherwise.
	reverse bool
	nodes   []*nodes
	edges   []*edges
}

// entry is one of nodes or edges: some files of one form.
type entry struct {
	schema string // path, for messages
	line   int
	form   form
	files  []string
	titles map[string]string // names of columns in the first file, by their names in the schema

	where     []condition // for the rows that are taken
	words     []string    // that stand for nothing
	skipEmpty bool        // rows of edges without an end are none

	at int64 // line of the row that eachOf visits; 0 in a file without lines
}

// title returns the name of a column in the first file.
func (e *entry) title(c column) string {
	if title, ok := e.titles[c.text]; ok {
		return title
	}
	return c.text
}

// column is one that the schema names, at a key.
type column struct {
	word
	key string
}

func (c column) set() bool { return c.word.set() }

// feature is a column of features.
type feature struct {
	column
	category *ingest.Category // nil: numbers
	index    bool             // the category's number instead of a column for each
	dim      int              // numbers of a cell; 0: as many as there are categories
	missing  missing          // what stands for numbers that are missing
	known    bool             // categories and means come from another dataset: see ingest.Like
	rule     unknownRule      // for categories that are not known
	bucket   bool             // unknown categories have a number behind the others
	rare     int              // categories in fewer cells are unknown
	named    bool             // by the key unknown
	unknown  unknown
	average
	unit   string  // of its numbers; empty: not known
	scaler *scaler // nil: its numbers are not scaled
	dates  *dates  // nil: it has no dates
	hashed int     // number of columns that the hashes of texts are spread over; 0: it is not hashed
	keep   int     // categories with a number of their own, the most frequent; 0: all
}

// width is the number of columns of the table that the feature takes.
func (f *feature) width() int {
	if f.missing == indicate {
		return f.dim + 1
	}
	if f.dim > 0 {
		return f.dim
	}
	n := f.category.Len()
	if f.bucket {
		n++
	}
	return max(n, 1)
}

// takes returns the number that an unknown category becomes. It returns false if it becomes none.
func (f *feature) takes() (id int32, ok bool) {
	switch {
	case f.bucket && (f.rule == unknownDefault || f.rule == unknownBucket):
		return int32(f.category.Len()), true
	case f.known && f.rule == unknownMissing:
		return -1, true
	}
	return 0, false
}

// newCategory begins to learn the categories.
func (f *feature) newCategory() {
	f.category = ingest.NewCategory(f.most())
	f.category.LeaveRare(f.rare)
	if f.keep > 0 {
		f.category.KeepMost(f.keep)
	}
}

// checkUnknown refuses rules for unknown categories of columns that have none.
func (e *entry) checkUnknown(tables []matrix) error {
	for _, t := range tables {
		for _, f := range t.features {
			if f.named && f.hashed > 0 {
				return fmt.Errorf("%s: line %d: unknown: column %s is hashed, so that no category is unknown; leave it out here",
					e.schema, f.line, lines.ClipText(f.text))
			}
			if f.named && f.category == nil {
				return fmt.Errorf("%s: line %d: unknown: column %s is not categorical, so it has no categories; list it under categorical, or leave it out here",
					e.schema, f.line, lines.ClipText(f.text))
			}
		}
	}
	return nil
}

// most is the number of different values that a category may have.
func (f *feature) most() int {
	if f.index {
		return maxIndexed
	}
	return maxOneHot
}

// matrix is a table of features.
type matrix struct {
	name     string
	features []*feature
}

func (m *matrix) width() (dim int) {
	for _, f := range m.features {
		dim += f.width()
	}
	return dim
}

// readSchema reads a schema file. Unless FollowLinks is set, its paths must stay in its folder.
func readSchema(path string, o Options) (*schema, error) {
	d := &document{path: path, anywhere: o.FollowLinks}
	var err error
	if d.text, err = o.form(); err != nil {
		return nil, err
	}
	top := d.open([]string{"name", "reverse", "nodes", "edges"}, dglSchema)
	s := &schema{path: path, name: store.CleanName(strings.TrimSuffix(filepath.Base(path), filepath.Ext(path)))}
	if w := top.word("name"); w.set() {
		if s.name = store.CleanName(w.text); s.name != w.text {
			d.errorf(w.line, "name %q: names are letters, digits, _, - and .; try %s", lines.ClipText(w.text), s.name)
		}
	}
	switch w := top.word("reverse"); strings.ToLower(w.text) {
	case "", "no", "false":
	case "yes", "true":
		s.reverse = true
	default:
		d.errorf(w.line, "reverse %q: choose yes or no", lines.ClipText(w.text))
	}
	types := map[string]int{}
	top.list("nodes", func(n *yaml.Node) {
		if e := d.nodes(n); d.err == nil {
			if first := types[e.name]; first > 0 {
				d.errorf(e.line, "node type %s is also on line %d; list its files in one entry", e.name, first)
			}
			types[e.name] = e.line
			s.nodes = append(s.nodes, e)
		}
	})
	relations := map[string]int{}
	top.list("edges", func(n *yaml.Node) {
		if e := d.edges(n); d.err == nil {
			key := e.src + ":" + e.relation + ":" + e.dst
			if first := relations[key]; first > 0 {
				d.errorf(e.line, "edges of type %s are also on line %d; list their files in one entry", key, first)
			}
			relations[key] = e.line
			s.edges = append(s.edges, e)
		}
	})
	if d.err == nil && len(s.edges) == 0 {
		d.errorf(1, "there are no edges; list at least one entry under edges")
	}
	for _, e := range s.edges {
		for _, name := range []string{e.src, e.dst} {
			if len(s.nodes) > 0 && types[name] == 0 {
				d.errorf(e.line, "node type %s is not declared; there are %s; add \"- type: %s\" to nodes, without files if its "+
					"nodes are those that edges name", name, s.typeNames(), name)
			}
		}
	}
	s.checkAggregates(d)
	return s, d.err
}

func (s *schema) typeNames() string {
	var names []string
	for _, n := range s.nodes {
		names = append(names, n.name)
	}
	return lines.List(names)
}

var nodeKeys = []string{
	"type", "files", "format", "delimiter", "header", "decimal", "thousands", "encoding",
	"id", "id_type", "features", "categorical", "missing", "unknown",
	"scale", "learn_from", "dates", "reference", "max_categories", "hash", "units", "label", "value", "labels", "split", "masks", "missing_words", "where", "join",
	"counts", "sums", "means",
}

// nodes reads an entry of nodes.
func (d *document) nodes(n *yaml.Node) *nodes {
	o := d.object(n, "an entry of nodes", nodeKeys...)
	e := &nodes{entry: d.entry(o)}
	e.name = d.name(o.need("type", "the name of the node type"), "a node type")
	e.gathered = !o.has("files")
	if e.gathered {
		for _, key := range slices.DeleteFunc(slices.Clone(nodeKeys), func(key string) bool {
			return slices.Contains([]string{"type", "files", "id_type", "counts", "sums", "means"}, key)
		}) {
			if o.has(key) {
				d.errorf(o.line, "node type %s has no files, and %s is about their columns; name them with files", e.name, key)
			}
		}
	}
	e.id = o.column("id")
	switch kind := o.word("id_type"); kind.text {
	case "", "auto":
	case "int":
		e.declared = intIDs
	case "text":
		e.declared = textIDs
	default:
		d.errorf(kind.line, "id_type %q: choose text, int or auto", lines.ClipText(kind.text))
	}
	if !e.gathered && !e.id.set() {
		e.declared = rowIDs
		if o.has("id_type") {
			d.errorf(o.line, "id_type without id: without a column of ids, a node's id is the number of its row, from 0")
		}
	}
	e.tables = d.features(o)
	d.aggregates(o, e)
	d.learnt(o, e)
	d.learnFrom(o, e)
	d.joins(o, e)
	if e.gathered && len(e.joins) > 0 {
		d.errorf(o.line, "node type %s has no files that list its nodes; name them with files", e.name)
	}
	return e
}

// learnt reads what nodes are to learn and how they are split.
func (d *document) learnt(o *object, e *nodes) {
	if e.label, e.value = o.column("label"), o.column("value"); e.label.set() && e.value.set() {
		d.errorf(o.line, "label and value: a label names classes, and a value is a number to learn; node type %s has one of them", e.name)
	}
	e.multi = d.multiLabel(o, e)
	if n := o.keys["split"]; n != nil && n.Kind == yaml.MappingNode {
		parts := d.object(n, "split", "train", "valid", "test")
		for i, key := range []string{"train", "valid", "test"} {
			if parts.has(key) {
				part := e.entry
				part.files = d.files(parts.words(key))
				e.splitFiles[i] = &part
			}
		}
		e.split = column{}
		e.hasSplit = true
	} else if e.split = o.column("split"); e.split.set() {
		e.hasSplit = true
	}
	if e.masks = d.masks(o); e.masks[0].set() {
		if e.hasSplit {
			d.errorf(o.line, "split and masks: both are a split; node type %s has one of them", e.name)
		}
		e.hasSplit = true
	}
}

var edgeKeys = []string{
	"type", "files", "format", "delimiter", "header", "decimal", "thousands", "encoding",
	"src", "dst", "relation_column", "weight", "columns", "features",
	"categorical", "missing", "unknown", "scale", "dates", "reference", "max_categories", "hash", "units",
	"missing_words", "where", "empty_ends",
}

// edges reads an entry of edges.
func (d *document) edges(n *yaml.Node) *edges {
	o := d.object(n, "an entry of edges", edgeKeys...)
	e := &edges{entry: d.entry(o)}
	kind := o.need("type", "SOURCE:RELATION:DESTINATION, as in user:buys:item")
	parts := strings.Split(kind.text, ":")
	if len(parts) != 3 {
		d.errorf(kind.line, "type %q: edges go from a node type by a relation to a node type, SOURCE:RELATION:DESTINATION, "+
			"as in user:buys:item", lines.ClipText(kind.text))
		return e
	}
	e.src, e.dst = d.name(word{parts[0], kind.line}, "a node type"), d.name(word{parts[2], kind.line}, "a node type")
	e.relation = parts[1]
	e.by = o.column("relation_column")
	switch {
	case e.by.set() && e.relation != anyRelation:
		d.errorf(kind.line, "type %q: with a relation_column the relation is a star, %s:*:%s", lines.ClipText(kind.text), e.src, e.dst)
	case !e.by.set() && e.relation == anyRelation:
		d.errorf(kind.line, "type %q: the star stands for the values of a column; name it with relation_column", lines.ClipText(kind.text))
	case !e.by.set():
		d.name(word{parts[1], kind.line}, "a relation")
	}
	if !o.has("files") && d.err == nil {
		d.errorf(o.line, "an entry of edges needs files: a path, a pattern such as part_*.csv, or a list of them")
	}
	switch w := o.word("empty_ends"); w.text {
	case "", "refuse":
	case "skip":
		e.skipEmpty = true
	default:
		d.errorf(w.line, "empty_ends %q: choose refuse, or skip, which takes a row without an end for no edge", lines.ClipText(w.text))
	}
	e.from = column{o.need("src", "the column of sources"), "src"}
	e.to = column{o.need("dst", "the column of destinations"), "dst"}
	if w := o.column("weight"); w.set() {
		e.columns = append(e.columns, edgeColumn{column: w, name: "weight", elem: store.F32})
	}
	o.list("columns", func(n *yaml.Node) {
		item := d.object(n, "an entry of columns", "name", "column", "type")
		name := item.need("name", "what the column is called in the dataset")
		from := item.column("column")
		if !from.set() {
			from = column{name, "columns"}
		}
		kind := item.need("type", elemNames).text
		elem, unit, ok := lines.EdgeType(kind)
		if !ok {
			d.errorf(item.line, "column %s: its type is %s", lines.ClipText(name.text), elemNames)
		}
		d.name(name, "a column")
		if name.text == "id" {
			d.errorf(name.line, "column id: that is an edge's number; choose another name, with column: id")
		}
		for _, c := range e.columns {
			if c.name == name.text {
				d.errorf(name.line, "column %s is there twice", name.text)
			}
		}
		e.columns = append(e.columns, edgeColumn{column: from, name: name.text, elem: elem, unit: unit})
	})
	e.tables = d.features(o)
	return e
}

const elemNames = "f32, i64, i32 or u8, or of dates their unit, s, ms, us or ns"

func (o *object) column(key string) column { return column{o.word(key), key} }

// entry reads what nodes and edges share.
func (d *document) entry(o *object) entry {
	e := entry{schema: d.path, line: o.line, form: form{header: true}, where: d.where(o), words: d.missingWords(o)}
	if o.has("files") {
		e.files = d.files(o.words("files"))
	}
	switch f := o.word("format"); Format(f.text) {
	case "", CSV, TSV, Parquet, JSONL:
		e.form.format = Format(f.text)
	default:
		d.errorf(f.line, "format %q: choose csv, tsv, parquet or jsonl", lines.ClipText(f.text))
	}
	switch h := o.word("header"); strings.ToLower(h.text) {
	case "", "yes", "true":
	case "no", "false":
		e.form.header = false
	default:
		d.errorf(h.line, "header %q: choose yes or no", lines.ClipText(h.text))
	}
	e.form.numerals, e.form.encoding = d.text.numerals, d.text.encoding
	if w := o.word("encoding"); w.set() {
		var err error
		if e.form.encoding, err = lines.ParseEncoding(w.text); err != nil {
			d.errorf(w.line, "%s", inSchema(err.Error()))
		}
	}
	if decimal, thousands := o.word("decimal"), o.word("thousands"); decimal.set() || thousands.set() {
		var err error
		if e.form.numerals, err = lines.ParseNumerals(decimal.text, thousands.text); err != nil {
			d.errorf(max(decimal.line, thousands.line), "%s", inSchema(err.Error()))
		}
	}
	if w := o.word("delimiter"); w.set() {
		if len(w.text) != 1 || strings.Contains("\"\r\n\x00", w.text) {
			d.errorf(w.line, "delimiter %q: it is one character of ASCII, and no quote; \"\\t\" is a tab", lines.ClipText(w.text))
			return e
		}
		e.form.delim = w.text[0]
	}
	return e
}

// inSchema writes the options of a message as keys of a schema.
func inSchema(message string) string {
	var pairs []string
	for _, key := range []string{"decimal", "thousands", "encoding"} {
		pairs = append(pairs, "{"+key+"} \"", key+" \"", "{"+key+"} ", key+": ", "{"+key+"}", key)
	}
	return strings.NewReplacer(pairs...).Replace(message)
}

// files finds the files of paths and patterns, which are relative to the schema.
func (d *document) files(words []word) (files []string) {
	for _, w := range words {
		if d.err != nil {
			return nil
		}
		path := w.text
		// otherwise the author of the schema chooses which files of this machine are read
		if !d.anywhere && !filepath.IsLocal(path) {
			d.errorf(w.line, "files %q: it leads out of the schema's folder; move the schema or the file, or say {follow_links} to read it", lines.ClipText(w.text))
			return nil
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(filepath.Dir(d.path), path)
		}
		found := []string{path}
		switch _, err := os.Stat(path); {
		case err == nil:
		case !errors.Is(err, os.ErrNotExist):
			d.errorf(w.line, "%w", err)
			return nil
		default: // a pattern, or nothing: a file with a bracket in its name is found above
			matches, err := filepath.Glob(path)
			if err != nil {
				d.errorf(w.line, "files %q: the pattern is not one: %w", lines.ClipText(w.text), err)
			} else if len(matches) == 0 {
				d.errorf(w.line, "files %q: there is no such file; paths are relative to the schema's folder", lines.ClipText(w.text))
			}
			slices.SortFunc(matches, lines.Natural)
			found = matches
		}
		for _, f := range found {
			switch info, err := os.Stat(f); {
			case err != nil:
				d.errorf(w.line, "%w", err)
			case info.IsDir():
				d.errorf(w.line, "files %q: %s is a folder; name the files in it, as in %s/*.csv",
					lines.ClipText(w.text), lines.ClipText(filepath.Base(f)), lines.ClipText(w.text))
			case info.Size() == 0 && len(found) > 1: // a part that nothing fell to
			case slices.Contains(files, f):
				d.errorf(w.line, "files %q: %s is listed twice", lines.ClipText(w.text), lines.ClipText(filepath.Base(f)))
			default:
				files = append(files, f)
			}
		}
	}
	if len(files) == 0 && len(words) > 0 {
		d.errorf(words[0].line, "files: all of them are empty")
	} else if len(files) == 0 {
		d.errorf(1, "files: an empty list; name at least one")
	}
	return files
}

// features reads features, a list of columns or named lists of them, and which of them are
// categories.
func (d *document) features(o *object) (tables []matrix) {
	if n := o.keys["features"]; n != nil && n.Kind == yaml.MappingNode {
		named := d.object(n, "features")
		for i := 0; i+1 < len(n.Content); i += 2 {
			key := d.word(n.Content[i], "a table's name")
			d.name(key, "a table")
			tables = append(tables, matrix{name: key.text, features: features(named.words(key.text))})
		}
	} else if n != nil {
		tables = []matrix{{name: "feat", features: features(o.words("features"))}}
	}
	taken := map[string]*feature{}
	for _, t := range tables {
		if len(t.features) == 0 {
			d.errorf(o.keys["features"].Line, "table %s has no columns", t.name)
		}
		for _, f := range t.features {
			if taken[f.text] != nil {
				d.errorf(f.line, "column %s is a feature twice", lines.ClipText(f.text))
			}
			taken[f.text] = f
		}
	}
	mark := func(w word, how word) {
		f := taken[w.text]
		switch {
		case f == nil:
			d.errorf(w.line, "categorical %s: it is not among the features; list it there as well", lines.ClipText(w.text))
			return
		case how.text != "onehot" && how.text != "index":
			d.errorf(how.line, "categorical %s: choose onehot or index", lines.ClipText(w.text))
		}
		if f.index = how.text == "index"; f.index {
			f.dim = 1
		}
		f.newCategory()
	}
	if n := o.keys["categorical"]; n != nil && n.Kind == yaml.MappingNode {
		d.object(n, "categorical") // keys are unique
		for i := 0; i+1 < len(n.Content); i += 2 {
			mark(d.word(n.Content[i], "a column"), d.word(n.Content[i+1], "onehot or index"))
		}
	} else {
		for _, w := range o.words("categorical") {
			mark(w, word{"onehot", w.line})
		}
	}
	d.hash(o, taken)
	d.maxCategories(o, taken)
	d.dates(o, taken)
	d.missing(o, taken)
	d.unknown(o, taken)
	d.scale(o, taken)
	d.units(o, taken)
	for _, t := range tables {
		d.checkKinds(t.features)
	}
	return tables
}

func features(words []word) (list []*feature) {
	for _, w := range words {
		list = append(list, &feature{column: column{w, "features"}})
	}
	return list
}

// name refuses what a dataset cannot call a thing.
func (d *document) name(w word, what string) string {
	if clean := cleanName(w.text); clean != w.text {
		d.errorf(w.line, "%s may not be called %q: names are up to %d letters, digits, _ and -, without a _ at either end or "+
			"two in a row; try %s", what, lines.ClipText(w.text), maxName, clean)
	}
	return w.text
}

const maxName = 100 // bytes

// cleanName makes s what a dataset accepts as the name of a type or relation.
func cleanName(s string) string {
	var b strings.Builder
	gap := false
	for _, r := range s {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			if gap && b.Len() > 0 {
				b.WriteByte('_')
			}
			gap = false
			b.WriteRune(r)
		} else {
			gap = true
		}
		if b.Len() >= maxName {
			break
		}
	}
	if b.Len() == 0 {
		return "unnamed"
	}
	return strings.TrimRight(b.String()[:min(b.Len(), maxName)], "_")
}

// cleanNames makes names of texts, no two the same.
func cleanNames(texts []string) []string {
	taken := map[string]bool{}
	names := make([]string, len(texts))
	for i, text := range texts {
		name := cleanName(text)
		for n := 2; taken[name]; n++ {
			suffix := "-" + strconv.Itoa(n)
			name = cleanName(text)
			name = name[:min(len(name), maxName-len(suffix))] + suffix
		}
		taken[name], names[i] = true, name
	}
	return names
}

// find returns the numbers of columns in a file: by name, or by number from 1.
func (e *entry) find(path string, titles []string, columns []column) ([]int, error) {
	found := make([]int, len(columns))
	for i, c := range columns {
		at := slices.Index(titles, c.text)
		if at < 0 {
			if n, err := strconv.Atoi(c.text); err == nil && n >= 1 && n <= len(titles) && e.form.of(path) != JSONL {
				at = n - 1
			}
		}
		if at < 0 {
			there := "; no column was found in it, so look whether it has another format"
			if len(titles) > 0 {
				there = "; there are " + lines.List(titles)
			}
			return nil, fmt.Errorf("%s: line %d: %s: there is no column %q in %s%s",
				e.schema, c.line, c.key, lines.ClipText(c.text), path, there)
		}
		if slices.Contains(titles[at+1:], c.text) {
			return nil, fmt.Errorf("%s: line %d: %s: two columns of %s are called %q; name one by its number, from 1 to %d",
				e.schema, c.line, c.key, path, lines.ClipText(c.text), len(titles))
		}
		found[i] = at
	}
	return found, nil
}

// of is the format of a file.
func (f form) of(path string) Format {
	if f.format != "" {
		return f.format
	}
	format, _ := formatOf(path)
	return format
}

func readFull(r io.Reader, b []byte) (int, error) {
	n, err := io.ReadFull(r, b)
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		err = nil
	}
	return n, err
}
