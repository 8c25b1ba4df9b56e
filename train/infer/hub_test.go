package infer

import (
	"math"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

// TestHubsInParts: what a list comes to does not depend on how it is taken, whatever else its edges
// bring along.
func TestHubsInParts(t *testing.T) {
	storetest.Long(t)
	g := storetest.Library(200, 3, 4)
	for r := range g.Relations {
		g.Relations[r].Weight = func(v, i int) float32 { return float32(1 + (v*7+i*3)%5) }
	}
	g.Relations[1].Columns = []storetest.Column{{
		Name: "rating", Elem: store.F32, Value: func(v, i int) float64 { return math.Cos(float64(v*9 + i)) },
	}}
	withEdgeRows(&g.Relations[2])
	path := storetest.BuildTyped(t, g)
	one := storetest.Build(t, storetest.Communities(200, 3, 30, 8, 1))
	for name, c := range map[string]model.Config{
		"rsage":            {Kind: model.RSAGE, LabelInput: 3},
		"rgcn":             {Kind: model.RGCN},
		"rgcn with bases":  {Kind: model.RGCN, Bases: 2, LabelInput: 3},
		"sage with labels": {Kind: model.SAGE, LabelInput: 3},
		"gcn with labels":  {Kind: model.GCN, LabelInput: 3},
		"gat":              {Kind: model.GAT, Heads: 4},
		"rgat":             {Kind: model.RGAT, Heads: 2, LabelInput: 3},
		"hgt":              {Kind: model.HGT, Heads: 4},
		"hgt, one head":    {Kind: model.HGT, Heads: 1, LabelInput: 3},
	} {
		for _, weighted := range []bool{false, true} {
			if weighted && !c.Kind.Typed() {
				continue // these kinds draw without weights
			}
			c.Layers, c.Hidden, c.Norm = 2, 8, "layer"
			o := Options{Draws: sample.Config{Weighted: weighted && c.Kind.Typed()}, Bytes: 1 << 30}
			from := path
			if !c.Kind.Typed() {
				from = one
			}
			e := network(t, from, c, o)
			var nodes []uint32
			for v := range uint32(e.data.Types[e.data.Target].Nodes) {
				nodes = append(nodes, v)
			}
			_, want, err := rows(t.Context(), e, 1, nodes)
			require.NoError(t, err)
			for _, part := range []int{1, 4, 1000} {
				e.most.hub, e.most.part = 2, part
				_, got, err := rows(t.Context(), e, 1, nodes)
				require.NoError(t, err)
				require.Equal(t, asBits(want), asBits(got), "%s, weighted %v, parts of %d", name, weighted, part)
			}
			learnt := e.most.learnt
			e.most.hub, e.most.part, e.most.learnt = 1000, 1000, 2*edgeRowBytes // all that have rows of edges are hubs by these
			_, got, err := rows(t.Context(), e, 1, nodes)
			require.NoError(t, err)
			require.Equal(t, asBits(want), asBits(got), "%s, weighted %v, two edges at a time", name, weighted)
			e.most.learnt = learnt
			e.Dir, e.FS, e.Bytes, e.Hold = filepath.Join(t.TempDir(), "layers"), storetest.NoSync, 3000, HoldSums
			e.most.bytes, e.most.hub, e.most.part = 500, 1000, 10
			for _, e.most.learnt = range []int64{learnt, 2 * edgeRowBytes} {
				_, got, err := rows(t.Context(), e, 1, nodes)
				require.NoError(t, err)
				require.Equal(t, asBits(want), asBits(got), "%s, weighted %v, sums held", name, weighted)
			}
		}
	}
}

// star is a graph in which all nodes have node 0 for a neighbour, and it has them all.
func star(t testing.TB, nodes int) string {
	s := storetest.Communities(nodes, 2, 0, 4, 1)
	s.Neighbors = make([][]store.NodeID, nodes)
	for v := 1; v < nodes; v++ {
		s.Neighbors[v] = []store.NodeID{0}
		s.Neighbors[0] = append(s.Neighbors[0], store.NodeID(v))
	}
	return storetest.Build(t, s)
}

// TestHubTakesNoMemory: the rows of a hub's neighbours are in memory a part at a time.
func TestHubTakesNoMemory(t *testing.T) {
	const nodes = hubEdges + 50_000
	c := model.Config{Kind: model.SAGE, Layers: 2, Hidden: 64, Norm: "none"}
	e := network(t, star(t, nodes), c, Options{Bytes: 1 << 30})
	_, want, err := rows(t.Context(), e, 1, []uint32{0, 7})
	require.NoError(t, err)
	e = network(t, e.data.Set.Path(), c, Options{Bytes: 1 << 20, Way: Full, Dir: filepath.Join(t.TempDir(), "layers"), FS: storetest.NoSync})
	before := kernels.HostBytes()
	_, got, err := rows(t.Context(), e, 1, []uint32{0, 7})
	require.NoError(t, err)
	require.Equal(t, asBits(want), asBits(got))
	require.LessOrEqual(t, kernels.HostBytes()-before, e.MemoryBytes())
}

// TestHubOfWideEdgesTakesNoMemory: of the rows of a hub's edges as many are in memory as
// MemoryBytes says, which is far less than all.
func TestHubOfWideEdgesTakesNoMemory(t *testing.T) {
	const nodes, dim = 500, 4096 // fewer edges than make a hub
	s := storetest.Communities(nodes, 2, 0, 4, 1)
	s.Neighbors = make([][]store.NodeID, nodes)
	for v := range store.NodeID(nodes) {
		s.Neighbors[0] = append(s.Neighbors[0], v)
	}
	s.Columns = []storetest.Column{{Name: store.EdgeID, Elem: store.U32, Value: func(_, i int) float64 { return float64(nodes - 1 - i) }}}
	row := make([]float32, dim)
	s.EdgeTable = &storetest.EdgeTable{Rows: nodes, Dim: dim, Elem: store.F16, Row: func(i int) []float32 {
		row[i%dim] = float32(i%9) / 8
		return row
	}}
	path := storetest.Build(t, s)
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT} {
		c := model.Config{Kind: kind, Layers: 2, Hidden: 8, Norm: "none"}
		if kind == model.RGAT {
			c.Heads = 2
		}
		_, want, err := rows(t.Context(), network(t, path, c, Options{Bytes: 1 << 30}), 1, []uint32{0, 7})
		require.NoError(t, err)
		for _, hold := range []Hold{HoldRows, HoldSums} {
			if hold == HoldSums && !kind.Sums() {
				continue
			}
			e := network(t, path, c, Options{
				Bytes: 64 << 10, Way: Full, Hold: hold, Dir: filepath.Join(t.TempDir(), "layers"), FS: storetest.NoSync, ChunkBytes: 64 << 10,
				Tables: cachetier.Options{Engine: disk.Mmap, Readers: 1},
			})
			before := kernels.HostBytes()
			_, got, err := rows(t.Context(), e, 1, []uint32{0, 7})
			require.NoError(t, err)
			require.Equal(t, asBits(want), asBits(got), "%s, %s", kind, hold)
			took := kernels.HostBytes() - before
			require.LessOrEqual(t, took, e.MemoryBytes(), "%s, %s", kind, hold)
			require.Less(t, took, int64(nodes*dim*2)/4, "%s, %s", kind, hold)
		}
	}
}
