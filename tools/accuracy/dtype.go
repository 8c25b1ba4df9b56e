package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// rounding has the results of a task with features stored as float16 and as float32.
type rounding struct {
	task
	f16, f32 result
}

// dtypes measures tasks with both. A seed has the same split, first weights, batches and dropout in
// both.
func (b *bench) dtypes(ctx context.Context, w io.Writer, tasks []task, o options) error {
	var compared []rounding
	for _, t := range tasks {
		r := rounding{task: t}
		for dtype, into := range map[string]*result{"f16": &r.f16, "f32": &r.f32} {
			with := t
			with.name, with.flags = dtype+"-"+t.name, append(slices.Clip(t.flags), "--dtype", dtype)
			var err error
			if *into, err = b.measure(ctx, with, o.seeds); err != nil {
				return err
			}
		}
		compared = append(compared, r)
	}
	text := dtypesMarkdown(b.what, compared, o.seeds)
	fmt.Fprint(w, text)
	if o.record != "" {
		return putAbove(o.record, text)
	}
	return nil
}

// dtypesMarkdown is a section with all that another person needs to measure the same.
func dtypesMarkdown(what string, compared []rounding, seeds int) string {
	var rows [][]string
	var tasks []task
	for _, c := range compared {
		tasks = append(tasks, c.task)
		var differences []float64
		same := 0
		for i, half := range c.f16.test {
			differences = append(differences, half-c.f32.test[i])
			if half == c.f32.test[i] {
				same++
			}
		}
		half, halfDeviation := meanDeviation(c.f16.test)
		full, fullDeviation := meanDeviation(c.f32.test)
		mean, low, high := interval(differences)
		rows = append(rows, []string{c.name, c.model, c.settings.name, c.epochs, fmt.Sprint(len(differences)),
			fmt.Sprintf("%.2f ± %.2f", 100*half, 100*halfDeviation), fmt.Sprintf("%.2f ± %.2f", 100*full, 100*fullDeviation),
			fmt.Sprintf("%.2f", 100*mean), fmt.Sprintf("%.2f to %.2f", 100*low, 100*high), fmt.Sprintf("%d of %d", same, len(differences))})
	}
	return fmt.Sprintf(`
## Features as float16 and as float32, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. Each data set is ingested
with `+"`--dtype f16`, which is the default, and with `--dtype f32`"+`, and trained with the same settings:

`+"```text\n%s\n```"+`

A seed has the same split, first weights, batches and dropout in both. The difference is what it reached with float16 less what it
reached with float32; its interval is two-sided, by Student's t over the seeds. The last column counts the seeds whose test
accuracies are equal to the last digit.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(),
		strings.Join(settingsLines(tasks, seeds), "\n"),
		markdownTable([]string{"data set", "model", "settings", "epochs", "seeds", "float16, test %", "float32, test %", "difference, points", "95 % interval", "equal"}, rows))
}
