package graph

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// runIn trains in a directory, which stays.
func runIn(t *testing.T, ds *store.Dataset, o run.Options) (dir string, r *run.Result) {
	dir = t.TempDir()
	r, err := Run(context.Background(), ds, in(dir), o, "test", run.Hooks{})
	require.NoError(t, err)
	return dir, r
}

func network(t *testing.T, ds *store.Dataset, dir string, o NetworkOptions) *Network {
	d, err := run.Look(dir)
	require.NoError(t, err)
	n, err := OpenNetwork(context.Background(), ds, d, o, run.Hooks{})
	require.NoError(t, err)
	return n
}

func measure(t *testing.T, n *Network, part string) float64 {
	m, err := n.Measure(context.Background(), part)
	require.NoError(t, err)
	require.NotNil(t, m.Value, m.Why)
	return *m.Value
}

// TestNetworkMeasures: a network of a run measures the same as the run did with these weights, also
// with learnt rows and with labels for input. The run can go on afterwards.
func TestNetworkMeasures(t *testing.T) {
	plain := small()
	plain.Epochs, plain.LR = 6, 0.1 // so high that the last epoch is not the best
	labels := small()
	labels.LabelInput, labels.Batch = 4, 32
	learnt := learning()
	learnt.Epochs, learnt.LR = 5, 0.2
	single, library := open(t, storetest.Communities(600, 4, 6, 16, 2)), openTyped(t, storetest.Library(400, 3, 2))
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{"plain": {single, plain}, "labels": {single, labels}, "typed": {library, typed(model.RGCN)}, "learnt": {library, learnt}} {
		t.Run(name, func(t *testing.T) {
			dir, r := runIn(t, c.ds, c.o)
			best := network(t, c.ds, dir, NetworkOptions{})
			require.Equal(t, run.BestWeights, best.Checkpoint)
			require.Equal(t, r.Best.Epoch, best.Epoch)
			require.Equal(t, *r.Best.ValidAcc, measure(t, best, "valid"))
			require.Equal(t, *r.Best.TestAcc, measure(t, best, "test"))
			require.NoError(t, best.Close())

			last := network(t, c.ds, dir, NetworkOptions{Use: run.Use{Checkpoint: run.LastWeights, MemoryBytes: 100 << 20}})
			require.Equal(t, len(r.Epochs), last.Epoch)
			require.Equal(t, *r.Epochs[len(r.Epochs)-1].ValidAcc, measure(t, last, "valid"))
			require.NoError(t, last.Close())

			f1 := network(t, c.ds, dir, NetworkOptions{Metric: metric.MicroF1})
			require.Equal(t, *r.Best.TestAcc, measure(t, f1, "test"), "with one class a node micro-F1 is accuracy")
			require.NoError(t, f1.Close())

			d, _, err := run.Open(dir)
			require.NoError(t, err)
			c.o.Epochs++
			again, err := Run(context.Background(), c.ds, func() (*run.Dir, error) { return d, nil }, c.o, "test", run.Hooks{})
			require.NoError(t, err)
			require.Equal(t, trained(t, c.ds, c.o).ParamsXXH3, again.ParamsXXH3)
		})
	}
}

// TestNetworkMeasuresLinks: a network of links comes to what the run reported of it, within one
// type and between two, with learnt rows, on a part of the links, by lists and by pairs; and to
// more on the links that it saw.
func TestNetworkMeasuresLinks(t *testing.T) {
	plain := linkOptions()
	plain.Epochs, plain.Decoder = 4, model.PairMLP
	few := linkOptions()
	few.Metric, few.EvalEdges, few.Corrupt, few.EvalNegatives, few.Decoder = metric.MRR, 30, "both", "uniform:20", model.DistMult
	typed := linkOptions()
	typed.Kind, typed.Target, typed.Inputs = model.RSAGE, "user,buys,item", map[string]string{"item": "embed:8"}
	single, between := open(t, linked(500)), openTyped(t, shop(rand.New(rand.NewPCG(3, 4))))
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{"plain": {single, plain}, "few": {single, few}, "typed": {between, typed}} {
		t.Run(name, func(t *testing.T) {
			dir, r := runIn(t, c.ds, c.o)
			best := network(t, c.ds, dir, NetworkOptions{})
			require.Equal(t, r.Best.Epoch, best.Epoch)
			require.Equal(t, *r.Best.ValidAcc, measure(t, best, "valid"))
			require.Equal(t, *r.Best.TestAcc, measure(t, best, "test"))
			m, err := best.Measure(t.Context(), "train")
			require.NoError(t, err)
			require.Positive(t, *m.Value)
			require.Equal(t, *m.Value, measure(t, best, "train"))
			if c.o.EvalEdges > 0 {
				require.Equal(t, c.o.EvalEdges, m.Count)
			} else {
				require.Equal(t, max(r.Links.Valid, r.Links.Test), m.Count)
			}
			_, err = best.Measure(t.Context(), "all-labelled")
			require.ErrorContains(t, err, "{nodes} all-labelled: links have the parts train, valid and test")
			require.NoError(t, best.Close())

			last := network(t, c.ds, dir, NetworkOptions{Use: run.Use{Checkpoint: run.LastWeights, EvalNegatives: "pairs:2", MemoryBytes: 200 << 20}, Metric: metric.AP})
			require.Equal(t, metric.AP, last.Metric())
			require.Positive(t, measure(t, last, "test"))
			require.NoError(t, last.Close())
		})
	}
	dir, _ := runIn(t, single, plain)
	d, err := run.Look(dir)
	require.NoError(t, err)
	for want, o := range map[string]NetworkOptions{
		"{metric} macro-f1: it learns links, of which there are roc-auc":     {Metric: metric.MacroF1},
		"{metric} mrr ranks each link among negatives of its own":            {Metric: metric.MRR},
		"{eval_negatives} given: relation node__to__node, valid links: none": {Use: run.Use{EvalNegatives: "given"}},
	} {
		_, err := OpenNetwork(t.Context(), single, d, o, run.Hooks{})
		require.ErrorContains(t, err, want)
	}
}

// TestNetworkMeasuresGivenNegatives: links of training have none, which is said, and the others
// have theirs.
func TestNetworkMeasuresGivenNegatives(t *testing.T) {
	spec := linked(300)
	for _, h := range []*storetest.HeldEdges{&spec.EdgeSplit.Valid, &spec.EdgeSplit.Test} {
		h.PoolSrc, h.PoolDst = h.Dst, h.Src
	}
	ds := open(t, spec)
	dir, r := runIn(t, ds, linkOptions())
	require.Equal(t, "given", r.Links.EvalNegatives)
	n := network(t, ds, dir, NetworkOptions{})
	defer n.Close()
	require.Equal(t, *r.Best.TestAcc, measure(t, n, "test"))
	m, err := n.Measure(t.Context(), "train")
	require.NoError(t, err)
	require.Nil(t, m.Value)
	require.Contains(t, m.Why, "train links: none are given; take pairs:1, or uniform:1000")
}

// TestNetworkRefusals: each in one line, with what to do.
func TestNetworkRefusals(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Epochs = 1
	dir, _ := runIn(t, ds, o)
	refused := func(dir string, ds *store.Dataset, o NetworkOptions, want string) {
		t.Helper()
		d, err := run.Look(dir)
		if err == nil {
			_, err = OpenNetwork(context.Background(), ds, d, o, run.Hooks{})
		}
		require.ErrorContains(t, err, want)
		require.NotContains(t, err.Error(), "\n")
		require.LessOrEqual(t, strings.Count(err.Error(), "run "+dir+":"), 1, err.Error())
	}
	refused(dir, open(t, storetest.Communities(300, 3, 6, 9, 3)), NetworkOptions{}, "has no table feat of type node with 8 columns")
	refused(dir, open(t, storetest.Communities(300, 4, 6, 8, 3)), NetworkOptions{}, "has no label of type node with 3 classes")
	refused(dir, openTyped(t, storetest.Library(400, 3, 2)), NetworkOptions{}, "has no node type node")
	refused(dir, ds, NetworkOptions{Use: run.Use{Checkpoint: "first"}}, "{checkpoint} first: there are best and last")
	refused(dir, ds, NetworkOptions{Metric: metric.AP}, "{metric} ap: it learns classes of nodes, of which there are accuracy")
	refused(dir, ds, NetworkOptions{Metric: "best"}, "{metric} best: there are accuracy, micro-f1, macro-f1 and roc-auc, of numbers rmse and mae, and of links roc-auc")
	refused(dir, ds, NetworkOptions{Use: run.Use{EvalNegatives: "pairs:1"}}, "{eval_negatives} pairs:1: it learns classes of nodes")
	refused(dir, ds, NetworkOptions{Use: run.Use{MemoryBytes: 1 << 20}}, "is not enough")
	refused(t.TempDir(), ds, NetworkOptions{}, "it holds no run")
	refused(dir+"-none", ds, NetworkOptions{}, "no such run directory")
	learnt := learning()
	learnt.Epochs = 1
	library := openTyped(t, storetest.Library(400, 3, 2))
	embedded, _ := runIn(t, library, learnt)
	refused(embedded, openTyped(t, storetest.Library(500, 3, 2)), NetworkOptions{}, "50 of the 250 nodes of type author in ")
	refused(embedded, openTyped(t, storetest.Library(500, 3, 2)), NetworkOptions{}, "has no such ids; the first is 200; leave them out, or take {unseen} mean")
	refused(embedded, library, NetworkOptions{Unseen: "zero"}, "{unseen} zero: there is mean")
	o.Epochs, learnt.Epochs = 0, 0
	unlearnt, _ := runIn(t, library, learnt)
	refused(unlearnt, openTyped(t, storetest.Library(500, 3, 2)), NetworkOptions{Unseen: MeanOfLearnt}, "it was started with {epochs} 0")
	fresh, _ := runIn(t, ds, o)
	refused(fresh, ds, NetworkOptions{}, "it was started with {epochs} 0, so it has no checkpoint; train it with gnnstore train {resume} {run} ")

	o.Epochs = 1
	unchosen := storetest.Communities(300, 3, 6, 8, 3)
	unchosen.Valid = nil
	ds = open(t, unchosen)
	dir, _ = runIn(t, ds, o)
	refused(dir, ds, NetworkOptions{Use: run.Use{Checkpoint: run.BestWeights}}, "validation has chosen no weights; take {checkpoint} last")
	last := network(t, ds, dir, NetworkOptions{})
	require.Equal(t, run.LastWeights, last.Checkpoint)
	require.NoError(t, last.Close())
}
