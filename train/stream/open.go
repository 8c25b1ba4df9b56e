package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
	"github.com/gnnstore/gnnstore/cachetier/policy"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
	"github.com/gnnstore/gnnstore/train/model"
	"github.com/gnnstore/gnnstore/train/pipeline"
	"github.com/gnnstore/gnnstore/train/plan"
	"github.com/gnnstore/gnnstore/train/run"
	"github.com/gnnstore/gnnstore/train/temporal"
	"github.com/gnnstore/gnnstore/train/tiers"
)

// featureTable is the name of the tables that a network reads features from, of events and of
// nodes.
const featureTable = "feat"

// measured has the sizes that split the memory. Sizes of a step come from a large batch.
type measured struct {
	total, weights       int64   // bytes: of all, and of weights with their gradients and moments
	step, batch, scratch int64   // bytes of a step beside its rows, of its batch, and of drawing it
	makers               int64   // bytes of the goroutines that make batches
	nodes, events        int     // whose rows a step reads
	writes               int     // nodes whose records it changes
	files                []int64 // bytes that each reader has to read
	disk                 disk.Options
}

// readerBytes returns the bytes of the buffers of all readers at a depth.
func (m *measured) readerBytes(depth int) (n int64) {
	for _, bytes := range m.files {
		n += disk.ReaderBytes(bytes, depth)
	}
	return n
}

// open opens the sampler, measures a batch, splits the memory by it, and opens the rest.
func (t *trainer) open(ctx context.Context) (err error) {
	total, err := tiers.Memory(t.MemoryBytes)
	if err != nil {
		return err
	}
	if left := t.tables.find(t.set, t.events.Stream, t.Kind); left != "" {
		t.Note("%s", left)
	}
	if err := t.settleIdentity(); err != nil {
		return err
	}
	config, shape := t.Temporal(), t.shape()
	if err := t.checkNetwork(config, shape); err != nil {
		return err
	}
	record := temporal.RecordOf(config, shape)
	places := t.events.Places()
	files := []int64{t.events.Len() * 32, places * int64(record.Bytes())}
	if f := t.tables.file; f != nil {
		files = append(files, int64(f.Rows())*int64(f.RowBytes()))
	}
	if f := t.tables.nodeFile; f != nil {
		files = append(files, int64(f.Rows())*int64(f.RowBytes()))
	}
	d := disk.Options{Kind: t.Cache.Engine, Depth: tiers.ReadersWithin(t.Cache.Readers, total), Costs: t.Cache.Costs, Faults: t.internal.faults}
	if sum(files) > total/2 {
		d.Direct, d.Probe = true, true
	}
	if t.PairFeatures {
		if t.pairs, err = temporal.CountPairs(ctx, t.events, max(total/8, 1<<20)); err != nil {
			if damaged := new(store.SectionError); !errors.As(err, &damaged) {
				err = fmt.Errorf("{pair_features}: %w", err)
			}
			return t.set.About(err)
		}
	}
	sampler, err := temporal.NewSampler(ctx, t.events, temporal.SamplerOptions{
		Fanout: t.Fanouts[0], Uniform: t.Sampler == run.UniformNeighbors, Deliver: t.Kind.DeliversMail(), Blend: t.Mitigate > 0,
		RandomPartners: t.Hooks.RandomPartners, Pairs: t.PairFeatures, Workers: t.Workers, Disk: d,
	})
	if err != nil {
		return t.set.About(err)
	}
	t.draw = &drawer{sampler: sampler, late: t.internal.late}
	kind, why := sampler.Engine()
	t.engine, t.costs = fmt.Sprintf("%s (%s)", kind, why), sampler.Costs()
	if d.Direct && kind != "" {
		d.Kind = kind
	}
	d.Costs, d.Probe = t.costs, false

	before := t.be.Bytes()
	weights := int64(0)
	if t.internal.fixed {
		t.step = temporal.NewFixedStepper(t.be, model.NewFixedTemporal(t.be, config, shape))
		weights = 4 * (t.be.Bytes().Host - before.Host) // which a checkpoint has more than once
	} else {
		t.step = temporal.NewStepper(t.be, model.NewTemporal(t.be, config, shape, t.Seed), t.Optim)
		t.step.Keep, t.step.Remember = t.Mitigate, t.MitigateAudit > 0
		weights = t.be.Bytes().Host - before.Host
	}
	if t.Identity > 0 {
		t.step.TellApart(t.ids())
	}
	p := t.learning(1)
	b, err := t.large(ctx, p)
	if err != nil {
		return err
	}
	before = t.be.Bytes()
	key := uint64(1)
	if t.internal.fixed {
		key = 0
	}
	if err := t.rehearse(b, key); err != nil {
		return err
	}
	if p.from, p.to = p.to, t.events.Len(); t.Eval != run.NoEvaluation && p.from < p.to {
		evaluated, err := t.large(ctx, p)
		if err != nil {
			return err
		}
		if err := t.rehearse(evaluated, 0); err != nil {
			return err
		}
		if sizeOf(evaluated) > sizeOf(b) {
			b = evaluated
		}
	}
	drawing, makers := sampler.Scratch()
	t.measured = measured{
		total: total, weights: weights, step: t.be.Bytes().Host - before.Host, batch: b.Bytes(), scratch: drawing, makers: makers * int64(max(1, t.Workers)),
		nodes: len(b.Nodes), events: len(b.Events), writes: max(len(b.Writes), len(b.Mails)), files: files, disk: d,
	}
	t.heap.Budget = total
	return t.openRows(ctx)
}

// openRows splits the memory for the current staleness, and opens the tables and pipelines.
func (t *trainer) openRows(ctx context.Context) error {
	demand, budget, err := t.divide()
	if err != nil {
		return t.set.About(err)
	}
	t.budget = budget
	if err := t.draw.sampler.OpenPairs(t.pairs); err != nil {
		return fmt.Errorf("%s: {pair_features}: %w", t.set.Path(), err)
	}
	return t.openTables(ctx, demand)
}

// closeRows closes the tables and pipelines, so that openRows may open them anew.
func (t *trainer) closeRows() {
	t.closeTables()
	t.pipe, t.replays, t.states = nil, nil, nil
	t.tables = tables{file: t.tables.file, nodeFile: t.tables.nodeFile}
}

// closeTables frees the memory of rows; no steps can follow. Counters stay.
func (t *trainer) closeTables() {
	for _, p := range []*pipeline.Pipeline{t.pipe, t.replays, t.states} {
		if p != nil {
			p.Close()
		}
	}
	for _, s := range []*cachetier.Stack{t.tables.features, t.tables.ofNodes} {
		if s != nil {
			s.Close()
		}
	}
	if t.tables.state != nil {
		t.tables.state.Close()
	}
	t.tables.state, t.tables.features, t.tables.ofNodes = nil, nil, nil
}

// divide splits the memory.
func (t *trainer) divide() (plan.Demand, plan.Budget, error) {
	d := t.demand()
	b, err := d.Split(t.measured.total, plan.Budget{Topology: plan.Auto, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes})
	tiers.RaiseLeast(err, t.Cache.Readers, t.measured.disk.Depth, t.measured.readerBytes)
	if err == nil && t.Cache.HostBytes == plan.Auto { // Split counts the drawing of one step, and no room for the collector
		left := b.Total - b.Fixed - b.Step - b.Batches - b.Topology - b.Device - b.Host
		more := min(left+b.Host, d.Batches.Scratch*int64(b.Group-1)+t.measured.total/heapPart)
		b.Fixed, b.Host = b.Fixed+more, b.Host-max(0, more-left)
	}
	return d, b, err
}

// checkNetwork refuses a network that there is no memory for, before the system kills the process
// for trying.
func (t *trainer) checkNetwork(c model.TemporalConfig, s model.TemporalShape) error {
	need := 16 * c.Weights(s)
	if available, err := kernels.AvailableMemory(); err == nil && need > available {
		return fmt.Errorf("{model} %s, {hidden} %d: its weights take %d MiB with their gradients and moments, and %d MiB of memory are available; "+
			"use a narrower one", t.Kind, t.Hidden, need>>20, available>>20)
	}
	return nil
}

// looks is the number of batches among which large finds the largest.
const looks = 8

// large returns the largest of some batches spread over a part: early ones have few neighbours.
func (t *trainer) large(ctx context.Context, p part) (*temporal.Batch, error) {
	largest, b := new(temporal.Batch), new(temporal.Batch)
	n := min(looks, p.steps())
	for i := range n {
		at := (2*i + 1) * p.steps() / (2 * n)
		err := t.draw.begin(ctx, at, p.step)
		if err == nil {
			err = t.draw.sampler.Draw(ctx, []temporal.Step{p.step(at)}, []*temporal.Batch{b})
		}
		if err != nil {
			return nil, t.set.About(err)
		}
		if sizeOf(b) > sizeOf(largest) {
			largest, b = b, largest
		}
	}
	return largest, nil
}

// sizeOf returns a size that the memory of a step grows with.
func sizeOf(b *temporal.Batch) int { return len(b.RowNode) + len(b.NearRow) }

// rehearse runs a batch through a step that computes nothing. That maps the step's memory without
// using it, so that it can be counted before it has to fit. A key of 0 means evaluation.
func (t *trainer) rehearse(b *temporal.Batch, key uint64) error {
	t.sizing.Dry = true
	defer func() { t.sizing.Dry = false }()
	in := temporal.Input{Batch: b, Key: key}
	zeros := func(dtype kernels.DType, rows, cols int) kernels.Tensor {
		x := kernels.Tensor{Type: dtype, Rows: rows, Cols: cols}
		x.Buf = t.be.Alloc(dtype, x.Len())
		return x
	}
	if cols := t.step.Record.Cols(); cols > 0 {
		in.State = zeros(kernels.F32, len(b.Nodes), cols)
		defer t.be.Free(in.State.Buf)
	}
	if f := t.tables.file; f != nil {
		in.Features = zeros(elemOf(f), len(b.Events), f.Dim())
		defer t.be.Free(in.Features.Buf)
	}
	if f := t.tables.nodeFile; f != nil {
		in.NodeFeatures = zeros(elemOf(f), len(b.Nodes), f.Dim())
		defer t.be.Free(in.NodeFeatures.Buf)
	}
	return t.step.Rehearse(in)
}

const (
	heapPart   = 64  // of the memory, which the heap has beside what is in use: with less it is collected several times a step
	stepMargin = 112 // percent of the batch that was measured that others may take
	scoreBytes = 32  // of an event that is evaluated: of two pairs 4 each, twice where a node is new, in lists that may be half empty
	rankBytes  = 16  // of an event that is ranked: 4, twice where a node is new, in such lists
)

// demand returns the memory that each part of the run needs.
func (t *trainer) demand() (d plan.Demand) {
	m := &t.measured
	rows := int64(0)
	cache := t.Cache
	cache.Lookahead = t.Lookahead
	add := func(r plan.Rows) {
		r.Fixed = 2 * cache.CacheBytes(int(r.Count)) // or windows would have one step
		r.Index += policy.Config{Kind: t.Cache.Policy}.SlotBytes()
		d.Rows = append(d.Rows, r)
		rows += int64(r.Inputs) * r.Bytes
	}
	if bytes := t.step.Record.Bytes(); bytes > 0 {
		places := int(t.events.Places())
		noted, slot := cachetier.NotedBytes(places)
		add(plan.Rows{Count: int64(places), Bytes: int64(bytes), Index: slot, Inputs: m.nodes, Rewritten: true, Noted: noted})
		d.Fixed += mutable.FixedBytes(places)
		d.Step += t.records(m.writes) * stepMargin / 100
		if t.MitigateAudit > 0 {
			d.Fixed += auditBytes(t.lag, m.writes, t.Hidden) * stepMargin / 100
		}
	}
	if f := t.tables.file; f != nil {
		add(plan.Rows{Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Inputs: m.events})
	}
	if f := t.tables.nodeFile; f != nil {
		add(plan.Rows{Count: int64(f.Rows()), Bytes: int64(f.RowBytes()), Inputs: m.nodes})
	}
	d.Fixed += m.readerBytes(m.disk.Depth) + 2*m.batch + m.makers // the step's lists are like a batch
	populations := int64(4 * len(t.known))
	if t.NegativePopulation != run.AllNodes {
		populations += int64(4 * len(t.all))
	}
	rest := tiers.ProgramBytes + m.weights/4*7 + populations + t.draw.sampler.Fixed() + t.internal.beside
	if t.Eval != run.NoEvaluation {
		rest += scoreBytes * max(t.split.Valid, t.split.Test)
	}
	if t.ranking.Ranks() {
		rest += rankBytes * max(t.split.Valid, t.split.Test)
	}
	if t.PairFeatures {
		rest += temporal.PairBytes(t.events, t.pairs)
	}
	d.Fixed += rest
	t.held = rest + m.step*stepMargin/100
	d.Step += m.step*stepMargin/100 + int64(t.inflight())*rows*stepMargin/100
	window := t.Window
	if window == 0 {
		window = plan.MaxWindow
	}
	d.Batches = plan.Batches{Bytes: m.batch, Scratch: m.scratch, Groups: plan.InFlight + t.Lookahead, Parallel: t.Workers, Window: window}
	d.Disk = t.costs
	return d
}

// records returns the memory for node state in flight. The current step reads it, later stages
// write it back, and the table keeps it for the lag. A checkpoint copies the kept part three
// times: as rows, as numbers and as a file.
func (t *trainer) records(writes int) int64 {
	steps := 1
	if t.Publish == run.Late {
		steps += t.inflight() + 1
	}
	if t.lag > 1 {
		steps += t.lag + 3*(t.lag-1)
	}
	return int64(steps) * int64(writes) * int64(t.step.Record.Bytes())
}

// openTables opens the tables of rows with their parts of the budget, and the pipelines.
func (t *trainer) openTables(ctx context.Context, demand plan.Demand) (err error) {
	parts, d := demand.Divide(t.budget), t.measured.disk
	cache := t.Cache
	cache.Lookahead, cache.Engine, cache.Readers, cache.Direct, cache.Costs, cache.Faults = t.Lookahead, d.Kind, d.Depth, d.Direct, d.Costs, d.Faults
	var rows []pipeline.Table
	var inputs []int
	next := 0
	room := func() cachetier.Options {
		c := cache
		c.DeviceBytes, c.HostBytes = parts.Device[next], parts.Host[next]
		inputs = append(inputs, demand.Rows[next].Inputs)
		next++
		return c
	}
	if bytes := t.step.Record.Bytes(); bytes > 0 {
		t.tables.state, err = mutable.Open(ctx, mutable.Options{
			Rows: int(t.events.Places()), RowBytes: bytes, Kept: t.KeepCheckpoints, Touched: t.touched(), Lag: t.lag, Cache: room(),
		})
		if err != nil {
			return fmt.Errorf("the state of nodes: %w", err)
		}
		t.tables.add(t.tables.state.Stack, stateKind)
		rows = append(rows, pipeline.Table{Type: kernels.F32, Cols: t.step.Record.Cols(), Lag: t.lag})
	}
	for _, of := range []struct {
		file *store.Features
		to   **cachetier.Stack
		kind string
	}{{t.tables.file, &t.tables.features, eventKind}, {t.tables.nodeFile, &t.tables.ofNodes, nodeKind}} {
		if of.file == nil {
			continue
		}
		if *of.to, err = cachetier.Open(ctx, of.file, room()); err != nil {
			return err
		}
		t.tables.add(*of.to, of.kind)
		rows = append(rows, pipeline.Table{Type: elemOf(of.file), Cols: of.file.Dim()})
	}
	var types []int
	for _, kind := range t.tables.kinds {
		types = append(types, inputOf[kind])
	}
	if t.Fanouts[0] == 0 && len(t.tables.stacks) > 0 { // no lists are read
		kind, why := t.tables.stacks[0].Engine()
		t.engine = fmt.Sprintf("%s (%s)", kind, why)
	}
	p := plan.NewPlanner(plan.Config{
		Sampler: t.draw, Parallel: t.Workers, Tables: t.tables.stacks, Types: types, Bytes: t.budget.Batches, Group: t.Window, Ahead: t.Lookahead,
		BatchBytes: demand.Batches.Bytes, BatchRows: inputs,
	})
	t.pipe = pipeline.New(pipeline.Config{Planner: p, Tables: rows, Backend: t.be, Buffers: t.inflight(), Late: t.internal.late})
	fresh := append([]pipeline.Table(nil), rows...)
	for i := range fresh {
		fresh[i].Lag = min(fresh[i].Lag, 1)
	}
	t.replays = pipeline.New(pipeline.Config{Planner: p, Tables: fresh, Backend: t.be, Late: t.internal.late})
	// Batches of state alone are much smaller than others, so that more of them are drawn and read
	// together.
	config := p.Config
	config.BatchBytes, config.BatchRows = 0, nil
	t.states = pipeline.New(pipeline.Config{Planner: plan.NewPlanner(config), Tables: fresh, Backend: t.be, Late: t.internal.late})
	return nil
}

// learning returns the part of an epoch that is trained on, after its warm-up.
func (t *trainer) learning(epoch int) part {
	p := part{from: t.WarmEvents, to: t.split.Train, batch: int64(t.Batch), Negatives: t.negatives(training, epoch)}
	if t.Mitigate > 0 {
		p.lag = int64(t.lag)
	}
	if t.EpochSteps > 0 {
		p.to = min(p.to, p.from+int64(t.EpochSteps)*p.batch)
	}
	return p
}

// elemOf returns the type of a table's rows.
func elemOf(f *store.Features) kernels.DType {
	if f.Elem() == store.F16 {
		return kernels.F16
	}
	return kernels.F32
}

// sum adds up.
func sum(all []int64) (n int64) {
	for _, x := range all {
		n += x
	}
	return n
}
