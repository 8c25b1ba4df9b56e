// Package sample turns seed nodes into blocks, the sampled subgraphs that a step computes on.
//
// Three things to know. A [Block] is one layer in CSR2 form, destinations first in its source list. A [Batch] is the
// blocks of all layers for one set of seeds. A [Sampler] draws them as its [Config] says: by neighbour sampling, LABOR-0,
// LABOR-* or random walks. Every draw is a hash of (z, layer, node), so a batch is the same whoever draws it and whenever.
// Nodes are hashed by their id as stored: the order of a dataset is part of its identity.
//
// The z of each step comes from a [Schedule]. With κ = 1 batches are independent; with more, consecutive ones share their
// draws (nested) or those drift (smoothed), so that the next batch wants much of what the last one had.
//
// [Options] add what some networks need of a block: each destination among its own neighbours, the weights of GCN's
// sum, the places of edges seen from their sources. They change no draw.
//
// A [Group] draws the same batches, several together, from a topology of which most is on disk: hop by hop, so that each hop
// of all of them reads the lists it wants in one pass over the file.
//
// What is drawn of a hub is bounded by the fanout, and so is the memory of drawing it, but for LABOR-*, which looks at the
// lists of all destinations of a hop at once, 8 bytes a neighbour and 44 for each different one.
//
// A Batch owns its slices and is refilled without allocation once they have grown. A Sampler is used by one goroutine
// at a time; several Samplers may share one topology. The topology may be mapped: call Sample inside store.Guard.
//
// Start at [Sampler.Sample], then [Group.Sample]. What both share is in drawer.go; how neighbours are chosen in choose.go.
package sample
