package graph

import (
	"context"
	"encoding/binary"
	"math"
	"slices"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// byLot is a graph of three classes that neighbours say nothing of: they are drawn by lot.
func byLot(nodes, degree int) storetest.Spec {
	s := storetest.Communities(nodes, 3, degree, 4, 9)
	for v := range s.Neighbors {
		for i := range s.Neighbors[v] {
			s.Neighbors[v][i] = store.NodeID(sample.Hash(5, uint64(v), uint64(i)) % uint64(nodes))
		}
		slices.Sort(s.Neighbors[v])
	}
	return s
}

// rated is a graph where nothing but the ratings of the edges into a node tells its class. Times
// and weights say less.
func rated(nodes int) storetest.Spec {
	s := byLot(nodes, 6)
	s.Row = func(v int) []float32 { return []float32{1, float32(sample.Hash(6, uint64(v))%100) / 100, 0, 0} }
	s.Weight = func(v, i int) float32 { return float32(1 + (v+i)%3) }
	s.Columns = []storetest.Column{
		{Name: "rating", Elem: store.U8, Value: func(v, i int) float64 { return float64(v % 3) }},
		{Name: "time", Elem: store.I64, Value: func(v, i int) float64 { return float64((v*7+i*5)%9 - 4) }},
	}
	return s
}

// TestEdgesLearn: what only a column of the edges tells is learnt with it, and not without.
func TestEdgesLearn(t *testing.T) {
	ds := open(t, rated(900))
	for _, c := range []struct {
		kind    model.Kind
		sampler sample.Kind
	}{{model.RSAGE, sample.NS}, {model.RGCN, sample.Labor0}, {model.RSAGE, sample.LaborStar}} {
		o := typed(c.kind)
		o.Sampler, o.Epochs = c.sampler, 10
		require.Less(t, *trained(t, ds, o).Best.ValidAcc, 0.5, c.kind)
		o.EdgeInputs = map[string][]string{"to": {"rating"}}
		require.Greater(t, *trained(t, ds, o).Best.ValidAcc, 0.9, "%s, %s", c.kind, c.sampler)
	}
}

// TestAttentionLearnsFromEdges: a node has the class of one neighbour, that whose edge is marked.
func TestAttentionLearnsFromEdges(t *testing.T) {
	s := byLot(900, 8)
	group := func(u int) int { return int(sample.Hash(7, uint64(u)) % 3) }
	marked := func(v int) int { return int(sample.Hash(8, uint64(v)) % 8) }
	s.Row = func(v int) []float32 {
		row := make([]float32, 4)
		row[group(v)] = 1
		return row
	}
	s.Class = func(v int) int32 { return int32(group(int(s.Neighbors[v][marked(v)]))) }
	s.Columns = []storetest.Column{{Name: "mark", Elem: store.F32, Value: func(v, i int) float64 {
		if i == marked(v) {
			return 1
		}
		return 0
	}}}
	ds := open(t, s)
	o := typed(model.RGAT)
	o.Layers, o.Fanouts, o.Epochs, o.Dropout, o.LR = 1, []int{-1}, 30, 0, 0.03
	without := *trained(t, ds, o).Best.ValidAcc
	o.EdgeInputs = map[string][]string{"to": {"mark"}}
	require.Greater(t, *trained(t, ds, o).Best.ValidAcc, max(0.9, without+0.2))
}

// TestEdgesSameResults: budgets, policies, windows, engines and workers change nothing, wherever
// values come from.
func TestEdgesSameResults(t *testing.T) {
	storetest.Long(t)
	ds := open(t, rated(600))
	least, n := topology.LeastBytes(ds.Graph(0)), 0
	for name, change := range map[string]func(o *run.Options){
		"ns":              func(*run.Options) {},
		"all":             func(o *run.Options) { o.Fanouts = []int{-1, 3} },
		"labor0 smoothed": func(o *run.Options) { o.Sampler, o.Kappa, o.Dependent = sample.Labor0, 5, run.Smoothed },
		"labor0 poisson":  func(o *run.Options) { o.Sampler, o.Poisson = sample.Labor0, true },
		"labor-star":      func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 3 },
		"weighted":        func(o *run.Options) { o.Weighted = true },
		"beside labels":   func(o *run.Options) { o.LabelInput, o.Inputs = 3, map[string]string{"node": "embed:6"} },
	} {
		for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT} {
			if kind != model.RSAGE && name != "labor-star" {
				continue // the network has no part in what is drawn
			}
			o := typed(kind)
			o.Epochs, o.EdgeInputs = 2, map[string][]string{"to": {"time", "rating", "weight"}}
			change(&o)
			want := trained(t, ds, o)
			for _, lists := range []int64{least, least + 600*25, 1 << 30} {
				n++
				o := o
				o.TopologyBytes, o.Cache.HostBytes, o.Cache.Policy = lists, []int64{0, 1000, 1 << 30}[n%3], policy.Kinds[n%len(policy.Kinds)]
				o.Cache.Engine, o.Window, o.Workers, o.Lookahead = disk.Kinds[1+n%3], []int{0, 1, 8}[n%3], 1+n%3, n%4
				got := trained(t, ds, o)
				sameWork(t, want, got, "%s, %s, %+v", kind, name, o)
				each := int64(4 + 8 + 1 + 4)
				if o.Weighted {
					each += 4
				}
				if lists == 1<<30 {
					require.Equal(t, each*ds.Graph(0).Edges(), got.Topology.UsedBytes)
				}
			}
		}
	}
}

// TestEdgesOfTypes: relations have columns of their own, by name or by key, and the others none.
func TestEdgesOfTypes(t *testing.T) {
	spec := storetest.Library(400, 3, 3)
	for _, r := range []int{1, 2, 5} {
		spec.Relations[r].Columns = []storetest.Column{
			{Name: "year", Elem: store.I32, Value: func(v, i int) float64 { return float64((v + i + r) % 7) }},
			{Name: "score", Elem: store.F32, Value: func(v, i int) float64 { return float64(v%5) / 4 }},
		}
	}
	ds := openTyped(t, spec)
	key := spec.Relations[2]
	o := typed(model.RSAGE)
	o.EdgeInputs = map[string][]string{"cites": {"score", "year"}, key.Src + "__" + key.Name + "__" + key.Dst: {"year"}}
	want := trained(t, ds, o)
	m := opened(t, ds, o)
	shapes := map[string][]int{}
	for _, p := range m.model.Params {
		shapes[p.Name] = p.Shape
	}
	require.Equal(t, []int{16, 2}, shapes["convs.0.<paper___cites___paper>.lin_edge.weight"])
	require.Equal(t, []int{3, 2}, shapes["convs.1.<paper___cites___paper>.lin_edge.weight"])
	require.Equal(t, []int{16, 1}, shapes["convs.0.<"+key.Src+"___"+key.Name+"___"+key.Dst+">.lin_edge.weight"])
	require.NotContains(t, shapes, "convs.1.<"+key.Src+"___"+key.Name+"___"+key.Dst+">.lin_edge.weight", "the last layer makes no authors")
	require.Contains(t, m.data.UnusedColumns(), "score of "+ds.Graph(2).Relation.Key())
	require.NotContains(t, m.data.UnusedColumns(), "year of "+ds.Graph(2).Relation.Key())
	without := o
	without.EdgeInputs = nil
	require.NotEqual(t, want.ParamsXXH3, trained(t, ds, without).ParamsXXH3)
	o.TopologyBytes, o.Cache.HostBytes, o.Workers = 12<<10, 2000, 1
	sameWork(t, want, trained(t, ds, o))

	o.Layers, o.Fanouts, o.EvalTest, o.TopologyBytes = 3, []int{-1, -1, -1}, "epoch", run.Auto
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT} { // layer by layer gives the same as blocks of all neighbours
		o.Kind, o.EvalBytes = kind, run.Auto
		full := trained(t, ds, o)
		o.EvalBytes = 0
		sampled := trained(t, ds, o)
		require.Equal(t, []string{"full", "sampled"}, []string{full.Evaluation.Method, sampled.Evaluation.Method})
		for i := range full.Epochs {
			require.InDelta(t, *full.Epochs[i].ValidAcc, *sampled.Epochs[i].ValidAcc, 0.0126, "%s: one node of 80 at a tie", kind)
			require.InDelta(t, *full.Epochs[i].TestAcc, *sampled.Epochs[i].TestAcc, 0.0126, kind)
		}
	}
}

// TestEdgesResume: at any step, and not with other columns.
func TestEdgesResume(t *testing.T) {
	ds := open(t, rated(600))
	o := typed(model.RGAT)
	o.Epochs, o.EdgeInputs = 3, map[string][]string{"to": {"rating", "time"}}
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
	require.NoError(t, err)
	sameWork(t, want, got)
	for _, other := range []map[string][]string{nil, {"to": {"rating"}}, {"to": {"time", "rating"}}} {
		now := o
		now.EdgeInputs = other
		_, err = runOn(context.Background(), half(t, ds, o), ds, now, run.Hooks{})
		require.ErrorContains(t, err, `{edge_input} is `)
		require.ErrorContains(t, err, ` and the run's is to=rating,time`)
	}
}

// TestEdgesRefuse: the refusal of an input that cannot be read names the ones that can.
func TestEdgesRefuse(t *testing.T) {
	spec := storetest.Library(200, 3, 2)
	spec.Relations[1].Columns = []storetest.Column{{Name: "year", Elem: store.I32, Value: func(v, i int) float64 { return 1 }}, {Name: store.EdgeID, Elem: store.U32, Value: func(v, i int) float64 { return 0 }}}
	spec.Relations[5].Columns = spec.Relations[1].Columns[:1]
	ds := openTyped(t, spec)
	unreached := spec.Relations[5].Name
	for want, change := range map[string]func(o *run.Options){
		"{edge_input} likes: no relation of that name; there are author__writes__paper, ":                          func(o *run.Options) { o.EdgeInputs = map[string][]string{"likes": {"year"}} },
		"{edge_input} cites=month: the edges of relation paper__cites__paper have no column month; there are year": func(o *run.Options) { o.EdgeInputs = map[string][]string{"cites": {"year", "month"}} },
		"{edge_input} cites=id: that is the edges' number as they were read":                                       func(o *run.Options) { o.EdgeInputs = map[string][]string{"cites": {"id"}} },
		"{edge_input} writes=year: the edges of relation author__writes__paper have no columns":                    func(o *run.Options) { o.EdgeInputs = map[string][]string{"writes": {"year"}} },
		"{edge_input} cites: column year is there twice":                                                           func(o *run.Options) { o.EdgeInputs = map[string][]string{"cites": {"year", "year"}} },
		"{edge_input} cites: it names no column; write cites=COLUMN":                                               func(o *run.Options) { o.EdgeInputs = map[string][]string{"cites": {}} },
		"{edge_input}: {model} hgt reads no values of edges; take rsage, rgcn and rgat":                            func(o *run.Options) { o.Kind = model.HGT },
		"{edge_input}: {model} sage reads no values of edges; take rsage, rgcn and rgat":                           func(o *run.Options) { o.Kind = model.SAGE },
		"{edge_input}: {sampler} rw visits nodes and draws no edges; take ns, labor0 or labor-star":                func(o *run.Options) { o.Sampler = sample.RW },
		"{edge_input} " + unreached + ": no batch draws from this relation":                                        func(o *run.Options) { o.EdgeInputs = map[string][]string{unreached: {"year"}} },
		"{edge_input} cites: no batch draws from this relation":                                                    func(o *run.Options) { o.RelationFanouts = map[string][]int{"cites": {0, 0}} },
	} {
		o := typed(model.RSAGE)
		o.EdgeInputs = map[string][]string{"cites": {"year"}}
		change(&o)
		_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestEdgesThatAreNoNumbers: a value that is drawn and NaN or infinite is named with its file and
// its place, at any budget.
func TestEdgesThatAreNoNumbers(t *testing.T) {
	for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(-1))} {
		spec := rated(300)
		spec.Columns[0] = storetest.Column{Name: "rating", Elem: store.F32, Value: func(v, i int) float64 { return float64(v % 3) }}
		path := storetest.Build(t, spec)
		const section = "topo/node__to__node/rating.f32"
		edges := 0 // before the edges of the first node to train
		for v := range int(spec.Train[0]) {
			edges += len(spec.Neighbors[v])
		}
		storetest.Forge(t, path, section, int64(store.PageSize+4*edges), binary.LittleEndian.AppendUint32(nil, math.Float32bits(bad)))
		ds, err := store.Open(path)
		require.NoError(t, err)
		defer ds.Close()
		o := typed(model.RSAGE)
		o.Fanouts = []int{-1, -1}
		o.EdgeInputs = map[string][]string{"to": {"time", "rating"}}
		for _, lists := range []int64{topology.LeastBytes(ds.Graph(0)), 1 << 30} {
			o.TopologyBytes = lists
			_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
			require.ErrorIs(t, err, store.ErrCorrupt)
			require.ErrorContains(t, err, path+": "+section)
			require.ErrorContains(t, err, "has the value ")
			require.NotContains(t, err.Error(), "\n")
		}
		o.EdgeInputs = map[string][]string{"to": {"time"}}
		trained(t, ds, o)
	}
}

// TestEdgesPlan: a plan has the memory of edge values, and a run notes columns with large values.
func TestEdgesPlan(t *testing.T) {
	spec := rated(300)
	spec.Columns[1].Value = func(v, i int) float64 { return 1_700_000_000 + float64(v) }
	ds := open(t, spec)
	o := typed(model.RSAGE)
	o.EdgeInputs = map[string][]string{"to": {"time", "rating"}}
	p, err := MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
	edges := ds.Graph(0).Edges()
	require.Equal(t, []PlanEdges{{"node__to__node", []string{"time", "rating"}, 9, 9 * edges, 4 * edges}}, p.EdgeInputs)
	var notes []string
	_, err = Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes, "column time of the edges of node__to__node has values like 1.7e+09, and nothing normalises them: "+
		"where the loss is large, ingest smaller ones")
	require.Contains(t, notes, "column weight of the edges is not used in training")
	require.NotContains(t, notes, "column rating of the edges is not used in training")
	o.EdgeInputs = nil
	p, err = MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
	require.Empty(t, p.EdgeInputs)
}
