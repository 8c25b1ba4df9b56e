package graph

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/store/storetest"
	"github.com/gnnstore/gnnstore/train/run"
)

// TestLive: others look at a run at any time and see it go forward. Its result is the same, and
// they see its end last.
func TestLive(t *testing.T) {
	ds := open(t, storetest.Communities(600, 4, 8, 16, 2))
	want := trained(t, ds, small())
	o := small()
	o.MemoryBytes = 1 << 40
	var lookers sync.WaitGroup
	var now func() *run.Result
	ended := make(chan struct{})
	look := func() {
		var before *run.Result
		for {
			r := now()
			_, err := json.Marshal(r)
			require.NoError(t, err)
			require.Equal(t, len(r.Epochs), len(r.Losses))
			if r.Live == nil {
				require.NotEqual(t, run.Running, r.Status)
				return
			}
			require.Equal(t, run.Running, r.Status)
			require.GreaterOrEqual(t, r.Live.Seconds, 0.0)
			require.LessOrEqual(t, r.Live.Recent.InputRows, r.InputRows)
			require.Equal(t, o.MemoryBytes, r.Memory.BudgetBytes)
			if before != nil {
				require.GreaterOrEqual(t, r.Live.Updates, before.Live.Updates)
				require.GreaterOrEqual(t, r.InputRows, before.InputRows)
				require.GreaterOrEqual(t, len(r.Epochs), len(before.Epochs))
			}
			if r.Live.Updates > 0 {
				require.NotNil(t, r.Live.Loss)
				require.NotNil(t, r.Live.ETASeconds)
			}
			before = r
			r.Epochs, r.Advice = nil, "mine" // it is the looker's own
		}
	}
	steps := 0
	got, err := Run(context.Background(), ds, scratch(t), o, "test", run.Hooks{
		Live: func(f func() *run.Result) func() {
			now = f
			for range 3 {
				lookers.Go(look)
			}
			return func() { close(ended) }
		},
		Step: func(_, step, n int, loss float64) {
			if steps++; step == 1 && len(now().Epochs) > 0 { // the end of an epoch is shown at once
				require.Equal(t, n, now().Live.Step)
			}
		},
	})
	require.NoError(t, err)
	<-ended
	lookers.Wait()
	require.Equal(t, want.ParamsXXH3, got.ParamsXXH3)
	require.Equal(t, want.Losses, got.Losses)
	require.Empty(t, cmp.Diff(got, now()), "the end is the result")
	require.Equal(t, run.Done, now().Status)
}

// TestShowIsFree: a step costs no memory, whether others may look at the run or not.
func TestShowIsFree(t *testing.T) {
	for _, live := range []func(func() *run.Result) func(){nil, func(func() *run.Result) func() { return func() {} }} {
		tr, err := newTrainer(t.Context(), open(t, storetest.Communities(300, 3, 6, 8, 3)), small(), run.Hooks{}, internal{})
		require.NoError(t, err)
		var shown run.View
		stop := shown.Serve(live, func() run.Point { return run.Point{Result: *tr.Result, Steps: 9, Count: tr.Counter()} })
		require.Zero(t, testing.AllocsPerRun(1000, func() { shown.Step(1, 1, 0.5) })) // but a few times a second
		stop()
		tr.Close()
	}
}

// TestLiveOfAFailure: a run that fails says so to those who look, and its directory is still its
// own while they are told.
func TestLiveOfAFailure(t *testing.T) {
	o := small()
	o.LR, o.Norm, o.Layers, o.Fanouts = 9e5, "none", 8, []int{3, 2, 2, 2, 2, 2, 2, 2}
	dir := t.TempDir()
	var now func() *run.Result
	_, err := Run(context.Background(), open(t, storetest.Communities(600, 4, 8, 16, 2)), in(dir), o, "test", run.Hooks{
		Live: func(f func() *run.Result) func() {
			now = f
			return func() {
				_, _, err := run.Open(dir)
				require.ErrorContains(t, err, "a run is at work in it")
			}
		},
		Text: func(s string) string { return strings.ReplaceAll(s, "{lr}", "the rate") },
	})
	require.ErrorContains(t, err, "lower {lr}")
	require.Equal(t, run.Failed, now().Status)
	require.Contains(t, now().Error, "lower the rate")
}
