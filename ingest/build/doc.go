// Package build turns raw graphs of any size into sealed datasets, in bounded memory.
//
// [Build] reads an [ingest.Source] and writes a dataset as [Options] say. It returns a [Report].
// [PlanBuild] predicts the passes, memory, disk and time of a Build. Start reading at Build and at
// phases (pass.go), the table of contents.
//
// Build borrows the Source, which its caller closes. It refuses an output that exists before it
// reads anything, and whatever goes wrong later leaves nothing behind. Ids and values that cannot
// be true end in one line with file, row, reason and remedy.
//
// # Passes
//
// Every pass reads what the one before wrote, in the source's order or part by part: ids of nodes
// are sorted, edges read, their ends resolved, equal ones merged, reverses made, nodes ordered,
// edges renumbered, lists sorted into the dataset, rows of features and labels placed by stored id,
// means taken of rows that are placed. What does not fit in memory lies in files beside the
// unfinished dataset, or in Options.Tmp, written and read around the page cache; see
// internal/extsort. The journal (journal.go) lists the passes that are done. A Build that was
// killed, or interrupted by its context, goes on after the last of them when it is called again
// with the same source and options; memory and Tmp may differ. Whatever the memory, the dataset is
// the same, bit for bit.
//
// # Memory
//
// A Build stays within Options.Memory: its buffers, and these arrays, for N nodes of all types, n
// of the largest:
//
//	4 N    counts of edges by node, which become stored ids (none when nodes keep their order)
//	12 N   more while OrderAccess counts visits
//	8 N    more for degree features, until they are written
//	n      a split, each
//	4 n    rows by stored id, while a split is drawn, or features are written that are made or
//	       can be read in any order
//
// Means take three quarters of what is left, for rows and sums: where all rows fit, they are read
// once; else the more memory there is, the fewer passes over the rows. See mean.go.
//
// fastrp:D works on the whole graph in memory: 12 D N, 4 an edge and direction, 20 N; where Memory
// is less it is refused. A budget that is too small is refused with the least that works.
//
// # Direction
//
// An edge u→v makes u an in-neighbour of v. A directed relation is stored as it is given,
// duplicates and self loops included, unless Options say otherwise, and both are counted. An
// undirected one has v→u whenever it has u→v, and every edge once. Equal edges that are merged must
// have equal columns, unless Options.Duplicates is a rule for them. The merged edge has the number
// of the first given one; by a rule, of the first in either direction.
//
// Options.Reverse is for graphs of many types, where nothing would flow back: each relation R gets
// another, rev_R, of its edges the other way round, as often as they are there. Between node types
// that is the only reverse there can be. Within one, Undirected comes first: what it makes
// symmetric needs no other. What the source has already is found and not made again.
//
// # Edge splits
//
// For link prediction Options.EdgeSplit holds edges out: they are read, and then they are in no
// neighbour list, in neither direction, and nothing is made of them. See edgesplit.go.
//
// # Streams
//
// A relation with a Stream has events, and becomes no topology. Its events are read as edges are.
// They are sorted by time, events of one time as they came, and written in that order, with the
// lists of their nodes behind them: see streams.go. They go to train, validate and test by
// quantiles of the times, linearly interpolated, or as the source says. Nodes are numbered by their
// events. A source with streams has no other relations.
//
// # Labels
//
// A source that knows its classes declares their number. Where it does not, the different labels
// are classes in ascending order: 10, 2000 and 99999 are 0, 1 and 2, and keep their numbers as
// class names in the dataset, which exports have too. A negative label is missing. A label that
// most nodes have and that hardly ever repeats is refused: it is a column of ids.
//
// # Features as float16
//
// Half precision keeps 11 bits of magnitudes from 2⁻¹⁴ to 65504, and features may round by that
// much. What would change more is counted, and refused unless Options.Clamp is set: values beyond
// 65504, whole numbers beyond 2048 where whole numbers are expected, and tiny values where a column
// has little else. rounding.go has the rule. Options.Normalize comes before it.
//
// # Means
//
// Where one type has features and others have none, as in MAG240M, the others take means of their
// in-neighbours' rows, type by type outwards: Options.Features "mean". A type that no relation
// reaches is refused. Sums are float32, from source to source upwards, so that the bits depend on
// the dataset alone.
//
// # Why not
//
// Why not read the edges twice, once to count and once to place, and save a pass over the disk?
// Inflating and parsing text costs more than all that follows. Why not let a split follow the
// stored order? It would change with Options.Order, and runs on differently ordered copies of one
// graph would not compare. Why hashes and parts for ids, and not a look-up in a dictionary on disk?
// A look-up an edge costs a random read each, thousands of times what reading parts in sequence
// does.
package build
