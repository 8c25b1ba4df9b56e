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
		next := make([]NodeID, parts)
		for v := range NodeID(nodes) {
			owner, row := OwnerByRule(v, parts), RowByRule(v, parts)
			if row != next[owner] || NodeByRule(uint64(row), parts, owner) != uint64(v) {
				t.Fatalf("node %d has row %d of owner %d, whose next row is %d", v, row, owner, next[owner])
			}
			next[owner]++
		}
		for q, rows := range next {
			require.Equal(t, int64(rows), RowsByRule(nodes, parts, q))
			require.GreaterOrEqual(t, NodeByRule(uint64(rows), parts, q), uint64(nodes))
		}
	})
}

// TestRuleOfLargeIDs: the rule holds up to the last id.
func TestRuleOfLargeIDs(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v, parts := rapid.Uint32().Draw(t, "v"), rapid.IntRange(1, MaxParts).Draw(t, "parts")
		p := &Part{Parts: parts, Index: OwnerByRule(v, parts)}
		row, own := p.Row(v)
		require.True(t, own)
		require.Equal(t, v, p.Node(row))
		require.Less(t, int64(row), RowsByRule(1<<32, parts, p.Index))
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
		"index":          {func(_ *Manifest, p *Part) { p.Index = 1 }, "part 1 of 1"},
		"negative":       {func(_ *Manifest, p *Part) { p.Index = -1 }, "part -1 of 1"},
		"no parts":       {func(_ *Manifest, p *Part) { p.Parts = 0 }, "part 0 of 0"},
		"many parts":     {func(_ *Manifest, p *Part) { p.Parts = 1 << 40 }, "part 0 of 1099511627776"},
		"another rule":   {func(_ *Manifest, p *Part) { p.Owner = "whim" }, `owners by "whim"`},
		"seal":           {func(_ *Manifest, p *Part) { p.Of = "X" }, `the seal of the whole is "X"`},
		"relations":      {func(_ *Manifest, p *Part) { p.Edges = nil }, "counts for 0 relations and 1 tables; the manifest has 1 and 1"},
		"tables":         {func(_ *Manifest, p *Part) { p.Rows = nil }, "counts for 1 relations and 0 tables"},
		"fewer edges":    {func(_ *Manifest, p *Part) { p.Edges[0]-- }, "more than the whole's"},
		"rows of others": {func(_ *Manifest, p *Part) { p.Parts = 2 }, "belongs"},
		"names":          {func(m *Manifest, _ *Part) { withNames(m) }, "a part cannot have names"},
		"stream":         {func(m *Manifest, p *Part) { withStream(m); p.Rows = append(p.Rows, 2) }, "a part cannot have streams"},
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
