package main

import (
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

	"github.com/gnnstore/gnnstore/tools/cli"
)

// defaultsLoss bounds how far the mean of a bare command may be below the tuned one's, as a
// fraction of 1.
const defaultsLoss = 0.03

// A recipe is a dataset and a training. ingest is FORMAT, the path of the raw files below the data
// directory, and flags; flags that begin with @ are such paths, too. train is flags of train.
type recipe struct{ ingest, train string }

// A habit is a data set with two commands: one typed without reading help, and the best known.
type habit struct {
	name string
	bare recipe
	// tuned adds to the bare train command. An empty ingest means the bare one.
	tuned  recipe
	splits bool   // each seed draws its own split
	chosen string // the settings that validation chose from, for the report
}

// habits are sets where defaults fell short. gnnstore does not know their names: its rules go by
// sizes and kinds of data. Validation chose the settings of tuned rows, never the test.
var habits = []habit{
	{name: "computers-20", splits: true,
		bare:   recipe{"npz amazon_computers/amazon_electronics_computers.npz --undirected --split per-class:20/30", ""},
		tuned:  recipe{"", tunedSmall},
		chosen: ofSmall},
	{name: "chameleon_filtered",
		bare:   recipe{"npz heterophilous/chameleon_filtered.npz --undirected", ""},
		tuned:  recipe{"", tunedSmall},
		chosen: ofSmall},
	{name: "minesweeper",
		bare:   recipe{"npz heterophilous/minesweeper.npz", "--metric roc-auc"},
		tuned:  recipe{"npz heterophilous/minesweeper.npz --undirected", "--layers 3 --fanout 10,10,10"},
		chosen: "2 and 3 layers"},
	{name: "ddi",
		bare:   recipe{"ogb ogbl_ddi --features none", "--task link --metric hits@20"},
		tuned:  recipe{"", "--negatives filtered:1 --decoder mlp --norm none --dropout 0.5 --lr 0.005 --batch 8534"},
		chosen: "negatives uniform:1 and filtered:1, decoders dot and mlp, dropout 0 and 0.5, LayerNorm at 0.003 and none at 0.005"},
	{name: "umls",
		bare:   recipe{"triples umls_rnnlogic", "--task link --layers 0"},
		tuned:  recipe{"", "--reciprocal --n3 0.05 --input entity=embed:400 --input-dropout 0.3 --epochs 120 --eval-every 20"},
		chosen: "n3 0.05, 0.06, 0.1, 0.12 and 0.2, input dropout 0, 0.2, 0.3 and 0.4, rows of 128, 256 and 400, batches of 100, 1000 and 2000"},
	{name: "mutag-rdf",
		bare:   recipe{"triples mutag_rdf", "--model rgcn"},
		tuned:  recipe{"", "--dropout 0"},
		chosen: "hidden 16, 32, 64 and 128, with LayerNorm and without, 50 and 500 epochs, dropout 0 and 0.5, input dropout 0 and 0.5, weight decay 0 and 5e-4"},
	{name: "collegemsg",
		bare:   recipe{"events collegemsg/CollegeMsg.txt.gz", "--model jodie"},
		tuned:  recipe{"", "--batch 100"},
		chosen: "batches of 100, 200, 400 and 600"},
	{name: "enron",
		bare:   recipe{"events enron_temporal/ml_enron.txt", "--model tgn"},
		tuned:  recipe{"events enron_temporal/ml_enron.txt --features random:100", "--batch 200"},
		chosen: "features of nodes or none, batches of 100, 200 and 600"},
}

// tunedSmall has the settings for sets of few labels, and ofSmall those that they were chosen from.
const (
	tunedSmall = "--hidden 64 --lr 0.01 --weight-decay 5e-4 --dropout 0.6 --input-dropout 0.6 --epochs 100 --eval-every 5"
	ofSmall    = "lr 0.003 and 0.01, weight decay 0, 5e-4 and 5e-3, input dropout 0, 0.5 and 0.6, hidden 64 and 128"
)

// selectHabits returns the habits that only names, or all.
func selectHabits(only string) ([]habit, error) {
	if only == "" {
		return habits, nil
	}
	var names []string
	for _, h := range habits {
		names = append(names, h.name)
	}
	var selected []habit
	for name := range strings.SplitSeq(only, ",") {
		i := slices.Index(names, name)
		if i < 0 {
			return nil, fmt.Errorf("-only %s: with -defaults there are %s", name, strings.Join(names, ", "))
		}
		selected = append(selected, habits[i])
	}
	return selected, nil
}

// recipes returns the bare recipe and the tuned one, each complete.
func (h habit) recipes() (bare, tuned recipe) {
	tuned = recipe{h.tuned.ingest, strings.TrimSpace(h.bare.train + " " + h.tuned.train)}
	if tuned.ingest == "" {
		tuned.ingest = h.bare.ingest
	}
	return h.bare, tuned
}

// habitResult has the trainings of a habit, one trial a seed.
type habitResult struct {
	habit
	bare, tuned []trial
}

// below returns how far the mean of the bare command is below the tuned one's.
func (r *habitResult) below() float64 { return mean(r.tuned, trial.test) - mean(r.bare, trial.test) }

// defaults trains habits by their bare and tuned commands, and fails if a bare one is too far
// below.
func (b *bench) defaults(ctx context.Context, w io.Writer, habits []habit, o options) (err error) {
	log, err := openTrials(o.log, b.binary)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	var results []habitResult
	for _, h := range habits {
		r := habitResult{habit: h}
		bare, tuned := h.recipes()
		for seed := 1; seed <= o.seeds; seed++ {
			t, err := b.tried(ctx, h, "bare", bare, seed, log)
			if err != nil {
				return err
			}
			r.bare = append(r.bare, t)
			if t, err = b.tried(ctx, h, "tuned", tuned, seed, log); err != nil {
				return err
			}
			r.tuned = append(r.tuned, t)
		}
		results = append(results, r)
	}
	if o.json {
		return errors.Join(writeHabits(w, b.what, results), judgeHabits(results))
	}
	text := habitsMarkdown(b.what, results)
	fmt.Fprint(w, text)
	if o.record != "" {
		if err := putAbove(o.record, text); err != nil {
			return err
		}
	}
	return judgeHabits(results)
}

// tried returns a training by a recipe; it is taken from log if it is there.
func (b *bench) tried(ctx context.Context, h habit, variant string, of recipe, seed int, log *trialLog) (trial, error) {
	args := append(strings.Fields(of.train), "--seed", strconv.Itoa(seed))
	t := trial{Task: h.name + " " + of.ingest, Variant: variant, Seed: seed, Args: strings.Join(args, " ")}
	if done, ok := log.find(t); ok {
		return done, nil
	}
	dataset, err := b.ingested(ctx, h, of, seed)
	if err != nil {
		return t, err
	}
	var trained cli.Trained
	trained, t.Seconds, err = b.train(ctx, dataset, filepath.Join(b.tmp, "run"), args...)
	if err != nil {
		return t, fmt.Errorf("%s, %s: %w", h.name, variant, err)
	}
	t.Epoch, t.Valid, t.Test, t.Rows = trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc, trained.InputRows
	fmt.Fprintf(b.progress, "%s, %s, seed %d: epoch %d  valid %.4f  test %.4f  %.1f s\n", h.name, variant, seed, t.Epoch, t.Valid, t.Test, t.Seconds)
	return t, log.add(t)
}

// ingested ingests the dataset of a recipe, once.
func (b *bench) ingested(ctx context.Context, h habit, of recipe, seed int) (string, error) {
	if !h.splits {
		seed = 1
	}
	out := filepath.Join(b.tmp, strings.NewReplacer(" ", "_", "/", "_", "@", "").Replace(fmt.Sprintf("%s-%d.gnn", of.ingest, seed)))
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	words := strings.Fields(of.ingest)
	args := []string{"ingest", words[0], filepath.Join(b.data, words[1]), out, "--seed", strconv.Itoa(seed)}
	for _, flag := range words[2:] {
		if path, ok := strings.CutPrefix(flag, "@"); ok {
			flag = filepath.Join(b.data, path)
		}
		args = append(args, flag)
	}
	return out, b.gnnstore.Run(ctx, args...)
}

// judgeHabits returns an error for each set whose bare command is over defaultsLoss below the tuned
// one.
func judgeHabits(results []habitResult) error {
	var errs []error
	for _, r := range results {
		if below := r.below(); below > defaultsLoss {
			errs = append(errs, fmt.Errorf("%s: the bare command reaches %.2f %%, %.2f points below the tuned one; at most %.0f are allowed", r.name,
				100*mean(r.bare, trial.test), 100*below, 100*defaultsLoss))
		}
	}
	return errors.Join(errs...)
}

// commands returns the two commands of a recipe, for the report.
func (of recipe) commands() (ingest, train string) {
	words := strings.Fields(strings.ReplaceAll(of.ingest, "@", ""))
	return "gnnstore ingest " + strings.Join(slices.Insert(words, 2, "set.gnn"), " "), strings.TrimSpace("gnnstore train set.gnn " + of.train)
}

// habitRow is a row of the JSON object. Its keys are stable; accuracies are fractions.
type habitRow struct {
	Name   string    `json:"name"`
	Way    string    `json:"way"` // bare or tuned
	Ingest string    `json:"ingest"`
	Train  string    `json:"train"`
	Valid  []float64 `json:"valid"` // valid, test and seconds have a number a seed
	Test   []float64 `json:"test"`
	Times  []float64 `json:"seconds"`
	Mean   float64   `json:"test_mean"`
	Below  float64   `json:"below_tuned"` // of a bare row
	Most   float64   `json:"most_below"`  // the bound of below_tuned
}

// rows returns the bare row and the tuned one.
func (r *habitResult) rows() []habitRow {
	bare, tuned := r.recipes()
	row := func(way string, of recipe, trials []trial) habitRow {
		ingest, train := of.commands()
		return habitRow{
			Name: r.name, Way: way, Ingest: ingest, Train: train, Valid: values(trials, trial.valid), Test: values(trials, trial.test),
			Times: values(trials, trial.seconds), Mean: mean(trials, trial.test), Most: defaultsLoss,
		}
	}
	first := row("bare", bare, r.bare)
	first.Below = r.below()
	return []habitRow{first, row("tuned", tuned, r.tuned)}
}

// writeHabits writes all rows as one JSON object.
func writeHabits(w io.Writer, what string, results []habitResult) error {
	of := struct {
		What string     `json:"what"`
		Rows []habitRow `json:"rows"`
	}{What: what}
	for _, r := range results {
		of.Rows = append(of.Rows, r.rows()...)
	}
	text, err := json.MarshalIndent(of, "", "  ")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", text)
	return err
}

// habitsMarkdown returns a section with all that one needs to measure the same.
func habitsMarkdown(what string, results []habitResult) string {
	var table [][]string
	for _, r := range results {
		for _, row := range r.rows() {
			below := ""
			if row.Way == "bare" {
				below = fmt.Sprintf("%.2f", 100*row.Below)
			} else if r.chosen != "" {
				row.Way += ", the best of validation among " + r.chosen
			}
			_, deviation := meanDeviation(row.Test)
			valid, _ := meanDeviation(row.Valid)
			seconds, _ := meanDeviation(row.Times)
			table = append(table, []string{row.Name, row.Way, "`" + row.Ingest + "`", "`" + row.Train + "`", strconv.Itoa(len(row.Test)),
				fmt.Sprintf("%.2f ± %.2f", 100*row.Mean, 100*deviation), below, fmt.Sprintf("%.2f", 100*valid), fmt.Sprintf("%.0f", seconds)})
		}
	}
	return fmt.Sprintf(`
## Defaults beside tuned settings, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. A bare row is by the commands as they stand, and a
tuned row adds settings that were chosen by validation. Both add `+"`--seed`"+`; ± is the standard deviation over seeds. A bare row may be %.0f points below.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), what, machine(), 100*defaultsLoss,
		markdownTable([]string{"set", "", "ingest", "train", "seeds", "test %", "points below", "valid %", "s a seed"}, table))
}
