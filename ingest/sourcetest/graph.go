package sourcetest

import (
	"context"
	"math"
	"strconv"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// Graph is everything that a source gives, section by section in the order of its Schema. What no
// chunk came of is nil.
type Graph struct {
	Schema  *ingest.Schema
	NodeIDs []IDs       // by node type; of those that have a list
	Edges   []Edges     // by relation
	Rows    [][]float32 // by table
	Labels  [][]int32   // by label
	Splits  []Split     // by split
}

// IDs are the ids of nodes: numbers, or texts.
type IDs struct {
	Numbers []int64
	Texts   []string
}

// Split has the nodes of a split by [ingest.Part].
type Split [3]IDs

// Numbers are the three lists of a split whose ids are numbers.
func (s Split) Numbers() (parts [3][]int64) {
	for p, ids := range s {
		parts[p] = ids.Numbers
	}
	return parts
}

// Edges are the edges of a relation. Their ends are in Src and Dst, or in the texts where the ids
// of a node type are text.
type Edges struct {
	Src, Dst           []int64
	SrcTexts, DstTexts []string
	Values             [][]uint64 // by column
}

// Pairs are the ends side by side, where both are numbers.
func (e Edges) Pairs() [][2]int64 {
	var pairs [][2]int64
	for i, u := range e.Src {
		pairs = append(pairs, [2]int64{u, e.Dst[i]})
	}
	return pairs
}

// Lines are the edges as text: "7>alice".
func (e Edges) Lines() []string {
	var lines []string
	end := func(ids []int64, texts []string, i int) string {
		if len(texts) > 0 {
			return texts[i]
		}
		return strconv.FormatInt(ids[i], 10)
	}
	for i := range max(len(e.Src), len(e.SrcTexts)) {
		lines = append(lines, end(e.Src, e.SrcTexts, i)+">"+end(e.Dst, e.DstTexts, i))
	}
	return lines
}

// Floats are the values of a column of F32, nil where the relation has no such column.
func (e Edges) Floats(column int) []float32 {
	if column >= len(e.Values) {
		return nil
	}
	var floats []float32
	for _, bits := range e.Values[column] {
		floats = append(floats, math.Float32frombits(uint32(bits)))
	}
	return floats
}

// Relation finds edges by the key of their relation, "user__buys__item". Without such a relation
// they are empty.
func (g *Graph) Relation(key string) Edges {
	if i := g.Schema.Relation(key); i >= 0 {
		return g.Edges[i]
	}
	return Edges{}
}

// Table finds feature rows by node type or key of a relation, and name: "user/feat". It is nil
// where there is no such table.
func (g *Graph) Table(name string) []float32 {
	for i, t := range g.Schema.Tables {
		if t.NodeType+t.Relation+"/"+t.Name == name {
			return g.Rows[i]
		}
	}
	return nil
}

// Label finds labels by node type and name, as Table does.
func (g *Graph) Label(name string) []int32 {
	for i, l := range g.Schema.Labels {
		if l.NodeType+"/"+l.Name == name {
			return g.Labels[i]
		}
	}
	return nil
}

// Split finds a split by its name. Without such a split it is empty.
func (g *Graph) Split(name string) Split {
	for i, s := range g.Schema.Splits {
		if s.Name == name {
			return g.Splits[i]
		}
	}
	return Split{}
}

// Read reads every section once. It returns the source's error, or a [Fault] for chunks that break
// the contract.
func Read(src ingest.Source) (Graph, error) {
	schema, err := src.Schema(context.Background())
	if err != nil {
		return Graph{}, err
	}
	all := sections(schema)
	read := make([]rows, len(all))
	for i := range all {
		if read[i], err = all[i].read(context.Background(), src, nil); err != nil {
			return Graph{Schema: schema}, err
		}
	}
	return newGraph(schema, all, read), nil
}

// Collect is Read for a source that reads without an error.
func Collect(t require.TestingT, src ingest.Source) Graph {
	if h, ok := t.(interface{ Helper() }); ok {
		h.Helper()
	}
	g, err := Read(src)
	require.NoError(t, err)
	return g
}

// newGraph puts what the sections gave in its places.
func newGraph(schema *ingest.Schema, all []section, read []rows) Graph {
	g := Graph{
		Schema: schema, NodeIDs: make([]IDs, len(schema.NodeTypes)), Edges: make([]Edges, len(schema.Relations)),
		Rows: make([][]float32, len(schema.Tables)), Labels: make([][]int32, len(schema.Labels)),
		Splits: make([]Split, len(schema.Splits)),
	}
	for i, s := range all {
		r := read[i]
		switch ids := (IDs{r.ids[0], r.texts[0]}); s.kind {
		case nodeIDs:
			g.NodeIDs[s.index] = ids
		case edges:
			g.Edges[s.index] = Edges{r.ids[0], r.ids[1], r.texts[0], r.texts[1], r.values}
		case features:
			g.Rows[s.index] = r.floats
		case labels:
			g.Labels[s.index] = r.classes
		case split:
			g.Splits[s.index][s.part] = ids
		}
	}
	return g
}
