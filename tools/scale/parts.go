//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

const gib = 1 << 30

// papers makes papers100M's shape straight through the builder.
func (b *bench) papers(ctx context.Context) error {
	r, err := b.build(ctx, 4*gib, "generate", "papers100m", b.path("papers.gnn"), "--scale", fmt.Sprint(b.scale))
	if err != nil {
		return err
	}
	fmt.Fprintf(b.w, "made: %d nodes, %d edges, %d classes, %d float16 features\n", r.NodeTypes[0].Count, r.Relations[0].Edges, r.Labels[0].Classes, r.Tables[0].Dim)
	var seen cli.Inspected
	if err := b.binary.JSON(ctx, &seen, "inspect", b.path("papers.gnn")); err != nil {
		return err
	}
	if seen.Seal != r.Seal {
		return fmt.Errorf("inspect says seal %s, and the build %s", seen.Seal, r.Seal)
	}
	return b.remove("papers.gnn")
}

// raw ingests the raw files of a quarter of papers100M.
func (b *bench) raw(ctx context.Context) error {
	start := time.Now()
	if err := b.binary.Run(ctx, "generate", "papers100m", b.path("papers100M-bin"), "--raw", "--scale", fmt.Sprint(b.scale/4)); err != nil {
		return err
	}
	fmt.Fprintf(b.w, "raw files: %.1f s\n", time.Since(start).Seconds())
	r, err := b.build(ctx, 4*gib, "ingest", "ogb", b.path("papers100M-bin"), b.path("raw.gnn"))
	if err != nil {
		return err
	}
	fmt.Fprintf(b.w, "ingested: %d nodes, %d edges\n", r.NodeTypes[0].Count, r.Relations[0].Edges)
	return b.remove("papers100M-bin", "raw.gnn")
}

// equal builds one graph in little and in much memory.
func (b *bench) equal(ctx context.Context) error {
	var seals []string
	for _, memory := range []int64{256 * mib, 4 * gib} {
		r, err := b.build(ctx, memory, "generate", "papers100m", b.path("equal.gnn"), "--scale", fmt.Sprint(b.scale/20), "--undirected")
		if err != nil {
			return err
		}
		seals = append(seals, r.Seal)
		if err := b.remove("equal.gnn"); err != nil {
			return err
		}
	}
	if seals[0] != seals[1] {
		return fmt.Errorf("seals differ: %s with 256 MiB, %s with 4 GiB", seals[0], seals[1])
	}
	fmt.Fprintf(b.w, "equal: %s with 256 MiB and with 4 GiB\n", seals[0])
	return nil
}

// strings ingests string ids out of parquet.
func (b *bench) strings(ctx context.Context) error {
	const nodes, edges = 20_000_000, 60_000_000
	start := time.Now()
	if err := os.Mkdir(b.path("tables"), 0o777); err != nil {
		return err
	}
	if err := writeTables(ctx, b.path("tables"), nodes, edges); err != nil {
		return err
	}
	fmt.Fprintf(b.w, "tables: %.1f s\n", time.Since(start).Seconds())
	r, err := b.build(ctx, 512*mib, "ingest", "table", b.path("tables/schema.yaml"), b.path("strings.gnn"))
	if err != nil {
		return err
	}
	if n, e := r.NodeTypes[0].Count, r.Relations[0].Edges; n != nodes || e != edges {
		return fmt.Errorf("%d nodes and %d edges of %d and %d", n, e, nodes, edges)
	}
	if err := b.binary.Run(ctx, "verify", b.path("strings.gnn")); err != nil {
		return err
	}
	return b.remove("tables", "strings.gnn")
}

// mag240m ingests MAG240M's layout.
func (b *bench) mag240m(ctx context.Context) error {
	if err := b.binary.Run(ctx, "generate", "mag240m", b.path("mag240m_kddcup2021"), "--raw", "--scale", fmt.Sprint(b.scale/50)); err != nil {
		return err
	}
	r, err := b.build(ctx, gib, "ingest", "mag240m", b.path("mag240m_kddcup2021"), b.path("mag.gnn"))
	if err != nil {
		return err
	}
	if len(r.NodeTypes) != 3 || len(r.Relations) != 3 {
		return fmt.Errorf("%d node types and %d relations, of three each", len(r.NodeTypes), len(r.Relations))
	}
	out, err := b.binary.Command(ctx, "inspect", b.path("mag.gnn")).Output()
	if err != nil {
		return err
	}
	fmt.Fprintf(b.w, "%s", out)
	return b.remove("mag240m_kddcup2021", "mag.gnn")
}

// peer builds 10 million nodes and 160 million edges, beside NumPy and SciPy.
func (b *bench) peer(ctx context.Context) error {
	const nodes, edges = "10M", "160M"
	if err := b.binary.Run(ctx, "generate", "papers100m", b.path("source.gnn"), "--nodes", nodes, "--edges", edges, "--order", "original"); err != nil {
		return err
	}
	if err := b.binary.Run(ctx, "export", b.path("source.gnn"), b.path("arrays")); err != nil {
		return err
	}
	if err := b.remove("source.gnn"); err != nil {
		return err
	}
	relation := b.path("arrays/node__to__node/edge_index.npy")
	features := b.path("arrays/node/feat.npy")
	for range 2 {
		r, err := b.build(ctx, 4*gib, "ingest", "npy", relation, b.path("ours.gnn"), "--array-features", features, "--split", "random:0.1/0.1/0.1")
		if err != nil {
			return err
		}
		fmt.Fprintf(b.w, "ours: %.1f s, peak %d MiB, %.2f GB written\n", r.seconds, r.PeakRSSBytes/mib, float64(written(r))/1e9)
		if err := b.remove("ours.gnn"); err != nil {
			return err
		}
		cmd := exec.CommandContext(ctx, b.python, "tools/scale/peer.py", relation, features, b.path("theirs"))
		out, err := cmd.Output()
		if err != nil {
			return fmt.Errorf("peer.py: %w", err)
		}
		var theirs struct {
			Seconds float64 `json:"seconds"`
			Peak    int64   `json:"peak_rss_bytes"`
			Written int64   `json:"written_bytes"`
			Route   string  `json:"route"`
		}
		if err := json.Unmarshal(out, &theirs); err != nil {
			return errors.Join(err, fmt.Errorf("%s", out))
		}
		fmt.Fprintf(b.w, "%s: %.1f s, peak %d MiB, %.2f GB written; %.2f times ours\n", theirs.Route, theirs.Seconds, theirs.Peak/mib, float64(theirs.Written)/1e9, theirs.Seconds/r.seconds)
		if err := b.remove("theirs"); err != nil {
			return err
		}
	}
	return b.remove("arrays")
}

// written returns the bytes that a build wrote, spills included.
func written(r *built) int64 {
	sum := r.Bytes
	for _, p := range r.Passes {
		sum += p.SpillWritten
	}
	return sum
}
