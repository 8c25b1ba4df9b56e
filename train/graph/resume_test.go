package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// long is small with everything that a checkpoint must carry: a best epoch before the last, an
// epoch not evaluated, checkpoints within epochs.
func long() run.Options {
	o := small()
	o.Epochs, o.EvalEvery, o.CheckpointEvery, o.LogEvery, o.LR = 5, 2, 3, 1, 0.03
	return o
}

// runOn starts or resumes the run in directory /run of fsys.
func runOn(ctx context.Context, fsys vfs.FS, ds *store.Dataset, o run.Options, h run.Hooks) (*run.Result, error) {
	return Run(ctx, ds, func() (*run.Dir, error) {
		d, _, err := run.OpenOn(fsys, "/run")
		return d, err
	}, o, "test", h)
}

// sameRun compares all that does not depend on time or on what the caches held.
func sameRun(t *testing.T, want, got *run.Result, msg ...any) {
	t.Helper()
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3, msg...)
	require.Equal(t, want.Losses, got.Losses, msg...)
	require.Equal(t, want.Best, got.Best, msg...)
	require.Equal(t, want.Status, got.Status, msg...)
	require.Equal(t, want.InputRows, got.InputRows, msg...)
	require.Equal(t, want.Tiers.Disk.RowsHit, got.Tiers.Disk.RowsHit, msg...)
	require.Equal(t, want.History, got.History, msg...)
	require.Len(t, got.Epochs, len(want.Epochs), msg...)
	for i, e := range want.Epochs {
		g := got.Epochs[i]
		e.Seconds, e.LimitingStage, g.Seconds, g.LimitingStage = 0, "", 0, ""
		require.Equal(t, e, g, msg...)
	}
}

// listing is the files of the run in directory /run.
func listing(t *testing.T, fsys vfs.FS) []string {
	var names []string
	for _, dir := range []string{"", run.CheckpointDir} {
		files, err := fsys.List(filepath.Join("/run", dir))
		require.NoError(t, err)
		for _, f := range files {
			names = append(names, filepath.Join(dir, f))
		}
	}
	slices.Sort(names)
	return names
}

// errCrash ends a run at the moment whose disk contents were taken.
var errCrash = errors.New("the power is out")

// TestResumeAfterPowerLoss takes the synced contents of the disk at every step and in the middle of
// every kind of write, and resumes from them. It ends with the same weights, losses and counters as
// a run that was never cut.
func TestResumeAfterPowerLoss(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := long()
	whole := vfs.NewMem()
	want, err := runOn(context.Background(), whole, ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, run.Done, want.Status)

	// Every write, sync, rename and removal is a moment; a run has some hundreds of them.
	count := 0
	crashAt := -1
	var disk *vfs.MemFS
	var left *vfs.MemFS
	moments := errorfs.InjectorFunc(func(op errorfs.Op) error {
		switch op.Kind {
		case errorfs.OpFileWrite, errorfs.OpFileSync, errorfs.OpRename, errorfs.OpRemove, errorfs.OpCreate:
		default:
			return nil
		}
		if count++; count == crashAt {
			left = disk.CrashClone(vfs.CrashCloneCfg{})
		}
		if crashAt > 0 && count >= crashAt {
			return errCrash
		}
		return nil
	})
	disk = vfs.NewCrashableMem()
	_, err = runOn(context.Background(), errorfs.Wrap(disk, moments), ds, o, run.Hooks{})
	require.NoError(t, err)
	total := count
	stride := 5
	if testing.Short() {
		stride = 23
	}
	from := map[int]int{} // checkpoints resumed from
	for crashAt = 1; crashAt <= total; crashAt += stride {
		count, left, disk = 0, nil, vfs.NewCrashableMem()
		_, err := runOn(context.Background(), errorfs.Wrap(disk, moments), ds, o, run.Hooks{})
		require.ErrorIs(t, err, errCrash)
		require.NotNil(t, left)
		if d, _, err := run.OpenOn(left, "/run"); err == nil {
			if r, ok, err := d.Finished(); ok {
				require.NoError(t, err)
				sameRun(t, want, r)
				require.NoError(t, d.Close())
				continue
			}
			require.NoError(t, d.Close())
		}
		got, err := runOn(context.Background(), left, ds, o, run.Hooks{Start: func(r *run.Record) {
			if n := len(r.Resumed); n > 0 {
				from[r.Resumed[n-1].Updates]++
			}
		}})
		require.NoError(t, err, "after moment %d of %d", crashAt, total)
		sameRun(t, want, got, "after moment %d of %d", crashAt, total)
		require.Equal(t, listing(t, whole), listing(t, left), "after moment %d of %d", crashAt, total)
	}
	if !testing.Short() {
		require.Greater(t, len(from), 12, "resumed at %v", from)
	}
}

// TestResumeOverAndOver interrupts a run after every second step, which with κ of 5 is mostly amid
// what batches share.
func TestResumeOverAndOver(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for _, name := range []string{"ns", "ns nested", "labor0 nested", "labor0 smoothed", "rw nested"} {
		t.Run(name, func(t *testing.T) {
			o := long()
			draws[name](&o)
			resumeOverAndOver(t, ds, o)
		})
	}
}

func resumeOverAndOver(t *testing.T, ds *store.Dataset, o run.Options) {
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	disk := vfs.NewMem()
	for cuts := 0; ; cuts++ {
		ctx, cancel := context.WithCancel(context.Background())
		steps := 0
		got, err := runOn(ctx, disk, ds, o, run.Hooks{Step: func(int, int, int, float64) {
			if steps++; steps == 2 {
				cancel()
			}
		}})
		cancel()
		require.NoError(t, err)
		if got.Status == run.Interrupted {
			require.Less(t, cuts, 40)
			o.Workers = 1 + cuts%3 // what does not change results may change
			o.Cache.HostBytes = int64(cuts%4) * 1000
			continue
		}
		require.Greater(t, cuts, 15)
		want.Tiers.Disk.RowsHit = got.Tiers.Disk.RowsHit // the caches were not the same
		for i := range want.Epochs {
			want.Epochs[i].DiskBytes, want.Epochs[i].HitRate = got.Epochs[i].DiskBytes, got.Epochs[i].HitRate
			want.Epochs[i].HostRows = got.Epochs[i].HostRows
		}
		sameRun(t, want, got)
		return
	}
}

// TestResumeEarlyStop: patience and the best weights are part of the state.
func TestResumeEarlyStop(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Epochs, o.Patience = 100, 3
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, run.StoppedEarly, want.Status)
	disk := vfs.NewMem()
	for range len(want.Epochs) {
		ctx, cancel := context.WithCancel(context.Background())
		got, err := runOn(ctx, disk, ds, o, run.Hooks{Epoch: func(run.Epoch) { cancel() }})
		cancel()
		require.NoError(t, err)
		if got.Status != run.Interrupted {
			sameRun(t, want, got)
			return
		}
	}
	got, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)
}

// TestResumeLonger: a run resumed with more epochs ends like a run that asked for them at once.
func TestResumeLonger(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	o := small()
	o.Epochs = 6
	want := trained(t, ds, o)
	disk := vfs.NewMem()
	o.Epochs = 3
	_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.NoError(t, err)
	o.Epochs = 6
	ctx, cancel := context.WithCancel(context.Background())
	_, err = runOn(ctx, disk, ds, o, run.Hooks{Epoch: func(run.Epoch) { cancel() }})
	require.NoError(t, err)
	d, record, err := run.OpenOn(disk, "/run")
	require.NoError(t, err)
	require.Equal(t, metric.Accuracy, record.Options.Metric, "what the default came to")
	require.Equal(t, ds.Manifest().Splits[0].Name, record.Options.Split)
	require.Equal(t, 6, record.Options.Epochs, "the next resume knows the new length")
	require.NoError(t, d.Close())
	got, err := runOn(context.Background(), disk, ds, record.Options, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)
}

// half runs a few steps and leaves a run directory to resume.
func half(t *testing.T, ds *store.Dataset, o run.Options) *vfs.MemFS {
	disk := vfs.NewMem()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := runOn(ctx, disk, ds, o, run.Hooks{Step: func(epoch, step, _ int, _ float64) {
		if epoch == 2 && step == 4 {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Equal(t, run.Interrupted, r.Status)
	return disk
}

func TestResumeRefuses(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	other := open(t, storetest.Communities(600, 4, 8, 16, 3))
	for name, c := range map[string]struct {
		ds     *store.Dataset
		change func(o *run.Options)
		want   []string
	}{
		"another dataset": {other, func(*run.Options) {}, []string{"it trained on a dataset with seal"}},
		"other options": {ds, func(o *run.Options) { o.LR, o.Hidden, o.Seed = 1, 99, 7 },
			[]string{"{hidden} is 99 and the run's is 16", "{lr} is 1 and the run's is 0.03", "{seed} is 7 and the run's is 1"}},
		"another model": {ds, func(o *run.Options) { o.Kind = model.MLP }, []string{`{model} is mlp and the run's is sage`}},
	} {
		t.Run(name, func(t *testing.T) {
			disk := half(t, ds, long())
			o := long()
			c.change(&o)
			_, err := runOn(context.Background(), disk, c.ds, o, run.Hooks{})
			for _, want := range c.want {
				require.ErrorContains(t, err, want)
			}
			_, err = runOn(context.Background(), disk, ds, long(), run.Hooks{}) // a refusal spoils nothing
			require.NoError(t, err)
		})
	}
}

// edit changes a file in the directory /run.
func edit(t *testing.T, disk vfs.FS, name string, change func([]byte) []byte) {
	path := filepath.Join("/run", name)
	text, err := readFile(disk, path)
	require.NoError(t, err)
	f, err := disk.Create(path, vfs.WriteCategoryUnspecified)
	require.NoError(t, err)
	_, err = f.Write(change(text))
	require.NoError(t, errors.Join(err, f.Close()))
}

// TestResumeDamaged: a damaged checkpoint is passed over for the one before it, and a checkpoint
// from elsewhere is named.
func TestResumeDamaged(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := long()
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	cut := func(b []byte) []byte { return b[:len(b)/2] }
	flip := func(b []byte) []byte { b[len(b)-9] ^= 4; return b }
	for name, damage := range map[string]func([]byte) []byte{"truncated": cut, "flipped": flip} {
		t.Run(name, func(t *testing.T) {
			disk := half(t, ds, o)
			names := checkpointsOf(t, disk)
			require.Len(t, names, o.KeepCheckpoints)
			edit(t, disk, names[1], damage)
			var notes []string
			got, err := runOn(context.Background(), disk, ds, o, run.Hooks{Note: func(s string) { notes = append(notes, s) }})
			require.NoError(t, err)
			require.Contains(t, notes[0], names[1])
			require.Contains(t, notes[0], "passing it over")
			sameRun(t, want, got)

			disk = half(t, ds, o)
			edit(t, disk, names[0], damage)
			edit(t, disk, names[1], damage)
			_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
			require.ErrorContains(t, err, "none of its checkpoints can be read; remove /run/checkpoints to start at step 0")
		})
	}
	disk := half(t, ds, o)
	edit(t, disk, run.MetricsFile, func(b []byte) []byte { return b[:100] })
	_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.ErrorContains(t, err, "metrics.jsonl has 100 bytes, and the checkpoint was made at")

	// A line of metrics that is no JSON, and one that says something else.
	for change, want := range map[string]string{
		`{"epoch":{`: "line 9 is damaged: invalid character", `"train_acc":0`: "is damaged: lines 1 to 13 are not all what the run wrote",
	} {
		disk := half(t, ds, o)
		edit(t, disk, run.MetricsFile, func(b []byte) []byte {
			require.Contains(t, string(b), change)
			changed := []byte(change)
			changed[len(changed)-1] ^= 1
			return bytes.Replace(b, []byte(change), changed, 1)
		})
		_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
		require.ErrorContains(t, err, "/run/metrics.jsonl ")
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "; restore it, or begin another run with {run}")
		require.NotContains(t, err.Error(), "\n")
	}

	wide := o
	wide.Hidden = 32
	disk, strange := half(t, ds, o), half(t, ds, wide)
	names := checkpointsOf(t, disk)
	foreign, err := readFile(strange, filepath.Join("/run", names[1]))
	require.NoError(t, err)
	edit(t, disk, names[1], func([]byte) []byte { return foreign })
	_, err = runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.EqualError(t, err, "run /run: {hidden} is 16 in run.json and 32 in the checkpoint; remove run.json or "+names[1]+
		", whichever is not of this run")
}

// TestResumeForbidden: a checkpoint that may not be read may be whole, so it is not passed over,
// which removes it.
func TestResumeForbidden(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	disk := half(t, ds, long())
	before := listing(t, disk)
	forbid := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpOpen && strings.HasSuffix(op.Path, "12.safetensors") {
			return &fs.PathError{Op: "open", Path: op.Path, Err: fs.ErrPermission}
		}
		return nil
	}))
	_, err := runOn(context.Background(), forbid, ds, long(), run.Hooks{})
	require.ErrorIs(t, err, fs.ErrPermission)
	require.Equal(t, before, listing(t, disk))
}

// TestDamagedRecords: what cannot be read is named, with a way out.
func TestDamagedRecords(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	path := filepath.Join(t.TempDir(), "run")
	o := small()
	o.Epochs = 3
	_, err := Run(context.Background(), ds, in(path), o, "test", run.Hooks{})
	require.NoError(t, err)
	for _, text := range []string{"", "{", "[]"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, run.ResultFile), []byte(text), 0o666))
		_, err = run.Read(path)
		require.ErrorContains(t, err, "run "+path+": result.json is damaged: ")
		require.ErrorContains(t, err, "; remove it, and train {resume} makes it again")
	}
	for _, text := range []string{"", "[]", "{}", "null"} {
		require.NoError(t, os.WriteFile(filepath.Join(path, run.RecordFile), []byte(text), 0o666))
		_, _, err = run.Open(path)
		require.ErrorContains(t, err, "run "+path+": run.json is damaged: ")
		require.ErrorContains(t, err, "; remove run.json, and {resume} takes the options from checkpoints/00000012.safetensors")
	}
	require.NoError(t, os.Remove(filepath.Join(path, run.ResultFile)))
	require.NoError(t, os.WriteFile(filepath.Join(path, run.MetricsFile), []byte("{}\n{\n{}\n"), 0o666))
	_, err = run.Read(path)
	require.EqualError(t, err, "run "+path+": metrics.jsonl line 2 is damaged: unexpected end of JSON input; "+
		"remove the line to see the others")

	require.NoError(t, os.RemoveAll(filepath.Join(path, run.CheckpointDir)))
	_, _, err = run.Open(path)
	require.ErrorContains(t, err, "run "+path+": run.json is damaged: ")
	require.ErrorContains(t, err, "; restore it, or begin another run with {run}")
}

// TestResumeImpossible: earlier versions had no checksum on what a checkpoint counts, so it may be
// anything.
func TestResumeImpossible(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	for change, want := range map[string]string{
		`"metrics_bytes": -5`:                   "-5 bytes of metrics",
		`"worse": -1`:                           "-1 evaluations since the best",
		`"updates": -1`:                         "-1 updates cannot be 1 epochs of 8 and 4 more",
		`"updates": 13`:                         "13 updates cannot be",
		`"epochs": 2`:                           "12 updates cannot be 2 epochs",
		`"partial": {"steps": -3}`:              "1 epochs of 8 and -3 more",
		`"epochs": 0, "partial": {"steps": 12}`: "0 epochs of 8 and 12 more",
		`"has_best": true`:                      "the best epoch is 0 of 1",
		`"so_far": {"best": {"epoch": 7}}`:      "the best epoch is 7 of 1",
	} {
		disk := half(t, ds, long())
		name := "/run/checkpoints/00000012.safetensors"
		tensors, meta, err := checkpoint.Load(disk, name)
		require.NoError(t, err)
		var at map[string]any
		require.NoError(t, json.Unmarshal([]byte(meta[progressKey]), &at))
		require.NoError(t, json.Unmarshal([]byte("{"+change+"}"), &at))
		text, err := json.Marshal(at)
		require.NoError(t, err)
		meta[progressKey] = string(text)
		require.NoError(t, checkpoint.Save(disk, name, tensors, meta))
		_, err = runOn(context.Background(), disk, ds, long(), run.Hooks{})
		require.ErrorContains(t, err, "resume "+name+": no progress to resume from: gnnstore.progress: ")
		require.ErrorContains(t, err, want)
		require.NoError(t, disk.Remove(name))
		_, err = runOn(context.Background(), disk, ds, long(), run.Hooks{})
		require.NoError(t, err, "as the error says")
	}
}

// TestResumeTidies: what was half written goes, whatever checkpoints the run writes from then on.
func TestResumeTidies(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := long()
	disk := half(t, ds, o)
	for _, name := range []string{"checkpoints/00000013.safetensors.tmp", "metrics.jsonl.tmp", "best.safetensors.tmp"} {
		f, err := disk.Create(filepath.Join("/run", name), vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		require.NoError(t, f.Close())
	}
	o.CheckpointEvery, o.KeepCheckpoints = 0, 1
	_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, []string{"best.safetensors", "checkpoints", "checkpoints/00000040.safetensors", "dataset.json", "last.safetensors", "lock",
		"metrics.jsonl", "result.json", "run.json"}, listing(t, disk))
}

// TestFullDisk fills the disk while a checkpoint is written: the one before it stays, and the run
// goes on from there.
func TestFullDisk(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	o := long()
	want, err := runOn(context.Background(), vfs.NewMem(), ds, o, run.Hooks{})
	require.NoError(t, err)
	disk := vfs.NewMem()
	full := true
	fsys := errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if full && op.Kind == errorfs.OpFileWrite && strings.Contains(op.Path, "00000009") {
			return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	}))
	_, err = runOn(context.Background(), fsys, ds, o, run.Hooks{})
	require.ErrorIs(t, err, syscall.ENOSPC)
	require.ErrorContains(t, err, "write checkpoint /run/checkpoints/00000009.safetensors")
	require.ErrorContains(t, err, "; make room, then go on with gnnstore train {resume} {run} /run")
	files, err := disk.List("/run/checkpoints")
	require.NoError(t, err)
	require.ElementsMatch(t, []string{"00000006.safetensors", "00000008.safetensors"}, files)
	_, err = runOn(context.Background(), errorfs.Wrap(disk, errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind == errorfs.OpFileWrite {
			return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
		}
		return nil
	})), ds, o, run.Hooks{})
	require.ErrorContains(t, err, "metrics: write /run/metrics.jsonl.tmp: ", "room for nothing at all")
	require.ErrorContains(t, err, "; make room, then go on with gnnstore train {resume} {run} /run")
	full = false
	got, err := runOn(context.Background(), fsys, ds, o, run.Hooks{})
	require.NoError(t, err)
	sameRun(t, want, got)
}

func TestTwoAtOnce(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	path := filepath.Join(t.TempDir(), "run")
	asked := false
	r, err := Run(context.Background(), ds, in(path), small(), "test", run.Hooks{Step: func(int, int, int, float64) {
		if asked {
			return
		}
		asked = true
		_, _, err := run.Open(path)
		require.ErrorContains(t, err, "a run is at work in it")
		_, err = run.Create(path)
		require.ErrorContains(t, err, "it holds a run")
	}})
	require.NoError(t, err)
	dir, rec, err := run.Open(path)
	require.NoError(t, err)
	r.Options.Cache.Costs = rec.Costs // a result has no costs among its options
	require.Equal(t, r.Options, rec.Options)
	r.Options.Cache.Costs = disk.Costs{}
	again, ok, err := dir.Finished()
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, r, again)
	require.NoError(t, dir.Close())
	require.NoError(t, dir.Close())

	// A directory of something else is left as it is.
	path = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(path, "thesis.tex"), nil, 0o600))
	_, _, err = run.Open(path)
	require.ErrorContains(t, err, "it holds thesis.tex, and is no run")
	_, err = run.Create(path)
	require.ErrorContains(t, err, "it holds thesis.tex, and is no run")
	names, err := os.ReadDir(path)
	require.NoError(t, err)
	require.Len(t, names, 1)
}

// TestInit begins with the weights of another run.
func TestInit(t *testing.T) {
	ds := open(t, storetest.Communities(300, 3, 6, 8, 3))
	path := filepath.Join(t.TempDir(), "run")
	first, err := Run(context.Background(), ds, in(path), small(), "test", run.Hooks{})
	require.NoError(t, err)
	o := small()
	o.Epochs, o.Init = 0, filepath.Join(path, run.LastFile)
	require.Equal(t, first.ParamsXXH3, trained(t, ds, o).ParamsXXH3)
	o.Hidden = 17
	_, err = Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "{init} "+o.Init+": tensor convs.0.lin_l.weight is [16 8] and the model's is [17 8]")
	o.Init = filepath.Join(path, "none")
	_, err = Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorIs(t, err, fs.ErrNotExist)

	o.Init, o.Hidden = filepath.Join(path, run.LastFile), small().Hidden
	tensors, _, err := checkpoint.Load(vfs.Default, o.Init)
	require.NoError(t, err)
	i := slices.IndexFunc(tensors, func(x checkpoint.Tensor) bool { return x.Name == "convs.1.lin_l.bias" })
	tensors[i].Data[2] = float32(math.Inf(1))
	require.NoError(t, checkpoint.Save(vfs.Default, o.Init, tensors, nil))
	_, err = Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{})
	require.ErrorContains(t, err, "{init} "+o.Init+": weight convs.1.lin_l.bias[2] is +Inf: it is no network that works")
}

// TestNaN: the run stops at the step, says where the NaN comes from, and keeps the last good state.
func TestNaN(t *testing.T) {
	deep := long()
	deep.LR, deep.Norm, deep.Layers, deep.Fanouts = 9e5, "none", 8, []int{3, 2, 2, 2, 2, 2, 2, 2}
	disk := vfs.NewMem()
	_, err := runOn(context.Background(), disk, open(t, storetest.Communities(600, 4, 8, 16, 2)), deep, run.Hooks{})
	require.ErrorContains(t, err, "epoch 1, step ")
	require.ErrorContains(t, err, "lower {lr}")

	spec := storetest.Communities(600, 4, 8, 16, 2)
	row := spec.Row
	spec.Elem = store.F32
	spec.Row = func(v int) []float32 {
		r := row(v)
		if v == 77 {
			r[5] = float32(math.NaN())
		}
		return r
	}
	one := long()
	one.Batch, one.Fanouts = 4, []int{1, 1}
	_, err = runOn(context.Background(), disk, open(t, spec), one, run.Hooks{})
	require.ErrorContains(t, err, "resume /run") // another dataset's run is there
	disk = vfs.NewMem()
	_, err = runOn(context.Background(), disk, open(t, spec), one, run.Hooks{})
	require.ErrorContains(t, err, "since feature column 5 of node 77 is NaN; repair the features, or leave the node out; "+
		"the state before it is in /run/checkpoints/")
	text, err := readFile(disk, "/run/result.json")
	require.NoError(t, err)
	require.Contains(t, string(text), `"status": "failed"`)
}
