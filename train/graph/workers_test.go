package graph

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/partition"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// worker has what a test may change of a worker before it begins.
type worker struct {
	rank  int
	stop  func() // asks all to stop
	o     run.Options
	hooks run.Hooks
	internal
}

// endAt ends the run at step 2 of an epoch. From there the worker of rank fails cannot read its
// files; if fails is negative, worker 1 asks all to stop.
func (w *worker) endAt(epoch, fails int) {
	var fail atomic.Bool
	w.hooks.Step = func(at, step, _ int, _ float64) {
		switch {
		case at < epoch || step != 2:
		case fails == w.rank:
			fail.Store(true)
		case fails < 0 && w.rank == 1:
			w.stop()
		}
	}
	w.faults = func(int, int64, int) (f disk.Fault) {
		if fail.Load() {
			f.Errno = syscall.EIO
		}
		return f
	}
}

// tight gives the worker too little memory for the lists and rows of ds, which it reads from disk.
func (w *worker) tight(ds *store.Dataset) {
	least, workers := outOfCore(ds, "pread"), w.hooks.Group.Size()
	w.o.Options = least.Options
	w.o.Window, w.o.Workers, w.o.TopologyBytes = workers, 1, least.TopologyBytes*int64(workers)
}

// byWorkers trains ds by workers that each open it, in the run directory that dirs opens for worker
// 0. each may change what a worker does.
func byWorkers(
	t *testing.T, ds *store.Dataset, workers int, o run.Options, openDir func() (*run.Dir, error), each func(w *worker),
) ([]*run.Result, error) {
	whole := func(int) (*store.Dataset, error) { return store.Open(ds.Path()) }
	return byWorkersOf(t, whole, workers, o, openDir, each)
}

// byWorkersOf is byWorkers for workers that each open a dataset of their own.
func byWorkersOf(
	t *testing.T, open func(rank int) (*store.Dataset, error), workers int, o run.Options, openDir func() (*run.Dir, error),
	each func(w *worker),
) ([]*run.Result, error) {
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: workers, Timeout: time.Minute})
	require.NoError(t, err)
	defer func() { require.NoError(t, host.Close()) }()
	results := make([]*run.Result, workers)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	return results, host.Run(ctx, func(ctx context.Context, g *dist.Group) error {
		own, err := open(g.Rank())
		if err != nil {
			return err
		}
		defer own.Close()
		w := &worker{rank: g.Rank(), stop: stop, o: o, hooks: run.Hooks{Group: g}}
		w.o.Dist = "local:9" // the group has their number
		if each != nil {
			each(w)
		}
		r, err := runWith(ctx, own, openDir, w.o, "test", w.hooks, w.internal)
		results[g.Rank()] = r
		return err
	})
}

// again opens the run directory path to resume its run.
func again(path string) func() (*run.Dir, error) {
	return func() (*run.Dir, error) {
		d, _, err := run.Open(path)
		return d, err
	}
}

// sameBy trains ds by workers, whose results must be the same, and returns the first one's.
func sameBy(t *testing.T, ds *store.Dataset, workers int, o run.Options) *run.Result {
	t.Helper()
	all, err := byWorkers(t, ds, workers, o, scratch(t), nil)
	return same(t, all, err)
}

// same returns the first of the results of workers, which must be the same.
func same(t *testing.T, all []*run.Result, err error) *run.Result {
	t.Helper()
	require.NoError(t, err)
	for _, r := range all {
		require.Equal(t, all[0].ParamsXXH3, r.ParamsXXH3)
		require.Equal(t, all[0].Losses, r.Losses)
		require.Equal(t, all[0].Best, r.Best)
		require.Equal(t, all[0].Status, r.Status)
	}
	return all[0]
}

// TestWorkersAlike: one worker that exchanges with itself has the bits of one that trains alone;
// several end alike, and as they do under any budget.
func TestWorkersAlike(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := small()
	o.Epochs = 2
	alone := trained(t, ds, o)
	one := sameBy(t, ds, 1, o)
	require.Equal(t, alone.ParamsXXH3, one.ParamsXXH3)
	require.Equal(t, alone.Best, one.Best)
	for _, workers := range []int{2, 3, 5} {
		want := sameBy(t, ds, workers, o)
		require.NotEqual(t, alone.ParamsXXH3, want.ParamsXXH3, "the order of sums")
		require.InDelta(t, alone.Losses[0], want.Losses[0], 0.02)
		tight := outOfCore(ds, "pread")
		tight.Window, tight.Workers, tight.TopologyBytes = workers, 1, tight.TopologyBytes*int64(workers)
		require.Equal(t, want.ParamsXXH3, sameBy(t, ds, workers, tight).ParamsXXH3)
		tight.Eval, tight.EvalBytes = "full", 1<<10 // hidden rows are on disk, and workers evaluate alone
		require.Equal(t, want.ParamsXXH3, sameBy(t, ds, workers, tight).ParamsXXH3)
	}
}

// TestWorkersNearOne: by a rate so low that rounding stays small, workers lose what one worker
// loses.
func TestWorkersNearOne(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for name, change := range map[string]func(o *run.Options){
		"sage":    func(*run.Options) {},
		"gcn":     func(o *run.Options) { o.Kind = "gcn" },
		"gat":     func(o *run.Options) { o.Kind = "gat" },
		"sampled": func(o *run.Options) { o.Eval, o.Batch = "sampled", 16 }, // several steps a part
		"weights": func(o *run.Options) { o.ClassWeights = "balanced" },
		"labor0":  func(o *run.Options) { draws["labor0 smoothed"](o) },
		"clip":    func(o *run.Options) { o.Optim.ClipNorm = 0.01 },
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			change(&o)
			o.Epochs, o.LR, o.Dropout = 1, 3e-5, 0
			want := trained(t, ds, o)
			still := o
			still.LR = 1e-30 // weights keep their bits
			first := trained(t, ds, still)
			for _, workers := range []int{2, 4} {
				got := sameBy(t, ds, workers, o)
				require.InEpsilon(t, want.Losses[0], got.Losses[0], 1e-5)
				require.Equal(t, want.Epochs[0].TrainAcc, got.Epochs[0].TrainAcc)
				require.InDelta(t, *want.Best.ValidAcc, *got.Best.ValidAcc, 0.02)
				// Logits have the same bits: so have the losses of rows, but for the order of their
				// sum.
				got = sameBy(t, ds, workers, still)
				require.InEpsilon(t, first.Losses[0], got.Losses[0], 1e-12)
				require.Equal(t, *first.Best.ValidAcc, *got.Best.ValidAcc)
				require.Equal(t, *first.Best.TestAcc, *got.Best.TestAcc)
			}
		})
	}
}

// TestWorkersResume: a run of workers that is cut short goes on to the same bits, and one that goes
// on with another number of workers says so.
func TestWorkersResume(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	o.Epochs, o.CheckpointEvery, o.EvalBytes = 3, 2, 1<<20
	want := sameBy(t, ds, 3, o)
	for _, workers := range []int{3, 2, 1} {
		path := filepath.Join(t.TempDir(), "run")
		stopped, err := byWorkers(t, ds, 3, o, func() (*run.Dir, error) { return run.Create(path) },
			func(w *worker) {
				w.hooks.Step = func(epoch, step, _ int, _ float64) {
					if w.rank == 1 && epoch == 2 && step == 2 {
						w.stop() // while all are at work
					}
				}
			})
		require.NoError(t, err)
		for _, r := range stopped {
			require.Equal(t, run.Interrupted, r.Status)
			require.Equal(t, stopped[0].ParamsXXH3, r.ParamsXXH3)
		}
		var notes []string
		resumed, err := byWorkers(t, ds, workers, o, again(path), func(w *worker) {
			if w.rank == 0 {
				w.hooks.Note = func(s string) { notes = append(notes, s) }
			}
		})
		require.NoError(t, err)
		const changed = "the run began with 3 workers and goes on with"
		if workers == 3 {
			for rank, r := range resumed {
				require.Equal(t, want.ParamsXXH3, r.ParamsXXH3)
				require.Equal(t, want.Losses, r.Losses)
				require.Equal(t, want.Best, r.Best, rank)
			}
			require.NotContains(t, notes, changed)
			require.Equal(t, want.InputRows, resumed[0].InputRows)
		} else {
			require.InDelta(t, want.Losses[2], resumed[0].Losses[2], 0.05)
			require.Contains(t, notes, changed+" "+string(rune('0'+workers))+": results will differ in their last bits")
		}
	}
}

// TestWorkersFail: if a worker cannot read, all end, worker 0 has a checkpoint of the last step,
// and the run goes on from there to the same bits.
func TestWorkersFail(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := outOfCore(ds, "pread")
	o.Epochs, o.Cache.HostBytes, o.Window, o.TopologyBytes = 3, 1<<10, 1, 3*o.TopologyBytes
	want := sameBy(t, ds, 3, o)
	for bad := range 3 {
		path := filepath.Join(t.TempDir(), "run")
		_, err := byWorkers(t, ds, 3, o, func() (*run.Dir, error) { return run.Create(path) },
			func(w *worker) {
				if w.rank == bad {
					var at atomic.Bool
					w.hooks.Step = func(epoch, _, _ int, _ float64) { at.Store(epoch == 2) }
					w.faults = func(int, int64, int) (f disk.Fault) {
						if at.Load() {
							f.Errno = syscall.EIO
						}
						return f
					}
				}
			})
		require.ErrorContains(t, err, "worker ")
		require.ErrorContains(t, err, "go on with gnnstore train {resume} {run} "+path)
		resumed, err := byWorkers(t, ds, 3, o, again(path), nil)
		require.NoError(t, err)
		require.Equal(t, want.ParamsXXH3, resumed[0].ParamsXXH3)
		require.Equal(t, want.Losses, resumed[2].Losses)
	}
}

// TestWorkersUnlike: workers that would not compute the same are refused, with what differs.
func TestWorkersUnlike(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	other := open(t, storetest.Communities(600, 4, 8, 16, 3))
	o := small()
	_, err := byWorkers(t, ds, 2, o, scratch(t), func(w *worker) { w.o.LR *= float64(1 + w.rank) })
	require.ErrorContains(t, err, "worker 1 of 2")
	require.ErrorContains(t, err, "{lr} is 0.")
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: 2})
	require.NoError(t, err)
	err = host.Run(t.Context(), func(ctx context.Context, g *dist.Group) error {
		sets := []*store.Dataset{ds, other}
		_, err := Run(ctx, sets[g.Rank()], scratch(t), o, "test", run.Hooks{Group: g})
		return err
	})
	require.ErrorContains(t, err, "its dataset has seal")
}

// TestWorkersTasks: in every task the gradients of workers are the gradients of one worker. Adam
// divides by the size of gradients, so only a decay added to them shows a wrong scale. Where a step
// leaves out the edges that it learns, each worker leaves out its own alone, so their batches
// differ a little.
func TestWorkersTasks(t *testing.T) {
	storetest.Long(t)
	links, trust := open(t, linked(300)), openTyped(t, storetest.Trust(250, true, false))
	nodes, parts := open(t, storetest.Communities(300, 4, 8, 16, 2)), map[string]func(int) (*store.Dataset, error){}
	dense := open(t, storetest.Communities(40, 1, 8, 12, 2).Linked())
	for name, c := range map[string]struct {
		ds     *store.Dataset
		o      run.Options
		change func(o *run.Options)
	}{
		"nodes":         {nodes, small(), func(*run.Options) {}},
		"class weights": {nodes, small(), func(o *run.Options) { o.ClassWeights = "1,2,3,4" }},
		"several":       {open(t, several(300)), small(), func(*run.Options) {}},
		"node numbers":  {open(t, priced(300)), small(), func(*run.Options) {}},
		"labels":        {nodes, small(), func(o *run.Options) { o.LabelInput = 8 }},
		"links":         {links, linkOptions(), func(*run.Options) {}},
		"links ce":      {links, linkOptions(), func(o *run.Options) { o.Loss, o.Negatives, o.Corrupt = "ce", "uniform:3", "both" }},
		"shared":        {links, linkOptions(), func(o *run.Options) { o.Negatives, o.Chunk = "shared:5", 40 }},
		"shared ce":     {links, linkOptions(), func(o *run.Options) { o.Negatives, o.Chunk, o.Loss = "shared:5", 30, "ce" }},
		"in-batch":      {links, linkOptions(), func(o *run.Options) { o.Negatives, o.Chunk, o.Decoder = "in-batch", 50, "mlp" }},
		"n3":            {links, linkOptions(), func(o *run.Options) { o.Decoder, o.N3 = "distmult", 0.1 }},
		"transe": {links, linkOptions(), func(o *run.Options) {
			o.Decoder, o.Negatives, o.Adversarial = "transe", "uniform:3", 1
		}},
		"rotate": {links, linkOptions(), func(o *run.Options) {
			o.Decoder, o.Negatives, o.Adversarial, o.Chunk = "rotate", "shared:5", 1, 40
		}},
		"reciprocal": {links, linkOptions(), func(o *run.Options) {
			o.Decoder, o.Reciprocal, o.N3 = "distmult", true, 0.1
		}},
		"filtered":     {links, linkOptions(), func(o *run.Options) { o.Negatives, o.Corrupt = "filtered:2", "both" }},
		"ranked":       {links, linkOptions(), func(o *run.Options) { o.EvalNegatives, o.Metric = "all", "mrr" }},
		"dense":        {dense, linkOptions(), func(o *run.Options) { o.Negatives = "filtered:9" }},
		"edges":        {trust, edgeOptions(), func(*run.Options) {}},
		"edge weights": {trust, edgeOptions(), func(o *run.Options) { o.EdgeLabel, o.ClassWeights = "rating", "balanced" }},
		"edge numbers": {trust, edgeOptions(), func(o *run.Options) { o.EdgeLabel = "rating:value" }},
	} {
		if parts[c.ds.Path()] == nil {
			parts[c.ds.Path()] = inParts(t, c.ds, 3)
		}
		t.Run(name, func(t *testing.T) {
			o, in := c.o, func(names ...string) bool { return slices.Contains(names, name) }
			c.change(&o)
			o.Epochs, o.LR, o.Dropout, o.Optim.WeightDecay, o.KeepTargets = 1, 1e-3, 0, 0.1, o.Task != ""
			if in("nodes", "links", "edges") {
				o.Epochs = 2
			}
			want, got := trained(t, c.ds, o), sameBy(t, c.ds, 3, o)
			require.InEpsilonSlice(t, want.Losses, got.Losses, 1e-4)
			few := o // workers without seeds take part, from the first batch on
			few.Epochs, few.EpochSteps, few.Batch = 1, 3, 4
			if few.Eval = "sampled"; o.Task == "" {
				few.EvalNodes = 5
			} else {
				few.EvalEdges = 5
			}
			fewGot := sameBy(t, c.ds, 7, few)
			require.InEpsilonSlice(t, trained(t, c.ds, few).Losses, fewGot.Losses, 1e-4)
			if in("links", "shared", "in-batch", "filtered", "reciprocal", "edges", "edge numbers") {
				left := o
				left.KeepTargets = false
				require.InEpsilonSlice(t, trained(t, c.ds, left).Losses, sameBy(t, c.ds, 2, left).Losses, 0.03)
			}
			o, few = byParts(o), byParts(few)
			all, err := byWorkersOf(t, parts[c.ds.Path()], 3, o, scratch(t), nil)
			divided := same(t, all, err)
			require.Equal(t, got.ParamsXXH3, divided.ParamsXXH3)
			if in("several", "labels", "links", "ranked", "edges", "edge numbers") { // TestPartsAlike has nodes
				owned := sameBy(t, c.ds, 3, o)
				require.Equal(t, owned.ParamsXXH3, divided.ParamsXXH3)
				require.Equal(t, owned.Losses, divided.Losses)
				require.Equal(t, owned.Best, divided.Best)
				require.Equal(t, owned.Links, divided.Links)
				require.Equal(t, owned.Edges, divided.Edges)
				require.Equal(t, owned.Baseline, divided.Baseline)
			}
			if in("filtered", "ranked", "edge weights") {
				testRanges(t, c.ds, 3, o, name == "filtered")
			}
			if in("filtered") {
				all, err = byWorkersOf(t, parts[c.ds.Path()], 3, o, scratch(t), func(w *worker) { w.tight(c.ds) })
				require.Equal(t, got.ParamsXXH3, same(t, all, err).ParamsXXH3)
			}
			if in("links", "shared ce", "in-batch", "filtered", "reciprocal", "edge weights") {
				all, err = byWorkersOf(t, inParts(t, c.ds, 7), 7, few, scratch(t), nil)
				require.Equal(t, fewGot.ParamsXXH3, same(t, all, err).ParamsXXH3)
			}
		})
	}
}

// TestWorkersBegunAnew: a run that was killed before it was on record begins anew in the
// directories that it left, and one on another machine is not written over.
func TestWorkersBegunAnew(t *testing.T) {
	ds := open(t, storetest.Communities(200, 4, 8, 16, 2))
	o := small()
	o.Epochs = 1
	path := filepath.Join(t.TempDir(), "run")
	for _, dir := range []string{path, run.WorkerDir(path, 1)} {
		d, err := run.Create(dir)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	_, err := byWorkers(t, ds, 2, o, again(path), nil)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(path, run.RecordFile)))
	require.NoError(t, os.RemoveAll(filepath.Join(path, run.CheckpointDir)))
	for _, name := range []string{run.ResultFile, run.BestFile, run.LastFile, run.EncodingsFile, run.TrainedOnFile} {
		_ = os.Remove(filepath.Join(path, name))
	}
	_, err = byWorkers(t, ds, 2, o, again(path), nil)
	require.ErrorContains(t, err, "worker 1 of 2")
	require.ErrorContains(t, err, run.WorkerDir(path, 1)+": it holds a run; choose another with {run}")
}

// TestWorkersMemory: workers that share too little memory name the least that works for all.
func TestWorkersMemory(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := small()
	o.Epochs, o.MemoryBytes = 1, 30<<20
	greedy := func(w *worker) {
		if w.rank == 1 {
			w.o.BatchBytes = 9 << 20 // 3 MiB for each
		}
	}
	_, err := byWorkers(t, ds, 3, o, scratch(t), greedy)
	require.ErrorContains(t, err, "worker 1 of 3")
	require.ErrorContains(t, err, "{memory_bytes} 30 MiB for 3 workers is not enough")
	least := regexp.MustCompile(`the least that works is (\d+) MiB \(each: memory `).FindStringSubmatch(err.Error())
	require.NotNil(t, least, err)
	mib, err := strconv.ParseInt(least[1], 10, 64)
	require.NoError(t, err)
	o.MemoryBytes = mib << 20
	_, err = byWorkers(t, ds, 3, o, scratch(t), greedy)
	require.NoError(t, err)
	o.MemoryBytes = (mib - 3) << 20
	_, err = byWorkers(t, ds, 3, o, scratch(t), greedy)
	require.ErrorContains(t, err, "the least that works is "+least[1]+" MiB")
}

// byParts returns o for workers that own nodes.
func byParts(o run.Options) run.Options {
	o.Parallel = run.ByParts
	return o
}

// TestPartsAlike: workers that own nodes end with the bits of workers that read whatever they need,
// in every network, under any budget, and each reads its own rows alone.
func TestPartsAlike(t *testing.T) {
	storetest.Long(t)
	one, library := open(t, storetest.Communities(450, 4, 8, 24, 2)), open(t, several(300))
	rated, spec := open(t, ratedRows(300, store.U32)), storetest.Library(300, 3, 1)
	spec.Types[0].Dim, spec.Types[0].Row = 2, func(v int) []float32 { return []float32{float32(v % 3), float32(v % 7)} }
	spec.Relations[1].Weight = func(v, i int) float32 { return float32(1 + (v+i)%3) }
	types := openTyped(t, spec)
	for name, change := range map[string]func(o *run.Options){
		"sage":    func(*run.Options) {},
		"gcn":     func(o *run.Options) { o.Kind = "gcn" },
		"gat":     func(o *run.Options) { o.Kind = "gat" },
		"sampled": func(o *run.Options) { o.Eval, o.Batch = "sampled", 16 },
		"labor0":  func(o *run.Options) { draws["labor0 smoothed"](o) },
		"labels":  func(o *run.Options) { o.LabelInput = 8 },
		"typed":   func(*run.Options) {},
		"types":   func(o *run.Options) { o.Weighted = true },
		"columns": func(o *run.Options) { o.EdgeInputs = asColumns },
		"table":   func(o *run.Options) { o.Kind, o.EdgeInputs = model.RSAGE, asTable },
	} {
		t.Run(name, func(t *testing.T) {
			ds, o := one, small()
			switch name {
			case "typed":
				ds = library
			case "types":
				ds, o = types, typed(model.RGCN)
			case "columns", "table":
				ds, o = rated, typed(model.RGAT)
			}
			o.Epochs = 1
			change(&o)
			in := func(names ...string) bool { return slices.Contains(names, name) }
			sizes := []int{3}
			if name == "sage" {
				sizes, o.Epochs = []int{2, 5}, 2
			}
			for _, workers := range sizes {
				want, open := sameBy(t, ds, workers, o), inParts(t, ds, workers)
				all, err := byWorkersOf(t, open, workers, byParts(o), scratch(t), nil)
				got := same(t, all, err)
				require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
				require.Equal(t, want.Best, got.Best)
				require.Equal(t, ds.Manifest().Seal, got.Seal)
				require.Equal(t, want.Relations, got.Relations)
				if in("sage", "gat", "sampled", "typed", "columns") { // for the others, only parts have owners
					got = sameBy(t, ds, workers, byParts(o))
					require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
					require.Equal(t, want.Best, got.Best)
				}
				// A row that several of them need is read once.
				require.Less(t, sumOf(got.Workers.InputRows), sumOf(want.Workers.InputRows))
				require.Greater(t, sumOf(got.Workers.SentBytes), sumOf(want.Workers.SentBytes))
				if in("sage", "gcn", "labor0", "labels", "types", "table") {
					testRanges(t, ds, workers, byParts(o), in("sage", "labels"))
				}
				if in("sage", "gcn", "gat") {
					all, err = byWorkersOf(t, open, workers, byParts(o), scratch(t), func(w *worker) { w.tight(ds) })
					require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
				}
				if in("sage", "sampled", "labor0") {
					tight, least := byParts(o), outOfCore(ds, "pread")
					tight.Options = least.Options
					tight.Window, tight.Workers, tight.TopologyBytes = workers, 1, least.TopologyBytes*int64(workers)
					require.Equal(t, want.ParamsXXH3, sameBy(t, ds, workers, tight).ParamsXXH3)
				}
			}
		})
	}
}

// testRanges compares workers that each open a part, which owns a range of nodes, with workers that
// open the whole, renumbered dataset. If tight is set, it also compares parts with little memory.
func testRanges(t *testing.T, ds *store.Dataset, workers int, o run.Options, tight bool) {
	by := []string{partition.ByGreedy}
	if workers > 2 { // a few nodes, dealt out greedily, leave parts without one
		by = storetest.PartFiles(t, ds, workers, 1)
	}
	out := filepath.Join(t.TempDir(), "parts")
	report, err := partition.Write(t.Context(), ds, out, partition.Options{Parts: workers, By: by, FS: storetest.NoSync})
	require.NoError(t, err)
	whole, err := store.Open(storetest.Join(t, out))
	require.NoError(t, err)
	defer whole.Close()
	part, err := store.OpenPart(out, 0, workers)
	require.NoError(t, err)
	var owner func(v uint32) int // of nodes to learn
	if splits := whole.Manifest().Splits; len(splits) > 0 {
		target := slices.IndexFunc(whole.Manifest().NodeTypes, func(n store.NodeType) bool { return n.Name == splits[0].NodeType })
		owner = part.Manifest().Part.Nodes(target).Owners.Owner
	}
	require.NoError(t, part.Close())
	all, err := byWorkers(t, whole, workers, o, scratch(t), func(w *worker) { w.owner = owner })
	want := same(t, all, err)
	opened := func(rank int) (*store.Dataset, error) { return store.OpenPart(out, rank, workers) }
	all, err = byWorkersOf(t, opened, workers, o, scratch(t), nil)
	got := same(t, all, err)
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
	require.Equal(t, want.Best, got.Best)
	require.Equal(t, want.Relations, got.Relations)
	require.Equal(t, report.Of, got.Seal)
	if owner != nil { // another order of seeds rounds sums otherwise
		require.InEpsilonSlice(t, sameBy(t, whole, workers, o).Losses, got.Losses, 1e-4)
	}
	if !tight {
		return
	}
	all, err = byWorkersOf(t, opened, workers, o, scratch(t), func(w *worker) { w.tight(ds) })
	require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
}

// TestPartsByEdgesSendLess: workers whose parts are communities send fewer neighbours and rows than
// workers whose parts go by the rule.
func TestPartsByEdgesSendLess(t *testing.T) {
	spec := storetest.Communities(4000, 4, 8, 24, 2)
	ds := open(t, spec)
	o := byParts(small())
	o.Epochs, o.EpochSteps, o.Batch, o.Eval, o.EvalNodes = 1, 20, 64, "sampled", 4
	sent := func(by string) int64 {
		out := filepath.Join(t.TempDir(), "parts")
		how := partition.Options{Parts: 4, By: []string{by}, FS: storetest.NoSync}
		_, err := partition.Write(t.Context(), ds, out, how)
		require.NoError(t, err)
		opened := func(rank int) (*store.Dataset, error) { return store.OpenPart(out, rank, 4) }
		all, err := byWorkersOf(t, opened, 4, o, scratch(t), nil)
		return sumOf(same(t, all, err).Workers.SentBytes)
	}
	require.Less(t, float64(sent(partition.ByGreedy)), 0.7*float64(sent(partition.ByRule)))
}

// inParts divides a dataset, and returns how a worker opens its part. A copy of the whole was
// divided, and is gone.
func inParts(t *testing.T, ds *store.Dataset, parts int) func(rank int) (*store.Dataset, error) {
	t.Helper()
	path, out := filepath.Join(t.TempDir(), "whole.gnn"), filepath.Join(t.TempDir(), "parts")
	require.NoError(t, os.CopyFS(path, os.DirFS(ds.Path())))
	whole, err := store.Open(path)
	require.NoError(t, err)
	_, err = partition.Write(t.Context(), whole, out, partition.Options{Parts: parts, FS: storetest.NoSync})
	require.NoError(t, errors.Join(err, whole.Close(), os.RemoveAll(path)))
	return func(rank int) (*store.Dataset, error) { return store.OpenPart(out, rank, parts) }
}

func sumOf(numbers []int64) (sum int64) {
	for _, n := range numbers {
		sum += n
	}
	return sum
}

// TestPartsUneven: workers of different budgets, which alone would draw ahead as far as each can,
// do not wait for each other for ever, with spills or without.
func TestPartsUneven(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := byParts(outOfCore(ds, "pread"))
	o.Batch, o.TopologyBytes = 16, plan.Auto // many steps
	want := sameBy(t, ds, 3, o).ParamsXXH3
	r := rand.New(rand.NewPCG(1, 2))
	joined := 0
	for trial := range 8 {
		o.Lookahead = r.IntN(4)
		budgets, windows, spills := r.Perm(3), r.Perm(3), r.Perm(3)
		all, err := byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
			w.o.BatchBytes = []int64{1, 3 * 100 << 10, plan.Auto}[budgets[w.rank]]
			w.o.Window = []int{1, 7, 0}[windows[w.rank]]
			w.o.Cache.HostBytes = 3 << (10 + 2*w.rank)
			if trial%2 == 1 {
				w.o.Cache.HostBytes = 3 * []int64{12 << 10, 18 << 10, 26 << 10}[w.rank]
				w.o.SpillBytes = 3 << []int{21, 23, 26}[spills[w.rank]]
			}
		})
		require.NoError(t, err)
		require.Equal(t, want, all[0].ParamsXXH3)
		if all[0].Join != nil {
			joined++
		}
	}
	require.GreaterOrEqual(t, joined, 2)
}

// TestPartsEnd: whichever worker fails or stops, and whatever it is at, none is left waiting, and
// the run goes on from a checkpoint to the same bits. Some trials have spills.
func TestPartsEnd(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := byParts(outOfCore(ds, "pread"))
	o.Epochs, o.Cache.HostBytes, o.Window, o.TopologyBytes, o.Batch = 3, 1<<10, 2, 3*o.TopologyBytes, 20
	want := sameBy(t, ds, 3, o)
	for trial := range 9 {
		bad, stops, o := trial%3, trial >= 6, o
		if trial%2 == 1 {
			o.SpillBytes, o.Window, o.Cache.HostBytes = 24<<20, 0, 64<<10
		}
		path := filepath.Join(t.TempDir(), "run")
		_, err := byWorkers(t, ds, 3, o, func() (*run.Dir, error) { return run.Create(path) },
			func(w *worker) {
				if w.rank != bad {
					return
				}
				var reads, from atomic.Int64
				from.Store(1 << 60)
				w.hooks.Step = func(epoch, _, _ int, _ float64) {
					if epoch != 2 {
						return
					}
					if stops {
						w.stop()
					}
					from.CompareAndSwap(1<<60, reads.Load()+int64(trial*7)) // lists, or rows
				}
				w.faults = func(int, int64, int) (f disk.Fault) {
					if reads.Add(1) >= from.Load() && !stops {
						f.Errno = syscall.EIO
					}
					return f
				}
			})
		if stops {
			require.NoError(t, err)
		} else {
			require.ErrorContains(t, err, "worker ")
			require.ErrorContains(t, err, "go on with gnnstore train {resume} {run} "+path)
		}
		resumed, err := byWorkers(t, ds, 3, o, again(path), nil)
		require.NoError(t, err)
		require.Equal(t, want.ParamsXXH3, resumed[0].ParamsXXH3)
		require.Equal(t, want.Losses, resumed[2].Losses)
		require.Equal(t, o.SpillBytes > 0, resumed[1].Join != nil)
	}
}

// TestPartsOpen: whichever worker cannot open its part, or starves once it is open, and whenever
// that is, all end with its error.
func TestPartsOpen(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	open, o := inParts(t, ds, 3), byParts(outOfCore(ds, "pread"))
	o.TopologyBytes, o.Epochs = plan.Auto, 1
	for bad := range 3 {
		for _, from := range []int64{0, 1, 2, 3, 5, 8, 13, 21} {
			var reads atomic.Int64
			_, err := byWorkersOf(t, open, 3, o, scratch(t), func(w *worker) {
				if w.rank == bad {
					w.faults = func(int, int64, int) (f disk.Fault) {
						if reads.Add(1) > from {
							f.Errno = syscall.EIO
						}
						return f
					}
				}
			})
			if reads.Load() > from {
				require.ErrorContains(t, err, fmt.Sprintf("worker %d of 3", bad))
				require.ErrorContains(t, err, fmt.Sprintf("part-%d.gnn", bad))
			} else {
				require.NoError(t, err)
			}
		}
		_, err := byWorkersOf(t, open, 3, o, scratch(t), func(w *worker) {
			if w.rank == bad {
				w.beside = func(int64) int64 { return 1 << 50 }
			}
		})
		require.ErrorContains(t, err, fmt.Sprintf("worker %d of 3", bad))
		require.ErrorContains(t, err, "the least that works is")
		_, err = byWorkersOf(t, func(rank int) (*store.Dataset, error) {
			if rank == bad {
				return nil, errors.New("the disk is gone")
			}
			return open(rank)
		}, 3, o, scratch(t), nil)
		require.ErrorContains(t, err, "the disk is gone")
	}
}

// TestPartsMixed: workers whose parts are of different wholes are refused.
func TestPartsMixed(t *testing.T) {
	one := inParts(t, open(t, storetest.Communities(900, 4, 8, 24, 2)), 3)
	other := inParts(t, open(t, storetest.Communities(900, 4, 8, 24, 3)), 3)
	two := inParts(t, open(t, storetest.Communities(900, 4, 8, 24, 2)), 2)
	o := byParts(small())
	fails := func(of func(rank int) (*store.Dataset, error), o run.Options, want string) {
		t.Helper()
		_, err := byWorkersOf(t, of, 3, o, scratch(t), nil)
		require.ErrorContains(t, err, want)
	}
	fails(func(rank int) (*store.Dataset, error) {
		if rank == 1 {
			return other(rank)
		}
		return one(rank)
	}, o, "give all workers parts of one whole")
	fails(func(rank int) (*store.Dataset, error) { return one(2 - rank) }, o, "cannot train on it alone")
	fails(func(rank int) (*store.Dataset, error) { return two(rank % 2) }, o, "cannot train on it alone")
	fails(one, small(), "{parallel} independent: each worker has only its own part")
	full := o
	full.Eval, full.EvalBytes = "full", 1<<10
	fails(one, full, "or take {eval} sampled")
	_, err := byWorkersOf(t, one, 1, small(), scratch(t), nil)
	require.ErrorContains(t, err, "worker 0 of 1 cannot train on it alone")
}

// TestPartsRefused: what owners of nodes do not do yet is refused, with what to take instead.
func TestPartsRefused(t *testing.T) {
	for name, change := range map[string]func(o *run.Options){
		"{sampler} labor-star": func(o *run.Options) { draws["labor-star nested"](o) },
		"{sampler} rw":         func(o *run.Options) { draws["rw nested"](o) },
	} {
		o := small()
		change(&o)
		o = byParts(o)
		o.Dist = "local:2"
		err := o.Validate()
		require.ErrorContains(t, err, "{parallel} parts: ")
		require.ErrorContains(t, err, name)
		require.ErrorContains(t, err, "take {parallel} independent")
	}
}
