package main

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

// dataKind is a small dataset of one kind, and the options that a run on it needs.
type dataKind struct {
	name string
	path string
	need map[string]string // flags of train that this kind cannot do without
	// words replaces the placeholders in values of options. TYPE, LINK and EDGE are a node type, a
	// relation of links and one with edge columns; COLUMN is a column; TABLE, PAIRS and EVENTS are
	// files.
	words map[string]string
}

// dataKinds builds a dataset of each kind: of dtypes, types, weights, features or none, labels,
// splits, links, edge columns and streams.
func dataKinds(t *testing.T) []*dataKind {
	graph := func() storetest.Spec { return storetest.Communities(90, 3, 5, 8, 1) }
	one := func(name string, s storetest.Spec, need map[string]string) *dataKind {
		return &dataKind{name: name, path: storetest.Build(t, s), need: need, words: map[string]string{
			"TYPE": "node", "TARGET": "node", "REL": "to", "LINK": "node,to,node", "COLUMN": "rating",
		}}
	}
	typed := func(name, typ, target, rel, link string, s storetest.TypedSpec, need map[string]string) *dataKind {
		return &dataKind{name: name, path: storetest.BuildTyped(t, s), need: need, words: map[string]string{
			"TYPE": typ, "TARGET": target, "REL": rel, "LINK": link, "COLUMN": "rating",
		}}
	}
	float32s := graph()
	float32s.Elem, float32s.Weight = store.F32, func(v, i int) float32 { return 0.5 + float32((v+i)%3) }
	several := graph()
	several.Bits = func(v int) []uint8 { return []uint8{uint8(v % 2), uint8(v / 2 % 2), uint8(v % 3 / 2)} }
	numbers := graph()
	numbers.Number = func(v int) float32 {
		if v%17 == 3 {
			return float32(math.NaN())
		}
		return float32(v % 7)
	}
	splits := graph()
	splits.OtherSplit = "other"
	rated := graph()
	rated.Columns = []storetest.Column{
		{Name: "rating", Elem: store.I32, Value: func(v, i int) float64 { return float64((v+i)%5 - 2) }},
		{Name: "time", Elem: store.F32, Value: func(v, i int) float64 { return float64(i) / 4 }},
	}
	withRows := graph()
	withRows.Columns = []storetest.Column{{Name: "id", Elem: store.U32, Value: func(v, i int) float64 { return float64(v*5 + i) }}}
	withRows.EdgeTable = &storetest.EdgeTable{Rows: 90 * 5, Dim: 3, Elem: store.F16, Row: func(i int) []float32 { return []float32{1, float32(i % 5), 0.25} }}
	bare := storetest.TypedSpec{
		Types:     []storetest.TypedNodes{{Name: "node", Nodes: 90}},
		Relations: []storetest.TypedRelation{{Src: "node", Name: "to", Dst: "node", Neighbors: graph().Neighbors}},
		Target:    "node", Classes: 3, Class: func(v int) int32 { return int32(v % 3) },
		Train: graph().Train, Valid: graph().Valid, Test: graph().Test,
	}
	library := storetest.Library(80, 3, 1)
	weighed := storetest.Library(80, 3, 2)
	for i := range weighed.Relations {
		weighed.Relations[i].Weight = func(v, i int) float32 { return 1 + float32((v+i)%2) }
	}
	weighed.Relations[1].Columns = []storetest.Column{{Name: "rating", Elem: store.I32, Value: func(v, i int) float64 { return float64((v + i) % 3) }}}
	held := graph().Linked()
	typedLinks := storetest.Library(80, 3, 3)
	typedLinks.Relations[0].EdgeSplit = &storetest.EdgeSplit{
		Valid: storetest.HeldEdges{Src: []store.NodeID{1, 4, 7}, Dst: []store.NodeID{2, 5, 8}},
		Test:  storetest.HeldEdges{Src: []store.NodeID{3, 6, 9}, Dst: []store.NodeID{4, 7, 10}},
	}
	link := map[string]string{"task": "link"}
	edge := map[string]string{"task": "edge", "edge-label": "rating", "model": "rsage"}
	kinds := []*dataKind{
		one("classes, f16", graph(), nil),
		one("f32, weighted edges", float32s, nil),
		one("several classes a node", several, nil),
		one("numbers of nodes", numbers, nil),
		one("two splits", splits, map[string]string{"split": "given"}),
		one("edge columns", rated, nil),
		one("edge rows", withRows, nil),
		typed("no features", "node", "node", "to", "node,to,node", bare, map[string]string{"model": "rsage", "input": "TYPE=embed:4"}),
		typed("several types", "paper", "paper", "cites", "author,writes,paper", library, map[string]string{"model": "rsage"}),
		typed("several types, weights, columns", "author", "paper", "cites", "author,writes,paper", weighed, map[string]string{"model": "rgcn"}),
		one("links", held, link),
		typed("links of two types", "author", "author,writes,paper", "writes", "author,writes,paper", typedLinks, map[string]string{"task": "link", "model": "rsage"}),
		typed("edges with classes", "user", "user,rates,user", "rates", "user,rates,user", storetest.Trust(40, true, true), edge),
		triplesKind(t),
	}
	return append(kinds, streamKindsOfData(t)...)
}

// triplesKind builds a knowledge graph, which has links of several relations.
func triplesKind(t *testing.T) *dataKind {
	dir := t.TempDir()
	rng := rand.New(rand.NewPCG(3, 4))
	for part, n := range map[string]int{"train": 260, "valid": 20, "test": 20} {
		var b strings.Builder
		for range n {
			u := rng.IntN(40)
			fmt.Fprintf(&b, "e%d\tr%d\te%d\n", u, u%3, (u+u%3+rng.IntN(4))%40)
		}
		require.NoError(t, os.WriteFile(filepath.Join(dir, part+".tsv"), []byte(b.String()), 0o666))
	}
	out := filepath.Join(dir, "kg.gnn")
	var stdout, stderr bytes.Buffer
	require.Zero(t, execute([]string{"ingest", "triples", dir, out}, &stdout, &stderr), stderr.String())
	return &dataKind{
		name: "triples", path: out,
		need:  map[string]string{"task": "link", "layers": "0", "decoder": "distmult"},
		words: map[string]string{"TYPE": "entity", "TARGET": "entity,r0,entity", "REL": "r0", "LINK": "entity,r0,entity", "COLUMN": "rating"},
	}
}

// streamKindsOfData builds streams: of one node type and of two, with features of nodes and events
// in either dtype or none, with labels, and with given negatives.
func streamKindsOfData(t *testing.T) []*dataKind {
	const users, items, events = 12, 8, 160
	rng := rand.New(rand.NewPCG(5, 6))
	stream := func(bipartite bool) storetest.StreamSpec {
		s := storetest.StreamSpec{Users: users, Split: store.StreamSplit{Name: "given", Train: 100, Valid: 30, Test: 30}}
		if bipartite {
			s.Items = items
		}
		for i := range events {
			u := rng.IntN(users)
			v := (u + 1 + rng.IntN(3)) % users
			if bipartite {
				v = (u + rng.IntN(3)) % items
			}
			s.Src, s.Dst, s.Times = append(s.Src, store.NodeID(u)), append(s.Dst, store.NodeID(v)), append(s.Times, float64(i/2*10))
		}
		return s
	}
	row := func(i int) []float32 { return []float32{float32(i % 3), 1, 0.5} }
	halves := stream(false)
	halves.Elem, halves.NodeDim, halves.NodeRow, halves.Dim, halves.Row = store.F16, 3, row, 3, row
	singles := stream(false)
	singles.Elem, singles.NodeDim, singles.NodeRow = store.F32, 3, row
	labelled := stream(true)
	labelled.Elem, labelled.Dim, labelled.Row, labelled.Classes = store.F16, 3, row, 2
	for i := range events {
		labelled.Labels = append(labelled.Labels, int32(i%2))
	}
	ranked := stream(true)
	ranked.Negatives = func(event int) []store.NodeID {
		return []store.NodeID{store.NodeID(event % items), store.NodeID((event + 3) % items)}
	}
	kind := func(name string, s storetest.StreamSpec) *dataKind {
		return &dataKind{name: name, path: storetest.BuildStream(t, s), need: map[string]string{"model": "tgn"}, words: map[string]string{
			"TYPE": "user", "TARGET": "user", "REL": "events", "LINK": "user,events,user", "COLUMN": "rating",
		}}
	}
	return []*dataKind{
		kind("stream, f16 rows of nodes and events", halves),
		kind("stream, f32 rows of nodes", singles),
		kind("stream of two types, labels", labelled),
		kind("stream, no rows, negatives given", ranked),
	}
}
