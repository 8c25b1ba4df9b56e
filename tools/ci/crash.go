package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

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
	return a.killIngest("lines", func(out, _ string) []string { return a.ingestArgs(out) }).KillAtLines(ctx, 5)
}

// crashPasses is a short run of what tools/crash -ingest does at length: one kill after the other,
// in every pass.
func crashPasses(ctx context.Context, a *arxiv) error {
	return a.killIngest("passes", func(out, tmp string) []string {
		return []string{"generate", "papers100m", out, "--scale", "0.02", "--memory", "256MiB", "--tmp", tmp}
	}).KillInPasses(ctx, true)
}

// killIngest kills what args make, in a directory of its own.
func (a *arxiv) killIngest(name string, args func(out, tmp string) []string) *resume.Ingest {
	return &resume.Ingest{Binary: a.gnnstore, Dir: filepath.Join(a.tmp, name), Out: os.Stdout, Args: args}
}

// crashTrain is a short run of what tools/crash does at length.
func crashTrain(ctx context.Context, a *arxiv) error {
	return a.prove(ctx, func(p *resume.Prover) error { return killTrain(ctx, p, resume.Configs[:3]) })
}

// killTrain kills runs of configs, and starts second runs beside one of the first of them.
func killTrain(ctx context.Context, p *resume.Prover, configs []resume.Config) error {
	if err := p.Kill(ctx, configs, 9); err != nil {
		return err
	}
	messages, err := p.Twice(ctx, configs[0])
	if err != nil {
		return err
	}
	for _, message := range messages {
		fmt.Println("a second train in the directory of a run at work:", message)
	}
	return nil
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
		there := resume.AtFile(filepath.Join(got+".layers", at.there))
		_, killed, err := resume.Kill(ctx, a.gnnstore.Command(ctx, args(got)...), there)
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
func (a *arxiv) prove(ctx context.Context, proof func(*resume.Prover) error) error {
	dataset, err := a.dataset(ctx, directed)
	if err != nil {
		return err
	}
	return resume.InDir(ctx, func(dir string) error {
		p := &resume.Prover{Binary: a.gnnstore, Dataset: dataset, Batch: 2000, Dir: dir, Seed: 1, Out: os.Stdout}
		return proof(p)
	})
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
