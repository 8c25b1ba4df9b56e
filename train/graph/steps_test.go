package graph

import (
	"context"
	"math"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// still is a rate at which no weight changes.
const still = 1e-30

// TestEpochsDiffer: the batches of an epoch come from its own order of seeds, and each is drawn by
// its own step, counted over all epochs. Their reads show that.
func TestEpochsDiffer(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 6, 4, 1))
	o := small()
	o.LR, o.EvalEvery, o.Epochs, o.Fanouts = still, 100, 4, []int{1, 1}
	for _, batch := range []int{500, 3000} {
		for _, kappa := range []int{1, 3} {
			o.Batch, o.Kappa = batch, kappa
			r := trained(t, ds, o)
			d := mustData(t, ds)
			s := sample.NewSampler(sample.AtHand(d.Relations[0].Graph), sample.Config{Fanouts: o.Fanouts}, 1)
			steps := (len(d.Train) + batch - 1) / batch
			read := map[int64]bool{}
			for _, e := range r.Epochs {
				seeds := slices.Clone(d.Train)
				sample.Shuffle(seeds, o.Seed, e.Epoch)
				var b sample.Batch
				var rows int64
				for step := range steps {
					z := sample.Schedule{Seed: o.Seed, Kappa: kappa}.At((e.Epoch-1)*steps + step)
					require.NoError(t, s.SampleOne(context.Background(), &b, z, seeds[step*batch:min((step+1)*batch, len(seeds))]))
					rows += int64(len(b.Inputs()[0]))
				}
				require.Equal(t, rows, e.InputRows, "batch %d, κ %d, epoch %d", batch, kappa, e.Epoch)
				read[rows] = true
			}
			if kappa == 1 {
				require.Greater(t, len(read), 1, "batch %d: every epoch draws other neighbours", batch)
			}
		}
	}
}

// TestDropoutChanges: with weights that stay, the loss of a network without neighbours depends on
// the dropped elements: others in each epoch, and others in each step.
func TestDropoutChanges(t *testing.T) {
	ds := open(t, storetest.Communities(400, 4, 2, 16, 1))
	o := small()
	o.Kind, o.LR, o.EvalEvery, o.Epochs, o.Dropout = model.MLP, still, 100, 2, 0
	whole := o
	whole.Batch = 400
	one, cut := trained(t, ds, whole), trained(t, ds, o)
	require.Equal(t, 1, one.Epochs[0].Steps)
	require.Greater(t, cut.Epochs[0].Steps, 1)
	require.InDelta(t, one.Losses[0], one.Losses[1], 1e-6, "nothing is dropped")
	require.InDelta(t, one.Losses[0], cut.Losses[0], 1e-6)

	o.InputDropout, whole.InputDropout = 0.5, 0.5
	one, cut = trained(t, ds, whole), trained(t, ds, o)
	apart := func(a, b float64) { require.Greater(t, math.Abs(a-b), 1e-4) }
	apart(one.Losses[0], one.Losses[1])
	apart(cut.Losses[0], cut.Losses[1])
	apart(one.Losses[0], cut.Losses[0]) // the first steps of both drop alike
}

// TestRateOfEachStep: half a cosine over two steps has the rates of halving after the first one.
func TestRateOfEachStep(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Batch, o.Epochs = 300, 2 // of one step each
	o.Schedule = optim.Schedule{Kind: optim.Cosine}
	cosine := trained(t, ds, o)
	o.Schedule = optim.Schedule{Kind: optim.Step, Every: 1, Gamma: 0.5}
	require.Equal(t, cosine.ParamsXXH3, trained(t, ds, o).ParamsXXH3)

	// The last step of the epoch before a drop has the rate from before.
	o.Batch, o.Schedule = 50, optim.Schedule{Kind: optim.Step, Every: 1, Gamma: still}
	dropped := trained(t, ds, o)
	o.Epochs, o.Schedule = 1, optim.Schedule{}
	require.Equal(t, trained(t, ds, o).ParamsXXH3, dropped.ParamsXXH3)
}

// TestTrainAccuracy: with weights that stay, the training accuracy and the loss of an epoch are the
// figures of all training nodes, however they are cut into batches.
func TestTrainAccuracy(t *testing.T) {
	for name, spec := range map[string]storetest.Spec{
		"a class a node": storetest.Communities(500, 4, 2, 16, 1), "several": several(500),
	} {
		ds := open(t, spec)
		o := small()
		o.Kind, o.LR, o.Epochs, o.Dropout = model.MLP, still, 2, 0
		nodes := len(mustData(t, ds).Train)
		m := opened(t, ds, o)
		want, ok, err := m.eval.Measure(context.Background(), m.data.Seeds(m.data.Train))
		require.NoError(t, err)
		require.True(t, ok)
		require.Greater(t, want, 0.05, name)
		o.Batch = nodes
		loss := trained(t, ds, o).Losses[0]
		for _, batch := range []int{1000, 64, 7} {
			o.Batch = batch
			r := trained(t, ds, o)
			for _, e := range r.Epochs {
				require.Equal(t, (nodes+batch-1)/batch, e.Steps, name)
				require.EqualValues(t, nodes, e.InputRows, name)
				require.InDelta(t, want, e.TrainAcc, 1e-12, "%s, batch %d", name, batch)
				require.InDelta(t, loss, e.Loss, 1e-5, "%s, batch %d", name, batch)
			}
		}
	}
}

// TestGradientsAreMeans: the gradient of a batch is the gradient of its mean loss. Adam divides by
// the size of gradients, so only a decay added to them shows it.
func TestGradientsAreMeans(t *testing.T) {
	ds := open(t, storetest.Communities(400, 4, 4, 16, 1))
	o := small()
	o.Optim.WeightDecay = 0.1
	plain := trained(t, ds, o)
	o.ClassWeights = "2,2,2,2" // means are over weights then
	require.InDeltaSlice(t, plain.Losses, trained(t, ds, o).Losses, 1e-4)
}

// opened returns the trainer of a run before it begins, without a directory.
func opened(t *testing.T, ds *store.Dataset, o run.Options) *trainer {
	m, err := newTrainer(context.Background(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	t.Cleanup(m.Close)
	return m
}

// TestCountersAreNotExchanged: a run reports each counter of its tiers under the same name.
func TestCountersAreNotExchanged(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	o.TopologyBytes = 9 << 10
	m := opened(t, ds, o)
	m.tiers.Topology[0].Count(500, 3)
	s, got := m.tiers.Topology[0].Stats(), run.TopologyOf(m.tiers)
	require.Equal(t, cachetier.Tier{
		CapacityBytes: s.ResidentBytes, UsedBytes: s.ResidentBytes, CapacityRows: s.ResidentLists, UsedRows: s.ResidentLists,
		IndexBytes: s.OffsetBytes, RowsHit: s.Hits, RowsMissed: s.Misses, BytesRead: s.Warmup.BytesRead,
	}, got.Tier)
	require.Greater(t, s.Hits, s.Misses)
	require.NotEqual(t, s.ResidentBytes, s.OffsetBytes)
	require.Equal(t, s.TotalLists, got.Lists)

	o.TopologyBytes = small().TopologyBytes
	o.Cache = cachetier.Options{}
	for _, e := range trained(t, ds, o).Epochs {
		require.Zero(t, e.HitRate, "every row is read")
		require.Zero(t, e.HostRows)
		require.GreaterOrEqual(t, e.DiskBytes, e.InputRows)
	}
	o.Cache = cachetier.Options{HostBytes: 1 << 30}
	for _, e := range trained(t, ds, o).Epochs {
		require.Equal(t, 1.0, e.HitRate, "none is")
		require.Equal(t, e.InputRows, e.HostRows+e.DeviceRows)
		require.Zero(t, e.DiskBytes)
	}
}
