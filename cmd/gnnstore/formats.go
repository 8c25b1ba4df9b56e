package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/arrays"
	"github.com/gnnstore/gnnstore/ingest/auto"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/eventset"
	"github.com/gnnstore/gnnstore/ingest/graphbolt"
	"github.com/gnnstore/gnnstore/ingest/graphsaint"
	"github.com/gnnstore/gnnstore/ingest/hgb"
	"github.com/gnnstore/gnnstore/ingest/mag240m"
	"github.com/gnnstore/gnnstore/ingest/ogb"
	"github.com/gnnstore/gnnstore/ingest/planetoid"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/ingest/triples"
)

// formats are the readers by the name that the user gives.
var formats = map[string]struct {
	about string
	open  func(path string, o *sourceOptions) (ingest.Source, error)
}{
	"csv": {"an edge list in a table, or a folder of its parts, .gz and .zst included, SNAP's text too",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.csv)) }},
	"events": {"a stream of events in a table: source, destination and time, .gz, .zst and .parquet included",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.csv)) }},
	"graphbolt": {"a GraphBolt dataset: metadata.yaml and what it names",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(graphbolt.Options{Memory: o.memory}.Open(p))
		}},
	"graphsaint": {"a GraphSAINT folder: adj_full.npz, feats.npy, class_map.json, role.json",
		func(p string, _ *sourceOptions) (ingest.Source, error) { return opened(graphsaint.Open(p)) }},
	"hgb": {"a graph of the Heterogeneous Graph Benchmark: node.dat, link.dat, label.dat, or their zip",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(hgb.Open(p, hgb.Options{Seed: o.seed}))
		}},
	"jodie": {"a stream as JODIE distributes them: user, item, time, label, features, under a header that may be short",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.jodie())) }},
	"mag240m": {"MAG240M as OGB's package leaves it: mag240m_kddcup2021/",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.mag240m.Open(p)) }},
	"npy": {"an .npy array of edges, or a folder of .npy files",
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"npz": {"a graph in one .npz: edge_index, x, y, masks, or scipy's adj_*, attr_*, labels",
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"ogb": {"an Open Graph Benchmark dataset (ogbn-*, ogbl-*): raw/ and split/, or its zip",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.ogb.Open(p)) }},
	"planetoid": {"Cora, CiteSeer, PubMed: a folder with ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}, or DIR/NAME",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(planetoid.Options{Memory: o.memory}.Open(p))
		}},
	"pt": {"a graph in a .pt or .pth of PyTorch or PyTorch Geometric",
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"table": {"csv, tsv, parquet and JSON-lines tables of many types, by a schema.yaml; --infer writes a first one",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				return nil, fmt.Errorf("%s: a folder; name the schema of its tables, or write a first one: gnnstore ingest table --infer %s", p, p)
			}
			return opened(table.Open(p, table.Options{SkipBad: o.skipBad, FollowLinks: o.follow}))
		}},
	"tgb": {"a stream of TGB's, tgbl-*: NAME_edgelist.csv, and its negatives, NAME_val_ns.pkl and NAME_test_ns.pkl",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGB(p, o.csv.EdgeFeatures, o.eventset()))
		}},
	"tgl": {"a stream in TGL's folder: edges.csv with ext_roll, edge_features and node_features as .pt or .npy",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGL(p, o.eventset()))
		}},
	"tgn": {"a stream as TGN's preprocessing leaves it: ml_NAME.csv, ml_NAME.npy",
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGN(p, o.eventset()))
		}},
	"triples": {"a knowledge graph: lines of head, relation, tail (train, valid, test: .txt, .tsv), or N-Triples (.nt), .gz and .zst included",
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.triples.Open(p)) }},
}

// formatNames are sorted.
func formatNames() []string { return slices.Sorted(maps.Keys(formats)) }

// autoFormat stands for the format that auto.Recognise finds.
const autoFormat = "auto"

// opened keeps a nil pointer from becoming a Source that is not nil.
func opened[S ingest.Source](s S, err error) (ingest.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// sourceOptions are the flags of single formats.
type sourceOptions struct {
	csv     edgelist.Options
	arrays  arrays.Options
	ogb     ogb.Options
	mag240m mag240m.Options
	triples triples.Options
	raw     []string // of arrays
	layout  string
	literal string // of triples
	reverse string
	seed    uint64
	skipBad int64
	memory  int64
	follow  bool

	nodeCount   int64  // of csv, events and arrays
	timeScale   string // of streams
	made        bool   // features of events are
	yearColumns int    // of ogb and mag240m
}

// flags adds the flags that go with some formats only.
func (o *sourceOptions) flags(f *pflag.FlagSet) {
	of := func(names string, add func(name, of string), flag string) {
		add(flag, names+": ")
		_ = f.SetAnnotation(flag, formatOf, strings.Split(names, ", ")) // of a flag that was just added
	}
	text := func(p *string, about string) func(name, of string) {
		return func(name, of string) { f.StringVar(p, name, "", of+about) }
	}
	const csv, array, list, stream = "csv", "npy, npz, pt", "csv, events", "events"
	of(list, text(&o.csv.Header, "whether tables begin with a header: yes, no or auto (default auto)"), "header")
	of(csv, func(name, of string) {
		f.StringSliceVar(&o.csv.Ends, name, nil, of+"SRC,DST[,WEIGHT]: columns of the edge list, by name or number from 1 (default by their names, or the first two)")
	}, "columns")
	of(list, text(&o.csv.Src, "column of sources, by name or number (default src, source, from, or the first)"), "src")
	of(list, text(&o.csv.Dst, "column of destinations (default dst, target, to, or the second)"), "dst")
	of(list, func(name, of string) {
		f.BoolVar(&o.csv.OneSpace, name, false, of+"both columns number the same nodes, though they look like users and items numbered apart")
	}, "one-id-space")
	of(csv, text(&o.csv.Nodes, "a table of all nodes (default the nodes that edges name)"), "nodes")
	of(csv, text(&o.csv.ID, "column of --nodes that holds ids (default id, or the first)"), "id")
	of(list, text(&o.csv.Label, "column of --nodes with labels: numbers or text that name classes, or COLUMN:value for numbers to learn (default label, if there is "+
		"one); events: column with the source's class from then on (default none)"), "label")
	of(csv, func(name, of string) {
		f.StringSliceVar(&o.csv.Columns, name, nil, of+"columns of --nodes that are features (default all others of numbers)")
	}, "feature-columns")
	of(csv, text(&o.csv.Weight, "column of edge weights (default none)"), "weight")
	of(csv, func(name, of string) {
		f.StringSliceVar(&o.csv.EdgeColumns, name, nil, of+"NAME=COLUMN,…: columns of the edge list that edges keep, as in rating=3,time=4; integers or "+
			"f32 by the first rows, or as COLUMN:f32, :i64, :i32 or :u8 says")
	}, "edge-columns")
	of("csv, events, jodie, tgb, tgl, tgn", func(name, of string) {
		f.StringSliceVar(&o.csv.EdgeFeatures, name, nil, of+"COLUMN,…: columns of the edge list that make a table of edge features, by name, by number, or as numbers "+
			"4-103; of streams also random:D, normal values by --seed (default none; jodie, tgl and tgn their own, and tgb where its table is as jodie's)")
	}, "edge-features")
	of(stream, text(&o.csv.Time, "column of times (default time, timestamp, ts and the like, or the third of three without header)"), "time")
	of(stream, text(&o.csv.Part, "column of a given split: 0 to train, 1 to validate, 2 to test (default none)"), "part")
	of("events, tgl, tgn", func(name, of string) {
		f.BoolVar(&o.csv.Bipartite, name, false, of+"sources and destinations are users and items, numbered apart (default one kind of node)")
	}, "bipartite")
	of("events, jodie, tgb, tgl, tgn", text(&o.timeScale, "factor that scales time differences for networks: a number, or auto (default auto: 1; if all times span less than 10,000 units, a "+
		"factor that makes the median gap of a node 1,000)"), "time-scale")
	of(list, text(&o.csv.IDType, "what ids are: auto, int or text (default auto, by the first rows)"), "id-type")
	of(csv, text(&o.csv.Features, "a JSON map from node ids to lists of the columns that are 1"), "node-features")
	of(csv, text(&o.csv.Missing, "for nodes without features: zeros or refuse (default zeros for nodes that --node-features lacks, refuse for rows of --nodes)"), "missing-features")

	of(array, text(&o.arrays.Edges, "the array of edges, or two, A,B, of sources and destinations (default by the usual names)"), "array-edges")
	of(array, text(&o.arrays.Features, "the array of features"), "array-features")
	of(array, text(&o.arrays.Labels, "the array of labels, or as NAME:value numbers to learn"), "array-labels")
	of(array, func(name, of string) {
		f.BoolVar(&o.arrays.MultiLabel, name, false, of+"labels of (N, C) are any number of classes a node, though each row has exactly one 1")
	}, "multi-label")
	of(array, text(&o.arrays.Weights, "the array of edge weights, or of edge features"), "array-weights")
	of(array, text(&o.arrays.Train, "mask or list of training nodes"), "array-train")
	of(array, text(&o.arrays.Valid, "mask or list of validation nodes"), "array-valid")
	of(array, text(&o.arrays.Test, "mask or list of test nodes"), "array-test")
	of(list+", "+array, func(name, of string) {
		f.Int64Var(&o.nodeCount, name, 0, of+"number of nodes, which edges call 0, 1, … (default csv's by the edges, arrays' by the largest id)")
	}, "node-count")
	of(array, text(&o.layout, "edges are rows, (2, E), or pairs, (E, 2) (default by shape)"), "edge-layout")
	of(array, text(&o.arrays.RowsAre, "what rows of a CSR matrix are: src or dst (default src)"), "csr-rows")
	of(array, func(name, of string) {
		f.IntVar(&o.arrays.MaskSplit, name, 0, of+"which of several splits, where masks have two dimensions")
	}, "mask-split")
	of(array, func(name, of string) {
		f.StringArrayVar(&o.raw, name, nil, of+"a file without header, FILE:DTYPE:SHAPE as in full_feat.npy:f2:1000,768; repeatable")
	}, "raw-array")

	of("mag240m, ogb", func(name, of string) {
		f.IntVar(&o.yearColumns, name, 0, of+"columns of sines and cosines of each node's year, after its features (default none)")
	}, "year-columns")
	of("ogb", text(&o.reverse, "add the reverse of each edge: auto, yes or no (default auto: as OGB does for the dataset)"), "add-reverse")
	of("triples", text(&o.literal, "what literals become: node; or drop, which leaves out their triples (default node)"), "literals")
	of("mag240m", text(&o.mag240m.FullFeatures, "a matrix of features of all nodes, with or without header (default papers alone have some)"), "full-features")
	of("mag240m", text(&o.mag240m.RowOrder, "order of types in it: paper,author,institution or author,institution,paper"), "row-order")
}

// validate completes the options and reports every problem.
func (o *sourceOptions) validate(format string, b *buildOptions) error {
	o.seed, o.skipBad, o.csv.SkipBad = b.Seed, b.SkipBad, b.SkipBad
	o.memory, o.arrays.Memory, o.ogb.Memory, o.mag240m.Memory = b.Memory, b.Memory, b.Memory, b.Memory
	o.triples.Memory, o.triples.Literals = b.Memory, triples.Literals(o.literal)
	if slices.Contains([]string{"events", "jodie", "tgb", "tgl", "tgn"}, format) {
		o.csv.Events = true
		o.csv.EventLabel, o.csv.Label = o.csv.Label, ""
	}
	if made := o.csv.EdgeFeatures; len(made) == 1 && strings.HasPrefix(made[0], "random:") {
		b.EdgeFeatures, o.csv.EdgeFeatures, o.made = made[0], nil, true
	} else if made != nil && (format == "tgl" || format == "tgn") {
		return fmt.Errorf("--edge-features %s: format %s has its own; leave it out, or make others: random:D", strings.Join(made, ","), format)
	} else if format == "jodie" && made == nil {
		o.csv.EdgeFeatures = []string{"5-"}
	}
	if format == "csv" || format == "events" {
		o.csv.Count = o.nodeCount
	} else {
		o.arrays.Nodes = o.nodeCount
	}
	o.arrays.Layout, o.ogb.AddReverse = arrays.Layout(o.layout), ogb.Reverse(o.reverse)
	if format == "mag240m" {
		o.mag240m.YearColumns = o.yearColumns
	} else {
		o.ogb.YearColumns = o.yearColumns
	}
	var errs []error
	if s := o.timeScale; s != "" && s != "auto" {
		var err error
		if b.TimeScale, err = strconv.ParseFloat(s, 64); err != nil || !(b.TimeScale > 0) {
			errs = append(errs, fmt.Errorf("--time-scale %q: choose a number above 0, or auto", s))
		}
	}
	for _, text := range o.raw {
		raw, err := arrays.ParseRaw(text)
		errs = append(errs, err)
		o.arrays.Raw = append(o.arrays.Raw, raw)
	}
	return errors.Join(append(errs, o.csv.Validate(), o.arrays.Validate(), o.ogb.Validate(), o.mag240m.Validate(), o.triples.Validate())...)
}

// jodie are the options of a list as JODIE distributes it.
func (o *sourceOptions) jodie() edgelist.Options {
	j := o.csv
	j.Header, j.Src, j.Dst, j.Time, j.EventLabel, j.Bipartite = "short", "1", "2", "3", "4", true
	return j
}

// eventset are the options of folders of temporal frameworks.
func (o *sourceOptions) eventset() eventset.Options {
	return eventset.Options{Bipartite: o.csv.Bipartite, NoRows: o.made, Memory: o.memory}
}

// formatOf annotates a flag with the formats that it goes with.
const formatOf = "format"

// checkFormat refuses unknown formats, and flags of other ones.
func checkFormat(flags *pflag.FlagSet, format string) error {
	if _, ok := formats[format]; !ok {
		names := formatNames()
		last := len(names) - 1
		return misuse(fmt.Errorf("unknown format %q; there are %s and %s, and auto finds out", format, strings.Join(names[:last], ", "), names[last]))
	}
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if of := f.Annotations[formatOf]; len(of) > 0 && !slices.Contains(of, format) {
			errs = append(errs, fmt.Errorf("--%s: it goes with format %s, and this is %s", f.Name, strings.Join(of, " or "), format))
		}
	})
	return misuse(errors.Join(errs...))
}

// resolveFormat is format and path, or what auto finds, which it says.
func resolveFormat(stderr io.Writer, format, path string) (as, at string, err error) {
	if format != autoFormat {
		return format, path, nil
	}
	at, found, why, err := auto.Recognise(path)
	if err != nil {
		return "", "", err
	}
	printf(stderr, "format %s: %s\n", found, why)
	return found, at, nil
}
