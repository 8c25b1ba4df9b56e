package main

import (
	"fmt"
	"io"
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// printTraceWorkers prints the work of several workers.
func printTraceWorkers(w io.Writer, r *trace.Report) {
	line := func(c *trace.WorkersCount) []string {
		return []string{string(c.Sampler), sample.KappaText(c.Kappa), count(int64(c.Workers)), string(c.Parallel)}
	}
	head := []string{"sampler", "κ", "workers", "parallel"}
	last := len(r.Fanouts)
	printf(w, "\na step of %s seeds, fanout %s, a mean of %s steps. Of each hop, mean / largest of a worker:\n",
		count(int64(r.Batch)), run.FanoutText(r.Fanouts, r.RelationFanouts), count(int64(r.Steps)))
	printf(w, "nodes that it computes (at hop %d: rows that it reads), different nodes that it finds,\n", last)
	fmt.Fprintln(w, "how many of these other workers own, and edges that it draws:")
	rows := [][]string{slices.Concat(head, []string{"hop", "nodes", "found", "of others", "edges"})}
	for i := range r.Workers.Counts {
		c := &r.Workers.Counts[i]
		for _, h := range c.Hops {
			row := line(c)
			if h.Hop > 0 {
				clear(row)
			}
			edges := spreadText(h.Edges)
			if h.Hop == last {
				edges = ""
			}
			row = append(row, fmt.Sprint(h.Hop), spreadText(h.Nodes), spreadText(h.Sources), spreadText(h.Others))
			row = append(row, edges)
			rows = append(rows, row)
		}
	}
	tabulate(w, rows)

	printf(w, "\na step of the worker with most: lists that it draws from, all neighbours in them, rows that it reads,\n"+
		"rows that all workers read; then bytes that it sends, without gradients of weights: rows, hidden rows of\n"+
		"%s columns and their gradients, drawn neighbours, ids, and all of these:\n",
		count(int64(r.Workers.Hidden)))
	counted := []string{"lists", "neighbours", "rows", "all workers", "sent: rows", "hidden", "drawn", "ids", "all"}
	rows = [][]string{slices.Concat(head, counted)}
	for i := range r.Workers.Counts {
		c := &r.Workers.Counts[i]
		row := append(line(c), mean(c.Lists.Largest), mean(c.Neighbors.Largest), mean(c.Rows.Largest), mean(c.AllRows))
		for _, s := range []trace.Spread{c.RowBytes, c.HiddenBytes, c.ListBytes, c.IDBytes, c.SentBytes} {
			row = append(row, kernels.FormatBytes(int64(s.Largest+0.5)))
		}
		rows = append(rows, row)
	}
	tabulate(w, rows)
	printWorkersCold(w, r, head, line)
	for _, kind := range r.Workers.Alone() {
		printf(w, "note: with %s only %s is counted: owners' draws do not follow from one batch\n",
			kind, trace.Independent)
	}
}

// printWorkersCold prints the misses of the workers' caches.
func printWorkersCold(
	w io.Writer, r *trace.Report, head []string, line func(*trace.WorkersCount) []string,
) {
	var rows [][]string
	for i := range r.Workers.Counts {
		c := &r.Workers.Counts[i]
		for s := range min(len(r.Caches), len(c.Cold)) {
			row, first := line(c), slices.Concat(head, []string{"steps", "cache", "rows"})
			if s > 0 {
				clear(row)
			}
			row = append(row, count(int64(c.ColdSteps)), r.Caches[s].Asked, count(r.Caches[s].Rows))
			for k := s; k < len(c.Cold); k += len(r.Caches) {
				n := c.Cold[k]
				first = append(first, string(n.Policy), "largest")
				row = append(row, mean(n.All), mean(n.Misses.Largest))
			}
			if rows == nil {
				rows = append(rows, first)
			}
			rows = append(rows, row)
		}
	}
	if rows == nil {
		return
	}
	fmt.Fprintln(w, "\ncold rows, which caches miss in a step: of all workers, and of the one that misses most:")
	tabulate(w, rows)
}

// spreadText prints a mean and the largest number.
func spreadText(s trace.Spread) string { return mean(s.Mean) + " / " + mean(s.Largest) }
