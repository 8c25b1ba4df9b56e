// Package graphbolt reads datasets as DGL's GraphBolt has them on disk: a folder whose
// metadata.yaml lists the other files. Start at [Open].
//
//	graph.nodes         how many there are of each type
//	graph.edges         csv without header, or an array (2, E); ids are local to their type
//	graph.feature_data  values of nodes and edges for samplers: values of nodes become tables; columns of edges are
//	                    kept beside the neighbours, and what has several values an edge becomes a table
//	feature_data        features of nodes and edges; features of the whole graph are passed over
//	tasks               node classification: seeds and labels of three sets
//
// A task becomes a label and a split of its name ("given" where it has none). Nodes outside the
// task's sets have no label. The first label of a node type is called "label", further ones like
// their task.
//
// A task of link prediction holds edges out: the pairs of its validation and test sets (seeds, or
// node_pairs of older versions). Where there are labels, pairs with 1 are the edges, and come
// first. Pairs with 0 are no edges: with indexes they are ranked beside their edge, whose source
// they have, as many for each; without, beside all. Pairs of the training set are the graph's, and
// not read.
//
// The declared number of nodes may be larger than the largest id: such nodes are isolated. Where it
// is smaller, the builder names the row that says otherwise, which upstream does not look for.
//
// A dataset that GraphBolt has preprocessed is read from the original files where these are still
// there. Else it is read from preprocessed/: the topology out of the FusedCSCSamplingGraph in
// fused_csc_sampling_graph.pt, without features of edges, whose rows follow an order of edges that
// is gone.
//
// # Memory
//
// Arrays and csv files are streamed. Labels are given for each seed, in any order, and wanted for
// each node: they are gathered for as many nodes as fit in 64 MiB, and the seeds are read once for
// each 16 M nodes (fewer where a node has several classes). What lies in its file in column-major
// order, edges or features, is turned round in 17 MiB an array.
package graphbolt
