package store

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// TestOwnersByRule: each node has one owner and one row there, rows ascend with nodes, and the
// inverse finds the node again.
func TestOwnersByRule(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(1, 9).Draw(t, "parts")
		nodes := rapid.Int64Range(0, int64(parts)*(singles+3*dealt)+100).Draw(t, "nodes")
		next, o := make([]NodeID, parts), OwnersByRule(parts)
		for v := range NodeID(nodes) {
			owner, row := o.Owner(v), o.RowOf(v)
			if row != next[owner] || o.NodeAt(uint64(row), owner) != uint64(v) {
				t.Fatalf("node %d has row %d of owner %d, whose next row is %d", v, row, owner, next[owner])
			}
			next[owner]++
		}
		for q, rows := range next {
			require.Equal(t, int64(rows), o.Count(nodes, q))
			require.LessOrEqual(t, int64(rows), o.Most(nodes))
			require.GreaterOrEqual(t, o.NodeAt(uint64(rows), q), uint64(nodes))
		}
	})
}

// TestBlocks: the nodes of a block's rows follow each other, and blocks follow each other.
func TestBlocks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.IntRange(2, 9).Draw(t, "parts")
		o, rows := OwnersByRule(parts), rapid.Int64Range(0, singles+3*dealt).Draw(t, "rows")
		if rapid.Bool().Draw(t, "range") {
			ends := make([]NodeID, parts)
			for q := range ends {
				ends[q] = NodeID(rows) * NodeID(q+1)
			}
			o = OwnersByRange(ends)
		}
		p := Own{o, rapid.IntRange(0, parts-1).Draw(t, "index")}
		next := int64(0)
		for row := range NodeID(rows) {
			block := o.block(int64(row))
			if o.BeginsBlock(row) {
				require.Equal(t, next, block)
				require.Equal(t, int64(row), o.blockRow(block))
				next++
			} else if p.Node(row) != p.Node(row-1)+1 || block != next-1 {
				t.Fatalf("row %d is in block %d", row, block)
			}
		}
		require.Equal(t, next, o.blocks(rows))
	})
}

// TestBlocksVerified: blocks that overlap, or that end beyond the whole, are reported.
func TestBlocksVerified(t *testing.T) {
	for _, c := range []struct {
		first []uint64
		want  string
	}{
		{[]uint64{0, 2, 6}, ""},
		{[]uint64{0, 1, 6}, "block 1 begins with edge 1 of 8, and the blocks before it end at 2"},
		{[]uint64{0, 2, 7}, "block 2 begins with edge 7 of 8, and the blocks before it end at 3"},
		{[]uint64{0, 2, 1 << 63}, "block 2 begins with edge 9223372036854775808 of 8"},
	} {
		path := filepath.Join(t.TempDir(), "part.gnn")
		w, err := Create(path, WriterOptions{})
		require.NoError(t, err)
		nodes, err := w.NewPartOfNodes("node", 6, 3)
		require.NoError(t, err)
		require.NoError(t, nodes.AppendOriginal([]int64{0, 2, 4}))
		require.NoError(t, nodes.AppendOrder([]NodeID{0, 1, 2}))
		require.NoError(t, nodes.Close())
		g, err := w.AddRelation("node", "to", "node", false)
		require.NoError(t, err)
		for i, list := range [][]NodeID{{1, 2}, {5}, {0, 3}} {
			require.NoError(t, g.AppendBlock(c.first[i]))
			require.NoError(t, g.Append(list))
		}
		require.NoError(t, g.Close())
		_, err = w.Seal(Manifest{Name: "part", Order: "original", Part: &Part{
			Of: strings.Repeat("0a", 16), Parts: 2, Owner: ByRule, Edges: []int64{8}, Rows: []int64{},
		}})
		require.NoError(t, err)
		d, err := Open(path)
		require.NoError(t, err)
		problems, err := d.Verify(t.Context(), nil)
		require.NoError(t, err)
		if c.want == "" {
			require.Empty(t, problems)
		} else {
			require.Len(t, problems, 1)
			require.ErrorContains(t, problems[0], c.want)
		}
		require.NoError(t, d.Close())
	}
}

// TestRuleOfLargeIDs: the rule holds up to the last id.
func TestRuleOfLargeIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, parts := rapid.Uint32().Draw(t, "v"), rapid.IntRange(1, MaxParts).Draw(t, "parts")
		p := (&Part{Parts: parts, Index: OwnersByRule(parts).Owner(v)}).TableRows()
		row, own := p.Row(v)
		require.True(t, own)
		require.Equal(t, v, p.Node(row))
		require.Less(t, int64(row), p.Count(1<<32))
	})
}

// TestOwnersByRange: each part owns a range, which may be empty, rows ascend with nodes, and the
// inverse finds the node again.
func TestOwnersByRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 9).Draw(t, "rows")
		var owners []int
		var ends []NodeID
		for q, n := range rows {
			for range n {
				owners = append(owners, q)
			}
			ends = append(ends, NodeID(len(owners)))
		}
		nodes := int64(len(owners))
		require.NoError(t, checkEnds(ends, len(rows), nodes))
		o, most := OwnersByRange(ends), 0
		p := &Part{Parts: len(rows), Owner: ByRange, Ends: [][]NodeID{nil, ends}}
		for q, n := range rows {
			p.Index, most = q, max(most, n)
			has, next := p.Nodes(1), NodeID(0)
			require.Equal(t, int64(n), has.Count(nodes))
			for v := range NodeID(nodes) {
				require.Equal(t, owners[v], o.Owner(v))
				row, own := has.Row(v)
				if require.Equal(t, owners[v] == q, own); !own {
					continue
				}
				require.Equal(t, next, row)
				require.Equal(t, row, o.RowOf(v))
				require.Equal(t, v, has.Node(row))
				require.Equal(t, int64(row)+1, has.Count(int64(v)+1))
				next++
			}
			require.GreaterOrEqual(t, has.NodeAt(uint64(n)), uint64(ends[q]))
			_, own := has.Row(NodeID(nodes))
			require.False(t, own)
		}
		require.Equal(t, int64(most), o.Most(nodes))
	})
}

// asPart makes a manifest of a whole one of a part that owns all.
func asPart(m *Manifest) *Part {
	m.Part = &Part{Of: strings.Repeat("0a", 16), Parts: 1, Owner: ByRule, Edges: []int64{m.Relations[0].Edges}, Rows: []int64{m.Tables[0].Shards[0].Rows}}
	return m.Part
}

func TestHostilePart(t *testing.T) {
	_, err := decodeManifest(sealed(t, func(m *Manifest) { asPart(m) }))
	require.NoError(t, err)
	for name, c := range map[string]struct {
		change func(m *Manifest, p *Part)
		want   string
	}{
		"index":        {func(_ *Manifest, p *Part) { p.Index = 1 }, "part 1 of 1"},
		"negative":     {func(_ *Manifest, p *Part) { p.Index = -1 }, "part -1 of 1"},
		"no parts":     {func(_ *Manifest, p *Part) { p.Parts = 0 }, "part 0 of 0"},
		"many parts":   {func(_ *Manifest, p *Part) { p.Parts = 1 << 40 }, "part 0 of 1099511627776"},
		"another rule": {func(_ *Manifest, p *Part) { p.Owner = "whim" }, `owners by "whim"; this build knows rule and range`},
		"no ranges":    {func(_ *Manifest, p *Part) { p.Owner = ByRange }, "ranges of 0 node types; the manifest has 1"},
		"idle ranges":  {func(_ *Manifest, p *Part) { p.Ends = [][]NodeID{{3}} }, "owners by rule, and ranges as well"},
		"few ranges":   {func(_ *Manifest, p *Part) { p.Owner, p.Ends = ByRange, [][]NodeID{{}} }, "0 ends of ranges for 1 parts"},
		"many ranges":  {func(_ *Manifest, p *Part) { p.Owner, p.Ends = ByRange, [][]NodeID{{1, 3}} }, "2 ends of ranges for 1 parts"},
		"short range":  {func(_ *Manifest, p *Part) { p.Owner, p.Ends = ByRange, [][]NodeID{{2}} }, "the last range ends at 2, and there are 3 nodes"},
		"ranges descend": {func(_ *Manifest, p *Part) {
			p.Owner, p.Parts, p.Ends = ByRange, 3, [][]NodeID{{3, 2, 3}}
		}, "the range of part 1 ends at 2, before it begins at 3"},
		"half a range": {func(_ *Manifest, p *Part) {
			p.Owner, p.Parts, p.Ends = ByRange, 2, [][]NodeID{{2, 3}}
		}, "3×1 i64 where 2×1 i64 belongs"},
		"seal":           {func(_ *Manifest, p *Part) { p.Of = "X" }, `the seal of the whole is "X"`},
		"relations":      {func(_ *Manifest, p *Part) { p.Edges = nil }, "counts for 0 relations and 1 tables; the manifest has 1 and 1"},
		"tables":         {func(_ *Manifest, p *Part) { p.Rows = nil }, "counts for 1 relations and 0 tables"},
		"fewer edges":    {func(_ *Manifest, p *Part) { p.Edges[0]-- }, "more than the whole's"},
		"rows of others": {func(_ *Manifest, p *Part) { p.Parts = 2 }, "belongs"},
		"blocks": {func(m *Manifest, _ *Part) {
			r := &m.Relations[0]
			r.Blocks = &File{Path: r.blocksPath(), Elem: U64, Rows: 1, Cols: 1, Stride: 8}
		}, "blocks.u64"},
		"blocks of a whole": {func(m *Manifest, _ *Part) { m.Part, m.Relations[0].Blocks = nil, &File{Elem: U64} }, "only a part has blocks"},
		"names":             {func(m *Manifest, _ *Part) { withNames(m) }, "a part cannot have names"},
		"stream":            {func(m *Manifest, p *Part) { withStream(m); p.Rows = append(p.Rows, 2) }, "a part cannot have streams"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := decodeManifest(sealed(t, func(m *Manifest) { c.change(m, asPart(m)) }))
			require.ErrorContains(t, err, c.want)
		})
	}
}

// TestDirectoryWithoutParts: what is no directory of parts is not taken for one.
func TestDirectoryWithoutParts(t *testing.T) {
	dir := t.TempDir()
	require.False(t, IsParts(dir))
	require.False(t, IsParts(filepath.Join(dir, "none")))
	_, err := CountParts(dir)
	require.ErrorContains(t, err, "no part-0.gnn, nor another part")
	require.NoError(t, os.Mkdir(PartPath(dir, 3), 0o777))
	require.True(t, IsParts(dir))
	_, err = CountParts(dir)
	require.ErrorContains(t, err, "not a sealed dataset")
	require.NoError(t, os.WriteFile(filepath.Join(dir, manifestName), nil, 0o666))
	require.False(t, IsParts(dir), "it is a dataset")
}
