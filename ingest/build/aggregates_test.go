package build

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// market is users who buy items and know each other. Users have a column, items have none.
func market(users, items int, buys, knows [][2]int64, weights []float32) *fake {
	f := &fake{
		schema: ingest.Schema{
			Name: "market", NodeTypes: []ingest.NodeType{{Name: "user", Count: int64(users)}, {Name: "item", Count: int64(items)}},
			Relations: []ingest.Relation{
				{Src: "user", Name: "buys", Dst: "item", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}}},
				{Src: "user", Name: "knows", Dst: "user", Edges: -1},
			},
			Tables: []ingest.Table{{Name: "feat", NodeType: "user", Dim: 1}},
		},
		edges: map[int][][2]int64{0: buys, 1: knows}, rows: map[int][]float32{}, values: map[int][][]uint64{0: {nil}},
	}
	for u := range users {
		f.rows[0] = append(f.rows[0], float32(u))
	}
	for _, w := range weights {
		f.values[0][0] = append(f.values[0][0], uint64(math.Float32bits(w)))
	}
	return f
}

// TestAggregates compares counts, sums and means with loops over the source's edges, in parts of
// any size, with and without reverses, and in any order of nodes.
func TestAggregates(t *testing.T) {
	fewer(t, 10)
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(rt *rapid.T) {
		users, items := rapid.IntRange(1, 12).Draw(rt, "users"), rapid.IntRange(1, 6).Draw(rt, "items")
		var buys, knows [][2]int64
		var weights []float32
		for range rapid.IntRange(0, 40).Draw(rt, "buys") {
			buys = append(buys, [2]int64{rapid.Int64Range(0, int64(users-1)).Draw(rt, "u"), rapid.Int64Range(0, int64(items-1)).Draw(rt, "i")})
			weights = append(weights, rapid.Float32Range(-1000, 1000).Draw(rt, "w"))
		}
		for range rapid.IntRange(0, 30).Draw(rt, "knows") {
			knows = append(knows, [2]int64{rapid.Int64Range(0, int64(users-1)).Draw(rt, "u"), rapid.Int64Range(0, int64(users-1)).Draw(rt, "v")})
		}
		f := market(users, items, buys, knows, weights)
		f.schema.NodeTypes[0].Aggregates = []string{"count:*", "sum:buys.weight", "mean:user__buys__item.weight:out"}
		f.schema.NodeTypes[1].Aggregates = []string{"count:buys:in", "mean:buys.weight"}
		o := Options{
			Order: rapid.SampledFrom([]Order{OrderDegree, OrderAccess, OrderOriginal}).Draw(rt, "order"), DType: F32,
			Reverse: rapid.Bool().Draw(rt, "reverse"), Directed: true, FS: storetest.NoSync,
		}
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		report, err := Build(t.Context(), f, path, o)
		require.NoError(rt, err)
		defer os.RemoveAll(path)
		d, err := store.Open(path)
		require.NoError(rt, err)
		defer d.Close()
		for _, part := range []int64{1, 3} {
			again := o
			again.test, again.FS = hooks{aggregates: part, placed: 5 * part, journal: part == 1}, vfs.NewMem()
			same, err := Build(t.Context(), f, "x.gnn", again)
			require.NoError(rt, err)
			require.Equal(rt, report.Seal, same.Seal, part)
		}

		log := func(x float64) float64 { return math.Copysign(math.Log1p(math.Abs(x)), x) }
		mean := func(sum, n float64) float64 { return sum / max(n, 1) }
		user, item := make([][4]float64, users), make([][2]float64, items) // bought, knows it, knows, sum; bought, sum
		for i, e := range buys {
			user[e[0]][0]++
			user[e[0]][3] += float64(weights[i])
			item[e[1]][0]++
			item[e[1]][1] += float64(weights[i])
		}
		for _, e := range knows {
			user[e[0]][2]++
			user[e[1]][1]++
		}
		for i, table := range d.Manifest().Tables {
			at, ids := d.Features(i), d.IDs(0)
			if table.NodeType == "item" {
				ids = d.IDs(1)
			}
			for v := range at.Rows() {
				id := ids.Original(store.NodeID(v))
				var want []float64
				if table.NodeType == "user" {
					n := user[id]
					want = []float64{float64(id), log(n[0]), log(n[1]), log(n[2]), log(n[3]), log(mean(n[3], n[0]))}
				} else {
					n := item[id]
					want = []float64{log(n[0]), log(mean(n[1], n[0]))}
				}
				got := floats(at, store.NodeID(v))
				require.Len(rt, got, len(want))
				for c := range want {
					require.InDelta(rt, want[c], got[c], 1e-3, "%s %d, column %d", table.NodeType, id, c)
				}
			}
		}
		e, err := d.Encodings()
		require.NoError(rt, err)
		var names []string
		for _, c := range e.Tables[0].Columns {
			names = append(names, c.Name)
		}
		require.Equal(rt, []string{"", "count:buys:out", "count:knows:in", "count:knows:out", "sum:buys.weight:out", "mean:buys.weight:out"}, names)
		require.Equal(rt, "counts", e.Tables[1].Made)
	})
}

// TestCountsOption: the option goes before the source, and a dataset to follow before both. Edges
// that are held out are not counted.
func TestCountsOption(t *testing.T) {
	columns := func(o Options, aggregates ...string) (all []string) {
		f := market(3, 2, [][2]int64{{0, 0}, {1, 1}, {1, 0}}, [][2]int64{{0, 1}}, []float32{1, 2, 3})
		f.schema.NodeTypes[0].Aggregates = aggregates
		_, report := build(t, f, o)
		for _, r := range report.Tables {
			for _, a := range r.Aggregates {
				all = append(all, r.NodeType+" "+a)
			}
			require.Equal(t, r.NodeType == "item", r.Made)
		}
		return all
	}
	counts := []string{"user count:buys:out", "user count:knows:in", "user count:knows:out"}
	require.Empty(t, columns(Options{}))
	require.Equal(t, counts, columns(Options{Counts: "all"}), "items have no features")
	require.Equal(t, append(counts, "item count:buys:in"), columns(Options{Counts: "item,user"}))
	require.Empty(t, columns(Options{Counts: "none"}, "count:*"))
	require.Equal(t, []string{"user count:knows"}, columns(Options{Undirected: true}, "count:knows"))
	require.Equal(t, []string{"user sum:buys.weight:out"}, columns(Options{Counts: "none", LikeAggregates: map[string][]string{"user": {"sum:buys.weight:out"}}}))

	f := market(1, 1000, nil, nil, nil)
	for i := range int64(1000) {
		f.edges[0] = append(f.edges[0], [2]int64{0, i})
		f.values[0][0] = append(f.values[0][0], 0)
	}
	d, _ := build(t, f, Options{Counts: "user", EdgeSplit: []string{"buys=random:0.5/0.2/0.3"}})
	require.InDelta(t, math.Log1p(float64(d.Manifest().Relations[0].Edges)), floats(d.Features(0), 0)[1], 1e-2)
	require.Less(t, d.Manifest().Relations[0].Edges, int64(600))
}

func TestAggregatesRefused(t *testing.T) {
	for text, want := range map[string]string{
		"count":             "write count:RELATION",
		"count:buys.weight": "write count:RELATION",
		"sum:buys":          "write count:RELATION",
		"count:sells":       "no such relation begins or ends at this type; there are buys, knows",
		"sum:knows.weight":  "edges of relation knows have no columns",
		"sum:buys.price":    "edges of relation buys have no column price; there are weight",
		"count:buys:in":     "the relation has no end of this type in that direction",
		"max:buys.weight":   "write count:RELATION",
	} {
		f := market(2, 1, nil, nil, nil)
		f.schema.NodeTypes[0].Aggregates = []string{text}
		_, err := Build(t.Context(), f, filepath.Join(t.TempDir(), "d.gnn"), Options{})
		require.ErrorContains(t, err, fmt.Sprintf("node type user: %s: %s", text, want))
	}
	for counts, want := range map[string]string{
		"usr": "{counts} usr: no node type usr; there are user, item, or choose all or none",
	} {
		_, err := Build(t.Context(), market(2, 1, nil, nil, nil), filepath.Join(t.TempDir(), "d.gnn"), Options{Counts: counts})
		require.EqualError(t, err, want)
	}
	f := market(2, 1, nil, nil, nil)
	_, err := Build(t.Context(), f, filepath.Join(t.TempDir(), "d.gnn"), Options{Counts: "all", Features: "mean", Reverse: true})
	require.ErrorContains(t, err, "{features} mean")
}
