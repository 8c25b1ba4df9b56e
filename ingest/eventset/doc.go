// Package eventset reads streams of events as temporal frameworks keep them: a table of events, and
// matrices of features beside it. Start at [OpenTGL], [OpenTGN] or [OpenTGB].
//
// TGL's folder has edges.csv, and edge_features and node_features as .pt or .npy, of any type of
// numbers, booleans too. The first column of edges.csv has no name and counts the events; ext_roll
// is the part of the split that an event is in. Nodes count from 0, and where there are features of
// nodes there are as many as rows. T-CSRs are not read: the builder makes its own lists.
//
// TGN's preprocessing leaves ml_NAME.csv (,u,i,ts,label,idx) and ml_NAME.npy, whose row 0 is of
// zeros and belongs to no event, since idx counts from 1. idx is the number of an event's row of
// features, in any order. u and i count from 1, too, in one space.
//
// TGB's data sets of link prediction have NAME_edgelist.csv, and two pickles of negatives,
// NAME_val_ns.pkl and NAME_test_ns.pkl, a dict from (source, destination, time) to an array of
// destinations each; all three end in _v2 or so where there are several versions. The negatives
// number nodes as TGB does when it reads the table. They may be larger than memory: their items are
// streamed. Where nodes are texts, their numbers are held: some 100 bytes a node, up to a quarter
// of the ingest's memory.
//
// A table NAME_nodetype.csv beside it (node_id,type) has the types of nodes. Each type is a column
// of features of nodes, 1 at nodes of that type; 4 bytes a node are held.
//
// Tables are read by package edgelist, whose comment has the memory for that. A matrix takes a
// chunk, or 64 MiB if it is stored by columns. If idx is not in the order of the rows, 4 bytes a
// row are held, and rows take up to a quarter of the ingest's memory.
package eventset
