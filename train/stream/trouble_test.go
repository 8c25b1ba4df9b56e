package stream

import (
	"context"
	"errors"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/cockroachdb/pebble/v2/vfs/errorfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
)

// opened is a stream in a directory of the test.
func opened(t *testing.T, s storetest.StreamSpec) *store.Dataset {
	ds, err := store.Open(storetest.BuildStream(t, s))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, ds.Close()) })
	return ds
}

// troubled keeps checkpoints within epochs, and rows that have no place in memory.
func troubled(kind model.Kind) run.Options {
	o := options(kind)
	o.CheckpointEvery, o.Cache.HostBytes, o.Staleness = 3, 2<<10, 2
	return o
}

// TestSmallStreams: a stream of one event, one whose events are all at one time, one that is
// smaller than a batch, one without a part to validate by or to test by, ends that are both new,
// and nodes that meet themselves.
func TestSmallStreams(t *testing.T) {
	one := storetest.StreamSpec{Users: 1, Items: 1, Src: []uint32{0}, Dst: []uint32{0}, Times: []float64{1.7e9 + 0.25}}
	tied := storetest.StreamSpec{Users: 4, Items: 3}
	loops := storetest.StreamSpec{Users: 5}
	for i := range 60 {
		tied.Src, tied.Dst, tied.Times = append(tied.Src, uint32(i%4)), append(tied.Dst, uint32(i%3)), append(tied.Times, -3)
		loops.Src, loops.Dst, loops.Times = append(loops.Src, uint32(i%5)), append(loops.Dst, uint32(i/5%5)), append(loops.Times, float64(i)/60)
	}
	halved := func(s storetest.StreamSpec, train, valid, test int64) storetest.StreamSpec {
		s.Split = store.StreamSplit{Name: "given", Train: train, Valid: valid, Test: test}
		return s
	}
	fresh := storetest.StreamSpec{Users: 40, Items: 40, Split: store.StreamSplit{Name: "given", Train: 20, Valid: 10, Test: 10}}
	for i := range 40 {
		fresh.Src, fresh.Dst, fresh.Times = append(fresh.Src, uint32(i)), append(fresh.Dst, uint32(i)), append(fresh.Times, float64(i))
	}
	for name, s := range map[string]storetest.StreamSpec{
		"one": one, "tied": tied, "tied, all parts": halved(tied, 40, 10, 10), "loops": halved(loops, 40, 10, 10), "no validation": halved(loops, 40, 0, 20),
		"no test": halved(loops, 40, 20, 0), "new ends": fresh,
	} {
		ds := opened(t, s)
		for _, kind := range model.TemporalKinds {
			for _, batch := range []int{7, 1000} {
				o := options(kind)
				o.Batch = batch
				r := run1(t, ds, o, run.Hooks{})
				require.Equal(t, run.Done, r.Status, name)
				for _, loss := range r.Losses {
					require.Less(t, loss, 10.0, name)
				}
			}
		}
	}
}

// TestRefused: what does not fit the stream, in one line that says where and what to do.
func TestRefused(t *testing.T) {
	ds := drifting(t, 400)
	graph := func(t *testing.T) *store.Dataset {
		ds, err := store.Open(storetest.Build(t, storetest.Communities(50, 2, 3, 4, 1)))
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, ds.Close()) })
		return ds
	}
	none := storetest.StreamSpec{Users: 2, Items: 2, Src: []uint32{0}, Dst: []uint32{1}, Times: []float64{1}}
	none.Split = store.StreamSplit{Name: "given", Test: 1}
	far := storetest.StreamSpec{Users: 2, Items: 2, Src: []uint32{0, 1}, Dst: []uint32{1, 1}, Times: []float64{-1e308, 1e308}}
	for name, c := range map[string]struct {
		ds     *store.Dataset
		change func(o *run.Options)
		says   []string
	}{
		"steps":     {ds, func(o *run.Options) { o.Staleness = 7 }, []string{ds.Path(), "{staleness} 7: an epoch has 6 steps"}},
		"in flight": {ds, func(o *run.Options) { o.Staleness, o.Inflight = 3, 2 }, []string{"{inflight} 2: from {staleness}, 3"}},
		"warm":      {ds, func(o *run.Options) { o.WarmEvents = 280 }, []string{"{warm_events} 280: it has 280 events to learn from"}},
		"memory":    {ds, func(o *run.Options) { o.MemoryBytes = 1 << 20 }, []string{ds.Path(), "{memory_bytes} 1 MiB is not enough", "the least that works is"}},
		"no stream": {graph(t), func(*run.Options) {}, []string{"it has no stream of events", "gnnstore ingest events"}},
		"other":     {ds, func(o *run.Options) { o.Stream = "clicks" }, []string{"{stream} clicks", ds.Path()}},
		"no part":   {opened(t, none), func(*run.Options) {}, []string{"none of its 1 events is to learn from; ingest it"}},
		"times":     {opened(t, far), func(*run.Options) {}, []string{"too large for float64; ingest smaller ones"}},
		"rate":      {ds, func(o *run.Options) { o.LR = 1e6 }, []string{"{lr} 1e+06: above 0 and below 1e+06"}},
	} {
		o := options(model.TGN)
		c.change(&o)
		disk := vfs.NewMem()
		_, err := runOn(t.Context(), disk, "/run", c.ds, o, run.Hooks{})
		for _, text := range c.says {
			require.ErrorContains(t, err, text, name)
		}
		require.NotContains(t, err.Error(), "\n", name)
		_, err = disk.Stat("/run")
		require.ErrorIs(t, err, fs.ErrNotExist, name)
	}
}

// TestNotFinite: a feature that is no number ends the run with its event and column, in the step
// that has the event, though it would be in the loss of a later one alone, as of networks without
// neighbours. So no checkpoint has it in its state.
func TestNotFinite(t *testing.T) {
	spec := storetest.StreamSpec{Users: 3, Items: 3, Dim: 2, Row: func(event int) []float32 {
		if event == 449 { // the last one of its batch, so that nothing takes the place of its mail
			return []float32{0, float32(math.NaN())}
		}
		return []float32{1, float32(event % 3)}
	}}
	for i := range 600 {
		spec.Src, spec.Dst, spec.Times = append(spec.Src, uint32(i%3)), append(spec.Dst, uint32(i/2%3)), append(spec.Times, float64(i))
	}
	ds := opened(t, spec)
	for _, kind := range model.TemporalKinds {
		for _, publish := range []string{run.Early, run.Late} {
			o := troubled(kind)
			o.Publish, o.CheckpointEvery = publish, 1
			disk := vfs.NewMem()
			var all []string
			for range 2 { // the second goes on
				_, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
				require.ErrorContains(t, err, "epoch 1, step 9: the state of a node became NaN, since column 1 of the features of event 449 is NaN; "+
					"repair the features, or leave the event out; the state before it is in /run/checkpoints/0000000", "%s, %s", kind, publish)
				names, err := disk.List("/run/checkpoints")
				require.NoError(t, err)
				slices.Sort(names)
				if all != nil {
					require.Equal(t, all, names)
				}
				all = names
			}
			require.Equal(t, run.CheckpointName(8), "checkpoints/"+all[len(all)-1])
		}
	}
}

// TestNoSpace: a disk that is full when rows leave memory, or a checkpoint is written, says so;
// with room the run comes to what it would have.
func TestNoSpace(t *testing.T) {
	ds := drifting(t, 500)
	for _, kind := range model.TemporalKinds {
		o := troubled(kind)
		want := outcomeOf(run1(t, ds, o, run.Hooks{}))
		for _, where := range []string{"/state/rows-", "/state/gen-", "/checkpoints/"} {
			var mu sync.Mutex
			writes, full := 0, true
			disk := errorfs.Wrap(vfs.NewMem(), errorfs.InjectorFunc(func(op errorfs.Op) error {
				mu.Lock()
				defer mu.Unlock()
				if strings.Contains(op.Path, where) && op.Kind.ReadOrWrite() == errorfs.OpIsWrite {
					if writes++; full && writes > 12 {
						return &fs.PathError{Op: "write", Path: op.Path, Err: syscall.ENOSPC}
					}
				}
				return nil
			}))
			_, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
			require.ErrorIs(t, err, syscall.ENOSPC, "%s, %s", kind, where)
			require.ErrorContains(t, err, "; make room, then go on with gnnstore train {resume} {run} /run", where)
			full = false
			got, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
			require.NoError(t, err)
			require.Equal(t, want, outcomeOf(got), "%s, %s", kind, where)
		}
	}
}

var errCrash = errors.New("crash")

// TestPowerLoss: what a crash leaves after any write, in a publication, a checkpoint, or between
// them, goes on to what nothing disturbed.
func TestPowerLoss(t *testing.T) {
	storetest.Long(t)
	ds := drifting(t, 500)
	o := troubled(model.TGN)
	o.Batch = 100
	want := outcomeOf(run1(t, ds, o, run.Hooks{}))
	var mu sync.Mutex
	count, crashAt := 0, -1
	var disk, left *vfs.MemFS
	writes := errorfs.InjectorFunc(func(op errorfs.Op) error {
		if op.Kind.ReadOrWrite() != errorfs.OpIsWrite {
			return nil
		}
		mu.Lock()
		defer mu.Unlock()
		if count++; count == crashAt {
			left = disk.CrashClone(vfs.CrashCloneCfg{})
		}
		if crashAt > 0 && count >= crashAt {
			return errCrash
		}
		return nil
	})
	disk = vfs.NewCrashableMem()
	_, err := runOn(t.Context(), errorfs.Wrap(disk, writes), "/run", ds, o, run.Hooks{})
	require.NoError(t, err)
	total, stride := count, 11
	if testing.Short() {
		stride = 53
	}
	for crashAt = 1; crashAt <= total; crashAt += stride {
		count, left, disk = 0, nil, vfs.NewCrashableMem()
		_, err := runOn(t.Context(), errorfs.Wrap(disk, writes), "/run", ds, o, run.Hooks{})
		if err == nil {
			continue // it came to its end with fewer writes
		}
		require.ErrorIs(t, err, errCrash)
		if d, _, err := run.OpenOn(left, "/run"); err == nil {
			_, ended, err := d.Finished()
			require.NoError(t, errors.Join(err, d.Close()))
			if ended {
				continue
			}
		}
		got, err := runOn(t.Context(), left, "/run", ds, o, run.Hooks{})
		require.NoError(t, err, "after write %d of %d", crashAt, total)
		require.Equal(t, want, outcomeOf(got), "after write %d of %d", crashAt, total)
	}
	t.Logf("%d writes", total)
}

// TestOtherRun: a run does not go on with other options that decide its result, on another stream,
// nor from state that is not as it was written.
func TestOtherRun(t *testing.T) {
	ds := drifting(t, 500)
	o := troubled(model.JODIE)
	disk := vfs.NewMem()
	ctx, cancel := context.WithCancel(t.Context())
	_, err := runOn(ctx, disk, "/run", ds, o, run.Hooks{Step: func(_, step, _ int, _ float64) {
		if step == 5 {
			cancel()
		}
	}})
	require.NoError(t, err)
	require.Greater(t, o.KeepCheckpoints, 1)
	for says, change := range map[string]func(o *run.Options){
		"{staleness} is 3 and the run's is 2":        func(o *run.Options) { o.Staleness = 3 },
		"{negative_population} is nodes and the run": func(o *run.Options) { o.NegativePopulation = run.AllNodes },
		"{batch} is 40 and the run's is 50":          func(o *run.Options) { o.Batch = 40 },
		"{warm_events} is 9 and the run's is 0":      func(o *run.Options) { o.WarmEvents = 9 },
		"{times} is learnt and the run's":            func(o *run.Options) { o.Times = run.Learnt },
		"{seed} is 7 and the run's":                  func(o *run.Options) { o.Seed = 7 },
	} {
		other := o
		change(&other)
		_, err := runOn(t.Context(), disk, "/run", ds, other, run.Hooks{})
		require.ErrorContains(t, err, "resume /run: "+says)
	}
	_, err = runOn(t.Context(), disk, "/run", drifting(t, 501), o, run.Hooks{})
	require.ErrorContains(t, err, "resume /run: it trained on a dataset with seal ")

	names, err := disk.List("/run/state")
	require.NoError(t, err)
	for _, name := range names {
		path := "/run/state/" + name
		f, err := disk.OpenReadWrite(path, vfs.WriteCategoryUnspecified)
		require.NoError(t, err)
		var was [1]byte
		_, err = f.ReadAt(was[:], 3)
		require.NoError(t, err)
		write := func(b byte) {
			_, err := f.WriteAt([]byte{b}, 3)
			require.NoError(t, err)
		}
		write(was[0] ^ 0x10)
		kept, err := disk.List("/run/" + run.CheckpointDir)
		require.NoError(t, err)
		fewer := o
		fewer.KeepCheckpoints = 1
		_, err = runOn(t.Context(), disk, "/run", ds, fewer, run.Hooks{})
		require.ErrorContains(t, err, "resume /run/"+run.CheckpointDir)
		require.ErrorContains(t, err, path)
		require.ErrorContains(t, err, "begin another run with {run}")
		left, err := disk.List("/run/" + run.CheckpointDir)
		require.NoError(t, err)
		require.ElementsMatch(t, kept, left, "older checkpoints are the way out")
		write(was[0])
		require.NoError(t, f.Close())
	}
	got, err := runOn(t.Context(), disk, "/run", ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, outcomeOf(run1(t, ds, o, run.Hooks{})), outcomeOf(got))
}

// TestLargeLossIsSaid: a note says it once, with what to change.
func TestLargeLossIsSaid(t *testing.T) {
	ds, o := drifting(t, 400), options(model.TGN)
	for lr, times := range map[float64]int{o.LR: 0, 1e3: 1} {
		o.LR = lr
		notes := ""
		r := run1(t, ds, o, run.Hooks{Note: func(s string) { notes += s + "\n" }})
		require.Equal(t, times > 0, r.Losses[1] > 1e3, "%v", r.Losses)
		require.Equal(t, times, strings.Count(notes, "the steps are too large, or the features or numbers to learn are; lower {lr}"), notes)
	}
}

// TestRefusalsNameOnce: a refusal names the path of the run, or of the dataset, exactly once.
func TestRefusalsNameOnce(t *testing.T) {
	spec := driftingSpec(400, 0)
	ds := streamOf(t, spec)
	o := options(model.TGN)
	o.KeepCheckpoints = 2
	scaled, wide := spec, spec
	scaled.TimeScale, wide.Dim = 10, columns+1
	wide.Row = func(int) []float32 { return make([]float32, columns+1) }
	newest := func(path string) string {
		names, err := filepath.Glob(filepath.Join(path, run.CheckpointDir, "*"))
		require.NoError(t, err)
		return slices.Max(names)
	}
	for name, c := range map[string]struct {
		ds     *store.Dataset
		damage func(path string)
	}{
		"gone":    {ds, func(path string) { require.NoError(t, os.Remove(newest(path))) }},
		"damaged": {ds, func(path string) { require.NoError(t, os.WriteFile(newest(path), []byte("nothing"), 0o600)) }},
		"none": {ds, func(path string) {
			require.NoError(t, os.RemoveAll(filepath.Join(path, run.CheckpointDir)))
			require.NoError(t, os.Remove(filepath.Join(path, run.ResultFile)))
		}},
		"times": {streamOf(t, scaled), func(string) {}},
		"wide":  {streamOf(t, wide), func(string) {}},
	} {
		path, _ := trained(t, ds, o)
		c.damage(path)
		dir, err := run.Look(path)
		require.NoError(t, err)
		_, err = OpenNetwork(t.Context(), c.ds, dir, run.Use{Scratch: filepath.Join(t.TempDir(), "state")}, run.Hooks{})
		require.ErrorContains(t, err, path, name)
		require.Equal(t, 1, strings.Count(strings.SplitN(err.Error(), ";", 2)[0], path), "%s: %v", name, err)
		require.NoError(t, dir.Close())
	}

	refused := 0
	for _, f := range ds.Manifest().Files() {
		at := storetest.BuildStream(t, spec)
		b, err := os.ReadFile(filepath.Join(at, f.Path))
		require.NoError(t, err)
		if len(b) < store.PageSize+8 {
			continue
		}
		for i := range 8 { // of the first page behind the header
			b[store.PageSize+i] ^= 0x55
		}
		require.NoError(t, os.Chmod(filepath.Join(at, f.Path), 0o600))
		require.NoError(t, os.WriteFile(filepath.Join(at, f.Path), b, 0o600))
		damaged, err := store.Open(at)
		if err == nil {
			pairs := options(model.TGN)
			pairs.PairFeatures = true
			for _, o := range []run.Options{options(model.TGN), options(model.JODIE), options(model.APAN), pairs} {
				o.Epochs = 1
				_, rerr := Run(t.Context(), damaged, func() (*run.Dir, error) { return run.Create(filepath.Join(t.TempDir(), "run")) }, o, "test", run.Hooks{})
				if rerr != nil {
					refused++
					require.Equal(t, 1, strings.Count(rerr.Error(), at), "%s: %v", f.Path, rerr)
				}
			}
			require.NoError(t, damaged.Close())
		}
	}
	require.Greater(t, refused, 5)
}
