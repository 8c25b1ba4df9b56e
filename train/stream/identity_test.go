package stream

import (
	"context"
	"encoding/json"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// oneType is drifting between nodes of one type, with row for features; nil means none.
func oneType(t testing.TB, events, dim int, row func(v int) []float32) *store.Dataset {
	s := driftingSpec(events, 0)
	for i := range s.Dst {
		s.Dst[i] += users
	}
	s.Users, s.Items, s.NodeDim, s.NodeRow = users+items, 0, dim, row
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// identityRow counts the ones of each hash, bit by bit.
func identityRow(id uint64, dim int) (row []float32) {
	for c := range dim {
		hash, ones := sample.Hash(26, id, uint64(c)), 0
		for bit := range 64 {
			ones += int(hash >> bit & 1)
		}
		row = append(row, float32(ones-32)/float32(math.Sqrt(64*0.25)))
	}
	return row
}

// TestIdentityIsATableOfRandomColumns: a run on nodes without features equals, bit for bit, the run
// on a dataset that stores the same random columns. That holds for any budget and after a resume,
// and the network measures the same.
func TestIdentityIsATableOfRandomColumns(t *testing.T) {
	const hidden = 16
	plain := oneType(t, 600, 0, nil)
	for _, cols := range []int{hidden, 5} { // added as they are, or through a map
		stored := oneType(t, 600, cols, func(v int) []float32 { return identityRow(uint64(v), cols) })
		stateless := options(model.TGN)
		stateless.State = run.NoState
		for _, o := range []run.Options{options(model.TGN), options(model.JODIE), stateless} {
			if o.State == "" {
				o.Staleness, o.WarmEvents, o.Mitigate = 2, 70, 0.5
			}
			want := outcomeOf(run1(t, stored, o, run.Hooks{}))
			if cols != hidden || o.Kind == model.JODIE {
				o.Identity = cols
			}
			path := filepath.Join(t.TempDir(), "run")
			r, err := runOn(t.Context(), vfs.Default, path, plain, o, run.Hooks{})
			require.NoError(t, err)
			require.Equal(t, want, outcomeOf(r), o.Kind)
			require.Equal(t, []int{cols, cols}, []int{r.Options.Identity, r.Stream.NodeColumns})
			m, err := network(t, plain, path, run.Use{}).Measure(t.Context())
			require.NoError(t, err)
			require.Equal(t, *r.Stream.Replay.Test, *m.Replay.Test)

			o.Cache.HostBytes, o.Workers, o.Window, o.Publish, o.CheckpointEvery = 0, 2, 3, run.Late, 3
			disk := vfs.NewMem()
			for done := false; !done; {
				ctx, cancel := context.WithCancel(t.Context())
				left := 9
				r, err := runOn(ctx, disk, "/run", plain, o, run.Hooks{Step: func(int, int, int, float64) {
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

// TestIdentityByDefault: TGN has identity columns if nodes are of one type without features, and a
// note says so. A run whose record lacks the option goes on without them.
func TestIdentityByDefault(t *testing.T) {
	plain, featured, two := oneType(t, 300, 0, nil), described(t, 300, 3), drifting(t, 300)
	for _, of := range []struct {
		ds   *store.Dataset
		kind model.Kind
		asks int
		cols int
	}{
		{plain, model.TGN, run.Auto, 16}, {plain, model.JODIE, run.Auto, 0}, {plain, model.JODIE, 16, 16}, {plain, model.TGN, 0, 0}, {plain, model.TGN, 7, 7},
		{plain, model.APAN, run.Auto, 0}, {featured, model.TGN, run.Auto, 0}, {two, model.TGN, run.Auto, 0}, {two, model.JODIE, 7, 7},
	} {
		o, notes := options(of.kind), ""
		o.Epochs, o.Identity = 1, of.asks
		r := run1(t, of.ds, o, run.Hooks{Note: func(s string) { notes += s + "\n" }})
		require.Equal(t, of.cols, r.Options.Identity)
		require.Equal(t, of.asks == run.Auto && of.cols > 0, strings.Contains(notes, "nodes have no features: 16 random columns by their ids tell them apart"), notes)
	}
	o := options(model.TGN)
	o.Identity = 7
	_, err := newTrainer(t.Context(), featured, o, run.Hooks{}, internal{})
	require.ErrorContains(t, err, "{identity} 7: nodes of stream events have features, which networks read instead")
	o.Kind, o.Fanouts, o.Mails = model.APAN, []int{5}, 0
	require.ErrorContains(t, o.Validate(), "{identity} 7: {model} apan reads no features of nodes")

	o = options(model.TGN)
	o.Identity = 0
	path, r := trained(t, plain, o)
	text, err := json.Marshal(r.Options)
	require.NoError(t, err)
	require.NotContains(t, string(text), "identity", "as in records of before")
	m, err := network(t, plain, path, run.Use{}).Measure(t.Context())
	require.NoError(t, err)
	require.Equal(t, *r.Stream.Replay.Test, *m.Replay.Test)
}
