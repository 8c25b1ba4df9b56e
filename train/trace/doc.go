// Package trace says what a sampler and a cache would do with a dataset, without training on it: how many rows batches
// want as they grow (figure 3 of Balin et al., Cooperative Minibatching in Graph Neural Networks), how many different
// ones several batches in a row want, and which share of their requests caches of some sizes answer under some
// policies, as κ grows (figure 5a there).
//
// Two things to know: [Options] says what to draw, and [Report] is what came of it; its JSON keys are stable. Start at
// [Run].
//
// A trace is the input rows of batches, in the order in which they stand in them, each once a batch. It is drawn once
// for each sampler and κ, by several goroutines, from the same seeds in the same order as train would have with the
// same options, and kept in a file of 4 bytes a request whose name is gone from the start. Every policy and size is then
// simulated from that file, request by request:
//
//   - LRU by one list for all sizes, since a smaller cache holds a prefix of what a larger one does: 9 bytes a node.
//   - SIEVE (Zhang et al., NSDI 2024) by its queue and hand: 4 bytes a node, 13 a row of the cache.
//   - Belady's MIN that may let a row pass by, which no policy beats: from the place of each request's next one, which
//     a pass from the end of the file to its start puts there in place of the rows. It needs 4 bytes a node then, and
//     afterwards one bit a request and nothing of nodes or rows.
//   - Static, the rows that stand first in the dataset: where ingest ordered nodes by how often they are read, the hot
//     ones.
//
// Where there are several types of nodes, each type that batches read and that has a table is traced alone, with a file and caches
// of its own. Batches are drawn once for all of them, and then one type is simulated after the other. Types without a table have
// no rows to cache, and only count in how batches grow.
//
// With [Options].History runs are traced that use hidden rows again: package history decides which nodes each batch leaves out, as in
// training, and the gradients that it asks for are a hash, since nobody trains. Beside what [HistoryReport] counts, slabs plan the windows
// of such a run, by the rules of package cachetier. Nothing is kept in a file: of each step a slab wants what two windows ask for. The batches
// are drawn once for all slabs without history, and once for each combination of settings with it, one after the other.
//
// Memory, with History: history.BytesPerSlot a slot of the run that is traced. With windows, for each slab at work, the bits of a
// cachetier.Simulation for each table, and 4 bytes for each row and list that the steps of two windows ask for, which are at most 256 each;
// there is one slab for each number of bytes that slots take, and one more, but no rows.
//
// A pass takes no more than its own arrays, and as many passes go on at once as there are workers, all of them for one type: the
// memory is that of the largest. Results depend on no number of them.
//
// Caches begin empty, and what fills them is left out: see [Options].Steps. The topology is read from its map, so the
// first draws of a graph that is not in memory take their time; Run ends soon after its context does, in the middle of
// a draw, too.
package trace
