// Package mag240m reads MAG240M, the node classification graph of OGB's large-scale challenge, in
// the folder that its Python package leaves behind. Start at [Options.Open].
//
//	mag240m_kddcup2021/
//	  meta.pt, split_dict.pt                              numbers of nodes and classes; nodes of the splits
//	  processed/paper/node_feat.npy                       (papers, 768) float16; a graph without features where it is missing
//	  processed/paper/node_label.npy                      (papers,), NaN where it is missing or hidden
//	  processed/author___writes___paper/edge_index.npy    (2, edges), and two more relations
//
// There are three types of nodes; authors and institutions have no features of their own. Users
// make some, as means over papers, and keep the matrix of all 244 million nodes (375 GB) in a file
// without a header: Options.FullFeatures names it, and Options.RowOrder is the order of the types
// in it.
//
// Options.YearColumns puts the years of papers behind their features.
//
// The test nodes of the challenge come as three splits of the same training and validation nodes:
// whole, which has all of them, dev and challenge. Where the download is older and has one list,
// dev takes three of each five nodes of it and challenge the other two, by position, as upstream
// does. Labels of test nodes are hidden.
//
// Arrays are read in any type and either order. Memory is a few chunks; split_dict.pt is held while
// a part of it is read.
package mag240m
