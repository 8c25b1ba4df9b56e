// Package hgb reads the node-classification graphs of the Heterogeneous Graph Benchmark (Lv et al.,
// Are We Really Making Much Progress?, KDD 2021): a folder, or the zip it travels in, which is read
// as it is. Start at [Open].
//
//	node.dat        id, name, type, features separated by commas or nothing     cells are separated by tabs
//	link.dat        source, destination, type, weight
//	label.dat       id, name, node type, classes separated by commas           the training nodes
//	label.dat.test  the same                                                   half of the test nodes
//	info.dat        JSON: what types and classes are called
//
// Ids run from 0 over all types, in the order of node.dat; here nodes are numbered within their
// type. Types are called as info.dat calls them, and type0, type1, … where it does not. Relations
// are called by their meaning there without its ends: paper-cite-paper is paper__cite__paper,
// paper-author is paper__to__author. Weights that are not all one become the column "weight" of
// their relation.
//
// The training part of the split is label.dat less a fifth of its nodes, which validate: the
// benchmark's own loader draws them at random whenever it starts, here [Options].Seed does. The
// test part is label.dat.test. label.dat.test_full lists all test nodes and its labels are shuffled
// on purpose, so it is never read.
//
// # Memory
//
// Sections are streamed, node.dat once for each. Kept are 24 bytes a run of nodes of one type,
// which is one a type in all graphs of the benchmark, and 16 bytes a label.
package hgb
