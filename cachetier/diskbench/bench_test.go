package diskbench

import (
	"context"
	"os/exec"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestRun(t *testing.T) {
	path := storetest.Build(t, storetest.Spec{Nodes: 6000, Dim: 100})
	o := Options{Sizes: []int{100, 4096}, Depth: 8, Time: 30 * time.Millisecond, Rounds: 3} // in less time no read ends under the race detector
	o.Fio, _ = exec.LookPath("fio")
	var results []Result
	worked := 0
	err := Run(t.Context(), path, o, func(file string, size int64, notes []string) {
		require.Contains(t, file, "feat-00000.f16")
		require.Greater(t, size, int64(6000*200))
		worked = len(disk.Kinds[1:]) - len(notes) // the engines that work, at least
	}, func(r Result) { results = append(results, r) })
	require.NoError(t, err)
	if o.Fio != "" {
		worked++
	} else {
		t.Log("fio is not installed")
	}
	require.GreaterOrEqual(t, len(results), 3*worked)
	for _, r := range results {
		require.Positive(t, r.Reads)
		require.Positive(t, r.Bytes)
		require.Positive(t, r.P99)
		require.GreaterOrEqual(t, r.P99, r.P50)
		require.Equal(t, 3, r.Turns)
		require.GreaterOrEqual(t, r.Asked, r.Size)
		require.Equal(t, o.Fio != "" && r.Engine != Fio, r.OfFio > 0)
		if r.Engine == string(disk.Buffered) {
			require.GreaterOrEqual(t, r.Asked, store.PageSize, "whole pages")
			require.True(t, r.Cached)
		}
	}
	require.Regexp(t, `^BenchmarkDisk/read=sequential/size=262144/depth=8/engine=mmap\t +3\t +\d+ ns/op\t +\d+ reads/s\t +[\d.]+ MB/s\t`, results[len(results)-1].String())
}

func TestRunRefuses(t *testing.T) {
	o := Options{Engines: []disk.Kind{disk.Auto, "tape"}, Sizes: []int{0}, Depth: -1, Time: -1, Rounds: -1}
	err := Run(t.Context(), "nowhere", o, nil, nil)
	for _, want := range []string{"engine auto", `engine "tape"`, "rows of 0 bytes", "-1 reads at a time", "turns of -1ns", "-1 rounds"} {
		require.ErrorContains(t, err, want)
	}
	require.NoError(t, Options{}.Validate())
	small := storetest.Build(t, storetest.Spec{Nodes: 10})
	require.ErrorContains(t, Run(t.Context(), small, Options{}, nil, nil), "measuring wants a dataset of gigabytes")

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := storetest.Build(t, storetest.Spec{Nodes: 6000, Dim: 100})
	err = Run(ctx, path, Options{}, func(string, int64, []string) {}, func(Result) { t.Error("went on") })
	require.ErrorIs(t, err, context.Canceled)
}

// TestFioReadsBlocks checks that fio gets a block size although the only engine has another way to
// read.
func TestFioReadsBlocks(t *testing.T) {
	b := bench{Options: Options{Engines: []disk.Kind{disk.Buffered}, Depth: 1, Fio: "fio"}}
	b.path = storetest.Build(t, storetest.Spec{Nodes: 6000, Dim: 100})
	require.NoError(t, b.withFile(func(f store.SectionFile) error {
		notes, err := b.survey(t.Context(), f)
		require.NoError(t, err)
		if b.Fio == "" {
			require.Contains(t, notes[0], "fio: ")
			return nil
		}
		require.Empty(t, notes)
		require.GreaterOrEqual(t, b.block, int64(512))
		return nil
	}))
}

// TestOtherProgram names programs that are not fio.
func TestOtherProgram(t *testing.T) {
	path := storetest.Build(t, storetest.Spec{Nodes: 6000, Dim: 100})
	o := Options{Engines: []disk.Kind{disk.Buffered}, Sizes: []int{100}, Rounds: 1, Time: 30 * time.Millisecond}
	for program, want := range map[string]string{
		"true":  "true: output: unexpected end of JSON input; name another fio, or none",
		"false": "false: exit status 1; name another fio, or none",
	} {
		o.Fio = program
		require.EqualError(t, Run(t.Context(), path, o, func(string, int64, []string) {}, nil), want)
	}
}

// TestRunEndsWithin cancels a turn of an engine, and one of fio.
func TestRunEndsWithin(t *testing.T) {
	path := storetest.Build(t, storetest.Spec{Nodes: 6000, Dim: 100})
	o := Options{Engines: []disk.Kind{disk.Buffered}, Time: time.Hour}
	ctx, cancel := context.WithCancel(t.Context())
	started := func(string, int64, []string) { time.AfterFunc(50*time.Millisecond, cancel) }
	require.ErrorIs(t, Run(ctx, path, o, started, nil), context.Canceled)

	fio, err := exec.LookPath("fio")
	if err != nil {
		t.Log("fio is not installed")
		return
	}
	b := bench{Options: Options{Fio: fio, Depth: 1, Time: time.Hour}, path: path, block: 4096}
	require.NoError(t, b.withFile(func(f store.SectionFile) error {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond) // by then it has begun to read
		defer cancel()
		_, err := b.runFio(ctx, f, random, 4096)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		return nil
	}))
}

func TestParseFio(t *testing.T) {
	got, err := parseFio([]byte(`fio: a note that comes first
{"fio version": "fio-3.33", "jobs": [{"jobname": "gnnstore", "error": 0, "job_runtime": 2000, "usr_cpu": 5.0, "sys_cpu": 20.0,
  "read": {"io_bytes": 409600000, "total_ios": 100000, "runtime": 2000, "iops": 50000.0,
    "clat_ns": {"percentile": {"50.000000": 400000, "99.000000": 900000}}}}]}`))
	require.NoError(t, err)
	require.Equal(t, turn{reads: 100_000, bytes: 409_600_000, seconds: 2, cpu: 5, p50: 400, p99: 900}, got)
	for _, bad := range []string{"", "{", "{}", `{"jobs":[{"error":5,"read":{"total_ios":1,"runtime":1}}]}`, `{"jobs":[{"read":{"total_ios":0,"runtime":1}}]}`} {
		_, err := parseFio([]byte(bad))
		require.ErrorContains(t, err, "output: ", bad)
	}
}
