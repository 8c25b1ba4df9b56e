package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestParseReuses(t *testing.T) {
	all, err := parseReuses("200:lag=1,auto,none:kappa=064,inf:p-grad=1:kappa=64,auto:lag=auto,none")
	require.NoError(t, err)
	require.Equal(t, []reuse{
		plain, {"200", "0.7", "1", "1"}, automatic, {"none", "", "", "64"}, {"inf", "1", "auto", "64"},
	}, all)
	var names []string
	for _, r := range all {
		names = append(names, r.variant().name)
	}
	require.Equal(t, []string{"none", "t_stale 200, lag 1", "t_stale auto", "none, κ 64", "t_stale inf, p_grad 1, κ 64"}, names)
	require.Empty(t, plain.variant().flags)
	require.Equal(t, "--history --t-stale inf --p-grad 1 --history-lag auto --history-memory 64MiB --kappa 64 --dependent smoothed",
		strings.Join(all[4].variant().flags, " "))

	for _, bad := range []string{
		"", "0", "-1", "some", "auto:", "auto:lag", "auto:lag=0", "auto:p-grad=0", "auto:p-grad=1.1", "auto:p-grad=NaN", "none:lag=1", "20:stale=1",
	} {
		_, err := parseReuses("auto," + bad)
		require.ErrorContains(t, err, "-history "+bad+": want none or T_STALE, which is auto, inf or a number from 1 on")
	}
	_, err = parseReuses("auto:kappa=0")
	require.ErrorContains(t, err, `-history auto:kappa=0: "0" is neither a number of`)
}

// TestHistoryGrid: on the tasks of the grid, t_stale × p_grad × lag without the runs that are the
// same, and κ 64; on others two.
func TestHistoryGrid(t *testing.T) {
	s, err := reuseStudy("grid")
	require.NoError(t, err)
	for _, of := range historyTasks {
		var names []string
		for _, p := range s.pairs(of) {
			name := p.of.name
			if p.than.name != "none" {
				name += " against " + p.than.name
			}
			names = append(names, name)
		}
		if of.name != "ogbn_arxiv" && of.name != "amazon_computers" {
			require.Equal(t, []string{"none", "t_stale auto", "t_stale 200"}, names)
			continue
		}
		require.Equal(t, []string{
			"none",
			"t_stale auto", "t_stale auto against t_stale auto, lag 1", "t_stale auto, lag 1",
			"t_stale 20", "t_stale 20 against t_stale 20, lag 1", "t_stale 20, lag 1", "t_stale 20, p_grad 1",
			"t_stale 200", "t_stale 200 against t_stale 200, lag 1", "t_stale 200, lag 1", "t_stale 200, p_grad 1",
			"t_stale inf", "t_stale inf against t_stale inf, lag 1", "t_stale inf, lag 1", "t_stale inf, p_grad 1",
			"none, κ 64", "t_stale auto, κ 64",
		}, names)
	}
}

func TestReuseStudy(t *testing.T) {
	s, err := reuseStudy("auto,auto:lag=1")
	require.NoError(t, err)
	of := task{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, settings: paired("2,2"), epochs: "3"}
	compared := finished(t, s, of, map[string][]float64{"none": {0, 0}, "t_stale auto": {0.7, 0.9}, "t_stale auto, lag 1": {0.6, 0.7}})
	for i, c := range compared {
		for seed := range c.of {
			c.of[seed].Rows, c.of[seed].Reuse, c.than[seed].Rows = 2_000_000, 0.45, 3_000_000
			if i == 0 {
				c.of[seed].Rows, c.of[seed].Reuse = 3_000_000, 0
			}
		}
	}
	text := s.markdown("at commit abc1234", compared)
	require.Contains(t, text, "gnnstore train ogbn_arxiv.gnn --model sage --epochs 3 --layers 2 --fanout 2,2")
	require.Contains(t, text, "--history --t-stale T_STALE --p-grad P_GRAD --history-lag LAG --history-memory 64MiB --kappa KAPPA --dependent smoothed --seed SEED\n")
	require.Contains(t, text, `
| data set | t_stale | p_grad | lag | κ | against | seeds | test % | loss, points | 95 % interval | upper bound | valid % | rows, M | fewer rows % | reuse % |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
| ogbn_arxiv | none |  |  | 1 |  | 2 | 91.50 ± 0.71 |  |  |  | 80.00 | 3.00 |  |  |
| ogbn_arxiv | auto | 0.7 | auto | 1 | none | 2 | 90.70 ± 0.57 | 0.80 | -0.47 to 2.07 | 2.07 | 80.00 | 2.00 | 33.3 | 45.0 |
| ogbn_arxiv | auto | 0.7 | auto | 1 | t_stale auto, lag 1 | 2 | 90.70 ± 0.57 | 0.15 | -0.49 to 0.79 | 0.79 | 80.00 | 2.00 | 33.3 | 45.0 |
| ogbn_arxiv | auto | 0.7 | 1 | 1 | none | 2 | 90.85 ± 0.64 | 0.65 | 0.01 to 1.29 | 1.29 | 80.00 | 2.00 | 33.3 | 45.0 |
`)
	// Of t_stale auto alone, the rows hold, since a third is asked for.
	require.EqualError(t, judge(compared), "ogbn_arxiv, t_stale auto: the loss may be 2.07 points, want below 1.00\n"+
		"ogbn_arxiv, t_stale auto: the loss against t_stale auto, lag 1 may be -0.49 to 0.79 points, want within ±0.50")
	for _, c := range compared[1:3] {
		for seed := range c.of {
			c.of[seed].Test, c.of[seed].Rows = c.than[seed].Test+0.004, 2_010_000 // as good as can be, and better than lag 1 by less than may be
		}
	}
	require.EqualError(t, judge(compared), "ogbn_arxiv, t_stale auto: 33.0 % fewer rows, want 33.3")
	of.name = "facebook"
	require.NoError(t, judge(finished(t, s, of, map[string][]float64{"none": {0, 0}, "t_stale auto": {5, 9}, "t_stale auto, lag 1": {1, 1}})))
}

// TestPaired: a seed's loss is against the same seed.
func TestPaired(t *testing.T) {
	s, err := reuseStudy("auto")
	require.NoError(t, err)
	compared := finished(t, s, historyTasks[0], map[string][]float64{"none": {0, 0, 0}, "t_stale auto": {1, -2, 3}})
	require.InDeltaSlice(t, []float64{0.01, -0.02, 0.03}, compared[1].losses(), 1e-12)
	require.Equal(t, []float64{0, 0, 0}, compared[0].losses(), "of a variant with itself")
}
