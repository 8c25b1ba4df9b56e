package stream

import (
	"context"
	"math/rand/v2"
	"regexp"
	"strconv"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/temporal"
)

// TestPairFeatures: pair features change the result of every network. They are the same with any
// budget, workers and steps drawn together, and after a resume, and the network measures what the
// run did.
func TestPairFeatures(t *testing.T) {
	ds := drifting(t, 600)
	stateless := options(model.TGN)
	stateless.State = run.NoState
	for _, o := range []run.Options{options(model.TGN), options(model.JODIE), options(model.APAN), stateless} {
		if o.State == "" {
			o.Staleness, o.WarmEvents = 3, 70
		}
		without := outcomeOf(run1(t, ds, o, run.Hooks{}))
		o.PairFeatures = true
		path, r := trained(t, ds, o)
		want := outcomeOf(r)
		require.NotEqual(t, without.params, want.params)
		if o.State == "" {
			losses, params, _ := plainLoop(t, ds, o, run.Hooks{})
			require.Equal(t, losses, r.Losses, o.Kind)
			require.Equal(t, params, r.ParamsXXH3, o.Kind)
		}
		m, err := network(t, ds, path, run.Use{}).Measure(t.Context())
		require.NoError(t, err)
		require.Equal(t, *r.Stream.Replay.Test, *m.Replay.Test)

		ranked, err := network(t, ds, path, run.Use{EvalNegatives: "uniform:7"}).Measure(t.Context())
		require.NoError(t, err)
		require.Positive(t, ranked.Replay.Test.MRR)
		require.Equal(t, r.Stream.Replay.Test.AP, ranked.Replay.Test.AP, "ranked among others, it scores its own pairs as before")

		o.Cache.HostBytes, o.Workers, o.Window, o.Publish, o.CheckpointEvery = 0, 2, 3, run.Late, 3
		disk := vfs.NewMem()
		for done := false; !done; {
			ctx, cancel := context.WithCancel(t.Context())
			left := 9
			r, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(int, int, int, float64) {
				if left--; left == 0 {
					cancel()
				}
			}})
			cancel()
			require.NoError(t, err)
			if done = r.Status == run.Done; done {
				require.Equal(t, want, outcomeOf(r), o.Kind)
			}
		}
	}
}

// TestPairScoresAreThoseOfEvaluation: Pairs and evaluation score an event's pair at its time alike.
func TestPairScoresAreThoseOfEvaluation(t *testing.T) {
	ds := evenly(t, 900, 30)
	for _, state := range []string{"", run.NoState} {
		o := options(model.TGN)
		o.PairFeatures, o.State, o.Epochs = true, state, 1
		path, _ := trained(t, ds, o)
		n := network(t, ds, path, run.Use{})
		e := n.c.events
		var want []float32
		var pairs []temporal.Ask
		require.NoError(t, n.eval.restart(t.Context(), n.c.split.Train))
		for _, phase := range []int{validation, test} {
			_, _, err := n.eval.measure(t.Context(), phase, false, func(s *scores) { want = append(want, s.positives...) })
			require.NoError(t, err)
		}
		require.NoError(t, store.Guard(func() error {
			src, dst := e.Ends(n.c.split.Train, e.Len())
			for i, at := range e.Times(n.c.split.Train, e.Len()) {
				pairs = append(pairs, temporal.Ask{Src: src[i], Dst: dst[i], Time: at})
			}
			return nil
		}))
		got, err := n.Scores(t.Context(), pairs)
		require.NoError(t, err)
		require.Equal(t, want, got, "state %q", state)
	}
}

// TestPairFeaturesAreLearnt: on a stream of repeated pairs that the state does not tell, a network
// learns to tell them from pair features.
func TestPairFeaturesAreLearnt(t *testing.T) {
	const nodes, friends = 200, 3
	rng := rand.New(rand.NewPCG(9, 9))
	s := storetest.StreamSpec{Users: nodes, Split: store.StreamSplit{Name: "given", Train: 4200, Valid: 900, Test: 900}}
	for i := range 6000 {
		u := rng.Uint32N(nodes)
		s.Src, s.Dst = append(s.Src, u), append(s.Dst, uint32(sample.Hash(uint64(u), uint64(rng.IntN(friends)))%nodes))
		s.Times = append(s.Times, float64(i))
	}
	ds := streamOf(t, s)
	o := options(model.JODIE)
	o.Epochs, o.LR, o.Identity, o.Batch = 3, 5e-3, 0, 100
	plain := run1(t, ds, o, run.Hooks{})
	require.Subset(t, plain.Stream.AboveNetwork, []string{"pair_seen", "pair_time"})
	o.PairFeatures = true
	told := run1(t, ds, o, run.Hooks{})
	require.Less(t, plain.Stream.Replay.Test.AP, 0.65)
	require.Greater(t, told.Stream.Replay.Test.AP, 0.95)
	require.NotContains(t, told.Stream.AboveNetwork, "pair_time")
}

// TestNoRoomForPairs: the table of pairs counts as memory. A budget that is too small for it is
// refused.
func TestNoRoomForPairs(t *testing.T) {
	ds := evenly(t, 200_000, 3000)
	o := options(model.JODIE)
	o.Batch, o.MemoryBytes = 600, 68<<20
	tr, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	without := tr.budget.Fixed
	tr.Close()
	o.PairFeatures, o.MemoryBytes = true, 1<<30
	tr, err = newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	require.Greater(t, tr.budget.Fixed, without+20*150_000)
	tr.Close()
	o.MemoryBytes = 52 << 20
	_, err = newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.ErrorContains(t, err, "the least that works is ")
	least := regexp.MustCompile(`the least that works is (\d+) MiB`).FindStringSubmatch(err.Error())
	mib, err := strconv.Atoi(least[1])
	require.NoError(t, err)
	o.MemoryBytes = int64(mib) << 20
	tr, err = newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	tr.Close()
}
