package main

import (
	"cmp"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// A precision compares two ways to train that differ in how numbers are rounded. A seed has the
// same split, first weights, batches and dropout in both.
type precision struct {
	title     string
	intro     string // sentence of the section that leads to the settings
	note      string // sentences behind those that all comparisons have; empty: none
	low, full variant
	tasks     []task
	// within is the bar of the tasks of all seeds: the interval lies between it, negative and
	// positive. A fraction of 1, as accuracy is; 0: not judged.
	within float64
}

// dtypes is the comparison of -dtypes.
var dtypes = precision{
	title: "Features as float16 and as float32",
	intro: "Each data set is ingested\nwith `--dtype f16`, which is the default, and with `--dtype f32`, and trained with the same settings:",
	low:   variant{name: "float16", ingest: []string{"--dtype", "f16"}},
	full:  variant{name: "float32", ingest: []string{"--dtype", "f32"}},
	tasks: tasks,
}

// matmuls is the comparison of -matmul.
var matmuls = precision{
	title:  "Products in bf16 and in f32",
	intro:  "Each data set is trained on\nwith `--matmul bf16` and with `--matmul f32`, which is the default, and else with the same settings:",
	note:   "\nThe figure of acm is micro-F1, of wn18rr filtered MRR over both ends, and of wikipedia average precision, one negative an event.",
	low:    variant{name: "bf16", flags: []string{"--matmul", "bf16"}},
	full:   variant{name: "f32", flags: []string{"--matmul", "f32"}},
	tasks:  matmulTasks(),
	within: 0.003,
}

// matmulTasks returns tasks with the settings that their data sets have elsewhere: nothing is tuned
// to a precision.
func matmulTasks() []task {
	listed := func(name string) task {
		return tasks[slices.IndexFunc(tasks, func(t task) bool { return t.name == name })]
	}
	var all []task
	for _, name := range []string{"coauthor_cs", "amazon_computers", "ogbn_arxiv"} {
		t := listed(name)
		all = append(all, t)
		for _, t.model = range []string{"gcn", "gat"} {
			t.name = name + "/" + t.model
			all = append(all, t)
		}
	}
	triples := listed("wn18rr")
	triples.seeds = 1
	stream := task{name: "wikipedia/tgn", model: "tgn", raw: wikipediaEvents[:2], flags: wikipediaEvents[2:],
		settings: settings{name: "stream"}, epochs: "5", seeds: 3}
	return append(all, listed("acm/rgcn"), triples, stream)
}

// study returns the comparison as a study. Its losses are of the lower precision.
func (p *precision) study() *study {
	return &study{
		tasks: p.tasks, flags: strings.Join(p.low.flags, " "), section: p.markdown,
		pairs: func(t task) []pair {
			both := pair{of: p.low, than: p.full}
			if t.seeds == 0 {
				both.bar.within = p.within
			}
			return []pair{both}
		},
	}
}

// markdown is a section with all that another person needs to measure the same.
func (p *precision) markdown(what string, compared []comparison, seeds int) string {
	var rows [][]string
	var tasks []task
	for _, c := range compared {
		tasks = append(tasks, c.task)
		var differences []float64
		equal := 0
		for i, low := range c.of {
			differences = append(differences, low.Test-c.than[i].Test)
			if low.Test == c.than[i].Test {
				equal++
			}
		}
		mean, _ := meanDeviation(differences)
		spread := "" // of one seed there is none
		if len(differences) > 1 {
			_, low, high := interval(differences)
			spread = fmt.Sprintf("%.2f to %.2f", 100*low, 100*high)
		}
		rows = append(rows, []string{c.dataset(), cmp.Or(c.model, "none"), c.settings.name, c.epochs, fmt.Sprint(len(differences)),
			percentDeviation(values(c.of, trial.test)), percentDeviation(values(c.than, trial.test)),
			fmt.Sprintf("%.2f", 100*mean), spread, fmt.Sprintf("%d of %d", equal, len(differences))})
	}
	return fmt.Sprintf(`
## %s, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. %s

`+"```text\n%s\n```"+`

A seed has the same split, first weights, batches and dropout in both. The difference is what it reached with %s less what it
reached with %s; its interval is two-sided, by Student's t over the seeds. The last column counts the seeds whose test
accuracies are equal to the last digit.%s

%s`, p.title, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(), p.intro,
		strings.Join(settingsLines(tasks, seeds), "\n"), p.low.name, p.full.name, p.note,
		markdownTable([]string{"data set", "model", "settings", "epochs", "seeds", p.low.name + ", test %", p.full.name + ", test %",
			"difference, points", "95 % interval", "equal"}, rows))
}
