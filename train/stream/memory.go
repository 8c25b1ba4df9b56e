package stream

import (
	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// sizes has the sizes by which divide splits the memory. A large batch gives the sizes of a step.
type sizes struct {
	total, weights       int64   // bytes: of all, and of weights with their gradients and moments
	step, batch, scratch int64   // bytes of a step beside its rows, of its batch, and of drawing it
	onDevice             int64   // bytes of weights and a step in a device's own memory; step has none of them
	makers               int64   // bytes of the goroutines that make batches
	nodes, events        int     // whose rows a step reads
	writes               int     // nodes whose records it changes
	files                []int64 // bytes that each reader has to read
	disk                 disk.Options
}

// readerBytes returns the bytes of the buffers of all readers at a depth.
func (m *sizes) readerBytes(depth int) (n int64) {
	for _, bytes := range m.files {
		n += disk.ReaderBytes(bytes, depth)
	}
	return n
}

// divide splits the memory.
func (c *core) divide() (plan.Demand, plan.Budget, error) {
	d := c.demand()
	b, err := d.Split(c.sizes.total, plan.Budget{Topology: plan.Auto, Device: c.Cache.DeviceBytes, Host: c.Cache.HostBytes, Batches: c.BatchBytes})
	tiers.RaiseLeast(err, c.sizes.total, func(total int64) int64 {
		return c.sizes.readerBytes(tiers.ReadersWithin(c.Cache.Readers, total))
	})
	if err == nil && c.Cache.HostBytes == plan.Auto { // Split counts the drawing of one step of a group, and no spare heap
		left := b.Total - b.Fixed - b.Step - b.Batches - b.Topology - b.Device - b.Host
		more := min(left+b.Host, d.Batches.Scratch*int64(b.Group-1)+c.sizes.total/heapPart)
		b.Fixed, b.Host = b.Fixed+more, b.Host-max(0, more-left)
	}
	return d, b, err
}

const (
	heapPart   = 64  // this part of the memory is spare heap; with less, Go collects several times a step
	stepMargin = 112 // percent of the measured batch that another may take
	scoreBytes = 32  // of an event that is evaluated: of two pairs 4 each, twice where a node is new, in lists that may be half empty
	rankBytes  = 16  // of an event that is ranked: 4, twice where a node is new, in such lists
)

// demand returns the memory that each part of the run needs.
func (c *core) demand() (d plan.Demand) {
	m := &c.sizes
	rows := int64(0)
	cache := c.Cache
	cache.Lookahead = c.Lookahead
	add := func(r plan.Rows) {
		r.Fixed = 2 * cache.CacheBytes(int(r.Count)) // or windows would have one step
		r.Index += policy.Config{Kind: c.Cache.Policy}.SlotBytes()
		d.Rows = append(d.Rows, r)
		rows += int64(r.Inputs) * r.Bytes
	}
	if bytes := c.step.Record.Bytes(); bytes > 0 {
		places := int(c.events.Places())
		noted, slot := cachetier.NotedBytes(places)
		add(plan.Rows{Count: int64(places), Bytes: int64(bytes), Index: slot, Inputs: m.nodes, Rewritten: true, Noted: noted})
		d.Fixed += mutable.FixedBytes(places)
		d.Step += c.records(m.writes) * stepMargin / 100
		if c.MitigateAudit > 0 {
			d.Fixed += auditBytes(c.lag, m.writes, c.Hidden) * stepMargin / 100
		}
	}
	if f := c.features.events; f != nil {
		add(plan.Rows{Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Inputs: m.events})
	}
	if f := c.features.nodes; f != nil {
		add(plan.Rows{Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Inputs: m.nodes})
	}
	d.Fixed += m.readerBytes(m.disk.Depth) + 2*m.batch + m.makers // the step's lists are like a batch
	d.Fixed += c.restBytes()
	inflight := int64(c.inflight()) * rows * stepMargin / 100
	if m.onDevice > 0 {
		d.OnDevice = m.onDevice*stepMargin/100 + inflight
		inflight = tiers.HostCopies * rows * stepMargin / 100
	}
	d.Step += m.stepBytes() + inflight
	window := c.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	d.Batches = plan.Batches{Bytes: m.batch, Scratch: m.scratch, Groups: plan.InFlight + c.Lookahead, Parallel: c.Workers, Window: window}
	d.Disk = c.costs
	return d
}

// stepBytes returns the bytes that a step takes beside its rows, with stepMargin.
func (m *sizes) stepBytes() int64 { return m.step * stepMargin / 100 }

// restBytes returns the bytes that stay in use when the tables are closed, without a step's memory,
// which also stays: see stepBytes.
func (c *core) restBytes() int64 {
	weights := c.sizes.weights / 4 * 7 // with copies of the values: best epoch, checkpoint
	if c.sizes.onDevice > 0 {
		weights = c.sizes.weights / 4 * 3
	}
	rest := tiers.ProgramBytes + weights + int64(4*len(c.known)) + c.draw.sampler.Fixed() + c.internal.beside
	if c.NegativePopulation != run.AllNodes {
		rest += int64(4 * len(c.all))
	}
	if c.Eval != run.NoEvaluation {
		rest += scoreBytes * max(c.split.Valid, c.split.Test)
	}
	if c.ranking.Ranks() {
		rest += rankBytes * max(c.split.Valid, c.split.Test)
	}
	if c.PairFeatures {
		rest += temporal.PairBytes(c.events, c.pairs)
	}
	return rest
}

// records returns the memory for node state in flight. The current step reads it, later stages
// write it back, and the table keeps it for the lag. A checkpoint copies the kept part three
// times: as rows, as numbers and as a file.
func (c *core) records(writes int) int64 {
	steps := 1
	if c.Publish == run.Late {
		steps += c.inflight() + 1
	}
	if c.lag > 1 {
		steps += c.lag + 3*(c.lag-1)
	}
	return int64(steps) * int64(writes) * int64(c.step.Record.Bytes())
}
