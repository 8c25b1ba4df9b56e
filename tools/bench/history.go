package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// reuseColumns has the figures of a turn that bench history prints.
var reuseColumns = []struct {
	name, format string
	of           func(e epochCounts) float64
}{
	{"rows a step", "%.0f", func(e epochCounts) float64 { return float64(e.rows) / e.steps }},
	{"rows read a step", "%.0f", func(e epochCounts) float64 { return float64(e.disk.Rows) / e.steps }},
	{"reading, ms a step", "%.1f", func(e epochCounts) float64 { return 1e3 * e.disk.Seconds / e.steps }},
	{"arithmetic, ms a step", "%.1f", func(e epochCounts) float64 { return 1e3 * e.stages.Step / e.steps }},
	{"in all, ms a step", "%.1f", func(e epochCounts) float64 { return 1e3 * e.seconds / e.steps }},
}

// reuseSide is a way to train, with hidden rows of earlier steps or without.
type reuseSide struct {
	name     string
	args     []string
	history  bool
	beside   bool     // slots are not a part of the budget that the side without history has, but beside it
	measured []series // by column, turn by turn
	windows  float64  // steps of one
	reuse    float64  // share of the nodes whose hidden row was there
	slots    int64    // bytes of them
}

// reuseSides are, for each of the ways to read rows, one without history and then two with it.
func reuseSides(ways []string, stale string) (sides []*reuseSide, err error) {
	for _, way := range []struct {
		key, name string
		args      []string
	}{
		{"windows", "windows, belady", nil},
		{"static", "step by step, static prefix", []string{"--window", "1", "--lookahead", "0", "--policy", "static"}},
		{"lru", "step by step, lru", []string{"--window", "1", "--lookahead", "0", "--policy", "lru"}},
	} {
		if !slices.Contains(ways, way.key) {
			continue
		}
		with := slices.Concat(way.args, []string{"--history", "--history-start", "0", "--t-stale", stale})
		sides = append(sides, &reuseSide{name: way.name, args: way.args},
			&reuseSide{name: way.name + "; history", args: with, history: true},
			&reuseSide{name: way.name + "; history, slots beside", args: with, history: true, beside: true})
	}
	if len(sides) != 3*len(ways) {
		return nil, fmt.Errorf("-ways %s: some of windows, static and lru, each once", strings.Join(ways, ","))
	}
	return sides, nil
}

// compareHistory alternates training with hidden rows of earlier steps and without, in equal bytes,
// and with slots beside those.
func compareHistory(ctx context.Context, c *comparison) error {
	ds, err := store.Open(c.dataset)
	if err != nil {
		return err
	}
	rowBytes := ds.Features(0).RowBytes()
	if err := ds.Close(); err != nil {
		return err
	}
	memory, err := bytesOf(c.memory)
	if err != nil {
		return err
	}
	sides, err := reuseSides(c.ways, c.stale)
	if err != nil {
		return err
	}
	var slots int64
	for range c.rounds {
		for _, s := range sides {
			budget := memory
			if s.beside {
				budget += slots
			}
			if err := c.reuseTurn(ctx, s, budget); err != nil {
				return fmt.Errorf("%s: %w", s.name, err)
			}
			slots = max(slots, s.slots)
		}
	}
	fmt.Fprintf(c.out, "%s: rows of %d bytes; GraphSAGE, fanout 15,10,5, hidden %d, %d nodes a step, --t-stale %s; the second of two epochs of %d steps, "+
		"--memory %s, of which slots take %s; %d turns. Medians, in brackets of what the same without history has:\n\n",
		filepath.Base(c.dataset), rowBytes, hidden, c.batch, c.stale, c.steps, c.memory, kernels.FormatBytes(slots), c.rounds)
	head := "| what | reuse % | steps a window |"
	for _, column := range reuseColumns {
		head += " " + column.name + " |"
	}
	tableHead(c.out, head)
	var without *reuseSide
	for _, s := range sides {
		if !s.history {
			without = s
		}
		fmt.Fprintf(c.out, "| %s | %.1f | %.1f |", s.name, 100*s.reuse, s.windows)
		for i, column := range reuseColumns {
			fmt.Fprintf(c.out, " "+column.format+" (%.2f) |", s.measured[i].median(), s.measured[i].over(without.measured[i]).median())
		}
		fmt.Fprintln(c.out)
	}
	return nil
}

// reuseTurn is a turn of s under a budget.
func (c *comparison) reuseTurn(ctx context.Context, s *reuseSide, budget int64) error {
	result, e, err := c.twoEpochs(ctx, c.train(append(s.args[:len(s.args):len(s.args)], "--memory", strconv.FormatInt(budget, 10))...))
	if err != nil {
		return err
	}
	if s.measured == nil {
		s.measured = make([]series, len(reuseColumns))
	}
	for i, column := range reuseColumns {
		s.measured[i] = append(s.measured[i], column.of(e))
	}
	s.windows = e.steps / float64(max(e.windows, 1))
	if h := result.History; h != nil {
		s.reuse, s.slots = h.Reuse, h.Slots*h.SlotBytes
	}
	return nil
}
