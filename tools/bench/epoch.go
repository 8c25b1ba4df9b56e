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

// compareEpochs alternates an epoch of gnnstore train, the first of a run, with one of whatever
// loader the Python has, which has warmed up.
func compareEpochs(ctx context.Context, c *comparison) error {
	path, err := c.arxiv(ctx)
	if err != nil {
		return err
	}
	classes, err := exportGraph(path, c.tmp)
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
	for _, s := range ready.Skipped {
		fmt.Fprintln(c.out, "skipped:", s)
	}
	if ready.Loader == "" {
		return fmt.Errorf("%s has no loader to compare with (%s): install DGL, or PyTorch Geometric with pyg-lib or torch-sparse",
			c.python, strings.Join(ready.Skipped, "; "))
	}
	var us, them series
	var ourLoss, theirLoss float64
	for i := range c.rounds {
		var r cli.Trained
		if err := c.binary.JSON(ctx, &r, "train", path, "--model", "sage", "--fanout", "15,10,5", "--hidden", strconv.Itoa(hidden),
			"--batch", strconv.Itoa(batchSize), "--lr", fmt.Sprint(rate), "--dropout", "0", "--norm", "none", "--epochs", "1",
			"--eval-memory", "0", "--eval-nodes", "1", "--workers", strconv.Itoa(c.threads), "--run", filepath.Join(c.tmp, fmt.Sprintf("run-%d", i))); err != nil {
			return err
		}
		var theirs struct{ Seconds, Loss float64 }
		if err := torch.turn(&theirs); err != nil {
			return err
		}
		us, them = append(us, r.Epochs[0].Seconds), append(them, theirs.Seconds)
		ourLoss, theirLoss = r.Epochs[0].Loss, theirs.Loss
	}
	fmt.Fprintf(c.out, "%s, %d threads; ms a step while choosing: %v.\n", ready.Loader, c.threads, ready.Variants)
	fmt.Fprintf(c.out, "%d turns of one epoch each, sampling, gathering and step. Mean loss at the end %.3f (first epoch) and %.3f (last of all turns). Median (smallest–largest):\n\n",
		c.rounds, ourLoss, theirLoss)
	fmt.Fprintf(c.out, "| epoch | s |\n| --- | --- |\n| gnnstore train | %s |\n| %s, %s | %s |\n| theirs / ours | %s |\n",
		us.spread("%.2f"), ready.Loader, ready.Chosen, them.spread("%.2f"), them.over(us).spread("%.2f"))
	return nil
}

// npyType has NumPy's names of element types.
var npyType = map[store.Elem]string{store.F16: "<f2", store.F32: "<f4"}

// exportGraph writes a dataset as arrays: in-neighbours as CSR, rows, labels, training nodes.
func exportGraph(path, dir string) (classes int, err error) {
	ds, err := store.Open(path)
	if err != nil {
		return 0, err
	}
	defer ds.Close()
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
