package build

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// typed is authors, papers and places: writes has columns and a table, cites is within a type, lies
// has no edges.
func typed() *fake {
	return &fake{
		schema: ingest.Schema{
			Name: "typed", Identity: "typed",
			NodeTypes: []ingest.NodeType{{Name: "paper", Count: 5}, {Name: "author", Count: 3}, {Name: "place", Count: 1}, {Name: "prize"}},
			Relations: []ingest.Relation{
				{Src: "author", Name: "writes", Dst: "paper", Edges: 5, Columns: []ingest.EdgeColumn{{Name: "share", Elem: store.I64}}},
				{Src: "paper", Name: "cites", Dst: "paper", Edges: 4},
				{Src: "author", Name: "lives", Dst: "place", Edges: 2},
				{Src: "paper", Name: "wins", Dst: "prize", Edges: 0},
			},
			Tables: []ingest.Table{{Name: "feat", NodeType: "paper", Dim: 2}, {Name: "data", Relation: "author__writes__paper", Dim: 1}},
		},
		edges: map[int][][2]int64{
			0: {{0, 0}, {1, 0}, {0, 3}, {2, 4}, {0, 0}},
			1: {{0, 1}, {2, 2}, {3, 1}, {4, 0}},
			2: {{2, 0}, {0, 0}},
		},
		values: map[int][][]uint64{0: {{10, 20, 30, 40, 50}}},
		rows:   map[int][]float32{0: {1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 1: {0, 1, 2, 3, 4}},
	}
}

func TestReverse(t *testing.T) {
	d, rep := build(t, typed(), Options{Reverse: true, Order: OrderOriginal})
	var keys, of []string
	for _, r := range d.Manifest().Relations {
		keys, of = append(keys, r.Key()), append(of, r.ReverseOf)
	}
	require.Equal(t, []string{"author__writes__paper", "paper__cites__paper", "author__lives__place", "paper__wins__prize",
		"paper__rev_writes__author", "paper__rev_cites__paper", "place__rev_lives__author", "prize__rev_wins__paper"}, keys)
	require.Equal(t, append(make([]string, 4), keys[:4]...), of)
	g := d.Graph(4)
	require.Equal(t, [][]store.NodeID{{0, 0, 3}, {0}, {4}}, [][]store.NodeID{g.Neighbors(0), g.Neighbors(1), g.Neighbors(2)})
	require.Equal(t, []int64{10, 50, 30}, store.EdgeValues[int64](g.Column("share"), 0))
	require.Equal(t, []uint64{0, 4, 2}, store.EdgeValues[uint64](g.Column("id"), 0))
	require.Equal(t, RelationReport{Key: keys[4], ReverseOf: keys[0], ReverseAdded: 5, Edges: 5, Columns: []string{"share"}, Left: []string{}}, rep.Relations[4])
	require.EqualValues(t, 11, d.Manifest().Provenance.Counts["edges_read"])

	// What --undirected makes symmetric has no other reverse.
	d, rep = build(t, typed(), Options{Reverse: true, Undirected: true})
	require.Len(t, d.Manifest().Relations, 7)
	require.True(t, d.Graph(1).Relation.Symmetric)
	require.Equal(t, []string{"node type author has no features", "node type place has no features", "node type prize has no features"}, rep.Notes[:3])
}

// TestReverseIsThere: what the source has already is found, whatever its order and the memory there
// is.
func TestReverseIsThere(t *testing.T) {
	f := typed()
	f.schema.Relations = append(f.schema.Relations, ingest.Relation{Src: "paper", Name: "by", Dst: "author", Edges: 5}, ingest.Relation{Src: "paper", Name: "likes", Dst: "paper", Edges: 5})
	f.edges[4] = [][2]int64{{4, 2}, {0, 0}, {3, 0}, {0, 1}, {0, 0}}
	f.edges[5] = [][2]int64{{1, 2}, {0, 0}, {2, 1}, {1, 2}, {2, 1}}
	for _, o := range []Options{{}, {Order: OrderOriginal}, {Order: OrderAccess, test: tiny}, {Order: OrderOriginal, Duplicates: DuplicatesFirst, test: tiny}} {
		o.Reverse = true
		d, rep := build(t, f, o)
		require.Contains(t, rep.Notes, "relation author__writes__paper has its reverse in the source, paper__by__author, so {reverse} adds none")
		require.Contains(t, rep.Notes, "relation paper__by__author has its reverse in the source, author__writes__paper, so {reverse} adds none")
		require.Contains(t, rep.Notes, "relation paper__likes__paper has the reverse of each of its edges already, so {reverse} adds none")
		require.Len(t, d.Manifest().Relations, 6+3)
		require.Equal(t, "paper__by__author", d.Graph(0).Relation.ReverseOf) // it has a table
		require.Empty(t, d.Graph(4).Relation.ReverseOf)
		require.True(t, d.Graph(5).Relation.Symmetric)
	}
	// The ids of a reverse without a table are rows of the other's: of the two, the one with the
	// table names the other.
	f.schema.Relations[0], f.schema.Relations[4] = f.schema.Relations[4], f.schema.Relations[0]
	f.edges[0], f.edges[4] = f.edges[4], f.edges[0]
	f.values = map[int][][]uint64{4: f.values[0]}
	d, _ := build(t, f, Options{Reverse: true, EdgeIDs: true})
	require.Equal(t, "paper__by__author", d.Graph(4).Relation.ReverseOf)

	f.schema.Relations[0].Name = "rev_writes"
	d, _ = build(t, f, Options{Reverse: true})
	require.Equal(t, "paper__rev_writes__author", d.Graph(4).Relation.ReverseOf)
	f.edges[0][0][1] = 1
	_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{Reverse: true})
	require.EqualError(t, err, "{reverse}: relation paper__rev_writes__author has the name that the reverse of author__writes__paper would have, and other edges; leave {reverse} out, or rename it")
}

func TestReverseRefuses(t *testing.T) {
	f := typed()
	f.schema.Relations[2].Name = strings.Repeat("x", 97)
	_, err := Build(context.Background(), f, "x.gnn", Options{Reverse: true, FS: vfs.NewMem()})
	require.EqualError(t, err, fmt.Sprintf("{reverse}: relation author__%s__place: its reverse would be called rev_%s, and names have up to 100 letters; give it a shorter name",
		f.schema.Relations[2].Name, f.schema.Relations[2].Name))
	_, err = Build(context.Background(), small(), "x.gnn", Options{Reverse: true, Undirected: true, FS: vfs.NewMem()})
	require.ErrorContains(t, err, "{reverse}: {undirected} stores the reverse of every edge already")
	f = small()
	f.schema.Relations = nil
	_, err = Build(context.Background(), f, "x.gnn", Options{Reverse: true, FS: vfs.NewMem()})
	require.ErrorContains(t, err, "{reverse}: the source has no relation")
}

// TestPlanOfReverses: a plan has the passes that a build has.
func TestPlanOfReverses(t *testing.T) {
	for _, o := range []Options{{Reverse: true}, {Reverse: true, Undirected: true, Order: OrderOriginal}, {Reverse: true, Order: OrderOriginal, Duplicates: DuplicatesFirst}} {
		o.FS = vfs.NewMem()
		plan, err := PlanBuild(context.Background(), typed(), "x.gnn", o)
		require.NoError(t, err)
		rep, err := Build(context.Background(), typed(), "x.gnn", o)
		require.NoError(t, err)
		var planned []string
		for _, p := range plan.Passes {
			planned = append(planned, p.Name)
		}
		for _, name := range passNames(rep) {
			if strings.Contains(name, "reverse") || strings.Contains(name, "rev_") {
				require.Contains(t, planned, name)
			}
		}
		require.Empty(t, plan.Unknown)
	}
}

// TestReversesAreTheDefaultOfKindsThatWantThem: with a note, unless an option decides otherwise or
// links are held out.
func TestReversesAreTheDefaultOfKindsThatWantThem(t *testing.T) {
	wanting := once(40, func(i, next int64) [2]int64 { return [2]int64{i, next} })
	wanting.schema.BackWanted = true
	parted := *wanting
	parted.schema.Relations = []ingest.Relation{wanting.schema.Relations[0]}
	parted.schema.Relations[0].Parted, parted.parts = true, map[int][]ingest.Part{0: make([]ingest.Part, 40)}
	parted.parts[0][0] = ingest.Test
	for name, c := range map[string]struct {
		f    *fake
		o    Options
		want int
	}{
		"unasked":    {wanting, Options{}, 2},
		"asked":      {wanting, Options{Reverse: true}, 2},
		"one way":    {wanting, Options{OneWay: true}, 1},
		"undirected": {wanting, Options{Undirected: true}, 1},
		"split":      {wanting, Options{EdgeSplit: []string{"random:0.6/0.2/0.2"}}, 1},
		"held out":   {&parted, Options{}, 1},
	} {
		d, rep := build(t, c.f, c.o)
		require.Len(t, d.Manifest().Relations, c.want, name)
		require.Equal(t, fmt.Sprint(c.want == 2), d.Manifest().Provenance.Options["reverse"], name)
		require.Equal(t, name == "unasked", strings.Contains(strings.Join(rep.Notes, "\n"), "{reverse}=false"), name)
	}
}
