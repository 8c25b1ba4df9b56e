package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
)

// epochTurn has the seconds of an epoch, and its mean loss.
type epochTurn struct{ Seconds, Loss float64 }

// compareEpochs alternates an epoch of gnnstore train, the first of a run, with one of whatever
// loader the Python has, which has warmed up.
func compareEpochs(ctx context.Context, c *comparison) error {
	classes, err := exportGraph(c.ds, c.tmp)
	if err != nil {
		return err
	}
	var ready struct {
		Loader   string             `json:"loader"`
		Variants map[string]float64 `json:"variants"`
		Chosen   string             `json:"chosen"`
		Skipped  []string           `json:"skipped"`
	}
	torch, err := c.startPython(ctx, &ready, "epoch.py", c.tmp, strconv.Itoa(classes), strconv.Itoa(c.threads), c.loader)
	if err != nil {
		return err
	}
	defer torch.close() //nolint:errcheck // what matters was read
	c.printSkipped(ready.Skipped)
	if ready.Loader == "" {
		return fmt.Errorf("%s has no loader to compare with (%s): install DGL, or PyTorch Geometric with pyg-lib or torch-sparse",
			c.python, strings.Join(ready.Skipped, "; "))
	}
	us := &side[epochTurn]{name: "gnnstore train"}
	us.turn = func(ctx context.Context) (turn epochTurn, err error) {
		var r cli.Trained
		if err := c.binary.JSON(ctx, &r, "train", c.dataset, "--model", "sage", "--fanout", "15,10,5", "--hidden", strconv.Itoa(hidden),
			"--batch", strconv.Itoa(batchSize), "--lr", fmt.Sprint(rate), "--dropout", "0", "--norm", "none", "--epochs", "1",
			"--eval-memory", "0", "--eval-nodes", "1", "--workers", strconv.Itoa(c.threads),
			"--run", filepath.Join(c.tmp, fmt.Sprintf("run-%d", len(us.turns)))); err != nil {
			return turn, err
		}
		return epochTurn{r.Epochs[0].Seconds, r.Epochs[0].Loss}, nil
	}
	them := &side[epochTurn]{name: ready.Loader + ", " + ready.Chosen, turn: asks[epochTurn](torch, "turn")}
	t := turns[epochTurn]{
		sides:   []*side[epochTurn]{us, them},
		columns: []column[epochTurn]{{name: "s", format: "%.2f", of: func(t epochTurn) float64 { return t.Seconds }}},
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s, %d threads; ms a step while choosing: %v.\n", ready.Loader, c.threads, ready.Variants)
	fmt.Fprintf(c.out, "%d turns of one epoch each, sampling, gathering and step. "+
		"Mean loss at the end %.3f (first epoch) and %.3f (last of all turns). Median (smallest–largest):\n\n",
		c.rounds, us.turns[c.rounds-1].Loss, them.turns[c.rounds-1].Loss)
	t.print(c.out, "epoch")
	ratios(c.out, "theirs / ours", t.over(them, us, 0))
	return nil
}

// npyType has NumPy's names of element types.
var npyType = map[store.Elem]string{store.F16: "<f2", store.F32: "<f4"}

// exportGraph writes a dataset as arrays: in-neighbours as CSR, rows, labels, training nodes.
func exportGraph(ds *store.Dataset, dir string) (classes int, err error) {
	g, features, labels := ds.Graph(0), ds.Features(0), ds.Labels(0)
	offsets, neighbors := []int64{0}, []uint32{}
	rows, class := []byte{}, []uint32{}
	for v := range uint32(g.Nodes()) {
		neighbors = append(neighbors, g.Neighbors(v)...)
		offsets = append(offsets, int64(len(neighbors)))
		rows = append(rows, features.Row(v)...)
		class = append(class, uint32(labels.Class(v)))
	}
	w := npyWriter{dir: dir}
	w.write("offsets", "<i8", []int{len(offsets)}, offsets)
	w.write("neighbors", "<i4", []int{len(neighbors)}, neighbors)
	w.write("rows", npyType[features.Elem()], []int{features.Rows(), features.Dim()}, rows)
	w.write("labels", "<i4", []int{len(class)}, class)
	train := ds.Split(0).Train
	w.write("train", "<i4", []int{len(train)}, train)
	return labels.Classes(), w.err
}
