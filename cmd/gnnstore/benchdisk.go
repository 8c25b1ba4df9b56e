package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/diskbench"
)

type benchDiskOptions struct {
	engine, fio   string
	sizes         []int
	depth, rounds int
	time          time.Duration
	json          bool
}

type benchDiskReport struct {
	File    string             `json:"file"`
	Bytes   int64              `json:"bytes"`
	Notes   []string           `json:"notes"`
	Results []diskbench.Result `json:"results"`
}

func newBenchDisk() *cobra.Command {
	o := benchDiskOptions{engine: "all", fio: "auto", sizes: []int{256, 1536, 4096}, depth: 64, rounds: 5, time: time.Second}
	cmd := &cobra.Command{
		Use:   "disk DATASET",
		Short: "Time the disk engines on a dataset's largest file, beside fio where that is installed",
		Long: "Time the disk engines on a dataset's largest file, beside fio where that is installed.\n\n" +
			"Each engine reads rows at random, and then the file from one end to the other; fio reads as many bytes at a time,\n" +
			"whole sectors, past the page cache. They take turns, and the medians are printed: reads a second, bytes a second,\n" +
			"processor time of a read, latency, and the reads a second as a share of fio's. asked-B is what a row takes from the\n" +
			"device, which reads sectors. Before each turn the file is taken out of the page cache.",
		Example: "  gnnstore bench disk papers.gnn\n" +
			"  gnnstore bench disk papers.gnn --engine uring,pread --size 512,4096 --time 200ms",
		Args: exactArgs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runBenchDisk(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], o)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	f.StringVar(&o.engine, "engine", o.engine, "engines to time: all, or some of uring,pread,buffered,mmap")
	f.IntSliceVar(&o.sizes, "size", o.sizes, "bytes of a row, several sizes by commas")
	f.IntVar(&o.depth, "depth", o.depth, "reads under way")
	f.DurationVar(&o.time, "time", o.time, "how long a turn takes")
	f.IntVar(&o.rounds, "rounds", o.rounds, "turns of each")
	f.StringVar(&o.fio, "fio", o.fio, "the fio to compare with: auto for the one in PATH, none, or a path")
	f.BoolVar(&o.json, "json", false, "print the results as one object")
	return cmd
}

func runBenchDisk(ctx context.Context, stdout, stderr io.Writer, path string, o benchDiskOptions) error {
	options, err := o.resolve()
	if err != nil {
		return misuse(err)
	}
	ds, err := openDataset(stderr, path, 0) // what is wrong with it is said as by every command
	if err != nil {
		return err
	}
	if err := ds.Close(); err != nil {
		return err
	}
	report := benchDiskReport{Notes: []string{}, Results: []diskbench.Result{}}
	p := newProgress(stderr)
	defer p.clear()
	err = diskbench.Run(ctx, path, options, func(file string, bytes int64, notes []string) {
		report.File, report.Bytes, report.Notes = file, bytes, append(report.Notes, notes...)
		if !o.json {
			printf(stdout, "file: %s (%s)\n", file, size(bytes))
			for _, note := range notes {
				printf(stdout, "note: %s\n", note)
			}
			if options.Fio == "" {
				fmt.Fprintln(stdout, "note: without fio to compare with")
			}
		}
	}, func(r diskbench.Result) {
		report.Results = append(report.Results, r)
		if o.json {
			p.show("bench", int64(len(report.Results)), -1, "results")
			return
		}
		fmt.Fprintln(stdout, r)
	})
	if err != nil || !o.json {
		return err
	}
	return printJSON(stdout, report)
}

func (o benchDiskOptions) resolve() (diskbench.Options, error) {
	options := diskbench.Options{Sizes: o.sizes, Depth: o.depth, Time: o.time, Rounds: o.rounds}
	if o.engine != "all" {
		for name := range strings.SplitSeq(o.engine, ",") {
			kind := disk.Kind(name)
			if !slices.Contains(disk.Kinds[1:], kind) {
				return options, fmt.Errorf("--engine %q: all, or some of uring,pread,buffered,mmap", o.engine)
			}
			options.Engines = append(options.Engines, kind)
		}
	}
	switch o.fio {
	case "none":
	case "auto":
		options.Fio, _ = exec.LookPath("fio") // without, there is nothing to compare with
	default:
		var err error
		if options.Fio, err = exec.LookPath(o.fio); err != nil {
			var lookup *exec.Error
			if errors.As(err, &lookup) {
				err = lookup.Err
			}
			return options, fmt.Errorf("--fio %s: %w", o.fio, err)
		}
	}
	return options, options.Validate()
}
