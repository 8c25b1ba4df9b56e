// Package run is what a training run was asked for, and what it leaves behind: its options, its directory, its record, its
// metrics and its result.
//
// Four types to know. [Options] says what to do. A [Dir] is the directory of one run, locked while the run lasts: run.json with
// the [Record], metrics.jsonl with a [Line] an epoch or so many steps, checkpoints, weights, and result.json with the [Result].
// Every file is replaced atomically, or appended to and cut back to what the newest checkpoint knows of. [Read] gives the result
// of any run, running or finished.
//
// A Dir is used by one goroutine at a time; Read takes no lock and may be called by anybody at any time.
package run
