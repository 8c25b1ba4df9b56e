package stream

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// requireBlends holds the rows of a batch that are blended against the rule, by the times in the state that it sees. All of them had an event.
func requireBlends(t *testing.T, tr *trainer, b *temporal.Batch, state func(place uint32) (last float64, met bool)) {
	t.Helper()
	similar, err := temporal.NewSimilar(tr.events)
	require.NoError(t, err)
	defer similar.Close()
	found := temporal.Blends{Random: tr.hooks.RandomPartners, FirstDst: uint32(tr.events.Place(0))}
	var roots, rows []uint32
	var times, all []float64
	for _, row := range b.Roots {
		roots, times = append(roots, b.Nodes[b.RowNode[row]]), append(times, b.RowTime[row])
	}
	for v := range uint32(tr.events.Places()) {
		last, met := state(v)
		if !met {
			last = -1
		}
		all = append(all, last)
	}
	found.Find(roots, times, all, func(place uint32) []uint32 { return similar.Of(place, b.From) })
	for _, root := range found.Rows {
		rows = append(rows, b.Roots[root])
	}
	require.Equal(t, rows, slices.Clone(b.Blended))
	var of []uint32
	for _, node := range b.Similar {
		of = append(of, b.Nodes[node])
	}
	require.Equal(t, append([]uint32{}, found.Nodes...), append([]uint32{}, of...))
	for _, row := range b.Blended {
		_, met := state(b.Nodes[b.RowNode[row]])
		require.True(t, met, "a row of a node without an event is blended")
	}
}

// exact is drifting between nodes of one type, with features of events and of nodes that float16 and float32 hold alike; without any of elem 0.
func exact(t testing.TB, events int, elem store.Elem) *store.Dataset {
	s := driftingSpec(events, 0)
	for i := range s.Dst {
		s.Dst[i] += users
	}
	row := s.Row
	s.Users, s.Items, s.Elem = users+items, 0, elem
	if s.NodeDim = 3; elem == 0 {
		s.Dim, s.NodeDim = 0, 0
	}
	s.Row = func(event int) []float32 {
		x := slices.Clone(row(event))
		for c := range x {
			x[c] = float32(math.Round(8*float64(x[c]))) / 8
		}
		return x
	}
	s.NodeRow = func(v int) []float32 { return []float32{float32(v%7) / 8, float32(v % 5), -float32(v%3) / 4} }
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// TestMitigateFeatures: whatever the type of features, and whichever partners memories are blended with, a run is the plain loop, on any budget and after it
// was cut short; types that hold the same features come to the same.
func TestMitigateFeatures(t *testing.T) {
	for _, kind := range model.TemporalKinds {
		for _, random := range []uint64{0, 7} {
			var of [3]outcome
			for i, elem := range []store.Elem{0, store.F16, store.F32} {
				name := fmt.Sprintf("%s, features of type %v, random partners %d", kind, elem, random)
				ds, o, h := exact(t, 600, elem), options(kind), Hooks{RandomPartners: random}
				o.Staleness, o.WarmEvents, o.Mitigate = 3, 70, 0.5
				r := run1(t, ds, o, h)
				losses, params, blended := plainLoop(t, ds, o, h)
				require.Equal(t, losses, r.Losses, name)
				require.Equal(t, params, r.ParamsXXH3, name)
				require.Equal(t, blended, r.Stream.Mitigation.Blended, name)
				require.Positive(t, blended, name)
				of[i] = outcomeOf(r)

				o.Cache.HostBytes, o.Workers, o.Window, o.Publish, o.CheckpointEvery = 0, 2, 3, run.Late, 3
				disk := vfs.NewMem()
				for done := false; !done; {
					ctx, cancel := context.WithCancel(t.Context())
					left := 7
					some := h
					some.Step = func(int, int, int, float64) {
						if left--; left == 0 {
							cancel()
						}
					}
					r, err := runOn(ctx, disk, "/run", ds, o, some)
					cancel()
					require.NoError(t, err, name)
					if done = r.Status == run.Done; done {
						require.Equal(t, of[i], outcomeOf(r), name)
						require.Equal(t, blended, r.Stream.Mitigation.Blended, name)
					}
				}
			}
			require.NotEqual(t, of[0].params, of[1].params)
			require.Equal(t, of[1], of[2], kind)
		}
	}
}

// TestMitigate: memories that are out of date are blended as the plain loop blends them, on any budget; what is kept whole is what is not blended.
func TestMitigate(t *testing.T) {
	ds := drifting(t, 700)
	for _, kind := range model.TemporalKinds {
		for _, k := range []int{1, 2, 3} {
			o := options(kind)
			o.Staleness, o.WarmEvents = k, 130
			off := outcomeOf(run1(t, ds, o, Hooks{}))
			o.Mitigate = 0.5
			r := run1(t, ds, o, Hooks{})
			require.NotEqual(t, off.params, r.ParamsXXH3, "%s, staleness %d", kind, k)
			m := r.Stream.Mitigation
			require.Positive(t, m.Blended)
			require.Less(t, m.Share(), 0.02, "99 in 100 are recent")
			losses, params, blended := plainLoop(t, ds, o, Hooks{})
			require.Equal(t, losses, r.Losses, "%s, staleness %d", kind, k)
			require.Equal(t, params, r.ParamsXXH3, "%s, staleness %d", kind, k)
			require.Equal(t, blended, m.Blended)

			if k == 2 { // which is between the others
				continue
			}
			want := outcomeOf(r)
			o.Cache.HostBytes, o.Workers, o.Window, o.Publish = 0, 2, 3, run.Late
			require.Equal(t, want, outcomeOf(run1(t, ds, o, Hooks{late: late})), "%s, staleness %d", kind, k)
			o.Mitigate = 1
			require.Equal(t, off, outcomeOf(run1(t, ds, o, Hooks{})), "%s, staleness %d", kind, k)
		}
	}
}
