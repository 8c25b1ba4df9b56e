// Package export writes a dataset, or a sample of it, back to files that others read: the way out
// of a dataset, and the way to measure something else on the same data. Start at [Export].
//
//	npy        a folder: TYPE/*.npy, SRC__RELATION__DST/*.npy, split/*.npy, manifest.json
//	graphbolt  a folder that DGL's GraphBolt reads as it is: metadata.yaml, and the same arrays
//	parquet    a folder: nodes-TYPE.parquet, edges-SRC__RELATION__DST.parquet, events-STREAM.parquet, manifest.json
//
// Nodes are numbered by their original ids where these are 0…n-1. Where they have gaps, as in every
// sample, rows are in the order of ascending original ids, and ids.npy has these. Nodes that are
// called by texts are in the order of their source, and names.csv has a line for each, row and
// text, in the order of the dataset. In parquet edges name their ends by original id; nodes that
// are called by texts have these in a column of their own.
//
// Edges are grouped by destination, as the dataset has them: what was added or merged when it was
// made stays so. Columns of edges come along; rows of edge tables are written for each edge, so
// that an undirected edge has its row twice. A reverse of a relation (store's reverse_of) is
// written like any other, and manifest.json says whose it is; rows of edge tables stay with the
// relation that has the table. Missing labels are -1. Where classes have names, the source's labels
// among them, manifest.json or metadata.yaml lists them.
//
// encodings.json, in every format, is the dataset's own: the names of columns, their categories,
// what stands for missing numbers, and how edges were stored. It is there where the dataset has it,
// and ingest does not read it.
//
// Held-out edges are in folders of their relation's, valid and test: edges.npy (E, 2),
// src-negatives.npy and dst-negatives.npy, a row for each edge, pool.npy (P, 2), and columns;
// manifest.json lists them. For GraphBolt they are a task, link_prediction, whose pairs are edges
// first and then the pairs that these are ranked among; the training edges are its training set. A
// sample has the held-out edges between its nodes, without the pairs that they are ranked among. In
// parquet they are not written.
//
// A stream of events is a table in the order of time: ends by the ids that users know, texts where
// these are texts, time, label, the part of the split, and a column for each column of features.
// manifest.json has the options with which gnnstore ingest events makes the same stream of it.
// Negatives, and labels that nodes have at times of their own, are not written.
//
// [WriteRows] writes what was computed of nodes, as predictions, to one file under the ids that
// users know, and [WritePairs] what was computed of pairs of them, as scores of links and
// predictions of edges.
//
// What will be read is verified before anything is written. Only of a sample's feature rows, a few
// of a large table perhaps, the pages are compared with their checksums as they are read, and the
// numbers are not looked at.
//
// # Sampling
//
// A sample of N nodes is burnt by forest fires (Leskovec and Faloutsos, Sampling from Large Graphs,
// KDD 2006, section 3.3: of the samplers compared there it keeps degrees, components and clustering
// best, with p = 0.7), and has all edges between its nodes. A fire starts at a training node of the
// first split, so that samples of graphs where few nodes are labelled have something to learn, and
// where these are burnt, at any node; it spreads to in-neighbours, as training does.
//
// # Memory
//
// 4 bytes for each node of the dataset, 8 more for each of a sample while it burns, and some 20
// MiB. Feature rows are gathered 16 MiB at a time in the order of their file. The output is written
// under OUT.partial and takes its name when it is whole.
package export
