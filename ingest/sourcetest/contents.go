package sourcetest

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
)

// What a Schema and the rows of a sound input must be.

// checkSchema looks for names that are not there or there twice, and for sections that cannot be.
func (c *conformance) checkSchema() error {
	s := c.schema
	fault := func(format string, args ...any) error { return &Fault{"schema", fmt.Sprintf(format, args...)} }
	taken := map[string]bool{}
	once := func(what, name string) error {
		if key := what + " " + name; name == "" || taken[key] {
			return fault("%s %q is without a name, or there twice", what, name)
		} else {
			taken[key] = true
		}
		return nil
	}
	if s.Name == "" || len(s.NodeTypes) == 0 {
		return fault("it has no name, or no nodes")
	}
	types := map[string]ingest.NodeType{}
	for _, t := range s.NodeTypes {
		if err := once("node type", t.Name); err != nil {
			return err
		}
		types[t.Name] = t
		if t.IDs == ingest.RowIDs && (t.Count < 0 || t.Gathered) {
			return fault("node type %s goes by rows, and their number (%d) is not known", t.Name, t.Count)
		}
	}
	relations := map[string]bool{}
	for _, r := range s.Relations {
		if err := once("relation", r.Key()); err != nil {
			return err
		}
		relations[r.Key()] = true
		_, src := types[r.Src]
		if _, dst := types[r.Dst]; !src || !dst || r.Edges < -1 {
			return fault("relation %s has a node type that there is not, or %d edges", r.Key(), r.Edges)
		}
		for _, column := range r.Columns {
			if err := once("column of "+r.Key(), column.Name); err != nil {
				return err
			}
			if column.Name == "id" || column.Elem.Size() == 0 {
				return fault("relation %s has a column %s of %v", r.Key(), column.Name, column.Elem)
			}
		}
	}
	listed := func(what, nodeType string) error { // its nodes are known beforehand
		if t, ok := types[nodeType]; !ok || t.Gathered {
			return fault("%s is of nodes of type %q, which there is not or which edges name", what, nodeType)
		}
		return nil
	}
	nodeTables := false
	for _, t := range s.Tables {
		if err := once("table of "+t.NodeType+t.Relation, t.Name); err != nil {
			return err
		}
		if t.Dim < 1 || (t.NodeType == "") == (t.Relation == "") || t.Relation != "" && !relations[t.Relation] {
			return fault("table %+v has no columns, or no rows to belong to", t)
		}
		if t.Relation != "" {
			continue
		}
		nodeTables = true
		if err := listed("table "+t.Name, t.NodeType); err != nil {
			return err
		}
	}
	for _, l := range s.Labels {
		if err := once("label of "+l.NodeType, l.Name); err != nil {
			return err
		}
		if err := listed("label "+l.Name, l.NodeType); err != nil {
			return err
		}
		if l.Classes < 0 || l.Multi && l.Classes == 0 || l.Numbers && (l.Multi || l.Classes > 0) || l.ClassNames != nil && l.Classes > 0 && len(l.ClassNames) != l.Classes {
			return fault("label %s has %d classes, and names for %d", l.Name, l.Classes, len(l.ClassNames))
		}
	}
	for _, p := range s.Splits {
		if err := once("split", p.Name); err != nil {
			return err
		}
		if _, ok := types[p.NodeType]; !ok {
			return fault("split %s is of nodes of type %q, which there is not", p.Name, p.NodeType)
		}
	}
	if nodeTables && s.NoFeatures != "" || len(s.Labels) > 0 && s.NoLabels != "" {
		return fault("it has what it says that it has not: %s %s", s.NoFeatures, s.NoLabels)
	}
	return nil
}

// each calls visit for the sections of a kind, with what came of them.
func (c *conformance) each(k kind, visit func(s *section, r *rows) error) error {
	for i := range c.sections {
		if s := &c.sections[i]; s.kind == k {
			if err := visit(s, &c.want[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// typeOf finds a node type.
func (c *conformance) typeOf(name string) (int, *ingest.NodeType) {
	i := slices.IndexFunc(c.schema.NodeTypes, func(t ingest.NodeType) bool { return t.Name == name })
	return i, &c.schema.NodeTypes[i]
}

// nodes is the number of a type's nodes, -1 when edges name them.
func (c *conformance) nodes(name string) int64 {
	i, t := c.typeOf(name)
	n := t.Count
	if t.Gathered {
		return -1
	}
	_ = c.each(nodeIDs, func(s *section, r *rows) error {
		if s.index == i {
			n = r.n
		}
		return nil
	})
	return n
}

// checkCounts compares the rows of tables and labels with the nodes and edges that they belong to.
// Read has compared these.
func (c *conformance) checkCounts() error {
	for i, s := range c.sections {
		want := int64(-1)
		switch s.kind {
		case features:
			if t := c.schema.Tables[s.index]; t.Relation == "" {
				want = c.nodes(t.NodeType)
			} else {
				_ = c.each(edges, func(e *section, r *rows) error {
					if c.schema.Relations[e.index].Key() == t.Relation {
						want = r.n
					}
					return nil
				})
			}
		case labels:
			want = c.nodes(c.schema.Labels[s.index].NodeType)
		}
		if have := c.want[i].n; want >= 0 && have != want {
			return &Fault{s.name, fmt.Sprintf("%d rows came, and %d are expected", have, want)}
		}
	}
	return nil
}

// idSet is the ids of a node type, and how to ask for one.
type idSet struct {
	numbers map[int64]bool
	texts   map[string]bool
	count   int64 // ids are 0…count-1
	any     bool  // edges name them
}

func (set *idSet) has(r *rows, end, i int) bool {
	switch {
	case len(r.texts[end]) > 0:
		text := r.texts[end][i]
		return len(text) > 0 && len(text) <= ingest.MaxIDBytes && (set.any || set.texts[text])
	case set.any:
		return true
	case set.numbers != nil:
		return set.numbers[r.ids[end][i]]
	}
	return r.ids[end][i] >= 0 && r.ids[end][i] < set.count
}

// checkIDs looks up each id. Ids of nodes are distinct, edges and splits name ids of nodes, and
// a split has a node once.
func (c *conformance) checkIDs() error {
	sets := map[string]*idSet{}
	for _, t := range c.schema.NodeTypes {
		sets[t.Name] = &idSet{count: t.Count, any: t.Gathered}
	}
	err := c.each(nodeIDs, func(s *section, r *rows) error {
		set := sets[c.schema.NodeTypes[s.index].Name]
		set.numbers, set.texts = map[int64]bool{}, map[string]bool{}
		for _, id := range r.ids[0] {
			set.numbers[id] = true
		}
		for _, text := range r.texts[0] {
			set.texts[text] = len(text) > 0 && len(text) <= ingest.MaxIDBytes
		}
		if distinct := len(set.numbers) + len(set.texts); int64(distinct) != r.n {
			return &Fault{s.name, fmt.Sprintf("%d of %d ids are different", distinct, r.n)}
		}
		return nil
	})
	if err != nil {
		return err
	}
	known := func(s *section, r *rows, end int, nodeType string) error {
		for i := range r.n {
			if !sets[nodeType].has(r, end, int(i)) {
				return &Fault{s.name, fmt.Sprintf("row %d, end %d is no node of type %s", i, end, nodeType)}
			}
		}
		return nil
	}
	err = c.each(edges, func(s *section, r *rows) error {
		relation := c.schema.Relations[s.index]
		if err := known(s, r, 0, relation.Src); err != nil {
			return err
		}
		return known(s, r, 1, relation.Dst)
	})
	if err != nil {
		return err
	}
	taken := make([]map[any]bool, len(c.schema.Splits))
	return c.each(split, func(s *section, r *rows) error {
		if taken[s.index] == nil {
			taken[s.index] = map[any]bool{}
		}
		for i := range r.n {
			var id any
			if len(r.texts[0]) > 0 {
				id = r.texts[0][i]
			} else {
				id = r.ids[0][i]
			}
			if taken[s.index][id] {
				return &Fault{s.name, fmt.Sprintf("node %v is in the split already", id)}
			}
			taken[s.index][id] = true
		}
		return known(s, r, 0, c.schema.Splits[s.index].NodeType)
	})
}

// checkLabels looks for classes that there are not.
func (c *conformance) checkLabels() error {
	return c.each(labels, func(s *section, r *rows) error {
		l := c.schema.Labels[s.index]
		for i, class := range r.classes {
			if l.Numbers {
				if x := math.Float32frombits(uint32(class)); math.IsInf(float64(x), 0) {
					return &Fault{s.name, fmt.Sprintf("row %d has the number %v", i, x)}
				}
				continue
			}
			if class < -1 || l.Multi && class > 1 || !l.Multi && l.Classes > 0 && int(class) >= l.Classes {
				return &Fault{s.name, fmt.Sprintf("row %d has %d, and there are %d classes", i/s.width, class, l.Classes)}
			}
		}
		return nil
	})
}

// checkRowMaker compares rows from RowsAt with the rows that are streamed.
func (c *conformance) checkRowMaker() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		rowsAt := src.Extras().RowsAt
		if rowsAt == nil {
			return nil
		}
		return c.each(features, func(s *section, r *rows) error {
			var ids []uint32
			var want []float32
			for i := r.n - 1; i >= 0; i -= 1 + r.n/64 {
				ids = append(ids, uint32(i))
				want = append(want, r.floats[int(i)*s.width:][:s.width]...)
			}
			const readers = 4
			wrong := make(chan bool, readers)
			for range readers {
				go func() {
					got := make([]float32, len(want))
					wrong <- rowsAt(s.index, ids, got) && !slices.Equal(got, want)
				}()
			}
			for range readers {
				if <-wrong {
					return &Fault{s.name, "RowsAt gives other rows than Rows"}
				}
			}
			return nil
		})
	})
}

// checkSparse compares the number of missing rows with the number of rows of zeros.
func (c *conformance) checkSparse() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		missing := src.Extras().MissingRows
		if missing == nil {
			return nil
		}
		for i, s := range c.sections {
			if s.kind != features {
				continue
			}
			zeros := int64(0)
			for row := range slices.Chunk(c.want[i].floats, s.width) {
				if !slices.ContainsFunc(row, func(x float32) bool { return x != 0 }) {
					zeros++
				}
			}
			for range 2 { // the second reading must not count on
				if err := c.reads(src, i, "read for its missing rows"); err != nil {
					return err
				}
				if n := missing(s.index); n < 0 || n > zeros {
					return &Fault{s.name, fmt.Sprintf("%d rows are missing, and %d are zeros", n, zeros)}
				}
			}
		}
		return nil
	})
}

// checkReports reads all sections, twice: bad rows and remarks must be the same after each time.
func (c *conformance) checkReports() error {
	return c.with(func(src ingest.Source, _ *ingest.Schema) error {
		extras := src.Extras()
		var bad int64
		var remarks []string
		for again := range 2 {
			for _, s := range c.sections {
				if _, err := s.read(context.Background(), src, nil); err != nil {
					return err
				}
			}
			if extras.BadRows != nil {
				n, first := extras.BadRows()
				if (n > 0) != (first != nil) || again > 0 && n != bad {
					return &Fault{"bad rows", fmt.Sprintf("%d, %v; and first there were %d", n, first, bad)}
				}
				bad = n
			}
			if extras.Remarks != nil {
				said := extras.Remarks()
				if again > 0 && !slices.Equal(said, remarks) || slices.Contains(said, "") {
					return &Fault{"remarks", fmt.Sprintf("%q; and first they were %q", said, remarks)}
				}
				remarks = slices.Clone(said)
			}
		}
		return nil
	})
}
