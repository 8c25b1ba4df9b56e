// Package ogb reads the graphs of the Open Graph Benchmark (ogbn-*, ogbl-*): a folder with raw/ and
// split/, as a download unpacks, under the name of the download or the dataset. Start at
// [Options.Open]; [Lookup] has what the folder does not say.
//
//	raw/edge.csv.gz                    one type of node in tables: num-node-list, num-edge-list, node-feat, node-label,
//	                                   edge-feat, edge_weight, edge_year, … beside it
//	raw/data.npz                       the same in arrays: edge_index, num_nodes_list, num_edges_list, node_*, edge_*;
//	                                   labels in raw/node-label.npz
//	raw/triplet-type-list.csv.gz       several types in tables, in relations/HEAD___RELATION___TAIL/, node-feat/TYPE/, …
//	raw/edge_index_dict.npz            several types in arrays, a file for each attribute, keyed by type or triplet
//	split/SCHEME/{train,valid,test}.csv.gz, split/SCHEME/TYPE/…, or split/SCHEME/split_dict.pt, which goes first
//
// Where upstream adds the reverse of each edge when it loads a graph (Info.AddReverse), so does
// this Source unless [Options] say otherwise: edge i of the file becomes edges 2i and, the other
// way round, 2i+1, and its features and columns stand twice. The graph of a dataset of link
// prediction has the edges of training alone, and the files of its split hold the others:
//
//	split/SCHEME/{valid,test}.pt       dicts of edge and edge_neg, pairs that are no edges; or source_node, target_node and
//	                                   target_node_neg, nodes in the place of each; or head, relation, tail, head_neg and tail_neg,
//	                                   and where types are several the lists head_type and tail_type (ogbl-biokg)
//	split/SCHEME/split_dict.pt         both in one
//
// They are held out as they are, with their negatives; train.pt is not read. Each of several
// relations has its own: the pairs of its types, with the number that its edge_reltype has. Several
// columns of labels are a multi-label task, zeros and ones. Of other columns only columns of edges
// are kept, if there is one number an edge. All that is passed over is named in Schema.Skipped.
//
// Options.YearColumns makes columns of node_year, behind the features: see [Years].
//
// A table that was unpacked, edge.csv for edge.csv.gz, is read where the packed one is not there. A
// download that is still a zip archive is read in place as long as it holds tables.
//
// # Memory
//
// A chunk of each file that is read, and a MiB ahead of each deflated array. An edge_index of two
// rows lies in a deflated member as all sources and then all destinations. So two readers inflate
// the member in step, and the second passes over the sources first: half as much inflating again
// buys not holding 8 bytes an edge. A stored member is read at two places. A matrix in column-major
// order is read once for every 64 MiB of it. A split_dict.pt is held while a part of it is read,
// 256 MiB of pickle at most; the parts of a split of several relations are, where both fit that,
// until the last of them is read, and 4 bytes for each of their edges.
package ogb
