// Package trace simulates a sampler and a cache on a dataset, without training. It measures how
// many rows batches want as they grow (figure 3 of Balin et al., Cooperative Minibatching in Graph
// Neural Networks), how many different rows several batches in a row want, and the share of their
// requests that caches of some sizes answer under some policies, as κ grows (figure 5a there).
//
// Two types to know: [Options] chooses what to draw, and [Report] has the results; its JSON keys
// are stable. Start at [Run].
//
// A trace lists the input rows of batches in their order, each row once a batch. It is drawn once
// for each sampler and κ, by several goroutines. The seeds come in the same order as in training
// with the same options. The trace is in a file of 4 bytes a request, which is unlinked at once.
// Every policy and size is then simulated from that file, request by request:
//
//   - LRU, by one list for all sizes, since a smaller cache holds a prefix of a larger one's list:
//     9 bytes a node.
//   - SIEVE (Zhang et al., NSDI 2024) by its queue and hand: 4 bytes a node, 13 a row of the cache.
//   - Belady's MIN, which here may also leave a row out of the cache. No policy beats it. A pass
//     from the end of the file to its start, with 4 bytes a node, replaces each row by the place of
//     its next request. The simulation then takes one bit a request.
//   - Static: the rows that come first in the dataset. They are the hot ones if ingest ordered
//     nodes by how often they are read.
//
// Where there are several types of nodes, each type that batches read and that has a table is
// traced alone, with a file and caches of its own. Batches are drawn once for all of them, and then
// one type is simulated after the other. Types without a table have no rows to cache, and only
// count in how batches grow.
//
// A pass takes no memory but these arrays. As many passes run at once as there are threads, all of
// them for one type, so the largest type decides the memory. Results do not depend on the number of
// threads.
//
// Caches begin empty, and the requests that fill them are not counted: see [Options].Steps. The
// topology is read from its map, so the first draws of a graph that is not in memory are slow. Run
// ends soon after its context does, even in the middle of a draw.
//
// # Workers
//
// With [Options].Workers, Run instead counts the work of several workers of a training, in
// [WorkersReport]. For each way in which workers share a step, it counts what a worker draws,
// reads, computes and sends in a step (table 7 of Balin et al.), and the rows that the worker's
// cache misses. Owners are as in store.OwnersByRule. Run draws the batch of all workers, and the
// batch of each worker's share. The work of owners follows from these, so no messages are
// exchanged. Training with the same options draws the same batches.
//
// Memory: the batch of all workers and the batches of the shares, for one step. For each worker and
// table there are up to two files, one of what workers read for themselves and one of what owners
// read, each with a block of 1 MiB.
//
// # History
//
// With [Options].History it also measures what a run saves by using hidden rows of earlier steps
// again, in [HistoryReport]. Package history decides which nodes each batch leaves out, as in
// training, on the same batches. Nobody trains, so the gradients behind its verdicts are made up:
// the norm of a live node is a hash of (seed, layer, type, step, node), and the share p_grad is
// accepted at random.
//
// With History.WindowBytes it also simulates the windows of such a run by the rules of package
// cachetier: how many steps fit with their rows, which rows are read, and the disk time for them
// and for neighbour lists. No list is in memory. Batches are drawn once without history, for all
// window simulations, and once for each combination of settings, one after the other. No file is
// kept: a simulation needs the requests of two windows only.
//
// Memory: history.BytesPerSlot for each slot of the current run. A window simulation takes the
// bookkeeping of a cachetier.Simulation for each table, and 4 bytes for each row and list that the
// steps of two windows ask for, of at most 256 steps each. Without history there is one simulation,
// and with EqualBytes one more for each number of bytes that slots take. None has rows.
package trace
