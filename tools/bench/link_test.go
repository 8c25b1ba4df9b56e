package main

import (
	"bytes"
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/pipeline"
)

// TestLinkDraws: steps without their links are drawn beside the same ones with them.
func TestLinkDraws(t *testing.T) {
	ds, err := store.Open(storetest.Build(t, storetest.Communities(300, 5, 8, 16, 1).Linked()))
	require.NoError(t, err)
	defer ds.Close()
	c := comparison{batch: 20}
	links, err := c.openLinks(ds)
	require.NoError(t, err)
	w, err := newLinkDraws(ds, links, 5)
	require.NoError(t, err)
	require.Greater(t, w.roots, 20)
	require.LessOrEqual(t, w.roots, 60)
	seconds, share, err := w.turn(t.Context())
	require.NoError(t, err)
	require.GreaterOrEqual(t, seconds, 0.0)
	require.GreaterOrEqual(t, share, -1.0)
}

// TestLinkReport: ratios are taken turn by turn, and the sides with many negatives are compared
// with each other.
func TestLinkReport(t *testing.T) {
	var out bytes.Buffer
	r := linkReport{Dataset: "a.gnn", Batch: 10, Roots: 29, Steps: 5, Memory: "1GiB", Exclusion: series{0.01, 0.03}, Drawing: series{0.002, 0.004}}
	all := turns[epochCounts]{columns: linkColumns}
	for i, name := range []string{"nodes", "links", "kept", "shared:5", "uniform:5"} {
		n := float64(i + 1)
		s := &side[epochCounts]{name: name}
		for _, seconds := range []float64{n / 60, n / 120} {
			s.turns = append(s.turns, epochCounts{steps: 1, stages: pipeline.Stats{Run: seconds, Sample: n / 1e3, Step: n / 1e3}})
		}
		all.sides = append(all.sides, s)
		s.base = all.sides[0]
	}
	r.print(&comparison{out: &out, rounds: 2}, &all)
	require.Contains(t, out.String(), "| links | 45.00 (30.00–60.00) | 0.50 (0.50–0.50) | 2.0 (2.0–2.0) | 2.0 (2.0–2.0) |")
	require.Contains(t, out.String(), "shared:5 / uniform:5: 1.25 (1.25–1.25) as many steps.")
	require.Contains(t, out.String(), "3.0 (2.0–4.0) ms with its links in the graph, and 2.0 (1.0–3.0) % more without them.")
}

func TestLinkMisuse(t *testing.T) {
	for want, args := range map[string][]string{
		"-dataset is missing":    {"link"},
		"-json goes with link":   {"kernels", "-json"},
		"-negatives: at least 1": {"link", "-negatives", "0"},
	} {
		require.ErrorContains(t, compare(context.Background(), io.Discard, args), want)
	}
}
