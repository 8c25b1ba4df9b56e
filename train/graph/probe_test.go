package graph

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// toldByCounts returns a graph where only the number of edges from a node tells its class, or with
// to the number of edges to it. Rows are noise.
func toldByCounts(nodes int, to bool) storetest.Spec {
	s, rng := storetest.Communities(nodes, 2, 1, 8, 3), rand.New(rand.NewPCG(1, 9))
	lists, class := make([][]store.NodeID, nodes), make([]int32, nodes)
	rows := make([][]float32, nodes)
	for v := range nodes {
		class[v] = int32(rng.IntN(2))
		for range 3 + 6*int(class[v]) + rng.IntN(3) {
			if u := rng.IntN(nodes); to {
				lists[v] = append(lists[v], store.NodeID(u))
			} else {
				lists[u] = append(lists[u], store.NodeID(v))
			}
		}
		for range s.Dim {
			rows[v] = append(rows[v], float32(rng.NormFloat64()))
		}
	}
	s.Neighbors, s.Class, s.Row = lists, func(v int) int32 { return class[v] }, func(v int) []float32 { return rows[v] }
	return s
}

// fitted fits the probe of a run in dir.
func fitted(t *testing.T, ds *store.Dataset, dir string, o NetworkOptions) (*Network, *Probe) {
	o.Probe = true
	n := network(t, ds, dir, o)
	t.Cleanup(func() { require.NoError(t, n.Close()) })
	steps := 0
	p, err := n.FitProbe(t.Context(), func(done, all int) {
		steps++
		require.Equal(t, steps, done)
		require.LessOrEqual(t, done, all)
	})
	require.NoError(t, err)
	require.Equal(t, p.Steps, steps)
	return n, p
}

// TestProbeTellsCounts: where the number of edges tells the class, in either direction, the probe
// beats the largest class and a network of means. Any memory budget gives the same probe.
func TestProbeTellsCounts(t *testing.T) {
	for _, to := range []bool{true, false} {
		ds := open(t, toldByCounts(1000, to))
		o := small()
		o.Epochs = 5
		dir, r := runIn(t, ds, o)
		n, p := fitted(t, ds, dir, NetworkOptions{})
		require.Equal(t, 8, p.Columns)
		require.Equal(t, []string{"edges of node__to__node to it", "edges of node__to__node from it"}, p.Degrees)
		require.Equal(t, 800, p.Train)
		again, p2 := fitted(t, ds, dir, NetworkOptions{Use: run.Use{MemoryBytes: 96 << 20, Scratch: t.TempDir()}})
		require.Equal(t, p.L2, p2.L2)
		for _, part := range []string{"train", "valid", "test", "all-labelled"} {
			m, err := n.Measure(t.Context(), part)
			require.NoError(t, err)
			require.NotNil(t, m.Probe)
			require.Greater(t, *m.Probe, 0.97)
			require.Less(t, *m.Baseline, 0.65)
			require.Greater(t, *m.Probe, *m.Value)
			if part == "test" {
				require.Equal(t, *r.Best.TestAcc, *m.Value) // the probe leaves the network as it is
			}
			other, err := again.Measure(t.Context(), part)
			require.NoError(t, err)
			require.Equal(t, m.Probe, other.Probe)
		}
	}
}

// TestProbeOfEachTask: the probe beats one answer for all where nodes have a class, several classes
// or numbers, where there are several node types, and where nodes have degrees but no rows.
func TestProbeOfEachTask(t *testing.T) {
	bare := toldByCounts(400, true)
	bare.Row = nil
	without := storetest.TypedSpec{
		Types:     []storetest.TypedNodes{{Name: "node", Nodes: 400}},
		Relations: []storetest.TypedRelation{{Src: "node", Name: "to", Dst: "node", Neighbors: bare.Neighbors}},
		Target:    "node", Classes: 2, Class: bare.Class, Train: bare.Train, Valid: bare.Valid, Test: bare.Test,
	}
	given := small()
	given.Inputs = map[string]string{"node": "constant"}
	auc := small()
	auc.Metric = metric.ROCAUC
	for name, c := range map[string]struct {
		ds      *store.Dataset
		o       run.Options
		columns int
		degrees int
	}{
		"classes":         {open(t, storetest.Communities(600, 4, 8, 16, 1)), small(), 16, 2},
		"several classes": {open(t, several(600)), auc, 16, 2},
		"numbers":         {open(t, priced(600)), small(), 16, 2},
		"typed":           {openTyped(t, storetest.Library(600, 4, 1)), typed(model.RSAGE), 16, 7},
		"learnt rows":     {openTyped(t, without), small(), 0, 2},
		"constant":        {openTyped(t, without), given, 0, 2},
	} {
		t.Run(name, func(t *testing.T) {
			c.o.Epochs = 1
			dir, _ := runIn(t, c.ds, c.o)
			n, p := fitted(t, c.ds, dir, NetworkOptions{})
			require.Equal(t, c.columns, p.Columns)
			require.Len(t, p.Degrees, c.degrees)
			m, err := n.Measure(t.Context(), "test")
			require.NoError(t, err)
			require.True(t, n.Metric().Better(*m.Probe, *m.Baseline), "%v and %v", *m.Probe, *m.Baseline)
		})
	}
}

// TestProbeRefused: links, edges, and a dataset without training nodes have no probe.
func TestProbeRefused(t *testing.T) {
	refused := func(ds, on *store.Dataset, o run.Options, want string) {
		o.Epochs = 1
		dir, _ := runIn(t, ds, o)
		d, err := run.Look(dir)
		require.NoError(t, err)
		_, err = OpenNetwork(t.Context(), on, d, NetworkOptions{Probe: true}, run.Hooks{})
		require.ErrorContains(t, err, want)
	}
	links := open(t, linked(300))
	refused(links, links, linkOptions(), "{baseline}: the linear model is one of nodes")
	trust := openTyped(t, storetest.Trust(200, true, false))
	refused(trust, trust, edgeOptions(), "{baseline}: the linear model is one of nodes")
	s := storetest.Communities(300, 4, 8, 16, 1)
	ds := open(t, s)
	s.Unlabelled, s.Class, s.Train, s.Valid, s.Test = true, nil, nil, nil, nil
	refused(ds, open(t, s), small(), "{baseline}: there is no training node with a label")
}
