package build

import (
	"context"
	"math"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest"
)

// Plan predicts the work of a [Build]. Its JSON keys are stable.
type Plan struct {
	Name        string     `json:"name"`
	Passes      []PassPlan `json:"passes"`
	Bytes       int64      `json:"bytes"`        // of the dataset
	SpillBytes  int64      `json:"spill_bytes"`  // beside it, at most
	DiskBytes   int64      `json:"disk_bytes"`   // both together, at most at one time
	Files       int64      `json:"files"`        // at most at one time
	Memory      int64      `json:"memory_bytes"` // allowed
	LeastMemory int64      `json:"least_memory_bytes"`
	Seconds     float64    `json:"seconds"`
	// Unknown lists, a sentence each, the numbers that the source does not declare, and what the
	// plan assumes for them.
	Unknown []string `json:"unknown"`
	Notes   []string `json:"notes"`

	left growth
}

// growth is the most bytes that will be added at one time: to the disk in all, to the spill, and to
// the dataset.
type growth struct{ disk, spill, written int64 }

// PassPlan is one pass over the data.
type PassPlan struct {
	Name         string  `json:"name"` // as in PassReport
	Items        int64   `json:"items"`
	Unit         string  `json:"unit"`
	Seconds      float64 `json:"seconds"`
	SpillWritten int64   `json:"spill_written_bytes"`
	SpillRead    int64   `json:"spill_read_bytes"`
	Written      int64   `json:"written_bytes"` // to the dataset
	// DatasetRead counts bytes read back from the dataset: the rows that means are taken of.
	DatasetRead int64 `json:"dataset_read_bytes,omitempty"`
}

// What the estimate of time goes by: items a second and worker, and bytes a second of the disk.
// They were measured on two cores of an Intel Xeon at 2.6 GHz with a virtual disk, and every Build
// reports what it took beside them.
const (
	rateRead     = 12e6  // edges from a source in all: the fastest sources give three times as many, text a third
	rateMerge    = 14e6  // edges
	rateCompare  = 40e6  // edges
	rateReverse  = 25e6  // edges
	rateRenumber = 24e6  // edges
	rateWrite    = 24e6  // edges
	rateJoin     = 5e6   // ends of edges
	rateNodes    = 40e6  // nodes
	rateIDs      = 1.2e6 // ids that are sorted, in all
	rateValues   = 250e6 // feature values from a source in all
	rateEvents   = 5e6   // events that are merged and parted, in all
	// rateNegatives is nodes of negatives from a source in all.
	rateNegatives = 30e6
	// rateEmbed is sums of fastRP: ogbn-arxiv, undirected, at 128 columns takes 5.1 G of them, and
	// 14 s of processor time.
	rateEmbed = 360e6
	ratePart  = 50e6  // edges that are parted for means, in all
	rateMean  = 300e6 // values added to means
	rateDisk  = 1.4e9 // bytes a second, read or written
)

// PlanBuild predicts what Build would do with the same arguments, from what the source declares. It
// reads little and writes nothing. It returns any error that Build would end with, too little room
// among them, as far as it can be known.
func PlanBuild(ctx context.Context, src ingest.Source, out string, o Options) (*Plan, error) {
	p, err := o.effective()
	if err != nil {
		return nil, err
	}
	b := &builder{plan: *p, src: src, out: filepath.Clean(out)}
	b.begin()
	if err := b.readSchema(ctx); err != nil {
		return nil, err
	}
	plan := b.forecast()
	plan.Notes = append(plan.Notes, append(b.report.Dropped, b.report.Notes...)...)
	if plan.LeastMemory > b.Memory {
		return plan, b.tooLittle(plan.LeastMemory)
	}
	return plan, b.checkFree(plan)
}

// sizes are the numbers that passes go by: in a plan those declared or expected, in a Build those
// counted so far.
type sizes struct {
	nodes   []int64 // by type
	edges   []int64 // by relation, as read
	stored  []int64 // by relation, in the dataset
	counted bool
	room    func() int64 // memory of a pass over means
}

func (s *sizes) allNodes() int64 {
	sum := int64(0)
	for _, n := range s.nodes {
		sum += n
	}
	return sum
}

// rows is the number of rows of one of the source's tables.
func (s *sizes) rows(b *builder, t ingest.Table) int64 {
	if i := b.schema.Relation(t.Relation); i >= 0 {
		return s.edges[i]
	}
	return s.nodes[b.schema.NodeType(t.NodeType)]
}

// counted returns the sizes that a Build has counted.
func (b *builder) counted() *sizes {
	s := &sizes{counted: true, room: b.room}
	for _, n := range b.nodes {
		s.nodes = append(s.nodes, int64(n.count))
	}
	for _, r := range b.state.Relations {
		s.edges, s.stored = append(s.edges, r.Report.EdgesRead), append(s.stored, r.Report.Edges)
	}
	return s
}

// expected returns sizes by what is known now, and lists in the plan what is unknown.
func (b *builder) expected(plan *Plan) *sizes {
	n := len(b.schema.Relations)
	s := &sizes{nodes: b.declaredNodes(plan), edges: make([]int64, n), stored: make([]int64, n)}
	for i, r := range b.read() {
		s.edges[i] = max(r.Edges, b.state.Relations[i].Report.EdgesRead)
		if r.Edges < 0 && !b.state.Relations[i].Read && b.state.Relations[i].Keyed == nil {
			if r.Stream != nil && r.Stream.About.Events > 0 {
				s.edges[i] = r.Stream.About.Events
				plan.Unknown = append(plan.Unknown, "stream "+r.Name+": the number of events; as if there were one for each row of features beside them")
			} else {
				plan.Unknown = append(plan.Unknown, "relation "+r.Key()+": the number of edges; as if there were none")
			}
		}
		if s.stored[i] = s.edges[i]; b.form(i).reverse {
			s.stored[i] *= 2
		}
	}
	for j, i := range b.mirrored {
		if j += b.given; !b.state.Relations[j].Absent {
			s.stored[j] = s.stored[i]
		}
	}
	s.room = func() int64 {
		room := b.Memory - baseBytes
		if b.Order != OrderOriginal {
			room -= 4 * s.allNodes() // stored ids
		}
		return max(room, workBytes)
	}
	return s
}

// workerSeconds is the time that all workers take for n items, each so many a second.
func workerSeconds(n int64, rate float64) float64 { return float64(n) / rate / float64(workers()) }

// idBytes is the bytes of the text of an id, with its hash or row.
const idBytes = 24

// forecaster adds up passes.
type forecaster struct {
	b       *builder
	plan    *Plan
	spilled int64
	written int64
	// The same two, as of the last pass that is already done.
	spilledNow, writtenNow int64
}

// add adds a pass.
func (f *forecaster) add(p pass) {
	c, plan := p.cost, f.plan
	plan.Unknown, plan.Notes = append(plan.Unknown, c.unknown...), append(plan.Notes, c.notes...)
	moved := c.spillRead + c.spillWritten
	if !c.leaves {
		moved += c.written
	}
	seconds := math.Max(c.seconds, float64(moved)/rateDisk)
	plan.Passes = append(plan.Passes, PassPlan{
		Name: p.name, Items: c.items, Unit: p.unit, Seconds: seconds,
		SpillWritten: c.spillWritten, SpillRead: c.spillRead, Written: c.written, DatasetRead: c.datasetRead,
	})
	plan.Seconds += seconds
	f.spilled += c.spillWritten
	f.written += c.written + c.padding
	plan.SpillBytes = max(plan.SpillBytes, f.spilled)
	plan.DiskBytes = max(plan.DiskBytes, f.spilled+f.written)
	left := &plan.left
	left.spill = max(left.spill, f.spilled-f.spilledNow)
	left.disk = max(left.disk, f.spilled+f.written-f.spilledNow-f.writtenNow)
	left.written = f.written - f.writtenNow
	if !c.leaves {
		f.spilled -= c.spillRead
	}
	if f.b.did(p.name) {
		f.spilledNow, f.writtenNow, *left = f.spilled, f.written, growth{}
	}
}

// forecast goes through the phases of Build, by what is known now.
func (b *builder) forecast() *Plan {
	plan := &Plan{Name: b.report.Name, Memory: b.Memory, Unknown: []string{}, Notes: []string{}, Passes: []PassPlan{}}
	f, s := &forecaster{b: b, plan: plan}, b.expected(plan)
	for _, p := range b.phases() {
		if p.passes != nil {
			p.passes(s, f.add)
		}
	}
	plan.Bytes = f.written + manifestBytes
	plan.DiskBytes = max(plan.DiskBytes, plan.Bytes)
	plan.left.written += manifestBytes
	plan.left.disk = max(plan.left.disk, f.spilled+plan.Bytes-f.spilledNow-f.writtenNow)
	plan.Files = 2*maxBuckets + int64(len(plan.Passes))*4
	plan.LeastMemory = LeastMemory + b.nodeBytes(s.nodes)
	return plan
}

// declaredNodes are the numbers of nodes as far as they are known.
func (b *builder) declaredNodes(plan *Plan) []int64 {
	var nodes []int64
	for i, t := range b.schema.NodeTypes {
		n := max(t.Count, b.state.Counts[i])
		if n <= 0 && t.IDs != ingest.RowIDs {
			plan.Unknown = append(plan.Unknown, "node type "+t.Name+": the number of nodes; as if there were none")
		}
		nodes = append(nodes, max(n, 0))
	}
	return nodes
}

// nodeBytes is the most that arrays of the nodes take at one time, as hold counts them.
func (b *builder) nodeBytes(nodes []int64) int64 {
	const each = 4 // of one array, a node
	size := func(i int) int64 { return max(nodes[i], 1) }
	var all, counted, degrees, outs, made, splits, draws, largest int64
	from, to := map[string]bool{}, map[string]bool{} // types that relations are from and to
	for _, r := range b.schema.Relations {
		from[r.Src], to[r.Dst] = true, true
		if r.Stream != nil { // events count at both ends
			from[r.Dst] = true
		}
	}
	for i, t := range b.schema.NodeTypes {
		all += each * size(i)
		largest = max(largest, size(i))
		byDegree := b.makes[t.Name] && b.features.kind == "degree"
		if from[t.Name] && (b.Order == OrderDegree || byDegree) {
			counted += each * size(i)
		}
		if to[t.Name] && (b.Order == OrderAccess || byDegree) {
			counted += each * size(i)
		}
		if byDegree {
			outs += each * size(i)
			degrees += each * size(i)
		}
		if b.makes[t.Name] && b.features.kind != "mean" {
			made = max(made, each*size(i))
		}
	}
	if b.extras.RowsAt != nil {
		made = each * largest
	}
	for _, i := range b.splitTypes() {
		splits += size(i)
		switch b.split.kind {
		case "per-class":
			draws = max(draws, splits+2*each*size(i))
		case "random":
			draws = max(draws, splits+each*size(i))
		}
	}
	times := int64(0)
	for i, r := range b.read() {
		if split := b.edgeSplits[i]; split != nil && split.ofSource() != "" {
			times += each * size(b.schema.NodeType(r.Src))
		}
	}
	most := max(counted+draws, counted+splits, counted+times)
	switch b.Order {
	case OrderOriginal:
		return max(most, degrees+outs+splits)
	case OrderAccess: // degrees, visits in all, visits of this layer and of the next
		most = max(most, 4*all+outs+splits)
	default:
		most = max(most, all+degrees+outs+splits)
	}
	return max(most, all+degrees+outs+splits+made, all+degrees+outs+splits+largest)
}
