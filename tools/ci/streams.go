package main

import (
	"context"
	"errors"
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
func streams(ctx context.Context, a *arxiv) (err error) {
	dataset := filepath.Join(a.work, "drift-s.gnn")
	if !exists(dataset) {
		if err := a.gnnstore.Run(ctx, "generate", "drift-s", dataset); err != nil {
			return err
		}
	}
	if err := a.sameOfStreams(ctx, dataset); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "gnnstore-resume-")
	if err != nil {
		return err
	}
	defer func() {
		if err == nil || ctx.Err() != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	p := &resume.Prover{Binary: a.gnnstore, Dataset: dataset, Batch: 400, Dir: dir, Seed: 1, Out: os.Stdout}
	if err := p.Kill(ctx, resume.StreamConfigs, 9); err != nil {
		return err
	}
	messages, err := p.Twice(ctx, resume.StreamConfigs[0])
	if err != nil {
		return err
	}
	for _, message := range messages {
		fmt.Println("a second train in the directory of a run at work:", message)
	}
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and a file system of a few MB takes one to mount")
		return nil
	}
	return a.fullDisk(ctx, p, resume.StreamConfigs[0])
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
