package main

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"
)

// twoHabits returns a set whose bare command is near its tuned one, and one whose bare command is
// not.
func twoHabits() []habitResult {
	trials := func(tests ...float64) (all []trial) {
		for _, test := range tests {
			all = append(all, trial{Valid: test + 0.01, Test: test, Seconds: 2})
		}
		return all
	}
	return []habitResult{
		{habit{name: "near", bare: recipe{"npz near.npz --undirected", ""}, tuned: recipe{"", "--lr 0.01"}, chosen: "rates"}, trials(0.80, 0.82), trials(0.84, 0.83)},
		{habit{name: "far", bare: recipe{"csv far.csv --nodes @nodes.csv", "--task link"}, tuned: recipe{"csv far.csv --reverse", "--decoder mlp"}},
			trials(0.50, 0.52), trials(0.60, 0.60)},
	}
}

func TestHabitsThreePointsBelowFail(t *testing.T) {
	require.EqualError(t, judgeHabits(twoHabits()), "far: the bare command reaches 51.00 %, 9.00 points below the tuned one; at most 3 are allowed")
	require.NoError(t, judgeHabits(twoHabits()[:1]))
}

func TestHabitTables(t *testing.T) {
	require.Contains(t, habitsMarkdown("at commit abc1234", twoHabits()), `
| set |  | ingest | train | seeds | test % | points below | valid % | s a seed |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
`+"| near | bare | `gnnstore ingest npz near.npz set.gnn --undirected` | `gnnstore train set.gnn` | 2 | 81.00 ± 1.41 | 2.50 | 82.00 | 2 |\n"+
		"| near | tuned, the best of validation among rates | `gnnstore ingest npz near.npz set.gnn --undirected` | `gnnstore train set.gnn --lr 0.01` | 2 | 83.50 ± 0.71 |  | 84.50 | 2 |\n"+
		"| far | bare | `gnnstore ingest csv far.csv set.gnn --nodes nodes.csv` | `gnnstore train set.gnn --task link` | 2 | 51.00 ± 1.41 | 9.00 | 52.00 | 2 |\n"+
		"| far | tuned | `gnnstore ingest csv far.csv set.gnn --reverse` | `gnnstore train set.gnn --task link --decoder mlp` | 2 | 60.00 ± 0.00 |  | 61.00 | 2 |\n")
	var text bytes.Buffer
	require.NoError(t, writeHabits(&text, "at commit abc1234", twoHabits()))
	var read struct {
		Rows []map[string]any `json:"rows"`
	}
	require.NoError(t, json.Unmarshal(text.Bytes(), &read))
	require.Len(t, read.Rows, 4)
	require.Equal(t, "gnnstore train set.gnn --task link --decoder mlp", read.Rows[3]["train"])
	require.InDelta(t, 0.09, read.Rows[2]["below_tuned"], 1e-9)
}

func TestSelectHabits(t *testing.T) {
	selected, err := selectHabits("umls,ddi")
	require.NoError(t, err)
	require.Equal(t, "umls", selected[0].name)
	require.Equal(t, "ddi", selected[1].name)
	_, err = selectHabits("karate")
	require.ErrorContains(t, err, "-only karate: with -defaults there are computers-20, chameleon_filtered")
	names := map[string]bool{}
	for _, h := range habits {
		require.False(t, names[h.name], "%s is there twice", h.name)
		names[h.name] = true
		bare, tuned := h.recipes()
		require.NotEqual(t, bare, tuned, h.name)
		require.GreaterOrEqual(t, len(bare.ingest), 1, h.name)
	}
}
