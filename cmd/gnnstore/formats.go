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

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/arrays"
	"github.com/gnnstore/gnnstore/ingest/auto"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/eventset"
	"github.com/gnnstore/gnnstore/ingest/graphbolt"
	"github.com/gnnstore/gnnstore/ingest/graphfile"
	"github.com/gnnstore/gnnstore/ingest/graphsaint"
	"github.com/gnnstore/gnnstore/ingest/hgb"
	"github.com/gnnstore/gnnstore/ingest/mag240m"
	"github.com/gnnstore/gnnstore/ingest/ogb"
	"github.com/gnnstore/gnnstore/ingest/planetoid"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/ingest/triples"
)

// formats has the readers by the name that the user gives.
var formats = map[string]struct {
	about string
	// examples are arguments that follow the name of the format.
	examples []string
	open     func(path string, o *sourceOptions) (ingest.Source, error)
}{
	"csv": {"an edge list in a table, or a folder of its parts, .gz and .zst included, SNAP's text too",
		[]string{"facebook_edges.csv facebook.gnn --undirected --nodes facebook_target.csv --label page_type", "soc-Slashdot0902.txt.gz slashdot.gnn --features fastrp:128 --edge-split random:0.8/0.1/0.1"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.csv)) }},
	"events": {"a stream of events: source, destination and time in a table, .gz, .zst and .parquet included, or in a .pt or .npz",
		[]string{"ml_wikipedia.txt wiki.gnn --bipartite --edge-features random:16", "payments.parquet pay.gnn --src payer --dst payee --time at --label fraud"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			switch {
			case arrays.HasEvents(p):
				return o.openEvents(p)
			case eventset.IsTyped(p) && o.namesNoColumn():
				return opened(eventset.OpenTGB(p, o.csv.EdgeFeatures, o.eventset()))
			case o.nodeTypes+o.missingTypes != "":
				return nil, misuse(errors.New("--node-types and --missing-features: events have them if they are TGB's, " +
					"thgl-*_edgelist.csv, and no option names a column; leave them out"))
			}
			return opened(edgelist.Open(p, o.csv))
		}},
	"graphbolt": {"a GraphBolt dataset: metadata.yaml and what it names",
		[]string{"ogbn-arxiv-seeds arxiv.gnn"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(graphbolt.Open(p, o.memory))
		}},
	"graphml": {"a graph in GraphML: attributes of nodes are features and labels, weight is the edges' weight",
		[]string{"karate.graphml karate.gnn --label club --features degree"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(graphfile.OpenGraphML(p, o.csv))
		}},
	"graphsaint": {"a GraphSAINT folder: adj_full.npz, feats.npy, class_map.json, role.json",
		[]string{"flickr flickr.gnn --undirected"},
		func(p string, _ *sourceOptions) (ingest.Source, error) { return opened(graphsaint.Open(p)) }},
	"hgb": {"a graph of the Heterogeneous Graph Benchmark: node.dat, link.dat, label.dat, or their zip",
		[]string{"ACM.zip acm.gnn --reverse"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(hgb.Open(p, hgb.Options{Seed: o.seed}))
		}},
	"jodie": {"a stream as JODIE distributes them: user, item, time, label, features, under a header that may be short",
		[]string{"wikipedia.csv wiki.gnn"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.jodie())) }},
	"mag240m": {"MAG240M as OGB's package leaves it: mag240m_kddcup2021/",
		[]string{"mag240m_kddcup2021 mag.gnn --undirected --reverse --features mean --plan"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.mag240m.Open(p)) }},
	"mtx": {"a matrix in the Matrix Market format, or the one in a .tar.gz or .zip: an edge an entry, its value the weight",
		[]string{"cant.mtx.gz cant.gnn --features degree", "web.mtx web.gnn --nodes pages.csv --label topic"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(graphfile.OpenMatrix(p, o.csv))
		}},
	"nodelink": {"a graph in node-link JSON, as NetworkX and D3 write it, with attributes as in graphml",
		[]string{"karate.json karate.gnn --label club --features degree"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(graphfile.OpenNodeLink(p, o.csv))
		}},
	"npy": {"an .npy array of edges, or a folder of .npy files",
		[]string{"edges.npy graph.gnn --features fastrp:128", "arrays graph.gnn --undirected"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"npz": {"a graph in one .npz: edge_index, x, y, masks, or scipy's adj_*, attr_*, labels",
		[]string{"amazon_electronics_computers.npz computers.gnn --undirected --split per-class:20/30"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"ogb": {"an Open Graph Benchmark dataset (ogbn-*, ogbl-*): raw/ and split/, or its zip",
		[]string{"ogbn_arxiv arxiv.gnn --undirected", "papers100M-bin papers.gnn --memory 4GiB --plan"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.ogb.Open(p)) }},
	"planetoid": {"Cora, CiteSeer, PubMed: a folder with ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}, or DIR/NAME",
		[]string{"data/cora cora.gnn"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(planetoid.Open(p, o.memory))
		}},
	"pt": {"a graph, or a TemporalData's stream, in a .pt or .pth of PyTorch or PyTorch Geometric",
		[]string{"data.pt graph.gnn --undirected", "processed/data.pt typed.gnn"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return arrays.Open(p, o.arrays) }},
	"table": {"csv, tsv, parquet and JSON-lines tables of many types, by a schema.yaml; --infer writes a first one",
		[]string{"--infer tables/ > tables/schema.yaml", "--template > tables/schema.yaml", "tables/schema.yaml shop.gnn --features random:64", "new/schema.yaml new.gnn --like runs/shop-1"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			if info, err := os.Stat(p); err == nil && info.IsDir() {
				return nil, fmt.Errorf("%s: a folder; name the schema of its tables, or write a first one: gnnstore ingest table --infer %s", p, p)
			}
			return opened(table.Open(p, table.Options{
				Memory: o.memory, SkipBad: o.skipBad, FollowLinks: o.follow, Like: o.like,
				Decimal: o.csv.Decimal, Thousands: o.csv.Thousands, Encoding: o.csv.Encoding,
			}))
		}},
	"tgb": {"a stream of TGB's, tgbl-*, tkgl-* or thgl-*: NAME_edgelist.csv, and the negatives of tgbl-*, NAME_val_ns.pkl and NAME_test_ns.pkl",
		[]string{"tgbl_wiki wiki.gnn", "thgl-software_edgelist.csv software.gnn"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGB(p, o.csv.EdgeFeatures, o.eventset()))
		}},
	"tgl": {"a stream in TGL's folder: edges.csv with ext_roll, edge_features and node_features as .pt or .npy",
		[]string{"WIKI wiki.gnn --bipartite"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGL(p, o.eventset()))
		}},
	"tgn": {"a stream as TGN's preprocessing leaves it: ml_NAME.csv, ml_NAME.npy",
		[]string{"ml_wikipedia.csv wiki.gnn --bipartite"},
		func(p string, o *sourceOptions) (ingest.Source, error) {
			return opened(eventset.OpenTGN(p, o.eventset()))
		}},
	"triples": {"a knowledge graph: lines of head, relation, tail (train, valid, test: .txt, .tsv), or RDF (.nt, .nq, .ttl), .gz and .zst included",
		[]string{"WN18RR wn18rr.gnn", "dbpedia.ttl.gz dbpedia.gnn --literals drop"},
		func(p string, o *sourceOptions) (ingest.Source, error) { return opened(o.triples.Open(p)) }},
}

// formatNames returns the names of all formats, sorted.
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
	csv      edgelist.Options
	arrays   arrays.Options
	ogb      ogb.Options
	mag240m  mag240m.Options
	triples  triples.Options
	raw      []string // of arrays
	seed     uint64
	skipBad  int64
	memory   int64
	follow   bool
	likePath string
	like     *ingest.Like // the dataset that the source follows; nil: none

	nodeCount    int64  // of csv, events and arrays
	timeScale    string // of streams
	multiLabel   bool   // of csv and arrays
	oneLabel     bool   // --multi-label=false
	made         bool   // features of events are
	nodeTypes    string // of tgb
	missingTypes string // Missing of tgb
	yearColumns  int    // of ogb and mag240m
}

// validate completes the options and reports every problem.
func (o *sourceOptions) validate(format string, b *buildOptions) error {
	o.seed, o.skipBad, o.csv.SkipBad = b.Seed, b.SkipBad, b.SkipBad
	o.memory, o.arrays.Memory, o.ogb.Memory, o.mag240m.Memory = b.Memory, b.Memory, b.Memory, b.Memory
	o.triples.Memory, o.csv.Memory = b.Memory, b.Memory
	o.csv.Like, o.triples.Like = o.like, o.like
	if slices.Contains([]string{"npy", "npz", "pt"}, format) {
		o.arrays.MultiLabel = o.multiLabel
	} else {
		o.csv.MultiLabel, o.csv.OneLabel = o.multiLabel, o.oneLabel
	}
	if format == "triples" {
		o.triples.Columns, o.csv.Ends = o.csv.Ends, nil
		o.triples.Encoding, o.csv.Encoding = o.csv.Encoding, ""
		o.triples.Header, o.csv.Header = triples.Header(o.csv.Header), ""
	}
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
	if m := o.csv.Missing; (format == "tgb" || format == "events") && (m == "zeros" || m == "refuse") {
		o.missingTypes, o.csv.Missing = o.csv.Missing, ""
	}
	o.csv.OwnNodes = format == "graphml" || format == "nodelink"
	if format == "csv" || format == "events" {
		o.csv.Count = o.nodeCount
	} else {
		o.arrays.Nodes = o.nodeCount
	}
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

// jodie returns the options of a list as JODIE distributes it.
func (o *sourceOptions) jodie() edgelist.Options {
	j := o.csv
	j.Header, j.Src, j.Dst, j.Time, j.EventLabel, j.Bipartite = "short", "1", "2", "3", "4", true
	return j
}

// openEvents opens a stream in arrays. The options of tables of events name the arrays.
func (o *sourceOptions) openEvents(path string) (ingest.Source, error) {
	if o.csv.Header+o.csv.IDType+o.csv.Decimal+o.csv.Thousands+o.csv.Encoding != "" || o.csv.OneSpace {
		return nil, misuse(fmt.Errorf("%s: arrays have no header and no text, and numbers for ids; leave out --header, --id-type, --decimal, "+
			"--thousands, --encoding and --one-id-space", path))
	}
	ev := arrays.Events{
		Src: o.csv.Src, Dst: o.csv.Dst, Time: o.csv.Time, Label: o.csv.EventLabel, Part: o.csv.Part,
		Bipartite: o.csv.Bipartite, NoRows: o.made,
	}
	switch rows := o.csv.EdgeFeatures; len(rows) {
	case 0:
	case 1:
		ev.Features = rows[0]
	default:
		return nil, misuse(fmt.Errorf("--edge-features %s: of arrays one holds all features of events; name it", strings.Join(rows, ",")))
	}
	of := o.arrays
	of.Nodes = o.nodeCount
	return arrays.OpenEvents(path, of, ev)
}

// eventset returns the options of folders of temporal frameworks.
func (o *sourceOptions) eventset() eventset.Options {
	return eventset.Options{
		Bipartite: o.csv.Bipartite, NoRows: o.made, NodeTypes: o.nodeTypes, Missing: o.missingTypes, Memory: o.memory,
		Encoding: o.csv.Encoding,
	}
}

// namesNoColumn reports whether no option describes the columns of events. Typed events of TGB are
// then read as format tgb reads them.
func (o *sourceOptions) namesNoColumn() bool {
	c := o.csv
	return c.Header+c.IDType+c.Src+c.Dst+c.Time+c.TimeUnit+c.EventLabel+c.Part == "" && !c.OneSpace && !c.Bipartite &&
		o.nodeCount == 0 && o.skipBad == 0
}

// checkFormat refuses unknown formats.
func checkFormat(format string) error {
	if _, ok := formats[format]; ok {
		return nil
	}
	names := formatNames()
	last := len(names) - 1
	return misuse(fmt.Errorf("unknown format %q; there are %s and %s, and auto finds out%s",
		format, strings.Join(names[:last], ", "), names[last], didYouMean(format, names, "%s")))
}

// resolveFormat returns format and path. For auto it finds both, and prints on stderr why.
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
