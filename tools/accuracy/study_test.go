package main

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// The differences of Student's own example (Biometrika 6, 1908), whose interval R gives in the
// manual of t.test on its data set sleep: 0.7001142 to 2.4598858.
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

// finished returns the comparisons of a study for a task whose trials are done. lost has, by
// variant, the points that each seed lost of an accuracy of 0.9 and a hundredth for each seed.
// Nothing is run, and no gnnstore is needed.
func finished(t *testing.T, s *study, of task, lost map[string][]float64) []comparison {
	log, err := openTrials("", "b1")
	require.NoError(t, err)
	seeds := 0
	for _, p := range s.pairs(of) {
		require.Contains(t, lost, p.of.name)
		seeds = len(lost[p.of.name])
		for i, points := range lost[p.of.name] {
			trial := trialOf(of, p.of, i+1)
			trial.Test, trial.Valid, trial.Seconds = 0.9+0.01*float64(i+1)-points/100, 0.8, 12
			require.NoError(t, log.add(trial))
		}
	}
	compared, err := s.compare(t.Context(), new(bench), []task{of}, seeds, 1, log)
	require.NoError(t, err)
	require.Len(t, compared, len(s.pairs(of)))
	return compared
}

func TestTrials(t *testing.T) {
	path := filepath.Join(t.TempDir(), "trials.jsonl")
	log, err := openTrials(path, "b1")
	require.NoError(t, err)
	of, v := dependenceTasks[0], draws{"labor0", "smoothed", "64"}.variant()
	for seed := 1; seed <= 3; seed++ {
		trial := trialOf(of, v, seed)
		trial.Test = 0.9 + 0.01*float64(seed)
		require.NoError(t, log.add(trial))
	}
	require.NoError(t, log.Close())

	log, err = openTrials(path, "b1")
	require.NoError(t, err)
	defer log.Close()
	third, ok := log.find(trialOf(of, v, 3))
	require.True(t, ok)
	require.InDelta(t, 0.93, third.Test, 1e-12)
	require.Equal(t, "labor0 smoothed κ 64", third.Variant)
	_, ok = log.find(trialOf(of, v, 4))
	require.False(t, ok, "another seed")
	of.epochs = "17"
	_, ok = log.find(trialOf(of, v, 3))
	require.False(t, ok, "other settings")

	_, err = openTrials(path, "b2")
	require.ErrorContains(t, err, "line 1: by gnnstore b1, and this is b2")
	require.NoError(t, os.Truncate(path, 700))
	_, err = openTrials(path, "b1")
	require.ErrorContains(t, err, "not a whole trial: remove the line")
}
