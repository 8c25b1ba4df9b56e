package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/run"
)

// tableBytes returns the bytes of all rows of f.
func tableBytes(f *store.Features) int64 { return int64(f.Rows()) * int64(f.RowBytes()) }

// train returns the arguments that all commands for training out of core share, and args.
func (c *comparison) train(args ...string) []string {
	return append([]string{"train", c.dataset, "--fanout", "15,10,5", "--hidden", strconv.Itoa(hidden), "--batch", strconv.Itoa(c.batch),
		"--lr", fmt.Sprint(rate), "--epochs", "1", "--epoch-steps", strconv.Itoa(c.steps), "--workers", strconv.Itoa(c.threads),
		"--eval-nodes", "100", "--eval-memory", "0", "--disk-engine", string(c.engine)}, args...)
}

// epochCounts has the counters of the second epoch of a run, and the result of both.
type epochCounts struct {
	seconds, steps float64
	disk           cachetier.Disk
	rows, windows  int64 // rows that steps ask for
	stages         pipeline.Stats
	result         run.Result
}

// window returns the mean number of steps of a window.
func (e epochCounts) window() float64 { return e.steps / float64(max(e.windows, 1)) }

// trains is a side that trains for two epochs, and counts the second.
func (c *comparison) trains(name string, args ...string) *side[epochCounts] {
	return &side[epochCounts]{name: name, turn: func(ctx context.Context) (epochCounts, error) { return c.secondEpoch(ctx, c.train(args...)) }}
}

// secondEpoch runs a command of gnnstore train for two epochs, and takes what the second counted
// from the record of both.
func (c *comparison) secondEpoch(ctx context.Context, command []string) (e epochCounts, err error) {
	dir := filepath.Join(c.tmp, "run")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.binary.JSON(ctx, &e.result, append(command, "--epochs", "2", "--eval-every", "2", "--run", dir)...); err != nil {
		return e, err
	}
	record, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return e, err
	}
	defer record.Close()
	var epochs []run.Epoch
	var counts []run.Result
	lines := bufio.NewScanner(record)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct {
			Epoch *run.Epoch `json:"epoch"`
			SoFar run.Result `json:"so_far"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return e, err
		}
		if line.Epoch != nil {
			epochs, counts = append(epochs, *line.Epoch), append(counts, line.SoFar)
		}
	}
	if err := lines.Err(); err != nil {
		return e, err
	}
	if len(epochs) != 2 {
		return e, fmt.Errorf("%s: the record has %d epochs, and the run had 2", dir, len(epochs))
	}
	both, first := counts[1], counts[0]
	stats := both.Stats.Sub(first.Stats)
	e.seconds, e.steps, e.disk = epochs[1].Seconds, float64(epochs[1].Steps), stats.Disk
	e.rows, e.windows, e.stages = stats.InputRows, stats.Windows, both.Stages.Sub(first.Stages)
	return e, nil
}
