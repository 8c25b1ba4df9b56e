package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/cockroachdb/pebble/v2/vfs"
	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/checkpoint"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

type traceOptions struct {
	trace.Options
	dependent string
	layers    int
	on        bool // --history
	history   trace.History
	workers   trace.Workers // Most is 0: none are counted
	costs     string        // of the disk
	svg       string
	html      string
	json      bool
}

func newTrace() *cobra.Command {
	o := defaultTrace()
	var given *setting.Bound[traceOptions]
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
			"ns and κ 1 unless told otherwise, and leaves out how batches grow and caches unless --batches, --cache or --policies are given.\n\n" +
			"--workers V prints what each of 1, 2, 4 … V workers would draw, read, compute and send in a step, in each\n" +
			"way of train --parallel. Each worker has caches of its own; static, the default here, holds the first of\n" +
			"the rows that it owns. Unless told otherwise it draws 16 steps with κ 1 and leaves out how batches grow.",
		Example: "  gnnstore trace arxiv.gnn\n" +
			"  gnnstore trace arxiv.gnn --workers 8 --fanout 10,10,10 --batch 1024 --svg workers.svg\n" +
			"  gnnstore trace arxiv.gnn --samplers ns,labor0,labor-star,rw --kappa 1,64,256 --cache 5%,20% --json\n" +
			"  gnnstore trace arxiv.gnn --kappa 1,4,16,64,inf --dependent smoothed --cache 60000 --svg arxiv.svg\n" +
			"  gnnstore trace arxiv.gnn --history --t-stale 20,200 --history-lag 1,100 --history-memory 5%,all --window-memory 16MiB\n" +
			"  gnnstore trace mag.gnn --target paper --fanout 15,10 --fanout cites=25,15 --fanout affiliated_with=5,0",
		Args: exactArgs("DATASET"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.complete(given); err != nil {
				return misuse(err)
			}
			return runTrace(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), args[0], o)
		},
	}
	given = bindTable(cmd, traceTable, o)
	return cmd
}

func defaultTrace() *traceOptions {
	return &traceOptions{
		Options: trace.DefaultOptions(), dependent: run.Nested, history: trace.DefaultHistory(),
		workers: trace.DefaultWorkers(),
	}
}

// complete turns what flags gave into options, and validates them.
func (o *traceOptions) complete(flags *setting.Bound[traceOptions]) error {
	given, errs := flags.Given, []error{flags.Check(defaultTrace())}
	if o.on {
		o.History = &o.history
		if o.costs != "" {
			var err error
			if o.history.DiskCosts, err = disk.ParseCosts(o.costs); err != nil {
				errs = append(errs, fmt.Errorf("--disk-costs: %w", err))
			}
		}
		if !given("samplers") {
			o.Samplers = []sample.Kind{sample.NS}
		}
		if !given("kappa") {
			o.Kappas = []int{1}
		}
		if !given("cache") && !given("policies") {
			o.Caches = nil
		}
		if !given("batches") {
			o.Growth = []int{} // none
			if (o.svg != "" || o.html != "") && len(o.Caches) == 0 {
				errs = append(errs, errors.New("--svg and --html draw how batches grow, and caches; with --history, ask for them by --batches or --cache"))
			}
		}
	}
	if given("workers") {
		o.workers.Hidden = o.history.Hidden
		o.Workers = &o.workers
		if !given("kappa") {
			o.Kappas = []int{1}
		}
		if !given("cache") {
			o.Caches = []trace.Capacity{{Share: 0.05}}
		}
		if !given("policies") {
			o.Policies = []trace.Policy{trace.Static}
		}
		if !given("batches") {
			o.Growth = []int{} // none
		}
	}
	o.Fanouts = run.FitFanouts(o.Fanouts, o.layers, given)
	if given("layers") && o.layers != len(o.Fanouts) {
		errs = append(errs, fmt.Errorf("--fanout has %d numbers and --layers is %d: one a layer, at most 64", len(o.Fanouts), o.layers))
	}
	o.Smoothed = o.dependent == run.Smoothed
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return o.Validate()
}

func runTrace(ctx context.Context, stdout, stderr io.Writer, path string, o *traceOptions) error {
	if ending := filepath.Ext(o.svg); ending != "" && !strings.EqualFold(ending, ".svg") {
		return misuse(fmt.Errorf("--svg %s: the picture is SVG; end its name in .svg", o.svg))
	}
	if o.svg != "" { // before what may take long
		if fi, err := os.Stat(filepath.Dir(o.svg)); err != nil || !fi.IsDir() {
			return fmt.Errorf("--svg %s: %s is no directory", o.svg, filepath.Dir(o.svg))
		}
	}
	if err := checkHTML(o.html); err != nil {
		return err
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
	if o.html != "" {
		if err := writeHTML(o.html, r.Document()); err != nil {
			return err
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
	if r.Workers != nil {
		printTraceWorkers(w, r)
	}
	if len(r.Growth) > 0 {
		printGrowth(w, r, grown)
	}
	if (r.History != nil || r.Workers != nil) && len(r.Traces) == 0 {
		return
	}
	if len(r.Traces) == 0 {
		fmt.Fprintln(w, "note: batches read no type that has a table, so there are no rows to cache")
		return
	}
	// drawn returns the first cells of a row for t, and of the head above it.
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

// printGrowth prints how batches grow; grown names the things counted.
func printGrowth(w io.Writer, r *trace.Report, grown string) {
	printf(w, "\n%s, by its size, after each hop of fanout %s:\n", grown, run.FanoutText(r.Fanouts, r.RelationFanouts))
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
