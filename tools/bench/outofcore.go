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

// open opens a dataset, which is the caller's to close, and measures the device under its feature
// rows.
func (c *comparison) open(ctx context.Context, path string) (*store.Dataset, device, error) {
	ds, err := store.Open(path)
	if err != nil {
		return nil, device{}, err
	}
	d, err := c.device.measure(ctx, ds.Features(0))
	if err != nil {
		ds.Close()
		return nil, d, err
	}
	return ds, d, nil
}

// tableBytes returns the bytes of all rows of f.
func tableBytes(f *store.Features) int64 { return int64(f.Rows()) * int64(f.RowBytes()) }

// train returns the arguments that all commands for training out of core share, and args.
func (c *comparison) train(args ...string) []string {
	return append([]string{"train", c.dataset, "--fanout", "15,10,5", "--hidden", strconv.Itoa(hidden), "--batch", strconv.Itoa(c.batch),
		"--lr", fmt.Sprint(rate), "--epochs", "1", "--epoch-steps", strconv.Itoa(c.steps), "--workers", strconv.Itoa(c.threads),
		"--eval-nodes", "100", "--eval-memory", "0", "--disk-engine", string(c.engine)}, args...)
}

// epochCounts has the counters of the second epoch of a run.
type epochCounts struct {
	seconds, steps float64
	disk           cachetier.Disk
	rows, windows  int64 // rows that steps ask for
	stages         pipeline.Stats
}

// secondEpoch trains for two epochs, and takes what the second counted from the record of both.
func (c *comparison) secondEpoch(ctx context.Context, args ...string) (e epochCounts, err error) {
	_, e, err = c.twoEpochs(ctx, c.train(args...))
	return e, err
}

// twoEpochs runs a command of gnnstore train for two epochs, and takes what the second counted from
// the record of both.
func (c *comparison) twoEpochs(ctx context.Context, command []string) (whole run.Result, e epochCounts, err error) {
	dir := filepath.Join(c.tmp, "run")
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if err := c.binary.JSON(ctx, &whole, append(command, "--epochs", "2", "--eval-every", "2", "--run", dir)...); err != nil {
		return whole, e, err
	}
	record, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return whole, e, err
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
			return whole, e, err
		}
		if line.Epoch != nil {
			epochs, counts = append(epochs, *line.Epoch), append(counts, line.SoFar)
		}
	}
	if err := lines.Err(); err != nil {
		return whole, e, err
	}
	if len(epochs) != 2 {
		return whole, e, fmt.Errorf("%s: the record has %d epochs, and the run had 2", dir, len(epochs))
	}
	both, first := counts[1], counts[0]
	stats := both.Stats.Sub(first.Stats)
	return whole, epochCounts{seconds: epochs[1].Seconds, steps: float64(epochs[1].Steps), disk: stats.Disk, rows: stats.InputRows, windows: stats.Windows,
		stages: both.Stages.Sub(first.Stages)}, nil
}
