// Package infer computes what a network makes of the nodes of a graph: layer by layer over all
// neighbours, or on sampled blocks.
//
// An [Evaluator] takes a task's metric ([Evaluator.Measure]), or gives the rows of any layer to
// whoever asks ([Evaluator.Each]), or keeps them for who reads them in any order
// ([Evaluator.Keep]). Only what the nodes that are asked for hear is computed. One goroutine at a
// time. Start at [Evaluator.Each].
//
// # Memory and disk
//
// A layer-wise pass holds a bit a node and layer, the chunk at hand, and hidden rows: of two layers
// in memory, as far as they fit Options.Bytes, with 4 bytes a node among them. Where they do not
// fit, and Options.Dir says where to, the rows of each layer go to disk, one node type after the
// other, and the next layer reads them from there. Rows are then the same, bit for bit, whatever
// Bytes is.
//
// What a layer leaves on disk is a sealed dataset, layer-N, with a table a type: so its pages have
// checksums, which are compared at each read, and it is there whole or not at all. Its rows are
// those of the nodes that the next layer reads, in ascending order, and their original ids are the
// stored ids of the graph. It takes the rows of all types and 12 bytes a row. Two of them are there
// at a time, and that there is room for them is checked first.
//
// Where Options.Of says what else the rows are of, a pass that was cut short leaves the layer that
// it has sealed, and of the one above the shards that were closed, as its journal says. The next
// pass of the same network, weights and nodes starts behind them: what a layer is of stands in its
// manifest, and in the journal. A layer is removed when the one above is sealed, so that a crash at
// any point leaves one or the other. Everything else of that name in Options.Dir is removed. The
// file lock there is locked while a pass is under way: another one is refused.
//
// A layer takes its destinations in ascending order, a chunk at a time, and draws some chunks
// ahead, in a quarter of Bytes. The rows that they read, of the layer below or of the features,
// come by a cachetier.Stack a type, in the rest of Bytes: a window is as many chunks as have their
// rows fit, and is read in one pass, in file order, while the window before is used. A chunk whose
// rows do not fit alone is read to where it is used. So rows are held. Where neighbours are all
// over a large table that reads it again and again, and networks of means and sums hold the sums of
// as many destinations as fit instead, with their edges, to which the rows of all their sources are
// added in ascending order: that reads the table once for each such part, blocks of it ahead of
// those that are added. Each type of a layer does what reads for less time, by what the disk costs,
// unless Options.Hold says which; the order of adding, and with it the bits, are the same.
// [Evaluator.Plan] says beforehand what is chosen and what it reads, and Options.Reported what was
// read. Features come the same way where hidden rows are in memory, in what the rows of the first
// layer leave, but for those that an attached table brings.
//
// A part of sums has two passes. Its edges are drawn, or read as they are stored where nothing is
// drawn of them, in the order of its destinations, and put in bins by the block of sources that
// they are read with; then block after block is read and added, on all processors, each of which
// has some of the columns, and the layer is computed from the sums and written, a chunk at a time.
// When all is added the edges are of no use, and from their memory the next part has its own, which
// are drawn while the layer is computed: so the two overlap in the memory of one part, but for some
// 12 bytes a destination.
//
// A node of more neighbours than a chunk has edges is a chunk of its own, and its neighbours are
// added up in parts, in the order of the list, so that the rows of a part are all that is in memory
// of them. Networks of attention go over the list twice: for the scores, whose softmax is then
// taken at once, and for the sum. The list itself takes some 20 bytes an edge, and its scores 8 a
// head. The bits are the same whatever the length of a part.
//
// # Why not
//
// Why not memory maps of hidden rows, without windows: chunks read all over a table that does not
// fit in memory, and a page fault for each row stops a thread of those that compute.
//
// Why not sort the edges of a part by source: that was a fifth of the processors' time. Bins keep
// the order in which lists have them, so that within a block sums are met in their order, and it is
// the rows of sources that lie anywhere, which were just read.
//
// Why not add up a part while the layer is computed for the one before: sums are most of the
// memory, and with two sets of them there would be twice as many parts, each of which reads the
// table.
//
// Why not a format of its own: rows of a layer are a table of features in all but name, and the
// reader of those has engines, checksums and windows.
package infer
