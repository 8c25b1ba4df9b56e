package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"gonum.org/v1/gonum/stat/distuv"

	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// judgedKappa is the largest κ for which a task's maxLoss holds.
const judgedKappa = 256

// dependent are the settings of what -kappa compares. Their rate falls to nothing, so that two runs do not differ by where
// their last steps happened to lead.
func dependent(fanout string, more ...string) settings {
	return settings{"dependent", append([]string{"--layers", "2", "--fanout", fanout, "--lr", "0.01", "--schedule", "cosine",
		"--dropout", "0.5", "--workers", "1"}, more...)}
}

// dependenceTasks have splits and batches that make an epoch of 83 to 91 steps: on public splits it is one or two, and a κ of
// 16 would last longer than most runs. Their fanouts stay below the mean degrees (14, 9, 15 and 36), or little would be drawn.
var dependenceTasks = []task{
	{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, epochs: "16", maxLoss: 0.005,
		settings: dependent("10,10", "--hidden", "128", "--batch", "1000", "--eval-every", "4")},
	{name: "coauthor_cs", model: "sage", raw: coauthor, flags: random, splits: true, epochs: "8",
		settings: dependent("5,5", "--hidden", "64", "--batch", "128", "--eval-every", "4")},
	{name: "facebook", model: "sage", raw: pages, flags: facebook, splits: true, epochs: "8",
		settings: dependent("5,5", "--hidden", "64", "--batch", "160", "--eval-every", "4")},
	{name: "amazon_computers", model: "sage", raw: computers, flags: random, splits: true, epochs: "12",
		settings: dependent("5,5", "--hidden", "64", "--batch", "100", "--eval-every", "4")},
}

// A variant is a way to draw batches, by the flags of train. Dependent is empty for κ = 1, where the two ways are one.
type variant struct {
	Sampler   string `json:"sampler"`
	Dependent string `json:"dependent"`
	Kappa     string `json:"kappa"`
}

func (v variant) String() string {
	return strings.TrimSpace(v.Sampler+" "+v.Dependent) + " κ " + v.Kappa
}

func (v variant) flags() []string {
	flags := []string{"--sampler", v.Sampler, "--kappa", v.Kappa}
	if v.Dependent != "" {
		flags = append(flags, "--dependent", v.Dependent)
	}
	return flags
}

// variants are all of three comma-separated lists, each once: of a sampler first κ = 1, with which its others are paired.
func variants(samplers, dependents, kappas string) ([]variant, error) {
	var all []variant
	for sampler := range strings.SplitSeq(samplers, ",") {
		all = append(all, variant{Sampler: sampler, Kappa: "1"})
		for dependent := range strings.SplitSeq(dependents, ",") {
			if dependent != run.Nested && dependent != run.Smoothed {
				return nil, fmt.Errorf("-dependent %s: %s, %s or both", dependents, run.Nested, run.Smoothed)
			}
			config := sample.Config{Kind: sample.Kind(sampler), Smoothed: dependent == run.Smoothed, Walk: sample.DefaultWalk}
			if err := config.Validate(); err != nil {
				return nil, err
			}
			for kappa := range strings.SplitSeq(kappas, ",") {
				k, err := sample.ParseKappa(kappa)
				if err != nil {
					return nil, fmt.Errorf("-kappa %s: %w", kappas, err)
				}
				kappa = sample.KappaText(k)
				if v := (variant{sampler, dependent, kappa}); kappa != "1" && !slices.Contains(all, v) {
					all = append(all, v)
				}
			}
		}
	}
	return all, nil
}

// dependence measures what dependent minibatches lose on tasks.
func (b *bench) dependence(ctx context.Context, w io.Writer, tasks []task, o options) (err error) {
	variants, err := variants(o.samplers, o.dependences, o.kappas)
	if err != nil {
		return err
	}
	log, err := openTrials(o.log, b.binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, line := range commandLines(tasks) {
		fmt.Fprintln(b.progress, line)
	}
	compared, err := b.compare(ctx, tasks, variants, o.seeds, o.jobs, log)
	switch {
	case err != nil && ctx.Err() != nil && o.log != "":
		return fmt.Errorf("interrupted: the same command goes on from -log %s", o.log)
	case err != nil:
		return err
	}
	text := dependenceMarkdown(b.what, compared)
	fmt.Fprint(w, text)
	if o.record != "" {
		if err := appendText(o.record, text); err != nil {
			return err
		}
	}
	return aboveLoss(compared)
}

// compare trains every task with every variant, a seed at a time, so that what is done at any moment is in pairs.
func (b *bench) compare(ctx context.Context, tasks []task, variants []variant, seeds, jobs int, log *trialLog) ([]comparison, error) {
	var compared []comparison
	for _, t := range tasks {
		for seed := 1; seed <= seeds; seed++ {
			if err := b.compareSeed(ctx, t, variants, seed, jobs, log); err != nil {
				return nil, err
			}
		}
		for _, v := range variants {
			c := comparison{task: t, variant: v}
			for seed := 1; seed <= seeds; seed++ {
				independent, _ := log.find(trialOf(t, variant{Sampler: v.Sampler, Kappa: "1"}, seed))
				trial, _ := log.find(trialOf(t, v, seed))
				c.add(independent, trial)
			}
			compared = append(compared, c)
		}
	}
	return compared, nil
}

// compareSeed runs those trials of a seed that log lacks, jobs of them at once.
func (b *bench) compareSeed(ctx context.Context, t task, variants []variant, seed, jobs int, log *trialLog) error {
	var lacking []trial
	for _, v := range variants {
		trial := trialOf(t, v, seed)
		if _, ok := log.find(trial); !ok {
			lacking = append(lacking, trial)
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	dataset, err := b.dataset(ctx, t, seed)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for i, trial := range lacking {
		g.Go(func() error {
			run := filepath.Join(b.tmp, fmt.Sprintf("run-%d", i))
			trained, seconds, err := b.train(ctx, dataset, run, strings.Fields(trial.Args)...)
			if err != nil {
				return err
			}
			trial.Epoch, trial.Valid, trial.Test = trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc
			trial.Seconds = seconds
			fmt.Fprintf(b.progress, "%s seed %d %v: epoch %d  valid %.4f  test %.4f  %.1f s\n",
				t.name, seed, trial.variant, trial.Epoch, trial.Valid, trial.Test, seconds)
			return log.add(trial)
		})
	}
	err = g.Wait()
	if t.splits {
		err = errors.Join(err, os.RemoveAll(dataset))
	}
	return err
}

// A comparison is what the seeds of a variant reached, and lost against the same seeds at κ = 1.
type comparison struct {
	task
	variant
	test, valid, seconds, loss []float64
}

func (c *comparison) add(independent, trial trial) {
	c.test = append(c.test, trial.Test)
	c.valid = append(c.valid, trial.Valid)
	c.seconds = append(c.seconds, trial.Seconds)
	c.loss = append(c.loss, independent.Test-trial.Test)
}

// interval returns the mean of x and its two-sided 95 % confidence interval by Student's t.
func interval(x []float64) (mean, low, high float64) {
	if len(x) < 2 {
		return math.NaN(), math.Inf(-1), math.Inf(1)
	}
	n := float64(len(x))
	mean, deviation := meanDeviation(x)
	half := distuv.StudentsT{Sigma: 1, Nu: n - 1}.Quantile(0.975) * deviation / math.Sqrt(n)
	return mean, mean - half, mean + half
}

// aboveLoss names every variant whose loss may be more than its task allows.
func aboveLoss(compared []comparison) error {
	var errs []error
	for _, c := range compared {
		kappa, err := strconv.Atoi(c.Kappa)
		if c.maxLoss == 0 || err != nil || kappa > judgedKappa {
			continue
		}
		if _, _, high := interval(c.loss); high >= c.maxLoss {
			errs = append(errs, fmt.Errorf("%s, %v: the loss may be %.2f points, want below %.2f",
				c.name, c.variant, 100*high, 100*c.maxLoss))
		}
	}
	return errors.Join(errs...)
}

var dependenceHeader = []string{"data set", "sampler", "dependent", "κ", "seeds", "test %", "loss, points", "95 % interval",
	"upper bound", "valid %", "s a seed"}

// cells are a comparison's row below dependenceHeader.
func (c *comparison) cells() []string {
	test, deviation := meanDeviation(c.test)
	valid, _ := meanDeviation(c.valid)
	seconds, _ := meanDeviation(c.seconds)
	loss := []string{"", "", ""}
	if c.Kappa != "1" {
		mean, low, high := interval(c.loss)
		loss = []string{fmt.Sprintf("%.2f", 100*mean), fmt.Sprintf("%.2f to %.2f", 100*low, 100*high), fmt.Sprintf("%.2f", 100*high)}
	}
	return slices.Concat([]string{c.name, c.Sampler, c.Dependent, c.Kappa, strconv.Itoa(len(c.test)),
		fmt.Sprintf("%.2f ± %.2f", 100*test, 100*deviation)}, loss, []string{fmt.Sprintf("%.2f", 100*valid), fmt.Sprintf("%.1f", seconds)})
}

// commandLines are the commands behind the comparisons of tasks.
func commandLines(tasks []task) []string {
	var lines []string
	for _, t := range tasks {
		seed := ""
		if t.splits {
			seed = " --seed SEED"
		}
		ingest := strings.ReplaceAll(strings.Join(t.flags, " "), "@", "") + seed
		train := strings.Join(trainFlags(t), " ") + " --sampler SAMPLER --kappa KAPPA --dependent DEPENDENT --seed SEED"
		lines = append(lines, fmt.Sprintf("gnnstore ingest %s %s %s.gnn %s", t.raw[0], t.raw[1], t.name, ingest),
			fmt.Sprintf("gnnstore train %s.gnn %s", t.name, train))
	}
	return lines
}

// dependenceMarkdown is a section with the table, and what another person needs to measure the same.
func dependenceMarkdown(what string, compared []comparison) string {
	var tasks []task
	var rows [][]string
	for _, c := range compared {
		if !slices.ContainsFunc(tasks, func(t task) bool { return t.name == c.name }) {
			tasks = append(tasks, c.task)
		}
		rows = append(rows, c.cells())
	}
	return fmt.Sprintf(`
## Accuracy of dependent minibatches, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s:

`+"```text\n%s\n```"+`

The tested epoch is the best one of validation. ± is the standard deviation over seeds. A seed's loss is what it reached at
κ = 1 less what it reached here, from the same split, first weights, order of seeds and dropout; its interval is two-sided, by
Student's t over the seeds, and its upper end is judged where there is a bar.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(),
		strings.Join(commandLines(tasks), "\n"), markdownTable(dependenceHeader, rows))
}
