package build

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/ingest"
)

// once is an untyped ring of n nodes, with each edge in one direction.
func once(n int, edge func(i, next int64) [2]int64) *fake {
	f := &fake{
		schema: ingest.Schema{Name: "ring", Identity: "ring", Featureless: true, NodeTypes: []ingest.NodeType{{Name: "node", Count: int64(n)}},
			Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: int64(n)}}},
		edges: map[int][][2]int64{},
	}
	for i := range int64(n) {
		f.edges[0] = append(f.edges[0], edge(i, (i+1)%int64(n)))
	}
	return f
}

// TestUndirectedStoredOnceIsSaid: a note names a list that looks undirected and has each edge once,
// in any order and with any memory. A list that is directed by its ids or its pairs gets another
// note, and one with all reverses gets none.
func TestUndirectedStoredOnceIsSaid(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	upper := func(i, next int64) [2]int64 { return [2]int64{min(i, next), max(i, next)} }
	lower := func(i, next int64) [2]int64 { return [2]int64{max(i, next), min(i, next)} }
	mixed := func(i, next int64) [2]int64 {
		if rng.IntN(2) == 0 {
			return [2]int64{i, next}
		}
		return [2]int64{next, i}
	}
	note := func(f *fake, o Options) string {
		_, rep := build(t, f, o)
		for _, n := range rep.Notes {
			if strings.Contains(n, "in both directions") && strings.Contains(n, "connected pairs") {
				return n
			}
		}
		return ""
	}
	for _, o := range []Options{{}, {Order: OrderOriginal}, {Duplicates: DuplicatesMerge}, {test: tiny}, {EdgeIDs: true, test: tiny}} {
		require.Contains(t, note(once(40, upper), o), "0 % of the connected pairs of nodes have an edge in both directions, and the source of nearly every edge has the smaller id")
		require.Contains(t, note(once(40, lower), o), "the larger id, so this looks like an undirected graph with each edge once")
		require.Contains(t, note(once(40, mixed), o), "so edges are taken as directed")
	}
	require.Empty(t, note(once(40, upper), Options{Undirected: true}))
	require.Empty(t, note(once(40, upper), Options{Reverse: true}))

	both := once(40, upper)
	for i := range int64(10) {
		e := both.edges[0][i]
		// an edge that comes twice still makes one pair
		both.edges[0] = append(both.edges[0], [2]int64{e[1], e[0]}, [2]int64{e[1], e[0]})
	}
	both.schema.Relations[0].Edges = 60
	require.Contains(t, note(both, Options{}), "25 % of the connected pairs of nodes have an edge in both directions, so edges are taken as directed")
	d, rep := build(t, both, Options{})
	require.EqualValues(t, 40, rep.Relations[0].PairsCompared)
	require.EqualValues(t, 10, rep.Relations[0].PairsBothWays)
	require.EqualValues(t, 40, rep.Relations[0].EdgesAscending)
	require.EqualValues(t, 10, d.Manifest().Provenance.Counts["pairs_both_ways"])

	whole := once(40, upper)
	for _, e := range whole.edges[0] {
		whole.edges[0] = append(whole.edges[0], [2]int64{e[1], e[0]})
	}
	whole.schema.Relations[0].Edges = 80
	require.Empty(t, note(whole, Options{}))
}

// TestUndirectedIsTheDefaultOfListsStoredOnce: if nodes have labels, unless an option or the edges
// show that edges are directed.
func TestUndirectedIsTheDefaultOfListsStoredOnce(t *testing.T) {
	labelled := func(n int, edge func(i, next int64) [2]int64) *fake {
		f := once(n, edge)
		f.schema.Labels = []ingest.Label{{Name: "label", NodeType: "node", Classes: 2}}
		f.labels = map[int][]int32{0: make([]int32, n)}
		return f
	}
	upper := func(i, next int64) [2]int64 { return [2]int64{min(i, next), max(i, next)} }
	lower := func(i, next int64) [2]int64 { return [2]int64{max(i, next), min(i, next)} }
	twice := labelled(120, upper)
	twice.edges[0][5] = twice.edges[0][4]
	back := labelled(120, upper)
	back.edges[0][119] = [2]int64{1, 0}
	for name, c := range map[string]struct {
		f    *fake
		o    Options
		want bool
	}{
		"once":            {labelled(120, upper), Options{}, true},
		"once, in parts":  {labelled(120, upper), Options{test: tiny, Order: OrderOriginal}, true},
		"directed":        {labelled(120, upper), Options{Directed: true}, false},
		"reverse":         {labelled(120, upper), Options{Reverse: true}, false},
		"links":           {labelled(120, upper), Options{EdgeSplit: []string{"random:0.6/0.2/0.2"}}, false},
		"few":             {labelled(90, upper), Options{}, false},
		"from the larger": {labelled(120, lower), Options{}, false},
		"twice":           {twice, Options{}, false},
		"both ways":       {back, Options{}, false},
		"no labels":       {once(120, upper), Options{}, false},
	} {
		d, rep := build(t, c.f, c.o)
		require.Equal(t, c.want, d.Graph(0).Relation.Symmetric, name)
		require.Equal(t, fmt.Sprint(c.want), d.Manifest().Provenance.Options["undirected"], name)
		require.Equal(t, c.want, strings.Contains(strings.Join(rep.Notes, " "), "{undirected}=false stores the edges as given"), name)
	}
}

// TestPairSampleIsOfThePairs: the sample is the same in any order of the edges, and near the true
// share.
func TestPairSampleIsOfThePairs(t *testing.T) {
	var edges [][2]uint32
	for u := range uint32(60000) {
		edges = append(edges, [2]uint32{u, u + 7})
		if u%4 == 0 {
			edges = append(edges, [2]uint32{u + 7, u})
		}
	}
	var first [2]int64
	for seed := range uint64(3) {
		rand.New(rand.NewPCG(seed, 1)).Shuffle(len(edges), func(i, j int) { edges[i], edges[j] = edges[j], edges[i] })
		s := newPairSample()
		for _, e := range edges {
			s.add(e[0], e[1])
		}
		pairs, both := s.counts()
		require.LessOrEqual(t, pairs, int64(mostPairs))
		require.InDelta(t, 0.25, float64(both)/float64(pairs), 0.02)
		if seed == 0 {
			first = [2]int64{pairs, both}
		}
		require.Equal(t, first, [2]int64{pairs, both})
	}
}

// TestNodesWithoutEdgesAreSaid: of typed and untyped graphs, naming the option that helps, until
// that option is given.
func TestNodesWithoutEdgesAreSaid(t *testing.T) {
	star := func() *fake { // edges leave the labelled nodes, and none enters them
		return &fake{
			schema: ingest.Schema{Name: "star", Identity: "star", Featureless: true, NodeTypes: []ingest.NodeType{{Name: "node", Count: 6}},
				Relations: []ingest.Relation{{Src: "node", Name: "to", Dst: "node", Edges: 5}},
				Splits:    []ingest.Split{{Name: "given", NodeType: "node"}}},
			edges:  map[int][][2]int64{0: {{0, 5}, {1, 5}, {2, 5}, {3, 5}, {4, 5}}},
			splits: map[int][3][]int64{0: {{0, 1, 2}, {3}, {4, 5}}},
		}
	}
	typed := star()
	typed.schema.NodeTypes = append(typed.schema.NodeTypes, ingest.NodeType{Name: "other", Count: 6})
	typed.schema.Relations[0].Dst = "other"
	said := func(f *fake, o Options) (string, *Report) {
		_, rep := build(t, f, o)
		for _, n := range rep.Notes {
			if strings.Contains(n, "receive no edge") {
				return n, rep
			}
		}
		return "", rep
	}
	const none = "nodes of split given receive no edge, so a network sees nothing of their neighbours"
	for _, o := range []Options{{}, {Order: OrderOriginal}, {test: tiny}} {
		n, rep := said(star(), o)
		require.Equal(t, "5 of the 6 "+none+"; {undirected} has messages flow along edges in both directions", n)
		require.Equal(t, 5, rep.Splits[0].NoEdge)
		n, _ = said(typed, o)
		require.Equal(t, "6 of the 6 "+none+"; {reverse} has messages flow along edges in both directions", n)
		o.Undirected = true
		n, _ = said(star(), o)
		require.Empty(t, n)
		o.Undirected, o.Reverse = false, true
		n, _ = said(typed, o)
		require.Equal(t, "1 of the 6 "+none, n, "it has no edge at all")
	}
}
