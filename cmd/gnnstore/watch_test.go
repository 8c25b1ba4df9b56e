package main

import (
	"bytes"
	"encoding/json"
	"io"
	"math"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// crowded returns a run that has every figure, and large ones.
func crowded() *run.Result {
	const many = 987_654_321_987
	loss, left, reads := 12.3456, 1e6, 1024
	tier := cachetier.Tier{
		CapacityBytes: 1000 << 30, UsedBytes: 999 << 30, RowsHit: many, RowsMissed: 1, BytesOut: 1022 << 40, BytesRead: 1021 << 40,
		Evictions: many,
	}
	on := cachetier.Disk{
		Rows: 1 << 40, BytesWanted: 1022 << 40, BytesRead: 1022 << 40, Reads: many, Seconds: 3e7, Amplification: 123.45,
	}
	stats := cachetier.Stats{
		InputRows: 1 << 40, RowBytes: 256, Disk: on, Tiers: cachetier.Tiers{Device: tier, Host: tier, Disk: tier},
	}
	stages := pipeline.Stats{Sample: 1, Gather: 95, Step: 1, Wait: 99, Run: 100, Samplers: 1024}
	r := &run.Result{
		Run: "runs/papers100m-1", Dataset: "papers100m.gnn", Status: run.Running, Stats: stats, Stages: stages,
		PeakRSSBytes: 8 << 40, Topology: &run.Topology{Tier: tier, Disk: on},
		Window:  &run.Window{Steps: 1000, Rows: 1e10, Bytes: 1 << 40},
		Latency: &run.Latency{Reads: 1, P50: 0.0001, P90: 0.0012, P99: 0.0123, Max: 12.345},
		Memory: &run.Memory{BudgetBytes: 8 << 30, Parts: []run.MemoryPart{
			{Name: "topology", Bytes: 1023 << 20}, {Name: "device", Bytes: 1023 << 20}, {Name: "host", Bytes: 1023 << 20},
			{Name: "batches", Bytes: 1023 << 20}, {Name: "step", Bytes: 1023 << 20}, {Name: "fixed", Bytes: 1023 << 20}}},
		Live: &run.Live{
			Epoch: 100, Step: 1207, Steps: 1207, Updates: 1, Loss: &loss, Seconds: 1e6, ETASeconds: &left,
			ResidentBytes: 8 << 40, FileBytes: 1 << 40, ReadsUnderWay: &reads, Recent: run.Recent{Stats: stats, Stages: stages},
		},
	}
	r.Options.Epochs = 100
	r.Advice = live.Advise(r)
	return r
}

// TestView: it fits in a terminal, whatever there is to show, and nothing in it moves the cursor.
func TestView(t *testing.T) {
	full, long, ended, hostile := crowded(), crowded(), crowded(), crowded()
	long.Tiers.Disk.UsedBytes *= 5 // the caches hold a part of it: that has the longest advice
	long.Advice = live.Advise(long)
	ended.Status, ended.Live, ended.Error = run.Failed, nil, "no space left on device"
	hostile.Run, hostile.Advice = "\x1b[2J\x1b]0;mine\a", "a\nb\x9b2J"
	for _, r := range []*run.Result{full, long, ended, hostile, {}, {Live: &run.Live{}, Status: run.Running}} {
		lines := view(r, viewHeight)
		require.LessOrEqual(t, len(lines), viewHeight, strings.Join(lines, "\n"))
		for _, l := range append(lines, line(r)) {
			require.Equal(t, l, clean(l))
		}
		for i, l := range lines {
			if i == 0 { // it ends in a path, which is cut
				l, _, _ = strings.Cut(l, "   run ")
			}
			require.LessOrEqual(t, utf8.RuneCountInString(l), viewWidth, l)
		}
	}
	text := strings.Join(view(long, viewHeight), "\n")
	require.Equal(t, viewHeight, strings.Count(text, "\n")+1, text)
	require.Contains(t, text, "\nmost; 8 TiB of 8 GiB are used")
	text = strings.Join(view(full, viewHeight), "\n")
	t.Log("\n" + text)
	for _, want := range []string{
		"topology", "gather  ###########", "95.0 %  limits", "rows from disk 100.0 %", "the disk limits: it is busy 100 %", "left",
	} {
		require.Contains(t, text, want)
	}
	require.Contains(t, view(ended, viewHeight)[0], "failed after 0 epochs: no space left on device")
}

// TestViewOfHistory: each layer has a line where there is room for it, else all together have one,
// or none; and a view fits.
func TestViewOfHistory(t *testing.T) {
	const many = 987_654_321_987
	of := func(r *run.Result, layers int) *run.Result {
		r.History = new(run.HistoryOf)
		for l := range layers {
			r.History.Add(run.HistoryLayer{
				Layer: 1 + l, Type: "author of a paper", Slots: many, Live: many,
				Counts: history.Counts{Hits: many, Ages: 200 * many, Admitted: many, Refused: many, EvictedGrad: many},
			})
		}
		return r
	}
	small := func() *run.Result {
		r := crowded()
		r.Memory, r.Latency, r.Advice = nil, nil, ""
		return r
	}
	talkative := func() *run.Result {
		r := crowded()
		r.Advice = strings.Repeat("take more memory; ", 16)
		return r
	}
	for _, c := range []struct {
		r    *run.Result
		want []string
	}{
		{of(small(), 2), []string{"history", "1 author o", "2 author o"}},
		{of(small(), 9), []string{"history", "all layers"}},
		{of(crowded(), 1), []string{"history", "1 author o"}},
		{of(crowded(), 3), []string{"history", "all layers"}},
		{of(talkative(), 1), nil},
	} {
		lines := view(c.r, viewHeight)
		require.LessOrEqual(t, len(lines), viewHeight)
		var got []string
		for i, l := range lines {
			if i > 0 {
				require.LessOrEqual(t, utf8.RuneCountInString(l), viewWidth, l)
			}
			if name := strings.TrimLeft(l, " "); strings.HasPrefix(name, "history ") || strings.Contains(name, "author o ") || strings.HasPrefix(name, "all layers ") {
				name, _, _ = strings.Cut(name, "  ")
				got = append(got, name)
			}
		}
		require.Equal(t, c.want, got, strings.Join(lines, "\n"))
		require.Contains(t, line(c.r), "   reuse 100.0 % of age 200.0")
	}
	require.Contains(t, strings.Join(view(of(talkative(), 9), 50), "\n"), "\n  9 author o")
	require.Contains(t, strings.Join(view(of(small(), 1), viewHeight), "\n"), "988 G  100.0 %  200.0     988 G    988 G    988 G\n")
}

// TestBar: whatever a share is, there are 30 cells.
func TestBar(t *testing.T) {
	for share, want := range map[float64]int{
		0: 0, 0.5: 15, 1: 30, 2: 30, -1: 0, math.Inf(1): 30, math.Inf(-1): 0, math.NaN(): 0, 1e-9: 0, 0.99: 30,
	} {
		require.Equal(t, strings.Repeat("#", want)+strings.Repeat(".", 30-want), bar(share), share)
	}
}

// TestViewOfAnything: numbers that no training has are no reason to crash.
func TestViewOfAnything(t *testing.T) {
	number := rapid.SampledFrom([]float64{0, 1, -1, 0.5, 1e-300, 1e308, -1e308})
	whole := rapid.SampledFrom([]int64{0, 1, -1, 1e6, math.MaxInt64, math.MinInt64})
	rapid.Check(t, func(t *rapid.T) {
		stages := func(what string) pipeline.Stats {
			n := func() float64 { return number.Draw(t, what) }
			return pipeline.Stats{Sample: n(), Plan: n(), Load: n(), Gather: n(), Step: n(), Wait: n(), Run: n()}
		}
		stats := func(what string) cachetier.Stats {
			n := func() int64 { return whole.Draw(t, what) }
			tier := cachetier.Tier{CapacityBytes: n(), UsedBytes: n(), RowsHit: n(), RowsMissed: n(), BytesOut: n(), Evictions: n()}
			return cachetier.Stats{
				InputRows: n(), RowBytes: n(), Tiers: cachetier.Tiers{Device: tier, Host: tier, Disk: tier},
				Disk: cachetier.Disk{Rows: n(), Reads: n(), BytesRead: n(), Seconds: number.Draw(t, "reading"), Amplification: 1e308},
			}
		}
		loss, left := number.Draw(t, "loss"), number.Draw(t, "left")
		r := &run.Result{
			Status: run.Running, Stats: stats("all"), Stages: stages("all"),
			Window: &run.Window{Steps: int(whole.Draw(t, "steps"))}, Latency: &run.Latency{P50: loss, Max: left},
			Live: &run.Live{Loss: &loss, ETASeconds: &left, Seconds: left, Steps: int(whole.Draw(t, "step"))},
		}
		r.Topology = &run.Topology{Tier: r.Tiers.Host, Disk: r.Disk, Lists: whole.Draw(t, "lists")}
		r.Live.Recent = run.Recent{Stats: stats("recent"), Stages: stages("recent")}
		r.Advice = live.Advise(r)
		view(r, viewHeight)
		line(r)
		printTiers(io.Discard, r)
	})
}

// TestDraw: a view takes the place of the one before, on terminals of any size.
func TestDraw(t *testing.T) {
	var b bytes.Buffer
	s := new(screen)
	require.NoError(t, s.draw(&b, []string{"one", "two two"}, 4, 24))
	require.Equal(t, "\r\x1b[Kone\n\r\x1b[Ktwo \n\x1b[J", b.String())
	b.Reset()
	require.NoError(t, s.draw(&b, []string{"1", "2", "3"}, 80, 3))
	require.Equal(t, "\x1b[2A\r\x1b[K1\n\r\x1b[K2\n\x1b[J", b.String())
}

// TestListenTaken: a run does not begin if its --listen address is taken. With --listen-optional it
// trains without the address.
func TestListenTaken(t *testing.T) {
	dir := t.TempDir()
	data, run := filepath.Join(dir, "d.gnn"), filepath.Join(dir, "run")
	code, _, stderr := gnnstore(t, "generate", "reddit", data, "--nodes", "300", "--edges", "900")
	require.Zero(t, code, stderr)
	taken, err := live.Listen("127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	args := []string{"train", data, "--run", run, "--epochs", "1", "--hidden", "4", "--listen", taken.Addr().String()}
	code, _, stderr = gnnstore(t, args...)
	require.Equal(t, 1, code)
	require.Contains(t, stderr, "address already in use; choose another port, or train without it by --listen-optional\n")
	require.NoDirExists(t, run)
	code, _, stderr = gnnstore(t, append(args, "--listen-optional")...)
	require.Zero(t, code, stderr)
	require.Contains(t, stderr, "note: no statistics over HTTP: listen tcp "+taken.Addr().String())
}

// TestStatsOverHTTP: --addr shows what --listen serves.
func TestStatsOverHTTP(t *testing.T) {
	r := crowded()
	http, err := live.Listen("127.0.0.1:0")
	require.NoError(t, err)
	s := live.Serve(live.Options{Run: t.TempDir(), HTTP: http, Now: func() *run.Result {
		now := *r
		return &now
	}})
	defer s.Close()
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "epoch 100/100   step 1,207/1,207, evaluating   loss 12.3456   run runs/papers100m-1\n"},
		{[]string{"--json"}, "\n  \"run\": \"runs/papers100m-1\",\n"},
	} {
		var stdout, stderr bytes.Buffer
		args := append([]string{"stats", "--addr", s.Addr().String()}, c.args...)
		require.Zero(t, execute(args, &stdout, &stderr), stderr.String())
		require.Contains(t, stdout.String(), c.want)
	}
	// A training that stops without a word is no end that could be told.
	var stdout, stderr bytes.Buffer
	w := &thenDo{w: &stdout, writes: 1, do: s.Close}
	require.Equal(t, 1, execute([]string{"stats", "--watch", "--addr", s.Addr().String()}, w, &stderr))
	require.Equal(t, "gnnstore: "+s.Addr().String()+": no training answers any more\n", stderr.String())
	require.Contains(t, stdout.String(), "epoch 100/100   step 1,207/1,207, evaluating   loss 12.3456   rows 11 G/s")
	w.wait()
}

// TestWatch: a line each time, in words or JSON, and how the run ended in the last.
func TestWatch(t *testing.T) {
	for _, args := range [][]string{nil, {"--json"}} {
		dir := t.TempDir()
		var ended atomic.Bool
		s := live.Serve(live.Options{Run: dir, Now: func() *run.Result {
			r := crowded()
			if ended.Load() {
				r.Status, r.Live = run.Interrupted, nil
			}
			return r
		}})
		var stdout, stderr bytes.Buffer
		w := &thenDo{w: &stdout, writes: 3, do: func() { ended.Store(true); s.Close() }}
		line := append([]string{"stats", dir, "--watch", "--interval", "100ms"}, args...)
		require.Zero(t, execute(line, w, &stderr), stderr.String())
		w.wait()
		lines := strings.Split(strings.TrimSpace(stdout.String()), "\n")
		require.Len(t, lines, 4)
		for i, l := range lines {
			want := map[bool]string{false: "epoch 100/100   step 1,207/1,207", true: "interrupted after 0 epochs"}[i == 3]
			if args != nil {
				var r run.Result
				require.NoError(t, json.Unmarshal([]byte(l), &r))
				require.Equal(t, dir, r.Run, "as it was asked for")
				l, want = r.Status, map[bool]string{false: run.Running, true: run.Interrupted}[i == 3]
			}
			require.True(t, strings.HasPrefix(l, want), l)
		}
	}
}

// thenDo does something, once, after so many writes.
type thenDo struct {
	w      io.Writer
	writes int
	do     func()
	done   sync.WaitGroup
}

func (t *thenDo) Write(p []byte) (int, error) {
	if t.writes--; t.writes == 0 {
		t.done.Go(t.do)
	}
	return t.w.Write(p)
}

func (t *thenDo) wait() { t.done.Wait() }
