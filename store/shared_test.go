package store

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// testShared has the lists of three relations between 6 nodes: the second has no edge.
var testShared = [][][]NodeID{
	{nil, {0, 3, 3}, nil, {5}, nil, {1, 2}},
	{nil, nil, nil, nil, nil, nil},
	{{4}, nil, nil, nil, {0, 1, 2, 3}, nil},
}

// testHeld are the held-out edges of the first relation, by part.
var testHeld = [2][2][]NodeID{{{1, 2}, {0, 5}}, {{3}, {4}}}

// writeShared writes testShared beside a relation with sections of its own.
func writeShared(t *testing.T, path string, o WriterOptions) *Manifest {
	w, err := Create(path, o)
	require.NoError(t, err)
	require.NoError(t, w.AddNodeType("node", []int64{0, 1, 2, 3, 4, 5}))
	g, err := w.AddRelation("node", "own", "node", false)
	require.NoError(t, err)
	for range 6 {
		require.NoError(t, g.Append([]NodeID{2}))
	}
	require.NoError(t, g.Close())
	s, err := w.NewShared("node", "node", true)
	require.NoError(t, err)
	for i, lists := range testShared {
		split := ""
		if i == 0 {
			split = "given"
		}
		require.NoError(t, s.Begin(fmt.Sprintf("r%d", i), false, "", split))
		for v, list := range lists {
			if len(list) > 0 {
				require.NoError(t, s.AppendList(NodeID(v), list))
			}
		}
		for p, ends := range testHeld {
			if i == 0 {
				require.NoError(t, s.AppendHeld(HeldPart(p), ends[0], ends[1]))
			}
		}
	}
	require.NoError(t, s.Close())
	for i, lists := range testShared {
		r, err := w.OpenRelation(fmt.Sprintf("node__r%d__node", i))
		require.NoError(t, err)
		offsets, at := make([]uint64, 7), 0
		for first := range 7 {
			require.NoError(t, r.Offsets(int64(first), offsets[:7-first]))
			require.EqualValues(t, r.Edges(), offsets[6-first])
		}
		require.NoError(t, r.Offsets(0, offsets))
		all := make([]NodeID, r.Edges())
		require.NoError(t, r.Neighbors(0, all))
		for v, list := range lists {
			require.EqualValues(t, at, offsets[v])
			require.True(t, slices.Equal(list, all[at:at+len(list)]))
			at += len(list)
		}
		require.NoError(t, r.Close())
	}
	m, err := w.Seal(Manifest{Name: "x", Order: "original"})
	require.NoError(t, err)
	return m
}

// TestShared compares every way to read relations that share sections with their lists.
func TestShared(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.gnn")
	writeShared(t, path, WriterOptions{})
	d, err := Open(path)
	require.NoError(t, err)
	defer d.Close()
	problems, err := d.Verify(context.Background(), nil)
	require.NoError(t, err)
	require.Empty(t, problems)
	require.False(t, d.Graph(0).Shares())
	for i, lists := range testShared {
		g := d.Graph(1 + i)
		require.True(t, g.Shares())
		edge := int64(0)
		var nodes []NodeID
		offsets := make([]uint64, 7)
		g.ListOffsets(0, offsets)
		for v, list := range lists {
			require.Equal(t, len(list), g.Degree(NodeID(v)))
			require.Equal(t, len(list), len(g.Neighbors(NodeID(v))))
			lo, hi := g.EdgesOf(NodeID(v))
			require.Equal(t, [2]uint64{uint64(edge), uint64(edge) + uint64(len(list))}, [2]uint64{lo, hi})
			require.Equal(t, lo, offsets[v])
			for _, u := range list {
				src, dst := g.Edge(edge)
				require.Equal(t, [2]NodeID{u, NodeID(v)}, [2]NodeID{src, dst})
				edge++
			}
			if len(list) > 0 {
				nodes = append(nodes, NodeID(v))
				require.Equal(t, list, g.Neighbors(NodeID(v)))
			}
		}
		require.Equal(t, edge, g.Edges())
		var seen []NodeID
		for v, list := range g.Lists() {
			require.Equal(t, lists[v], list)
			seen = append(seen, v)
		}
		require.Equal(t, nodes, seen)
		require.Len(t, slices.Collect(g.Degrees()), len(nodes))
		require.Error(t, Guard(func() error { g.Neighbors(6); return nil }))
		require.Error(t, Guard(func() error { g.Edge(edge); return nil }))
	}
	for p, ends := range testHeld {
		h, ok := d.HeldEdges(1, HeldPart(p))
		require.True(t, ok)
		src, dst := h.Ends()
		require.Equal(t, ends, [2][]NodeID{src, dst})
		_, ok = d.HeldEdges(2, HeldPart(p))
		require.False(t, ok)
	}
	// Node 2 has edges of the relation with sections of its own alone.
	require.Zero(t, d.Unreached("node", []NodeID{0, 1, 2, 3, 4, 5}))
}

// TestSharedRefused: a manifest whose shared sections do not fit its relations is refused, and a
// damaged byte of the sections is found.
func TestSharedRefused(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "x.gnn")
	writeShared(t, path, WriterOptions{})
	text, err := os.ReadFile(filepath.Join(path, manifestName))
	require.NoError(t, err)
	for want, change := range map[string]func(m *Manifest){
		"2 lists of 5 edges do not fit":  func(m *Manifest) { m.Relations[1].Edges = 7 },
		"-1 lists of 6 edges do not fit": func(m *Manifest) { *m.Relations[1].Lists = -1 },
		"0 lists of 6 edges do not fit":  func(m *Manifest) { *m.Relations[1].Lists = 0 },
		"9223372036854775807 held-out edges do not fit": func(m *Manifest) {
			m.Relations[1].EdgeSplit.Valid.Edges = 1<<63 - 1
		},
		"1 lists, 1 edges and 0 held-out edges are of no": func(m *Manifest) {
			m.Relations[3].Edges, *m.Relations[3].Lists = 4, 1
		},
		"node and node have none":                      func(m *Manifest) { m.Shared = nil },
		"shared sections node__node: there are two":    func(m *Manifest) { m.Shared = append(m.Shared, m.Shared[0]) },
		"one part of held-out edges without the other": func(m *Manifest) { m.Shared[0].Test = nil },
		"it shares sections, and has some of its own": func(m *Manifest) {
			m.Relations[1].Offsets = m.Relations[0].Offsets
		},
		"4×1 u64 where 6×1 u64 belongs":                          func(m *Manifest) { m.Shared[0].Starts.Rows = 4 },
		`"x" is named where topo/node__node/nodes.u32 belongs`:   func(m *Manifest) { m.Shared[0].Nodes.Path = "x" },
		`"" is named where topo/node__own__node/offsets.u64 bel`: func(m *Manifest) { m.Relations[0].Offsets = File{} },
		"valid: it has sections of its own, and its relation shar": func(m *Manifest) {
			m.Relations[1].EdgeSplit.Valid.Src = m.Shared[0].Valid.Src
		},
	} {
		m, err := decodeManifest(text)
		require.NoError(t, err)
		change(m)
		changed, err := m.seal()
		require.NoError(t, err)
		_, err = decodeManifest(changed)
		require.ErrorContains(t, err, want)
	}
	for _, name := range []string{
		"topo/node__node/nodes.u32", "topo/node__node/starts.u64", "topo/node__node/neighbors.u32",
		"edges/node__node/valid/dst.u32",
	} {
		file := filepath.Join(path, name)
		good, err := os.ReadFile(file)
		require.NoError(t, err)
		bad := slices.Clone(good)
		bad[PageSize+8] ^= 0x40
		require.NoError(t, os.WriteFile(file, bad, 0o666))
		d, err := Open(path)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		require.Len(t, problems, 1)
		require.Equal(t, name, problems[0].Section)
		require.ErrorIs(t, Guard(func() error {
			for v := range NodeID(6) {
				d.Graph(1).Neighbors(v)
			}
			h, _ := d.HeldEdges(1, HeldValid)
			h.Ends()
			return nil
		}), ErrCorrupt)
		require.NoError(t, d.Close())
		require.NoError(t, os.WriteFile(file, good, 0o666))
	}
}

// TestSharedVerified: Verify refuses shared sections whose checksums fit and whose values do not.
func TestSharedVerified(t *testing.T) {
	type list struct {
		of   NodeID
		from []NodeID
	}
	fit := []list{{1, []NodeID{0, 3}}, {4, []NodeID{5}}}
	longer := func(m *Manifest) { m.Relations[0].Edges, m.Relations[1].Edges = 4, 2 }
	for _, c := range []struct {
		lists  []list // of the first relation; the second has those in fit
		src    NodeID // of an edge held out
		dst    NodeID
		change func(m *Manifest)
		want   string
	}{
		{lists: fit},
		{lists: []list{{1, []NodeID{0, 3}}, {6, []NodeID{5}}}, want: "nodes.u32: relation p__r0__p: list 1 is of node 6 of 6"},
		{lists: []list{{4, []NodeID{0, 3}}, {1, []NodeID{5}}}, want: "list 1 is of node 1, which does not follow 4"},
		{lists: []list{{4, []NodeID{0, 3}}, {4, []NodeID{5}}}, want: "list 1 is of node 4, which does not follow 4"},
		{lists: []list{{1, []NodeID{0, 1, 2}}, {4, nil}}, want: "starts.u64: relation p__r0__p: the starts of its lists do not increase"},
		{lists: []list{{1, []NodeID{3, 0}}, {4, []NodeID{5}}}, want: "neighbors.u32: relation p__r0__p: neighbours of node 1 are not ascending (3 > 0)"},
		{lists: []list{{1, []NodeID{0, 6}}, {4, []NodeID{5}}}, want: "node 1 has neighbour 6, and there are 6 nodes"},
		{lists: fit, src: 6, want: "valid/src.u32"},
		{lists: fit, dst: 6, want: "valid/dst.u32"},
		{lists: fit, change: longer, want: "starts.u64: relation p__r0__p: its lists end at 3, and its edges at 4"},
	} {
		path := filepath.Join(t.TempDir(), "x.gnn")
		w, err := Create(path, WriterOptions{})
		require.NoError(t, err)
		require.NoError(t, w.AddNodeType("p", []int64{0, 1, 2, 3, 4, 5}))
		s, err := w.NewShared("p", "p", true)
		require.NoError(t, err)
		for i, lists := range [][]list{c.lists, fit} {
			require.NoError(t, s.Begin(fmt.Sprintf("r%d", i), false, "", "given"))
			for _, l := range lists {
				require.NoError(t, s.AppendList(l.of, l.from))
			}
			require.NoError(t, s.AppendHeld(HeldValid, []NodeID{c.src}, []NodeID{c.dst}))
		}
		require.NoError(t, s.Close())
		m, err := w.Seal(Manifest{Name: "x", Order: "original"})
		require.NoError(t, err)
		if c.change != nil {
			c.change(m)
			text, err := m.seal()
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(filepath.Join(path, manifestName), text, 0o666))
		}
		d, err := Open(path)
		require.NoError(t, err)
		problems, err := d.Verify(context.Background(), nil)
		require.NoError(t, err)
		if c.want == "" {
			require.Empty(t, problems)
		} else {
			require.NotEmpty(t, problems, c.want)
			require.ErrorIs(t, problems[0], ErrCorrupt)
			require.ErrorContains(t, problems[0], c.want)
		}
		require.NoError(t, d.Close())
	}
}
