package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// historyTasks have epochs of 83 to 91 steps, and settings, as dependenceTasks have: t_stale is
// counted in steps.
var historyTasks = []task{
	{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, epochs: "8",
		settings: paired("10,10", "--hidden", "128", "--batch", "1000", "--eval-every", "2")},
	{name: "coauthor_cs", model: "sage", raw: coauthor, flags: random, splits: true, epochs: "8", settings: coauthorHistory},
	{name: "amazon_computers", model: "sage", raw: computers, flags: random, splits: true, epochs: "12",
		settings: paired("5,5,5", "--hidden", "64", "--batch", "100", "--eval-every", "2")},
	{name: "facebook", model: "sage", raw: pages, flags: facebook, splits: true, epochs: "8", settings: facebookHistory},
	{name: "dblp", model: "sage", raw: dblp, flags: random, splits: true, epochs: "8", settings: coauthorHistory},
	{name: "coauthor_cs/gcn", model: "gcn", raw: coauthor, flags: random, splits: true, epochs: "8", settings: coauthorHistory},
	{name: "coauthor_cs/gat", model: "gat", raw: coauthor, flags: random, splits: true, epochs: "8", settings: coauthorHistory},
	{name: "facebook/gcn", model: "gcn", raw: pages, flags: facebook, splits: true, epochs: "8", settings: facebookHistory},
	{name: "facebook/gat", model: "gat", raw: pages, flags: facebook, splits: true, epochs: "8", settings: facebookHistory},
	{name: "acm/rsage", model: "rsage", raw: acm, flags: []string{"--reverse", "--split", "random:0.6/0.2/0.2"}, splits: true, epochs: "8",
		settings: paired("5,5", "--hidden", "64", "--batch", "14", "--metric", "micro-f1", "--eval-every", "2")},
}

var (
	coauthorHistory = paired("5,5", "--hidden", "64", "--batch", "128", "--eval-every", "2")
	facebookHistory = paired("5,5", "--hidden", "64", "--batch", "160", "--eval-every", "2")
)

// Bars of a t_stale of auto: against none, and on the tasks of the grid alone; and of a lag of auto
// against one of 1, for 10 seeds.
var (
	historyBars = map[string]bar{"ogbn_arxiv": {loss: 0.01, rows: 1. / 3}, "amazon_computers": {loss: 0.015}}
	lagBars     = map[string]bar{"ogbn_arxiv": {within: 0.005}}
)

// What -history grid compares on the tasks of the grid, and on others. A t_stale or a p_grad of 0
// keeps nothing, which is none. With a p_grad of 1 verdicts reject nothing, so that it does not
// matter how late they are.
const (
	historyGrid = "auto,auto:lag=1,20,20:lag=1,20:p-grad=1,200,200:lag=1,200:p-grad=1,inf,inf:lag=1,inf:p-grad=1,none:kappa=64,auto:kappa=64"
	historyFew  = "auto,200"
)

// historyMemory has room for the hidden rows of all nodes: 47 MiB for ogbn_arxiv, and at most 5
// MiB for the other graphs.
const historyMemory = "64MiB"

// reuse is a way to use hidden rows of earlier steps again, in the words of the flags of train.
// Without, t_stale is noReuse, and p_grad and lag are empty.
type reuse struct{ stale, grad, lag, kappa string }

const noReuse = "none"

var (
	plain     = reuse{stale: noReuse, kappa: "1"}
	automatic = reuse{stale: "auto", grad: "0.7", lag: "auto", kappa: "1"}
)

const reuseWants = "want none or T_STALE, which is auto, inf or a number from 1 on, and behind it any of :p-grad=SHARE, :lag=STEPS and :kappa=κ"

// parseReuse reads T_STALE[:p-grad=SHARE][:lag=STEPS][:kappa=κ].
func parseReuse(text string) (reuse, error) {
	steps := func(s string) bool { n, err := strconv.Atoi(s); return err == nil && n >= 1 }
	words := strings.Split(text, ":")
	r := automatic
	r.stale = words[0]
	bad := r.stale != "auto" && r.stale != "inf" && !steps(r.stale)
	if r.stale == noReuse {
		r, bad = plain, false
	}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, "=")
		switch {
		case key == "kappa":
			k, err := sample.ParseKappa(value)
			if err != nil {
				return r, fmt.Errorf("-history %s: %w", text, err)
			}
			r.kappa = sample.KappaText(k)
		case key == "lag" && r.stale != noReuse:
			bad, r.lag = bad || value != "auto" && !steps(value), value
		case key == "p-grad" && r.stale != noReuse:
			share, err := strconv.ParseFloat(value, 64)
			bad, r.grad = bad || err != nil || !(share > 0 && share <= 1), value
		default:
			bad = true
		}
	}
	if bad {
		return r, fmt.Errorf("-history %s: %s", text, reuseWants)
	}
	return r, nil
}

// parseReuses reads several with commas between them. The result begins with plain, and has each
// once.
func parseReuses(text string) ([]reuse, error) {
	all := []reuse{plain}
	for one := range strings.SplitSeq(text, ",") {
		r, err := parseReuse(one)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(all, r) {
			all = append(all, r)
		}
	}
	return all, nil
}

func (r reuse) variant() variant {
	v := variant{name: r.stale}
	if r.stale != noReuse {
		v.name = "t_stale " + r.stale
		v.flags = []string{"--history", "--t-stale", r.stale, "--p-grad", r.grad, "--history-lag", r.lag, "--history-memory", historyMemory}
		if r.grad != automatic.grad {
			v.name += ", p_grad " + r.grad
		}
		if r.lag != automatic.lag {
			v.name += ", lag " + r.lag
		}
	}
	if r.kappa != "1" {
		v.name += ", κ " + r.kappa
		v.flags = append(v.flags, "--kappa", r.kappa, "--dependent", run.Smoothed)
	}
	return v
}

// against pairs r with another, whose name goes in the row of the table.
func (r reuse) against(than reuse, b bar) pair {
	p := pair{of: r.variant(), than: than.variant(), cells: []string{r.stale, r.grad, r.lag, r.kappa, ""}, bar: b}
	if !p.alone() {
		p.cells[4] = p.than.name
	}
	return p
}

// reusePairs are all with plain, and those that differ in lag alone, auto and 1, with each other.
func reusePairs(task string, all []reuse) []pair {
	var pairs []pair
	for _, r := range all {
		var judged, lagJudged bar
		if r == automatic {
			judged, lagJudged = historyBars[task], lagBars[task]
		}
		pairs = append(pairs, r.against(plain, judged))
		early := r
		early.lag = "1"
		if r.lag == "auto" && slices.Contains(all, early) {
			pairs = append(pairs, r.against(early, lagJudged))
		}
	}
	return pairs
}

// reuseStudy compares training with historical embeddings and without, for -history. parseReuses
// reads list, and "grid" stands for the usual lists.
func reuseStudy(list string) (*study, error) {
	few, many := list, list
	if list == "grid" {
		few, many = historyFew, historyGrid
	}
	fewer, err := parseReuses(few)
	if err != nil {
		return nil, err
	}
	all, err := parseReuses(many)
	if err != nil {
		return nil, err
	}
	return &study{
		title: "Accuracy of hidden rows that are used again", tasks: historyTasks,
		flags:   "--history --t-stale T_STALE --p-grad P_GRAD --history-lag LAG --history-memory " + historyMemory + " --kappa KAPPA --dependent smoothed",
		against: "without history and at κ = 1, or in the way that the table names,",
		note: ` Without history the flags from --history to --history-memory are left out, and at κ = 1 those behind them.

Rows are the feature rows that training asked for, in millions, of all epochs, the first of which has no history; reuse is the share of
hidden rows that steps met and used again. There are slots for all nodes. A t_stale or a p_grad of 0 is the run without history, and with a
p_grad of 1 any lag is the same run, so these have no rows here.`,
		head: []string{"t_stale", "p_grad", "lag", "κ", "against"},
		tail: []column{
			{"rows, M", func(c *comparison) string { return fmt.Sprintf("%.2f", mean(c.of, trial.rows)/1e6) }},
			{"fewer rows %", func(c *comparison) string {
				if c.pair.alone() {
					return ""
				}
				return fmt.Sprintf("%.1f", 100*c.fewerRows())
			}},
			{"reuse %", func(c *comparison) string {
				if mean(c.of, trial.reuse) == 0 {
					return ""
				}
				return fmt.Sprintf("%.1f", 100*mean(c.of, trial.reuse))
			}},
		},
		pairs: func(t task) []pair {
			if _, ok := historyBars[t.name]; ok {
				return reusePairs(t.name, all)
			}
			return reusePairs(t.name, fewer)
		},
	}, nil
}
