package graph

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestTopologyFollowsTheSplit: the split of its memory decides how many lists a run holds, not the
// budget with which the first batch was measured. A tier that is opened with the split's budget
// counts the same.
func TestTopologyFollowsTheSplit(t *testing.T) {
	some, many := open(t, storetest.Communities(20_000, 4, 60, 4, 3)), open(t, storetest.Communities(20_000, 4, 200, 4, 3))
	least := topology.LeastBytes(some.Graph(0))
	all, allOfMany := topology.AllBytes(some.Graph(0)), topology.AllBytes(many.Graph(0))
	o := small()
	o.Kind, o.EvalBytes, o.MemoryBytes = model.GCN, 0, 1
	_, err := newTrainer(t.Context(), some, o, run.Hooks{}, internal{})
	tight := leastIn(t, err)
	require.Less(t, all, tight/8, "so that all lists are resident for the measure")
	for _, c := range []struct {
		name          string
		ds            *store.Dataset
		memory, given int64
		from, to      int64 // bounds of the split's part for the topology
		same          bool  // as the measure had
	}{
		{"fewer", some, tight, run.Auto, least, all - 1, false},
		{"as many", some, 1 << 30, run.Auto, all, all, true},
		{"as many, of a budget beyond all", some, 1 << 30, 1 << 29, all, all, false},
		{"a given part", some, 1 << 30, all / 2, all / 2, all / 2, true},
		{"more", many, 8 * (allOfMany - 1), run.Auto, topology.LeastBytes(many.Graph(0)) + 1, allOfMany, false},
	} {
		o.MemoryBytes, o.TopologyBytes = c.memory, c.given
		made, err := newTrainer(t.Context(), c.ds, o, run.Hooks{}, internal{})
		require.NoError(t, err, c.name)
		part := made.tiers.Budget.Topology
		require.True(t, c.from <= part && part <= c.to, "%s: %+v", c.name, made.tiers.Budget)
		tier, err := topology.Open(t.Context(), c.ds.Graph(0), topology.Options{Bytes: part})
		require.NoError(t, err)
		_, err = tier.SelfLoops(t.Context()) // which the measure asked for
		require.NoError(t, err)
		want, got := tier.Stats(), made.tiers.Topology[0].Stats()
		want.Warmup.Seconds, got.Warmup.Seconds = 0, 0
		if c.same { // then what the measure drew is counted as well
			want.Asked, want.Hits, want.Misses, want.Cold = got.Asked, got.Hits, got.Misses, got.Cold
		}
		require.Equal(t, want, got, c.name)
		tier.Close()
		made.Close()
	}
}
