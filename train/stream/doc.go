// Package stream trains networks for streams of events: it takes the events in their order, with
// the state of nodes in a table on disk behind a cache, and lets steps overlap as far as a declared
// staleness allows.
//
// Call [Run] to train. It goes through the training part of the stream epoch after epoch. Each
// epoch begins without state, and is judged by the validation part: see run.Replay and
// run.LiveState. In the end the weights of the best epoch go through the whole stream from its
// first event on, since the state that training leaves was made by changing weights, and cannot be
// made again.
//
// [OpenNetwork] opens a trained network: to replay the stream with it, to embed nodes at a time,
// and to score pairs at times. Start reading at core.go: runs, networks and plans have a core.
//
// # What decides a result
//
// The dataset, the options and the seed. Batches are consecutive events; negatives and dropout are
// functions of (seed, epoch, event) and (seed, epoch, step). A step with staleness k sees the state
// that all steps up to the k-th before it have left, and nothing of later ones (MSPipe, arXiv
// 2402.15113, section 3.2), so that speed, memory, workers and policy change no bit. Evaluation has
// a staleness of 1, and blends no memories, which is a remedy for training on old state
// ({mitigate}).
//
// # What is measured
//
// AP and AUC tell each event from one drawn negative, by batch and pooled. MRR ranks its
// destination among nodes that came with the dataset, or that are drawn ({eval_negatives}
// uniform:N), with ties between the best and the worst rank, as TGB has it. It takes as long as
// there are candidates, so it is of the final replay alone, unless epochs are chosen by it
// ({metric} mrr). See ranking.go.
//
// # The way of a step
//
//	draw       temporal.Sampler: events, neighbours, negatives          pipeline: sample
//	page       records of nodes and features of events come from disk   pipeline: load
//	gather     features; then, once step i-k has published, records     pipeline: gather, of which state
//	train      new state, published; embeddings, loss, gradients        pipeline: step
//	publish    late: behind the step, while the next one trains         pipeline: write
//
// Published records lie in the cache of the table; they are written to disk when they lose their
// place there.
//
// # Staleness that is found
//
// With run.Auto some steps are rehearsed first, with one stage at work at a time, on state of zeros
// in a directory of its own. Package staleness chooses a staleness from that. Then all is put back,
// and the tables are opened for that staleness: the run is the same as if it were given the number.
// The number depends on the machine, so run.json keeps it, and a resumed run goes on with it.
//
// # Memory
//
// [run.Record].Memory has its split. For each node: 4 bytes of cursor, 14 to blend memories, its
// record's share of mutable.FixedBytes and cachetier.NotedBytes, and 4 in each population of
// negatives that it is in. Before the tables are opened, Auto takes 4 as well where it finds more
// than 1.
//
// Batches, and what draws them, are in the Go heap. It gets a 64th of the memory beside what they
// take, from the rows: with less it was collected several times a step. Warm-up and training have a
// planner each, and one gives its batches up before the other goes on.
//
// # Why not
//
// Why not the loop of package graph: a graph has parts that are sets of nodes, in any order, and no
// state; its evaluation is a pass over all nodes. What both share are the stages below, and the
// record of a run above.
package stream
