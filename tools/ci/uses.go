package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/train/run"
)

// uses runs eval and predict on a trained run. It returns the metrics, and a hash of each file that
// predict writes.
func (a *arxiv) uses(ctx context.Context, dir string, r recordedRun, o run.Options) (map[string]any, error) {
	var evaluated any
	if err := a.gnnstore.JSON(ctx, &evaluated, "eval", dir, "--json"); err != nil {
		return nil, fmt.Errorf("eval of %s: %w", r.name, err)
	}
	// Layers and bytes depend on how eval ran.
	drop(evaluated, slices.Concat(timed, []string{"layers", "bytes_read"}))
	out := filepath.Join(a.tmp, "predicted")
	hashes := map[string]any{}
	for _, name := range predictions(o) {
		if err := os.Mkdir(out, 0o777); err != nil {
			return nil, err
		}
		args := append([]string{"predict", dir, filepath.Join(out, "rows")}, strings.Fields(name)...)
		if i := slices.Index(args, pairsFile); i >= 0 {
			args[i] = filepath.Join(a.tmp, pairsFile)
		}
		if err := a.gnnstore.Run(ctx, args...); err != nil {
			return nil, fmt.Errorf("predict %s of %s: %w", name, r.name, err)
		}
		files, err := os.ReadDir(out)
		if err != nil {
			return nil, err
		}
		for _, f := range files {
			b, err := os.ReadFile(filepath.Join(out, f.Name()))
			if err != nil {
				return nil, err
			}
			hashes[name+" "+f.Name()] = fmt.Sprintf("%016x", xxh3.Hash(b))
		}
		if err := os.RemoveAll(out); err != nil {
			return nil, err
		}
	}
	return map[string]any{"eval": evaluated, "predict": hashes}, nil
}

// predictions returns the flags of each prediction of a run.
func predictions(o run.Options) []string {
	switch {
	case o.Sampler.Walks(): // predict refuses random walks
		return nil
	case o.Streams():
		return []string{"--type user --format npy", "--type item --at 10000 --format npy", "--what scores --events pairs.csv --format npy"}
	case o.Links():
		return []string{"--format npy", "--what scores --top 3 --format csv", "--what scores --pairs pairs.csv --format npy"}
	case o.Edges():
		return []string{"--edges test --format csv", "--what embeddings --type user --format npy"}
	}
	return []string{"--format npy", "--what logits --nodes test --format npy", "--what embeddings --format npy"}
}

const pairsFile = "pairs.csv"

// writePairs writes pairs of nodes and their times. The stream and the graph of links have these
// nodes.
func writePairs(tmp string) error {
	text := "src,dst,time\n"
	for i := range 40 {
		text += fmt.Sprintf("%d,%d,%d\n", 3*i, i, 500*i+1)
	}
	return os.WriteFile(filepath.Join(tmp, pairsFile), []byte(text), 0o666)
}
