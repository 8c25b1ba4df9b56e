// Package store is the dataset on disk: a sealed directory of memory-mapped topology, feature
// shards, labels, splits of nodes and edges, streams of events, and original ids (integers or
// texts). FORMAT.md describes it byte by byte.
//
// Types to know: a [Writer] builds a dataset under a temporary name and seals it, so that a dataset
// is whole or absent. [Open] returns a sealed one as a [Dataset]; it reads a manifest and one
// header page a file, whatever the size. Training reads in-neighbours from a [Graph], rows from a
// [Features], and from an [Events] the events of a stream, in the order of their times.
//
// Memory: every slice that a Dataset's parts return is borrowed from a read-only map and dies with
// the Dataset. Whoever opened it closes it, after waiting for all borrowers. Everything that only
// reads is safe for concurrent use.
//
// Failure: damage to a dataset is reported as a [SectionError], for which errors.Is(err,
// [ErrCorrupt]) holds. Reading a file that was truncated under its map is a fault, so every
// goroutine that reads mapped memory runs inside [Guard]. Each page has a checksum. It is compared
// when the page is first lent; readers that do their own reading call [SectionFile.Check].
//
// Start reading at [Open], then [Graph.Neighbors] and [Features.Row].
//
// # Why not
//
// Why not a pebble database for names: opening one takes an exclusive lock, even to read, and
// writes logs. So two trainings could not share a dataset, and no seal could cover it. Its sorted
// tables, which we use, need neither.
//
// Why not a checksum of the whole at open: with 375 GB of features it takes minutes. Comparing
// sizes and headers takes no time, and checking a page when it is read takes a fifth of a
// microsecond.
//
// Why not headerless arrays: a swapped or half-copied file must be refused, not trained on.
package store
