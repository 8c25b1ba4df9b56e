// Package store is the dataset on disk: a sealed directory of memory-mapped topology, feature
// shards, labels, splits of nodes and edges, streams of events, and original ids (integers or
// texts), described byte by byte in FORMAT.md.
//
// Three types to know. A [Writer] builds a dataset under a temporary name and seals it: it is whole
// or absent. A [Dataset] is a sealed one, opened; opening reads a manifest and one header page a
// file, whatever the size. A [Graph] and a [Features] are what training reads from it:
// in-neighbours, and rows. An [Events] is a stream: what happened between which nodes, in the order
// of time.
//
// Memory: every slice that a Dataset's parts return is borrowed from a read-only map and dies with
// the Dataset; whoever opened it closes it, after waiting for all who borrowed. Everything that
// only reads is safe for concurrent use.
//
// Failure: what is wrong with a dataset is a [SectionError] and errors.Is(err, [ErrCorrupt]) holds.
// A file truncated under its map shows as a fault, so every goroutine that reads mapped memory runs
// inside [Guard]. Each page has a checksum: what is lent is compared when a page is first lent, and
// what readers of their own bring by [SectionFile.Check].
//
// Start reading at [Open], then [Graph.Neighbors] and [Features.Row].
//
// # Why not
//
// Why not a pebble database for names: opening one takes an exclusive lock, even to read, and to
// write it adds logs, so two trainings could not share a dataset and no seal could cover it. Its
// sorted tables alone do neither.
//
// Why not a checksum of the whole at open: at 375 GB of features it costs minutes; sizes and
// headers cost nothing, and a checksum for each page costs a fifth of a microsecond when it is
// read. Why not headerless arrays: a swapped or half-copied file must be refused, not trained on.
package store
