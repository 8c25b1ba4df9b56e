package train

import (
	"context"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/sample"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func open(t *testing.T, s storetest.Spec) *store.Dataset {
	ds, err := store.Open(storetest.Build(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { ds.Close() })
	return ds
}

func small() Options {
	o := DefaultOptions()
	o.Hidden, o.Batch, o.Epochs, o.Fanouts, o.LR = 16, 64, 3, []int{5, 3}, 0.01
	return o
}

func run(t *testing.T, ds *store.Dataset, o Options) *Result {
	dir, err := CreateRun(filepath.Join(t.TempDir(), "run"))
	require.NoError(t, err)
	defer dir.Close()
	r, err := Run(context.Background(), ds, dir, o, "test", Hooks{})
	require.NoError(t, err)
	return r
}

// TestLearns: neighbours tell the class where a node's own features hardly do.
func TestLearns(t *testing.T) {
	ds := open(t, storetest.Communities(1200, 4, 10, 16, 1))
	o := small()
	o.Epochs = 15
	sage := run(t, ds, o)
	require.Equal(t, Done, sage.Status)
	require.Greater(t, *sage.Best.TestAcc, 0.85)
	require.Less(t, sage.Losses[14], sage.Losses[0])
	o.Kind = model.MLP
	mlp := run(t, ds, o)
	require.Less(t, *mlp.Best.TestAcc, *sage.Best.TestAcc-0.2)
	require.EqualValues(t, 960*15, mlp.InputRows, "an MLP reads the seeds alone")
}

// TestSameBits is principle 2: workers, budgets, policies and engines change no loss and no weight.
func TestSameBits(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := run(t, ds, small())
	require.NotEmpty(t, want.ParamsXXH3)
	for _, workers := range []int{1, 2, 8} {
		for _, cache := range []cachetier.Options{
			{}, {HostBytes: 1}, {HostBytes: 2000}, {HostBytes: 1 << 30}, {DeviceBytes: 5000, HostBytes: 3000},
			{HostBytes: 1 << 20, Policy: cachetier.None}, {HostBytes: 2000, Engine: disk.Pread},
		} {
			o := small()
			o.Workers, o.Cache = workers, cache
			got := run(t, ds, o)
			require.Equal(t, want.Losses, got.Losses, "%d workers, %+v", workers, cache)
			require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
			require.Equal(t, want.Best, got.Best)
			require.Equal(t, got.InputRows, got.Tiers.Device.RowsHit+got.Tiers.Host.RowsHit+got.Tiers.Disk.RowsHit)
			require.Equal(t, got.InputRows*got.RowBytes, got.Tiers.Device.BytesOut+got.Tiers.Host.BytesOut+got.Tiers.Disk.BytesOut)
		}
	}
	o := small()
	o.Seed = 2
	require.NotEqual(t, want.ParamsXXH3, run(t, ds, o).ParamsXXH3)
}

// TestFullEvaluation compares layer-wise evaluation with one pass over the whole neighbourhood of each node.
func TestFullEvaluation(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Layers, o.Fanouts = 3, []int{sample.All, sample.All, sample.All}
	o.EvalNodes = 1000
	full := run(t, ds, o)
	require.Equal(t, "full", full.Evaluation.Method)
	o.EvalBytes = 0
	blocks := run(t, ds, o)
	require.Equal(t, "sampled", blocks.Evaluation.Method)
	require.Equal(t, full.Best, blocks.Best)
	for i := range full.Epochs {
		require.Equal(t, *full.Epochs[i].ValidAcc, *blocks.Epochs[i].ValidAcc)
	}
}

func TestAnyOptionWorks(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	for name, change := range map[string]func(o *Options){
		"batch larger than the training set": func(o *Options) { o.Batch = 1 << 30 },
		"batch of one":                       func(o *Options) { o.Batch, o.Epochs = 1, 1 },
		"fanout beyond any degree":           func(o *Options) { o.Fanouts = []int{100000, 1 << 40} },
		"no epochs":                          func(o *Options) { o.Epochs = 0 },
		"one layer":                          func(o *Options) { o.Layers, o.Fanouts = 1, []int{3} },
		"many workers":                       func(o *Options) { o.Workers = 100 },
		"early stop":                         func(o *Options) { o.Epochs, o.Patience = 200, 1 },
		"test every epoch":                   func(o *Options) { o.EvalTest = "epoch" },
		"input dropout":                      func(o *Options) { o.InputDropout = 0.5 },
		"seldom validated":                   func(o *Options) { o.EvalEvery = 2 },
	} {
		t.Run(name, func(t *testing.T) {
			o := small()
			change(&o)
			r := run(t, ds, o)
			require.Equal(t, r.Options.Patience > 0, r.Status == StoppedEarly)
			for _, l := range r.Losses {
				require.False(t, math.IsNaN(l))
			}
		})
	}
}

func TestValidate(t *testing.T) {
	require.NoError(t, DefaultOptions().Validate())
	o := DefaultOptions()
	o.Fanouts, o.Batch, o.Epochs, o.LR, o.Workers, o.EvalTest, o.Cache.HostBytes = []int{0, -7, 3}, 0, -1, 0, 0, "x", -1
	err := o.Validate()
	for _, want := range []string{"--fanout has 3", "--fanout 0:", "--fanout -7:", "--batch 0", "--epochs -1", "--lr 0", "--workers 0", "--eval-test x", "host budget"} {
		require.ErrorContains(t, err, want)
	}
}

func TestRefusesWhatItCannotTrain(t *testing.T) {
	none := storetest.Communities(50, 3, 6, 8, 3)
	none.Class = func(int) int32 { return -1 }
	for want, spec := range map[string]storetest.Spec{
		"no training node with a label": none,
		"training node":                 {Nodes: 0},
	} {
		dir, err := CreateRun(t.TempDir())
		require.NoError(t, err)
		_, err = Run(context.Background(), open(t, spec), dir, small(), "test", Hooks{})
		require.ErrorContains(t, err, want)
		require.NoError(t, dir.Close())
	}
	dir, err := CreateRun(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	o := small()
	o.Split = "time"
	_, err = Run(context.Background(), open(t, storetest.Communities(50, 3, 6, 8, 3)), dir, o, "test", Hooks{})
	require.ErrorContains(t, err, `no split "time"; --split takes one of: given`)
}

// TestTruncatedWhileTraining cuts the features, then the topology, between two steps.
func TestTruncatedWhileTraining(t *testing.T) {
	for _, file := range []string{"feat/node/feat-00000.f16", "topo/node__to__node/neighbors.u32"} {
		for _, engine := range []disk.Kind{disk.Mmap, disk.Pread} {
			ds := open(t, storetest.Communities(4000, 4, 8, 64, 4))
			dir, err := CreateRun(t.TempDir())
			require.NoError(t, err)
			o := small()
			o.Cache.Engine, o.Epochs = engine, 50
			_, err = Run(context.Background(), ds, dir, o, "test", Hooks{Step: func(epoch, step, steps int, loss float64) {
				if epoch == 1 && step == 2 {
					require.NoError(t, os.Truncate(filepath.Join(ds.Path(), file), 4096))
				}
			}})
			require.ErrorIs(t, err, store.ErrCorrupt, file)
			require.ErrorContains(t, err, filepath.Base(file))
			require.NotContains(t, err.Error(), "\n")
			require.NoError(t, dir.Close())
		}
	}
}

func TestInterrupted(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	ctx, cancel := context.WithCancel(context.Background())
	dir, err := CreateRun(t.TempDir())
	require.NoError(t, err)
	defer dir.Close()
	o := small()
	o.Epochs = 100
	steps := 0
	r, err := Run(ctx, ds, dir, o, "test", Hooks{Step: func(epoch, step, _ int, _ float64) {
		if steps++; epoch == 3 && step == 2 {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, Interrupted, r.Status)
	require.Len(t, r.Epochs, 2)
	require.Equal(t, 2*8+2, steps)
	tensors, meta, err := checkpoint.Load(filepath.Join(dir.Path(), lastFile))
	require.NoError(t, err)
	require.Equal(t, "18", meta["gnnstore.adam_steps"])
	require.Equal(t, "convs.0.lin_l.weight", tensors[0].Name)
	require.Equal(t, []int{16, 16}, tensors[0].Shape)
	again, err := ReadRun(dir.Path())
	require.NoError(t, err)
	require.Equal(t, Interrupted, again.Status)
}

func TestRunDir(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	parent := t.TempDir()
	dir, err := FreshRun(parent, "x")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(parent, "x-1"), dir.Path())
	_, err = CreateRun(dir.Path())
	require.ErrorIs(t, err, os.ErrExist)
	_, err = ReadRun(dir.Path())
	require.ErrorContains(t, err, "no epoch has finished")

	var so *Result
	r, err := Run(context.Background(), ds, dir, small(), "test", Hooks{Step: func(epoch, step, _ int, _ float64) {
		if epoch == 3 && so == nil {
			so, err = ReadRun(dir.Path()) // while it runs
			require.NoError(t, err)
		}
	}})
	require.NoError(t, err)
	require.Equal(t, Running, so.Status)
	require.Len(t, so.Epochs, 2)
	require.Equal(t, r.Losses[:2], so.Losses)
	require.Positive(t, so.InputRows)
	again, err := ReadRun(dir.Path())
	require.NoError(t, err)
	require.Equal(t, r, again, "losses read back exactly")

	next, err := FreshRun(parent, "x")
	require.NoError(t, err)
	require.Equal(t, filepath.Join(parent, "x-2"), next.Path())
	require.NoError(t, next.Close())
	require.NoError(t, dir.Close())
	_, err = ReadRun(parent)
	require.ErrorContains(t, err, "not a run directory")
	_, err = ReadRun(filepath.Join(parent, "none"))
	require.ErrorContains(t, err, "no such run")
}

func TestStableKeys(t *testing.T) {
	ds := open(t, storetest.Communities(100, 3, 6, 8, 3))
	b, err := json.Marshal(run(t, ds, small()))
	require.NoError(t, err)
	var m map[string]any
	require.NoError(t, json.Unmarshal(b, &m))
	has := func(m any, keys ...string) {
		for _, k := range keys {
			require.Contains(t, m, k)
		}
	}
	has(m, "epochs", "losses", "best", "tiers", "disk", "input_rows", "peak_rss_bytes", "peak_file_bytes", "params_xxh3", "kernels", "seed")
	has(m["epochs"].([]any)[0], "epoch", "loss", "train_acc", "valid_acc", "test_acc", "seconds", "steps")
	has(m["best"], "epoch", "valid_acc", "test_acc")
	has(m["disk"], "bytes_wanted", "bytes_read", "reads", "seconds", "amplification")
	for _, tier := range []string{"device", "host", "disk"} {
		has(m["tiers"].(map[string]any)[tier], "capacity_bytes", "rows_hit", "rows_missed", "bytes_read", "evictions")
	}
}
