package stream

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// evenly returns a stream whose events join random nodes.
func evenly(t *testing.T, events, nodes int) *store.Dataset {
	rng := rand.New(rand.NewPCG(7, uint64(nodes)))
	s := storetest.StreamSpec{Users: nodes, Split: store.StreamSplit{Name: "given", Train: int64(events * 8 / 10), Valid: int64(events / 10), Test: int64(events / 10)}}
	for i := range events {
		s.Src, s.Dst, s.Times = append(s.Src, rng.Uint32N(uint32(nodes))), append(s.Dst, rng.Uint32N(uint32(nodes))), append(s.Times, float64(i))
	}
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// TestBatchByRecurrence: the batch grows with the number of nodes, within its bounds, and a note
// says so. A given batch stays. The record has the number, and a resumed run keeps it.
func TestBatchByRecurrence(t *testing.T) {
	for nodes, want := range map[int]int{20: leastBatch, 140: 140, 5000: mostBatch} {
		ds, o, notes := evenly(t, 3000, nodes), options(model.JODIE), ""
		o.Batch, o.Epochs, o.Hidden = run.Auto, 1, 4
		h := run.Hooks{Note: func(s string) { notes += s + "\n" }}
		r := run1(t, ds, o, h)
		require.InDelta(t, want, r.Options.Batch, 0.1*float64(want), "%d nodes", nodes)
		require.Contains(t, notes, "batch of ")
		require.Equal(t, (2400+r.Options.Batch-1)/r.Options.Batch, r.Epochs[0].Steps)

		given := o
		given.Batch, notes = r.Options.Batch, ""
		require.Equal(t, outcomeOf(r), outcomeOf(run1(t, ds, given, h)))
		require.False(t, strings.Contains(notes, "batch of "), notes)

		disk := vfs.NewMem()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(int, int, int, float64) { cancel() }})
		require.NoError(t, err)
		// the command gives the value on record
		again, err := runOn(t.Context(), disk, "/run", ds, given, run.Hooks{})
		require.NoError(t, err)
		require.Equal(t, outcomeOf(r), outcomeOf(again))
	}
}
