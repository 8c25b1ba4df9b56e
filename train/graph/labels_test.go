package graph

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// noise is rows that tell nothing.
func noise(dim int) func(v int) []float32 {
	return func(v int) []float32 {
		rng, row := rand.New(rand.NewPCG(1, uint64(v))), make([]float32, dim)
		for c := range row {
			row[c] = float32(rng.NormFloat64())
		}
		return row
	}
}

// plainLibrary is storetest.Library with features that carry no information, of papers and of
// venues.
func plainLibrary(papers int) storetest.TypedSpec {
	spec := storetest.Library(papers, 4, 1)
	for i := range spec.Types {
		if t := &spec.Types[i]; t.Dim > 0 {
			t.Row = noise(t.Dim)
		}
	}
	return spec
}

// TestLabelInputTells: where features tell nothing, the labels of neighbours do; the training
// accuracy is of labels that are hidden.
func TestLabelInputTells(t *testing.T) {
	spec := storetest.Communities(1200, 4, 10, 8, 1)
	spec.Row = noise(8)
	ds, typedDS := open(t, spec), openTyped(t, plainLibrary(800))
	for _, kind := range []model.Kind{model.SAGE, model.GCN, model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		o, ds := typed(kind), ds
		if kind.Typed() {
			ds, o.Inputs = typedDS, map[string]string{"author": data.Constant} // learnt rows would tell authors apart
		}
		o.Epochs, o.LabelInput = 8, 8
		with := trained(t, ds, o)
		o.LabelInput = 0
		without := trained(t, ds, o)
		require.Greater(t, *with.Best.TestAcc, *without.Best.TestAcc+0.25, kind)
		require.InDelta(t, *with.Epochs[7].ValidAcc, with.Epochs[7].TrainAcc, 0.15, kind)
	}
}

// TestLabelInputSameResults: workers, budgets and windows change nothing, and a run that is resumed
// ends as it would have.
func TestLabelInputSameResults(t *testing.T) {
	storetest.Long(t)
	typedDS, ds := openTyped(t, storetest.Library(600, 3, 2)), open(t, storetest.Communities(600, 4, 8, 16, 2))
	for _, kind := range []model.Kind{model.SAGE, model.RSAGE, model.RGCN, model.HGT} {
		o, ds := typed(kind), ds
		if kind.Typed() {
			ds = typedDS
		}
		o.Epochs, o.LabelInput, o.CheckpointEvery = 3, 6, 2
		switch kind {
		case model.RGCN:
			o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed
		case model.HGT:
			o.Sampler = sample.LaborStar
		}
		want := trained(t, ds, o)
		for i, host := range []int64{0, 3000, 1 << 30} {
			o := o
			o.Cache.HostBytes, o.Workers, o.Window = host, 1+i%2, i*3
			sameWork(t, want, trained(t, ds, o), "%s, %+v", kind, o)
		}
		got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
		require.NoError(t, err)
		sameWork(t, want, got, kind)
		stopped := half(t, ds, o)
		o.LabelInput = 7
		_, err = runOn(context.Background(), stopped, ds, o, run.Hooks{})
		require.ErrorContains(t, err, "{label_input} is 7 and the run's is 6")
	}
}

// TestLabelInputEvaluation: evaluation layer by layer over all neighbours gives the same as blocks
// of all neighbours.
func TestLabelInputEvaluation(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 3))
	for _, kind := range []model.Kind{model.RSAGE, model.RGAT} {
		o := typed(kind)
		o.Fanouts, o.EvalTest, o.LabelInput = []int{-1, -1}, "epoch", 8
		full := trained(t, ds, o)
		o.EvalBytes = 0
		sampled := trained(t, ds, o)
		require.Equal(t, "full", full.Evaluation.Method)
		require.Equal(t, "sampled", sampled.Evaluation.Method)
		require.Equal(t, full.ParamsXXH3, sampled.ParamsXXH3)
		for i := range full.Epochs {
			require.InDelta(t, *full.Epochs[i].ValidAcc, *sampled.Epochs[i].ValidAcc, 0.0126, "%s: one node of 80 at a tie", kind)
			require.InDelta(t, *full.Epochs[i].TestAcc, *sampled.Epochs[i].TestAcc, 0.0126, kind)
		}
	}
}

// TestLabelInputOfSeveralClasses: a node shows all of its classes.
func TestLabelInputOfSeveralClasses(t *testing.T) {
	spec := several(1200)
	spec.Row = noise(16)
	ds := open(t, spec)
	o := small()
	o.Epochs, o.LabelInput = 10, 8
	with := trained(t, ds, o)
	o.LabelInput = 0
	require.Greater(t, *with.Best.TestAcc, *trained(t, ds, o).Best.TestAcc+0.15)
}

// TestLabelInputTakesMemory: tables and lists of labels count against the budget of a run.
func TestLabelInputTakesMemory(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	without := opened(t, ds, o)
	o.LabelInput = 1 << 12
	with := opened(t, ds, o)
	more := int64(4+2*o.Hidden) * 1 << 12 // numbers in the table, Z_0 and Z of the one relation
	require.Equal(t, 28*more+with.labels.Bytes(), with.besideTiers(1<<30)-without.besideTiers(1<<30))
	require.Positive(t, with.step.LabelBytes())
	_, err := MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
}

func TestLabelInputRefuses(t *testing.T) {
	ds := openTyped(t, storetest.Library(200, 3, 2))
	for want, change := range map[string]func(o *run.Options){
		"{label_input} -1: at least 0, for none, and at most 65536 columns":        func(o *run.Options) { o.LabelInput = -1 },
		"{label_input} 100000: at least 0, for none, and at most 65536 columns":    func(o *run.Options) { o.LabelInput = 100000 },
		"{label_input} 4: {model} gat has no place for labels; take sage, gcn, ":   func(o *run.Options) { o.Kind, o.Relation = model.GAT, "cites" },
		"{label_input} 4: {model} mlp has no place for labels; take sage, gcn, ":   func(o *run.Options) { o.Kind = model.MLP },
		"{batch} 61 is more than half of the 120 training nodes that have one; gi": func(o *run.Options) { o.Batch = 61 },
		"{label_input} 4: nothing is drawn from nodes of type paper, so no seed": func(o *run.Options) {
			o.RelationFanouts = map[string][]int{"cites": {0, 0}, "written_by": {0, 0}}
		},
	} {
		o := typed(model.RSAGE)
		o.LabelInput, o.Batch = 4, 60
		change(&o)
		refused(t, ds, o, want)
	}
	half := typed(model.RSAGE)
	half.LabelInput, half.Batch, half.Epochs = 4, 60, 1
	trained(t, ds, half)
	spec := storetest.Communities(100, 3, 6, 8, 3)
	spec.Train = spec.Train[:1]
	o := small()
	o.LabelInput, o.Batch = 4, 1
	refused(t, open(t, spec), o, "{batch} 1 is more than half of the 1 training nodes that have one; leave {label_input} out")
}
