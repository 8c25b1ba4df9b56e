package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/tools/resume"
)

// streams proves of training on streams what same, crash and noSpace prove of training on graphs:
// that no setting changes a result, that a run which was killed goes on, that two runs keep out of
// each other's way, and what a full disk leaves.
func streams(ctx context.Context, a *arxiv) error {
	dataset := filepath.Join(a.work, "drift-s.gnn")
	if !exists(dataset) {
		if err := a.gnnstore.Run(ctx, "generate", "drift-s", dataset); err != nil {
			return err
		}
	}
	if err := a.sameOfStreams(ctx, dataset); err != nil {
		return err
	}
	return resume.InDir(ctx, func(dir string) error {
		p := &resume.Prover{Binary: a.gnnstore, Dataset: dataset, Batch: 400, Dir: dir, Seed: 1, Out: os.Stdout}
		if err := killTrain(ctx, p, resume.StreamConfigs); err != nil {
			return err
		}
		if os.Geteuid() != 0 {
			fmt.Println("skipped: no root, and a file system of a few MB takes one to mount")
			return nil
		}
		return a.fullDisk(ctx, p, resume.StreamConfigs[0])
	})
}

// sameOfStreams trains under budgets, windows, policies, engines, workers, ways to publish and
// numbers of steps in flight.
func (a *arxiv) sameOfStreams(ctx context.Context, dataset string) error {
	for _, network := range []string{
		"--model tgn --fanout 5 --eval-every 2",
		"--model jodie --fanout 0 --staleness 3 --eval none --epoch-steps 12",
		"--model apan --fanout 3 --staleness 2 --eval none --epoch-steps 12 --mails 4",
	} {
		var settings [][]string
		for _, s := range []string{
			"--disk-engine mmap",
			"--disk-engine pread --host-memory 0 --workers 1",
			"--disk-engine uring --host-memory 64KiB --policy lru --window 3 --publish late",
			"--disk-engine buffered --host-memory 8KiB --policy sieve --lookahead 2 --inflight 9 --workers 8",
			"--host-memory 32KiB --policy none --device-memory 4KiB --window 1 --inflight 3 --publish late",
		} {
			settings = append(settings, strings.Fields(s))
		}
		more := slices.Concat([]string{"--layers", "1", "--batch", "400"}, strings.Fields(network))
		if err := a.sameResults(ctx, dataset, settings, more...); err != nil {
			return err
		}
	}
	return nil
}
