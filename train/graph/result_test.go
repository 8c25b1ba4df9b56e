package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"math"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestMetricKeys: the keys of epochs and of the best one name what was measured, in every file of a
// run.
func TestMetricKeys(t *testing.T) {
	two := storetest.Communities(400, 2, 8, 16, 1)
	two.Valid, two.Test, two.Train = two.Train[:60], two.Train[60:120], two.Train[120:]
	ds := open(t, two)
	for kind, key := range map[metric.Kind]string{
		"": "acc", metric.Accuracy: "acc", metric.MicroF1: "micro_f1", metric.MacroF1: "macro_f1", metric.ROCAUC: "auc",
	} {
		o := small()
		o.Metric = kind
		disk := vfs.NewMem()
		r, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.NoError(t, err)
		text, err := readFile(disk, "/run/result.json")
		require.NoError(t, err)
		var m struct {
			Epochs []map[string]any
			Best   map[string]any
		}
		require.NoError(t, json.Unmarshal(text, &m))
		for _, part := range []string{"train_", "valid_", "test_"} {
			require.Contains(t, m.Epochs[0], part+key)
			if part != "train_" {
				require.NotNil(t, m.Best[part+key])
			}
			if key != "acc" {
				require.NotContains(t, m.Epochs[0], part+"acc")
				require.NotContains(t, m.Best, part+"acc")
			}
		}
		var again run.Result
		require.NoError(t, json.Unmarshal(text, &again))
		require.Equal(t, r, &again)
		lines, err := readFile(disk, "/run/metrics.jsonl")
		require.NoError(t, err)
		require.Contains(t, string(lines), `"valid_`+key+`":0.`)
		var epochs []run.Epoch
		for line := range bytes.Lines(lines) {
			var l run.Line
			require.NoError(t, json.Unmarshal(line, &l))
			if l.Epoch != nil {
				epochs = append(epochs, *l.Epoch)
			}
		}
		r.Epochs[r.Best.Epoch-1].TestAcc = nil // it was measured later
		require.Equal(t, r.Epochs, epochs)
	}
}

// TestMetricKeysBefore reads what earlier versions wrote: the keys of accuracy, whatever was
// measured.
func TestMetricKeysBefore(t *testing.T) {
	var r run.Result
	require.NoError(t, json.Unmarshal([]byte(`{"metric": "roc-auc", "epochs": [{"epoch": 1, "train_acc": 0.5, "valid_acc": 0.75}],
		"best": {"epoch": 1, "valid_acc": 0.75, "test_acc": 0.25}}`), &r))
	require.Equal(t, 0.5, r.Epochs[0].TrainAcc)
	require.Equal(t, 0.75, *r.Epochs[0].ValidAcc)
	require.Equal(t, 0.25, *r.Best.TestAcc)
	b, err := json.Marshal(r.Epochs[0])
	require.NoError(t, err)
	require.Contains(t, string(b), `"train_acc":0.5,"valid_acc":0.75,"test_acc":null`, "train_acc was an accuracy")

	e := run.Epoch{Metric: metric.ROCAUC, Epoch: 2, TrainAcc: math.NaN()}
	b, err = json.Marshal(e)
	require.NoError(t, err)
	require.Contains(t, string(b), `"train_auc":null,"valid_auc":null,"test_auc":null`)
	require.NoError(t, json.Unmarshal(b, &e))
	require.True(t, math.IsNaN(e.TrainAcc))
	require.Equal(t, metric.ROCAUC, e.Metric)
}

// TestTrainMetric: if the training nodes are one batch, without dropout and with every neighbour,
// training measures in an epoch the same as validation on these nodes after the epoch before.
func TestTrainMetric(t *testing.T) {
	one, multi := storetest.Communities(400, 2, 8, 16, 1), several(400)
	one.Valid, multi.Valid = one.Train, multi.Train
	for _, ds := range []*store.Dataset{open(t, one), open(t, multi)} {
		for _, kind := range []metric.Kind{metric.MicroF1, metric.MacroF1, metric.ROCAUC} {
			o := small()
			o.Metric, o.Dropout, o.Batch, o.Fanouts, o.Epochs = kind, 0, 1<<20, []int{sample.All, sample.All}, 6
			r := trained(t, ds, o)
			for n, e := range r.Epochs[1:] {
				require.InDelta(t, *r.Epochs[n].ValidAcc, e.TrainAcc, 1e-3, "%s, epoch %d", kind, n+2)
			}
			require.Greater(t, r.Epochs[5].TrainAcc, r.Epochs[0].TrainAcc)
		}
	}
}
