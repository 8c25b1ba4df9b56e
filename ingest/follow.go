package ingest

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest/lines"
	"github.com/gnnstore/gnnstore/store"
)

// Follow returns a Source that reads src, which is at path, with the relations and classes of
// another dataset. Relations come in l's order; a relation that src lacks has no edges. Classes are
// matched by name, and have their numbers in l. Its Schema refuses tables whose columns differ from
// l's, and relations and classes that l does not have.
func Follow(src Source, path string, l *Like) Source {
	return &follower{Source: src, path: path, like: l}
}

type follower struct {
	Source
	like    *Like
	path    string  // named in errors
	schema  *Schema // nil until the first call of Schema
	said    Description
	remarks []string

	relations []int      // relation of the source, by relation of the schema; -1: it has none
	labels    []classMap // by label of the schema
	streams   map[int]classMap
}

// classMap gives the number of a class in the dataset to follow.
type classMap struct {
	label   int       // of the source
	known   *Category // finds a number of the source among l's names; nil: l has no names
	numbers []int32   // l's class, by class of the source; nil: the source has no names
	largest int32     // l's largest class
}

// Schema implements [Source].
func (f *follower) Schema(ctx context.Context) (*Schema, error) {
	return ScanOnce(ctx, &f.schema, f.scan)
}

func (f *follower) scan(ctx context.Context) (*Schema, error) {
	given, err := f.Source.Schema(ctx)
	if err != nil {
		return nil, err
	}
	s := *given
	f.said, f.remarks, f.streams = Description{}, nil, map[int]classMap{}
	if describe := f.Source.Extras().Describe; describe != nil {
		f.said = describe()
	}
	if s.Identity != "" {
		s.Identity += "like " + f.like.Identity + "\n"
	}
	for _, follow := range []func(*Schema) error{f.followTables, f.followLabels, f.followStreams, f.followRelations} {
		if err := follow(&s); err != nil {
			return nil, err
		}
	}
	return &s, nil
}

func (f *follower) remark(format string, args ...any) {
	f.remarks = append(f.remarks, fmt.Sprintf(format, args...))
}

// owned returns the dataset's form of a table, without its rows.
func owned(s *Schema, t Table) *store.Table {
	if i := s.Relation(t.Relation); i >= 0 && s.Relations[i].Stream != nil {
		return &store.Table{Name: t.Name, Stream: s.Relations[i].Name}
	}
	return &store.Table{Name: t.Name, NodeType: t.NodeType, Relation: t.Relation}
}

// followTables refuses tables that have other columns than l's.
func (f *follower) followTables(s *Schema) error {
	found := map[*store.TableEncoding]bool{}
	owners := map[string]bool{}
	for _, t := range s.NodeTypes {
		owners[t.Name] = true
	}
	for _, r := range s.Relations {
		owners[owned(s, Table{Relation: r.Key()}).Owner()] = true
	}
	for i, t := range s.Tables {
		of := owned(s, t)
		there := f.like.Encodings.Of(of)
		if there == nil {
			return f.like.Errorf("%s: table %s of %s is not there; leave its columns out", f.path, t.Name, of.Owner())
		}
		if found[there] = true; there.Made != "" {
			continue // Build makes the features here, too, or the columns are others
		}
		var here store.TableEncoding
		if i < len(f.said.Tables) {
			here.Columns = f.said.Tables[i]
		}
		if differs := f.columnsDiffer(there, &here, t.Dim); differs != "" {
			return f.like.Errorf("%s: table %s of %s %s", f.path, t.Name, of.Owner(), differs)
		}
		if there.Named() != here.Named() && !f.like.Silent {
			f.remark("table %s of %s: its columns have names here or in %s, and not in both: they are taken in their order",
				t.Name, of.Owner(), f.like.Name)
		}
	}
	for i := range f.like.Encodings.Tables {
		if t := &f.like.Encodings.Tables[i]; !found[t] && t.Made == "" && owners[t.Owner()] {
			columns, none := "", ""
			if t.Named() {
				columns = " with the columns " + lines.List(f.like.Columns(t))
			}
			if s.NoFeatures != "" {
				none = ": " + s.NoFeatures
			}
			return f.like.Errorf("%s: there is no table %s of %s%s, which is there%s",
				f.path, t.Name, t.Owner(), columns, none)
		}
	}
	return nil
}

// columnsDiffer returns how the columns of a table differ from l's, or "" if they do not.
func (f *follower) columnsDiffer(there, here *store.TableEncoding, dim int) string {
	width := int64(0)
	for _, c := range there.Columns {
		width += c.Width
	}
	named := there.Named() && here.Named()
	was, is := f.like.Columns(there), f.like.Columns(here)
	// A folded column is the only one of its table.
	folded := func(t *store.TableEncoding) string { return t.Columns[0].XXH3 }
	switch {
	case width != int64(dim) && named:
		return fmt.Sprintf("has %d columns, %s, and %d there, %s; choose the same columns",
			dim, lines.List(is), width, lines.List(was))
	case width != int64(dim):
		return fmt.Sprintf("has %d columns, and %d there; choose the same columns", dim, width)
	case !named:
		return ""
	case folded(there) != folded(here):
		return "has other columns than there, or in another order; choose the same columns"
	}
	for i := range min(len(was), len(is)) {
		if was[i] != is[i] {
			return fmt.Sprintf("has the columns %s, and they are %s there; choose these, in that order",
				lines.List(is), lines.List(was))
		}
		if was, is := &there.Columns[i], &here.Columns[i]; !was.SameScale(is) {
			return fmt.Sprintf("has column %s as it is, and it is encoded as %s there; ingest it by a schema, which encodes it likewise",
				lines.Clip([]byte(was.Name)), cmp.Or(was.ScaleText(), strings.Join(was.Parts, ", "), "it is"))
		}
		was, is := there.Columns[i].Unit, here.Columns[i].Unit
		if was != "" && is != "" && was != is {
			return fmt.Sprintf("has column %s in %s, and it is in %s there; convert its numbers to %s, and say so in the schema",
				lines.Clip([]byte(there.Columns[i].Name)), is, was, was)
		}
	}
	return ""
}

// followLabels gives labels the classes of l. It leaves out labels that l does not have.
func (f *follower) followLabels(s *Schema) error {
	given := s.Labels
	s.Labels, f.labels = nil, nil
	var from []string
	for i, l := range given {
		of, err := f.like.Label(l.NodeType, l.Name)
		if err == nil && of != nil && !of.Known() {
			err = fmt.Errorf("%s does not say its classes", f.like.Name)
		}
		if err != nil || of == nil {
			why := "there is none in " + f.like.Name
			if err != nil {
				why = err.Error()
			}
			f.remark("label %s of %s is left out: %s", l.Name, l.NodeType, why)
			continue
		}
		c := classMap{label: i}
		was, is := kindOf(of.Multi, of.Numbers), kindOf(l.Multi, l.Numbers)
		names := len(l.ClassNames) == 0 || len(of.ClassNames) == 0 || slices.Equal(l.ClassNames, of.ClassNames)
		switch {
		case was != is:
			return f.like.Errorf("%s: label %s of %s has %s, and has %s there", f.path, l.Name, l.NodeType, is, was)
		case l.Multi && (int64(l.Classes) != of.Classes || !names):
			return f.like.Errorf("%s: label %s of %s has %d classes a node, and %d there, or they have other names",
				f.path, l.Name, l.NodeType, l.Classes, of.Classes)
		case !l.Multi && !l.Numbers:
			if c, err = f.classMap("label "+l.Name+" of "+l.NodeType, l.ClassNames, of.ClassNames, of.Classes); err != nil {
				return err
			}
			c.label = i
		}
		l.Name, l.Classes, l.ClassNames = of.Name, int(of.Classes), of.ClassNames
		s.Labels, f.labels = append(s.Labels, l), append(f.labels, c)
		column := ""
		if i < len(f.said.Labels) {
			column = f.said.Labels[i]
		}
		from = append(from, column)
	}
	f.said.Labels = from
	return nil
}

// kindOf names a kind of labels.
func kindOf(multi, numbers bool) string {
	switch {
	case numbers:
		return "numbers"
	case multi:
		return "several classes a node"
	}
	return "classes"
}

// classMap finds the classes of the source among l's, by their names. If only one of the two has
// names, the other's classes are called by their numbers.
func (f *follower) classMap(what string, here, there []string, classes int64) (c classMap, err error) {
	c.largest = int32(classes - 1)
	if len(there) > 0 {
		c.known = KnownCategory(there, f.like.ClassText())
	}
	for _, name := range here {
		n, err := strconv.ParseInt(name, 10, 32)
		class, ok := int32(n), err == nil && n >= 0 && n < classes && name == strconv.FormatInt(n, 10)
		if c.known != nil {
			class, ok = c.known.ids[name]
		}
		if !ok {
			return c, f.like.Errorf("%s: %q is none of the classes there: %s",
				what, lines.Clip([]byte(name)), classList(there, classes))
		}
		c.numbers = append(c.numbers, class)
	}
	return c, nil
}

// classList lists the first few classes.
func classList(names []string, classes int64) string {
	if len(names) == 0 {
		return fmt.Sprintf("0 to %d", classes-1)
	}
	return lines.List(names)
}

// of returns l's class for a class of the source. Classes less than 0 are missing.
func (c *classMap) of(class int32) (int32, error) {
	switch {
	case class < 0:
		return class, nil
	case c.numbers != nil:
		if int(class) < len(c.numbers) {
			return c.numbers[class], nil
		}
	case c.known != nil:
		return c.known.Of(IntToken(int64(class), nil))
	case class <= c.largest:
		return class, nil
	}
	return 0, fmt.Errorf("%d is none of the classes of the dataset to follow, 0 to %d", class, c.largest)
}

// followStreams gives the labels of events the classes of l.
func (f *follower) followStreams(s *Schema) error {
	s.Relations = slices.Clone(s.Relations)
	for i := range s.Relations {
		r := &s.Relations[i]
		if r.Stream == nil {
			continue
		}
		of := f.like.Stream(r.Name)
		switch {
		case of == nil && f.like.Silent:
			continue
		case of == nil:
			return f.like.Errorf("%s: stream %s is not there", f.path, r.Name)
		case of.Src != r.Src || of.Dst != r.Dst:
			return f.like.Errorf("%s: stream %s is of %s and %s, and of %s and %s there; {bipartite} tells them apart",
				f.path, r.Name, r.Src, r.Dst, of.Src, of.Dst)
		case of.Classes == 0:
			continue
		case r.Stream.Label == "":
			f.remark("events of stream %s have no labels here, and %d classes in %s", r.Name, of.Classes, f.like.Name)
			continue
		}
		c, err := f.classMap("label of stream "+r.Name, r.Stream.ClassNames, of.ClassNames, of.Classes)
		if err != nil {
			return err
		}
		stream := *r.Stream
		stream.Classes, stream.ClassNames = int(of.Classes), of.ClassNames
		r.Stream = &stream
		f.streams[i] = c
	}
	return nil
}

// followRelations puts relations in the order of l, and adds those that the source lacks.
func (f *follower) followRelations(s *Schema) error {
	given := s.Relations
	s.Relations, f.relations = nil, nil
	taken := make([]bool, len(given))
	take := func(i int) {
		s.Relations, f.relations, taken[i] = append(s.Relations, given[i]), append(f.relations, i), true
	}
	var names, absent []string
	known := f.like.Relations()
	for _, of := range known {
		_, name, _, _ := splitKey(of.Relation)
		names = append(names, name)
	}
	for _, r := range given {
		if r.Stream == nil && f.like.Encodings.Relation(r.Key()) == nil {
			return f.like.Errorf("%s: relation %s from %s to %s is not there; there are %s; leave its edges out",
				f.path, r.Name, r.Src, r.Dst, lines.List(names))
		}
	}
	for k, of := range known {
		i := slices.IndexFunc(given, func(r Relation) bool { return r.Key() == of.Relation && r.Stream == nil })
		if i < 0 {
			absent = append(absent, names[k])
			r, err := f.emptyRelation(s, of)
			if err != nil {
				return err
			}
			s.Relations, f.relations = append(s.Relations, *r), append(f.relations, -1)
			continue
		}
		if err := f.edgeColumnsDiffer(s, &given[i], of); err != nil {
			return err
		}
		take(i)
	}
	for i := range given {
		if !taken[i] {
			take(i)
		}
	}
	if absent != nil {
		f.remark("relations without an edge here, and with some in %s: %s", f.like.Name, lines.List(absent))
	}
	return nil
}

// emptyRelation returns a relation of l without edges.
func (f *follower) emptyRelation(s *Schema, of *store.RelationEncoding) (*Relation, error) {
	src, name, dst, ok := splitKey(of.Relation)
	for i := range f.like.Encodings.Tables {
		ok = ok && f.like.Encodings.Tables[i].Relation != of.Relation
	}
	if !ok || s.NodeType(src) < 0 || s.NodeType(dst) < 0 {
		return nil, f.like.Errorf("%s: there is no relation %s from %s to %s, which is there", f.path, name, src, dst)
	}
	r := &Relation{Src: src, Name: name, Dst: dst}
	for _, c := range of.Columns {
		if c.Elem == 0 {
			return nil, f.like.Errorf("%s: there is no relation %s from %s to %s, which is there, with a column %s",
				f.path, name, src, dst, c.Name)
		}
		r.Columns = append(r.Columns, EdgeColumn{c.Name, c.Elem})
	}
	return r, nil
}

// edgeColumnsDiffer returns an error if r lacks a column that l's relation has.
func (f *follower) edgeColumnsDiffer(s *Schema, r *Relation, of *store.RelationEncoding) error {
	for _, c := range of.Columns {
		i := slices.IndexFunc(r.Columns, func(o EdgeColumn) bool { return o.Name == c.Name })
		switch {
		case i < 0 && c.Name == store.EdgeID: // Build makes it
		case i < 0:
			return f.like.Errorf("%s: edges of relation %s have no column %s, which they have there",
				f.path, r.Name, c.Name)
		case c.Elem != 0 && c.Elem != r.Columns[i].Elem:
			return f.like.Errorf("%s: edges of relation %s have a column %s of %v, and it is of %v there",
				f.path, r.Name, c.Name, r.Columns[i].Elem, c.Elem)
		}
	}
	return nil
}

// Edges implements [Source].
func (f *follower) Edges(ctx context.Context, relation int, emit func(EdgeChunk) error) error {
	i := f.relations[relation]
	if i < 0 {
		return nil
	}
	c, ok := f.streams[i]
	if !ok {
		return f.Source.Edges(ctx, i, emit)
	}
	r := &f.schema.Relations[relation]
	column := slices.IndexFunc(r.Columns, func(o EdgeColumn) bool { return o.Name == r.Stream.Label })
	return f.Source.Edges(ctx, i, func(chunk EdgeChunk) error {
		if column < len(chunk.Values) {
			for k, v := range chunk.Values[column] {
				class, err := c.of(int32(uint32(v)))
				if err != nil {
					return fmt.Errorf("%s: label: %w", chunk.Edge(k, "event"), err)
				}
				chunk.Values[column][k] = uint64(uint32(class))
			}
		}
		return emit(chunk)
	})
}

// Labels implements [Source].
func (f *follower) Labels(ctx context.Context, label int, emit func(LabelChunk) error) error {
	c := &f.labels[label]
	if l := &f.schema.Labels[label]; l.Multi || l.Numbers {
		return f.Source.Labels(ctx, c.label, emit)
	}
	return f.Source.Labels(ctx, c.label, func(chunk LabelChunk) error {
		for i, v := range chunk.Values {
			class, err := c.of(v)
			if err != nil {
				return fmt.Errorf("%s: label: %w", chunk.Row(i), err)
			}
			chunk.Values[i] = class
		}
		return emit(chunk)
	})
}

// Extras implements [Source].
func (f *follower) Extras() Extras {
	given := f.Source.Extras()
	e := given
	e.Describe = f.describe
	e.Remarks = func() (all []string) {
		if given.Remarks != nil {
			all = given.Remarks()
		}
		return append(slices.Clone(all), f.remarks...)
	}
	if given.HeldEdges != nil {
		e.HeldEdges = func(ctx context.Context, relation int, part Part, emit func(HeldChunk) error) error {
			return given.HeldEdges(ctx, f.relations[relation], part, emit)
		}
	}
	if given.HeldPool != nil {
		e.HeldPool = func(ctx context.Context, relation int, part Part, emit func(HeldChunk) error) error {
			return given.HeldPool(ctx, f.relations[relation], part, emit)
		}
	}
	if given.Negatives != nil {
		e.Negatives = func(ctx context.Context, relation int, emit func(NegativeChunk) error) error {
			return given.Negatives(ctx, f.relations[relation], emit)
		}
	}
	if given.NodeLabels != nil {
		e.NodeLabels = func(ctx context.Context, relation int, emit func(NodeLabelChunk) error) error {
			return given.NodeLabels(ctx, f.relations[relation], emit)
		}
	}
	return e
}

// describe returns the source's names, in the order of the schema.
func (f *follower) describe() Description {
	d := f.said
	d.Relations, d.Names = nil, nil
	for k, i := range f.relations {
		var columns []string
		name := ""
		if i >= 0 && i < len(f.said.Relations) {
			columns = f.said.Relations[i]
		}
		if i >= 0 && i < len(f.said.Names) {
			name = f.said.Names[i]
		} else if of := f.like.Encodings.Relation(f.schema.Relations[k].Key()); i < 0 && of != nil {
			name = of.From
		}
		d.Relations, d.Names = append(d.Relations, columns), append(d.Names, name)
	}
	return d
}
