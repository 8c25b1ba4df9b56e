// Package tiers opens what brings batches to a step: neighbour lists, feature rows, and the planner
// and pipeline over them, each with its part of one budget.
//
// It goes in two stages, since the parts depend on what a batch takes. After [New] there are lists
// to draw from, and with [Tiers.First] a batch. [Tiers.Open] splits the memory by the measure of
// that batch and opens the rest. Where rows are learnt, [Tiers.In] sets their directory.
//
// Memory: [Tiers.Budget] has the bytes of each part. One goroutine at a time, except for the
// counters of the parts.
package tiers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/device"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/cachetier/mutable"
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

// Tiers brings data from a run's files to its steps.
type Tiers struct {
	Options
	Budget  plan.Budget // how the memory is split
	Disk    disk.Options
	Engine  string       // the engine that reads, and why
	Reach   sample.Reach // what batches can hold
	Sampler *sample.Sampler
	// Topology is by relation, nil for relations that no batch draws from.
	Topology []*topology.Tier
	// Stacks are the tables that batches read: tables of nodes in the order of their types, then
	// tables of edges. Types are their numbers among a batch's inputs.
	Stacks []*cachetier.Stack
	Types  []int
	// Learnt are the stacks whose rows steps change.
	Learnt []Learnt
	// Region is the device region. It holds rows of Stacks, and Measure.Slots slots.
	Region  *device.Buffer
	Planner *plan.Planner
	Pipe    *pipeline.Pipeline
	// MostSteps bounds the steps that are drawn together; 0: memory alone does. It is set before
	// Open.
	MostSteps int
	// EpochSteps is the number of steps of an epoch. A spill is planned for them; 0: no spill. It
	// is set before Open.
	EpochSteps int
	// SpillFaults is spill.Options.Faults, for tests. It is set before Spill. A rate of the disk
	// replaces it.
	SpillFaults func(write bool, at int64, size int) error

	data     *data.Data
	draws    sample.Config
	learning Learning
	place    mutable.Place // of Learnt, all together
	be       kernels.Backend
	staging  *kernels.Staging    // of WriteBack
	total    int64               // bytes for all
	lists    []int64             // bytes of Topology
	caches   []cachetier.Options // of Stacks
	join     joining
	rate     *disk.Rate  // nil where nothing is held back
	demanded plan.Demand // of Open
	without  plan.Budget // of Open, without a join
	inputs   []int       // rows that a batch reads of each stack, by the first batch
	heap     HeapLimit
	spare    int64 // kernels.LimitSpare before OpenRows; 0: as it was

	anyDevice bool // Cache.DeviceBytes is for Open to choose
}

// New opens the neighbour lists, so that batches can be drawn. It keeps their offsets in memory,
// and the lists as well where they are small. Tests pass faults.
func New(
	ctx context.Context, d *data.Data, draws sample.Config, l Learning, be kernels.Backend, o Options, faults disk.Faults,
) (_ *Tiers, err error) {
	if o, err = o.Part(); err != nil {
		return nil, err
	}
	schema := d.Schema()
	t := &Tiers{
		Options: o, Reach: draws.Reach(schema, d.SeedTypes()...), data: d, draws: draws, learning: l, be: be,
		staging: kernels.NewStaging(be),
	}
	t.anyDevice, t.Cache.DeviceBytes = o.Cache.DeviceBytes == 0, max(0, o.Cache.DeviceBytes)
	if t.total, err = Memory(o.MemoryBytes); err != nil {
		return nil, err
	}
	if o.DiskRate != "" {
		if t.rate, err = disk.ParseRate(o.DiskRate); err != nil {
			return nil, err
		}
		faults = t.rate.Faults(faults)
	}
	for i, read := range t.Reach.Types[0] {
		if n := &d.Types[i]; read && n.HasRows() && (n.Features != nil || n.Nodes > 0) {
			t.Types = append(t.Types, i)
		}
	}
	for k, read := range d.DrawnTables(t.Reach.Drawn()) {
		if read && d.EdgeTables[k].Nodes > 0 {
			t.Types = append(t.Types, len(d.Types)+k)
		}
	}
	t.TakeParts(t.Parts)
	var rows, least, all int64
	for _, i := range t.Types {
		rows += d.Input(i).Rows() * int64(t.RowBytes(i))
	}
	var opened []int // relations
	for i, drawn := range t.drawn() {
		if drawn {
			opened = append(opened, i)
			least += topology.LeastBytes(d.Relations[i].Graph)
			all += topology.ListBytes(d.Relations[i].Graph, d.Relations[i].Weights, d.Relations[i].Brought()...)
		}
	}
	if o.TopologyBytes != Auto && o.TopologyBytes < least {
		of, n := "", o.hosted()
		if n > 1 {
			of = fmt.Sprintf(" for %d workers", n)
		}
		return nil, fmt.Errorf("{topology_bytes} %s%s: the offsets of all relations that are drawn from take %d bytes, the least that works",
			kernels.FormatBytes(n*o.TopologyBytes), of, n*least)
	}
	// The largest first, since it is by that one that the device is measured.
	slices.SortStableFunc(opened, func(a, b int) int { return cmp.Compare(d.Relations[b].Edges(), d.Relations[a].Edges()) })
	t.Disk = disk.Options{Kind: o.Cache.Engine, Depth: ReadersWithin(o.Cache.Readers, t.total), Costs: o.Cache.Costs, Faults: faults}
	if rows+all > t.total/2 {
		t.Disk.Direct, t.Disk.Probe = true, true
	}
	defer func() {
		if err != nil {
			t.Close()
		}
	}()
	t.Topology, t.lists = make([]*topology.Tier, len(d.Relations)), make([]int64, len(d.Relations))
	for _, i := range opened {
		r := d.Relations[i]
		// All lists where they are a small part: then they need not be read again for the measure.
		// Else the offsets.
		bytes := topology.LeastBytes(r.Graph)
		switch lists := topology.ListBytes(r.Graph, r.Weights, r.Brought()...); {
		case o.TopologyBytes != Auto && len(opened) == 1:
			bytes = o.TopologyBytes
		case o.TopologyBytes != Auto:
		case least+all <= t.total/8:
			bytes += lists
		}
		t.lists[i] = bytes
		t.Topology[i], err = topology.Open(ctx, r.Graph, topology.Options{
			Bytes: bytes, Weights: r.Weights, Values: r.Inputs, Rows: r.RowIDs, Node: d.Own(r.Dst).Node, Options: t.Disk,
		})
		if err != nil {
			return nil, err
		}
		kind, why := t.Topology[i].Engine()
		if t.Disk.Direct {
			t.Disk.Kind = kind
		}
		if t.Engine == "" {
			t.Engine = fmt.Sprintf("%s (%s)", kind, why)
		}
		t.Disk.Costs = t.Topology[i].Costs() // one measurement, for all lists and rows
	}
	if t.Disk.Costs == (disk.Costs{}) { // no relation is drawn from
		t.Disk.Costs = disk.Assumed
	}
	t.newSampler()
	return t, nil
}

// TakeParts sets Parts, before Open; nil: this worker reads for itself.
func (t *Tiers) TakeParts(p *Parts) {
	if t.Parts = p; p == nil {
		return
	}
	p.Reads = make([]bool, len(t.data.Types)+len(t.data.EdgeTables))
	for _, i := range t.Types {
		p.Reads[i] = true
	}
}

// drawn marks the relations that batches draw from. A run's only relation is always marked: its
// lists are opened, and the device is measured on them.
func (t *Tiers) drawn() []bool {
	drawn := t.Reach.Drawn()
	if len(drawn) == 1 {
		drawn[0] = true
	}
	return drawn
}

// newSampler makes the sampler anew, since a sampler asks only once how many lists are resident.
func (t *Tiers) newSampler() {
	lists, values := make([]sample.Topology, len(t.Topology)), make([]sample.Values, len(t.Topology))
	for i, tier := range t.Topology {
		r := t.data.Relations[i]
		switch {
		case tier == nil: // nobody asks it
			lists[i] = r.AtHand(t.draws.Weighted)
		case t.draws.Weighted && r.Weights == nil:
			lists[i] = sample.Unweighted(t.listsOf(i))
		default:
			lists[i] = t.listsOf(i)
		}
		if tier != nil && tier.Columns() > 0 {
			values[i] = t.listsOf(i)
		}
	}
	t.Sampler = sample.NewTyped(t.data.Schema(), lists, t.draws, t.Workers)
	t.Sampler.Bring(values)
	t.data.BringRows(t.Sampler, func(r int) sample.Rows {
		if t.Topology[r] != nil {
			return t.listsOf(r)
		}
		return t.data.Relations[r].Rows()
	})
}

// listsOf returns the lists of relation i, under the numbers of nodes in the whole dataset.
func (t *Tiers) listsOf(i int) lists {
	if dst := t.data.Relations[i].Dst; t.data.OwnPart() != nil {
		return ownLists{t.Topology[i], t.data.Own(dst), t.data.Types[dst].Nodes}
	}
	return t.Topology[i]
}

// lists are a topology.Tier, or one of ownLists.
type lists interface {
	sample.WeightedTopology
	sample.Values
	sample.Rows
}

// Memory returns the bytes that a run may take: given, or if that is 0 half of the system's memory,
// at most what the address space allows.
func Memory(given int64) (int64, error) {
	if given > 0 {
		return given, nil
	}
	system, err := kernels.SystemMemory()
	if err != nil {
		return 0, fmt.Errorf("how much memory there is, is not known (%w); say how much to take with {memory_bytes}", err)
	}
	return kernels.Addressable(system / 2), nil
}

// First draws the batch that Open measures, without some edges. If the dataset is a part, or
// workers draw together, all workers call it at the same time.
func (t *Tiers) First(
	ctx context.Context, batchSeed sample.BatchSeed, seeds [][]uint32, without []sample.Without,
) (*sample.Batch, error) {
	b := &sample.Batch{Without: without}
	err := store.Guard(func() error {
		batches, batchSeeds := []*sample.Batch{b}, []sample.BatchSeed{batchSeed}
		if t.Cooperative() {
			err := t.Sampler.SampleCooperative(ctx, &t.Parts.Parts, nil, batches, batchSeeds, [][][]uint32{seeds})
			return t.data.Place(err)
		}
		if t.data.OwnPart() != nil { // other workers have the other lists
			err := t.Sampler.SampleParts(ctx, &t.Parts.Parts, nil, batches, batchSeeds, [][][]uint32{seeds})
			return t.data.Place(err)
		}
		return t.data.Place(t.Sampler.SampleOne(ctx, b, batchSeed, seeds...))
	})
	return b, err
}

// Cooperative reports whether workers draw and compute each step's batch together.
func (t *Tiers) Cooperative() bool { return t.Parts != nil && t.Parts.Cooperative }

// Open splits the memory by the sizes of a batch, and opens the remaining parts. If the total is
// not enough, the error is a *plan.NotEnough, and Open may be called again when Beside is smaller.
func (t *Tiers) Open(ctx context.Context, m Measure) error {
	if err := t.fitDevice(m); err != nil {
		return err
	}
	d, relations := t.demand(m)
	lists, _ := t.Sampler.Scratch(m.Batch)
	budget, err := d.Split(t.total, plan.Budget{
		Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes,
	})
	if short := (*plan.NotEnough)(nil); errors.As(err, &short) {
		short.Workers = t.hosted()
	}
	RaiseLeast(err, t.total, func(total int64) int64 {
		return readerBytes(d, ReadersWithin(t.Cache.Readers, total)) + m.Beside(total)
	})
	if limit, _, limited := kernels.AddressSpace(); err != nil && limited && t.MemoryBytes == 0 {
		err = fmt.Errorf("%w; ulimit -v allows %s of address space, raise it", err, kernels.FormatBytes(limit))
	}
	if err != nil {
		return t.data.Set.About(err)
	}
	budget = t.takeJoin(&d, budget)
	t.Budget = budget
	parts := d.Divide(budget)
	for i, r := range relations {
		if parts.Topology[i] != t.lists[r] {
			if err := t.Topology[r].Resize(ctx, parts.Topology[i]); err != nil {
				return err
			}
			t.lists[r] = parts.Topology[i]
		}
	}
	t.newSampler()
	t.Sampler.Bytes = min(t.Sampler.Bytes, lists*int64(budget.Group))
	if d.Join > 0 { // while one horizon is drawn, the windows of another have the rest
		t.Sampler.Bytes = max(t.Sampler.Bytes, budget.Batches/plan.InFlight)
	}
	rows := int64(0) // of the region, in bytes
	apart := device.Apart(t.be)
	for i, bytes := range parts.Device {
		if !apart || !d.Rows[i].Rewritten { // what steps rewrite stays on the host
			rows += device.Size(bytes)
		}
	}
	shared := -1 // the table whose rows lie where slots will
	for i := range parts.Device {
		if apart && parts.Device[i] > 0 && !d.Rows[i].Rewritten {
			shared = i
		}
	}
	if t.Region, err = device.New(t.be, m.Slots, rows); err != nil {
		return err
	}
	var tables []pipeline.Table
	largest := int64(0) // of the tables: what reads it stands for all
	for i, n := range t.Types {
		cache, table := t.Cache, t.data.Input(n)
		cache.DeviceBytes, cache.HostBytes, cache.Lookahead, cache.Region = parts.Device[i], parts.Host[i], t.Lookahead, t.Region
		cache.Engine, cache.Readers, cache.Direct, cache.Costs, cache.Faults = t.Disk.Kind, t.Disk.Depth, t.Disk.Direct, t.Disk.Costs, t.Disk.Faults
		if cache.SharedBytes = 0; i == shared {
			cache.SharedBytes = m.Slots
		}
		if t.Cache.DynamicBytes > 0 { // of all tables
			share := float64(t.Cache.DynamicBytes) / float64(max(t.Cache.DeviceBytes, 1))
			cache.DynamicBytes = int64(share * float64(parts.Device[i]))
		}
		of, s := pipeline.Table{Type: table.DType(), Cols: t.recordCols(n)}, (*cachetier.Stack)(nil)
		if table.Features != nil {
			s, err = cachetier.Open(ctx, table.Features, cache)
		} else {
			of.Lag = learntLag
			if t.Parts != nil {
				of.SentCols = table.Dim()
			}
			s, err = t.openLearnt(ctx, n, d.Rows[i].Inputs, cache)
		}
		if err != nil {
			return err
		}
		t.Stacks, t.inputs, t.caches = append(t.Stacks, s), append(t.inputs, d.Rows[i].Inputs), append(t.caches, cache)
		tables = append(tables, of)
		if bytes := d.Rows[i].Count * d.Rows[i].Bytes; !t.Disk.Direct && bytes >= largest {
			kind, why := s.Engine()
			t.Engine, largest = fmt.Sprintf("%s (%s)", kind, why), bytes
		}
	}
	t.heap.Budget = (t.total - t.sumBytes()) * t.hosted() // the heap is the process's
	alone := checked{t.Sampler, t.data}
	plans := plan.Config{
		Sampler: plan.Graph{GraphSampler: alone}, Parallel: t.Workers, Tables: t.Stacks, Types: t.Types, Bytes: budget.Batches,
		Group: t.Window, Ahead: t.Lookahead, BatchBytes: d.Batches.Bytes, BatchRows: t.inputs,
	}
	stages := pipeline.Config{Tables: tables, Backend: t.be, Buffers: t.buffers()}
	if p := t.Parts; p != nil {
		plans.Sampler, plans.Agree = plan.Graph{GraphSampler: partsSampler{alone, p}}, p.Agree
		stages.Deal, stages.Left = p.deal, p.Left
	}
	t.Planner = plan.NewPlanner(plans)
	stages.Planner = t.Planner
	t.Pipe = pipeline.New(stages)
	return nil
}

// buffers returns the number of steps that have their rows on the backend: one in use, one being
// gathered, and, if the backend computes behind its calls, the one before them.
func (t *Tiers) buffers() int {
	if t.be.Behind() {
		return 3
	}
	return 2
}

// Rest returns the bytes that no part of the memory uses. It returns 0 if rows are read from disk:
// caches then use all.
func (t *Tiers) Rest(m Measure) int64 {
	d, _ := t.demand(m)
	b, err := d.Split(t.total, plan.Budget{
		Topology: t.TopologyBytes, Device: t.Cache.DeviceBytes, Host: t.Cache.HostBytes, Batches: t.BatchBytes,
	})
	if err != nil {
		return 0
	}
	return max(0, t.total-b.Fixed-b.Step-b.DeviceInTotal()-b.Topology-b.Batches-b.Host)
}

// checked names the place of what its sampler finds damaged.
type checked struct {
	*sample.Sampler
	data *data.Data
}

func (s checked) SampleThrough(
	ctx context.Context, e sample.Expander, batches []*sample.Batch, batchSeeds []sample.BatchSeed, seeds [][][]uint32,
) error {
	return s.data.Place(s.Sampler.SampleThrough(ctx, e, batches, batchSeeds, seeds))
}

func (s checked) SampleFar(
	ctx context.Context, room sample.Room, n int, from func(i int) (sample.BatchSeed, [][]uint32, []sample.Without), done func(i int, b *sample.Batch) error,
) error {
	return s.data.Place(s.Sampler.SampleFar(ctx, room, n, from, done))
}

// Tables returns the stacks by type of nodes, and then by table of edges; nil where no batch reads
// rows.
func (t *Tiers) Tables() []*cachetier.Stack {
	all := make([]*cachetier.Stack, len(t.data.Types)+len(t.data.EdgeTables))
	for i, n := range t.Types {
		all[n] = t.Stacks[i]
	}
	return all
}

// ListsRead returns the account of reading neighbour lists, since they were opened.
func (t *Tiers) ListsRead() (sum disk.Account) {
	for _, tier := range t.Topology {
		if tier != nil {
			sum = sum.Add(tier.Stats().Cold)
		}
	}
	return sum
}

// TypeNames returns the names of all node types, by number, and then the names of the tables of
// edges.
func (t *Tiers) TypeNames() (names []string) {
	for _, n := range append(t.data.Types[:len(t.data.Types):len(t.data.Types)], t.data.EdgeTables...) {
		names = append(names, n.Name)
	}
	return names
}

// OfEdges reports whether stack number i holds rows of edges.
func (t *Tiers) OfEdges(i int) bool { return t.Types[i] >= len(t.data.Types) }

// sumBytes returns the bytes that page checksums take.
func (t *Tiers) sumBytes() int64 { return t.data.SumBytes(t.drawn(), t.Reach.Types[0]) }

// FollowHeap keeps the Go heap within what the budget leaves beside memory outside it. It is called
// now and then; Close takes the limit back.
func (t *Tiers) FollowHeap() { t.heap.Follow() }

// Stats returns the counters of each stack.
func (t *Tiers) Stats() (all []cachetier.Stats) {
	for _, s := range t.Stacks {
		all = append(all, s.Stats())
	}
	return all
}

// windowRows returns the number of rows that all caches hold, and the number of rows that the first
// batch reads from the tables with a cache.
func (t *Tiers) windowRows() (rows, wanted int64) {
	for i, s := range t.Stacks {
		if n := s.WindowRows(); n > 0 {
			rows, wanted = rows+int64(n), wanted+int64(t.inputs[i])
		}
	}
	return rows, wanted
}

// Lasting reports whether rows in the host cache are of use to later windows. A window that takes
// more than half of the cache brings most of its rows by a scan of the file. It leaves little room
// for rows of other windows.
func (t *Tiers) Lasting() bool {
	rows, wanted := t.windowRows()
	return rows > 0 && t.Cache.Policy != cachetier.None && rows >= 2*int64(t.Budget.Group)*wanted
}

// Prewarm fills the host cache with the hottest rows, if the steps to come read more rows than
// that.
func (t *Tiers) Prewarm(ctx context.Context, steps int) error {
	if rows, wanted := t.windowRows(); int64(steps)*wanted < rows {
		return nil
	}
	if t.Parts != nil && t.Disk.Direct && t.data.OwnPart() == nil {
		return nil // the hottest rows are rows of other owners, too
	}
	for i, s := range t.Stacks {
		if t.data.Input(t.Types[i]).Features == nil {
			continue // a new run has no rows on disk, and others have restored theirs
		}
		if err := s.Prewarm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Close gives up the memory and the files of all parts that are open. Slots in the Region must be
// closed before.
func (t *Tiers) Close() {
	t.heap.Close()
	if t.spare > 0 {
		kernels.LimitSpare(t.spare)
	}
	if t.Pipe != nil {
		t.Pipe.Close()
	}
	for _, s := range t.Stacks {
		s.Close()
	}
	t.join.close()
	for _, l := range t.Learnt {
		l.Close()
	}
	t.Region.Close()
	t.staging.Close()
	for _, tier := range t.Topology {
		if tier != nil {
			tier.Close()
		}
	}
}
