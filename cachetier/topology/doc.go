// Package topology keeps the neighbour lists of a graph that does not fit in memory. The length of
// every list is in memory, and so are the lists of the first nodes, as far as the budget reaches.
// The others are on disk, and are read many at a time.
//
// A [Tier] does three things. [Tier.Degree] needs no disk: offsets are packed to 2.3 bytes a node.
// [Tier.Neighbors] lends the list of a node below [Tier.Resident]: a prefix, since ingest numbers
// nodes by how often training reads them. [Tier.Read] takes all cold lists that a group of batches
// wants at one hop, and reads them in one pass in the order of the file, by package disk. The
// weights of edges, if there are any, are resident where lists are ([Tier.Weights]), and else cold
// ([Tier.ReadWeights]); so are values of edges in any number of columns ([Tier.TakeValues],
// [Tier.ReadValues]).
//
// [Tier.Resize] changes the budget later, for who learns only from a first batch how much lists may
// take.
//
// Memory: offsets and lists lie outside the Go heap (kernels.HostBuf) and are given up in Close.
// What Neighbors lends dies then, or in Resize; what Read lends, when the callback returns.
//
// Concurrency: drawing, which is Degree, Neighbors, Read and their like, may go on in several
// goroutines at once. Open, Resize and Close want no drawing beside them.
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
// zstd takes a tenth off the differences of hot lists, and finds nothing in cold ones. Differences
// take 20.9 bits on average there, and 26.1 with gaps as wide as those of 111 M nodes: 18 % less of
// a file whose passes are a third of the time that the device works, so some 6 % of that. For it
// offsets would have to say bytes as well as neighbours, twice the memory that they take; lists
// could not be lent from a map; and no neighbour could be drawn without unpacking all that come
// before it.
//
// Why not hold the lists with the most visits a byte, wherever they are: a prefix needs no map from
// nodes to lists. And for a window of many batches a pass of the last hop reads most of the file
// through: lists held together save their bytes, and lists held here and there save nothing.
//
// Why not 64 nodes to a block of offsets: that is 7 % smaller, and a degree would be two cache
// misses and not one.
package topology
