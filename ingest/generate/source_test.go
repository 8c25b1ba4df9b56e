package generate

import (
	"context"
	"math"
	"runtime"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// read collects what a source gives, less its schema, which the raw files of a graph do not share
// with it.
func read(t require.TestingT, s ingest.Source) *sourcetest.Graph {
	g := sourcetest.Collect(t, s)
	g.Schema = nil
	return &g
}

func open(t require.TestingT, kind string, o Options) *Source {
	g, err := Open(kind, o)
	require.NoError(t, err)
	return g
}

// TestFullShape holds the kinds to the counts of what they are named after.
func TestFullShape(t *testing.T) {
	for kind, want := range map[string]struct {
		nodes        map[string]int64
		edges        map[string]int64
		dim, classes int
		parts        [3]int64
	}{
		"papers100m": {map[string]int64{"node": 111059956}, map[string]int64{"node__to__node": 1615685872}, 128, 172, [3]int64{1207179, 125265, 214338}},
		"mag240m": {map[string]int64{"paper": 121751666, "author": 122383112, "institution": 25721},
			map[string]int64{"author__writes__paper": 386022720, "author__affiliated_with__institution": 44592586, "paper__cites__paper": 1297748926},
			768, 153, [3]int64{1112392, 138949, 146818}},
		"reddit":    {map[string]int64{"node": 232965}, map[string]int64{"node__to__node": 114615892}, 602, 41, [3]int64{153431, 23831, 55703}},
		"products":  {map[string]int64{"node": 2449029}, map[string]int64{"node__to__node": 61859140}, 100, 47, [3]int64{196615, 39323, 2213091}},
		"citations": {map[string]int64{"node": 10_000_000}, map[string]int64{"node__to__node": 150_000_000}, 128, 40, [3]int64{5_000_000, 1_000_000, 2_000_000}},
	} {
		g := open(t, kind, Options{})
		for _, n := range g.schema.NodeTypes {
			require.Equal(t, want.nodes[n.Name], n.Count, "%s %s", kind, n.Name)
		}
		require.Len(t, g.schema.NodeTypes, len(want.nodes))
		for i, r := range g.schema.Relations {
			require.Equal(t, want.edges[r.Key()], r.Edges, "%s %s", kind, r.Key())
			require.Equal(t, r.Edges, g.relations[i].first[want.classes], "every edge is some community's")
		}
		require.Len(t, g.schema.Relations, len(want.edges))
		require.Equal(t, want.dim, g.schema.Tables[0].Dim)
		require.Equal(t, want.classes, g.schema.Labels[0].Classes)
		require.Equal(t, want.parts, g.shape.parts)
	}
	require.Equal(t, []string{"churn", "citations", "drift-l", "drift-m", "drift-s", "kg", "mag240m", "papers100m", "products", "reddit", "temporal"}, Kinds())
}

// TestAnySize: the graph has the sizes that were asked for, whatever they were.
func TestAnySize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]string{"papers100m", "mag240m", "reddit", "citations"}).Draw(t, "kind")
		o := Options{
			Classes: rapid.IntRange(1, 40).Draw(t, "classes"), Dim: rapid.IntRange(1, 9).Draw(t, "dim"),
			Edges: rapid.Int64Range(1, 3000).Draw(t, "edges"), Seed: rapid.Uint64().Draw(t, "seed"),
			Train: rapid.Float64Range(0, 0.3).Draw(t, "train"), Test: rapid.Float64Range(0, 0.7).Draw(t, "test"),
			Homophily: rapid.SampledFrom([]float64{0, 0.01, 0.5, 1}).Draw(t, "homophily"),
		}
		o.Nodes = rapid.Int64Range(1, 2000).Draw(t, "nodes")
		s, err := Open(kind, o)
		if err != nil {
			require.ErrorContains(t, err, "{nodes}: ")
			return
		}
		g := read(t, s)
		nodes, edges := int64(0), 0
		for _, n := range s.schema.NodeTypes {
			nodes += n.Count
		}
		require.Equal(t, o.Nodes, nodes)
		for i, r := range s.relations {
			require.Len(t, g.Edges[i].Src, int(r.edges))
			edges += len(g.Edges[i].Src)
			for k, u := range g.Edges[i].Src {
				require.True(t, u >= 0 && u < int64(r.src.count), "source %d", u)
				require.True(t, g.Edges[i].Dst[k] >= 0 && g.Edges[i].Dst[k] < int64(r.dst.count), "destination %d", g.Edges[i].Dst[k])
			}
		}
		require.EqualValues(t, o.Edges, edges)
		n := int(s.types[0].count)
		require.Len(t, g.Labels[0], n)
		require.Len(t, g.Rows[0], n*o.Dim)
		in := map[int64]bool{}
		for part, ids := range g.Splits[0].Numbers() {
			require.Len(t, ids, int(s.shape.parts[part]))
			require.True(t, slices.IsSorted(ids))
			for _, v := range ids {
				require.False(t, in[v])
				in[v] = true
				if !s.shape.hidden || ingest.Part(part) != ingest.Test {
					require.GreaterOrEqual(t, g.Labels[0][v], int32(0))
				}
			}
		}
		for v, class := range g.Labels[0] {
			require.Less(t, class, int32(o.Classes))
			require.True(t, class < 0 || in[int64(v)], "a node outside the split has no label")
		}
	})
}

// TestSame: the stream depends on the seed and the options alone.
func TestSame(t *testing.T) {
	o := Options{Nodes: 20_000, Edges: 300_000, Dim: 20}
	want := read(t, open(t, "mag240m", o))
	for _, procs := range []int{1, 3} {
		old := runtime.GOMAXPROCS(procs)
		got := read(t, open(t, "mag240m", o))
		runtime.GOMAXPROCS(old)
		require.Equal(t, want, got)
	}
	o.Seed = 1
	require.Equal(t, want, read(t, open(t, "mag240m", o)), "the seed is 1 when there is none")
	o.Seed = 2
	other := read(t, open(t, "mag240m", o))
	require.NotEqual(t, want.Edges[0].Src, other.Edges[0].Src)
	require.NotEqual(t, want.Edges[0].Dst, other.Edges[0].Dst)
	require.NotEqual(t, want.Rows[0], other.Rows[0])
	require.NotEqual(t, want.Labels[0], other.Labels[0])
	require.NotEqual(t, want.Splits, other.Splits)
}

// TestPinned: the recipe has not changed by accident. A change on purpose changes recipe as well,
// which is part of every source's identity.
func TestPinned(t *testing.T) {
	g := read(t, open(t, "papers100m", Options{Nodes: 100_000, Edges: 1_000_000, Dim: 4, Classes: 10}))
	require.Equal(t, []int64{31566, 57330, 13453, 66896}, g.Edges[0].Src[500_000:500_004])
	require.Equal(t, []int64{88770, 88770, 88770, 88770}, g.Edges[0].Dst[500_000:500_004])
	require.Equal(t, []float32{0.8264923, -2.8457031, -1.8578491, -0.47061157}, g.Rows[0][4000:4004])
	require.Equal(t, []int64{50, 51, 169, 370}, g.Splits[0][0].Numbers[:4])
	g = read(t, open(t, "citations", Options{Nodes: 100_000, Edges: 1_000_000, Dim: 4, Classes: 10}))
	require.Equal(t, []int64{68717, 38821, 87933, 75736}, g.Edges[0].Src[500_000:500_004])
	require.Equal(t, []int64{59085, 59085, 59085, 59085}, g.Edges[0].Dst[500_000:500_004])
	require.Equal(t, []float32{-1.2108095, -1.4687332, -2.8588185, -4.0162463}, g.Rows[0][4000:4004])
	require.Equal(t, []int32{-1, 0, 5, 8, -1, 1, 4, 3}, g.Labels[0][:8])
	require.Equal(t, []int64{3, 6, 7, 8}, g.Splits[0][0].Numbers[:4])
	require.Equal(t, 1, recipe)
}

// TestRanges: any part of the edges, made alone, equals that part of the whole.
func TestRanges(t *testing.T) {
	s := open(t, "mag240m", Options{Nodes: 3000, Edges: 20_000, Dim: 3})
	g := read(t, s)
	rapid.Check(t, func(t *rapid.T) {
		i := rapid.IntRange(0, 2).Draw(t, "relation")
		lo := rapid.IntRange(0, len(g.Edges[i].Src)-1).Draw(t, "lo")
		n := rapid.IntRange(0, len(g.Edges[i].Src)-lo).Draw(t, "n")
		src, dst := make([]int64, n), make([]int64, n)
		s.relations[i].fill(src, dst, int64(lo))
		require.Equal(t, g.Edges[i].Src[lo:lo+n], src)
		require.Equal(t, g.Edges[i].Dst[lo:lo+n], dst)
	})
}

func TestRowsAt(t *testing.T) {
	for _, dim := range []int{1, 3, 4, 7, 602} {
		s := open(t, "papers100m", Options{Nodes: 5000, Edges: 1, Dim: dim})
		g := read(t, s)
		rows := []uint32{4999, 0, 17, 17, 2500}
		dst := make([]float32, len(rows)*dim)
		require.True(t, s.RowsAt(0, rows, dst))
		for i, v := range rows {
			require.Equal(t, g.Rows[0][int(v)*dim:(int(v)+1)*dim], dst[i*dim:(i+1)*dim])
		}
		require.Panics(t, func() { s.RowsAt(0, rows, dst[1:]) })
		require.Panics(t, func() { s.RowsAt(1, rows, dst) })
	}
}

// TestNoSuchSection: asking for a section that the schema does not list is a fault of the caller.
func TestNoSuchSection(t *testing.T) {
	ctx, s := context.Background(), open(t, "papers100m", Options{Nodes: 1000, Edges: 3000, Dim: 8})
	for _, section := range []func(){
		func() { _ = s.Edges(ctx, 1, nil) }, func() { _ = s.Rows(ctx, 1, nil) },
		func() { _ = s.Labels(ctx, 1, nil) }, func() { _ = s.Split(ctx, 1, ingest.Train, nil) },
	} {
		require.Panics(t, section)
	}
	require.NoError(t, s.NodeIDs(ctx, 0, nil))
}

func TestRefuses(t *testing.T) {
	for _, c := range []struct {
		kind string
		o    Options
		want string
	}{
		{"twitter", Options{}, `unknown kind "twitter"; there are churn, citations, drift-l, drift-m, drift-s, kg, mag240m, papers100m, products, reddit, temporal`},
		{"reddit", Options{Scale: -1}, "{scale} -1: it multiplies nodes and edges, so it is above 0, as in 0.01"},
		{"reddit", Options{Scale: math.NaN(), Dim: -3}, "{scale} NaN: it multiplies nodes and edges, so it is above 0, as in 0.01\n{dim} -3: want 1 to 16384"},
		{"reddit", Options{Nodes: -5, Edges: -5}, "{nodes} -5: a number from 1 on is wanted\n{edges} -5: a number from 1 on is wanted"},
		{"reddit", Options{Nodes: 10}, "{nodes}: 10 of type node for 41 classes; ask for more nodes, or for fewer {classes}"},
		{"papers100m", Options{Scale: 50, Nodes: 111_059_956, Edges: 1 << 30}, "{nodes}: 5552997800 of them with the scale, and 4294967295 are the most"},
		{"mag240m", Options{Nodes: 1, Classes: 1}, "{nodes}: 1 leave none for type paper; ask for more\n{nodes}: 1 leave none for type author; ask for more"},
		{"reddit", Options{Classes: 1 << 20}, "{classes} 1048576: want 1 to 32768"},
		{"papers100m", Options{Dim: 1 << 14, Classes: 1 << 15}, "{dim} 16384 and {classes} 32768: their product is at most 16777216"},
		{"reddit", Options{Homophily: 1.5, Signal: -1}, "{homophily} 1.5: it is a share of the edges, from 0 to 1\n{signal} -1: want 0 to 1000"},
		{"reddit", Options{Train: 0.9, Test: 0.2}, "{train}, {valid} and {test}: the shares sum to 1.1, and 1 is all"},
		{"kg", Options{Dim: 3}, "{dim}, {signal}, {train}, {valid} and {test}: entities of kind kg have no features and labels; leave them out"},
		{"reddit", Options{Span: 7}, "{span} 7: it is the seconds that kind temporal takes, above 0"},
		{"temporal", Options{Span: -1}, "{span} -1: it is the seconds that kind temporal takes, above 0"},
		{"drift-s", Options{Homophily: 0.5}, "{homophily}, {train}, {valid} and {test}: kind drift-s has none, and is split by {split} time:a/b/c; leave them out"},
		{"drift-s", Options{Classes: 9}, "{dim} 8 and {classes} 9: events of kind drift-s have a column for each class at least"},
		{"reddit", Options{Valid: -0.5}, "{valid} -0.5: a share of the nodes, from 0 to 1"},
	} {
		require.EqualError(t, c.o.Validate(c.kind), c.want)
		_, err := Open(c.kind, c.o)
		require.EqualError(t, err, c.want)
	}
}

// TestProportion: nodes or edges alone bring the others with them, so that the degree stays; both
// are as given.
func TestProportion(t *testing.T) {
	for _, c := range []struct {
		kind         string
		o            Options
		nodes, edges int64
	}{
		{"reddit", Options{}, 232_965, 114_615_892},
		{"reddit", Options{Nodes: 23_297}, 23_297, 11_461_835},
		{"reddit", Options{Edges: 1_146_159}, 2330, 1_146_159},
		{"reddit", Options{Nodes: 5000, Edges: 70}, 5000, 70},
		{"products", Options{Nodes: 2_449_029 * 3}, 2_449_029 * 3, 61_859_140 * 3},
		{"products", Options{Nodes: 24_490, Scale: 0.5}, 12_245, 309_292},
		{"mag240m", Options{Edges: 17_284_042}, 2_441_661, 17_284_042},
	} {
		s, err := c.o.shape(c.kind)
		require.NoError(t, err)
		require.Equal(t, [2]int64{c.nodes, c.edges}, [2]int64{s.nodes, s.edges}, "%s %+v", c.kind, c.o)
	}
	_, err := (&Options{Edges: math.MaxInt64}).shape("reddit")
	require.ErrorContains(t, err, "{edges}: ")
}
