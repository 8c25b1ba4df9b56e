package graph

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// cooperative returns o for workers that compute together.
func cooperative(o run.Options) run.Options {
	o.Parallel = run.Cooperative
	return o
}

// TestCooperativeNearOne: workers that compute together have the losses of one worker, but for the
// order of sums. This holds in every network and task, also if a step leaves out the edges that it
// learns, and if some workers have no seeds. With equal weights, logits have the same bits. On
// parts, and with little memory, they end with the same weights.
func TestCooperativeNearOne(t *testing.T) {
	storetest.Long(t)
	nodes, links := open(t, storetest.Communities(600, 4, 8, 16, 2)), open(t, linked(600))
	trust := openTyped(t, storetest.Trust(400, true, false))
	rated, spec := open(t, ratedRows(500, store.U32)), storetest.Library(300, 3, 1)
	spec.Types[0].Dim, spec.Types[0].Row = 2, func(v int) []float32 { return []float32{float32(v % 3), float32(v % 7)} }
	spec.Relations[1].Weight = func(v, i int) float32 { return float32(1 + (v+i)%3) }
	types, learns := openTyped(t, spec), openTyped(t, storetest.Library(400, 3, 2))
	for name, c := range map[string]struct {
		ds     *store.Dataset
		o      run.Options
		change func(o *run.Options)
	}{
		"sage":         {nodes, small(), func(*run.Options) {}},
		"three layers": {nodes, small(), func(o *run.Options) { o.Layers, o.Fanouts = 3, []int{3, 3, 3} }},
		"one layer":    {nodes, small(), func(o *run.Options) { o.Layers, o.Fanouts = 1, []int{3} }},
		"mlp":          {nodes, small(), func(o *run.Options) { o.Kind = model.MLP }},
		"gcn":          {nodes, small(), func(o *run.Options) { o.Kind = model.GCN }},
		"gat":          {nodes, small(), func(o *run.Options) { o.Kind = model.GAT }},
		"labor0":       {nodes, small(), func(o *run.Options) { draws["labor0 smoothed"](o) }},
		"labels":       {nodes, small(), func(o *run.Options) { o.LabelInput = 8 }},
		"sampled":      {nodes, small(), func(o *run.Options) { o.Eval, o.Batch = "sampled", 16 }},
		"rsage":        {types, typed(model.RSAGE), func(*run.Options) {}},
		"rgcn":         {types, typed(model.RGCN), func(o *run.Options) { o.Weighted = true }},
		"hgt":          {types, typed(model.HGT), func(*run.Options) {}},
		"columns":      {rated, typed(model.RGAT), func(o *run.Options) { o.EdgeInputs = asColumns }},
		"table":        {rated, typed(model.RSAGE), func(o *run.Options) { o.EdgeInputs = asTable }},
		"learnt":       {learns, learning(), func(*run.Options) {}},
		"links":        {links, linkOptions(), func(*run.Options) {}},
		"links gcn":    {links, linkOptions(), func(o *run.Options) { o.Kind = model.GCN }},
		"links kept":   {links, linkOptions(), func(o *run.Options) { o.KeepTargets = true }},
		"shared":       {links, linkOptions(), func(o *run.Options) { o.Negatives, o.Chunk, o.Loss = "shared:5", 30, "ce" }},
		"edges":        {trust, edgeOptions(), func(*run.Options) {}},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			c.change(&o)
			// The decay is added to the gradients, so a wrong scale of them changes the losses.
			o.Epochs, o.LR, o.Dropout, o.InputDropout, o.Optim.WeightDecay = 1, 1e-3, 0, 0, 0.1
			still := o
			still.LR = 1e-30 // weights keep their bits
			want, got := trained(t, c.ds, o), sameBy(t, c.ds, 3, cooperative(o))
			require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-4)
			if !slices.Contains([]string{"sage", "rgcn", "learnt", "links", "edges", "table"}, name) {
				first, again := trained(t, c.ds, still), sameBy(t, c.ds, 3, cooperative(still))
				require.InEpsilon(t, first.Losses[0], again.Losses[0], 1e-12)
				require.Equal(t, first.Best.ValidAcc, again.Best.ValidAcc)
				return
			}
			few := still
			few.Epochs, few.EpochSteps, few.Batch = 1, 3, 4
			if few.Eval = "sampled"; o.Task == "" {
				few.EvalNodes = 5
			} else {
				few.EvalEdges = 5
			}
			one, most := trained(t, c.ds, few), sameBy(t, c.ds, 7, cooperative(few))
			require.InEpsilon(t, one.Losses[0], most.Losses[0], 1e-12)
			require.Equal(t, one.Best.ValidAcc, most.Best.ValidAcc)
			opened, tight := inParts(t, c.ds, 3), func(w *worker) { w.tight(c.ds) }
			all, err := byWorkersOf(t, opened, 3, cooperative(o), scratch(t), nil)
			require.Equal(t, got.ParamsXXH3, same(t, all, err).ParamsXXH3)
			if c.ds == nodes {
				all, err = byWorkersOf(t, opened, 3, cooperative(o), scratch(t), tight)
				require.Equal(t, got.ParamsXXH3, same(t, all, err).ParamsXXH3)
			}
		})
	}
}

// TestCooperativeEnds: whichever worker fails or stops in a step, none is left waiting, and the run
// goes on from a checkpoint to the same bits, with the hidden rows that each worker kept.
func TestCooperativeEnds(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o, reuses := cooperative(outOfCore(ds, "pread")), reusing()
	o.History, o.Settings = true, reuses.Settings
	o.Epochs, o.Cache.HostBytes, o.Window, o.TopologyBytes, o.Batch = 3, 1<<10, 2, 3*o.TopologyBytes, 40
	want := sameBy(t, ds, 3, o)
	for fails := -1; fails < 3; fails++ {
		path := filepath.Join(t.TempDir(), "run")
		_, err := byWorkers(t, ds, 3, o, func() (*run.Dir, error) { return run.Create(path) },
			func(w *worker) { w.endAt(2, fails) })
		if fails < 0 {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "worker ")
			require.ErrorContains(t, err, "go on with gnnstore train {resume} {run} "+path)
		}
		resumed, err := byWorkers(t, ds, 3, o, again(path), nil)
		require.NoError(t, err)
		require.Equal(t, want.ParamsXXH3, resumed[0].ParamsXXH3)
		require.Equal(t, want.Losses, resumed[2].Losses)
	}
}

// TestCooperativeReuse: workers that compute together use hidden rows again as one worker does:
// each keeps rows of its own nodes, and all share the verdict. They end with the same bits under
// any budget, and whether each has the whole dataset or a part.
func TestCooperativeReuse(t *testing.T) {
	storetest.Long(t)
	one, library := open(t, storetest.Communities(900, 4, 8, 24, 2)), open(t, several(600))
	for name, change := range map[string]func(o *run.Options){
		"gcn":           func(o *run.Options) { o.Kind = model.GCN },
		"3 layers":      func(o *run.Options) { o.Layers, o.Fanouts = 3, []int{3, 3, 3} },
		"a step of lag": func(o *run.Options) { o.HistoryLag = 1 },
		"few slots":     func(o *run.Options) { o.HistoryBytes = 30 * history.SlotBytes(o.Hidden) },
		"typed":         func(*run.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			ds, o := one, reusing()
			if name == "typed" {
				ds = library
			}
			change(&o)
			o.LR, o.Dropout = 1e-3, 0
			want := trained(t, ds, o)
			all, err := byWorkers(t, ds, 3, cooperative(o), scratch(t), nil)
			got := same(t, all, err)
			hits := int64(0)
			for _, r := range all {
				hits += r.History.Hits
			}
			require.Positive(t, hits)
			if name != "few slots" {
				require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-4)
				require.Equal(t, want.History.Hits, hits)
			}
			tight := func(w *worker) { w.tight(ds) }
			again, err := byWorkersOf(t, inParts(t, ds, 3), 3, cooperative(o), scratch(t), tight)
			require.Equal(t, got.ParamsXXH3, same(t, again, err).ParamsXXH3)
			for rank, r := range again {
				require.Equal(t, all[rank].History, r.History)
			}
		})
	}
}

// TestCooperativeWeighed: by LABOR-* each worker weighs its own nodes, and a note says so. Blocks
// that are sampled for evaluation are refused.
func TestCooperativeWeighed(t *testing.T) {
	ds, o := open(t, storetest.Communities(600, 4, 8, 16, 2)), cooperative(small())
	draws["labor-star nested"](&o)
	o.Eval = "full"
	var notes []string
	all, err := byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
		if w.rank == 0 {
			w.hooks.Note = func(s string) { notes = append(notes, s) }
		}
	})
	got := same(t, all, err)
	require.Contains(t, strings.Join(notes, "\n"), "labor-star")
	alone := o
	alone.Parallel = ""
	require.InDelta(t, trained(t, ds, alone).Losses[0], got.Losses[0], 0.1)
	all, err = byWorkersOf(t, inParts(t, ds, 3), 3, o, scratch(t), nil)
	require.Equal(t, got.ParamsXXH3, same(t, all, err).ParamsXXH3)
	o.Eval = "sampled"
	_, err = byWorkers(t, ds, 3, o, scratch(t), nil)
	require.ErrorContains(t, err, "take {eval} full")
}

// TestCooperativeHalves: hidden rows in float16 change results a little, and take fewer bytes.
func TestCooperativeHalves(t *testing.T) {
	ds, o := open(t, storetest.Communities(600, 4, 8, 16, 2)), cooperative(small())
	o.Epochs, o.Dropout, o.LR, o.Hidden = 2, 0, 1e-3, 64
	want := sameBy(t, ds, 3, o)
	o.HaloDtype = "f16"
	got := sameBy(t, ds, 3, o)
	require.NotEqual(t, want.ParamsXXH3, got.ParamsXXH3)
	require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-3)
	require.Less(t, sumOf(got.Workers.SentBytes), sumOf(want.Workers.SentBytes))
	o.Parallel, o.Dist = run.ByParts, "local:3"
	require.ErrorContains(t, o.Validate(), "{halo_dtype} f16: only with {parallel} cooperative")
}
