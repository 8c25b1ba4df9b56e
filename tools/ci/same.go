package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
)

// same trains one seed under many settings that must not matter: a few of them for two epochs, and
// out of core, where a run takes longer, many of them for some steps. So it does again, with fewer
// of them, where batches depend on each other, and where they use rows of earlier steps.
func same(ctx context.Context, a *arxiv) error {
	dataset, err := a.dataset(ctx, undirected)
	if err != nil {
		return err
	}
	err = a.sameResults(ctx, dataset, [][]string{
		{"--workers", "2"},
		{"--workers", "1"},
		{"--workers", "8"},
		{"--host-memory", "1MiB", "--policy", "lru"},
		{"--host-memory", "1GiB", "--workers", "8"},
	})
	if err != nil {
		return err
	}
	settings, err := outOfCore(dataset)
	if err != nil {
		return err
	}
	short := []string{"--epoch-steps", "12", "--eval-memory", "0", "--eval-nodes", "1000"}
	if err := a.sameResults(ctx, dataset, settings, short...); err != nil {
		return err
	}
	var some [][]string
	for n := 0; n < len(settings); n += 3 { // every engine and every policy is among them
		some = append(some, settings[n])
	}
	dependent := []string{"--sampler", "labor0", "--kappa", "16", "--dependent", "smoothed"}
	if err := a.sameResults(ctx, dataset, some, slices.Concat(short, dependent)...); err != nil {
		return err
	}
	small := []string{"--memory", "400MiB", "--host-memory", "6MiB", "--topology-memory", "5MiB"}
	if err := a.sameSpills(ctx, dataset, small, "--batch", "100", "--eval-nodes", "500"); err != nil {
		return err
	}
	again := []string{"--history", "--history-start", "4", "--t-stale", "8", "--history-memory", "64MiB"}
	return a.sameResults(ctx, dataset, some, slices.Concat(short, again)...)
}

// outOfCore lists a run in memory, and then every engine with every policy; with them, in turn,
// windows, budgets and workers.
func outOfCore(dataset string) (settings [][]string, err error) {
	ds, err := store.Open(dataset)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	features := int64(ds.Features(0).Rows()) * int64(ds.Features(0).RowBytes())
	bytes := func(n int64) string { return strconv.FormatInt(n, 10) }
	lists := []string{bytes(topology.LeastBytes(ds.Graph(0))), bytes(topology.AllBytes(ds.Graph(0)))}
	rows := []string{"0", "1KiB", bytes(features / 10), bytes(features)}
	settings = [][]string{{"--disk-engine", "mmap"}}
	engines := disk.Kinds[1:]
	for n := range len(engines) * len(policy.Kinds) {
		settings = append(settings, []string{
			"--disk-engine", string(engines[n%len(engines)]), "--policy", string(policy.Kinds[n/len(engines)]),
			"--window", []string{"0", "1", "8"}[(n+n/4)%3], "--host-memory", rows[(n+n/4+n/16)%4],
			"--topology-memory", lists[(n/2+n/8)%2], "--workers", []string{"1", "2", "8"}[n/3%3],
			"--lookahead", strconv.Itoa(n % 3),
		})
	}
	return settings, nil
}

// spills is the part of same that is about spills, on a graph of some ten million nodes.
func spills(ctx context.Context, a *arxiv) error {
	if a.large == "" {
		return errors.New("-dataset is missing: that of gnnstore generate papers100m ten.gnn --nodes 10M --edges 144M")
	}
	small := []string{"--memory", "600MiB", "--host-memory", "50MiB", "--topology-memory", "30MiB"}
	return a.sameSpills(ctx, a.large, small, "--batch", "300", "--fanout", "10,10", "--eval-nodes", "100")
}

// sameSpills trains by horizons of windows, in little memory: with spills of several sizes, under
// every policy and engine, and with every sampler.
func (a *arxiv) sameSpills(ctx context.Context, dataset string, small []string, more ...string) error {
	sizes := []string{"64MiB", "1GiB", "auto", "256MiB"}
	for _, sampler := range [][]string{
		{"--sampler", "ns"}, {"--sampler", "labor0", "--kappa", "16", "--dependent", "smoothed"}, {"--sampler", "labor-star"}, {"--sampler", "rw"},
	} {
		settings := [][]string{{"--spill", "0", "--disk-engine", "mmap"}}
		engines := disk.Kinds[1:]
		for n := range max(len(engines), len(policy.Kinds)) {
			settings = append(settings, slices.Concat(small, []string{
				"--spill", sizes[n%len(sizes)], "--disk-engine", string(engines[n%len(engines)]), "--policy", string(policy.Kinds[n%len(policy.Kinds)]),
				"--workers", []string{"1", "2", "8"}[n%3],
			}))
		}
		short := []string{"--epoch-steps", "60", "--eval-memory", "0"}
		if err := a.sameResults(ctx, dataset, settings, slices.Concat(short, more, sampler)...); err != nil {
			return err
		}
	}
	return nil
}

// sameResults trains under each setting, and wants losses, weights and counts of rows to be those
// of the first.
func (a *arxiv) sameResults(ctx context.Context, dataset string, settings [][]string, more ...string) error {
	var want cli.Trained
	for i, setting := range settings {
		run, err := os.MkdirTemp(a.tmp, "run-")
		if err != nil {
			return err
		}
		var got cli.Trained
		args := trainArgs(dataset, "2", slices.Concat(more, setting, []string{"--run", run})...)
		if err := a.gnnstore.JSON(ctx, &got, args...); err != nil {
			return err
		}
		in := got.Tiers.Device.RowsHit + got.Tiers.Host.RowsHit
		fmt.Printf("%s: losses %v, params %s, rows %d = %d in memory + %d from disk by %s\n",
			strings.Join(setting, " "), got.Losses(), got.ParamsXXH3, got.InputRows, in, got.Disk.Rows, got.DiskEngine)
		if i == 0 {
			want = got
		}
		switch {
		case len(got.Epochs) != 2 || got.ParamsXXH3 == "":
			return fmt.Errorf("%v: want two epochs and a hash of the weights", setting)
		case !slices.Equal(got.Losses(), want.Losses()) || got.ParamsXXH3 != want.ParamsXXH3:
			return fmt.Errorf("%v changes the result: losses %v and params %s, want %v and %s",
				setting, got.Losses(), got.ParamsXXH3, want.Losses(), want.ParamsXXH3)
		case slices.Contains(setting, "64MiB") && !slices.Contains(setting, string(policy.None)) && got.Join == nil: // which has no windows
			return fmt.Errorf("%v: there was no horizon", setting)
		case got.InputRows != want.InputRows || got.InputRows != in+got.Disk.Rows:
			return fmt.Errorf("%v: %d rows, of which %d came from memory and %d from disk, and there are %d",
				setting, got.InputRows, in, got.Disk.Rows, want.InputRows)
		}
	}
	return nil
}
