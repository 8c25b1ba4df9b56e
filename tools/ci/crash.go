package main

import (
	"bufio"
	"bytes"
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
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/tools/resume"
)

// crash kills ingest at several of its lines of progress, and a second ingest makes what an
// undisturbed one makes. It kills generate in each of its passes, and what goes on from there. It
// kills train at steps and inside writes, and the run goes on to the end of an undisturbed one. It
// kills predict inside a layer and after it, and what goes on writes the same bytes.
func crash(ctx context.Context, a *arxiv) error {
	if err := crashIngest(ctx, a); err != nil {
		return err
	}
	if err := crashPasses(ctx, a); err != nil {
		return err
	}
	if err := crashTrain(ctx, a); err != nil {
		return err
	}
	return crashPredict(ctx, a)
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
			got, err := a.seal(ctx, out)
			if err != nil {
				return err
			}
			if got != want {
				return fmt.Errorf("%s stands after a kill with seal %s, want %s", out, got, want)
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
		got, err := a.seal(ctx, out)
		if err != nil {
			return err
		}
		if got != want {
			return fmt.Errorf("after a kill and a rerun the seal is %s, want %s", got, want)
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

// crashPasses is a short run of what tools/crash -ingest does at length: one kill after the other,
// in every pass.
func crashPasses(ctx context.Context, a *arxiv) error {
	dir := filepath.Join(a.tmp, "passes") // crashIngest has datasets in tmp
	if err := os.Mkdir(dir, 0o777); err != nil {
		return err
	}
	p := &resume.Ingest{Binary: a.gnnstore, Dir: dir, Out: os.Stdout, Args: func(out, tmp string) []string {
		return []string{"generate", "papers100m", out, "--scale", "0.02", "--memory", "256MiB", "--tmp", tmp}
	}}
	return p.Kill(ctx, true)
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

// crashTrain is a short run of what tools/crash does at length.
func crashTrain(ctx context.Context, a *arxiv) error {
	return a.prove(ctx, func(p *resume.Prover) error {
		if err := p.Kill(ctx, resume.Configs[:3], 9); err != nil {
			return err
		}
		messages, err := p.Twice(ctx, resume.Configs[0])
		if err != nil {
			return err
		}
		for _, message := range messages {
			fmt.Println("a second train in the directory of a run at work:", message)
		}
		return nil
	})
}

// crashPredict kills predict when some rows of its second layer are finished, and in its last
// layer. The rows of a layer are more than are finished at a time, and two layers are more than the
// memory.
func crashPredict(ctx context.Context, a *arxiv) error {
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
		return err
	}
	run := filepath.Join(a.tmp, "predicts")
	if err := a.gnnstore.Run(ctx, "train", dataset, "--run", run, "--layers", "3", "--hidden", "512", "--fanout", "5,5,5", "--epochs", "1", "--epoch-steps", "3",
		"--eval-memory", "0", "--eval-nodes", "100"); err != nil {
		return err
	}
	args := func(out string) []string {
		return []string{"predict", run, out, "--what", "logits", "--memory", "256MiB", "--json"}
	}
	var whole, rest struct {
		Layers []struct{ Layer, Nodes int }
	}
	want, got := filepath.Join(a.tmp, "whole.npy"), filepath.Join(a.tmp, "killed.npy")
	if err := a.gnnstore.JSON(ctx, &whole, args(want)...); err != nil {
		return err
	}
	for _, at := range []struct {
		there string // the kill comes when that is there
		layer int    // which is gone on with
	}{{filepath.Join("layer-1.partial", "work", "journal.json"), 2}, {"layer-1", 3}} {
		killed, err := killWhen(a.gnnstore.Command(ctx, args(got)...), filepath.Join(got+".layers", at.there))
		if err != nil {
			return err
		}
		if exists(got) {
			return fmt.Errorf("%s is there after a kill in layer %d", got, at.layer)
		}
		rest.Layers = nil
		if err := a.gnnstore.JSON(ctx, &rest, args(got)...); err != nil {
			return err
		}
		first := rest.Layers[0]
		fmt.Printf("predict: killed %v when %s was there; went on with %d of %d nodes of layer %d\n", killed, at.there, first.Nodes, whole.Layers[0].Nodes, first.Layer)
		if !killed || first.Layer != at.layer || at.layer == 2 && first.Nodes >= whole.Layers[0].Nodes {
			return fmt.Errorf("a kill when %s was there: what was finished was computed again, or nothing was killed", at.there)
		}
		if err := sameFiles(got, want); err != nil {
			return err
		}
		if exists(got + ".layers") {
			return fmt.Errorf("%s.layers is left beside what is whole", got)
		}
		if err := errors.Join(os.Remove(got), os.Remove(strings.TrimSuffix(got, "npy")+"ids.npy")); err != nil {
			return err
		}
	}
	return nil
}

// killWhen runs cmd and kills it as soon as path is there.
func killWhen(cmd *exec.Cmd, path string) (killed bool, err error) {
	if err := cmd.Start(); err != nil {
		return false, err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for {
		select {
		case err := <-ended:
			var exit *exec.ExitError
			if errors.As(err, &exit) && killed {
				return true, nil
			}
			return false, err
		case <-time.After(time.Millisecond):
			if !killed && exists(path) {
				killed = true
				_ = cmd.Process.Kill() // it may have ended just now
			}
		}
	}
}

// sameFiles wants two files to have the same bytes.
func sameFiles(got, want string) error {
	g, err := os.ReadFile(got)
	if err != nil {
		return err
	}
	w, err := os.ReadFile(want)
	if err != nil {
		return err
	}
	if !bytes.Equal(g, w) {
		return fmt.Errorf("%s is not what %s is, which nothing disturbed", got, want)
	}
	return nil
}

// prove hands proof a prover, and keeps its runs when something did not hold.
func (a *arxiv) prove(ctx context.Context, proof func(*resume.Prover) error) (err error) {
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
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
	return proof(&resume.Prover{Binary: a.gnnstore, Dataset: dataset, Batch: 2000, Dir: dir, Seed: 1, Out: os.Stdout})
}

// runUntil runs cmd and kills it as soon as it has written more than point lines of progress to
// stderr; a negative point never comes. It returns the lines it saw and whether the kill came in
// time; a run that ends by itself must succeed.
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
