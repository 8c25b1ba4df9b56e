package trace

import (
	"context"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestTablesOfEdges: the rows of edges are traced like the rows of a type, each once a batch. Here
// every edge has a row of its own.
func TestTablesOfEdges(t *testing.T) {
	spec := storetest.Communities(300, 3, 6, 4, 2)
	first, edges := []int{}, 0
	for v, list := range spec.Neighbors {
		slices.Sort(list)
		spec.Neighbors[v] = slices.Compact(list)
		first = append(first, edges)
		edges += len(spec.Neighbors[v])
	}
	spec.Columns = []storetest.Column{
		{Name: store.EdgeID, Elem: store.U32, Value: func(v, i int) float64 { return float64(first[v] + i) }},
		{Name: "time", Elem: store.F32, Value: func(v, i int) float64 { return 1 }},
	}
	spec.EdgeTable = &storetest.EdgeTable{Rows: edges, Dim: 3, Row: func(int) []float32 { return make([]float32, 3) }}
	ds, err := store.Open(storetest.Build(t, spec))
	require.NoError(t, err)
	defer ds.Close()
	o := DefaultOptions()
	o.Fanouts, o.Batch, o.Steps, o.Kappas, o.Samplers = []int{4, 3}, 20, 6, []int{1}, []sample.Kind{sample.NS}
	o.Caches, o.Tmp = o.Caches[:1], t.TempDir()
	without, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	o.EdgeInputs = map[string][]string{"to": {"table"}}
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)
	require.Equal(t, without.Growth, r.Growth)
	require.Equal(t, 1, r.NodeTypes())
	require.Len(t, r.Types, 2)
	require.Equal(t, TypeOf{Type: "node__to__node/edge_feat", Nodes: edges, RowBytes: 12, Caches: r.Types[1].Caches, Edges: true}, r.Types[1])
	require.Len(t, r.Traces, 2)
	require.Equal(t, without.Traces[0].Requests, r.Traces[0].Requests)

	sampler, requests := sample.NewSampler(sample.AtHand(ds.Graph(0)), o.config(sample.NS, 1), 1), 0
	for step, seeds := range inSteps(ds, o) {
		var b sample.Batch
		require.NoError(t, sampler.SampleOne(context.Background(), &b, sample.Schedule{Seed: o.Seed, Kappa: 1}.At(step), seeds))
		drawn := map[int]bool{} // an edge may be in both layers
		for _, l := range b.Layers {
			k := &l.Blocks[0]
			for i, v := range l.Nodes[0].Src[:l.Nodes[0].Dst] {
				for e := k.Start[i]; e < k.End[i]; e++ {
					u := l.Nodes[0].Src[k.Nbr[e]]
					drawn[first[v]+slices.Index(ds.Graph(0).Neighbors(v), u)] = true
				}
			}
		}
		requests += len(drawn)
	}
	require.EqualValues(t, requests, r.Traces[1].Requests)
	o.EdgeInputs = map[string][]string{"to": {"time"}}
	_, err = Run(context.Background(), ds, o)
	require.ErrorContains(t, err, "{edge_input}: columns of edges come with their lists, and are no rows; give node__to__node=table, or leave it out")
	o.EdgeInputs, o.Samplers = map[string][]string{"to": {"table"}}, []sample.Kind{sample.RW}
	_, err = Run(context.Background(), ds, o)
	require.ErrorContains(t, err, "{edge_input}: {samplers} rw visits nodes and draws no edges; trace the others")
}

// inSteps are the seeds of each step of a trace.
func inSteps(ds *store.Dataset, o Options) (steps [][]uint32) {
	for epoch := 1; ; epoch++ {
		order := slices.Clone(ds.Split(0).Train)
		sample.Shuffle(order, o.Seed, epoch)
		for of := range slices.Chunk(order, o.Batch) {
			if len(steps) == o.Steps {
				return steps
			}
			steps = append(steps, of)
		}
	}
}
