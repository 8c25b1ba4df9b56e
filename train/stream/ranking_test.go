package stream

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// with is a stream that negatives came with, of an event as many as count says, below most: those
// that a network of this seed would draw.
func with(t *testing.T, events int, seed uint64, count func(event int64) int) *store.Dataset {
	plain := drifting(t, events)
	e := plain.Events(0)
	all, err := temporal.Destinations(e, 0, e.Len())
	require.NoError(t, err)
	like := &parts{options: new(run.Options), all: all}
	like.options.Seed = seed
	s := driftingSpec(events, 0)
	s.Negatives = func(event int) (nodes []store.NodeID) {
		phase := validation
		if int64(event) >= s.Split.Train+s.Split.Valid {
			phase = test
		}
		of := like.negatives(phase, 0)
		for j := range count(int64(event)) {
			nodes = append(nodes, of.Of(int64(event), j)-uint32(e.Place(0)))
		}
		return nodes
	}
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// TestRanking holds ranked evaluation against the plain one with as many negatives in a batch,
// whose scores it counts.
func TestRanking(t *testing.T) {
	const most = 12
	count := func(event int64) int { return int(event*7) % (most + 1) } // none at times
	stateless := options(model.TGN)
	stateless.State, stateless.Sampler = run.NoState, run.UniformNeighbors
	apan := options(model.APAN)
	apan.Batch = 7 // lists that go over several steps, and steps of several lists
	for _, o := range []run.Options{options(model.TGN), options(model.JODIE), apan, stateless} {
		o.Epochs = 1
		ds := with(t, 700, o.Seed, count)
		path, _ := trained(t, ds, o)
		for _, among := range []string{"given", "uniform:12"} {
			n := network(t, ds, path, run.Use{EvalNegatives: among})
			begin := func() {
				require.NoError(t, n.eval.restart(t.Context(), n.c.split.Train))
			}
			var want [2]metric.Batched
			begin()
			for i, phase := range []int{validation, test} {
				p := n.c.part(phase)
				p.Each = most
				var all metric.Batches[float32]
				require.NoError(t, n.eval.pass(t.Context(), &p, func(b *temporal.Batch, out temporal.Out) error {
					var first []float32
					for k, score := range out.Positives {
						others := out.Negatives[k*most:][:most]
						first = append(first, others[0])
						if of := count(b.From + int64(k)); among == "given" && of > 0 {
							all.RankAmong(score, others[:of])
						} else if among != "given" {
							all.RankAmong(score, others)
						}
					}
					all.Add(out.Positives, first)
					return nil
				}))
				var err error
				want[i], err = all.Value()
				require.NoError(t, err)
			}
			begin()
			for i, phase := range []int{validation, test} {
				v, ok, err := n.eval.measure(t.Context(), phase, true, nil)
				require.NoError(t, err)
				require.True(t, ok)
				require.Equal(t, want[i], v, "%s, %s, phase %d", o.Kind, among, phase)
				require.Greater(t, v.MRR, 0.1)
			}
			n.Close()
		}
	}
}

// TestMRR: epochs are chosen by MRR, which is reported beside AP, and of what needs no network; no
// setting that may not change results changes it.
func TestMRR(t *testing.T) {
	ds := with(t, 900, 1, func(event int64) int { return 3 + int(event%9) })
	o := options(model.TGN)
	o.Metric = metric.MRR
	want := run1(t, ds, o, run.Hooks{})
	s := want.Stream
	require.Equal(t, "given", s.RankedAmong)
	require.Equal(t, s.Replay.Valid.MRR, *want.Best.ValidAcc, "epochs are judged by what is reported in the end")
	require.Equal(t, s.Replay.Test.MRR, *want.Best.TestAcc)
	for _, h := range s.Heuristics {
		require.Greater(t, h.MRR, 0.1, h.Name)
	}
	require.NotNil(t, s.Replay.New)
	require.Positive(t, s.Replay.New.MRR)
	for _, e := range want.Epochs {
		require.InDelta(t, 0.75, e.TrainAcc, 0.25, "in training among one negative, so that it is from ½ to 1")
	}
	for _, change := range []func(o *run.Options){
		func(o *run.Options) { o.Workers = 2 },
		func(o *run.Options) { o.Cache.HostBytes = 4096 },
		func(o *run.Options) { o.Window, o.Publish = 1, run.Late },
	} {
		other := o
		change(&other)
		require.Equal(t, outcomeOf(want), outcomeOf(run1(t, ds, other, run.Hooks{})))
	}

	// With AP the epochs are judged by AP, and MRR is of the end: training is the same.
	o.Metric = metric.AP
	byAP := run1(t, ds, o, run.Hooks{})
	require.Equal(t, want.ParamsXXH3, byAP.ParamsXXH3)
	require.Equal(t, byAP.Stream.Replay.Valid.AP, *byAP.Best.ValidAcc)
	require.Positive(t, byAP.Stream.Replay.Test.MRR)

	// One drawn negative ranks nothing, and all else stays.
	o.EvalNegatives = "uniform:1"
	plain := run1(t, ds, o, run.Hooks{})
	require.Empty(t, plain.Stream.RankedAmong)
	require.Zero(t, plain.Stream.Replay.Test.MRR)
	unranked := *byAP.Stream.Replay.Test
	unranked.MRR = 0
	require.Equal(t, unranked, *plain.Stream.Replay.Test)
	require.Equal(t, outcomeOf(plain).losses, outcomeOf(byAP).losses)

	// Ranking does not change the scores from live state either.
	o.EvalNegatives, o.Eval, o.Epochs = "", run.LiveState, 1
	byAP = run1(t, ds, o, run.Hooks{})
	o.Metric = metric.MRR
	ranked := run1(t, ds, o, run.Hooks{})
	require.Equal(t, ranked.Stream.Live.Test.MRR, *ranked.Best.TestAcc)
	without := *ranked.Stream.Live.Valid
	require.Positive(t, without.MRR)
	without.MRR = 0
	require.Equal(t, *byAP.Stream.Live.Valid, without)

	o = options(model.JODIE)
	o.Metric, o.EvalNegatives = metric.MRR, "uniform:1"
	drawn := run1(t, ds, o, run.Hooks{})
	require.Equal(t, "uniform:1", drawn.Stream.RankedAmong)
	require.Greater(t, *drawn.Best.ValidAcc, 0.5)
}

func TestRankingRefuses(t *testing.T) {
	ds := drifting(t, 300)
	o := options(model.TGN)
	o.Metric = metric.MRR
	_, err := runOn(t.Context(), nil, "", ds, o, run.Hooks{})
	require.ErrorContains(t, err, "{metric} mrr: no negatives came with it to rank events among; take some that are drawn, {eval_negatives} uniform:100")
	o.Metric, o.EvalNegatives = metric.AP, "given"
	_, err = runOn(t.Context(), nil, "", ds, o, run.Hooks{})
	require.ErrorContains(t, err, "{eval_negatives} given: no negatives came with it")
	for _, bad := range []string{"all", "pairs:1", "uniform", "uniform:0", "given:2"} {
		o.EvalNegatives = bad
		require.ErrorContains(t, o.Validate(), "{eval_negatives} "+bad+": there are given and uniform:N", bad)
	}
	o.EvalNegatives, o.Metric = "uniform:3", metric.Accuracy
	require.ErrorContains(t, o.Validate(), "of streams there are ap, roc-auc and mrr")
}
