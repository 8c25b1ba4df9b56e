// Package topology keeps the neighbour lists of a graph that does not fit in memory: how long each is always, the lists of
// the first nodes as far as the budget reaches, and the others on disk, where they are read many at a time.
//
// A [Tier] is three things. Degrees need no disk: offsets are packed to 2.3 bytes a node. [Tier.Neighbors] lends a list
// below [Tier.Resident], a prefix since ingest numbers nodes by how often training reads them. [Tier.Read] takes all cold
// lists that a group of batches wants at one hop, and reads them in one pass in the order of the file, by package disk.
//
// Memory: offsets and lists lie outside the Go heap (kernels.HostBuf) and are given up in Close. What Neighbors lends dies
// then; what Read lends, when the callback returns.
//
// Start reading at [Tier.Read], then [Open].
package topology
