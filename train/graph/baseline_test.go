package graph

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// noted trains in /run of a new disk, and returns all notes as one text.
func noted(t *testing.T, ds *store.Dataset, o run.Options) (*vfs.MemFS, *run.Result, string) {
	disk, notes := vfs.NewMem(), ""
	r, err := runOn(t.Context(), disk, ds, o, run.Hooks{Note: func(s string) { notes += s + "\n" }})
	require.NoError(t, err)
	return disk, r, notes
}

// TestBaselineBesideMetric: for each task the baseline stands beside the metric, at the end of a
// run and when it is measured again. A note says if the network is not better.
func TestBaselineBesideMetric(t *testing.T) {
	links, auc, edges, amounts := linkOptions(), small(), edgeOptions(), edgeOptions()
	links.Decoder, links.Metric, links.EvalNegatives = model.DistMult, metric.MRR, "uniform:20"
	auc.Metric = metric.ROCAUC
	amounts.EdgeLabel = "rating:value"
	between := linkOptions()
	between.Kind, between.Target, between.Inputs = model.RSAGE, "user,buys,item", map[string]string{"item": "embed:8"}
	trust := storetest.Trust(200, true, false)
	for name, c := range map[string]struct {
		ds   *store.Dataset
		o    run.Options
		what string
	}{
		"nodes":           {open(t, storetest.Communities(400, 4, 8, 16, 1)), small(), "the largest class"},
		"several classes": {open(t, several(400)), auc, "the same classes for all"},
		"numbers":         {open(t, priced(400)), small(), "the mean of training nodes"},
		"typed":           {openTyped(t, storetest.Library(400, 4, 1)), typed(model.RSAGE), "the largest class"},
		"links":           {open(t, linked(300)), links, "the popularity of ends"},
		"typed links":     {openTyped(t, shop(rand.New(rand.NewPCG(3, 4)))), between, "the popularity of ends"},
		"edges":           {openTyped(t, trust), edges, "the largest class"},
		"numbers of them": {openTyped(t, trust), amounts, "the mean of training edges"},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Epochs = 1
			dir, r := runIn(t, c.ds, c.o)
			require.NotNil(t, r.Baseline)
			require.Equal(t, c.what, r.Baseline.What)
			require.Positive(t, *r.Baseline.Valid)
			n := network(t, c.ds, dir, NetworkOptions{})
			defer n.Close()
			for part, want := range map[string]*float64{"valid": r.Baseline.Valid, "test": r.Baseline.Test} {
				m, err := n.Measure(t.Context(), part)
				require.NoError(t, err)
				require.Equal(t, *want, *m.Baseline)
				require.Equal(t, c.what, m.BaselineOf)
				if part == "test" {
					require.Equal(t, r.Constant, m.Constant)
				}
			}

			c.o.LR = 1e-9 // learns nothing
			disk, r, notes := noted(t, c.ds, c.o)
			require.Equal(t, !r.Metric.Better(*r.Best.ValidAcc, *r.Baseline.Valid),
				strings.Contains(notes, "the network is not better than "+c.what+" on the valid part\n"), notes)
			require.Equal(t, !r.Metric.Better(*r.Best.TestAcc, *r.Baseline.Test),
				strings.Contains(notes, "the network is not better than "+c.what+" on the test part\n"), notes)
			if c.what == "the largest class" || r.Metric.OfNumbers() {
				require.Contains(t, notes, "is not better than")
			}
			text, err := readFile(disk, "/run/result.json")
			require.NoError(t, err)
			var m struct {
				Baseline map[string]any
				Constant string `json:"constant_prediction"`
			}
			require.NoError(t, json.Unmarshal(text, &m))
			require.Equal(t, map[string]any{"what": c.what, "valid": *r.Baseline.Valid, "test": *r.Baseline.Test}, m.Baseline)
			require.Equal(t, r.Constant, m.Constant)
		})
	}
	learnt := small()
	learnt.Epochs = 10
	_, r, notes := noted(t, open(t, storetest.Communities(800, 4, 10, 16, 1)), learnt)
	require.Greater(t, *r.Best.TestAcc, *r.Baseline.Test)
	require.NotContains(t, notes, "not better")
	require.NotContains(t, notes, "one answer")
}

// TestConstantPredictionIsSaid: if nothing tells nodes apart, the network gives one answer. A note
// says so however the test part was measured, and after a resume.
func TestConstantPredictionIsSaid(t *testing.T) {
	spec, bits, numbers := storetest.Communities(600, 3, 8, 16, 1), several(600), priced(600)
	for want, s := range map[string]storetest.Spec{"class ": spec, "the same classes": bits, "": numbers} {
		s.Row = func(int) []float32 { return make([]float32, s.Dim) }
		s.OtherSplit, s.Neighbors = "", nil
		ds := open(t, s)
		for _, test := range []string{"epoch", "best"} {
			o := long()
			o.Kind, o.EvalTest, o.EvalEvery = model.MLP, test, 1
			_, r, notes := noted(t, ds, o)
			require.NotEmpty(t, r.Constant)
			require.Contains(t, r.Constant, want)
			require.Contains(t, notes, "the network gives one answer for all of the test part, "+r.Constant+"\n")

			notes = ""
			got, err := runOn(t.Context(), half(t, ds, o), ds, o, run.Hooks{Note: func(s string) { notes += s + "\n" }})
			require.NoError(t, err)
			require.Equal(t, r.Constant, got.Constant)
			require.Equal(t, r.Baseline, got.Baseline)
			require.Contains(t, notes, "one answer for all of the test part")
		}
		o := small()
		o.Kind = model.MLP
		dir, r := runIn(t, ds, o)
		n := network(t, ds, dir, NetworkOptions{})
		m, err := n.Measure(t.Context(), "test")
		require.NoError(t, err)
		require.Equal(t, r.Constant, m.Constant)
		require.NoError(t, n.Close())
	}
}

// TestLargeLossIsSaid: a note says it once, with what to change, but not if the numbers to learn
// are that large.
func TestLargeLossIsSaid(t *testing.T) {
	spec := priced(400)
	o := small()
	_, _, notes := noted(t, open(t, spec), o)
	require.NotContains(t, notes, "the steps are too large")
	o.LR, o.Epochs = 300, 4
	_, r, notes := noted(t, open(t, spec), o)
	require.Greater(t, r.Losses[0], 1e6)
	require.Regexp(t, `(?m)^the loss of epoch 1 is [0-9.e+]+, and that of a network that has learnt nothing about [0-9.]+: .*lower \{lr\}`, notes)
	require.Equal(t, 1, strings.Count(notes, "the steps are too large"))
	plain, number := small(), spec.Number
	spec.Number = func(v int) float32 { return 3e4 * number(v) }
	_, r, notes = noted(t, open(t, spec), plain)
	require.Greater(t, r.Losses[0], 1e6)
	require.NotContains(t, notes, "the steps are too large")
}
