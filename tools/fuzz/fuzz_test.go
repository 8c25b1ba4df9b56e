package main

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTargets(t *testing.T) {
	require.Equal(t, []string{"FuzzHeader", "FuzzRows"}, targets([]byte("package npy\n\nfunc FuzzHeader(f *testing.F) {\n}\n\n"+
		"func FuzzyMatch(a, b string) bool {\n}\n\n// func FuzzNothing(f *testing.F) {\nfunc FuzzRows(fuzz *testing.F) {\n}\n")))
	require.Equal(t, "ingest/npy.FuzzRows", target{pkg: "github.com/gnnstore/gnnstore/ingest/npy", name: "FuzzRows"}.String())
}

func TestParse(t *testing.T) {
	const baseline = "fuzz: elapsed: 0s, gathering baseline coverage: 0/19 completed\n" +
		"fuzz: elapsed: 0s, gathering baseline coverage: 19/19 completed, now fuzzing with 2 workers\n"
	require.Equal(t, result{executions: 325017, interesting: 12}, parse(baseline+
		"fuzz: elapsed: 3s, execs: 200003 (66665/sec), new interesting: 11 (total: 201)\n"+
		"fuzz: elapsed: 5s, execs: 325017 (62500/sec), new interesting: 12 (total: 202)\nPASS\nok  \texample.org/npy\t5.1s\n"))
	require.Equal(t, result{executions: 7, crashers: []string{"testdata/fuzz/FuzzRows/0f3a"}}, parse(baseline+
		"fuzz: elapsed: 0s, execs: 7 (70/sec), new interesting: 0 (total: 19)\n--- FAIL: FuzzRows (0.10s)\n"+
		"    --- FAIL: FuzzRows (0.00s)\n        rows_test.go:7: 3 rows of 2\n\n"+
		"    Failing input written to testdata/fuzz/FuzzRows/0f3a\n    To re-run:\n    go test -run=FuzzRows/0f3a\nFAIL\n"))
}

// TestEndedLate: running out of time is no crash, unless there is one as well.
func TestEndedLate(t *testing.T) {
	const late = "fuzz: elapsed: 1s, execs: 691 (496/sec), new interesting: 30 (total: 34)\n--- FAIL: FuzzSchema (1.39s)\n" +
		"    context deadline exceeded\nFAIL\n"
	require.True(t, endedLate(late))
	require.False(t, endedLate(late+"    Failing input written to testdata/fuzz/FuzzRows/0f3a\n"))
	require.False(t, endedLate("--- FAIL: FuzzRows (0.10s)\n    --- FAIL: FuzzRows (0.00s)\n        rows_test.go:7: 3 rows of 2\nFAIL\n"))
}

// TestDrawn: a seed draws one order of all targets. Targets of a package stay together.
func TestDrawn(t *testing.T) {
	var all []target
	for i := range 30 {
		all = append(all, target{pkg: fmt.Sprint("p", i/3), name: fmt.Sprint("Fuzz", i)})
	}
	orders := map[string]bool{}
	for seed := range uint64(20) {
		order := drawn(all, seed)
		require.Equal(t, order, drawn(all, seed))
		require.ElementsMatch(t, all, order)
		var pkgs []string
		for _, target := range order {
			pkgs = append(pkgs, target.pkg)
		}
		require.Len(t, slices.Compact(pkgs), 10)
		orders[fmt.Sprint(order)] = true
	}
	require.Len(t, orders, 20)
}
