package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/store"
)

const hostShare = 40 // percent of the feature bytes

// nvme is a solid-state disk of a workstation: assumed, not measured.
var nvme = disk.Costs{SecondsPerRead: 1.0 / 500_000, BytesPerSecond: 3e9}

// compareDiskEpochs alternates epochs with everything in memory and with neighbour lists and 40 %
// of the feature bytes, for cache, windows and their index. An epoch is the second of its run, so
// that neither begins with an empty cache.
func compareDiskEpochs(ctx context.Context, c *comparison) error {
	ds, device, err := c.open(ctx, c.dataset)
	if err != nil {
		return err
	}
	defer ds.Close()
	g, table := ds.Graph(0), tableBytes(ds.Features(0))
	host := strconv.FormatInt(table*hostShare/100, 10)
	if c.memory == "" { // less than twice the data, so that train reads past the page cache
		c.memory = strconv.FormatInt(table+topology.AllBytes(g), 10)
	}
	inMemory := []string{"--topology-memory", strconv.FormatInt(topology.AllBytes(g), 10)}
	sides := []struct {
		name              string
		args              []string
		s, device, epochs series
		last              epochCounts
	}{
		{name: "in memory", args: append(inMemory[:2:2], "--host-memory", strconv.FormatInt(table, 10))},
		{name: fmt.Sprintf("%d %%", hostShare), args: append(inMemory[:2:2], "--host-memory", host, "--memory", c.memory)},
	}
	for range c.rounds {
		for i := range sides {
			s := &sides[i]
			if s.last, err = c.secondEpoch(ctx, s.args...); err != nil {
				return err
			}
			s.epochs = append(s.epochs, s.last.seconds)
			s.device = append(s.device, 1e3*s.last.disk.Seconds/s.last.steps)
		}
	}
	fmt.Fprintf(c.out, "%s, batch %d, epochs of %d steps, %d turns; the device: %s. Median (smallest–largest):\n\n", filepath.Base(c.dataset), c.batch, c.steps, c.rounds, device)
	tableHead(c.out, "| features in memory | s an epoch | device ms a step | cold rows | reads | MB | steps a window | sampling ms | planning | loading | gathering | step | waiting |")
	for _, s := range sides {
		l := s.last
		ms := 1e3 / l.steps
		fmt.Fprintf(c.out, "| %s | %s | %s | %.0f | %.0f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f | %.1f |\n", s.name, s.epochs.spread("%.2f"),
			s.device.spread("%.1f"), float64(l.disk.Rows)/l.steps, float64(l.disk.Reads)/l.steps, float64(l.disk.BytesRead)/l.steps/1e6,
			l.steps/float64(max(l.windows, 1)), ms*l.stages.Sample, ms*l.stages.Plan, ms*l.stages.Load, ms*l.stages.Gather, ms*l.stages.Step, ms*l.stages.Wait)
	}
	memory, out := &sides[0], &sides[1]
	fmt.Fprintf(c.out, "| out of core / in memory | %s |\n\n", out.epochs.over(memory.epochs).spread("%.2f"))
	return c.expectNVMe(ctx, ds, out.last, device.Costs, memory.epochs.median())
}

// expectNVMe prints what the same epoch would take with another device: the same windows, merged as
// it pays there.
func (c *comparison) expectNVMe(ctx context.Context, ds *store.Dataset, l epochCounts, here disk.Costs, inMemory float64) error {
	f := ds.Features(0)
	w := max(1, int(l.steps/float64(max(l.windows, 1))+0.5))
	trace, err := drawTrace(ctx, ds, plain, c.batch, max(c.steps, 4*w))
	if err != nil {
		return err
	}
	o := cachetier.Options{HostBytes: tableBytes(f) * hostShare / 100, Lookahead: 1, Direct: true, Engine: c.engine}
	fmt.Fprintf(c.out, "Worked out for windows of %d steps: the epoch is the one in memory and, at least, what reading takes longer than it; at most, all of what it takes.\n\n", w)
	tableHead(c.out, "| device | reads a step | MB a step | device ms a step | out of core / in memory |")
	for _, d := range []struct {
		name  string
		costs disk.Costs
	}{{"this one", here}, {"500,000 reads/s, 3 GB/s", nvme}} {
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
