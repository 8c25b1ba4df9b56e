// Package mutable stores rows that training steps rewrite, out of core: learnt embeddings with
// their moments, or the state of a temporal network. A row is a record of fixed size; its fields
// are the caller's business.
//
// A [Table] is a cachetier.Stack, and so one of the tables of a plan.Planner. Windows bring rows
// into the cache ahead of use, as for any table. A step's rows are copied out once the step
// Options.Lag before it is written back (Stack.Write, Stack.Passed). Rewritten rows are written to
// disk before they lose their place in memory, sorted and merged. So budget, policy, window and
// engine change no bit of what steps see.
//
// Options.Initial makes a row that was never written, from its number. Such a row takes no space:
// files are sparse.
//
// # Checkpoints
//
// The files are in Options.Dir, which belongs to the table alone. The rows written between two
// checkpoints are a generation: a row file (rows-N), with a place for each row of the table, and a
// list (gen-C) of the rows that the generation has. A byte for each row, in memory, names the
// generation with its newest record. [Table.Checkpoint] writes the rows that are only in memory,
// syncs, and writes the list: from then on that generation is not written any more. [Table.Resume]
// goes back to a checkpoint: it removes younger files and finds the rows by the lists.
//
// [Table.Retain] names the checkpoints to keep. A generation whose checkpoint is not kept is merged
// with the one after it: the rows that only one of them needs are copied to the row file of the
// other, and then a list of both replaces the list of the younger. Until then the old list holds,
// and rows are copied only to places that it does not name: so a crash at any point leaves the old
// lists or the new one. There are at most two more row files than checkpoints, and the spill.
//
// Between two checkpoints, rows that lose their place in memory are appended to the spill. The next
// checkpoint writes them to their places in the row file, in order, together with the rows from
// memory. Write does the same when the spill is full: it has room for as many records as the run
// writes rows (Options.Touched).
//
// Every record is checked against its CRC-32C when it is read, and every list against its XXH3. The
// error of a mismatch names the file, and for a record its offset ([ErrDamaged]).
//
// # Memory and concurrency
//
// The cache takes the memory that Options.Cache sets, and [FixedBytes] come on top. Where reads
// bypass the page cache, writes do too, in whole pages; the unwritten rest of a page is read first.
// With a lag above 1, the rows that the last steps have overwritten are held for the steps that
// must not see the new ones yet. Steps are planned, loaded, gathered and written back by a
// goroutine each, as cachetier.Stack describes. These must be idle during Begin, Resume,
// Checkpoint, Retain, Clear and Each; Counts may be called at any time.
//
// Start at [Open], then [Table.Checkpoint].
//
// # Why not
//
// Why not a separate cache: windows, policies, look-ahead and forecasts are the same for rows that
// change, and so is the planner. cachetier.Stack only has to know when the rows of a step may lose
// their place, which is later here, and whom to tell when they do: the cachetier.Records, which
// this package implements.
//
// Why not a different file for the oldest checkpoint: as the oldest generation it needs no other
// rules, and merging two generations is one operation, whichever checkpoint goes.
//
// Why not hold back a step's writes for the steps of its lag: the slots of its rows could not be
// reused meanwhile, and a window that needs them would wait for steps that wait for it. Instead the
// old rows are kept, and few steps look at them.
//
// Why not a log-structured store, as pebble is: it would compact the rows of a checkpoint again and
// again. Here a row has its place in the file of a generation by its number, and is rewritten there
// until a checkpoint names it. Only what comes and goes between two checkpoints is in a log, the
// spill, which needs no order, no sync and no recovery.
//
// Why not write rows that lose their place straight to the row file: few of them share a page, and
// each would take a read and a write of one. In tools/results/out-of-core.md, "Learnt rows out of
// core", has the measurement.
//
// Why not leave parts of pages to the page cache: a direct read of a page waits until a pending
// write of it is done, and windows read rows beside the ones that they have just written.
//
// Why not memory maps: the system would write rows to disk when it likes, and not before a list
// that names them.
package mutable
