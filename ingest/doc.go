// Package ingest turns raw graphs into sealed datasets.
//
// Three types to know. A [Source] is a raw graph where its owner left it; each family of formats has a package of its own
// below this one. [Options] say what to make of it. [Build] reads the one by the other, writes a dataset, and returns a
// [Report] of what it met. Start reading at Build: its phases are the table of contents.
//
// Build borrows the Source, which its caller closes. It refuses an output that exists before it reads anything, and
// whatever goes wrong later, a cancelled context included, leaves nothing behind. Ids and values that cannot be true end
// in one line with file, row, reason and remedy.
//
// # Memory
//
// Topology is sorted in memory. N nodes, E edges read, M edges stored (E, or up to 2E when undirected):
//
//	reading        8 E  the edge list, freed block by block while
//	sorting        4 E  the compressed rows fill, with 8 N of offsets
//	undirected     4 E + 4 M + 16 N  the rows as read beside the rows with reverses
//	until the end  4 M + 8 N of topology, 8 N of order (none when original), 12 N of external ids where there are any
//	order          8 N of counts, 20 N in the last phase, which writes the id map
//	features       a chunk at a time; fastrp:D takes 12 D N, and 4 M + 8 N more when some relation is directed
//	labels         9 N, or N and N × classes when multi
//
// A relation is read while the finished topology of the ones before it is held; only its own edge list is extra.
//
// # Direction
//
// An edge u→v makes u an in-neighbour of v. A directed relation is stored as it is given, duplicates and self loops
// included, and both are counted. An undirected one has v→u whenever it has u→v, every edge once and one self loop a node
// at most: edges = edges_read - duplicates_merged + reverse_added holds for it.
//
// # Why not
//
// Why not read the edges twice, once to count and once to place, and save the edge list? Inflating and parsing text costs
// more than everything that follows. Why not let a split follow the stored order? It would change with --order, and runs
// on differently ordered copies of one graph would not compare.
package ingest
