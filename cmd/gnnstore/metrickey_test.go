package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMetricKeys: every JSON with figures has the keys metric, valid and test, whatever the metric.
func TestMetricKeys(t *testing.T) {
	t.Chdir(t.TempDir())
	do := func(line string) (got map[string]any) {
		t.Helper()
		code, stdout, stderr := gnnstore(t, strings.Fields(line)...)
		require.Zero(t, code, "%s: %s", line, stderr)
		if strings.Contains(line, "--json") {
			require.NoError(t, json.Unmarshal([]byte(stdout), &got))
		}
		return got
	}
	do("generate citations graph.gnn --nodes 500 --classes 3")
	do("generate temporal stream.gnn --nodes 200 --edges 1500")
	node := do("train graph.gnn --epochs 2 --hidden 4 --metric macro-f1 --run n --json")
	require.Equal(t, "macro-f1", node["metric"])
	best := node["best"].(map[string]any)
	require.Equal(t, best["test_macro_f1"], node["test"])
	require.Equal(t, best["valid_macro_f1"], node["valid"])
	eval := do("eval n --json --nodes valid,test")
	for _, key := range []string{"metric", "valid", "test"} {
		require.Equal(t, node[key], eval[key], key)
		require.Equal(t, node[key], do("stats n --json")[key], key)
		require.Equal(t, node[key], do("runs n --json")["runs"].([]any)[0].(map[string]any)[key], key)
	}
	require.Nil(t, do("eval n --json --nodes train")["test"])
	seeds := do("train graph.gnn --epochs 2 --hidden 4 --seeds 2 --run s --json")["over_seeds"].([]any)[0].(map[string]any)
	require.Equal(t, "accuracy", seeds["metric"])
	require.Contains(t, seeds["test"], "mean")

	stream := do("train stream.gnn --model tgn --epochs 1 --hidden 8 --run e --json")
	require.Equal(t, "ap", stream["metric"])
	require.NotNil(t, stream["test"])
	eval = do("eval e --json")
	require.Equal(t, "ap", eval["metric"])
	require.InDelta(t, stream["test"], eval["test"], 1e-12)
}
