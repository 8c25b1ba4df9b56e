//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/run"
)

// trained is a run of gnnstore train.
type trained struct {
	run.Result
	steps            []float64 // seconds from the start of the epoch to the end of each tenth step
	groupPeak, limit int64
	hits             int64
}

// logEvery is the number of steps between recorded ones.
const logEvery = 10

// train trains a 3-layer GraphSAGE on papers100M's shape with 8 GiB, for an epoch; then 60 steps of
// it row by row and with an LRU cache of the same memory, and a network without neighbours.
func (b *bench) train(ctx context.Context) error {
	dataset := b.dataset
	if dataset == "" {
		dataset = b.path("papers.gnn")
		err := b.binary.Run(ctx, "generate", "papers100m", dataset, "--scale", fmt.Sprint(b.scale), "--memory", "4GiB")
		if err != nil {
			return err
		}
	}
	all := []string{"--layers", "3", "--hidden", "256", "--batch", "1000", "--eval-nodes", "20000", "--eval-memory", "0"}
	sage := append(slices.Clone(all), "--fanout", "15,10,5")
	few := append(slices.Clone(sage), "--epoch-steps", "60", "--eval-nodes", "1000", "--window", "1", "--lookahead", "0")
	table := "| run | steps | s a step | device s a step | rows a step | cold rows a step | read MB a step | " +
		"amplification | lists: cold a step | read MB a step | accuracy | peak MiB | group's peak MiB |\n" +
		"|---|---|---|---|---|---|---|---|---|---|---|---|---|\n"
	defer func() { fmt.Fprint(b.w, "\n", table) }() // of the runs that there were
	steps := 0                                      // of a whole epoch
	for _, v := range []struct {
		name string
		args []string
	}{
		{"windows", sage},
		{"row by row", append(slices.Clone(few), "--policy", "none", "--host-memory", "0")},
		{"LRU", append(slices.Clone(few), "--policy", "lru")},
		{"MLP", append(slices.Clone(all), "--model", "mlp")},
	} {
		if err := dropPages(dataset); err != nil {
			return err
		}
		r, err := b.trainOnce(ctx, 8*gib, append([]string{dataset, "--epochs", "1"}, v.args...)...)
		if err != nil {
			return fmt.Errorf("%s: %w", v.name, err)
		}
		table += r.row(v.name)
		b.printTrained(v.name, r)
		e := r.Epochs[0]
		if steps = max(steps, e.Steps); e.Steps < steps {
			fmt.Fprintf(b.w, "%s: extrapolated, an epoch of %d steps would take %.0f s\n",
				v.name, steps, e.Seconds/float64(e.Steps)*float64(steps))
		}
	}
	return nil
}

// dropPages takes the pages of a dataset out of the page cache: a run in a group that finds some
// there is not charged for them, and reads less than one that comes first.
func dropPages(dataset string) error {
	return filepath.WalkDir(dataset, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // what is not written yet stays
			return err
		}
		return unix.Fadvise(int(f.Fd()), 0, 0, unix.FADV_DONTNEED)
	})
}

// trainOnce runs gnnstore train with args within 110 % of memory bytes.
func (b *bench) trainOnce(ctx context.Context, memory int64, args ...string) (*trained, error) {
	dir := b.path("run")
	if err := os.RemoveAll(dir); err != nil {
		return nil, err
	}
	args = slices.Concat([]string{"train"}, args,
		[]string{"--memory", fmt.Sprint(memory), "--log-every", fmt.Sprint(logEvery), "--run", dir, "--json"})
	r := &trained{limit: memory / 10 * 11}
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid()), r.limit)
	if err != nil {
		fmt.Fprintln(b.w, "note:", err)
	}
	defer group.Close()
	cmd := group.Command(ctx, string(b.binary), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", args, err, cli.LastLine(stderr.Bytes()))
	}
	r.groupPeak, r.hits = group.Peak()
	if err := json.Unmarshal(stdout.Bytes(), &r.Result); err != nil {
		return nil, err
	}
	f, err := os.Open(filepath.Join(dir, "metrics.jsonl"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var line struct{ Step *run.StepMetric }
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, err
		}
		if line.Step != nil {
			r.steps = append(r.steps, line.Step.Seconds)
		}
	}
	return r, lines.Err()
}

func (r *trained) row(name string) string {
	n := float64(r.Epochs[0].Steps)
	accuracy := "-"
	if a := r.Best.TestAcc; a != nil {
		accuracy = fmt.Sprintf("%.1f %%", 100**a)
	}
	lists := r.Topology.Disk
	return fmt.Sprintf("| %s | %.0f | %.2f | %.2f | %.0f | %.0f | %.0f | %.1f | %.0f | %.0f | %s | %d | %d of %d |\n",
		name, n, r.Epochs[0].Seconds/n, (r.Disk.Seconds+lists.Seconds)/n,
		float64(r.InputRows)/n, float64(r.Disk.Rows)/n, float64(r.Disk.BytesRead)/n/1e6, r.Disk.Amplification,
		float64(lists.Rows)/n, float64(lists.BytesRead)/n/1e6, accuracy, r.PeakRSSBytes/mib, r.groupPeak/mib, r.limit/mib)
}

func (b *bench) printTrained(name string, r *trained) {
	const timed = 400 // steps, after the window that the caches are cold in
	if last := len(r.steps) - 1; last >= timed/logEvery {
		took := r.steps[last] - r.steps[last-timed/logEvery]
		fmt.Fprintf(b.w, "%s: the last %d steps on record: %.2f s each\n", name, timed, took/timed)
	}
	fmt.Fprintf(b.w, "%s: stages %+v, limited by %s; memory %+v; engine %s\n",
		name, r.Stages, r.LimitingStage, r.Memory.Parts, r.DiskEngine)
}
