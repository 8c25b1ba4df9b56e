package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"github.com/x448/float16"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// floats are a row as it is stored.
func floats(f *store.Features, v store.NodeID) (row []float32) {
	b := f.Row(v)
	for len(b) > 0 {
		if f.Elem() == store.F16 {
			row, b = append(row, float16.Frombits(binary.LittleEndian.Uint16(b)).Float32()), b[2:]
		} else {
			row, b = append(row, math.Float32frombits(binary.LittleEndian.Uint32(b))), b[4:]
		}
	}
	return row
}

// slowMeans makes the means of a dataset's types anew, from its relations and the tables that its
// source had: by type.
func slowMeans(d *store.Dataset, given []ingest.Table) map[string][][]float32 {
	m := d.Manifest()
	tables := map[string][][]float32{}
	for _, g := range given {
		if _, seen := tables[g.NodeType]; seen || g.Relation != "" {
			continue
		}
		at := slices.IndexFunc(m.Tables, func(t store.Table) bool { return t.Name == g.Name && t.NodeType == g.NodeType })
		rows := [][]float32{}
		for v := range d.Features(at).Rows() {
			rows = append(rows, floats(d.Features(at), store.NodeID(v)))
		}
		tables[g.NodeType] = rows
	}
	dims := map[string]int{}
	for _, g := range slices.Backward(given) {
		dims[g.NodeType] = g.Dim
	}
	made := map[string][][]float32{}
	for {
		round := map[string][][]float32{}
		for _, t := range m.NodeTypes {
			if tables[t.Name] != nil {
				continue
			}
			for _, r := range m.Relations {
				if r.Dst == t.Name && tables[r.Src] != nil {
					dims[t.Name] = dims[r.Src]
					round[t.Name] = make([][]float32, t.Count)
				}
			}
			for v := range round[t.Name] {
				sum, n := make([]float32, dims[t.Name]), 0
				for i, r := range m.Relations {
					if r.Dst != t.Name || tables[r.Src] == nil {
						continue
					}
					for _, u := range d.Graph(i).Neighbors(store.NodeID(v)) {
						n++
						for c, x := range tables[r.Src][u] {
							sum[c] += x
						}
					}
				}
				for c := range sum {
					if n > 0 {
						sum[c] /= float32(n)
					}
					if m.Tables[0].Elem == store.F16 {
						sum[c] = float16.Fromfloat32(sum[c]).Float32()
					}
				}
				round[t.Name][v] = sum
			}
		}
		if len(round) == 0 {
			return made
		}
		for name, rows := range round {
			tables[name], made[name] = rows, rows
		}
	}
}

// requireMeans holds the made tables of a dataset to the slow ones, bit for bit.
func requireMeans(t require.TestingT, d *store.Dataset, given []ingest.Table) {
	want := slowMeans(d, given)
	found := 0
	for i, table := range d.Manifest().Tables {
		if table.Relation != "" || slices.ContainsFunc(given, func(g ingest.Table) bool { return g.NodeType == table.NodeType }) {
			continue
		}
		found++
		f := d.Features(i)
		require.Len(t, want[table.NodeType], f.Rows())
		for v, row := range want[table.NodeType] {
			for c, x := range floats(f, store.NodeID(v)) {
				require.Equal(t, math.Float32bits(row[c]), math.Float32bits(x), "%s: row %d, column %d: %v for %v", table.NodeType, v, c, x, row[c])
			}
		}
	}
	require.Equal(t, len(want), found)
}

func TestMean(t *testing.T) {
	f := typed()
	d, rep := build(t, f, Options{Features: "mean", Reverse: true, Order: OrderOriginal})
	requireMeans(t, d, f.schema.Tables)
	require.Equal(t, []TableReport{
		{Name: "feat", NodeType: "paper", Dim: 2, DType: F16}, {Name: "data", Relation: "author__writes__paper", Dim: 1, DType: F16},
		{Name: "feat", NodeType: "author", Dim: 2, DType: F16, Made: true}, {Name: "feat", NodeType: "prize", Dim: 2, DType: F16, Made: true},
		{Name: "feat", NodeType: "place", Dim: 2, DType: F16, Made: true},
	}, rep.Tables)
	// Author 0 wrote paper 0 twice, and paper 3; 2 wrote 4. Both live at the place.
	authors, places := d.Features(2), d.Features(4)
	require.Equal(t, []float32{3, 4}, floats(authors, 0))
	require.Equal(t, []float32{1, 2}, floats(authors, 1))
	require.Equal(t, []float32{9, 10}, floats(authors, 2))
	require.Equal(t, []float32{6, 7}, floats(places, 0))

	// An author who wrote nothing has zeros.
	f.edges[0][1][0] = 0
	d, _ = build(t, f, Options{Features: "mean", Reverse: true, Order: OrderOriginal})
	require.Equal(t, []float32{0, 0}, floats(d.Features(2), 1))
	requireMeans(t, d, f.schema.Tables)
}

// TestMeanRounds: what float16 rounds of a mean is never refused, and a sum goes from source to
// source upwards.
func TestMeanRounds(t *testing.T) {
	f := typed()
	f.rows[0] = []float32{4096, 1e-4, 4098, 1e-4, 4098, 1e-4, 4098, 2e-4, 65504, 65504}
	for _, dtype := range []DType{F16, F32} {
		d, _ := build(t, f, Options{Features: "mean", Reverse: true, DType: dtype, Clamp: true})
		requireMeans(t, d, f.schema.Tables)
	}
}

// drawRounds is a graph whose types get means in rounds, perhaps not all of them.
func drawRounds(t *rapid.T) *fake {
	f := &fake{schema: ingest.Schema{Name: "rounds", Identity: "rounds"}, edges: map[int][][2]int64{}, rows: map[int][]float32{}, chunk: 9}
	s := &f.schema
	dim := rapid.SampledFrom([]int{1, 2, 17, 300}).Draw(t, "dim")
	for i := range rapid.IntRange(2, 5).Draw(t, "types") {
		n := rapid.SampledFrom([]int{0, 1, 3, 10, 40}).Draw(t, "nodes")
		name := fmt.Sprint(i)
		s.NodeTypes = append(s.NodeTypes, ingest.NodeType{Name: name, Count: int64(n)})
		if i == 0 || rapid.IntRange(0, 3).Draw(t, "own") == 0 {
			for k := range n * dim {
				f.rows[len(s.Tables)] = append(f.rows[len(s.Tables)], float32(math.Sqrt(float64(k+7*i+1))))
			}
			s.Tables = append(s.Tables, ingest.Table{Name: "t", NodeType: name, Dim: dim})
		}
	}
	for i := range len(s.NodeTypes) - 1 + rapid.IntRange(0, 4).Draw(t, "relations") {
		src, dst := rapid.IntRange(0, len(s.NodeTypes)-1).Draw(t, "src"), rapid.IntRange(0, len(s.NodeTypes)-1).Draw(t, "dst")
		if dst = min(dst, i+1); i < len(s.NodeTypes)-1 { // every type is reached from the first
			src, dst = min(src, i), i+1
		}
		from, to := s.NodeTypes[src].Count, s.NodeTypes[dst].Count
		if from > 0 && to > 0 {
			for range rapid.SampledFrom([]int{0, 1, 20, 200}).Draw(t, "edges") {
				f.edges[i] = append(f.edges[i], [2]int64{rapid.Int64Range(0, from-1).Draw(t, "u"), rapid.Int64Range(0, to-1).Draw(t, "v")})
			}
		}
		s.Relations = append(s.Relations, ingest.Relation{Src: s.NodeTypes[src].Name, Name: fmt.Sprint("r", i), Dst: s.NodeTypes[dst].Name, Edges: int64(len(f.edges[i]))})
	}
	return f
}

// TestMeansAnyway: means are the slow ones, and the same bytes whatever memory their sums and rows
// have.
func TestMeansAnyway(t *testing.T) {
	fewer(t, 20)
	dir, n := t.TempDir(), 0
	rapid.Check(t, func(t *rapid.T) {
		f := drawRounds(t)
		o := Options{Features: "mean", FS: storetest.NoSync, Reverse: rapid.Bool().Draw(t, "reverse"),
			Order: rapid.SampledFrom([]Order{OrderDegree, OrderOriginal}).Draw(t, "order"), DType: rapid.SampledFrom([]DType{F16, F32}).Draw(t, "dtype")}
		n++
		path := filepath.Join(dir, fmt.Sprint(n))
		rep, err := Build(context.Background(), f, path, o)
		if err != nil {
			require.ErrorContains(t, err, "{features} mean: every node type has features")
			return
		}
		defer os.RemoveAll(path)
		d, err := store.Open(path)
		require.NoError(t, err)
		defer d.Close()
		requireMeans(t, d, f.schema.Tables)
		for _, means := range []int64{1, rapid.SampledFrom([]int64{3000, 40_000, 300_000}).Draw(t, "means")} {
			o.test = hooks{means: means, block: 4 << 10, journal: means == 1}
			o.FS = vfs.NewMem()
			again, err := Build(context.Background(), f, "x.gnn", o)
			require.NoError(t, err)
			require.Equal(t, rep.Seal, again.Seal, means)
			require.Equal(t, rep.Tables, again.Tables)
		}
	})
}

// TestMeansResume: edges that were parted under one memory serve under another.
func TestMeansResume(t *testing.T) {
	f := rounds(300)
	o := Options{Features: "mean", Reverse: true, test: hooks{means: 2000, journal: true}}
	o.FS = newMem(t)
	want, err := Build(context.Background(), f, "d/x.gnn", o)
	require.NoError(t, err)
	const part = "part paper__rev_writes__author for means"
	require.Contains(t, passNames(want), part)
	for _, later := range []int64{1, 700, 20_000, 10 << 20} {
		mem := newMem(t)
		o.FS, o.test.means = mem, 2000
		ctx, cancel := context.WithCancel(context.Background())
		o.test.done = func(pass string) {
			if pass == part {
				cancel()
			}
		}
		_, err := Build(ctx, f, "d/x.gnn", o)
		require.ErrorIs(t, err, context.Canceled)
		o.test.done, o.test.means = nil, later
		got, err := Build(context.Background(), f, "d/x.gnn", o)
		require.NoError(t, err)
		require.Positive(t, got.Resumed)
		require.Equal(t, want.Seal, got.Seal, later)
		requireOnly(t, mem, "x.gnn")
	}
}

// TestMeansOfMany: chunks and pieces of edges are cut within lists and between them.
func TestMeansOfMany(t *testing.T) {
	f := rounds(80_000)
	require.Greater(t, len(f.edges[0]), 2*edgeRecords)
	seals := map[string]bool{}
	for _, means := range []int64{0, 100_000, 400_000} {
		d, rep := build(t, f, Options{Features: "mean", Reverse: true, test: hooks{means: means}})
		if seals[rep.Seal] = true; means == 0 {
			requireMeans(t, d, f.schema.Tables)
		}
	}
	require.Len(t, seals, 1)
}

// rounds is papers with features, their authors, and the one institution of these.
func rounds(papers int64) *fake {
	f := &fake{schema: ingest.Schema{
		Name: "rounds", Identity: "rounds",
		NodeTypes: []ingest.NodeType{{Name: "paper", Count: papers}, {Name: "author", Count: papers / 2}, {Name: "institution", Count: 1}},
		Relations: []ingest.Relation{{Src: "author", Name: "writes", Dst: "paper", Edges: -1}, {Src: "author", Name: "works", Dst: "institution", Edges: -1}},
		Tables:    []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 6}},
	}, edges: map[int][][2]int64{}, rows: map[int][]float32{}, chunk: 1000}
	for v := range papers {
		for k := range v % 5 {
			f.edges[0] = append(f.edges[0], [2]int64{(v*v + 31*k) % (papers / 2), v})
		}
		for c := range int64(6) {
			f.rows[0] = append(f.rows[0], float32(v%97)+float32(c)/8)
		}
	}
	for u := range papers / 2 {
		f.edges[1] = append(f.edges[1], [2]int64{u, 0})
	}
	for i := range f.schema.Relations {
		f.schema.Relations[i].Edges = int64(len(f.edges[i]))
	}
	return f
}

// TestPlanOfMeans: a plan has the passes of a build, and tells how often the rows are read.
func TestPlanOfMeans(t *testing.T) {
	for _, means := range []int64{2000, 1 << 20} {
		o := Options{Features: "mean", Reverse: true, FS: vfs.NewMem(), test: hooks{means: means}}
		plan, err := PlanBuild(context.Background(), rounds(300), "x.gnn", o)
		require.NoError(t, err)
		rep, err := Build(context.Background(), rounds(300), "x.gnn", o)
		require.NoError(t, err)
		planned := map[string]PassPlan{}
		for _, p := range plan.Passes {
			planned[p.Name] = p
		}
		for _, name := range passNames(rep) {
			if strings.Contains(name, "mean") || strings.Contains(name, "make") {
				require.Contains(t, planned, name)
			}
		}
		authors, once := planned["make features author/feat"], int64(300*12)
		if means == 1<<20 {
			require.Equal(t, once, authors.DatasetRead)
			require.NotContains(t, planned, "part paper__rev_writes__author for means")
			continue
		}
		require.Equal(t, 3*once, authors.DatasetRead) // 1,750 bytes of sums of 28 each, for 150 authors
		require.Contains(t, plan.Notes, "features of node type author are means: 3 passes over 0 MiB of rows; more memory makes it fewer")
		require.Contains(t, planned, "part paper__rev_writes__author for means")
	}
}

func TestMeanRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(f *fake)
		o      Options
		want   string
	}{
		{nil, Options{}, "{features} mean: no relation leads to node type author from a type with features; add {reverse}, or choose degree, random:D or fastrp:D"},
		{func(f *fake) {
			f.schema.NodeTypes = append(f.schema.NodeTypes, ingest.NodeType{Name: "alone", Count: 2})
		}, Options{Reverse: true},
			"{features} mean: no relation leads to node type alone from a type with features; give it features, or choose degree, random:D or fastrp:D"},
		{func(f *fake) { f.schema.Tables = f.schema.Tables[1:] }, Options{Reverse: true},
			"{features} mean: the source has no features to take means of; choose degree, random:D or fastrp:D"},
		{func(f *fake) {
			for _, name := range []string{"author", "place", "prize"} {
				f.schema.Tables = append(f.schema.Tables, ingest.Table{Name: "feat", NodeType: name, Dim: 2})
			}
		}, Options{Reverse: true}, "{features} mean: every node type has features, so there are none to make; leave it out"},
		{func(f *fake) {
			f.schema.Tables = append(f.schema.Tables, ingest.Table{Name: "feat", NodeType: "place", Dim: 7})
		}, Options{Reverse: true}, "{features} mean: node type author has in-neighbours with rows of unlike width (2 of paper, 7 of place columns), which have no mean; choose degree, random:D or fastrp:D"},
	} {
		f := typed()
		if c.change != nil {
			c.change(f)
		}
		c.o.Features, c.o.FS = "mean", vfs.NewMem()
		_, err := Build(context.Background(), f, "x.gnn", c.o)
		require.EqualError(t, err, c.want)
	}
}

// TestNoFeatures: with "none" no type needs any, and those that have some keep them.
func TestNoFeatures(t *testing.T) {
	f := typed()
	d, _ := build(t, f, Options{Features: "none"})
	require.Len(t, d.Manifest().Tables, 2)
	f.schema.Tables = nil
	_, err := Build(context.Background(), f, "x.gnn", Options{FS: vfs.NewMem()})
	require.ErrorContains(t, err, "the source has no features: choose {features} degree, random:D or fastrp:D")
	d, rep := build(t, f, Options{Features: "none", Reverse: true})
	require.Empty(t, d.Manifest().Tables)
	require.Contains(t, rep.Notes, "node type paper has no features")
}

// TestSpilledEdges: edges are visited by ranges of destinations, again and again, and those that
// are passed are not read again.
func TestSpilledEdges(t *testing.T) {
	area, err := extsort.Open(vfs.NewMem(), "spill")
	require.NoError(t, err)
	w, err := area.NewWriter("edges", 1, extsort.MaxBlock)
	require.NoError(t, err)
	to := w.NewAppender()
	const nodes, each = 5000, 60 // four chunks, and a bit
	for v := range uint32(nodes) {
		for u := range uint32(each) {
			if v%7 != 3 {
				to.Put8(0, extsort.MakeKey(v, u))
			}
		}
	}
	to.Flush()
	buckets, err := w.Close()
	require.NoError(t, err)
	buf, err := extsort.Buffer(8, 8*edgeRecords)
	require.NoError(t, err)
	defer buf.Close()
	edges, err := newSpilledEdges(area, buckets[0], buf)
	require.NoError(t, err)
	for _, part := range [][2]uint32{{0, 1}, {1, 3}, {3, 4}, {4, 2000}, {2000, 2001}, {2500, 2501}, {4990, nodes}} {
		_, before := area.Traffic()
		some, err := edges.any(part[0], part[1])
		require.NoError(t, err)
		require.Equal(t, part != [2]uint32{3, 4}, some)
		if _, after := area.Traffic(); part[0] == 2000 { // where the last part ended
			require.LessOrEqual(t, after-before, int64(4096))
		}
		for range 2 {
			at := edges.at
			next, n := part[0], 0
			require.NoError(t, edges.each(context.Background(), part[0], part[1], func(records []byte) error {
				for ; len(records) > 0; records = records[8:] {
					e := binary.LittleEndian.Uint64(records)
					require.LessOrEqual(t, next, uint32(e>>32))
					require.EqualValues(t, n%each, uint32(e))
					next, n = uint32(e>>32), n+1
				}
				return nil
			}))
			want := 0
			for v := part[0]; v < part[1]; v++ {
				if v%7 != 3 {
					want += each
				}
			}
			require.Equal(t, want, n)
			require.Equal(t, at, edges.at)
		}
	}
}
