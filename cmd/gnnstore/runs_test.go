package main

import (
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestRuns lists runs of two sizes by two seeds each, one that ran twice, and a damaged one.
func TestRuns(t *testing.T) {
	t.Chdir(t.TempDir())
	code, _, stderr := gnnstore(t, "generate", "citations", "graph.gnn", "--nodes", "2000", "--classes", "3")
	require.Zero(t, code, stderr)
	for _, r := range [][]string{
		{"a", "--hidden", "4"}, {"b", "--hidden", "4", "--seed", "2"}, {"c", "--hidden", "16"},
		{"d", "--hidden", "16", "--seed", "2"}, {"e", "--hidden", "16", "--seed", "2", "--workers", "1"},
	} {
		args := append([]string{"train", "graph.gnn", "--run", "runs/" + r[0], "--epochs", "2", "--fanout", "3,3"}, r[1:]...)
		code, _, stderr := gnnstore(t, args...)
		require.Zero(t, code, stderr)
	}
	require.NoError(t, os.CopyFS("runs/x\x1b[1m", os.DirFS("runs/a")))
	require.NoError(t, os.WriteFile("runs/x\x1b[1m/result.json", []byte("{"), 0o666))
	require.NoError(t, os.MkdirAll("runs/empty", 0o777))

	code, out, stderr := gnnstore(t, "runs", "--json")
	require.Zero(t, code, stderr)
	var list runList
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list.Runs, 6)
	require.Equal(t, "unreadable", list.Runs[0].Status)
	require.Contains(t, list.Runs[0].Error, "result.json is damaged")
	byRun := map[string]*listedRun{}
	for i, l := range list.Runs[1:] {
		byRun[l.Run] = l
		require.Equal(t, "done", l.Status)
		require.Equal(t, 2, l.Epochs)
		require.Len(t, l.Options, 2)
		if i > 0 {
			require.GreaterOrEqual(t, *list.Runs[i].Valid, *l.Valid, "the best comes first")
		}
	}
	require.Equal(t, map[string]string{"hidden": "4", "seed": "2"}, byRun["runs/b"].Options)
	require.Equal(t, map[string]string{"hidden": "16", "seed": "1"}, byRun["runs/c"].Options)
	require.Equal(t, byRun["runs/d"].Params, byRun["runs/e"].Params, "workers decide nothing")
	require.Len(t, list.Seeds, 2)
	for _, g := range list.Seeds {
		require.Len(t, g.Seeds, 2, "a seed that ran twice counts once")
		if g.Options["hidden"] == "4" {
			a, b := *byRun["runs/a"].Valid, *byRun["runs/b"].Valid
			require.InDelta(t, (a+b)/2, g.Valid.Mean, 1e-12)
			require.InDelta(t, (a-b)*(a-b)/2, g.Valid.Deviation*g.Valid.Deviation, 1e-12)
		}
	}

	// Runs of other lengths are no runs by other seeds.
	code, _, stderr = gnnstore(t, "train", "graph.gnn", "--run", "runs/longer", "--epochs", "3", "--fanout", "3,3", "--hidden", "4", "--seed", "3")
	require.Zero(t, code, stderr)
	code, out, stderr = gnnstore(t, "runs", "--json")
	require.Zero(t, code, stderr)
	require.NoError(t, json.Unmarshal([]byte(out), &list))
	require.Len(t, list.Seeds, 2)
	for _, g := range list.Seeds {
		require.Len(t, g.Seeds, 2)
		require.Equal(t, "2", g.Options["epochs"])
	}
	require.NoError(t, os.RemoveAll("runs/longer"))

	code, out, stderr = gnnstore(t, "runs", "--csv", "runs/c", "runs/a", "--sort", "run")
	require.Zero(t, code, stderr)
	rows, err := csv.NewReader(strings.NewReader(out)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 3)
	require.Equal(t, []string{"params_xxh3", "hidden"}, rows[0][len(rows[0])-2:])
	require.Equal(t, "runs/c", rows[1][0])

	code, out, stderr = gnnstore(t, "runs")
	require.Zero(t, code, stderr)
	require.Contains(t, out, "runs/b: --hidden 4 --seed 2\n")
	require.Regexp(t, `over 2 seeds of graph.gnn: valid [0-9.]+ ± [0-9.]+ %, test [0-9.]+ ± [0-9.]+ %: --hidden 16\n`, out)
	require.NotContains(t, out, "\x1b")

	code, out, stderr = gnnstore(t, "stats", "runs", "runs/a", "--html", "all.html")
	require.Zero(t, code, stderr)
	require.Equal(t, "all.html\n", out)
	page, err := os.ReadFile("all.html")
	require.NoError(t, err)
	require.Contains(t, string(page), "<h1>6 runs</h1>")
	require.Contains(t, string(page), "<svg class=\"swatch c5\"")
	require.Contains(t, string(page), "x?[1m</th>")
	require.Contains(t, string(page), "unreadable: ")

	for want, args := range map[string][]string{
		"--html all.html: it exists already; choose another name, or remove it":       {"stats", "runs/a", "--html", "all.html"},
		"--html all.svg: the page is HTML; end its name in .html":                     {"stats", "runs/a", "--html", "all.svg"},
		"--html nowhere: no such directory; make it first":                            {"stats", "runs/a", "--html", "nowhere/all.html"},
		"--html and --listen do not go with --watch or --json; leave one out":         {"stats", "runs/a", "--html", "b.html", "--json"},
		"--worker 1: it goes with one run":                                            {"stats", "runs", "--html", "b.html", "--worker", "1"},
		"open nowhere: no such file or directory; name a run, or a directory of runs": {"stats", "nowhere", "--html", "b.html"},
		"\"runs/b\" is one argument too many; --html and --listen show several runs":  {"stats", "runs/a", "runs/b"},
		"there are no runs in it; gnnstore train DATASET makes one":                   {"runs", "runs/empty"},
		"name a run, or a directory of runs":                                          {"runs", "nowhere"},
		"--sort best: there are run, seconds, test, valid":                            {"runs", "--sort", "best"},
		"--json and --csv: choose one of them":                                        {"runs", "--json", "--csv"},
	} {
		code, _, stderr := gnnstore(t, args...)
		require.NotZero(t, code)
		require.Contains(t, stderr, want)
	}
	if os.Geteuid() != 0 {
		require.NoError(t, os.Chmod("runs", 0))
		defer os.Chmod("runs", 0o777)
		code, _, stderr := gnnstore(t, "runs")
		require.Equal(t, 1, code)
		require.Contains(t, stderr, filepath.Base("runs"))
	}
}
