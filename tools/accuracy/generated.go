package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/generate"
)

// A contender is a model on a generated graph, or on rows that plain averages make of it.
type contender struct {
	name  string
	hops  []int // which rows it learns from, side by side: see newHopRows; none: the graph itself
	flags []string
}

// contenders begin with the one that the others are held against. Each has the settings that were
// best on validation, of a few that were tried with seed 1.
var contenders = []contender{
	{"GraphSAGE, 3 layers", nil, split("--fanout 8,6,4 --hidden 64 --lr 0.01 --dropout 0.1 --batch 500 --epochs 16 --eval-every 4")},
	{"GraphSAGE, 2 layers", nil, split("--fanout 10,10 --hidden 64 --lr 0.01 --dropout 0.1 --batch 500 --epochs 16 --eval-every 4")},
	{"MLP, own row", nil, split("--model mlp --layers 3 --hidden 128 --lr 0.003 --dropout 0.3 --epochs 24 --eval-every 4")},
	{"MLP, mean of 3 hops", []int{3}, split("--model mlp --layers 2 --hidden 256 --lr 0.001 --dropout 0.5 --epochs 30 --eval-every 5")},
	{"logistic regression, mean of 3 hops", []int{3}, split("--model mlp --layers 1 --lr 0.01 --dropout 0 --epochs 24 --eval-every 4")},
	{"MLP, own row and means of 1, 2, 3 hops", []int{0, 1, 2, 3}, split("--model mlp --layers 3 --hidden 256 --lr 0.003 --dropout 0.3 --epochs 24 --eval-every 4")},
}

func split(flags string) []string { return slices.Clip(strings.Fields(flags)) }

// leastGap is how far GraphSAGE's accuracy must be above the accuracy by the mean of 3 hops, as a
// fraction of 1.
const leastGap = 0.10

// generated trains the contenders on a kind of generated graph, and holds the first against those
// with the mean of 3 hops.
func (b *bench) generated(ctx context.Context, w io.Writer, o options) error {
	if o.generated == churnKind {
		return b.churn(ctx, w, o)
	}
	var results []result
	for _, c := range contenders {
		dataset, err := b.generate(ctx, o.generated, o.scale, c.hops)
		if err != nil {
			return err
		}
		r := result{task: task{name: c.name}}
		for seed := 1; seed <= o.seeds; seed++ {
			trained, seconds, err := b.train(ctx, dataset, filepath.Join(b.tmp, "run"), append(c.flags, "--seed", strconv.Itoa(seed))...)
			if err != nil {
				return err
			}
			r.test, r.valid, r.seconds = append(r.test, trained.Best.TestAcc), append(r.valid, trained.Best.ValidAcc), append(r.seconds, seconds)
			fmt.Fprintf(b.progress, "%s seed %d: epoch %d  valid %.4f  test %.4f  %.1f s\n",
				c.name, seed, trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc, seconds)
		}
		results = append(results, r)
	}
	text := generatedMarkdown(b.what, o, results)
	fmt.Fprint(w, text)
	if o.record != "" {
		if err := putAbove(o.record, text); err != nil {
			return err
		}
	}
	return gaps(results)
}

// generate makes the graph, or finds it made. Every model has the same one: seeds are the
// trainings'.
func (b *bench) generate(ctx context.Context, kind string, scale float64, hops []int) (string, error) {
	out := filepath.Join(b.tmp, kind+strings.Trim(strings.ReplaceAll(fmt.Sprint(hops), " ", "-"), "[]")+".gnn")
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	if hops == nil {
		return out, b.gnnstore.Run(ctx, "generate", kind, out, "--scale", fmt.Sprint(scale))
	}
	source, err := generate.Open(kind, generate.Options{Scale: scale})
	if err != nil {
		return "", err
	}
	rows, err := newHopRows(ctx, source, hops...)
	if err != nil {
		return "", err
	}
	_, err = build.Build(ctx, rows, out, build.Options{})
	return out, err
}

// gaps names every model on the mean of 3 hops that comes near the first of results.
func gaps(results []result) error {
	best, _ := meanDeviation(results[0].test)
	for i, r := range results {
		hops := contenders[i].hops
		if mean, _ := meanDeviation(r.test); len(hops) == 1 && best-mean < leastGap {
			return fmt.Errorf("%s: test accuracy %.2f %%, and %s has %.2f %%: want %.0f points between them", r.name, 100*mean,
				results[0].name, 100*best, 100*leastGap)
		}
	}
	return nil
}

// generatedMarkdown is a section with all that another person needs to measure the same.
func generatedMarkdown(what string, o options, results []result) string {
	best, _ := meanDeviation(results[0].test)
	var rows [][]string
	for i, r := range results {
		test, deviation := meanDeviation(r.test)
		valid, _ := meanDeviation(r.valid)
		seconds, _ := meanDeviation(r.seconds)
		below := ""
		if i > 0 {
			below = fmt.Sprintf("%.1f", 100*(best-test))
		}
		rows = append(rows, []string{r.name, fmt.Sprint(len(r.test)), fmt.Sprintf("%.2f ± %.2f", 100*test, 100*deviation), below,
			fmt.Sprintf("%.2f", 100*valid), fmt.Sprintf("%.1f", seconds), "`" + strings.Join(contenders[i].flags, " ") + "`"})
	}
	return fmt.Sprintf(`
## What a generated graph of kind %s gives to plain averages, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. The graph is that of
`+"`gnnstore generate %s --scale %v`"+`, seed 1. The mean of 3 hops is a node's row after averaging three times over itself
and its in-neighbours, all of them. The tested epoch is the best one of validation. ± is the standard deviation over the seeds of
training.

%s`, o.generated, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(), o.generated, o.scale,
		markdownTable([]string{"model", "seeds", "test %", "points below the first", "valid %", "s a seed", "flags of train"}, rows))
}
