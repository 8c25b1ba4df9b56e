// Accuracy measures what gnnstore's models reach on public graphs, with one table of hyperparameters for all of them.
// It builds ./cmd/gnnstore, ingests the raw files and trains a model a seed; the epoch is chosen by validation alone.
//
//	go run ./tools/accuracy -data DIR [-seeds 10] [-only NAME,…] [-quick] [-record tools/RESULTS.md]
//
// It exits 1 when a data set stays below its bar.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gnnstore/gnnstore/tools/cli"
)

// hyperparameters are those of every run: nothing is tuned to a data set but the number of epochs, since an epoch is one
// step on 200 training nodes and 91 on ogbn-arxiv's. They are a compromise: the small data sets, with 20 training nodes a
// class, want the dropout and the penalty, and ogbn-arxiv would do better with less of both.
var hyperparameters = []string{
	"--layers", "2", "--hidden", "64", "--fanout", "15,10", "--batch", "1000", "--lr", "0.01", "--weight-decay", "5e-4",
	"--dropout", "0.6", "--input-dropout", "0.6", "--eval-every", "2", "--patience", "15",
}

// quickSlack is what one seed may stay below a bar that is set for the mean of ten.
const quickSlack = 0.02

// A task is a model on a data set.
type task struct {
	name   string
	model  string
	raw    []string // FORMAT and the path of the raw files below the data directory
	flags  []string // of ingest
	splits bool     // each seed draws its own split
	epochs string
	bar    float64 // of the mean test accuracy; 0: none
}

var (
	perClass = []string{"--undirected", "--split", "per-class:20/30"} // the protocol of Shchur et al. 2018
	arxiv    = []string{"--undirected", "--features", "fastrp:128", "--split", "given"}
)

// The bars lie somewhat below what is published for GraphSAGE-mean: 0.913 and 0.824 (Shchur et al. 2018, table 1).
var tasks = []task{
	{name: "coauthor_cs", model: "sage", raw: []string{"npz", "coauthor_cs/ms_academic_cs.npz"}, flags: perClass, splits: true, epochs: "100", bar: 0.905},
	{name: "amazon_computers", model: "sage", raw: []string{"npz", "amazon_computers/amazon_electronics_computers.npz"}, flags: perClass, splits: true, epochs: "100", bar: 0.80},
	{name: "ogbn_arxiv", model: "sage", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, epochs: "15", bar: 0.65},
	{name: "ogbn_arxiv/mlp", model: "mlp", raw: []string{"ogb", "ogbn_arxiv"}, flags: arxiv, epochs: "15"},
}

func main() {
	data := flag.String("data", os.Getenv("GNNSTORE_DATA"), "`directory` of the raw graphs; default $GNNSTORE_DATA")
	seeds := flag.Int("seeds", 10, "train with the seeds 1 to `N`")
	only := flag.String("only", "", "comma-separated `names` of tasks; default all of "+strings.Join(names(tasks), ","))
	quick := flag.Bool("quick", false, "one seed, and 2 points of slack below the bars")
	record := flag.String("record", "", "append the table as Markdown to this `file`")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Stdout, *data, *only, *seeds, *quick, *record)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "accuracy:", err)
		os.Exit(1)
	}
}

func names(tasks []task) []string {
	var names []string
	for _, t := range tasks {
		names = append(names, t.name)
	}
	return names
}

// selectTasks returns the tasks that only names, or all.
func selectTasks(only string) ([]task, error) {
	if only == "" {
		return tasks, nil
	}
	var selected []task
	for name := range strings.SplitSeq(only, ",") {
		i := slices.IndexFunc(tasks, func(t task) bool { return t.name == name })
		if i < 0 {
			return nil, fmt.Errorf("-only %s: there are %s", name, strings.Join(names(tasks), ", "))
		}
		selected = append(selected, tasks[i])
	}
	return selected, nil
}

func run(ctx context.Context, w io.Writer, data, only string, seeds int, quick bool, record string) (err error) {
	slack := 0.0
	if quick {
		seeds, slack = 1, quickSlack
	}
	selected, err := selectTasks(only)
	switch {
	case err != nil:
		return err
	case data == "":
		return errors.New("no data: set GNNSTORE_DATA or -data to the directory of the raw graphs")
	case seeds < 1:
		return fmt.Errorf("-seeds %d: at least 1", seeds)
	}
	tmp, err := os.MkdirTemp("", "gnnstore-accuracy-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(tmp)) }()
	commit, err := commit(ctx) // of what is built now, whatever happens to the tree meanwhile
	if err != nil {
		return err
	}
	gnnstore, err := cli.Build(ctx, tmp)
	if err != nil {
		return err
	}
	b := bench{gnnstore: gnnstore, data: data, tmp: tmp, progress: os.Stderr}
	fmt.Fprintf(w, "gnnstore train DATASET --model MODEL --epochs N %s --seed 1..%d\n", strings.Join(hyperparameters, " "), seeds)
	var results []result
	for _, t := range selected {
		r, err := b.measure(ctx, t, seeds)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if err := writeText(w, results); err != nil {
		return err
	}
	if record != "" {
		if err := appendMarkdown(record, commit, results, seeds); err != nil {
			return err
		}
	}
	return belowBars(results, slack)
}

// bench is what every task shares.
type bench struct {
	gnnstore  cli.Binary
	data, tmp string
	progress  io.Writer
}

// measure trains a task's model once a seed.
func (b *bench) measure(ctx context.Context, t task, seeds int) (result, error) {
	r := result{task: t}
	for seed := 1; seed <= seeds; seed++ {
		dataset, err := b.dataset(ctx, t, seed)
		if err != nil {
			return result{}, err
		}
		args := append([]string{"train", dataset, "--model", t.model, "--seed", strconv.Itoa(seed),
			"--epochs", t.epochs, "--run", filepath.Join(b.tmp, "run")}, hyperparameters...)
		var trained cli.Trained
		began := time.Now()
		if err := b.gnnstore.JSON(ctx, &trained, args...); err != nil {
			return result{}, err
		}
		seconds := time.Since(began).Seconds()
		if err := os.RemoveAll(filepath.Join(b.tmp, "run")); err != nil {
			return result{}, err
		}
		if t.splits {
			if err := os.RemoveAll(dataset); err != nil {
				return result{}, err
			}
		}
		r.test = append(r.test, trained.Best.TestAcc)
		r.valid = append(r.valid, trained.Best.ValidAcc)
		r.seconds = append(r.seconds, seconds)
		fmt.Fprintf(b.progress, "%s seed %d: epoch %d  valid %.4f  test %.4f  %.1f s\n",
			t.name, seed, trained.Best.Epoch, trained.Best.ValidAcc, trained.Best.TestAcc, seconds)
	}
	return r, nil
}

// dataset ingests the raw files of a task, or finds what another task or seed made of them.
func (b *bench) dataset(ctx context.Context, t task, seed int) (string, error) {
	if !t.splits {
		seed = 1
	}
	name, _, _ := strings.Cut(t.name, "/")
	out := filepath.Join(b.tmp, fmt.Sprintf("%s-%d.gnn", name, seed))
	if _, err := os.Stat(out); err == nil {
		return out, nil
	}
	args := []string{"ingest", t.raw[0], filepath.Join(b.data, t.raw[1]), out, "--seed", strconv.Itoa(seed)}
	return out, b.gnnstore.Run(ctx, append(args, t.flags...)...)
}
