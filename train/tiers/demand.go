package tiers

import (
	"runtime"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/cachetier/topology"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/sample"
)

// Measure is what the first batch was found to take.
type Measure struct {
	Batch *sample.Batch
	Step  int64 // bytes of a step on it, its feature rows apart
	// Beside is the bytes that a run takes beside its tiers: weights, evaluation.
	Beside int64
	// History is that of the hidden rows of earlier steps, Slots of which have room in the device region: see device.SlotsSize.
	History, Slots int64
}

// demand is what each part needs: rows by stack, lists by the relations that are drawn from; files
// holds the bytes of the rows or lists that each reader reads.
func (t *Tiers) demand(m Measure) (d plan.Demand, relations []int, files []int64) {
	b, batchRows := m.Batch, int64(0)
	scratch, shared := t.Sampler.Scratch(b)
	inputs := b.Inputs()
	for _, n := range t.Types {
		r := plan.Rows{
			Count: int64(t.data.Input(n).Nodes), Bytes: int64(t.RowBytes(n)), Index: policy.Config{Kind: t.Cache.Policy}.SlotBytes(),
			Inputs: len(inputs[n]), Rewritten: t.data.Input(n).Features == nil,
		}
		if r.Rewritten {
			var noted int64
			r.Noted, noted = cachetier.NotedBytes(t.data.Types[n].Nodes)
			r.Index += noted
			d.Fixed += mutable.FixedBytes(t.data.Types[n].Nodes)
		}
		d.Rows = append(d.Rows, r)
		files, batchRows = append(files, r.Count*r.Bytes), batchRows+int64(r.Inputs)*r.Bytes
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
		d.Lists, relations, files = append(d.Lists, l), append(relations, i), append(files, l.Bytes)
	}
	window := t.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	if t.MostSteps > 0 {
		window = min(window, t.MostSteps)
	}
	seeds := int64(4 * (len(t.data.Train)*3 + len(t.data.Valid)*2 + len(t.data.Test)*2))
	d.Fixed += ProgramBytes + shared + seeds + m.Beside + t.sumBytes() + readerBytes(files, t.Disk.Depth)
	d.History = m.History
	d.Step = m.Step*stepMargin/100 + 2*batchRows*stepMargin/100
	d.Batches = plan.Batches{
		Bytes: b.Bytes(), Scratch: scratch, Groups: plan.InFlight + t.Lookahead, Parallel: t.Workers, Window: window, Far: t.Sampler.Far(),
	}
	if t.EpochSteps > 0 {
		d.Batches.Packed = int64(len(t.Sampler.Pack(nil, b)))
	}
	d.Disk, d.Cores = t.Disk.Costs, runtime.GOMAXPROCS(0)
	return d, relations, files
}

// readerBytes returns what the buffers take in all, with one reader for each of files.
func readerBytes(files []int64, depth int) (n int64) {
	all := int64(0)
	for _, bytes := range files {
		all += bytes
	}
	slices.Sort(files)
	for i, bytes := range slices.Backward(files) {
		if len(files)-i <= 2 { // the two that have most to do have room as if all were theirs
			bytes = all
		}
		n += ReaderBytes(bytes, depth)
	}
	return n
}

// stepMargin is how much another batch may take, in percent of the first.
const stepMargin = 112
