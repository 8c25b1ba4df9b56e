package graph

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestLearntOwners: workers that own learnt rows lose what one worker loses, but for the order of
// sums, and end with the same bits under any budget, whether each has the whole dataset or a part.
func TestLearntOwners(t *testing.T) {
	storetest.Long(t)
	ds, none := openTyped(t, storetest.Library(250, 3, 2)), open(t, storetest.Communities(250, 4, 8, 16, 2))
	links, trust := open(t, linked(300)), openTyped(t, storetest.Trust(250, true, false))
	for name, change := range map[string]func(o *run.Options){
		"rsage":    func(*run.Options) {},
		"rgcn":     func(o *run.Options) { o.Kind, o.Optim.Rows = model.RGCN, optim.RowAdamSteps },
		"rgat":     func(o *run.Options) { o.Kind, o.Optim.Rows = model.RGAT, optim.RowAdagrad },
		"hgt":      func(o *run.Options) { o.Kind = model.HGT },
		"no clip":  func(o *run.Options) { o.Optim.ClipNorm = 0 },
		"sampled":  func(o *run.Options) { o.Eval, o.EvalNodes = "sampled", 50 },
		"gcn":      func(o *run.Options) { o.Kind, o.Inputs = model.GCN, map[string]string{"node": "embed:7"} },
		"links":    func(o *run.Options) { *o = linkOptions() },
		"distmult": func(o *run.Options) { *o = linkOptions() },
		"rotate":   func(o *run.Options) { *o = linkOptions() },
		"edges":    func(o *run.Options) { *o = edgeOptions() },
		"history": func(o *run.Options) {
			r := reusing()
			o.History, o.Settings, o.Batch = true, r.Settings, 20
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, whole := learning(), ds
			o.Optim.ClipNorm = 0.01
			change(&o)
			switch name {
			case "gcn":
				whole = none
			case "links", "edges", "distmult", "rotate":
				if whole = links; name == "edges" {
					whole = trust
				}
				o.KeepTargets, o.Optim.ClipNorm = true, 0.01
				o.Inputs = map[string]string{whole.Manifest().NodeTypes[0].Name: "embed:6"}
			}
			// A decay that is added to the gradients shows a wrong scale of theirs.
			o.LR, o.Dropout, o.InputDropout, o.Optim.WeightDecay = 1e-3, 0, 0, 0.1
			if !o.History && name != "rsage" {
				o.Epochs = 1
			}
			if name == "distmult" || name == "rotate" {
				o.Layers, o.Fanouts, o.Decoder = 0, nil, model.Decoder(name)
				o.KeepTargets, o.Optim.WeightDecay = false, 0
			}
			if name == "rotate" {
				o.Negatives, o.Adversarial, o.Reciprocal = "shared:5", 1, true
			}
			want := trained(t, whole, o)
			if slices.Contains([]string{"rsage", "rgat", "links", "history"}, name) {
				require.Equal(t, want.ParamsXXH3, sameBy(t, whole, 1, byParts(o)).ParamsXXH3)
			}
			sizes := []int{3}
			if name == "rsage" {
				sizes = []int{2, 5}
			}
			for _, workers := range sizes {
				got := sameBy(t, whole, workers, byParts(o))
				if !o.History { // whose rows are each worker's own
					require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-5)
					require.InDelta(t, *want.Best.TestAcc, *got.Best.TestAcc, 0.02)
				}
				tight := byParts(o)
				tight.Cache.HostBytes, tight.Cache.Engine, tight.Window, tight.Workers = 9000, "pread", workers, 1
				if o.Task != "" { // these need the whole dataset
					require.Equal(t, got.ParamsXXH3, sameBy(t, whole, workers, tight).ParamsXXH3)
					continue
				}
				all, err := byWorkersOf(t, inParts(t, whole, workers), workers, tight, scratch(t), nil)
				apart := same(t, all, err)
				require.Equal(t, got.ParamsXXH3, apart.ParamsXXH3)
				require.Equal(t, got.Best, apart.Best)
			}
		})
	}
}

// TestLearntOwnersOfLittle: workers that mostly have no seeds change the rows that they own.
func TestLearntOwnersOfLittle(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.EpochSteps, o.Batch, o.Eval, o.EvalNodes, o.LR, o.Dropout, o.InputDropout = 6, 3, "sampled", 5, 3e-5, 0, 0
	want := trained(t, ds, o)
	all, err := byWorkers(t, ds, 7, byParts(o), scratch(t), nil)
	require.InEpsilonSlice(t, want.Losses, same(t, all, err).Losses, 1e-5)
	rows := int64(0)
	for _, r := range all {
		rows += r.Embeddings[0].RowsTouched
	}
	require.Equal(t, want.Embeddings[0].RowsTouched, rows, "each by its owner alone")
}

// TestLearntOwnersResume: a run that is cut short, or whose worker fails, goes on to the bits of
// one without a break. Another number of workers is refused, and as many measure and predict as it
// had.
func TestLearntOwnersResume(t *testing.T) {
	storetest.Long(t)
	ds := openTyped(t, storetest.Library(250, 3, 2))
	o := byParts(learning())
	o.Epochs, o.CheckpointEvery, o.KeepCheckpoints, o.Cache.HostBytes, o.Batch, o.EvalBytes = 4, 3, 2, 9000, 20, 1<<20
	want := sameBy(t, ds, 3, o)
	for name, open := range map[string]func(rank int) (*store.Dataset, error){
		"whole": func(int) (*store.Dataset, error) { return store.Open(ds.Path()) }, "parts": inParts(t, ds, 3),
	} {
		t.Run(name, func(t *testing.T) {
			var path string
			trials := []int{-2, 0} // the worker that fails; below 0: none
			if name == "parts" {
				trials = []int{-1, 2}
			}
			for _, fails := range trials {
				path = filepath.Join(t.TempDir(), "run")
				begin := func() (*run.Dir, error) { return run.Create(path) }
				for ends := 2; ends < 4; ends++ {
					_, err := byWorkersOf(t, open, 3, o, begin, func(w *worker) { w.endAt(ends, fails) })
					if fails < 0 {
						require.NoError(t, err)
					} else {
						require.ErrorContains(t, err, "from the newest checkpoint")
					}
					begin = again(path)
				}
				if fails == -2 {
					dropNewest(t, path) // as if worker 0 was killed before it wrote that one
				}
				resumed, err := byWorkersOf(t, open, 3, o, again(path), nil)
				got := same(t, resumed, err)
				require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
				require.Equal(t, want.Losses, got.Losses)
				require.Equal(t, want.Best, got.Best)
			}
			measured, rows := used(t, open, 3, path)
			require.Equal(t, *want.Best.TestAcc, measured)
			if name == "parts" {
				whole, same := used(t, func(int) (*store.Dataset, error) { return store.Open(ds.Path()) }, 3, path)
				require.Equal(t, measured, whole)
				require.Equal(t, rows, same)
				return
			}
			alone := o
			alone.WorkerOptions = run.WorkerOptions{}
			require.InDelta(t, *trained(t, ds, alone).Best.TestAcc, measured, 0.1)
			require.Len(t, rows, 8*int(ds.Manifest().NodeTypes[0].Count))
			more := o
			more.Epochs = 5
			for _, workers := range []int{1, 2, 4} {
				_, err := byWorkers(t, ds, workers, more, again(path), nil)
				require.ErrorContains(t, err, fmt.Sprintf("learnt rows of 3 workers, and there are %d now; "+
					"go on with {dist} local:3", workers))
			}
			d, err := run.Look(path)
			require.NoError(t, err)
			_, err = OpenNetwork(t.Context(), ds, d, NetworkOptions{}, run.Hooks{})
			require.ErrorContains(t, err, "learnt rows are dealt out among 3 workers")
			require.NoError(t, d.Close())
			require.NoError(t, os.RemoveAll(run.WorkerDir(path, 2)))
			_, err = byWorkers(t, ds, 3, more, again(path), nil)
			require.ErrorContains(t, err, "worker 2 of 3")
			require.ErrorContains(t, err, "the learnt rows of type author")
		})
	}
}

// used measures the test part with the network of the run in path, by as many workers as it had,
// and returns the learnt rows of the first type.
func used(t *testing.T, open func(rank int) (*store.Dataset, error), workers int, path string) (acc float64, rows []float32) {
	t.Helper()
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: workers})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	accs, all := make([]float64, workers), make([][]float32, workers)
	require.NoError(t, host.Run(t.Context(), func(ctx context.Context, g *dist.Group) error {
		ds, err := open(g.Rank())
		if err != nil {
			return err
		}
		defer ds.Close()
		d, err := run.Look(path)
		if err != nil {
			return err
		}
		defer d.Close()
		n, err := OpenNetwork(ctx, ds, d, NetworkOptions{}, run.Hooks{Group: g})
		if err != nil {
			return err
		}
		defer n.Close()
		m, err := n.Measure(ctx, "test")
		if err != nil {
			return err
		}
		accs[g.Rank()] = *m.Value
		var nodes []uint32
		for v := range n.Data().Types[0].Nodes {
			nodes = append(nodes, uint32(v))
		}
		return n.Predict(ctx, Embeddings, 0, 0, nodes, func(_ []uint32, some []float32) error {
			all[g.Rank()] = append(all[g.Rank()], some...)
			return nil
		})
	}))
	for rank := range workers {
		require.Equal(t, accs[0], accs[rank])
		require.Equal(t, all[0], all[rank])
	}
	return accs[0], all[0]
}

// TestLearntOwnersInitRows: each owner begins with its own rows of a file.
func TestLearntOwnersInitRows(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	o := learning()
	o.LR, o.Dropout, o.InputDropout, o.InitRows = 3e-5, 0, 0, map[string]string{"author": "/rows"}
	file := givenRows{cols: 8, row: func(v uint32) (row []float32) {
		for c := range 8 {
			row = append(row, float32(math.Sin(float64(8*v)+float64(c))))
		}
		return row
	}}
	for v := uint32(99); v < 100; v -= 3 {
		file.order = append(file.order, v)
	}
	open := func(string, store.IDs) (run.RowFile, error) { return file, nil }
	want, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{OpenRows: open})
	require.NoError(t, err)
	given := func(w *worker) { w.hooks.OpenRows = open }
	all, err := byWorkers(t, ds, 3, byParts(o), scratch(t), given)
	require.InEpsilonSlice(t, want.Losses, same(t, all, err).Losses, 1e-5)
	_, err = byWorkersOf(t, inParts(t, ds, 3), 3, byParts(o), scratch(t), given)
	require.ErrorContains(t, err, "{init_rows} author=/rows: it names nodes by ids, and a part has ids of its own nodes alone")
}

// TestLearntOwnersRefused: what owners of learnt rows cannot do is refused in a line.
func TestLearntOwnersRefused(t *testing.T) {
	ds := openTyped(t, storetest.Library(400, 3, 2))
	_, err := byWorkers(t, ds, 2, learning(), scratch(t), nil)
	require.ErrorContains(t, err, "{dist} local:9: each worker would change its own copy of learnt rows; take {parallel} parts")
	o := byParts(learning())
	o.KeepCheckpoints = 1000
	_, err = byWorkers(t, ds, 2, o, scratch(t), nil)
	require.ErrorContains(t, err, "where rows are learnt")
}
