package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/generate"
	"github.com/gnnstore/gnnstore/store/setting"
)

type generateOptions struct {
	buildOptions
	graph generate.Options
	raw   bool
}

func newGenerate() *cobra.Command {
	var o generateOptions
	var about []string
	for _, k := range generate.Kinds() {
		about = append(about, fmt.Sprintf("  %-10s %s", k, generate.About(k)))
	}
	cmd := &cobra.Command{
		Use:   "generate KIND OUT",
		Short: "Make a graph of any size from a seed",
		Long: "Make a graph in the shape of a public benchmark into a sealed dataset at OUT, which must not exist; with --raw, the\n" +
			"raw files of that benchmark. Degrees follow a power law, communities decide the labels, and features are weak alone\n" +
			"and strong with neighbours; citations is no benchmark's shape, and the mean of the rows of three hops does not give\n" +
			"its labels away; temporal and drift are streams of events; kg is a knowledge graph, of whose triples 2 % are held out unless --edge-split says otherwise. The same\n" +
			"options and seed give the same graph on every machine.\n\n" +
			"Kinds, at --scale 1:\n" + strings.Join(about, "\n"),
		Example: "  gnnstore generate papers100m papers.gnn --scale 0.01\n" +
			"  gnnstore generate reddit small.gnn --nodes 20k --edges 1M --undirected\n" +
			"  gnnstore generate mag240m mag.gnn --scale 0.001 --undirected --reverse --features mean\n" +
			"  gnnstore generate kg kg.gnn --scale 0.01\n" +
			"  gnnstore generate mag240m mag240m_kddcup2021 --raw --scale 0.001",
		Args: exactArgs("KIND", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.complete()
			o.graph.Seed = o.Seed
			if generate.Triples(args[0]) && len(o.EdgeSplit) == 0 {
				o.EdgeSplit = []string{"random:0.98/0.01/0.01"}
			}
			if err := errors.Join(o.graph.Validate(args[0]), o.Validate(), o.checkFlags(cmd.Flags(), args[0])); err != nil {
				return misuse(err)
			}
			if o.raw {
				return runGenerateRaw(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
			}
			return runGenerate(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.Var(setting.Counted(&o.graph.Nodes, 1), "nodes", "nodes of all types together, such as 2M (default the kind's, or in proportion to --edges)")
	f.Var(setting.Counted(&o.graph.Edges, 1), "edges", "edges of all relations together, such as 40M (default the kind's, or in proportion to --nodes)")
	f.Float64Var(&o.graph.Scale, "scale", 1, "multiplies nodes and edges")
	f.IntVar(&o.graph.Dim, "dim", 0, "feature columns (default the kind's)")
	f.IntVar(&o.graph.Classes, "classes", 0, "classes; as many communities, of citations half as many (default the kind's)")
	f.Float64Var(&o.graph.Homophily, "homophily", 0, "share of edges within communities, but for those that are there by chance (default the kind's)")
	f.Float64Var(&o.graph.Signal, "signal", 0, "length of a class's mean features, whose noise is 1 a column (default the kind's)")
	f.Float64Var(&o.graph.Train, "train", 0, "share of nodes to train on; --valid and --test go with it (default the kind's)")
	f.Float64Var(&o.graph.Valid, "valid", 0, "share of nodes to validate on")
	f.Float64Var(&o.graph.Test, "test", 0, "share of nodes to test on")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the graph")
	f.Float64Var(&o.graph.Span, "span", 0, "seconds from the first event of kind temporal to the last (default 31 days)")
	f.StringVar(&o.Split, "split", "", "of streams: time:a/b/c (default given, of drift time:0.7/0.15/0.15)")
	f.BoolVar(&o.raw, "raw", false, "write raw files in the benchmark's own layout")
	o.flags(f)
	return cmd
}

// ofDatasets are the flags that raw files know nothing of.
var ofDatasets = []string{"split", "undirected", "reverse", "features", "self-loops", "duplicates", "order", "dtype", "name", "memory", "tmp", "plan"}

// checkFlags refuses what does not go with raw files, or only with them.
func (o *generateOptions) checkFlags(flags *pflag.FlagSet, kind string) error {
	if !o.raw {
		return nil
	}
	if generate.About(kind) != "" && !generate.Raw(kind) {
		return fmt.Errorf("--raw: kind %s is no benchmark's, and has no raw files; leave it out", kind)
	}
	var errs []error
	for _, name := range ofDatasets {
		if flags.Changed(name) {
			errs = append(errs, fmt.Errorf("--%s: it is about datasets, and --raw writes raw files", name))
		}
	}
	return errors.Join(errs...)
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
