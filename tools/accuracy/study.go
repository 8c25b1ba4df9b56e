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
)

// A study compares ways to train, seed by seed: see compare.
type study struct {
	title   string
	tasks   []task
	pairs   func(t task) []pair // of a task, a row of the table each
	flags   string              // that variants add, for the commands of the section
	against string              // what losses are against, as in "what it reached at κ = 1"
	note    string              // more that the section says
	// section writes the whole section in place of markdown; nil: markdown does.
	section func(what string, compared []comparison, seeds int) string
	// The columns of the table: a task's name; head, whose cells are in a pair; the columns that
	// all studies have; and tail.
	head []string
	tail []column
}

// paired are the settings of what studies compare. Their rate falls to nothing, so that two runs do
// not differ by where their last steps happened to lead.
func paired(fanout string, more ...string) settings {
	layers := strconv.Itoa(1 + strings.Count(fanout, ","))
	return settings{"paired", append([]string{"--layers", layers, "--fanout", fanout, "--lr", "0.01", "--schedule", "cosine",
		"--dropout", "0.5", "--workers", "1"}, more...)}
}

// A variant is a way to train: flags of ingest and of train, beside the flags of the task.
type variant struct {
	name          string
	ingest, flags []string
}

// A pair is a variant and the variant that it is compared with. A variant that is only compared
// with by others is paired with itself.
type pair struct {
	of, than variant
	cells    []string // below study.head
	bar      bar
}

// alone reports whether the pair is of a variant with itself.
func (p *pair) alone() bool { return p.of.name == p.than.name }

// A bar has the limits for a pair. A limit of 0 is not judged.
type bar struct {
	loss   float64 // the interval of the loss ends below it; a fraction of 1, as accuracy is
	within float64 // that interval lies between this, negative and positive
	rows   float64 // share of feature rows that are not read
}

type column struct {
	name string
	cell func(c *comparison) string
}

// A comparison is the trials of a pair, a seed each, in the order of their seeds.
type comparison struct {
	task
	pair     pair
	of, than []trial
}

// losses returns the test accuracy that each seed lost against the same seed of the other variant.
func (c *comparison) losses() []float64 {
	var losses []float64
	for i := range c.of {
		losses = append(losses, c.than[i].Test-c.of[i].Test)
	}
	return losses
}

// fewerRows is the share of the other variant's feature rows that the pair's does not ask for.
func (c *comparison) fewerRows() float64 { return 1 - mean(c.of, trial.rows)/mean(c.than, trial.rows) }

// perform trains what a study compares on tasks, writes the table and judges it.
func (s *study) perform(ctx context.Context, b *bench, w io.Writer, tasks []task, o options) (err error) {
	log, err := openTrials(o.log, b.binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	for _, line := range s.commandLines(tasks) {
		fmt.Fprintln(b.progress, line)
	}
	compared, err := s.compare(ctx, b, tasks, o.seeds, o.jobs, log)
	switch {
	case err != nil && ctx.Err() != nil && o.log != "":
		return fmt.Errorf("interrupted: the same command goes on from -log %s", o.log)
	case err != nil:
		return err
	}
	var text string
	if s.section != nil {
		text = s.section(b.what, compared, o.seeds)
	} else {
		text = s.markdown(b.what, compared)
	}
	fmt.Fprint(w, text)
	if o.record != "" {
		if err := putAbove(o.record, text); err != nil {
			return err
		}
	}
	return judge(compared)
}

// compare trains every task with every variant, a seed at a time, so that what is done at any
// moment is in pairs.
func (s *study) compare(ctx context.Context, b *bench, tasks []task, seeds, jobs int, log *trialLog) ([]comparison, error) {
	var compared []comparison
	for _, t := range tasks {
		pairs, seeds := s.pairs(t), t.atMost(seeds)
		for seed := 1; seed <= seeds; seed++ {
			if err := b.compareSeed(ctx, t, pairs, seed, jobs, log); err != nil {
				return nil, err
			}
		}
		for _, p := range pairs {
			c := comparison{task: t, pair: p}
			for seed := 1; seed <= seeds; seed++ {
				of, _ := log.find(trialOf(t, p.of, seed))
				than, _ := log.find(trialOf(t, p.than, seed))
				c.of, c.than = append(c.of, of), append(c.than, than)
			}
			compared = append(compared, c)
		}
	}
	return compared, nil
}

// compareSeed runs those trials of a seed that log lacks, jobs of them at once.
func (b *bench) compareSeed(ctx context.Context, t task, pairs []pair, seed, jobs int, log *trialLog) (err error) {
	var lacking []trial
	for _, p := range pairs {
		for _, v := range []variant{p.than, p.of} {
			trial := trialOf(t, v, seed)
			if _, ok := log.find(trial); !ok && !slices.ContainsFunc(lacking, trial.same) {
				lacking = append(lacking, trial)
			}
		}
	}
	if len(lacking) == 0 {
		return nil
	}
	datasets := map[string]string{} // by the flags of ingest that variants add
	for _, trial := range lacking {
		if datasets[trial.Ingest], err = b.dataset(ctx, t, seed, strings.Fields(trial.Ingest)...); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(jobs)
	for i, trial := range lacking {
		g.Go(func() error {
			run := filepath.Join(b.tmp, fmt.Sprintf("run-%d", i))
			trained, seconds, err := b.train(ctx, datasets[trial.Ingest], run, strings.Fields(trial.Args)...)
			if err != nil {
				return err
			}
			trial.Epoch, trial.Valid, trial.Test = trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc
			trial.Seconds, trial.Rows, trial.Reuse = seconds, trained.InputRows, trained.History.Reuse
			fmt.Fprintf(b.progress, "%s seed %d %s: epoch %d  valid %.4f  test %.4f  %.1f s\n",
				t.name, seed, trial.Variant, trial.Epoch, trial.Valid, trial.Test, seconds)
			return log.add(trial)
		})
	}
	err = g.Wait()
	for _, dataset := range datasets {
		if t.splits {
			err = errors.Join(err, os.RemoveAll(dataset))
		}
	}
	return err
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

// judge names every bar that a pair is not certain to hold.
func judge(compared []comparison) error {
	var errs []error
	for _, c := range compared {
		fail := func(format string, args ...any) {
			errs = append(errs, fmt.Errorf("%s, %s: "+format, append([]any{c.name, c.pair.of.name}, args...)...))
		}
		_, low, high := interval(c.losses())
		if bar := c.pair.bar.loss; bar > 0 && high >= bar {
			fail("the loss may be %.2f points, want below %.2f", 100*high, 100*bar)
		}
		if bar := c.pair.bar.within; bar > 0 && (high >= bar || low <= -bar) {
			fail("the loss against %s may be %.2f to %.2f points, want within ±%.2f", c.pair.than.name, 100*low, 100*high, 100*bar)
		}
		if bar := c.pair.bar.rows; bar > 0 && c.fewerRows() < bar {
			fail("%.1f %% fewer rows, want %.1f", 100*c.fewerRows(), 100*bar)
		}
	}
	return errors.Join(errs...)
}

// header is of the cells of comparisons.
func (s *study) header() []string {
	header := slices.Concat([]string{"data set"}, s.head, []string{"seeds", "test %", "loss, points", "95 % interval", "upper bound", "valid %"})
	for _, more := range s.tail {
		header = append(header, more.name)
	}
	return header
}

func (s *study) cells(c *comparison) []string {
	test, deviation := meanDeviation(values(c.of, trial.test))
	loss := []string{"", "", ""}
	if !c.pair.alone() {
		mean, low, high := interval(c.losses())
		loss = []string{fmt.Sprintf("%.2f", 100*mean), fmt.Sprintf("%.2f to %.2f", 100*low, 100*high), fmt.Sprintf("%.2f", 100*high)}
	}
	cells := slices.Concat([]string{c.name}, c.pair.cells, []string{strconv.Itoa(len(c.of)), fmt.Sprintf("%.2f ± %.2f", 100*test, 100*deviation)},
		loss, []string{fmt.Sprintf("%.2f", 100*mean(c.of, trial.valid))})
	for _, more := range s.tail {
		cells = append(cells, more.cell(c))
	}
	return cells
}

// commandLines are the commands behind the comparisons of tasks.
func (s *study) commandLines(tasks []task) []string {
	var lines []string
	for _, t := range tasks {
		seed := ""
		if t.splits {
			seed = " --seed SEED"
		}
		name := t.dataset()
		ingest := strings.ReplaceAll(strings.Join(t.flags, " "), "@", "") + seed
		train := strings.Join(slices.Concat(trainFlags(t), strings.Fields(s.flags), []string{"--seed SEED"}), " ")
		for _, line := range []string{
			fmt.Sprintf("gnnstore ingest %s %s %s.gnn %s", t.raw[0], t.raw[1], name, ingest),
			fmt.Sprintf("gnnstore train %s.gnn %s", name, train),
		} {
			if !slices.Contains(lines, line) {
				lines = append(lines, line)
			}
		}
	}
	return lines
}

// markdown is a section with the table, and what another person needs to measure the same.
func (s *study) markdown(what string, compared []comparison) string {
	var tasks []task
	var rows [][]string
	for _, c := range compared {
		if !slices.ContainsFunc(tasks, func(t task) bool { return t.name == c.name }) {
			tasks = append(tasks, c.task)
		}
		rows = append(rows, s.cells(&c))
	}
	return fmt.Sprintf(`
## %s, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s:

`+"```text\n%s\n```"+`

The tested epoch is the best one of validation. ± is the standard deviation over seeds. A seed's loss is what it reached
%s less what it reached here,
from the same split, first weights, order of seeds and dropout; its interval is two-sided, by Student's t over the seeds, and is judged
where there is a bar.%s

%s`, s.title, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(),
		strings.Join(s.commandLines(tasks), "\n"), s.against, s.note, markdownTable(s.header(), rows))
}
