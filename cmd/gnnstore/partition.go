package main

import (
	"context"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/partition"
)

type partitionOptions struct {
	partition.Options
	json bool
}

func newPartition() *cobra.Command {
	var o partitionOptions
	cmd := &cobra.Command{
		Use:   "partition DATASET OUT",
		Short: "Divide a dataset into parts, one for each worker that trains",
		Long: "Divide a dataset into parts, so that a machine stores only the parts of its own workers. The directory\n" +
			"OUT, which must not exist, gets part-0.gnn, part-1.gnn, and so on. Each has the neighbour lists, the\n" +
			"columns of edges and the features of its own nodes, and all labels, splits and held-out edges.\n\n" +
			"Give OUT to gnnstore train in place of the dataset: it starts one worker for each part. On each machine,\n" +
			"OUT needs only the parts of that machine's workers.\n\n" +
			"--by says which nodes a part gets:\n\n" +
			"  rule  the first nodes, often the hubs, one by one, the others in blocks of 64; edges do not count\n" +
			"  ldg   each node goes where it has many neighbours and there is room: linear deterministic greedy, in\n" +
			"        five passes. No part has more than 1.03 times the mean (rounded up) of the nodes of a type that\n" +
			"        train, nor of the others; its edges may be more. Neighbours of all types count, along the\n" +
			"        edges to the node: ingest edges of one direction with --undirected or --reverse\n" +
			"  FILE  each line is the part of a node, a number from 0, as METIS's gpmetis writes it. Lines go by\n" +
			"        ascending ids, as users know them; where ids are texts, by their order in the source. With several\n" +
			"        node types give --by TYPE=FILE for each\n\n" +
			"ldg and FILE take 9 bytes of memory a node. They number the nodes anew, part by part, so networks draw\n" +
			"other neighbours and get other weights than from DATASET. Predictions have the ids of DATASET.\n\n" +
			"Names stay with DATASET. A dataset with a stream is refused.",
		Example: "  gnnstore partition papers.gnn papers-parts --parts 4 --by ldg\n" +
			"  gnnstore train papers-parts --dist local:4",
		Args: exactArgs("DATASET", "OUT"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runPartition(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], args[1], o)
		},
	}
	f := cmd.Flags()
	f.IntVar(&o.Parts, "parts", 0, "number of parts, from 2 on")
	f.StringArrayVar(&o.By, "by", nil, "which nodes a part gets, as `rule`, ldg, FILE, or TYPE=FILE for each node type (default rule)")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
	_ = cmd.MarkFlagRequired("parts")
	return cmd
}

func runPartition(ctx context.Context, stdout, stderr io.Writer, path, out string, o partitionOptions) error {
	ds, err := openDataset(stderr, path, 0)
	if err != nil {
		return err
	}
	defer ds.Close()
	p := newProgress(stderr)
	defer p.clear()
	o.Progress = p.show
	if memory, err := kernels.SystemMemory(); err == nil {
		o.Memory = memory
	}
	r, err := partition.Write(ctx, ds, out, o.Options)
	if err != nil {
		return err
	}
	p.clear()
	if o.json {
		return printJSON(stdout, r)
	}
	printf(stdout, "%-9s %s of %s edges have their ends in different parts\n", "crossing",
		percent(r.CrossEdges), count(r.Edges.Total))
	for _, l := range []struct {
		what string
		load partition.Load
		text func(int64) string
	}{{"nodes", r.Nodes, count}, {"edges", r.Edges, count}, {"bytes", r.Bytes, size}, {"train", r.TrainNodes, count}} {
		if l.load.Total == 0 {
			continue
		}
		printf(stdout, "%-9s %s in all; part %d has most, %s, %.2f times the mean\n", l.what, l.text(l.load.Total),
			l.load.Part, l.text(l.load.Largest), l.load.Skew(r.Parts))
	}
	for _, s := range slices.Concat(r.Skipped, r.Notes) {
		printf(stdout, "%-9s %s\n", "note", s)
	}
	printf(stdout, "%-9s %s parts in %s in %s; train them: gnnstore train %s --dist local:%d\n", "written",
		count(int64(r.Parts)), r.Path, seconds(r.Seconds), r.Path, r.Parts)
	return nil
}
