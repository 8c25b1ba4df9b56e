package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/live"
	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

type trainOptions struct {
	run.Options
	given      *setting.Bound[run.Options] // the flags of Options
	file       string                      // of options; empty: none
	run        string
	listen     string
	optional   bool // the run may train without listen
	resume     bool
	plan       bool
	network    string // of plan
	seeds      int    // runs by as many seeds, from Seed on; 0: one run
	json       bool
	config     bool   // print the options as a file, and train nothing
	brief      bool   // a line an evaluated epoch only
	modelGiven bool   // --model was given, or is on record
	chosen     string // a note on the task that chooseTask chose; empty: it chose none
}

func newTrain() *cobra.Command {
	o := &trainOptions{Options: run.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "train DATASET",
		Short: "Train a network on a dataset",
		Long: "Train a network on a sealed dataset and keep the record in a run directory. Ctrl-C ends a run with a\n" +
			"checkpoint, and --resume goes on. Without --epochs a run ends where validation no longer improves.\n" +
			"`gnnstore help training` explains it by examples.\n\n" +
			"The same dataset, options and seed give the same losses and weights, bit for bit, at any --workers, --*-memory,\n" +
			"--policy and --disk-engine. Ctrl-C, a closed terminal or SIGTERM ends it at the next step, with a checkpoint. After\n" +
			"that, or after a crash, --resume with the same --run goes on at the step after the newest checkpoint, with the options\n" +
			"it began with, and ends with the weights that it would have had. Then DATASET may be left out.\n\n" +
			"-f takes options and DATASET from a YAML file, which --print-config writes, or from run.json of an earlier run.\n\n" +
			"Without --epochs, a run says at the start how long it trains and why, and at the end what ended it. It makes the\n" +
			"epochs that 500 updates take, and goes on until 20 more have brought no better validation, up to 5,000 updates or 50\n" +
			"epochs, whichever is more. Without validation nodes, with --patience 0 and with --schedule cosine it makes the\n" +
			"epochs that 500 updates take, and 10 at least. If a pass over all examples takes more than 2,000 steps, an epoch\n" +
			"ends, and is validated, after 500 steps or a twentieth of the pass.\n\n" +
			"Some defaults depend on the data: up to 1,000 labelled nodes of one type, links among nodes with learnt rows and 100\n" +
			"or more links a node, and links of several relations have settings of their own, which the run prints at the start.\n" +
			"A dataset without labels whose links are held out is learnt by --task link, and the links of several relations within\n" +
			"one type by --layers 0: see gnnstore help links.\n\n" +
			"--model tgn, jodie and apan learn from a stream of events which events come next. They see the times and neighbours\n" +
			"before an event, and the state that earlier events left on the nodes. They have one layer, and by default 10\n" +
			"neighbours, 100 columns and a learning rate of 0.001. The default batch has 50 to 600 events, so that a node misses\n" +
			"little of its own events; the run prints how many. TGN tells nodes of one type without features apart by random\n" +
			"columns: see --identity.",
		Example: "  gnnstore train arxiv.gnn --fanout 15,10,5 --hidden 256 --epochs 20 --host-memory 1GiB\n" +
			"  gnnstore train arxiv.gnn --sampler labor0 --kappa 64 --dependent smoothed --memory 256MiB\n" +
			"  gnnstore train wiki.gnn --model tgn --epochs 5\n" +
			"  gnnstore train arxiv.gnn --run runs/long --checkpoint-every 200\n" +
			"  gnnstore train --resume --run runs/long\n" +
			"  gnnstore stats runs/long --watch",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && (o.resume || o.file != "" || o.config) {
				return nil
			}
			return exactArgs("DATASET")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			path := ""
			if len(args) > 0 {
				path = args[0]
			}
			if o.file == "" {
				return o.start(cmd, path)
			}
			file, err := o.readFile(cmd.Flags())
			if err != nil {
				return err
			}
			if path == "" {
				path = file.dataset
				if err := file.checkDataset(cmd.ErrOrStderr(), o.resume || o.config); err != nil {
					return err
				}
			}
			return file.place(o.start(cmd, path))
		},
	}
	cmd.Flags().SortFlags = false
	o.flags(cmd.Flags())
	return cmd
}

// start does what the flags ask for.
func (o *trainOptions) start(cmd *cobra.Command, path string) error {
	switch {
	case o.resume && o.run == "":
		return misuse(errors.New("--resume needs --run DIR, the directory of the run to go on with"))
	case o.config && (o.resume || o.plan || o.json):
		return misuse(errors.New("--print-config prints the options of a run that begins; leave --resume, --plan and --json out"))
	}
	if path != "" && !(o.resume && run.Begun(o.run)) {
		if err := o.chooseTask(cmd.Flags(), path); err != nil {
			return err
		}
	}
	switch {
	case o.config:
		return o.printConfig(cmd.OutOrStdout(), cmd.Flags(), path)
	case cmd.Flags().Changed("seeds"):
		return trainSeeds(cmd, path, o)
	}
	return o.train(cmd, path)
}

// train begins a run, goes on with one, or plans one.
func (o *trainOptions) train(cmd *cobra.Command, path string) error {
	way, workers, err := o.findWorkers()
	var link *plan.Link
	if err == nil {
		link, err = o.parseNetwork(way)
	}
	switch {
	case err != nil:
		return misuse(err)
	case o.plan:
	case way == dist.MPI && !o.resume:
		if err := o.complete(); err != nil {
			return misuse(err)
		}
		return trainProcesses(cmd, path, o, workers)
	case way == dist.MPI:
		return trainProcesses(cmd, path, o, workers)
	}
	if o.resume && run.Begun(o.run) {
		return resumeTrain(cmd, path, o)
	}
	if err := o.takeParts(path, way, workers); err != nil {
		return err
	}
	if !o.Spread() && (o.Kernels == "" || o.Kernels == "auto") && o.MatMul != kernels.BF16 { // else they are the CPU's
		autoDevice(cmd.ErrOrStderr(), &o.Device)
	}
	if err := o.complete(); err != nil {
		return misuse(err)
	}
	switch {
	case path == "" && o.resume:
		return misuse(fmt.Errorf("%s holds no run, so DATASET is missing", o.run))
	case path == "":
		return misuse(fmt.Errorf("DATASET is missing; name it, or write dataset: NAME into %s", o.file))
	}
	if o.plan {
		return planTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), path, o, workers, link)
	}
	if o.resume {
		return resumeTrain(cmd, path, o)
	}
	return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), path, o, o.newDir(path))
}

// flags binds every option, its value now the default.
func (o *trainOptions) flags(f *pflag.FlagSet) {
	o.Options = o.ForFlags()
	o.given = setting.Bind(f, run.Table, &o.Options)
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringVar(&o.run, "run", "", "run directory (default a fresh runs/NAME-N)")
	own.BoolVar(&o.resume, "resume", false, "go on with the run in --run, or begin it")
	own.IntVar(&o.seeds, "seeds", 0, "train as many runs, by the seeds from {seed} on, each in a directory of its own in --run, and print the mean and the standard deviation")
	own.StringVar(&o.listen, "listen", "", "serve a page for browsers and statistics over HTTP at HOST:PORT: /, /stats, /watch, /metrics, /healthz; without HOST, to this machine alone")
	own.BoolVar(&o.optional, "listen-optional", false, "train without --listen if its address cannot be taken")
	own.BoolVar(&o.plan, "plan", false, "print what a run would take, by its first steps, and write nothing")
	own.StringVar(&o.network, "network", "", "--plan with --dist mpi:V: what the network of a machine carries and, if known, "+
		"the time of a small exchange: 1Gbit or 1Gbit,200us (default 10Gbit)")
	own.BoolVar(&o.json, "json", false, "print the result as JSON; epochs go to stderr")
	own.StringVarP(&o.file, "file", "f", "", "YAML file of options, named like their flags, and of dataset; or run.json of a run to repeat; "+
		"a flag replaces the option of the file")
	own.BoolVar(&o.config, "print-config", false, "print the options as a file for --file, each with its help, and write nothing")
	addGroup(f, "The run", own)
	makeUsual(f, "run", "")
	makeUsual(f, "resume", "")
	makeUsual(f, "seeds", "train as many runs by seeds from --seed on, and print their mean")
	makeUsual(f, "listen", "serve a page and statistics over HTTP at HOST:PORT")
	makeUsual(f, "plan", "print what a run would take, and write nothing")
	makeUsual(f, "json", "print the result as JSON")
	makeUsual(f, "file", "YAML file of options, or run.json of a run to repeat")
}

// complete finishes the options of a fresh run.
func (o *trainOptions) complete() error {
	o.modelGiven = o.given.Given("model")
	return errors.Join(o.Complete(o.given), o.parseListen(), o.checkParts())
}

// checkParts refuses a part of the memory that is larger than the whole.
func (o *trainOptions) checkParts() error {
	var errs []error
	for _, part := range []struct {
		key   string
		bytes int64
	}{{"topology_bytes", o.TopologyBytes}, {"host_bytes", o.Cache.HostBytes}, {"batch_bytes", o.BatchBytes}} {
		if o.MemoryBytes > 0 && part.bytes > o.MemoryBytes {
			errs = append(errs, fmt.Errorf("{%s} %s: it is a part of {memory_bytes}, which is %s; give less, or auto",
				part.key, size(part.bytes), size(o.MemoryBytes)))
		}
	}
	return errors.Join(errs...)
}

func (o *trainOptions) parseListen() error {
	if o.listen == "" {
		return nil
	}
	listen, err := live.ParseListen(o.listen)
	if err != nil {
		return fmt.Errorf("--listen: %w", err)
	}
	o.listen = listen
	return nil
}

// endpoint takes the address of --listen, if there is one.
func (o *trainOptions) endpoint(note func(string)) (*live.Endpoint, error) {
	if o.listen == "" {
		return nil, nil
	}
	e, err := live.Listen(o.listen)
	switch {
	case err == nil:
		return e, nil
	case o.optional:
		note("no statistics over HTTP: " + err.Error())
		return nil, nil
	}
	return nil, fmt.Errorf("--listen: %w; choose another port, or train without it by --listen-optional", err)
}

// streamKinds lists the networks for streams.
func streamKinds() string { return setting.OneOf(model.TemporalKinds) }

// newDir makes o.run, or a fresh directory below runs named after the dataset.
func (o *trainOptions) newDir(dataset string) func() (*run.Dir, error) {
	return func() (*run.Dir, error) {
		if o.run != "" {
			return run.Create(o.run)
		}
		return run.Fresh("runs", strings.TrimSuffix(filepath.Base(filepath.Clean(dataset)), ".gnn"))
	}
}

// open opens the dataset, which has what the network learns from: a stream, or relations. Of a
// directory of parts, it opens the worker's own.
func (o *trainOptions) open(stderr io.Writer, path string, g *dist.Group) (*store.Dataset, error) {
	if g.Size() == 1 && store.IsParts(path) {
		parts, err := store.CountParts(path)
		if err == nil {
			err = fmt.Errorf("%s holds %d parts; give each of them a worker: --dist %s", path, parts, dist.Local.Text(parts))
		}
		return nil, err
	}
	if store.IsParts(path) {
		ds, err := openPart(path, o.MemoryBytes, g)
		if err == nil {
			o.chooseModel(stderr, ds.Manifest())
		}
		return ds, err
	}
	if !o.Streams() {
		ds, err := openGraph(stderr, path, o.MemoryBytes, fmt.Sprintf("--model %s learns from relations, and --model %s from streams", o.Kind, streamKinds()))
		if err == nil {
			o.chooseModel(stderr, ds.Manifest())
		}
		return ds, err
	}
	ds, err := openDataset(stderr, path, o.MemoryBytes)
	if err == nil && len(ds.Manifest().Streams) == 0 {
		err = errors.Join(fmt.Errorf("%s has no stream of events, which --model %s learns from; gnnstore ingest makes datasets with one, of formats events, jodie, tgb, tgl and tgn",
			path, o.Kind), ds.Close())
	}
	return ds, err
}

// chooseTask chooses --task link if no task was given and the dataset has held-out links but no
// labels. If the links are of several relations within one node type, it also chooses --layers 0,
// with which a run learns all relations together. It does not if the user gave an option of a
// network. It sets these flags as if the user had given them.
func (o *trainOptions) chooseTask(f *pflag.FlagSet, path string) error {
	given := o.given.Given
	if o.Streams() || given("task") && o.Task != run.LinkTask {
		return nil
	}
	ds, err := store.OpenOne(path)
	if err != nil {
		return nil // the next to open the dataset will report the error
	}
	defer ds.Close()
	m := ds.Manifest()
	split, within := 0, true
	for _, r := range m.Relations {
		if r.ReverseOf == "" {
			within = within && r.Src == r.Dst && r.Src == m.Relations[0].Src
		}
		if r.EdgeSplit != nil {
			split++
		}
	}
	if split == 0 || !given("task") && (len(m.Labels) > 0 || len(m.Streams) > 0) {
		return nil
	}
	var words []string
	var errs []error
	choose := func(flag, value string) {
		words, errs = append(words, "--"+flag+" "+value), append(errs, f.Set(flag, value))
	}
	if !given("task") {
		choose("task", run.LinkTask)
	}
	network := slices.ContainsFunc([]string{"layers", "fanout", "model", "target", "relation"}, given)
	if split > 1 && within && !network {
		choose("layers", "0")
	}
	switch {
	case len(words) == 0:
	case given("layers") && split > 1 && !network:
		o.chosen = fmt.Sprintf("note: %s: links of %d relations are held out, and without a network all are learnt together", strings.Join(words, " "), split)
	default:
		o.chosen = fmt.Sprintf("note: %s: no node has a label, and links are held out", strings.Join(words, " "))
	}
	return errors.Join(errs...)
}

// chooseModel takes R-SAGE if no model was given and training reads several node types or
// relations.
func (o *trainOptions) chooseModel(stderr io.Writer, m *store.Manifest) {
	if o.chosen != "" {
		printf(stderr, "%s\n", o.chosen)
	}
	types, relations := len(m.NodeTypes), 0
	for _, r := range m.Relations {
		if o.Relation == "" || o.Relation == r.Name || o.Relation == r.Key() {
			relations++
			if o.Relation != "" && r.Src == r.Dst {
				types = 1
			}
		}
	}
	if o.modelGiven || o.Layers == 0 || types == 1 && relations <= 1 {
		return
	}
	o.Kind = model.RSAGE
	printf(stderr, "note: --model %s, since there are %d types of nodes and %d relations; others for such graphs are %s\n", o.Kind, types, relations, model.TypedKinds())
}

func runTrain(ctx context.Context, stdout, stderr io.Writer, path string, o *trainOptions, openDir func() (*run.Dir, error)) error {
	if !o.Spread() {
		return trainWorker(ctx, stdout, stderr, path, o, openDir, nil)
	}
	_, workers, err := dist.ParseWay(o.Dist)
	if err != nil {
		return err
	}
	host, err := dist.Open(dist.Options{Way: dist.Local, Workers: workers, Timeout: o.DistTimeout})
	if err != nil {
		return err
	}
	defer host.Close()
	topology, err := readTopology(o.Topology)
	if err == nil {
		err = o.exchangeBy(host, topology)
	}
	if err != nil {
		return err
	}
	return o.trainBy(ctx, host, stdout, stderr, path, openDir)
}

// trainWorker trains as one worker. g is nil if there is no other.
func trainWorker(
	ctx context.Context, stdout, stderr io.Writer, path string, o *trainOptions, openDir func() (*run.Dir, error),
	g *dist.Group,
) error {
	ds, err := o.open(stderr, path, g)
	if err != nil {
		return err
	}
	defer ds.Close()
	r, err := trainOn(ctx, stdout, stderr, ds, o, openDir, g)
	if err != nil {
		return err
	}
	if err := o.print(stdout, r); err != nil {
		return err
	}
	if r.Status == run.Interrupted {
		return &interruptedError{r}
	}
	return nil
}

// interruptedError is the end of a run that was asked to stop.
type interruptedError struct{ *run.Result }

func (e *interruptedError) Error() string {
	return fmt.Sprintf("interrupted after %s; go on with %s train --resume --run %s", run.Counted(len(e.Epochs), "whole epoch"), called(), e.Run)
}

func (o *trainOptions) print(stdout io.Writer, r *run.Result) error {
	r.Advice = live.Advise(r)
	resultWithFlags(r)
	if o.json {
		return printJSON(stdout, r)
	}
	printResult(stdout, r)
	if len(r.Epochs) > 0 && !r.Options.Sampler.Walks() { // there is a checkpoint, and a network that predicts
		for _, what := range predictions(r) {
			printf(stdout, "\npredict: %s predict %s %s.parquet%s", called(), r.Run, filepath.Base(r.Run), what)
		}
		printf(stdout, "\n")
	}
	return nil
}

// predictions returns the flags of predict that a user of the run's network is likely to want.
func predictions(r *run.Result) []string {
	edges := r.Options.Edges()
	switch s := r.Stream; {
	case s != nil && s.Src != s.Dst:
		return []string{" --type " + s.Src}
	case !r.Options.Links() && (!edges || !store.IsParts(r.Dataset)):
		return []string{""}
	}
	rows := " --what embeddings"
	if src, rest, _ := strings.Cut(r.Options.Target, ","); src != "" && !strings.HasSuffix(rest, ","+src) {
		rows += " --type " + src
	}
	if edges || store.IsParts(r.Dataset) {
		return []string{rows}
	}
	likely := " --what scores --top 10 --exclude-known"
	if len(r.Relations) > 1 && len(r.Options.Fanouts) == 0 {
		likely += " --relation " + r.Relations[0].Key
	}
	return []string{likely, rows}
}

// resumeTrain goes on with the run in o.run, which began with options of its own: only flags that
// are given count. A run that has finished prints its result again; one that had not begun does.
func resumeTrain(cmd *cobra.Command, dataset string, o *trainOptions) error {
	dir, record, err := run.Open(o.run)
	if err != nil {
		return err
	}
	defer dir.Close()
	openDir := func() (*run.Dir, error) { return dir, nil }
	if record == nil {
		return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), dataset, o, openDir)
	}
	again := *o
	if again.Options, err = run.ResumeOptions(record, o.given); err != nil {
		return misuse(err)
	}
	if err := again.parseListen(); err != nil {
		return misuse(err)
	}
	if o.seeds > 0 {
		again.Seed = o.Seed // --seed names the first seed
	}
	again.modelGiven = true
	if !o.given.Given("dist") {
		again.resumeWorkers(record)
	}
	if err := again.Resumes(record.Options); err != nil {
		return fmt.Errorf("resume %s: %w", o.run, err)
	}
	r, ok, err := dir.Finished()
	if err != nil {
		return err
	}
	if ok && r.Covers(again.Options) {
		return again.print(cmd.OutOrStdout(), r)
	}
	if err := stillThere("run "+o.run, record.Dataset, dataset); err != nil {
		return err
	}
	return runTrain(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), cmp.Or(dataset, record.Dataset), &again, openDir)
}

// trainOn trains in the directory that openDir gives, and prints a line an epoch.
func trainOn(
	ctx context.Context, stdout, stderr io.Writer, ds *store.Dataset, o *trainOptions, openDir func() (*run.Dir, error),
	g *dist.Group,
) (*run.Result, error) {
	var path string
	named := func() (*run.Dir, error) {
		dir, err := openDir()
		if err == nil {
			path = dir.Path()
		}
		return dir, err
	}
	if o.json {
		stdout = stderr
	}
	p := newProgress(stderr)
	defer p.clear()
	var epochs string // of the run
	note := func(s string) { p.line("note: %s", withFlags(s)) }
	http, err := o.endpoint(note)
	if err != nil {
		return nil, err
	}
	if http != nil {
		defer http.Close()
	}
	h := run.Hooks{
		OpenRows: openRowFile,
		Group:    g,
		Start: func(rec *run.Record) {
			epochs = run.EpochsText(o.Options, rec.AutoEpochs)
			printf(stdout, "run %s   %s\n%s\n", path, describe(rec.Options, rec), rec.Memory)
			if rec.Workers > 1 {
				printf(stdout, "%s\n", workersText(rec))
			}
			if rec.AutoSettings != nil {
				printf(stdout, "%s\n", rec.AutoSettings.Reason)
			}
			if rec.AutoEpochs != nil {
				printf(stdout, "%s\n", rec.AutoEpochs.Reason)
			}
			if rec.AutoStaleness != nil {
				printf(stdout, "%s\n", rec.AutoStaleness.Reason)
			}
			if n := len(rec.Resumed); n > 0 {
				printf(stdout, "resumed after %s steps\n", count(int64(rec.Resumed[n-1].Updates)))
			}
		},
		Note: note,
		Text: withFlags,
		Live: func(now func() *run.Result) func() {
			return live.Serve(live.Options{Run: path, HTTP: http, Now: now, Note: note, Text: withFlags}).Close
		},
		Step: func(epoch, step, steps int, loss float64) {
			if p.tty != nil {
				p.show(fmt.Sprintf("epoch %d/%s", epoch, epochs), int64(step), int64(steps), "steps")
			}
		},
		Pass: func(what string, done, all int64) {
			if p.tty != nil {
				p.show(what, done, all, "events")
			}
		},
		Epoch: func(e run.Epoch) {
			p.clear()
			if !o.brief || e.ValidAcc != nil {
				fmt.Fprintln(stdout, epochLine(e, epochs, o.Streams()))
			}
		},
	}
	return train.Run(ctx, ds, named, o.Options, version(), h)
}

func describe(o run.Options, rec *run.Record) string {
	if o.Streams() {
		return describeStream(o, rec)
	}
	draws := o.Draws()
	if draws != "" {
		draws = " by " + draws
	}
	if len(o.EdgeInputs) > 0 {
		draws += ", edges " + run.EdgeInputText(o.EdgeInputs)
	}
	if o.Links() {
		draws += fmt.Sprintf("; links %s by %s, %s, negatives %s, measured among %s", cmp.Or(o.Target, "of all relations"), o.Decoder, o.Loss, o.Negatives, o.EvalNegatives)
	}
	if o.Edges() {
		draws += fmt.Sprintf("; edges %s by %s, %s", o.Target, o.EdgeLabel, o.Decoder)
	}
	network := fmt.Sprintf("%s, %d layers of %d, fanout %s", o.Kind, o.Layers, o.Hidden, run.FanoutText(o.Fanouts, o.RelationFanouts))
	if o.Layers == 0 {
		network = "rows as they are"
	}
	return fmt.Sprintf("%s%s, batch %d, lr %g, seed %d   %s, disk %s, evaluation %s",
		network, draws, o.Batch, o.LR, o.Seed, recorded(rec), rec.DiskEngine, rec.Evaluation)
}

// recorded names what computes a run that is on record.
func recorded(rec *run.Record) string {
	s := processor(rec.Device, rec.DeviceName, rec.Kernels)
	if library, found := strings.CutPrefix(rec.Kernels, kernels.CUDADevice+"+"); found {
		s += ", " + library
	}
	if p := rec.Options.MatMul; p != "" {
		s += fmt.Sprintf(", products in %s", p)
	}
	return s
}

// processor names what computes a run.
func processor(device, name, set string) string {
	switch {
	case kernels.IsCPU(device):
		return "kernels " + set
	case name != "":
		return fmt.Sprintf("device %s (%s)", device, name)
	}
	return "device " + device
}

// epochLine describes an epoch in a line. It leaves out the reads of a stream without rows to read.
func epochLine(e run.Epoch, epochs string, stream bool) string {
	width := len(strings.TrimSuffix(epochs, "+"))
	trained := "-     "
	if !math.IsNaN(e.TrainAcc) {
		trained = fmt.Sprintf("%.4f", e.TrainAcc)
	}
	line := fmt.Sprintf("epoch %*d/%s   loss %.4f   %s %s   %s ", width, e.Epoch, epochs, e.Loss, column("train", e.Metric), trained,
		column("valid", e.Metric))
	if e.ValidAcc != nil {
		line += fmt.Sprintf("%.4f", *e.ValidAcc)
	} else {
		line += "-     "
	}
	if e.TestAcc != nil {
		line += fmt.Sprintf("   %s %.4f", column("test", e.Metric), *e.TestAcc)
	}
	if e.Seconds > 0 {
		line += fmt.Sprintf("   %6s", seconds(e.Seconds))
		if !stream || e.InputRows > 0 {
			line += fmt.Sprintf("   rows %s/s   disk %s/s   hit %s", number(float64(e.InputRows)/e.Seconds), size(int64(float64(e.DiskBytes)/e.Seconds)), percent(e.HitRate))
		}
	}
	return line
}

// column names the metric of a part of the split: the name of the part, with the metric's key
// behind it unless that is accuracy.
func column(part string, k metric.Kind) string {
	if k == "" || k == metric.Accuracy {
		return part
	}
	return part + "_" + k.Key()
}

func printResult(w io.Writer, r *run.Result) {
	printf(w, "\n%s\n", outcome(r))
	printMeasures(w, r.Report, r.Metric, "on the test part: ")
	if r.Links != nil {
		printRanks(w, r.Links.RankedWithin, "on the test part: ")
	}
	printBaseline(w, r)
	printEnded(w, r)
	printf(w, "weights %s   run %s\n\n", r.ParamsXXH3, r.Run)
	printStreamResult(w, r)
	printTiers(w, r)
}

// longWait is the number of epochs without a better validation after which printEnded advises
// --patience.
const longWait = 200

// printEnded prints why a run with --epochs auto ended, and advice if a run looks too short or too
// long. A run that chose its patience itself gets no advice on patience.
func printEnded(w io.Writer, r *run.Result) {
	a, epochs, best := r.AutoEpochs, len(r.Epochs), r.Best.Epoch
	if a != nil && a.Ended != "" {
		fmt.Fprintln(w, clean(a.Ended))
	}
	switch {
	case r.Status != run.Done && r.Status != run.StoppedEarly || best == 0 || epochs <= r.Options.EvalEvery:
	case best == epochs && r.Options.Schedule.Kind == optim.Cosine: // a cosine schedule fixes the number of epochs
	case best == epochs:
		printf(w, "the last epoch is the best, so more may be better: %s train --resume --run %s --epochs %d\n", called(), r.Run, 2*epochs)
	case epochs-best >= longWait && (a == nil || r.Options.Patience > 0):
		patience := longWait / 4 / max(1, r.Options.EvalEvery) // evaluations
		printf(w, "%d epochs after the best one brought nothing: --patience %d would have ended them\n", epochs-best, max(1, patience))
	}
}

// printBaseline prints the metric of the answer without a network.
func printBaseline(w io.Writer, r *run.Result) {
	if b := r.Baseline; b != nil {
		printf(w, "without a network, by %s: %s %s, %s %s\n", b.What, column("valid", r.Metric), measured(r.Metric, b.Valid), column("test", r.Metric),
			measured(r.Metric, b.Test))
	}
}

// outcome describes the result of a run in a line.
func outcome(r *run.Result) string {
	s := r.Status + " after " + run.Counted(len(r.Epochs), "epoch")
	switch {
	case r.Status == run.Done && len(r.Epochs) == 0:
		s = fmt.Sprintf("nothing was trained, and there is no checkpoint: go on with %s train --resume --run %s --epochs N", called(), r.Run)
	case r.Best.Epoch > 0:
		s += fmt.Sprintf("; best epoch %d: %s %s, %s %s", r.Best.Epoch, column("valid", r.Best.Metric), measured(r.Best.Metric, r.Best.ValidAcc),
			column("test", r.Best.Metric), measured(r.Best.Metric, r.Best.TestAcc))
	case r.Best.TestAcc != nil:
		s += "; " + column("test", r.Best.Metric) + " " + measured(r.Best.Metric, r.Best.TestAcc)
	}
	if r.Error != "" {
		s += ": " + r.Error
	}
	return s
}
