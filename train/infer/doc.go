// Package infer computes what a network makes of the nodes of a graph: layer by layer over all
// neighbours, or on sampled blocks.
//
// An [Evaluator] takes a task's metric ([Evaluator.Measure]), gives the rows of any layer to a
// callback ([Evaluator.Each]), or keeps them for reading in any order ([Evaluator.Keep]). It
// computes only the rows that the result for the given nodes depends on. One goroutine at a time.
// Start at [Evaluator.Each].
//
// # Memory and disk
//
// A layer-wise pass holds a bit a node and layer, the current chunk, and hidden rows. If the rows
// of two layers fit Options.Bytes, with 4 bytes a node, they are in memory. If they do not fit, and
// Options.Dir names a directory, the rows of each layer go to disk, one node type after the other,
// and the next layer reads them from there. Rows are the same, bit for bit, whatever Bytes is.
//
// A layer on disk is a sealed dataset, layer-N, with a table a type. So its pages have checksums,
// which are compared at each read, and it exists whole or not at all. It has the rows of the nodes
// that the next layer reads, in ascending order, and the stored ids of the graph as their original
// ids. It takes the bytes of the rows of all types, and 12 bytes a row. Two layers exist at a time.
// The pass checks first that there is room for them.
//
// Where Options.Of names the other inputs of the rows, a pass that was cut short leaves the layer
// that it has sealed and, of the layer above, the closed shards that its journal lists. The next
// pass of the same network, weights and nodes starts behind them. The manifest of a layer, and the
// journal, record what its rows come from. A layer is removed when the one above is sealed, so that
// a crash at any point leaves one or the other. Everything else of that name in Options.Dir is
// removed. A file lock there is held while a pass is under way: another pass is refused.
//
// A layer takes its destinations in ascending order, a chunk at a time, and draws some chunks
// ahead, in a quarter of Bytes. A cachetier.Stack a type brings the rows that they read, of the
// layer below or of the features, in the rest of Bytes. A window has as many chunks as fit with
// their rows, and is read in one pass, in file order, while the window before is used. A chunk
// whose rows do not fit alone is read straight into the batch. Reading by windows is called holding
// rows. It reads a large table again and again where neighbours are all over it. Networks of means
// and sums can instead hold the sums of as many destinations as fit, with their edges, and add the
// rows of all their sources in ascending order. That reads the table once for each such part, in
// blocks, ahead of the adding. Each type of a layer takes the way that reads for less time, by the
// costs of the disk, unless Options.Hold chooses. The order of adding, and with it the bits, are
// the same. [Evaluator.Plan] returns beforehand the chosen way and its reads, and Options.Reported
// gets the reads that took place. Where hidden rows are in memory, features come the same way, in
// the memory that the rows of the first layer leave, except for those that an attached table
// brings.
//
// A part of sums has two passes. First its edges are drawn, or read as they are stored where all
// are taken, in the order of its destinations, and put in bins by the block of sources that they
// are read with. Then block after block is read and added, on all processors, each with some of the
// columns, and the layer is computed from the sums and written, a chunk at a time. After the adding
// the edges are of no use. The next part takes over their memory for its own edges, which are drawn
// while the layer is computed: so the two overlap in the memory of one part, but for some 12 bytes
// a destination.
//
// A node of more neighbours than a chunk has edges is a chunk of its own. Its neighbours are added
// up in parts, in the order of the list, so that only the rows of one part are in memory. Networks
// of attention go over the list twice: for the scores, whose softmax is then taken at once, and for
// the sum. The list itself takes some 20 bytes an edge, and its scores 8 a head. The bits are the
// same whatever the length of a part.
//
// # Why not
//
// Why not memory maps of hidden rows, without windows: chunks read all over a table that does not
// fit in memory, and a page fault for each row stops a computing thread.
//
// Why not sort the edges of a part by source: that was a fifth of the processors' time. Bins keep
// the order of the lists. So within a block, sums come in their order, and only the rows of
// sources, which were just read, are accessed at random.
//
// Why not add up a part while the layer is computed for the one before: sums are most of the
// memory. Two sets of them would mean twice as many parts, and each part reads the table.
//
// Why not a format of its own: rows of a layer are a table of features in all but name, and the
// reader of features has engines, checksums and windows.
package infer
