package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// arxiv is ogbn-arxiv as people have it on disk, and a place to work.
type arxiv struct {
	gnnstore cli.Binary
	raw      string // the OGB directory
	work     string // datasets that proofs share
	tmp      string // what one proof makes; gone afterwards
	times    int    // of a proof that tries anything
	seed     uint64 // of it
	write    bool   // the record, instead of comparing with it
	cut      bool   // with write: interrupted runs, too
	large    string // the dataset of spills
}

// withArxiv makes a command of a proof over ogbn-arxiv.
func withArxiv(proof func(context.Context, *arxiv) error) func(context.Context, []string) error {
	return withBinary(func(ctx context.Context, a *arxiv) error {
		if a.raw == "" {
			return errors.New("no data: set GNNSTORE_DATA or -data to the directory that holds ogbn_arxiv")
		}
		return proof(ctx, a)
	})
}

// withBinary makes a command of a proof that does without the data.
func withBinary(proof func(context.Context, *arxiv) error) func(context.Context, []string) error {
	return func(ctx context.Context, args []string) (err error) {
		flags := flag.NewFlagSet("data", flag.ExitOnError)
		data := flags.String("data", os.Getenv("GNNSTORE_DATA"), "`directory` of the real graphs")
		binary := flags.String("bin", "", "a built `gnnstore`; default: built now")
		work := flags.String("work", "", "`directory` that keeps datasets for the next proof; default: none")
		times := flags.Int("times", 50, "how often flips flips a bit")
		seed := flags.Uint64("seed", 1, "which ones")
		write := flags.Bool("write", false, "have record write what it found")
		cut := flags.Bool("cut", false, "with -write: have record also replace the interrupted runs of an earlier commit")
		large := flags.String("dataset", "", "sealed `dataset` of spills")
		_ = flags.Parse(args) // ExitOnError
		a := &arxiv{large: *large, gnnstore: cli.Binary(*binary), work: *work, times: *times, seed: *seed, write: *write, cut: *cut}
		if *data != "" {
			a.raw = filepath.Join(*data, "ogbn_arxiv")
		}
		if a.tmp, err = os.MkdirTemp("", "gnnstore-ci-"); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(a.tmp)) }()
		if a.work == "" {
			a.work = a.tmp
		}
		if a.gnnstore == "" {
			if a.gnnstore, err = cli.Build(ctx, a.tmp); err != nil {
				return err
			}
		}
		return proof(ctx, a)
	}
}

// dataset returns ogbn-arxiv with 128 columns of features, made from the graph, directed as given
// or undirected.
func (a *arxiv) dataset(ctx context.Context, name string) (string, error) {
	out := filepath.Join(a.work, name)
	if exists(out) {
		return out, nil
	}
	args := []string{"ingest", "ogb", a.raw, out, "--features", "fastrp:128"}
	if name == undirected {
		args = append(args, "--undirected")
	}
	return out, a.gnnstore.Run(ctx, args...)
}

const (
	directed   = "directed.gnn"
	undirected = "undirected.gnn"
)

// ingestArgs read ogbn-arxiv with fewer columns, for proofs that ingest many times.
func (a *arxiv) ingestArgs(out string) []string {
	return []string{"ingest", "ogb", a.raw, out, "--features", "fastrp:8"}
}

// trainArgs train a model small enough to try many settings.
func trainArgs(dataset string, epochs string, more ...string) []string {
	return append([]string{"train", dataset, "--seed", "1", "--epochs", epochs, "--model", "sage", "--layers", "2",
		"--hidden", "32", "--fanout", "5,5", "--batch", "1000"}, more...)
}

// counts compares what inspect says with the numbers that OGB publishes.
func counts(ctx context.Context, a *arxiv) error {
	for _, c := range []struct {
		name  string
		edges int64
	}{{directed, 1166243}, {undirected, 2315598}} {
		dataset, err := a.dataset(ctx, c.name)
		if err != nil {
			return err
		}
		if err := a.gnnstore.Run(ctx, "verify", dataset); err != nil {
			return err
		}
		var got cli.Inspected
		if err := a.gnnstore.JSON(ctx, &got, "inspect", dataset); err != nil {
			return err
		}
		if len(got.NodeTypes) != 1 || len(got.Relations) != 1 || len(got.Labels) != 1 || len(got.Splits) != 1 {
			return fmt.Errorf("%s: want one node type, relation, label and split: %+v", c.name, got)
		}
		split := got.Splits[0]
		have := []int64{got.NodeTypes[0].Count, got.Relations[0].Edges, got.Labels[0].Classes, split.Train, split.Valid, split.Test}
		want := []int64{169343, c.edges, 40, 90941, 29799, 48603}
		if !slices.Equal(have, want) {
			return fmt.Errorf("%s: nodes, edges, classes, train, valid, test are %d, want %d", c.name, have, want)
		}
		fmt.Printf("%s: nodes, edges, classes, train, valid, test: %d\n", c.name, have)
	}
	return nil
}
