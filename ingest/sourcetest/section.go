package sourcetest

import (
	"context"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Fault is an error about a source that breaks the contract, whatever its input.
type Fault struct{ Section, What string }

func (f *Fault) Error() string { return f.Section + ": " + f.What + "; this is a fault of the source" }

type kind int

const (
	nodeIDs kind = iota
	edges
	features
	labels
	split
	heldEdges
	heldPool
)

// section is one stream of a source.
type section struct {
	kind    kind
	index   int // in the schema's list of its kind
	part    ingest.Part
	name    string // for messages
	width   int    // values of a row of features or labels
	ends    int    // ids of a row: 1, or 2 of edges
	text    [2]bool
	columns []ingest.EdgeColumn
	count   int64 // declared number of ids or edges, -1 without
}

// chunk is any of the four kinds of chunk.
type chunk struct {
	ingest.Place
	ids     [2][]int64 // ids, or sources and destinations
	texts   [2]ingest.Texts
	values  [][]uint64
	floats  []float32
	classes []int32
}

// rows are copies of the contents of a section's chunks.
type rows struct {
	n       int64
	chunks  int
	ids     [2][]int64
	texts   [2][]string
	values  [][]uint64
	floats  []float32
	classes []int32
}

// sections lists the sections of a schema.
func sections(schema *ingest.Schema) []section {
	var all []section
	hasTexts := map[string]bool{}
	for i, t := range schema.NodeTypes {
		hasTexts[t.Name] = t.IDs == ingest.TextIDs
		if t.IDs != ingest.RowIDs && !t.Gathered {
			s := section{kind: nodeIDs, index: i, name: "ids of " + t.Name, ends: 1, text: [2]bool{hasTexts[t.Name]}, count: t.Count}
			if s.count == 0 {
				s.count = -1 // not known beforehand
			}
			all = append(all, s)
		}
	}
	for i, r := range schema.Relations {
		columns := slices.Clone(r.Columns)
		if r.Parted {
			columns = append(columns, ingest.EdgeColumn{Name: "part", Elem: store.U8})
		}
		all = append(all, section{kind: edges, index: i, name: "edges " + r.Key(), ends: 2,
			text: [2]bool{hasTexts[r.Src], hasTexts[r.Dst]}, columns: columns, count: r.Edges})
		for part := ingest.Valid; r.Held != nil && part <= ingest.Test; part++ {
			s := section{kind: heldEdges, index: i, part: part, name: fmt.Sprintf("held-out edges %s, %v", r.Key(), part), ends: 2, count: -1}
			s.columns = slices.Clone(r.Held.Columns)
			for range r.Held.SrcNegatives[part-ingest.Valid] + r.Held.DstNegatives[part-ingest.Valid] { // as columns
				s.columns = append(s.columns, ingest.EdgeColumn{Name: "negative", Elem: store.I64})
			}
			all = append(all, s)
			if r.Held.Pool[part-ingest.Valid] {
				all = append(all, section{kind: heldPool, index: i, part: part, name: fmt.Sprintf("pool %s, %v", r.Key(), part), ends: 2, count: -1})
			}
		}
	}
	for i, t := range schema.Tables {
		all = append(all, section{kind: features, index: i, name: "rows of " + t.NodeType + t.Relation + "/" + t.Name, width: t.Dim, count: -1})
	}
	for i, l := range schema.Labels {
		all = append(all, section{kind: labels, index: i, name: "labels " + l.NodeType + "/" + l.Name, width: l.Width(), count: -1})
	}
	for i, p := range schema.Splits {
		for part := ingest.Train; part <= ingest.Test; part++ {
			all = append(all, section{kind: split, index: i, part: part, name: fmt.Sprintf("split %s, %s", p.Name, part), ends: 1,
				text: [2]bool{hasTexts[p.NodeType]}, count: -1})
		}
	}
	return all
}

// stream reads the section and gives its chunks in one form.
func (s *section) stream(ctx context.Context, src ingest.Source, emit func(c *chunk) error) error {
	ids := func(c ingest.IDChunk) error {
		return emit(&chunk{Place: c.Place, ids: [2][]int64{c.IDs}, texts: [2]ingest.Texts{c.Texts}})
	}
	pairs := func(c ingest.HeldChunk) error {
		values := slices.Clone(c.Values)
		for _, list := range [][]int64{c.SrcNegatives, c.DstNegatives} {
			for k := range len(list) / max(1, len(c.Src)) {
				column := make([]uint64, 0, len(c.Src))
				for at := k; at < len(list); at += len(list) / len(c.Src) {
					column = append(column, uint64(list[at]))
				}
				values = append(values, column)
			}
		}
		return emit(&chunk{Place: c.Place, ids: [2][]int64{c.Src, c.Dst}, values: values})
	}
	switch s.kind {
	case heldEdges, heldPool:
		holder := src.Extras()
		if holder.HeldEdges == nil || holder.HeldPool == nil {
			return &Fault{s.name, "its Extras have no held-out edges"}
		}
		if s.kind == heldPool {
			return holder.HeldPool(ctx, s.index, s.part, pairs)
		}
		return holder.HeldEdges(ctx, s.index, s.part, pairs)
	case nodeIDs:
		return src.NodeIDs(ctx, s.index, ids)
	case edges:
		return src.Edges(ctx, s.index, func(c ingest.EdgeChunk) error {
			values := c.Values
			if c.Parts != nil { // as one more column
				parts := make([]uint64, len(c.Parts))
				for i, p := range c.Parts {
					parts[i] = uint64(p)
				}
				values = append(slices.Clone(values), parts)
			}
			return emit(&chunk{Place: c.Place, ids: [2][]int64{c.Src, c.Dst}, texts: [2]ingest.Texts{c.SrcTexts, c.DstTexts}, values: values})
		})
	case features:
		return src.Rows(ctx, s.index, func(c ingest.RowChunk) error { return emit(&chunk{Place: c.Place, floats: c.Values}) })
	case labels:
		return src.Labels(ctx, s.index, func(c ingest.LabelChunk) error { return emit(&chunk{Place: c.Place, classes: c.Values}) })
	default:
		return src.Split(ctx, s.index, s.part, ids)
	}
}

// read collects the rows. It ends with a Fault at a chunk whose form is wrong, or where fewer rows
// came than were declared. after, where there is one, is called for each chunk once it is copied.
func (s *section) read(ctx context.Context, src ingest.Source, after func(r *rows, c *chunk) error) (rows, error) {
	var r rows
	if len(s.columns) > 0 {
		r.values = make([][]uint64, len(s.columns))
	}
	var fault error
	err := s.stream(ctx, src, func(c *chunk) error {
		if what := s.check(c, r.n); what != "" {
			fault = &Fault{s.name, fmt.Sprintf("chunk %d: %s", r.chunks, what)}
			return fault
		}
		r.add(s, c)
		if after != nil {
			return after(&r, c)
		}
		return nil
	})
	if err == nil && s.count >= 0 && r.n != s.count {
		fault = &Fault{s.name, fmt.Sprintf("%d rows came, and %d are declared", r.n, s.count)}
	}
	if fault != nil {
		err = fault // a source may lose it
	}
	return r, err
}

// len is the number of rows.
func (c *chunk) len(s *section) int {
	switch s.kind {
	case features:
		return len(c.floats) / max(s.width, 1)
	case labels:
		return len(c.classes) / max(s.width, 1)
	}
	return max(len(c.ids[0]), c.texts[0].Len())
}

// check returns the fault in the form of a chunk that comes after so many rows, or "".
func (s *section) check(c *chunk, before int64) string {
	n := c.len(s)
	switch {
	case c.File == "":
		return "it names no file"
	case c.First != before:
		return fmt.Sprintf("it begins at row %d, and %d rows came before it", c.First, before)
	case len(c.floats)%max(s.width, 1) != 0 || len(c.classes)%max(s.width, 1) != 0:
		return fmt.Sprintf("%d values are no whole rows of %d", len(c.floats)+len(c.classes), s.width)
	case n == 0:
		return "it is empty"
	}
	numbers, texts := 4*(len(c.floats)+len(c.classes)), 0
	for e := range s.ends {
		t := &c.texts[e]
		if !slices.IsSorted(t.Ends) || t.Len() > 0 && int(t.Ends[t.Len()-1]) > len(t.Bytes) {
			return "the ends of its texts are out of order, or past their bytes"
		}
		want := [2]int{n, 0}
		if s.text[e] {
			want = [2]int{0, n}
		}
		if have := [2]int{len(c.ids[e]), t.Len()}; have != want {
			return fmt.Sprintf("it has %d numbers and %d texts at end %d, where %d and %d are expected", have[0], have[1], e, want[0], want[1])
		}
		numbers += 8 * len(c.ids[e])
		if n > 1 && s.text[e] {
			texts += int(t.Ends[n-2])
		}
	}
	if n > 1 && (numbers > ingest.ChunkBytes || texts > ingest.ChunkBytes) {
		return fmt.Sprintf("its %d rows have %d bytes of numbers and %d of texts, and %d are the most", n, numbers, texts, ingest.ChunkBytes)
	}
	return s.checkColumns(c, n)
}

func (s *section) checkColumns(c *chunk, n int) string {
	if len(c.values) != len(s.columns) {
		return fmt.Sprintf("it has %d columns, and the schema %d", len(c.values), len(s.columns))
	}
	for k, column := range s.columns {
		if len(c.values[k]) != n {
			return fmt.Sprintf("column %s has %d values for %d edges", column.Name, len(c.values[k]), n)
		}
		for i, bits := range c.values[k] {
			if !fits(bits, column.Elem) {
				return fmt.Sprintf("column %s has %#x at edge %d, which are no bits of %v", column.Name, bits, i, column.Elem)
			}
		}
	}
	return ""
}

// fits reports whether bits can be a value of type elem: the two's complement of an integer,
// Float32bits of a float.
func fits(bits uint64, elem store.Elem) bool {
	switch elem.Size() {
	case 8:
		return true
	case 4:
		return bits>>32 == 0 || elem == store.I32 && int64(bits) == int64(int32(bits))
	case 2:
		return bits>>16 == 0
	}
	return bits>>8 == 0
}

// add copies a chunk whose form is right.
func (r *rows) add(s *section, c *chunk) {
	r.n += int64(c.len(s))
	r.chunks++
	for e := range s.ends {
		r.ids[e] = append(r.ids[e], c.ids[e]...)
		for i := range c.texts[e].Len() {
			r.texts[e] = append(r.texts[e], string(c.texts[e].At(i)))
		}
	}
	for k, column := range c.values {
		r.values[k] = append(r.values[k], column...)
	}
	r.floats = append(r.floats, c.floats...)
	r.classes = append(r.classes, c.classes...)
}
