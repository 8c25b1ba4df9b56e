package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// newVisit returns a visit of small runs whose programs are these shell scripts.
func newVisit(t *testing.T, scripts map[string]string) *visit {
	t.Helper()
	v := &visit{
		folder: t.TempDir(), work: t.TempDir(), small: true, stdout: io.Discard, log: io.Discard,
		end: time.Now().Add(time.Minute), grace: time.Second / 2, env: os.Environ(),
	}
	for name, text := range scripts {
		require.NoError(t, os.WriteFile(filepath.Join(v.folder, name), []byte("#!/bin/sh\n"+text), 0o777))
	}
	return v
}

// The stages have a time each that 480 s hold, in the order of what a visit most needs.
func TestStages(t *testing.T) {
	var order []int
	total := time.Duration(0)
	usual, err := choose(stages, nil)
	require.NoError(t, err)
	for _, s := range usual {
		order = append(order, s.number)
		total += s.limit
	}
	require.Equal(t, []int{0, 1, 2, 3, 4, 5, 7, 6, 8, 9}, order)
	require.Equal(t, 480*time.Second, total)
}

func TestChoose(t *testing.T) {
	f := func(numbers string, want ...int) {
		t.Helper()
		chosen, err := choose(stages, strings.Fields(numbers))
		require.NoError(t, err)
		var got []int
		for _, s := range chosen {
			got = append(got, s.number)
		}
		require.Equal(t, want, got)
	}
	f("", 0, 1, 2, 3, 4, 5, 7, 6, 8, 9)
	f("6 7 0", 0, 7, 6)
	f("5 5", 5)
	f("10", 10)
	for numbers, want := range map[string]string{"20": "there is no stage 20", "one": `stage "one" is no number`} {
		_, err := choose(stages, []string{numbers})
		require.EqualError(t, err, want)
	}
}

// A stage that fails, or whose time is over, does not stop the next.
func TestRun(t *testing.T) {
	v := newVisit(t, map[string]string{
		"fail": "echo what >&2\necho reason >&2\nexit 3", "well": "echo fine", "long": "sleep 600 & sleep 600",
	})
	var printed strings.Builder
	v.stdout = &printed
	program := func(name string) func(*turn) error {
		return func(t *turn) error {
			_, err := t.command(t.program(name))
			return err
		}
	}
	const long = 20 * time.Second
	start := time.Now()
	got := v.run([]stage{
		{name: "fails", limit: long, run: program("fail")},
		{number: 1, name: "is missing", limit: long, run: program("none")},
		{number: 2, name: "is late", limit: time.Second / 8, run: program("long")},
		{number: 3, name: "skips", limit: long, run: func(*turn) error { return skipError("no tool") }},
		{number: 4, name: "passes", limit: long, run: program("well")},
		{number: 5, name: "is slow", limit: long, run: func(t *turn) error {
			t.small = false
			t.target(true, "want 5", "a %d", 7)
			t.target(false, "want 5", "b %d", 3)
			return nil
		}},
	})
	require.Less(t, time.Since(start), long)
	var results []string
	for _, o := range got {
		results = append(results, o.Result)
	}
	require.Equal(t, []string{failed, failed, failed, skipped, passed, slow}, results)
	require.Equal(t, "fail: exit status 3: reason", got[0].Error)
	require.Contains(t, got[1].Error, "no such file")
	require.Equal(t, "long: stopped, its time was over", got[2].Error)
	require.Equal(t, []string{"a 7", "b 3 (want 5)"}, got[5].Figures)
	require.True(t, anyFailed(got))
	require.False(t, anyFailed(got[3:]))
	lines := strings.Split(strings.TrimSpace(printed.String()), "\n")
	require.Len(t, lines, 6)
	require.Regexp(t, `^stage 0  fails +fail +[0-9.]+ s   fail: exit status 3: reason$`, lines[0])
	require.Regexp(t, `^stage 5  is slow +slow +[0-9.]+ s   a 7, b 3 \(want 5\)$`, lines[5])
}

// The visit kills a program that ignores SIGTERM, and the programs that it started.
func TestStubborn(t *testing.T) {
	alive := filepath.Join(t.TempDir(), "alive")
	v := newVisit(t, map[string]string{
		"stubborn": "trap '' TERM\n(while :; do echo >>" + alive + "; sleep 0.02; done) &\nwait; wait",
	})
	start := time.Now()
	o := v.one(stage{name: "stubborn", limit: time.Second / 8, run: func(t *turn) error {
		_, err := t.command(t.program("stubborn"))
		return err
	}})
	require.Equal(t, failed, o.Result)
	require.Equal(t, "stubborn: stopped, its time was over", o.Error)
	require.Less(t, time.Since(start), 5*time.Second)
	size := func() int64 {
		info, err := os.Stat(alive)
		require.NoError(t, err)
		return info.Size()
	}
	time.Sleep(100 * time.Millisecond)
	before := size()
	time.Sleep(200 * time.Millisecond)
	require.Equal(t, before, size())
}

// The limit of all stages together ends one under way, and has later ones skipped.
func TestTimeOver(t *testing.T) {
	v := newVisit(t, map[string]string{"long": "sleep 600"})
	v.end = time.Now().Add(leastTime + 200*time.Millisecond)
	sleep := func(t *turn) error {
		_, err := t.command(t.program("long"))
		return err
	}
	got := v.run([]stage{
		{name: "first", limit: time.Hour, run: sleep}, {name: "second", limit: time.Hour, run: sleep},
	})
	require.Equal(t, failed, got[0].Result)
	require.Less(t, got[0].Seconds, 20.0)
	require.Equal(t, skipped, got[1].Result)
	require.Equal(t, "no time is left", got[1].Error)
}

func TestEnvironment(t *testing.T) {
	require.Equal(t, []string{"A=1", "B=3"}, environment([]string{"A=1", "B=2"}, "B", "3"))
	require.Equal(t, []string{"AB=1", "A=3"}, environment([]string{"AB=1"}, "A", "3"))
}

func TestPlaceOf(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(folder, "cuda-13", "lib64"), 0o777))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "cuda-13", "lib64", "libcublasLt.so.13"), nil, 0o666))
	patterns := []string{filepath.Join(folder, "python*"), filepath.Join(folder, "cuda*", "lib64")}
	require.Equal(t, filepath.Join(folder, "cuda-13", "lib64"), placeOf(patterns, "libcublasLt.so.*"))
	require.Empty(t, placeOf(patterns, "libcuda.so.1"))
}

func TestTable(t *testing.T) {
	folder := t.TempDir()
	all := []outcome{
		{Stage: 0, Name: "machine", Result: passed, Seconds: 1.26, Figures: []string{"a", "b|c"}},
		{Stage: 3, Name: "sanitizers", Result: failed, Seconds: 2, Error: "one\ntwo", Figures: []string{"d"}},
		{Stage: 8, Name: "pyg", Result: skipped, Error: "none"},
	}
	require.NoError(t, writeReport(folder, all))
	text, err := os.ReadFile(filepath.Join(folder, "table.md"))
	require.NoError(t, err)
	require.Equal(t, `| stage | result | s | figures |
| --- | --- | --- | --- |
| 0 machine | pass | 1.3 | a, b\|c |
| 3 sanitizers | fail | 2.0 | one; two. d |
| 8 pyg | skip | 0.0 | none |
`, string(text))
	require.FileExists(t, filepath.Join(folder, "stages.json"))
}

func TestMisuse(t *testing.T) {
	for _, args := range []string{"-pack x 3", "12", "-nothing", "0"} {
		_, err := run(strings.Fields(args), io.Discard)
		var misuse *misuseError
		require.ErrorAs(t, err, &misuse, args)
	}
	used := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(used, "run"), nil, 0o666))
	_, err := run([]string{"-folder", used, "-out", t.TempDir(), "-keep", used, "0"}, io.Discard)
	require.ErrorContains(t, err, "is not empty")
}
