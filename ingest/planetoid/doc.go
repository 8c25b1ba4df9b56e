// Package planetoid reads the citation graphs Cora, CiteSeer, PubMed and their like as Yang et al.
// published them (arXiv 1603.08861, github.com/kimiyoung/planetoid): seven Python pickles and a
// list, ind.NAME.{x,y,tx,ty,allx,ally,graph} and ind.NAME.test.index. Start at [Open].
//
//	allx, ally    features (SciPy CSR) and one-hot labels of the nodes 0…n-1
//	x, y          the first of these rows again: the training nodes
//	tx, ty        of the test nodes, in the order of test.index
//	test.index    the ids of the test nodes, a line each, in no order
//	graph         a dict from each node to the list of its neighbours
//
// The list of a node gives an edge from the node to each neighbour. Both directions are there,
// pairs repeat, and CiteSeer has self loops; the builder counts all that and, asked for an
// undirected graph, merges it.
//
// test.index may skip ids (CiteSeer's skips 15). Those nodes are in the graph, and get a row of
// zeros and no label. A row of zeros among the labels is a node without a label as well.
//
// The split is the public one: train on the nodes of y, validate on the 500 that follow, test on
// test.index.
//
// Pickles are decoded as a whole, one at a time: memory is some 60 bytes a number of the largest,
// and 12 bytes a node. The published ones have a few MB.
package planetoid
