// Package npz reads the graphs that travel as one NumPy archive: Amazon Computers and Photo,
// Coauthor CS and Physics, DBLP, CiteSeer and their like, after Shchur et al. (arXiv 1811.05868).
// Start at [Open].
//
// The adjacency is a scipy CSR matrix under the keys adj_data, adj_indices, adj_indptr and
// adj_shape: entry (i, j) is the edge i→j. The features are a CSR matrix under attr_…, or dense
// under attr_matrix; labels is one class a node, a number or text, negative or NaN where it is
// missing; class_names is optional. Keys written adj_matrix.indptr, or with a dot for the
// underscore, are read as well. All other keys, and text that only Python can decode, are named in
// Schema.Skipped; labels that only Python can decode are an error.
//
// An explicit zero in adj_data is an entry that somebody removed: it is no edge. The zeros are
// counted by [Source.Schema], which reads adj_data through once for it, so that the number of edges
// it declares is the number that Edges streams. Other weights are dropped, and Schema.Skipped says
// so.
//
// A matrix that has an archive to itself, as scipy.sparse.save_npz writes it, is a [Matrix]: other
// layouts keep their adjacency so. An [Archive] is any npz file, array by array, for layouts that
// are made of several.
//
// Memory does not grow with the graph: the arrays of a matrix are inflated side by side, a chunk at
// a time. A dense attr_matrix in column-major order is read once for every 64 MiB of it.
//
// # Why not hold the row bounds
//
// adj_indptr is 8 bytes a node, and with it rows could be addressed at random. Nothing here needs
// that: a deflated member has no random access anyway.
package npz
