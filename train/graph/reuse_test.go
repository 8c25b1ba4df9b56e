package graph

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/step"
)

// reusing is a run that uses hidden rows of earlier steps again.
func reusing() run.Options {
	o := small()
	o.History = true
	o.Settings = history.Settings{PGrad: 0.8, TStale: 6, HistoryStart: 4, HistoryLag: 3, HistoryBytes: 1 << 20}
	return o
}

// TestReuseSameResults: budgets, policies, windows, engines, workers, checkpoints and backends
// change nothing of a run that uses rows again, its counts included.
func TestReuseSameResults(t *testing.T) {
	storetest.Long(t)
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	all := int64(ds.Features(0).Rows() * ds.Features(0).RowBytes())
	for name, change := range map[string]func(o *run.Options){
		"ns":            func(*run.Options) {},
		"a step of lag": func(o *run.Options) { o.HistoryLag = 1 },
		"few slots":     func(o *run.Options) { o.HistoryBytes = 80 * history.SlotBytes(o.Hidden) },
		"3 layers":      func(o *run.Options) { o.Layers, o.Fanouts = 3, []int{3, 3, 3} },
		"labor-star":    func(o *run.Options) { o.Sampler, o.Kappa = sample.LaborStar, 4 },
		"gat":           func(o *run.Options) { o.Kind, o.Heads = model.GAT, 2 },
	} {
		o := reusing()
		change(&o)
		want := trained(t, ds, o)
		require.Positive(t, want.History.Hits, name)
		for n, host := range []int64{0, 1 << 10, all / 10, all} {
			o := o
			o.Cache.HostBytes, o.Cache.DeviceBytes, o.Cache.Policy = host, []int64{all / 5, 0, 999}[n%3], policy.Kinds[n%len(policy.Kinds)]
			o.Cache.Engine, o.Window, o.Workers, o.Lookahead = disk.Kinds[1+n%3], []int{0, 1, 8}[n%3], 1+n%3, n%4
			o.CheckpointEvery = []int{0, 2, 5}[n%3]
			if n%2 == 0 {
				o.TopologyBytes = topology.LeastBytes(ds.Graph(0))
			}
			got := trained(t, ds, o)
			sameWork(t, want, got, "%s: %+v", name, o)
			require.Equal(t, want.History, got.History, "%s: %+v", name, o)
		}
	}
	o := reusing()
	o.CheckpointEvery, o.Cache.DeviceBytes = 5, all/5
	remote := kerneltest.Remote(kernels.NewCPU(kernels.CPUOptions{}))
	got, err := Run(t.Context(), ds, scratch(t), o, "test", run.Hooks{Backend: remote})
	require.NoError(t, err)
	sameWork(t, trained(t, ds, o), got)
}

// TestReuseSharesTheRegion: slots and the rows of several tables lie in one region, also where
// steps rewrite some of the rows.
func TestReuseSharesTheRegion(t *testing.T) {
	ds := openTyped(t, storetest.Library(600, 3, 2))
	o := reusing()
	o.Kind, o.Target, o.Batch = model.RSAGE, "", 20
	o.Cache.HostBytes = 20 << 10
	want := trained(t, ds, o)
	require.Positive(t, want.History.Hits)
	o.Cache.DeviceBytes = 30 << 10
	got := trained(t, ds, o)
	sameWork(t, want, got)
	require.Equal(t, want.History, got.History)
	require.Positive(t, got.Tiers.Device.RowsHit)
	require.LessOrEqual(t, got.Tiers.Device.CapacityBytes, o.Cache.DeviceBytes)
}

// TestNoReuse: if no row may be used again, a run with history has the same results as a run
// without it, whatever its other options.
func TestNoReuse(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	want := trained(t, ds, small())
	require.Nil(t, want.History)
	for name, change := range map[string]func(o *run.Options){
		"p_grad 0":         func(o *run.Options) { o.PGrad = 0 },
		"t_stale 0":        func(o *run.Options) { o.TStale = 0 },
		"no step keeps":    func(o *run.Options) { o.HistoryStart = 1000 },
		"no slot":          func(o *run.Options) { o.HistoryBytes = 10 },
		"too short epochs": func(o *run.Options) { o.Batch, o.Settings = 200, history.Defaults() },
	} {
		o, plain := reusing(), want
		change(&o)
		if o.Batch != small().Batch {
			o := small()
			o.Batch = 200
			plain = trained(t, ds, o)
		}
		got := trained(t, ds, o)
		sameWork(t, plain, got, name)
		require.Zero(t, got.History.Hits, name)
	}
}

// TestReuseSaves: rows that are used again spare feature rows, of every network and of several
// types, and the network learns.
func TestReuseSaves(t *testing.T) {
	typed := openTyped(t, storetest.Library(600, 3, 2))
	for _, kind := range []model.Kind{model.RSAGE, model.RGCN, model.RGAT, model.HGT} {
		o := reusing()
		o.Kind, o.Target, o.Batch, o.Heads = kind, "", 20, 2
		plain := o
		plain.History, plain.Settings = false, history.Settings{}
		want, got := trained(t, typed, plain), trained(t, typed, o)
		require.Less(t, got.InputRows, want.InputRows, kind)
		require.Positive(t, got.History.PrunedRows, kind)
		require.Less(t, got.Losses[1], got.Losses[0], kind)
	}
}

// TestReuseResume: interrupted after every second step, a run ends with the results of one that was
// not, rows and counts included.
func TestReuseResume(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := reusing()
	o.Epochs, o.CheckpointEvery = 6, 3
	resumeOverAndOver(t, ds, o)
}

// TestReuseGone: a run whose kept rows are gone or damaged says so in a line and stays as it is;
// without them it goes on when it is told to, and its result says so.
func TestReuseGone(t *testing.T) {
	ds := open(t, storetest.Communities(900, 4, 8, 24, 2))
	o := reusing()
	o.CheckpointEvery = 3
	newest := func(disk vfs.FS) string {
		names, err := disk.List("/run/checkpoints")
		require.NoError(t, err)
		last := ""
		for _, name := range names {
			if strings.HasSuffix(name, ".history") {
				last = max(last, name)
			}
		}
		require.NotEmpty(t, last)
		return filepath.Join("/run/checkpoints", last)
	}
	for name, spoil := range map[string]func(t *testing.T, disk vfs.FS){
		"gone": func(t *testing.T, disk vfs.FS) { require.NoError(t, disk.Remove(newest(disk))) },
		"cut": func(t *testing.T, disk vfs.FS) {
			edit(t, disk, strings.TrimPrefix(newest(disk), "/run/"), func(b []byte) []byte { return b[:len(b)-1] })
		},
		"a bit changed": func(t *testing.T, disk vfs.FS) {
			edit(t, disk, strings.TrimPrefix(newest(disk), "/run/"), func(b []byte) []byte {
				b[len(b)/2] ^= 4
				return b
			})
		},
		"of an earlier version": func(t *testing.T, disk vfs.FS) {
			edit(t, disk, strings.TrimPrefix(newest(disk), "/run/"), func(b []byte) []byte {
				b[8] = 1 // another version is refused before the rest is read
				return b
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			o := o
			disk := half(t, ds, o)
			spoil(t, disk)
			before := listing(t, disk)
			_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
			require.ErrorContains(t, err, "the hidden rows that it kept are in /run/checkpoints/")
			if name == "of an earlier version" {
				require.ErrorContains(t, err, "another version: it has 1, and this program reads 2; go on without these rows, and to other results, with {history_cold}")
			}
			require.ErrorContains(t, err, "with {history_cold}")
			require.NotContains(t, err.Error(), "\n")
			require.Equal(t, before, listing(t, disk))
			o.HistoryCold = true
			r, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
			require.NoError(t, err)
			require.True(t, r.History.Cold)
			require.False(t, r.Options.HistoryCold)
			require.Positive(t, r.History.Hits)
		})
	}
}

// TestReuseResumesNoOther: a run does not go on with other settings than it began with; each that
// differs is named.
func TestReuseResumesNoOther(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	disk := half(t, ds, reusing())
	before := listing(t, disk)
	for want, change := range map[string]func(o *run.Options){
		"{p_grad} is 0.5 and the run's is 0.8":          func(o *run.Options) { o.PGrad = 0.5 },
		"{t_stale} is 7 and the run's is 6":             func(o *run.Options) { o.TStale = 7 },
		"{history_start} is 0 and the run's is 4":       func(o *run.Options) { o.HistoryStart = 0 },
		"{history_lag} is 2 and the run's is 3":         func(o *run.Options) { o.HistoryLag = 2 },
		"{history_bytes} is 2MiB and the run's is 1MiB": func(o *run.Options) { o.HistoryBytes = 2 << 20 },
		"{history} is false and the run's is true":      func(o *run.Options) { o.History, o.Settings = false, history.Settings{} },
	} {
		for _, cold := range []bool{false, true} {
			o := reusing()
			o.HistoryCold = cold
			change(&o)
			o.HistoryCold = cold && o.History
			_, err := runOn(context.Background(), disk, ds, o, run.Hooks{})
			require.ErrorContains(t, err, want)
			require.Equal(t, before, listing(t, disk))
		}
	}
}

// notesTo collects the notes of a run, except that its network is no better than an answer without
// one, which a few steps leave to chance.
func notesTo(notes *[]string) run.Hooks {
	return run.Hooks{Note: func(s string) {
		if !strings.Contains(s, "is not better than") {
			*notes = append(*notes, s)
		}
	}}
}

// TestReuseNotes: what keeps nothing, or keeps rows that gradients never decide on, is said in a
// line with the remedy.
func TestReuseNotes(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2)) // 8 steps an epoch
	for want, change := range map[string]func(o *run.Options){
		"with {p_grad} 0 and {t_stale} 6 no row is ever used again":                                                             func(o *run.Options) { o.PGrad = 0 },
		"an epoch of 3 steps is too short for rows of earlier steps, so none are used again":                                    func(o *run.Options) { o.EpochSteps, o.Settings = 3, history.Defaults() },
		"{history_bytes} 67 B has no room for a slot of 68 bytes":                                                               func(o *run.Options) { o.HistoryBytes = 67 },
		"the run has 8 steps, and keeps rows from step 9 on ({history_start})":                                                  func(o *run.Options) { o.HistoryStart = 9 },
		"{history_lag} 7 is above {t_stale} 6, so that rows are past use before their gradients decide on them; take at most 6": func(o *run.Options) { o.HistoryLag = 7 },
		"gradients decide on rows from step 9 on ({history_start} and {history_lag}), so on none; take a smaller {history_lag}": func(o *run.Options) { o.HistoryLag = 5 },
		"{window} 50 is cut to 1 steps": func(o *run.Options) { o.Window = 50 },
		"":                              func(*run.Options) {},
	} {
		o := reusing()
		o.Epochs = 1
		change(&o)
		var notes []string
		_, err := Run(t.Context(), ds, scratch(t), o, "test", notesTo(&notes))
		require.NoError(t, err, want)
		if want == "" {
			require.Empty(t, notes)
			continue
		}
		require.Len(t, notes, 1)
		require.Contains(t, notes[0], want)
	}
}

// TestReuseStarved: a run notes once, before it ends, that rows find no slot, and how much memory
// has a slot for every node. With that memory there is no note.
func TestReuseStarved(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	for bytes, want := range map[int64]string{60 * 68: "{history_bytes} 1MiB has one for every node", 1 << 20: ""} {
		o := reusing()
		o.HistoryBytes = bytes
		var notes []string
		r, err := Run(t.Context(), ds, scratch(t), o, "test", notesTo(&notes))
		require.NoError(t, err)
		require.Equal(t, want != "", r.History.Refused > 0)
		require.Len(t, notes, bit(want != ""))
		for _, note := range notes {
			require.Regexp(t, "^history: [0-9]+ % of the rows that could be kept find no slot; ", note)
			require.Contains(t, note, want)
		}
	}
}

func bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestReuseAuto: by default there are slots for the nodes that t_stale steps meet, whatever the
// memory. Rows that the memory cannot hold are refused.
func TestReuseAuto(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	o := reusing()
	o.HistoryBytes = history.Auto
	want := trained(t, ds, o)
	require.EqualValues(t, 600, want.History.Slots)
	require.Zero(t, want.History.Refused)
	o.MemoryBytes = 1 << 30
	require.Equal(t, want.History, trained(t, ds, o).History)
	o.EvalBytes, o.MemoryBytes = 0, 1
	_, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.ErrorContains(t, err, "is not enough: with this dataset, batch and fanout the least that works is")
	require.ErrorContains(t, err, "{history_bytes} makes that less")
}

// TestReuseRest: a note and the record give the memory that other parts leave. With that number a
// run under another memory repeats this one, and a resumed run keeps it.
func TestReuseRest(t *testing.T) {
	ds := open(t, storetest.Communities(30_000, 4, 4, 24, 2)) // its rows take 1.9 MiB of slots
	o := reusing()
	o.Epochs, o.EpochSteps, o.HistoryBytes, o.MemoryBytes, o.EvalBytes = 2, 20, history.Rest, 1<<30, 0
	for i, memory := range []int64{1 << 30, 0} {
		o := o
		var notes []string
		if o.MemoryBytes = memory; memory == 0 { // feature rows fit, and some of the slots
			o.MemoryBytes = 1
			o.HistoryBytes = 1
			_, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
			o.MemoryBytes, o.HistoryBytes = leastIn(t, err)+int64(ds.Features(0).Rows()*ds.Features(0).RowBytes())+8<<20, history.Rest
		}
		dir := t.TempDir()
		r, err := Run(t.Context(), ds, in(dir), o, "test", notesTo(&notes))
		require.NoError(t, err)
		n := r.Options.HistoryBytes
		require.Contains(t, notes, fmt.Sprintf("history: other parts leave %d MiB for kept rows; {history_bytes} %dMiB repeats the run with any memory", n>>20, n>>20))
		require.Positive(t, r.History.Hits)
		if i == 0 {
			require.EqualValues(t, 30_000, r.History.Slots)
		}
		o.HistoryBytes, o.MemoryBytes = n, 2<<30
		again := trained(t, ds, o)
		sameWork(t, r, again)
		require.Equal(t, r.History, again.History)
	}
}

// TestReuseWithoutSpill: what is drawn depends on steps before, so that a spill is of no use: it
// gets no memory, no disk, and a line.
func TestReuseWithoutSpill(t *testing.T) {
	o := reusing()
	o.Epochs, o.SpillBytes = 1, 16<<20
	var notes []string
	r, err := Run(t.Context(), open(t, storetest.Communities(600, 4, 8, 24, 2)), scratch(t), o, "test", notesTo(&notes))
	require.NoError(t, err)
	require.Equal(t, []string{"what is drawn depends on hidden rows of earlier steps: rows are read by windows, without a spill"}, notes)
	require.Positive(t, r.History.Hits)
	for _, part := range r.Memory.Parts {
		require.NotEqual(t, "join", part.Name)
	}
	require.Nil(t, r.Join)
	require.Nil(t, r.Spill)
}

// TestReuseMemory: rows that the memory does not hold are refused before any is allocated, with the
// option that asks for less.
func TestReuseMemory(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	o := reusing()
	o.EvalBytes, o.MemoryBytes = 0, 1
	_, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	least, _, said := strings.Cut(err.Error(), "; 39.8 KiB of it is for hidden rows of earlier steps: {history_bytes} makes that less")
	require.True(t, said, err.Error())
	o.MemoryBytes = leastIn(t, errors.New(least))
	require.Positive(t, trained(t, ds, o).History.Hits)
	o.MemoryBytes -= 1 << 20
	_, err = newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.ErrorContains(t, err, "{history_bytes} makes that less")
}

// TestReuseRehearsal: a step that uses rows again, and keeps others, takes no memory that the
// rehearsal has not.
func TestReuseRehearsal(t *testing.T) {
	ds := open(t, storetest.Communities(3000, 4, 8, 24, 2))
	o := reusing()
	o.Hidden, o.Batch, o.HistoryStart = 64, 300, 0
	m := opened(t, ds, o)
	before := m.step.Tape.Bytes()
	m.task.Begin(1)
	for now := range 4 {
		b := new(sample.Batch)
		e, z := m.reuse.cache.Group(now, 1), []sample.BatchSeed{m.BatchSeeds().At(now)}
		require.NoError(t, m.tiers.Sampler.SampleThrough(t.Context(), e, []*sample.Batch{b}, z, [][][]uint32{m.task.Seeds(now)}))
		in := step.InputOf(b, m.tiers.Zeros(0, len(b.Inputs()[0])))
		in.Key, in.Held = 1, m.reuse.input(now, false)
		require.NotNil(t, in.Held)
		require.NoError(t, m.step.Compute(in))
		_, err := m.step.Launched().Wait()
		require.NoError(t, err)
		require.NoError(t, m.reuse.writeBack(now, b, nil))
		m.Backend.Free(in.Rows[0].Buf)
	}
	require.Positive(t, m.reuse.cache.Stats()[0].Hits)
	require.LessOrEqual(t, m.step.Tape.Bytes(), before*112/100, "what batches may differ by")
}

// TestReuseOfLittle: a node alone, and nodes without edges.
func TestReuseOfLittle(t *testing.T) {
	lonely := storetest.Communities(300, 3, 0, 8, 3)
	for want, ds := range map[int64]*store.Dataset{
		9:  open(t, storetest.Spec{Nodes: 1, Dim: 8, Train: []store.NodeID{0}}), // an epoch is a step
		-1: open(t, lonely),
	} {
		o := reusing()
		o.Epochs, o.EvalEvery, o.HistoryStart, o.HistoryLag, o.PGrad, o.TStale = 10, 10, 0, 1, 1, 20
		r := trained(t, ds, o)
		require.Equal(t, run.Done, r.Status)
		if want > 0 {
			require.Equal(t, want, r.History.Hits, "after the first step its row is there")
			require.EqualValues(t, 1, r.InputRows)
		} else {
			require.Positive(t, r.History.Hits)
		}
		o.Epochs, o.Settings = 2, history.Defaults()
		o.HistoryBytes = 1 << 20
		require.Zero(t, trained(t, ds, o).History.Hits, "epochs of less than five steps")
	}
}

// TestReuseIsForSteps: a network of random walks, which is measured on batches, keeps no rows for
// that.
func TestReuseIsForSteps(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 24, 2))
	o := reusing()
	o.Sampler = sample.RW
	dir, r := runIn(t, ds, o)
	require.Positive(t, r.History.Hits)
	n := network(t, ds, dir, NetworkOptions{})
	require.Nil(t, n.c.reuse)
	require.Equal(t, *r.Best.TestAcc, measure(t, n, "test"))
	require.NoError(t, n.Close())
}

// TestReuseRefused: what cannot be followed, and what would show answers.
func TestReuseRefused(t *testing.T) {
	for want, change := range map[string]func(o *run.Options){
		"{history}: {model} mlp draws no neighbours":                          func(o *run.Options) { o.Kind = model.MLP },
		"{history}: it keeps the rows between layers, and {layers} is 1":      func(o *run.Options) { o.Layers, o.Fanouts = 1, []int{4} },
		"{history}: with {label_input} a row that is kept may hold the label": func(o *run.Options) { o.LabelInput = 8 },
		"{history}: a row that is kept may hold an edge":                      func(o *run.Options) { o.Task = run.LinkTask },
		"{history}: a row that is kept may hold an edge that":                 func(o *run.Options) { o.Task, o.EdgeLabel = run.EdgeTask, "rating" },
		"{p_grad} 1.5: from 0":                                                func(o *run.Options) { o.PGrad = 1.5 },
		"{t_stale} -2: at least 0":                                            func(o *run.Options) { o.TStale = -2 },
		"{history_lag} 0: at least 1":                                         func(o *run.Options) { o.HistoryLag = 0 },
		"goes with {history}":                                                 func(o *run.Options) { o.History = false },
	} {
		o := reusing()
		change(&o)
		require.ErrorContains(t, o.WithDefaults().Validate(), want)
	}
	require.NoError(t, reusing().Validate())
	for _, task := range []string{run.LinkTask, run.EdgeTask} {
		o := reusing()
		o.Task, o.KeepTargets = task, true
		if task == run.EdgeTask {
			o.EdgeLabel = "rating"
		}
		require.NoError(t, o.WithDefaults().Validate())
	}
}
