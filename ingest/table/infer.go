package table

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/ingest/parquet"
)

const (
	maxInferFiles  = 10_000
	maxInferDepth  = 3
	fewValues      = 32 // of text that are categories
	manyRelations  = 200
	manyClasses    = 100 // values of a label that may differ in every row
	mostOfOverlap  = 0.5
	maxStem        = 80      // bytes, so that more fits behind it
	largestFeature = 1 << 24 // integers beyond are no exact floats, and likelier ids
)

// Infer writes a first schema for the tables in a folder, by their names, headers and first rows,
// for a person to read and correct. Comments give the reason for each guess. The result belongs
// into dir. Of the options, Infer takes the form of text.
func Infer(dir string, o Options) ([]byte, error) {
	text, err := o.form()
	if err != nil {
		return nil, err
	}
	meta := filepath.Join(dir, "meta.yaml")
	if text, err := os.ReadFile(meta); err == nil && len(text) <= maxSchema {
		if made, err := dglSchema(meta, text); made != nil || err != nil {
			return made, err
		}
	}
	if made, err := stormSchema(dir); made != nil || err != nil {
		return made, err
	}
	groups, err := findTables(dir, text)
	if err != nil {
		return nil, err
	}
	var g guess
	for _, paths := range groups {
		t, err := sampleTable(dir, paths, text)
		if err != nil {
			g.notes = append(g.notes, fmt.Sprintf("%s: passed over: %s", strings.Join(relative(dir, paths[:1]), ""), plain(inSchema(err.Error()))))
			continue
		}
		g.tables = append(g.tables, t)
	}
	if err := g.properties(); err != nil {
		return nil, err
	}
	g.classify()
	if len(g.edges) == 0 {
		return nil, fmt.Errorf("%s: no table in it looks like edges: two columns such as src and dst, or that are called as ids of "+
			"nodes; write the schema by hand", dir)
	}
	return g.yaml(filepath.Base(dir)), nil
}

func relative(dir string, paths []string) (names []string) {
	for _, p := range paths {
		if rel, err := filepath.Rel(dir, p); err == nil {
			p = rel
		}
		names = append(names, filepath.ToSlash(p))
	}
	return names
}

var digits = regexp.MustCompile(`[0-9]+`)

// findTables lists the files that may be tables; those whose names differ in numbers only are one.
func findTables(dir string, text form) (groups [][]string, err error) {
	byName := map[string][]string{}
	count := 0
	err = filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		hidden := strings.HasPrefix(e.Name(), ".") || strings.HasPrefix(e.Name(), "_")
		depth := strings.Count(strings.TrimPrefix(path, dir), string(filepath.Separator))
		switch {
		case path == dir:
			return nil
		case e.IsDir() && (hidden || depth > maxInferDepth):
			return fs.SkipDir
		case hidden || !e.Type().IsRegular():
			return nil
		}
		_, known := formatOf(path)
		if name := strings.TrimSuffix(strings.TrimSuffix(e.Name(), ".gz"), ".zst"); !known && filepath.Ext(name) != ".txt" {
			return nil
		}
		if info, err := e.Info(); err != nil || info.Size() == 0 {
			return err
		}
		if count++; count > maxInferFiles {
			return fmt.Errorf("%s: more than %d tables; name a folder with fewer", dir, maxInferFiles)
		}
		key := filepath.Join(filepath.Dir(path), digits.ReplaceAllString(filepath.Base(path), "*"))
		byName[key] = append(byName[key], path)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if count == 0 {
		return nil, fmt.Errorf("%s: there are no tables in it: csv, tsv, txt, parquet or jsonl, perhaps with .gz or .zst", dir)
	}
	for _, key := range slices.Sorted(maps.Keys(byName)) {
		paths := byName[key]
		slices.SortFunc(paths, lines.Natural)
		groups = append(groups, alike(paths, text)...)
	}
	return groups, nil
}

// alike takes files apart whose columns differ.
func alike(paths []string, text form) (groups [][]string) {
	if len(paths) == 1 {
		return [][]string{paths}
	}
	byTitles := map[string]int{}
	for _, path := range paths {
		titles := path
		if r, err := sniff(path, text).open(path); err == nil {
			names := slices.Clone(r.titles())
			slices.Sort(names)
			titles = strings.Join(names, "\x00")
			r.Close()
		}
		i, ok := byTitles[titles]
		if !ok {
			i = len(groups)
			byTitles[titles] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], path)
	}
	return groups
}

// sniff guesses how to read a file from its name and its first line. The line is a header when none
// of its cells is a number. Numbers and characters are written as in text.
func sniff(path string, text form) form {
	f := form{header: true, numerals: text.numerals, encoding: text.encoding}
	format, known := formatOf(path)
	if known && (format == Parquet || format == JSONL) {
		return f
	}
	in, err := lines.OpenText(path, f.encoding)
	if err != nil {
		return f
	}
	defer in.Close()
	line, err := in.Next()
	if err != nil {
		return f
	}
	line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
	usual := map[Format]byte{CSV: ',', TSV: '\t'}[format]
	delim := usual
	if delim == 0 || bytes.IndexByte(line, delim) < 0 {
		for _, d := range []byte("\t,;| ") {
			if bytes.IndexByte(line, d) >= 0 {
				delim = d
				break
			}
		}
	}
	if delim == ',' && lines.SemicolonsPart(line) {
		delim = ';'
	}
	switch {
	case !known && delim == '\t':
		f.format = TSV
	case !known:
		f.format = CSV
		fallthrough
	case delim != usual:
		if delim != 0 && delim != ',' {
			f.delim = delim
		}
	}
	for cell := range bytes.SplitSeq(line, []byte{cmp.Or(delim, ',')}) {
		if _, err := lines.Float(bytes.Trim(cell, `" `), 64); err == nil {
			f.header = false
		}
	}
	return f
}

// inferred is a table and what its first rows say.
type inferred struct {
	dir     string
	files   []string // relative
	form    form
	marks   string // why the form has other numerals than programs write
	stem    string // its name in the form of a type or relation
	rows    int
	columns []*guessed
	masks   [3]*guessed // by the names of columns
	noMask  [3]bool     // the column holds something else than zeros and ones
	overlap [3]bool     // some row is in that mask and in the next, the first after the last
}

// guessed is a column of it.
type guessed struct {
	name     string // "" when it can only go by number
	number   int
	missing  int
	absent   int            // there, but NA or the like, which may be an id
	words    map[string]int // that may stand for nothing: ?, unknown
	integers int
	floats   int
	lists    int
	widths   map[int]int // of the lists
	large    bool        // some integers are beyond what a feature holds
	odd      bool        // some are not finite, or of a kind that is no feature
	values   map[string]int
	unique   bool
	refers   string // node type that it names
	byValues bool   // refers was found by its values, not by its name
	points   bool   // some numbers have a decimal point
	spelling lines.Spelling
	measured
}

func newGuessed(name string, number int, numerals lines.Numerals) *guessed {
	return &guessed{
		spelling: lines.Spelling{Numerals: numerals},
		name:     name, number: number, unique: true,
		widths: map[int]int{}, values: map[string]int{}, words: map[string]int{},
	}
}

func (c *guessed) is(names ...string) bool {
	if c == nil {
		return false
	}
	return slices.Contains(names, strings.ToLower(c.name)) || slices.Contains(names, strings.ToLower(c.base()))
}

// key returns the column's name in the schema.
func (c *guessed) key() string {
	if c.name == "" {
		return strconv.Itoa(c.number + 1)
	}
	return c.name
}

func (c *guessed) integer(rows int) bool { return c.integers == rows && rows > 0 }

// numeric reports whether it can be a feature as it stands.
func (c *guessed) numeric(rows int) bool {
	if c.odd || c.missing+c.absent > 0 || c.large || rows == 0 {
		return false
	}
	return c.integers+c.floats == rows || c.lists == rows && len(c.widths) == 1
}

// sampleTable reads the first rows. If its columns show that the table writes numbers in another
// way than text has, it reads the rows again in that way.
func sampleTable(dir string, paths []string, text form) (*inferred, error) {
	f := sniff(paths[0], text)
	t, err := sampleForm(dir, paths, f)
	if err != nil {
		return nil, err
	}
	numerals, why := t.numerals()
	if why == "" || text.numerals != (lines.Numerals{}) {
		return t, nil
	}
	f.numerals = numerals
	if t, err = sampleForm(dir, paths, f); err == nil {
		t.marks = why
	}
	return t, err
}

// numerals returns the one way in which columns write numbers that are not read yet, and a column
// that tells it. The column is empty if there is none, or if other columns contradict.
func (t *inferred) numerals() (way lines.Numerals, why string) {
	for _, c := range t.columns {
		n, ok := c.spelling.Way()
		switch {
		case !ok:
		case why != "" && n != way:
			return way, ""
		case why == "":
			way, why = n, fmt.Sprintf("column %s has %q", lines.ClipText(c.key()), c.spelling.First())
		}
	}
	for _, c := range t.columns {
		if c.points && !c.spelling.Reads(way) {
			return way, ""
		}
	}
	return way, why
}

func sampleForm(dir string, paths []string, f form) (*inferred, error) {
	t := &inferred{dir: dir, files: relative(dir, paths), form: f}
	base := filepath.Base(t.files[0])
	base, _, _ = strings.Cut(base, ".")
	stem := strings.Trim(digits.ReplaceAllString(base, ""), "_-. ")
	if stem == "" || strings.EqualFold(stem, "part") || strings.EqualFold(stem, "data") {
		stem = filepath.Base(filepath.Dir(filepath.Join(dir, t.files[0])))
	}
	stem = cleanName(strings.ToLower(stem))
	t.stem = strings.TrimRight(stem[:min(len(stem), maxStem)], "_")
	e := entry{schema: dir, form: t.form, files: paths[:1]}
	r, err := e.form.open(paths[0])
	if err != nil {
		return nil, err
	}
	defer r.Close()
	titles := r.titles()
	var at []int
	for i, title := range titles {
		if p, ok := r.(*parquetRows); ok && p.file.Columns()[i].Kind == parquet.Null {
			continue
		}
		c := newGuessed(title, i, f.numerals)
		again := slices.Index(titles, title) != i || slices.Contains(titles[i+1:], title)
		if again || !t.form.header || strings.TrimSpace(title) == "" {
			c.name = ""
		}
		at, t.columns = append(at, i), append(t.columns, c)
	}
	if err := r.choose(at); err != nil {
		return nil, err
	}
	t.findMasks()
	cells := make([]value, len(at))
	for t.rows < sampleRows {
		switch err := r.next(cells); {
		case err == io.EOF:
			return t, t.check()
		case errors.As(err, new(*rowError)):
			continue
		case err != nil:
			return nil, err
		}
		t.rows++
		for i := range cells {
			t.columns[i].add(&cells[i])
		}
		t.addMasks(cells)
	}
	return t, t.check()
}

func (t *inferred) check() error {
	t.settleMasks()
	if t.rows == 0 {
		return errors.New("there are no rows in it that can be read")
	}
	return nil
}

func (c *guessed) add(v *value) {
	if v.Kind == parquet.Null {
		c.missing++
		c.unique = false
		return
	}
	text := string(v.Text)
	switch v.Kind {
	case parquet.Text:
		if n, ok := c.spelling.Numerals.ID(v.Text); ok { // 12.0 is 12
			text = strconv.FormatInt(n, 10)
		}
	case parquet.Int:
		text = strconv.FormatInt(v.Int, 10)
	case parquet.Float:
		text = strconv.FormatFloat(v.Float, 'g', -1, 64)
	case parquet.List:
		text = fmt.Sprint(v.List) + string(v.Text)
	}
	if c.values[text]++; c.values[text] > 1 {
		c.unique = false
	}
	numbers, err := appendNumbers(nil, v, c.spelling.Numerals)
	if v.Kind == parquet.Text && !isMissing(v) && !ingest.MayBeMissing(text) {
		c.spelling.Add(v.Text)
		c.points = c.points || err == nil && bytes.IndexByte(v.Text, '.') >= 0
	}
	switch {
	case isMissing(v):
		c.absent++
	case v.Kind == parquet.Text && ingest.MayBeMissing(text):
		c.words[text]++
	case c.addDate(v):
	case err != nil, len(text) > 1 && text[0] == '0' && strings.Trim(text, "0123456789") == "": // 007 is a name
		c.odd = true
	case v.Kind == parquet.List || len(numbers) != 1:
		c.lists++
		c.widths[len(numbers)]++
	case looksInt(v, c.spelling.Numerals) || v.Kind == parquet.Int:
		c.integers++
		c.addNumber(numbers[0])
		c.large = c.large || numbers[0] > largestFeature || numbers[0] < -largestFeature
	default:
		c.addNumber(numbers[0])
		c.floats++
	}
}

// guess is a possible meaning of a folder of tables.
type guess struct {
	tables []*inferred
	nodes  []*inferredNodes
	edges  []*inferredEdges
	notes  []string
}

type inferredNodes struct {
	*inferred
	name  string
	id    *guessed
	joins []*inferredNodes // tables of the same nodes, whose labels and splits are joined
	chosen
	merged *guessed // the column of labels, where several are one type
}

// chosen are the rows of a table that an entry takes, by the text of a column.
type chosen struct {
	where   []string
	whereOf *guessed
	passed  map[*guessed]bool // columns that are neither features nor values
}

type inferredEdges struct {
	*inferred
	src, dst *guessed
	from, to string // node types
	relation string
	by       *guessed
	why      string
	foreign  bool // a column of a table of nodes
	chosen
}

// classify takes tables for edges and nodes.
func (g *guess) classify() {
	var rest []*inferred
	var ends []*inferredEdges
	for _, t := range g.tables {
		if e := t.asPair(); e != nil {
			ends = append(ends, e)
		} else {
			rest = append(rest, t)
		}
	}
	taken := map[string]bool{}
	for _, n := range g.nodes {
		taken[n.name] = true
	}
	add := func(t *inferred, id *guessed) {
		n := &inferredNodes{inferred: t, name: cleanName(singular(t.stem)), id: id}
		if taken[n.name] {
			n.name = t.stem
		}
		for k := 2; taken[n.name]; k++ {
			n.name = t.stem + "-" + strconv.Itoa(k)
		}
		taken[n.name] = true
		g.nodes = append(g.nodes, n)
	}
	var unsure, others []*inferred
	for _, t := range rest {
		if id := t.ownID(); id != nil {
			add(t, id)
		} else if !t.form.header && t.alone() {
			add(t, t.columns[0])
		} else {
			unsure = append(unsure, t)
		}
	}
	for _, t := range unsure { // user_id may name a row, or a user for it
		id := t.anyID()
		if id == nil || len(g.references(t)) > 1 {
			others = append(others, t)
		} else {
			add(t, id)
		}
	}
	others = slices.DeleteFunc(others, func(t *inferred) bool {
		id := g.idsOf(t)
		if id != nil {
			add(t, id)
		}
		return id != nil
	})
	g.joinTables()
	for _, t := range rest {
		for _, c := range t.columns {
			c.refers = g.refersTo(c)
		}
	}
	for _, n := range g.nodes { // columns that name nodes of other tables
		if n.passed != nil {
			continue // a property graph has all of its edges in rows
		}
		for _, c := range n.columns {
			if c != n.id && c.refers != "" && c.refers != n.name {
				g.edges = append(g.edges, &inferredEdges{
					inferred: n.inferred, src: n.id, dst: c, from: n.name, to: c.refers, relation: "has", foreign: true,
					why: fmt.Sprintf("column %s is called as the ids of %s", c.name, c.refers),
				})
			}
		}
	}
	for _, t := range others {
		refers := g.references(t)
		if len(refers) < 2 {
			refers = g.referByValues(t)
		}
		if len(refers) < 2 {
			g.notes = append(g.notes, fmt.Sprintf("%s: passed over: no column is an id that is unique in the first %d rows, and no "+
				"two look like the ends of edges", t.files[0], t.rows))
			continue
		}
		ends = append(ends, &inferredEdges{
			inferred: t, src: refers[0], dst: refers[1], from: refers[0].refers, to: refers[1].refers,
			why: whyEnds(refers[0], refers[1]),
		})
	}
	for _, e := range ends {
		e.relation = cleanName(strings.ReplaceAll(e.stem, "__", "_"))
		if e.relation == "edge" || e.relation == "edges" || e.relation == "edge_list" || e.relation == "unnamed" {
			e.relation = "to"
		}
		if e.from == "" {
			e.from, e.to = g.typeOf(e.src), g.typeOf(e.dst)
		}
		e.findRelation()
		if !g.joins(e) {
			g.edges = append(g.edges, e)
		}
	}
	seen := map[string]int{}
	for _, e := range g.edges {
		key := e.from + ":" + e.relation + ":" + e.to
		if seen[key]++; seen[key] > 1 && e.by == nil {
			e.relation += "-" + strconv.Itoa(seen[key])
		}
	}
}

// joins adds the files of a knowledge graph to one of the same form: train.txt, valid.txt,
// test.txt.
func (g *guess) joins(e *inferredEdges) bool {
	if e.by == nil {
		return false
	}
	for _, other := range g.edges {
		if other.by == nil || other.from != e.from || other.to != e.to {
			continue
		}
		ends := other.src.key() == e.src.key() && other.dst.key() == e.dst.key()
		if other.form == e.form && ends && other.by.key() == e.by.key() {
			other.files = append(other.files, e.files...)
		} else {
			g.notes = append(g.notes, fmt.Sprintf("%s: passed over: edges from %s to %s by a column of relations are in %s already",
				e.files[0], e.from, e.to, other.files[0]))
		}
		return true
	}
	return false
}

// asPair takes a table for edges when two columns are called so, or when it has no header and two
// or three columns.
func (t *inferred) asPair() *inferredEdges {
	if t.form.header {
		return t.namedPair()
	}
	if t.alone() {
		return nil
	}
	if n := len(t.columns); n < 2 || t.columns[0].missing > 0 || t.columns[0].floats > 0 {
		return nil
	} else if n == 3 && t.columns[1].relational(t.rows) && t.columns[2].floats == 0 && t.columns[2].missing == 0 {
		return &inferredEdges{
			inferred: t, src: t.columns[0], dst: t.columns[2], by: t.columns[1],
			why: "no header, and few different texts between two columns",
		}
	}
	if t.columns[1].floats > 0 || t.columns[1].missing > 0 {
		return nil
	}
	return &inferredEdges{
		inferred: t, src: t.columns[0], dst: t.columns[1], why: "no header, so the first two columns are taken for ids",
	}
}

// namedPair takes the columns that the header calls the ends of edges.
func (t *inferred) namedPair() *inferredEdges {
	var names []string
	for _, c := range t.columns {
		names = append(names, c.name)
	}
	s, d, pairs := ingest.EdgeEnds(names)
	if pairs == 0 {
		return nil
	}
	src, dst := t.columns[s], t.columns[d]
	return &inferredEdges{inferred: t, src: src, dst: dst, why: fmt.Sprintf("columns %s and %s", src.name, dst.name)}
}

// alone reports whether a table without a header lists nodes: its first column names each row
// alone, and the second repeats and names none of them, or has fractions.
func (t *inferred) alone() bool {
	if len(t.columns) < 2 || t.rows < 3 {
		return false
	}
	id, next := t.columns[0], t.columns[1]
	if !id.unique || id.missing > 0 || id.floats+id.lists > 0 {
		return false
	}
	for v := range next.values {
		if id.values[v] > 0 {
			return false
		}
	}
	return !next.unique || next.floats > 0
}

// relational reports whether a column of text repeats as names of relations do.
func (c *guessed) relational(rows int) bool {
	return c.missing == 0 && c.integers+c.floats+c.lists == 0 && len(c.values) <= manyRelations &&
		(len(c.values)*4 <= rows || len(c.values) == 1)
}

// findRelation looks for a column that tells edges apart.
func (e *inferredEdges) findRelation() {
	for _, c := range e.columns {
		named := c.is("relation", "rel", "predicate", "edge_type", "relation_type")
		if e.by == nil && c != e.src && c != e.dst && named && c.missing == 0 && len(c.values) <= manyRelations {
			e.by = c
		}
	}
}

// references are the columns that are called as the ids of known types.
func (g *guess) references(t *inferred) (columns []*guessed) {
	for _, c := range t.columns {
		if g.refersTo(c) != "" {
			columns = append(columns, c)
		}
	}
	return columns
}

// ownID is the column that names the rows, by its name: unique in the sample, and called id, or
// after the table.
func (t *inferred) ownID() *guessed {
	kind := singular(t.stem)
	return cmp.Or(
		t.idCalled(func(n string) bool { return n == "id" || n == "node_id" || n == "node" || n == "uuid" || n == "key" }),
		t.idCalled(func(n string) bool { return n == kind+"_id" || n == kind+"id" || n == kind || n == kind+"_name" }),
	)
}

// anyID is one that is called as ids are.
func (t *inferred) anyID() *guessed {
	return t.idCalled(func(n string) bool { return strings.HasSuffix(n, "_id") || strings.HasSuffix(n, "_key") || n == "name" })
}

func (t *inferred) idCalled(fits func(name string) bool) *guessed {
	for _, c := range t.columns {
		name := strings.ToLower(c.name)
		if c.name != "" && (fits(name) || fits(ingest.SnakeName(c.name))) && c.unique && c.missing == 0 && c.floats+c.lists == 0 {
			return c
		}
	}
	return nil
}

// typeCalled is the node type whose ids a column is called after: user, user_id, users,
// buyer_user_id.
func (g *guess) typeCalled(c *guessed) string {
	name := strings.ToLower(c.name)
	for _, suffix := range []string{"_id", "_key", "_name", "id"} {
		if cut, ok := strings.CutSuffix(name, suffix); ok && cut != "" {
			name = cut
			break
		}
	}
	best := ""
	for _, n := range g.nodes {
		t := strings.ToLower(n.name)
		if n.id == c {
			continue
		}
		own := !n.id.is("id", "name", "key", "uuid", "node", "node_id") && strings.EqualFold(c.name, n.id.name)
		if (own || singular(name) == t || strings.HasSuffix(name, "_"+t)) && len(t) > len(best) {
			best = n.name
		}
	}
	return best
}

// typeOf is the node type in whose sample most values of an end are, else that which it is called
// after, else the only one.
func (g *guess) typeOf(c *guessed) string {
	best, most := "", mostOfOverlap
	for _, n := range g.nodes {
		found := 0
		for v := range c.values {
			if n.id.values[v] > 0 {
				found++
			}
		}
		if share := float64(found) / float64(max(len(c.values), 1)); share > most {
			best, most = n.name, share
		}
	}
	if best == "" {
		best = g.typeCalled(c)
	}
	if best == "" && len(g.nodes) == 1 {
		best = g.nodes[0].name
	}
	return cmp.Or(best, "node")
}

// singular is a word for one: users, companies, classes.
func singular(s string) string {
	switch {
	case strings.HasSuffix(s, "ies") && len(s) > 4:
		return s[:len(s)-3] + "y"
	case strings.HasSuffix(s, "sses") || strings.HasSuffix(s, "xes"):
		return s[:len(s)-2]
	case strings.HasSuffix(s, "s") && !strings.HasSuffix(s, "ss") && len(s) > 2:
		return s[:len(s)-1]
	}
	return s
}
