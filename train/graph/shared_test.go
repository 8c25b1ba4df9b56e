package graph

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// with returns o changed.
func with(o run.Options, change func(o *run.Options)) run.Options {
	change(&o)
	return o
}

// byEither returns o for workers that choose a way.
func byEither(o run.Options) run.Options {
	o.Parallel = run.AutoParallel
	return o
}

// TestAutoParallel: all workers take one way, note it once, and record it. A run that is given this
// way has the same weights.
func TestAutoParallel(t *testing.T) {
	storetest.Long(t)
	one, library := open(t, storetest.Communities(600, 4, 8, 16, 2)), open(t, several(600))
	rated := open(t, ratedRows(500, store.U32))
	for name, c := range map[string]struct {
		ds *store.Dataset
		o  run.Options
	}{
		"sage":        {one, small()},
		"gcn":         {one, with(small(), func(o *run.Options) { o.Kind = model.GCN })},
		"typed":       {library, small()},
		"links":       {open(t, linked(600)), linkOptions()},
		"columns":     {rated, with(typed(model.RGAT), func(o *run.Options) { o.EdgeInputs = asColumns })},
		"out of core": {one, with(outOfCore(one, "pread"), func(o *run.Options) { o.TopologyBytes = plan.Auto })},
		"few seeds":   {one, with(small(), func(o *run.Options) { o.EpochSteps, o.Batch = 2, 2 })},
	} {
		t.Run(name, func(t *testing.T) {
			o := c.o
			o.Epochs = 1
			sizes := []int{3}
			switch name {
			case "sage":
				sizes = []int{2, 3, 5}
			case "typed", "out of core":
				sizes = []int{2}
			case "few seeds":
				sizes = []int{5}
			}
			for _, workers := range sizes {
				path := filepath.Join(t.TempDir(), "run")
				notes := make([][]string, workers)
				all, err := byWorkers(t, c.ds, workers, byEither(o), in(path), func(w *worker) {
					w.hooks.Note = func(s string) {
						if strings.HasPrefix(s, "{parallel} ") {
							notes[w.rank] = append(notes[w.rank], s)
						}
					}
				})
				got := same(t, all, err)
				chosen := recordOf(t, path)
				require.Contains(t, run.ParallelWays, chosen.Options.Parallel)
				require.Equal(t, chosen.Options.Parallel, chosen.AutoParallel.Way)
				require.Len(t, chosen.AutoParallel.Ways, len(run.ParallelWays))
				require.Positive(t, chosen.AutoParallel.Link.BytesPerSecond)
				best := chosen.AutoParallel.Ways[plan.Choose(chosen.AutoParallel.Ways)]
				require.Equal(t, chosen.AutoParallel.Way, best.Way)
				for rank := range workers {
					require.Equal(t, []string{chosen.AutoParallel.Reason}, notes[rank])
					own := recordOf(t, run.WorkerDir(path, rank))
					require.Equal(t, chosen.AutoParallel, own.AutoParallel)
					require.Equal(t, chosen.Options.Parallel, own.Options.Parallel)
				}
				taken := o
				taken.Parallel = chosen.Options.Parallel
				require.Equal(t, sameBy(t, c.ds, workers, taken).ParamsXXH3, got.ParamsXXH3)
			}
		})
	}
}

// TestAutoCooperative: where each worker alone would compute nearly all nodes, workers compute
// together.
func TestAutoCooperative(t *testing.T) {
	ds, o := open(t, storetest.Communities(600, 4, 8, 16, 2)), small()
	o.Layers, o.Fanouts, o.Batch, o.Epochs, o.Hidden = 3, []int{8, 8, 8}, 400, 1, 64
	for name, change := range map[string]func(o *run.Options){
		"plain":   func(*run.Options) {},
		"history": func(o *run.Options) { o.History, o.Settings = true, reusing().Settings },
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			change(&o)
			path := filepath.Join(t.TempDir(), "run")
			all, err := byWorkers(t, ds, 5, byEither(o), in(path), nil)
			got := same(t, all, err)
			require.Equal(t, run.Cooperative, recordOf(t, path).Options.Parallel)
			require.Equal(t, sameBy(t, ds, 5, cooperative(o)).ParamsXXH3, got.ParamsXXH3)
		})
	}
}

// recordOf returns the record of the run in path.
func recordOf(t *testing.T, path string) *run.Record {
	t.Helper()
	dir, err := run.Look(path)
	require.NoError(t, err)
	defer dir.Close()
	return dir.Record()
}

// TestAutoParallelCounts: the steps that were traced read the rows and send the bytes of the
// estimate.
func TestAutoParallelCounts(t *testing.T) {
	ds, o := open(t, storetest.Communities(900, 4, 8, 24, 2)), small()
	o.Epochs, o.EpochSteps, o.Batch = 1, tracedSteps, 40
	o.Eval, o.EvalNodes = "sampled", 1
	for _, kind := range []model.Kind{model.SAGE, model.GCN} {
		o.Kind = kind
		for _, workers := range []int{2, 4} {
			path := filepath.Join(t.TempDir(), "run")
			all, err := byWorkers(t, ds, workers, byEither(o), in(path), nil)
			same(t, all, err)
			for _, w := range recordOf(t, path).AutoParallel.Ways {
				taken := o
				taken.Parallel = w.Way
				r := sameBy(t, ds, workers, taken)
				rows := float64(sumOf(r.Workers.InputRows))
				require.InEpsilon(t, rows, w.InputRows*float64(workers*tracedSteps), 1e-9, w.Way)
				sent := float64(sumOf(r.Workers.SentBytes)) / float64(workers*tracedSteps)
				// Also sent are the results of evaluation, the names of workers and their progress.
				require.LessOrEqual(t, w.Sent.Total(), sent, w.Way)
				require.InDelta(t, w.Sent.Total(), sent, 30e3, w.Way)
				if w.Way == run.ByParts {
					require.Greater(t, w.Sent.Rows, 0.0)
					require.Greater(t, w.Sent.IDs, 0.0)
					require.Greater(t, w.Sent.Lists, 0.0)
				}
			}
		}
	}
}

// TestAutoParallelLeft: where one way is left, it is taken without a measurement.
func TestAutoParallelLeft(t *testing.T) {
	whole := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for name, kind := range map[string]sample.Kind{"labor-star": sample.LaborStar, "rw": sample.RW} {
		o := small()
		draws[name+" nested"](&o)
		o.Epochs = 1
		require.Equal(t, kind, o.Sampling().Kind)
		spread := byEither(o)
		spread.Dist = "local:2"
		require.NoError(t, spread.Validate())
		path := filepath.Join(t.TempDir(), "run")
		_, err := byWorkers(t, whole, 2, byEither(o), in(path), nil)
		require.NoError(t, err)
		r := recordOf(t, path)
		require.Equal(t, run.Independent, r.Options.Parallel)
		require.Contains(t, r.AutoParallel.Reason, "the other ways are refused: {parallel} parts: {sampler} "+string(kind))
		require.Empty(t, r.AutoParallel.Ways)
	}
	o := byEither(small())
	o.Epochs = 1
	path := filepath.Join(t.TempDir(), "run")
	all, err := byWorkersOf(t, inParts(t, whole, 3), 3, o, in(path), nil)
	got := same(t, all, err)
	require.Equal(t, run.ByParts, recordOf(t, path).Options.Parallel, "a directory of parts means parts")
	require.Nil(t, recordOf(t, path).AutoParallel)
	require.Equal(t, sameBy(t, whole, 3, byParts(o)).ParamsXXH3, got.ParamsXXH3)
	_, err = byWorkers(t, whole, 1, o, scratch(t), nil)
	require.NoError(t, err)
	ranking := byEither(linkOptions())
	ranking.Negatives, ranking.Dist = "all", "local:2"
	require.ErrorContains(t, ranking.Validate(), "each worker would score all nodes", "what every way refuses stays refused")
}

// TestAutoParallelFails: whichever worker fails while they choose, all end with its error.
func TestAutoParallelFails(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := byEither(outOfCore(ds, "pread"))
	o.Epochs, o.MemoryBytes, o.TopologyBytes = 1, 90<<20, plan.Auto
	for bad := range 3 {
		_, err := byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
			if w.rank == bad {
				w.beside = func(int64) int64 { return 1 << 50 }
			}
		})
		require.ErrorContains(t, err, "the least that works is")
		_, err = byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
			if w.rank == bad {
				w.o.Parallel = run.Independent
			}
		})
		require.Error(t, err)
	}
}

// TestWorkersPlan: a plan of workers that are not there names the way that suits the network, with
// the rows and bytes that workers count themselves.
func TestWorkersPlan(t *testing.T) {
	ds, o := open(t, storetest.Communities(900, 4, 8, 24, 2)), small()
	o.Dist, o.Parallel, o.EpochSteps, o.Batch = "mpi:4", run.AutoParallel, tracedSteps, 40
	slow, err := MakeWorkersPlan(t.Context(), ds, o, &plan.Link{BytesPerSecond: 1e3})
	require.NoError(t, err)
	require.Equal(t, run.Independent, slow.Way)
	require.Equal(t, plan.Computing, slow.LimitingStage, "the sum of gradients")
	require.Equal(t, plan.Network, slow.Ways[1].LimitingStage)
	require.Equal(t, []any{4, 1, "given", tracedSteps}, []any{slow.Workers, slow.Machine, slow.LinkFrom, slow.Drawn})
	require.InDelta(t, slow.Seconds*float64(slow.Steps), slow.EpochSeconds, 1e-9)

	asked := o
	asked.Parallel = run.ByParts
	p, err := MakeWorkersPlan(t.Context(), ds, asked, &plan.Link{BytesPerSecond: 1e3})
	require.NoError(t, err)
	require.Equal(t, []string{run.ByParts, run.Independent}, []string{p.Way, p.Advised})
	require.Equal(t, slow.Ways[1].Sent, p.Ways[1].Sent)
	p, err = MakeWorkersPlan(t.Context(), ds, o, nil)
	require.NoError(t, err)
	require.Equal(t, "assumed", p.LinkFrom)

	// As many bytes and rows as real workers count.
	o.Dist = "local:4"
	p, err = MakeWorkersPlan(t.Context(), ds, o, nil)
	require.NoError(t, err)
	require.Equal(t, []any{4, 4, "measured"}, []any{p.Workers, p.Machine, p.LinkFrom})
	path := filepath.Join(t.TempDir(), "run")
	o.Epochs = 1
	_, err = byWorkers(t, ds, 4, o, in(path), nil)
	require.NoError(t, err)
	for i, w := range recordOf(t, path).AutoParallel.Ways {
		require.Equal(t, w.Way, p.Ways[i].Way)
		for _, x := range [][2]float64{
			{w.InputRows, p.Ways[i].InputRows}, {w.Sent.IDs, p.Ways[i].Sent.IDs}, {w.Sent.Lists, p.Ways[i].Sent.Lists},
			{w.Sent.Rows, p.Ways[i].Sent.Rows}, {w.Sent.Gradients, p.Ways[i].Sent.Gradients},
		} {
			require.InDelta(t, x[0], x[1], 1e-6*x[0])
		}
	}

	star := o
	draws["labor-star nested"](&star)
	p, err = MakeWorkersPlan(t.Context(), ds, star, nil)
	require.NoError(t, err)
	require.Equal(t, run.Independent, p.Way)
	require.Contains(t, p.Ways[1].Refused, "{sampler} labor-star")
	tight := o
	tight.MemoryBytes = 1 << 20
	_, err = MakeWorkersPlan(t.Context(), ds, tight, nil)
	require.ErrorContains(t, err, "for 4 workers is not enough")
}

// TestTurns: workers of a machine take turns.
func TestTurns(t *testing.T) {
	peers := []dist.Peer{{Rank: 0, Host: "a"}, {Rank: 1, Host: "b"}, {Rank: 2, Host: "a"}, {Rank: 3, Host: "a"}}
	for rank, want := range []int{0, 0, 1, 2} {
		turn, most := turnOf(peers, rank)
		require.Equal(t, []int{want, 3}, []int{turn, most})
	}
}

// TestAutoParallelTight: in the least memory that works, evaluation gets less of it, and the ways
// are still compared.
func TestAutoParallelTight(t *testing.T) {
	ds, o := open(t, storetest.Communities(600, 4, 8, 16, 2)), small()
	o.Epochs, o.MemoryBytes = 1, 30<<20
	_, err := byWorkers(t, ds, 3, o, scratch(t), nil)
	var short *plan.NotEnough
	require.ErrorAs(t, err, &short)
	o.MemoryBytes = 3 * (short.Least.Total + 1<<20)
	path := filepath.Join(t.TempDir(), "run")
	all, err := byWorkers(t, ds, 3, byEither(o), in(path), nil)
	got := same(t, all, err)
	choice := recordOf(t, path).AutoParallel
	require.Empty(t, choice.Ways[0].Refused)
	require.Equal(t, sameBy(t, ds, 3, o).ParamsXXH3, got.ParamsXXH3)
}
