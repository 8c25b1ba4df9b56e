package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestEdgeSplitOptions(t *testing.T) {
	for s, want := range map[string]string{
		"random:0.8/0.1":                       "want three shares, of training, validation and test edges, as in random:0.85/0.05/0.1",
		"random:0.8/0.1/0.2":                   "the shares add up to 1.1; want three that add up to 1",
		"random:0/0.5/0.5":                     "no edge would be left to train on",
		"random:1/0/0":                         "no edge would be held out",
		"random:0.8/-0.1/0.3":                  `share "-0.1" is no number from 0 to 1`,
		"random:a/b/c":                         `share "a" is no number from 0 to 1`,
		"=random:0.8/0.1/0.1":                  "no relation before the =",
		"hash:0.8/0.1/0.1":                     "there is no such split; choose random:a/b/c",
		"to=random:0.5/0.5/NaN":                `share "NaN"`,
		"random:0.9/0/0.1":                     "",
		"random:0.333/0.333/0.334":             "",
		"user__buys__item=random:1e-1/0.1/0.8": "",
	} {
		err := (&Options{EdgeSplit: []string{s}}).Validate()
		if want == "" {
			require.NoError(t, err, s)
			continue
		}
		require.ErrorContains(t, err, want, s)
		require.ErrorContains(t, err, "{edge_split}", s)
	}
	require.ErrorContains(t, (&Options{EdgeSplit: []string{"random:0.8/0.1/0.1", "random:0.9/0/0.1"}}).Validate(), "one for the same relations before it")
}

// heldEdges are the held-out edges of a part, by original ids.
func heldEdges(t require.TestingT, d *store.Dataset, relation int, p store.HeldPart) (edges [][2]int64) {
	h, ok := d.HeldEdges(relation, p)
	require.True(t, ok)
	r := d.Manifest().Relations[relation]
	ids := func(typ string) store.IDs {
		return d.IDs(slices.IndexFunc(d.Manifest().NodeTypes, func(n store.NodeType) bool { return n.Name == typ }))
	}
	from, to := ids(r.Src), ids(r.Dst)
	src, dst := h.Ends()
	for i := range src {
		if i > 0 {
			require.True(t, dst[i-1] < dst[i] || dst[i-1] == dst[i] && src[i-1] <= src[i], "ascending")
		}
		edges = append(edges, [2]int64{from.Original(src[i]), to.Original(dst[i])})
	}
	return edges
}

// leftEdges are the edges of the topology, by original ids.
func leftEdges(d *store.Dataset, relation int) map[[2]int64]int {
	g, edges := d.Graph(relation), map[[2]int64]int{}
	ids := func(typ string) store.IDs {
		return d.IDs(slices.IndexFunc(d.Manifest().NodeTypes, func(n store.NodeType) bool { return n.Name == typ }))
	}
	from, to := ids(g.Relation.Src), ids(g.Relation.Dst)
	for v := range g.Nodes() {
		for _, u := range g.Neighbors(store.NodeID(v)) {
			edges[[2]int64{from.Original(u), to.Original(store.NodeID(v))}]++
		}
	}
	return edges
}

// relationOf finds a relation of a dataset by its key, -1 when there is none.
func relationOf(d *store.Dataset, key string) int {
	return slices.IndexFunc(d.Manifest().Relations, func(r store.Relation) bool { return r.Key() == key })
}

// TestEdgeSplitParts: whatever the graph and the options, topology and held-out edges together
// equal the topology without a split, pairs of nodes stay together, the parts depend on the seed
// alone, and only edges that are left have reverses.
func TestEdgeSplitParts(t *testing.T) {
	fewer(t, 7)
	dir := t.TempDir()
	n, held := 0, 0
	storetest.CheckUntil(t, func(t *rapid.T) {
		f := drawGraph(t)
		o := Options{
			FS: storetest.NoSync, Reverse: rapid.Bool().Draw(t, "reverse"), Undirected: rapid.Bool().Draw(t, "undirected"),
			Order:      rapid.SampledFrom([]Order{OrderDegree, OrderAccess, OrderOriginal}).Draw(t, "order"),
			Duplicates: rapid.SampledFrom([]Duplicates{DuplicatesKeep, DuplicatesMerge}).Draw(t, "duplicates"),
			EdgeIDs:    rapid.Bool().Draw(t, "ids"), Seed: rapid.Uint64Range(1, 3).Draw(t, "seed"),
			test: hooks{records: 4, lists: 3, buckets: rapid.IntRange(1, 3).Draw(t, "buckets")},
		}
		sealed := func(o Options) (*Report, *store.Dataset, error) {
			n++
			path := filepath.Join(dir, fmt.Sprint(n))
			rep, err := Build(context.Background(), f, path, o)
			if err != nil {
				return nil, nil, err
			}
			d, err := store.Open(path)
			require.NoError(t, err)
			problems, err := d.Verify(context.Background(), nil)
			require.NoError(t, err)
			require.Empty(t, problems)
			return rep, d, nil
		}
		_, whole, err := sealed(o)
		require.NoError(t, err)
		defer whole.Close()
		o.EdgeSplit = []string{"random:0.5/0.25/0.25"}
		rep, d, err := sealed(o)
		if err != nil { // of so few edges all may be held out
			require.ErrorContains(t, err, "{edge_split}: no edge is left")
			return
		}
		defer d.Close()
		o.Order, o.test = OrderOriginal, hooks{}
		_, ordered, err := sealed(o)
		require.NoError(t, err)
		defer ordered.Close()
		require.Len(t, rep.EdgeSplits, len(f.schema.Relations))
		for i, r := range f.schema.Relations {
			g, left, all := d.Graph(i).Relation, leftEdges(d, i), leftEdges(whole, relationOf(whole, r.Key()))
			both := true // directions are there
			for e, n := range all {
				both = both && all[[2]int64{e[1], e[0]}] == n
			}
			if g.Symmetric != whole.Graph(i).Relation.Symmetric {
				require.True(t, g.Symmetric && both && r.Src == r.Dst)
			}
			part := map[[2]int64]int{}
			joined := maps.Clone(left)
			for p := range store.HeldTest + 1 {
				edges := heldEdges(t, d, i, p)
				require.ElementsMatch(t, heldEdges(t, ordered, i, p), edges)
				held += len(edges)
				for _, e := range edges {
					back := [2]int64{e[1], e[0]}
					require.Zero(t, left[e], "a held-out edge is not in the topology")
					joined[e]++
					both := [][2]int64{e}
					if r.Src == r.Dst {
						require.NotEqual(t, e, back, "self loops are not held out")
						require.Zero(t, left[back], "nor is it the other way round")
						both = append(both, back)
					}
					if g.Symmetric {
						joined[back]++
					}
					for _, e := range both {
						require.True(t, part[e] == 0 || part[e] == int(p)+1, "a pair is in one part")
						part[e] = int(p) + 1
					}
				}
			}
			require.Equal(t, all, joined)
			c := rep.Relations[i]
			require.Equal(t, c.EdgesRead-c.HeldOut-c.DuplicatesMerged+c.ReverseAdded, c.Edges)
			require.Equal(t, EdgeSplitReport{
				"random:0.5/0.25/0.25", r.Key(), g.Edges, g.EdgeSplit.Valid.Edges, g.EdgeSplit.Test.Edges,
			}, rep.EdgeSplits[i])
			if k := relationOf(d, r.Dst+"__rev_"+r.Name+"__"+r.Src); k >= 0 {
				require.Nil(t, d.Manifest().Relations[k].EdgeSplit)
				for e, n := range leftEdges(d, k) {
					require.Equal(t, left[[2]int64{e[1], e[0]}], n)
				}
			}
		}
	}, map[string]*int{"a held-out edge": &held})
}

// TestEdgeSplitReversed: where the source has a relation in both directions, both lack what one of
// them holds out.
func TestEdgeSplitReversed(t *testing.T) {
	f := &fake{
		schema: ingest.Schema{
			NodeTypes: []ingest.NodeType{{Name: "user", Count: 20}, {Name: "item", Count: 10}},
			Relations: []ingest.Relation{{Src: "item", Name: "bought_by", Dst: "user", Edges: -1}, {Src: "user", Name: "buys", Dst: "item", Edges: -1}},
		},
		edges: map[int][][2]int64{},
	}
	for u := range int64(20) {
		for k := range int64(4) {
			item := (u*7 + k*k) % 10
			f.edges[0] = append(f.edges[0], [2]int64{item, u})
			f.edges[1] = append([][2]int64{{u, item}}, f.edges[1]...)
		}
	}
	mirrored := func(d *store.Dataset) {
		left, back := leftEdges(d, 0), leftEdges(d, 1)
		require.Less(t, len(left), 80)
		require.Equal(t, len(left), len(back))
		for e := range left {
			require.Equal(t, left[e], back[[2]int64{e[1], e[0]}])
		}
	}
	d, _ := build(t, f, Options{EdgeSplit: []string{"random:0.6/0.2/0.2"}, Features: "none"})
	mirrored(d)
	require.NotNil(t, d.Manifest().Relations[1].EdgeSplit)
	d, rep := build(t, f, Options{EdgeSplit: []string{"random:0.6/0.2/0.2"}, Features: "none", Reverse: true})
	mirrored(d)
	require.Equal(t, "item__bought_by__user", d.Manifest().Relations[1].ReverseOf)
	require.Nil(t, d.Manifest().Relations[1].EdgeSplit, "it is that of the other")
	require.Len(t, rep.EdgeSplits, 1)
	require.Len(t, d.Manifest().Relations, 2)

	d, rep = build(t, f, Options{EdgeSplit: []string{"buys=random:0.6/0.2/0.2"}, Features: "none"})
	require.Nil(t, d.Manifest().Relations[0].EdgeSplit)
	require.Contains(t, strings.Join(rep.Notes, "\n"), "item__bought_by__user, between the same types, has none")
	refuse := func(want string, splits ...string) {
		_, err := Build(context.Background(), f, filepath.Join(t.TempDir(), "x.gnn"), Options{EdgeSplit: splits, Features: "none"})
		require.ErrorContains(t, err, want)
	}
	refuse("the source has no such relation; it has item__bought_by__user, user__buys__item", "sells=random:0.6/0.2/0.2")
	refuse("relation user__buys__item has two", "buys=random:0.6/0.2/0.2", "user__buys__item=random:0.8/0.1/0.1")
	refuse("no edge is left to train on", "random:0.0001/0.5/0.4999")
}

// TestEdgeSplitOfBothDirections: a relation that the source has in both directions, without being
// told so, has its links held out once; one that lacks a single reverse is a directed one.
func TestEdgeSplitOfBothDirections(t *testing.T) {
	f := &fake{
		schema: ingest.Schema{NodeTypes: []ingest.NodeType{{Name: "node", Count: 40}}, Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: -1}}},
		edges:  map[int][][2]int64{},
	}
	for u := range int64(40) {
		for k := int64(1); k <= 3; k++ {
			v := (u + k*k) % 40
			f.edges[0] = append(f.edges[0], [2]int64{u, v}, [2]int64{v, u})
		}
	}
	o := Options{EdgeSplit: []string{"random:0.6/0.2/0.2"}, Features: "none"}
	for _, order := range []Order{OrderDegree, OrderOriginal} {
		o.Order = order
		d, rep := build(t, f, o)
		require.True(t, d.Graph(0).Relation.Symmetric)
		require.Contains(t, rep.Notes, "relation node__to__node has the reverse of each of its edges, so {edge_split} random:0.6/0.2/0.2 holds a link out once, "+
			"in one of its directions")
		links, left := map[[2]int64]int{}, leftEdges(d, 0)
		for p := range store.HeldTest + 1 {
			for _, e := range heldEdges(t, d, 0, p) {
				links[[2]int64{min(e[0], e[1]), max(e[0], e[1])}]++
				require.Zero(t, left[e]+left[[2]int64{e[1], e[0]}])
			}
		}
		require.Equal(t, 120, len(links)+len(left)/2)
		for e, n := range links {
			require.Equal(t, 1, n, "%v", e)
		}
	}
	f.edges[0] = f.edges[0][:len(f.edges[0])-1]
	d, _ := build(t, f, o)
	require.False(t, d.Graph(0).Relation.Symmetric)
}

// TestEdgeSplitColumns: what rides on an edge goes with it, and a build that was killed goes on.
func TestEdgeSplitColumns(t *testing.T) {
	f := &fake{
		schema: ingest.Schema{
			NodeTypes: []ingest.NodeType{{Name: "node", Count: 50}}, Identity: "same",
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 300, Columns: []ingest.EdgeColumn{{Name: "weight", Elem: store.F32}, {Name: "kind", Elem: store.U8}}}},
		},
		edges: map[int][][2]int64{}, values: map[int][][]uint64{0: {nil, nil}},
	}
	for i := range int64(300) {
		u, v := i*i%50, (i*7+3)%50
		f.edges[0] = append(f.edges[0], [2]int64{u, v})
		f.values[0][0] = append(f.values[0][0], uint64(math.Float32bits(float32(u*100+v))))
		f.values[0][1] = append(f.values[0][1], uint64((u+v)%7))
	}
	for _, o := range []Options{{}, {Undirected: true, Duplicates: DuplicatesFirst}, {Order: OrderOriginal}} {
		o.EdgeIDs, o.Features, o.EdgeSplit, o.test.journal = true, "degree", []string{"random:0.7/0.1/0.2"}, true
		d, rep := build(t, f, o)
		for p := range store.HeldTest + 1 {
			h, _ := d.HeldEdges(0, p)
			weight, kind, id := h.Column("weight"), h.Column("kind"), h.Column("id")
			edges := heldEdges(t, d, 0, p)
			require.NotEmpty(t, edges)
			for i, e := range edges {
				read := f.edges[0][binary.LittleEndian.Uint64(id[8*i:])]
				if o.Undirected && read != e {
					read[0], read[1] = read[1], read[0]
				}
				require.Equal(t, e, read)
				w := math.Float32frombits(binary.LittleEndian.Uint32(weight[4*i:]))
				require.True(t, w == float32(e[0]*100+e[1]) || o.Undirected && w == float32(e[1]*100+e[0]))
				require.EqualValues(t, (e[0]+e[1])%7, kind[i])
			}
		}
		for _, last := range []string{"read node__to__node", "write node__to__node", "write edge split node__to__node"} {
			path := filepath.Join(t.TempDir(), "x.gnn")
			ctx, cancel := context.WithCancel(context.Background())
			o.test.done = func(pass string) {
				if pass == last {
					cancel()
				}
			}
			_, err := Build(ctx, f, path, o)
			require.ErrorIs(t, err, context.Canceled)
			o.test.done = nil
			again, err := Build(context.Background(), f, path, o)
			require.NoError(t, err)
			require.Positive(t, again.Resumed)
			require.Equal(t, rep.Seal, again.Seal)
			require.Equal(t, rep.EdgeSplits, again.EdgeSplits)
		}
	}
}

// TestEdgeSplitGiven: what the source holds out is held out, whatever nodes are called by; and
// another split takes its place.
func TestEdgeSplitGiven(t *testing.T) {
	fewer(t, 7)
	dir := t.TempDir()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		kind := rapid.SampledFrom([]ingest.IDs{ingest.RowIDs, ingest.IntIDs, ingest.TextIDs}).Draw(t, "kind")
		f := &fake{
			schema: ingest.Schema{
				NodeTypes: []ingest.NodeType{{Name: "entity", Count: 9, IDs: kind, Gathered: kind != ingest.RowIDs}}, Identity: "same",
				Relations: []ingest.Relation{
					{Src: "entity", Name: "likes", Dst: "entity", Edges: -1, Parted: true, Columns: []ingest.EdgeColumn{{Name: "kind", Elem: store.U8}}},
					{Src: "entity", Name: "knows", Dst: "entity", Edges: -1, Parted: true},
				},
			},
			edges: map[int][][2]int64{}, values: map[int][][]uint64{0: {nil}}, parts: map[int][]ingest.Part{},
			text: func(id int64) string { return fmt.Sprintf("Q%d", id) },
		}
		if kind != ingest.RowIDs {
			f.schema.NodeTypes[0].Count = -1
		}
		id := rapid.Int64Range(0, 8)
		for i := range 2 {
			for range rapid.IntRange(0, 20).Draw(t, "edges") {
				f.edges[i] = append(f.edges[i], [2]int64{id.Draw(t, "u"), id.Draw(t, "v")})
				f.parts[i] = append(f.parts[i], ingest.Part(rapid.IntRange(0, 2).Draw(t, "part")))
				if i == 0 {
					f.values[0][0] = append(f.values[0][0], uint64(f.parts[i][len(f.parts[i])-1]))
				}
			}
		}
		o := Options{FS: storetest.NoSync, Features: "none", Split: "random:0.5/0.2/0.3", Reverse: rapid.Bool().Draw(t, "reverse"),
			Order: rapid.SampledFrom([]Order{OrderDegree, OrderOriginal}).Draw(t, "order"), EdgeIDs: rapid.Bool().Draw(t, "ids")}
		sealed := func() (*store.Dataset, *Report, error) {
			n++
			path := filepath.Join(dir, fmt.Sprint(n))
			rep, err := Build(context.Background(), f, path, o)
			if err != nil {
				return nil, nil, err
			}
			d, err := store.Open(path)
			require.NoError(t, err)
			problems, err := d.Verify(context.Background(), nil)
			require.NoError(t, err)
			require.Empty(t, problems)
			return d, rep, nil
		}
		// rowOf returns the number by which the dataset knows a node: texts are known by their
		// rows, which sort as they do.
		rowOf := func(d *store.Dataset, id int64) int64 {
			if kind != ingest.TextIDs {
				return id
			}
			v, ok, err := d.IDs(0).Find([]byte(f.text(id)))
			require.NoError(t, err)
			require.True(t, ok)
			return d.IDs(0).Original(v)
		}
		d, rep, err := sealed()
		if err != nil {
			require.ErrorContains(t, err, "no edge is left to train on")
			return
		}
		defer d.Close()
		for i := range 2 {
			want, again := [3][][2]int64{}, int64(0)
			left := map[[2]int64]int{}
			for k, e := range f.edges[i] {
				p := f.parts[i][k]
				e = [2]int64{rowOf(d, e[0]), rowOf(d, e[1])}
				want[p] = append(want[p], e)
				if p == ingest.Train {
					left[e]++
				}
			}
			require.Equal(t, left, leftEdges(d, i))
			g := d.Graph(i).Relation
			for p := ingest.Valid; p <= ingest.Test; p++ {
				for _, e := range want[p] {
					if left[e] > 0 {
						again++
					}
				}
				if g.ReverseOf != "" || g.Symmetric {
					continue // chance made it so
				}
				require.ElementsMatch(t, want[p], heldEdges(t, d, i, store.HeldPart(p-ingest.Valid)))
				h, _ := d.HeldEdges(i, store.HeldPart(p-ingest.Valid))
				for _, x := range h.Column("kind") {
					require.EqualValues(t, p, x)
				}
			}
			if again > 0 && g.ReverseOf == "" && !g.Symmetric {
				require.Contains(t, strings.Join(rep.Notes, "\n"), fmt.Sprintf("%d held-out edges of relation %s are among its training edges", again, g.Key()))
			}
		}
		o.EdgeSplit = []string{"likes=random:0.5/0.5/0", "knows=given"}
		d, rep, err = sealed()
		if err != nil {
			require.ErrorContains(t, err, "no edge is left to train on")
			return
		}
		defer d.Close()
		require.Contains(t, strings.Join(rep.Dropped, "\n"), "the source's split of the edges of entity__likes__entity: {edge_split} random:0.5/0.5/0 takes its place")
		require.EqualValues(t, len(f.edges[0]), rep.Relations[0].EdgesRead)
	})
	for _, split := range []string{"given", "to=given"} {
		_, err := Build(context.Background(), timed([]int64{1}), filepath.Join(dir, "x"), Options{EdgeSplit: []string{split}})
		require.ErrorContains(t, err, "the source has no split of its edges")
	}
	require.ErrorContains(t, (&Options{EdgeSplit: []string{"given:1/2/3"}}).Validate(), "given has no shares")
}
