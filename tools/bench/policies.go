package main

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// shares of the feature bytes that the host tier gets, in percent, and the one of them at which
// rows are really read.
var shares = []int{2, 5, 10, 20}

const readShare = 10

// variant is a way to use the host tier's bytes.
type variant struct {
	name string
	cachetier.Options
	windows bool  // of as many steps as fit; else of one
	prefix  int64 // percent of the bytes that are the static region
}

// within returns v's options for a tier of so many bytes over a disk.
func (v variant) within(bytes int64, d device, engine disk.Kind) cachetier.Options {
	o := v.Options
	o.HostBytes, o.Costs, o.Direct, o.Engine = bytes, d.Costs, true, engine
	o.StaticBytes = bytes * v.prefix / 100
	return o
}

// variants lists all policies, step by step and by windows.
func variants() (all []variant) {
	all = append(all, variant{name: "static prefix", Options: cachetier.Options{Policy: cachetier.Static}, prefix: 100})
	for _, windows := range []bool{false, true} {
		for _, p := range []cachetier.Policy{cachetier.None, cachetier.Static, cachetier.LRU, cachetier.Sieve} {
			all = append(all, variant{name: string(p), Options: cachetier.Options{Policy: p}, windows: windows})
		}
		for _, ahead := range []int{0, 1, 4, 16} {
			all = append(all, variant{name: fmt.Sprintf("belady, %d ahead", ahead), Options: cachetier.Options{Lookahead: ahead}, windows: windows})
		}
	}
	for _, prefix := range []int64{25, 50} {
		all = append(all, variant{fmt.Sprintf("belady, 1 ahead, %d %% of it a prefix", prefix), cachetier.Options{Lookahead: 1}, true, prefix})
	}
	return all
}

// comparePolicies has every policy plan the same steps with the same bytes, its index and the rows
// of windows included, and prints the reads of each: rows, and device seconds by the measured costs
// of a read and a byte. Then some of them read for real, to check those seconds.
func comparePolicies(ctx context.Context, c *comparison) error {
	paths := []string{c.dataset}
	if c.dataset == "" {
		var err error
		if paths, err = c.smallGraphs(ctx); err != nil {
			return err
		}
	}
	for _, path := range paths {
		if err := c.policiesOn(ctx, path); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	return nil
}

// smallGraphs ingests ogbn-arxiv and cnr-2000 with features of 256 bytes, and as large a part of
// papers100M's nodes to train on.
func (c *comparison) smallGraphs(ctx context.Context) (paths []string, err error) {
	for _, g := range []struct {
		name string
		args []string
	}{
		{"arxiv.gnn", []string{"ogb", filepath.Join(c.data, "ogbn_arxiv"), "--undirected"}},
		{"cnr2000.gnn", []string{"npz", filepath.Join(c.data, "cnr2000", "cnr-2000-csr.npz")}},
	} {
		path := filepath.Join(c.tmp, g.name)
		args := append([]string{"ingest", g.args[0], g.args[1], path}, g.args[2:]...)
		if err := c.binary.Run(ctx, append(args, "--features", "random:128", "--order", "access", "--split", "random:0.0109/0.005/0.005")...); err != nil {
			return nil, err
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func (c *comparison) policiesOn(ctx context.Context, path string) error {
	ds, err := store.Open(path)
	if err != nil {
		return err
	}
	defer ds.Close()
	f, g := ds.Features(0), ds.Graph(0)
	device, err := c.device.measure(ctx, f)
	if err != nil {
		return err
	}
	trace, err := drawTrace(ctx, ds, plain, c.batch, c.steps)
	if err != nil {
		return err
	}
	table := tableBytes(f)
	fmt.Fprintf(c.out, "%s: %d nodes, mean degree %.1f, %d training nodes; rows of %d bytes, %d MiB. Batch %d, fanout 15,10,5: %.0f rows a step.\n",
		filepath.Base(path), g.Nodes(), float64(g.Edges())/float64(g.Nodes()), len(ds.Split(0).Train), f.RowBytes(), table>>20, c.batch, meanRows(trace))
	fmt.Fprintf(c.out, "Cold rows a step, and device ms a step of %s. Steps %d to %d, those before fill the slab.\n\n", device, len(trace)/2+1, len(trace))
	columns := "| policy | steps a window |"
	for _, share := range shares {
		columns += fmt.Sprintf(" rows, %d %% | ms, %d %% |", share, share)
	}
	tableHead(c.out, columns)
	var checked []string
	for _, v := range variants() {
		steps, cells := "", ""
		for _, share := range shares {
			if err := ctx.Err(); err != nil {
				return err
			}
			o := v.within(table*int64(share)/100, device, c.engine)
			r, err := planned(ctx, f, o, trace, v.windows)
			if err != nil {
				return err
			}
			steps += fmt.Sprintf(", %d", r.window)
			if r.cost.Steps == 0 {
				cells += " | |"
				continue
			}
			n := float64(r.cost.Steps)
			cells += fmt.Sprintf(" %.0f | %.1f |", float64(r.cost.Rows)/n, 1e3*r.cost.Seconds/n)
			if share == readShare && slices.Contains([]string{"none", "lru", "belady, 1 ahead"}, v.name) {
				line, err := reallyRead(ctx, f, o, trace, r.window, 0)
				if err != nil {
					return err
				}
				checked = append(checked, fmt.Sprintf("| %s | %d | %s |", v.name, r.window, line))
			}
		}
		if !v.windows {
			steps = ", 1"
		}
		fmt.Fprintf(c.out, "| %s | %s |%s\n", v.name, steps[2:], cells)
	}
	fmt.Fprintf(c.out, "\nThe first steps of it read for real, with %d %%, from an empty slab, past the page cache:\n\n", readShare)
	tableHead(c.out, "| policy | steps a window | steps | reads a step | MB a step | MB wanted | device ms a step | by the model | real / model |")
	fmt.Fprintf(c.out, "%s\n\n", strings.Join(checked, "\n"))
	return nil
}

// forecast has the reads of a variant once its slab is full; it has no steps if the trace is too
// short for that.
type forecast struct {
	window int // steps
	cost   cachetier.Cost
}

// planned plans trace and returns the cost of its second half: the cost of the whole less the
// cost of the first half.
func planned(ctx context.Context, f *store.Features, o cachetier.Options, trace [][]uint32, windows bool) (r forecast, err error) {
	s, err := cachetier.Open(ctx, f, o)
	if err != nil {
		return r, err
	}
	defer s.Close()
	r.window = windowSteps(s, f, trace, windows)
	half := (len(trace)/2 + r.window - 1) / r.window * r.window
	if whole := len(trace) / r.window * r.window; whole-half < r.window*(1+o.Lookahead) {
		return r, nil // most of the measured part would foresee less than it should
	}
	all, err := s.Forecast(trace[:len(trace)/r.window*r.window], r.window)
	if err != nil {
		return r, err
	}
	first, err := s.Forecast(trace[:half], r.window)
	if err != nil {
		return r, err
	}
	a, b := all.All, first.All
	r.cost = cachetier.Cost{Windows: a.Windows - b.Windows, Steps: a.Steps - b.Steps, Rows: a.Rows - b.Rows,
		Reads: a.Reads - b.Reads, Bytes: a.Bytes - b.Bytes, Seconds: a.Seconds - b.Seconds}
	return r, nil
}

// windowSteps returns the number of steps in a window of s: 1, or as many as fit. A window must not
// split a group, or the end of the group becomes a window of its own. So windowSteps tries some
// places in the first half of the trace and takes the smallest number that fits there.
func windowSteps(s *cachetier.Stack, f *store.Features, trace [][]uint32, windows bool) int {
	most := s.WindowRows()
	if !windows || most == 0 {
		return 1
	}
	tiers := s.Stats().Tiers // only what is resident was used so far
	n := len(trace)
	for i := range 8 {
		n = min(n, fitting(trace[i*len(trace)/16:], f.Rows(), int(tiers.Device.UsedRows+tiers.Host.UsedRows), most))
	}
	return n
}

// reallyRead takes two windows of trace, or 16 steps if that is more, through the tiers, after so
// many windows that are not counted, and compares the seconds in which a read was under way with
// those that the costs give.
func reallyRead(ctx context.Context, f *store.Features, o cachetier.Options, trace [][]uint32, window, before int) (line string, err error) {
	s, err := cachetier.Open(ctx, f, o)
	if err != nil {
		return "", err
	}
	defer s.Close()
	skip := min(before*window, len(trace)-1)
	trace = trace[:min(skip+max(2*window, 16), len(trace))]
	var filled cachetier.Disk
	err = replay(ctx, s, trace, window, func(step int, _ []byte) {
		if step == skip-1 {
			filled = s.Stats().Disk // what the next window loads counts with its first step
		}
	})
	if err != nil {
		return "", err
	}
	n, d := float64(len(trace)-skip), s.Stats().Disk
	seconds, t := d.Seconds-filled.Seconds, disk.Traffic{Reads: d.Reads - filled.Reads, Bytes: d.BytesRead - filled.BytesRead}
	model := o.Costs.Seconds(t)
	return fmt.Sprintf("%d | %.0f | %.1f | %.1f | %.1f | %.1f | %.2f", len(trace)-skip, float64(t.Reads)/n, float64(t.Bytes)/n/1e6,
		float64(d.BytesWanted-filled.BytesWanted)/n/1e6, 1e3*seconds/n, 1e3*model/n, seconds/model), nil
}

// replay takes steps through the tiers, so many a window, and lends the rows of each to use.
func replay(ctx context.Context, s *cachetier.Stack, steps [][]uint32, window int, use func(step int, rows []byte)) error {
	for group := range slices.Chunk(steps, window) {
		s.Expect(group)
	}
	size := int(s.Stats().RowBytes)
	var dst []byte
	for step := 0; ; {
		w, err := s.Next(ctx, s.Fit())
		if w == nil || err != nil {
			return err
		}
		if err := w.Load(ctx); err != nil {
			return err
		}
		for i := range w.Steps() {
			dst = slices.Grow(dst[:0], len(steps[step])*size)[:len(steps[step])*size]
			if err := w.Gather(ctx, i, dst); err != nil {
				return err
			}
			use(step, dst)
			step++
		}
		w.Release()
	}
}
