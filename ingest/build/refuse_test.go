package build

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// external is small under ids with gaps: node of row i is 10·i+7.
func external() *fake {
	f := small()
	f.schema.NodeTypes[0].IDs = ingest.IntIDs
	f.ids = map[int][]int64{0: {7, 17, 27, 37, 47, 57}}
	name := func(id *int64) { *id = 10**id + 7 }
	for i := range f.edges[0] {
		name(&f.edges[0][i][0])
		name(&f.edges[0][i][1])
	}
	for _, part := range f.splits[0] {
		for i := range part {
			name(&part[i])
		}
	}
	return f
}

func TestBuildRefuses(t *testing.T) {
	inf := float32(math.Inf(1))
	for name, c := range map[string]struct {
		source func() *fake
		change func(f *fake)
		o      Options
		want   string
	}{
		"source too large": {change: func(f *fake) { f.edges[0][4][0] = 6 },
			want: "edge.csv: edge 5 (counting from 1): source 6 is not one of the 6 nodes of type paper, which count from 0; are the ids 1-based"},
		"destination negative": {change: func(f *fake) { f.edges[0][7][1] = -1 },
			want: "edge.csv: edge 8 (counting from 1): destination -1 is not one of the 6 nodes"},
		"source beyond 32 bits": {change: func(f *fake) { f.edges[0][0][0] = 1 << 32 },
			want: "edge 1 (counting from 1): source 4294967296 is not one"},
		"unknown external source": {source: external, change: func(f *fake) { f.edges[0][4][0] = 3 },
			want: "edge.csv: edge 5 (counting from 1): source 3 is not among the 6 node ids of type paper; is the node list complete?"},
		"unknown external destination": {source: external, change: func(f *fake) { f.edges[0][4][1] = 58 },
			want: "destination 58 is not among"},
		"external id twice": {source: external, change: func(f *fake) { f.ids[0][5] = 17 },
			want: "ids.csv: row 5 (counting from 0): node id 17 is already that of row 1"},
		"external ids missing": {source: external, change: func(f *fake) { f.ids[0] = f.ids[0][:5] },
			want: "node type paper: 5 ids for 6 nodes; is ids.csv complete?"},
		"edges missing": {change: func(f *fake) { f.edges[0] = f.edges[0][1:] },
			want: "edge.csv: 7 edges, and 8 are declared"},
		"too many nodes": {change: func(f *fake) { f.schema.NodeTypes[0].Count = 1 << 32 },
			want: "node type paper: 4294967296 nodes; ids are 32 bits, so at most 4294967295"},
		"negative nodes": {change: func(f *fake) { f.schema.NodeTypes[0].Count = -1 }, want: "node type paper: -1 nodes"},
		"no nodes":       {change: func(f *fake) { f.schema.NodeTypes = nil }, want: "the source has no nodes"},
		"two of a name": {change: func(f *fake) { f.schema.Relations = append(f.schema.Relations, f.schema.Relations[0]) },
			want: "relation paper__cites__paper: the source has two of that name"},
		"relation of nothing": {change: func(f *fake) { f.schema.Relations[0].Dst = "author" },
			want: `relation paper__cites__author: there is no node type "author"`},
		"table of nothing": {change: func(f *fake) { f.schema.Tables[0].NodeType = "author" }, want: `table feat: there is no node type "author"`},
		"label of nothing": {change: func(f *fake) { f.schema.Labels[0].NodeType = "author" }, want: `label topic: there is no node type "author"`},
		"split of nothing": {change: func(f *fake) { f.schema.Splits[0].NodeType = "author" }, want: `split given: there is no node type "author"`},
		"no columns":       {change: func(f *fake) { f.schema.Tables[0].Dim = 0 }, want: "table feat: 0 columns"},
		"type of a path":   {change: func(f *fake) { f.schema.NodeTypes[0].Name = "../x" }, want: `node type "../x": names are up to 100 letters`},
		"column id":        {change: func(f *fake) { f.schema.Relations[0].Columns = []ingest.EdgeColumn{{Name: "id", Elem: store.U64}} }, want: "relation paper__cites__paper: column id"},
		"column of halves": {change: func(f *fake) { f.schema.Relations[0].Columns = []ingest.EdgeColumn{{Name: "w", Elem: store.F16}} },
			want: "relation paper__cites__paper: column w (f16): columns have elements of 1, 4 or 8 bytes"},
		"rows of gathered nodes": {change: func(f *fake) { f.schema.NodeTypes[0].IDs, f.schema.NodeTypes[0].Gathered = ingest.IntIDs, true },
			want: "table feat: the nodes of type paper are those that edges name"},
		"tmp that is not there": {o: Options{Tmp: "/nowhere/at/all"}, want: "{tmp} /nowhere/at/all: no such directory; make it first"},
		"tmp that is a file":    {o: Options{Tmp: "refuse_test.go"}, want: "{tmp} refuse_test.go: not a directory; choose one"},
		"too many nodes for the memory": {change: func(f *fake) { f.schema.NodeTypes[0].Count = math.MaxUint32 },
			want: "{memory} 1024 MiB is too little for this graph: it needs at least 24704 MiB"},
		"bad name": {change: func(f *fake) { f.schema.Relations[0].Name = "is a" }, want: `relation "is a": names are`},

		"NaN": {change: func(f *fake) { f.rows[0][9] = float32(math.NaN()) },
			want: "feat.csv: row 4, column 1 (counting from 0) is NaN; features are finite"},
		"infinity": {change: func(f *fake) { f.rows[0][0] = -inf }, o: Options{DType: F32, Clamp: true},
			want: "feat.csv: row 0, column 0 (counting from 0) is -Inf"},
		"overflow": {change: func(f *fake) { f.rows[0][5], f.rows[0][8], f.rows[0][3] = 1e6, -7e4, 65519 },
			want: "feat.csv: row 2, column 1 (counting from 0) is 1e+06, and 2 values in all are beyond float16, which ends at 65504; scale the column in a schema of tables, store {dtype} f32, or {clamp} them"},
		"rows missing": {change: func(f *fake) { f.rows[0] = f.rows[0][:10] },
			want: "feat.csv: 5 rows for the 6 nodes of type paper"},
		"no rows": {change: func(f *fake) { f.rows[0] = nil }, want: "feat.csv: 0 rows for the 6 nodes"},
		"rows too many": {change: func(f *fake) { f.rows[0] = append(f.rows[0], 1, 1) },
			want: "feat.csv: row 6 (counting from 0) and there are 6 nodes of type paper"},
		"no features": {change: func(f *fake) { f.schema.Tables = nil },
			want: "the source has no features: choose {features} degree, random:D or fastrp:D"},
		"no features where they are looked for": {change: func(f *fake) { f.schema.Tables, f.schema.NoFeatures = nil, "x.npz: no array of features (found emb)" },
			want: "x.npz: no array of features (found emb); or choose {features} degree, random:D or fastrp:D"},

		"label too large": {change: func(f *fake) { f.schema.Labels[0].Classes = 2 },
			want: "label.csv: row 2 (counting from 0): class 2, and label topic has 2 classes"},
		"label negative": {change: func(f *fake) { f.labels[0][3] = -2 },
			want: "label.csv: row 3 (counting from 0): class -2; classes count from 0, and -1 is missing"},
		"labels missing": {change: func(f *fake) { f.labels[0] = f.labels[0][:4] },
			want: "label.csv: 4 labels for the 6 nodes of type paper"},
		"labels too many": {change: func(f *fake) { f.labels[0] = append(f.labels[0], 1, 1) },
			want: "label.csv: 8 labels for the 6 nodes of type paper"},
		"neither zero nor one": {change: func(f *fake) { multi(f); f.labels[0][7] = 2 },
			want: "label.csv: row 3 (counting from 0): class 1 (counting from 0) is 2"},
		"multi without classes": {change: func(f *fake) { multi(f); f.schema.Labels[0].Classes = 0 }, want: "label topic: 0 classes"},

		"split of an unknown node": {change: func(f *fake) { f.splits[0][ingest.Test][1] = 6 },
			want: "test.csv: row 1 (counting from 0): node 6 is not one of the 6 nodes"},
		"split of an unknown external node": {source: external, change: func(f *fake) { f.splits[0][ingest.Test][1] = 6 },
			want: "test.csv: row 1 (counting from 0): node 6 is not among the 6 node ids"},
		"parts overlap": {change: func(f *fake) { f.splits[0][ingest.Test][1] = 3 },
			want: "test.csv: row 1 (counting from 0): node 3 is already in train; the parts of split given must not overlap"},
		"part repeats": {change: func(f *fake) { f.splits[0][ingest.Train][1] = 0 },
			want: "train.csv: row 1 (counting from 0): node 0 is already in train"},
		"nothing given": {change: func(f *fake) { f.schema.Splits = nil }, o: Options{Split: "given"},
			want: "{split} given: the source has no split; choose random:a/b/c or per-class:t/v"},
		"class is an id": {change: func(f *fake) { f.schema.Labels[0].Classes, f.labels[0][2] = 0, 2_000_000_000 },
			want: "label.csv: row 2 (counting from 0): class 2000000000, and 1048575 is the largest; the labels look like ids, not classes"},
		"class too small": {o: Options{Split: "per-class:1/1"},
			want: "{split} per-class:1/1: class 2 (c) of label topic has 1 nodes, and 2 are needed"},
		"per class of many": {change: multi, o: Options{Split: "per-class:1/1"},
			want: "{split} per-class: a node may have several classes of label topic"},
		"per class of nothing": {change: func(f *fake) { f.schema.Labels = nil }, o: Options{Split: "per-class:1/1"},
			want: "{split} per-class: the source has no labels"},
		"nothing to reverse": {change: func(f *fake) {
			f.schema.NodeTypes = append(f.schema.NodeTypes, ingest.NodeType{Name: "author", Count: 6})
			f.schema.Relations[0].Src = "author"
		}, o: Options{Undirected: true}, want: "{undirected}: the source has no relation from a node type to itself"},
		"reader out of step": {change: func(f *fake) { f.firstOff = 1 }, want: "the reader gave row 1 where row 0 follows"},
	} {
		t.Run(name, func(t *testing.T) {
			src := small()
			if c.source != nil {
				src = c.source()
			}
			if c.change != nil {
				c.change(src)
			}
			dir := t.TempDir()
			_, err := Build(context.Background(), src, filepath.Join(dir, "x.gnn"), c.o)
			require.ErrorContains(t, err, c.want)
			require.NotContains(t, err.Error(), "\n", "one line")
			requireEmpty(t, dir)
		})
	}
}

// multi makes small's label one of two bits a node.
func multi(f *fake) {
	f.schema.Labels[0].Multi, f.schema.Labels[0].Classes, f.schema.Labels[0].ClassNames = true, 2, nil
	f.labels[0] = []int32{0, 1, 1, 1, 0, 0, -1, -1, 1, -1, 0, 1}
}

func requireEmpty(t *testing.T, dir string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, entries)
}

func TestOptionsRefuse(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Order: "hot"}, `{order} "hot": there is no such order; choose degree, access or original`},
		{Options{SelfLoops: "no"}, `{self_loops} "no": choose keep, drop or add`},
		{Options{Duplicates: "no"}, `{duplicates} "no": choose keep, merge, first, sum, max or mean`},
		{Options{SkipBad: -1}, "{skip_bad} -1: choose a number of rows"},
		{Options{Memory: 100 << 20}, "{memory} 104857600: 128 MiB is the least that works"},
		{Options{DType: "f64"}, `{dtype} "f64": features are not stored so; choose f16 or f32`},
		{Options{Normalize: "l2"}, `{normalize} "l2": choose none or row`},
		{Options{Features: "pagerank"}, `{features} "pagerank": there are no such features; choose degree, random:D or fastrp:D`},
		{Options{Features: "degree:3"}, `{features} "degree:3": there are no such features`},
		{Options{Features: "fastrp"}, `{features} "fastrp": D is a number of columns from 1 to 16384`},
		{Options{Features: "random:0"}, `{features} "random:0": D is a number of columns`},
		{Options{Features: "random:16385"}, `{features} "random:16385": D is a number of columns`},
		{Options{Split: "period"}, `{split} "period": there is no such split; choose given, random:a/b/c`},
		{Options{Split: "random:0.5/0.5"}, `{split} "random:0.5/0.5": want three positive fractions`},
		{Options{Split: "random:0.5/0.5/0.1"}, "want three positive fractions that sum to at most 1"},
		{Options{Split: "random:0.5/0.5/0"}, "want three positive fractions"},
		{Options{Split: "random:0.5/0.5/NaN"}, "want three positive fractions"},
		{Options{Split: "per-class:20"}, `{split} "per-class:20": want the training and validation nodes of each class`},
		{Options{Split: "per-class:20/0"}, "want the training and validation nodes"},
		{Options{Name: "../../x"}, `{name} "../../x": a dataset's name is up to 100 letters a-z, digits, _, - and ., and does not start with a .; as in _._.._x`},
		{Options{Name: "caf\xe9"}, `{name} "caf\xe9": a dataset's name is`},
		{Options{Name: ".x"}, "as in _x"},
		{Options{Split: "per-class:20/30/40"}, "want the training and validation nodes"},
	} {
		err := c.o.Validate()
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n", "one line")
		_, err = Build(context.Background(), small(), filepath.Join(t.TempDir(), "x.gnn"), c.o)
		require.ErrorContains(t, err, c.want)
	}
	all := Options{Order: "x", DType: "x", Features: "x", Split: "x", Name: "/"}
	require.Len(t, strings.Split(all.Validate().Error(), "\n"), 5)
	require.NoError(t, new(Options).Validate())
	require.NoError(t, (&Options{Split: "random:0.7/0.2/0.1"}).Validate())
}

// TestNameOfTheSource: a source is named after its file, which may be called anything.
func TestNameOfTheSource(t *testing.T) {
	for in, want := range map[string]string{"caf\xe9": "caf_", "../x": "_._x", "": "dataset", "v1.2": "v1.2"} {
		src := small()
		src.schema.Name = in
		d, rep := build(t, src, Options{})
		require.Equal(t, want, rep.Name)
		require.Equal(t, want, d.Manifest().Name)
	}
	d, _ := build(t, small(), Options{Name: "mine"})
	require.Equal(t, "mine", d.Manifest().Name)
}

func TestTrailingSlash(t *testing.T) {
	dir := t.TempDir()
	rep, err := Build(context.Background(), small(), dir+"/x.gnn/", Options{})
	require.NoError(t, err)
	require.Equal(t, dir+"/x.gnn", rep.Path)
	names, err := filepath.Glob(dir + "/*")
	require.NoError(t, err)
	require.Equal(t, []string{dir + "/x.gnn"}, names)
}

// TestOutputIsClaimedFirst: an output that exists, or is being written, is refused before the
// source is touched.
func TestOutputIsClaimedFirst(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	w, err := store.Create(path, store.WriterOptions{})
	require.NoError(t, err)
	_, err = Build(context.Background(), nil, path, Options{})
	require.ErrorIs(t, err, store.ErrBusy)
	require.NoError(t, w.Abort())
	require.NoError(t, os.Mkdir(path, 0o777))
	_, err = Build(context.Background(), nil, path, Options{})
	require.ErrorIs(t, err, fs.ErrExist)
}

func TestSpace(t *testing.T) {
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("d", 0o777))
	build := func(src *fake, free uint64) error {
		mem.TestingSetDiskUsage(vfs.DiskUsage{AvailBytes: free, TotalBytes: 1 << 40})
		_, err := Build(context.Background(), src, "d/x.gnn", Options{FS: mem})
		return err
	}
	touched := small()
	touched.before = func(string, int) error { t.Fatal("read although the declared size does not fit"); return nil }
	err := build(touched, 1<<20)
	require.ErrorContains(t, err, "d/x.gnn: the dataset and what is spilled on the way need about ")
	require.ErrorContains(t, err, " and 1 MiB are free; make room, or write it elsewhere, or spill elsewhere with {tmp}")
	require.NotContains(t, err.Error(), "\n", "one line")

	// Where the source declares nothing, it is the count that refuses, before the first write.
	undeclared := small()
	undeclared.schema.Relations[0].Edges = -1
	undeclared.before = func(section string, _ int) error { require.Equal(t, "edge", section); return nil }
	require.ErrorContains(t, build(undeclared, 1<<20), "1 MiB are free")
	undeclared = external()
	undeclared.schema.NodeTypes[0].Count = 0
	require.ErrorContains(t, build(undeclared, 1<<20), "1 MiB are free")

	names, err := mem.List("d")
	require.NoError(t, err)
	require.Empty(t, names)
	require.NoError(t, build(small(), 1<<21))
}

// fullDisk is a file system of so many bytes.
type fullDisk struct {
	vfs.FS
	bytes uint64
}

func (d fullDisk) GetDiskUsage(string) (vfs.DiskUsage, error) {
	used, err := d.usedBy("d")
	return vfs.DiskUsage{AvailBytes: d.bytes - min(used, d.bytes), TotalBytes: d.bytes}, err
}

func (d fullDisk) usedBy(path string) (bytes uint64, err error) {
	info, err := d.Stat(path)
	if err != nil || !info.IsDir() {
		return uint64(info.Size()), err
	}
	names, err := d.List(path)
	for _, name := range names {
		n, failed := d.usedBy(d.PathJoin(path, name))
		bytes, err = bytes+n, errors.Join(err, failed)
	}
	return bytes, err
}

// TestSpilledIsNotCountedTwice: a disk that holds what the plan says is enough, though part of it
// is taken when the edges are counted.
func TestSpilledIsNotCountedTwice(t *testing.T) {
	src := small()
	src.chunk = 1000
	src.schema.NodeTypes[0].Count, src.schema.Relations[0].Edges, src.schema.Tables[0].Dim = 1000, 100_000, 500
	src.edges[0], src.rows[0], src.labels[0] = nil, make([]float32, 1000*500), make([]int32, 1000)
	for i := range int64(100_000) {
		src.edges[0] = append(src.edges[0], [2]int64{i % 1000, i / 100})
	}
	mem := vfs.NewMem()
	require.NoError(t, mem.MkdirAll("d", 0o777))
	plan, err := PlanBuild(t.Context(), src, "d/x.gnn", Options{FS: mem})
	require.NoError(t, err)
	_, err = Build(t.Context(), src, "d/x.gnn", Options{FS: fullDisk{mem, uint64(plan.DiskBytes + plan.DiskBytes/10)}})
	require.NoError(t, err)
}

func TestEstimateIsEnough(t *testing.T) {
	for _, o := range []Options{{}, {DType: F32}, {Undirected: true}, {Features: "random:100", Split: "random:0.5/0.2/0.3"}} {
		_, rep := build(t, small(), o)
		plan, err := PlanBuild(context.Background(), small(), filepath.Join(t.TempDir(), "x.gnn"), o)
		require.NoError(t, err)
		require.GreaterOrEqual(t, plan.Bytes, rep.Bytes)
		var planned, done []string
		for _, p := range plan.Passes {
			planned = append(planned, p.Name)
		}
		for _, p := range rep.Passes {
			if done = append(done, p.Name); strings.HasPrefix(p.Name, "write split ") {
				done[len(done)-1] = "write splits"
			}
			require.GreaterOrEqual(t, plan.SpillBytes+1<<12, p.SpillPeak, p.Name) // quick passes leave removing to later ones
		}
		require.Equal(t, planned, done)
	}
}
