package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// churnKind is a kind of generated tables whose true probabilities are known.
const churnKind = "churn"

// churnGap is the least difference of the mean ROC-AUC by defaults and the linear model's, as a
// fraction of 1.
const churnGap = 0.01

// churn trains on tables of customers who leave, by the schema that ingest proposes and by the
// defaults of train, but for the metric that some runs choose epochs by. It compares the ROC-AUC of
// the test users with a logistic regression on the same columns and counts, and with the
// probability that the labels were drawn from, which only chance can beat.
func (b *bench) churn(ctx context.Context, w io.Writer, o options) error {
	dataset, leaves, truth, err := b.churnTables(ctx)
	if err != nil {
		return err
	}
	best := areaUnderROC(truth, leaves)
	var rows [][]string
	var short error
	for _, flags := range [][]string{nil, {"--metric", "roc-auc"}} {
		var aucs, linear, seconds []float64
		for seed := 1; seed <= o.seeds; seed++ {
			run := filepath.Join(b.tmp, fmt.Sprintf("churn-%d-%d", len(flags), seed))
			start := time.Now()
			train := append([]string{"train", dataset, "--run", run, "--seed", strconv.Itoa(seed)}, flags...)
			if err := b.gnnstore.Run(ctx, train...); err != nil {
				return err
			}
			seconds = append(seconds, time.Since(start).Seconds())
			if err := b.gnnstore.Run(ctx, "predict", run, run+".csv", "--what", "probabilities", "--nodes", "test"); err != nil {
				return err
			}
			predicted, err := readNumbers(run+".csv", "id", "yes")
			if err != nil {
				return err
			}
			aucs = append(aucs, areaUnderROC(predicted, leaves))
			var eval struct {
				Parts []struct {
					Linear float64 `json:"linear_probe"`
				} `json:"parts"`
			}
			if err := b.gnnstore.JSON(ctx, &eval, "eval", run, "--nodes", "test", "--metric", "roc-auc", "--baseline"); err != nil {
				return err
			}
			linear = append(linear, eval.Parts[0].Linear)
			fmt.Fprintf(b.progress, "churn %s seed %d: AUC %.4f, the linear model %.4f, the true probability %.4f\n",
				strings.Join(flags, " "), seed, aucs[seed-1], linear[seed-1], best)
		}
		auc, deviation := meanDeviation(aucs)
		model, spread := meanDeviation(linear)
		took, _ := meanDeviation(seconds)
		if auc < model+churnGap {
			short = errors.Join(short, fmt.Errorf("churn, train %s: AUC %.2f %%, and the linear model has %.2f %%: want %.0f point more",
				strings.Join(flags, " "), 100*auc, 100*model, 100*churnGap))
		}
		rows = append(rows, []string{
			"`" + cmp.Or(strings.Join(flags, " "), "none") + "`", fmt.Sprint(o.seeds),
			fmt.Sprintf("%.2f ± %.2f", 100*auc, 100*deviation), fmt.Sprintf("%.2f ± %.2f", 100*model, 100*spread),
			fmt.Sprintf("%.2f", 100*best), fmt.Sprintf("%.1f", took),
		})
	}
	text := fmt.Sprintf(`
## Customers who leave, in generated tables, %s

`+"`go run ./tools/accuracy %s`"+` %s, %s. The tables are of
`+"`gnnstore generate churn`"+`, seed 1. Their schema is the one that `+"`gnnstore ingest table --infer`"+` prints, unchanged. Flags are of
train, beside --seed. The linear model is of `+"`gnnstore eval --baseline`"+`: a logistic regression on the same columns, with counts
of edges, whose penalty validation chooses. ROC-AUC is of the 4,000 test users; the labels were drawn from the true probability.
± is the standard deviation over the seeds of training.

%s`, time.Now().UTC().Format(time.DateOnly), strings.Join(os.Args[1:], " "), b.what, machine(),
		markdownTable([]string{"flags", "seeds", "ROC-AUC %", "the linear model %", "the true probability %", "s a training"}, rows))
	fmt.Fprint(w, text)
	if o.record != "" {
		short = errors.Join(short, putAbove(o.record, text))
	}
	return short
}

// churnTables makes the tables and ingests them. leaves has the test users, true for each that
// left, and truth has the probabilities of all users.
func (b *bench) churnTables(
	ctx context.Context,
) (dataset string, leaves map[string]bool, truth map[string]float64, err error) {
	tables, known := filepath.Join(b.tmp, "churn"), filepath.Join(b.tmp, "truth.csv")
	schema := filepath.Join(tables, "schema.yaml")
	dataset = filepath.Join(b.tmp, "churn.gnn")
	if err := b.gnnstore.Run(ctx, "generate", churnKind, tables); err != nil {
		return "", nil, nil, err
	}
	err = errors.Join(os.Rename(filepath.Join(tables, "truth.csv"), known), os.Remove(schema))
	if err != nil {
		return "", nil, nil, err
	}
	text, err := b.gnnstore.Command(ctx, "ingest", "table", "--infer", tables).Output()
	if err == nil {
		err = os.WriteFile(schema, text, 0o666)
	}
	if err == nil {
		err = b.gnnstore.Run(ctx, "ingest", "table", schema, dataset)
	}
	if err == nil {
		truth, err = readNumbers(known, "user", "probability")
	}
	if err != nil {
		return "", nil, nil, err
	}
	leaves = map[string]bool{}
	err = eachRow(filepath.Join(tables, "users.csv"), []string{"user", "churned", "part"}, func(cells []string) error {
		if cells[2] == "test" {
			leaves[cells[0]] = cells[1] == "yes"
		}
		return nil
	})
	return dataset, leaves, truth, err
}

// areaUnderROC returns the probability that one who leaves has a higher number than one who stays,
// where ties count as halves. All of leaves have a number.
func areaUnderROC(numbers map[string]float64, leaves map[string]bool) float64 {
	type one struct {
		number float64
		leaves bool
	}
	var all []one
	for id, l := range leaves {
		all = append(all, one{numbers[id], l})
	}
	slices.SortFunc(all, func(a, b one) int { return cmp.Compare(a.number, b.number) })
	ranks, left := 0.0, 0 // the sum of the ranks of those who leave, from 1
	for at := 0; at < len(all); {
		end := at
		for end < len(all) && all[end].number == all[at].number {
			end++
		}
		rank := float64(at+1+end) / 2 // of all with this number
		for ; at < end; at++ {
			if all[at].leaves {
				ranks, left = ranks+rank, left+1
			}
		}
	}
	stay := len(all) - left
	return (ranks - float64(left)*float64(left+1)/2) / (float64(left) * float64(stay))
}

// readNumbers reads a column of numbers of a csv file by the ids in another column.
func readNumbers(file, id, column string) (map[string]float64, error) {
	numbers := map[string]float64{}
	return numbers, eachRow(file, []string{id, column}, func(cells []string) (err error) {
		numbers[cells[0]], err = strconv.ParseFloat(cells[1], 64)
		return err
	})
}

// eachRow calls row with the cells of some columns, for each row of a csv file.
func eachRow(file string, columns []string, row func(cells []string) error) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	all, err := csv.NewReader(f).ReadAll()
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	var at []int
	for _, name := range columns {
		i := slices.Index(all[0], name)
		if i < 0 {
			return fmt.Errorf("%s: no column %s", file, name)
		}
		at = append(at, i)
	}
	for _, cells := range all[1:] {
		picked := make([]string, len(at))
		for i, k := range at {
			picked[i] = cells[k]
		}
		if err := row(picked); err != nil {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}
