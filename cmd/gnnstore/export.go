package main

import (
	"context"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/export"
	"github.com/gnnstore/gnnstore/store/setting"
)

type exportOptions struct {
	export.Options
	format string
	json   bool
}

func newExport() *cobra.Command {
	var o exportOptions
	cmd := &cobra.Command{
		Use:   "export DATASET OUT",
		Short: "Write a dataset, or a sample of it, for other programs",
		Long: "Write a dataset, or a sampled sub-graph of it, to the folder OUT, which must not exist, under the ids that users know.\n\n" +
			"Formats:\n" +
			"  npy        arrays for NumPy, in a folder for each node type and relation\n" +
			"  parquet    a table for each node type and relation, and for each stream of events, as ingest events reads it\n" +
			"  graphbolt  metadata.yaml and arrays, as DGL's GraphBolt reads them\n\n" +
			"A sample burns like a forest fire from training nodes, so that neighbourhoods stay together, and keeps the edges\n" +
			"among its nodes.",
		Example: "  gnnstore export arxiv.gnn arxiv-npy\n" +
			"  gnnstore export papers.gnn small --format graphbolt --sample 100k",
		Args: exactArgs("DATASET", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o.Format = export.Format(o.format)
			if err := o.Validate(); err != nil {
				return misuse(err)
			}
			return runExport(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.format, "format", "", "npy, parquet or graphbolt (default npy; of a stream of events parquet)")
	f.Var(setting.Counted(&o.Sample, 1), "sample", "number of nodes of a sample, such as 100k (default all)")
	f.Uint64Var(&o.Seed, "seed", 1, "seed of the sample")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	return cmd
}

func runExport(ctx context.Context, stdout, stderr io.Writer, path, out string, o exportOptions) error {
	ds, err := openDataset(stderr, path, 0)
	if err != nil {
		return err
	}
	defer ds.Close()
	p := newProgress(stderr)
	defer p.clear()
	o.Progress = func(at ingest.Progress) { p.show(at.Stage, at.Done, at.Total, at.Unit) }
	report, err := export.Export(ctx, ds, out, o.Options)
	if err != nil {
		return err
	}
	p.clear()
	for i, text := range report.Skipped {
		report.Skipped[i] = withFlags(text)
	}
	if o.json {
		return printJSON(stdout, report)
	}
	wide := 9
	for _, t := range report.NodeTypes {
		wide = max(wide, len(t.Name))
	}
	for _, r := range report.Relations {
		wide = max(wide, len(r.Name))
	}
	for _, t := range report.NodeTypes {
		printf(stdout, "%-*s %s nodes\n", wide, t.Name, count(t.Count))
	}
	for _, r := range report.Relations {
		printf(stdout, "%-*s %s edges\n", wide, r.Name, count(r.Edges))
	}
	for _, s := range report.Streams {
		printf(stdout, "%-*s %s events\n", wide, s.Name, count(s.Events))
	}
	for _, s := range report.Skipped {
		printf(stdout, "%-9s %s\n", "note", s)
	}
	printf(stdout, "%-9s %s as %s in %s: %s in %s files\n", "written", report.Path, report.Format, seconds(report.Seconds), size(report.Bytes), count(int64(report.Files)))
	for _, s := range report.Streams {
		printf(stdout, "again: gnnstore ingest events %s %s.gnn %s\n", filepath.Join(report.Path, s.File), filepath.Base(report.Path), strings.Join(s.Ingest, " "))
	}
	return nil
}
