package tiers

import (
	"runtime"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Measure holds the sizes that were measured on the first batch.
type Measure struct {
	Batch *sample.Batch
	Step  int64 // bytes of a step on it, its feature rows apart
	// OnDevice is the bytes of weights and a step in a device's own memory. They are not in Step
	// and Beside.
	OnDevice int64
	// Beside returns the bytes that a run takes beside its tiers, for weights and evaluation, in a
	// process that may take total bytes.
	Beside func(total int64) int64
	// History is the bytes of the hidden rows of earlier steps. Slots of them have room in the
	// device region: see device.SlotsSize.
	History, Slots int64
	// Kept is plan.Batches.Kept: bytes of a step while its batch waits in a spill.
	Kept int64
	// Evaluation is the bytes of hidden rows of evaluation, which are on a device with memory of
	// its own.
	Evaluation int64
}

// demand returns what each part of the run needs. Rows has an entry for each stack. Lists has one
// for each of relations, from which batches are drawn.
func (t *Tiers) demand(m Measure) (d plan.Demand, relations []int) {
	b, batchRows, numbers, learnt := m.Batch, int64(0), int64(0), int64(0)
	scratch, shared := t.Sampler.Scratch(b)
	inputs := b.Inputs()
	for _, n := range t.Types {
		r := plan.Rows{
			Count: t.data.Input(n).Rows(), Bytes: int64(t.RowBytes(n)),
			Index:  policy.Config{Kind: t.Cache.Policy}.SlotBytes(),
			Inputs: len(inputs[n]), Rewritten: t.data.Input(n).Features == nil,
		}
		if r.Rewritten {
			var noted int64
			r.Noted, noted = cachetier.NotedBytes(t.data.Types[n].Nodes)
			r.Index += noted
			d.Fixed += mutable.FixedBytes(t.data.Types[n].Nodes)
		}
		if t.Parts != nil {
			if t.Disk.Direct && t.data.OwnPart() == nil { // if not, all rows fit, and evaluation reads them all
				r.Count = (r.Count + int64(t.Parts.Workers) - 1) / int64(t.Parts.Workers) // its own
			}
			numbers += partsNumbers * int64(r.Inputs)
		}
		d.Rows = append(d.Rows, r)
		if batchRows += int64(r.Inputs) * r.Bytes; r.Rewritten {
			learnt += int64(r.Inputs) * r.Bytes
		}
	}
	bytes := b.Bytes()
	if t.Parts != nil {
		bytes += numbers
		scratch += partsScratch * b.DrawnBytes()
	}
	for i, drawn := range t.drawn() {
		if !drawn {
			continue
		}
		r := t.data.Relations[i]
		l := plan.Lists{Nodes: int64(r.Nodes()), Offsets: topology.LeastBytes(r.Graph), Bytes: topology.ListBytes(r.Graph, r.Weights, r.Brought()...)}
		for layer := range b.Layers {
			if t.Reach.Relations[layer][i] {
				l.Wanted = append(l.Wanted, int64(b.Layers[layer].Nodes[r.Dst].Dst))
			}
		}
		d.Lists, relations = append(d.Lists, l), append(relations, i)
	}
	window := t.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	if t.MostSteps > 0 {
		window = min(window, t.MostSteps)
	}
	seeds := int64(4 * (len(t.data.Train)*3 + len(t.data.Valid)*2 + len(t.data.Test)*2))
	d.Fixed += ProgramBytes + shared + seeds + m.Beside(t.total) + t.sumBytes() + readerBytes(d, t.Disk.Depth)
	d.History = m.History
	d.Step = m.Step*stepMargin/100 + int64(t.buffers())*batchRows*stepMargin/100
	if m.OnDevice > 0 {
		copies := t.buffers()
		if t.Cache.DeviceBytes > 0 && device.Apart(t.be) {
			copies += 2 // rows that came are put together with those that lie there: see pipeline.Pipeline
			d.Apart = !t.learnsRows()
		}
		d.OnDevice = m.OnDevice*stepMargin/100 + int64(copies)*batchRows*stepMargin/100 + m.Slots
		d.Step = m.Step*stepMargin/100 + HostCopies*batchRows*stepMargin/100
		d.History = max(0, d.History-m.Slots)
	}
	d.Batches = plan.Batches{
		Bytes: bytes, Scratch: scratch, Groups: plan.InFlight + t.Lookahead, Parallel: t.Workers, Window: window, Far: t.Sampler.Far(),
		Kept: m.Kept,
	}
	if t.EpochSteps > 0 {
		d.Batches.Packed = int64(len(t.Sampler.Pack(nil, b)))
		if b.Dealt() == nil {
			d.Batches.Packed += numbers
		}
	}
	if t.Parts != nil {
		d.Step += (partsRows*batchRows + partsLearnt*learnt) * stepMargin / 100
		d.Batches.Far = false
	}
	d.Disk, d.Cores = t.Disk.Costs, runtime.GOMAXPROCS(0)
	return d, relations
}

// readerBytes returns what the buffers of all readers take, one for the rows of each stack and one
// for the lists of each relation.
func readerBytes(d plan.Demand, depth int) (n int64) {
	var files []int64
	for _, r := range d.Rows {
		files = append(files, r.Count*r.Bytes)
	}
	for _, l := range d.Lists {
		files = append(files, l.Bytes)
	}
	all := int64(0)
	for _, bytes := range files {
		all += bytes
	}
	slices.Sort(files)
	for i, bytes := range slices.Backward(files) {
		if len(files)-i <= 2 { // the two that have most to do have room as if all were theirs
			bytes = all
		}
		n += disk.ReaderBytes(bytes, depth)
	}
	return n
}

// HostCopies is the number of steps whose rows are on the host on their way to a device: gathered
// there, and being copied.
const HostCopies = 2

// Any batch may take stepMargin percent of the memory that the first one takes.
const stepMargin = 112
