package infer

import (
	"fmt"
	"math"
	"time"

	"github.com/gnnstore/gnnstore/cachetier"
	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Hold chooses what a layer holds in memory while the rows below it are read.
type Hold string

const (
	HoldAuto Hold = ""     // the way that reads for less time
	HoldRows Hold = "rows" // the rows that a window of destinations reads
	HoldSums Hold = "sums" // the sums of a part of the destinations
)

// Holds are the ways that can be asked for.
var Holds = []string{"auto", string(HoldRows), string(HoldSums)}

// inMemory is the way of a layer that finds all rows below in memory.
const inMemory = "memory"

// Planned is the expected cost of computing a layer for nodes of a type. Its JSON keys are stable.
type Planned struct {
	Layer int    `json:"layer"` // the first is 1
	Type  string `json:"type"`
	Nodes int    `json:"nodes"`
	// Way is "rows" or "sums", after what is held, or "memory" where the rows below are in memory.
	Way   string `json:"way"`
	Parts int    `json:"parts"` // windows of rows, or parts of sums
	// BytesRead counts rows read from disk, BytesWritten the rows of the layer. Seconds is the time
	// of reading by the disk's costs.
	BytesRead    int64             `json:"bytes_read"`
	BytesWritten int64             `json:"bytes_written"`
	Seconds      float64           `json:"seconds"`
	Relations    []PlannedRelation `json:"relations,omitempty"`
}

// PlannedRelation is the part of the sources of one relation.
type PlannedRelation struct {
	Relation  string  `json:"relation"` // its key
	Edges     int64   `json:"edges"`
	BytesRead int64   `json:"bytes_read"`
	Seconds   float64 `json:"seconds"`
}

// Report is the measured cost of computing a layer for nodes of a type, beside the planned one. Its
// JSON keys are stable.
type Report struct {
	Layer        int     `json:"layer"`
	Type         string  `json:"type"`
	Nodes        int     `json:"nodes"`
	Way          string  `json:"way"`
	Parts        int     `json:"parts"`
	BytesRead    int64   `json:"bytes_read"`
	BytesWritten int64   `json:"bytes_written"`
	Seconds      float64 `json:"seconds"`
	ReadSeconds  float64 `json:"read_seconds"` // of these, with reads under way; computing goes on beside
	// ProcessorSeconds is the time that the process had meanwhile on all processors, 0 where the
	// system does not report it.
	ProcessorSeconds float64 `json:"processor_seconds"`

	PlannedParts       int     `json:"planned_parts"`
	PlannedBytesRead   int64   `json:"planned_bytes_read"`
	PlannedReadSeconds float64 `json:"planned_read_seconds"`
}

// clock is the time at which a layer began, by the wall and by the processors.
type clock struct {
	wall       time.Time
	processors float64
}

func startClock() clock { return clock{time.Now(), kernels.ProcessorSeconds()} }

// report reports the cost of computing a layer.
func (e *Evaluator) report(p Planned, parts int, read cachetier.Disk, began clock) {
	if e.Reported == nil {
		return
	}
	e.Reported(Report{
		Layer: p.Layer, Type: p.Type, Nodes: p.Nodes, Way: p.Way, Parts: parts, BytesRead: read.BytesRead, BytesWritten: p.BytesWritten,
		Seconds: time.Since(began.wall).Seconds(), ReadSeconds: read.Seconds, ProcessorSeconds: kernels.ProcessorSeconds() - began.processors,
		PlannedParts: p.Parts, PlannedBytesRead: p.BytesRead, PlannedReadSeconds: p.Seconds,
	})
}

// CheckHold refuses a way that the network does not have.
func (e *Evaluator) CheckHold() error {
	if e.Hold == HoldSums && !e.step.Model.Kind.Sums() {
		return fmt.Errorf("{way} sums: {model} %s weighs its neighbours by their rows, and has no sums to hold; take rows", e.step.Model.Kind)
	}
	return nil
}

// Plan returns how a pass would compute a layer, and all below it, for nodes of type t, and what it
// would read.
func (e *Evaluator) Plan(layer, t int, nodes []uint32) (plan []Planned, err error) {
	seeds := make([][]uint32, len(e.data.Types))
	seeds[t] = nodes
	err = store.Guard(func() error {
		need, err := e.plan(layer, seeds)
		if err != nil {
			return err
		}
		p := e.pass(need)
		for l := range need {
			for t, set := range need[l] {
				if set != nil {
					planned, _ := e.decide(p, l, t, set)
					plan = append(plan, planned)
				}
			}
		}
		return nil
	})
	return plan, err
}

// pass is a way through all layers.
type pass struct {
	need   [][]nodeSet // by layer
	toDisk bool        // hidden rows are on disk
	memory int64       // for rows of the layer below, or sums
}

// top is the last layer.
func (p *pass) top() int { return len(p.need) - 1 }

// pass decides where the hidden rows are.
func (e *Evaluator) pass(need [][]nodeSet) *pass {
	held := e.held(need)
	if e.Dir != "" && e.mayOverflow() && held > e.Bytes {
		return &pass{need: need, toDisk: true, memory: e.Bytes}
	}
	// The first layer alone reads from disk, and has only the rows that it makes beside it.
	return &pass{need: need, memory: max(0, e.Bytes-e.held(need[:min(2, len(need))]))}
}

// rowsBelow returns the number of rows of a type's nodes below layer l, and the bytes of each on
// disk.
func (p *pass) rowsBelow(e *Evaluator, l, t int) (rows int, bytes float64) {
	d := &e.data.Types[t]
	switch {
	case l > 0 && p.need[l-1][t] != nil:
		return p.need[l-1][t].count(), float64(e.step.Model.Width(l-1) * e.elem().Size())
	case l == 0 && d.Features != nil && !e.holdsAll(t):
		return d.Nodes, float64(d.Features.RowBytes())
	}
	return 0, 0
}

// decide chooses how layer l is computed for a set of nodes of type t.
func (e *Evaluator) decide(p *pass, l, t int, set nodeSet) (Planned, Hold) {
	plan := Planned{Layer: l + 1, Type: e.data.Types[t].Name, Nodes: set.count(), Way: inMemory, Parts: 1}
	if p.toDisk && l < p.top() {
		plan.BytesWritten = e.tableBytes(l, plan.Nodes, e.elem())
	}
	if !p.toDisk && (l > 0 || e.attached()) {
		return plan, HoldRows
	}
	rows, sums := e.judge(p, l, t, set)
	hold := e.Hold
	switch {
	case !e.step.Model.Kind.Sums():
		hold = HoldRows
	case hold == HoldAuto && sums.Seconds < rows.Seconds:
		hold = HoldSums
	case hold == HoldAuto:
		hold = HoldRows
	}
	of := rows
	if hold == HoldSums {
		of = sums
	}
	plan.Way, plan.Parts, plan.BytesRead, plan.Seconds, plan.Relations = string(hold), of.Parts, of.BytesRead, of.Seconds, of.Relations
	return plan, hold
}

// add takes note of what is read of a relation, or, without one, of the nodes' own rows.
func (p *Planned) add(relation string, edges int64, seconds, bytes float64) {
	p.Seconds, p.BytesRead = p.Seconds+seconds, p.BytesRead+int64(bytes)
	if relation != "" {
		p.Relations = append(p.Relations, PlannedRelation{relation, edges, int64(bytes), seconds})
	}
}

// judge estimates the reads of layer l for a set of nodes of type t by holding rows, and by holding
// sums. It leaves out processor time, which is about the same either way: of 10 M nodes and 143 M
// edges, 128 columns in float16, 23 to 24 seconds a layer by rows and 18 to 23 by sums
// (2026-11-25).
func (e *Evaluator) judge(p *pass, l, t int, set nodeSet) (byRows, bySums Planned) {
	costs := e.Tables.Costs
	if costs == (disk.Costs{}) {
		costs = disk.Assumed
	}
	memory := float64(p.memory)
	nodes := set.count()
	edges := make([]float64, len(e.data.Relations))
	held, in, all := 0.0, 0.0, 0.0 // bytes of sums and their edges; edges; bytes of the tables
	own, ownBytes := p.rowsBelow(e, l, t)
	for from := range e.data.Types {
		if e.reads(l, t, from) {
			rows, bytes := p.rowsBelow(e, l, from)
			all += float64(rows) * bytes
		}
	}
	for r, rel := range e.data.Relations {
		if rel.Dst != t || !e.reach.Relations[l][r] {
			continue
		}
		edges[r] = float64(e.edgesOf(r, set))
		held += float64(e.edgeBytes()) * edges[r]
		in += edges[r]
	}
	held += float64(nodes) * float64(e.sumBytes(l, t))
	chunks := max(1, math.Ceil(in/float64(e.most.edges)))
	_, forSums := blockOf(p.memory)
	parts := max(1, min(chunks, math.Ceil(held/max(float64(forSums), 1))))
	mostWindows := 1.0
	for r, n := range edges {
		rows, bytes := p.rowsBelow(e, l, e.data.Relations[r].Src)
		if n == 0 || rows == 0 {
			continue
		}
		count, key := float64(rows), e.data.Relations[r].Relation.Key()
		seconds, read := costs.SpreadBytes(distinct(n/parts, count), count, bytes)
		bySums.add(key, int64(n), parts*seconds, parts*read)
		windows, spread := 1.0, e.spread(r, set)
		if window := count * memory * 3 / 4 / all; window < count { // rows that one holds
			// What n edges would be whose sources are anywhere, over edges that have as many
			// sources as a window has rows.
			windows = max(1, min(chunks, n*spread/(-count*math.Log1p(-window/count))))
		}
		mostWindows = max(mostWindows, windows)
		seconds, read = costs.SpreadBytes(distinct(n*spread/windows, count), count, bytes)
		byRows.add(key, int64(n), windows*seconds, windows*read)
	}
	if own > 0 { // rows of the destinations themselves
		seconds, read := costs.SpreadBytes(float64(min(nodes, own)), float64(own), ownBytes)
		bySums.add("", 0, seconds, read)
		if all*4/3 > memory || !e.readsOwn(l, t) {
			byRows.add("", 0, seconds, read)
		}
	}
	byRows.Parts, bySums.Parts = int(math.Ceil(mostWindows)), int(parts)
	return byRows, bySums
}

// readsOwn reports whether layer l reads sources of type t for nodes of type t, so that held rows
// serve destinations, too.
func (e *Evaluator) readsOwn(l, t int) bool {
	for r, rel := range e.data.Relations {
		if rel.Dst == t && rel.Src == t && e.reach.Relations[l][r] {
			return true
		}
	}
	return false
}

// distinct returns the expected number of different sources of n edges, drawn at random from rows.
func distinct(n, rows float64) float64 { return rows * -math.Expm1(-n/rows) }

// spread returns the ratio of the sources that the edges of some nodes in a row have to the number
// expected at random: less than 1 where neighbours have neighbours in common.
func (e *Evaluator) spread(r int, set nodeSet) float64 {
	rel := e.data.Relations[r]
	seen := map[uint32]struct{}{}
	var expected, found float64
	const places, most = 3, 1 << 14
	for i := range places {
		clear(seen)
		edges := 0
		from := nodeSet(set[len(set)*i/places:])
		for v := range from.all {
			for _, u := range rel.Neighbors(uint32(len(set)*i/places*64) + v) {
				seen[u] = struct{}{}
				edges++
			}
			if edges >= most {
				break
			}
		}
		expected += distinct(float64(edges), float64(e.data.Types[rel.Src].Nodes))
		found += float64(len(seen))
	}
	if expected == 0 {
		return 1
	}
	return min(1, found/expected)
}
