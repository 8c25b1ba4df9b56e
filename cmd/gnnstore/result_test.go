package main

import (
	"encoding/json"
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
