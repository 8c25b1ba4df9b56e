package generate

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/ingest"
)

// recipe is part of every identity: another number for another graph from the same options.
const recipe = 1

// Source is a graph that is made while it is read. Its sections can be read by several goroutines
// at once.
type Source struct {
	ingest.Plain
	shape     *shape
	schema    ingest.Schema
	types     []*population
	relations []*relation
	features  *features
	traits    *traits   // instead of features and parts, where there are
	parts     bijection // of the split: of the nodes by this order, the first train, the next validate and test
	years     uint64    // key
}

var _ ingest.Source = (*Source)(nil)

// Open prepares a kind of graph.
func Open(kind string, o Options) (*Source, error) {
	s, err := o.shape(kind)
	if err != nil {
		return nil, err
	}
	if s.tables {
		return nil, fmt.Errorf("kind %s is tables, which WriteRaw writes and ingest table reads", kind)
	}
	return newSource(s), nil
}

func newSource(s *shape) *Source {
	g := &Source{shape: s, schema: ingest.Schema{Name: s.name, Identity: s.identity()}, years: key(s.seed, forYears, 0)}
	byName := map[string]*population{}
	for i, t := range s.types {
		n := uint32(t.nodes)
		pools := s.classes
		if s.kind.traits {
			pools += pools % 2 // two a community
		}
		p := &population{name: t.name, count: n, ids: newBijection(n, key(s.seed, forIDs, uint64(i))), communities: newCommunities(n, pools)}
		g.types, byName[t.name] = append(g.types, p), p
		g.schema.NodeTypes = append(g.schema.NodeTypes, ingest.NodeType{Name: t.name, Count: t.nodes})
	}
	for i, r := range s.relations {
		src, dst := byName[r.src], byName[r.dst]
		made := &relation{
			src: src, dst: dst, edges: r.edges, first: dst.cut(r.edges), in: newQuantile(r.in), out: newQuantile(r.out),
			homophily: s.homophily, shift: r.shift, key: key(s.seed, forEdges, uint64(i)), leaves: s.leaves,
		}
		if s.kind.traits {
			made.inOrder, made.outOrder = scatter(&dst.communities, s.seed, forInOrder), scatter(&src.communities, s.seed, forOutOrder)
		}
		g.relations = append(g.relations, made)
		g.schema.Relations = append(g.schema.Relations, ingest.Relation{Src: r.src, Name: r.name, Dst: r.dst, Edges: r.edges})
	}
	labelled := g.types[0]
	if s.kind.traits {
		g.traits = newTraits(labelled, s.classes, s.dim, s.signal, s.seed)
	} else {
		g.features = newFeatures(labelled, s.dim, s.signal, s.seed)
		g.parts = newBijection(labelled.count, key(s.seed, forSplit, 0))
	}
	if s.triples {
		g.schema.Featureless = true
		return g
	}
	if s.stream {
		g.streamSchema()
		return g
	}
	g.schema.Tables = []ingest.Table{{Name: "feat", NodeType: labelled.name, Dim: s.dim}}
	g.schema.Labels = []ingest.Label{{Name: "label", NodeType: labelled.name, Classes: s.classes}}
	g.schema.Splits = []ingest.Split{{Name: s.split, NodeType: labelled.name}}
	return g
}

// identity names all that the graph depends on.
func (s *shape) identity() string {
	text := fmt.Sprintf("generate %d %s seed %d dim %d classes %d homophily %v signal %v parts %v", recipe, s.key, s.seed, s.dim, s.classes,
		s.homophily, s.signal, s.parts)
	if s.span != eventSpan {
		text += fmt.Sprintf(" span %v", s.span)
	}
	if s.options.Leak {
		text += " leak"
	}
	for _, t := range s.types {
		text += fmt.Sprintf(" %s %d", t.name, t.nodes)
	}
	for _, r := range s.relations {
		text += fmt.Sprintf(" %s %d", r.name, r.edges)
	}
	return text
}

// Extras implements [ingest.Source].
func (g *Source) Extras() ingest.Extras {
	return ingest.Extras{RowsAt: g.RowsAt}
}

// Schema returns the schema that Open made.
func (g *Source) Schema(context.Context) (*ingest.Schema, error) { return new(g.schema), nil }

// place is where a row of a section is.
func (g *Source) place(first int64) ingest.Place {
	return ingest.Place{File: "generated " + g.shape.key, First: first}
}

// Edges makes them grouped by destination, in an order that has nothing to do with ids.
func (g *Source) Edges(ctx context.Context, relation int, emit func(ingest.EdgeChunk) error) error {
	if g.shape.stream {
		return g.eventEdges(ctx, emit)
	}
	r := g.relations[relation]
	type buffer struct{ src, dst []int64 }
	return ordered(ctx, chunks(r.edges, ingest.ChunkRows),
		func() buffer {
			n := min(ingest.ChunkRows, r.edges)
			return buffer{make([]int64, n), make([]int64, n)}
		},
		func(chunk int64, b buffer) {
			lo := chunk * ingest.ChunkRows
			n := min(ingest.ChunkRows, r.edges-lo)
			r.fill(b.src[:n], b.dst[:n], lo)
		},
		func(chunk int64, b buffer) error {
			lo := chunk * ingest.ChunkRows
			n := min(ingest.ChunkRows, r.edges-lo)
			return emit(ingest.EdgeChunk{Place: g.place(lo), Src: b.src[:n], Dst: b.dst[:n]})
		})
}

// chunks is the number of chunks that n things take.
func chunks(n, each int64) int64 { return (n + each - 1) / each }

// Rows makes the features of all nodes.
func (g *Source) Rows(ctx context.Context, table int, emit func(ingest.RowChunk) error) error {
	mustBeFirst(table)
	if g.shape.stream {
		return g.eventRows(ctx, emit)
	}
	return eachChunk(ctx, g.labelled(), max(1, ingest.ChunkBytes/4/int64(g.shape.dim)), g.shape.dim, g.row,
		func(first int64, values []float32) error {
			return emit(ingest.RowChunk{Place: g.place(first), Values: values})
		})
}

// RowsAt makes the features of any nodes.
func (g *Source) RowsAt(table int, rows []uint32, dst []float32) bool {
	if g.shape.stream { // its rows are of events
		return false
	}
	mustBeFirst(table)
	dim := g.shape.dim
	if len(dst) != len(rows)*dim {
		panic(fmt.Sprintf("generate: %d values for %d rows of %d", len(dst), len(rows), dim))
	}
	for i, v := range rows {
		g.row(dst[i*dim:(i+1)*dim], v)
	}
	return true
}

// Labels gives each node's class, or -1.
func (g *Source) Labels(ctx context.Context, label int, emit func(ingest.LabelChunk) error) error {
	mustBeFirst(label)
	return eachChunk(ctx, g.labelled(), ingest.ChunkRows, 1, func(dst []int32, v uint32) { dst[0] = g.label(v) },
		func(first int64, values []int32) error {
			return emit(ingest.LabelChunk{Place: g.place(first), Values: values})
		})
}

// Split gives the nodes of a part, ascending.
func (g *Source) Split(ctx context.Context, split int, part ingest.Part, emit func(ingest.IDChunk) error) error {
	mustBeFirst(split)
	var ids []int64
	given := int64(0)
	mark := func(dst []bool, v uint32) { dst[0] = g.part(v) == int(part) }
	return eachChunk(ctx, g.labelled(), ingest.ChunkRows, 1, mark,
		func(first int64, in []bool) error {
			ids = ids[:0]
			for i, is := range in {
				if is {
					ids = append(ids, first+int64(i))
				}
			}
			if len(ids) == 0 {
				return nil
			}
			c := ingest.IDChunk{Place: g.place(given), IDs: ids}
			given += int64(len(ids))
			return emit(c)
		})
}

// row fills dst with the features of a node.
func (g *Source) row(dst []float32, v uint32) {
	if g.traits != nil {
		g.traits.row(dst, v)
		return
	}
	g.features.row(dst, v)
}

// part is the part of the split that a node is in, or -1.
func (g *Source) part(v uint32) int {
	var at int64
	if g.traits != nil {
		_, _, when := g.traits.home(v)
		at = int64(when)
	} else {
		at = int64(g.parts.rank(v))
	}
	for i, n := range g.shape.parts {
		if at < n {
			return i
		}
		at -= n
	}
	return -1
}

// label is a node's class, or -1.
func (g *Source) label(v uint32) int32 {
	part := g.part(v)
	if part < 0 || g.shape.hidden && part == int(ingest.Test) {
		return -1
	}
	if g.traits != nil {
		return int32(g.traits.class(v))
	}
	return int32(g.types[0].of(g.types[0].ids.rank(v)))
}

// year returns the year of a paper. Papers of the split are parted by it, as in the benchmarks.
func (g *Source) year(v uint32) int64 {
	h := draw(g.years, uint64(v))
	switch g.part(v) {
	case int(ingest.Train):
		return 2018 - 1 - int64(h%20)
	case int(ingest.Valid):
		return 2018
	case int(ingest.Test):
		return 2019
	}
	return 2019 - int64(h%60)
}

// labelled returns the number of nodes of the type that has labels.
func (g *Source) labelled() int64 { return int64(g.types[0].count) }

// eachChunk makes width values for each of n nodes or events, rows of them at a time, and takes
// them in order.
func eachChunk[T any, K uint32 | int64](
	ctx context.Context, n, rows int64, width int, make1 func(dst []T, k K), take func(first int64, values []T) error,
) error {
	return ordered(ctx, chunks(n, rows),
		func() []T { return make([]T, min(rows, n)*int64(width)) },
		func(chunk int64, b []T) {
			for k := chunk * rows; k < min(n, (chunk+1)*rows); k++ {
				at := int(k-chunk*rows) * width
				make1(b[at:at+width], K(k))
			}
		},
		func(chunk int64, b []T) error {
			return take(chunk*rows, b[:int(min(rows, n-chunk*rows))*width])
		})
}

// mustBeFirst panics for a section that there is not: every kind has one table, one label and one
// split.
func mustBeFirst(section int) {
	if section != 0 {
		panic("generate: no such section")
	}
}
