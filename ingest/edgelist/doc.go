// Package edgelist reads graphs that are tables: a list of edges, plain or packed by gzip or zstd, perhaps with a table
// of nodes and a map from nodes to features beside it. SNAP's graphs, MUSAE's and most that people export themselves
// travel so. Start at [Open]; [Options] say what is where.
//
// An edge list has a row an edge and two columns of ids, by default the first two, or those that the header calls src and
// dst, source and target, or from and to; other columns are passed over. Cells are parted by tabs, commas, semicolons or
// blanks, which the first row tells. Lines that start with # or % are comments. A folder is read as one list, its files in
// natural order (part_2 before part_10).
//
// A node's id is any integer from 0 to 2⁶³-1. Without a table of nodes, the nodes are the ids that the edges name, in
// ascending order; with it they are its rows. Ids with gaps are kept as the users' names for the nodes.
//
// A table of nodes has a row a node: a column of ids, perhaps one of labels, and features in the other columns of
// numbers. Labels that are integers counting from 0 are classes by number. Other integers and text are classes of that name, in
// their order. Empty cells, nan and negative integers are missing. A cell in quotes may hold the delimiter, but not the end of a line.
//
// A map of features ([Options].Features) is JSON, from a node's id to the list of the columns where its row is one, as
// SNAP's copies of the MUSAE graphs have it.
//
// # Memory
//
// Rows are streamed. Without a table of nodes, the edges are read once beforehand to know the nodes: a bit an id below
// 2³⁰ up to the largest; of ids beyond, some 40 bytes for each distinct one, and 8 MiB. Ids with gaps then take 8 bytes a
// node, labels in a table their distinct names, and a map of features 4 bytes an entry and 16 a node (28 where ids have
// gaps) while it is read.
package edgelist
