package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

func TestSeries(t *testing.T) {
	s := series{4, 1, 3, 2}
	require.Equal(t, 2.5, s.median())
	require.Equal(t, 3.0, s[:3].median())
	require.Equal(t, series{4, 1, 3, 2}, s, "not sorted in place")
	require.Equal(t, "2.5 (1.0–4.0)", s.spread("%.1f"))
	require.Equal(t, series{2, 0.5}, series{4, 1}.over(series{2, 2}))
}

func TestNPY(t *testing.T) {
	w := npyWriter{dir: t.TempDir()}
	w.write("x", "<i4", []int{2, 1}, []uint32{7, 258})
	require.NoError(t, w.err)
	b, err := os.ReadFile(filepath.Join(w.dir, "x.npy"))
	require.NoError(t, err)
	require.Zero(t, (len(b)-8)%64, "data start on a multiple of 64")
	require.True(t, bytes.HasPrefix(b, []byte("\x93NUMPY\x01\x00")))
	require.Contains(t, string(b), "{'descr': '<i4', 'fortran_order': False, 'shape': (2,1,), }")
	require.Equal(t, []byte{7, 0, 0, 0, 2, 1, 0, 0}, b[len(b)-8:])
	w.dir = filepath.Join(w.dir, "missing")
	w.write("x", "<i4", []int{0}, []uint32{})
	require.ErrorIs(t, w.err, os.ErrNotExist)
}

func TestMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"there are: bench coop, curves, depend": nil,
		"-dataset is missing":                   {"windows"},
		"-batch and -steps":                     {"policies", "-steps", "-1"},
		"unknown disk engine":                   {"policies", "-engine", "tape"},
		"both above 0":                          {"policies", "-device", "70000,0"},
		"-python is missing":                    {"step"},
		"lower -batches":                        {"samplers", "-python", "none", "-dataset", storetest.Build(t, storetest.Communities(300, 5, 8, 16, 1))},
		"at least 1":                            {"kernels", "-rounds", "0"},
		"one argument too many":                 {"kernels", "all"},
		"neighbours at each hop":                {"dependent", "-dataset", "ten.gnn", "-fanout", "15,0"},
		"neither a number of steps from 1":      {"dependent", "-dataset", "ten.gnn", "-kappa", "0"},
		"share of the feature":                  {"dependent", "-dataset", "ten.gnn", "-cache", "60000"},
		"set GNNSTORE_DATA":                     {"curves", "-data", ""},
	} {
		require.ErrorContains(t, compare(context.Background(), io.Discard, args), want)
	}
}

func TestTrace(t *testing.T) {
	trace := [][]uint32{{1, 2, 3}, {3, 4}, {1, 4}, {9}}
	require.Equal(t, 2.0, meanRows(trace))
	for most, want := range []int{1, 1, 1, 1, 3, 4} {
		require.Equal(t, want, fitting(trace, 10, 0, most), "in %d rows", most)
	}
	require.Equal(t, 4, fitting(trace, 10, 4, 2), "all but 4 and 9 are hot")
}

func TestPolicies(t *testing.T) {
	var out bytes.Buffer
	c := comparison{out: &out, dataset: storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1)), batch: 10, steps: 24}
	require.NoError(t, comparePolicies(t.Context(), &c))
	require.Contains(t, out.String(), "belady, 16 ahead")
}

// TestDrawTrace: several goroutines draw what one does, over the end of an epoch.
func TestDrawTrace(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1)))
	require.NoError(t, err)
	defer ds.Close()
	d := draws{sample.Config{Kind: sample.Labor0, Fanouts: []int{5, 3}, Smoothed: true}, 4}
	train := ds.Split(0).Train
	epoch := (len(train) + 99) / 100
	trace, err := drawTrace(t.Context(), ds, d, 100, epoch+3)
	require.NoError(t, err)
	sampler, schedule := sample.NewSampler(sample.AtHand(ds.Graph(0)), d.Config, 1), sample.Schedule{Seed: 1, Kappa: 4}
	for i, rows := range trace {
		seeds := slices.Clone(train)
		sample.Shuffle(seeds, 1, 1+i/epoch)
		var b sample.Batch
		require.NoError(t, sampler.SampleOne(context.Background(), &b, schedule.At(i), seeds[i%epoch*100:min(i%epoch*100+100, len(seeds))]))
		require.Equal(t, b.Inputs()[0], rows, "step %d", i)
	}
}

func TestDependent(t *testing.T) {
	var out bytes.Buffer
	path := storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1))
	require.NoError(t, compare(t.Context(), &out, []string{"dependent", "-dataset", path, "-batch", "10", "-steps", "160", "-kappa", "8", "-fanout", "5,3"}))
	require.Contains(t, out.String(), "| labor0, κ = 8 smoothed | ")
	require.Contains(t, out.String(), "| 1.00 (1.00) |")
	require.NotContains(t, out.String(), "NaN")
}

func TestReuse(t *testing.T) {
	var out bytes.Buffer
	path := storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1))
	require.NoError(t, compare(t.Context(), &out, []string{"reuse", "-dataset", path, "-batch", "10", "-steps", "60", "-fanout", "3,2"}))
	require.Contains(t, out.String(), "| none, a longer slab | | | ")
	require.Contains(t, out.String(), "| all | 200 | 100 | ")
	require.NotContains(t, out.String(), "NaN")
}

func TestGain(t *testing.T) {
	lru := standing{forecast: forecast{cost: cachetier.Cost{Steps: 2, Rows: 60, Seconds: 0.3}}}
	best := standing{forecast: forecast{cost: cachetier.Cost{Steps: 3, Rows: 30, Seconds: 0.15}}}
	require.Equal(t, "3.00 (3.00)", best.gain(lru))
	require.Equal(t, "0.33 (0.33)", lru.gain(best))
	require.Empty(t, lru.gain(standing{}))
}

func TestCurves(t *testing.T) {
	var growth []trace.Growth
	for _, n := range growthSizes(90_941) {
		growth = append(growth, trace.Growth{Sampler: sample.NS, Batch: n, Hops: []trace.Hop{{Mean: 1e9}}},
			trace.Growth{Sampler: sample.Labor0, Batch: n, Hops: []trace.Hop{{Mean: 1e9}, {Mean: float64(100 * n)}}})
	}
	require.Equal(t, 1024, traceBatch(growth, 90_941, 1_000_000))
	require.Equal(t, 256, traceBatch(growth, 90_941, 169_343), "1024 would take more than the cache")
	require.Equal(t, 256, traceBatch(growth, 49_000, 1_000_000), "of 1024 an epoch has 47")
	require.Equal(t, 64, traceBatch(growth, 1000, 1000), "none fits")
	require.Equal(t, []int{7}, growthSizes(7))
	require.Equal(t, []int{64, 256, 1024, 4096}, growthSizes(10_886))
	require.Equal(t, []int{64, 64, 768, 128}, []int{traceSteps(1), traceSteps(16), traceSteps(256), traceSteps(sample.Forever)})

	var out bytes.Buffer
	printGrowth(&out, []int{64, 256}, []trace.Growth{{Sampler: sample.RW, Batch: 256, Hops: []trace.Hop{{Mean: 7}, {Mean: 81.5, CI95: 2.25}}}})
	require.Contains(t, out.String(), "| sampler | 64 | 256 |\n")
	require.Contains(t, out.String(), "| rw | | 82 ± 2 |\n")

	out.Reset()
	s := sharedTraces{kind: sample.Labor0, dependent: "nested", caches: []trace.Size{{Asked: "5%"}, {Asked: "20%"}}}
	for i, kappa := range curveKappas {
		s.traces = append(s.traces, trace.Trace{Kappa: kappa, Batches: trace.Batches{Mean: 123},
			Caches: []trace.Cache{{Policy: trace.LRU, HitRate: 0.5}, {Policy: trace.LRU, HitRate: 0.2 + 0.1*float64(i)}}})
	}
	printMisses(&out, []sharedTraces{s})
	require.Contains(t, out.String(), "| κ = 256 | κ = inf | ÷ |\n")
	require.Contains(t, out.String(), "| labor0, nested | 123 | lru | 20% | 80.00 | 70.00 | 60.00 | 50.00 | 40.00 | 30.00 | 2.00 |\n")
}

func TestFetch(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1)))
	require.NoError(t, err)
	defer ds.Close()
	trace, err := drawTrace(t.Context(), ds, plain, 10, 12)
	require.NoError(t, err)
	m, err := newFetcher(t.Context(), ds.Features(0), disk.Auto, disk.Costs{}, trace)
	require.NoError(t, err)
	defer m.close()
	_, err = m.fetch(t.Context(), 3)
	require.NoError(t, err)
	var want uint64
	for _, ids := range trace[9:] {
		for _, v := range ids {
			for row := ds.Features(0).Row(v); len(row) > 0; row = row[2:] {
				want += uint64(row[0]) + uint64(row[1])<<8
			}
		}
	}
	require.Equal(t, want, m.sum)
}

// TestDrawn: a turn counts the edges and the input nodes of all its batches.
func TestDrawn(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(3000, 5, 8, 16, 1)))
	require.NoError(t, err)
	defer ds.Close()
	seeds := make([]uint32, 2*batchSize)
	degrees := 0
	for v := range seeds {
		seeds[v] = uint32(v)
		degrees += ds.Graph(0).Degree(uint32(v))
	}
	graph, err := data.OpenToDraw(ds, data.Options{})
	require.NoError(t, err)
	turn, err := newDrawn(graph, sample.Config{Fanouts: []int{sample.All}}, seeds).turn()
	require.NoError(t, err)
	require.EqualValues(t, degrees, turn.Edges)
	require.Greater(t, turn.Nodes, 2.0*batchSize)
}

// TestOnce: what a sampler has that expands a node once is every list of the seeds and of the nodes
// in them, each once.
func TestOnce(t *testing.T) {
	ds, err := store.Open(storetest.BuildTyped(t, storetest.Library(3000, 5, 1)))
	require.NoError(t, err)
	defer ds.Close()
	graph, err := data.OpenToDraw(ds, data.Options{})
	require.NoError(t, err)
	require.Equal(t, "4513 nodes, 39003 edges, 5 types, 6 relations, seeds are of type paper", extent(graph))
	seeds := graph.Train[:batchSize]
	type node struct {
		kind int
		id   uint32
	}
	reached, edges := map[node]bool{}, 0
	var frontier []node
	for _, v := range seeds {
		reached[node{graph.Target, v}] = true
		frontier = append(frontier, node{graph.Target, v})
	}
	for range 2 {
		var next []node
		for _, v := range frontier {
			for _, r := range graph.Relations {
				if r.Dst != v.kind {
					continue
				}
				for _, u := range r.Neighbors(v.id) {
					edges++
					if n := (node{r.Src, u}); !reached[n] {
						reached[n] = true
						next = append(next, n)
					}
				}
			}
		}
		frontier = next
	}
	d := newDrawn(graph, sample.Config{Fanouts: []int{sample.All, sample.All}}, seeds)
	turn, err := d.turn()
	require.NoError(t, err)
	require.Greater(t, turn.Edges, float64(edges), "the second hop draws for the seeds again")
	single, err := d.once()
	require.NoError(t, err)
	require.EqualValues(t, edges, single.Edges)
	require.EqualValues(t, len(reached), single.Nodes)

	r, turn := peerSampler{Kind: once, Name: "theirs"}, drawnTurn{Edges: single.Edges, Nodes: single.Nodes}
	require.NoError(t, r.same(turn, "ns", d))
	turn.Edges *= 0.97
	require.ErrorContains(t, r.same(turn, "ns", d), "that is other work")
	r.Kind = "biased"
	require.NoError(t, r.same(turn, "ns", d), "known to be other work")
	r.Kind = "ns"
	require.ErrorContains(t, r.same(turn, "ns", d), "that is other work")
}

// TestTypedSteps: the step of a graph of several types is the same at each turn, and what PyTorch
// is to compute with is written.
func TestTypedSteps(t *testing.T) {
	spec := storetest.Library(300, 5, 1)
	for i := range spec.Types {
		n := &spec.Types[i]
		n.Dim, n.Elem = max(2, n.Dim), store.F16
		n.Row = func(v int) []float32 { return slices.Repeat([]float32{float32(v % 5)}, n.Dim) }
	}
	ds, err := store.Open(storetest.BuildTyped(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	d, err := data.Open(ds, data.Options{})
	require.NoError(t, err)
	draws := sample.Config{Fanouts: []int{4, 3}}
	shape := shapeOf(d, draws)
	be := kernels.NewCPU(kernels.CPUOptions{})
	batches, err := drawBatches(be, d, draws, 20, 3)
	require.NoError(t, err)
	s := newSteps(be, typedNetwork, shape, batches)
	first, err := s.turn()
	require.NoError(t, err)
	again, err := s.turn()
	require.NoError(t, err)
	require.Equal(t, first.Losses, again.Losses)
	require.NoError(t, first.same(first, tolerance))
	other := turn{Losses: slices.Clone(first.Losses)}
	other.Losses[2] *= 1.01
	require.ErrorContains(t, first.same(other, tolerance), "batch 2 has loss")
	require.ErrorContains(t, first.same(turn{}, tolerance), "trained on 0 batches")

	dir := t.TempDir()
	require.NoError(t, export(dir, be, batches, s.trainer.Model.Params))
	for _, name := range []string{"2.labels", "2.0.rows", "2.0.read", "2.1.made", "2.1.0.neighbors", "2.0.2.offsets",
		"convs.0.<paper___written_by___author>.lin_l.weight", "skips.1.paper.bias"} {
		require.FileExists(t, filepath.Join(dir, name+".npy"))
	}
	require.NoFileExists(t, filepath.Join(dir, "2.2.rows.npy"), "no paper reaches a shop")

	d.Types[0].Features = nil
	_, err = drawBatches(be, d, draws, 20, 3)
	require.ErrorContains(t, err, "type author has no float16 features")
	_, err = drawBatches(be, d, draws, 20, 10)
	require.ErrorContains(t, err, "180 training nodes; 10 × 20 are needed")
}

func TestLoader(t *testing.T) {
	for args, want := range map[string]string{
		"epoch -python python3 -loader marius": "-loader marius: pyg, graphbolt or dgl",
		"step -python python3 -loader dgl":     "-loader goes with epoch",
	} {
		require.EqualError(t, compare(t.Context(), io.Discard, strings.Fields(args)), want)
	}
}

// TestTurns: sides take turns, and a table has their figures and ratios.
func TestTurns(t *testing.T) {
	var order string
	takes := func(name string, first float64) *side[float64] {
		s := &side[float64]{name: name}
		s.turn = func(context.Context) (float64, error) {
			order += name
			return first * float64(1+len(s.turns)), nil
		}
		return s
	}
	itself := func(turn float64) float64 { return turn }
	a, b := takes("a", 1), takes("b", 4)
	b.base = a
	all := turns[float64]{sides: []*side[float64]{a, b}, columns: []column[float64]{
		{name: "s", format: "%.0f", of: itself}, {name: "last s", format: "%.0f", of: itself, show: last}, {name: "a / own", format: "%.2f", of: itself, show: inverse},
	}}
	require.NoError(t, all.run(t.Context(), 2))
	require.Equal(t, "abab", order)
	var out bytes.Buffer
	all.print(&out, "")
	ratios(&out, "b / a", all.over(b, a, 0))
	require.Equal(t, `| | s | last s | a / own |
| --- | --- | --- | --- |
| a | 2 (1–2) | 2 | |
| b | 6 (4–8) | 8 | 0.25 (0.25–0.25) |
| b / a | 4.00 (4.00–4.00) |
`, out.String())
	all.check = func(_ *side[float64], turn float64) error {
		if turn > 8 {
			return errors.New("too long")
		}
		return nil
	}
	require.EqualError(t, all.run(t.Context(), 1), "b: too long")
	all.after = func(context.Context) error { return errors.New("after") }
	all.check = nil
	require.EqualError(t, all.run(t.Context(), 1), "after")
}
