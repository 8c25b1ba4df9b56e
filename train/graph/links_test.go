package graph

import (
	"cmp"
	"context"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	tasks "github.com/gnnstore/gnnstore/train/task"
)

// linked is communities of nodes whose links mostly stay within one.
func linked(nodes int) storetest.Spec { return storetest.Communities(nodes, 4, 6, 16, 1).Linked() }

func linkOptions() run.Options {
	o := small()
	o.Task, o.Batch, o.Metric = run.LinkTask, 256, metric.ROCAUC
	return o
}

// TestRankedLinks: by default links are ranked, and the share of those ranked first stands beside
// MRR, in a run and in a measurement of it.
func TestRankedLinks(t *testing.T) {
	ds := open(t, linked(300))
	o := linkOptions()
	o.Metric = ""
	for negatives, want := range map[string]metric.Kind{"": metric.MRR, "uniform:20": metric.MRR, "all": metric.MRR, "pairs:2": metric.ROCAUC} {
		o.EvalNegatives = negatives
		dir, r := runIn(t, ds, o)
		require.Equal(t, want, r.Metric, negatives)
		require.Equal(t, want, r.Options.Metric)
		require.Equal(t, cmp.Or(negatives, "uniform:299"), r.Links.EvalNegatives, "each other node about once")
		within := r.Links.RankedWithin
		if want != metric.MRR {
			require.Nil(t, within)
			continue
		}
		require.LessOrEqual(t, within["1"], *r.Best.TestAcc)
		require.LessOrEqual(t, within["1"], within["3"])
		require.LessOrEqual(t, within["3"], within["10"])
		require.Positive(t, within["10"])
		n := network(t, ds, dir, NetworkOptions{})
		m, err := n.Measure(t.Context(), "test")
		require.NoError(t, err)
		require.Equal(t, within, m.RankedWithin)
		require.NoError(t, n.Close())
	}
}

// TestLinksAreLearnt: by every decoder and loss, with all ways to draw negatives and to measure.
func TestLinksAreLearnt(t *testing.T) {
	ds := open(t, linked(600))
	for _, c := range []struct {
		change func(o *run.Options)
		least  float64
	}{
		{func(*run.Options) {}, 0.7},
		{func(o *run.Options) { o.Decoder, o.Loss, o.Negatives = model.DistMult, "ce", "uniform:4" }, 0.7},
		{func(o *run.Options) { o.Decoder, o.Negatives, o.Corrupt = model.PairMLP, "shared:8", "both" }, 0.65},
		{func(o *run.Options) { o.Negatives, o.Chunk, o.Loss, o.Metric = "in-batch", 60, "ce", metric.AP }, 0.65},
		{func(o *run.Options) { o.Metric, o.EvalNegatives, o.Corrupt = metric.MRR, "uniform:20", "both" }, 0.25},
		{func(o *run.Options) {
			o.Metric, o.EvalNegatives, o.Negatives, o.Sampler = metric.Hits(5), "uniform:50", "uniform:9", sample.Labor0
		}, 0.2},
		{func(o *run.Options) { o.Metric, o.EvalNegatives = metric.Hits(50), "pairs:5" }, 0.05},
		{func(o *run.Options) { o.Kind, o.EvalBytes = model.GCN, 0 }, 0.7},
	} {
		o := linkOptions()
		o.Epochs = 8
		c.change(&o)
		r := trained(t, ds, o)
		require.Equal(t, run.Done, r.Status)
		require.Greater(t, *r.Best.TestAcc, c.least, "%+v", o)
		require.Less(t, *r.Best.TestAcc, 0.99)
		require.Less(t, r.Losses[7], r.Losses[0])
		require.Equal(t, "node,to,node", r.Options.Target)
		require.Equal(t, string(r.Options.Decoder), r.Links.Decoder)
		require.NotZero(t, r.Epochs[7].TrainAcc)
	}
}

// TestLinksDoNotTellThemselves: in pairs of nodes that know nobody else, and whose rows say nothing
// of each other, all that tells a link is the message along it. Training sees it where the links
// that a step scores stay, and nothing where they are left out. A step has all links, so that the
// nodes of negatives hear nothing either.
func TestLinksDoNotTellThemselves(t *testing.T) {
	const nodes = 1200
	spec, rng := storetest.Communities(nodes, 2, 1, 12, 1), rand.New(rand.NewPCG(1, 2))
	rows := make([][]float32, nodes)
	for v := range rows {
		for range spec.Dim {
			rows[v] = append(rows[v], float32(rng.NormFloat64()))
		}
	}
	spec.Row = func(v int) []float32 { return rows[v] }
	spec.Neighbors, spec.Symmetric = make([][]store.NodeID, nodes), true
	for v := range nodes / 2 {
		u := store.NodeID(nodes/2 + (v*37+11)%(nodes/2))
		spec.Neighbors[v], spec.Neighbors[u] = []store.NodeID{u}, []store.NodeID{store.NodeID(v)}
	}
	spec.EdgeSplit = &storetest.EdgeSplit{Test: storetest.HeldEdges{Src: []store.NodeID{0, 2}, Dst: []store.NodeID{1, 3}}}
	ds := open(t, spec)
	o := linkOptions()
	o.Epochs, o.Batch, o.LR, o.Dropout, o.EvalEvery = 60, nodes, 0.02, 0, 60
	o.Layers, o.Fanouts, o.Hidden, o.KeepTargets = 1, []int{sample.All}, 32, true
	told := trained(t, ds, o)
	require.Greater(t, told.Epochs[59].TrainAcc, 0.95)
	o.KeepTargets = false
	alone := trained(t, ds, o)
	require.InDelta(t, 0.5, alone.Epochs[59].TrainAcc, 0.07)
	// Without the one message that there is, GraphSAGE reads the rows of seeds alone.
	o.Kind = model.MLP
	require.Equal(t, trained(t, ds, o).InputRows, alone.InputRows)
}

// TestLinksAreTheSame under any setting of the tiers, and after a resume at any step.
func TestLinksAreTheSame(t *testing.T) {
	storetest.Long(t)
	ds := open(t, linked(500))
	for i, sampler := range []sample.Kind{sample.NS, sample.Labor0, sample.LaborStar} {
		o := linkOptions()
		o.Epochs, o.EvalEvery, o.CheckpointEvery, o.Sampler, o.Decoder = 3, 2, 3, sampler, model.Decoders[i]
		want := trained(t, ds, o)
		for n, engine := range disk.Kinds[1:] {
			if n != i%len(disk.Kinds[1:]) {
				continue // each sampler with one
			}
			c := o
			cold := outOfCore(ds, engine)
			c.Cache, c.TopologyBytes = cold.Cache, cold.TopologyBytes
			c.Cache.Policy, c.Window, c.Workers, c.Lookahead = policy.Kinds[n%len(policy.Kinds)], []int{1, 0, 8}[n%3], 1+n*3, n
			sameWork(t, want, trained(t, ds, c), "%s: %s", sampler, engine)
		}
		again := half(t, ds, o)
		o.Workers = 5
		got, err := runOn(context.Background(), again, ds, o, run.Hooks{})
		require.NoError(t, err)
		sameRun(t, want, got)
	}
}

// TestNothingToLearn: rows of a table under the dot product have no parameter, which is refused;
// with learnt rows or parameters of the decoder they train.
func TestNothingToLearn(t *testing.T) {
	ds := open(t, linked(120))
	o := linkOptions()
	o.Layers, o.Fanouts, o.Epochs = 0, nil, 1
	refused(t, ds, o, "{layers} 0 and {decoder} dot: the rows of a table are scored as they are, and nothing is learnt; take {input} node=embed:D, or {decoder}")
	o.Decoder = model.DistMult
	trained(t, ds, o)
	o.Decoder, o.Inputs = model.Dot, map[string]string{"node": "embed:8"}
	require.Empty(t, trained(t, ds, o).Relations)
}

// TestLinkPlan: what a run would take is known without one.
func TestLinkPlan(t *testing.T) {
	ds := open(t, linked(500))
	o := linkOptions()
	p, err := MakePlan(context.Background(), ds, o)
	require.NoError(t, err)
	require.Positive(t, p.InputRows)
	require.EqualValues(t, (ds.Graph(0).Edges()+255)/256, p.Steps)
}

// TestLinksOfNothing: what cannot be learnt or measured is refused, by what the user can change,
// before there is a run.
func TestLinksOfNothing(t *testing.T) {
	ds := open(t, linked(200))
	for want, change := range map[string]func(o *run.Options){
		"{metric} accuracy: of {task} link there are roc-auc, ap, mrr and hits@K": func(o *run.Options) { o.Metric = metric.Accuracy },
		"{metric} hits@100000 wants 100000 negatives, and there are": func(o *run.Options) {
			o.Metric, o.EvalNegatives = metric.Hits(100_000), "pairs:20"
		},
		"wants 50 negatives, and there are 20": func(o *run.Options) {
			o.Metric, o.EvalNegatives, o.EvalEdges = metric.Hits(50), "pairs:4", 5
		},
		"{metric} hits@50 wants 50 negatives for each link, and there are 49": func(o *run.Options) {
			o.Metric, o.EvalNegatives, o.Corrupt = metric.Hits(50), "uniform:49", "both"
		},
		"{eval_edges} -1: at least 0":                                                        func(o *run.Options) { o.EvalEdges = -1 },
		"{metric} mrr ranks each link among negatives of its own":                            func(o *run.Options) { o.Metric, o.EvalNegatives = metric.MRR, "pairs:3" },
		"{eval_negatives} given: relation node__to__node, valid links: none are":             func(o *run.Options) { o.EvalNegatives = "given" },
		"{negatives} uniform:0: there are uniform:N, filtered:N, shared:N, in-batch and all": func(o *run.Options) { o.Negatives = "uniform:0" },
		"{eval_negatives} in-batch: there are pairs:N, uniform:N, all and given":             func(o *run.Options) { o.EvalNegatives = "in-batch" },
		"{loss} hinge: there are bce and ce":                                                 func(o *run.Options) { o.Loss = "hinge" },
		"{corrupt} all: there are dst, src and both":                                         func(o *run.Options) { o.Corrupt = "all" },
		"{decoder} cosine: there are dot, distmult, complex, transe, rotate and mlp":         func(o *run.Options) { o.Decoder = "cosine" },
		"{chunk} -1: at least 1":                                                             func(o *run.Options) { o.Chunk = -1 },
		"{target} cites: no such relation; those whose edges are split are node,to,node": func(o *run.Options) {
			o.Target = "cites"
		},
		"{label_input} 4: labels are of {task} node":  func(o *run.Options) { o.LabelInput = 4 },
		"{class_weights}: links have no classes":      func(o *run.Options) { o.ClassWeights = "balanced" },
		"{sampler} rw: walks pass along the links":    func(o *run.Options) { o.Sampler = sample.RW },
		"{split} given: links are split when":         func(o *run.Options) { o.Split = "given" },
		"{task} graph: there are node, link and edge": func(o *run.Options) { o.Task = "graph" },
		"goes with {task} link":                       func(o *run.Options) { o.Task, o.Negatives = "", "uniform:1" },
	} {
		o := linkOptions()
		change(&o)
		refused(t, ds, o, want)
	}
	spec := linked(200)
	spec.EdgeSplit = nil
	refused(t, open(t, spec), linkOptions(), "ingest it again with {edge_split} random:0.85/0.05/0.1")
	one := storetest.Spec{
		Nodes: 1, Dim: 2, Classes: 1, Class: func(int) int32 { return 0 }, Row: func(int) []float32 { return []float32{1, 2} },
		Neighbors: [][]store.NodeID{{0}}, EdgeSplit: &storetest.EdgeSplit{Test: storetest.HeldEdges{Src: []store.NodeID{0}, Dst: []store.NodeID{0}}},
	}
	refused(t, open(t, one), linkOptions(), "type node has 1 node, so there is no other to take the place of an end")
	one.Neighbors = [][]store.NodeID{{}}
	refused(t, open(t, one), linkOptions(), "relation node__to__node has no edges to train on")
}

// TestFewLinks: fewer than a batch are one step, and scores that are all alike have an AUC of a
// half.
func TestFewLinks(t *testing.T) {
	spec := linked(60)
	spec.Row = func(int) []float32 { return make([]float32, 16) }
	ds := open(t, spec)
	o := linkOptions()
	o.Batch, o.Epochs = 5000, 2
	var notes []string
	r, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Equal(t, 1, r.Epochs[0].Steps)
	require.Contains(t, notes[0], "training links: an epoch is one step")
	notes, o.EvalBytes = nil, 0
	_, err = Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes[1], "sampled blocks of up to 20000 links a part")
	notes, o.EvalEdges = nil, 5
	_, err = Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
	require.NoError(t, err)
	require.Contains(t, notes[1], "sampled blocks of up to 5 links a part")
	require.InDelta(t, 0.5, *r.Best.TestAcc, 1e-9)
}

// shop is users and items of four kinds each, users buying mostly items of their kind, with the
// reverse of that relation.
func shop(rng *rand.Rand) storetest.TypedSpec {
	const users, items = 300, 120
	row := func(kind int) func(int) []float32 {
		rows := make([][]float32, users)
		for v := range rows {
			for range 8 {
				rows[v] = append(rows[v], float32(rng.NormFloat64()))
			}
			rows[v][(v%4+kind)%8] += 2
		}
		return func(v int) []float32 { return rows[v] }
	}
	buys, back, split := make([][]store.NodeID, items), make([][]store.NodeID, users), new(storetest.EdgeSplit)
	for u := range users {
		for j := range 8 {
			v := rng.IntN(items)
			if rng.Float64() < 0.9 {
				v = v/4*4 + u%4
			}
			part := (*storetest.HeldEdges)(nil)
			switch (u + j) % 10 {
			case 0:
				part = &split.Valid
			case 1:
				part = &split.Test
			default:
				buys[v], back[u] = append(buys[v], store.NodeID(u)), append(back[u], store.NodeID(v))
				continue
			}
			part.Src, part.Dst = append(part.Src, store.NodeID(u)), append(part.Dst, store.NodeID(v))
		}
	}
	return storetest.TypedSpec{
		Types: []storetest.TypedNodes{{Name: "user", Nodes: users, Dim: 8, Row: row(0)}, {Name: "item", Nodes: items, Dim: 8, Row: row(4)}},
		Relations: []storetest.TypedRelation{
			{Src: "user", Name: "buys", Dst: "item", Neighbors: buys, EdgeSplit: split},
			{Src: "item", Name: "rev_buys", Dst: "user", Neighbors: back, ReverseOf: "user__buys__item"},
		},
		Target: "item", Classes: 4, Class: func(v int) int32 { return int32(v % 4) }, Train: []store.NodeID{0},
	}
}

// TestLinksBetweenTypes: by every network that knows several, also where items have rows to learn,
// out of core as in memory, and on sampled blocks.
func TestLinksBetweenTypes(t *testing.T) {
	storetest.Long(t)
	ds, err := store.Open(storetest.BuildTyped(t, shop(rand.New(rand.NewPCG(3, 4)))))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	for i, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		o := linkOptions()
		o.Kind, o.Epochs, o.Target, o.Dropout = kind, 10, "user,buys,item", 0.2
		if i == 0 {
			o.Inputs = map[string]string{"item": "embed:8"}
		}
		want := trained(t, ds, o)
		require.Greater(t, *want.Best.TestAcc, 0.7, kind)
		require.Equal(t, "user__buys__item", want.Links.Relation)
		o.Epochs, o.EvalEvery, o.CheckpointEvery = 2, 1, 3
		want = trained(t, ds, o)
		c := o
		c.Cache.HostBytes, c.TopologyBytes, c.Workers, c.Window = 1<<10, 1<<13, 4, 1
		sameWork(t, want, trained(t, ds, c), kind)
		got, err := runOn(context.Background(), half(t, ds, o), ds, o, run.Hooks{})
		require.NoError(t, err)
		sameRun(t, want, got)
		o.EvalBytes, o.EvalNodes = 0, 50
		require.Equal(t, want.Losses, trained(t, ds, o).Losses)
	}
	o := linkOptions()
	o.Kind = model.MLP
	refused(t, ds, o, "{model} mlp is for nodes of one type, and links of user__buys__item join user and item")
	o.Kind, o.Target = model.RSAGE, "rev_buys"
	refused(t, ds, o, "it is the reverse of user__buys__item, which has the edge split; take that one")
}

// TestMeasuredLinks holds a measurement against loops over the rows that the network makes of
// nodes: among given nodes in the place of both ends, in float64, and among given pairs.
func TestMeasuredLinks(t *testing.T) {
	spec := linked(300)
	given, rng := &spec.EdgeSplit.Test, rand.New(rand.NewPCG(5, 6))
	draw := func() (ids []store.NodeID) {
		for range 7 {
			ids = append(ids, store.NodeID(rng.IntN(spec.Nodes)))
		}
		return ids
	}
	for range given.Src {
		given.SrcNegatives, given.DstNegatives = append(given.SrcNegatives, draw()), append(given.DstNegatives, draw())
	}
	pool := &spec.EdgeSplit.Valid
	for range 30 {
		pool.PoolSrc, pool.PoolDst = append(pool.PoolSrc, draw()[0]), append(pool.PoolDst, draw()[0])
	}
	ds := open(t, spec)
	o := linkOptions()
	o.EvalNegatives = "given"
	m := opened(t, ds, o)
	rows := make([][]float32, spec.Nodes)
	all := make([]uint32, spec.Nodes)
	for v := range all {
		all[v] = uint32(v)
	}
	require.NoError(t, m.eval.Each(t.Context(), 1, all, func(chunk []uint32, y kernels.Tensor) error {
		got := m.step.Feed.Download(y)
		for i, v := range chunk {
			rows[v] = append(rows[v], got[i*y.Cols:(i+1)*y.Cols]...)
		}
		return nil
	}))
	// wins is a half where a negative is the link itself.
	wins := func(positive, negative float64) float64 {
		switch {
		case positive > negative:
			return 1
		case positive == negative:
			return 0.5
		}
		return 0
	}
	score := func(u, v store.NodeID) (sum float64) {
		for i, x := range rows[u] {
			sum += float64(x) * float64(rows[v][i])
		}
		return sum
	}

	above, pairs := 0.0, 0.0
	for i, u := range given.Src {
		v := given.Dst[i]
		for j := range given.Src {
			for k := range given.SrcNegatives[j] {
				for _, negative := range []float64{score(given.SrcNegatives[j][k], given.Dst[j]), score(given.Src[j], given.DstNegatives[j][k])} {
					pairs++
					above += wins(score(u, v), negative)
				}
			}
		}
	}
	got, ok, err := m.measure(t.Context(), tasks.Test)
	require.NoError(t, err)
	require.True(t, ok)
	require.InDelta(t, above/pairs, got, 1e-5)

	above = 0
	for i, u := range pool.Src {
		for j := range pool.PoolSrc {
			above += wins(score(u, pool.Dst[i]), score(pool.PoolSrc[j], pool.PoolDst[j]))
		}
	}
	got, _, err = m.measure(t.Context(), tasks.Valid)
	require.NoError(t, err)
	require.InDelta(t, above/float64(len(pool.Src)*len(pool.PoolSrc)), got, 1e-5)
}
