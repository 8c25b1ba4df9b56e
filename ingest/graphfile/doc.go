// Package graphfile reads graphs that are one file: matrices in the Matrix Market format, GraphML,
// and the node-link JSON of NetworkX and D3. Start at [OpenMatrix], [OpenGraphML] and
// [OpenNodeLink]. Each makes the text of an edge list, and of a table of nodes, from the file while
// it is read; package edgelist reads these tables, and has the types of ids, labels, features and
// weights in common with tables in files. Files may be packed by gzip or zstd.
//
// A matrix has coordinates; row i and column i are node i, counted from 1 as in the file. An entry
// is an edge from its row to its column, and its value the edge's weight. A symmetric matrix has
// each edge once, and makes an undirected graph. A skew-symmetric one gets the other half of its
// entries, with the other sign. Files without the banner, as networkrepository.com has some, are
// read by their size line and taken as general. A matrix may be the one of a .tar.gz or .zip, as
// collections pack it.
//
// In GraphML, <key> elements declare attributes, with their defaults. In JSON, the keys of the
// objects in "nodes" and in "links" or "edges" are attributes, and a list of numbers is one for
// each number. Attributes become columns: numbers are features, and true is 1.
//
// # Memory
//
// Files are streamed: a buffer, and the names of attributes. A value takes at most 16 MiB, and
// elements nest 100 deep at most, so a file cannot ask for more. JSON is read once beforehand, for
// the names of attributes, which may be anywhere.
//
// # Why not encoding/json
//
// A Decoder takes an allocation for each token, and refuses NaN, which Python writes.
package graphfile
