// Package mutable keeps rows that training steps rewrite, out of core: learnt embeddings with their
// moments, or the state of a temporal network. A row is a record of fixed bytes; what its fields
// are is the caller's business.
//
// A [Table] is a cachetier.Stack, and so one of the tables of a plan.Planner. Windows bring rows
// into the cache ahead, like those of any table; what a step sees is copied out once the step
// Options.Lag before it is written back (Stack.Write, Stack.Passed); rows that were rewritten are
// written to disk before they lose their place, sorted and merged. So budget, policy, window and
// engine change no bit of what steps see.
//
// A row that was never written is what Options.Initial makes of its number, and takes no space:
// files are sparse.
//
// # Checkpoints
//
// The files are in Options.Dir, which is the table's own. What is written between two checkpoints
// is a generation: a row file (rows-N), of one place for each row of the table, and a list (gen-C)
// of the rows that it has. A byte for each row, in memory, says which generation has its newest
// record. [Table.Checkpoint] writes what only memory has, syncs, and writes the list: from then on
// that generation is not written any more. [Table.Resume] goes back to it: it removes what is
// younger and finds the rows by the lists.
//
// [Table.Retain] tells which checkpoints there still are. A generation whose checkpoint is gone is
// merged with the one after it: the rows that only one of them needs are copied to the row file of
// the other, and then the list of the younger is replaced by that of both. Up to there the list
// says what it said, and rows are copied to places that it does not name: so a crash at any point
// leaves the old lists or the new one. There are at most two row files more than checkpoints, and
// the spill.
//
// Between two checkpoints, rows that lose their place in memory go to the spill, one behind the
// other; the next checkpoint takes them to their places, in order, with those that memory has. So
// does Write when the spill is full: it has room for a quarter of the rows.
//
// Every record that is read is compared with its CRC-32C, and every list with its XXH3. The error
// of one that differs names file and offset ([ErrDamaged]).
//
// # Memory and concurrency
//
// The cache takes what Options.Cache says, and [FixedBytes] come beside it. Where files are read
// past the page cache they are written past it, in whole pages, of which the rest is read before.
// With a lag above 1, what the last steps have overwritten is held for the steps that must not see
// it yet. Steps are planned, loaded, gathered and written back by a goroutine each, as
// cachetier.Stack says. Begin, Resume, Checkpoint, Retain, Clear and Each want these to be idle;
// Counts may be called at any time.
//
// Start at [Open], then [Table.Checkpoint].
//
// # Why not
//
// Why not a cache of its own: windows, policies, look-ahead and forecasts are the same for rows
// that change, and so is the planner. cachetier.Stack only has to know when the rows of a step may
// give way, which is later here, and whom to tell when they do: the cachetier.Records, which this
// package has.
//
// Why not a file for the oldest checkpoint that differs from the others: as the oldest generation
// it needs no other rules, and merging two generations is one operation, whichever checkpoint goes.
//
// Why not hold back what a step wrote for the steps of its lag: the slots of its rows could not be
// given away meanwhile, and a window that needs them would wait for steps that wait for it. What
// they were before is kept instead, and few steps look at it.
//
// Why not a log-structured store, as pebble is: what is written for a checkpoint would be compacted
// again and again. A row has its place in the file of a generation by its number, and is rewritten
// there until a checkpoint names it; only what comes and goes between two checkpoints is in a log,
// the spill, which needs no order, no sync and no recovery.
//
// Why not write rows that lose their place to where they belong: few of them share a page, and each
// would take a write and a read of one. In tools/results/out-of-core.md, "Learnt rows out of core",
// has the measurement.
//
// Why not leave parts of pages to the page cache: a direct read of a page that is to be written
// waits until it is, and windows read rows beside those that they have just written.
//
// Why not memory maps: rows would be written to disk when the system likes, and not before a list
// that names them.
package mutable
