package main

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

	"github.com/rogpeppe/go-internal/testscript"
)

// resultOf returns the part of a result that must not change between equal runs.
func resultOf(ts *testscript.TestScript, name string) []byte {
	raw, err := os.ReadFile(ts.MkAbs(name))
	ts.Check(err)
	var r struct {
		Losses     []json.Number `json:"losses"`
		ParamsXXH3 string        `json:"params_xxh3"`
		Best       any           `json:"best"`
	}
	ts.Check(json.Unmarshal(raw, &r))
	if r.ParamsXXH3 == "" || len(r.Losses) == 0 {
		ts.Fatalf("%s: no losses or no hash of the weights", name)
	}
	b, err := json.Marshal(r)
	ts.Check(err)
	return b
}

// sealOf is the seal in a report of a dataset.
func sealOf(ts *testscript.TestScript, name string) string {
	raw, err := os.ReadFile(ts.MkAbs(name))
	ts.Check(err)
	var r struct {
		Seal string `json:"seal"`
	}
	ts.Check(json.Unmarshal(raw, &r))
	if r.Seal == "" {
		ts.Fatalf("%s: no seal", name)
	}
	return r.Seal
}

// nearLosses is the command nearlosses A.json B.json [TOLERANCE]: it wants the losses of two
// results to be within this share of each other, 1e-4 by default.
func nearLosses(ts *testscript.TestScript, _ bool, args []string) {
	tolerance := 1e-4
	if len(args) > 2 {
		_, err := fmt.Sscan(args[2], &tolerance)
		ts.Check(err)
	}
	var losses [2][]float64
	for i := range losses {
		var r struct{ Losses []float64 }
		ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[i])), &r))
		losses[i] = r.Losses
	}
	if len(losses[0]) == 0 || len(losses[0]) != len(losses[1]) {
		ts.Fatalf("%d and %d losses", len(losses[0]), len(losses[1]))
	}
	for i, want := range losses[0] {
		if got := losses[1][i]; !(math.Abs(got-want) <= tolerance*math.Abs(want)) {
			ts.Fatalf("losses %d are %v and %v", i+1, want, got)
		}
	}
}
