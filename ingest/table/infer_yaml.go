package table

import (
	"bytes"
	"fmt"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// yaml writes the guess as a schema.
func (g *guess) yaml(name string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "# A first schema, from the names, headers and first %d rows of the tables. Read it, and correct it.\n",
		sampleRows)
	for _, n := range g.notes {
		fmt.Fprintf(&b, "# %s\n", plain(n))
	}
	fmt.Fprintf(&b, "name: %s\n", quote(store.CleanName(name)))
	if g.types() > 1 {
		b.WriteString("reverse: yes # messages also flow from destinations to sources; no leaves that out\n")
	}
	declared := map[string]bool{}
	if len(g.nodes) > 0 {
		b.WriteString("nodes:\n")
		isLabelled := func(n *inferredNodes) bool { return n.isLabelled(n.label(g.foreign(n))) }
		labelled := slices.ContainsFunc(g.nodes, isLabelled)
		for _, n := range g.nodes {
			n.write(&b, g.foreign(n), labelled && !isLabelled(n), g.connected(n))
			declared[n.name] = true
		}
		for _, e := range g.edges {
			for _, t := range []string{e.from, e.to} {
				if !declared[t] {
					declared[t] = true
					fmt.Fprintf(&b, "  - type: %s # no table lists them: they are what edges name\n", quote(t))
				}
			}
		}
	}
	b.WriteString("edges:\n")
	for _, e := range g.edges {
		e.write(&b)
	}
	return b.Bytes()
}

// connected reports whether edges begin or end at a type.
func (g *guess) connected(n *inferredNodes) bool {
	return slices.ContainsFunc(g.edges, func(e *inferredEdges) bool { return e.from == n.name || e.to == n.name })
}

// foreign are the columns of a table of nodes that became edges.
func (g *guess) foreign(n *inferredNodes) (columns []*guessed) {
	for _, e := range g.edges {
		if e.foreign && e.inferred == n.inferred {
			columns = append(columns, e.dst)
		}
	}
	return columns
}

// plain makes a text fit for a comment.
func plain(s string) string {
	return strings.ToValidUTF8(strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f || r == 0x85 || r == 0x2028 || r == 0x2029 || r == 0xfeff {
			return '?'
		}
		return r
	}, s), "?")
}

var bare = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_./-]*$|^[1-9][0-9]*$`)

// quote writes a word of YAML.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "null", "true", "false", "yes", "no", "on", "off", "y", "n":
		return strconv.Quote(s)
	}
	if bare.MatchString(s) {
		return s
	}
	return strconv.Quote(s)
}

func quotes(list []string) string {
	var words []string
	for _, s := range list {
		words = append(words, quote(s))
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// writeFiles writes where the table is and how to read it.
func (t *inferred) writeFiles(b *bytes.Buffer) {
	files := quotes(t.files)
	if len(t.files) == 1 {
		files = quote(t.files[0]) // with brackets too: what exists is no pattern
	}
	if len(t.files) > 1 {
		if pattern, ok := t.pattern(); ok {
			files = quote(pattern)
		}
	}
	fmt.Fprintf(b, "    files: %s\n", files)
	if t.form.format != "" {
		fmt.Fprintf(b, "    format: %s\n", t.form.format)
	}
	if t.form.delim != 0 {
		fmt.Fprintf(b, "    delimiter: %q\n", string(t.form.delim))
	}
	decimal, thousands := t.form.numerals.Words()
	if encoding := t.form.encoding.String(); encoding != "" {
		fmt.Fprintf(b, "    encoding: %s\n", encoding)
	}
	why := ""
	if t.marks != "" {
		why = " # " + plain(t.marks)
	}
	if decimal != "" {
		fmt.Fprintf(b, "    decimal: %s%s\n", decimal, why)
		why = ""
	}
	if thousands != "" {
		fmt.Fprintf(b, "    thousands: %s%s\n", thousands, why)
	}
	if !t.form.header {
		b.WriteString("    header: no # a cell of the first row is a number\n")
	}
}

// types counts the types of nodes.
func (g *guess) types() int {
	names := map[string]bool{}
	for _, n := range g.nodes {
		names[n.name] = true
	}
	for _, e := range g.edges {
		names[e.from], names[e.to] = true, true
	}
	return len(names)
}

// pattern is one that stands for all files of a group: where their numbers differ, if their names
// have no other star.
func (t *inferred) pattern() (string, bool) {
	dir, base := path.Split(t.files[0])
	if strings.ContainsAny(t.files[0], `*?[\`) {
		return "", false
	}
	ends := digits.FindAllStringIndex(base, -1)
	for i := len(ends) - 1; i >= 0; i-- {
		pattern := dir + base[:ends[i][0]] + "*" + base[ends[i][1]:]
		other := func(f string) bool { ok, _ := path.Match(pattern, f); return !ok }
		if !slices.ContainsFunc(t.files, other) && t.only(pattern) {
			return pattern, true
		}
	}
	return "", false
}

// only reports whether a pattern finds the group and nothing else.
func (t *inferred) only(pattern string) bool {
	found, err := filepath.Glob(filepath.Join(t.dir, filepath.FromSlash(pattern)))
	n := 0
	for _, f := range found {
		if info, err := os.Stat(f); err == nil && info.Size() > 0 {
			n++
		}
	}
	return err == nil && n == len(t.files)
}

// isLabelled reports whether a column is a label for sure: by its name, or since it is called as
// some labels are and the table has a split, which is of nodes with labels.
func (n *inferredNodes) isLabelled(label *guessed) bool {
	return label.is(labelNames...) || label != nil && label.ends(perhapsLabels) && n.splitText() != ""
}

// write writes an entry. foreign are columns that name nodes of other types. If another type is
// labelled, columns that are perhaps labels are features. Connected nodes have their edges counted.
func (n *inferredNodes) write(b *bytes.Buffer, foreign []*guessed, other, connected bool) {
	fmt.Fprintf(b, "  - type: %s\n", quote(n.name))
	n.writeFiles(b)
	writeWhere(b, n.whereOf, n.where)
	kind := "text"
	if n.id.integer(n.rows) {
		kind = "integers"
	}
	fmt.Fprintf(b, "    id: %s # unique in the first %d rows, %s\n", quote(n.id.key()), n.rows, kind)
	var p proposal
	var passed []string
	label := n.label(foreign)
	parted := n.splitText()
	named, sure := label.is(labelNames...), n.isLabelled(label)
	other = other && label != nil && label.ends(perhapsLabels)
	if other {
		label = nil
	}
	split := n.splitColumn()
	if n.masked() {
		split = nil
	}
	for _, c := range n.columns {
		missing := c.missing + c.absent
		texts := missing+c.integers+c.floats+c.lists < n.rows
		switch {
		case c == n.id || slices.Contains(foreign, c) || c == split || n.masked() && slices.Contains(n.masks[:], c):
		case c == n.merged:
			p.features, p.categories = append(p.features, c.key()), append(p.categories, c.key())
		case n.passed[c] || n.passed != nil && c.missing == n.rows:
		case n.isMask(c):
			passed = append(passed, c.key()+" (it is called as a mask, and with others it is no split)")
		case c == label:
		case c.ends(labelNames) && !n.coordinate(c),
			!other && !named && c.ends(perhapsLabels) && c.isLabel(n.rows):
			passed = append(passed, c.key()+" (perhaps a label)")
		case n.coordinate(c) && label == nil:
			passed = append(passed, c.key()+" (a label or, beside x, a coordinate)")
		case c.is("split", "fold") && c.integers > 0:
			passed = append(passed, c.key()+" (perhaps a split: with split, 0 is train, 1 valid and 2 test)")
		case strings.HasSuffix(strings.ToLower(c.name), "_id") || c.is("id", "") && n.form.header:
			passed = append(passed, c.key()+" (it looks like an id)")
		case c.dated(n.rows):
			p.date(c)
		case c.numeric(n.rows) || c.amount(n.rows):
			p.number(c)
		case c.integers+c.floats > 0 && len(c.words) > 0 && c.integers+c.floats+missing+c.worded() == n.rows && !c.odd:
			passed = append(passed, fmt.Sprintf("%s (%d of %d rows have no number; missing_words: %s with missing: mean would fill them)",
				c.key(), missing+c.worded(), n.rows, quotes(slices.Sorted(maps.Keys(c.words)))))
		case c.spelling.Remedy() != "":
			passed = append(passed, c.passedOver())
		case texts && len(c.values) <= fewValues && len(c.values)*4 <= n.rows:
			p.features, p.categories = append(p.features, c.key()), append(p.categories, c.key())
		case c.large:
			passed = append(passed, c.key()+" (large integers, as ids and times are)")
		case texts && c.manyTexts(n.rows) == "max_categories":
			p.features, p.capped = append(p.features, c.key()), append(p.capped, c)
		case texts && c.manyTexts(n.rows) == "hash":
			p.features, p.hashed = append(p.features, c.key()), append(p.hashed, c)
		case missing > 0:
			fill := ""
			if c.integers+c.floats+missing == n.rows {
				fill = "; missing: mean would fill them"
			}
			passed = append(passed, fmt.Sprintf("%s (%d of %d rows have none%s)", c.key(), missing, n.rows, fill))
		default:
			passed = append(passed, c.key()+" (text)")
		}
	}
	p.write(b, n.rows)
	if connected && len(p.features) > 0 {
		b.WriteString("    counts: all # and columns with the number of its edges, by relation and direction\n")
	}
	switch {
	case label == nil && len(n.joins) > 0:
	case label == nil && len(n.columns) > 1:
		b.WriteString("    # label: COLUMN # the column of the classes to predict, if there is one\n")
	case label == nil:
	case named:
		fmt.Fprintf(b, "    label: %s # by its name\n", quote(label.key()))
	case sure:
		fmt.Fprintf(b, "    label: %s # by its name, its %d different values, and since the table has a split\n", quote(label.key()), len(label.values))
	case n.form.header:
		fmt.Fprintf(b, "    # label: %s # perhaps, by its name and %d different values: uncomment it to predict it, or list it as a feature\n", plain(quote(label.key())), len(label.values))
	default:
		fmt.Fprintf(b, "    # label: %s # perhaps: the only column beside the ids has %d different integers; uncomment it to predict it, or list it as a feature\n",
			quote(label.key()), len(label.values))
	}
	if parted != "" {
		b.WriteString("    " + parted)
	}
	var worded []*guessed
	for _, c := range n.columns {
		many := slices.Contains(p.capped, c) || slices.Contains(p.hashed, c)
		if c == label && sure || many || slices.Contains(p.categories, c.key()) {
			worded = append(worded, c)
		}
	}
	writeWords(b, worded...)
	n.writeJoins(b, sure, parted != "")
	if len(passed) > 0 {
		fmt.Fprintf(b, "    # not used: %s\n", plain(strings.Join(passed, ", ")))
	}
}

// worded counts the cells with words that may stand for nothing.
func (c *guessed) worded() (n int) {
	for _, k := range c.words {
		n += k
	}
	return n
}

// coordinate reports whether a column y of numbers stands beside a column x.
func (t *inferred) coordinate(c *guessed) bool {
	return c.is("y") && c.integers+c.floats > 0 && slices.ContainsFunc(t.columns, func(x *guessed) bool { return x.is("x") })
}

// labelNames are names of labels, and perhapsLabels names of labels or features; both end longer
// names too.
var (
	labelNames    = slices.Concat([]string{"label"}, ingest.ClassNames, ingest.LabelNames)
	perhapsLabels = []string{"category", "type", "kind", "genre", "topic", "segment", "community", "group", "outcome", "subject",
		"churn", "churned", "fraud", "converted", "defaulted"}
)

// ends reports whether the last word of the name is one of some, or their plural.
func (c *guessed) ends(words []string) bool {
	name := strings.ToLower(c.name)
	if i := strings.LastIndexAny(name, "_-. "); i >= 0 {
		name = name[i+1:]
	}
	return slices.Contains(words, name) || slices.Contains(words, singular(name))
}

// label is the column that is likeliest to hold classes: one that is called so, else one that may
// be; nil without one.
func (n *inferredNodes) label(foreign []*guessed) *guessed {
	if !n.form.header {
		c := n.columns[len(n.columns)-1]
		small := c.integers > 0 && c.integers+c.missing == n.rows && !c.large
		if len(n.columns) == 2 && small && c.isLabel(n.rows) {
			return c
		}
		return nil
	}
	called := []func(c *guessed) bool{
		func(c *guessed) bool { return c.is(labelNames...) },
		func(c *guessed) bool { return c.ends(labelNames) },
		func(c *guessed) bool { return c.ends(perhapsLabels) },
	}
	for _, fits := range called {
		for _, c := range n.columns {
			if c != n.id && !n.passed[c] && !slices.Contains(foreign, c) && fits(c) && c.isLabel(n.rows) && !n.coordinate(c) {
				return c
			}
		}
	}
	return nil
}

func (c *guessed) isSplit() bool {
	for v := range c.values {
		if _, ok := ingest.PartOf([]byte(v)); !ok {
			return false
		}
	}
	return len(c.values) > 0 && c.lists == 0
}

// isLabel reports whether the values repeat, or are few.
func (c *guessed) isLabel(rows int) bool {
	return c.lists == 0 && len(c.values) > 0 && (len(c.values) <= manyClasses || len(c.values)*4 <= rows)
}

// passedOver names a column that is not used, and the way to read its numbers if it has some.
func (c *guessed) passedOver() string {
	if remedy := c.spelling.Remedy(); remedy != "" {
		return fmt.Sprintf("%s (%s)", c.key(), inSchema(remedy))
	}
	return c.key()
}

// emptyEnds counts the rows without an end.
func (e *inferredEdges) emptyEnds() (n int) {
	for _, c := range []*guessed{e.src, e.dst} {
		n = max(n, c.missing+c.absent+c.worded())
	}
	return n
}

func (e *inferredEdges) write(b *bytes.Buffer) {
	relation := e.relation
	if e.by != nil {
		relation = anyRelation
	}
	fmt.Fprintf(b, "  - type: %q # %s\n", e.from+":"+relation+":"+e.to, plain(e.why))
	e.writeFiles(b)
	writeWhere(b, e.whereOf, e.where)
	fmt.Fprintf(b, "    src: %s\n    dst: %s\n", quote(e.src.key()), quote(e.dst.key()))
	if e.by != nil {
		fmt.Fprintf(b, "    relation_column: %s # %d different values in the first %d rows\n",
			quote(e.by.key()), len(e.by.values), e.rows)
	}
	if n := e.emptyEnds(); n > 0 {
		fmt.Fprintf(b, "    empty_ends: skip # %d of the first %d rows have no end, and make no edge\n", n, e.rows)
		writeWords(b, e.src, e.dst)
	}
	if e.foreign {
		return
	}
	var passed, features []string
	weight, time := "", ""
	for _, c := range e.columns {
		name := strings.ToLower(c.name)
		switch {
		case c == e.src || c == e.dst || c == e.by || e.passed[c] || e.passed != nil && c.missing == e.rows:
		case weight == "" && c.is("weight", "w", "rating", "score", "amount") && c.numeric(e.rows) && c.lists == 0:
			weight = c.key()
		case time == "" && (c.is("time", "ts", "t", "date", "unixtime") || strings.Contains(name, "timestamp")) && c.integer(e.rows):
			time = c.key()
		case c.lists == e.rows && c.numeric(e.rows):
			features = append(features, c.key())
		default:
			passed = append(passed, c.passedOver())
		}
	}
	if len(features) > 0 {
		fmt.Fprintf(b, "    features: %s # lists of numbers\n", quotes(features))
	}
	if weight != "" {
		fmt.Fprintf(b, "    weight: %s # by its name\n", quote(weight))
	}
	if time != "" {
		fmt.Fprintf(b, "    columns: [{name: time, column: %s, type: i64}] # by its name, and integers\n", quote(time))
	}
	if len(passed) > 0 {
		fmt.Fprintf(b, "    # not used: %s\n", plain(strings.Join(passed, ", ")))
	}
}
