package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

type traceOptions struct {
	trace.Options
	samplers, policies, kappas, caches, batches []string
	fanouts                                     *fanouts
	dependent, svg                              string
	layers                                      int
	inputs                                      named
	edges                                       *edgeInputs
	history                                     *traceHistory
	json                                        bool
}

func newTrace() *cobra.Command {
	o := &traceOptions{Options: trace.DefaultOptions(), dependent: run.Nested}
	o.fanouts = newFanouts(o.Fanouts, nil)
	cmd := &cobra.Command{
		Use:   "trace DATASET",
		Short: "Say what a sampler and a cache would do, without training",
		Long: "Draw batches as training would, without training, and say how many rows they want as they grow, how many different\n" +
			"ones several batches in a row want, and which share of their requests caches would answer.\n\n" +
			"Caches are simulated request by request. static holds the first rows of the dataset, the hot ones where ingest ordered\n" +
			"nodes by degree or access; no policy beats belady but by rows that were there before. They begin empty, and the batches\n" +
			"that fill them are left out. The file of a trace takes 4 bytes a request, in --tmp.\n\n" +
			"Of a dataset of several types each table of rows has its own trace and caches: a share of --cache is of its rows, and a\n" +
			"number is for each table alone, which it holds whole if there are fewer rows. How batches grow counts nodes of all types.\n\n" +
			"--history says what train --history would save: the same batches are drawn with the nodes left out whose hidden rows are there.\n" +
			"Nothing is trained, so that chance says which gradients are small. With --window-memory it plans what the disk does, too. It draws with\n" +
			"ns and κ 1 unless told otherwise, and leaves out how batches grow and caches unless --batches, --cache or --policies are given.",
		Example: "  gnnstore trace arxiv.gnn\n" +
			"  gnnstore trace arxiv.gnn --samplers ns,labor0,labor-star,rw --kappa 1,64,256 --cache 5%,20% --json\n" +
			"  gnnstore trace arxiv.gnn --kappa 1,4,16,64,inf --dependent smoothed --cache 60000 --svg arxiv.svg\n" +
			"  gnnstore trace arxiv.gnn --history --t-stale 20,200 --history-lag 1,100 --history-memory 5%,all --window-memory 16MiB --equal-bytes\n" +
			"  gnnstore trace mag.gnn --target paper --fanout 15,10 --fanout cites=25,15 --fanout affiliated_with=5,0",
		Args: exactArgs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.resolve(cmd.Flags().Changed); err != nil {
				return misuse(err)
			}
			return runTrace(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], o)
		},
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd.Flags())
	return cmd
}

func (o *traceOptions) flags(f *pflag.FlagSet) {
	o.samplers, o.policies = words(o.Samplers), words(o.Policies)
	for _, k := range o.Kappas {
		o.kappas = append(o.kappas, sample.KappaText(k))
	}
	for _, c := range o.Caches {
		o.caches = append(o.caches, c.String())
	}
	f.StringSliceVar(&o.samplers, "samplers", o.samplers, "samplers to draw with: "+texts(sample.Kinds))
	f.Var(o.fanouts, "fanout", fanoutUsage)
	f.IntVar(&o.layers, "layers", 0, "number of hops (default as many as --fanout has)")
	f.StringVar(&o.Target, "target", "", "node type of the seeds, if several have labels and splits, or none has")
	f.StringVar(&o.Relation, "relation", "", relationUsage)
	o.inputs = named{kind: "TYPE=INPUT"}
	f.Var(&o.inputs, "input", "input of a node type, repeatable: TYPE=embed:D, learnt rows of D columns, TYPE=table:NAME or TYPE=constant (default the first table)")
	o.edges = newEdgeInputs(nil)
	f.Var(o.edges, "edge-input", "edge tables whose rows are read, repeatable: RELATION=table, RELATION=table:NAME")
	f.StringSliceVar(&o.kappas, "kappa", o.kappas, "batches in a row that share random numbers; inf: all")
	f.StringVar(&o.dependent, "dependent", o.dependent, "how they share them: nested, the same draws for κ batches (labor-star: the same numbers but not the same draws, since it computes "+
		"probabilities for each batch), or smoothed, numbers that drift over κ batches")
	f.StringSliceVar(&o.caches, "cache", o.caches, "sizes of caches: shares of all rows, or numbers of rows, of each table apart")
	f.StringSliceVar(&o.policies, "policies", o.policies, "policies of caches: "+texts(trace.Policies))
	f.IntVar(&o.Batch, "batch", o.Batch, "seeds a batch")
	f.StringSliceVar(&o.batches, "batches", nil, "batch sizes of the growth curve "+
		"(default 64 to 16384, as far as there are seeds)")
	f.IntVar(&o.Steps, "steps", 0, "batches of a trace (default an epoch, at most 256, and at least twice the largest κ)")
	f.IntVar(&o.Epochs, "epochs", 0, "passes over the training nodes instead")
	f.BoolVar(&o.LayerDependency, "layer-dependency", false, "let a node draw the same at every layer")
	f.BoolVar(&o.Poisson, "poisson", false, "labor0: let the number of drawn neighbours vary around --fanout")
	f.IntVar(&o.Walk.Length, "walk-length", o.Walk.Length, "rw: steps of a walk")
	f.IntVar(&o.Walk.Walks, "walks", o.Walk.Walks, "rw: walks from a node")
	f.Float64Var(&o.Walk.Restart, "walk-restart", o.Walk.Restart, "rw: probability that a step restarts at the node")
	f.StringVar(&o.Split, "split", "", "split whose training nodes are the seeds, if there are several")
	f.Uint64Var(&o.Seed, "seed", o.Seed, "seed of batches and draws")
	f.IntVar(&o.Workers, "workers", o.Workers, "goroutines that draw and simulate; they change no result")
	f.StringVar(&o.Tmp, "tmp", "", "directory for the trace (default that of temporary files)")
	o.history = newTraceHistory()
	o.history.flags(f)
	f.StringVar(&o.svg, "svg", "", "also draw a picture, in this file")
	f.BoolVar(&o.json, "json", false, "print the report as JSON")
}

// words is a list of a kind of string as one of strings.
func words[T ~string](list []T) (all []string) {
	for _, w := range list {
		all = append(all, string(w))
	}
	return all
}

// resolve turns the texts of flags into options.
func (o *traceOptions) resolve(given func(flag string) bool) error {
	var errs []error
	fail := func(flag string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", flag, err))
		}
	}
	o.History = o.history.read(given, fail)
	if o.History != nil {
		if !given("samplers") {
			o.samplers = []string{string(sample.NS)}
		}
		if !given("kappa") {
			o.kappas = []string{"1"}
		}
		if !given("cache") && !given("policies") {
			o.caches = nil
		}
	}
	var err error
	if o.Fanouts, o.RelationFanouts, err = o.fanouts.read(o.layers, given); err != nil {
		errs = append(errs, err)
	} else if given("layers") && o.layers != len(o.Fanouts) {
		errs = append(errs, fmt.Errorf("--fanout has %d numbers and --layers is %d: one a layer, at most 64",
			len(o.Fanouts), o.layers))
	}
	o.Inputs, o.EdgeInputs = o.inputs.of, o.edges.read()
	o.Samplers, o.Policies, o.Kappas, o.Caches, o.Growth = nil, nil, nil, nil, nil
	for _, s := range o.samplers {
		o.Samplers = append(o.Samplers, sample.Kind(strings.TrimSpace(s)))
	}
	for _, s := range o.policies {
		o.Policies = append(o.Policies, trace.Policy(strings.TrimSpace(s)))
	}
	for _, s := range o.kappas {
		var k kappa
		fail("--kappa", k.Set(strings.TrimSpace(s)))
		o.Kappas = append(o.Kappas, int(k))
	}
	for _, s := range o.caches {
		c, err := trace.ParseCapacity(strings.TrimSpace(s))
		fail("--cache", err)
		o.Caches = append(o.Caches, c)
	}
	for _, s := range o.batches {
		b, err := strconv.Atoi(strings.TrimSpace(s))
		if err != nil {
			err = fmt.Errorf("%q is not a number", s)
		}
		fail("--batches", err)
		o.Growth = append(o.Growth, b)
	}
	if o.History != nil && o.Growth == nil {
		o.Growth = []int{} // none
		if o.svg != "" && len(o.Caches) == 0 {
			errs = append(errs, errors.New("--svg: it draws how batches grow, and caches; with --history ask for them by --batches or --cache"))
		}
	}
	if o.Smoothed = o.dependent == run.Smoothed; !o.Smoothed && o.dependent != run.Nested {
		errs = append(errs, fmt.Errorf("--dependent %s: there are nested and smoothed", o.dependent))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return o.Validate()
}

func runTrace(ctx context.Context, stdout, stderr io.Writer, path string, o *traceOptions) error {
	if o.svg != "" { // before what may take long
		if fi, err := os.Stat(filepath.Dir(o.svg)); err != nil || !fi.IsDir() {
			return fmt.Errorf("--svg %s: %s is no directory", o.svg, filepath.Dir(o.svg))
		}
	}
	ds, err := openGraph(stderr, path, 0, "trace draws from relations; what steps on a stream read, gnnstore train --plan says, with --model tgn, jodie or apan")
	if err != nil {
		return err
	}
	defer ds.Close()
	p := newProgress(stderr)
	defer p.clear()
	o.Progress = p.show
	r, err := trace.Run(ctx, ds, o.Options)
	if err != nil {
		return err
	}
	p.clear()
	if o.svg != "" {
		if err := checkpoint.WriteFile(vfs.Default, o.svg, r.SVG()); err != nil {
			return fmt.Errorf("draw the picture: %w", err)
		}
	}
	if o.json {
		return printJSON(stdout, r)
	}
	printTrace(stdout, r)
	return nil
}

// mean prints a mean of counts.
func mean(v float64) string {
	if v < 10 {
		return fmt.Sprintf("%.1f", v)
	}
	return count(int64(v + 0.5))
}

func printTrace(w io.Writer, r *trace.Report) {
	seeds, nodes, grown := "all nodes", "nodes", "rows that a batch wants"
	if r.Split != "" {
		seeds = fmt.Sprintf("%s training nodes of split %s", count(int64(r.Seeds)), r.Split)
	}
	several := len(r.Types) > 0
	if n := r.NodeTypes(); n > 1 {
		seeds += ", of type " + r.Target
		nodes, grown = fmt.Sprintf("nodes of %d types", n), "nodes of all types in a batch"
	}
	printf(w, "%s: %s %s by %s, %s edges; seeds are %s\n",
		r.Dataset, count(int64(r.Nodes)), nodes, r.Order, count(r.Edges), seeds)
	if r.History != nil {
		printTraceHistory(w, r)
	}
	if len(r.Growth) > 0 {
		printGrowth(w, r, grown)
	}
	if r.History != nil && len(r.Traces) == 0 {
		return
	}
	if len(r.Traces) == 0 {
		fmt.Fprintln(w, "note: batches read no type that has a table, so there are no rows to cache")
		return
	}
	// drawn is how a line of t begins, and the head above it.
	drawn := func(t trace.Trace) (row, head []string) {
		row, head = []string{string(t.Sampler), sample.KappaText(t.Kappa)}, []string{"sampler", "κ"}
		if several {
			row, head = append(row, t.Type), append(head, "type")
		}
		return row, head
	}
	printf(w, "\ndifferent rows a batch, where so many of %s in a row are read together, and the share of them that the one before it wanted:\n", count(int64(r.Batch)))
	var rows [][]string
	for _, t := range r.Traces {
		row, head := drawn(t)
		for _, s := range t.WorkingSet {
			head, row = append(head, count(int64(s.Batches))), append(row, mean(s.PerBatch))
		}
		head, row = append(head, "of the one before"), append(row, percent(t.Overlap.Share))
		if rows == nil {
			rows = append(rows, head)
		}
		rows = append(rows, row)
	}
	tabulate(w, rows)
	if len(r.Caches) == 0 || len(r.Traces[0].Caches) == 0 {
		return
	}
	printf(w, "\nmisses of caches in %s batches, %s; when caches had filled:\n", count(int64(r.Steps)), r.Dependent)
	_, head := drawn(r.Traces[0])
	head = append(head, "batches", "rows a batch", "cache", "rows")
	for i := 0; i < len(r.Traces[0].Caches); i += len(r.Caches) {
		head = append(head, string(r.Traces[0].Caches[i].Policy))
	}
	rows = [][]string{append(head, "first of their row")}
	short := false
	for _, t := range r.Traces {
		for s, c := range r.Caches {
			row, _ := drawn(t)
			row = append(row, count(int64(t.MeasuredSteps)), mean(t.Batches.Mean))
			if s > 0 {
				clear(row)
			}
			row = append(row, c.Asked, count(t.Caches[s].Rows))
			for i := s; i < len(t.Caches); i += len(r.Caches) {
				row = append(row, percent(1-t.Caches[i].HitRate))
			}
			rows = append(rows, append(row, percent(float64(t.FirstRequests)/float64(max(t.MeasuredRequests, 1)))))
		}
		short = short || !t.WholePeriods
	}
	tabulate(w, rows)
	if short {
		fmt.Fprintln(w, "note: κ is larger than the batches that were left, and their changes of draws are not in proportion; "+
			"take more --steps")
	}
}

// printGrowth prints how batches grow; grown says what is counted.
func printGrowth(w io.Writer, r *trace.Report, grown string) {
	printf(w, "\n%s, by its size, after each hop of fanout %s:\n", grown, fanoutsText(r.Fanouts, r.RelationFanouts))
	head := []string{"sampler", "seeds"}
	for h := range r.Fanouts {
		head = append(head, fmt.Sprintf("hop %d", h+1))
	}
	rows := [][]string{append(head, "± 95 %", "a seed")}
	for _, g := range r.Growth {
		row := []string{string(g.Sampler), count(int64(g.Batch))}
		for _, h := range g.Hops {
			row = append(row, mean(h.Mean))
		}
		last := g.Hops[len(g.Hops)-1]
		rows = append(rows, append(row, fmt.Sprintf("%.2f %%", 100*last.CI95/last.Mean), fmt.Sprintf("%.2f", last.PerSeed)))
	}
	tabulate(w, rows)
}
