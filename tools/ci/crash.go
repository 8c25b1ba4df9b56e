package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// crash kills ingest and train at several of their own lines of progress. A second ingest then makes what an undisturbed
// one makes, and a killed run can be read.
func crash(ctx context.Context, a *arxiv) error {
	if err := crashIngest(ctx, a); err != nil {
		return err
	}
	return crashTrain(ctx, a)
}

func crashIngest(ctx context.Context, a *arxiv) error {
	out := filepath.Join(a.tmp, "whole.gnn")
	lines, _, err := runUntil(a.gnnstore.Command(ctx, a.ingestArgs(out)...), -1)
	if err != nil {
		return err
	}
	want, err := a.seal(ctx, out)
	if err != nil {
		return err
	}
	halves := 0 // kills that left something behind
	points := pick(lines, 5)
	for _, point := range points {
		out := filepath.Join(a.tmp, "killed.gnn")
		_, killed, err := runUntil(a.gnnstore.Command(ctx, a.ingestArgs(out)...), point)
		if err != nil {
			return err
		}
		left := exists(out + ".partial")
		if left {
			halves++
		}
		fmt.Printf("ingest: line %d of %d: killed %v, partial dataset left %v\n", point+1, lines, killed, left)
		if exists(out) { // sealed before the kill
			if got, err := a.seal(ctx, out); err != nil || got != want {
				return fmt.Errorf("%s stands after a kill with seal %s, want %s (%w)", out, got, want, err)
			}
			if err := os.RemoveAll(out); err != nil {
				return err
			}
		}
		if err := a.gnnstore.Run(ctx, a.ingestArgs(out)...); err != nil {
			return err
		}
		if exists(out + ".partial") {
			return fmt.Errorf("%s.partial is left after a whole ingest", out)
		}
		if got, err := a.seal(ctx, out); err != nil || got != want {
			return fmt.Errorf("after a kill and a rerun the seal is %s, want %s (%w)", got, want, err)
		}
		if err := os.RemoveAll(out); err != nil {
			return err
		}
	}
	if halves == 0 {
		return fmt.Errorf("none of %d kills left a partial dataset: nothing was proved", len(points))
	}
	return nil
}

// seal verifies a dataset and returns what identifies its data.
func (a *arxiv) seal(ctx context.Context, dataset string) (string, error) {
	if err := a.gnnstore.Run(ctx, "verify", dataset); err != nil {
		return "", err
	}
	var got cli.Inspected
	if err := a.gnnstore.JSON(ctx, &got, "inspect", dataset); err != nil {
		return "", err
	}
	if got.Seal == "" {
		return "", errors.New("inspect --json names no seal")
	}
	return got.Seal, nil
}

func crashTrain(ctx context.Context, a *arxiv) error {
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
		return err
	}
	train := func(run string) *exec.Cmd {
		return a.gnnstore.Command(ctx, trainArgs(dataset, "4", "--run", run, "--json")...)
	}
	lines, _, err := runUntil(train(filepath.Join(a.tmp, "whole")), -1)
	if err != nil {
		return err
	}
	kills := 0
	for _, point := range pick(lines, 4) {
		if point == 0 {
			continue // the run's first line: no epoch is in its record yet
		}
		run := filepath.Join(a.tmp, fmt.Sprintf("killed-%d", point))
		_, killed, err := runUntil(train(run), point)
		if err != nil {
			return err
		}
		fmt.Printf("train: line %d of %d: killed %v\n", point+1, lines, killed)
		if killed {
			kills++
		}
		if err := a.gnnstore.Run(ctx, "stats", run); err != nil {
			return err
		}
	}
	if kills == 0 {
		return errors.New("every training run ended before its kill: nothing was proved")
	}
	return nil
}

// runUntil runs cmd and kills it as soon as it has written more than point lines of progress to stderr; a negative point
// never comes. It returns the lines it saw and whether the kill came in time; a run that ends by itself
// must succeed.
func runUntil(cmd *exec.Cmd, point int) (lines int, killed bool, err error) {
	r, w, err := os.Pipe()
	if err != nil {
		return 0, false, err
	}
	defer r.Close()
	cmd.Stderr = w
	err = cmd.Start()
	w.Close()
	if err != nil {
		return 0, false, err
	}
	var last string
	scanner := bufio.NewScanner(r)
	scanner.Split(splitProgress)
	for scanner.Scan() {
		if last = scanner.Text(); strings.TrimSpace(last) == "" {
			continue
		}
		if lines == point {
			_ = cmd.Process.Kill() // it may have ended just now
		}
		lines++
	}
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit) && exit.ExitCode() < 0 && point >= 0:
		return lines, true, nil
	case err != nil:
		return lines, false, fmt.Errorf("%s: %w: %s", strings.Join(cmd.Args, " "), err, last)
	}
	return lines, false, scanner.Err()
}

// splitProgress cuts at newlines and at the carriage returns that redraw a line of progress.
func splitProgress(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := slices.IndexFunc(data, func(b byte) bool { return b == '\n' || b == '\r' }); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	if atEOF {
		return 0, nil, io.EOF
	}
	return 0, nil, nil
}

// pick spreads at most k points over n lines, the first and the last among them.
func pick(n, k int) []int {
	k = min(n, k)
	points := make([]int, k)
	for i := range points {
		points[i] = i * (n - 1) / max(k-1, 1)
	}
	return points
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
