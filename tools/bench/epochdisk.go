package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
)

const hostShare = 40 // percent of the feature bytes

// nvme is a solid-state disk of a workstation: assumed, not measured.
var nvme = disk.Costs{SecondsPerRead: 1.0 / 500_000, BytesPerSecond: 3e9}

// compareDiskEpochs alternates epochs with everything in memory and with neighbour lists and 40 %
// of the feature bytes, for cache, windows and their index. An epoch is the second of its run, so
// that neither begins with an empty cache.
func compareDiskEpochs(ctx context.Context, c *comparison) error {
	g, table := c.ds.Graph(0), tableBytes(c.ds.Features(0))
	host := strconv.FormatInt(table*hostShare/100, 10)
	if c.memory == "" { // less than twice the data, so that train reads past the page cache
		c.memory = strconv.FormatInt(table+topology.AllBytes(g), 10)
	}
	lists := []string{"--topology-memory", strconv.FormatInt(topology.AllBytes(g), 10)}
	memory := c.trains("in memory", append(lists[:2:2], "--host-memory", strconv.FormatInt(table, 10))...)
	out := c.trains(fmt.Sprintf("%d %%", hostShare), append(lists[:2:2], "--host-memory", host, "--memory", c.memory)...)
	t := turns[epochCounts]{sides: []*side[epochCounts]{memory, out}, columns: diskColumns}
	if err := t.run(ctx, c.rounds); err != nil {
		return err
	}
	fmt.Fprintf(c.out, "%s, batch %d, epochs of %d steps, %d turns; the device: %s. Median (smallest–largest):\n\n",
		c.base(), c.batch, c.steps, c.rounds, c.device)
	t.print(c.out, "features in memory")
	ratios(c.out, "out of core / in memory", t.over(out, memory, 0))
	fmt.Fprintln(c.out)
	return c.expectNVMe(ctx, out.turns[c.rounds-1], t.figures(memory, 0).median())
}

// diskColumns are of an epoch and, unless their names say otherwise, of a step.
var diskColumns = []column[epochCounts]{
	{name: "s an epoch", format: "%.2f", of: func(e epochCounts) float64 { return e.seconds }},
	{name: "device ms a step", format: "%.1f", of: func(e epochCounts) float64 { return 1e3 * e.disk.Seconds / e.steps }},
	{name: "cold rows", format: "%.0f", show: last, of: func(e epochCounts) float64 { return float64(e.disk.Rows) / e.steps }},
	{name: "reads", format: "%.0f", show: last, of: func(e epochCounts) float64 { return float64(e.disk.Reads) / e.steps }},
	{name: "MB", format: "%.1f", show: last, of: func(e epochCounts) float64 { return float64(e.disk.BytesRead) / e.steps / 1e6 }},
	{name: "steps a window", format: "%.1f", show: last, of: epochCounts.window},
	{name: "sampling ms", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Sample / e.steps }},
	{name: "planning", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Plan / e.steps }},
	{name: "loading", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Load / e.steps }},
	{name: "gathering", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Gather / e.steps }},
	{name: "step", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Step / e.steps }},
	{name: "waiting", format: "%.1f", show: last, of: func(e epochCounts) float64 { return 1e3 * e.stages.Wait / e.steps }},
}

// expectNVMe prints what the same epoch would take with another device: the same windows, merged as
// it pays there.
func (c *comparison) expectNVMe(ctx context.Context, l epochCounts, inMemory float64) error {
	f := c.ds.Features(0)
	w := max(1, int(l.window()+0.5))
	trace, err := drawTrace(ctx, c.ds, plain, c.batch, max(c.steps, 4*w))
	if err != nil {
		return err
	}
	o := cachetier.Options{HostBytes: tableBytes(f) * hostShare / 100, Lookahead: 1, Direct: true, Engine: c.engine}
	fmt.Fprintf(c.out, "Worked out for windows of %d steps: the epoch is the one in memory and, at least, what reading takes longer than it; at most, all of what it takes.\n\n", w)
	tableHead(c.out, "| device | reads a step | MB a step | device ms a step | out of core / in memory |")
	for _, d := range []struct {
		name  string
		costs disk.Costs
	}{{"this one", c.device.Costs}, {"500,000 reads/s, 3 GB/s", nvme}} {
		o.Costs = d.costs
		s, err := cachetier.Open(ctx, f, o)
		if err != nil {
			return err
		}
		forecast, err := s.Forecast(trace, w)
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
		cost := forecast.Warm
		n, step := float64(max(cost.Steps, 1)), inMemory/l.steps
		device := cost.Seconds / n
		fmt.Fprintf(c.out, "| %s | %.0f | %.1f | %.1f | %.2f to %.2f |\n", d.name, float64(cost.Reads)/n, float64(cost.Bytes)/n/1e6, 1e3*device,
			max(device, step)/step, (device+step)/step)
	}
	return nil
}
