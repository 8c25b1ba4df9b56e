package graph

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s storetest.Spec) *store.Dataset {
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return ds
}

func small() run.Options {
	o := run.DefaultOptions()
	o.Hidden, o.Batch, o.Epochs, o.Fanouts, o.LR = 16, 64, 2, []int{5, 3}, 0.01
	return o
}

func trained(t *testing.T, ds *store.Dataset, o run.Options) *run.Result {
	r, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{})
	require.NoError(t, err)
	return r
}

// scratch returns a function that makes a run directory. Its files are not synced.
func scratch(t *testing.T) func() (*run.Dir, error) {
	return func() (*run.Dir, error) { return run.CreateOn(storetest.NoSync, t.TempDir()) }
}

// in makes the run directory path.
func in(path string) func() (*run.Dir, error) {
	return func() (*run.Dir, error) { return run.Create(path) }
}

// TestLearns: neighbours tell the class where a node's own features hardly do.
func TestLearns(t *testing.T) {
	ds := open(t, storetest.Communities(1200, 4, 10, 16, 1))
	o := small()
	o.Epochs = 15
	sage := trained(t, ds, o)
	require.Equal(t, run.Done, sage.Status)
	require.Greater(t, *sage.Best.TestAcc, 0.85)
	require.Less(t, sage.Losses[14], sage.Losses[0])
	o.Kind = model.MLP
	mlp := trained(t, ds, o)
	require.Less(t, *mlp.Best.TestAcc, *sage.Best.TestAcc-0.2)
	require.EqualValues(t, 960*15, mlp.InputRows, "an MLP reads the seeds alone")
}

// TestEveryNetwork trains GCN and GAT as TestLearns trains GraphSAGE, with the same bits for any
// number of workers, and measures them in full and on blocks of every neighbour alike.
func TestEveryNetwork(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 10, 16, 1))
	for _, kind := range []model.Kind{model.GCN, model.GAT} {
		o := small()
		o.Kind, o.Epochs, o.AttnDropout = kind, 12, 0.2
		want := trained(t, ds, o)
		require.Greater(t, *want.Best.TestAcc, 0.85, kind)
		o.Workers = 7
		require.Equal(t, want.ParamsXXH3, trained(t, ds, o).ParamsXXH3, kind)

		o.Epochs, o.Fanouts, o.EvalNodes = 2, []int{sample.All, sample.All}, 1000
		full := trained(t, ds, o)
		o.EvalBytes = 0
		blocks := trained(t, ds, o)
		require.Equal(t, "sampled", blocks.Evaluation.Method)
		require.Equal(t, full.Best, blocks.Best, kind)
	}
}

// TestSameBits is principle 2: workers, budgets, policies and engines change no loss and no weight.
func TestSameBits(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, small())
	require.NotEmpty(t, want.ParamsXXH3)
	for _, workers := range []int{1, 2, 8} {
		for _, cache := range []cachetier.Options{
			{}, {HostBytes: 1}, {HostBytes: 2000}, {HostBytes: 1 << 30}, {DeviceBytes: 5000, HostBytes: 3000},
			{HostBytes: 1 << 20, Policy: cachetier.None}, {HostBytes: 2000, Engine: disk.Pread},
		} {
			o := small()
			o.Workers, o.Cache = workers, cache
			got := trained(t, ds, o)
			require.Equal(t, want.Losses, got.Losses, "%d workers, %+v", workers, cache)
			require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
			require.Equal(t, want.Best, got.Best)
			require.Equal(t, got.InputRows, got.Tiers.Device.RowsHit+got.Tiers.Host.RowsHit+got.Tiers.Disk.RowsHit)
			require.Equal(t, got.InputRows*got.RowBytes, got.Tiers.Device.BytesOut+got.Tiers.Host.BytesOut+got.Tiers.Disk.BytesOut)
		}
	}
	o := small()
	o.Seed = 2
	require.NotEqual(t, want.ParamsXXH3, trained(t, ds, o).ParamsXXH3)
}

// TestFullEvaluation compares layer-wise evaluation with one pass over the whole neighbourhood of
// each node.
func TestFullEvaluation(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Layers, o.Fanouts = 3, []int{sample.All, sample.All, sample.All}
	o.EvalNodes = 1000
	full := trained(t, ds, o)
	require.Equal(t, "full", full.Evaluation.Method)
	o.EvalBytes = 0
	blocks := trained(t, ds, o)
	require.Equal(t, "sampled", blocks.Evaluation.Method)
	require.Equal(t, full.Best, blocks.Best)
	for i := range full.Epochs {
		require.Equal(t, *full.Epochs[i].ValidAcc, *blocks.Epochs[i].ValidAcc)
	}
}

// TestFullEvaluationFromDisk: where hidden rows are does not change what is measured, of networks
// of any kind, and nothing of them stays. Sampled evaluation can be asked for.
func TestFullEvaluationFromDisk(t *testing.T) {
	ds := openTyped(t, storetest.Library(300, 3, 2))
	for _, kind := range []model.Kind{model.RSAGE, model.RGAT} {
		o := typed(kind)
		o.Layers, o.Fanouts, o.EvalTest, o.EvalNodes = 3, []int{3, 3, 3}, "epoch", 10
		want := trained(t, ds, o)
		o.Eval, o.EvalBytes = "full", 2000
		dir := t.TempDir()
		var notes []string
		got, err := Run(context.Background(), ds, in(dir), o, "test", run.Hooks{Note: func(s string) { notes = append(notes, s) }})
		require.NoError(t, err)
		require.Equal(t, "full", got.Evaluation.Method)
		require.Equal(t, want.Best, got.Best, kind)
		require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
		require.Contains(t, strings.Join(notes, "\n"), "and {eval_bytes} is 2.0 KiB, so they are on disk")
		require.NoDirExists(t, filepath.Join(dir, run.LayerDir))
		require.Greater(t, got.Evaluation.Disk.BytesRead, want.Evaluation.Disk.BytesRead)

		o.LayerDtype, o.Epochs = "f16", 1
		require.InDelta(t, *want.Epochs[0].ValidAcc, *trained(t, ds, o).Epochs[0].ValidAcc, 0.1)
		o.Eval = "auto"
		p, err := MakePlan(context.Background(), ds, o)
		require.NoError(t, err)
		require.Contains(t, p.Evaluation, "{eval_bytes} is 2.0 KiB; so the figures are estimates; {eval} full measures exactly, with the rows on disk")
		o.Eval, o.EvalBytes = "sampled", run.Auto
		require.Equal(t, "sampled", trained(t, ds, o).Evaluation.Method)
	}
	o := small()
	o.Eval, o.Sampler = "full", sample.RW
	require.ErrorContains(t, o.Validate(), "{eval} full: {sampler} rw weighs the nodes")
	o.Eval = "exact"
	require.ErrorContains(t, o.Validate(), "{eval} exact: there are auto, full and sampled")
}

func TestAnyOptionWorks(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	for name, change := range map[string]func(o *run.Options){
		"batch larger than the training set": func(o *run.Options) { o.Batch = math.MaxInt32 },
		"batch of one":                       func(o *run.Options) { o.Batch, o.Epochs = 1, 1 },
		"fanout beyond any degree":           func(o *run.Options) { o.Fanouts = []int{100000, math.MaxInt32} },
		"no epochs":                          func(o *run.Options) { o.Epochs = 0 },
		"one layer":                          func(o *run.Options) { o.Layers, o.Fanouts = 1, []int{3} },
		"many workers":                       func(o *run.Options) { o.Workers = 100 },
		"early stop":                         func(o *run.Options) { o.Epochs, o.Patience = 200, 1 },
		"test every epoch":                   func(o *run.Options) { o.EvalTest = "epoch" },
		"input dropout":                      func(o *run.Options) { o.InputDropout = 0.5 },
		"seldom validated":                   func(o *run.Options) { o.EvalEvery = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			change(&o)
			r := trained(t, ds, o)
			require.Equal(t, r.Options.Patience > 0, r.Status == run.StoppedEarly)
			for _, l := range r.Losses {
				require.False(t, math.IsNaN(l))
			}
		})
	}
}

// TestTooLargeModel is refused before a byte of it is allocated: it would be killed while it is
// being filled.
func TestTooLargeModel(t *testing.T) {
	if _, err := kernels.AvailableMemory(); err != nil {
		t.Skip(err)
	}
	o := small()
	o.Hidden, o.Layers, o.Fanouts = 1<<16, 64, slices.Repeat([]int{1}, 64)
	refused(t, open(t, storetest.Communities(300, 3, 6, 8, 3)), o, "{model} sage, {hidden} 65536: its weights take 8")
}

func TestValidate(t *testing.T) {
	require.NoError(t, run.DefaultOptions().Validate())
	o := run.DefaultOptions()
	o.Fanouts, o.Batch, o.Epochs, o.LR, o.Workers, o.EvalTest, o.Cache.HostBytes = []int{0, -7, 3}, math.MaxInt32+1, -2, 0, 0, "x", -2
	err := o.Validate()
	for _, want := range []string{"{fanout} has 3", "{fanout} 0:", "{fanout} -7:", "{batch} 2147483648", "{epochs} -2", "{lr} 0", "{workers} 0", "{eval_test} x", "host budget"} {
		require.ErrorContains(t, err, want)
	}
}

func TestRefusesWhatItCannotTrain(t *testing.T) {
	none := storetest.Communities(50, 3, 6, 8, 3)
	none.Class = func(int) int32 { return -1 }
	ids := storetest.Communities(50, 3, 6, 8, 3)
	ids.Classes = 2_000_000_000
	other := small()
	other.Split = "time"
	for _, c := range []struct {
		want string
		spec storetest.Spec
		o    run.Options
	}{
		{"no training node with a label", none, small()},
		{"no training node with a label", storetest.Spec{}, small()},
		{"2000000000 classes; at most 1048576 are trained", ids, small()},
		{`no split "time"; {split} takes one of: given`, storetest.Communities(50, 3, 6, 8, 3), other},
	} {
		path := filepath.Join(t.TempDir(), "run")
		_, err := Run(context.Background(), open(t, c.spec), in(path), c.o, "test", run.Hooks{})
		require.ErrorContains(t, err, c.want)
		require.NoDirExists(t, path, "a refused start leaves the name free")
	}
}

// forged is ds with another value in a section, in which checksums find nothing: only its contents
// are wrong.
func forged(t *testing.T, ds *store.Dataset, file string, at int64, v uint32) *store.Dataset {
	storetest.Forge(t, ds.Path(), file, store.PageSize+4*at, binary.LittleEndian.AppendUint32(nil, v))
	ds, err := store.Open(ds.Path())
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return ds
}

// TestDamagedData: what opening does not read is not believed either, though its checksums are
// right.
func TestDamagedData(t *testing.T) {
	for file, c := range map[string]struct {
		value uint32
		want  string
	}{
		"topo/node__to__node/neighbors.u32": {1e9, "neighbour 1000000000"},
		"topo/node__to__node/offsets.u64":   {1e9, "edges"},
		"label/node/label.i32":              {77, "class 77 of 4"},
		"split/given/train.u32":             {1e9, "the split names node"},
		"split/given/valid.u32":             {1e9, "the split names node"},
	} {
		ds := open(t, storetest.Communities(400, 4, 8, 16, 4))
		for at := int64(8); at < 40; at += 4 {
			ds = forged(t, ds, file, at, c.value)
		}
		o := small()
		o.Layers, o.Fanouts = 1, []int{sample.All}
		_, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{})
		require.ErrorIs(t, err, store.ErrCorrupt, file)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "gnnstore verify")
	}
	ds := open(t, storetest.Communities(400, 4, 8, 16, 4))
	ds = forged(t, ds, "split/given/train.u32", 1, 0) // node 0 twice: seeds must differ
	_, err := Run(context.Background(), ds, scratch(t), small(), "test", run.Hooks{})
	require.ErrorIs(t, err, store.ErrCorrupt)
}

// TestTruncatedWhileTraining cuts each kind of section between two steps.
func TestTruncatedWhileTraining(t *testing.T) {
	for _, file := range []string{
		"feat/node/feat-00000.f16", "topo/node__to__node/neighbors.u32", "topo/node__to__node/offsets.u64", "label/node/label.i32",
	} {
		for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
			ds := open(t, storetest.Communities(8000, 4, 8, 64, 4))
			path := t.TempDir()
			o := small()
			o.Cache.Engine, o.Epochs = engine, 50
			o.Cache.HostBytes, o.TopologyBytes = 0, topology.LeastBytes(ds.Graph(0)) // so that all is read again and again
			_, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{Step: func(epoch, step, steps int, loss float64) {
				if epoch == 1 && step == 2 {
					require.NoError(t, os.Truncate(filepath.Join(ds.Path(), file), 4096))
				}
			}})
			require.ErrorIs(t, err, store.ErrCorrupt, file)
			require.ErrorContains(t, err, filepath.Base(file))
			require.NotContains(t, err.Error(), "\n")
			r, rerr := run.Read(path)
			require.NoError(t, rerr)
			require.Equal(t, run.Failed, r.Status)
			require.Equal(t, err.Error(), r.Error)
		}
	}
}

func TestInterrupted(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for name, c := range map[string]struct {
		epoch, step, epochs int
	}{
		"first step":          {1, 1, 0},
		"within an epoch":     {3, 2, 2},
		"before a validation": {2, 8, 1},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(context.Background())
			path := t.TempDir()
			o := small()
			o.Epochs = 100
			r, err := Run(ctx, ds, in(path), o, "test", run.Hooks{Step: func(epoch, step, _ int, _ float64) {
				if epoch == c.epoch && step == c.step {
					cancel()
				}
			}})
			require.NoError(t, err)
			require.Equal(t, run.Interrupted, r.Status)
			steps := (c.epoch-1)*8 + c.step
			require.Len(t, r.Epochs, c.epochs)
			require.Positive(t, r.InputRows)
			require.Positive(t, r.PeakRSSBytes)
			tensors, meta, err := checkpoint.Load(vfs.Default, filepath.Join(path, run.LastFile))
			require.NoError(t, err)
			require.Equal(t, strconv.Itoa(steps), meta["gnnstore.steps"])
			require.Equal(t, strconv.Itoa(len(r.Epochs)), meta["gnnstore.epochs"])
			require.Equal(t, "convs.0.lin_l.weight", tensors[0].Name)
			require.Equal(t, []int{16, 16}, tensors[0].Shape)
			require.Equal(t, []int{16}, tensors[1].Shape)
			again, err := run.Read(path)
			require.NoError(t, err)
			require.Equal(t, run.Interrupted, again.Status)
		})
	}
	ctx, cancel := context.WithDeadline(context.Background(), time.Now().Add(50*time.Millisecond))
	defer cancel()
	o := small()
	o.Epochs = 1 << 20
	r, err := Run(ctx, ds, scratch(t), o, "test", run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, run.Interrupted, r.Status)
}

// TestInterruptedTest ends the run while the chosen model is tested: that is no success.
func TestInterruptedTest(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	ctx, cancel := context.WithCancel(context.Background())
	o := small()
	r, err := Run(ctx, ds, scratch(t), o, "test", run.Hooks{Epoch: func(e run.Epoch) {
		if e.Epoch == o.Epochs {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, run.Interrupted, r.Status)
	require.Len(t, r.Epochs, o.Epochs)
	require.Nil(t, r.Best.TestAcc)
}

func TestRunDirectory(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	parent := t.TempDir()
	fresh := func() (*run.Dir, error) { return run.Fresh(parent, "x") }
	var soFar *run.Result
	first := filepath.Join(parent, "x-1")
	r, err := Run(context.Background(), ds, fresh, small(), "test", run.Hooks{Step: func(epoch, step, _ int, _ float64) {
		if epoch == 1 {
			_, err := run.Read(first)
			require.ErrorContains(t, err, "no step of it is on record")
			_, err = run.Create(first)
			require.ErrorContains(t, err, "it holds a run; continue it with {resume}, or choose another with {run}")
		}
		if epoch == 2 && soFar == nil {
			var err error
			soFar, err = run.Read(first) // while it runs
			require.NoError(t, err)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, run.Running, soFar.Status)
	require.Len(t, soFar.Epochs, 1)
	require.Equal(t, r.Losses[:1], soFar.Losses)
	require.Positive(t, soFar.InputRows)
	again, err := run.Read(first)
	require.NoError(t, err)
	require.Equal(t, r, again, "losses read back exactly")

	// A run that was killed has no result and no holder.
	require.NoError(t, os.Remove(filepath.Join(first, run.ResultFile)))
	again, err = run.Read(first)
	require.NoError(t, err)
	require.Equal(t, run.Died, again.Status)
	require.Len(t, again.Epochs, 2)

	_, err = run.Read(parent)
	require.ErrorContains(t, err, "not a run directory")
	_, err = run.Read(filepath.Join(parent, "none"))
	require.ErrorContains(t, err, "no such run")

	// Several at once get a directory each.
	var g errgroup.Group
	var mu sync.Mutex
	paths := map[string]bool{}
	for range 20 {
		g.Go(func() error {
			d, err := fresh()
			if err == nil {
				mu.Lock()
				paths[d.Path()] = true
				mu.Unlock()
				err = d.Close()
			}
			return err
		})
	}
	require.NoError(t, g.Wait())
	require.Len(t, paths, 20)
}

// TestReadOnlyDirectory: where nothing can be written, one line says so.
func TestReadOnlyDirectory(t *testing.T) {
	if os.Geteuid() == 0 {
		t.Skip("no root wanted: to root no directory is read-only")
	}
	dir := t.TempDir()
	require.NoError(t, os.Chmod(dir, 0o555))
	_, err := Run(context.Background(), open(t, storetest.Communities(100, 3, 6, 8, 3)), in(filepath.Join(dir, "run")), small(), "test", run.Hooks{})
	require.ErrorIs(t, err, os.ErrPermission)
	require.NotContains(t, err.Error(), "\n")
}

func TestStableKeys(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	b, err := json.Marshal(trained(t, ds, small()))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	has := func(m any, keys ...string) {
		for _, k := range keys {
			require.Contains(t, m, k)
		}
	}
	has(m, "epochs", "losses", "best", "tiers", "disk", "input_rows", "peak_rss_bytes", "peak_file_bytes", "params_xxh3", "kernels", "seed", "metric", "valid", "test")
	has(m["epochs"].([]any)[0], "epoch", "train", "valid", "test", "loss", "train_acc", "valid_acc", "test_acc", "seconds", "steps")
	has(m["best"], "epoch", "valid_acc", "test_acc", "valid", "test")
	require.Equal(t, m["best"].(map[string]any)["test_acc"], m["test"])
	has(m["disk"], "bytes_wanted", "bytes_read", "reads", "seconds", "amplification")
	for _, tier := range []string{"device", "host", "disk"} {
		has(m["tiers"].(map[string]any)[tier], "capacity_bytes", "rows_hit", "rows_missed", "bytes_read", "evictions")
	}
}
