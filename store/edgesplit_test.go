package store_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// held writes a relation between the 3 users of everything, with an edge split that uses every
// feature.
func held(t *testing.T, w *store.Writer) {
	times := func(n ...byte) (b []byte) {
		for _, x := range n {
			b = append(b, x, 0, 0, 0, 0, 0, 0, 0)
		}
		return b
	}
	s, err := w.NewEdgeSplit("user", "rates", "user", store.EdgeSplitSpec{
		Name: "time:time:0.25/0.25/0.5", Columns: []store.ColumnSpec{{Name: "time", Elem: store.I64}},
		SrcNegatives: [2]int{0, 1}, DstNegatives: [2]int{2, 3}, Pool: [2]bool{true, false},
	})
	require.NoError(t, err)
	require.NoError(t, s.AppendNegatives(store.HeldTest, []store.NodeID{2, 0}, []store.NodeID{0, 1, 2, 2, 1, 0}))
	require.NoError(t, s.Append(store.HeldTest, []store.NodeID{1, 2}, []store.NodeID{0, 2}, times(5, 6)))
	require.NoError(t, s.Append(store.HeldValid, []store.NodeID{0}, []store.NodeID{1}, times(4)))
	require.NoError(t, s.AppendNegatives(store.HeldValid, nil, []store.NodeID{2, 2}))
	require.NoError(t, s.AppendPool(store.HeldValid, []store.NodeID{0, 1, 2}, []store.NodeID{2, 1, 0}))
	g, err := w.AddRelation("user", "rates", "user", false, store.ColumnSpec{Name: "time", Elem: store.I64})
	require.NoError(t, err)
	require.NoError(t, g.Append([]store.NodeID{2}, times(3)))
	require.NoError(t, g.AppendLengths([]uint32{0, 0}))
	require.NoError(t, g.Close())
	require.NoError(t, s.Close())
}

// requireHeld compares relation i of d with what held wrote.
func requireHeld(t *testing.T, d *store.Dataset, i int) {
	valid, ok := d.HeldEdges(i, store.HeldValid)
	require.True(t, ok)
	test, _ := d.HeldEdges(i, store.HeldTest)
	require.Equal(t, "time:time:0.25/0.25/0.5", d.Manifest().Relations[i].EdgeSplit.Name)
	require.Equal(t, []int{1, 2}, []int{valid.Len(), test.Len()})
	src, dst := test.Ends()
	require.Equal(t, [][]store.NodeID{{1, 2}, {0, 2}}, [][]store.NodeID{src, dst})
	require.Equal(t, [][]store.NodeID{{2}, {0}}, [][]store.NodeID{test.SrcNegatives(0), test.SrcNegatives(1)})
	require.Equal(t, [][]store.NodeID{{0, 1, 2}, {2, 1, 0}}, [][]store.NodeID{test.DstNegatives(0), test.DstNegatives(1)})
	require.Equal(t, []byte{5, 0, 0, 0, 0, 0, 0, 0, 6, 0, 0, 0, 0, 0, 0, 0}, test.Column("time"))
	require.Nil(t, test.Column("weight"))
	src, dst = test.Pool()
	require.Nil(t, src)
	require.Nil(t, dst)
	src, dst = valid.Ends()
	require.Equal(t, [][]store.NodeID{{0}, {1}}, [][]store.NodeID{src, dst})
	require.Nil(t, valid.SrcNegatives(0))
	require.Equal(t, []store.NodeID{2, 2}, valid.DstNegatives(0))
	src, dst = valid.Pool()
	require.Equal(t, [][]store.NodeID{{0, 1, 2}, {2, 1, 0}}, [][]store.NodeID{src, dst})
	require.Len(t, d.Graph(i).Neighbors(0), 1, "held-out edges are not in the topology")
	_, ok = d.HeldEdges(0, store.HeldTest)
	require.False(t, ok)
}

// TestHeldEdgesForged forges ids beyond the number of nodes: reading them fails, and verify finds
// them.
func TestHeldEdgesForged(t *testing.T) {
	dir := storetest.Build(t, storetest.Spec{Nodes: 4, Neighbors: [][]store.NodeID{{1}}, EdgeSplit: &storetest.EdgeSplit{
		Valid: storetest.HeldEdges{
			Src: []store.NodeID{1, 2}, Dst: []store.NodeID{2, 3}, DstNegatives: [][]store.NodeID{{0, 1}, {2, 3}},
			PoolSrc: []store.NodeID{1}, PoolDst: []store.NodeID{3},
		},
	}})
	require.NoError(t, check(dir))
	const at = "edges/node__to__node/valid/"
	for _, name := range []string{"src", "dst", "dst-negatives", "pool-src", "pool-dst"} {
		storetest.Forge(t, dir, at+name+".u32", store.PageSize, []byte{4})
	}
	d, err := store.Open(dir)
	require.NoError(t, err)
	defer d.Close()
	h, _ := d.HeldEdges(0, store.HeldValid)
	require.Equal(t, []store.NodeID{2, 3}, h.DstNegatives(1), "only what is asked for is looked at")
	for want, read := range map[string]func(){
		"src.u32 at 0x1000: entry 0 is node 4 of 4":           func() { h.Ends() },
		"dst-negatives.u32 at 0x1000: entry 0 is node 4 of 4": func() { h.DstNegatives(0) },
		"pool-src.u32 at 0x1000: entry 0 is node 4 of 4":      func() { h.Pool() },
	} {
		err := store.Guard(func() error { read(); return nil })
		require.ErrorContains(t, err, at+want)
		require.ErrorIs(t, err, store.ErrCorrupt)
	}
	problems, err := d.Verify(t.Context(), nil)
	require.NoError(t, err)
	require.Len(t, problems, 5)
	for _, p := range problems {
		require.ErrorContains(t, p, at)
	}
}

// TestEdgeSplitRefused makes mistakes. Closing the split finds counts that do not add up, and
// sealing finds what the format forbids.
func TestEdgeSplitRefused(t *testing.T) {
	one, u8 := []store.NodeID{1}, []store.ColumnSpec{{Name: "time", Elem: store.U8}}
	for _, c := range []struct {
		spec          store.EdgeSplitSpec
		fill          func(s *store.EdgeSplitWriter) error
		close, sealed string
	}{
		{spec: store.EdgeSplitSpec{Name: "given"}, fill: func(s *store.EdgeSplitWriter) error { return s.Append(store.HeldTest, one, one) }},
		{
			spec: store.EdgeSplitSpec{Name: "given", DstNegatives: [2]int{2, 2}},
			fill: func(s *store.EdgeSplitWriter) error {
				return s.AppendNegatives(store.HeldValid, nil, []store.NodeID{1, 2})
			},
			close: "valid/dst-negatives.u32: 8 bytes written for 0 rows of 8",
		},
		{
			spec:  store.EdgeSplitSpec{Name: "given", Pool: [2]bool{false, true}},
			fill:  func(s *store.EdgeSplitWriter) error { return s.AppendPool(store.HeldTest, []store.NodeID{1, 2}, one) },
			close: "test/pool-dst.u32: 4 bytes written for 2 rows of 4",
		},
		{spec: store.EdgeSplitSpec{Name: "given", Columns: u8}, sealed: "column time of u8, and the relation has no such"},
		{spec: store.EdgeSplitSpec{}, sealed: `its name is ""`},
	} {
		w, err := store.Create(filepath.Join(t.TempDir(), "x.gnn"), store.WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, w.AddNodeType("node", []int64{0, 1, 2}))
		g, err := w.AddRelation("node", "to", "node", false)
		require.NoError(t, err)
		require.NoError(t, g.AppendLengths([]uint32{0, 0, 0}))
		require.NoError(t, g.Close())
		s, err := w.NewEdgeSplit("node", "to", "node", c.spec)
		require.NoError(t, err)
		if c.fill != nil {
			require.NoError(t, c.fill(s))
		}
		if err := s.Close(); c.close != "" {
			require.ErrorContains(t, err, c.close)
			require.NoError(t, w.Abort())
			continue
		} else {
			require.NoError(t, err)
		}
		if _, err = w.Seal(store.Manifest{Name: "x", Order: "original"}); c.sealed != "" {
			require.ErrorContains(t, err, c.sealed)
		} else {
			require.NoError(t, err)
		}
		require.NoError(t, w.Abort())
	}
}
