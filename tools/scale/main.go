//go:build linux

// Scale ingests graphs as large as the disk allows, each in a memory cgroup of 110 % of its
// --memory, and prints what every pass took beside what the disk can do and what --plan had said.
//
//	go run ./tools/scale [-dir DIR] [-only PART,…] [-scale 1] [-python PYTHON]
//	    [-dataset DIR] [-bin FILE] [-settings 1,2] [-turns 3]
//
// papers makes papers100M's shape at -scale straight through the builder, with 4 GiB; raw writes
// the raw files of the same at a quarter of it and ingests them; equal builds one graph with 256
// MiB and with 4 GiB, and compares seals; strings ingests 20 million string ids out of parquet with
// 512 MiB; mag240m ingests that layout; peer builds 10 million nodes and 160 million edges beside
// what NumPy and SciPy users do; train, which is no default, trains on papers100M's shape with 8
// GiB; coop, no default either, trains on parts of its shape at 0.09 of -scale, on four machines
// that are namespaces, over wires of 1 Gbit/s; parallel, likewise, runs both ways of several
// workers in some settings, or in those that -settings names by number, beside the estimates of
// --parallel auto. It needs root for the cgroup, and says so when it goes on without. Results go to
// tools/results by hand.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// bench is one run of the program.
type bench struct {
	w       io.Writer
	dir     string // work is done below it
	scale   float64
	python  string
	dataset string // for train; empty: made
	binary  cli.Binary
	disk    rates
	// of parallel: numbers from 1, none for all; and how often each way is run
	settings []string
	turns    int
}

var parts = []struct {
	name string
	run  func(*bench, context.Context) error
}{
	{"papers", (*bench).papers},
	{"raw", (*bench).raw},
	{"equal", (*bench).equal},
	{"strings", (*bench).strings},
	{"mag240m", (*bench).mag240m},
	{"peer", (*bench).peer},
	{"train", (*bench).train},
	{"coop", (*bench).coop},
	{"parallel", (*bench).parallel},
}

func main() {
	b := &bench{w: os.Stdout}
	flag.StringVar(&b.dir, "dir", os.TempDir(), "`directory` on the disk to measure; up to 50 GB are used below it")
	only := flag.String("only", "papers,raw,equal,strings,mag240m,peer", "parts to run")
	flag.Float64Var(&b.scale, "scale", 1, "of papers100M")
	flag.StringVar(&b.python, "python", "python3", "`interpreter` with numpy and scipy, for peer")
	flag.StringVar(&b.dataset, "dataset", "", "a `dataset` of papers100M's shape, for train; default: made at -scale")
	settings := flag.String("settings", "", "`numbers` of settings of parallel, such as 1,2; default: all")
	flag.IntVar(&b.turns, "turns", 3, "runs of each way, in parallel; 0: estimates alone")
	binary := flag.String("bin", "", "a built `gnnstore`; default: built now")
	flag.Parse()
	b.binary = cli.Binary(*binary)
	if *settings != "" {
		b.settings = strings.Split(*settings, ",")
	}

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx, strings.Split(*only, ","))
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "scale:", err)
		os.Exit(1)
	}
}

func (b *bench) run(ctx context.Context, only []string) (err error) {
	for _, name := range only {
		if !slices.ContainsFunc(parts, func(p struct {
			name string
			run  func(*bench, context.Context) error
		}) bool {
			return p.name == name
		}) {
			return fmt.Errorf("-only %s: there is no such part", name)
		}
	}
	if b.dir, err = os.MkdirTemp(b.dir, "gnnstore-scale-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	if b.binary == "" {
		if b.binary, err = cli.Build(ctx, b.dir); err != nil {
			return err
		}
	}
	if b.disk, err = measureDisk(b.dir); err != nil {
		return err
	}
	fmt.Fprintf(b.w, "disk: %.0f MB/s written, %.0f MB/s read in sequence, around the page cache\n",
		b.disk.write/1e6, b.disk.read/1e6)
	fmt.Fprintf(b.w, "memory: %.1f GB/s copied by one core\n", b.disk.memory/1e9)
	for _, p := range parts {
		if slices.Contains(only, p.name) {
			fmt.Fprintf(b.w, "\n## %s\n", p.name)
			if err := p.run(b, ctx); err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
		}
	}
	return nil
}
