package build

import (
	"context"
	"fmt"
	"math"
	"path/filepath"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
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

// forecaster adds up passes.
type forecaster struct {
	b       *builder
	plan    *Plan
	spilled int64
	written int64
	// What there is when the passes that are done are done.
	spilledNow, writtenNow int64
}

// pass adds a pass whose work takes seconds of all workers, and which removes what it read when it
// is done.
func (f *forecaster) pass(name string, items int64, unit string, seconds float64, spillRead, spillWritten, written int64) {
	p := &f.plan.Passes
	disk := float64(spillRead+spillWritten+written) / rateDisk
	*p = append(*p, PassPlan{name, items, unit, math.Max(seconds, disk), spillWritten, spillRead, written, 0})
	f.plan.Seconds += math.Max(seconds, disk)
	f.plan.SpillBytes = max(f.plan.SpillBytes, f.spilled+spillWritten)
	f.plan.DiskBytes = max(f.plan.DiskBytes, f.spilled+spillWritten+f.written+written)
	left := &f.plan.left
	left.spill = max(left.spill, f.spilled+spillWritten-f.spilledNow)
	left.disk = max(left.disk, f.spilled+spillWritten+f.written+written-f.spilledNow-f.writtenNow)
	f.spilled += spillWritten - spillRead
	f.written += written
	left.written = f.written - f.writtenNow
	if f.b.did(name) {
		f.spilledNow, f.writtenNow, *left = f.spilled, f.written, growth{}
	}
}

// forecast goes through the phases of Build, by what is known now.
func (b *builder) forecast() *Plan {
	plan := &Plan{Name: b.report.Name, Memory: b.Memory, Unknown: []string{}, Notes: []string{}, Passes: []PassPlan{}}
	f := &forecaster{b: b, plan: plan}
	each := float64(workers())
	nodes, total := b.declaredNodes(plan), int64(0)
	for _, n := range nodes {
		total += n
	}
	edges := make([]int64, len(b.schema.Relations))
	for i, r := range b.read() {
		if edges[i] = max(r.Edges, b.state.Relations[i].Report.EdgesRead); r.Edges >= 0 || b.state.Relations[i].Read || b.state.Relations[i].Keyed != nil {
			continue
		}
		if r.Stream != nil && r.Stream.About.Events > 0 {
			edges[i] = r.Stream.About.Events
			plan.Unknown = append(plan.Unknown, "stream "+r.Name+": the number of events; as if there were one for each row of features beside them")
			continue
		}
		plan.Unknown = append(plan.Unknown, "relation "+r.Key()+": the number of edges; as if there were none")
	}
	const idBytes = 24                     // of a text, with its hash or row
	for i, t := range b.schema.NodeTypes { // as readNodes, readEdges and joinEdges do it
		if t.IDs != ingest.RowIDs && !t.Gathered {
			f.pass("read ids of "+t.Name, nodes[i], "nodes", float64(nodes[i])/rateIDs, 0, nodes[i]*2*idBytes, 0)
		}
	}
	log := func(i int) int64 { // of edges as they are read
		form := b.form(i)
		if form.reverse {
			return 2 * edges[i] * int64(form.width)
		}
		return edges[i] * int64(form.width)
	}
	for i, r := range b.read() {
		if split := b.edgeSplits[i]; split != nil && split.kind == "time" {
			f.pass(timesPass(r), edges[i], "edges", float64(edges[i])/rateRead, 8*edges[i], 8*edges[i], 0)
		}
	}
	for i, r := range b.read() {
		if form := b.form(i); !form.own() {
			f.pass("read "+r.Key(), edges[i], "edges", float64(edges[i])/rateRead, 0, log(i), 0)
		}
	}
	gathered := make([]int64, len(nodes)) // ids that edges name
	for i, r := range b.read() {
		form := b.form(i)
		if !form.own() {
			continue
		}
		written := edges[i] * int64(keyBytes(form.src)+keyBytes(form.dst)+form.width-8)
		for e := source; e <= target; e++ {
			if n := form.end(e); n.gathered {
				gathered[b.typeIndex(n.name)] += edges[i]
				written += edges[i] * idBytes
			}
		}
		f.pass("read "+r.Key(), edges[i], "edges", float64(edges[i])/rateRead*2, 0, written, 0)
	}
	for i, t := range b.schema.NodeTypes {
		if t.Gathered {
			f.pass("gather ids of "+t.Name, nodes[i], "nodes", float64(gathered[i])/rateIDs, gathered[i]*idBytes, nodes[i]*2*idBytes, 0)
		}
	}
	for i, r := range b.read() {
		form := b.form(i)
		read, seconds := edges[i]*int64(keyBytes(form.src)+keyBytes(form.dst)+form.width-8), float64(edges[i])/rateJoin/each
		if form.src.kind != ingest.RowIDs {
			written := log(i)
			if form.dst.kind != ingest.RowIDs {
				written = read - edges[i]*(hashBytes-rowBytes)
			}
			f.pass("resolve sources of "+r.Key(), edges[i], "edges", seconds, read, written, 0)
			read = written
		}
		if form.dst.kind != ingest.RowIDs {
			f.pass("resolve targets of "+r.Key(), edges[i], "edges", seconds, read, log(i), 0)
		}
	}
	stored := make([]int64, len(edges)) // edges
	for i, r := range b.read() {
		form := b.form(i)
		stored[i] = edges[i]
		log := edges[i] * int64(form.width)
		if form.reverse {
			log *= 2
			stored[i] *= 2
		}
		if form.merge && b.Order != OrderOriginal {
			f.pass("merge "+r.Key(), stored[i], "edges", float64(stored[i])/rateMerge/each, log, stored[i]*int64(form.width), 0)
		}
	}
	f.reverses(stored)
	if b.Order != OrderOriginal {
		f.pass("order nodes", total, "nodes", float64(total)/rateNodes, 0, 4*total, 0)
		for i, r := range b.relations() {
			log := stored[i] * int64(b.form(i).width)
			f.pass("renumber "+r.Key(), stored[i], "edges", float64(stored[i])/rateRenumber/each, log, log, 0)
		}
	}
	f.streams(nodes, edges, log)
	for i, r := range b.relations() {
		form := b.form(i)
		size := 4*stored[i] + 8*(nodes[b.typeIndex(r.Dst)]+1) + 2*sectionOverhead
		for _, c := range form.columns {
			size += stored[i]*int64(c.Elem.Size()) + sectionOverhead
		}
		f.pass("write "+r.Key(), stored[i], "edges", float64(stored[i])/rateWrite/each, stored[i]*int64(form.width), 0, size)
	}
	for i, r := range b.read() {
		if split := b.edgeSplits[i]; split != nil {
			form := b.form(i)
			held, bytes := int64(float64(edges[i])*(1-split.shares[0])), int64(8)
			for _, c := range form.columns {
				bytes += int64(c.Elem.Size())
			}
			f.look("write edge split "+r.Key(), held, float64(held)/rateWrite/each, 2*held*int64(form.width), held*int64(form.width))
			f.plan.Passes[len(f.plan.Passes)-1].Written = held * bytes
			f.written += held*bytes + 4*sectionOverhead
		}
	}
	f.tables(nodes, edges, stored)
	for _, l := range b.schema.Labels {
		rows, width := nodes[b.typeIndex(l.NodeType)], int64(4)
		if l.Multi {
			width = int64(l.Classes)
		}
		f.pass("write labels "+l.NodeType+"/"+l.Name, rows, "rows", float64(rows)/rateNodes, 0, 0, rows*width+sectionOverhead)
	}
	splits := int64(len(b.schema.Splits))
	if b.split.kind != "given" {
		splits = int64(len(b.schema.NodeTypes))
	}
	if !b.streams() {
		f.pass("write splits", total, "nodes", float64(splits*total)/rateNodes, 0, 0, 4*total+3*splits*sectionOverhead)
	}
	for i, t := range b.schema.NodeTypes {
		size := 12*nodes[i] + 2*sectionOverhead
		if t.IDs == ingest.TextIDs {
			size += 2 * idBytes * nodes[i]
		}
		f.pass("write ids of "+t.Name, nodes[i], "nodes", float64(nodes[i])/rateNodes, 0, 0, size)
	}
	plan.Bytes = f.written + manifestBytes
	plan.DiskBytes = max(plan.DiskBytes, plan.Bytes)
	plan.left.written += manifestBytes
	plan.left.disk = max(plan.left.disk, f.spilled+plan.Bytes-f.spilledNow-f.writtenNow)
	plan.Files = 2*maxBuckets + int64(len(plan.Passes))*4
	plan.LeastMemory = LeastMemory + b.nodeBytes(nodes)
	return plan
}

// streams adds the passes that sort and write streams; log is the bytes of a relation as read.
func (f *forecaster) streams(nodes, edges []int64, log func(i int) int64) {
	b, each := f.b, float64(workers())
	for i, r := range b.read() {
		if r.Stream == nil {
			continue
		}
		form, n := b.form(i), edges[i]
		if state := b.state.Relations[i].Stream; form.own() || b.state.Relations[i].Read && !state.Ordered {
			f.pass(sortEventsPass(r), n, "events", float64(n)/rateMerge/each, log(i), log(i), 0)
		}
		places := nodes[b.typeIndex(r.Src)]
		if r.Src != r.Dst {
			places += nodes[b.typeIndex(r.Dst)]
		}
		size := n*(4+4+8+2*16) + 8*(places+1) + 5*sectionOverhead
		if r.Stream.Label != "" {
			size += 4*n + sectionOverhead
		}
		beside, written, seconds := f.given(r.Stream, n)
		spilled := 2*halfBytes*n + beside
		f.pass(writeEventsPass(r), 3*n, "events and ends", float64(n)/rateEvents+2*float64(n)/rateMerge/each+seconds, log(i)+spilled, spilled, size+written)
	}
}

// given returns the bytes and seconds of what comes with n events of a stream: negatives and labels
// of nodes. streamWriter writes one after the other, so spilled is the larger of the two.
func (f *forecaster) given(s *ingest.Stream, n int64) (spilled, written int64, seconds float64) {
	a := s.About
	if s.Negatives {
		if a.Negatives == 0 {
			f.plan.Unknown = append(f.plan.Unknown, "the number of negatives; as if there were none")
		}
		ranked := a.Lists // events behind those to learn from
		if f.b.split.kind == "time" {
			ranked = int64(float64(n) * (1 - f.b.split.fractions[0]))
		}
		spilled = 2*keyedBytes*(ranked+a.Lists) + 4*a.Negatives + 2*ofEventBytes*ranked
		written += 8*(ranked+1) + 4*a.Negatives + 2*sectionOverhead
		seconds += float64(ranked+a.Lists)/rateMerge + float64(a.Negatives)/rateNegatives
	}
	if s.NodeLabels {
		if a.NodeLabels == 0 {
			f.plan.Unknown = append(f.plan.Unknown, "the number of labels of nodes; as if there were none")
		}
		spilled = max(spilled, 2*saidBytes*a.NodeLabels)
		written += 16*a.NodeLabels + 3*sectionOverhead
		seconds += float64(a.NodeLabels) / rateEvents
	}
	return spilled, written, seconds
}

// reverses adds the passes that make reverses, and sets their numbers of edges in stored.
func (f *forecaster) reverses(stored []int64) {
	b, each := f.b, float64(workers())
	bytes := func(i int) int64 { return stored[i] * int64(b.form(i).width) }
	edges, read := int64(0), int64(0)
	compared := b.compared()
	for _, i := range compared {
		edges, read = edges+stored[i], read+bytes(i)
	}
	if len(compared) > 0 {
		f.look(lookForReverses, edges, float64(edges)/rateCompare/each, read, 0)
	}
	for j, i := range b.mirrored {
		if j += b.given; b.state.Relations[j].Absent {
			continue
		}
		stored[j] = stored[i]
		f.look("reverse "+b.schema.Relations[i].Key(), stored[i], float64(stored[i])/rateReverse/each, bytes(i), bytes(j))
	}
}

// look adds a pass over edges that leaves what it reads.
func (f *forecaster) look(name string, edges int64, seconds float64, spillRead, spillWritten int64) {
	f.pass(name, edges, "edges", math.Max(seconds, float64(spillRead+spillWritten)/rateDisk), 0, spillWritten, 0)
	f.plan.Passes[len(f.plan.Passes)-1].SpillRead = spillRead
}

// embedding returns the seconds that fastRP takes: each step adds a row for every edge, in both
// directions, and goes through all nodes.
func (f *forecaster) embedding(nodes, stored []int64) float64 {
	rows := int64(0)
	for _, n := range nodes {
		rows += n
	}
	for i, n := range stored[:f.b.given] {
		if rows += n; !f.b.form(i).reverse {
			rows += n
		}
	}
	return float64(rows) * float64(f.b.features.dim) * fastRPLast / rateEmbed / float64(workers())
}

// tables adds the passes of feature tables.
func (f *forecaster) tables(nodes, edges, stored []int64) {
	b := f.b
	embed := 0.0 // in the first pass that wants it
	if b.features.kind == "fastrp" {
		embed = f.embedding(nodes, stored)
	}
	table := func(t ingest.Table, rows int64, made bool) {
		size := rows*b.rowBytes(t.Dim) + sectionOverhead
		seconds := float64(rows*int64(t.Dim)) / rateValues
		name := "features " + ownerOf(t) + "/" + t.Name
		width := int64(t.Dim*b.elem().Size()) + 4
		k := b.streamOf(t.Relation)
		sorted := k >= 0 && b.state.Relations[k].Read && !b.state.Relations[k].inOrder()
		placed := !sorted && (t.Relation != "" || b.Order == OrderOriginal || extsort.PlacerFits(rows, t.Dim*b.elem().Size(), b.room()/2) ||
			b.extras.RowsAt != nil && !made && b.extras.RowsAt(f.tableIndex(t), nil, nil))
		switch {
		case made:
			f.pass("make "+name, rows, "rows", seconds+embed, 0, 0, size)
			embed = 0
		case placed:
			f.pass("write "+name, rows, "rows", seconds, 0, 0, size)
		default:
			f.pass("sort "+name, rows, "rows", seconds, 0, rows*width, 0)
			f.pass("write "+name, rows, "rows", 0, rows*width, 0, size)
		}
	}
	for _, t := range b.schema.Tables {
		if b.replaced(t) {
			continue
		}
		if t.Relation == "" {
			table(t, nodes[b.typeIndex(t.NodeType)], false)
			continue
		}
		for i, r := range b.schema.Relations {
			if r.Key() == t.Relation {
				table(t, edges[i], false)
			}
		}
	}
	for i, r := range b.read() {
		if r.Stream != nil && b.eventDim > 0 {
			table(ingest.Table{Name: eventTable, Relation: r.Key(), Dim: b.eventDim}, edges[i], true)
		}
	}
	if b.features.kind == "mean" {
		f.means(nodes, stored)
		return
	}
	for i, t := range b.schema.NodeTypes {
		if b.makes[t.Name] {
			table(ingest.Table{Name: madeTable, NodeType: t.Name, Dim: b.features.dim}, nodes[i], true)
		}
	}
}

// means adds the passes that make mean features, as makeMeans does them.
func (f *forecaster) means(nodes, stored []int64) {
	b, each, total := f.b, float64(workers()), int64(0)
	for _, n := range nodes {
		total += n
	}
	room := b.Memory - baseBytes
	if b.Order != OrderOriginal {
		room -= 4 * total // stored ids
	}
	room = max(room, workBytes)
	for _, p := range b.means {
		name, rows := b.nodes[p.nodeType].name, nodes[p.nodeType]
		sources := b.meanSources(p)
		tables, edges, spilled := b.meanTables(sources), int64(0), int64(0)
		divided := divideMeans(or(b.test.means, room/4*3), rows, p.dim, tables)
		for _, s := range sources {
			n := stored[s.relation]
			if edges += n; n > 0 && b.meanBlocks(divided, s) > partedAbove {
				f.pass(b.partPass(s), n, "edges", float64(n)/ratePart, 0, 8*n, 0)
				spilled += 8 * n
			}
		}
		read := tables
		if !divided.held {
			read *= divided.parts
			f.plan.Notes = append(f.plan.Notes, fmt.Sprintf("features of node type %s are means: %d passes over %d MiB of rows; more memory makes it fewer", name, divided.parts, tables>>20))
		}
		seconds := float64(edges)*float64(p.dim)/rateMean/each + float64(rows)*float64(p.dim)/rateValues
		seconds = math.Max(seconds, float64(read)/rateDisk)
		f.pass("make features "+name+"/"+madeTable, edges, "edges", seconds, spilled, 0, rows*b.rowBytes(p.dim)+sectionOverhead)
		f.plan.Passes[len(f.plan.Passes)-1].DatasetRead = read
	}
}

func (f *forecaster) tableIndex(t ingest.Table) int {
	for i, s := range f.b.schema.Tables {
		if s == t {
			return i
		}
	}
	return -1
}

func (b *builder) typeIndex(name string) int {
	for i, n := range b.nodes {
		if n.name == name {
			return i
		}
	}
	panic("ingest: a node type that is none")
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
			times += each * size(b.typeIndex(r.Src))
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
