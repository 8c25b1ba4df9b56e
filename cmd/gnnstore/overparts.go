package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/run"
)

// owners are the workers that use the network of a run together, since each of them has its own
// part of something.
type owners struct {
	workers int    // 0: one worker uses the network
	path    string // of the dataset
	parts   bool   // path is a directory of parts; else the run's learnt rows are dealt out
}

// why returns the reason why several workers use the network together, for an error.
func (o owners) why() string {
	if o.parts {
		return o.path + " holds parts"
	}
	return fmt.Sprintf("the learnt rows of the run are dealt out among %d workers", o.workers)
}

// ownersOf returns the workers that use the network of a run on dataset, or on the dataset that it
// trained on if dataset is empty.
func ownersOf(runPath, dataset string) (o owners, err error) {
	o.path = dataset
	dir, err := run.Look(runPath)
	if err == nil { // else whoever opens the run next says why
		defer dir.Close()
		o.path, o.workers = cmp.Or(o.path, dir.Record().Dataset), dir.Owners()
	}
	if o.parts = store.IsParts(o.path); o.parts {
		o.workers, err = store.CountParts(o.path)
		return o, err
	}
	return o, nil
}

// together uses the network of a run by several workers: it calls work for each of them in this
// process. If a launcher of MPI has started several processes, they share the workers. Only worker
// 0 prints.
func (o owners) together(
	ctx context.Context, stdout, stderr io.Writer,
	work func(ctx context.Context, stdout, stderr io.Writer, g *dist.Group) error,
) error {
	way, err := dist.Auto.Resolve(os.Getenv)
	if err != nil {
		return misuse(err)
	}
	if way == dist.Off {
		way = dist.Local
	}
	host, err := dist.Open(dist.Options{
		Way: way, Workers: o.workers, Timeout: run.DefaultDistTimeout, Getenv: os.Getenv,
		Fatal: func(err error) { printf(stderr, "gnnstore: %s\n", withFlags(oneLine(err))) },
	})
	if err != nil {
		return err
	}
	defer host.Close()
	return host.Run(ctx, func(ctx context.Context, g *dist.Group) error {
		if g.Rank() > 0 {
			return work(ctx, io.Discard, io.Discard, g)
		}
		return work(ctx, stdout, stderr, g)
	})
}
