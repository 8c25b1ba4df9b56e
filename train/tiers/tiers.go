// Package tiers opens what brings batches to a step: neighbour lists, feature rows, and the planner and pipeline over them, each
// with its part of one budget.
//
// It goes in two stages, since the parts depend on what a batch takes. After [New] there are lists to draw from, and with
// [Tiers.First] a batch. [Tiers.Open] splits the memory by the measure of that batch and opens the rest.
//
// Memory: [Tiers.Budget] says who has how much. One goroutine at a time, but [Tiers.Close], and the counters of its parts.
package tiers

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Auto stands for a budget that is a part of MemoryBytes.
const Auto = plan.Auto

// Tiers are a run's, from its files to its steps.
type Tiers struct {
	Options
	Budget   plan.Budget // how the memory is split
	Disk     disk.Options
	Engine   string // that reads, and why
	Topology *topology.Tier
	Sampler  *sample.Sampler
	Stack    *cachetier.Stack
	Planner  *plan.Planner
	Pipe     *pipeline.Pipeline

	data   *data.Data
	draws  sample.Config
	be     kernels.Backend
	total  int64 // bytes for all
	inputs int   // rows that the first batch reads, and others about as many
	heap   heapLimit
}

// New opens the neighbour lists, with more of them in memory than their offsets where that is little: so that batches can be
// drawn. Faults are of tests.
func New(ctx context.Context, d *data.Data, draws sample.Config, be kernels.Backend, o Options, faults disk.Faults) (_ *Tiers, err error) {
	t := &Tiers{Options: o, data: d, draws: draws, be: be, total: o.MemoryBytes}
	if t.total == 0 {
		if t.total, err = defaultMemory(); err != nil {
			return nil, err
		}
	}
	// All lists where they are a small part: then they need not be read again for the measure. Else the offsets.
	bytes := topology.LeastBytes(d.Graph)
	lists := topology.ListBytes(d.Graph, d.Weights)
	if all := bytes + lists; all <= t.total/8 {
		bytes = all
	}
	if o.TopologyBytes != Auto {
		bytes = o.TopologyBytes
	}
	t.Budget.Topology = bytes
	t.Disk = disk.Options{Kind: o.Cache.Engine, Depth: o.Cache.Readers, Costs: o.Cache.Costs, Faults: faults}
	if rows := int64(d.Features.Rows()) * int64(d.Features.RowBytes()); rows+lists > t.total/2 {
		t.Disk.Direct, t.Disk.Probe = true, true
	}
	t.Topology, err = topology.Open(ctx, d.Graph, topology.Options{Bytes: bytes, Weights: d.Weights, Options: t.Disk})
	if err != nil {
		return nil, err
	}
	t.Sampler = sample.NewSampler(t.Topology, draws, o.Workers)
	kind, why := t.Topology.Engine()
	if t.Disk.Direct {
		t.Disk.Kind = kind
	}
	t.Engine = fmt.Sprintf("%s (%s)", kind, why)
	t.Disk.Costs = t.Topology.Costs() // one measurement, for lists and rows
	return t, nil
}

// defaultMemory is what a run takes that is not told: half of what there is, as far as it has address space.
func defaultMemory() (int64, error) {
	system, err := kernels.SystemMemory()
	if err != nil {
		return 0, fmt.Errorf("how much memory there is, is not known (%w); say how much to take with {memory_bytes}", err)
	}
	return kernels.Addressable(system / 2), nil
}

// First draws a batch that Open takes the measure of.
func (t *Tiers) First(ctx context.Context, z sample.Z, seeds []uint32) (*sample.Batch, error) {
	b := new(sample.Batch)
	err := store.Guard(func() error {
		return t.data.Place(t.Sampler.SampleOne(ctx, b, z, seeds))
	})
	return b, err
}

// Open splits the memory by the measure of a batch, and opens what is not open yet. A total that is not enough is a
// *plan.NotEnough, and Open may be called again with a smaller Beside.
func (t *Tiers) Open(ctx context.Context, m Measure) error {
	d := t.demand(m)
	budget, err := d.Split(t.total, plan.Budget{
		Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes,
	})
	if limit, _, limited := kernels.AddressSpace(); err != nil && limited && t.MemoryBytes == 0 {
		err = fmt.Errorf("%w; ulimit -v allows %s of address space, raise it", err, kernels.FormatBytes(limit))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.data.Set.Path(), err)
	}
	if budget.Topology != t.Budget.Topology {
		if err := t.Topology.Resize(ctx, budget.Topology); err != nil {
			return err
		}
		t.Sampler = sample.NewSampler(t.Topology, t.draws, t.Workers) // which asks once how many lists are resident
	}
	t.Budget, t.inputs = budget, d.Rows[0].Inputs
	t.Sampler.Bytes = min(t.Sampler.Bytes, d.Batches.Scratch*int64(budget.Group))
	cache := t.Cache
	cache.HostBytes, cache.Lookahead, cache.Engine, cache.Direct = budget.Host, t.Lookahead, t.Disk.Kind, t.Disk.Direct
	cache.Costs, cache.Faults = t.Disk.Costs, t.Disk.Faults
	if t.Stack, err = cachetier.Open(ctx, t.data.Features, cache); err != nil {
		return err
	}
	if !t.Disk.Direct {
		kind, why := t.Stack.Engine()
		t.Engine = fmt.Sprintf("%s (%s)", kind, why)
	}
	t.heap.budget = t.total - t.data.SumBytes()
	t.Planner = plan.NewPlanner(plan.Config{
		Sampler: checked{t.Sampler, t.data}, Parallel: t.Workers, Tables: []*cachetier.Stack{t.Stack}, Bytes: budget.Batches,
		Group: t.Window, Ahead: t.Lookahead, BatchBytes: d.Batches.Bytes, BatchRows: []int{t.inputs},
	})
	t.Pipe = pipeline.New(pipeline.Config{
		Planner: t.Planner, Tables: []pipeline.Table{{Type: t.data.DType(), Cols: t.data.Features.Dim()}}, Backend: t.be,
	})
	return nil
}

// checked names the place of what its sampler finds damaged.
type checked struct {
	*sample.Sampler
	data *data.Data
}

func (s checked) Sample(ctx context.Context, batches []*sample.Batch, z []sample.Z, seeds [][][]uint32) error {
	return s.data.Place(s.Sampler.Sample(ctx, batches, z, seeds))
}

// FollowHeap keeps the Go heap within what the budget leaves beside memory outside it. It is called now and then; Close takes the
// limit back.
func (t *Tiers) FollowHeap() { t.heap.follow() }

// Lasting reports whether rows in the host cache are of use to later windows. A window that takes more than half of the cache
// brings most of its rows by a scan of the file and leaves little room for those of others.
func (t *Tiers) Lasting() bool {
	rows := t.Stack.WindowRows()
	return rows > 0 && t.Cache.Policy != cachetier.None && int64(rows) >= 2*int64(t.Budget.Group)*int64(t.inputs)
}

// Prewarm fills the host cache with the hottest rows, if the steps to come read more rows than that.
func (t *Tiers) Prewarm(ctx context.Context, steps int) error {
	if int64(steps)*int64(t.inputs) < int64(t.Stack.WindowRows()) {
		return nil
	}
	return t.Stack.Prewarm(ctx)
}

// Close gives up the memory and the files, of what is open.
func (t *Tiers) Close() {
	t.heap.close()
	if t.Pipe != nil {
		t.Pipe.Close()
	}
	if t.Stack != nil {
		t.Stack.Close()
	}
	t.Topology.Close()
}
