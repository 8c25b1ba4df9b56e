package table

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// follow makes the tables of the schema be encoded as l's. It takes columns by name, in l's order,
// and categories, means, and rules for missing numbers from l. The schema must list
// all columns of l's tables, and no others.
func (s *schema) follow(l *ingest.Like) error {
	found := map[*store.TableEncoding]bool{}
	follow := func(e *entry, tables []matrix, of store.Table) error {
		for i := range tables {
			m := &tables[i]
			of.Name = m.name
			enc := l.Encodings.Of(&of)
			if enc == nil {
				return e.failLike(l, m, "that dataset has no such table; leave its columns out of the schema")
			}
			found[enc] = true
			if err := e.followTable(l, m, enc); err != nil {
				return err
			}
		}
		return nil
	}
	types, relations, declared := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range s.edges {
		if !e.by.set() {
			declared[ingest.Relation{Src: e.src, Name: e.relation, Dst: e.dst}.Key()] = true
		}
	}
	for _, n := range s.nodes {
		types[n.name] = true
		if err := follow(&n.entry, n.tables, store.Table{NodeType: n.name}); err != nil {
			return err
		}
		if err := n.followLabel(l); err != nil {
			return err
		}
	}
	for _, e := range s.edges {
		keys := []string{(&store.Relation{Src: e.src, Name: e.relation, Dst: e.dst}).Key()}
		if e.by.set() {
			if keys = e.followRelations(l, declared); len(keys) == 0 {
				return fmt.Errorf("%s: line %d: {like} %s: there are no relations from %s to %s there that no other entry has; leave the entry out",
					e.schema, e.line, l.Name, e.src, e.dst)
			}
		}
		for _, key := range keys {
			relations[key] = true
			if err := follow(&e.entry, e.tables, store.Table{Relation: key}); err != nil {
				return err
			}
		}
	}
	for i := range l.Encodings.Tables {
		t := &l.Encodings.Tables[i]
		if !found[t] && t.Made == "" && (types[t.NodeType] || relations[t.Relation]) {
			return fmt.Errorf("%s: {like} %s: its table %s of %s has the columns %s; list them under features",
				s.path, l.Name, t.Name, t.Owner(), lines.List(l.Columns(t)))
		}
	}
	return nil
}

// followRelations takes the relations between the entry's types that no other entry declares, with
// their names in the source. It returns their keys.
func (e *edges) followRelations(l *ingest.Like, declared map[string]bool) (keys []string) {
	var texts []string
	for _, r := range l.Between(e.src, e.dst) {
		if !declared[r.Key] {
			keys, e.names, texts = append(keys, r.Key), append(e.names, r.Name), append(texts, r.Text)
		}
	}
	if len(keys) > 0 {
		e.relations = ingest.KnownCategory(texts, "the relations of "+l.Name)
		e.known = true
	}
	return keys
}

func (e *entry) failLike(l *ingest.Like, m *matrix, format string, args ...any) error {
	return fmt.Errorf("%s: line %d: {like} %s: table %s: %s",
		e.schema, e.line, l.Name, m.name, fmt.Sprintf(format, args...))
}

// followTable puts the features of a table in the order of enc, and sets how they are encoded.
func (e *entry) followTable(l *ingest.Like, m *matrix, enc *store.TableEncoding) error {
	fail := func(format string, args ...any) error { return e.failLike(l, m, format, args...) }
	if l.Silent {
		for _, f := range m.features {
			if f.category != nil || f.missing == mean {
				return fail("an earlier build made that dataset, and it does not say the categories and means of its columns, such as %s; ingest it again", lines.ClipText(f.text))
			}
		}
		return nil
	}
	switch {
	case enc.Made != "":
		return fail("there it was made by {features} %s; leave the columns out of the schema", enc.Made)
	case !enc.Named() || enc.Columns[0].Kind == store.FoldedColumns: // then it is the only one
		return fail("its columns have no names on record there, or too many; " +
			"ingest that dataset from tables with headers, or leave {like} out")
	}
	byName := map[string]*feature{}
	for _, f := range m.features {
		byName[e.title(f.column)] = f
	}
	there := l.Columns(enc)
	ordered := make([]*feature, 0, len(there))
	for i := range enc.Columns {
		c := &enc.Columns[i]
		f := byName[c.Name]
		if f == nil {
			return fail("column %s is there, and not among the features of the schema; list it", lines.ClipText(c.Name))
		}
		if err := f.follow(l, c); err != nil {
			return fail("column %s %v", lines.ClipText(c.Name), err)
		}
		ordered = append(ordered, f)
	}
	for _, f := range m.features {
		if name := e.title(f.column); !slices.Contains(there, name) {
			return fail("column %s is not there; leave it out of features; there are %s", lines.ClipText(name), lines.List(there))
		}
	}
	m.features = ordered
	return nil
}

// follow sets how the feature is encoded, as c is. The schema may leave out what c says.
func (f *feature) follow(l *ingest.Like, c *store.Encoding) error {
	if c.Encoder == store.HashedCategory {
		return f.followHash(c)
	}
	if c.Kind == store.CategoryColumn {
		index := c.Encoder == store.CategoryIndex
		if f.category != nil && f.index != index {
			return fmt.Errorf("is categorical by %s there; write categorical: {%s: %s}",
				c.Encoder, lines.ClipText(f.text), c.Encoder)
		}
		if f.missing != "" {
			return fmt.Errorf("is categorical there, so a missing value has no category; leave the column out of missing")
		}
		if err := f.notNumeric("categorical by " + c.Encoder); err != nil {
			return err
		}
		bucket := c.Unknown == store.UnknownBucket
		if f.rule == unknownBucket && !bucket {
			return fmt.Errorf("has no bucket for unknown categories there; choose unknown: {%s: 0} or refuse, "+
				"or ingest that dataset again with unknown: {%s: bucket}, and train on it", lines.ClipText(f.text), lines.ClipText(f.text))
		}
		f.known, f.index, f.dim, f.bucket, f.rare = true, index, 0, bucket, 0
		if index {
			f.dim = 1
		}
		f.category = ingest.KnownCategory(c.Categories,
			fmt.Sprintf("the categories of %s; in the schema, unknown: {%s: 0} takes it for a missing one",
				l.Name, lines.ClipText(f.text)))
		return nil
	}
	f.bucket = false
	if err := f.followNumbers(c); err != nil {
		return err
	}
	rule := missing(c.Missing)
	if c.Missing == "" {
		rule = refuse
	}
	switch {
	case f.category != nil:
		return fmt.Errorf("is a %s there; leave it out of categorical", c.Kind)
	case f.missing != "" && f.missing != rule:
		return fmt.Errorf("has the rule %s for missing numbers there; write missing: {%s: %s}, or leave it out",
			rule, lines.ClipText(f.text), rule)
	}
	f.known, f.missing, f.dim, f.average = true, rule, int(c.Width), average{means: c.Means}
	f.hashed = 0
	if rule == indicate {
		f.dim--
	}
	return nil
}

// notNumeric refuses keys of the schema for numbers and dates, since the column is something else
// in the dataset to follow.
func (f *feature) notNumeric(there string) error {
	switch {
	case f.scaler != nil:
		return fmt.Errorf("is %s there, and no number to scale; leave it out of scale", there)
	case f.dates != nil:
		return fmt.Errorf("is %s there; leave it out of dates", there)
	case f.hashed > 0:
		return fmt.Errorf("is %s there; leave it out of hash", there)
	}
	return nil
}

// followHash hashes the column as in c.
func (f *feature) followHash(c *store.Encoding) error {
	hashed := f.hashed
	f.hashed = 0
	switch {
	case f.category != nil || hashed > 0 && int64(hashed) != c.Width:
		return fmt.Errorf("is hashed into %d columns there; write hash: {%s: %d}", c.Width, lines.ClipText(f.text), c.Width)
	case f.missing != "":
		return fmt.Errorf("is categorical there, so a missing value has no category; leave the column out of missing")
	}
	if err := f.notNumeric("hashed"); err != nil {
		return err
	}
	f.known, f.hashed, f.dim, f.bucket = true, int(c.Width), int(c.Width), false
	return nil
}

// followNumbers sets how numbers and dates are scaled, as in c.
func (f *feature) followNumbers(c *store.Encoding) error {
	name := lines.ClipText(f.text)
	switch {
	case f.hashed > 0:
		return fmt.Errorf("is a %s there; leave it out of hash", c.Kind)
	case f.dates != nil && c.Kind != store.DateColumn:
		return fmt.Errorf("is a %s there, and no date; leave it out of dates", c.Kind)
	case f.dates != nil && !slices.Equal(f.dates.parts, c.Parts):
		return fmt.Errorf("is a date of other parts there; write dates: {%s: [%s]}, or leave it out of dates", name, strings.Join(c.Parts, ", "))
	case f.scaler != nil && c.Scale == "":
		return fmt.Errorf("is not scaled there; leave it out of scale")
	case f.scaler != nil && f.scaler.text != c.Scale:
		return fmt.Errorf("is scaled by %s there; write scale: {%s: %s}, or leave it out of scale", c.Scale, name, c.Scale)
	}
	f.scaler = nil
	if c.Scale != "" {
		f.scaler = &scaler{word: word{c.Scale, f.line}, learnt: c.Scalings, known: true}
	}
	if c.Kind != store.DateColumn {
		return nil
	}
	of := &dates{parts: c.Parts, unit: lines.Units[f.unit], given: true}
	if of.unit == 0 {
		of.unit = lines.Units[c.Unit]
	}
	if c.Reference != "" {
		t, _, ok := lines.ParseInstant([]byte(c.Reference))
		if f.dates != nil && f.dates.given && f.dates.reference != t {
			return fmt.Errorf("has ages until %s there; write reference: {%s: %s}, or leave it out of reference", c.Reference, name, c.Reference)
		}
		if of.reference = t; !ok {
			return fmt.Errorf("has ages until %q there, which is no date", lines.ClipText(c.Reference))
		}
	}
	f.dates = of
	return nil
}

// unknown counts the cells whose category the followed dataset does not have.
type unknown struct {
	cells int64
	first string // category
}

func (u *unknown) add(category []byte) {
	if u.cells++; u.cells == 1 {
		u.first = string(category)
	}
}

// taken notes the columns with categories that are taken for missing ones.
func taken(tables []matrix) (notes []string) {
	for _, t := range tables {
		for _, f := range t.features {
			if f.unknown.cells == 0 {
				continue
			}
			become := "are taken for missing ones"
			if id, _ := f.takes(); id >= 0 {
				become = "are in its bucket for unknown ones"
			}
			notes = append(notes, fmt.Sprintf("column %s: %d cells have other categories than the dataset to follow, such as %q, and %s",
				lines.ClipText(f.text), f.unknown.cells, lines.ClipText(f.unknown.first), become))
		}
	}
	return notes
}

// followLabel gives the label the classes that it has in l.
func (n *nodes) followLabel(l *ingest.Like) error {
	if !n.label.set() && !n.value.set() && !n.multi.set() {
		return nil
	}
	fail := func(format string, args ...any) error {
		return fmt.Errorf("%s: line %d: {like} %s: %s", n.schema, n.line, l.Name, fmt.Sprintf(format, args...))
	}
	of, err := l.Label(n.name, "label")
	if err == nil && of != nil && !of.Known() {
		err = errors.New("that dataset does not say its classes")
	}
	switch {
	case err != nil:
		return fail("label of node type %s: %v; leave the label out of the schema: predictions need none",
			n.name, err)
	case of == nil:
		return fail("node type %s has no label there; leave it out of the schema", n.name)
	case of.Numbers != n.value.set() || of.Multi != n.multi.set():
		key := "label"
		switch {
		case of.Numbers:
			key = "value"
		case of.Multi:
			key = "labels"
		}
		return fail("node type %s has %s there; write %s: COLUMN in the schema", n.name, key, key)
	case of.Multi && len(of.ClassNames) == 0:
		return fail("nodes of type %s have several classes without names there; leave the labels out of the schema", n.name)
	case of.Multi && n.multi.lists.set():
		n.multi.known = ingest.KnownCategory(of.ClassNames, l.ClassText())
	case of.Multi:
		return n.followColumns(of, l)
	case of.Numbers:
		return nil
	case len(of.ClassNames) > 0:
		n.knownClasses = ingest.KnownCategory(of.ClassNames, l.ClassText())
	default:
		n.knownClasses = ingest.KnownClasses(of.Classes, l.ClassText())
	}
	return nil
}
