package sweep

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/store/setting"
)

// gridOf returns the grid of a file.
func gridOf(text string) (*Grid, error) {
	lines, err := setting.ReadLines("f", []byte(text))
	if err != nil {
		return nil, err
	}
	g := NewGrid()
	for _, l := range lines {
		if err := g.Take(l); err != nil {
			return g, fmt.Errorf("%s: %w", l.Name, err)
		}
	}
	return g, nil
}

func texts(t require.TestingT, g *Grid) (all []string) {
	settings, err := g.Settings()
	require.NoError(t, err)
	for i, s := range settings {
		require.Equal(t, i+1, s.Number)
		all = append(all, strings.NewReplacer("{", "--", "}", "", "_", "-").Replace(s.String()))
	}
	return all
}

func TestTake(t *testing.T) {
	g, err := gridOf("dataset: a.gnn\nrun: runs/x\nmodel: [sage, gat]\nfanout: [5, 3]\nlr: [1e-2, 0.003]\nseeds: 5\nhistory: true\n" +
		"halving: {min-epochs: 2, eta: 4}\nepochs: 20\ninput: {node: table}\nseed: 7\n")
	require.NoError(t, err)
	require.Equal(t, "a.gnn", g.Dataset)
	require.Equal(t, "runs/x", g.Run)
	require.Equal(t, 5, g.Seeds)
	require.Equal(t, &Halving{Eta: 4, MinEpochs: 2}, g.Halving)
	require.Equal(t, []setting.Choice{
		{Key: "fanout", Flag: "fanout", Text: "5,3"}, {Key: "history", Flag: "history", Text: "true"}, {Key: "epochs", Flag: "epochs", Text: "20"},
		{Key: "input", Flag: "input", Text: "node=table"}, {Key: "seed", Flag: "seed", Text: "7"},
	}, g.Fixed)
	require.Equal(t, []string{
		"--model sage --lr 0.01", "--model sage --lr 0.003", "--model gat --lr 0.01", "--model gat --lr 0.003",
	}, texts(t, g))

	for text, want := range map[string][]string{
		"fanout: [[5, 3], [2]]":                       {"--fanout 5,3", "--fanout 2"},
		"fanout: [[5, 3], {cites: [1, 2]}]":           {"--fanout 5,3", "--fanout cites=1,2"},
		"class_weights: {values: [none, balanced]}":   {"--class-weights none", "--class-weights balanced"},
		"history: [true, false]":                      {"--history true", "--history false"},
		"lr: [0.1]\nhidden: [8, 4]\nnorm: [none]":     {"--lr 0.1 --hidden 8 --norm none", "--lr 0.1 --hidden 4 --norm none"},
		"hidden: {int: [3, 5]}\nnorm: n\ntrials: 3":   nil,
		"hidden: {log_int: [3, 5]}\ntrials: 3":        nil,
		"lr: {log: [0.5, 1]}\nmodel: [gat]\nseeds: 2": nil,
	} {
		g, err := gridOf(text)
		require.NoError(t, err, text)
		if want != nil {
			require.Equal(t, want, texts(t, g), text)
		}
	}
}

func TestTakeRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"hiden: 4":                         "no such option; gnnstore help options lists them; did you mean hidden?",
		"trils: 4":                         "did you mean trials?",
		"lr: []":                           "the list is empty",
		"lr: {values: []}":                 "the list is empty",
		"lr: [0.1, 1e-1]":                  "0.1 is there twice",
		"lr: 1\nlr: 2":                     "already",
		"lr: [0.1, x]":                     `"x" is not a number`,
		"lr: {log: [0, 1]}":                "no logarithm",
		"lr: {log: [1, 0.1]}":              "is empty; give the lower end first",
		"lr: {log: [1, .inf]}":             "not a number that a range may end with",
		"lr: {log: [1]}":                   "a range has two ends",
		"lr: {lgo: [1, 2]}":                "one of {uniform: [A, B]}",
		"hidden: {uniform: [1, 2]}":        "its range is int or log_int",
		"dropout: {int: [1, 2]}":           "its range is uniform or log",
		"model: {int: [1, 2]}":             "it takes no range",
		"memory: [1GiB, 2GiB]":             "it changes no result",
		"workers: {int: [1, 2]}":           "it changes no result",
		"metric: [accuracy, macro-f1]":     "decides what is measured",
		"seed: [1, 2]":                     "seeds: K",
		"eval_test: epoch":                 "for no other; leave it out",
		"eval-test: [best, none]":          "for no other; leave it out",
		`fanout: ["5,3", "2,2"]`:           "write a list of lists",
		"seeds: 0":                         `"0" is not a number from 1 to 10000`,
		"trials: -1":                       `"-1" is not a number`,
		"dataset: ''":                      "it is empty",
		"halving: 3":                       "write {min_epochs: 2, eta: 3}",
		"halving: {eta: 1}":                "give 2 to 10000",
		"halving: {etta: 3}":               "halving has the keys eta, min_epochs and rungs",
		"halving: {eta: x}":                `"x" is not a number from 1 on`,
		"lr: {log: [0.1, 1]}\nsettings: 1": "no such option",
	} {
		_, err := gridOf(text)
		require.ErrorContains(t, err, want, text)
	}
	for text, want := range map[string]string{
		"lr: {log: [0.1, 1]}":                               "trials: N",
		"hidden: {int: [1, 3]}\ntrials: 4":                  "there are 3 different settings",
		"lr: [0.1, 0.2]\ntrials: 3":                         "there are 2 different settings",
		"lr: {uniform: [0.1, 0.10001]}\ntrials: 5":          "only 1 different settings were found",
		"hidden: {int: [1, 60000]}\ntrials: 9000\nseeds: 2": "9000 settings by 2 seeds: a sweep has at most 10000 runs",
	} {
		g, err := gridOf(text)
		require.NoError(t, err, text)
		_, err = g.Settings()
		require.ErrorContains(t, err, want, text)
	}
	_, err := gridOf("lr: [" + strings.Repeat("1, ", MostRuns) + "1]")
	require.ErrorContains(t, err, "the list has 10001 values, and a sweep has at most 10000 runs")
	g := NewGrid()
	for k := range 70 { // 10^70 combinations
		a := Axis{Key: strconv.Itoa(k), Flag: strconv.Itoa(k)}
		for v := range 10 {
			a.Texts = append(a.Texts, strconv.Itoa(v))
		}
		if g.Axes = append(g.Axes, a); k >= 5 {
			_, err := g.Settings()
			require.ErrorContains(t, err, "draw")
		}
		if k == 5 {
			_, err := g.Settings()
			require.ErrorContains(t, err, "1000000 settings: a sweep has at most 10000 runs")
		}
	}
}

// TestVary: the command line can vary options as a file can, and overrides the file.
func TestVary(t *testing.T) {
	g := NewGrid()
	require.NoError(t, g.Vary("lr=0.01,0.003"))
	require.NoError(t, g.Vary("fanout=5,3 2,2"))
	require.NoError(t, g.Vary("hidden={int: [4, 5]}"))
	require.NoError(t, g.SetTrials(8))
	require.NoError(t, g.Fix(setting.Choice{Key: "batch", Flag: "batch", Text: "10"}))
	for text, want := range map[string]string{
		"lr=1": "given twice", "dropout": "write NAME=VALUE", "dorpout=1": "did you mean dropout?", "norm=": "the list is empty", "model=[sage": "neither a list",
		"norm={log: 1": "neither a list nor a range",
	} {
		require.ErrorContains(t, g.Vary(text), want, text)
	}
	delete(g.lines, "norm")
	g.Keep()
	lines, err := setting.ReadLines("f", []byte("lr: 0.5\nbatch: [1, 2]\ntrials: 3\nnorm: none"))
	require.NoError(t, err)
	for _, l := range lines {
		require.NoError(t, g.Take(l))
	}
	all := texts(t, g)
	require.Len(t, all, 8)
	slices.Sort(all)
	require.Equal(t, "--lr 0.003 --fanout 2,2 --hidden 4", all[0])
	require.Equal(t, []setting.Choice{{Key: "batch", Flag: "batch", Text: "10"}, {Key: "norm", Flag: "norm", Text: "none"}}, g.Fixed)
}

// TestDrawnSettings: draws lie in their ranges, differ, depend on the seed alone, and more trials
// keep the first ones.
func TestDrawnSettings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.Float64Range(1e-6, 1).Draw(t, "low")
		high := low * rapid.Float64Range(1.5, 1e4).Draw(t, "factor")
		first := rapid.IntRange(1, 1000).Draw(t, "first")
		last := first + rapid.IntRange(1, 1000).Draw(t, "width")
		trials, seed := rapid.IntRange(1, 30).Draw(t, "trials"), rapid.Uint64().Draw(t, "seed")
		g, err := gridOf(fmt.Sprintf("lr: {log: [%g, %g]}\nhidden: {int: [%d, %d]}\nbatch: {log_int: [%d, %d]}\nn3: {uniform: [%g, %g]}\n"+
			"model: [sage, gcn]\nseed: %d\n", low, high, first, last, first, last, low, high, seed))
		require.NoError(t, err)
		make := func(trials int) *Grid {
			other := *g
			other.Trials = trials
			return &other
		}
		all := texts(t, make(trials))
		require.Equal(t, all, texts(t, make(trials)))
		require.Equal(t, all, texts(t, make(trials+5))[:trials])
		seen := map[string]bool{}
		settings, err := make(trials).Settings()
		require.NoError(t, err)
		for i, s := range settings {
			require.False(t, seen[all[i]])
			seen[all[i]] = true
			for k, c := range s.Choices[:4] {
				x, err := strconv.ParseFloat(c.Text, 64)
				require.NoError(t, err)
				least, most := low, high
				if k == 1 || k == 2 {
					least, most = float64(first), float64(last)
					require.Equal(t, strconv.Itoa(int(x)), c.Text)
				}
				require.True(t, least <= x && x <= most, "%s: %s of %g to %g", c.Flag, c.Text, least, most)
			}
		}
	})
}

// TestDrawnAll: if there are as many trials as settings, each setting is drawn once.
func TestDrawnAll(t *testing.T) {
	g, err := gridOf("hidden: {int: [3, 7]}\nmodel: [sage, gcn, gat]\n")
	require.NoError(t, err)
	g.Trials = 15
	drawn := texts(t, g)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(drawn))), 15)
}
