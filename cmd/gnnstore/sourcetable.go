package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/store/setting"
)

// ingestTable declares the options of ingest: options of single formats, and of every build.
var ingestTable = slices.Concat(sourceRows, setting.Table[ingestOptions]{
	{Key: "infer", Group: "Schemas, and datasets to follow", Usual: true,
		In:   func(o *ingestOptions) setting.Value { return setting.Bool(&o.infer) },
		For:  ofFormats("table"),
		Help: "table: print a first schema for the tables in DIR"},
	{Key: "template",
		In:   func(o *ingestOptions) setting.Value { return setting.Bool(&o.template) },
		For:  ofFormats("table"),
		Help: "table: print a schema with every key and a comment on each, to edit"},
	{Key: "like", Usual: true, Brief: "encode the columns as this dataset or run did",
		In:   func(o *ingestOptions) setting.Value { return setting.Word(&o.source.likePath) },
		Help: "a dataset, or a run: columns, categories, means, classes and relations become numbers as they did there, by name, so that a network trained on it reads the same; options of edges, {normalize} and {time_scale} that are not given are taken from it, too (default none)"},
}, ingestBuild.Pick("Edges", "undirected", "reverse", "self-loops", "duplicates", "edge-ids", "edge-split"),
	ingestBuild.Pick("Features and splits", "features", "counts", "normalize", "dtype", "clamp", "split", "allow-leak", "seed"),
	ingestBuild.Pick("The dataset", "name", "order", "skip-bad"), setting.Table[ingestOptions]{
		{Key: "follow_links",
			In:   func(o *ingestOptions) setting.Value { return setting.Bool(&o.source.follow) },
			Help: "follow symbolic links in SRC, and paths in a table's schema, that lead out of SRC's folder (default: refuse)"},
	}, ingestBuild.Pick("", "memory", "tmp", "plan", "json"))

var ingestBuild = buildRows(func(o *ingestOptions) *buildOptions { return &o.buildOptions })

// only declares an option of some formats.
func only(formats, key, help string, in func(o *sourceOptions) setting.Value) setting.Of[ingestOptions] {
	names := strings.Split(formats, ", ")
	if of, _ := formatsOf(help); of == nil {
		help = formats + ": " + help
	}
	return setting.Of[ingestOptions]{
		Key: key, Help: help,
		In:  func(o *ingestOptions) setting.Value { return in(&o.source) },
		For: ofFormats(names...),
	}
}

// ofFormats returns the audience of an option that only these formats take.
func ofFormats(names ...string) *setting.Audience[ingestOptions] {
	return &setting.Audience[ingestOptions]{
		Has: func(o *ingestOptions) bool { return slices.Contains(names, o.format) },
		Why: func(o *ingestOptions) string {
			return fmt.Sprintf("it goes with format %s, and this is %s", setting.OneOf(names), o.format)
		},
	}
}

type source = sourceOptions

// sourceRows declares the options of single formats.
var sourceRows = slices.Concat(
	grouped("Tables and edge lists (csv, events)",
		only("csv, triples", "columns", "csv: SRC,DST[,WEIGHT], columns of the edge list, by name or number from 1 (default by their names, or the first two); triples: head, relation and tail in the order of the file, as in head,tail,relation; another word leaves its column out (default head,relation,tail, or as a header says)",
			func(o *source) setting.Value { return setting.Words(&o.csv.Ends) }),
		usually("csv, events: column of sources, by name or number", only("csv, events, nodelink", "src", "column of sources, by name or number (default src, source, from, or the first)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Src) })),
		usually("csv, events: column of destinations", only("csv, events, nodelink", "dst", "column of destinations (default dst, target, to, or the second)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Dst) })),
		usually("column of edge weights", only("csv, graphml, mtx, nodelink", "weight", "column of edge weights (default none)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Weight) })),
		only("csv, graphml, mtx, nodelink", "edge_columns", "NAME=COLUMN,…: columns of the edge list that edges keep, as in rating=3,time=4; integers, seconds of dates, or f32 by the first rows, or as COLUMN:f32, :i64, :i32 or :u8 says, or of dates the unit :s, :ms, :us or :ns",
			func(o *source) setting.Value { return setting.Words(&o.csv.EdgeColumns) }),
		only("csv, events, graphml, jodie, mtx, nodelink, tgb, tgl, tgn", "edge_features", "COLUMN,…: columns of the edge list that make a table of edge features, by name, by number, or as numbers 4-103; of streams also random:D, normal values by {seed} (default none; jodie, tgl and tgn their own, and tgb where its table is as jodie's)",
			func(o *source) setting.Value { return setting.Words(&o.csv.EdgeFeatures) }),
		usually("events: column of times", only("events", "time", "column or array of times (default time, timestamp, ts and the like, or the third of three without header)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Time) })),
		only("events, jodie", "time_unit", "unit of times that are plain numbers since 1970: s, ms, us or ns (default as they are); dates and Parquet's timestamps have their own, and all become seconds",
			func(o *source) setting.Value { return setting.Word(&o.csv.TimeUnit) }),
		only("events, jodie, pt, tgb, tgl, tgn", "time_scale", "factor that scales time differences for networks: a number, or auto (default auto: 1; if all times span less than 10,000 units, a factor that makes the median gap of a node 1,000)",
			func(o *source) setting.Value { return setting.Word(&o.timeScale) }),
		only("csv, events, graphml, mtx, nodelink", "part", "events: column of a given split: 0 to train, 1 to validate, 2 to test (default none); csv, graphml, mtx, nodelink: column of {nodes} with a given split, numbers from 0 to 2 or the words train, valid and test, or three masks, TRAIN,VALID,TEST, where an empty name is no part and rest the other nodes; none takes no split (default by their names, where the values fit)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Part) }),
		only("csv, events", "one_id_space", "both columns number the same nodes, though they look like users and items numbered apart",
			func(o *source) setting.Value { return setting.Bool(&o.csv.OneSpace) }),
		only("events, tgl, tgn", "bipartite", "sources and destinations are users and items, numbered apart (default one kind of node)",
			func(o *source) setting.Value { return setting.Bool(&o.csv.Bipartite) }),
	),
	grouped("How text is written (csv, events, table, triples and the like)",
		only("csv, events, mtx, triples", "header", "whether tables and files of triples begin with a header: yes, no or auto (default auto); mtx: for {nodes}",
			func(o *source) setting.Value { return setting.Word(&o.csv.Header) }),
		only("csv, events, mtx, table", "decimal", "mark in numbers of text: point or comma, as in 0,5 and 1.234,5 (default point); mtx: for {nodes}; table: for entries of the schema that have none",
			func(o *source) setting.Value { return setting.Word(&o.csv.Decimal) }),
		only("csv, events, mtx, table", "thousands", "mark between groups of three digits: comma, point, blank, apostrophe or none (default none, and point with {decimal} comma)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Thousands) }),
		only("csv, events, jodie, mtx, table, tgb, tgl, tgn, triples", "encoding", "how text is encoded: utf-8, latin1, cp1252, utf-16, or another of one byte a character, such as iso-8859-15 (default utf-8); mtx: for {nodes}; table: for entries of the schema that have none",
			func(o *source) setting.Value { return setting.Word(&o.csv.Encoding) }),
	),
	grouped("Tables of nodes (csv, events)",
		usually("csv: a table of all nodes", only("csv, mtx", "nodes", "a table of all nodes (default the nodes that edges name)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Nodes) })),
		only("csv, graphml, mtx, nodelink", "id", "column of {nodes} that holds ids (default id, or the first)",
			func(o *source) setting.Value { return setting.Word(&o.csv.ID) }),
		only("csv, events, graphml, nodelink", "id_type", "what ids are: auto, int or text (default auto, by the first rows)",
			func(o *source) setting.Value { return setting.Word(&o.csv.IDType) }),
		usually("column of labels, or COLUMN:value for numbers to learn", only("csv, events, graphml, mtx, nodelink", "label", "csv, graphml, mtx, nodelink: column of {nodes} with labels: numbers or text that name classes, or COLUMN:value for numbers to learn, or A,B,C for columns of zeros and ones, a class each; none takes no label (default label, y, class and the like, where the values fit); events: column or array with the source's class from then on (default none, of arrays y and the like)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Label) })),
		only("csv, graphml, mtx, nodelink, npy, npz, pt", "multi_label", "a node has any number of classes: cells of {label} list them, as in a|b, a;b or [a, b], or {label} A,B,C names a column of zeros and ones for each, or of arrays labels are (N, C); without it such columns are one class a node if each row has exactly one 1; csv: =false makes a class of each list",
			func(o *source) setting.Value { return setting.Bool(&o.multiLabel) }),
		only("csv, graphml, mtx, nodelink", "feature_columns", "columns of {nodes} that are features (default all others of numbers)",
			func(o *source) setting.Value { return setting.Words(&o.csv.Columns) }),
		only("csv, mtx", "node_features", "an array in a .npy, .npz or .pt, a row a node, as FILE or FILE:ARRAY; or a JSON map from node ids to lists of the columns that are 1",
			func(o *source) setting.Value { return setting.Word(&o.csv.Features) }),
		only("csv, mtx", "feature_rows", "the order of rows in an array of {node_features}: id, row 0 is for the node with id 0 and so on; or table, as in {nodes} (default the one that fits)",
			func(o *source) setting.Value { return setting.Word(&o.csv.FeatureRows) }),
		only("csv, graphml, mtx, nodelink", "missing_words", "words in {nodes} that stand for no label and no feature, as in unknown,?; none says that they are classes (default nothing and nan, and to ask about a class that is called so)",
			func(o *source) setting.Value { return setting.Words(&o.csv.MissingWords) }),
		only("csv, events, graphml, mtx, nodelink, tgb", "missing_features", "for nodes without features: zeros or refuse (default zeros for nodes that {node_features} lacks, refuse for rows of {nodes} and nodes that {node_types} lacks)",
			func(o *source) setting.Value { return setting.Word(&o.csv.Missing) }),
		only("events, tgb", "node_types", "a table of nodes and their types, node_id,type, which become features of nodes; none reads none (default NAME_nodetype.csv beside NAME_edgelist.csv)",
			func(o *source) setting.Value { return setting.Word(&o.nodeTypes) }),
		only("csv, events, npy, npz, pt", "node_count", "number of nodes, which edges call 0, 1, … (default csv's by the edges, arrays' by the largest id)",
			func(o *source) setting.Value { return setting.Int64(&o.nodeCount) }),
	),
	grouped("Arrays (npy, npz, pt)",
		only("npy, npz, pt", "array_edges", "the array of edges, or two, A,B, of sources and destinations (default by the usual names)",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Edges) }),
		only("npy, npz, pt", "array_features", "the array of features",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Features) }),
		only("npy, npz, pt", "array_labels", "the array of labels, or as NAME:value numbers to learn",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Labels) }),
		only("npy, npz, pt", "array_train", "mask or list of training nodes",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Train) }),
		only("npy, npz, pt", "array_valid", "mask or list of validation nodes",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Valid) }),
		only("npy, npz, pt", "array_test", "mask or list of test nodes",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Test) }),
		only("npy, npz, pt", "array_split", "array with the part of each node, train, valid or test, or 0, 1 or 2; none takes no such array (default split and the like, where the words fit)",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Split) }),
		only("npy, npz, pt", "array_weights", "the array of edge weights, or of edge features",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Weights) }),
		only("npy, npz, pt", "raw_array", "a file without header, FILE:DTYPE:SHAPE as in full_feat.npy:f2:1000,768; repeatable",
			func(o *source) setting.Value { return setting.Repeated(&o.raw) }),
		only("npy, npz, pt", "csr_rows", "what rows of a sparse or adjacency matrix are: src or dst (default src, and dst of adj_t)",
			func(o *source) setting.Value { return setting.Word(&o.arrays.RowsAre) }),
		only("npy, npz, pt", "edge_layout", "edges are rows, (2, E), or pairs, (E, 2) (default by shape)",
			func(o *source) setting.Value { return setting.Word(&o.arrays.Layout) }),
		only("npy, npz, pt", "mask_split", "which of several splits, where masks have two dimensions",
			func(o *source) setting.Value { return setting.Int(&o.arrays.MaskSplit) }),
	),
	grouped("Other formats",
		only("ogb", "add_reverse", "add the reverse of each edge: auto, yes or no (default auto: as OGB does for the dataset)",
			func(o *source) setting.Value { return setting.Word(&o.ogb.AddReverse) }),
		only("mag240m, ogb", "year_columns", "columns of sines and cosines of each node's year, after its features (default none)",
			func(o *source) setting.Value { return setting.Int(&o.yearColumns) }),
		only("mag240m", "full_features", "a matrix of features of all nodes, with or without header (default papers alone have some)",
			func(o *source) setting.Value { return setting.Word(&o.mag240m.FullFeatures) }),
		only("mag240m", "row_order", "order of types in {full_features}: paper,author,institution or author,institution,paper",
			func(o *source) setting.Value { return setting.Word(&o.mag240m.RowOrder) }),
		only("triples", "unseen", "held-out triples of entities that no training triple has: keep or drop (default keep)",
			func(o *source) setting.Value { return setting.Word(&o.triples.Unseen) }),
		only("triples", "literals", "what literals become: node; or drop, which leaves out their triples (default node)",
			func(o *source) setting.Value { return setting.Word(&o.triples.Literals) }),
	),
)

// usually puts an option on the first screen of help, with this text.
func usually(brief string, row setting.Of[ingestOptions]) setting.Of[ingestOptions] {
	row.Usual, row.Brief = true, brief
	return row
}

// grouped puts a heading above rows.
func grouped(title string, rows ...setting.Of[ingestOptions]) setting.Table[ingestOptions] {
	rows[0].Group = title
	return rows
}
