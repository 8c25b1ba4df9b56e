package stream

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal/staleness"
)

// slow has a stage take at least so long.
func slow(stage string, d time.Duration) func(string) {
	return func(s string) {
		if s == stage {
			time.Sleep(d)
		}
	}
}

// TestAuto: a run that finds its staleness is one that was told it, to the last bit, whatever came
// out; and goes on with it where it was cut, without another rehearsal.
func TestAuto(t *testing.T) {
	ds := drifting(t, 1200)
	for _, kind := range model.TemporalKinds {
		o := options(kind)
		o.Staleness, o.CheckpointEvery = run.Auto, 4
		in := internal{}
		o.EpochSteps, o.Epochs = 10, 1
		if kind != model.TGN { // which is left at what this machine makes of it
			o.Publish, o.Batch = run.Late, 10
			in.delay = func(stage string) {
				if stage == pipeline.Step || stage == pipeline.Write {
					time.Sleep(3 * time.Millisecond)
				}
			}
		}
		path := filepath.Join(t.TempDir(), "run")
		ctx, cancel := context.WithCancel(t.Context())
		cut := run.Hooks{Step: func(epoch, step, _ int, _ float64) {
			if epoch == 1 && step == 6 {
				cancel()
			}
		}}
		r, err := runWith(ctx, ds, func() (*run.Dir, error) { return run.Create(path) }, o, "test", cut, in)
		require.NoError(t, err)
		require.Equal(t, run.Interrupted, r.Status)
		left, err := filepath.Glob(filepath.Join(path, "rehearsal*"))
		require.NoError(t, err)
		require.Empty(t, left)
		a := record(t, path).AutoStaleness
		t.Logf("%s: %+v", kind, a)
		require.Equal(t, a.K, r.Stream.Staleness.K)
		require.Equal(t, run.Auto, record(t, path).Options.Staleness)

		var started *run.Record
		again := run.Hooks{Start: func(r *run.Record) { started = r }}
		in.delay = func(string) { require.NotNil(t, started, "a stage before the start: another rehearsal") }
		got, err := runWith(t.Context(), ds, func() (*run.Dir, error) {
			dir, _, err := run.Open(path)
			return dir, err
		}, o, "test", again, in)
		require.NoError(t, err)
		require.Equal(t, a, started.AutoStaleness)
		require.Equal(t, a.K, got.Stream.Staleness.K)
		require.Equal(t, &a.Rehearsal, got.Stream.Staleness.Predicted)

		o.Staleness = a.K
		told := run1(t, ds, o, run.Hooks{})
		require.Equal(t, outcomeOf(told), outcomeOf(got), kind)
		require.Equal(t, told.Memory, got.Memory)
		require.Equal(t, told.Stream.State.Touched, got.Stream.State.Touched)
		require.Equal(t, told.InputRows, got.InputRows)
	}
}

func record(t *testing.T, path string) *run.Record {
	text, err := os.ReadFile(filepath.Join(path, run.RecordFile))
	require.NoError(t, err)
	r := new(run.Record)
	require.NoError(t, json.Unmarshal(text, r))
	return r
}

// TestRehearsalLeavesNothing: weights, moments and cursors are the same as without a rehearsal.
func TestRehearsalLeavesNothing(t *testing.T) {
	ds := drifting(t, 1200)
	o := options(model.TGN)
	o.Staleness = run.Auto
	tr, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
	require.NoError(t, err)
	defer tr.Close()
	hash, moments := tr.step.Model.Hash(), tr.step.Optim.State()
	_, steps, err := newRehearsal(tr.core).costs(t.Context(), mutable.Place{Dir: t.TempDir()})
	require.NoError(t, err)
	require.Equal(t, tr.steps(), steps)
	require.Equal(t, hash, tr.step.Model.Hash())
	require.Equal(t, moments, tr.step.Optim.State())
	require.Zero(t, tr.step.Optim.Steps())
	require.Empty(t, tr.read)
}

// TestRehearsalFindsStages: what stages take that are slow is found, and the staleness that
// follows.
func TestRehearsalFindsStages(t *testing.T) {
	ds := drifting(t, 1200)
	o := options(model.JODIE)
	o.Staleness, o.Publish, o.Batch = run.Auto, run.Late, 4
	o.Window, o.Cache.HostBytes = 1, 1<<20
	const late = 3 * time.Millisecond
	for stage, of := range map[string]int{
		pipeline.Sample: staleness.Sample, pipeline.Gather: staleness.Features, pipeline.State: staleness.State,
		pipeline.Step: staleness.Train, pipeline.Write: staleness.Publish,
	} {
		tr, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{delay: slow(stage, late)})
		require.NoError(t, err)
		c, _, err := newRehearsal(tr.core).costs(t.Context(), mutable.Place{Dir: t.TempDir()})
		tr.Close()
		require.NoError(t, err)
		t.Logf("%s: %+v", stage, c)
		require.GreaterOrEqual(t, c.Stage[of], late.Seconds(), stage)
	}
}

// TestRealised: the share of nodes read out of date equals the count of a pass over the steps.
func TestRealised(t *testing.T) {
	ds := drifting(t, 1200)
	for _, k := range []int{1, 3} {
		o := options(model.TGN)
		o.Staleness, o.Epochs, o.CheckpointEvery = k, 1, 5
		tr, err := newTrainer(t.Context(), ds, o, run.Hooks{}, internal{})
		require.NoError(t, err)
		want, err := newRehearsal(tr.core).overlap(t.Context())
		require.NoError(t, err)
		tr.Close()
		require.InDelta(t, want.Share(k), run1(t, ds, o, run.Hooks{}).Stream.Staleness.Realised, 1e-12)
	}
}

// TestPlan: a plan has what a run does, leaves nothing behind, and finds the same memory.
func TestPlan(t *testing.T) {
	ds := drifting(t, 1200)
	temporary := t.TempDir()
	t.Setenv("TMPDIR", temporary)
	for _, kind := range model.TemporalKinds {
		for _, k := range []int{run.Auto, 2} {
			o := options(kind)
			o.Staleness, o.Cache.HostBytes = k, 20_000
			p, err := MakePlan(t.Context(), ds, o, run.Hooks{})
			require.NoError(t, err)
			left, err := os.ReadDir(temporary)
			require.NoError(t, err)
			require.Empty(t, left)
			o.Staleness, o.Epochs = p.K, 1
			r := run1(t, ds, o, run.Hooks{})
			require.Equal(t, run.MemoryOf(p.Memory), r.Memory)
			require.Equal(t, r.Epochs[0].Steps, p.Steps)
			require.InEpsilon(t, float64(r.InputRows)/float64(p.Steps), p.InputRows, 0.3, "rows of a step in the middle")
			require.Len(t, p.Tables, 2)
			require.Positive(t, p.Rows)
			require.InEpsilon(t, p.Serial, p.Sample+p.Page+p.Features+p.State+p.Train, 1e-9)
			require.GreaterOrEqual(t, p.Plain, p.Seconds)
			require.InEpsilon(t, p.EpochSeconds, p.Seconds*float64(p.Steps), 1e-9)
			require.NotEmpty(t, p.LimitingStage)
			require.Equal(t, k == run.Auto, p.Reason != "")
			text, err := json.Marshal(p)
			require.NoError(t, err)
			for _, key := range []string{"steps", "drawn", "seconds", "sample_seconds", "load_seconds", "step_seconds", "k_star", "p_star", "cold_rows"} {
				require.Contains(t, string(text), `"`+key+`":`)
			}
		}
	}
	o := options(model.TGN)
	o.State = run.NoState
	p, err := MakePlan(t.Context(), ds, o, run.Hooks{})
	require.NoError(t, err)
	require.Equal(t, 1, p.K)
	require.Equal(t, 1, p.Best)
	require.Len(t, p.Tables, 1)
}
