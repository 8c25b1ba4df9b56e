package stream

import (
	"context"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// described is drifting between nodes of one type, which have features of their own: as many
// columns, or none.
func described(t testing.TB, events, dim int) *store.Dataset {
	s := driftingSpec(events, 0)
	for i := range s.Dst {
		s.Dst[i] += users
	}
	s.Users, s.Items, s.NodeDim = users+items, 0, dim
	s.NodeRow = func(v int) []float32 {
		row := make([]float32, dim)
		row[v%dim] = float32(v) / 8
		return row
	}
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// TestNodeFeatures: TGN and JODIE read features of nodes, by a map or as they are; a run is the
// plain loop with them, on any budget and after it was cut short, and its network measures what it
// did. APAN reads none.
func TestNodeFeatures(t *testing.T) {
	for _, dim := range []int{3, 16} { // other columns than memories have, and as many
		ds, plain := described(t, 600, dim), described(t, 600, 0)
		stateless := options(model.TGN)
		stateless.State = run.NoState
		for _, o := range []run.Options{options(model.TGN), options(model.JODIE), options(model.APAN), stateless} {
			if o.State == "" {
				o.Staleness, o.WarmEvents, o.Mitigate = 2, 70, 0.5
			}
			r := run1(t, ds, o, run.Hooks{})
			without := outcomeOf(run1(t, plain, o, run.Hooks{}))
			if o.Kind == model.APAN {
				require.Equal(t, without, outcomeOf(r))
				continue
			}
			require.Equal(t, dim, r.Stream.NodeColumns)
			require.NotEqual(t, without.losses, r.Losses)
			var kinds []string
			for _, table := range r.Tables {
				kinds = append(kinds, table.Kind)
			}
			require.Equal(t, []string{stateKind, eventKind, nodeKind}[3-len(kinds):], kinds)
			require.Equal(t, "user/feat", r.Tables[len(kinds)-1].Type)
			if o.State == "" {
				losses, params, _ := plainLoop(t, ds, o, run.Hooks{})
				require.Equal(t, losses, r.Losses, o.Kind)
				require.Equal(t, params, r.ParamsXXH3, o.Kind)
			}
			want := outcomeOf(r)
			o.Cache.HostBytes, o.Workers, o.Window, o.Publish, o.CheckpointEvery = 0, 2, 3, run.Late, 3
			disk := vfs.NewMem()
			for done := false; !done; {
				ctx, cancel := context.WithCancel(t.Context())
				left := 7
				r, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(int, int, int, float64) {
					if left--; left == 0 {
						cancel()
					}
				}})
				cancel()
				require.NoError(t, err)
				if done = r.Status == run.Done; done {
					require.Equal(t, want, outcomeOf(r), o.Kind)
				}
			}
		}
	}
}

// TestNodeFeaturesElsewhere: a run's network measures what it did, a stream whose nodes have other
// columns is refused, and a plan names the table.
func TestNodeFeaturesElsewhere(t *testing.T) {
	ds, o := described(t, 600, 16), options(model.TGN)
	path, r := trained(t, ds, o)
	n := network(t, ds, path, run.Use{})
	m, err := n.Measure(t.Context())
	require.NoError(t, err)
	require.Equal(t, *r.Stream.Replay.Test, *m.Replay.Test)
	dir, err := run.Look(path)
	require.NoError(t, err)
	for dim, says := range map[int]string{0: "it learnt from 16 columns of features of nodes, and ", 5: "it learnt from 16 columns"} {
		_, err = OpenNetwork(t.Context(), described(t, 600, dim), dir, run.Use{Scratch: t.TempDir()}, run.Hooks{})
		require.ErrorContains(t, err, says)
	}
	p, err := MakePlan(t.Context(), ds, o, run.Hooks{})
	require.NoError(t, err)
	require.True(t, slices.ContainsFunc(p.Tables, func(t plan.Reading) bool { return t.Type == "user/feat" && t.InputRows > 0 }))
}
