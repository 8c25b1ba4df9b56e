package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
)

// reuseColumns are of a step, beside the same without history.
var reuseColumns = []column[epochCounts]{
	{name: "reuse %", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 100 * reuseOf(e) }},
	{name: "steps a window", format: "%.1f", show: last, of: epochCounts.window},
	{name: "rows a step", format: "%.0f", show: beside, of: func(e epochCounts) float64 { return float64(e.rows) / e.steps }},
	{name: "rows read a step", format: "%.0f", show: beside, of: func(e epochCounts) float64 { return float64(e.disk.Rows) / e.steps }},
	{name: "reading, ms a step", format: "%.1f", show: beside, of: func(e epochCounts) float64 { return 1e3 * e.disk.Seconds / e.steps }},
	{name: "arithmetic, ms a step", format: "%.1f", show: beside, of: func(e epochCounts) float64 { return 1e3 * e.stages.Step / e.steps }},
	{name: "in all, ms a step", format: "%.1f", show: beside, of: func(e epochCounts) float64 { return 1e3 * e.seconds / e.steps }},
}

// reuseOf returns the share of the nodes whose hidden row was there.
func reuseOf(e epochCounts) float64 {
	if h := e.result.History; h != nil {
		return h.Reuse
	}
	return 0
}

// reuseWays are the ways to read rows, by their names in -ways.
var reuseWays = []struct {
	key, name string
	args      []string
}{
	{"windows", "windows, belady", nil},
	{"static", "step by step, static prefix", []string{"--window", "1", "--lookahead", "0", "--policy", "static"}},
	{"lru", "step by step, lru", []string{"--window", "1", "--lookahead", "0", "--policy", "lru"}},
}

// compareHistory alternates training with hidden rows of earlier steps and without, in equal bytes,
// and with slots beside those.
func compareHistory(ctx context.Context, c *comparison) error {
	t := turns[epochCounts]{columns: reuseColumns}
	var slots int64 // bytes of them that any turn had
	for _, way := range reuseWays {
		if !slices.Contains(c.ways, way.key) {
			continue
		}
		without := c.trains(way.name, append(way.args[:len(way.args):len(way.args)], "--memory", strconv.FormatInt(c.limit, 10))...)
		without.base = without
		t.sides = append(t.sides, without)
		for _, name := range []string{"; history", "; history, slots beside"} {
			t.sides = append(t.sides, &side[epochCounts]{name: way.name + name, base: without, turn: func(ctx context.Context) (epochCounts, error) {
				memory := c.limit
				if strings.HasSuffix(name, "beside") {
					memory += slots
				}
				e, err := c.secondEpoch(ctx, c.train(append(way.args[:len(way.args):len(way.args)],
					"--history", "--history-start", "0", "--t-stale", c.stale, "--memory", strconv.FormatInt(memory, 10))...))
				if h := e.result.History; h != nil {
					slots = max(slots, h.Slots*h.SlotBytes)
				}
				return e, err
			}})
		}
	}
	if len(t.sides) != 3*len(c.ways) {
		return fmt.Errorf("-ways %s: some of windows, static and lru, each once", strings.Join(c.ways, ","))
	}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s: rows of %d bytes; GraphSAGE, fanout 15,10,5, hidden %d, %d nodes a step, --t-stale %s; the second of two epochs of %d steps, "+
		"--memory %s, of which slots take %s; %d turns. Medians, in brackets of what the same without history has:\n\n",
		c.base(), c.ds.Features(0).RowBytes(), hidden, c.batch, c.stale, c.steps, c.memory, kernels.FormatBytes(slots), c.rounds)
	t.print(c.out, "what")
	return nil
}
