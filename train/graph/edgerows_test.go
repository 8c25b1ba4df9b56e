package graph

import (
	"cmp"
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

// ratedRows is rated with a table of what its columns have, in float32: the edges were read in an
// order of their own, and some rows have no edge.
func ratedRows(nodes int, id store.Elem) storetest.Spec {
	s := rated(nodes)
	type edge struct{ v, i int }
	var edges []edge
	for v, list := range s.Neighbors {
		for i := range list {
			edges = append(edges, edge{v, i})
		}
	}
	slices.SortFunc(edges, func(a, b edge) int {
		return cmp.Compare(sample.Hash(12, uint64(a.v), uint64(a.i)), sample.Hash(12, uint64(b.v), uint64(b.i)))
	})
	number := map[edge]int{}
	for n, e := range edges {
		number[e] = n + n/10
	}
	of := map[int]edge{}
	for e, n := range number {
		of[n] = e
	}
	s.Columns = append(s.Columns, storetest.Column{Name: store.EdgeID, Elem: id, Value: func(v, i int) float64 { return float64(number[edge{v, i}]) }})
	rating, time := s.Columns[0], s.Columns[1]
	s.EdgeTable = &storetest.EdgeTable{Rows: len(edges) + len(edges)/10 + 1, Dim: 3, Row: func(n int) []float32 {
		e, ok := of[n]
		if !ok {
			return []float32{999, 999, 999}
		}
		return []float32{float32(time.Value(e.v, e.i)), float32(rating.Value(e.v, e.i)), s.Weight(e.v, e.i)}
	}}
	return s
}

var (
	asColumns = map[string][]string{"to": {"time", "rating", "weight"}}
	asTable   = map[string][]string{"to": {"table"}}
)

// sameNetwork: two runs came to the same weights by the same losses, whatever they read.
func sameNetwork(t *testing.T, want, got *run.Result, about ...any) {
	t.Helper()
	require.Equal(t, want.Losses, got.Losses, about...)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, about...)
	require.Equal(t, want.Best, got.Best, about...)
}

// TestEdgeRowsAreColumns: rows of a table and the same numbers in columns give the same bits, in
// training and in evaluation.
func TestEdgeRowsAreColumns(t *testing.T) {
	for _, id := range []store.Elem{store.U32, store.U64} {
		ds := open(t, ratedRows(600, id))
		for name, change := range map[string]func(o *run.Options){
			"ns":             func(*run.Options) {},
			"all, sampled":   func(o *run.Options) { o.Fanouts, o.Eval = []int{-1, 3}, "sampled" },
			"labor0 poisson": func(o *run.Options) { o.Sampler, o.Poisson = sample.Labor0, true },
			"labor-star":     func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 3 },
			"weighted":       func(o *run.Options) { o.Weighted = true },
			"on disk":        func(o *run.Options) { o.EvalBytes, o.Eval = 0, "full" },
		} {
			for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT} {
				o := typed(kind)
				o.Epochs, o.EvalTest, o.EdgeInputs = 2, "epoch", asColumns
				change(&o)
				want := trained(t, ds, o)
				o.EdgeInputs = asTable
				got := trained(t, ds, o)
				sameNetwork(t, want, got, "%s, %s, %v", kind, name, id)
				require.Len(t, got.Tables, 2)
				require.Equal(t, "node__to__node/edge_feat", got.Tables[1].Type)
				require.Equal(t, "edges", got.Tables[1].Kind)
				require.Positive(t, got.Tables[1].InputRows)
				require.Equal(t, want.InputRows, got.Tables[0].InputRows)
			}
		}
	}
}

// TestEdgeRowsSameResults: budgets, policies, windows, engines and workers change nothing.
func TestEdgeRowsSameResults(t *testing.T) {
	storetest.Long(t)
	ds := open(t, ratedRows(600, store.U32))
	least, n := topology.LeastBytes(ds.Graph(0)), 0
	for _, kind := range []model.Kind{model.RSAGE, model.RGAT} {
		o := typed(kind)
		o.Epochs, o.Sampler, o.EdgeInputs = 2, sample.Labor0, asTable
		want := trained(t, ds, o)
		for _, lists := range []int64{least, least + 600*8, 1 << 30} {
			for range policy.Kinds {
				n++
				o := o
				o.TopologyBytes, o.Cache.HostBytes, o.Cache.Policy = lists, []int64{0, 20_000, 1 << 30}[n%3], policy.Kinds[n%len(policy.Kinds)]
				o.Cache.Engine, o.Window, o.Workers, o.Lookahead = disk.Kinds[1+n%3], []int{0, 1, 8}[n%3], 1+n%3, n%4
				got := trained(t, ds, o)
				sameNetwork(t, want, got, "%s, %+v", kind, o)
				require.Equal(t, want.Tables[1].InputRows, got.Tables[1].InputRows)
				if lists == 1<<30 {
					require.Equal(t, (4+4)*ds.Graph(0).Edges(), got.Topology.UsedBytes)
				}
			}
		}
	}
}

// rowsOfTypes is a graph where a relation has a table, and its reverse reads it as well.
func rowsOfTypes(dim int, elem store.Elem) storetest.TypedSpec {
	spec := storetest.Library(400, 3, 3)
	forth := &spec.Relations[0]
	forth.Columns = []storetest.Column{{Name: store.EdgeID, Elem: store.U32}}
	back := storetest.TypedRelation{Src: forth.Dst, Name: "rev_" + forth.Name, Dst: forth.Src, ReverseOf: forth.Src + "__" + forth.Name + "__" + forth.Dst}
	edges := 0
	var ids, backIDs [][]float64
	for v, list := range forth.Neighbors {
		slices.Sort(list)
		ids = append(ids, nil)
		for _, u := range list {
			for int(u) >= len(back.Neighbors) {
				back.Neighbors, backIDs = append(back.Neighbors, nil), append(backIDs, nil)
			}
			back.Neighbors[u], backIDs[u] = append(back.Neighbors[u], store.NodeID(v)), append(backIDs[u], float64(edges))
			ids[v] = append(ids[v], float64(edges))
			edges++
		}
	}
	forth.Columns[0].Value = func(v, i int) float64 { return ids[v][i] }
	back.Columns = []storetest.Column{{Name: store.EdgeID, Elem: store.U64, Value: func(v, i int) float64 { return backIDs[v][i] }}}
	forth.EdgeTable = &storetest.EdgeTable{Rows: edges, Dim: dim, Elem: elem, Row: func(i int) []float32 {
		row := make([]float32, dim)
		for c := range row {
			row[c] = float32(i%(c+3)) / 8
		}
		return row
	}}
	spec.Relations = append(spec.Relations, back)
	return spec
}

// TestEdgeRowsOfTypes: a relation and its reverse read one table, whose rows may be wide.
// Evaluation layer by layer gives the same as blocks of all neighbours.
func TestEdgeRowsOfTypes(t *testing.T) {
	storetest.Long(t)
	for _, dim := range []int{1, 5, 3489} {
		spec := rowsOfTypes(dim, store.F16)
		ds := openTyped(t, spec)
		name := spec.Relations[0].Name
		o := typed(model.RSAGE)
		o.EdgeInputs = map[string][]string{name: {"table:edge_feat"}, "rev_" + name: {"table"}}
		if dim == 3489 {
			o.Epochs = 1
		}
		want := trained(t, ds, o)
		m := opened(t, ds, o)
		require.Len(t, m.data.EdgeTables, 1)
		require.Equal(t, want.Tables[len(want.Tables)-1].Type, spec.Relations[len(spec.Relations)-1].ReverseOf+"/edge_feat")
		o.TopologyBytes, o.Cache.HostBytes, o.Workers = 24<<10, 2000, 1
		sameNetwork(t, want, trained(t, ds, o), dim)
		if dim == 3489 {
			continue
		}
		o.Layers, o.Fanouts, o.EvalTest, o.TopologyBytes = 3, []int{-1, -1, -1}, "epoch", run.Auto
		for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT} {
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
}

// TestEdgeRowsResume: at any step, and not with columns instead.
func TestEdgeRowsResume(t *testing.T) {
	ds := open(t, ratedRows(600, store.U32))
	o := typed(model.RGAT)
	o.Epochs, o.EdgeInputs = 3, asTable
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
	require.NoError(t, err)
	sameWork(t, want, got)
	o.EdgeInputs = asColumns
	now := half(t, ds, o)
	o.EdgeInputs = asTable
	_, err = runOn(context.Background(), now, ds, o, run.Hooks{})
	require.ErrorContains(t, err, `{edge_input} is to=table and the run's is to=time,rating,weight`)
}

// TestEdgeRowsRefuse: the refusal of an input that cannot be read names the ones that can.
func TestEdgeRowsRefuse(t *testing.T) {
	spec := rowsOfTypes(2, store.F32)
	cites := slices.IndexFunc(spec.Relations, func(r storetest.TypedRelation) bool { return r.Name == "cites" })
	spec.Relations[cites].Columns = append(spec.Relations[cites].Columns, storetest.Column{Name: "year", Elem: store.I32, Value: func(v, i int) float64 { return 1 }})
	has := spec.Relations[0]
	ds := openTyped(t, spec)
	for want, inputs := range map[string]map[string][]string{
		"{edge_input} cites=table: the edges of relation paper__cites__paper have no table; there are the columns year": {"cites": {"table"}},
		"{edge_input} " + has.Name + "=table:colour: the edges of relation " + has.Src + "__" + has.Name + "__" + has.Dst +
			" have no such table; there is edge_feat": {has.Name: {"table:colour"}},
		"{edge_input} " + has.Name + "=table,year: a table comes alone": {has.Name: {"table", "year"}},
		"{edge_input} " + has.Name + "=table:: there are table and":     {has.Name: {"table:"}},
	} {
		o := typed(model.RSAGE)
		o.EdgeInputs = inputs
		_, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{})
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
	}
}

// TestEdgeRowsElsewhere: another dataset must have the tables of edges that are read, and need not
// have the others.
func TestEdgeRowsElsewhere(t *testing.T) {
	spec := rowsOfTypes(2, store.F32)
	name := spec.Relations[0].Name
	with := openTyped(t, spec).Manifest()
	without := *with
	without.Tables = slices.DeleteFunc(slices.Clone(with.Tables), func(t store.Table) bool { return t.NodeType == "" })
	require.Len(t, without.Tables, len(with.Tables)-1)
	is := "table edge_feat of relation " + with.Relations[len(with.Relations)-1].ReverseOf + " with 2 columns"
	for _, c := range []struct {
		inputs map[string][]string
		read   bool
	}{
		{nil, false},
		{map[string][]string{"cites": {"table"}, name: {"year"}}, false},
		{map[string][]string{name: {"table"}}, true},
		{map[string][]string{"rev_" + name: {"table:edge_feat"}}, true},
		{map[string][]string{with.Relations[0].Key(): {"table"}}, true},
	} {
		o := run.Options{EdgeInputs: c.inputs}
		require.Empty(t, differ(with, with, o))
		lacks, besides := "", ""
		if c.read {
			lacks, besides = "has no "+is, "has a "+is+" besides"
		}
		require.Equal(t, lacks, differ(with, &without, o), c.inputs)
		require.Equal(t, besides, differ(&without, with, o), c.inputs)
	}
}

// TestEdgeRowsThatAreNone: a row that the table does not have, and one that is no number, are named
// with their places, at any budget.
func TestEdgeRowsThatAreNone(t *testing.T) {
	forged := func(section string, at func(spec storetest.Spec, first int) (int64, []byte)) (*store.Dataset, string) {
		spec := ratedRows(300, store.U32)
		path := storetest.Build(t, spec)
		first := 0 // edge of the first node to train
		for v := range int(spec.Train[0]) {
			first += len(spec.Neighbors[v])
		}
		offset, b := at(spec, first)
		storetest.Forge(t, path, section, int64(store.PageSize)+offset, b)
		ds, err := store.Open(path)
		require.NoError(t, err)
		t.Cleanup(func() { ds.Close() })
		return ds, path
	}
	const ids, feat = "topo/node__to__node/id.u32", "feat/node__to__node/edge_feat-00000.f32"
	wild, path := forged(ids, func(_ storetest.Spec, first int) (int64, []byte) {
		return 4 * int64(first), binary.LittleEndian.AppendUint32(nil, 1_000_000)
	})
	o := typed(model.RSAGE)
	o.Fanouts, o.EdgeInputs = []int{-1, -1}, asTable
	for _, lists := range []int64{topology.LeastBytes(wild.Graph(0)), 1 << 30} {
		o.TopologyBytes = lists
		_, err := Run(t.Context(), wild, scratch(t), o, "test", run.Hooks{})
		require.ErrorIs(t, err, store.ErrCorrupt)
		require.ErrorContains(t, err, path+": "+ids)
		require.ErrorContains(t, err, "has row 1000000, and the table has ")
		require.NotContains(t, err.Error(), "\n")
	}
	row := int64(0)
	nan, _ := forged(feat, func(spec storetest.Spec, _ int) (int64, []byte) {
		row = int64(spec.Columns[2].Value(int(spec.Train[0]), 0))
		return 16 * row, binary.LittleEndian.AppendUint32(nil, math.Float32bits(float32(math.NaN())))
	})
	o.TopologyBytes = run.Auto
	_, err := Run(t.Context(), nan, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "since column 0 of row ")
	require.ErrorContains(t, err, " of node__to__node/edge_feat, a table of edges, is NaN; repair the features, or leave them out")
	require.NotContains(t, err.Error(), "\n")
}

// TestEdgeRowsPlan: a plan has the reads of a step from the table.
func TestEdgeRowsPlan(t *testing.T) {
	ds := open(t, ratedRows(300, store.U32))
	o := typed(model.RSAGE)
	o.EdgeInputs = asTable
	p, err := MakePlan(t.Context(), ds, o)
	require.NoError(t, err)
	require.Empty(t, p.EdgeInputs)
	require.Len(t, p.Tables, 2)
	require.Equal(t, "node__to__node/edge_feat", p.Tables[1].Type)
	require.Positive(t, p.Tables[1].InputRows)
	require.InDelta(t, p.InputRows, p.Tables[0].InputRows+p.Tables[1].InputRows, 1e-9)
}

// trustRows is a graph of users' ratings of each other. Its edges have the column "time" in rows of
// a table, too, before columns that carry no information.
func trustRows(dim int) storetest.TypedSpec {
	spec := storetest.Trust(300, true, false)
	r := &spec.Relations[0]
	var rows []float32 // of the first column
	time, lists := r.Columns[1].Value, make([]int, len(r.Neighbors))
	for v, list := range r.Neighbors {
		lists[v] = len(rows)
		for i := range list {
			rows = append(rows, float32(time(v, i)))
		}
	}
	r.Columns = append(r.Columns, storetest.Column{Name: store.EdgeID, Elem: store.U64, Value: func(v, i int) float64 { return float64(lists[v] + i) }})
	for _, part := range []*storetest.HeldEdges{&r.EdgeSplit.Valid, &r.EdgeSplit.Test} {
		var ids []float64
		for _, x := range part.Values[1] {
			ids, rows = append(ids, float64(len(rows))), append(rows, float32(x))
		}
		part.Values = append(part.Values, ids)
	}
	row := make([]float32, dim)
	for c := range row {
		row[c] = float32(c%7) / 8
	}
	r.EdgeTable = &storetest.EdgeTable{Rows: len(rows), Dim: dim, Row: func(i int) []float32 {
		row[0] = rows[i]
		return row
	}}
	return spec
}

// TestEdgeRowsTellEdges: an edge's own row, beside the rows of its ends, gives the same results as
// the same numbers in columns, for training edges and for held-out ones. Predictions use it as
// well.
func TestEdgeRowsTellEdges(t *testing.T) {
	ds := openTyped(t, trustRows(1))
	predicted := func(o run.Options) (*run.Result, Pairs, []float32) {
		dir, r := runIn(t, ds, o)
		n := network(t, ds, dir, NetworkOptions{})
		var pairs Pairs
		var all []float32
		for _, part := range []string{"train", "valid", "test"} {
			of, got := edgesPredicted(t, n, Logits, edgesOf(t, n, part))
			pairs.Src, pairs.Dst, pairs.Given = append(pairs.Src, of.Src...), append(pairs.Dst, of.Dst...), append(pairs.Given, of.Given...)
			all = append(all, got...)
		}
		require.InDelta(t, *r.Best.TestAcc, measure(t, n, "test"), 1e-9)
		return r, pairs, all
	}
	for _, kind := range []model.Kind{model.RSAGE, model.RGAT} {
		o := edgeOptionsOf(kind)
		o.Epochs, o.EdgeInputs = 2, map[string][]string{"rates": {"time"}}
		want, wantPairs, wantLogits := predicted(o)
		o.EdgeInputs = map[string][]string{"rates": {"table"}}
		got, pairs, logits := predicted(o)
		sameNetwork(t, want, got, kind)
		require.Equal(t, wantPairs, pairs)
		require.Equal(t, wantLogits, logits)
	}
}

// TestWideRowsTellEdges: of edges with much in their rows few are computed together.
func TestWideRowsTellEdges(t *testing.T) {
	ds := openTyped(t, trustRows(3489))
	o := edgeOptionsOf(model.RSAGE)
	o.Epochs, o.EpochSteps, o.EdgeInputs = 1, 2, map[string][]string{"rates": {"table"}}
	dir, r := runIn(t, ds, o)
	n := network(t, ds, dir, NetworkOptions{})
	require.InDelta(t, *r.Best.TestAcc, measure(t, n, "test"), 1e-9)
	require.Equal(t, 75, n.Data().GivenAtOnce(1<<14)) // a MiB of 3489 float32
	require.Equal(t, 5, n.Data().GivenAtOnce(5))
	for _, part := range []string{"train", "test"} {
		count, each, err := n.EdgesOf(part)
		require.NoError(t, err)
		given := 0
		require.NoError(t, each(func(p Pairs) error {
			require.LessOrEqual(t, len(p.Src), 75)
			require.Len(t, p.Given, 3489*len(p.Src))
			given += len(p.Src)
			return nil
		}))
		require.EqualValues(t, count, given)
		_, logits := edgesPredicted(t, n, Logits, each)
		require.NotEmpty(t, logits)
	}
}
