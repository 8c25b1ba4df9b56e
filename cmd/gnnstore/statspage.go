package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/run"
)

// unreadable is the status of a run whose record cannot be read. Package run has the other
// statuses.
const unreadable = "unreadable"

// pageStats writes runs as a page, or serves them.
func pageStats(ctx context.Context, stdout, stderr io.Writer, o statsOptions) error {
	switch {
	case o.watch || o.json:
		return misuse(errors.New("--html and --listen do not go with --watch or --json; leave one out"))
	case o.html != "" && o.listen != "":
		return misuse(errors.New("--html and --listen: choose one of them"))
	case o.listen != "":
		return servePage(ctx, stderr, o)
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

// servePage looks at running runs every lookEvery. It looks at the others every lookAgain, since
// somebody may resume them. If a look takes long, servePage waits lookShare times as long.
const (
	lookEvery = time.Second
	lookAgain = 15 * time.Second
	lookShare = 20
)

// servePage serves the page of runs until ctx is cancelled, which is no failure.
func servePage(ctx context.Context, stderr io.Writer, o statsOptions) error {
	addr, err := live.ParseListen(o.listen)
	if err != nil {
		return misuse(fmt.Errorf("--listen: %w", err))
	}
	sources, err := o.sources()
	if err != nil {
		return err
	}
	results, err := lookAll(ctx, sources)
	if err != nil {
		return err
	}
	at, err := live.Listen(addr)
	if err != nil {
		return fmt.Errorf("--listen: %w; choose another port", err)
	}
	var newest atomic.Pointer[[]*run.Result]
	newest.Store(&results)
	s := live.ServeRuns(at, func(text string) { printf(stderr, "%s\n", text) }, func() []*run.Result { return *newest.Load() })
	defer s.Close()
	looked := time.Now()
	for wait := lookEvery; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		began := time.Now()
		all := began.Sub(looked) > lookAgain
		if all {
			looked = began
		}
		results = slices.Clone(results)
		for i, r := range results {
			if !all && r.Status != run.Running {
				continue
			}
			if now, err := lookAll(ctx, sources[i:i+1]); err == nil {
				results[i] = now[0]
			} else if ctx.Err() == nil {
				results[i] = unreadableRun(sources[i].run, err)
			}
		}
		shown := results
		newest.Store(&shown)
		wait = max(lookEvery, lookShare*time.Since(began))
	}
}

// sources returns a statsOptions for each run to show. The runs are the one at --addr, or those
// that the arguments name: runs, and directories of runs.
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
			r = unreadableRun(one.run, lerr)
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

// unreadableRun returns a result that shows that a run cannot be read.
func unreadableRun(path string, err error) *run.Result {
	return &run.Result{Run: path, Status: unreadable, Error: withFlags(oneLine(err))}
}
