package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

// result has the figures of a task, a number a seed.
type result struct {
	task
	test, valid, seconds []float64
	rival                []float64 // on the same splits
}

// atLeast is the bar of the mean test accuracy.
func (r *result) atLeast() float64 {
	if len(r.rival) == 0 || r.shown {
		return r.bar
	}
	mean, _ := meanDeviation(r.rival)
	return mean
}

// beside describes the figure that the test accuracy is compared with.
func (r *result) beside() string {
	if len(r.rival) == 0 {
		return r.published
	}
	mean, deviation := meanDeviation(r.rival)
	return fmt.Sprintf("%s on the same splits: %.2f ± %.2f", r.published, 100*mean, 100*deviation)
}

// meanDeviation returns the mean and the sample's standard deviation, 0 for one number.
func meanDeviation(x []float64) (mean, deviation float64) {
	for _, v := range x {
		mean += v / float64(len(x))
	}
	for _, v := range x {
		deviation += (v - mean) * (v - mean)
	}
	return mean, math.Sqrt(deviation / float64(max(len(x)-1, 1)))
}

// belowBars names every task whose mean test accuracy stays more than slack below its bar.
func belowBars(results []result, slack float64) error {
	var errs []error
	for _, r := range results {
		if mean, _ := meanDeviation(r.test); mean < r.atLeast()-slack {
			errs = append(errs, fmt.Errorf("%s: test accuracy %.2f %% is below %.2f %%", r.name, 100*mean, 100*(r.atLeast()-slack)))
		}
	}
	return errors.Join(errs...)
}

var header = []string{"data set", "model", "settings", "epochs", "seeds", "test %", "published %", "valid %", "s a seed"}

// settingsLines are the commands of the tasks' settings, each once.
func settingsLines(tasks []task, seeds int) []string {
	var lines []string
	for _, t := range tasks {
		flags := slices.Concat([]string{"--model MODEL --epochs N"}, t.settings.flags, []string{fmt.Sprint("--seed 1..", t.atMost(seeds))})
		line := fmt.Sprintf("%s: gnnstore train DATASET %s", t.settings.name, strings.Join(flags, " "))
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	return lines
}

// cells are a result's row below header.
func (r *result) cells() []string {
	test, deviation := meanDeviation(r.test)
	valid, _ := meanDeviation(r.valid)
	seconds, _ := meanDeviation(r.seconds)
	return []string{
		r.dataset(), cmp.Or(r.model, "none"), r.settings.name, r.epochs, fmt.Sprint(len(r.test)), fmt.Sprintf("%.2f ± %.2f", 100*test, 100*deviation),
		r.beside(), fmt.Sprintf("%.2f", 100*valid), fmt.Sprintf("%.1f", seconds),
	}
}

func writeText(w io.Writer, results []result) error {
	table := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, strings.Join(header, "\t"))
	for _, r := range results {
		fmt.Fprintln(table, strings.Join(r.cells(), "\t"))
	}
	return table.Flush()
}

func markdown(results []result) string {
	var rows [][]string
	for _, r := range results {
		rows = append(rows, r.cells())
	}
	return markdownTable(header, rows)
}

func markdownTable(header []string, rows [][]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|%s\n", strings.Join(header, " | "), strings.Repeat(" --- |", len(header)))
	for _, row := range rows {
		fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
	}
	return b.String()
}

// recordResults adds a section with all that another person needs to measure the same.
func recordResults(file, what string, results []result, seeds int) error {
	var selected []task
	for _, r := range results {
		selected = append(selected, r.task)
	}
	return putAbove(file, fmt.Sprintf(`
## Accuracy, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. The settings are:

`+"```text\n%s\n```"+`

The tested epoch is the best one of validation. ± is the standard deviation over seeds; they also draw the splits of
coauthor_cs, amazon_computers (20 training and 30 validation nodes a class) and facebook (60/20/20 %%), and hold out the edges of
cora-links, citeseer-links and bitcoin_otc (85/5/10 %%), whose figures are ROC-AUC. Those of wn18rr
are filtered MRR over both ends, those of arxiv-cites MRR among 1,000 nodes a citation, of which 90 %% are trained on. cora and citeseer have the
public split. The features of ogbn_arxiv are fastrp:128, made of the graph.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(),
		strings.Join(settingsLines(selected, seeds), "\n"), markdown(results)))
}

// putAbove puts a section above the others of a file, which need not exist.
func putAbove(file, section string) error {
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	at := strings.Index(string(old), "\n## ")
	if at < 0 {
		at = len(old)
	}
	if err := os.WriteFile(file+".new", slices.Concat(old[:at], []byte(section), old[at:]), 0o666); err != nil {
		return err
	}
	return os.Rename(file+".new", file)
}

// commit names the tree that was measured.
func commit(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "describe", "--always", "--dirty", "--exclude=*").Output()
	if err != nil {
		return "", fmt.Errorf("git describe: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// machine names the processor as Linux does, and elsewhere its architecture.
func machine() string {
	model := runtime.GOARCH
	info, _ := os.ReadFile("/proc/cpuinfo") // absent but on Linux
	for line := range strings.Lines(string(info)) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == "model name" {
			model = strings.TrimSpace(value)
			break
		}
	}
	return fmt.Sprintf("%s, %d cores, %s, %s", model, runtime.NumCPU(), runtime.GOOS, runtime.Version())
}
