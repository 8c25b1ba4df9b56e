package build

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// drawGraph is a random graph of two node types, the second with external ids, with a relation
// within the first, one between them and one within the second.
func drawGraph(t *rapid.T) *fake {
	papers := rapid.IntRange(1, 9).Draw(t, "papers")
	authors := rapid.SliceOfNDistinct(rapid.Int64Range(-50, 50), 1, 9, rapid.ID[int64]).Draw(t, "authors")
	paper := rapid.Int64Range(0, int64(papers)-1)
	author := rapid.SampledFrom(authors)
	f := &fake{
		schema: ingest.Schema{
			Name:      "random",
			NodeTypes: []ingest.NodeType{{Name: "paper", Count: int64(papers)}, {Name: "author", Count: int64(len(authors)), IDs: ingest.IntIDs}},
			Relations: []ingest.Relation{{Src: "paper", Name: "cites", Dst: "paper", Edges: -1}, {Src: "author", Name: "writes", Dst: "paper", Edges: -1}, {Src: "author", Name: "knows", Dst: "author", Edges: -1}},
			Tables:    []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 3}, {Name: "feat", NodeType: "author", Dim: 1}},
			Labels:    []ingest.Label{{Name: "topic", NodeType: "paper", Classes: 4}, {Name: "roles", NodeType: "author", Classes: 2, Multi: true}},
			Splits:    []ingest.Split{{Name: "time", NodeType: "paper"}, {Name: "other", NodeType: "author"}},
		},
		ids:    map[int][]int64{1: authors},
		edges:  map[int][][2]int64{},
		rows:   map[int][]float32{},
		labels: map[int][]int32{},
		splits: map[int][3][]int64{},
		chunk:  rapid.IntRange(1, 5).Draw(t, "chunk"),
	}
	for i, ends := range [][2]*rapid.Generator[int64]{{paper, paper}, {author, paper}, {author, author}} {
		f.edges[i] = rapid.SliceOfN(rapid.Custom(func(t *rapid.T) [2]int64 {
			return [2]int64{ends[0].Draw(t, "u"), ends[1].Draw(t, "v")}
		}), 0, 30).Draw(t, "edges")
	}
	value := rapid.Map(rapid.Int32Range(-2048, 2048), func(x int32) float32 { return float32(x) })
	f.rows[0] = rapid.SliceOfN(value, 3*papers, 3*papers).Draw(t, "rows")
	f.rows[1] = rapid.SliceOfN(value, len(authors), len(authors)).Draw(t, "rows")
	f.labels[0] = rapid.SliceOfN(rapid.Int32Range(-1, 3), papers, papers).Draw(t, "classes")
	f.labels[1] = rapid.SliceOfN(rapid.Int32Range(-1, 1), 2*len(authors), 2*len(authors)).Draw(t, "bits")
	ids := make([]int64, papers)
	for i := range ids {
		ids[i] = int64(i)
	}
	for i, all := range [][]int64{ids, authors} {
		var parts [3][]int64
		for _, id := range all {
			if p := rapid.IntRange(0, 3).Draw(t, "part"); p < 3 {
				parts[p] = append(parts[p], id)
			}
		}
		f.splits[i] = parts
	}
	return f
}

// reference is the expected content of a dataset, by original ids, computed the obvious way.
type reference struct {
	edges  map[[2]int64]int
	report RelationReport
}

func obvious(f *fake, relation int, undirected bool) reference {
	r := f.schema.Relations[relation]
	ref := reference{map[[2]int64]int{}, RelationReport{Key: r.Key(), Columns: []string{}, Left: []string{}}}
	for _, e := range f.edges[relation] {
		ref.report.EdgesRead++
		if r.Src == r.Dst && e[0] == e[1] {
			ref.report.SelfLoops++
		}
		if ref.edges[e] > 0 {
			ref.report.Duplicates++
		}
		ref.edges[e]++
	}
	if undirected && r.Src == r.Dst {
		for e := range ref.edges {
			ref.edges[e] = 1
		}
		read := len(ref.edges)
		ref.report.DuplicatesMerged = ref.report.Duplicates
		for _, e := range f.edges[relation] {
			ref.edges[[2]int64{e[1], e[0]}] = 1
		}
		ref.report.ReverseAdded = int64(len(ref.edges) - read)
	}
	for _, n := range ref.edges {
		ref.report.Edges += int64(n)
	}
	return ref
}

func half(b []byte) []float32 {
	var out []float32
	for i := 0; i < len(b); i += 2 {
		h := uint16(b[i]) | uint16(b[i+1])<<8
		x := math.Ldexp(float64(h&1023|1024), int(h>>10&31)-25)
		if h>>10&31 == 0 {
			x = math.Ldexp(float64(h&1023), -24)
		}
		if h>>15 == 1 {
			x = -x
		}
		out = append(out, float32(x))
	}
	return out
}

func TestBuildIsTheObviousThing(t *testing.T) {
	fewer(t, 15)
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawGraph(t)
		o := Options{Order: OrderOriginal, Undirected: rapid.Bool().Draw(t, "undirected"), FS: storetest.NoSync}
		if rapid.Bool().Draw(t, "degree") {
			o.Order = OrderDegree
		}
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		rep, err := Build(context.Background(), f, path, o)
		require.NoError(t, err)
		defer os.RemoveAll(path)
		d, err := store.Open(path)
		require.NoError(t, err)
		defer d.Close()
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)

		ids := []store.IDs{d.IDs(0), d.IDs(1)}
		row := []map[int64]int{{}, {}}
		for i := range f.schema.NodeTypes[0].Count {
			row[0][i] = int(i)
		}
		for i, id := range f.ids[1] {
			row[1][id] = i
		}
		listed := []map[int64]int{{}, {}}
		for i := range f.schema.Relations {
			src, dst := []int{0, 1, 1}[i], []int{0, 0, 1}[i]
			ref := obvious(f, i, o.Undirected)
			require.Equal(t, ref.report, rep.Relations[i])
			g, got := d.Graph(i), map[[2]int64]int{}
			require.Equal(t, o.Undirected && src == dst, g.Relation.Symmetric)
			for v := range g.Nodes() {
				list := g.Neighbors(store.NodeID(v))
				require.True(t, slices.IsSorted(list))
				for _, u := range list {
					got[[2]int64{ids[src].Original(u), ids[dst].Original(store.NodeID(v))}]++
					listed[src][ids[src].Original(u)]++
				}
			}
			require.Equal(t, ref.edges, got)
		}
		for i := range row {
			require.Len(t, row[i], int(d.Manifest().NodeTypes[i].Count))
			want := make([]int64, 0, len(row[i]))
			for id := range row[i] {
				want = append(want, id)
			}
			slices.SortFunc(want, func(a, b int64) int {
				if o.Order == OrderDegree {
					return cmp.Or(cmp.Compare(listed[i][b], listed[i][a]), cmp.Compare(row[i][a], row[i][b]))
				}
				return cmp.Compare(row[i][a], row[i][b])
			})
			parts := map[int64]ingest.Part{}
			for p, part := range f.splits[i] {
				for _, id := range part {
					parts[id] = ingest.Part(p) + 1
				}
			}
			got := map[int64]ingest.Part{}
			sets := d.Split(i)
			for p, part := range [][]store.NodeID{sets.Train, sets.Valid, sets.Test} {
				for _, v := range part {
					got[ids[i].Original(v)] = ingest.Part(p) + 1
				}
			}
			require.Equal(t, parts, got)
			dim := f.schema.Tables[i].Dim
			for v, id := range want {
				v, r := store.NodeID(v), row[i][id]
				require.Equal(t, id, ids[i].Original(v))
				require.Equal(t, f.rows[i][r*dim:(r+1)*dim], half(d.Features(i).Row(v)))
				if i == 0 {
					require.Equal(t, f.labels[0][r], d.Labels(0).Class(v))
				} else {
					for c, bit := range d.Labels(1).Bits(v) {
						require.Equal(t, uint8(f.labels[1][2*r+c]), bit) // -1 is 255
					}
				}
			}
		}
	})
}

// TestSealIsTheSource: however the source cuts its chunks, and whatever the machine does at once,
// equal inputs are equal datasets.
func TestSealIsTheSource(t *testing.T) {
	for _, o := range []Options{{}, {Undirected: true, Features: "fastrp:8", Split: "random:0.5/0.25/0.25"}, {Features: "random:8", Seed: 3}} {
		a, b := small(), small()
		b.chunk = 1
		_, ra := build(t, a, o)
		_, rb := build(t, b, o)
		require.Equal(t, ra.Seal, rb.Seal)
		o.Seed = 4
		if o.Features != "" {
			_, rb = build(t, b, o)
			require.NotEqual(t, ra.Seal, rb.Seal)
		}
	}
}
