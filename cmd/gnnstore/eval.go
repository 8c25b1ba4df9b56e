package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/infer"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// networkOptions say which weights of a run are used: of eval and predict.
type networkOptions struct {
	train.NetworkOptions
	tmp string
}

// networkRows declares the options of a T that uses the network of a run. at returns them, and tmp
// is the default of {tmp}, for its help.
func networkRows[T any](at func(*T) *networkOptions, tmp string) setting.Table[T] {
	return setting.Table[T]{
		{Key: "checkpoint",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).Checkpoint), "best", "last") },
			Help: "weights to use: best, which validation chose, or last (default best where there is one)"},
		{Key: "older_checkpoint",
			In:   func(o *T) setting.Value { return setting.Bool(&at(o).OlderCheckpoint) },
			Help: "if the newest checkpoint is damaged or missing, use an earlier one (default: refuse)"},
		{Key: "unseen",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).Unseen), "mean") },
			Help: "input of nodes of another DATASET whose ids have no learnt row in the run: mean, of all rows of their type (default: refuse)"},
		{Key: "memory_bytes", Flag: "memory",
			In:   func(o *T) setting.Value { return setting.Bytes(&at(o).MemoryBytes) },
			Help: "memory limit of the whole process (default that of the run)"},
		{Key: "way",
			In: func(o *T) setting.Value {
				return setting.Hint(setting.Word(&at(o).Hold).Or("auto", infer.HoldAuto), infer.HoldRows, infer.HoldSums)
			},
			Help: "what a layer holds in memory while it reads the one below: rows, sums, or auto, the one that reads for less time"},
		{Key: "tmp",
			In:   func(o *T) setting.Value { return setting.Word(&at(o).tmp) },
			Help: "directory for what does not fit in memory: hidden rows, and of a stream the state of nodes (default " + tmp + ")"},
		{Key: "layer_dtype",
			In:   func(o *T) setting.Value { return setting.Hint(setting.Word(&at(o).LayerDtype), "f32", "f16") },
			Help: "how hidden rows are stored on disk: f32, or f16, which takes half and rounds them (default the run's)"},
	}
}

// followSpace has p say what hidden rows take on disk.
func (n *usedNetwork) followSpace(p *progress, where string, beside int64) {
	n.FollowSpace(beside, func(bytes, free int64) {
		if bytes > 0 && free >= 0 {
			p.line("disk: hidden rows take up to %s in %s, where %s are free", size(bytes), where, size(free))
		}
	})
}

// usedNetwork is a run's network with the dataset that it is used on.
type usedNetwork struct {
	*train.Network
	ds  *store.Dataset
	dir *run.Dir
	run string
}

func (n *usedNetwork) Close() error {
	return errors.Join(n.Network.Close(), n.ds.Close(), n.dir.Close())
}

// used is the part of a result that names the network and the dataset it was used on.
type used struct {
	Run     string `json:"run"`
	Dataset string `json:"dataset"`
	Seal    string `json:"seal"`
	run.Used
}

func (n *usedNetwork) used() used {
	return used{n.run, n.ds.Path(), n.ds.Manifest().Seal, n.Used}
}

// openIn is open with a scratch directory for hidden rows; done removes it.
func (o *networkOptions) openIn(ctx context.Context, stderr io.Writer, p *progress, runPath, path string) (_ *usedNetwork, done func(), err error) {
	dir, done, err := scratchDir(cmp.Or(o.tmp, systemTmp()))
	if err != nil {
		return nil, func() {}, err
	}
	o.Scratch = filepath.Join(dir, "layers")
	n, err := o.open(ctx, stderr, p, runPath, path)
	return n, done, err
}

// open opens the network of a run, on the dataset of this path, or on the one that it trained on
// where path is empty.
func (o *networkOptions) open(ctx context.Context, stderr io.Writer, p *progress, runPath, path string) (_ *usedNetwork, err error) {
	dir, err := run.Look(runPath)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			dir.Close()
		}
	}()
	record := dir.Record()
	if path, err = datasetOf(p, dir, path); err != nil {
		return nil, err
	}
	ds, err := openGraph(stderr, path, cmp.Or(o.MemoryBytes, record.Options.MemoryBytes), "the run learnt from relations")
	if err != nil {
		return nil, err
	}
	n, err := train.OpenNetwork(ctx, ds, dir, o.NetworkOptions, run.Hooks{
		Note: func(s string) { p.line("note: %s", withFlags(s)) }, Text: withFlags,
	})
	if err != nil {
		return nil, errors.Join(err, ds.Close())
	}
	return &usedNetwork{n, ds, dir, runPath}, nil
}

// datasetOf returns path, or the path of the dataset that a run trained on if path is empty.
func datasetOf(p *progress, dir *run.Dir, path string) (string, error) {
	if dir.Found() != "" {
		p.line("note: %s", withFlags(dir.Found()))
	}
	trained := dir.Record().Dataset
	if _, err := os.Stat(trained); path == "" && errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("run %s: its dataset %s is not there any more; give the place of it as DATASET", dir.Path(), trained)
	}
	return cmp.Or(path, trained), nil
}

// evalResult is the output of eval. Its JSON keys are stable.
type evalResult struct {
	used
	Metric       metric.Kind      `json:"metric"`
	Parts        []train.Measured `json:"parts"`
	PeakRSSBytes int64            `json:"peak_rss_bytes"`
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
			"change.",
		Example: "  gnnstore eval runs/arxiv-1\n" +
			"  gnnstore eval runs/arxiv-1 --nodes test --metric macro-f1 --checkpoint last\n" +
			"  gnnstore eval runs/cites-1 --metric mrr --eval-negatives uniform:1000\n" +
			"  gnnstore eval runs/wiki-1 --labels before",
		Args: oneOf("RUN", "RUN DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			errs := []error{flags.Check(&evalOptions{}), o.Validate()}
			for _, part := range o.nodes {
				if !slices.Contains(train.LabelledParts, part) {
					errs = append(errs, fmt.Errorf("--nodes %s: there are %s", part, strings.Join(train.LabelledParts, ", ")))
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
	{Key: "nodes",
		In:   func(o *evalOptions) setting.Value { return setting.Words(&o.nodes) },
		Help: "parts to measure, of nodes, links or edges: " + strings.Join(train.LabelledParts, ", ")},
	{Key: "metric",
		In: func(o *evalOptions) setting.Value {
			return setting.Hint(setting.Word(&o.Metric).Alias("auc", metric.ROCAUC), run.MetricWords...)
		},
		Help: "accuracy, micro-f1, macro-f1 or roc-auc, auc for short; of links auc, ap, mrr or hits@K; of numbers rmse or mae (default that of the run)"},
	{Key: "eval_negatives",
		In:   func(o *evalOptions) setting.Value { return setting.Word(&o.EvalNegatives) },
		Help: "link: how to draw negatives: pairs:N, uniform:N or given, as in training; streams: uniform:N or given (default as in the run)"},
	{Key: "labels",
		In: func(o *evalOptions) setting.Value { return setting.Word(&o.labels, "before", "after") },
		Help: "streams: measure how well embeddings tell the labels of events, or of nodes at times: before or after, which embeds right before " +
			"or right after the event or time"},
}, networkRows(func(o *evalOptions) *networkOptions { return &o.networkOptions }, "the system's for temporary files"), setting.Table[evalOptions]{
	{Key: "json",
		In:   func(o *evalOptions) setting.Value { return setting.Bool(&o.json) },
		Help: "print the result as JSON"},
})

func runEval(ctx context.Context, stdout, stderr io.Writer, runPath, dataset string, o *evalOptions) (err error) {
	p := newProgress(stderr)
	defer p.clear()
	dir, err := run.Look(runPath)
	if err != nil {
		return err
	}
	defer dir.Close()
	switch {
	case dir.Record().Options.Streams():
		return o.evalStream(ctx, stdout, stderr, p, dir, dataset)
	case o.labels != "":
		return fmt.Errorf("run %s: --labels goes with runs on streams, whose events may have some", runPath)
	}
	n, done, err := o.openIn(ctx, stderr, p, runPath, dataset)
	defer done()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	n.followSpace(p, filepath.Dir(filepath.Dir(o.Scratch)), 0)
	r := evalResult{
		used:   n.used(),
		Metric: n.Metric(), Parts: []train.Measured{},
	}
	if !o.json {
		printf(stdout, "%s weights, of epoch %d\n", r.Checkpoint, r.Epoch)
	}
	for i, part := range o.nodes {
		p.show("measure "+part, int64(i), int64(len(o.nodes)), "parts")
		n.Follow(func(layer, layers int, kind string, done, nodes int) {
			p.show(fmt.Sprintf("measure %s, layer %d of %d, %s", part, layer, layers, kind), int64(done), int64(nodes), "nodes")
		})
		m, err := n.Measure(ctx, part)
		if err != nil {
			return err
		}
		r.Parts = append(r.Parts, m)
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
			printf(stdout, "%-12s without a network, by %s: %s%s\n", "", m.BaselineOf, measured(r.Metric, m.Baseline), notAbove(r.Metric, m))
		}
		if m.Constant != "" {
			printf(stdout, "%-12s the network gives one answer for all of them, %s\n", "", clean(m.Constant))
		}
	}
	r.PeakRSSBytes = n.PeakRSSBytes()
	if o.json {
		return printJSON(stdout, r)
	}
	return nil
}

// notAbove returns a note if the network is no better than the answer without one.
func notAbove(k metric.Kind, m train.Measured) string {
	if m.Value == nil || k.Better(*m.Value, *m.Baseline) {
		return ""
	}
	return ", and the network is not better"
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
