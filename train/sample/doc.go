// Package sample turns seed nodes into layers of blocks, the sampled subgraphs that a step computes
// on.
//
// Four things to know. A [Batch] has a [Layer] for each hop. A layer has the nodes of each type, a
// [Frontier], destinations first, and the edges of each relation, a [Block] in CSR2 form. A
// [Schema] numbers types and relations; most graphs have one of each, which is no special case. A
// [Sampler] draws batches as its [Config] says: by neighbour sampling, LABOR-0, LABOR-* or random
// walks. Every draw is a hash of (z, layer, type or relation, node), so a batch is the same on any
// goroutine and at any time. Nodes are hashed by their id as stored: the order of a dataset is part
// of its identity.
//
// The z of each step comes from a [Schedule]. With κ = 1 batches are independent; with more,
// consecutive batches share their draws (nested) or their draws drift (smoothed), so the next batch
// wants many rows of the last one.
//
// [Options] add what some networks need of a block: each destination among its own neighbours, the
// weights of GCN's sum, the places of edges seen from their sources. They change no draw.
//
// A [Topology] has the lists of a relation, resident or on disk; [AtHand] makes one of lists in
// memory. Batches are drawn together, hop by hop and relation by relation: the lists that are on
// disk and that any batch wants are read in one pass over the file, and the sources of each type
// are numbered once a hop.
//
// [Sampler.SampleFar] draws more batches than fit in memory with one pass of the file a hop: what
// does not fit waits in a [Room].
//
// Edges may bring [Values] along, from [Sampler.Bring] on: a block has them beside its neighbours.
// They change no draw, and are read once all hops are drawn.
//
// A batch can be drawn [Without] some edges to its seeds: the links that it scores.
//
// An [Expander] changes between hops which nodes are drawn further: historical embeddings prune
// there, and workers that cooperate add the nodes that others asked for. Each source then has an
// [Origin], and Batch.Inputs are the rows that the batch itself reads.
//
// Workers may each have the lists of their own nodes alone: [Sampler.SampleParts] draws with them.
//
// The fanout bounds the draws from a hub, and their memory. LABOR-* is the exception: it looks at
// the lists of all destinations of a hop at once, up to 44 bytes a neighbour, and 4 more where its
// list is not resident. A list that loses edges is copied, at 4 bytes a neighbour, 8 with weights;
// lists that are not resident are copied for as many batches at a time as Sampler.Bytes allows.
//
// [Sampler.Pack] turns a batch into bytes, which may wait on disk, and [Sampler.Unpack] restores
// it.
//
// A Batch owns its slices and is refilled without allocating for nodes or edges once they have
// grown. A Sampler is used by one goroutine at a time; several Samplers may share one topology.
// Where lists are mapped, set Sampler.Guard to store.Guard.
//
// Start at [Sampler.Sample]. The work of a worker is in drawer.go, the choice of neighbours in
// choose.go. Lists are read in cold.go, and values in values.go. Edges are left out in without.go,
// batches are packed in pack.go, workers draw for each other in parts.go, and horizon.go draws more
// batches than fit in memory.
//
// # Why not
//
// Nanoseconds an edge that numbering took on an Intel Xeon with 2 MiB of L2, best of several beside
// other work, fanouts 15,10,5 and 1,000 seeds, of 200,000 nodes and of 10 million. As it is: 2.2 by
// the array (0.8 MB), 16 by the table (8 MB).
//
//   - An array whatever the size of the graph: 20 at 10 million nodes, whose 40 MB miss every cache and are 444 MB a worker at
//     papers100M's 111 million.
//   - A table for all graphs: 11 at 200,000 nodes. Whether a slot is taken, and by whom, are branches that are guessed wrong.
//   - Slots of 12 bytes with a generation each, and every hop from its destinations on: 18 and 27.
//   - SplitMix64 in place of a product as the hash: 15 and 21.
//   - Reading slots early, 16 or 32 at a time: 12 and 17. Reads of the next ids are under way anyhow.
//   - A table at most a quarter full, not half: 11 and 20. What it saves in probes it loses in cache misses.
//   - Huge pages (kernels.HostBuf): 2.4 and 15 to 20, no difference that is not noise, and somebody has to close them.
//   - Sorting by radix, 11 bits at a time, and numbering the groups by their first member: ten times as long at 200,000 nodes,
//     two and a half times at 10 million.
//   - A bitmap with ranks, two levels or one, numbers in the order of ids; in the order of appearance each id needs its number
//     somewhere, which is the array.
package sample
