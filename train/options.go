package train

import "github.com/gnnstore/gnnstore/train/run"

// Options says what to do: what a run records as what it was asked for.
type Options = run.Options

// Auto stands for a budget that is a part of MemoryBytes, and for epochs that a run decides on.
const Auto = run.Auto

// How draws depend on each other: see run.Nested.
const (
	Nested   = run.Nested
	Smoothed = run.Smoothed
)

// DefaultOptions trains a two-layer GraphSAGE.
func DefaultOptions() Options { return run.DefaultOptions() }
