package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/run"
)

// unreadable is the status of a run whose record cannot be read, beside the ones of run.Result.
const unreadable = "unreadable"

// htmlStats writes runs as a page.
func htmlStats(ctx context.Context, stdout io.Writer, o statsOptions) error {
	if o.watch || o.json {
		return misuse(errors.New("--html: it goes without --watch and --json"))
	}
	if err := checkHTML(o.html); err != nil {
		return err
	}
	sources, err := o.sources()
	if err != nil {
		return err
	}
	results, err := lookAll(ctx, sources)
	if err != nil {
		return err
	}
	if err := writeHTML(o.html, live.Document(results)); err != nil {
		return err
	}
	printf(stdout, "%s\n", o.html)
	return nil
}

// sources returns a statsOptions for each run to show: of the address, or of the arguments, which
// are runs and directories of runs.
func (o statsOptions) sources() (all []statsOptions, err error) {
	if o.addr != "" {
		return []statsOptions{o}, nil
	}
	var paths []string
	for _, arg := range o.runs {
		found := []string{arg}
		if !run.Begun(arg) {
			if found, err = findRuns([]string{arg}); err != nil {
				return nil, err
			}
		}
		for _, path := range found {
			if !slices.Contains(paths, path) {
				paths = append(paths, path)
			}
		}
	}
	if o.worker > 0 && len(paths) > 1 {
		return nil, misuse(fmt.Errorf("--worker %d: it goes with one run", o.worker))
	}
	for _, path := range paths {
		one := o
		one.run = path
		if o.worker > 0 {
			one.run = run.WorkerDir(path, o.worker)
		}
		all = append(all, one)
	}
	return all, nil
}

// lookAll returns the results of runs so far. Among several, a run that cannot be read is shown
// with its error. It fails if no run can be read.
func lookAll(ctx context.Context, sources []statsOptions) (results []*run.Result, err error) {
	readable := 0
	for _, one := range sources {
		r, lerr := one.look(ctx)
		if lerr != nil {
			err = errors.Join(err, lerr)
			r = &run.Result{Run: one.run, Status: unreadable, Error: withFlags(oneLine(lerr))}
		} else {
			readable++
		}
		results = append(results, r)
	}
	if readable == 0 {
		return nil, err
	}
	return results, ctx.Err()
}
