package main

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/bench"
)

type benchOptions struct {
	filter, set string
	products    kernels.Precision
	threads     int
	time        time.Duration
	json        bool
}

type benchReport struct {
	Ceilings bench.Ceilings `json:"ceilings"`
	Results  []bench.Result `json:"results"`
}

func newBench() *cobra.Command {
	o := benchOptions{set: "auto", time: 200 * time.Millisecond}
	cmd := &cobra.Command{
		Use:   "bench",
		Short: "Time the kernels, the sampler and a training step on this machine",
		Long: "Time the kernels, the sampler and a training step on this machine, in the format of Go's benchmarks.\n\n" +
			"What the machine does at best is measured first: %peak is the share of its multiply-adds in registers, %read that\n" +
			"of reading memory from one end to the other; rows that stay in a cache come above 100.\n" +
			"products-ms and bytes-ms: what the products take at that peak, and the operands at that rate.\n" +
			"%bound: the longer of the two, as a share of the measured time.",
		Example: "  gnnstore bench\n" +
			"  gnnstore bench --filter 'MatMul|Step' --kernels avx2 --time 1s",
		Args: exactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runBench(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.filter, "filter", "", "regular expression of the names to time (default all)")
	f.IntVar(&o.threads, "threads", 0, "threads of a kernel (default all cores)")
	f.StringVar(&o.set, "kernels", o.set, "kernel set: auto, or one that gnnstore version lists")
	f.StringVar((*string)(&o.products), "matmul", string(kernels.Float32), "precision of matrix products: f32 or bf16")
	f.DurationVar(&o.time, "time", o.time, "how long each is repeated, at least")
	f.BoolVar(&o.json, "json", false, "print the results as one object")
	cmd.AddCommand(newBenchDisk())
	return cmd
}

func runBench(ctx context.Context, stdout, stderr io.Writer, o benchOptions) error {
	options, err := o.resolve()
	if err != nil {
		return misuse(err)
	}
	report := benchReport{Results: []bench.Result{}}
	p := newProgress(stderr)
	err = bench.Run(ctx, options, func(c bench.Ceilings) {
		report.Ceilings = c
		if !o.json {
			fmt.Fprintf(stdout, "goos: %s\ngoarch: %s\n%s\n", runtime.GOOS, runtime.GOARCH, c)
		}
	}, func(r bench.Result) {
		report.Results = append(report.Results, r)
		if o.json {
			p.show("bench", int64(len(report.Results)), -1, "results")
			return
		}
		fmt.Fprintln(stdout, r)
	})
	p.clear()
	if err != nil || !o.json {
		return err
	}
	return printJSON(stdout, report)
}

func (o benchOptions) resolve() (bench.Options, error) {
	options := bench.Options{Products: o.products, Threads: o.threads, Time: o.time}
	if o.products != kernels.Float32 && o.products != kernels.BF16 {
		return options, fmt.Errorf("--matmul %s: there are f32 and bf16", o.products)
	}
	var err error
	switch options.Set, err = kernels.ParseSet(o.set, o.products); {
	case err != nil && (o.set == "" || o.set == "auto"):
		return options, fmt.Errorf("--matmul %s: %w; take --kernels %s", o.products, err, kernels.SetsOf(o.products)[0])
	case err != nil:
		return options, fmt.Errorf("--kernels: %w", err)
	case o.threads < 0 || o.threads > 1024:
		return options, fmt.Errorf("--threads %d: from 1 to 1024, or 0 for all cores", o.threads)
	case o.time <= 0 || o.time > time.Hour:
		return options, fmt.Errorf("--time %v: above 0, at most 1h", o.time)
	}
	if o.filter != "" {
		if options.Filter, err = regexp.Compile(o.filter); err != nil {
			return options, fmt.Errorf("--filter: %w", err)
		}
	}
	return options, nil
}
