package infer

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// network is an Evaluator of a network on a dataset, with all that it stands on.
func network(t testing.TB, path string, c model.Config, o Options) *Evaluator {
	ds, err := store.Open(path)
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	inputs := map[string]string{}
	for _, n := range ds.Manifest().NodeTypes {
		if !slices.ContainsFunc(ds.Manifest().Tables, func(table store.Table) bool { return table.NodeType == n.Name }) {
			inputs[n.Name] = data.Constant // learnt rows of their own need a run
		}
	}
	columns := map[string][]string{}
	for _, r := range ds.Manifest().Relations {
		for _, col := range r.Columns {
			switch {
			case !c.Kind.ReadsEdges():
			case col.Name == store.EdgeID:
				columns[r.Key()] = []string{data.Table}
			case col.Name != "weight":
				columns[r.Key()] = append(columns[r.Key()], col.Name)
			}
		}
	}
	d, err := data.Open(ds, data.Options{Hidden: c.Hidden, Inputs: inputs, Weighted: o.Draws.Weighted, EdgeInputs: columns})
	require.NoError(t, err)
	shape := model.Shape{Out: d.Labels.Classes(), Target: d.Target}
	schema := d.Schema()
	for i := range d.Types {
		shape.In, shape.Types = append(shape.In, d.Types[i].Dim()), append(shape.Types, d.Types[i].Name)
	}
	for i, r := range d.Relations {
		name := strings.Join([]string{r.Relation.Src, r.Relation.Name, r.Relation.Dst}, "___")
		shape.Relations = append(shape.Relations, model.Relation{Name: name, Relation: schema.Relations[i]})
		shape.Edges = append(shape.Edges, d.EdgeDim(i))
	}
	o.Draws = sample.Config{Fanouts: slices.Repeat([]int{c.Kind.All()}, c.Layers), Weighted: o.Draws.Weighted}
	if c.Layers == 0 {
		o.Draws.Fanouts, shape.Out = []int{0}, d.Types[d.Target].Dim()
	}
	shape.Reach = o.Draws.Reach(schema, d.Target)
	o.Draws.Options = c.Blocks(shape)
	be := kernels.NewCPU(kernels.CPUOptions{})
	s := step.New(be, model.New(be, c, shape, 1), nil, optim.Options{})
	t.Cleanup(s.Close)
	if c.LabelInput > 0 {
		shown, err := d.Shown()
		require.NoError(t, err)
		s.Shown = shown
	}
	tables := make([]*cachetier.Stack, len(d.Types))
	for i := range d.Types {
		if d.Types[i].Features != nil && d.Types[i].Nodes > 0 {
			tables[i], err = cachetier.Open(t.Context(), d.Types[i].Features, cachetier.Options{Engine: disk.Mmap})
			require.NoError(t, err)
			t.Cleanup(func() { tables[i].Close() })
		}
	}
	e := New(d, s, nil, o)
	e.Attach(tables, nil)
	return e
}

// rows returns what Each gives of a layer.
func rows(ctx context.Context, e *Evaluator, layer int, nodes []uint32) (ids []uint32, values []float32, err error) {
	err = e.Each(ctx, layer, nodes, func(chunk []uint32, y kernels.Tensor) error {
		ids, values = append(ids, chunk...), append(values, e.step.Feed.Download(y)...)
		return nil
	})
	return ids, values, err
}

// randomGraph has several types and relations, some without rows or edges, or of one type for
// networks that know no more.
func randomGraph(t *rapid.T, typed bool) storetest.TypedSpec {
	types, relations := 1, 1
	if typed {
		types, relations = rapid.IntRange(1, 3).Draw(t, "types"), rapid.IntRange(1, 5).Draw(t, "relations")
	}
	s := storetest.TypedSpec{Target: "t0", Classes: 3, Class: func(v int) int32 { return int32(v % 3) }}
	for n := range types {
		s.Types = append(s.Types, storetest.TypedNodes{
			Name: fmt.Sprintf("t%d", n), Nodes: rapid.IntRange(6, 90).Draw(t, "nodes"), Dim: 6,
			Row: func(v int) []float32 {
				row := make([]float32, 6)
				for c := range row {
					row[c] = float32(math.Sin(float64(1 + v*(c+2) + n)))
				}
				return row
			},
		})
		if n > 0 && rapid.Bool().Draw(t, "no rows") {
			s.Types[n].Dim = 0
		}
	}
	for r := range relations {
		src, dst := rapid.IntRange(0, types-1).Draw(t, "src"), rapid.IntRange(0, types-1).Draw(t, "dst")
		rel := storetest.TypedRelation{Src: s.Types[src].Name, Name: fmt.Sprintf("r%d", r), Dst: s.Types[dst].Name}
		most := rapid.SampledFrom([]int{0, 1, 5, 40}).Draw(t, "degree")
		for range s.Types[dst].Nodes {
			var list []store.NodeID
			for range rapid.IntRange(0, most).Draw(t, "list") {
				list = append(list, store.NodeID(rapid.IntRange(0, s.Types[src].Nodes-1).Draw(t, "u")))
			}
			rel.Neighbors = append(rel.Neighbors, list)
		}
		if rapid.Bool().Draw(t, "rows of edges") {
			withEdgeRows(&rel)
		}
		s.Relations = append(s.Relations, rel)
	}
	for v := range s.Types[0].Nodes {
		parts := []*[]store.NodeID{&s.Train, &s.Valid, &s.Test}
		*parts[v%3] = append(*parts[v%3], store.NodeID(v))
	}
	return s
}

// edgeRowBytes is the bytes of a row of withEdgeRows, with its numbers in float32.
const edgeRowBytes = 3*2 + 3*4

// withEdgeRows gives the edges of r a table. Some edges share a row.
func withEdgeRows(r *storetest.TypedRelation) {
	edges := 0
	for _, list := range r.Neighbors {
		edges += len(list)
	}
	r.Columns = []storetest.Column{{Name: store.EdgeID, Elem: store.U32, Value: func(v, i int) float64 { return float64((v*7 + i*i) % max(edges, 1)) }}}
	r.EdgeTable = &storetest.EdgeTable{Rows: edges, Dim: 3, Elem: store.F16, Row: func(i int) []float32 {
		return []float32{float32(i%7) / 4, float32(math.Sin(float64(i))), 1}
	}}
}

func writeTyped(t *rapid.T, dir string, s storetest.TypedSpec) string {
	path := filepath.Join(dir, "graph.gnn")
	require.NoError(t, os.RemoveAll(path))
	w, err := store.Create(path, store.WriterOptions{FS: storetest.NoSync})
	require.NoError(t, err)
	require.NoError(t, storetest.WriteTyped(w, s))
	return path
}

// TestOnDiskAsInMemory: rows of any layer of any network are the same, bit for bit, under any
// budget and with chunks of any size. A network without layers returns the rows of the dataset.
func TestOnDiskAsInMemory(t *testing.T) {
	graph, dir := t.TempDir(), filepath.Join(t.TempDir(), "layers")
	rapid.Check(t, func(rt *rapid.T) {
		c := model.Config{Kind: rapid.SampledFrom(model.Kinds).Draw(rt, "kind"), Layers: 3, Hidden: 8, Norm: "layer", Heads: 2}
		layer := rapid.IntRange(1, 2).Draw(rt, "layer")
		if rapid.IntRange(1, 8).Draw(rt, "no layers") == 1 {
			c.Layers, layer = 0, 0
		}
		path := writeTyped(rt, graph, randomGraph(rt, c.Kind.Typed()))
		e := network(t, path, c, Options{Bytes: 1 << 30, FS: storetest.NoSync})
		var nodes []uint32
		for v := range uint32(e.data.Types[0].Nodes) {
			if v == 0 || rapid.Bool().Draw(rt, "node") {
				nodes = append(nodes, v)
			}
		}
		wantIDs, want, err := rows(t.Context(), e, layer, nodes)
		require.NoError(rt, err)
		require.Equal(rt, nodes, wantIDs)

		e.Dir, e.Bytes = dir, int64(rapid.SampledFrom([]int{0, 1, 100, 500, 2000, 10_000}).Draw(rt, "bytes"))
		e.most = bounds{rapid.IntRange(1, 2000).Draw(rt, "chunk"), rapid.IntRange(1, 300).Draw(rt, "edges"), 1 << 20, rapid.IntRange(0, 60).Draw(rt, "hub"), rapid.IntRange(1, 30).Draw(rt, "part")}
		e.Hold = rapid.SampledFrom([]Hold{HoldAuto, HoldRows, HoldSums}).Draw(rt, "hold")
		if rapid.Bool().Draw(rt, "tables of its own") {
			e.Attach(make([]*cachetier.Stack, len(e.data.Types)), nil)
		}
		e.Tables = cachetier.Options{Engine: rapid.SampledFrom(disk.Kinds).Draw(rt, "engine"), Readers: 3}
		last := Progress{}
		e.Progress = func(p Progress) {
			require.LessOrEqual(rt, last.Layer, p.Layer)
			require.LessOrEqual(rt, p.Done, p.Nodes)
			last = p
		}
		ids, got, err := rows(t.Context(), e, layer, nodes)
		require.NoError(rt, err)
		require.Equal(rt, wantIDs, ids)
		require.Equal(rt, asBits(want), asBits(got))
		require.Equal(rt, Progress{Layer: layer + 1, Layers: layer + 1, Type: "t0", Done: len(nodes), Nodes: len(nodes)}, last)
		require.NoDirExists(rt, dir)
	})
}

func asBits(v []float32) []uint32 {
	b := make([]uint32, len(v))
	for i, x := range v {
		b[i] = math.Float32bits(x)
	}
	return b
}

// library is an Evaluator whose passes over all papers go to disk.
func library(t testing.TB, kind model.Kind, o Options) (e *Evaluator, papers []uint32) {
	c := model.Config{Kind: kind, Layers: 3, Hidden: 16, Norm: "layer", Heads: 2}
	e = network(t, storetest.BuildTyped(t, storetest.Library(400, 3, 1)), c, o)
	e.most, e.Hold = bounds{4096, 500, 1 << 20, 500, 100}, HoldRows
	for v := range uint32(e.data.Types[e.data.Target].Nodes) {
		papers = append(papers, v)
	}
	return e, papers
}

// TestHalfTheBytes: rows in float16 take half of the space, and are rounded.
func TestHalfTheBytes(t *testing.T) {
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		e, papers := library(t, kind, Options{Bytes: 1 << 30})
		_, want, err := rows(t.Context(), e, 2, papers)
		require.NoError(t, err)
		e.Dir, e.Bytes, e.LayerDtype = filepath.Join(t.TempDir(), "layers"), 4000, store.F16
		_, got, err := rows(t.Context(), e, 2, papers)
		require.NoError(t, err)
		require.InDeltaSlice(t, want, got, 0.02, kind)
		require.NotEqual(t, want, got, kind)
	}
}

// TestHalvesByBothWays: rows from tables in float16, features and hidden ones, make the same bits
// whether rows or sums are held, in whatever memory.
func TestHalvesByBothWays(t *testing.T) {
	for _, kind := range []model.Kind{model.SAGE, model.GCN} {
		const nodes = 600
		path := storetest.Build(t, storetest.Communities(nodes, 4, 19, 9, 1))
		e := network(t, path, model.Config{Kind: kind, Layers: 3, Hidden: 21, Norm: "layer"}, Options{Dir: filepath.Join(t.TempDir(), "layers"), LayerDtype: store.F16})
		e.Attach(make([]*cachetier.Stack, len(e.data.Types)), nil) // so that features are read like hidden rows
		e.most.edges = 700
		require.Equal(t, kernels.F16, e.data.Types[0].DType())
		var all []uint32
		for v := range uint32(nodes) {
			all = append(all, v)
		}
		var want []float32
		for _, hold := range []Hold{HoldRows, HoldSums} {
			for _, bytes := range []int64{0, 3000, 30_000} {
				e.Hold, e.Bytes = hold, bytes
				_, got, err := rows(t.Context(), e, 2, all)
				require.NoError(t, err)
				if want == nil {
					want = got
				}
				require.Equal(t, asBits(want), asBits(got), "%s, %s in %d bytes", kind, hold, bytes)
			}
		}
	}
}

// noRoom is a file system with little space left.
type noRoom struct {
	vfs.FS
	bytes uint64
}

func (n noRoom) GetDiskUsage(string) (vfs.DiskUsage, error) {
	return vfs.DiskUsage{AvailBytes: n.bytes}, nil
}

// TestNoRoom: what does not fit on disk is refused before anything is computed.
func TestNoRoom(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, FS: noRoom{vfs.Default, 1000}})
	_, got, err := rows(t.Context(), e, 2, papers)
	require.ErrorContains(t, err, "the rows of two layers take ")
	require.ErrorContains(t, err, "and it has 1000 B; make room there, or name another place")
	require.NotContains(t, err.Error(), "{layer_dtype}", "of no use here")
	require.Empty(t, got)
	require.NoDirExists(t, dir)

	// Half the space is enough, but not beside what others write.
	took := int64(0)
	e.FS, e.Space = storetest.NoSync, func(bytes, _ int64) { took = bytes }
	_, _, err = rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	e.Space = nil
	e.FS = noRoom{vfs.Default, uint64(took - 1)}
	_, _, err = rows(t.Context(), e, 2, papers)
	require.ErrorContains(t, err, "or name another place; {layer_dtype} f16 takes half")
	e.LayerDtype = store.F16
	_, _, err = rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	e.SpaceBeside = took
	_, _, err = rows(t.Context(), e, 2, papers)
	require.ErrorContains(t, err, " of results, and it has ")
	require.NotContains(t, err.Error(), "{layer_dtype}")

	// Rows that are kept in a file are written meanwhile, too.
	e.SpaceBeside, e.LayerDtype = 0, 0
	bytes := 4 * int64(len(papers)*e.step.Model.Width(2))
	for _, short := range []int64{0, 1} {
		e.FS = noRoom{storetest.NoSync, uint64(took + bytes - short)}
		k, err := e.Keep(t.Context(), 2, e.data.Target, papers, 0)
		if short == 0 {
			require.NoError(t, err)
			k.Close()
			continue
		}
		require.ErrorContains(t, err, " of results, and it has ")
		require.Zero(t, e.SpaceBeside)
	}
}

// TestPlanAndReports: a pass does what was planned, layer by layer and type by type, and reads
// about as much as was planned.
func TestPlanAndReports(t *testing.T) {
	for _, hold := range []Hold{HoldAuto, HoldRows, HoldSums} {
		for _, bytes := range []int64{0, 20_000, 1 << 30} {
			e, papers := library(t, model.RSAGE, Options{Dir: filepath.Join(t.TempDir(), "layers"), FS: storetest.NoSync, Bytes: bytes})
			e.Hold = hold
			e.Attach(make([]*cachetier.Stack, len(e.data.Types)), nil)
			plan, err := e.Plan(2, e.data.Target, papers)
			require.NoError(t, err)
			var reports []Report
			e.Reported = func(r Report) { reports = append(reports, r) }
			_, _, err = rows(t.Context(), e, 2, papers)
			require.NoError(t, err)
			require.Len(t, reports, len(plan))
			read := int64(0)
			for i, r := range reports {
				p := plan[i]
				require.Equal(t, Report{
					Layer: p.Layer, Type: p.Type, Nodes: p.Nodes, Way: p.Way, Parts: r.Parts, BytesRead: r.BytesRead, BytesWritten: p.BytesWritten,
					Seconds: r.Seconds, ReadSeconds: r.ReadSeconds, ProcessorSeconds: r.ProcessorSeconds, PlannedParts: p.Parts, PlannedBytesRead: p.BytesRead, PlannedReadSeconds: p.Seconds,
				}, r)
				read += r.BytesRead
				require.GreaterOrEqual(t, r.Parts, 1)
				switch {
				case bytes == 1<<30 && r.Layer > 1:
					require.Equal(t, inMemory, r.Way)
					require.Zero(t, r.BytesRead)
				case hold != HoldAuto:
					require.Equal(t, string(hold), r.Way)
				}
				for _, rel := range p.Relations {
					require.Positive(t, rel.BytesRead)
				}
				require.Equal(t, bytes != 1<<30 && r.Layer < 3, r.BytesWritten > 0)
			}
			require.Equal(t, e.DiskRead().BytesRead, read)
			require.Positive(t, read)
		}
	}
	e, _ := library(t, model.HGT, Options{Bytes: 1 << 30})
	e.Hold = HoldSums
	require.ErrorContains(t, e.CheckHold(), "{way} sums: {model} hgt weighs its neighbours by their rows")
}

// TestFlippedBit: a row that the disk has changed is no input of anything.
func TestFlippedBit(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, Tables: cachetier.Options{Engine: disk.Buffered}})
	flipped := false
	e.Progress = func(p Progress) {
		if p.Layer == 2 && !flipped {
			flipped = true
			f, err := os.OpenFile(filepath.Join(dir, "layer-0", "feat", "paper", "rows-00000.f32"), os.O_RDWR, 0)
			require.NoError(t, err)
			defer f.Close()
			b := make([]byte, 1)
			for at := int64(4096); ; at += 512 {
				if _, err := f.ReadAt(b, at); err != nil || at >= 4096+400*64 {
					break
				}
				b[0] ^= 4
				_, err := f.WriteAt(b, at)
				require.NoError(t, err)
			}
		}
	}
	_, _, err := rows(t.Context(), e, 2, papers)
	require.ErrorIs(t, err, store.ErrCorrupt)
	require.ErrorContains(t, err, "feat/paper/rows-00000.f32")
}

// TestFullDisk: a write that fails, whichever, ends the pass with an error, and leaves what the
// next one starts from.
func TestFullDisk(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir})
	_, want, err := rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	for at := int32(0); ; at += 19 {
		var n atomic.Int32 // files are synced by several goroutines
		e.FS = errorfs.Wrap(storetest.NoSync, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && op.Kind != errorfs.OpRemove && op.Kind != errorfs.OpRemoveAll {
				if n.Add(1) == at+1 {
					return errorfs.ErrInjected
				}
			}
			return nil
		}))
		_, _, err := rows(t.Context(), e, 2, papers)
		e.FS = storetest.NoSync
		_, got, again := rows(t.Context(), e, 2, papers)
		require.NoError(t, again)
		require.Equal(t, want, got)
		require.NoDirExists(t, dir)
		if n.Load() <= at {
			require.NoError(t, err)
			return
		}
		require.ErrorIs(t, err, errorfs.ErrInjected, "write %d", at)
	}
}

// TestGoesOn: a pass that died at any point goes on behind the newest layer that was whole, if it
// is for the same, and comes to the same.
func TestGoesOn(t *testing.T) {
	storetest.Long(t)
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, Of: "a test"})
	from := 0
	e.Progress = func(p Progress) {
		if from == 0 {
			from = p.Layer
		}
	}
	_, want, err := rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	// dies has all that changes files fail from some point on, as after kill -9: nothing is tidied
	// up.
	dies := func(at int32) (ended bool) {
		var n atomic.Int32 // files are synced by several goroutines
		e.FS = errorfs.Wrap(storetest.NoSync, errorfs.InjectorFunc(func(op errorfs.Op) error {
			if op.Kind.ReadOrWrite() == errorfs.OpIsWrite && n.Add(1) > at {
				return errorfs.ErrInjected
			}
			return nil
		}))
		_, _, err := rows(t.Context(), e, 2, papers)
		e.FS = storetest.NoSync
		from = 0
		return err == nil
	}
	began := map[int]int32{} // at which layer a pass went on, and after how many writes at most
	at := int32(0)
	for ; !dies(at); at += 15 {
		_, got, err := rows(t.Context(), e, 2, papers)
		require.NoError(t, err)
		require.Equal(t, want, got, "died after %d writes", at)
		left, err := filepath.Glob(filepath.Join(dir, "*"))
		require.NoError(t, err)
		require.Empty(t, left)
		began[from] = at
	}
	require.Len(t, began, 3, "%v", began)
	require.Less(t, began[1], began[2])
	require.Less(t, began[2], began[3])

	// Within a layer it goes on behind the rows that were finished.
	e.shardBytes = 64 * 20 // rows
	inside, end := 0, at
	for at := began[1]; at < 2*end; at += max(13, end/12) {
		if dies(at) {
			break
		}
		first := Progress{}
		e.Progress = func(p Progress) {
			if first.Layer == 0 {
				first = p
			}
		}
		_, got, err := rows(t.Context(), e, 2, papers)
		require.NoError(t, err)
		require.Equal(t, want, got, "died after %d writes", at)
		if first.Layer < 3 && first.Done > 100 {
			inside++
		}
	}
	require.Greater(t, inside, 3)
	e.shardBytes = shardBytes
	e.Progress = func(p Progress) {
		if from == 0 {
			from = p.Layer
		}
	}

	last := began[2] // layer 1 is whole then
	for name, change := range map[string]func() (undo func()){
		"of":      func() func() { e.Of = "another"; return func() { e.Of = "a test" } },
		"dtype":   func() func() { e.LayerDtype = store.F16; return func() { e.LayerDtype = 0 } },
		"nodes":   func() func() { all := papers; papers = papers[1:]; return func() { papers = all } },
		"weights": func() func() { return func() {} },
		"torn": func() func() {
			require.NoError(t, os.Truncate(filepath.Join(dir, "layer-0", "feat", "paper", "rows-00000.f32"), 8192))
			return func() {}
		},
	} {
		require.False(t, dies(last))
		undo := change()
		if name == "weights" {
			w := e.step.Model.Download()
			w[0].Data[0]++
			e.step.Model.Upload(w)
		}
		_, _, err := rows(t.Context(), e, 2, papers)
		require.NoError(t, err)
		require.Equal(t, 1, from, name)
		undo()
	}
}

// TestLeft: a pass that was cut short says that rows are left where it has left some, and else
// leaves nothing.
func TestLeft(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, FS: storetest.NoSync, Of: "a test"})
	cutIn := func(layer int) (left bool) {
		ctx, stop := context.WithCancel(t.Context())
		e.Progress = func(p Progress) {
			if p.Layer == layer {
				stop()
			}
		}
		_, _, err := rows(ctx, e, 2, papers)
		require.ErrorIs(t, err, context.Canceled)
		if !e.Left() {
			require.NoDirExists(t, dir)
		}
		return e.Left()
	}
	require.False(t, cutIn(1))
	require.True(t, cutIn(2))
	require.True(t, cutIn(3))
	require.FileExists(t, filepath.Join(dir, "layer-1", "manifest.json"))

	other, _ := library(t, model.RSAGE, Options{Dir: dir, FS: noRoom{storetest.NoSync, 0}, Of: "another"})
	lock, _, err := e.lockDir()
	require.NoError(t, err)
	_, _, err = rows(t.Context(), other, 2, papers)
	require.ErrorContains(t, err, "somebody else keeps the rows of layers there")
	require.False(t, other.Left())
	require.NoError(t, lock.Release())
	_, _, err = rows(t.Context(), other, 2, papers)
	require.ErrorContains(t, err, "the rows of two layers take ")
	require.False(t, other.Left())

	// Within a layer, what the journal has.
	require.False(t, cutIn(1))
	e.shardBytes = 64 * 20 // rows
	require.True(t, cutIn(1))
	require.True(t, cutIn(1))
	require.FileExists(t, filepath.Join(dir, "layer-0.partial", "work", journalName))
	e.Progress = nil

	// Who needs no rows on disk any more has them removed, but for what is somebody's own, and not
	// while others are at work.
	lock, _, err = e.lockDir()
	require.NoError(t, err)
	require.NoError(t, e.Tidy())
	require.DirExists(t, filepath.Join(dir, "layer-0.partial"))
	require.NoError(t, lock.Release())
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mine"), nil, 0o666))
	require.NoError(t, e.Tidy())
	require.NoDirExists(t, filepath.Join(dir, "layer-0.partial"))
	require.FileExists(t, filepath.Join(dir, "mine"))
	require.NoFileExists(t, filepath.Join(dir, lockName))
	require.NoError(t, os.Remove(filepath.Join(dir, "mine")))
	require.NoError(t, e.Tidy())
	require.NoError(t, os.Remove(dir), "which nobody knows to be of passes any more")
	require.NoError(t, e.Tidy())
	require.True(t, cutIn(1))
	e.Progress = nil
	_, _, err = rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	require.False(t, e.Left())
	require.NoDirExists(t, dir)
}

// TestTwoInOnePlace: of two passes that keep their rows in one place the second is refused, and the
// first comes to the same.
func TestTwoInOnePlace(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, FS: storetest.NoSync})
	_, want, err := rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	other, _ := library(t, model.RSAGE, Options{Dir: dir, Of: "another"})
	asked := 0
	e.Progress = func(p Progress) {
		asked++
		_, _, err := rows(t.Context(), other, 2, papers)
		require.EqualError(t, err, dir+": somebody else keeps the rows of layers there; wait for the end of that, or name another place")
	}
	_, got, err := rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	require.Equal(t, want, got)
	require.Positive(t, asked)
	require.NoDirExists(t, dir)

	// One that was killed keeps nobody out, and a directory of somebody's own stays.
	require.NoError(t, os.Mkdir(dir, 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(dir, lockName), nil, 0o666))
	e.Progress = nil
	_, _, err = rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	require.NoDirExists(t, dir)
	require.NoError(t, os.Mkdir(dir, 0o777))
	_, _, err = rows(t.Context(), e, 2, papers)
	require.NoError(t, err)
	left, err := filepath.Glob(filepath.Join(dir, "*"))
	require.NoError(t, err)
	require.Empty(t, left)
	require.DirExists(t, dir)
}

// TestStopped: a pass that is told to stop does.
func TestStopped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "layers")
	e, papers := library(t, model.RSAGE, Options{Dir: dir, Bytes: 5000})
	ctx, stop := context.WithCancel(t.Context())
	e.Progress = func(p Progress) {
		if p.Layer == 2 && p.Done > 100 {
			stop()
		}
	}
	_, _, err := rows(ctx, e, 2, papers)
	require.ErrorIs(t, err, context.Canceled)
	require.NoDirExists(t, dir)
}
