// Package train runs the main job: epochs of sampled minibatches over a sealed dataset, evaluation, early stopping,
// checkpoints, and the record of a run.
//
// Three things to know. [Options] says what to do and is what a run records. [Run] does it and returns a [Result]. A
// [RunDir] is where a run's files are; [ReadRun] reads one, running or finished.
//
// A batch is a function of (seed, epoch, step), rows arrive the same from any tier, and the kernels' bits do not depend
// on the number of threads; so losses and weights depend on the data, the seed and the options that change the
// computation, and never on workers, budgets, policies or timing.
//
// Memory: what grows with the graph are copies of the split (4 bytes a node of it, 8 of the training nodes) and, in
// full-neighbour evaluation, 4 bytes a node, a bit a node and layer, and the hidden rows, which Options.EvalBytes bounds.
// Start reading at [Run]; trainer.step is the inner loop.
package train
