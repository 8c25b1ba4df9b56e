// Package topology keeps the neighbour lists of a graph that does not fit in memory: how long each is always, the lists of
// the first nodes as far as the budget reaches, and the others on disk, where they are read many at a time.
//
// A [Tier] is three things. Degrees need no disk: offsets are packed to 2.3 bytes a node. [Tier.Neighbors] lends a list
// below [Tier.Resident], a prefix since ingest numbers nodes by how often training reads them. [Tier.Read] takes all cold
// lists that a group of batches wants at one hop, and reads them in one pass in the order of the file, by package disk.
// Edges may have weights, which are resident beside their lists ([Tier.Weights]) and cold like them ([Tier.ReadWeights]).
//
// [Tier.Resize] changes the budget later, for who learns only from a first batch how much lists may take.
//
// Memory: offsets and lists lie outside the Go heap (kernels.HostBuf) and are given up in Close. What Neighbors lends dies
// then, or in Resize; what Read lends, when the callback returns.
//
// Concurrency: drawing, which is Degree, Neighbors, Read and their like, may go on in several goroutines at once. Open,
// Resize and Close want no drawing beside them.
//
// Start reading at [Tier.Read], then [Open].
//
// # Why not
//
// Why not packed lists, as differences or under zstd: BenchmarkEncoding, one core of an Intel Xeon at 2.6 GHz, on a graph
// generated in papers100M's shape at a twentieth of its size (5.6 M nodes, 80.8 M edges, ordered by access) and on
// ogbn-arxiv, both directions:
//
//	                            bits an edge                   M edges/s unpacked
//	                       plain  zstd  delta  both        zstd  delta  both
//	generated, hottest      32.0  22.1   13.2  11.8         197    219   167
//	generated, coldest      32.0  32.0   23.0  23.1       1,719    131   122
//	ogbn-arxiv              32.0  20.2   14.6  14.5         206    173   167
//
// zstd takes a tenth off the differences of hot lists, and finds nothing in cold ones. Differences take 20.9 bits on
// average there, and 26.1 with gaps as wide as those of 111 M nodes: 18 % less of a file whose passes are a third of the
// time that the device works, so some 6 % of that. For it offsets would have to say bytes as well as neighbours, twice the
// memory that they take; lists could not be lent from a map; and no neighbour could be drawn without unpacking all that
// come before it.
//
// Why not hold the lists with the most visits a byte, wherever they are: a prefix needs no map, and under a window of many
// batches the passes of a last hop read most of the file through anyway, so that each byte held saves a byte read if they
// lie together, and nothing if they lie apart.
//
// Why not 64 nodes to a block of offsets: that is 7 % smaller, and a degree would be two cache misses and not one.
package topology
