package train

import (
	"context"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// openTiers takes the measure of a batch, splits the memory by it, and opens what brings batches to the step. Where that leaves
// no room for full-neighbour evaluation, and may, there is none.
func (t *trainer) openTiers(ctx context.Context, anyEvaluation bool) (err error) {
	total := t.MemoryBytes
	if total == 0 {
		if total, err = defaultMemory(); err != nil {
			return err
		}
	}
	// All lists where they are a small part: then they need not be read again for the measure. Else the offsets.
	topologyBytes := topology.LeastBytes(t.data.Graph)
	lists := topology.ListBytes(t.data.Graph, t.data.Weights)
	if all := topologyBytes + lists; all <= total/8 {
		topologyBytes = all
	}
	if t.TopologyBytes != Auto {
		topologyBytes = t.TopologyBytes
	}
	f := t.data.Features
	t.disk = disk.Options{
		Kind: t.Cache.Engine, Depth: t.Cache.Readers, Costs: t.Cache.Costs, Faults: t.hooks.faults,
	}
	if everything := int64(f.Rows())*int64(f.RowBytes()) + lists; everything > total/2 {
		t.disk.Direct, t.disk.Probe = true, true
	}
	t.topo, err = topology.Open(ctx, t.data.Graph, topology.Options{Bytes: topologyBytes, Weights: t.data.Weights, Options: t.disk})
	if err != nil {
		return err
	}
	t.draws = sample.NewSampler(t.topo, t.Sampling(), t.Workers)
	kind, why := t.topo.Engine()
	if t.disk.Direct {
		t.disk.Kind = kind
	}
	t.disk.Costs = t.topo.Costs() // one measurement, for lists and rows
	d, err := t.demand(ctx)
	if err != nil {
		return err
	}
	given := plan.Budget{Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes}
	t.budget, err = d.Split(total, given)
	if err != nil && anyEvaluation {
		d.Fixed -= t.eval.MemoryBytes()
		t.EvalBytes, t.eval.Bytes = 0, 0
		d.Fixed += t.eval.MemoryBytes()
		t.budget, err = d.Split(total, given)
	}
	if limit, _, limited := kernels.AddressSpace(); err != nil && limited && t.MemoryBytes == 0 {
		err = fmt.Errorf("%w; ulimit -v allows %s of address space, raise it", err, kernels.FormatBytes(limit))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", t.data.Set.Path(), err)
	}
	if t.budget.Topology != topologyBytes {
		if err := t.topo.Resize(ctx, t.budget.Topology); err != nil {
			return err
		}
		t.draws = sample.NewSampler(t.topo, t.Sampling(), t.Workers) // which asks once how many lists are resident
	}
	t.draws.Bytes = min(t.draws.Bytes, d.Batches.Scratch*int64(t.budget.Group))
	cache := t.Cache
	cache.HostBytes, cache.Lookahead, cache.Engine, cache.Direct = t.budget.Host, t.Lookahead, t.disk.Kind, t.disk.Direct
	cache.Costs, cache.Faults = t.disk.Costs, t.disk.Faults
	if t.stack, err = cachetier.Open(ctx, t.data.Features, cache); err != nil {
		return err
	}
	if !t.disk.Direct {
		kind, why = t.stack.Engine()
	}
	t.engine, t.heap.budget = fmt.Sprintf("%s (%s)", kind, why), total-t.data.SumBytes()
	t.read = t.stack.Stats()
	t.inputs = d.Rows[0].Inputs
	t.planner = plan.NewPlanner(plan.Config{
		Sampler: checked{t.draws, t.data}, Parallel: t.Workers, Tables: []*cachetier.Stack{t.stack}, Bytes: t.budget.Batches,
		Group: t.Window, Ahead: t.Lookahead, BatchBytes: d.Batches.Bytes, BatchRows: []int{d.Rows[0].Inputs},
	})
	t.pipe = pipeline.New(pipeline.Config{
		Planner: t.planner, Stack: t.stack, Type: t.data.DType(), Cols: t.data.Features.Dim(), Backend: t.be,
	})
	t.eval.Attach(t.stack, t.pipe)
	return nil
}

// defaultMemory is what a run takes that is not told: half of what there is, as far as it has address space.
func defaultMemory() (int64, error) {
	system, err := kernels.SystemMemory()
	if err != nil {
		return 0, fmt.Errorf("how much memory there is, is not known (%w); say how much to take with {memory_bytes}", err)
	}
	return kernels.Addressable(system / 2), nil
}

// demand takes the measure of the first batch: it is drawn, and goes through the network forwards and backwards with rows of
// zeros, so that the memory of a step is there and known.
func (t *trainer) demand(ctx context.Context) (d plan.Demand, err error) {
	f, g := t.data.Features, t.data.Graph
	t.task.Begin(1)
	b := new(sample.Batch)
	err = store.Guard(func() error {
		return t.data.Place(t.draws.SampleOne(ctx, b, t.BatchSeeds().At(0), t.task.Seeds(0)[0]))
	})
	if err != nil {
		return d, err
	}
	scratch, shared := t.draws.Scratch(b)
	before := kernels.HostBytes()
	if err := t.rehearse(b); err != nil {
		return d, err
	}
	step := kernels.HostBytes() - before
	rows := plan.Rows{
		Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Index: policy.Config{Kind: t.Cache.Policy}.SlotBytes(), Inputs: len(b.Inputs()[0]),
	}
	lists := plan.Lists{
		Nodes: int64(g.Nodes()), Offsets: topology.LeastBytes(g), Bytes: topology.ListBytes(g, t.data.Weights),
	}
	for l := range b.Layers {
		lists.Wanted = append(lists.Wanted, int64(b.Layers[l].Nodes[0].Dst))
	}
	window := t.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	d = plan.Demand{
		Step: step*stepMargin/100 + 2*int64(rows.Inputs)*rows.Bytes*stepMargin/100,
		Batches: plan.Batches{
			Bytes: b.Bytes(), Scratch: scratch, Groups: plan.InFlight + t.Lookahead, Parallel: t.Workers, Window: window,
		},
		Rows: []plan.Rows{rows}, Lists: []plan.Lists{lists}, Disk: t.topo.Costs(),
	}
	seedBytes := int64(4 * (len(t.data.Train)*3 + len(t.data.Valid)*2 + len(t.data.Test)*2))
	weights := t.Config.Weights(t.shape())
	d.Fixed = programBytes + shared + seedBytes + (16+checkpointBytes)*weights + t.eval.MemoryBytes() + t.data.SumBytes() +
		2*min(engineBytes, rows.Count*rows.Bytes+lists.Bytes)
	return d, nil
}

const (
	engineBytes     = 24 << 20 // of the buffers of a disk.Reader
	programBytes    = 48 << 20 // the program and its heap beside what is counted
	checkpointBytes = 12       // a weight: the best epoch's, and the file of a checkpoint while it is built
	stepMargin      = 112      // percent of the first batch that others may take
)

// checked names the place of what its sampler finds damaged.
type checked struct {
	*sample.Sampler
	data *data.Data
}

func (s checked) Sample(ctx context.Context, batches []*sample.Batch, z []sample.Z, seeds [][][]uint32) error {
	return s.data.Place(s.Sampler.Sample(ctx, batches, z, seeds))
}
