package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/tools/cli"
	"github.com/gnnstore/gnnstore/train/run"
)

// memory trains on features of four times --memory, within a control group of 110 % of it that
// counts page cache as well: by no engine is the program killed, and by its own account it stays
// below --memory.
func memory(ctx context.Context, a *arxiv) (err error) {
	if err := leastThatWorks(ctx, a); err != nil { // which takes no group
		return err
	}
	if os.Geteuid() != 0 {
		fmt.Println("skipped: no root, and a memory cgroup takes one to make")
		return nil
	}
	dataset := filepath.Join(a.tmp, "made.gnn")
	const made = 146 << 20 // a quarter of the features
	const limit = made / 10 * 11
	group, err := cli.NewCgroup(fmt.Sprintf("ci-%d", os.Getpid()), limit)
	if err != nil {
		fmt.Println("skipped: no root that may make one:", err)
		return nil
	}
	defer group.Close()
	// Made in the group, too: so the pages that are left in memory are the group's.
	cmd := group.Command(ctx, string(a.gnnstore), "generate", "papers100m", dataset,
		"--nodes", "400k", "--edges", "6M", "--dim", "768", "--memory", fmt.Sprint(made))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("generate in a group of %d MiB: %w: %s", limit>>20, err, cli.LastLine(out))
	}
	ds, err := store.Open(dataset)
	if err != nil {
		return err
	}
	features := int64(ds.Features(0).Rows()) * int64(ds.Features(0).RowBytes())
	if err := ds.Close(); err != nil {
		return err
	}
	budget := features / 4
	var want cli.Trained
	for i, engine := range disk.Kinds[1:] {
		cmd := group.Command(ctx, string(a.gnnstore), "train", dataset, "--json", "--memory", fmt.Sprint(budget),
			"--disk-engine", string(engine), "--batch", "200", "--fanout", "5,5", "--hidden", "32",
			"--epochs", "1", "--epoch-steps", "12", "--eval-nodes", "2000",
			"--run", filepath.Join(a.tmp, "run-"+string(engine)))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		peak, hits := group.Peak()
		if err != nil {
			return fmt.Errorf("train by %s with --memory %d MiB in a group of %d MiB: %w: %s",
				engine, budget>>20, limit>>20, err, cli.LastLine(stderr.Bytes()))
		}
		var got cli.Trained
		if err := json.Unmarshal(out, &got); err != nil {
			return err
		}
		fmt.Printf("%s: features of %d MiB, --memory %d MiB: peak %d MiB by its own account; "+
			"the group's peak so far %d of %d MiB, limit reached %d times\n",
			got.DiskEngine, features>>20, budget>>20, got.PeakRSSBytes>>20, peak>>20, limit>>20, hits)
		if i == 0 {
			want = got
		}
		switch {
		case got.PeakRSSBytes > budget:
			return fmt.Errorf("by %s %d bytes were taken of --memory %d", engine, got.PeakRSSBytes, budget)
		case got.Disk.BytesRead == 0:
			return fmt.Errorf("by %s nothing was read from disk: nothing was proved", engine)
		case got.ParamsXXH3 != want.ParamsXXH3:
			return fmt.Errorf("by %s the weights are %s, want %s", engine, got.ParamsXXH3, want.ParamsXXH3)
		}
	}
	if err := denied(ctx, a, dataset); err != nil {
		return err
	}
	return memoryOfStream(ctx, a)
}

// memoryOfStream does so on a stream whose files take twice --memory, with state that later steps
// must not see yet.
func memoryOfStream(ctx context.Context, a *arxiv) error {
	const budget = 320 << 20
	group, err := cli.NewCgroup(fmt.Sprintf("ci-stream-%d", os.Getpid()), budget/10*11)
	if err != nil {
		return err
	}
	defer group.Close()
	dataset := filepath.Join(a.tmp, "stream.gnn")
	cmd := group.Command(ctx, string(a.gnnstore), "generate", "temporal", dataset, "--scale", "11", "--memory", fmt.Sprint(budget))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("generate a stream in a group of %d MiB: %w: %s", budget/10*11>>20, err, cli.LastLine(out))
	}
	params := ""
	for _, way := range []string{run.Early, run.Late} {
		cmd := group.Command(ctx, string(a.gnnstore), "train", dataset, "--json", "--memory", fmt.Sprint(budget), "--model", "tgn", "--hidden", "32",
			"--fanout", "4", "--batch", "200", "--epochs", "1", "--epoch-steps", "60", "--warm-events", "200k", "--staleness", "3", "--publish", way,
			"--eval", run.NoEvaluation, "--run", filepath.Join(a.tmp, "run-stream-"+way))
		var stderr bytes.Buffer
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		peak, hits := group.Peak()
		if err != nil {
			return fmt.Errorf("train on a stream, published %s, with --memory %d MiB in a group of %d MiB: %w: %s", way, budget>>20, budget/10*11>>20, err,
				cli.LastLine(stderr.Bytes()))
		}
		var got cli.Trained
		if err := json.Unmarshal(out, &got); err != nil {
			return err
		}
		fmt.Printf("stream, published %s: --memory %d MiB: peak %d MiB by its own account; the group's peak so far %d MiB, limit reached %d times\n",
			way, budget>>20, got.PeakRSSBytes>>20, peak>>20, hits)
		switch {
		case got.PeakRSSBytes > budget:
			return fmt.Errorf("published %s, %d bytes were taken of --memory %d", way, got.PeakRSSBytes, budget)
		case got.Disk.BytesRead == 0:
			return fmt.Errorf("published %s, nothing was read from disk: nothing was proved", way)
		case params != "" && got.ParamsXXH3 != params:
			return fmt.Errorf("published %s the weights are %s, and were %s", way, got.ParamsXXH3, params)
		}
		params = got.ParamsXXH3
	}
	return nil
}

// denied asks for more memory than a bound on the address space leaves beside the dataset's maps
// and the reserve of the Go runtime: it is refused before anything is allocated. Tests of kernels
// and cachetier show that an allocation which still fails ends a run in one line.
func denied(ctx context.Context, a *arxiv, dataset string) error {
	const kibibytes = "2450000"
	run := filepath.Join(a.tmp, "run-denied")
	message, err := cli.Refused(exec.CommandContext(ctx, "sh", "-c", `ulimit -v "$0" && exec "$@"`, kibibytes,
		string(a.gnnstore), "train", dataset, "--json", "--memory", "64GiB",
		"--batch", "200", "--fanout", "5,5", "--hidden", "32", "--run", run))
	if err != nil {
		return err
	}
	said := strings.Contains(message, "--memory is 64 GiB") && strings.Contains(message, "ulimit -v allows 2.3 GiB")
	if !said || exists(run) {
		return fmt.Errorf("train where memory is denied: %q does not say so, or %s is left", message, run)
	}
	fmt.Println("train where memory is denied:", message)
	return nil
}
