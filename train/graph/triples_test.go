package graph

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// clock is nodes in a circle without features, and relations to the node so many places on: what
// complex numbers can say, and a product that knows no direction cannot. Every eighth link is held
// out.
func clock(nodes int, places ...int) storetest.TypedSpec {
	spec := storetest.TypedSpec{
		Types:  []storetest.TypedNodes{{Name: "hour", Nodes: nodes}},
		Target: "hour", Classes: 1, Class: func(int) int32 { return 0 },
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for n, on := range places {
		lists := make([][]store.NodeID, nodes)
		var held [2]storetest.HeldEdges
		for u := range nodes {
			src, dst := store.NodeID(u), store.NodeID((u+on)%nodes)
			if p := rng.IntN(16); p < 2 {
				held[p].Src, held[p].Dst = append(held[p].Src, src), append(held[p].Dst, dst)
			} else {
				lists[dst] = append(lists[dst], src)
			}
		}
		for _, l := range lists {
			slices.Sort(l)
		}
		spec.Relations = append(spec.Relations, storetest.TypedRelation{
			Src: "hour", Name: string(rune('a' + n)), Dst: "hour", Neighbors: lists, EdgeSplit: &storetest.EdgeSplit{Valid: held[0], Test: held[1]},
		})
	}
	return spec
}

func tripleOptions() run.Options {
	o := linkOptions()
	o.Metric = "" // the default, MRR
	o.Layers, o.Fanouts, o.Inputs = 0, nil, map[string]string{"hour": "embed:16"}
	o.Decoder, o.Negatives, o.Corrupt, o.Epochs, o.LR, o.Batch, o.EvalEvery = model.ComplEx, "all", "both", 40, 0.05, 64, 20
	return o
}

// TestTriplesAreLearnt: links of several relations are learnt together from rows as they are, by
// all negatives and by some.
func TestTriplesAreLearnt(t *testing.T) {
	ds := openTyped(t, clock(120, 1, 2, 3, 4))
	for _, change := range []func(o *run.Options){
		func(*run.Options) {},
		func(o *run.Options) { o.N3, o.InputDropout, o.Metric = 0.01, 0.1, metric.Hits(3) },
		func(o *run.Options) { o.Negatives, o.Loss = "shared:40", "ce" },
		func(o *run.Options) { o.Reciprocal, o.N3 = true, 0.01 },
		func(o *run.Options) {
			o.Decoder, o.Negatives, o.Loss, o.Adversarial, o.Margin = model.RotatE, "shared:40", "bce", 1, 4
			o.Reciprocal = true
		},
		func(o *run.Options) {
			o.Decoder, o.Negatives, o.Loss, o.Adversarial, o.Margin = model.TransE, "uniform:10", "bce", 1, 4
		},
	} {
		o := tripleOptions()
		change(&o)
		r := trained(t, ds, o)
		least := 0.5
		if o.Decoder == model.TransE {
			least = 0.15 // a translation does not come back to where it began; chance is 0.04
		}
		require.Greater(t, *r.Best.TestAcc, least, "%+v", o.LinkOptions)
		require.Less(t, r.Losses[39], r.Losses[0])
		require.Equal(t, "all", r.Links.EvalNegatives)
		require.Equal(t, "hour__a__hour, hour__b__hour, hour__c__hour, hour__d__hour", r.Links.Relation)
		require.EqualValues(t, 480, r.Links.Train+int64(r.Links.Valid+r.Links.Test))
		require.Empty(t, r.Options.Target)
	}
	o := tripleOptions() // one of them
	o.Target, o.Decoder, o.Negatives, o.Loss, o.Metric, o.EvalNegatives, o.Epochs = "b", model.Dot, "uniform:2", "", metric.ROCAUC, "pairs:1", 3
	r := trained(t, ds, o)
	require.Equal(t, "hour__b__hour", r.Links.Relation)
}

// TestTriplesWithoutFeatures: nodes without features have learnt rows unless told, so that links
// are learnt with no more flags.
func TestTriplesWithoutFeatures(t *testing.T) {
	o := tripleOptions()
	o.Inputs, o.Epochs = nil, 1
	trained(t, openTyped(t, clock(60, 1, 2)), o)
}

// TestTriplesAreTheSame: whoever draws and however far ahead, and when the run is resumed.
func TestTriplesAreTheSame(t *testing.T) {
	ds := openTyped(t, clock(120, 1, 2))
	o := tripleOptions()
	o.Epochs, o.InputDropout = 6, 0.2
	want := trained(t, ds, o)
	o.Workers, o.Window = 1, 1
	got := trained(t, ds, o)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
	require.Equal(t, want.Losses, got.Losses)
	require.Equal(t, want.Best, got.Best)
	for _, change := range []func(o *run.Options){
		func(o *run.Options) { o.Loss = "ce" },
		func(o *run.Options) { o.Decoder, o.Loss, o.Adversarial = model.RotatE, "bce", 0.5 },
		func(o *run.Options) { o.Decoder, o.Loss, o.Adversarial = model.TransE, "bce", 0.5 },
		func(o *run.Options) { o.Decoder, o.Loss, o.Reciprocal = model.RotatE, "ce", true },
	} {
		o := o
		o.Negatives, o.Workers, o.Window = "shared:30", 2, 0 // steps have a metric then, so that epochs compare
		change(&o)
		want = trained(t, ds, o)
		again := half(t, ds, o)
		resumed, err := runOn(context.Background(), again, ds, o, run.Hooks{})
		require.NoError(t, err)
		sameRun(t, want, resumed)
		o.Workers, o.Window, o.Cache.HostBytes, o.Cache.Engine = 1, 1, 9000, "pread"
		tight := trained(t, ds, o)
		require.Equal(t, want.ParamsXXH3, tight.ParamsXXH3, "%s", o.Decoder)
		require.Equal(t, want.Losses, tight.Losses)
		require.Equal(t, want.Best, tight.Best)
	}
}

// TestTriplesOfNothing: each is refused in one line that names a remedy.
func TestTriplesOfNothing(t *testing.T) {
	ds := openTyped(t, clock(40, 1, 2))
	for want, change := range map[string]func(o *run.Options){
		"{layers} 0: rows as they are say nothing of classes": func(o *run.Options) { *o = small(); o.Layers, o.Fanouts = 0, nil },
		"{layers} 0 scores the rows of nodes, and those of type hour have none of their own": func(o *run.Options) {
			o.Inputs = map[string]string{"hour": "constant"}
		},
		"{decoder} complex: rows of 15 columns have no two halves": func(o *run.Options) { o.Inputs = map[string]string{"hour": "embed:15"} },
		"{decoder} rotate: rows of 15 columns have no two halves": func(o *run.Options) {
			o.Inputs, o.Decoder, o.Negatives, o.Loss = map[string]string{"hour": "embed:15"}, model.RotatE, "shared:9", "bce"
		},
		"{negatives} all: {decoder} transe scores by distances": func(o *run.Options) { o.Decoder = model.TransE },
		"{margin} -1: above 0 and below 1e6":                    func(o *run.Options) { o.Margin = -1 },
		"{margin} 3: it goes with {decoder} transe or rotate":   func(o *run.Options) { o.Margin = 3 },
		"{adversarial} -1: at least 0":                          func(o *run.Options) { o.Adversarial = -1 },
		"{adversarial} 1: it weighs negatives of {loss} bce":    func(o *run.Options) { o.Adversarial = 1 },
		"{reciprocal}: the second vectors of relations predict sources": func(o *run.Options) {
			o.Reciprocal, o.Corrupt = true, "dst"
		},
		"{negatives} all: each positive is one among all nodes": func(o *run.Options) { o.Loss = "bce" },
		"{n3} -1: at least 0": func(o *run.Options) { o.N3 = -1 },
		"{decoder} dot knows one relation, and the links of 2": func(o *run.Options) { o.Decoder = model.Dot },
		"of ranks there are mrr and hits@K":                    func(o *run.Options) { o.Metric = metric.AP },
		"{memory_bytes}":                                       func(o *run.Options) { o.MemoryBytes = 1 << 20 },
		"with {layers} above 0 a run learns the links of one relation, and the edges of hour,a,hour and hour,b,hour are split": func(o *run.Options) {
			o.Layers, o.Fanouts, o.Kind, o.Negatives = 1, []int{3}, model.RSAGE, "uniform:1"
		},
	} {
		o := tripleOptions()
		change(&o)
		refused(t, ds, o, want)
	}
	one := tripleOptions()
	one.Layers, one.Fanouts, one.Kind, one.Target, one.Loss = 1, []int{3}, model.RSAGE, "a", "ce"
	refused(t, ds, one, "{negatives} all: every step would draw the neighbours of all nodes")
}

// TestManyRelations: a batch of triples, and a step, take as much memory with 2,000 relations as
// with 2, but for the parameters of relations.
func TestManyRelations(t *testing.T) {
	const nodes = 40
	planned := func(relations int) (batches, step int64) {
		spec := storetest.TypedSpec{Types: []storetest.TypedNodes{{Name: "hour", Nodes: nodes}}, Shared: true}
		for i := range store.NodeID(relations) {
			lists := make([][]store.NodeID, nodes)
			for v := i % 2; v < nodes; v += store.NodeID(max(2, relations/40)) {
				lists[v] = []store.NodeID{(v + i) % nodes}
			}
			held := func(dst store.NodeID) storetest.HeldEdges {
				return storetest.HeldEdges{Src: []store.NodeID{i % nodes}, Dst: []store.NodeID{dst}}
			}
			spec.Relations = append(spec.Relations, storetest.TypedRelation{
				Src: "hour", Name: fmt.Sprint("r", i), Dst: "hour", Neighbors: lists, EdgeSplit: &storetest.EdgeSplit{Valid: held(0), Test: held(1)},
			})
		}
		o := tripleOptions()
		o.Epochs, o.EpochSteps, o.EvalEdges, o.Batch = 1, 4, 10, 10
		r := trained(t, openTyped(t, spec), o)
		for _, p := range r.Memory.Parts {
			switch p.Name {
			case "batches":
				batches = p.Bytes
			case "step":
				step = p.Bytes
			}
		}
		return batches, step
	}
	few, ofFew := planned(2)
	many, ofMany := planned(2000)
	parameters := int64(2000 * 16 * 4)
	require.Positive(t, few)
	require.LessOrEqual(t, many, 2*few)
	require.LessOrEqual(t, ofMany, ofFew+4*parameters)
}
