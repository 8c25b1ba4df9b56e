//go:build linux

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
)

// spread is a setting in which both ways of several workers are run.
type spread struct {
	graph    string  // arxiv, papers or reddit
	workers  int     // of this process; if gbit is set, on a machine each
	gbit     float64 // of the wire of a machine
	hot      int     // percent of the rows in the memory of all workers together; 100: all
	diskRate string  // of the disk of a worker
	batch    int
	steps    int    // of an epoch
	fanout   string // "": 10,10
	hidden   int    // 0: 64
}

// spreads are the settings of parallel. The margin of --parallel auto was chosen by the first 15.
// The next 12 and the last 10 test the margin: they were written down before they were run. The
// last 10 are the first with cooperative workers; two of these did not fit in memory, and were made
// smaller.
var spreads = []spread{
	{graph: "arxiv", workers: 2, hot: 100, batch: 1024, steps: 40},
	{graph: "arxiv", workers: 4, hot: 100, batch: 1024, steps: 40},
	{graph: "arxiv", workers: 4, hot: 20, batch: 1024, steps: 40},
	{graph: "papers", workers: 2, hot: 100, batch: 2000, steps: 40},
	{graph: "papers", workers: 4, hot: 20, batch: 2000, steps: 8},
	{graph: "papers", workers: 2, hot: 10, batch: 2000, steps: 8},
	{graph: "reddit", workers: 4, hot: 20, batch: 400, steps: 8},
	{graph: "reddit", workers: 4, hot: 20, batch: 400, steps: 4, diskRate: "200MB,2000"},
	{graph: "arxiv", workers: 4, gbit: 1, hot: 100, batch: 1024, steps: 40},
	{graph: "arxiv", workers: 4, gbit: 0.1, hot: 100, batch: 1024, steps: 20},
	{graph: "papers", workers: 4, gbit: 1, hot: 20, batch: 2000, steps: 8},
	{graph: "reddit", workers: 4, gbit: 1, hot: 20, batch: 400, steps: 4, diskRate: "200MB,2000"},
	{graph: "reddit", workers: 4, gbit: 0.1, hot: 20, batch: 400, steps: 4, diskRate: "200MB,2000"},
	{graph: "reddit", workers: 4, gbit: 0.1, hot: 20, batch: 400, steps: 8},
	{graph: "reddit", workers: 2, gbit: 10, hot: 20, batch: 400, steps: 4, diskRate: "200MB,2000"},

	{graph: "arxiv", workers: 3, hot: 50, batch: 600, steps: 60, fanout: "15,10", hidden: 128},
	{graph: "reddit", workers: 2, hot: 30, batch: 256, steps: 8, fanout: "15,10"},
	{graph: "reddit", workers: 4, hot: 40, batch: 400, steps: 8, diskRate: "400MB,8000"},
	{graph: "papers", workers: 4, hot: 40, batch: 1000, steps: 12, diskRate: "300MB,5000"},
	{graph: "papers", workers: 2, hot: 20, batch: 1000, steps: 6, diskRate: "100MB,1000"},
	{graph: "arxiv", workers: 2, gbit: 0.3, hot: 100, batch: 512, steps: 40},
	{graph: "arxiv", workers: 4, gbit: 3, hot: 20, batch: 1024, steps: 30, diskRate: "100MB,2000"},
	{graph: "reddit", workers: 3, gbit: 1, hot: 10, batch: 400, steps: 6, diskRate: "400MB,4000"},
	{graph: "reddit", workers: 4, gbit: 10, hot: 30, batch: 800, steps: 4, diskRate: "100MB,1000"},
	{graph: "papers", workers: 3, gbit: 1, hot: 20, batch: 2000, steps: 8, diskRate: "200MB,4000"},
	{graph: "papers", workers: 4, gbit: 0.3, hot: 100, batch: 1000, steps: 20, hidden: 128},
	{graph: "papers", workers: 4, gbit: 3, hot: 10, batch: 1000, steps: 8, diskRate: "500MB,20000"},

	{graph: "arxiv", workers: 8, hot: 100, batch: 1024, steps: 30, fanout: "10,10,10"},
	{graph: "reddit", workers: 4, hot: 100, batch: 400, steps: 10},
	{graph: "arxiv", workers: 4, gbit: 1, hot: 10, batch: 512, steps: 20, diskRate: "200MB,4000"},
	{graph: "reddit", workers: 4, gbit: 0.3, hot: 20, batch: 200, steps: 8, diskRate: "300MB,3000"},
	{graph: "papers", workers: 3, hot: 30, batch: 600, steps: 8},
	{graph: "papers", workers: 2, gbit: 10, hot: 50, batch: 1000, steps: 10, diskRate: "400MB,8000"},
	{graph: "reddit", workers: 3, gbit: 3, hot: 20, batch: 600, steps: 6, diskRate: "100MB,2000"},
	{graph: "arxiv", workers: 6, hot: 30, batch: 900, steps: 40, hidden: 128},
	{graph: "papers", workers: 4, gbit: 10, hot: 100, batch: 2000, steps: 20},
	{graph: "reddit", workers: 2, gbit: 0.1, hot: 30, batch: 300, steps: 8, diskRate: "200MB,2000"},
}

// spreadRows has the bytes of all feature rows of each graph.
var spreadRows = map[string]int64{"arxiv": 169_343 * 256, "papers": 2_000_000 * 256, "reddit": 230_000 * 2 * 602}

const spreadEpochs = 3 // the first is left out: it fills caches

func (s spread) String() string {
	text := fmt.Sprintf("%s, local:%d", s.graph, s.workers)
	if s.gbit > 0 {
		text = fmt.Sprintf("%s, %d machines, %g Gbit/s", s.graph, s.workers, s.gbit)
	}
	text += fmt.Sprintf(", %d steps of %d seeds", s.steps, s.batch)
	if s.fanout != "" {
		text += ", fanout " + s.fanout
	}
	if s.hidden > 0 {
		text += fmt.Sprintf(", hidden %d", s.hidden)
	}
	if s.hot < 100 {
		text += fmt.Sprintf(", %d %% of the rows", s.hot)
	}
	if s.diskRate != "" {
		text += ", disks of " + s.diskRate
	}
	return text
}

// args returns the options of training, but for the way and the run.
func (s spread) args(rows int64) []string {
	fanout, hidden := cmp.Or(s.fanout, "10,10"), cmp.Or(s.hidden, 64)
	args := []string{
		"--fanout", fanout, "--hidden", strconv.Itoa(hidden), "--batch", strconv.Itoa(s.batch), "--epoch-steps", strconv.Itoa(s.steps),
		"--seed", "1",
		"--eval", "sampled", "--eval-nodes", "100", "--eval-every", "100", "--json",
	}
	processes := int64(1)
	if s.gbit == 0 {
		args = append(args, "--dist", fmt.Sprintf("local:%d", s.workers))
	} else {
		processes = int64(s.workers)
	}
	if s.hot < 100 {
		memory := int64(s.workers) * 320 / processes // much more would keep the files of papers in the page cache
		if s.graph == "arxiv" {
			memory = 2048
		}
		hot := rows * int64(s.hot) / 100 / processes
		args = append(args, "--memory", fmt.Sprintf("%dMiB", memory), "--host-memory", strconv.FormatInt(hot, 10))
	}
	if s.diskRate != "" {
		args = append(args, "--disk-rate", s.diskRate)
	}
	return args
}

// judged has what a setting took, by way.
type judged struct {
	seconds map[string][]float64 // of a step, an epoch each
	sent    map[string]float64   // bytes of a step, of the worker that sends most
	read    map[string]float64   // bytes of a step from disk, of a worker on average
	choice  *run.ParallelChoice
}

// parallel runs both ways of several workers, in turns, and compares their steps with the estimate
// of --parallel auto. Machines are namespaces, as in coop.
func (b *bench) parallel(ctx context.Context) (err error) {
	if os.Geteuid() != 0 {
		return errors.New("it makes network namespaces: start it as root")
	}
	data := map[string]string{}
	for graph := range spreadRows {
		data[graph] = b.path(graph + ".gnn")
	}
	raw := filepath.Join(os.Getenv("GNNSTORE_DATA"), "ogbn_arxiv")
	err = b.binary.Run(ctx, "ingest", "ogb", raw, data["arxiv"],
		"--undirected", "--order", "degree", "--features", "fastrp:128")
	if err == nil {
		err = b.binary.Run(ctx, "generate", "papers100m", data["papers"], "--nodes", "2M", "--edges", "28M",
			"--train", "0.1", "--valid", "0.01", "--test", "0.01")
	}
	if err == nil {
		err = b.binary.Run(ctx, "generate", "reddit", data["reddit"], "--nodes", "230k", "--edges", "6M", "--undirected")
	}
	if err != nil {
		return err
	}
	mpi, err := cli.BuildTagged(ctx, b.dir, "mpi")
	if err != nil {
		return err
	}
	w := &wires{bench: b, mpi: string(mpi), parts: b.path("parts")} // each machine has all, and no parts
	defer func() { err = errors.Join(err, w.close()) }()
	if err := w.open(ctx); err != nil {
		return err
	}
	for i := range machines {
		for _, dir := range []string{w.parts, filepath.Join(w.path("disks"), w.machine(i))} {
			if err := os.MkdirAll(dir, 0o777); err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(b.w, "| setting | estimate: %s | ms a step: %s | faster | taken | |\n|---|---|---|---|---|---|\n",
		strings.Join(run.ParallelWays, ", "), strings.Join(run.ParallelWays, ", "))
	bytes, right, clear, clearRight := "", 0, 0, 0
	for i, s := range spreads {
		if len(b.settings) > 0 && !slices.Contains(b.settings, strconv.Itoa(i+1)) {
			continue
		}
		j, err := w.judge(ctx, s, data[s.graph], spreadRows[s.graph], fmt.Sprintf("s%d", i))
		if err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
		var estimates, took, sent, read []string
		faster, least, other := "", math.Inf(1), math.Inf(1)
		if b.turns == 0 {
			for _, e := range j.choice.Ways {
				estimates = append(estimates, fmt.Sprintf("%.0f (%s)", 1000*e.Seconds, e.LimitingStage))
			}
			fmt.Fprintf(b.w, "| %d: %v | %s | | | %s | |\n", i+1, s, strings.Join(estimates, ", "), j.choice.Way)
			continue
		}
		for k, way := range run.ParallelWays {
			e, all := &j.choice.Ways[k], slices.Sorted(slices.Values(j.seconds[way]))
			estimates = append(estimates, fmt.Sprintf("%.0f (%s)", 1000*e.Seconds, e.LimitingStage))
			mid := all[len(all)/2]
			took = append(took, fmt.Sprintf("%.0f (%.0f to %.0f)", 1000*mid, 1000*all[0], 1000*all[len(all)-1]))
			if mid < least {
				faster, least, other = way, mid, least
			} else {
				other = min(other, mid)
			}
			sent = append(sent, fmt.Sprintf("%.2f, %.2f", e.MostSent/1e6, j.sent[way]/1e6))
			read = append(read, fmt.Sprintf("%.1f, %.1f", (e.RowBytes+e.ListBytes)/1e6, j.read[way]/1e6))
		}
		verdict := "wrong"
		if faster == j.choice.Way {
			verdict = "right"
			right++
		}
		if other > 1.1*least {
			clear++
			if faster == j.choice.Way {
				clearRight++
			}
		}
		fmt.Fprintf(b.w, "| %d: %v | %s | %s | %s | %s | %s |\n", i+1, s,
			strings.Join(estimates, ", "), strings.Join(took, ", "), faster, j.choice.Way, verdict)
		bytes += fmt.Sprintf("| %d | %s | %s | %s |\n", i+1,
			strings.Join(sent, " | "), strings.Join(read, " | "), speed(j.choice.Link))
	}
	fmt.Fprintf(b.w, "\nright: %d; of the %d settings where the ways differ by more than a tenth: %d\n",
		right, clear, clearRight)
	fmt.Fprintf(b.w, "\nMB a step, estimated and counted: sent by the worker that sends most; read by a worker on average\n\n"+
		"| setting | sent: %s | read: %s | between workers |\n|---|%s---|\n%s", strings.Join(run.ParallelWays, " | "),
		strings.Join(run.ParallelWays, " | "), strings.Repeat("---|", 2*len(run.ParallelWays)), bytes)
	return nil
}

func speed(l plan.Link) string {
	return fmt.Sprintf("%.3g MB/s, %.0f us", l.BytesPerSecond/1e6, 1e6*l.Latency)
}

// judge runs a setting: once to choose a way, and then both ways in turns.
func (w *wires) judge(ctx context.Context, s spread, data string, rows int64, name string) (j judged, err error) {
	if s.gbit > 0 {
		if err := w.rate(ctx, s.gbit); err != nil {
			return j, err
		}
	}
	j.seconds, j.sent, j.read = map[string][]float64{}, map[string]float64{}, map[string]float64{}
	train := func(way string, epochs int, dir string) (r run.Result, err error) {
		args := []string{"train", data, "--run", dir, "--parallel", way, "--epochs", strconv.Itoa(epochs)}
		args = append(args, s.args(rows)...)
		if s.gbit > 0 {
			return r, result(w.command(ctx, s.workers, args...), &r)
		}
		return r, w.binary.JSON(ctx, &r, args...)
	}
	dir := w.path(name)
	if _, err := train(run.AutoParallel, 1, dir); err != nil {
		return j, err
	}
	text, err := os.ReadFile(filepath.Join(dir, run.RecordFile))
	if err != nil {
		return j, err
	}
	var record run.Record
	if err := json.Unmarshal(text, &record); err != nil {
		return j, err
	}
	if j.choice = record.AutoParallel; j.choice == nil || len(j.choice.Ways) != len(run.ParallelWays) {
		return j, fmt.Errorf("%s has no estimate of every way", dir)
	}
	weights := map[bool]string{} // by whether workers compute together
	for turn := range w.turns {
		for k, way := range run.ParallelWays {
			of := fmt.Sprintf("%s-%d-%d", dir, turn, k)
			r, err := train(way, spreadEpochs, of)
			if err != nil {
				return j, err
			}
			together := way == run.Cooperative
			if weights[together] == "" {
				weights[together] = r.ParamsXXH3
			}
			if r.ParamsXXH3 != weights[together] {
				return j, fmt.Errorf("weights %s by %s, and %s before", r.ParamsXXH3, way, weights[together])
			}
			for _, e := range r.Epochs[1:] {
				j.seconds[way] = append(j.seconds[way], e.Seconds/float64(s.steps))
			}
			read := int64(0)
			for _, n := range r.Workers.DiskBytes {
				read += n
			}
			steps := float64(s.steps * spreadEpochs)
			j.sent[way] = float64(slices.Max(r.Workers.SentBytes)) / steps
			j.read[way] = float64(read) / steps / float64(s.workers)
			if err := os.RemoveAll(of); err != nil {
				return j, err
			}
		}
	}
	return j, os.RemoveAll(dir)
}
