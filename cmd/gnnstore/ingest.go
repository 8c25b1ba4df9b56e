package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/auto"
	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/ingest/table"
	"github.com/gnnstore/gnnstore/store/setting"
)

type ingestOptions struct {
	buildOptions
	source sourceOptions
	infer  bool
	format string
}

func newIngest() *cobra.Command {
	o := ingestOptions{buildOptions: defaultBuild()}
	var given *setting.Bound[ingestOptions]
	var about []string
	for _, n := range formatNames() {
		about = append(about, fmt.Sprintf("  %-10s %s", n, formats[n].about))
	}
	about = append(about, fmt.Sprintf("  %-10s %s", autoFormat, "finds out which of them it is, and says why"))
	cmd := &cobra.Command{
		Use:   "ingest FORMAT SRC OUT",
		Short: "Read raw graph data into a sealed dataset",
		Long: "Read raw graph data from SRC into a sealed dataset at OUT, which must not exist. FORMAT is one of\n  " +
			strings.Join(wrap(strings.Join(append(formatNames(), autoFormat), ", "), 98), "\n  ") + ".\n" +
			"auto finds out which format SRC has. gnnstore help formats describes them.\n\n" +
			"OUT is whole or absent: until it is sealed, the work is in OUT.partial. What does not fit in --memory is sorted on disk.\n" +
			"An ingest that was killed goes on after the last pass it finished when the same command runs again.\n\nFormats:\n" + strings.Join(about, "\n"),
		Example: "  gnnstore ingest auto raw/ogbn_arxiv arxiv.gnn --features fastrp:128 --undirected\n" +
			"  gnnstore ingest ogb raw/papers100M-bin papers.gnn --memory 4GiB --plan\n" +
			"  gnnstore ingest npz amazon_electronics_computers.npz computers.gnn --undirected --split per-class:20/30\n" +
			"  gnnstore ingest csv facebook_edges.csv facebook.gnn --undirected \\\n" +
			"    --nodes facebook_target.csv --label page_type --node-features facebook.json\n" +
			"  gnnstore ingest events ml_wikipedia.txt wiki.gnn --bipartite --edge-features random:16\n" +
			"  gnnstore ingest mag240m mag240m_kddcup2021 mag.gnn --undirected --reverse --features mean --plan\n" +
			"  gnnstore ingest table --infer tables/ > tables/schema.yaml\n" +
			"  gnnstore ingest table tables/schema.yaml shop.gnn --features random:64",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.infer {
				return exactArgs("FORMAT", "DIR")(cmd, args)
			}
			return exactArgs("FORMAT", "SRC", "OUT")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := given.Err(); err != nil {
				return misuse(err)
			}
			format := args[0]
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
			return runIngest(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), format, src, args[2], o)
		},
	}
	given = bindTable(cmd, ingestTable, &o)
	return cmd
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
