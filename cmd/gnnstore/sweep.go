package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/dist"
	"github.com/gnnstore/gnnstore/train/optim"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sweep"
)

type sweepOptions struct {
	run.Options // the options with one value on the command line
	given       *setting.Bound[run.Options]
	file        string
	vary        []string
	run         string
	resume      bool
	trials      int
	seeds       int
	halving     bool
	eta         int
	minEpochs   int
	plan        bool
	json        bool
}

func newSweep() *cobra.Command {
	o := &sweepOptions{Options: run.DefaultOptions()}
	cmd := &cobra.Command{
		Use:   "sweep [DATASET]",
		Short: "Try settings of a run, and choose one by validation",
		Long: "Train by each combination of some options, or by combinations drawn at random, and choose the best by\n" +
			"validation. The test part is measured for the chosen setting alone. `gnnstore help sweeps` explains it.\n\n" +
			"-f names a YAML file with the options of a run: one value fixes an option, and a list varies it. It may also have\n" +
			"dataset, run, seeds, trials and halving. A flag replaces its line in the file.\n\n" +
			"Runs train one after the other, each within --memory, in directories of their own in --run. A run that fails does\n" +
			"not end the sweep, and means are over the other runs. The exit code is 0 if a setting was chosen, and 1 if all runs\n" +
			"failed. Ctrl-C ends a sweep with a checkpoint of its run. After that, or after a crash, the same command with\n" +
			"--resume goes on, and ends with the same table and weights. It trains failed runs again.",
		Example: "  gnnstore sweep -f grid.yaml\n" +
			"  gnnstore sweep arxiv.gnn --vary model=sage,gcn,gat --seeds 5\n" +
			"  gnnstore sweep arxiv.gnn --vary 'lr={log: [1e-4, 1e-1]}' --trials 27 --epochs 27 --halving\n" +
			"  gnnstore sweep -f grid.yaml --resume --run runs/arxiv-sweep-1",
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 && o.file != "" {
				return nil
			}
			return exactArgs("DATASET")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			g, err := o.grid(cmd.Flags())
			if err != nil {
				return err
			}
			if len(args) > 0 {
				g.Dataset = args[0]
			}
			return o.start(cmd, g)
		},
	}
	f := cmd.Flags()
	f.SortFlags = false
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	own.StringArrayVar(&o.vary, "vary", nil, "option that varies, as `NAME=VALUE,VALUE` or NAME={log: [1e-4, 0.1]}; repeatable")
	own.StringVarP(&o.file, "file", "f", "", "YAML file of options, fixed and varying, named like their flags")
	own.IntVar(&o.trials, "trials", 0, "settings to draw at random (default all combinations)")
	own.IntVar(&o.seeds, "seeds", 1, "runs of each setting, by as many seeds from --seed on")
	own.BoolVar(&o.halving, "halving", false, "train all settings for few epochs, and the best of them up to --epochs")
	own.IntVar(&o.eta, "eta", 3, "--halving: one in this many settings goes on")
	own.IntVar(&o.minEpochs, "min-epochs", 0, "--halving: epochs that all settings train (default by the number of settings)")
	own.StringVar(&o.run, "run", "", "directory of the runs (default a fresh runs/NAME-sweep-N)")
	own.BoolVar(&o.resume, "resume", false, "go on with the sweep in --run, or else with the newest one of this grid in runs")
	own.BoolVar(&o.plan, "plan", false, "list the settings with their memory and time, and train nothing")
	own.BoolVar(&o.json, "json", false, "print the result as JSON, and progress to stderr")
	addGroup(f, "The sweep", own)
	own.VisitAll(func(flag *pflag.Flag) { makeUsual(f, flag.Name, "") })
	f.Lookup("vary").Annotations[setting.ChoicesOf] = varied()
	o.Options = o.ForFlags()
	o.given = setting.Bind(f, run.Table, &o.Options)
	for _, flag := range []string{"eta", "target", "kappa", "history", "dist"} {
		delete(f.Lookup(flag).Annotations, setting.BriefOf) // so that help stays one screen
	}
	return cmd
}

// varied returns how values of --vary can begin, for completion.
func varied() (words []string) {
	for _, d := range run.Table {
		if word := d.FlagName() + "="; !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return words
}

// grid reads the grid from the command line and the file. The command line overrides the file.
func (o *sweepOptions) grid(f *pflag.FlagSet) (*sweep.Grid, error) {
	g := sweep.NewGrid()
	errs := []error{o.given.Err()}
	f.Visit(func(flag *pflag.Flag) {
		if _, key, ok := o.given.Find(flag.Name); ok {
			if err := g.Fix(setting.Choice{Key: key, Flag: flag.Name, Text: flag.Value.String()}); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", flag.Name, err))
			}
		}
	})
	for _, text := range o.vary {
		if err := g.Vary(strings.TrimPrefix(text, "--")); err != nil {
			errs = append(errs, fmt.Errorf("--vary %.80s: %w", text, err))
		}
	}
	given := func(flag string, set func() error) {
		if f.Changed(flag) {
			if err := set(); err != nil {
				errs = append(errs, fmt.Errorf("--%s: %w", flag, err))
			}
		}
	}
	given("trials", func() error { return g.SetTrials(o.trials) })
	given("seeds", func() error { return g.SetSeeds(o.seeds) })
	given("halving", func() error {
		h := sweep.Halving{MinEpochs: o.minEpochs}
		if f.Changed("eta") {
			h.Eta = o.eta
		}
		return g.SetHalving(h)
	})
	if !o.halving && (f.Changed("eta") || f.Changed("min-epochs")) {
		errs = append(errs, errors.New("--eta, --min-epochs: they go with --halving"))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, misuse(err)
	}
	g.Keep()
	if o.file == "" {
		return g, nil
	}
	text, err := readOptionsText(o.file)
	if err != nil {
		return nil, err
	}
	lines, err := setting.ReadLines(o.file, text)
	if err != nil {
		return nil, err
	}
	has := func(name string) bool {
		return slices.ContainsFunc(lines, func(l setting.Line) bool { return l.Name == name })
	}
	if has("options") && has("seal") {
		return nil, fmt.Errorf("%s: it is the record of a run; print its options by gnnstore train -f %s --print-config, and write a grid with them",
			o.file, shellWord(o.file))
	}
	for _, l := range lines {
		if err := g.Take(l); err != nil {
			errs = append(errs, fmt.Errorf("%s: line %d: %.60s: %s", o.file, l.Number, l.Name, withFlags(oneLine(err))))
		}
	}
	return g, errors.Join(errs...)
}

// start checks all settings, and plans or trains them.
func (o *sweepOptions) start(cmd *cobra.Command, g *sweep.Grid) error {
	if g.Dataset == "" {
		return misuse(fmt.Errorf("DATASET is missing; name it, or write dataset: NAME into %s", o.file))
	}
	if len(g.Axes) == 0 {
		return misuse(errors.New("nothing varies; list values of an option in the file, or by --vary NAME=VALUE,VALUE; for one setting use gnnstore train"))
	}
	settings, err := g.Settings()
	if err != nil {
		return o.about(err)
	}
	ds, err := store.OpenOne(g.Dataset)
	if err != nil {
		return err
	}
	record := &sweep.Record{Dataset: run.Absolute(g.Dataset), Seal: ds.Manifest().Whole(), Version: version()}
	record.Grid = g.Lines()
	if err := ds.Close(); err != nil {
		return err
	}
	s := &sweeping{
		grid: g, settings: settings, stderr: &onceWriter{Writer: cmd.ErrOrStderr()}, progress: cmd.OutOrStdout(),
	}
	if o.json {
		s.progress = cmd.ErrOrStderr()
	}
	if err := s.check(); err != nil {
		return o.about(err)
	}
	if o.plan {
		return s.plan(cmd.Context(), cmd.OutOrStdout(), o.json)
	}
	if err := o.place(s, g, record); err != nil {
		return err
	}
	dir, err := sweep.Open(s.dir, record, o.resume)
	if err != nil {
		return err
	}
	out, err := s.train(cmd.Context())
	if err = errors.Join(err, dir.Close()); err != nil {
		return o.explain(s, err)
	}
	r := s.result(out)
	if o.json {
		err = printJSON(cmd.OutOrStdout(), r)
	} else {
		r.print(cmd.OutOrStdout(), s)
	}
	if out.Chosen == nil {
		err = errors.Join(err, fmt.Errorf("all %d runs failed; see gnnstore runs %s", r.RunCount, s.dir))
	}
	return err
}

// place chooses the directory of the sweep.
func (o *sweepOptions) place(s *sweeping, g *sweep.Grid, record *sweep.Record) (err error) {
	if s.dir = o.run; s.dir == "" {
		s.dir = g.Run
	}
	prefix := runsOf(g.Dataset) + "-sweep"
	switch {
	case s.dir != "" && run.Begun(s.dir):
		return fmt.Errorf("--run %s: it holds a run, and a sweep makes a directory of runs; choose another", s.dir)
	case s.dir != "":
	case o.resume:
		if s.dir = sweep.Find(prefix, record); s.dir == "" {
			return fmt.Errorf("--resume: no %s-N has a sweep of this grid; name its directory by --run, or leave --resume out", prefix)
		}
	default:
		s.dir, err = freshDir(prefix)
	}
	return err
}

// about adds the name of the file to an error in it. Without a file, the command line was misused.
func (o *sweepOptions) about(err error) error {
	if o.file == "" {
		return misuse(err)
	}
	return fmt.Errorf("%s: %w", o.file, err)
}

// explain adds the command that goes on with the sweep to the error that ended it.
func (o *sweepOptions) explain(s *sweeping, err error) error {
	again := "gnnstore sweep"
	if o.file != "" {
		again += " -f " + shellWord(o.file)
	} else {
		again = "the same command with"
	}
	again += " --resume --run " + shellWord(s.dir)
	if s.interrupted {
		return &stoppedError{fmt.Sprintf("interrupted in run %d of %d; go on by %s", s.number, s.expected(), again), err}
	}
	return fmt.Errorf("%w; then go on by %s", err, again)
}

// check builds the options of each setting, and returns an error if one of them is wrong.
func (s *sweeping) check() error {
	epochs, every, cosine := map[int]bool{}, map[int]bool{}, false
	for _, one := range s.settings {
		o, f, err := s.trial(one, nil)
		if err == nil {
			err = o.chooseTask(f, s.grid.Dataset)
		}
		if err == nil {
			err = o.complete()
		}
		if err != nil {
			return fmt.Errorf("setting %d of %d, %s: %s", one.Number, len(s.settings), settingText(one), withFlags(oneLine(err)))
		}
		way, _, err := o.findWorkers()
		switch {
		case err != nil:
			return err
		case way == dist.MPI:
			return errors.New("--dist mpi: launch one run a setting, and compare them by gnnstore runs; a sweep trains within one process")
		case o.Epochs == 0:
			return errors.New("--epochs 0: nothing would be trained; give a number, or leave it out")
		case o.Eval == run.NoEvaluation:
			return fmt.Errorf("--eval %s: validation chooses the setting, so it has to be measured; leave it out", o.Eval)
		}
		epochs[o.Epochs], every[o.EvalEvery] = true, true
		cosine = cosine || o.Schedule.Kind == optim.Cosine
		s.epochs, s.every, s.seed = o.Epochs, o.EvalEvery, o.Seed
	}
	h := s.grid.Halving
	switch {
	case h == nil:
		return nil
	case len(epochs) > 1 || len(every) > 1:
		return errors.New("halving compares settings after the same epochs; give --epochs and --eval-every one value")
	case cosine:
		return errors.New("halving trains the best settings further, and --schedule cosine fixes the number of epochs; take another schedule")
	case s.epochs == run.Auto:
		return errors.New("halving needs --epochs N, up to which the last settings train")
	}
	var err error
	s.ladder, err = h.Ladder(len(s.settings), s.epochs, s.every)
	return err
}

// shellWord returns a word of a command as a shell reads it, in quotes if it needs them.
func shellWord(word string) string {
	plain := func(c rune) bool {
		return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("_-./:,=@%+", c)
	}
	if word != "" && strings.IndexFunc(word, func(c rune) bool { return !plain(c) }) < 0 {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// onceWriter passes on each line once, after the name of the run that wrote it first. The runs of a
// sweep write mostly the same notes.
type onceWriter struct {
	io.Writer
	run  string
	seen map[string]bool
	line []byte
}

func (w *onceWriter) Write(p []byte) (int, error) {
	w.line = append(w.line, p...)
	for {
		end := slices.Index(w.line, '\n')
		if end < 0 {
			return len(p), nil
		}
		line := string(w.line[:end+1])
		w.line = w.line[end+1:]
		if w.seen[line] {
			continue
		}
		if w.seen == nil {
			w.seen = map[string]bool{}
		}
		w.seen[line] = true
		if _, err := io.WriteString(w.Writer, w.run+line); err != nil {
			return 0, err
		}
	}
}
