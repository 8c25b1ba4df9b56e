package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/graph"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// evalResult is the output of eval. Its JSON keys are stable.
type evalResult struct {
	used
	Metric metric.Kind      `json:"metric"`
	Valid  *float64         `json:"valid"` // as in Parts; null: not measured
	Test   *float64         `json:"test"`
	Parts  []graph.Measured `json:"parts"`
	Probe  *graph.Probe     `json:"linear_probe,omitempty"` // of --baseline
	run.Cost
}

type evalOptions struct {
	networkOptions
	nodes  []string
	labels string // of events: before or after these
	json   bool
	given  func(flag string) bool
}

func newEval() *cobra.Command {
	o := &evalOptions{nodes: []string{"train", "valid", "test"}}
	var flags *setting.Bound[evalOptions]
	cmd := &cobra.Command{
		Use:   "eval RUN [DATASET]",
		Short: "Measure the network of a run",
		Long: "Measure the network of the run in directory RUN on parts of its split, by any metric, over all neighbours of each node.\n" +
			"The network is that of the best epoch, as in the test accuracy at the end of a training. DATASET is needed where the\n" +
			"dataset has moved, and may be another one of the same types, relations, widths and classes. A run that is under way may\n" +
			"be measured, unless it has learnt rows.\n\n" +
			"A run of --task link is measured on the parts of its edge split, among the negatives that its evaluation had. Of the links\n" +
			"that it was trained on it takes as many as of the larger other part; messages pass along them, so they score better.\n\n" +
			"A run on a stream of events is replayed from the first event on, as at the end of a training. That gives AP and AUC\n" +
			"of the valid and the test part, MRR if negatives came with the dataset or --eval-negatives says uniform:N, and on\n" +
			"test the scores that need no network. With --labels it measures how well embeddings tell the classes of sources, if\n" +
			"events have some, or of nodes at times of their own; they are made right before that time, or right after it. A\n" +
			"classifier of two layers is learnt on the training part, two classes in equal shares, and the network does not\n" +
			"change.\n\n" +
			"With --baseline it also fits a linear model of each node's own columns and degrees to the training nodes, and measures\n" +
			"that beside the network.",
		Example: "  gnnstore eval runs/arxiv-1\n" +
			"  gnnstore eval runs/arxiv-1 --nodes test --metric macro-f1 --checkpoint last\n" +
			"  gnnstore eval runs/arxiv-1 --nodes valid,test --baseline\n" +
			"  gnnstore eval runs/cites-1 --metric mrr --eval-negatives uniform:1000\n" +
			"  gnnstore eval runs/wiki-1 --labels before",
		Args: oneOf("RUN", "RUN DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := []error{flags.Check(&evalOptions{}), o.Validate()}
			for _, part := range o.nodes {
				if !slices.Contains(graph.LabelledParts, part) {
					errs = append(errs, fmt.Errorf("--nodes %s: there are %s", part, strings.Join(graph.LabelledParts, ", ")))
				}
			}
			if err := errors.Join(errs...); err != nil {
				return misuse(err)
			}
			o.given = cmd.Flags().Changed
			return runEval(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], append(args[1:], "")[0], o)
		},
	}
	flags = bindTable(cmd, evalTable, o)
	return cmd
}

// evalTable declares the options of eval.
var evalTable = slices.Concat(setting.Table[evalOptions]{
	{Key: "nodes", Group: "What to measure",
		In:    func(o *evalOptions) setting.Value { return setting.Words(&o.nodes) },
		Usual: true, Brief: "parts to measure: " + strings.Join(graph.LabelledParts, ", "),
		Help: "parts to measure, of nodes, links or edges: " + strings.Join(graph.LabelledParts, ", ")},
	{Key: "metric",
		In: func(o *evalOptions) setting.Value {
			return setting.Hint(setting.Word(&o.Metric).Alias("auc", string(metric.ROCAUC)), run.MetricWords...)
		},
		Usual: true, Brief: "accuracy, macro-f1, auc or another one (default that of the run)",
		Help: "accuracy, micro-f1, macro-f1 or roc-auc, auc for short; of links auc, ap, mrr or hits@K; of numbers rmse or mae (default that of the run)"},
	{Key: "baseline",
		In:    func(o *evalOptions) setting.Value { return setting.Bool(&o.Probe) },
		Usual: true, Brief: "measure a linear model of nodes beside the network",
		Help: "of nodes: also fit a linear model of a node's own columns and degrees, and measure it beside the network"},
	{Key: "eval_negatives",
		In:    func(o *evalOptions) setting.Value { return setting.Word(&o.EvalNegatives) },
		Usual: true, Brief: "link: how to draw negatives: pairs:N, uniform:N or given",
		Help: "link: how to draw negatives: pairs:N, uniform:N or given, as in training; streams: uniform:N or given (default as in the run)"},
	{Key: "labels",
		In: func(o *evalOptions) setting.Value { return setting.Word(&o.labels, "before", "after") },
		Help: "streams: measure how well embeddings tell the labels of events, or of nodes at times: before or after, which embeds right before " +
			"or right after the event or time"},
	{Key: "json",
		In:    func(o *evalOptions) setting.Value { return setting.Bool(&o.json) },
		Usual: true,
		Help:  "print the result as JSON"},
}, evalNetwork.Pick("The network", "checkpoint", "older-checkpoint", "unseen"),
	evalNetwork.Pick("Memory and disk", "memory", "device", "matmul", "way", "tmp", "layer-dtype"))

var evalNetwork = networkRows(func(o *evalOptions) *networkOptions { return &o.networkOptions }, "the system's for temporary files")

func runEval(ctx context.Context, stdout, stderr io.Writer, runPath, dataset string, o *evalOptions) (err error) {
	if o.group == nil {
		owners, err := ownersOf(runPath, dataset)
		if err != nil {
			return err
		}
		if owners.workers > 0 && o.Probe {
			return fmt.Errorf("run %s: --baseline: the linear model is fitted by one worker that has the whole dataset and all rows; leave it out", runPath)
		}
		if owners.workers > 0 {
			eval := func(ctx context.Context, stdout, stderr io.Writer, g *dist.Group) error {
				own := *o
				own.group = g
				return runEval(ctx, stdout, stderr, runPath, owners.path, &own)
			}
			return owners.together(ctx, stdout, stderr, eval)
		}
	}
	p := newProgress(stderr)
	defer p.clear()
	dir, err := run.Look(runPath)
	if err != nil {
		return err
	}
	defer dir.Close()
	measure := o.measureGraph
	if dir.Record().Options.Streams() {
		if err := o.checkStream(dir); err != nil {
			return err
		}
		measure = o.measureStream
	} else if o.labels != "" {
		return fmt.Errorf("run %s: --labels goes with runs on streams, whose events may have some", runPath)
	}
	u, err := o.use(stderr, p, dir, dataset)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, u.Close()) }()
	return measure(ctx, stdout, p, u)
}

// measureGraph measures the parts of the split, and prints each when it is measured.
func (o *evalOptions) measureGraph(ctx context.Context, stdout io.Writer, p *progress, u *usedRun) error {
	tmp := cmp.Or(o.tmp, systemTmp())
	if err := u.openIn(ctx, p, &o.networkOptions, tmp); err != nil {
		return err
	}
	n := u.network.Graph
	showSpace(p, n, tmp, 0)
	r := evalResult{used: u.used(), Metric: n.Metric(), Parts: []graph.Measured{}}
	if !o.json {
		printf(stdout, "%s\n", r.text())
	}
	if o.Probe {
		var err error
		if r.Probe, err = n.FitProbe(ctx, func(done, all int) { p.show("fit the linear model", int64(done), int64(all), "steps") }); err != nil {
			return err
		}
		if !o.json {
			p.clear()
			printf(stdout, "%s\n", probeText(r.Probe))
		}
	}
	for i, part := range o.nodes {
		p.show("measure "+part, int64(i), int64(len(o.nodes)), "parts")
		showLayers(p, n, "measure "+part+", ")
		m, err := n.Measure(ctx, part)
		if err != nil {
			return err
		}
		r.Parts = append(r.Parts, m)
		switch part {
		case "valid":
			r.Valid = m.Value
		case "test":
			r.Test = m.Value
		}
		if o.json {
			continue
		}
		p.clear()
		value := "-, " + withFlags(m.Why)
		if m.Value != nil {
			value = measured(r.Metric, m.Value)
		}
		of := "nodes"
		switch {
		case n.Links():
			of = "links"
		case n.Edges():
			of = "edges"
		}
		printf(stdout, "%-12s %s %s, %s %s, %s evaluation, %s\n", part, r.Metric, value, count(int64(m.Count)), of, m.Method, seconds(m.Seconds))
		if m.Baseline != nil {
			printf(stdout, "%-12s without a network, by %s: %s%s\n", "", m.BaselineOf, measured(r.Metric, m.Baseline), notAbove(r.Metric, m.Value, *m.Baseline))
		}
		if m.Probe != nil {
			printf(stdout, "%-12s the linear model: %s%s\n", "", measured(r.Metric, m.Probe), notAbove(r.Metric, m.Value, *m.Probe))
		}
		printMeasures(stdout, m.Report, r.Metric, strings.Repeat(" ", 13))
		printRanks(stdout, m.RankedWithin, strings.Repeat(" ", 13))
		if i == len(o.nodes)-1 {
			printClasses(stdout, m.Report)
		}
		if m.Constant != "" {
			printf(stdout, "%-12s the network gives one answer for all of them, %s\n", "", clean(m.Constant))
		}
	}
	r.Cost = u.network.Cost()
	if o.json {
		return printJSON(stdout, r)
	}
	return nil
}

// notAbove returns a note if the network is no better than an answer without one.
func notAbove(k metric.Kind, network *float64, without float64) string {
	if network == nil || k.Better(*network, without) {
		return ""
	}
	return ", and the network is not better"
}

// probeText describes the linear model in a line.
func probeText(b *graph.Probe) string {
	own, degrees := "", "degrees"
	if b.Columns > 0 {
		own = fmt.Sprintf("%s columns and ", count(int64(b.Columns)))
	}
	if len(b.Degrees) == 1 {
		degrees = "degree"
	}
	chosen := "is the best"
	if !b.Validated {
		chosen = "is the middle one, as no validation chose"
	}
	return fmt.Sprintf("linear model of %s%d %s, fitted to %s nodes in %s; of %d L2 strengths %g %s", own,
		len(b.Degrees), degrees, count(int64(b.Train)), seconds(b.Seconds), len(b.L2s), b.L2, chosen)
}

// oneOf accepts the arguments of one of several usages. The shortest usage comes first.
func oneOf(usages ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		for _, u := range usages {
			if names := strings.Fields(u); len(args) <= len(names) || u == usages[len(usages)-1] {
				return exactArgs(names...)(cmd, args)
			}
		}
		return nil
	}
}
