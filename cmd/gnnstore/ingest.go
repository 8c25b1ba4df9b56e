package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/edgelist"
	"github.com/gnnstore/gnnstore/ingest/graphsaint"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/ogb"
	"github.com/gnnstore/gnnstore/ingest/planetoid"
)

// formats are the readers by the name that the user gives.
var formats = map[string]struct {
	about string
	open  func(path string, o *ingestOptions) (ingest.Source, error)
}{
	"csv": {"an edge list in a table, or a folder of its parts, .gz and .zst included; see the flags that begin with csv",
		func(p string, o *ingestOptions) (ingest.Source, error) { return opened(edgelist.Open(p, o.tables)) }},
	"graphsaint": {"a GraphSAINT folder: adj_full.npz, feats.npy, class_map.json, role.json",
		func(p string, _ *ingestOptions) (ingest.Source, error) { return opened(graphsaint.Open(p)) }},
	"npz": {"a scipy CSR graph in one .npz: adj_*, attr_*, labels",
		func(p string, _ *ingestOptions) (ingest.Source, error) { return opened(npz.Open(p)) }},
	"ogb": {"an OGB node-property dataset: raw/*.csv.gz, split/",
		func(p string, _ *ingestOptions) (ingest.Source, error) { return opened(ogb.Open(p)) }},
	"planetoid": {"Cora, CiteSeer, PubMed: a folder with ind.NAME.{x,y,tx,ty,allx,ally,graph,test.index}, or DIR/NAME",
		func(p string, _ *ingestOptions) (ingest.Source, error) { return opened(planetoid.Open(p)) }},
}

// formatNames are sorted.
func formatNames() []string { return slices.Sorted(maps.Keys(formats)) }

// opened keeps a nil pointer from becoming a Source that is not nil.
func opened[S ingest.Source](s S, err error) (ingest.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

type ingestOptions struct {
	ingest.Options
	tables       edgelist.Options // of format csv
	order, dtype string
	json         bool
}

func newIngest() *cobra.Command {
	var o ingestOptions
	var about []string
	for _, n := range formatNames() {
		about = append(about, fmt.Sprintf("  %-10s %s", n, formats[n].about))
	}
	cmd := &cobra.Command{
		Use:   "ingest FORMAT SRC OUT",
		Short: "Read raw graph data into a sealed dataset",
		Long: "Read raw graph data from SRC into a sealed dataset at OUT, which must not exist.\n" +
			"OUT is whole or absent: until it is sealed, the work is in OUT.partial.\n\nFormats:\n" + strings.Join(about, "\n"),
		Example: "  gnnstore ingest npz amazon_electronics_computers.npz computers.gnn --undirected --split per-class:20/30\n" +
			"  gnnstore ingest ogb raw/ogbn_arxiv arxiv.gnn --features fastrp:128 --undirected\n" +
			"  gnnstore ingest planetoid raw/cora cora.gnn --undirected\n" +
			"  gnnstore ingest csv facebook_edges.csv facebook.gnn --undirected \\\n" +
			"    --nodes facebook_target.csv --label page_type --node-features facebook.json",
		Args: exactArgs("FORMAT", "SRC", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Order, o.DType = ingest.Order(o.order), ingest.DType(o.dtype)
			if err := checkFormat(cmd.Flags(), args[0]); err != nil {
				return err
			}
			return runIngest(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], args[2], o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.Undirected, "undirected", false, "add the reverse of every edge and merge duplicates")
	f.StringVar(&o.Features, "features", "", "make features instead of reading them: degree, random:D, fastrp:D")
	f.StringVar(&o.Split, "split", "", "given, random:a/b/c or per-class:t/v (default given, else random:0.6/0.2/0.2)")
	f.StringVar(&o.order, "order", string(ingest.OrderDegree), "how nodes are numbered: degree (hot rows first) or original")
	f.StringVar(&o.dtype, "dtype", string(ingest.F16), "how features are stored: f16 or f32")
	f.BoolVar(&o.Clamp, "clamp", false, "clamp values that float16 cannot hold, instead of refusing them")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of made features and splits")
	f.StringVar(&o.Name, "name", "", "name of the dataset (default from the source)")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	of := func(format string, add func(name string), name string) {
		add(name)
		_ = f.SetAnnotation(name, formatOf, []string{format}) // of a flag that was just added
	}
	text := func(p *string, about string) func(string) {
		return func(name string) { f.StringVar(p, name, "", "csv: "+about) }
	}
	of("csv", text(&o.tables.Header, "whether tables begin with a header: yes, no or auto (default auto)"), "header")
	of("csv", text(&o.tables.Src, "column of sources, by name or number (default src, source, from, or the first)"), "src")
	of("csv", text(&o.tables.Dst, "column of destinations (default dst, target, to, or the second)"), "dst")
	of("csv", text(&o.tables.Nodes, "a table of all nodes (default the nodes that edges name)"), "nodes")
	of("csv", text(&o.tables.ID, "column of --nodes that holds ids (default id, or the first)"), "id")
	of("csv", text(&o.tables.Label, "column of --nodes that holds labels, numbers or text (default label, if there is one)"), "label")
	of("csv", func(name string) {
		f.StringSliceVar(&o.tables.Columns, name, nil, "csv: columns of --nodes that are features (default all others of numbers)")
	}, "feature-columns")
	of("csv", text(&o.tables.Features, "a JSON map from node ids to lists of columns that are one"), "node-features")
	return cmd
}

// formatOf annotates a flag with the one format that it goes with.
const formatOf = "format"

// checkFormat refuses unknown formats, and flags of another one.
func checkFormat(flags *pflag.FlagSet, format string) error {
	if _, ok := formats[format]; !ok {
		names := formatNames()
		last := len(names) - 1
		return misuse(fmt.Errorf("unknown format %q; there are %s and %s", format, strings.Join(names[:last], ", "), names[last]))
	}
	var errs []error
	flags.Visit(func(f *pflag.Flag) {
		if of := f.Annotations[formatOf]; len(of) > 0 && of[0] != format {
			errs = append(errs, fmt.Errorf("--%s: it goes with format %s, and this is %s", f.Name, of[0], format))
		}
	})
	return misuse(errors.Join(errs...))
}

func runIngest(ctx context.Context, stdout, stderr io.Writer, format, src, out string, o ingestOptions) error {
	if err := errors.Join(o.Validate(), o.tables.Validate()); err != nil {
		return misuse(err)
	}
	source, err := formats[format].open(src, &o)
	if err != nil {
		if _, serr := os.Stat(src); errors.Is(err, fs.ErrNotExist) && errors.Is(serr, fs.ErrNotExist) {
			return fmt.Errorf("%s: no such file or directory", src)
		}
		return err
	}
	defer source.Close()
	report, err := build(ctx, stderr, source, out, o.Options)
	if err != nil {
		return err
	}
	if o.json {
		return printJSON(stdout, report)
	}
	printReport(stdout, report)
	return nil
}

// build shows progress on stderr.
func build(ctx context.Context, stderr io.Writer, source ingest.Source, out string, o ingest.Options) (*ingest.Report, error) {
	p := newProgress(stderr)
	defer p.clear()
	o.Progress = func(at ingest.Progress) { p.show(at.Stage, at.Done, at.Total, at.Unit) }
	return ingest.Build(ctx, source, out, o)
}

func printReport(w io.Writer, r *ingest.Report) {
	for _, t := range r.NodeTypes {
		fmt.Fprintf(w, "%-9s %s nodes, by %s\n", t.Name, count(t.Count), r.Order)
	}
	for _, e := range r.Relations {
		fmt.Fprintf(w, "%-9s %s edges from %s read", "edges", count(e.Edges), count(e.EdgesRead))
		for _, c := range []struct {
			n    int64
			what string
		}{{e.ReverseAdded, "reverse edges added"}, {e.DuplicatesMerged, "duplicates merged"}, {e.Duplicates - e.DuplicatesMerged, "duplicates kept"}, {e.SelfLoops, "self loops"}} {
			if c.n > 0 {
				fmt.Fprintf(w, ", %s %s", count(c.n), c.what)
			}
		}
		fmt.Fprintln(w)
	}
	for _, t := range r.Tables {
		fmt.Fprintf(w, "%-9s %s: %d × %s", "features", t.Name, t.Dim, t.DType)
		if t.Made {
			fmt.Fprint(w, ", made")
		}
		if t.Overflowed > 0 {
			fmt.Fprintf(w, ", %s values clamped", count(t.Overflowed))
		}
		fmt.Fprintln(w)
	}
	for _, l := range r.Labels {
		fmt.Fprintf(w, "%-9s %s: %d classes, %s nodes without\n", "labels", l.Name, l.Classes, count(l.Missing))
	}
	for _, s := range r.Splits {
		fmt.Fprintf(w, "%-9s %s: %s train, %s valid, %s test\n", "split", s.Name, count(int64(s.Train)), count(int64(s.Valid)), count(int64(s.Test)))
	}
	for _, n := range append(r.Dropped, r.Notes...) {
		fmt.Fprintf(w, "%-9s %s\n", "note", n)
	}
	fmt.Fprintf(w, "%-9s %s in %s, seal %s\n", "sealed", r.Path, seconds(r.Seconds), r.Seal)
	fmt.Fprintf(w, "%-9s %s on disk\n", "", size(r.Bytes))
}
