// Package arrays reads graphs that are arrays in files of the user's own making: a .npy of edges,
// an .npz archive, PyTorch's .pt, or a folder of .npy files. Start at [Open]; [Options] name what
// the usual names do not find.
//
// Arrays are found by name: edge_index, edges, row and col, src and dst, or indptr and indices; x,
// node_features, features; y, labels; train_mask, train_idx and so on; num_nodes; edge_weight,
// edge_attr; adj_t, adj. A .pt may hold a tensor, a dict of them, or a Data or HeteroData of
// PyTorch Geometric, alone or in the file of a dataset. Arrays that nothing uses are named in
// Schema.Skipped. If an array has the right name but a type that cannot be read, that is an error.
// It names the type, and a line of Python that converts the array. Features and weights are left
// out instead, and the Schema has the reason.
//
//	edges     (2, E), sources above destinations, or (E, 2), in either order of bytes and of memory;
//	          (2, 2) may be both, and Options.Layout decides, but edge_index in a .pt is (2, E)
//	CSR       row i with column j is the edge i→j, unless Options.RowsAre says dst or the name has
//	          csc in it; data are the edges' weights, zeros included
//	adjacency a sparse matrix of PyTorch, torch_sparse or SciPy (CSR, CSC, COO), or a square array
//	          called adj or A, or named by Options.Edges: as in CSR, but adj_t has j→i; values
//	          that are all 1 are no weights
//	ids       integers of any type, or floats that are whole and small enough to be exact; nodes are
//	          rows, from 0
//	features  (N, F) or (N,), numbers of any type, in C or Fortran order; or a sparse matrix
//	objects   lists, and NumPy's arrays of Python objects, hold numbers, texts or rows of numbers
//	labels    a class each, (N,) or (N, 1), where a negative number or NaN is none; texts, which
//	          become class names; or (N, C) zeros and ones: several classes a node, but one class if
//	          every row has exactly one 1 and Options.MultiLabel is not set
//	splits    masks of (N,), or (K, N) or (N, K) for K splits (Options.MaskSplit selects one);
//	          or lists of ids; or an array (N,) of the words train, valid and test, or of 0, 1 and 2
//	          where Options.Split names it
//	weights   (E,) or (E, 1), a column beside the edges; (E, D), a table of edges
//
// The number of nodes is the declared one, else the number of rows of features, labels or masks,
// else one more than the largest id, for which the edges are read once more. A contradiction is an
// error of one line.
//
// Memory: the values of Python objects take up to a quarter of the ingest's memory, and so does
// their pickle. An array that is stored in the order of reading takes two chunks, 1.5 MiB. An array
// in another order takes 18 MiB, and two of them are read at a time. If such an array is compressed
// as well, it takes 64 MiB; a larger one is refused, but features are read once for every 64 MiB.
// Sparse features whose rows do not ascend are read once for every 64 MiB of dense rows.
//
// # Why not guess more
//
// A (1000, 128) matrix with 128 nodes is refused, not transposed, and a file without a header is
// not tried as float32: a wrong guess trains, and is found weeks later.
package arrays
