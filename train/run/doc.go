// Package run has the options of a training run and what the run leaves behind: its directory, its
// record, its metrics and its result.
//
// Five types to know. [Options] configures a run. A [Dir] is the directory of one run, locked while
// the run lasts: run.json with the [Record], metrics.jsonl with a [Line] an epoch or so many steps,
// checkpoints, weights, and result.json with the [Result]. Every file is replaced atomically, or
// appended to and cut back to what the newest checkpoint knows of. [Read] gives the result of any
// run, running or finished; a [View] shows one while it goes on.
//
// Errors and notes name an option by its JSON key in braces, as in "{kappa} 0: at least 1": here,
// in the packages whose options are part of Options, and in all of train. {run} stands for the run
// directory and {resume} for going on with the run in it, and package trace adds its own keys. The
// command puts its flags in place of the keys; so may other callers, with Hooks.Text for the texts
// that are recorded.
//
// A Dir is used by one goroutine at a time; Read takes no lock and may be called by anybody at any
// time.
package run
