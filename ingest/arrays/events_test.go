package arrays

import (
	"archive/zip"
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

// fewEvents is the stream of testdata/make.py.
func fewEvents() files {
	return files{
		"src": i64(0, 1, 0, 2, 1, 0), "dst": i64(3, 4, 4, 3, 3, 4), "t": i64(5, 7, 7, 9, 12, 20), "y": i64(0, 0, 1, 0, -1, 1),
		"msg": arr("<f4", false, []int{6, 2}, []float32{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}),
	}
}

func readEvents(t testing.TB, path string, o Options, ev Events) (sourcetest.Graph, error) {
	src, err := OpenEvents(path, o, ev)
	if err != nil {
		return sourcetest.Graph{}, err
	}
	defer func() { require.NoError(t, src.Close()) }()
	return sourcetest.Read(src)
}

func requireEvents(t *testing.T, g sourcetest.Graph) {
	t.Helper()
	require.Equal(t, []ingest.NodeType{{Name: "node", Count: 5}}, g.Schema.NodeTypes)
	require.Equal(t, []ingest.Relation{{
		Src: "node", Name: "events", Dst: "node", Edges: 6,
		Columns: []ingest.EdgeColumn{{Name: "time", Elem: store.F64}, {Name: "label", Elem: store.I32}},
		Stream:  &ingest.Stream{Time: "time", Label: "label"},
	}}, g.Schema.Relations)
	require.Equal(t, [][2]int64{{0, 3}, {1, 4}, {0, 4}, {2, 3}, {1, 3}, {0, 4}}, g.Edges[0].Pairs())
	times, labels := []float64(nil), []int32(nil)
	for i, bits := range g.Edges[0].Values[0] {
		times, labels = append(times, math.Float64frombits(bits)), append(labels, int32(g.Edges[0].Values[1][i]))
	}
	require.Equal(t, []float64{5, 7, 7, 9, 12, 20}, times)
	require.Equal(t, []int32{0, 0, 1, 0, -1, 1}, labels)
	require.Equal(t, []ingest.Table{{Name: "feat", Relation: "node__events__node", Dim: 2}}, g.Schema.Tables)
	require.Equal(t, [][]float32{{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}, g.Rows)
	require.True(t, g.Schema.Featureless)
	require.Empty(t, g.Schema.Skipped)
}

// TestTemporalData reads a stream in each form that PyTorch Geometric saves it in, as a graph and
// as events.
func TestTemporalData(t *testing.T) {
	for _, name := range []string{"temporal.pt", "temporal_processed.pt", "temporal.legacy.pt"} {
		path := filepath.Join("testdata", name)
		requireEvents(t, mustRead(t, path, Options{}))
		g, err := readEvents(t, path, Options{}, Events{})
		require.NoError(t, err)
		requireEvents(t, g)
	}
	g, err := readEvents(t, pack(t, fewEvents(), zip.Deflate), Options{}, Events{})
	require.NoError(t, err)
	requireEvents(t, g)
	// No destination may have the largest id.
	turned := pack(t, files{"src": fewEvents()["dst"], "dst": fewEvents()["src"], "t": fewEvents()["t"]}, zip.Deflate)
	g, err = readEvents(t, turned, Options{}, Events{})
	require.NoError(t, err)
	require.EqualValues(t, 5, g.Schema.NodeTypes[0].Count)
	require.EqualValues(t, 5, mustRead(t, turned, Options{}).Schema.NodeTypes[0].Count)
	// Format npz makes a graph of the same arrays, and a note names the times.
	g = mustRead(t, pack(t, fewEvents().with("y", nil).with("msg", nil), zip.Deflate), Options{})
	require.Nil(t, g.Schema.Relations[0].Stream)
	require.Contains(t, g.Schema.Skipped, "t: it may be the times of events, which format events reads as a stream")
}

func TestEventForms(t *testing.T) {
	f := fewEvents()
	renamed := files{"a": f["src"], "b": f["dst"], "when": f["t"], "state": f["y"], "rows": f["msg"]}
	g, err := readEvents(t, pack(t, renamed, zip.Deflate), Options{}, Events{Src: "a", Dst: "b", Time: "when", Label: "state", Features: "rows"})
	require.NoError(t, err)
	requireEvents(t, g)
	g, err = readEvents(t, pack(t, f.with("y", texts("ban", "", "ban", "ok", "NA", "ok")).with("t", arr("<f4", false, []int{6, 1}, []float32{0.5, 1, 2, 3, 4, 5})), zip.Deflate), Options{Nodes: 9}, Events{NoRows: true})
	require.NoError(t, err)
	require.Equal(t, []string{"ban", "ok"}, g.Schema.Relations[0].Stream.ClassNames)
	require.Equal(t, []uint64{0, math.MaxUint32, 0, 1, math.MaxUint32, 1}, g.Edges[0].Values[1])
	require.Equal(t, 0.5, math.Float64frombits(g.Edges[0].Values[0][0]))
	require.EqualValues(t, 9, g.Schema.NodeTypes[0].Count)
	require.Empty(t, g.Schema.Tables)
	// Users and items, and no labels.
	g, err = readEvents(t, pack(t, f, zip.Deflate), Options{}, Events{Bipartite: true, Label: NoLabel})
	require.NoError(t, err)
	require.Equal(t, []ingest.NodeType{{Name: "user", IDs: ingest.IntIDs, Gathered: true}, {Name: "item", IDs: ingest.IntIDs, Gathered: true}}, g.Schema.NodeTypes)
	require.Empty(t, g.Schema.Relations[0].Stream.Label)
	// Parts, by number and by masks.
	mask := func(v ...bool) []byte { return arr("|b1", false, []int{6}, v) }
	want := []ingest.Part{ingest.Train, ingest.Train, ingest.Valid, ingest.Train, ingest.Test, ingest.Test}
	masks := f.with("train_mask", mask(true, true, false, true, false, false)).with("val_mask", mask(false, false, true, false, false, false))
	for _, parted := range []files{f.with("part", i64(0, 0, 1, 0, 2, 2)), masks.with("test_mask", mask(false, false, false, false, true, true))} {
		s, err := OpenEvents(pack(t, parted, zip.Deflate), Options{}, Events{})
		require.NoError(t, err)
		schema, err := s.Schema(t.Context())
		require.NoError(t, err)
		require.True(t, schema.Relations[0].Parted)
		require.NoError(t, s.Edges(t.Context(), 0, func(c ingest.EdgeChunk) error {
			require.Equal(t, want, c.Parts)
			return nil
		}))
		require.NoError(t, s.Close())
	}
	for want, c := range map[string]struct {
		f  files
		o  Options
		ev Events
	}{
		"no times of events in it (found dst, msg, src, y); looked for t, time, times, timestamp, timestamps, ts, edge_time; {time} NAME in format events says another": {f: f.with("t", nil)},
		"t: 2 values, and ": {f: f.with("t", i64(1, 2))},
		"t is (6, 2) of <f4, and numbers in one dimension are expected":                         {f: f.with("t", f["msg"])},
		"t: row 5: 9007199254740993 has more digits than a time keeps":                          {f: f.with("t", i64(0, 0, 0, 0, 0, 1<<53+1))},
		"t: row 0: NaN is not a finite number, as times are":                                    {f: f.with("t", arr("<f8", false, []int{6}, []float64{math.NaN(), 1, 2, 3, 4, 5}))},
		"t is (6,) of <M8[s], dates or spans of time; convert it in Python":                     {f: f.with("t", arr("<M8[s]", false, []int{6}, make([]int64, 6)))},
		"y: row 1: 0.5 is not the number of a class, and labels of events are classes; {label}": {f: f.with("y", arr("<f8", false, []int{6}, []float64{0, 0.5, 1, 1, 1, 1}))},
		"y: row 2: label 65536; labels of events are classes, numbers from 0 to 65535":          {f: f.with("y", i64(0, 0, 65536, 0, 0, 0))},
		"y is (6, 2) of <f4, and a class for each event is expected; say {label} none":          {f: f.with("y", f["msg"])},
		"msg: 3 rows, and ": {f: f.with("msg", f32(1, 2, 3))},
		"part: row 4: 3 is no part (0 to train, 1 to validate and 2 to test are)":          {f: f.with("part", i64(0, 0, 1, 0, 3, 2))},
		"masks of 2 of the parts train, val and test of events; save all three":            {f: masks},
		"train_mask: row 4: the event is in 0 parts by the masks":                          {f: masks.with("test_mask", mask(false, false, false, false, false, true))},
		"there is no when, which {time} names":                                             {f: f, ev: Events{Time: "when"}},
		"{src} and {dst} name one array each; name both":                                   {f: f, ev: Events{Src: "src"}},
		"{bipartite}: sources and destinations are numbered apart; leave {node_count} out": {f: f, o: Options{Nodes: 5}, ev: Events{Bipartite: true}},
		"a stream of events, for which {array_train} names nothing; leave it out":          {f: f, o: Options{Train: "y"}},
		"src, dst: row 1: -1 is no id (0 to":                                               {f: f.with("src", i64(0, -1, 0, 2, 1, 0))},
		"a matrix, and events are a source and a destination each":                         {f: files{"adj": arr("<f4", false, []int{3, 3}, make([]float32, 9)), "t": i64(1)}},
	} {
		_, err := readEvents(t, pack(t, c.f, zip.Deflate), c.o, c.ev)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	_, err = OpenEvents("testdata/hetero_processed.pt", Options{}, Events{})
	require.EqualError(t, err, "testdata/hetero_processed.pt: a HeteroData, which is no stream of events; choose format pt")
	_, err = OpenEvents(t.TempDir(), Options{}, Events{})
	require.ErrorContains(t, err, "a folder; name the file of events in it")
}

func TestEventsConform(t *testing.T) {
	const n = ingest.ChunkRows + 5
	var src, dst, times, label, part []int64
	for i := range int64(n) {
		src, dst, times = append(src, i%70), append(dst, 70+i%11), append(times, i/3)
		label, part = append(label, i%4-1), append(part, i*3/n)
	}
	large := pack(t, files{"src": i64(src...), "dst": i64(dst...), "t": i64(times...), "y": i64(label...), "part": i64(part...)}, zip.Deflate)
	open := func(path string, ev Events) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return OpenEvents(path, Options{}, ev) }
	}
	sourcetest.Conform(t, open(large, Events{}), open(large, Events{Bipartite: true}), open("testdata/temporal.pt", Events{}))
}
