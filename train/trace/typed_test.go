package trace

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/sample"
)

func library(t *testing.T, change func(s *storetest.TypedSpec)) *store.Dataset {
	s := storetest.Library(120, 3, 5)
	if change != nil {
		change(&s)
	}
	ds, err := store.Open(storetest.BuildTyped(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// Numbers of types of a library, and of relations.
const (
	paper, venue             = 1, 3
	cites, writtenBy, prints = 1, 2, 3
)

// librarySampler draws from all relations of ds.
func librarySampler(ds *store.Dataset, c sample.Config) *sample.Sampler {
	number := map[string]int{}
	var schema sample.Schema
	for i, t := range ds.Manifest().NodeTypes {
		number[t.Name] = i
		schema.Types = append(schema.Types, int(t.Count))
	}
	var lists []sample.Topology
	for i, r := range ds.Manifest().Relations {
		schema.Relations = append(schema.Relations, sample.Relation{Src: number[r.Src], Dst: number[r.Dst]})
		lists = append(lists, sample.AtHand(ds.Graph(i)))
	}
	return sample.NewTyped(schema, lists, c, 1)
}

// plainTyped draws the batches of a trace one after another, and gives for each the nodes of its
// layers, the input layer's first, by type.
func plainTyped(t *testing.T, ds *store.Dataset, s *sample.Sampler, z func(step int) sample.BatchSeed, batch, steps int, whole bool) (batches [][][][]uint32) {
	seeds := ds.Split(0).Train
	for epoch := 1; ; epoch++ {
		order := slices.Clone(seeds)
		sample.Shuffle(order, 9, epoch)
		for of := range slices.Chunk(order, batch) {
			switch {
			case len(batches) == steps:
				return batches
			case whole && len(of) < batch:
				continue
			}
			var b sample.Batch
			require.NoError(t, s.SampleOne(context.Background(), &b, z(len(batches)), nil, of, nil, nil, nil))
			var layers [][][]uint32
			for _, l := range b.Layers {
				var nodes [][]uint32
				for _, f := range l.Nodes {
					nodes = append(nodes, slices.Clone(f.Src))
				}
				layers = append(layers, nodes)
			}
			batches = append(batches, layers)
		}
	}
}

func typedOptions(t *testing.T) Options {
	o := DefaultOptions()
	o.Samplers, o.Kappas = []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar}, []int{1, 6, sample.Forever}
	o.Fanouts, o.Batch, o.Steps, o.Seed, o.Growth = []int{4, 3}, 10, 23, 9, []int{20, 36}
	o.RelationFanouts = map[string][]int{"cites": {5, 2}, "venue__prints__paper": {1, 0}}
	o.Caches, o.Tmp = []Capacity{{Rows: 20}, {Share: 0.4}}, t.TempDir()
	return o
}

// TestTypedReportAgreesWithPlainOne: every number of the traces of each table, from batches drawn
// one after another, sets and plain caches; how batches of all types grow; and the same report
// whatever the number of workers.
func TestTypedReportAgreesWithPlainOne(t *testing.T) {
	ds, o := library(t, nil), typedOptions(t)
	r, err := Run(context.Background(), ds, o)
	require.NoError(t, err)

	ofPaper, ofVenue := []Size{{"20", 20, 20.0 / 120}, {"40%", 48, 0.4}}, []Size{{"20", 6, 1}, {"40%", 2, 2.0 / 6}}
	edges := int64(0)
	for i := range ds.Manifest().Relations {
		edges += ds.Graph(i).Edges()
	}
	require.Equal(t, []TypeOf{
		{"author", 60, 0, nil, false}, {"paper", 120, 32, ofPaper, false}, {"shop", 3, 4, nil, false}, {"venue", 6, 4, ofVenue, false}, {"reviewer", 0, 0, nil, false},
	}, r.Types)
	require.Equal(t, []any{60 + 120 + 3 + 6, edges, 32 + 4 + 4, "paper", "given", 72, 8}, []any{r.Nodes, r.Edges, r.RowBytes, r.Target, r.Split, r.Seeds, r.EpochSteps})
	require.Equal(t, []Size{{"20", 26, 26.0 / 126}, {"40%", 50, 50.0 / 126}}, r.Caches)

	var want []Trace
	var growth []float64
	for _, kind := range o.Samplers {
		c := sample.Config{Kind: kind, Fanouts: o.Fanouts, OfRelation: make([][]int, 6)}
		c.OfRelation[cites], c.OfRelation[prints] = []int{5, 2}, []int{1, 0}
		s := librarySampler(ds, c)
		for _, kappa := range o.Kappas {
			batches := plainTyped(t, ds, s, sample.Schedule{Seed: 9, Kappa: kappa}.At, 10, 23, false)
			for _, of := range []struct {
				number int
				name   string
				sizes  []int
			}{{paper, "paper", []int{20, 48}}, {venue, "venue", []int{6, 2}}} {
				var rows [][]uint32
				for _, b := range batches {
					rows = append(rows, b[0][of.number])
				}
				trace := plainReport(rows, kappa, of.sizes)
				trace.Sampler, trace.Type = kind, of.name
				want = append(want, trace)
			}
		}
		for _, size := range o.Growth {
			var mean [2]float64
			alone := func(step int) sample.BatchSeed { return sample.Alone(9, size, step) }
			for _, b := range plainTyped(t, ds, s, alone, size, trials, true) {
				for i := range mean {
					for _, nodes := range b[1-i] {
						mean[i] += float64(len(nodes)) / trials
					}
				}
			}
			growth = append(growth, mean[:]...)
		}
	}
	require.Empty(t, cmp.Diff(want, r.Traces))
	require.NotZero(t, r.Traces[1].Requests)
	var hops []float64
	for _, g := range r.Growth {
		for _, h := range g.Hops {
			hops = append(hops, h.Mean)
		}
	}
	require.InEpsilonSlice(t, growth, hops, 1e-12)

	for _, workers := range []int{1, 3, 40} {
		o.Threads = workers
		again, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		require.Empty(t, cmp.Diff(r, again))
	}
	left, err := os.ReadDir(o.Tmp)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestTypesThatHaveNoTrace: those that no batch reads, and those that have no rows.
func TestTypesThatHaveNoTrace(t *testing.T) {
	traced := func(ds *store.Dataset, change func(o *Options)) (names []string) {
		o := typedOptions(t)
		o.Samplers, o.Kappas, o.Growth = o.Samplers[:1], o.Kappas[:1], o.Growth[:1]
		change(&o)
		r, err := Run(context.Background(), ds, o)
		require.NoError(t, err)
		require.NotEmpty(t, r.Growth)
		require.NotNil(t, r.Traces)
		for _, trace := range r.Traces {
			names = append(names, trace.Type)
		}
		return names
	}
	ds := library(t, nil)
	require.Equal(t, []string{"paper"}, traced(ds, func(o *Options) { o.RelationFanouts = map[string][]int{"prints": {0, 0}} }))
	require.Equal(t, []string{"venue", "paper"}, traced(ds, func(o *Options) { o.Relation, o.RelationFanouts = "prints", nil }))
	require.Equal(t, []string{"paper"}, traced(ds, func(o *Options) { o.Target, o.Growth = "author", []int{60} }), "no venue at the second hop")
	require.Equal(t, []string{"paper", "shop", "venue"}, traced(ds, func(o *Options) {
		o.Target, o.Growth, o.RelationFanouts = "shop", []int{3}, nil
	}))
	require.Empty(t, traced(ds, func(o *Options) {
		o.Target, o.Growth, o.RelationFanouts, o.Caches = "author", []int{60}, map[string][]int{"written_by": {0, 0}}, []Capacity{{Rows: 999}}
	}))
	empty := library(t, func(s *storetest.TypedSpec) {
		s.Types[4].Dim, s.Types[4].Row = 3, func(int) []float32 { return []float32{1, 2, 3} }
	})
	require.Equal(t, []string{"paper", "venue"}, traced(empty, func(*Options) {}), "no reviewer has a row")
}

// TestOneTypeOfSeveral: a relation within a type is a graph of one type, walks and all.
func TestOneTypeOfSeveral(t *testing.T) {
	o := typedOptions(t)
	o.Samplers, o.Relation, o.RelationFanouts = sample.Kinds, "cites", nil
	r, err := Run(context.Background(), library(t, nil), o)
	require.NoError(t, err)
	require.Len(t, r.Traces, 4*3)
	require.Equal(t, []any{120, 32, []Size{{"20", 20, 20.0 / 120}, {"40%", 48, 0.4}}}, []any{r.Nodes, r.RowBytes, r.Caches})
	text, err := json.Marshal(r)
	require.NoError(t, err)
	for _, key := range []string{"type", "types", "target", "relation_fanouts"} {
		require.NotContains(t, string(text), `"`+key+`":`)
	}
	require.Contains(t, string(text), `"relation":"cites"`)
}

func TestTypedBadDatasets(t *testing.T) {
	run := func(ds *store.Dataset, change func(o *Options)) error {
		o := typedOptions(t)
		o.Samplers, o.Kappas, o.Growth = o.Samplers[:1], o.Kappas[:1], o.Growth[:1]
		change(&o)
		_, err := Run(context.Background(), ds, o)
		return err
	}
	ds := library(t, nil)
	for want, change := range map[string]func(o *Options){
		"{sampler} rw needs one relation within a type, and the graph has 5 types and 6 relations; take ns, labor0 or labor-star": func(o *Options) {
			o.Samplers = sample.Kinds
		},
		"{target} editor: there are the node types author, paper, shop, venue, reviewer": func(o *Options) { o.Target = "editor" },
		"{fanout} likes: no relation of that name; there are author__writes__paper, ":    func(o *Options) { o.RelationFanouts["likes"] = []int{1, 1} },
		"no relation likes; {relation} takes one of: author__writes__paper, ":            func(o *Options) { o.Relation = "likes" },
		"{cache} 121: the largest table that batches read has 120 rows":                  func(o *Options) { o.Caches = []Capacity{{Rows: 121}} },
		`no split "x"; {split} takes one of: given`:                                      func(o *Options) { o.Split = "x" },
	} {
		err := run(ds, change)
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
	unlabelled := library(t, func(s *storetest.TypedSpec) {
		s.Target = "author"
		s.Train, s.Valid, s.Test = []store.NodeID{1}, nil, nil
	})
	require.ErrorContains(t, run(unlabelled, func(o *Options) { o.Target = "paper"; o.Split = "given" }), `no split "given"; without {split} all nodes are seeds`)

	beside := library(t, func(s *storetest.TypedSpec) {
		s.Relations = append(s.Relations, storetest.TypedRelation{Src: "author", Name: "enters", Dst: "shop"})
	})
	require.ErrorContains(t, run(beside, func(o *Options) { o.Relation, o.RelationFanouts = "enters", nil }),
		"no type of nodes with a label and a split, so say by {target} of which type the seeds are")

	// Relations that are not drawn from may be damaged, others may not.
	far := library(t, func(s *storetest.TypedSpec) { s.Relations[5].Neighbors[0] = []store.NodeID{500} })
	require.NoError(t, run(far, func(*Options) {}))
	far = library(t, func(s *storetest.TypedSpec) { s.Relations[writtenBy].Neighbors[7] = []store.NodeID{500} })
	require.ErrorContains(t, run(far, func(*Options) {}), "neighbors.u32: node 7 has neighbour 500, and there are 120 nodes")
	require.NoError(t, run(far, func(o *Options) { o.RelationFanouts["written_by"] = []int{0, 0} }))
	for relation := 5; relation >= 0; relation-- { // the error names the first damaged one
		offsets, _ := ds.Graph(relation).Sections()
		f, err := os.OpenFile(offsets.Path, os.O_WRONLY, 0)
		require.NoError(t, err)
		_, err = f.WriteAt([]byte{7}, store.PageSize+4)
		require.NoError(t, errors.Join(err, f.Close()))
		if err = run(ds, func(*Options) {}); relation == 5 {
			require.NoError(t, err, "no paper draws from what shops sell")
		} else {
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, filepath.Base(filepath.Dir(offsets.Path))+"/offsets.u64 at 0x1000: the checksum of this page is ")
		}
	}
}

// TestTypedPicture: a curve for each type, policy and size, no two of which look alike, and each κ
// written once.
func TestTypedPicture(t *testing.T) {
	r, err := Run(context.Background(), library(t, nil), typedOptions(t))
	require.NoError(t, err)
	svg := drawn(t, r)
	require.Equal(t, 3*2+3*2*2*4*2, strings.Count(svg, "<polyline"), "each curve, and its entry in the legend")
	for text, n := range map[string]int{">paper lru 20<": 3, ">venue belady 40%<": 3, ">inf<": 3, ">6<": 3, "Nodes of all types in a batch for each seed": 1} {
		require.Equal(t, n, strings.Count(svg, text), text)
	}
	require.Contains(t, svg, "<title>typed.gnn: fanout 4,3 cites=5,2 venue__prints__paper=1,0, batch 10</title>")

	r = &Report{Caches: []Size{{}, {}}, Types: make([]TypeOf, 4)}
	for _, name := range []string{"a", "b", "c", "d"} {
		r.Traces = append(r.Traces, Trace{Kappa: 1, Type: name, Caches: make([]Cache, 2*len(Policies))})
	}
	looks := map[[2]string]bool{}
	for _, c := range r.missPanel("").curves {
		looks[[2]string{c.colour, c.dash}] = true
	}
	require.Len(t, looks, 4*2*len(Policies))
}

// TestLearntRows: rows that a run would learn are a table like the others, and the traces of those
// stay the same.
func TestLearntRows(t *testing.T) {
	ds, o := library(t, nil), typedOptions(t)
	plain, err := Run(t.Context(), ds, o)
	require.NoError(t, err)
	o.Inputs = map[string]string{"author": "embed:4", "venue": "constant"}
	r, err := Run(t.Context(), ds, o)
	require.NoError(t, err)
	require.Equal(t, []int{48, 32}, []int{r.Types[0].RowBytes, r.Types[1].RowBytes})
	of := func(r *Report, kind string) (traces []Trace) {
		for _, t := range r.Traces {
			if t.Type == kind {
				traces = append(traces, t)
			}
		}
		return traces
	}
	require.Equal(t, of(plain, "paper"), of(r, "paper"))
	require.Empty(t, of(r, "venue"))
	got := of(r, "author")
	require.Len(t, got, len(o.Samplers)*len(o.Kappas))
	c := sample.Config{Kind: o.Samplers[0], Fanouts: o.Fanouts, OfRelation: make([][]int, 6)}
	c.OfRelation[cites], c.OfRelation[prints] = []int{5, 2}, []int{1, 0}
	var rows [][]uint32
	for _, b := range plainTyped(t, ds, librarySampler(ds, c), sample.Schedule{Seed: 9, Kappa: o.Kappas[0]}.At, 10, 23, false) {
		rows = append(rows, b[0][0])
	}
	want := plainReport(rows, o.Kappas[0], []int{20, 24})
	want.Sampler, want.Type = o.Samplers[0], "author"
	require.Equal(t, want, got[0])
	o.Inputs = map[string]string{"reader": "embed:4"}
	_, err = Run(t.Context(), ds, o)
	require.ErrorContains(t, err, "{input} reader=embed:4: no node type reader; there are author, paper")
}
