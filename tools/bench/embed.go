package main

import (
	"context"
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/kernels"
)

// embedColumns is the number of columns of a row in embed. A learnt row has two moments beside
// each.
const embedColumns = 100

// embedTurn has the figures of learning the rows of a knowledge graph within a budget.
type embedTurn struct {
	epochCounts
	memory int64
}

// compareEmbeddings alternates learning a row for each node of a knowledge graph, without a
// network, under -memory with the same steps of the same rows in memory. Both must come to the same
// weights.
func compareEmbeddings(ctx context.Context, c *comparison) error {
	nodes := c.ds.Manifest().NodeTypes[0].Count
	rows := int64(nodes) * embedColumns * 3 * 4
	inMemory := &side[embedTurn]{name: "in memory", turn: c.learns(rows + rows/4 + c.limit)}
	out := &side[embedTurn]{name: "out of core", turn: c.learns(c.limit), base: inMemory}
	inMemory.base = inMemory
	links := func(t embedTurn) float64 { return t.steps * float64(c.batch) / t.seconds }
	t := turns[embedTurn]{
		sides: []*side[embedTurn]{out, inMemory},
		check: func(_ *side[embedTurn], t embedTurn) error {
			if got, want := t.result.ParamsXXH3, out.turns[0].result.ParamsXXH3; got != want {
				return fmt.Errorf("the weights are not those that the other turns came to: %s, %s", got, want)
			}
			return nil
		},
		columns: []column[embedTurn]{
			{name: "--memory", text: func(t embedTurn) string { return kernels.FormatBytes(t.memory) }},
			{name: "links a second", format: "%.0f", of: links},
			{name: "of those in memory", format: "%.2f", show: ratio, of: links},
			{name: "read MB a step", format: "%.1f", show: last, of: func(t embedTurn) float64 { return float64(t.disk.BytesRead) / 1e6 / t.steps }},
			{name: "peak", text: func(t embedTurn) string { return kernels.FormatBytes(t.result.PeakRSSBytes) }},
		},
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: %d nodes, rows of %d columns and two moments, %.1f GB in all; %d links a step by distmult, 1,000 at a time against %d nodes at "+
		"either end; the second epoch of two of %d steps, %d turns. Median (smallest–largest), the peak of the last:\n\n",
		c.base(), nodes, embedColumns, float64(rows)/1e9, c.batch, c.negatives, c.steps, c.rounds)
	t.print(c.out, "rows")
	return nil
}

// learns is the turn of a side that learns the rows in so many bytes.
func (c *comparison) learns(memory int64) func(context.Context) (embedTurn, error) {
	return func(ctx context.Context) (embedTurn, error) {
		e, err := c.secondEpoch(ctx, []string{"train", c.dataset, "--task", "link", "--layers", "0", "--input", "entity=embed:" + strconv.Itoa(embedColumns),
			"--decoder", "distmult", "--negatives", "shared:" + strconv.Itoa(c.negatives), "--chunk", "1000", "--corrupt", "both", "--loss", "ce",
			"--batch", strconv.Itoa(c.batch), "--epoch-steps", strconv.Itoa(c.steps), "--workers", strconv.Itoa(c.threads),
			"--eval-negatives", "uniform:100", "--eval-edges", "100", "--keep-checkpoints", "1", "--memory", strconv.FormatInt(memory, 10),
			"--disk-engine", string(c.engine)})
		return embedTurn{e, memory}, err
	}
}
