// Package run drives a training run. It has the run's options and the files that the run leaves
// behind: its record, its metrics, its checkpoints and its result.
//
// Types to know: [Options] configures a run, and a [Driver] trains a [Workload] with them. A [Dir]
// is the directory of one run, locked while the run lasts. It holds run.json with the [Record],
// metrics.jsonl with a [Line] an epoch or so many steps, checkpoints, weights, and result.json with
// the [Result]. [TrainedOnFile] and [EncodingsFile] describe the dataset. Every file is replaced
// atomically, or appended to; on resuming, an appended file is cut back to its length at the newest
// checkpoint. [Read] gives the result of any run, running or finished; a [View] shows one while it
// goes on.
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
