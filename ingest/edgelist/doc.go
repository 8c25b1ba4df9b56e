// Package edgelist reads graphs that are tables: a list of edges, plain or packed by gzip or zstd,
// perhaps with a table of nodes and a map from nodes to features beside it. SNAP's graphs, MUSAE's
// and most that people export themselves travel so. Start at [Open]; [Options] say what is where.
//
// An edge list has a row an edge and two columns of ids: those that [Options].Ends name, or that
// the header calls src and dst, source and target, from and to and the like (see [Ends]), or the
// first two of a list without header or of two columns; other columns are passed over, but for
// those that [Options].Weight, EdgeColumns and EdgeFeatures keep. Cells are parted by tabs, commas,
// semicolons, double colons, bars or blanks, which the first row tells, as it tells their number. A
// cell in quotes may hold the delimiter and ends of lines. A row has up to 65,536 cells. Lines that
// start with # or % are comments before the first row, and after it where ids are integers. A
// folder is read as one list, its files in natural order (part_2 before part_10).
//
// Both columns number the same nodes. A list of edges between two kinds of nodes, users and items,
// whose ids are numbered apart, is refused where names say so or the ids look so (kinds.go); the
// table format describes such a graph.
//
// A node's id is an integer from 0 to 2⁶³-1, or text of 1 to 4096 bytes, kept as it is; blanks
// around a cell without quotes are not part of it. The first rows tell: most of the ids in them are
// no integers, or some begin with zeros that would be lost. Where they tell integers, 007 is
// refused further down, and 12.0 is 12. 1.24E+11, whose last digits a spreadsheet left out, is
// refused unless Options say that ids are text. A table of words alone does not tell whether it has
// a header, and is refused until Options do.
//
// Without a table of nodes, the nodes are the ids that edges name, and the builder finds them. With
// it they are its rows. Where their number is known ([Options].Count, or a comment "# Nodes: 82168"
// before a single list in which no id is that large) they are 0, 1, … up to it, isolated ones
// included.
//
// A table of nodes has a row a node: a column of ids, perhaps one of labels, columns of a split,
// and features in the other columns of numbers. Labels and splits are taken by the usual names of
// columns (see ingest.LabelNames and ingest.PartNames) if their values are such: classes, the words
// of a split, or masks of zeros and ones that no node has twice. A name whose values do not fit is
// asked about, and so is a single column of small integers without a header (see ingest.Ask).
// Labels that are integers counting from 0 are classes by number. Other integers and text are
// classes of that name, in their order. Where Options say so, labels are numbers instead, and
// negative ones are as good as others. Empty cells, nan and negative integers are missing, and so
// are [Options].MissingWords; a class that is called unknown or the like is asked about. With
// [Options].MultiLabel a node has any number of classes: see ingest.LabelLists.
//
// A map of features ([Options].Features) is JSON, from a node's id to the list of the columns where
// its row is one, as SNAP's copies of the MUSAE graphs have it.
//
// Features may be an array of numbers instead, a row a node, in a file that package arrays reads.
// Its rows are for the ids from 0 on, or in the order of the table of nodes: see
// [Options].FeatureRows.
//
// With [Options].Events the rows are events, which the builder sorts by their times into a stream.
// Times are numbers of 64 bits, in the column that is called so. A time is refused if float64 would
// lose some of its digits. Dates, and plain numbers with [Options].TimeUnit, become seconds since
// 1970: see lines.Clock. Labels of events are classes, as labels of nodes are. Sources and
// destinations may number two kinds of nodes then. A list may be a Parquet file, which is read as
// the table that it would be as text: its first row is line 2.
//
// # Memory
//
// Rows are streamed: a chunk, and the different labels of a table. Only a map of features must know
// the nodes, and takes 4 bytes an entry and 16 a node (28 where ids have gaps) while it is read;
// without a table or a count of them, the edges are read once beforehand, with a bit an id below
// 2³⁰ up to the largest, and of ids beyond some 40 bytes for each distinct one, and 8 MiB. Two bits
// an id below 2²⁶ tell two kinds of nodes, and where these look likely, up to 32 MiB of counts.
// An array whose rows must be put in the order of the table takes 4 bytes a row and a window of 64
// MiB, or of an eighth of Options.Memory if that is more. It is read once for each window.
package edgelist
