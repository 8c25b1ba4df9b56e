package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/bench"
)

// turnTime is the time that each kernel runs at its turn.
const turnTime = 30 * time.Millisecond

// kernel is one case on every set: nanoseconds of processor time a run. Processor time, since a
// machine that does other work as well takes it from one side or the other.
type kernel struct {
	name  string
	work  bench.Work
	turns turns[float64] // a side is a set, or OpenBLAS
}

// openBLAS is beside the sets' names.
const openBLAS = "OpenBLAS"

// compareKernels times each kernel on one set after the other, and the products in NumPy's
// OpenBLAS, round by round.
func compareKernels(ctx context.Context, c *comparison) error {
	sets := kernels.Sets()
	var rows []*kernel
	cases := make([][]bench.Case, len(sets))
	for i, s := range sets {
		cases[i] = bench.Cases(s, kernels.Float32, c.threads)
	}
	for i, first := range cases[0] {
		name, _, onSet := strings.Cut(first.Name, "/kernels=")
		if !onSet || strings.HasPrefix(name, "Step/") {
			continue // the sampler has no sets; the step has a comparison of its own
		}
		k := &kernel{name: name}
		k.turns.columns = []column[float64]{{of: func(ns float64) float64 { return ns }}}
		rows = append(rows, k)
		jobs := make([]bench.Job, len(sets))
		for j, s := range sets {
			jobs[j] = cases[j][i].Prepare()
			k.turns.sides = append(k.turns.sides, &side[float64]{name: string(s), turn: func(ctx context.Context) (float64, error) {
				before := kernels.ProcessorSeconds()
				runs, _ := bench.Time(jobs[j].Run, turnTime)
				return 1e9 * (kernels.ProcessorSeconds() - before) / float64(runs+1), ctx.Err() // one warms up
			}})
		}
		k.work = jobs[0].Work
		if product, ok := strings.CutPrefix(name, "MatMul/"); ok && c.python != "" {
			k.turns.sides = append(k.turns.sides, &side[float64]{name: openBLAS, turn: func(ctx context.Context) (float64, error) {
				return c.openBLAS(ctx, product)
			}})
		}
		if err := k.turns.run(ctx, c.rounds); err != nil {
			return err
		}
		for _, job := range jobs {
			job.Free()
		}
	}
	return c.printKernels(rows, sets)
}

var openBLASLine = regexp.MustCompile(`^BenchmarkOpenBLAS/(product=.*)/threads=\d+\t.*\t(\d+) cpu-ns/op$`)

// openBLAS is the time that openblas.py finds for one product.
func (c *comparison) openBLAS(ctx context.Context, product string) (ns float64, err error) {
	cmd := exec.CommandContext(ctx, c.python, filepath.Join(c.scripts, "openblas.py"), fmt.Sprint(turnTime.Seconds()), product)
	cmd.Env = c.environment()
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return 0, fmt.Errorf("openblas.py: %w: %.2000s", err, exit.Stderr)
	}
	if err != nil {
		return 0, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(out)); lines.Scan(); {
		if m := openBLASLine.FindStringSubmatch(lines.Text()); m != nil && m[1] == product {
			return strconv.ParseFloat(m[2], 64)
		}
	}
	return 0, fmt.Errorf("openblas.py does not time %s", product)
}

// printKernels prints a row a kernel: the rate of each set, and how often the time of the fastest
// set goes into the others'.
func (c *comparison) printKernels(rows []*kernel, sets []kernels.Set) error {
	top := bench.MeasureCeilings(sets[0], kernels.Float32, c.threads, time.Second)
	fmt.Fprintf(c.out, "%d threads, %d turns of %v each, OPENBLAS_CORETYPE unset. Peak %.0f GFLOP/s (%s), memory reads %.1f GB/s.\n",
		c.threads, c.rounds, turnTime, top.Flops/1e9, top.How, top.Bytes/1e9)
	fmt.Fprintf(c.out, "Rates are medians, a second of processor time; ratios, processor times over that of %s in the same turn, are median (smallest–largest).\n\n", sets[0])
	others := []string{}
	for _, s := range sets[1:] {
		others = append(others, string(s))
	}
	if c.python != "" {
		others = append(others, openBLAS)
	}
	tableHead(c.out, fmt.Sprintf("| kernel | %s | × %s |", sets[0], strings.Join(others, " | × ")))
	for _, k := range rows {
		first := k.turns.sides[0]
		rate := k.work.Rates(time.Duration(k.turns.figures(first, 0).median()), bench.Ceilings{})[0]
		cells := []string{k.name, fmt.Sprintf("%.1f %s", rate.Value, rate.Unit)}
		for _, s := range k.turns.sides[1:] {
			cells = append(cells, k.turns.over(s, first, 0).spread("%.2f"))
		}
		if len(cells) < 2+len(others) { // OpenBLAS has products only
			cells = append(cells, "")
		}
		fmt.Fprintf(c.out, "| %s |\n", strings.Join(cells, " | "))
	}
	return nil
}
