package main

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/store/setting"
	"github.com/gnnstore/gnnstore/train/history"
	"github.com/gnnstore/gnnstore/train/sample"
	"github.com/gnnstore/gnnstore/train/trace"
)

// compareReuse traces runs that use hidden rows again, under NS, and prints what they read and
// compute: by how old rows may be, how late the verdicts on them are, and how many there are. All
// have the same bytes for feature rows and slots together. Beside them are the same bytes as a
// static prefix and as a longer slab.
func compareReuse(ctx context.Context, c *comparison) error {
	f, h := c.ds.Features(0), trace.DefaultHistory()
	h.TStale, h.HistoryLag = []int{20, 200}, []int{1, 50, 100, 200}
	h.Slots = []trace.Slots{{Bytes: history.Auto}, {Share: 0.005}, {Share: 0.02}, {Share: 0.1}, {Share: 1}}
	h.Hidden, h.EqualBytes, h.DiskCosts, h.WindowBytes = hidden, true, c.device.Costs, int64(float64(tableBytes(f))*c.cache.Share)
	o := trace.DefaultOptions()
	o.Samplers, o.Kappas, o.Fanouts, o.Batch, o.Steps = []sample.Kind{sample.NS}, []int{1}, c.fanouts, c.batch, c.steps
	o.Growth, o.Caches, o.Threads, o.Tmp, o.History = []int{}, nil, c.threads, c.tmp, &h
	r, err := trace.Run(ctx, c.ds, o)
	if err != nil {
		return err
	}
	got := r.History
	fmt.Fprintf(c.out, "%s: %d nodes by %s, mean degree %.1f; rows of %d bytes, slots of %d, %d MiB in all for both, %v of the feature bytes. Batch %d, fanout %s, p_grad %v, verdicts %s.\n",
		c.base(), r.Nodes, r.Order, float64(r.Edges)/float64(r.Nodes), f.RowBytes(), got.SlotBytes, got.WindowBytes>>20, c.cache, r.Batch, setting.FormatInts(c.fanouts),
		got.PGrad, got.Verdicts)
	fmt.Fprintf(c.out, "The device: %s. A step of the steps %d to %d. ÷ is by how much fewer than without history; of device ms, than with a longer slab. "+
		"Slots are for that share of the nodes of each layer, or auto: those that save more than they take.\n\n",
		c.device, got.WarmupSteps+1, r.Steps)
	made := ""
	for l := range len(c.fanouts) - 1 {
		made += fmt.Sprintf(" made by layer %d | ÷ |", l+1)
	}
	tableHead(c.out, "| slots | t_stale | K | rows | ÷ | lists | ÷ |"+made+" reused | refused | slots MiB | slab MiB | steps a window | device ms, rows | lists | both | ÷ | a prefix instead: steps a window | both | ÷ |")
	d := got.Draws[0]
	base := d.Without
	fmt.Fprint(c.out, "| none, a longer slab | | |")
	printReads(c, base, base)
	fmt.Fprintf(c.out, " | | | %d |%s | | |\n", base.Windows.SlabBytes>>20, windowsText(base.Windows, base.Windows))
	for _, v := range d.Variants {
		fmt.Fprintf(c.out, "| %s | %d | %d |", v.Asked, v.TStale, v.Lag)
		printReads(c, v.StepReads, base)
		fmt.Fprintf(c.out, " %.1f %% | %.1f %% | %d | %d |%s", 100*v.Reuse, 100*float64(v.Refused)/float64(max(v.Computed, 1)), v.SlotsBytes>>20, v.Windows.SlabBytes>>20,
			windowsText(v.Windows, base.Windows))
		if v.Prefix == nil { // no slot is kept
			fmt.Fprintln(c.out, " | | |")
			continue
		}
		fmt.Fprintf(c.out, " %.1f | %.2f | %.2f |\n", v.Prefix.Steps, v.Prefix.DeviceMS, base.Windows.DeviceMS/v.Prefix.DeviceMS)
	}
	return nil
}

// printReads prints what a step reads and computes, but for the seeds, beside one without history.
func printReads(c *comparison, n, without trace.StepReads) {
	fmt.Fprintf(c.out, " %.0f | %.2f | %.0f | %.2f |", n.Rows, without.Rows/n.Rows, n.Lists, without.Lists/n.Lists)
	for l, made := range n.ComputedNodes[:len(n.ComputedNodes)-1] {
		fmt.Fprintf(c.out, " %.0f | %.2f |", made, without.ComputedNodes[l]/made)
	}
}

// windowsText returns the cells of windows, and their gain over windows without history.
func windowsText(w, without *trace.Windows) string {
	return fmt.Sprintf(" %.1f | %.2f | %.2f | %.2f | %.2f |", w.Steps, w.RowMS, w.ListMS, w.DeviceMS, without.DeviceMS/w.DeviceMS)
}
