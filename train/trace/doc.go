// Package trace simulates a sampler and a cache on a dataset, without training. It measures how
// many rows batches want as they grow (figure 3 of Balin et al., Cooperative Minibatching in Graph
// Neural Networks), how many different rows several batches in a row want, and the share of their
// requests that caches of some sizes answer under some policies, as κ grows (figure 5a there).
//
// Two types to know: [Options] chooses what to draw, and [Report] has the results; its JSON keys
// are stable. Start at [Run].
//
// A trace is the input rows of batches, in the order in which they stand in them, each once a
// batch. It is drawn once for each sampler and κ, by several goroutines, from the same seeds in the
// same order as train would have with the same options, and kept in a file of 4 bytes a request
// whose name is gone from the start. Every policy and size is then simulated from that file,
// request by request:
//
//   - LRU by one list for all sizes, since a smaller cache holds a prefix of what a larger one does: 9 bytes a node.
//   - SIEVE (Zhang et al., NSDI 2024) by its queue and hand: 4 bytes a node, 13 a row of the cache.
//   - Belady's MIN that may let a row pass by, which no policy beats: from the place of each request's next one, which
//     a pass from the end of the file to its start puts there in place of the rows. It needs 4 bytes a node then, and
//     afterwards one bit a request and nothing of nodes or rows.
//   - Static, the rows that stand first in the dataset: where ingest ordered nodes by how often they are read, the hot
//     ones.
//
// Where there are several types of nodes, each type that batches read and that has a table is
// traced alone, with a file and caches of its own. Batches are drawn once for all of them, and then
// one type is simulated after the other. Types without a table have no rows to cache, and only
// count in how batches grow.
//
// A pass takes no more than its own arrays. As many passes run at once as there are workers, all of
// them for one type, so the largest type decides the memory. Results do not depend on the number of
// workers.
//
// Caches begin empty, and what fills them is left out: see [Options].Steps. The topology is read
// from its map, so the first draws of a graph that is not in memory take their time; Run ends soon
// after its context does, in the middle of a draw, too.
//
// # History
//
// With [Options].History it also measures what a run saves by using hidden rows of earlier steps
// again, in [HistoryReport]. Package history decides which nodes each batch leaves out, as in
// training, on the same batches. Nobody trains, so the gradients behind its verdicts are made up:
// the norm of a live node is a hash of (seed, layer, type, step, node), and the share p_grad is
// accepted at random.
//
// With History.WindowBytes a slab plans the windows of such a run by the rules of package
// cachetier: how many steps fit with their rows, which rows are read, and the disk time for them
// and for neighbour lists. No list is in memory. Batches are drawn once without history, for all
// slabs of such runs, and once for each combination of settings, one after the other. No file is
// kept: a slab needs the requests of two windows only.
//
// Memory: history.BytesPerSlot for each slot of the run at hand. For each slab the bookkeeping of a
// cachetier.Simulation for each table, and 4 bytes for each row and list that the steps of two
// windows ask for, of at most 256 steps each. Without history there is a slab for each number of
// bytes that slots take, with EqualBytes, and one more. None has rows.
package trace
