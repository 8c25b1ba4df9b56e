package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/run"
)

// mostSeeds is the largest number of runs of one command.
const mostSeeds = 1000

// trainSeeds trains the same run by several seeds, one after the other, and prints what they have
// in common. It goes on where an earlier command stopped: it skips the runs that have ended. A run
// that fails, as by a loss that is no number, does not end the others.
func trainSeeds(cmd *cobra.Command, path string, o *trainOptions) error {
	switch way, _, err := o.findWorkers(); {
	case err != nil:
		return misuse(err)
	case o.seeds < 2 || o.seeds > mostSeeds:
		return misuse(fmt.Errorf("--seeds %d: from 2 to %d; --seed chooses the seed of one run", o.seeds, mostSeeds))
	case o.plan:
		return misuse(errors.New("--seeds and --plan: a plan is of one run; leave --seeds out"))
	case way == dist.MPI:
		return misuse(errors.New("--seeds and --dist mpi: launch one run a seed, with --seed, and compare them by gnnstore runs"))
	case path == "":
		return misuse(errors.New("--seeds: name the DATASET, since some of the runs may not have begun"))
	case o.run != "" && run.Begun(o.run):
		return misuse(fmt.Errorf("--run %s: it holds a run, and --seeds makes a directory of runs; choose another", o.run))
	}
	if !store.IsParts(path) { // else training opens it
		ds, err := store.OpenOne(path)
		if err != nil {
			return err
		}
		if err := ds.Close(); err != nil {
			return err
		}
	}
	dir, err := o.seedsDir(path)
	if err != nil {
		return err
	}
	defer cmd.SetOut(nil)
	stdout := cmd.OutOrStdout()
	if o.json {
		cmd.SetOut(cmd.ErrOrStderr())
	}
	var paths []string
	failed := 0
	for k := range o.seeds {
		one := *o
		one.Seed, one.resume, one.json = o.Seed+uint64(k), true, false
		one.run = filepath.Join(dir, "seed-"+strconv.FormatUint(one.Seed, 10))
		printf(cmd.OutOrStdout(), "seed %d, run %d of %d\n", one.Seed, k+1, o.seeds)
		paths = append(paths, one.run)
		err := one.train(cmd, path)
		if stopped := new(interruptedError); errors.As(err, &stopped) || err != nil && cmd.Context().Err() != nil {
			return &stoppedError{fmt.Sprintf("interrupted in run %d of %d; go on by the same command with --resume --run %s", k+1, o.seeds, dir), err}
		}
		if err == nil {
			continue
		}
		if r, rerr := run.Read(one.run); rerr != nil || r.Status != run.Failed {
			return err
		}
		failed++
		printf(cmd.ErrOrStderr(), "seed %d failed: %s\n", one.Seed, withFlags(oneLine(err)))
	}
	if failed == o.seeds {
		return fmt.Errorf("all %d runs failed; see gnnstore runs %s", failed, dir)
	}
	switch {
	case failed == o.seeds-1:
		printf(cmd.ErrOrStderr(), "note: %d of %d runs failed, so there is no mean\n", failed, o.seeds)
	case failed > 0:
		printf(cmd.ErrOrStderr(), "note: %d of %d runs failed, and the mean is over the others\n", failed, o.seeds)
	}
	list := listRuns(paths, runOrders["run"])
	if o.json {
		return printJSON(stdout, list)
	}
	fmt.Fprintln(stdout)
	list.print(stdout)
	return nil
}

// seedsDir makes the directory of the runs, unless it goes on in one.
func (o *trainOptions) seedsDir(dataset string) (string, error) {
	if o.run == "" {
		return freshDir(runsOf(dataset) + "-seeds")
	}
	if err := os.MkdirAll(o.run, 0o777); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	files, err := os.ReadDir(o.run)
	if err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	isSeed := func(f os.DirEntry) bool { return strings.HasPrefix(f.Name(), "seed-") }
	switch {
	case slices.ContainsFunc(files, func(f os.DirEntry) bool { return !isSeed(f) }):
		return "", fmt.Errorf("--run %s: it holds other files than the runs of --seeds; choose another directory", o.run)
	case !o.resume && slices.ContainsFunc(files, func(f os.DirEntry) bool { return run.Begun(filepath.Join(o.run, f.Name())) }):
		return "", fmt.Errorf("--run %s: it holds runs already; --resume goes on with them, or choose another directory", o.run)
	}
	return o.run, nil
}

// runsOf returns the path that directories of runs on a dataset begin with.
func runsOf(dataset string) string {
	return filepath.Join("runs", strings.TrimSuffix(filepath.Base(filepath.Clean(dataset)), ".gnn"))
}

// freshDir makes the first directory PREFIX-N that does not exist.
func freshDir(prefix string) (string, error) {
	if err := os.MkdirAll(filepath.Dir(prefix), 0o777); err != nil {
		return "", fmt.Errorf("run directory: %w", err)
	}
	for n := 1; ; n++ {
		dir := fmt.Sprintf("%s-%d", prefix, n)
		if err := os.Mkdir(dir, 0o777); err == nil || !errors.Is(err, os.ErrExist) {
			return dir, err
		}
	}
}
