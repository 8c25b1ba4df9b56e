package build

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// TestRank: larger counts come first, those beyond the table among themselves as well, and equal
// ones as given.
func TestRank(t *testing.T) {
	counts := []uint32{1, 70_000, 65_535, 70_001, 1, 0, 65_536, 70_000, 65_535}
	rank(counts)
	require.Equal(t, []uint32{6, 1, 4, 0, 7, 8, 3, 2, 5}, counts)
}

// TestAccess: nodes are ordered by how often training is expected to read them: from training nodes
// alone, over all layers, and of a long list each only as often as it is drawn.
func TestAccess(t *testing.T) {
	const hub, chain, tested, nodes = 0, 31, 35, 37
	f := &fake{schema: ingest.Schema{
		Name:      "access",
		NodeTypes: []ingest.NodeType{{Name: "node", Count: nodes}},
		Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}},
		Splits:    []ingest.Split{{Name: "given", NodeType: "node"}},
	}, edges: map[int][][2]int64{}, splits: map[int][3][]int64{0: {{hub, chain}, nil, {tested}}}, chunk: 64}
	want := []int64{hub, chain, chain + 1, chain + 2, chain + 3} // once each: a chain is followed for three layers
	for v := chain; v < chain+3; v++ {
		f.edges[0] = append(f.edges[0], [2]int64{int64(v) + 1, int64(v)})
	}
	for u := int64(1); u <= 30; u++ { // half of the time: 15 of them are drawn
		f.edges[0] = append(f.edges[0], [2]int64{u, hub})
		want = append(want, u)
	}
	f.edges[0] = append(f.edges[0], [2]int64{tested + 1, tested})
	want = append(want, tested, tested+1)

	d, _ := build(t, f, Options{Features: "degree", Order: OrderAccess})
	var got []int64
	for v := range store.NodeID(nodes) {
		got = append(got, d.IDs(0).Original(v))
	}
	require.Equal(t, want, got)
}
