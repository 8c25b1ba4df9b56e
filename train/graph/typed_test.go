package graph

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

func openTyped(t *testing.T, s storetest.TypedSpec) *store.Dataset {
	ds, err := store.Open(storetest.BuildTyped(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return ds
}

// typed is small on a graph of several types.
func typed(kind model.Kind) run.Options {
	o := small()
	o.Kind, o.Heads = kind, 4
	return o
}

// TestTypedLearns: neighbours of all types tell the class where a paper's own features hardly do.
func TestTypedLearns(t *testing.T) {
	ds := openTyped(t, storetest.Library(800, 4, 1))
	alone := typed(model.MLP)
	alone.Epochs = 8
	least := *trained(t, ds, alone).Best.ValidAcc
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		o := typed(kind)
		o.Epochs = 8
		r := trained(t, ds, o)
		require.Greater(t, *r.Best.ValidAcc, least+0.15, "%s, and an MLP has %v", kind, least)
		require.Equal(t, "paper", r.Options.Target)
		var types []string
		sum := int64(0)
		for _, table := range r.Tables {
			types = append(types, table.Type)
			sum += table.InputRows
			require.Equal(t, table.InputRows*table.RowBytes,
				table.Tiers.Device.BytesOut+table.Tiers.Host.BytesOut+table.Tiers.Disk.BytesOut)
		}
		require.Equal(t, []string{"author", "paper", "venue", "reviewer"}[:len(types)], types, "no batch reads of a shop")
		require.Equal(t, r.InputRows, sum)
		require.Equal(t, []int{5, 3}, r.Relations[1].Fanout)
		require.Equal(t, []int{0, 3}, r.Relations[2].Fanout, "the last layer makes no authors")
		require.Equal(t, []int{0, 0}, r.Relations[5].Fanout, "no paper needs a shop")
	}
}

// TestTypedSameResults: budgets, policies, windows, engines and workers change nothing that a typed
// network computes.
func TestTypedSameResults(t *testing.T) {
	storetest.Long(t)
	ds := openTyped(t, storetest.Library(600, 3, 2))
	all := int64(600 * 32)
	n := 0
	for name, change := range map[string]func(o *run.Options){
		"ns":              func(*run.Options) {},
		"labor0 smoothed": func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed },
		"labor-star":      func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 3 },
		"fanouts": func(o *run.Options) {
			o.RelationFanouts = map[string][]int{"cites": {7, -1}, "author__writes__paper": {0, 4}}
		},
	} {
		for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
			if kind != model.RSAGE && name != "fanouts" {
				continue // the network has no part in what is drawn
			}
			o := typed(kind)
			o.Epochs = 2
			change(&o)
			want := trained(t, ds, o)
			for i, host := range []int64{0, 1 << 10, all / 5, all / 2, 1 << 30} {
				n++
				o := o
				o.Cache.HostBytes, o.Cache.Policy = host, policy.Kinds[n%len(policy.Kinds)]
				o.Cache.Engine, o.Window, o.Workers, o.Lookahead = disk.Kinds[1+n%3], []int{0, 1, 8}[n%3], 1+n%3, n%4
				if i%2 == 0 {
					o.TopologyBytes = 0
					_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
					require.ErrorContains(t, err, "topology")
					o.TopologyBytes = 12 << 10
				}
				sameWork(t, want, trained(t, ds, o), "%s, %s, %+v", kind, name, o)
			}
		}
	}
}

// TestTypedEvaluation: evaluation layer by layer gives the same as blocks of all neighbours.
func TestTypedEvaluation(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 3))
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT, model.MLP} {
		o := typed(kind)
		o.Layers, o.Fanouts, o.EvalTest = 3, []int{-1, -1, -1}, "epoch"
		o.RelationFanouts = map[string][]int{"cites": {-1, 0, -1}}
		full := trained(t, ds, o)
		o.EvalBytes = 0
		sampled := trained(t, ds, o)
		require.Equal(t, "full", full.Evaluation.Method)
		if kind != model.MLP { // its rows take nothing
			require.Equal(t, "sampled", sampled.Evaluation.Method)
		}
		require.Equal(t, full.ParamsXXH3, sampled.ParamsXXH3)
		for i := range full.Epochs {
			require.InDelta(t, *full.Epochs[i].ValidAcc, *sampled.Epochs[i].ValidAcc, 0.0126, "%s: one node of 80 at a tie", kind)
			require.InDelta(t, *full.Epochs[i].TestAcc, *sampled.Epochs[i].TestAcc, 0.0126, kind)
		}
	}
}

// TestTypedResume: at any step, with the counters of each table.
func TestTypedResume(t *testing.T) {
	ds := openTyped(t, storetest.Library(600, 3, 2))
	o := typed(model.RSAGE)
	o.Epochs, o.Cache.HostBytes = 4, 4000
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
	require.NoError(t, err)
	sameWork(t, want, got)
	for i := range want.Tables {
		require.Equal(t, want.Tables[i].InputRows, got.Tables[i].InputRows)
	}
	o.Inputs = map[string]string{"venue": data.Constant}
	_, err = runOn(context.Background(), half(t, ds, typed(model.RSAGE)), ds, o, run.Hooks{})
	require.ErrorContains(t, err, "{input} is ")
}

// TestTypedRefuses: the refusal of what cannot be trained names an alternative.
func TestTypedRefuses(t *testing.T) {
	spec := storetest.Library(200, 3, 2)
	ds := openTyped(t, spec)
	spec.Target = "author"
	spec.Train, spec.Valid, spec.Test = []store.NodeID{1}, nil, nil
	for want, change := range map[string]func(o *run.Options){
		"5 node types and 6 relations, and {model} sage is for one of each; take {model} ": func(o *run.Options) { o.Kind = model.SAGE },
		"{target} editor: there are the node types author, paper, shop, venue, reviewer":   func(o *run.Options) { o.Target = "editor" },
		"{target} venue: its nodes have no labels, so nothing to learn":                    func(o *run.Options) { o.Target = "venue" },
		"no relation likes; {relation} takes one of: author__writes__paper, ":              func(o *run.Options) { o.Relation = "likes" },
		"{fanout} likes: no relation of that name; there are author__writes__paper, ":      func(o *run.Options) { o.RelationFanouts = map[string][]int{"likes": {1, 1}} },
		"{fanout} cites has 1 numbers and {layers} is 2: one a layer":                      func(o *run.Options) { o.RelationFanouts = map[string][]int{"cites": {1}} },
		"{fanout} cites -2: at least 0, or -1 for every neighbour":                         func(o *run.Options) { o.RelationFanouts = map[string][]int{"cites": {1, -2}} },
		"{input} editor=table: no node type editor; there are author, ":                    func(o *run.Options) { o.Inputs = map[string]string{"editor": "table"} },
		"{input} author=table: type author has no such table":                              func(o *run.Options) { o.Inputs = map[string]string{"author": "table"} },
		"{input} paper=table:x: type paper has no such table":                              func(o *run.Options) { o.Inputs = map[string]string{"paper": "table:x"} },
		"{input} paper=big: there are table, table:NAME, embed:D and constant":             func(o *run.Options) { o.Inputs = map[string]string{"paper": "big"} },
		"{sampler} rw needs one relation within a type":                                    func(o *run.Options) { o.Sampler = sample.RW },
		"{fanout} -1: {sampler} rw needs a number of neighbours": func(o *run.Options) {
			o.Sampler, o.Relation, o.Kind, o.RelationFanouts = sample.RW, "cites", model.SAGE, map[string][]int{"cites": {-1, 2}}
		},
		"{topology_bytes} 2 KiB: the offsets of all relations that are drawn from take ": func(o *run.Options) { o.TopologyBytes = 2 << 10 },
		"{input} paper=:feat: there are table, table:NAME, embed:D and constant":         func(o *run.Options) { o.Inputs = map[string]string{"paper": ":feat"} },
		"{weighted}: the edges of relation ":                                             func(o *run.Options) { o.Weighted = true },
	} {
		o := typed(model.RSAGE)
		change(&o)
		_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
		require.ErrorContains(t, err, want)
	}
}

// TestOneRelation: a network for one type trains on one relation of a typed graph.
func TestOneRelation(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 3))
	o := small()
	o.Relation = "cites"
	r := trained(t, ds, o)
	require.Equal(t, run.Done, r.Status)
	require.Empty(t, r.Tables)
	o.Relation = "prints"
	_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "2 node types and 1 relations")
}

// TestTypedWeights: relations without weights draw as if all edges weighed the same.
func TestTypedWeights(t *testing.T) {
	spec := storetest.Library(400, 3, 3)
	spec.Relations[1].Weight = func(v, i int) float32 { return float32(1 + (v+i)%3) }
	ds := openTyped(t, spec)
	o := typed(model.RSAGE)
	o.Weighted = true
	want := trained(t, ds, o)
	o.TopologyBytes, o.Cache.HostBytes, o.Workers = 12<<10, 2000, 1
	sameWork(t, want, trained(t, ds, o))
	o.RelationFanouts = map[string][]int{"cites": {0, 0}} // then none that is drawn from has any
	_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "have no column weight")

	spec.Relations[5].Weight = spec.Relations[1].Weight // of edges that no batch reaches
	o.RelationFanouts = nil
	require.Equal(t, want.ParamsXXH3, trained(t, openTyped(t, spec), o).ParamsXXH3)
}

// TestConstantInput: a graph of one type without features learns a row for all, and says so.
func TestConstantInput(t *testing.T) {
	for _, weighted := range []bool{false, true} {
		spec := storetest.Communities(300, 3, 8, 16, 2)
		if weighted {
			spec.Weight = func(v, i int) float32 { return float32(1 + i%2) }
		}
		ds := open(t, spec)
		for _, kind := range []model.Kind{model.SAGE, model.GAT, model.RSAGE} {
			o := small()
			o.Kind, o.Weighted, o.Inputs = kind, weighted, map[string]string{"node": data.Constant}
			var notes []string
			r, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
			require.NoError(t, err)
			require.Zero(t, r.InputRows)
			require.Contains(t, notes, "type node has no features: all of its nodes have one learnt row for input")
		}
	}
}

// TestUnreachedIsNotRead: relations that no batch draws from may be damaged.
func TestUnreachedIsNotRead(t *testing.T) {
	path := storetest.BuildTyped(t, storetest.Library(300, 3, 3))
	storetest.Forge(t, path, "topo/paper__cites__paper/neighbors.u32", store.PageSize, bytes.Repeat([]byte{255}, 400))
	ds, err := store.Open(path)
	require.NoError(t, err)
	defer ds.Close()
	trained(t, ds, typed(model.MLP))
	o := typed(model.RSAGE)
	_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorIs(t, err, store.ErrCorrupt)
	o.RelationFanouts = map[string][]int{"cites": {0, 0}}
	trained(t, ds, o)
}

// TestTypedPlan: a plan has the reads of each table.
func TestTypedPlan(t *testing.T) {
	ds := openTyped(t, storetest.Library(600, 3, 2))
	o := typed(model.RSAGE)
	o.Cache.HostBytes = 4000
	p, err := MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
	sum := 0.0
	for _, table := range p.Tables {
		sum += table.InputRows
	}
	require.Len(t, p.Tables, 3)
	require.Equal(t, "author", p.Tables[0].Type)
	require.Greater(t, p.Tables[0].FeatureBytes, p.Tables[0].ColdRows*4*3*16, "learnt rows of 16 columns and two moments")
	require.InDelta(t, p.InputRows, sum, 1e-9)
}

// TestTypedWeightsOfFiles: the weights file has the names of PyTorch Geometric's modules, for what
// a layer knows alone.
func TestTypedWeightsOfFiles(t *testing.T) {
	ds := openTyped(t, storetest.Library(200, 3, 2))
	o := typed(model.RSAGE)
	o.Inputs = map[string]string{"author": data.Constant}
	m := opened(t, ds, o)
	names := map[string]bool{}
	for _, p := range m.model.Params {
		names[p.Name] = true
	}
	all := slices.Sorted(maps.Keys(names))
	require.Contains(t, all, "inputs.author.row")
	require.Contains(t, all, "convs.0.<paper___written_by___author>.lin_l.weight")
	require.NotContains(t, all, "convs.1.<paper___written_by___author>.lin_l.weight")
	require.NotContains(t, all, "convs.0.<paper___sold_by___shop>.lin_l.weight")
	require.Len(t, m.model.Params, len(names), "no name twice")
}
