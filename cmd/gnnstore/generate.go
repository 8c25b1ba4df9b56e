package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/generate"
	"github.com/gnnstore/gnnstore/store/setting"
)

type generateOptions struct {
	buildOptions
	graph generate.Options
	raw   bool
	kind  string // the first argument
}

func newGenerate() *cobra.Command {
	o := generateOptions{buildOptions: defaultBuild(), graph: generate.Options{Scale: 1}}
	var given *setting.Bound[generateOptions]
	var about []string
	for _, k := range generate.Kinds() {
		about = append(about, fmt.Sprintf("  %-10s %s", k, withFlags(generate.About(k))))
	}
	cmd := &cobra.Command{
		Use:   "generate KIND OUT",
		Short: "Make a graph of any size from a seed",
		Long: "Make a graph in the shape of a public benchmark into a sealed dataset at OUT, which must not exist. The same\n" +
			"options and seed give the same graph on every machine. KIND is one of\n  " + strings.Join(generate.Kinds(), ", ") + ".\n\n" +
			"With --raw, the raw files of the benchmark are made. Degrees follow a power law, communities decide the labels, and\n" +
			"features are weak alone and strong with neighbours; citations is no benchmark's shape, and the mean of the rows of three\n" +
			"hops does not give its labels away; temporal and drift are streams of events; churn is tables with a schema, for ingest table; kg is a knowledge graph, of whose triples\n" +
			"2 % are held out unless --edge-split says otherwise.\n\n" +
			"Kinds, at --scale 1:\n" + strings.Join(about, "\n"),
		Example: "  gnnstore generate papers100m papers.gnn --scale 0.01\n" +
			"  gnnstore generate reddit small.gnn --nodes 20k --edges 1M --undirected\n" +
			"  gnnstore generate mag240m mag.gnn --scale 0.001 --undirected --reverse --features mean\n" +
			"  gnnstore generate kg kg.gnn --scale 0.01\n" +
			"  gnnstore generate churn tables\n" +
			"  gnnstore generate mag240m mag240m_kddcup2021 --raw --scale 0.001",
		Args: exactArgs("KIND", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.kind = args[0]
			wrong := given.Check(&generateOptions{buildOptions: defaultBuild(), graph: generate.Options{Scale: 1}})
			o.complete(given.Given)
			o.graph.Seed = o.Seed
			if generate.Triples(args[0]) && len(o.EdgeSplit) == 0 {
				o.EdgeSplit = []string{"random:0.98/0.01/0.01"}
			}
			if err := errors.Join(wrong, o.graph.Validate(args[0]), o.Validate(), o.checkRaw(args[0])); err != nil {
				return misuse(err)
			}
			if o.raw || generate.Tables(args[0]) {
				return runGenerateRaw(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
			}
			return runGenerate(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
		},
	}
	given = bindTable(cmd, generateTable, &o)
	return cmd
}

// checkRaw refuses to write raw files that no benchmark has.
func (o *generateOptions) checkRaw(kind string) error {
	if o.raw && generate.About(kind) != "" && !generate.Raw(kind) {
		return fmt.Errorf("--raw: kind %s has no raw files, since it is no benchmark's; leave it out", kind)
	}
	return nil
}

var generateBuild = buildRows(func(o *generateOptions) *buildOptions { return &o.buildOptions })

// generateTable declares the options of generate. Options of datasets are refused with --raw.
var generateTable = slices.Concat(setting.Table[generateOptions]{
	{Key: "scale", Group: "The graph", Usual: true,
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Scale) },
		Help: "multiplies nodes and edges"},
	{Key: "nodes", Usual: true, Brief: "nodes of all types together, such as 2M",
		In:   func(o *generateOptions) setting.Value { return setting.Counted(&o.graph.Nodes, 1) },
		Help: "nodes of all types together, such as 2M (default the kind's, or in proportion to {edges})"},
	{Key: "edges", Usual: true, Brief: "edges of all relations together, such as 40M",
		In:   func(o *generateOptions) setting.Value { return setting.Counted(&o.graph.Edges, 1) },
		Help: "edges of all relations together, such as 40M (default the kind's, or in proportion to {nodes})"},
	{Key: "classes",
		In:   func(o *generateOptions) setting.Value { return setting.Int(&o.graph.Classes) },
		Help: "classes; as many communities, of citations half as many (default the kind's)"},
	{Key: "dim",
		In:   func(o *generateOptions) setting.Value { return setting.Int(&o.graph.Dim) },
		Help: "feature columns (default the kind's)"},
	{Key: "signal",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Signal) },
		Help: "length of a class's mean features, whose noise is 1 a column (default the kind's)"},
	{Key: "homophily",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Homophily) },
		Help: "share of edges within communities, beyond those expected by chance (default the kind's)"},
	{Key: "span",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Span) },
		Help: "seconds from the first event of kind temporal to the last (default 31 days)"},
	{Key: "train",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Train) },
		Help: "share of nodes to train on; {valid} and {test} go with it (default the kind's)"},
	{Key: "valid",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Valid) },
		Help: "share of nodes to validate on"},
	{Key: "test",
		In:   func(o *generateOptions) setting.Value { return setting.Float(&o.graph.Test) },
		Help: "share of nodes to test on"},
	{Key: "leak",
		In:   func(o *generateOptions) setting.Value { return setting.Bool(&o.graph.Leak) },
		Help: "churn: add a column that gives the label away, which ingest refuses"},
	{Key: "seed", Usual: true,
		In:   func(o *generateOptions) setting.Value { return setting.Uint(&o.Seed) },
		Help: "seed of the graph"},
}, ofDatasets("Edges", "undirected", "reverse", "self-loops", "duplicates", "edge-split"),
	ofDatasets("The dataset", "features", "counts", "dtype"), setting.Table[generateOptions]{
		{Key: "split", For: makesDataset,
			In:   func(o *generateOptions) setting.Value { return setting.Word(&o.Split) },
			Help: "of streams: time:a/b/c (default given, of drift time:0.7/0.15/0.15)"},
	}, ofDatasets("", "name", "order"), setting.Table[generateOptions]{
		{Key: "raw", Usual: true,
			In:   func(o *generateOptions) setting.Value { return setting.Bool(&o.raw) },
			Help: "write raw files in the benchmark's own layout"},
	}, ofDatasets("", "memory", "tmp", "plan"), generateBuild.Pick("", "json"))

// makesDataset is the set of calls that make a dataset.
var makesDataset = &setting.Audience[generateOptions]{
	Has: func(o *generateOptions) bool { return !o.raw && !generate.Tables(o.kind) },
	Why: func(o *generateOptions) string {
		if generate.Tables(o.kind) {
			return "it is for datasets, and kind " + o.kind + " is tables; give it to gnnstore ingest table"
		}
		return "it is for datasets, and {raw} writes raw files"
	},
}

// ofDatasets picks options that raw files do not have.
func ofDatasets(group string, flags ...string) setting.Table[generateOptions] {
	rows := generateBuild.Pick(group, flags...)
	for i := range rows {
		rows[i].For = makesDataset
	}
	return rows
}

func runGenerate(ctx context.Context, stdout, stderr io.Writer, kind, out string, o generateOptions) error {
	if err := o.fits(); err != nil {
		return err
	}
	source, err := generate.Open(kind, o.graph)
	if err != nil {
		return err
	}
	defer source.Close()
	err = o.run(ctx, stdout, stderr, source, out)
	var space *build.SpaceError
	if errors.As(err, &space) {
		if scale := source.FittingScale(space.Need, space.Free); scale > 0 {
			err = fmt.Errorf("%w; --scale %.2g fits", err, scale)
		}
	}
	return err
}

func runGenerateRaw(ctx context.Context, stdout, stderr io.Writer, kind, out string, o generateOptions) error {
	p := newProgress(stderr)
	defer p.clear()
	report, err := generate.WriteRaw(ctx, kind, out, o.graph,
		func(at ingest.Progress) { p.show(at.Stage, at.Done, at.Total, at.Unit) })
	if err != nil {
		return err
	}
	p.clear()
	if o.json {
		return printJSON(stdout, report)
	}
	printf(stdout, "%-9s %s nodes, %s edges\n", report.Kind, count(report.Nodes), count(report.Edges))
	printf(stdout, "%-9s %s in %s: %s in %s files\n", "written", report.Path, seconds(report.Seconds), size(report.Bytes), count(int64(report.Files)))
	return nil
}
