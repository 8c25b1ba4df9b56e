// Package eventset reads streams of events as temporal frameworks keep them: a table of events, and matrices of features beside it.
// Start at [OpenTGL] or [OpenTGN].
//
// TGL's folder has edges.csv, whose first column has no name and counts the events, whose ext_roll says which part of the split an event is
// in, and edge_features and node_features as .pt or .npy, of any type of numbers, booleans too. Nodes count from 0, and where there are
// features of nodes there are as many as rows. T-CSRs are not read: the builder makes its own lists.
//
// TGN's preprocessing leaves ml_NAME.csv (,u,i,ts,label,idx) and ml_NAME.npy, whose row 0 is of zeros and belongs to no event, since idx counts
// from 1. So do u and i, in one space.
//
// Tables are read by package edgelist, which has the memory they take; of matrices a chunk, and of one that is stored by columns 64 MiB.
package eventset
