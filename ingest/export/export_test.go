package export

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/graphbolt"
	"github.com/gnnstore/gnnstore/ingest/npy"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// world is a small dataset: users, some with gaps in their ids, and items, in two relations with
// columns and a table.
type world struct {
	users, items []int64 // original ids, as stored
	feat         []float32
	class        []int32 // of users
	bits         []uint8 // of items, three classes
	train, valid []store.NodeID
	buys         [][]store.NodeID // users of an item
	weights      [][]float32
	ids          [][]uint32
	knows        [][]store.NodeID // users of a user
	price        []float32        // two columns an edge of buys, as read
	times        [][]int64        // of knows
}

func drawWorld(t *rapid.T, gaps bool) *world {
	w := &world{}
	ids := func(n int, name string) []int64 {
		all := make([]int64, n)
		for i := range all {
			all[i] = int64(i)
			if gaps {
				all[i] = int64(i)*3 + 5
			}
		}
		return rapid.Permutation(all).Draw(t, name)
	}
	w.users, w.items = ids(rapid.IntRange(1, 8).Draw(t, "users"), "user ids"), ids(rapid.IntRange(1, 6).Draw(t, "items"), "item ids")
	for v := range w.users {
		w.feat = append(w.feat, float32(v)+0.5, -float32(v))
		w.class = append(w.class, int32(rapid.IntRange(-1, 3).Draw(t, "class")))
		switch rapid.IntRange(0, 2).Draw(t, "part") {
		case 0:
			w.train = append(w.train, store.NodeID(v))
		case 1:
			w.valid = append(w.valid, store.NodeID(v))
		}
	}
	some := func(n int, name string) []store.NodeID {
		list := rapid.SliceOfNDistinct(rapid.Uint32Range(0, uint32(n)-1), 0, n, rapid.ID).Draw(t, name)
		slices.Sort(list)
		return list
	}
	edges := 0
	for range w.items {
		list := some(len(w.users), "buys")
		var weights []float32
		var ids []uint32
		for range list {
			weights, ids = append(weights, float32(edges)/4), append(ids, uint32(edges))
			edges++
		}
		w.buys, w.weights, w.ids = append(w.buys, list), append(w.weights, weights), append(w.ids, ids)
		w.bits = append(w.bits, rapid.SliceOfN(rapid.SampledFrom([]uint8{0, 1, store.MissingBit}), 3, 3).Draw(t, "bits")...)
	}
	for i := range edges {
		w.price = append(w.price, float32(i), float32(i)/2)
	}
	for v := range w.users {
		list := some(len(w.users), "knows")
		var times []int64
		for k := range list {
			times = append(times, int64(v)<<40+int64(k))
		}
		w.knows, w.times = append(w.knows, list), append(w.times, times)
	}
	return w
}

func le[T any](t require.TestingT, v []T) []byte {
	b, err := binary.Append(nil, binary.LittleEndian, v)
	require.NoError(t, err)
	return b
}

// write seals the world.
func (w *world) write(t require.TestingT, path string) *store.Dataset {
	s, err := store.Create(path, store.WriterOptions{ShardBytes: 64, FS: storetest.NoSync})
	require.NoError(t, err)
	require.NoError(t, s.AddNodeType("user", w.users))
	require.NoError(t, s.AddNodeType("item", w.items))
	g, err := s.AddRelation("user", "buys", "item", false, store.ColumnSpec{Name: "id", Elem: store.U32}, store.ColumnSpec{Name: "weight", Elem: store.F32})
	require.NoError(t, err)
	for v, list := range w.buys {
		require.NoError(t, g.Append(list, le(t, w.ids[v]), le(t, w.weights[v])))
	}
	require.NoError(t, g.Close())
	g, err = s.AddRelation("user", "knows", "user", false, store.ColumnSpec{Name: "time", Elem: store.I64})
	require.NoError(t, err)
	for v, list := range w.knows {
		require.NoError(t, g.Append(list, le(t, w.times[v])))
	}
	require.NoError(t, g.Close())
	f, err := s.AddTable("feat", "user", store.F16, int64(len(w.users)), 2)
	require.NoError(t, err)
	for v := range w.users {
		row := []uint16{float16.Fromfloat32(w.feat[2*v]).Bits(), float16.Fromfloat32(w.feat[2*v+1]).Bits()}
		require.NoError(t, f.Put(store.NodeID(v), le(t, row)))
	}
	require.NoError(t, f.Close())
	f, err = s.AddEdgeTable("price", "user__buys__item", store.F32, int64(len(w.price)/2), 2)
	require.NoError(t, err)
	for i := range len(w.price) / 2 {
		require.NoError(t, f.Put(store.NodeID(i), le(t, w.price[2*i:2*i+2])))
	}
	require.NoError(t, f.Close())
	require.NoError(t, s.AddLabels("label", "user", w.class, 4, []string{"a", "b", "c", "d"}))
	require.NoError(t, s.AddMultiLabels("tags", "item", w.bits, 3, nil))
	require.NoError(t, s.AddSplit("given", "user", w.train, w.valid, nil))
	_, err = s.Seal(store.Manifest{Name: "world", Order: "original"})
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	return d
}

// edge is one of the world's by original ids.
type edge struct {
	src, dst int64
	weight   float32
	time     int64
	price    [2]float32
}

func (w *world) edges() (buys, knows []edge) {
	for v, list := range w.buys {
		for k, u := range list {
			id := w.ids[v][k]
			buys = append(buys, edge{src: w.users[u], dst: w.items[v], weight: w.weights[v][k], price: [2]float32{w.price[2*id], w.price[2*id+1]}})
		}
	}
	for v, list := range w.knows {
		for k, u := range list {
			knows = append(knows, edge{src: w.users[u], dst: w.users[v], time: w.times[v][k]})
		}
	}
	return sorted(buys), sorted(knows)
}

func sorted(list []edge) []edge {
	slices.SortFunc(list, func(a, b edge) int { return cmp.Or(cmp.Compare(a.src, b.src), cmp.Compare(a.dst, b.dst)) })
	return list
}

func tempDir(t *rapid.T) string {
	dir, err := os.MkdirTemp("", "export")
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

// numbers reads an npy file.
func numbers(t require.TestingT, path string) (values []float64, shape []int64) {
	b, err := os.ReadFile(path)
	require.NoError(t, err)
	r, err := npy.NewReader(bytes.NewReader(b))
	require.NoError(t, err)
	h := r.Header()
	values = make([]float64, h.Len())
	n, err := r.ReadFloat64s(values)
	if len(values) > 0 {
		require.NoError(t, err)
	}
	require.Len(t, values, n)
	return values, h.Shape
}

func ints(t require.TestingT, path string) []int64 {
	values, _ := numbers(t, path)
	all := make([]int64, len(values))
	for i, v := range values {
		all[i] = int64(v)
	}
	return all
}

// original are the original ids of rows.
func original(t require.TestingT, dir, typ string, n int) []int64 {
	if _, err := os.Stat(filepath.Join(dir, typ, "ids.npy")); err == nil {
		return ints(t, filepath.Join(dir, typ, "ids.npy"))
	}
	all := make([]int64, n)
	for i := range all {
		all[i] = int64(i)
	}
	return all
}

// TestFormats exports datasets in all formats, and holds what each holds against what the dataset
// was made of.
func TestFormats(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		gaps := rapid.Bool().Draw(t, "gaps")
		w := drawWorld(t, gaps)
		dir := tempDir(t)
		d := w.write(t, filepath.Join(dir, "w.gnn"))
		defer d.Close()
		w.checkNPY(t, d, filepath.Join(dir, "npy"), gaps)
		w.checkGraphBolt(t, d, filepath.Join(dir, "graphbolt"))
		w.checkParquet(t, d, filepath.Join(dir, "parquet"))
	})
}

func (w *world) checkNPY(t *rapid.T, d *store.Dataset, out string, gaps bool) {
	rep, err := Export(context.Background(), d, out, Options{FS: storetest.NoSync})
	require.NoError(t, err)
	require.NoFileExists(t, out+".partial")
	users, items := original(t, out, "user", len(w.users)), original(t, out, "item", len(w.items))
	require.True(t, slices.IsSorted(users))
	if !gaps {
		require.Equal(t, "rows", rep.NodeTypes[0].IDs)
		require.NoFileExists(t, filepath.Join(out, "user/ids.npy"))
	}
	require.ElementsMatch(t, w.users, users)
	feat, shape := numbers(t, filepath.Join(out, "user/feat.npy"))
	require.Equal(t, []int64{int64(len(w.users)), 2}, shape)
	class := ints(t, filepath.Join(out, "user/label.npy"))
	tags := ints(t, filepath.Join(out, "item/tags.npy"))
	for row, id := range users {
		v := slices.Index(w.users, id)
		require.Equal(t, []float64{float64(w.feat[2*v]), float64(w.feat[2*v+1])}, feat[2*row:2*row+2])
		require.EqualValues(t, w.class[v], class[row])
	}
	for row, id := range items {
		for c := range 3 {
			require.EqualValues(t, int8(w.bits[3*slices.Index(w.items, id)+c]), tags[3*row+c])
		}
	}
	for name, part := range map[string][]store.NodeID{"train": w.train, "valid": w.valid, "test": nil} {
		got := []int64{}
		for _, row := range ints(t, filepath.Join(out, "split/given-"+name+".npy")) {
			got = append(got, users[row])
		}
		want := []int64{}
		for _, v := range part {
			want = append(want, w.users[v])
		}
		require.Equal(t, want, got)
	}
	wantBuys, wantKnows := w.edges()
	read := func(key string, from, to []int64) (list []edge) {
		pairs := ints(t, filepath.Join(out, key, "edge_index.npy"))
		n := len(pairs) / 2
		for i := range n {
			list = append(list, edge{src: from[pairs[i]], dst: to[pairs[n+i]]})
		}
		if key == "user__buys__item" {
			weights, _ := numbers(t, filepath.Join(out, key, "weight.npy"))
			prices, shape := numbers(t, filepath.Join(out, key, "price.npy"))
			require.Equal(t, []int64{int64(n), 2}, shape)
			for i := range list {
				list[i].weight, list[i].price = float32(weights[i]), [2]float32{float32(prices[2*i]), float32(prices[2*i+1])}
			}
		} else {
			for i, x := range ints(t, filepath.Join(out, key, "time.npy")) {
				list[i].time = x
			}
		}
		return sorted(list)
	}
	require.Equal(t, wantBuys, read("user__buys__item", users, items))
	require.Equal(t, wantKnows, read("user__knows__user", users, users))
	files := 0
	require.NoError(t, filepath.Walk(out, func(_ string, info os.FileInfo, err error) error {
		if err == nil && !info.IsDir() {
			files++
		}
		return err
	}))
	require.Equal(t, files, rep.Files)
	var m manifest
	b, err := os.ReadFile(filepath.Join(out, "manifest.json"))
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(b, &m))
	require.Equal(t, d.Manifest().Seal, m.Seal)
	require.Equal(t, "user/feat.npy", m.NodeTypes[0].Tables["feat"])
}

// checkGraphBolt reads back by the reader of GraphBolt's datasets.
func (w *world) checkGraphBolt(t *rapid.T, d *store.Dataset, out string) {
	ctx := context.Background()
	_, err := Export(ctx, d, out, Options{Format: GraphBolt, FS: storetest.NoSync})
	require.NoError(t, err)
	users, items := original(t, out, "user", len(w.users)), original(t, out, "item", len(w.items))
	s, err := graphbolt.Open(out, 0)
	require.NoError(t, err)
	defer s.Close()
	g := sourcetest.Collect(t, s)
	require.Equal(t, "world", g.Schema.Name)
	require.Equal(t, []ingest.NodeType{{Name: "user", Count: int64(len(w.users))}, {Name: "item", Count: int64(len(w.items))}}, g.Schema.NodeTypes)
	require.Equal(t, []ingest.Label{{Name: "label", NodeType: "user", Classes: 4}}, g.Schema.Labels)
	wantBuys, wantKnows := w.edges()
	for i, want := range [][]edge{wantBuys, wantKnows} {
		var got []edge
		to := [][]int64{items, users}[i]
		for k, ends := range g.Edges[i].Pairs() {
			e := edge{src: users[ends[0]], dst: to[ends[1]]}
			if i == 0 {
				price := g.Table("user__buys__item/price")
				e.weight, e.price = g.Table("user__buys__item/weight")[k], [2]float32{price[2*k], price[2*k+1]}
			} else {
				e.time = want[0].time // rounded to 32 bits in a table; compared below
			}
			got = append(got, e)
		}
		got = sorted(got)
		if i == 1 {
			for k := range got {
				got[k].time = want[k].time
			}
		}
		require.Equal(t, want, got)
	}
	for row, id := range users {
		v := slices.Index(w.users, id)
		require.Equal(t, w.feat[2*v:2*v+2], g.Table("user/feat")[2*row:2*row+2])
	}
	class := g.Labels[0]
	for row, id := range users {
		v := store.NodeID(slices.Index(w.users, id))
		want := int32(-1)
		if slices.Contains(w.train, v) || slices.Contains(w.valid, v) {
			want = w.class[v]
		}
		require.Equal(t, want, class[row])
	}
}

func (w *world) checkParquet(t *rapid.T, d *store.Dataset, out string) {
	_, err := Export(context.Background(), d, out, Options{Format: Parquet, FS: storetest.NoSync})
	require.NoError(t, err)
	type user struct {
		ID    int64     `parquet:"id"`
		Feat  []float32 `parquet:"feat,list"`
		Label *int32    `parquet:"label,optional"`
		Given *string   `parquet:"given,optional"`
	}
	users, err := parquet.ReadFile[user](filepath.Join(out, "nodes-user.parquet"))
	require.NoError(t, err)
	require.Len(t, users, len(w.users))
	for _, u := range users {
		v := slices.Index(w.users, u.ID)
		require.Equal(t, w.feat[2*v:2*v+2], u.Feat)
		if w.class[v] < 0 {
			require.Nil(t, u.Label)
		} else {
			require.Equal(t, w.class[v], *u.Label)
		}
		switch {
		case slices.Contains(w.train, store.NodeID(v)):
			require.Equal(t, "train", *u.Given)
		case slices.Contains(w.valid, store.NodeID(v)):
			require.Equal(t, "valid", *u.Given)
		default:
			require.Nil(t, u.Given)
		}
	}
	type item struct {
		ID   int64  `parquet:"id"`
		Tags []int8 `parquet:"tags,list"`
	}
	items, err := parquet.ReadFile[item](filepath.Join(out, "nodes-item.parquet"))
	require.NoError(t, err)
	for _, it := range items {
		v := slices.Index(w.items, it.ID)
		for c, x := range w.bits[3*v : 3*v+3] {
			require.Equal(t, int8(x), it.Tags[c])
		}
	}
	type row struct {
		Src    int64     `parquet:"src"`
		Dst    int64     `parquet:"dst"`
		Weight float32   `parquet:"weight"`
		Price  []float32 `parquet:"price,list"`
	}
	var got []edge
	buys, err := parquet.ReadFile[row](filepath.Join(out, "edges-user__buys__item.parquet"))
	require.NoError(t, err)
	for _, r := range buys {
		got = append(got, edge{src: r.Src, dst: r.Dst, weight: r.Weight, price: [2]float32(r.Price)})
	}
	wantBuys, _ := w.edges()
	require.Equal(t, wantBuys, sorted(got))
}

// ring is a graph of communities of ten, each a ring with chords, and few edges between them.
func ring(t testing.TB, nodes int) *store.Dataset {
	path := filepath.Join(t.TempDir(), "ring.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	ids, class := make([]int64, nodes), make([]int32, nodes)
	for v := range ids {
		ids[v], class[v] = int64(v), int32(v/10%2)
	}
	require.NoError(t, w.AddNodeType("node", ids))
	g, err := w.AddRelation("node", "to", "node", false)
	require.NoError(t, err)
	for v := range nodes {
		list := []store.NodeID{store.NodeID((v + 10) % nodes)}
		for i := range 10 {
			if u := v/10*10 + i; u != v && u < nodes {
				list = append(list, store.NodeID(u))
			}
		}
		slices.Sort(list)
		require.NoError(t, g.Append(list))
	}
	require.NoError(t, g.Close())
	f, err := w.AddTable("feat", "node", store.F32, int64(nodes), 3)
	require.NoError(t, err)
	for v := range nodes {
		require.NoError(t, f.Put(store.NodeID(v), le(t, []float32{float32(v), 1, 2})))
	}
	require.NoError(t, f.Close())
	require.NoError(t, w.AddLabels("label", "node", class, 2, []string{"10", "2000"}))
	require.NoError(t, w.AddSplit("given", "node", []store.NodeID{3, 13, store.NodeID(nodes / 4)}, []store.NodeID{4}, []store.NodeID{5}))
	_, err = w.Seal(store.Manifest{Name: "ring", Order: "original"})
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

// TestSample: a sample has its number of nodes, all edges between them, the training nodes, and is
// the seed's.
func TestSample(t *testing.T) {
	d := ring(t, 2000)
	read := func(o Options) (ids []int64, pairs []int64, rep *Report) {
		out := filepath.Join(t.TempDir(), "out")
		rep, err := Export(context.Background(), d, out, o)
		require.NoError(t, err)
		return ints(t, filepath.Join(out, "node/ids.npy")), ints(t, filepath.Join(out, "node__to__node/edge_index.npy")), rep
	}
	ids, pairs, rep := read(Options{Sample: 300, Seed: 7})
	require.Len(t, ids, 300)
	require.EqualValues(t, 300, rep.NodeTypes[0].Count)
	require.EqualValues(t, len(pairs)/2, rep.Relations[0].Edges)
	for _, train := range []int64{3, 13, 500} {
		require.Contains(t, ids, train)
	}
	in := map[int64]bool{}
	for _, id := range ids {
		in[id] = true
	}
	want := 0
	g := d.Graph(0)
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(store.NodeID(v)) {
			if in[int64(v)] && in[int64(u)] {
				want++
			}
		}
	}
	require.Equal(t, want, len(pairs)/2)
	// At random, 300 of 2000 nodes would keep (300/2000)² of the edges; a fire keeps
	// neighbourhoods.
	require.Greater(t, want, 4*20000*300/2000*300/2000)
	again, pairs2, _ := read(Options{Sample: 300, Seed: 7})
	require.Equal(t, ids, again)
	require.Equal(t, pairs, pairs2)
	other, _, _ := read(Options{Sample: 300, Seed: 8})
	require.NotEqual(t, ids, other)
	almost, _, _ := read(Options{Sample: 1999})
	require.Len(t, almost, 1999)

	out := filepath.Join(t.TempDir(), "out")
	rep, err := Export(context.Background(), d, out, Options{Sample: 5000})
	require.NoError(t, err)
	require.EqualValues(t, 2000, rep.NodeTypes[0].Count)
	require.Equal(t, "rows", rep.NodeTypes[0].IDs)
}

// TestRoundTrip: a dataset that is exported and ingested again has the same counts and features.
func TestRoundTrip(t *testing.T) {
	d := ring(t, 2000)
	out := filepath.Join(t.TempDir(), "a pt folder")
	_, err := Export(context.Background(), d, out, Options{Format: GraphBolt})
	require.NoError(t, err)
	s, err := graphbolt.Open(out, 0)
	require.NoError(t, err)
	defer s.Close()
	back := filepath.Join(t.TempDir(), "back.gnn")
	rep, err := build.Build(context.Background(), s, back, build.Options{Order: build.OrderOriginal, DType: build.F32})
	require.NoError(t, err)
	require.EqualValues(t, d.Graph(0).Edges(), rep.Relations[0].Edges)
	require.Equal(t, [3]int{3, 1, 1}, [3]int{rep.Splits[0].Train, rep.Splits[0].Valid, rep.Splits[0].Test})
	b, err := store.Open(back)
	require.NoError(t, err)
	defer b.Close()
	for v := range uint32(2000) {
		require.Equal(t, d.Graph(0).Neighbors(v), b.Graph(0).Neighbors(v))
		require.Equal(t, d.Features(0).Row(v), b.Features(0).Row(v))
	}
	require.Equal(t, d.Manifest().Relations[0].Neighbors.XXH3, b.Manifest().Relations[0].Neighbors.XXH3)
}

// TestClassNames: what the source calls its classes comes along, in every format.
func TestClassNames(t *testing.T) {
	d := ring(t, 600)
	for format, name := range map[Format]string{NPY: "manifest.json", Parquet: "manifest.json", GraphBolt: "metadata.yaml"} {
		out := filepath.Join(t.TempDir(), "out")
		_, err := Export(context.Background(), d, out, Options{Format: format})
		require.NoError(t, err)
		text, err := os.ReadFile(filepath.Join(out, name))
		require.NoError(t, err)
		require.Regexp(t, `"?class_names"?:\s*(\[|-)\s*['"]10['"],?\s*-?\s*['"]2000['"]\s`, string(text), format)
	}
}

// TestDamage: a dataset with a flipped bit, or with contents that no verify lets pass, is not
// exported; of a sample, only the feature rows that it has are looked at.
func TestDamage(t *testing.T) {
	for _, f := range []Format{NPY, Parquet, GraphBolt} {
		for _, section := range []string{
			"ids/node/original.i64", "topo/node__to__node/offsets.u64", "topo/node__to__node/neighbors.u32", "feat/node/feat-00000.f32",
			"label/node/label.i32", "split/given/valid.u32",
		} {
			for _, sample := range []int64{0, 1900} {
				d := ring(t, 2000)
				file, err := os.OpenFile(filepath.Join(d.Path(), section), os.O_WRONLY, 0)
				require.NoError(t, err)
				_, err = file.WriteAt([]byte{77}, store.PageSize+7)
				require.NoError(t, errors.Join(err, file.Close()))
				dir := t.TempDir()
				_, err = Export(context.Background(), d, filepath.Join(dir, "out"), Options{Format: f, Sample: sample})
				require.ErrorIs(t, err, store.ErrCorrupt)
				require.ErrorContains(t, err, section+" at 0x1000: the checksum of this page is ")
				left, err := os.ReadDir(dir)
				require.NoError(t, err)
				require.Empty(t, left)
			}
		}
	}
	path := storetest.Build(t, storetest.Spec{Nodes: 50, Neighbors: [][]store.NodeID{{1}, {99}}})
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()
	_, err = Export(context.Background(), d, filepath.Join(t.TempDir(), "out"), Options{})
	require.ErrorContains(t, err, "neighbors.u32: node 1 has neighbour 99, and there are 50 nodes")
}

func TestRefusals(t *testing.T) {
	d := ring(t, 100)
	dir := t.TempDir()
	out := filepath.Join(dir, "out")
	_, err := Export(context.Background(), d, out, Options{Format: "csv", Sample: -1})
	require.EqualError(t, err, "{format} \"csv\": choose npy, graphbolt or parquet\n{sample} -1: a number of nodes, or 0 for all")
	_, err = Export(context.Background(), d, filepath.Join(dir, "none/out"), Options{})
	require.ErrorContains(t, err, "none: no such directory; make it first")
	require.NoError(t, os.Mkdir(out, 0o777))
	_, err = Export(context.Background(), d, out, Options{})
	require.EqualError(t, err, out+": it exists already; choose another name")
	require.NoError(t, os.Remove(out))
	require.NoError(t, os.Mkdir(out+".partial", 0o777))
	_, err = Export(context.Background(), d, out, Options{})
	require.ErrorContains(t, err, "an export was interrupted, or another is writing it; remove it if no export runs")
	require.NoError(t, os.Remove(out+".partial"))

	// A cancelled export leaves nothing behind.
	for _, format := range []Format{NPY, GraphBolt, Parquet} {
		ctx, cancel := context.WithCancel(context.Background())
		stages := 0
		_, err = Export(ctx, d, out, Options{Format: format, Progress: func(ingest.Progress) {
			if stages++; stages == 1 {
				cancel()
			}
		}})
		require.ErrorIs(t, err, context.Canceled)
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	}
}

// TestFullDisk fails the n-th operation that may need space, for every n: nothing is left, and the
// error is one line.
func TestFullDisk(t *testing.T) {
	d := ring(t, 600)
	for _, format := range []Format{NPY, GraphBolt, Parquet} {
		for n := int32(0); ; n++ {
			dir := t.TempDir()
			inj := errorfs.OnIndex(n)
			fsys := errorfs.Wrap(storetest.NoSync, errorfs.InjectorFunc(func(op errorfs.Op) error {
				switch op.Kind {
				case errorfs.OpCreate, errorfs.OpMkdirAll, errorfs.OpFileWrite, errorfs.OpFileWriteAt, errorfs.OpFileSync, errorfs.OpRename:
					if inj.MaybeError(op) != nil {
						return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
					}
				}
				return nil
			}))
			out := filepath.Join(dir, "out")
			_, err := Export(context.Background(), d, out, Options{Format: format, FS: fsys})
			if err == nil {
				require.Greater(t, n, int32(8))
				break
			}
			require.ErrorIs(t, err, syscall.ENOSPC, "operation %d", n)
			require.NotContains(t, err.Error(), "\n")
			if entries, err := os.ReadDir(dir); assert.NoError(t, err) && len(entries) > 0 { // past the rename it is there, whole
				require.Equal(t, "out", entries[0].Name())
				require.FileExists(t, filepath.Join(out, "manifest.json"))
			}
		}
	}
}

// TestNames: nodes that are called by texts have these beside their rows.
func TestNames(t *testing.T) {
	names := []string{"ann, the first", "b\"ob", "dora\nlee", "çelik"} // as stored
	rows := []int64{2, 0, 3, 1}                                        // in the source
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	n, err := w.NewNodeType("person", 4)
	require.NoError(t, err)
	require.NoError(t, n.AppendOriginal(rows))
	require.NoError(t, n.AppendOrder([]store.NodeID{1, 3, 0, 2}))
	for v, name := range names {
		require.NoError(t, n.AppendText([]byte(name)))
		require.NoError(t, n.AppendName([]byte(name), store.NodeID(v))) // which ascend
	}
	require.NoError(t, n.Close())
	g, err := w.AddRelation("person", "knows", "person", false)
	require.NoError(t, err)
	for v := range 4 {
		require.NoError(t, g.Append([]store.NodeID{store.NodeID(v+1) % 4}))
	}
	require.NoError(t, g.Close())
	_, err = w.Seal(store.Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	d, err := store.Open(path)
	require.NoError(t, err)
	defer d.Close()

	out := filepath.Join(t.TempDir(), "npy")
	rep, err := Export(context.Background(), d, out, Options{})
	require.NoError(t, err)
	require.Equal(t, "rows", rep.NodeTypes[0].IDs)
	f, err := os.Open(filepath.Join(out, "person/names.csv"))
	require.NoError(t, err)
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	require.NoError(t, err)
	want := [][]string{{"row", "id"}}
	for v, name := range names {
		want = append(want, []string{fmt.Sprint(rows[v]), name})
	}
	require.Equal(t, want, lines)
	require.Equal(t, []int64{0, 3, 1, 2, 2, 0, 3, 1}, ints(t, filepath.Join(out, "person__knows__person/edge_index.npy")))

	out = filepath.Join(t.TempDir(), "parquet")
	_, err = Export(context.Background(), d, out, Options{Format: Parquet})
	require.NoError(t, err)
	type row struct {
		ID   int64  `parquet:"id"`
		Name string `parquet:"name"`
	}
	table, err := parquet.ReadFile[row](filepath.Join(out, "names-person.parquet"))
	require.NoError(t, err)
	for v, r := range table {
		require.Equal(t, row{rows[v], names[v]}, r)
	}
}

// TestDamaged: a dataset whose file was cut while it is open is an error that names the file.
func TestDamaged(t *testing.T) {
	d := ring(t, 5000)
	require.NoError(t, os.Truncate(filepath.Join(d.Path(), "feat/node/feat-00000.f32"), 4096))
	out := filepath.Join(t.TempDir(), "out")
	_, err := Export(context.Background(), d, out, Options{})
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "feat/node/feat-00000.f32")
	require.NoFileExists(t, out+".partial")
}

func BenchmarkExport(b *testing.B) {
	d := ring(b, 1<<20)
	for _, format := range []Format{NPY, GraphBolt, Parquet} {
		b.Run("format="+string(format), func(b *testing.B) {
			edges := int64(0)
			for i := 0; b.Loop(); i++ {
				out := filepath.Join(b.TempDir(), fmt.Sprint("out", i))
				rep, err := Export(context.Background(), d, out, Options{Format: format})
				require.NoError(b, err)
				b.SetBytes(rep.Bytes)
				edges += rep.Relations[0].Edges
				require.NoError(b, os.RemoveAll(out))
			}
			b.ReportMetric(float64(edges)/b.Elapsed().Seconds(), "edges/s")
		})
	}
}
