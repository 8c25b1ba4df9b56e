package build

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// TestNothing: types without nodes and relations without edges are datasets, too, under every
// order.
func TestNothing(t *testing.T) {
	for order, features := range map[Order]string{OrderDegree: "random:3", OrderAccess: "degree", OrderOriginal: "fastrp:4"} {
		f := &fake{schema: ingest.Schema{Name: "nothing", NodeTypes: []ingest.NodeType{{Name: "a"}, {Name: "b", IDs: ingest.IntIDs}, {Name: "c", IDs: ingest.TextIDs},
			{Name: "d", IDs: ingest.TextIDs, Gathered: true}, {Name: "e", Count: 3}}}}
		for _, src := range f.schema.NodeTypes {
			for _, dst := range f.schema.NodeTypes {
				f.schema.Relations = append(f.schema.Relations, ingest.Relation{Src: src.Name, Name: "to", Dst: dst.Name, Edges: -1})
			}
		}
		d, rep := build(t, f, Options{Order: order, Features: features, Undirected: true, EdgeIDs: true})
		require.EqualValues(t, 3, d.Manifest().NodeTypes[4].Count)
		require.Len(t, rep.Relations, 25)
	}
}

// flood repeats an edge, or names ever other sources.
type flood struct {
	fake
	edges  int
	others bool
}

func (f *flood) Edges(ctx context.Context, _ int, emit func(ingest.EdgeChunk) error) error {
	src, dst := make([]int64, 1<<16), make([]int64, 1<<16)
	for at := 0; at < f.edges; at += len(src) {
		n := min(len(src), f.edges-at)
		if f.others {
			for k := range n {
				src[k] = int64((at + k) * 7919 % f.edges)
			}
		}
		if err := emit(ingest.EdgeChunk{Place: ingest.Place{File: "edge.csv", First: int64(at)}, Src: src[:n], Dst: dst[:n]}); err != nil {
			return err
		}
	}
	return nil
}

// TestOneNodeHasAllEdges: all edges have one destination, or all are the same edge. A sorter has
// room for a fraction of them: in the first case by the least memory, in the others by hooks.
func TestOneNodeHasAllEdges(t *testing.T) {
	for i, c := range []struct {
		others bool
		o      Options
		times  int // that an edge is stored
	}{
		{true, Options{Order: OrderOriginal}, 1},
		{true, Options{Undirected: true}, 2}, // but its loop has no reverse
		{false, Options{Order: OrderOriginal}, 1},
		{false, Options{Order: OrderOriginal, EdgeIDs: true}, 1},
		{false, Options{Order: OrderOriginal, EdgeIDs: true, Duplicates: DuplicatesMerge}, 0},
	} {
		edges := 1_500_000 // more than there is room for
		if i > 0 || testing.Short() {
			edges, c.o.test = 150_000, hooks{records: 40_000, lists: 40_000}
		}
		c.o.test.block = extsort.MaxBlock
		want := max(1, c.times*edges-max(0, c.times-1))
		f := &flood{edges: edges, others: c.others, fake: fake{schema: ingest.Schema{Name: "flood",
			NodeTypes: []ingest.NodeType{{Name: "node", Count: 2}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: int64(edges)}}}}}
		if c.others {
			f.schema.NodeTypes[0].Count = int64(edges)
		}
		c.o.Features, c.o.FS = "degree", storetest.NoSync
		plan, err := PlanBuild(context.Background(), f, t.TempDir()+"/x.gnn", c.o)
		require.NoError(t, err)
		c.o.Memory = plan.LeastMemory
		d, rep := build(t, f, c.o)
		require.EqualValues(t, want, rep.Relations[0].Edges)
		g := d.Graph(0)
		if !c.others {
			require.EqualValues(t, want, g.Degree(0))
			if c.o.EdgeIDs {
				require.True(t, slices.IsSorted(store.EdgeValues[uint64](g.Column("id"), 0)))
			}
		}
	}
}

// TestIDsAtTheLimits: integers at both ends of int64, texts of one byte and of the most, of NUL and
// of no UTF-8.
func TestIDsAtTheLimits(t *testing.T) {
	names := map[int64]string{
		math.MinInt64: "\x00", math.MaxInt64: strings.Repeat("\xff", ingest.MaxIDBytes), -1: "\x00\x00", 0: "a\xc3", 1: strings.Repeat("\xff", ingest.MaxIDBytes-1) + "\xfe",
	}
	ids := []int64{0, math.MaxInt64, 1, math.MinInt64, -1}
	for _, kind := range []ingest.IDs{ingest.IntIDs, ingest.TextIDs} {
		for _, gathered := range []bool{false, true} {
			f := &fake{
				schema: ingest.Schema{Name: "limits", NodeTypes: []ingest.NodeType{{Name: "a", IDs: kind, Gathered: gathered}},
					Relations: []ingest.Relation{{Src: "a", Name: "to", Dst: "a", Edges: -1}}},
				ids: map[int][]int64{0: ids}, edges: map[int][][2]int64{0: {{0, math.MaxInt64}, {1, math.MinInt64}, {-1, 0}}},
				text: func(id int64) string { return names[id] },
			}
			d, _ := build(t, f, Options{Features: "degree", test: tiny})
			for _, id := range ids {
				if kind == ingest.IntIDs {
					v, ok := d.IDs(0).Stored(id)
					require.True(t, ok)
					require.Equal(t, id, d.IDs(0).Original(v))
					continue
				}
				v, ok, err := d.IDs(0).Find([]byte(names[id]))
				require.NoError(t, err)
				require.True(t, ok)
				name, err := d.IDs(0).Name(v)
				require.NoError(t, err)
				require.True(t, bytes.Equal([]byte(names[id]), []byte(name)))
			}
			for _, long := range []string{"", strings.Repeat("x", ingest.MaxIDBytes+1)} {
				f.text = func(id int64) string {
					if id == -1 {
						return long
					}
					return names[id]
				}
				if kind == ingest.IntIDs {
					continue
				}
				_, err := Build(context.Background(), f, "x.gnn", Options{Features: "degree", FS: vfs.NewMem()})
				if gathered {
					require.ErrorContains(t, err, "edge.csv: edge 3 (counting from 1): source has ")
				} else {
					require.ErrorContains(t, err, "ids.csv: row 4 (counting from 0): an id of ")
				}
				require.ErrorContains(t, err, "ids have 1 to 4096")
			}
		}
	}
}
