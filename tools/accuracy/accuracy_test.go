package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

var twoResults = []result{
	{task: task{name: "coauthor_cs", model: "sage", settings: sampled, epochs: "100", bar: 0.905, published: "91.3"}, test: []float64{0.90, 0.92}, valid: []float64{0.91, 0.93}, seconds: []float64{2, 4}},
	{task: task{name: "ogbn_arxiv/mlp", model: "mlp", settings: sampled, epochs: "8", published: "none"}, test: []float64{0.5}, valid: []float64{0.51}, seconds: []float64{100}},
}

func TestTables(t *testing.T) {
	var text bytes.Buffer
	require.NoError(t, writeText(&text, twoResults))
	require.Equal(t, `data set      model   settings   epochs   seeds   test %         published %   valid %   s a seed
coauthor_cs   sage    sampled    100      2       91.00 ± 1.41   91.3          92.00     3.0
ogbn_arxiv    mlp     sampled    8        1       50.00 ± 0.00   none          51.00     100.0
`, text.String())
	require.Equal(t, `| data set | model | settings | epochs | seeds | test % | published % | valid % | s a seed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
| coauthor_cs | sage | sampled | 100 | 2 | 91.00 ± 1.41 | 91.3 | 92.00 | 3.0 |
| ogbn_arxiv | mlp | sampled | 8 | 1 | 50.00 ± 0.00 | none | 51.00 | 100.0 |
`, markdown(twoResults))
}

func TestRecordResults(t *testing.T) {
	file := filepath.Join(t.TempDir(), "accuracy.md")
	require.NoError(t, os.WriteFile(file, []byte("# Results\n\n## Older, 2001-01-01\n\nold\n"), 0o666))
	require.NoError(t, recordResults(file, "at commit abc1234", twoResults, 2))
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "# Results\n\n## Accuracy, 2")
	require.Contains(t, string(text), "at commit abc1234, ")
	require.Contains(t, string(text), "--seed 1..2")
	require.Contains(t, string(text), markdown(twoResults))
	require.Contains(t, string(text), "\n\n## Older, 2001-01-01\n\nold\n")
	require.NoError(t, putAbove(file, "\n## Newer\n"))
	text, err = os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "# Results\n\n## Newer\n\n## Accuracy, 2")
	fresh := filepath.Join(t.TempDir(), "fresh.md")
	require.NoError(t, putAbove(fresh, "\n## First\n"))
	text, err = os.ReadFile(fresh)
	require.NoError(t, err)
	require.Equal(t, "\n## First\n", string(text))
}

func TestBelowBars(t *testing.T) {
	require.NoError(t, belowBars(twoResults, 0))
	low := []result{{task: task{name: "low", bar: 0.9}, test: []float64{0.885}}}
	require.NoError(t, belowBars(low, quickSlack))
	require.EqualError(t, belowBars(low, 0), "low: test accuracy 88.50 % is below 90.00 %")
	rivals := []result{{task: task{name: "otc", published: "means"}, test: []float64{0.92, 0.91}, rival: []float64{0.91, 0.93}}}
	require.EqualError(t, belowBars(rivals, 0), "otc: test accuracy 91.50 % is below 92.00 %")
	require.NoError(t, belowBars(rivals, quickSlack))
	rivals[0].shown = true
	require.NoError(t, belowBars(rivals, 0))
	require.Equal(t, "means on the same splits: 92.00 ± 1.41", rivals[0].beside())
}

func TestSelectTasks(t *testing.T) {
	selected, err := selectTasks(tasks, "ogbn_arxiv/mlp,coauthor_cs")
	require.NoError(t, err)
	require.Equal(t, []string{"ogbn_arxiv/mlp", "coauthor_cs"}, names(selected))
	_, err = selectTasks(tasks, "karate")
	require.ErrorContains(t, err, "-only karate: there are coauthor_cs, amazon_computers")
}
