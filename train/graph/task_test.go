package graph

import (
	"context"
	"math"
	"path/filepath"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
)

// several has two classes that communities tell and one that only the parity of the community does;
// some are not known.
func several(nodes int) storetest.Spec {
	spec := storetest.Communities(nodes, 4, 10, 16, 1)
	spec.Bits = func(v int) []uint8 {
		one := func(b bool) uint8 {
			if b {
				return 1
			}
			return 0
		}
		row := []uint8{one(v%4 == 0), one(v%4 == 1 || v%4 == 2), one(v%2 == 1), 0}
		if v%7 == 0 {
			row[2] = store.MissingBit
		}
		if v%50 == 8 {
			row = []uint8{store.MissingBit, store.MissingBit, store.MissingBit, store.MissingBit}
		}
		return row
	}
	return spec
}

func TestSeveralClassesANode(t *testing.T) {
	ds := open(t, several(1200))
	o := small()
	o.Epochs = 15
	for _, c := range []struct {
		kind metric.Kind
		want metric.Kind
		good float64
	}{{"", metric.MicroF1, 0.85}, {metric.MacroF1, metric.MacroF1, 0.8}, {metric.ROCAUC, metric.ROCAUC, 0.9}} {
		o.Metric = c.kind
		r := trained(t, ds, o)
		require.Equal(t, c.want, r.Metric)
		require.Greater(t, *r.Best.TestAcc, c.good, c.want)
		require.LessOrEqual(t, *r.Best.TestAcc, 1.0)
		require.Less(t, r.Losses[14], r.Losses[0]/2)
		require.Greater(t, r.Epochs[14].TrainAcc, r.Epochs[0].TrainAcc)
	}
	// The same bits at any number of workers, and after a resume.
	o.Epochs, o.EvalEvery, o.CheckpointEvery = 4, 2, 3
	want := trained(t, ds, o)
	disk := half(t, ds, o)
	o.Workers = 5
	got, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)

	o.Metric = metric.Accuracy
	refused(t, ds, o, "use roc-auc, micro-f1 or macro-f1")
	o.Metric, o.ClassWeights = "", "balanced"
	refused(t, ds, o, "{class_weights} balanced: the label has several classes a node")
}

func refused(t *testing.T, ds *store.Dataset, o run.Options, want string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "run")
	_, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{})
	require.ErrorContains(t, err, want)
	require.NoDirExists(t, path)
}

// TestMetricsOfOneClass: micro-F1 is accuracy there, and ROC-AUC wants two classes.
func TestMetricsOfOneClass(t *testing.T) {
	ds := open(t, storetest.Communities(400, 3, 8, 16, 1))
	o := small()
	accuracy := trained(t, ds, o)
	require.Equal(t, metric.Accuracy, accuracy.Metric)
	o.Metric = metric.MicroF1
	require.Equal(t, *accuracy.Best.TestAcc, *trained(t, ds, o).Best.TestAcc)
	o.Metric, o.Epochs = metric.ROCAUC, 3
	refused(t, ds, o, "the label has 3 classes")

	two := storetest.Communities(400, 2, 8, 16, 1)
	two.Valid, two.Test, two.Train = two.Train[:60], two.Train[60:120], two.Train[120:]
	require.Greater(t, *trained(t, open(t, two), o).Best.TestAcc, 0.7)

	// A validation set of one class has no ROC-AUC: the run says so, and chooses no epoch.
	two.Valid = two.Valid[:1]
	var notes []string
	r, err := Run(context.Background(), open(t, two), scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Nil(t, r.Best.ValidAcc)
	require.Contains(t, notes[len(notes)-1], "not measured: roc-auc is undefined")
}

// TestClassWeights: equal weights change nothing but rounding, a class of weight 0 is not learnt.
func TestClassWeights(t *testing.T) {
	spec := storetest.Communities(800, 4, 8, 16, 1)
	ds := open(t, spec)
	o := small()
	plain := trained(t, ds, o)
	o.ClassWeights = "2,2,2,2"
	equal := trained(t, ds, o)
	require.InDeltaSlice(t, plain.Losses, equal.Losses, 1e-4)
	o.ClassWeights, o.Metric, o.Epochs = "1,1,1,0", metric.MacroF1, 10
	without := trained(t, ds, o)
	o.ClassWeights = "none"
	require.Less(t, *without.Best.TestAcc, *trained(t, ds, o).Best.TestAcc-0.1)

	for _, bad := range []string{"1,2", "1,2,3,x", "1,2,3,-1", "1,1,1,NaN", "0,0,0,0", "some"} {
		o.ClassWeights = bad
		refused(t, ds, o, "{class_weights} "+bad)
	}
}

// TestOptimizers: schedules, clipping and decoupled decay train, and resume to the bit; a cosine's
// end cannot be moved.
func TestOptimizers(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for name, change := range map[string]func(o *run.Options){
		"cosine": func(o *run.Options) { o.Schedule = optim.Schedule{Kind: optim.Cosine, Warmup: 3, MinLR: 1e-4} },
		"step": func(o *run.Options) {
			o.Schedule = optim.Schedule{Kind: optim.Step, Milestones: []int{1, 3}, Gamma: 0.5}
		},
		"adamw":      func(o *run.Options) { o.Optim = optim.Options{Kind: optim.AdamW, WeightDecay: 0.05, ClipNorm: 0.5} },
		"gcn":        func(o *run.Options) { o.Kind = model.GCN },
		"gat":        func(o *run.Options) { o.Kind, o.Heads, o.AttnDropout = model.GAT, 4, 0.3 },
		"everything": func(o *run.Options) { o.Fanouts, o.InputDropout = []int{-1, -1}, 0.2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := long()
			plain := trained(t, ds, o)
			change(&o)
			want := trained(t, ds, o)
			require.NotEqual(t, plain.ParamsXXH3, want.ParamsXXH3)
			require.Less(t, want.Losses[4], want.Losses[0])
			got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
			require.NoError(t, err)
			sameRun(t, want, got)
		})
	}
	o := long()
	o.Schedule.Kind = optim.Cosine
	disk := half(t, ds, o)
	o.Epochs++
	_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.ErrorContains(t, err, "{epochs} is 6 and the run's is 5")
	o.Epochs--
	o.Schedule.Kind, o.Optim.ClipNorm = optim.Constant, 1
	_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.ErrorContains(t, err, `{schedule} is constant and the run's is cosine`)
	require.ErrorContains(t, err, "{clip_norm} is 1 and the run's is 0")
}

// TestMemoryBudget: one that is too small is refused with the least that works, and the heap's
// limit goes back when the run ends.
func TestMemoryBudget(t *testing.T) {
	o := small()
	o.MemoryBytes = 100
	_, err := runOn(context.Background(), vfs.NewMem(), open(t, storetest.Communities(300, 3, 6, 8, 3)), o, run.Hooks{})
	require.ErrorContains(t, err, "{memory_bytes} 100 B is not enough: with this dataset, batch and fanout the least that works is ")
	huge := o
	huge.MemoryBytes, huge.BatchBytes, huge.Cache.DeviceBytes, huge.Cache.HostBytes = 1<<30, math.MaxInt64/4, math.MaxInt64/4, math.MaxInt64/4
	_, err = runOn(context.Background(), vfs.NewMem(), open(t, storetest.Communities(300, 3, 6, 8, 3)), huge, run.Hooks{})
	require.ErrorContains(t, err, "is not enough")
	o.MemoryBytes = 4 << 30
	r, err := runOn(context.Background(), vfs.NewMem(), open(t, storetest.Communities(300, 3, 6, 8, 3)), o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, run.Done, r.Status)
}
