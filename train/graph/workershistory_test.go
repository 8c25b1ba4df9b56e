package graph

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestWorkersReuse: workers that use hidden rows again, each its own, end with the same bits under
// any budget, and whether each reads for itself or owners read for all.
func TestWorkersReuse(t *testing.T) {
	storetest.Long(t)
	one, library := open(t, storetest.Communities(900, 4, 8, 24, 2)), open(t, several(600))
	for name, change := range map[string]func(o *run.Options){
		"sage":          func(*run.Options) {},
		"gcn":           func(o *run.Options) { o.Kind = model.GCN },
		"gat":           func(o *run.Options) { o.Kind, o.Heads = model.GAT, 2 },
		"3 layers":      func(o *run.Options) { o.Layers, o.Fanouts = 3, []int{3, 3, 3} },
		"a step of lag": func(o *run.Options) { o.HistoryLag = 1 },
		"few slots":     func(o *run.Options) { o.HistoryBytes = 80 * history.SlotBytes(o.Hidden) },
		"auto":          func(o *run.Options) { o.HistoryBytes = history.Auto },
		"labor0":        func(o *run.Options) { draws["labor0 smoothed"](o) },
		"typed":         func(*run.Options) {},
	} {
		t.Run(name, func(t *testing.T) {
			ds, o := one, reusing()
			if name == "typed" {
				ds = library
			}
			change(&o)
			sizes := []int{3}
			if name == "sage" {
				sizes = []int{1, 2, 5}
			}
			whole := slices.Contains([]string{"sage", "gat", "few slots", "typed"}, name) // owners also read the whole dataset
			for _, workers := range sizes {
				byAll := func(open func(rank int) (*store.Dataset, error), o run.Options) []*run.Result {
					all, err := byWorkersOf(t, open, workers, o, scratch(t), nil)
					same(t, all, err)
					return all
				}
				opens := func(int) (*store.Dataset, error) { return store.Open(ds.Path()) }
				want := byAll(opens, o)
				for _, r := range want {
					require.Positive(t, r.History.Hits)
				}
				if workers == 1 {
					require.Equal(t, trained(t, ds, o).ParamsXXH3, want[0].ParamsXXH3)
					continue
				}
				least := outOfCore(ds, "pread")
				tight := byParts(o)
				tight.Options = least.Options
				tight.Window, tight.Workers, tight.TopologyBytes = workers, 1, least.TopologyBytes*int64(workers)
				ways := [][]*run.Result{byAll(inParts(t, ds, workers), tight)}
				if whole {
					ways = append(ways, byAll(opens, byParts(o)))
				}
				for _, got := range ways {
					for rank, r := range got {
						require.Equal(t, want[0].ParamsXXH3, r.ParamsXXH3)
						require.Equal(t, want[0].Best, r.Best)
						require.Equal(t, want[rank].History, r.History)
					}
				}
			}
		})
	}
}

// TestWorkersReuseUneven: workers of different budgets, which draw and read as far ahead as each
// can, do not wait for each other for ever.
func TestWorkersReuseUneven(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := reusing()
	o.Options, o.Parallel = outOfCore(ds, "pread").Options, run.ByParts
	o.Batch, o.TopologyBytes = 8, plan.Auto // many steps
	r := rand.New(rand.NewPCG(1, 2))
	for n, lag := range []int{1, 3, 20} {
		o.HistoryLag = lag
		want := sameBy(t, ds, 3, o).ParamsXXH3
		for i := n % 2; i < 4; i += 2 {
			o.Lookahead = []int{30, 0, 1, 3}[i] // far ahead a group waits for its lag
			budgets, windows := r.Perm(3), r.Perm(3)
			all, err := byWorkers(t, ds, 3, o, scratch(t), func(w *worker) {
				w.o.BatchBytes = []int64{1, 60 << 20, plan.Auto}[budgets[w.rank]]
				w.o.Window = []int{1, 10, 0}[windows[w.rank]]
				w.o.Cache.HostBytes = 3 << (10 + 2*w.rank)
			})
			require.NoError(t, err)
			require.Equal(t, want, all[0].ParamsXXH3)
		}
	}
}

// TestWorkersReuseOfLittle: workers that mostly have no seeds keep rows, too, and end alike.
func TestWorkersReuseOfLittle(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := reusing()
	o.Epochs, o.EpochSteps, o.Batch, o.Eval, o.EvalNodes, o.HistoryBytes = 3, 9, 3, "sampled", 5, history.Auto
	all, err := byWorkers(t, ds, 7, o, scratch(t), nil)
	want := same(t, all, err)
	hits := int64(0)
	for _, r := range all {
		hits += r.History.Hits
		require.Equal(t, want.History.Slots, r.History.Slots)
	}
	require.Positive(t, hits)
	all, err = byWorkersOf(t, inParts(t, ds, 7), 7, byParts(o), scratch(t), nil)
	require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
	require.Equal(t, want.ParamsXXH3, sameBy(t, ds, 7, byParts(o)).ParamsXXH3)
}

// TestWorkersReuseRest: all workers keep as many bytes of rows as the one with the least memory
// can, and a run that is given that number repeats this one.
func TestWorkersReuseRest(t *testing.T) {
	ds := open(t, storetest.Communities(30_000, 4, 4, 24, 2)) // its rows take 1.9 MiB of slots
	o := reusing()
	o.Epochs, o.EpochSteps, o.EvalBytes, o.MemoryBytes, o.HistoryBytes = 2, 20, 0, 1<<30, 1
	rows := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
	_, err := byWorkers(t, ds, 2, o, scratch(t), func(w *worker) { w.o.MemoryBytes = 1 })
	found := regexp.MustCompile(`the least that works is (\d+) MiB \(each: `).FindStringSubmatch(err.Error())
	require.NotNil(t, found, err)
	least, err := strconv.ParseInt(found[1], 10, 64)
	require.NoError(t, err)
	o.HistoryBytes = history.Rest
	uneven := func(w *worker) {
		if w.rank == 1 {
			w.o.MemoryBytes = least<<20 + 2*rows + 3<<20 // feature rows fit, and some of the slots
		}
	}
	all, err := byWorkers(t, ds, 2, o, scratch(t), uneven)
	want := same(t, all, err)
	require.Equal(t, all[0].Options.HistoryBytes, all[1].Options.HistoryBytes)
	require.Positive(t, want.Options.HistoryBytes)
	require.Equal(t, want.History.Slots, all[1].History.Slots)
	require.Less(t, want.History.Slots, int64(30_000))
	require.Positive(t, want.History.Hits)
	o.HistoryBytes = want.Options.HistoryBytes
	again := sameBy(t, ds, 2, o)
	require.Equal(t, want.ParamsXXH3, again.ParamsXXH3)
	require.Equal(t, want.History, again.History)
}

// TestWorkersReuseResume: a run that is cut short, or whose worker fails, goes on to the bits of
// one without a break, with the rows that each worker kept. Another number of workers begins
// without them, and says so.
func TestWorkersReuseResume(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(450, 4, 8, 24, 2))
	o := reusing()
	o.Options = outOfCore(ds, "pread").Options
	o.Epochs, o.CheckpointEvery, o.KeepCheckpoints, o.EvalBytes, o.TopologyBytes = 4, 3, 2, 1<<20, 4*o.TopologyBytes
	all, err := byWorkers(t, ds, 3, o, scratch(t), nil)
	want := same(t, all, err)
	whole := func(int) (*store.Dataset, error) { return store.Open(ds.Path()) }
	for name, c := range map[string]struct {
		o      run.Options
		open   func(rank int) (*store.Dataset, error)
		fails  []int // the workers that fail, one in each run
		others []int // the worker counts with which a run of three workers goes on
	}{
		"independent": {o, whole, []int{2}, []int{1, 2}},
		"parts":       {byParts(o), whole, []int{1}, []int{4}},
		"on parts":    {byParts(o), inParts(t, ds, 3), []int{0}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			// begun returns the directory of a run that ended in the second epoch, and in the third
			// again.
			begun := func(fails int) string {
				path := filepath.Join(t.TempDir(), "run")
				open := func() (*run.Dir, error) { return run.Create(path) }
				for ends := 2; ends < 4; ends++ {
					_, err := byWorkersOf(t, c.open, 3, c.o, open, func(w *worker) { w.endAt(ends, fails) })
					if fails < 0 {
						require.NoError(t, err)
					} else {
						require.ErrorContains(t, err, fmt.Sprintf("worker %d of 3", fails))
						require.ErrorContains(t, err, "from the newest checkpoint")
					}
					open = again(path)
				}
				return path
			}
			for _, fails := range c.fails {
				path := begun(fails)
				for rank := 1; rank < 3; rank++ {
					kept, err := filepath.Glob(filepath.Join(run.WorkerDir(path, rank), run.CheckpointDir, "*"))
					require.NoError(t, err)
					require.NotEmpty(t, kept)
					require.LessOrEqual(t, len(kept), o.KeepCheckpoints+1)
				}
				resumed, err := byWorkersOf(t, c.open, 3, c.o, again(path), nil)
				got := same(t, resumed, err)
				require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
				require.Equal(t, want.Losses, got.Losses)
				for rank, r := range resumed {
					require.Equal(t, all[rank].History, r.History)
				}
			}
			stopped := begun(-1)
			// cut returns a copy of stopped, the directory of a run that was stopped twice.
			cut := func() string {
				path := filepath.Join(t.TempDir(), "run")
				require.NoError(t, os.CopyFS(path, os.DirFS(stopped)))
				return path
			}
			for _, workers := range c.others {
				var notes []string
				resumed, err := byWorkers(t, ds, workers, c.o, again(cut()), func(w *worker) {
					if w.rank == 0 {
						w.hooks.Note = func(s string) { notes = append(notes, s) }
					}
				})
				got := same(t, resumed, err)
				require.InDelta(t, want.Losses[3], got.Losses[3], 0.2)
				require.Contains(t, notes, fmt.Sprintf("history: rows were kept by 3 workers, each for its share of steps; "+
					"%d go on without them, to other results", workers))
				for _, r := range resumed {
					require.True(t, r.History.Cold)
					require.Positive(t, r.History.Hits)
				}
			}
			if name == "parts" {
				return
			}
			path := cut()
			dropNewest(t, path) // as if worker 0 was killed before it wrote that one
			resumed, err := byWorkersOf(t, c.open, 3, c.o, again(path), nil)
			require.Equal(t, want.ParamsXXH3, same(t, resumed, err).ParamsXXH3)
			path = cut()
			kept, err := filepath.Glob(filepath.Join(run.WorkerDir(path, 2), run.CheckpointDir, "*.history"))
			require.NoError(t, err)
			newest := kept[len(kept)-1]
			require.NoError(t, os.Rename(newest, newest+".away"))
			_, err = byWorkersOf(t, c.open, 3, c.o, again(path), nil)
			require.ErrorContains(t, err, "worker 2 of 3")
			require.ErrorContains(t, err, "the hidden rows that it kept are in "+newest)
			require.ErrorContains(t, err, "with {history_cold}")
			require.NoError(t, os.Rename(newest+".away", newest))
			resumed, err = byWorkersOf(t, c.open, 3, c.o, again(path), nil)
			require.Equal(t, want.ParamsXXH3, same(t, resumed, err).ParamsXXH3)
			o := c.o
			o.HistoryCold = true
			resumed, err = byWorkersOf(t, c.open, 3, o, again(cut()), nil)
			require.NotEqual(t, want.ParamsXXH3, same(t, resumed, err).ParamsXXH3)
			require.True(t, resumed[1].History.Cold)
		})
	}
}

// dropNewest removes worker 0's newest checkpoint of the run in path.
func dropNewest(t *testing.T, path string) {
	names, err := filepath.Glob(filepath.Join(path, run.CheckpointDir, "*.safetensors"))
	require.NoError(t, err)
	require.Greater(t, len(names), 1)
	require.NoError(t, os.Remove(names[len(names)-1]))
}

// TestWorkersReuseAudit: each worker audits its own rows, which changes no result. Parts have no
// lists for that.
func TestWorkersReuseAudit(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	o := reusing()
	want := sameBy(t, ds, 2, o)
	o.HistoryAudit, o.HistoryAuditEvery = 8, 2
	all, err := byWorkers(t, ds, 2, byParts(o), scratch(t), nil)
	require.Equal(t, want.ParamsXXH3, same(t, all, err).ParamsXXH3)
	for _, r := range all {
		require.Positive(t, r.History.Audit.Nodes)
	}
	_, err = byWorkersOf(t, inParts(t, ds, 2), 2, byParts(o), scratch(t), nil)
	require.ErrorContains(t, err, "{history_audit} 8: an audit reads the lists of all nodes, and it is a part; ")
}
