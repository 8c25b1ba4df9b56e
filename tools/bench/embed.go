package main

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// embedColumns is the number of columns of a row in embed. A learnt row has two moments beside
// each.
const embedColumns = 100

// embedSide is a budget to learn the rows of a knowledge graph in, turn by turn.
type embedSide struct {
	name    string
	memory  int64
	links   series // learnt a second
	read    int64  // bytes of rows, in an epoch
	peak    int64  // the most bytes that were resident but for mapped files
	weights string // their hash
}

// compareEmbeddings alternates learning a row for each node of a knowledge graph, without a
// network, under -memory with the same steps of the same rows in memory. Both must come to the same
// weights.
func compareEmbeddings(ctx context.Context, c *comparison) error {
	ds, err := store.Open(c.dataset)
	if err != nil {
		return err
	}
	nodes := ds.Manifest().NodeTypes[0].Count
	if err := ds.Close(); err != nil {
		return err
	}
	memory, err := bytesOf(c.memory)
	if err != nil {
		return err
	}
	rows := int64(nodes) * embedColumns * 3 * 4
	sides := []*embedSide{{name: "out of core", memory: memory}, {name: "in memory", memory: rows + rows/4 + memory}}
	for range c.rounds {
		for _, s := range sides {
			if err := c.learnRows(ctx, s); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			if s.weights != sides[0].weights {
				return fmt.Errorf("%s: the weights are not those that the other turns came to: %s, %s", s.name, s.weights, sides[0].weights)
			}
		}
	}
	fmt.Fprintf(c.out, "%s: %d nodes, rows of %d columns and two moments, %.1f GB in all; %d links a step by distmult, 1,000 at a time against %d nodes at "+
		"either end; the second epoch of two of %d steps, %d turns. Median (smallest–largest):\n\n",
		filepath.Base(c.dataset), nodes, embedColumns, float64(rows)/1e9, c.batch, c.negatives, c.steps, c.rounds)
	tableHead(c.out, "| rows | --memory | links a second | of those in memory | read MB a step | peak |")
	for _, s := range sides {
		fmt.Fprintf(c.out, "| %s | %s | %s | %s | %.1f | %s |\n", s.name, kernels.FormatBytes(s.memory), s.links.spread("%.0f"),
			s.links.over(sides[1].links).spread("%.2f"), float64(s.read)/1e6/float64(c.steps), kernels.FormatBytes(s.peak))
	}
	return nil
}

// learnRows is a turn of s.
func (c *comparison) learnRows(ctx context.Context, s *embedSide) error {
	result, e, err := c.twoEpochs(ctx, []string{"train", c.dataset, "--task", "link", "--layers", "0", "--input", "entity=embed:" + strconv.Itoa(embedColumns),
		"--decoder", "distmult", "--negatives", "shared:" + strconv.Itoa(c.negatives), "--chunk", "1000", "--corrupt", "both", "--loss", "ce",
		"--batch", strconv.Itoa(c.batch), "--epoch-steps", strconv.Itoa(c.steps), "--workers", strconv.Itoa(c.threads),
		"--eval-negatives", "uniform:100", "--eval-edges", "100", "--keep-checkpoints", "1", "--memory", strconv.FormatInt(s.memory, 10), "--disk-engine", string(c.engine)})
	if err != nil {
		return err
	}
	s.links = append(s.links, e.steps*float64(c.batch)/e.seconds)
	s.read, s.peak, s.weights = e.disk.BytesRead, max(s.peak, result.PeakRSSBytes), result.ParamsXXH3
	return nil
}
