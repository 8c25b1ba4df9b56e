package main

import (
	"context"
	"io"
	"os"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/run"
)

// partsOf returns dataset, or the dataset of a run where it is empty, if that is a directory of
// parts; else "".
func partsOf(runPath, dataset string) string {
	if dataset == "" {
		dir, err := run.Look(runPath)
		if err != nil {
			return "" // whoever opens the run next says why
		}
		defer dir.Close()
		dataset = dir.Record().Dataset
	}
	if !store.IsParts(dataset) {
		return ""
	}
	return dataset
}

// overParts uses the network of a run on a directory of parts: it calls work for each part's worker
// in this process. If a launcher of MPI has started several processes, they share the workers. Only
// worker 0 prints.
func overParts(
	ctx context.Context, stdout, stderr io.Writer, path string,
	work func(ctx context.Context, stdout, stderr io.Writer, g *dist.Group) error,
) error {
	way, err := dist.Auto.Resolve(os.Getenv)
	if err != nil {
		return misuse(err)
	}
	if way == dist.Off {
		way = dist.Local
	}
	parts, err := store.CountParts(path)
	if err != nil {
		return err
	}
	host, err := dist.Open(dist.Options{
		Way: way, Workers: parts, Timeout: run.DefaultDistTimeout, Getenv: os.Getenv,
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
