// Package train is the door to training: a run over a sealed dataset, with evaluation, early
// stopping and checkpoints, and the network that comes of it.
//
// Three things to know. run.Options configures a run, and the run records it. [Run] trains and
// returns a run.Result. Afterwards [Open] opens the trained network, to measure it and to predict
// with it. Two packages have the two workloads that a run may train: package graph samples
// minibatches around nodes of a graph, and package stream takes a stream of events in the order of
// their times. run.Driver drives both.
//
// A batch is a function of (seed, epoch, step), rows arrive the same from any tier, and the
// kernels' bits do not depend on the number of threads; so losses and weights depend on the data,
// the seed and the options that change the computation, and never on workers, budgets, policies or
// timing.
//
// # Ways
//
// The memory of a run (MemoryBytes): run.Table declares its flag; tiers.Options holds it;
// plan.Demand.Split divides it among the parts that need some; topology.Tier, cachetier.Stack,
// pipeline.Pipeline and infer.Evaluator are opened with their shares.
//
// The device of a run: run.Table declares its flag; run.Driver opens the backend by kernels.Open,
// and closes it; tiers.Measure has the bytes that a step takes of the device's own memory, and
// plan.Budget has them beside --memory; run.Bus counts the work that steps give the device.
//
// A prediction: predict.go of the command, which checks what is asked for; [Open], which takes the
// weights that run.Use chooses; graph.Network.Predict; infer.Evaluator, which computes layer by
// layer for all nodes; export.WriteRows, which writes rows under the ids of the source.
//
// A feature row: a page of the dataset; disk.Reader, which checks it; the cache of a
// cachetier.Stack, where it waits for its step; the rows of a batch, which pipeline gathers;
// tape.Leaf, in step.Stepper.
//
// A learnt row: drawn from the seed and its number, or a record in the run directory;
// mutable.Table, which is a cachetier.Stack; the rows of a batch; tape.LearntLeaf; optim.Optimizer,
// which makes a new record of it; tiers.WriteBack. Checkpoints name the files that hold the
// records: graph/learnt.go.
//
// A hidden row that is used again: history.Cache plans, between hops, which nodes need not be drawn
// further and which slots the others' rows go to; step.Stepper assembles a layer's rows from what
// it computes and from slots, and stores rows there after the backward pass; the norms of gradients
// go back to the Cache, which decides by them what steps to come may use: graph/reuse.go,
// and graph/reusestate.go for checkpoints.
//
// A seed: task.Nodes orders the seeds of an epoch; pipeline asks for a step's seeds; sample.Sampler
// draws the blocks around it; step.Stepper computes its row; the task's loss compares that with its
// target, classes or a number.
//
// A link: task.Links finds the edges of a step, reads their ends, and draws the ends of negatives;
// all of these nodes are seeds; a sample.Without keeps messages from passing along it;
// model.Model scores it by the rows of both ends. Held-out links come from store.HeldEdges, and
// task.Links keeps the rows that infer.Evaluator makes of their ends. task.Edges does the same with
// the class of an edge, or its number, which data.EdgeLabel finds.
//
// What a worker draws and reads for others, where workers own nodes: run.WorkerOptions has
// Parallel; graph's parts connects tiers.Parts with dist.Channel; sample.SampleParts draws;
// plan.Config.Agree keeps groups alike; pipeline.Config.Deal passes rows on. If each worker has a
// part of the dataset alone, store.Own numbers its rows, and tiers.ownLists its lists. If parts own
// ranges, dist.Deal gives workers seeds that they own.
//
// The way in which workers share a step, where they choose it or a plan compares: graph/shared.go
// draws some steps; sample.Asks counts what goes to owners; dist.Group.Measure times exchanges;
// tiers.StepReads estimates what is read; plan.Spread estimates the seconds of a step, and
// plan.Choose takes a way.
//
// A gradient, where several workers train: the backend of each worker; dist.Group, which adds the
// gradients up in the order of the workers; the optimizer of each, which makes the same weights of
// the sum: graph/workers.go. run/together.go has what the workers of a run agree on beside.
//
// The label of a training node, where labels are input: data.Shown keeps all labels and hides the
// labels of a step's seeds; sample.Labels lists them beside the edges of the first layer;
// model.Labels feeds them to the network.
//
// A neighbour list: a page of the dataset; disk.Reader; topology.Tier, or store.Graph if all
// lists are in memory; sample.Sampler; a sample.Block.
//
// # Memory
//
// These grow with the graph: copies of the split (4 bytes a node of it, 8 of the training
// nodes), the labels of training nodes where they are input (4 bytes a class of theirs, a fifth of
// a byte a node of their type) and, in full-neighbour evaluation, 4 bytes a node, a bit a node and
// layer, and the hidden rows, which run.Options.EvalBytes bounds: beyond it they are on disk.
// Measuring links takes a row of hidden width for each node that a part's links and negatives name,
// and 16 bytes a held-out link.
//
// # Imports
//
// A package below train may import these packages of this module, and no others. tools/check holds
// them to it.
//
//	model -> tape, sample, checkpoint, kernels
//	history -> sample
//	pipeline -> plan, sample, cachetier, kernels, store
//	temporal -> step, optim, model, tape, sample, metric, cachetier, kernels, store
//	data -> sample, kernels, store
//	plan -> sample, cachetier, kernels, store
//	optim -> checkpoint, kernels
//	bench -> step, model, optim, sample, tape, kernels
//	step -> model, optim, sample, tape, cachetier, kernels
//	task -> step, optim, data, metric, model, sample, tape, kernels, store
//	infer -> step, optim, data, model, sample, pipeline, cachetier, kernels, store
//	tiers -> data, plan, pipeline, sample, cachetier, kernels, store
//	run -> task, tiers, history, plan, pipeline, step, model, sample, optim, metric, checkpoint
//	run -> dist, cachetier, kernels, store
//	graph -> run, tiers, history, infer, task, plan, pipeline, step, model, sample, data, optim
//	graph -> tape, metric, checkpoint, trace, dist, cachetier, kernels, store
//	stream -> run, tiers, temporal, pipeline, plan, step, model, metric, checkpoint, sample
//	stream -> cachetier, kernels, store
//	page -> kernels
//	live -> run, train, page, metric, pipeline, cachetier, kernels, store
//	sweep -> run, metric, checkpoint, store
//	trace -> data, history, sample, page, cachetier, kernels, store
//	train -> all of them
//
// Start reading at run.Driver, which all runs share, then graph/loop.go.
package train
