package graph

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

func edgeOptions() run.Options {
	o := small()
	o.Task, o.EdgeLabel, o.Batch = run.EdgeTask, "rating:sign", 256
	return o
}

// TestEdgeClassesAreLearnt: from rows, by either decoder and each metric; and from the ratings of
// other edges.
func TestEdgeClassesAreLearnt(t *testing.T) {
	rows, ratings := openTyped(t, storetest.Trust(400, true, false)), openTyped(t, storetest.Trust(400, false, true))
	for i, c := range []struct {
		ds     *store.Dataset
		change func(o *run.Options)
		least  float64
	}{
		{rows, func(*run.Options) {}, 0.8},
		{rows, func(o *run.Options) { o.Decoder, o.Metric = model.Linear, metric.ROCAUC }, 0.9},
		{rows, func(o *run.Options) { o.EdgeLabel, o.Metric, o.ClassWeights = "rating", metric.MacroF1, "balanced" }, 0.5},
		{rows, func(o *run.Options) { o.EvalBytes, o.Metric = 0, metric.MicroF1 }, 0.8},
		{rows, func(o *run.Options) { o.Kind = model.MLP }, 0.8},
		{ratings, func(o *run.Options) {
			o.Kind, o.EdgeInputs, o.Metric = model.RSAGE, map[string][]string{"rates": {"rating"}, "rev_rates": {"rating"}}, metric.ROCAUC
		}, 0.8},
	} {
		o := edgeOptions()
		o.Epochs, o.Dropout = 15, 0.2
		c.change(&o)
		r := trained(t, c.ds, o)
		require.Equal(t, run.Done, r.Status)
		require.Greater(t, *r.Best.TestAcc, c.least, i)
		require.Less(t, r.Losses[14], r.Losses[0])
		require.Equal(t, "user,rates,user", r.Options.Target)
		require.Equal(t, string(r.Options.Decoder), r.Edges.Decoder)
		require.Equal(t, r.Options.EdgeLabel, r.Edges.Label)
		require.InDelta(t, *r.Best.TestAcc, r.Epochs[14].TrainAcc, 0.25)
	}
	o := edgeOptions()
	o.Epochs, o.Kind, o.Metric = 15, model.RSAGE, metric.ROCAUC
	require.Less(t, *trained(t, ratings, o).Best.TestAcc, 0.65, "without ratings to read there is nothing to learn from")
}

// TestEdgeNumbersAreLearnt: ratings as numbers, much better than by their mean, and the best epoch
// has the least error.
func TestEdgeNumbersAreLearnt(t *testing.T) {
	ds := openTyped(t, storetest.Trust(400, true, false))
	column, mean, spread := ds.Graph(0).Column("rating"), 0.0, 0.0
	h, _ := ds.HeldEdges(0, store.HeldTest)
	for e := range ds.Graph(0).Edges() {
		mean += column.At(e) / float64(ds.Graph(0).Edges())
	}
	for i := range h.Len() {
		off := column.Number(h.Column("rating"), i) - mean
		spread += off * off / float64(h.Len())
	}
	for _, kind := range metric.NumberKinds {
		o := edgeOptions()
		o.EdgeLabel, o.Epochs, o.Dropout, o.Metric, o.EvalTest = "rating:value", 15, 0.2, kind, "epoch"
		r := trained(t, ds, o)
		require.Less(t, *r.Best.TestAcc, 0.7*math.Sqrt(spread), kind)
		for _, e := range r.Epochs {
			require.GreaterOrEqual(t, *e.ValidAcc, *r.Best.ValidAcc)
		}
		require.Less(t, *r.Best.ValidAcc, *r.Epochs[0].ValidAcc)
		require.InDelta(t, *r.Best.TestAcc, r.Epochs[14].TrainAcc, 0.4)
		if kind == metric.RMSE {
			require.InDelta(t, math.Sqrt(r.Losses[14]), r.Epochs[14].TrainAcc, 1e-6)
		}
		require.Nil(t, r.Edges.Classes)
	}
	o := edgeOptions()
	o.EdgeLabel, o.Metric = "rating:value", metric.Accuracy
	refused(t, ds, o, "{metric} accuracy: of {task} edge with {edge_label} rating:value there are rmse and mae")
	o.Metric, o.ClassWeights = "", "balanced"
	refused(t, ds, o, "{class_weights} balanced: numbers are learnt, which have no classes")
	o = edgeOptions()
	o.Metric = metric.RMSE
	refused(t, ds, o, "{metric} rmse: of {task} edge with {edge_label} rating:sign there are accuracy")
}

// TestLargeNumbersAreNoted: nothing normalises what is learnt.
func TestLargeNumbersAreNoted(t *testing.T) {
	spec := storetest.Trust(100, true, false)
	spec.Relations[0].Columns[1].Value = func(v, i int) float64 { return -1e6 }
	o := edgeOptions()
	o.EdgeLabel, o.Epochs = "time:value", 1
	var notes []string
	_, err := Run(context.Background(), openTyped(t, spec), scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes, "column time, which is learnt, has values like 1e+06, and nothing normalises them: the loss is of their squares; ingest smaller ones")
}

// TestEdgesDoNotTellThemselves: ratings by lot, which messages along the edges would tell, are not
// learnt where a step's own edges are left out; the decoder is not given what is learnt. With them
// left in, it is refused.
func TestEdgesDoNotTellThemselves(t *testing.T) {
	spec := storetest.Trust(300, false, true)
	for i := range spec.Relations {
		r := &spec.Relations[i]
		rated := func(u, v store.NodeID) float64 { return float64(sample.Hash(3, uint64(u), uint64(v))%2)*2 - 1 }
		lists := r.Neighbors
		r.Columns[0].Value = func(v, j int) float64 {
			if i == 1 {
				return rated(store.NodeID(v), lists[v][j])
			}
			return rated(lists[v][j], store.NodeID(v))
		}
	}
	ds := openTyped(t, spec)
	o := edgeOptions()
	o.Kind, o.Layers, o.Fanouts, o.Epochs, o.Dropout, o.EvalEvery, o.Hidden = model.RSAGE, 1, []int{sample.All}, 8, 0, 8, 8
	o.EdgeInputs = map[string][]string{"rates": {"rating", "time"}, "rev_rates": {"rating"}}
	require.Less(t, trained(t, ds, o).Epochs[7].TrainAcc, 0.6)
	o.KeepTargets = true
	refused(t, ds, o, "{keep_targets}: {edge_input} user__rates__user=rating is what is learnt, and messages along a step's own edges would tell it")
	o.EdgeInputs = map[string][]string{"rev_rates": {"rating"}}
	refused(t, ds, o, "{keep_targets}: {edge_input} user__rev_rates__user=rating is what is learnt")
	o.EdgeInputs = nil
	require.NotEqual(t, trained(t, ds, o).ParamsXXH3, func() string { o.KeepTargets = false; return trained(t, ds, o).ParamsXXH3 }())
}

// TestEdgeClassesAreTheSame under any setting of the tiers, and after a resume at any step.
func TestEdgeClassesAreTheSame(t *testing.T) {
	storetest.Long(t)
	ds := openTyped(t, storetest.Trust(400, true, true))
	for i, sampler := range []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar} {
		o := edgeOptions()
		o.Kind, o.Epochs, o.EvalEvery, o.CheckpointEvery, o.Sampler, o.Decoder = model.RSAGE, 3, 2, 3, sampler, model.EdgeDecoders[i%2]
		if i > 0 {
			o.EdgeInputs = map[string][]string{"rates": {"time", "rating"}, "rev_rates": {"rating"}}
		}
		if i == 2 {
			o.EdgeLabel = "rating:value"
		}
		if i == 1 {
			o.Inputs, o.ClassWeights = map[string]string{"user": "embed:8"}, "balanced"
		}
		want := trained(t, ds, o)
		c := o
		cold := outOfCore(ds, disk.Kinds[1+i%(len(disk.Kinds)-1)])
		c.Cache, c.TopologyBytes = cold.Cache, 2*cold.TopologyBytes
		c.Cache.Policy, c.Window, c.Workers, c.Lookahead = policy.Kinds[i%len(policy.Kinds)], []int{1, 0, 8}[i], 1+i*3, i
		sameWork(t, want, trained(t, ds, c), sampler)
		again := half(t, ds, o)
		o.Workers = 5
		got, err := runOn(context.Background(), again, ds, o, run.Hooks{})
		require.NoError(t, err)
		sameRun(t, want, got)
	}
	p, err := MakePlan(context.Background(), ds, edgeOptionsOf(model.RSAGE))
	require.NoError(t, err)
	require.EqualValues(t, (ds.Graph(0).Edges()+255)/256, p.Steps)
}

func edgeOptionsOf(kind model.Kind) run.Options {
	o := edgeOptions()
	o.Kind = kind
	return o
}

// TestEdgesAreMeasuredAgain: eval finds what the run reported, in memory and with hidden rows on
// disk, by another metric too; and refuses what it has no edges for.
func TestEdgesAreMeasuredAgain(t *testing.T) {
	ds, path := openTyped(t, storetest.Trust(300, true, true)), t.TempDir()
	o := edgeOptionsOf(model.RSAGE)
	o.Epochs = 3
	r, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{})
	require.NoError(t, err)
	dir, err := run.Look(path)
	require.NoError(t, err)
	n, err := OpenNetwork(context.Background(), ds, dir, NetworkOptions{}, run.Hooks{})
	require.NoError(t, err)
	defer n.Close()
	require.True(t, n.Edges())
	for part, want := range map[string]*float64{"valid": r.Best.ValidAcc, "test": r.Best.TestAcc} {
		m, err := n.Measure(context.Background(), part)
		require.NoError(t, err)
		require.Equal(t, *want, *m.Value)
		require.Equal(t, map[string]int{"valid": r.Edges.Valid, "test": r.Edges.Test}[part], m.Count)
	}
	m, err := n.Measure(context.Background(), "train")
	require.NoError(t, err)
	require.Nil(t, m.Value)
	require.Equal(t, "messages along edges that were trained on would tell them", m.Why)
	_, err = n.Measure(context.Background(), "all-labelled")
	require.EqualError(t, err, "{nodes} all-labelled: edges are measured where they are held out, in the parts valid and test")
	layer, err := n.Layer(Embeddings, DefaultLayer)
	require.NoError(t, err)
	require.Equal(t, o.Layers, layer)
}

// TestEdgeClassesOfNothing: what cannot be learnt or measured is refused, by what the user can
// change, before there is a run.
func TestEdgeClassesOfNothing(t *testing.T) {
	ds := openTyped(t, storetest.Trust(100, true, false))
	for want, change := range map[string]func(o *run.Options){
		"{task} edge: say by {edge_label} which column of the edges is learnt":                                              func(o *run.Options) { o.EdgeLabel = "" },
		"{edge_label} rating: it goes with {task} edge":                                                                     func(o *run.Options) { o.Task, o.EdgeLabel = "", "rating" },
		"{edge_label} stars: the edges of relation user__rates__user have no column stars to learn; there are rating, time": func(o *run.Options) { o.EdgeLabel = "stars" },
		"{edge_label} rating:signs: write COLUMN":                                                                           func(o *run.Options) { o.EdgeLabel = "rating:signs" },
		"all 640 edges of relation user__rates__user that are trained on have not negative values":                          func(o *run.Options) { o.EdgeLabel = "time:sign" },
		"{metric} mrr: of {task} edge with {edge_label} rating:sign there are accuracy, micro-f1, macro-f1 and roc-auc":     func(o *run.Options) { o.Metric = metric.MRR },
		"the label has 5 classes; with one class a node it wants two":                                                       func(o *run.Options) { o.EdgeLabel, o.Metric = "rating", metric.ROCAUC },
		"{decoder} dot: of {task} edge there are mlp and linear":                                                            func(o *run.Options) { o.Decoder = model.Dot },
		"{decoder} linear: it is of {task} edge":                                                                            func(o *run.Options) { o.Task, o.EdgeLabel, o.Decoder = run.LinkTask, "", model.Linear },
		"{negatives} uniform:1: it goes with {task} link":                                                                   func(o *run.Options) { o.Negatives = "uniform:1" },
		"{class_weights} 1,2,3: 3 numbers for 2 classes":                                                                    func(o *run.Options) { o.ClassWeights = "1,2,3" },
		"{label_input} 4: labels are of {task} node":                                                                        func(o *run.Options) { o.LabelInput = 4 },
		"{split} given: edges are split when":                                                                               func(o *run.Options) { o.Split = "given" },
		"{sampler} rw: walks pass along the edges":                                                                          func(o *run.Options) { o.Sampler = sample.RW },
	} {
		o := edgeOptions()
		change(&o)
		refused(t, ds, o, want)
	}
	spec := storetest.Trust(100, true, false)
	spec.Relations[0].EdgeSplit = nil
	refused(t, openTyped(t, spec), edgeOptions(), "ingest it again with {edge_split}")
	spec.Relations[0].EdgeSplit = &storetest.EdgeSplit{}
	refused(t, openTyped(t, spec), edgeOptions(), "the edge split of relation user__rates__user holds no edges out, so there is nothing to measure by")
	spec.Relations[0].EdgeSplit = &storetest.EdgeSplit{Valid: storetest.HeldEdges{Src: []store.NodeID{1}, Dst: []store.NodeID{2}}}
	refused(t, openTyped(t, spec), edgeOptions(), "the valid edges of relation user__rates__user have no column rating, though the others do")
	many := storetest.Trust(300, true, false)
	many.Relations[0].Columns[1].Value = func(v, i int) float64 { return float64(v) + float64(i)/16 }
	o := edgeOptions()
	o.EdgeLabel = "time"
	refused(t, openTyped(t, many), o, "{edge_label} time: column time of relation user__rates__user has more than 1000 different values, which are no classes; "+
		"take time:value")
}
