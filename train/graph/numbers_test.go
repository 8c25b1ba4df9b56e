package graph

import (
	"context"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// priced is a graph whose nodes have a number: what their own row says of it and, more, what their
// community is worth. Every ninth has none.
func priced(nodes int) storetest.Spec {
	s := storetest.Communities(nodes, 4, 8, 16, 2)
	row, class := s.Row, s.Class
	s.Number = func(v int) float32 {
		if v%9 == 5 {
			return float32(math.NaN())
		}
		return row(v)[5] + 3*float32(class(v)) - 2
	}
	return s
}

// TestNumbersOfNodesAreLearnt: much better than by their mean, with the least error as the best;
// and what is predicted is as far off as the metric says.
func TestNumbersOfNodesAreLearnt(t *testing.T) {
	spec := priced(1000)
	ds := open(t, spec)
	for _, kind := range metric.NumberKinds {
		o := small()
		o.Epochs, o.Metric, o.Dropout, o.EvalTest = 20, kind, 0.1, "epoch"
		path := t.TempDir()
		r, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{})
		require.NoError(t, err)
		require.Less(t, *r.Best.TestAcc, 2.2, "they are 3.5 about their mean")
		for _, e := range r.Epochs {
			require.GreaterOrEqual(t, *e.ValidAcc, *r.Best.ValidAcc)
		}
		if kind == metric.RMSE {
			require.InDelta(t, math.Sqrt(r.Losses[19]), r.Epochs[19].TrainAcc, 1e-6)
		}

		dir, err := run.Look(path)
		require.NoError(t, err)
		n, err := OpenNetwork(context.Background(), ds, dir, NetworkOptions{}, run.Hooks{})
		require.NoError(t, err)
		m, err := n.Measure(context.Background(), "test")
		require.NoError(t, err)
		require.InDelta(t, *r.Best.TestAcc, *m.Value, 1e-6)
		sum, count := 0.0, 0
		layer, err := n.Layer(Values, DefaultLayer)
		require.NoError(t, err)
		require.Equal(t, 1, n.Columns(Values, layer, 0))
		require.NoError(t, n.Predict(context.Background(), Values, layer, 0, n.Data().Test, func(nodes []uint32, rows []float32) error {
			for i, v := range nodes {
				off := math.Abs(float64(rows[i] - spec.Number(int(v))))
				if kind == metric.RMSE {
					off *= off
				}
				sum, count = sum+off, count+1
			}
			return nil
		}))
		if sum /= float64(count); kind == metric.RMSE {
			sum = math.Sqrt(sum)
		}
		require.InDelta(t, *m.Value, sum, 1e-5)
		_, err = n.Layer(Classes, DefaultLayer)
		require.EqualError(t, err, "{what} classes: the run learns numbers of nodes, which have no classes; take values")
		require.NoError(t, n.Close())
	}
}

// TestNumbersOfNodesAreTheSame under other settings of the tiers, and after a resume.
func TestNumbersOfNodesAreTheSame(t *testing.T) {
	ds := open(t, priced(700))
	o := small()
	o.EvalEvery, o.CheckpointEvery = 2, 3
	want := trained(t, ds, o)
	c := outOfCore(ds, disk.Pread)
	c.Epochs, c.EvalEvery, c.CheckpointEvery, c.Workers, c.Window = o.Epochs, 2, 3, 3, 2
	sameWork(t, want, trained(t, ds, c))
	again := half(t, ds, o)
	got, err := runOn(context.Background(), again, ds, o, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)
}

func TestNumbersOfNodesRefuse(t *testing.T) {
	ds := open(t, priced(200))
	for want, change := range map[string]func(o *run.Options){
		"label label is a number of each node, and no class: {metric} accuracy: of numbers there are rmse and mae": func(o *run.Options) { o.Metric = metric.Accuracy },
		"{class_weights} balanced: numbers are learnt, which have no classes":                                      func(o *run.Options) { o.ClassWeights = "balanced" },
		"{label_input} 4: label label is a number of each node, and classes are input alone":                       func(o *run.Options) { o.LabelInput, o.Batch = 4, 20 },
	} {
		o := small()
		change(&o)
		refused(t, ds, o, want)
	}
	o := small()
	o.Metric = metric.MAE
	refused(t, open(t, storetest.Communities(200, 4, 8, 16, 2)), o, "{metric} mae: there are accuracy, micro-f1, macro-f1 and roc-auc")
	none := priced(100)
	none.Number = func(int) float32 { return float32(math.NaN()) }
	refused(t, open(t, none), small(), "split given has no training node with a label")
}
