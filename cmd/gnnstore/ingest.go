package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/auto"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/store/setting"
)

type ingestOptions struct {
	buildOptions
	source   sourceOptions
	infer    bool
	template bool
	format   string
}

// newIngest returns the command ingest, with a subcommand for each format. The command reads
// formats itself too, since flags may come before the format, and the format may be unknown.
// newRoot explains line.
func newIngest(line []string) *cobra.Command {
	var about []string
	for _, n := range formatNames() {
		about = append(about, fmt.Sprintf("  %-10s %s", n, formats[n].about))
	}
	about = append(about, fmt.Sprintf("  %-10s %s", autoFormat, autoAbout))
	cmd := &cobra.Command{
		Use:   "ingest FORMAT SRC OUT",
		Short: "Read raw graph data into a sealed dataset",
		Long: "Read raw graph data from SRC into a sealed dataset at OUT, which must not exist. FORMAT is one of\n  " +
			strings.Join(wrap(strings.Join(append(formatNames(), autoFormat), ", "), 98), "\n  ") + ".\n" +
			"auto finds out which format SRC has. gnnstore ingest FORMAT --help shows the flags of one.\n\n" +
			aboutOut + "\n\nFormats:\n" + strings.Join(about, "\n"),
		Example: "  gnnstore ingest auto raw/ogbn_arxiv arxiv.gnn --features fastrp:128 --undirected\n" +
			"  gnnstore ingest ogb raw/papers100M-bin papers.gnn --memory 4GiB --plan\n" +
			"  gnnstore ingest npz amazon_electronics_computers.npz computers.gnn --undirected --split per-class:20/30\n" +
			"  gnnstore ingest csv facebook_edges.csv facebook.gnn --undirected \\\n" +
			"    --nodes facebook_target.csv --label page_type --node-features facebook.json\n" +
			"  gnnstore ingest events ml_wikipedia.txt wiki.gnn --bipartite --edge-features random:16\n" +
			"  gnnstore ingest mag240m mag240m_kddcup2021 mag.gnn --undirected --reverse --features mean --plan\n" +
			"  gnnstore ingest table --infer tables/ > tables/schema.yaml\n" +
			"  gnnstore ingest table tables/schema.yaml shop.gnn --features random:64",
	}
	bindIngest(cmd, "")
	for _, name := range append(formatNames(), autoFormat) {
		sub := ingestOf(name)
		if line == nil || slices.Contains(line, name) {
			giveFlags(sub, name)
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

const (
	autoAbout = "finds out which of them it is, and says why"
	aboutOut  = "OUT is whole or absent: until it is sealed, the work is in OUT.partial. What does not fit in --memory is sorted on disk.\n" +
		"An ingest that was killed goes on after the last pass it finished when the same command runs again."
)

// ingestOf returns the command of one format. giveFlags adds its flags and its work.
func ingestOf(format string) *cobra.Command {
	about, examples := formats[format].about, formats[format].examples
	if format == autoFormat {
		about = "a graph in any of the other formats; auto " + autoAbout
		examples = []string{"raw/ogbn_arxiv arxiv.gnn --features fastrp:128 --undirected", "download.zip graph.gnn"}
	}
	var lines []string
	for _, e := range examples {
		lines = append(lines, "  gnnstore ingest "+format+" "+e)
	}
	return &cobra.Command{
		Use:     format + " SRC OUT",
		Short:   about,
		Long:    strings.Join(wrap("Read SRC into a sealed dataset at OUT, which must not exist. SRC is "+about+".", 98), "\n") + "\n\n" + aboutOut,
		Example: strings.Join(lines, "\n"),
		Run:     func(*cobra.Command, []string) {}, // completion lists only commands that have a Run
	}
}

// giveFlags completes the command of one format. It accepts the flags of all formats, so that a
// message can name the formats that take a flag. Its help lists only the flags of this format.
func giveFlags(cmd *cobra.Command, format string) {
	bindIngest(cmd, format)
	if format != autoFormat {
		showOnly(cmd, format)
	}
	groupFlags(cmd)
}

// bindIngest gives cmd the flags of ingest, and makes it read a format. If format is empty, the
// first argument names it.
func bindIngest(cmd *cobra.Command, format string) {
	o := ingestOptions{buildOptions: defaultBuild()}
	given := bindTable(cmd, ingestTable, &o)
	cmd.Args = func(cmd *cobra.Command, args []string) error {
		names := []string{"FORMAT", "SRC", "OUT"}
		switch {
		case o.template:
			names = []string{"FORMAT"}
		case o.infer:
			names = []string{"FORMAT", "DIR"}
		}
		if format != "" {
			names = names[1:]
		}
		return exactArgs(names...)(cmd, args)
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := given.Err(); err != nil {
			return misuse(err)
		}
		if format != "" {
			args = append([]string{format}, args...)
		}
		return o.read(cmd, given, args)
	}
}

// read ingests a source. args are FORMAT, SRC and OUT, with --infer FORMAT and DIR, and with
// --template FORMAT alone.
func (o *ingestOptions) read(cmd *cobra.Command, given *setting.Bound[ingestOptions], args []string) error {
	format := args[0]
	if o.template {
		if format != "table" {
			return misuse(fmt.Errorf("--template: it goes with format table, and this is %s", format))
		}
		_, err := cmd.OutOrStdout().Write(table.Template())
		return err
	}
	if !o.source.follow {
		if err := build.CheckLinks(args[1]); err != nil {
			return err
		}
	}
	if o.infer {
		if format != "table" {
			return misuse(fmt.Errorf("--infer: it goes with format table, and this is %s", format))
		}
		if err := o.source.csv.Validate(); err != nil {
			return misuse(err)
		}
		text, err := table.Infer(args[1], table.Options{
			Decimal: o.source.csv.Decimal, Thousands: o.source.csv.Thousands, Encoding: o.source.csv.Encoding,
		})
		if err != nil {
			return err
		}
		_, err = cmd.OutOrStdout().Write(text)
		return err
	}
	format, src, err := resolveFormat(cmd.ErrOrStderr(), format, args[1])
	if err != nil {
		return err
	}
	if err := checkFormat(format); err != nil {
		return err
	}
	o.format = format
	if err := given.Check(&ingestOptions{buildOptions: defaultBuild()}); err != nil {
		return misuse(err)
	}
	o.complete(given.Given)
	o.source.oneLabel = given.Given("multi_label") && !o.source.multiLabel
	if o.source.likePath != "" {
		if o.source.like, err = likeOf(o.source.likePath); err != nil {
			return err
		}
		if set := o.follow(o.source.like, given.Given); len(set) > 0 {
			printf(cmd.ErrOrStderr(), "as %s: %s\n", o.source.likePath, withFlags(strings.Join(set, ", ")))
		}
		if o.source.like.Silent {
			printf(cmd.ErrOrStderr(), "%s was made by an earlier build and says nothing of its columns: "+
				"those of %s are taken to be the same, in their order\n", o.source.likePath, src)
		}
	}
	return runIngest(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), format, src, args[2], *o)
}

// showOnly removes the flags of other formats from the help of a format, and the parts of help
// texts that are for other formats.
func showOnly(cmd *cobra.Command, format string) {
	for _, row := range ingestTable {
		if row.For == nil {
			continue
		}
		f := cmd.Flags().Lookup(row.FlagName())
		f.Hidden = !row.For.Has(&ingestOptions{format: format})
		f.Usage = helpFor(format, f.Usage)
		if brief := f.Annotations[setting.BriefOf]; brief != nil {
			brief[0] = helpFor(format, brief[0])
		}
	}
	cmd.Flags().VisitAll(func(f *pflag.Flag) {
		if group := f.Annotations[setting.GroupOf]; group != nil {
			group[0], _, _ = strings.Cut(group[0], " (")
		}
	})
}

// helpFor returns the parts of a help text that are for one format. Semicolons separate the parts.
// A part may begin with names of formats and a colon, as in "csv, events: column of sources". A
// part without names is for the same formats as the part before it.
func helpFor(format, text string) string {
	var parts []string
	wanted := true
	for _, part := range strings.Split(text, "; ") {
		for {
			names, rest := formatsOf(part)
			if names == nil {
				break
			}
			part, wanted = rest, slices.Contains(names, format)
		}
		if wanted {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, "; ")
}

// formatsOf splits a help text into the names of formats that it begins with, and the rest.
func formatsOf(text string) (names []string, rest string) {
	front, rest, found := strings.Cut(text, ": ")
	names = strings.Split(front, ", ")
	if !found || slices.ContainsFunc(names, func(name string) bool { _, known := formats[name]; return !known }) {
		return nil, text
	}
	return names, rest
}

func runIngest(ctx context.Context, stdout, stderr io.Writer, format, src, out string, o ingestOptions) error {
	serr := o.source.validate(format, &o.buildOptions) // it settles options of the build as well
	if err := errors.Join(o.Validate(), serr); err != nil {
		return misuse(err)
	}
	if err := o.fits(); err != nil {
		return err
	}
	source, err := openSource(format, src, &o.source)
	if err != nil {
		return auto.Explain(src, err)
	}
	defer source.Close()
	if o.source.like != nil {
		source = ingest.Follow(source, src, o.source.like)
	}
	return auto.Explain(src, o.run(ctx, stdout, stderr, source, out))
}

// openSource opens a raw graph, and says simply when there is nothing.
func openSource(format, src string, o *sourceOptions) (ingest.Source, error) {
	source, err := formats[format].open(src, o)
	if err != nil {
		if _, serr := os.Stat(src); errors.Is(err, fs.ErrNotExist) && errors.Is(serr, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: no such file or directory", src)
		}
		return nil, err
	}
	return source, nil
}
