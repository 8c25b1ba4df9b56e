package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/gnnstore/gnnstore/train/run"
	"github.com/stretchr/testify/require"
)

// The differences of Student's own example (Biometrika 6, 1908), whose interval R gives in the manual of t.test on its data
// set sleep: 0.7001142 to 2.4598858.
var sleep = []float64{1.2, 2.4, 1.3, 1.3, 0, 1.0, 1.8, 0.8, 4.6, 1.4}

func TestInterval(t *testing.T) {
	mean, low, high := interval(sleep)
	require.InDelta(t, 1.58, mean, 1e-12)
	require.InDelta(t, 0.7001142, low, 1e-7)
	require.InDelta(t, 2.4598858, high, 1e-7)

	mean, low, high = interval([]float64{1, 3}) // tables give 12.706 for one degree of freedom
	require.InDelta(t, 2, mean, 1e-12)
	require.InDelta(t, 2-12.706, low, 1e-3)
	require.InDelta(t, 2+12.706, high, 1e-3)

	_, low, high = interval([]float64{1}) // a pair says nothing of its spread
	require.True(t, math.IsInf(low, -1) && math.IsInf(high, 1))
}

func TestVariants(t *testing.T) {
	all, err := variants("labor0,ns", "smoothed,nested", "1,64,064,inf")
	require.NoError(t, err)
	require.Equal(t, []variant{
		{"labor0", "", "1"}, {"labor0", "smoothed", "64"}, {"labor0", "smoothed", "inf"}, {"labor0", "nested", "64"}, {"labor0", "nested", "inf"},
		{"ns", "", "1"}, {"ns", "smoothed", "64"}, {"ns", "smoothed", "inf"}, {"ns", "nested", "64"}, {"ns", "nested", "inf"},
	}, all)
	for want, bad := range map[string][3]string{
		"-kappa 1,0: \"0\" is neither a number of":    {"ns", "nested", "1,0"},
		"-kappa 4,: \"\" is neither":                  {"ns", "nested", "4,"},
		"-dependent same: nested, smoothed or both":   {"ns", "same", "4"},
		"{sampler} shadow: there are ns, labor0":      {"shadow", "nested", "4"},
		"{dependent} smoothed: walks have no numbers": {"rw", "smoothed", "4"},
	} {
		_, err := variants(bad[0], bad[1], bad[2])
		require.ErrorContains(t, err, want)
	}
}

// finished is a log of a task's trials: at κ = 1 seeds reach 0.9 plus a hundredth each, elsewhere so many points less.
func finished(t *testing.T, log *trialLog, of task, seeds int, lost map[variant][]float64) {
	for seed := 1; seed <= seeds; seed++ {
		for v, lost := range lost {
			trial := trialOf(of, v, seed)
			trial.Test = 0.9 + 0.01*float64(seed) - lost[seed-1]/100
			trial.Valid, trial.Seconds = 0.8, 12
			require.NoError(t, log.add(trial))
		}
	}
}

var (
	independent = variant{Sampler: "labor0", Kappa: "1"}
	smoothed64  = variant{"labor0", run.Smoothed, "64"}
	smoothedInf = variant{"labor0", run.Smoothed, "inf"}
)

func TestCompare(t *testing.T) {
	log, err := openTrials("", "b1")
	require.NoError(t, err)
	of := task{name: "arxiv", model: "sage", raw: []string{"ogb", "arxiv"}, flags: []string{"--nodes", "@a.csv"}, splits: true,
		settings: dependent("2,2", "--batch", "10"), epochs: "3", maxLoss: 0.005}
	finished(t, log, of, 2, map[variant][]float64{independent: {0, 0}, smoothed64: {0.1, 0.3}, smoothedInf: {0, 0.02}})

	// All trials are there: nothing is run, and no gnnstore is needed.
	compared, err := new(bench).compare(t.Context(), []task{of}, []variant{independent, smoothed64, smoothedInf}, 2, 1, log)
	require.NoError(t, err)
	require.Len(t, compared, 3)
	require.InDeltaSlice(t, []float64{0.001, 0.003}, compared[1].loss, 1e-12)

	text := dependenceMarkdown("at commit abc1234", compared)
	require.Contains(t, text, "at commit abc1234, ")
	require.Contains(t, text, "gnnstore ingest ogb arxiv arxiv.gnn --nodes a.csv --seed SEED\n"+
		"gnnstore train arxiv.gnn --model sage --epochs 3 --layers 2")
	require.Contains(t, text, `
| data set | sampler | dependent | κ | seeds | test % | loss, points | 95 % interval | upper bound | valid % | s a seed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| arxiv | labor0 |  | 1 | 2 | 91.50 ± 0.71 |  |  |  | 80.00 | 12.0 |
| arxiv | labor0 | smoothed | 64 | 2 | 91.30 ± 0.57 | 0.20 | -1.07 to 1.47 | 1.47 | 80.00 | 12.0 |
| arxiv | labor0 | smoothed | inf | 2 | 91.49 ± 0.69 | 0.01 | -0.12 to 0.14 | 0.14 | 80.00 | 12.0 |
`)
	require.EqualError(t, aboveLoss(compared), "arxiv, labor0 smoothed κ 64: the loss may be 1.47 points, want below 0.50")
	compared[1].loss = []float64{0.001, 0.0011}
	compared[2].loss = []float64{0.1, 0.2} // κ = ∞ is not judged
	require.NoError(t, aboveLoss(compared))
}

func TestTrials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trials.jsonl")
	log, err := openTrials(path, "b1")
	require.NoError(t, err)
	of := dependenceTasks[0]
	finished(t, log, of, 3, map[variant][]float64{smoothed64: {0, 1, 2}})
	require.NoError(t, log.Close())

	log, err = openTrials(path, "b1")
	require.NoError(t, err)
	defer log.Close()
	third, ok := log.find(trialOf(of, smoothed64, 3))
	require.True(t, ok)
	require.InDelta(t, 0.91, third.Test, 1e-12)
	require.Equal(t, smoothed64, third.variant)
	_, ok = log.find(trialOf(of, smoothed64, 4))
	require.False(t, ok, "another seed")
	of.epochs = "17"
	_, ok = log.find(trialOf(of, smoothed64, 3))
	require.False(t, ok, "other settings")

	_, err = openTrials(path, "b2")
	require.ErrorContains(t, err, "line 1: by gnnstore b1, and this is b2")
	require.NoError(t, os.Truncate(path, 700))
	_, err = openTrials(path, "b1")
	require.ErrorContains(t, err, "not a whole trial: remove the line")
}
