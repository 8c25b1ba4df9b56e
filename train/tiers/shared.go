package tiers

import (
	"errors"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Wanted counts what one worker reads for a step, on average.
type Wanted struct {
	Rows  []float64   // of each input
	Lists [][]float64 // of each layer, and of each type of nodes
}

// ownedRun is the number of successive nodes that one worker owns: see store.OwnersByRule.
const ownedRun = 64

// cachedRead has what a read from the page cache takes of a processor, beside what a Way counts:
// 2.7 µs, by the user and system time of four workers on ogbn-arxiv that make 198 and 650 reads a
// step; two threads of one core of an AMD EPYC, 2026-11-29.
var cachedRead = disk.Costs{SecondsPerRead: 2.7e-6, BytesPerSecond: 1e12}

// StepReads has estimates of what a step reads from disk: see Tiers.StepReads.
type StepReads struct {
	plan.Way
	Group int // steps that are drawn together
	// First and Last are the shares of an epoch's steps in its first and in its last window.
	First, Last float64
	Gathers     bool // each step reads its own rows, when they are gathered
	Joins       bool // epochs go by horizons
}

// StepReads estimates what a step of this worker reads from disk, with its part of the memory, in
// an epoch of so many steps. workers is the number of workers that own the nodes, or 1 if this
// worker reads for itself. m has the memory of a batch and of a step. The error is a
// *plan.NotEnough if the memory is too little. Call it before Open.
func (t *Tiers) StepReads(m Measure, workers int, w Wanted, steps int) (reads StepReads, err error) {
	own := t.Parts
	defer func() { t.Parts, t.join, t.demanded, t.without = own, joining{}, plan.Demand{}, plan.Budget{} }()
	if t.Parts = nil; workers > 1 {
		t.Parts = &Parts{Parts: sample.Parts{Workers: workers}}
	}
	d, relations := t.demand(m)
	b, err := d.Split(t.total, plan.Budget{
		Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes,
	})
	if short := (*plan.NotEnough)(nil); errors.As(err, &short) {
		short.Workers = t.hosted()
	}
	if err != nil {
		return reads, err
	}
	with := t.takeJoin(&d, b)
	if t.rate != nil {
		d.Timed = d.Disk.Slower(t.rate.Costs())
	}
	cached := !t.Disk.Direct && t.rate == nil // the files stay in the system's page cache
	if cached {
		d.Timed = cachedRead
	}
	of := func(n int64) int64 { return (n + int64(workers) - 1) / int64(workers) }
	for i, n := range t.Types {
		r := &d.Rows[i]
		r.Count, r.Inputs = of(t.data.Input(n).Rows()), int(w.Rows[n])
		if workers > 1 { // see store.OwnersByRule
			r.Runs, r.Apart = ownedRun, ownedRun*r.Bytes*int64(workers-1)
		}
	}
	offsets := int64(0)
	for i, r := range relations {
		l := &d.Lists[i]
		offsets += l.Offsets
		if workers > 1 {
			l.Runs, l.Apart = ownedRun, ownedRun*l.Bytes/max(l.Nodes, 1)*int64(workers-1)
		}
		l.Nodes, l.Bytes = of(l.Nodes), of(l.Bytes)
		l.Wanted = l.Wanted[:0]
		for layer := range w.Lists {
			if t.Reach.Relations[layer][r] {
				l.Wanted = append(l.Wanted, int64(w.Lists[layer][t.data.Relations[r].Dst]))
			}
		}
	}
	b.Topology = offsets + of(max(0, b.Topology-offsets)) // the same share of the lists stays in memory
	ways := d.Ways(b, with, steps, t.space())
	reads.First, reads.Last = float64(ways.FirstSteps)/float64(steps), float64(ways.LastSteps)/float64(steps)
	way := ways.Windows
	switch {
	case d.Join > 0:
		way = ways.Join
	case b.Group == 1 || t.Cache.Policy == cachetier.None:
		way = ways.Rows
		reads.First, reads.Last, reads.Gathers = 1/float64(steps), 1/float64(steps), true
	}
	way = way.Of(steps)
	if cached {
		way.Processor += way.Device
		way.Device, way.ListSeconds = 0, 0
	}
	reads.Way, reads.Group, reads.Joins = way, b.Group, d.Join > 0
	return reads, nil
}
