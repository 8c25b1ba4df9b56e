package graph

import (
	"context"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestChosenSettingsAreOnRecord: a run trains with the settings that it chose, writes them to
// run.json, and keeps them when it is resumed.
func TestChosenSettingsAreOnRecord(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	o.Left = map[string]bool{"lr": true, "weight_decay": true, "input_dropout": true}
	disk := vfs.NewMem()
	var record *run.Record
	_, err := runOn(context.Background(), disk, ds, o, run.Hooks{Start: func(r *run.Record) { record = r }})
	require.NoError(t, err)
	require.Contains(t, record.AutoSettings.Reason, "480 labelled training nodes are few: {input_dropout} 0.6, {weight_decay} 0.0005")
	require.Equal(t, 0.01, record.Options.LR)
	require.Equal(t, 0.6, record.Options.InputDropout)
	text, err := readFile(disk, "/run/run.json")
	require.NoError(t, err)
	onRecord, err := run.DecodeRecord(text)
	require.NoError(t, err)
	require.Equal(t, record.AutoSettings, onRecord.AutoSettings)
	require.Equal(t, 5e-4, onRecord.Options.Optim.WeightDecay)

	again := onRecord.Options
	require.Empty(t, again.Left)
	again.Epochs++
	longer, err := runOn(context.Background(), disk, ds, again, run.Hooks{Start: func(r *run.Record) { record = r }})
	require.NoError(t, err)
	require.Equal(t, onRecord.AutoSettings, record.AutoSettings)
	o.Epochs++
	require.Equal(t, trained(t, ds, o).ParamsXXH3, longer.ParamsXXH3)
	o.Left = nil
	require.NotEqual(t, trained(t, ds, o).ParamsXXH3, longer.ParamsXXH3, "as it is without")
}

// TestDenseLinksHaveTheirSettings: they hold for links of nodes with learnt rows, a hundred or more
// a node, and for no others. Negatives are filtered where a hundredth of all pairs are links.
func TestDenseLinksHaveTheirSettings(t *testing.T) {
	for name, c := range map[string]struct {
		spec  storetest.Spec
		input string
		want  model.Decoder
		from  string
	}{
		"dense":                {storetest.Communities(300, 4, 700, 8, 2).Linked(), "embed:16", model.PairMLP, "filtered:1"},
		"sparse":               {storetest.Communities(900, 4, 4, 8, 2).Linked(), "embed:16", model.Dot, "uniform:1"},
		"dense, with features": {storetest.Communities(300, 4, 700, 8, 2).Linked(), "table", model.Dot, "filtered:1"},
	} {
		o := linkOptions()
		o.Inputs, o.Left = map[string]string{"node": c.input}, map[string]bool{"decoder": true, "norm": true, "batch": true, "negatives": true}
		m := opened(t, open(t, c.spec), o)
		require.Equal(t, c.want, m.Decoder, name)
		require.Equal(t, c.from, m.Negatives, name)
		require.Equal(t, c.want, m.model.Decoder, name)
		require.Equal(t, c.want == model.PairMLP, m.model.Norm == "none", name)
		require.Equal(t, c.want == model.PairMLP, m.Batch == 600, name)
	}
}

// TestLearntRowsHaveTheChosenWidth: learnt rows are as wide as the hidden layers that a run chose.
// Such a run can be resumed, and its network used. Whether they are too many depends on the chosen
// width, not on the width of the flag's default.
func TestLearntRowsHaveTheChosenWidth(t *testing.T) {
	of := storetest.Communities(2000, 4, 8, 16, 2)
	of.Train = of.Train[:480]
	ds := openTyped(t, storetest.TypedSpec{
		Types: []storetest.TypedNodes{{Name: "node", Nodes: of.Nodes}}, Target: "node", Class: of.Class, Classes: of.Classes, Train: of.Train, Valid: of.Valid, Test: of.Test,
		Relations: []storetest.TypedRelation{{Src: "node", Name: "to", Dst: "node", Neighbors: of.Neighbors}},
	})
	o := small()
	o.Hidden = data.EmbedBytes/12/of.Nodes + 1
	_, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.ErrorContains(t, err, "take more than 1024 MiB; ask for them by {input} node=embed:44739,")
	o.Left = map[string]bool{"hidden": true}
	dir, r := runIn(t, ds, o)
	require.Equal(t, 64, r.Options.Hidden)
	n := network(t, ds, dir, NetworkOptions{})
	require.Equal(t, 64, n.c.data.Types[0].Embed)
	require.Equal(t, *r.Best.TestAcc, measure(t, n, "test"))
	require.NoError(t, n.Close())
	again := r.Options
	again.Epochs++
	_, err = Run(context.Background(), ds, func() (*run.Dir, error) {
		d, _, err := run.Open(dir)
		return d, err
	}, again, "test", run.Hooks{})
	require.NoError(t, err)
}
