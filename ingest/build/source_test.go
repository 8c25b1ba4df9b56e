package build

import (
	"context"
	"errors"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
)

// fake is a Source in memory, which emits a few rows at a time.
type fake struct {
	schema ingest.Schema
	ids    map[int][]int64
	edges  map[int][][2]int64
	rows   map[int][]float32
	labels map[int][]int32
	splits map[int][3][]int64
	values map[int][][]uint64    // by relation and column
	parts  map[int][]ingest.Part // of the edges of relations that are Parted
	text   func(id int64) string // of nodes with TextIDs

	gone     error                               // what Schema ends with
	chunk    int                                 // rows a chunk; default 3
	before   func(section string, row int) error // called before each chunk
	firstOff int64                               // added to every Place.First
}

func (*fake) Extras() ingest.Extras { return ingest.Extras{} }

func (f *fake) Schema(context.Context) (*ingest.Schema, error) {
	if f.gone != nil {
		return nil, f.gone
	}
	return &f.schema, nil
}

func (f *fake) typeOf(name string) *ingest.NodeType {
	for i, t := range f.schema.NodeTypes {
		if t.Name == name {
			return &f.schema.NodeTypes[i]
		}
	}
	return nil
}

// named are ids as the source has them.
func (f *fake) named(kind ingest.IDs, ids []int64) (numbers []int64, texts ingest.Texts) {
	if kind != ingest.TextIDs {
		return slices.Clone(ids), ingest.Texts{}
	}
	for _, id := range ids {
		texts.Append([]byte(f.text(id)))
	}
	return nil, texts
}
func (f *fake) Close() error { return nil }

// each calls emit for [0, n) in chunks, and once when n is 0.
func (f *fake) each(section string, n int, emit func(p ingest.Place, lo, hi int) error) error {
	size := max(f.chunk, 0)
	if size == 0 {
		size = 3
	}
	for lo := 0; lo == 0 || lo < n; lo += size {
		if f.before != nil {
			if err := f.before(section, lo); err != nil {
				return err
			}
		}
		if err := emit(ingest.Place{File: section + ".csv", First: int64(lo) + f.firstOff}, lo, min(n, lo+size)); err != nil {
			return err
		}
	}
	return nil
}

func (f *fake) NodeIDs(_ context.Context, i int, emit func(ingest.IDChunk) error) error {
	ids := f.ids[i]
	return f.each("ids", len(ids), func(p ingest.Place, lo, hi int) error {
		c := ingest.IDChunk{Place: p}
		c.IDs, c.Texts = f.named(f.schema.NodeTypes[i].IDs, ids[lo:hi])
		return emit(c)
	})
}

func (f *fake) Edges(_ context.Context, i int, emit func(ingest.EdgeChunk) error) error {
	return f.each("edge", len(f.edges[i]), func(p ingest.Place, lo, hi int) error {
		c := ingest.EdgeChunk{Place: p}
		var src, dst []int64
		for _, e := range f.edges[i][lo:hi] {
			src, dst = append(src, e[0]), append(dst, e[1])
		}
		r := f.schema.Relations[i]
		c.Src, c.SrcTexts = f.named(f.typeOf(r.Src).IDs, src)
		c.Dst, c.DstTexts = f.named(f.typeOf(r.Dst).IDs, dst)
		for k := range r.Columns {
			c.Values = append(c.Values, slices.Clone(f.values[i][k][lo:hi]))
		}
		if r.Parted {
			c.Parts = slices.Clone(f.parts[i][lo:hi])
		}
		return emit(c)
	})
}

func (f *fake) Rows(_ context.Context, i int, emit func(ingest.RowChunk) error) error {
	dim := f.schema.Tables[i].Dim
	rows := f.rows[i]
	return f.each("feat", len(rows)/dim, func(p ingest.Place, lo, hi int) error {
		values := slices.Clone(rows[lo*dim : hi*dim])
		defer clear(values) // lent: whoever keeps it reads zeros
		return emit(ingest.RowChunk{Place: p, Values: values})
	})
}

func (f *fake) Labels(_ context.Context, i int, emit func(ingest.LabelChunk) error) error {
	width := 1
	if l := f.schema.Labels[i]; l.Multi {
		width = l.Classes
	}
	return f.each("label", len(f.labels[i])/width, func(p ingest.Place, lo, hi int) error {
		return emit(ingest.LabelChunk{Place: p, Values: f.labels[i][lo*width : hi*width]})
	})
}

func (f *fake) Split(_ context.Context, i int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	if part < ingest.Train || part > ingest.Test {
		return errors.New("no such part")
	}
	ids := f.splits[i][part]
	kind := f.typeOf(f.schema.Splits[i].NodeType).IDs
	return f.each(part.String(), len(ids), func(p ingest.Place, lo, hi int) error {
		c := ingest.IDChunk{Place: p}
		c.IDs, c.Texts = f.named(kind, ids[lo:hi])
		return emit(c)
	})
}

// small is 6 papers with every kind of section: a self loop (2→2), a duplicate (0→1), a mutual pair
// (3, 4), node 5 alone.
func small() *fake {
	return &fake{
		schema: ingest.Schema{
			Name:      "small",
			NodeTypes: []ingest.NodeType{{Name: "paper", Count: 6}},
			Relations: []ingest.Relation{{Src: "paper", Name: "cites", Dst: "paper", Edges: 8}},
			Tables:    []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 2}},
			Labels:    []ingest.Label{{Name: "topic", NodeType: "paper", ClassNames: []string{"a", "b", "c"}}},
			Splits:    []ingest.Split{{Name: "given", NodeType: "paper"}},
			Skipped:   []string{"years: not read"},
		},
		edges:  map[int][][2]int64{0: {{0, 1}, {2, 2}, {0, 1}, {3, 4}, {4, 3}, {3, 1}, {3, 0}, {1, 4}}},
		rows:   map[int][]float32{0: {0, .5, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5}},
		labels: map[int][]int32{0: {0, 1, 2, 0, -1, 1}},
		splits: map[int][3][]int64{0: {{0, 3}, {1}, {2, 5}}},
	}
}
