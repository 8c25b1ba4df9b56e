// Package topology keeps the neighbour lists of a graph that does not fit in memory. The length of
// every list is in memory, and so are the lists of the first nodes, as far as the budget reaches.
// The others are on disk, and are read many at a time.
//
// A [Tier] does three things. [Tier.Degree] needs no disk: offsets are packed to 2.3 bytes a node.
// [Tier.Neighbors] lends the list of a node below [Tier.Resident]: a prefix, since ingest numbers
// nodes by how often training reads them. [Tier.Read] takes all cold lists that a group of batches
// wants at one hop, and reads them in one pass in file order, by package disk. Weights of edges, if
// any, are resident for the same nodes as lists ([Tier.Weights]), and cold for the others
// ([Tier.ReadWeights]). So are values of edges, in any number of columns ([Tier.TakeValues],
// [Tier.ReadValues]).
//
// [Tier.Resize] changes the budget later, for callers that learn only from a first batch how much
// memory lists may take.
//
// Memory: offsets and lists lie outside the Go heap (kernels.HostBuf) and are freed in Close. What
// Neighbors lends is valid until then, or until Resize; what Read lends, until the callback
// returns.
//
// Concurrency: several goroutines may draw at once, by Degree, Neighbors, Read and the like. Nobody
// may draw during Open, Resize or Close.
//
// Start reading at [Tier.Read], then [Open].
//
// # Why not
//
// Why not packed lists, as differences or under zstd: BenchmarkEncoding, one core of an Intel Xeon
// at 2.6 GHz, on a graph generated in papers100M's shape at a twentieth of its size (5.6 M nodes,
// 80.8 M edges, ordered by access) and on ogbn-arxiv, both directions:
//
//	                            bits an edge                   M edges/s unpacked
//	                       plain  zstd  delta  both        zstd  delta  both
//	generated, hottest      32.0  22.1   13.2  11.8         197    219   167
//	generated, coldest      32.0  32.0   23.0  23.1       1,719    131   122
//	ogbn-arxiv              32.0  20.2   14.6  14.5         206    173   167
//
// zstd saves a tenth on the differences of hot lists, and nothing on cold ones. Differences take
// 20.9 bits on average on the generated graph, and 26.1 with gaps as wide as in a graph of 111 M
// nodes. That is 18 % less of a file whose passes take a third of the device's time, so it saves
// some 6 % of that time. For it offsets would have to count bytes as well as neighbours, in twice
// the memory; lists could not be lent from a map; and no neighbour could be drawn without unpacking
// all before it.
//
// Why not hold the lists with the most visits a byte, wherever they are: a prefix needs no map from
// nodes to lists. And for a window of many batches, a pass of the last hop reads through most of
// the file. Resident lists that lie together save their bytes; scattered ones save nothing.
//
// Why not 64 nodes to a block of offsets: that is 7 % smaller, but a degree would take two cache
// misses instead of one.
package topology
