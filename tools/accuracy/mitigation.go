package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
)

// mitigationTask is a network on a stream. At the staleness of these tasks, some of its state is
// out of date.
type mitigationTask struct {
	name   string
	ingest []string // FORMAT, the path of the raw file below the data directory, and flags
	kind   model.Kind
}

// All other options have their defaults.
const (
	mitigationStaleness = 3
	mitigationEpochs    = 5
)

var (
	wikipediaEvents = []string{"events", "jodie_wikipedia_edges/ml_wikipedia.txt", "--bipartite", "--edge-features", "random:16"}
	mitigationTasks = []mitigationTask{
		{"wikipedia/tgn", wikipediaEvents, model.TGN},
		{"wikipedia/jodie", wikipediaEvents, model.JODIE},
		{"wikipedia/apan", wikipediaEvents, model.APAN},
		{"collegemsg/tgn", []string{"events", "collegemsg/CollegeMsg.txt.gz"}, model.TGN},
		{"enron/tgn", []string{"events", "enron_temporal/ml_enron.txt"}, model.TGN},
		{"email-eu/tgn", []string{"events", "email_eu_core_temporal/email-Eu-core-temporal.txt.gz"}, model.TGN},
	}
)

// mitigationWay is one treatment of memories that are out of date.
type mitigationWay struct {
	Keep   float64 `json:"keep"`   // run.Options.Mitigate
	Random bool    `json:"random"` // with random partners: run.Hooks.RandomPartners
	Fresh  bool    `json:"fresh"`  // staleness 1: nothing is out of date
}

func (w mitigationWay) String() string {
	switch {
	case w.Fresh:
		return "staleness 1"
	case w.Keep == 0:
		return "off"
	case w.Random:
		return "random"
	}
	return "similar"
}

// mitigationTrial is a training and its result.
type mitigationTrial struct {
	Task string `json:"task"`
	Seed int    `json:"seed"`
	mitigationWay
	Valid      float64          `json:"valid_ap"`
	Test       float64          `json:"test_ap"`
	Mitigation run.MitigationOf `json:"mitigation"`
	Seconds    float64          `json:"seconds"`
}

func (t mitigationTrial) same(as mitigationTrial) bool {
	return t.Task == as.Task && t.Seed == as.Seed && t.mitigationWay == as.mitigationWay
}

// mitigation compares training with each λ of -mitigate with training that blends nothing, seed by
// seed. A single λ is also compared with random partners, and with a staleness of 1. For several,
// only validation is reported, since it chooses one.
func (b *bench) mitigation(ctx context.Context, w io.Writer, o options) (err error) {
	var keeps []float64
	for text := range strings.SplitSeq(o.mitigate, ",") {
		keep, err := strconv.ParseFloat(text, 64)
		if err != nil || !(keep > 0 && keep < 1) {
			return fmt.Errorf("-mitigate %s: want numbers between 0 and 1", o.mitigate)
		}
		keeps = append(keeps, keep)
	}
	ways := []mitigationWay{{}}
	for _, keep := range keeps {
		ways = append(ways, mitigationWay{Keep: keep})
	}
	if len(keeps) == 1 {
		ways = append(ways, mitigationWay{Keep: keeps[0], Random: true}, mitigationWay{Fresh: true})
	}
	tasks := mitigationTasks
	if o.only != "" {
		names := strings.Split(o.only, ",")
		tasks = slices.DeleteFunc(slices.Clone(tasks), func(t mitigationTask) bool { return !slices.Contains(names, t.name) })
		if len(tasks) != len(names) {
			return fmt.Errorf("-only %s: not all of these are there", o.only)
		}
	}
	log, err := openMitigationLog(o.log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.close()) }()
	for seed := 1; seed <= o.seeds; seed++ { // seed by seed: an interrupted run has pairs
		for _, t := range tasks {
			for _, way := range ways {
				want := mitigationTrial{Task: t.name, Seed: seed, mitigationWay: way}
				if slices.ContainsFunc(log.done, want.same) {
					continue
				}
				done, err := b.mitigate(ctx, t, want)
				if err == nil {
					err = log.add(done)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(b.progress, "%s seed %d: %s, λ %v  valid %.4f  %.1f s\n", t.name, seed, way, way.Keep, done.Valid, done.Seconds)
			}
		}
	}
	text := mitigationMarkdown(b.what, tasks, ways, log.done, o.seeds)
	fmt.Fprint(w, text)
	if o.record != "" {
		return putAbove(o.record, text)
	}
	return nil
}

// mitigate does a training in this process, since no flag of train gives random partners.
func (b *bench) mitigate(ctx context.Context, t mitigationTask, of mitigationTrial) (_ mitigationTrial, err error) {
	path := filepath.Join(b.tmp, strings.ReplaceAll(strings.Join(t.ingest, "-"), "/", "-")+".gnn")
	if _, err := os.Stat(path); err != nil {
		if err := b.gnnstore.Run(ctx, append([]string{"ingest", t.ingest[0], filepath.Join(b.data, t.ingest[1]), path}, t.ingest[2:]...)...); err != nil {
			return of, err
		}
	}
	ds, err := store.Open(path)
	if err != nil {
		return of, err
	}
	defer func() { err = errors.Join(err, ds.Close()) }()
	options := run.DefaultStreamOptions(t.kind)
	options.Epochs, options.Seed, options.Staleness, options.Mitigate = mitigationEpochs, uint64(of.Seed), mitigationStaleness, of.Keep
	if of.Fresh {
		options.Staleness = 1
	}
	options.MemoryBytes = 2 << 30
	if of.Keep > 0 {
		options.MitigateAudit = 1 << 20 // all of them
	}
	var h run.Hooks
	if of.Random {
		h.RandomPartners = sample.Hash(options.Seed, 1) | 1
	}
	dir := filepath.Join(b.tmp, "run")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	began := time.Now()
	r, err := train.Run(ctx, ds, func() (*run.Dir, error) {
		d, _, err := run.Open(dir)
		return d, err
	}, options, "accuracy", h)
	if err != nil {
		return of, err
	}
	if r.Status != run.Done {
		return of, fmt.Errorf("%s: it was cut short", t.name)
	}
	of.Valid, of.Test, of.Mitigation, of.Seconds = *r.Best.ValidAcc, *r.Best.TestAcc, r.Stream.Mitigation, time.Since(began).Seconds()
	return of, nil
}

// mitigationMarkdown returns a section with all that one needs to measure the same.
func mitigationMarkdown(what string, tasks []mitigationTask, ways []mitigationWay, done []mitigationTrial, seeds int) string {
	several := len(ways) > 2 && ways[len(ways)-1].Keep > 0
	var rows [][]string
	for _, t := range tasks {
		off := mitigationTrials(done, t.name, ways[0], seeds)
		for _, way := range ways {
			of := mitigationTrials(done, t.name, way, seeds)
			var valid, test, gain, share []float64
			for i, r := range of {
				valid, test, share = append(valid, r.Valid), append(test, r.Test), append(share, r.Mitigation.Share())
				if several {
					gain = append(gain, r.Valid-off[i].Valid)
				} else {
					gain = append(gain, r.Test-off[i].Test)
				}
			}
			row := []string{t.name, way.String(), "", strconv.Itoa(len(of)), percentDeviation(valid), "", "", "", "", "", ""}
			if !several {
				row[5] = percentDeviation(test)
			}
			if way != ways[0] {
				mean, low, high := interval(gain)
				row[6] = fmt.Sprintf("%.2f (%.2f to %.2f)", 100*mean, 100*low, 100*high)
			}
			if way.Keep > 0 {
				blended, _ := meanDeviation(share)
				row[2], row[7] = fmt.Sprint(way.Keep), fmt.Sprintf("%.2f", 100*blended)
				audit := func(value func(a *run.MitigationAudit) float64) float64 {
					var all []float64
					for _, r := range of {
						if a := r.Mitigation.Audit; a != nil {
							all = append(all, value(a))
						}
					}
					mean, _ := meanDeviation(all)
					return mean
				}
				row[8] = fmt.Sprintf("%.1f", 100*audit(func(a *run.MitigationAudit) float64 { return float64(a.OutOfDate) / float64(a.Nodes) }))
				row[9] = fmt.Sprintf("%.3f, %.3f", audit(func(a *run.MitigationAudit) float64 { return a.ErrorBlended }),
					audit(func(a *run.MitigationAudit) float64 { return a.ErrorWithout }))
				row[10] = fmt.Sprintf("%.3f, %.3f", audit(func(a *run.MitigationAudit) float64 { return a.StaleBlended }),
					audit(func(a *run.MitigationAudit) float64 { return a.StaleWithout }))
			}
			rows = append(rows, row)
		}
	}
	gain := "gain in test AP, points (95 %)"
	if several {
		gain = "gain in valid AP, points (95 %)"
	}
	return fmt.Sprintf(`
## Memories that are out of date, blended: %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. Average precision at staleness %d, one negative an event, the mean over batches, by the epoch that was best
on the validation part, replayed. off blends nothing; random blends the same rows with as many other nodes whose last event is as recent. ± is the
standard deviation over seeds; gains are over off, seed by seed. blended is the share of the roots of training, out of date that of these whose
memory the steps that staleness hides had changed; errors are beside the memory that these steps left, relative to it, blended and without.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(), mitigationStaleness,
		markdownTable([]string{"stream and network", "partners", "λ", "seeds", "valid AP %", "test AP %", gain, "blended %", "out of date %",
			"error", "error of those out of date"}, rows))
}

// mitigationTrials returns the trials of seeds 1 to n, in order.
func mitigationTrials(done []mitigationTrial, task string, way mitigationWay, n int) (of []mitigationTrial) {
	for seed := 1; seed <= n; seed++ {
		i := slices.IndexFunc(done, mitigationTrial{Task: task, Seed: seed, mitigationWay: way}.same)
		if i >= 0 {
			of = append(of, done[i])
		}
	}
	return of
}

func percentDeviation(x []float64) string {
	mean, deviation := meanDeviation(x)
	return fmt.Sprintf("%.2f ± %.2f", 100*mean, 100*deviation)
}

// mitigationLog has the finished trainings. If it has a file, it also writes a JSON object a line.
type mitigationLog struct {
	done []mitigationTrial
	file *os.File
}

// openMitigationLog reads the log in path, or begins it. Without a path it writes nothing.
func openMitigationLog(path string) (*mitigationLog, error) {
	l := &mitigationLog{}
	if path == "" {
		return l, nil
	}
	text, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	line := 0
	for text := range bytes.Lines(text) {
		line++
		var t mitigationTrial
		if err := json.Unmarshal(text, &t); err != nil || !bytes.HasSuffix(text, []byte("\n")) {
			return nil, fmt.Errorf("-log %s, line %d: not a whole trial: remove the line, and it is run again", path, line)
		}
		l.done = append(l.done, t)
	}
	l.file, err = os.OpenFile(path, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	return l, err
}

func (l *mitigationLog) add(t mitigationTrial) error {
	l.done = append(l.done, t)
	if l.file == nil {
		return nil
	}
	line, err := json.Marshal(t)
	if err == nil {
		_, err = l.file.Write(append(line, '\n'))
	}
	return err
}

func (l *mitigationLog) close() error {
	if l.file == nil {
		return nil
	}
	return l.file.Close()
}
