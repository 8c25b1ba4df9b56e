// Package graphsaint reads the graphs in the layout of GraphSAINT (Zeng et al., arXiv 1907.04931):
// Flickr, Yelp, Amazon, Reddit and PPI travel so. Start at [Open].
//
//	adj_full.npz     the adjacency as scipy.sparse.save_npz writes it: entry (i, j) is the edge i→j
//	feats.npy        a row of features a node, of any float type; optional
//	class_map.json   node → class, or node → list of zeros and ones, in any order; optional
//	role.json        the lists tr, va and te of nodes; optional
//	adj_train.npz    the edges among training nodes; not read
//
// GraphSAINT trains inductively, on adj_train, and evaluates on adj_full. Here training samples
// from adj_full, as it does for every other source: a training node may see nodes of the other
// parts, without their labels. GraphSAINT's own loader also standardises the features by the
// training nodes' mean and deviation; here they are stored as the file has them.
//
// Memory: the labels, 4 bytes a node, or one a node and class. The rest is streamed.
package graphsaint
