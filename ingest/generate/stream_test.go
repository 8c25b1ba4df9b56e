package generate

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/sourcetest"
	"github.com/gnnstore/gnnstore/store"
)

func TestStreamsConform(t *testing.T) {
	small := func(name string) func() (ingest.Source, error) {
		return func() (ingest.Source, error) { return Open(name, Options{Edges: 70_000, Nodes: 2000, Dim: 8, Seed: 3}) }
	}
	sourcetest.Conform(t, small("temporal"), small("drift-s"))
}

// moments are all events of a stream.
func moments(t *testing.T, kind string, o Options) (all []moment) {
	s, err := o.shape(kind)
	require.NoError(t, err)
	require.NoError(t, newSource(s).moments(context.Background(), 1000, func(_ int64, m []moment) error {
		all = append(all, m...)
		return nil
	}))
	return all
}

// TestSpan: times go up to the span, never decrease, and stays of users stretch with it.
func TestSpan(t *testing.T) {
	last := 0.0
	for _, span := range []float64{0, 1e9} {
		all := moments(t, "temporal", Options{Scale: 0.02, Span: span})
		require.Len(t, all, 3149)
		for i, m := range all {
			require.True(t, i == 0 || m.time >= all[i-1].time)
			require.Equal(t, i%labelEvery == 0, m.label >= 0)
		}
		last = all[len(all)-1].time
		if span == 0 {
			span = eventSpan
		}
		require.InDelta(t, span, last, span/1000)
	}
}

// TestDrift: sizes are the published ones, seeds differ, times go up by one on average, and the
// shares of events are as said.
func TestDrift(t *testing.T) {
	for kind, c := range map[string]struct{ events, users, items, groups, dim int }{
		"drift-s": {20_000, 150, 60, 4, 8}, "drift-m": {40_000, 300, 120, 6, 12}, "drift-l": {100_000, 6_000, 1_000, 8, 12},
	} {
		s, err := (&Options{}).shape(kind)
		require.NoError(t, err)
		require.Equal(t, []int{c.events, c.users, c.items, c.groups, c.dim}, []int{int(s.edges), int(s.types[0].nodes), int(s.types[1].nodes), s.classes, s.dim})
	}
	all := moments(t, "drift-s", Options{})
	require.Equal(t, all, moments(t, "drift-s", Options{}))
	require.NotEqual(t, all, moments(t, "drift-s", Options{Seed: 2}))
	changes, again, recent := 0, 0, 0
	history, group := map[uint32][]uint32{}, map[uint32]int{}
	for i, m := range all {
		require.True(t, i == 0 || m.time > all[i-1].time)
		changes += int(m.label)
		for _, item := range history[m.user] {
			if item == m.item {
				again++
				break
			}
		}
		if history[m.user] = append(history[m.user], m.item); len(history[m.user]) > driftHistory {
			history[m.user] = history[m.user][1:]
		}
		if g, seen := group[m.item]; seen {
			require.Equal(t, g, m.group, "items stay in their groups")
		}
		group[m.item] = m.group
		for k := max(0, i-driftWindow); k < i; k++ {
			if all[k].user == m.user {
				recent++
				break
			}
		}
	}
	n := float64(len(all))
	require.InDelta(t, n, all[len(all)-1].time, 0.05*n)
	require.InDelta(t, driftSwitch*3/4, float64(changes)/n, 0.001, "three of four changes are to another group")
	require.Greater(t, float64(again)/n, driftRepeat)
	require.Greater(t, float64(recent)/n, driftRecent)
	require.Len(t, group, 60)
}

// TestDriftFeatures: a column for each group, whose mean is the signal there and 0 elsewhere, and a
// deviation of 2.
func TestDriftFeatures(t *testing.T) {
	g, err := Open("drift-s", Options{})
	require.NoError(t, err)
	all, k := moments(t, "drift-s", Options{}), 0
	var own, others, squares float64
	require.NoError(t, g.Rows(context.Background(), 0, func(c ingest.RowChunk) error {
		for ; len(c.Values) > 0; c.Values, k = c.Values[8:], k+1 {
			for i, x := range c.Values[:8] {
				if i == all[k].group {
					own += float64(x)
				} else {
					others += float64(x)
					squares += float64(x * x)
				}
			}
		}
		return nil
	}))
	n := float64(k)
	require.InDelta(t, 1, own/n, 0.05)
	require.InDelta(t, 0, others/(7*n), 0.02)
	require.InDelta(t, driftNoise*driftNoise, squares/(7*n), 0.1)
}

// TestStreamDatasets builds them.
func TestStreamDatasets(t *testing.T) {
	for kind, want := range map[string]struct {
		events int64
		split  string
		o      Options
	}{"temporal": {1575, "given", Options{Scale: 0.01, Dim: 3, Span: 1e8}}, "drift-s": {20_000, "time:0.7/0.15/0.15", Options{}}} {
		g, err := Open(kind, want.o)
		require.NoError(t, err)
		out := filepath.Join(t.TempDir(), "x.gnn")
		rep, err := build.Build(context.Background(), g, out, build.Options{})
		require.NoError(t, err)
		require.Equal(t, want.events, rep.Streams[0].Events)
		require.Equal(t, want.split, rep.Streams[0].Split.Name)
		require.Equal(t, 1.0, rep.Streams[0].TimeScale)
		d, err := store.Open(out)
		require.NoError(t, err)
		defer d.Close()
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Empty(t, problems)
		plan, err := build.PlanBuild(context.Background(), g, filepath.Join(t.TempDir(), "y.gnn"), build.Options{})
		require.NoError(t, err)
		require.Len(t, plan.Passes, len(rep.Passes))
	}
}
