package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestDraws(t *testing.T) {
	all, err := drawsOf("labor0,ns", "smoothed,nested", "1,64,064,inf")
	require.NoError(t, err)
	require.Equal(t, []draws{
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
		_, err := drawsOf(bad[0], bad[1], bad[2])
		require.ErrorContains(t, err, want)
	}
}

func TestDependence(t *testing.T) {
	s, err := dependence("labor0", "smoothed", "64,inf")
	require.NoError(t, err)
	of := task{name: "arxiv", model: "sage", raw: []string{"ogb", "arxiv"}, flags: []string{"--nodes", "@a.csv"}, splits: true,
		settings: paired("2,2", "--batch", "10"), epochs: "3", maxLoss: 0.005}
	compared := finished(t, s, of, map[string][]float64{
		"labor0 κ 1": {0, 0}, "labor0 smoothed κ 64": {0.1, 0.3}, "labor0 smoothed κ inf": {0, 0.02},
	})

	text := s.markdown("at commit abc1234", compared)
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
	require.EqualError(t, judge(compared), "arxiv, labor0 smoothed κ 64: the loss may be 1.47 points, want below 0.50")
	require.NoError(t, judge(finished(t, s, of, map[string][]float64{
		"labor0 κ 1": {0, 0}, "labor0 smoothed κ 64": {0.1, 0.11}, "labor0 smoothed κ inf": {10, 20}, // κ = ∞ is not judged
	})))
}
