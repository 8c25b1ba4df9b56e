package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/bench"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/run"
)

// statsOptions has the run whose statistics are shown, and the form.
type statsOptions struct {
	run, addr   string   // either
	runs        []string // for a page: runs, and directories of runs
	html        string   // the file of a page; empty: none
	listen      string   // the address that serves the page; empty: none
	watch, json bool
	every       time.Duration
	worker      int
}

func newStats() *cobra.Command {
	o := statsOptions{every: time.Second}
	cmd := &cobra.Command{
		Use:   "stats RUN...",
		Short: "Show what each tier of a run does, live or afterwards",
		Long: "Show what each tier of a run does, which stage the others wait for, and what to change. A training that is\n" +
			"under way is asked itself, through the socket in its run directory or, with --addr instead of RUN, over HTTP\n" +
			"(train --listen). Of one that cannot be asked, and of one that died, it is what was on record at the last step\n" +
			"or epoch (train --log-every). --watch ends when the run does.\n\n" +
			"--html writes a page of charts: losses and the metric by epoch, tiers, stages, advice and options. It shows several\n" +
			"runs side by side. A directory of runs, as train --seeds makes, stands for all runs in it. --listen serves the page\n" +
			"at http://HOST:PORT/ until Ctrl-C, and keeps it up to date. train --listen serves the page of its own run.",
		Example: "  gnnstore stats runs/arxiv-1\n" +
			"  gnnstore stats runs/arxiv-1 --watch\n" +
			"  gnnstore stats runs/arxiv-1 runs/arxiv-2 --html runs.html\n" +
			"  gnnstore stats runs --listen :8080\n" +
			"  gnnstore stats --addr :8080 --watch --json",
		Args: func(cmd *cobra.Command, args []string) error {
			if o.addr != "" {
				return exactArgs()(cmd, args)
			}
			switch several := o.html != "" || o.listen != ""; {
			case len(args) > 1 && several:
				return nil
			case len(args) > 1:
				return misuse(fmt.Errorf("%q is one argument too many; --html and --listen show several runs", args[1]))
			}
			return exactArgs("RUN")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				o.run = args[0]
			}
			if cmd.Flags().Changed("interval") && !o.watch {
				return misuse(errors.New("--interval goes with --watch"))
			}
			if o.every < 100*time.Millisecond || o.every > time.Hour {
				return misuse(fmt.Errorf("--interval %v: from 100ms to 1h", o.every))
			}
			if o.worker < 0 || o.worker > 0 && o.addr != "" {
				return misuse(fmt.Errorf("--worker %d: give the number of a worker, 0 or more, and no --addr", o.worker))
			}
			if o.runs = args; o.html != "" || o.listen != "" {
				return pageStats(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), o)
			}
			if o.worker > 0 {
				o.run = run.WorkerDir(o.run, o.worker)
			}
			return runStats(cmd.Context(), cmd.OutOrStdout(), o)
		},
	}
	cmd.Flags().SortFlags = false
	cmd.Flags().StringVar(&o.addr, "addr", "", "ask the training that serves HTTP at HOST:PORT")
	cmd.Flags().BoolVar(&o.watch, "watch", false, "show it until the run ends: in place on a terminal, else a line each time")
	cmd.Flags().DurationVar(&o.every, "interval", o.every, "how often --watch shows it")
	cmd.Flags().IntVar(&o.worker, "worker", 0, "show this worker of a run by several, on the machine that it runs on")
	cmd.Flags().BoolVar(&o.json, "json", false, "print as JSON; with --watch, a line each time")
	cmd.Flags().StringVar(&o.html, "html", "", htmlHelp("one run, or several side by side,"))
	cmd.Flags().StringVar(&o.listen, "listen", "", "serve this page at HOST:PORT until Ctrl-C; without HOST, to this machine alone")
	return cmd
}

func runStats(ctx context.Context, stdout io.Writer, o statsOptions) error {
	if o.watch {
		return watch(ctx, o, newScreen(stdout, o.json).show)
	}
	r, err := o.look(ctx)
	switch {
	case err != nil:
		return err
	case o.json:
		return printJSON(stdout, r)
	case r.Live != nil:
		for _, line := range view(r, math.MaxInt) {
			fmt.Fprintln(stdout, line)
		}
		return nil
	}
	printf(stdout, "run %s   dataset %s\n%s\n", r.Run, r.Dataset, outcome(r))
	printEnded(stdout, r)
	if text := boundText(r); text != "" {
		fmt.Fprintln(stdout, text)
	}
	fmt.Fprintln(stdout)
	printStreamResult(stdout, r)
	printTiers(stdout, r)
	for _, line := range wrap(r.Advice, viewWidth) {
		fmt.Fprintln(stdout, clean(line))
	}
	return nil
}

// look asks the training, and where there is none reads the record of the run.
func (o statsOptions) look(ctx context.Context) (*run.Result, error) {
	c, err := o.client()
	if err == nil {
		var r *run.Result
		if r, err = c.Stats(ctx); err == nil {
			return o.named(r), nil
		}
	}
	if o.addr != "" || ctx.Err() != nil {
		return nil, err
	}
	return o.record()
}

func (o statsOptions) client() (*live.Client, error) {
	if o.addr == "" {
		return live.OfRun(o.run)
	}
	c, err := live.At(o.addr)
	if err != nil {
		err = misuse(fmt.Errorf("--addr: %w", err))
	}
	return c, err
}

// record returns the result that the run has on disk.
func (o statsOptions) record() (*run.Result, error) {
	r, err := run.Read(o.run)
	if err != nil {
		return nil, err
	}
	r.Advice = live.Advise(r)
	return resultWithFlags(r), nil
}

// named gives the result the name of the run that the user gave.
func (o statsOptions) named(r *run.Result) *run.Result {
	r.Run = cmp.Or(o.run, r.Run)
	return resultWithFlags(r)
}

// watch shows a run at an interval until it ends. Ctrl-C is the way out, and no failure.
func watch(ctx context.Context, o statsOptions, show func(*run.Result) error) error {
	for {
		c, err := o.client()
		if err == nil {
			err = c.Watch(ctx, o.every, func(r *run.Result) error { return show(o.named(r)) })
		}
		switch {
		case ctx.Err() != nil:
			return nil
		case o.addr != "" || err == nil || !errors.Is(err, live.ErrNotServed):
			return err
		}
		// It has ended, died, or cannot be asked: then its record goes forward, too, if more
		// slowly.
		r, err := o.record()
		if err == nil {
			err = show(r)
		}
		if err != nil || r.Status != run.Running {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(o.every):
		}
	}
}

// served returns the bytes of rows that all tiers served.
func served(s cachetier.Stats) int64 {
	return s.Tiers.Device.BytesOut + s.Tiers.Host.BytesOut + s.Tiers.Disk.BytesOut
}

// printTables prints the counters of tables and of relations, for a graph with several, and the
// counters of learnt rows.
func printTables(w io.Writer, r *run.Result) {
	if len(r.Tables) > 0 {
		rows := [][]string{{"table", "row", "held", "rows served", "from memory", "bytes served", "bytes read"}}
		for _, t := range r.Tables {
			held := t.Tiers.Device.UsedBytes + t.Tiers.Host.UsedBytes
			memory := "-"
			if t.InputRows > 0 {
				memory = percent(1 - float64(t.Tiers.Disk.RowsHit)/float64(t.InputRows))
			}
			rows = append(rows, []string{t.Type, size(t.RowBytes), size(held), count(t.InputRows), memory, size(served(t.Stats)), size(t.Disk.BytesRead)})
		}
		fmt.Fprintln(w)
		tabulate(w, rows)
	}
	if len(r.Embeddings) > 0 {
		rows := [][]string{{"embedding", "columns", "rows learnt", "rows written", "bytes written"}}
		for _, e := range r.Embeddings {
			rows = append(rows, []string{e.Type, count(int64(e.Dim)), count(e.RowsTouched), count(e.RowsWritten), size(e.BytesWritten)})
		}
		fmt.Fprintln(w)
		tabulate(w, rows)
	}
	if h := r.History; h != nil && len(h.Layers) > 0 {
		rows := [][]string{{"history", "slots", "kept now", "reused", "mean age", "by gradient out", "by age out", "without a slot", "rows not read"}}
		for _, l := range h.Layers {
			rows = append(rows, []string{
				fmt.Sprintf("layer %d, %s", l.Layer, l.Type), count(int64(l.Slots)), count(l.Live), percent(l.Reuse), fmt.Sprintf("%.1f", l.MeanAge),
				count(l.EvictedGrad), count(l.EvictedStale), count(l.Refused), "~" + count(l.PrunedRows),
			})
		}
		fmt.Fprintln(w)
		tabulate(w, rows)
		printAudit(w, h)
	}
	if len(r.Relations) > 0 {
		rows := [][]string{{"relation", "edges"}}
		for _, rel := range r.Relations {
			rows = append(rows, []string{rel.Key, count(rel.Edges)})
		}
		if r.Options.Layers > 0 {
			rows[0] = append(rows[0], "fanout")
			for i, rel := range r.Relations {
				rows[i+1] = append(rows[i+1], setting.FormatInts(rel.Fanout))
			}
		}
		fmt.Fprintln(w)
		tabulate(w, rows)
	}
}

// printAudit prints the errors of reused rows against rows computed anew.
func printAudit(w io.Writer, h *run.HistoryOf) {
	rows := [][]string{{"audit", "nodes", "error by draw", "in full", "of fresh ones", "cosine by draw", "in full", "mean age", "not in full", "rows read", "bytes read"}}
	for _, l := range h.Layers {
		if a := l.Audit; a != nil {
			rows = append(rows, []string{
				fmt.Sprintf("layer %d, %s", l.Layer, l.Type), count(a.Nodes), fmt.Sprintf("%.3f", a.ErrorDraw), fmt.Sprintf("%.3f", a.ErrorFull),
				fmt.Sprintf("%.3f", a.ErrorFresh), fmt.Sprintf("%.3f", a.CosineDraw), fmt.Sprintf("%.3f", a.CosineFull), fmt.Sprintf("%.1f", a.MeanAge), count(a.LeftOut), count(a.Rows), size(a.Bytes),
			})
		}
	}
	if len(rows) > 1 {
		fmt.Fprintln(w)
		tabulate(w, rows)
	}
}

// printTiers prints the counters of each tier and the times of each stage. A stream may have read
// no rows; then the tiers are left out.
func printTiers(w io.Writer, r *run.Result) {
	if text := allWorkers(r.Workers); text != "" {
		printf(w, "%s\n\n", text)
	}
	if r.Stream == nil || r.InputRows > 0 {
		printRows(w, r)
	}
	printTimes(w, r)
}

type namedTier struct {
	name string
	cachetier.Tier
}

// tiersOf returns the tiers of rows, the fastest first.
func tiersOf(r *run.Result) []namedTier {
	return []namedTier{{"device", r.Tiers.Device}, {"host", r.Tiers.Host}, {"disk", r.Tiers.Disk}}
}

// printRows prints the tier table: how many of training's rows each tier served.
func printRows(w io.Writer, r *run.Result) {
	rows := [][]string{{"tier", "capacity", "used", "rows served", "share", "bytes served", "bytes read in", "evictions"}}
	for _, t := range tiersOf(r) {
		share := "-"
		if r.InputRows > 0 {
			share = percent(float64(t.RowsHit) / float64(r.InputRows))
		}
		rows = append(rows, []string{t.name, size(t.CapacityBytes), size(t.UsedBytes), count(t.RowsHit), share,
			size(t.BytesOut), size(t.BytesRead), count(t.Evictions)})
	}
	rows = append(rows, []string{"all", "", "", count(r.InputRows), "", size(served(r.Stats)), "", ""})
	tabulate(w, rows)
	printTables(w, r)
	d := r.Disk
	printf(w, "\ndisk: %s   rows: wanted %s, read %s (amplification %.2f) in %s reads, %s\n",
		r.DiskEngine, size(d.BytesWanted), size(d.BytesRead), d.Amplification, count(d.Reads), seconds(d.Seconds))
	if j, s := r.Join, r.Spill; j != nil && s != nil {
		printf(w, "join: %s horizons   scans: %s in %s   rows: %s sent to their first window, %s on to the next%s   spill: %s of %s held at most, %s written, %s read\n",
			count(j.Horizons), size(j.ScanBytes), seconds(j.ScanSeconds), count(j.Spilled), count(j.Forwarded), reread(j), size(s.PeakBytes), size(s.CapacityBytes), size(s.BytesWritten), size(s.BytesRead))
	}
	if t := r.Topology; t != nil {
		printf(w, "topology: %s of %s lists in memory (%s)",
			count(t.UsedRows), count(t.Lists), size(t.IndexBytes+t.UsedBytes))
		if c := t.Disk; c.Rows > 0 {
			printf(w, "   the others: wanted %s, read %s (amplification %.2f) in %s reads, %s",
				size(c.BytesWanted), size(c.BytesRead), c.Amplification, count(c.Reads), seconds(c.Seconds))
		}
		fmt.Fprintln(w)
	}
}

// reread counts the rows that a damaged spill had lost, or returns "" if there were none.
func reread(j *cachetier.Join) string {
	if j.Reread == 0 {
		return ""
	}
	return fmt.Sprintf(", %s lost by the spill and read from the table", count(j.Reread))
}

// printTimes prints the times of the stages, and the peak memory.
func printTimes(w io.Writer, r *run.Result) {
	s := r.Stages
	gathering := seconds(s.Gather)
	if r.Stream != nil {
		gathering += fmt.Sprintf(" (state %s), writing state %s", seconds(s.State), seconds(s.Write))
	}
	printf(w, "time: of %s, drawing took %s (%d at once), planning %s, loading %s, gathering %s, ",
		seconds(s.Run), seconds(s.Sample), s.Samplers, seconds(s.Plan), seconds(s.Load), gathering)
	printf(w, "steps %s, and they waited %s; %s limits\n",
		seconds(s.Step), seconds(s.Wait), cmp.Or(r.LimitingStage, "nothing"))
	if text := busText(r); text != "" {
		fmt.Fprintln(w, clean(text))
	}
	if text := lockedText(r); text != "" {
		fmt.Fprintln(w, clean(text))
	}
	learnt := func(what string, train int64) {
		if s.Run > 0 {
			n := examples(r, train)
			printf(w, "%s: %s learnt, %s/s\n", what, count(n), number(float64(n)/s.Run))
		}
	}
	if r.Links != nil {
		learnt("links", r.Links.Train)
	}
	if r.Stream != nil {
		learnt("events", r.Stream.Train)
	}
	e := r.Evaluation
	printf(w, "evaluation (%s): %s, %s read\n", cmp.Or(e.Method, "none"), seconds(e.Seconds), size(e.Disk.BytesRead))
	printf(w, "memory: peak %s, and %s of mapped files\n", size(r.PeakRSSBytes), size(r.PeakFileBytes))
}

// busText describes the work that a training step gives a device, or returns "" if the run did not
// count it.
func busText(r *run.Result) string {
	b := r.Bus
	if b == nil || b.Steps == 0 {
		return ""
	}
	each := func(n int64) string { return fmt.Sprintf("%.1f", float64(n)/float64(b.Steps)) }
	s := fmt.Sprintf("%s: a step waits %s times and copies %s up in %s copies",
		processor(r.Device, r.DeviceName, r.Kernels), each(b.Waits), size(b.UploadBytes/b.Steps), each(b.Uploads))
	if b.Launches > 0 {
		s += fmt.Sprintf(", %s launches", each(b.Launches))
	}
	return s
}

// boundText compares the time of a step with the bound of this machine. It measures the machine for
// half a second. It returns "" if the run was not on a CPU, if not all of its steps were counted,
// or if this machine lacks its kernel set.
func boundText(r *run.Result) string {
	b, products := r.Work, r.Options.MatMul
	set, err := kernels.ParseSet(r.Kernels, products)
	if b == nil || b.Steps == 0 || !kernels.IsCPU(r.Device) || err != nil || r.Kernels == "" {
		return ""
	}
	steps := int64(0)
	for _, e := range r.Epochs {
		steps += int64(e.Steps)
	}
	if b.Steps < steps {
		return ""
	}
	top := bench.MeasureCeilings(set, products, runtime.GOMAXPROCS(0), 50*time.Millisecond)
	each := 1 / float64(b.Steps)
	bound, took := top.Bound(float64(b.ProductFlops)*each, float64(b.OperandBytes)*each), r.Stages.Step*each
	if took == 0 || bound.Seconds() == 0 {
		return ""
	}
	return fmt.Sprintf("bound: a step took %s; at this machine's best, its products take %s (%.0f GFLOP/s), "+
		"its operands %s (%.1f GB/s); the longer of the two is %.0f %% of the step's time",
		seconds(took), seconds(bound.Products), top.Flops/1e9, seconds(bound.Bytes), top.Bytes/1e9,
		100*bound.Seconds()/took)
}

// lockedText describes the memory that is page-locked for the device. It returns "" where nothing
// is to be.
func lockedText(r *run.Result) string {
	if r.Locked == nil {
		return ""
	}
	l := r.Locked
	s := fmt.Sprintf("locked memory: rows %s of %s, slots of copies %s of %s",
		size(l.Rows.Bytes), size(l.Rows.Of), size(l.Slots.Bytes), size(l.Slots.Of))
	if all := l.Rows.Add(l.Slots); all.Why != "" {
		s += " (" + all.Why + ")"
	}
	if l.Gather != nil {
		s += "; " + gatherText(l.Gather)
	}
	return s
}
