package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sort"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/npz"
	"github.com/gnnstore/gnnstore/ingest/ogb"
)

// formats are the readers by the name that the user gives.
var formats = map[string]struct {
	about string
	open  func(path string) (ingest.Source, error)
}{
	"npz": {"a scipy CSR graph in one .npz: adj_*, attr_*, labels", func(p string) (ingest.Source, error) { return opened(npz.Open(p)) }},
	"ogb": {"an OGB node-property dataset: raw/*.csv.gz, split/", func(p string) (ingest.Source, error) { return opened(ogb.Open(p)) }},
}

// opened keeps a nil pointer from becoming a Source that is not nil.
func opened[S ingest.Source](s S, err error) (ingest.Source, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

type ingestOptions struct {
	ingest.Options
	order, dtype string
	json         bool
}

func newIngest() *cobra.Command {
	var o ingestOptions
	var names []string
	for n, f := range formats {
		names = append(names, fmt.Sprintf("  %-5s %s", n, f.about))
	}
	sort.Strings(names)
	cmd := &cobra.Command{
		Use:   "ingest FORMAT SRC OUT",
		Short: "Read raw graph data into a sealed dataset",
		Long: "Read raw graph data from SRC into a sealed dataset at OUT, which must not exist.\n" +
			"OUT is whole or absent: until it is sealed, the work is in OUT.partial.\n\nFormats:\n" + strings.Join(names, "\n"),
		Example: "  gnnstore ingest npz amazon_electronics_computers.npz computers.gnn --undirected --split per-class:20/30\n" +
			"  gnnstore ingest ogb raw/ogbn_arxiv arxiv.gnn --features fastrp:128 --undirected",
		Args: exactArgs("FORMAT", "SRC", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Order, o.DType = ingest.Order(o.order), ingest.DType(o.dtype)
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
	return cmd
}

func runIngest(ctx context.Context, stdout, stderr io.Writer, format, src, out string, o ingestOptions) error {
	reader, ok := formats[format]
	if !ok {
		return misuse(fmt.Errorf("unknown format %q; there are npz and ogb", format))
	}
	if err := o.Validate(); err != nil {
		return misuse(err)
	}
	source, err := reader.open(src)
	if err != nil {
		if _, serr := os.Stat(src); errors.Is(serr, fs.ErrNotExist) {
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
