// Package triples reads knowledge graphs: lines of head, relation and tail, as WN18RR, FB15k and
// their kin travel (.txt, .tsv, three columns between tabs or blanks), and RDF as N-Triples (.nt),
// N-Quads (.nq) and Turtle (.ttl); gzip and zstd too. Start at [Options.Open].
//
// All nodes are of one type, entity, known by their texts, and each relation is one of the dataset.
// Where a folder has files called train, valid and test, the latter two are held out: see
// [ingest.Relation]. Otherwise the files of RDF in a folder are one graph: its .nt files, or else
// its .nq files, or else its .ttl files, since a folder may have one graph in several forms.
//
// Text may have its columns in another order, or more of them: see Options.Columns. Triples of ids
// take the names from the dictionaries of OpenKE, DGL-KE, LibKGE and PyKEEN beside them.
//
// Relations are called by the last part of their IRI, or by their text made a safe name; relations
// that come to the same name are told apart by a number. Entities keep their texts: an IRI without
// its angle brackets, a blank node, a literal as it is written, with quotes, language and type; a
// text beyond 4096 bytes keeps its beginning and gets a hash.
//
// A folder of RDF may have tables of labels beside, trainingSet.tsv and testSet.tsv, as the
// benchmarks of R-GCN do (Ristoski et al., ISWC 2016): a header, a column of nodes, and one whose
// name begins with label. A column called id is a number of its own and no node.
// completeDataset.tsv repeats the two, and is not read. There is no validation part.
//
// Memory: the names of the relations. With tables of labels also the texts of all entities, since
// labels need rows. The triples of a small graph stay in memory, within Options.Memory. The
// files of a larger one are read once for each group of relations whose triples fit there.
//
// N-Quads lose the names of graphs. Turtle becomes the triples that N-Triples would have: a list is
// a chain of rdf:first and rdf:rest, and a node without a label gets the name _:. with a number,
// which no label has.
//
// # Why not
//
// Why not a library for Turtle? In November 2026 knakk/rdf (of 2019) takes a node without a label
// for the node with the label _:b1. geoknoesis/rdf-go (0.1.0) refuses escapes and brackets that the
// tests of the W3C have, and does not end on one of these tests. deiu/rdf2go holds all triples, and
// cayleygraph/quad has no Turtle.
//
// Why not keep all triples by relation, and read the files once? A large graph would not fit in
// memory, or would lie on disk a second time.
package triples
