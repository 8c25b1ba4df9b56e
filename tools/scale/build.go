//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/gnnstore/gnnstore/ingest/build"
	"github.com/gnnstore/gnnstore/tools/cli"
)

// built is a dataset that a run has made.
type built struct {
	build.Report
	plan       build.Plan
	seconds    float64
	groupPeak  int64
	groupLimit int64
	hits       int64
}

// build runs gnnstore with args, which make a dataset, within 110 % of memory bytes, and prints its
// passes.
func (b *bench) build(ctx context.Context, memory int64, args ...string) (*built, error) {
	args = append(args, "--memory", fmt.Sprint(memory), "--json")
	r := &built{groupLimit: memory / 10 * 11}
	if err := b.binary.JSON(ctx, &r.plan, append(args[:len(args)-1:len(args)-1], "--plan")...); err != nil {
		return nil, err
	}
	group, err := cli.NewCgroup(fmt.Sprint(os.Getpid()), r.groupLimit)
	if err != nil {
		fmt.Fprintln(b.w, "note:", err)
	}
	defer group.Close()
	start := time.Now()
	cmd := group.Command(ctx, string(b.binary), args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("%v: %w: %s", args, err, cli.LastLine(stderr.Bytes()))
	}
	r.seconds = time.Since(start).Seconds()
	r.groupPeak, r.hits = group.Peak()
	if err := json.Unmarshal(stdout.Bytes(), &r.Report); err != nil {
		return nil, err
	}
	b.print(r)
	return r, nil
}

const mib = 1 << 20

// print shows every pass: what it did a second, how much of that was the disk's limit, and what the
// plan had said.
func (b *bench) print(r *built) {
	expected := map[string]build.PassPlan{}
	for _, p := range r.plan.Passes {
		expected[p.Name] = p
	}
	t := tabwriter.NewWriter(b.w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "| pass | items | s | planned s | M items/s | spill read MiB | spill written MiB | dataset MiB | MB/s | "+
		"of the disk's rate |")
	fmt.Fprintln(t, "|---|---|---|---|---|---|---|---|---|---|")
	for _, p := range r.Passes {
		e := expected[p.Name]
		bytes := float64(p.SpillRead + p.SpillWritten + e.Written)
		least := float64(p.SpillRead)/b.disk.read + float64(p.SpillWritten+e.Written)/b.disk.write
		share := "-"
		if bytes > 64*mib {
			share = fmt.Sprintf("%.0f %%", 100*least/p.Seconds)
		}
		fmt.Fprintf(t, "| %s | %d %s | %.1f | %.1f | %.1f | %d | %d | %d | %.0f | %s |\n",
			p.Name, p.Items, p.Unit, p.Seconds, e.Seconds, float64(p.Items)/p.Seconds/1e6,
			p.SpillRead/mib, p.SpillWritten/mib, e.Written/mib, bytes/p.Seconds/1e6, share)
	}
	t.Flush()
	fmt.Fprintf(b.w, "all: %.1f s, planned %.1f s; dataset %.2f GB, planned %.2f; seal %s\n",
		r.seconds, r.plan.Seconds, float64(r.Bytes)/1e9, float64(r.plan.Bytes)/1e9, r.Seal)
	fmt.Fprintf(b.w, "memory: peak_rss %d MiB and peak_file %d MiB of --memory %d MiB; "+
		"cgroup peak %d of %d MiB (page cache included), limit reached %d times\n",
		r.PeakRSSBytes/mib, r.PeakFileBytes/mib, r.Report.Memory/mib, r.groupPeak/mib, r.groupLimit/mib, r.hits)
}

func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// remove makes room for the next part.
func (b *bench) remove(names ...string) error {
	for _, n := range names {
		if err := os.RemoveAll(b.path(n)); err != nil {
			return err
		}
	}
	return nil
}
