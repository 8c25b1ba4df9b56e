package build

import (
	"context"
	"encoding/binary"
	"math"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// TestTimeKey: keys sort as the values do.
func TestTimeKey(t *testing.T) {
	f := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	i := func(x int64) uint64 { return uint64(x) }
	for e, ascending := range map[store.Elem][]uint64{
		store.U8: {0, 1, 255}, store.U32: {0, 1, math.MaxUint32}, store.U64: {0, 1, math.MaxUint64},
		store.I32: {i(math.MinInt32), i(-1), 0, 1, math.MaxInt32}, store.I64: {i(math.MinInt64), i(-1), 0, 1, math.MaxInt64},
		store.F32: {f(-math.MaxFloat32), f(-1), f(-1e-30), f(0), f(1e-30), f(1), f(math.MaxFloat32)},
	} {
		for k := 1; k < len(ascending); k++ {
			require.Less(t, timeKey(e, ascending[k-1]), timeKey(e, ascending[k]), e)
		}
	}
	require.Equal(t, timeKey(store.F32, f(0)), timeKey(store.F32, 1<<31), "minus zero")
}

// timed is a graph whose edges have these times, in an order that is not theirs.
func timed(times []int64) *fake {
	f := &fake{
		schema: ingest.Schema{
			NodeTypes: []ingest.NodeType{{Name: "node", Count: 400}}, Identity: "same",
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1, Columns: []ingest.EdgeColumn{{Name: "kind", Elem: store.U8}, {Name: "time", Elem: store.I64}}}},
		},
		edges: map[int][][2]int64{}, values: map[int][][]uint64{0: {nil, nil}},
	}
	for k := range times {
		at := k * 37 % len(times) // their number is prime to 37
		f.edges[0] = append(f.edges[0], [2]int64{int64(at), int64(at + 1)})
		f.values[0][0] = append(f.values[0][0], 9)
		f.values[0][1] = append(f.values[0][1], uint64(times[at]))
	}
	return f
}

// TestTimeSplit compares the parts with parts cut from sorted times: edge at→at+1 has the at-th
// time.
func TestTimeSplit(t *testing.T) {
	var distinct, ties, far []int64
	for k := range int64(100) {
		distinct, ties, far = append(distinct, k-50), append(ties, 2000+k/30), append(far, k<<57-1<<62)
	}
	slices.Sort(far)
	for i, c := range []struct {
		times       []int64
		split       string
		train, test int // the first edge that trains no more, and the first that tests
	}{
		{distinct, "time:time:0.8/0.1/0.1", 80, 90},
		{distinct, "to=time:time:0.5/0.5/0", 50, 100},
		{distinct, "time:time:0.305/0/0.695", 31, 31},
		{ties, "time:time:0.65/0.25/0.1", 60, 90}, // what begins within a time takes all of it
		{ties, "time:time:0.35/0.2/0.45", 30, 30},
		{far, "time:time:0.1/0.1/0.8", 10, 20},
	} {
		o := []Options{{}, {Undirected: true}, {Order: OrderOriginal}}[i%3]
		o.EdgeSplit, o.Features = []string{c.split}, "degree"
		d, rep := build(t, timed(c.times), o)
		want := func(from, to int) (edges [][2]int64) {
			for at := from; at < to; at++ {
				edges = append(edges, [2]int64{int64(at), int64(at + 1)})
			}
			return edges
		}
		for p, ends := range [][2]int{{c.train, c.test}, {c.test, len(c.times)}} {
			edges := heldEdges(t, d, 0, store.HeldPart(p))
			for i, e := range edges {
				edges[i] = [2]int64{min(e[0], e[1]), max(e[0], e[1])}
			}
			require.ElementsMatch(t, want(ends[0], ends[1]), edges, c)
			h, _ := d.HeldEdges(0, store.HeldPart(p))
			for i, e := range edges {
				require.EqualValues(t, c.times[e[0]], binary.LittleEndian.Uint64(h.Column("time")[8*i:]))
			}
		}
		require.EqualValues(t, len(c.times)-c.train, rep.Relations[0].HeldOut)
	}
}

func TestTimeSplitRefused(t *testing.T) {
	f := timed([]int64{5, 5, 5})
	f.schema.Relations = append(f.schema.Relations, ingest.Relation{Src: "node", Name: "likes", Dst: "node", Edges: -1})
	f.edges[1] = [][2]int64{{1, 2}}
	for split, want := range map[string]string{
		"time:year:0.8/0.1/0.1":       "relation node__to__node has no column year; it has kind, time",
		"likes=time:time:0.8/0.1/0.1": "relation node__likes__node has no column time; it has none",
		"to=time:time:0.5/0.2/0.3":    "no edge is left to train on",
		"time::0.5/0.2/0.3":           "name the column of times",
		"time:year:0.5/0.2":           "want three shares, of training, validation and test edges, as in time:year:0.85/0.05/0.1",
	} {
		_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{EdgeSplit: []string{split}, Features: "none"})
		require.ErrorContains(t, err, want)
	}
	f.values[0][1] = []uint64{5, 4, 3}
	d, rep := build(t, f, Options{EdgeSplit: []string{"time:time:0.7/0/0.3"}, Features: "none"})
	require.Nil(t, d.Manifest().Relations[1].EdgeSplit)
	require.Contains(t, rep.Notes, "relation node__likes__node has no column time, so that {edge_split} time:time:0.7/0/0.3 holds none of its edges out")
}

// TestTimeSplitResumed: what a pass found before a kill is known after it.
func TestTimeSplitResumed(t *testing.T) {
	f := timed([]int64{9, 8, 7, 6, 5, 4, 3, 2, 1, 0})
	o := Options{EdgeSplit: []string{"time:time:0.6/0.2/0.2"}, Features: "none", test: hooks{journal: true}}
	_, rep := build(t, f, o)
	path := filepath.Join(t.TempDir(), "x.gnn")
	ctx, cancel := context.WithCancel(context.Background())
	o.test.done = func(pass string) {
		if pass == "order times of node__to__node" {
			cancel()
		}
	}
	_, err := Build(ctx, f, path, o)
	require.ErrorIs(t, err, context.Canceled)
	o.test.done = nil
	again, err := Build(context.Background(), f, path, o)
	require.NoError(t, err)
	require.Equal(t, 1, again.Resumed)
	require.Equal(t, rep.Seal, again.Seal)
}
