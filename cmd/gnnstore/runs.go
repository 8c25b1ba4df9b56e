package main

import (
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/gnnstore/gnnstore/train/metric"
	"github.com/gnnstore/gnnstore/train/run"
)

// listedRun is a run in the output of runs; its JSON keys are stable.
type listedRun struct {
	Run     string   `json:"run"` // directory
	Dataset string   `json:"dataset,omitempty"`
	Seal    string   `json:"seal,omitempty"`
	Status  string   `json:"status"` // as in run.Result, or "unreadable"
	Error   string   `json:"error,omitempty"`
	Metric  string   `json:"metric,omitempty"`
	Epochs  int      `json:"epochs"`     // that were trained
	Best    int      `json:"best_epoch"` // 0: nothing was validated
	Valid   *float64 `json:"valid"`
	Test    *float64 `json:"test"`
	Seconds float64  `json:"seconds"` // of training, without evaluation
	PeakRSS int64    `json:"peak_rss_bytes"`
	Params  string   `json:"params_xxh3,omitempty"`
	// Options has each option whose value differs among the runs, by its key.
	Options map[string]string `json:"options"`

	kind metric.Kind
	all  *run.Options
	// seed is the value of the option seed.
	seed uint64
}

// seedGroup has runs that differ in their seed alone.
type seedGroup struct {
	Dataset string            `json:"dataset"`
	Metric  string            `json:"metric"`
	Options map[string]string `json:"options"` // as in listedRun, without seed
	Runs    []string          `json:"runs"`
	Seeds   []uint64          `json:"seeds"`
	Failed  int               `json:"failed"` // seeds that failed, and are not among Seeds
	Valid   *metric.Spread    `json:"valid,omitempty"`
	Test    *metric.Spread    `json:"test,omitempty"`

	kind metric.Kind
}

// runList is the output of runs.
type runList struct {
	Runs  []*listedRun `json:"runs"`
	Seeds []*seedGroup `json:"over_seeds"`
}

// runOrders are the values of --sort. Each compares two runs.
var runOrders = map[string]func(a, b *listedRun) int{
	"valid":   func(a, b *listedRun) int { return better(a.kind, a.Valid, b.Valid) },
	"test":    func(a, b *listedRun) int { return better(a.kind, a.Test, b.Test) },
	"seconds": func(a, b *listedRun) int { return cmp.Compare(a.Seconds, b.Seconds) },
	"run":     func(a, b *listedRun) int { return 0 },
}

func newRuns() *cobra.Command {
	var asJSON, asCSV bool
	order := "valid"
	cmd := &cobra.Command{
		Use:   "runs [DIR|RUN]...",
		Short: "List runs and compare them",
		Long: "List the runs in DIR (default runs), or the runs that are named: what differs among their options, how good they are\n" +
			"and how long they took. The best by validation comes first, dataset by dataset. Where runs differ in nothing but\n" +
			"--seed, the mean and the standard deviation over them follow.",
		Example: "  gnnstore runs\n" +
			"  gnnstore runs runs/arxiv-1 runs/arxiv-2 --sort seconds\n" +
			"  gnnstore runs --csv > runs.csv",
		RunE: func(cmd *cobra.Command, args []string) error {
			names := slices.Sorted(maps.Keys(runOrders))
			if runOrders[order] == nil {
				return misuse(fmt.Errorf("--sort %s: there are %s%s", order, strings.Join(names, ", "), didYouMean(order, names, "%s")))
			}
			if asJSON && asCSV {
				return misuse(errors.New("--json and --csv: choose one of them"))
			}
			if len(args) == 0 {
				args = []string{"runs"}
			}
			if _, err := os.Lstat(args[0]); errors.Is(err, fs.ErrNotExist) && len(args) == 1 {
				if near := didYouMean(args[0], commandNames(cmd), "%s"); near != "" {
					return misuse(fmt.Errorf("runs has no command %q%s", args[0], near))
				}
			}
			paths, err := findRuns(args)
			if err != nil {
				return err
			}
			list := listRuns(paths, runOrders[order])
			switch {
			case asJSON:
				return printJSON(cmd.OutOrStdout(), list)
			case asCSV:
				return list.writeCSV(cmd.OutOrStdout())
			}
			list.print(cmd.OutOrStdout())
			return nil
		},
	}
	cmd.Flags().StringVar(&order, "sort", order, "order of the runs of a dataset: valid, test, seconds or run, by their names")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print as JSON")
	cmd.Flags().BoolVar(&asCSV, "csv", false, "print the runs as csv, a column for each option that differs")
	cmd.AddCommand(newRunsPrune())
	return cmd
}

// findRuns returns the directories of runs that the arguments are or hold.
func findRuns(args []string) (paths []string, err error) {
	add := func(path string) {
		if path = filepath.Clean(path); !slices.Contains(paths, path) {
			paths = append(paths, path)
		}
	}
	for _, arg := range args {
		if run.Begun(arg) {
			add(arg)
			continue
		}
		entries, err := os.ReadDir(arg)
		if err != nil {
			return nil, fmt.Errorf("%w; name a run, or a directory of runs", err)
		}
		found := false
		for _, e := range entries {
			if path := filepath.Join(arg, e.Name()); e.IsDir() && run.Begun(path) {
				add(path)
				found = true
			}
		}
		if !found {
			return nil, fmt.Errorf("%s: there are no runs in it; gnnstore train DATASET makes one", arg)
		}
	}
	return paths, nil
}

// listRuns reads the runs, orders them, and finds what differs among them.
func listRuns(paths []string, order func(a, b *listedRun) int) *runList {
	list := &runList{Runs: []*listedRun{}, Seeds: []*seedGroup{}}
	for _, path := range paths {
		list.Runs = append(list.Runs, readListed(path))
	}
	slices.SortStableFunc(list.Runs, func(a, b *listedRun) int {
		return cmp.Or(
			cmp.Compare(filepath.Base(a.Dataset), filepath.Base(b.Dataset)), // a resumed run records the whole path
			cmp.Compare(a.Seal, b.Seal), cmp.Compare(a.Metric, b.Metric),
			order(a, b),
		)
	})
	list.findDifferences()
	list.groupSeeds()
	return list
}

// readBegun reads a run as run.Read does, but also accepts a run that has no step yet.
func readBegun(path string) (*run.Result, error) {
	r, err := run.Read(path)
	if r != nil && errors.Is(err, run.ErrNoStep) {
		err = nil
	}
	return r, err
}

// readListed reads the run in path for the list.
func readListed(path string) *listedRun {
	l := &listedRun{Run: path, Options: map[string]string{}}
	r, err := readBegun(path)
	if err != nil {
		l.Status, l.Error = unreadable, withFlags(oneLine(err))
		return l
	}
	r = resultWithFlags(r)
	l.Dataset, l.Seal, l.Status, l.Error = r.Dataset, r.Seal, r.Status, r.Error
	l.kind, l.Metric, l.all, l.seed = r.Metric, string(r.Metric), &r.Options, r.Seed
	l.Epochs, l.Best, l.Valid, l.Test = len(r.Epochs), r.Best.Epoch, r.Best.ValidAcc, r.Best.TestAcc
	l.PeakRSS, l.Params = r.PeakRSSBytes, r.ParamsXXH3
	l.Seconds = r.EpochSeconds()
	return l
}

// better puts the run with the better value first, and runs without one last.
func better(k metric.Kind, a, b *float64) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(map[bool]int{true: 1}[a == nil], map[bool]int{true: 1}[b == nil])
	case k.Better(*a, *b):
		return -1
	case k.Better(*b, *a):
		return 1
	}
	return 0
}

// findDifferences sets the options that differ among the runs. Of the options that a resumed run
// may change, such as the memory, it takes the epochs alone: the others decide no result.
func (list *runList) findDifferences() {
	var first *listedRun
	values := map[string]string{} // of first
	for _, l := range list.Runs {
		if l.all == nil {
			continue
		}
		if first == nil {
			first = l
		}
		for _, d := range run.Table.Diff(l.all, first.all) {
			l.Options[d.Key], values[d.Key] = d.Now, d.Then
		}
		if now, then := epochsOf(l.all), epochsOf(first.all); now != then {
			l.Options["epochs"], values["epochs"] = now, then
		}
	}
	for _, l := range list.Runs {
		for key, value := range values {
			if _, set := l.Options[key]; !set && l.all != nil {
				l.Options[key] = value
			}
		}
	}
}

// epochsOf is the option of the epochs as its flag reads it.
func epochsOf(o *run.Options) string {
	if o.Epochs == run.Auto {
		return "auto"
	}
	return strconv.Itoa(o.Epochs)
}

// groupSeeds groups the runs that ended and differ in their seed alone.
func (list *runList) groupSeeds() {
	groups := map[string]*seedGroup{}
	members := map[*seedGroup][]*listedRun{}
	failed := map[string]map[uint64]bool{} // seeds, by key
	for _, l := range list.Runs {
		others := maps.Clone(l.Options)
		delete(others, "seed")
		key := l.Seal + " " + l.Metric + " " + optionsText(others)
		switch {
		case l.Status == run.Failed && failed[key] == nil:
			failed[key] = map[uint64]bool{l.seed: true}
		case l.Status == run.Failed:
			failed[key][l.seed] = true
		}
		if l.Status != run.Done && l.Status != run.StoppedEarly {
			continue
		}
		g := groups[key]
		if g == nil {
			g = &seedGroup{Dataset: l.Dataset, Metric: l.Metric, Options: others, kind: l.kind}
			groups[key], list.Seeds = g, append(list.Seeds, g)
		}
		if !slices.Contains(g.Seeds, l.seed) { // a run of the same seed is the same run
			g.Runs, g.Seeds = append(g.Runs, l.Run), append(g.Seeds, l.seed)
			members[g] = append(members[g], l)
		}
	}
	for key, seeds := range failed {
		for seed := range seeds {
			if g := groups[key]; g != nil && !slices.Contains(g.Seeds, seed) {
				g.Failed++
			}
		}
	}
	list.Seeds = slices.DeleteFunc(list.Seeds, func(g *seedGroup) bool { return len(g.Runs) < 2 })
	for _, g := range list.Seeds {
		g.Valid = spreadOf(members[g], func(l *listedRun) *float64 { return l.Valid })
		g.Test = spreadOf(members[g], func(l *listedRun) *float64 { return l.Test })
	}
}

// spreadOf returns nil unless each run has the value.
func spreadOf(runs []*listedRun, value func(*listedRun) *float64) *metric.Spread {
	var values []float64
	for _, l := range runs {
		v := value(l)
		if v == nil {
			return nil
		}
		values = append(values, *v)
	}
	return metric.SpreadOf(values)
}

// optionsText writes options as flags.
func optionsText(options map[string]string) string {
	names := run.Table.Flags()
	var texts []string
	for _, key := range slices.Sorted(maps.Keys(options)) {
		value := options[key]
		if value == "" || strings.ContainsAny(value, " \t") {
			value = strconv.Quote(value)
		}
		texts = append(texts, flagText(cmp.Or(names[key], key), value))
	}
	return strings.Join(texts, " ")
}

// flagText returns a flag with its value as text. A switch takes no value after a blank, so it is
// --flag or --flag=false.
func flagText(flag, value string) string {
	switch value {
	case "true":
		return "--" + flag
	case "false":
		return "--" + flag + "=false"
	}
	return "--" + flag + " " + value
}

func (list *runList) print(w io.Writer) {
	rows := [][]string{{"run", "dataset", "status", "epochs", "best", "metric", "valid", "test", "seconds", "peak"}}
	for _, l := range list.Runs {
		rows = append(rows, l.cells())
	}
	tabulate(w, rows)
	printf(w, "\n")
	for _, l := range list.Runs {
		switch {
		case l.Error != "":
			printf(w, "%s: %s\n", clean(l.Run), clean(l.Error))
		case len(l.Options) > 0:
			printf(w, "%s: %s\n", clean(l.Run), clean(optionsText(l.Options)))
		}
	}
	for _, g := range list.Seeds {
		printf(w, "over %d seeds of %s: %s %s, %s %s", len(g.Runs), clean(g.Dataset), column("valid", g.kind), meanText(g.kind, g.Valid, len(g.Runs)),
			column("test", g.kind), meanText(g.kind, g.Test, len(g.Runs)))
		if g.Failed > 0 {
			printf(w, ", %d more failed", g.Failed)
		}
		if len(g.Options) > 0 {
			printf(w, ": %s", clean(optionsText(g.Options)))
		}
		printf(w, "\n")
	}
}

func (l *listedRun) cells() []string {
	best, measure := "-", "-"
	if l.Best > 0 {
		best = strconv.Itoa(l.Best)
	}
	if l.Metric != "" {
		measure = l.Metric
	}
	return []string{
		clean(l.Run), clean(cmp.Or(l.Dataset, "-")), l.Status, strconv.Itoa(l.Epochs), best, measure, measured(l.kind, l.Valid),
		measured(l.kind, l.Test), seconds(l.Seconds), size(l.PeakRSS),
	}
}

// writeCSV writes a row a run.
func (list *runList) writeCSV(w io.Writer) error {
	keys := map[string]bool{}
	for _, l := range list.Runs {
		for key := range l.Options {
			keys[key] = true
		}
	}
	head := []string{"run", "dataset", "seal", "status", "metric", "epochs", "best_epoch", "valid", "test", "seconds", "peak_rss_bytes", "params_xxh3"}
	options := slices.Sorted(maps.Keys(keys))
	out := csv.NewWriter(w)
	_ = out.Write(append(head, options...)) // Error returns the first error
	value := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', -1, 64)
	}
	for _, l := range list.Runs {
		row := []string{
			l.Run, l.Dataset, l.Seal, l.Status, l.Metric, strconv.Itoa(l.Epochs), strconv.Itoa(l.Best),
			value(l.Valid), value(l.Test), value(&l.Seconds), strconv.FormatInt(l.PeakRSS, 10), l.Params,
		}
		for _, key := range options {
			row = append(row, l.Options[key])
		}
		_ = out.Write(row)
	}
	out.Flush()
	return out.Error()
}
