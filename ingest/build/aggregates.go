package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Aggregates are columns of counts, sums and means of a node's edges, behind the columns of its
// first table. A network takes the mean of neighbour rows, which hides their number; the columns
// show it. They are computed from the stored edges, without the held-out ones.
//
//	count   log(1 + edges)
//	sum     ±log(1 + |Σ values|) of a column of the edges
//	mean    ±log(1 + |Σ values / edges|); 0 without edges
//
// The logarithms keep every column within float16, and keep the few large nodes near the others.
//
// Rows of a table are written in stored order, and aggregates are computed for a part of the nodes
// at a time. Edges are stored by destination, so the in-edges of a part are one range. For
// out-edges, all edges are read once for each part, unless the dataset has the reverse relation,
// which is stored by source. The order in which a sum adds its values does not depend on the size
// of the parts.

// aggregate is one column that is computed from edges.
type aggregate struct {
	kind     string // count, sum or mean
	relation int    // of the source's
	out      bool   // of the edges from the node, instead of the edges to it
	column   string // of the edges; empty for counts
}

const (
	aggCount, aggSum, aggMean = store.AggregateCount, store.AggregateSum, store.AggregateMean
	// mostAggregates bounds the columns of a type.
	mostAggregates = 256
	// allRelations stands for every relation of a type in an ingest.NodeType's Aggregates.
	allRelations = "*"
)

const aggregateForm = "count:RELATION, sum:RELATION.COLUMN or mean:RELATION.COLUMN, and then :in or :out for one direction"

// name returns the name of the column, which parseAggregate reads.
func (b *builder) nameOf(a aggregate) string {
	r := &b.schema.Relations[a.relation]
	of, same := r.Name, 0
	for _, q := range b.read() {
		if q.Name == r.Name {
			same++
		}
	}
	if same > 1 {
		of = r.Key()
	}
	if a.column != "" {
		of += "." + a.column
	}
	if b.leadsBothWays(*r) {
		return a.kind + ":" + of
	}
	if a.out {
		return a.kind + ":" + of + ":out"
	}
	return a.kind + ":" + of + ":in"
}

// leadsBothWays reports whether the edges of a relation get their reverses.
func (b *builder) leadsBothWays(r ingest.Relation) bool { return b.Undirected && r.Src == r.Dst }

// parseAggregate returns the columns that a text asks for, for a node type. If the text asks for no
// column, that is an error, except for all relations.
func (b *builder) parseAggregate(nodeType, text string) (found []aggregate, err error) {
	fail := func(format string, args ...any) ([]aggregate, error) {
		return nil, fmt.Errorf("node type %s: %s: %s", nodeType, text, fmt.Sprintf(format, args...))
	}
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || !slices.Contains([]string{aggCount, aggSum, aggMean}, parts[0]) ||
		len(parts) == 3 && parts[2] != "in" && parts[2] != "out" {
		return fail("write %s", aggregateForm)
	}
	name, column, hasColumn := strings.Cut(parts[1], ".")
	if hasColumn == (parts[0] == aggCount) || hasColumn && column == "" {
		return fail("write %s", aggregateForm)
	}
	var there []string
	known := name == allRelations
	for i, r := range b.read() {
		if r.Stream != nil || r.Src != nodeType && r.Dst != nodeType {
			continue
		}
		there = append(there, r.Name)
		if name != allRelations && name != r.Name && name != r.Key() {
			continue
		}
		known = true
		if hasColumn && !slices.ContainsFunc(r.Columns, func(c ingest.EdgeColumn) bool { return c.Name == column }) {
			var columns []string
			for _, c := range r.Columns {
				columns = append(columns, c.Name)
			}
			if len(columns) == 0 {
				return fail("edges of relation %s have no columns; list them with weight or columns", r.Name)
			}
			return fail("edges of relation %s have no column %s; there are %s", r.Name, column, strings.Join(columns, ", "))
		}
		for _, out := range []bool{false, true} {
			end := r.Dst
			if out {
				end = r.Src
			}
			side := "in"
			if out {
				side = "out"
			}
			// Edges with reverses lead both ways.
			if end == nodeType && (len(parts) == 2 || parts[2] == side) && !(out && b.leadsBothWays(r)) {
				found = append(found, aggregate{parts[0], i, out, column})
			}
		}
	}
	switch {
	case !known && len(there) == 0:
		return fail("no relation of edges begins or ends at this type; leave it out")
	case !known:
		return fail("no such relation begins or ends at this type; there are %s", strings.Join(there, ", "))
	case len(found) == 0 && name != allRelations:
		return fail("the relation has no end of this type in that direction; leave the direction out")
	}
	return found, nil
}

// chooseAggregates sets the aggregates of each node type: the columns of the dataset to follow, or
// else those that Options.Counts and the source ask for.
func (b *builder) chooseAggregates() error {
	b.aggregates = map[string][]aggregate{}
	asked, err := b.askedAggregates()
	if err != nil {
		return err
	}
	for _, t := range b.schema.NodeTypes {
		var all []aggregate
		for _, text := range asked[t.Name] {
			found, err := b.parseAggregate(t.Name, text)
			if err != nil {
				return err
			}
			for _, a := range found {
				if !slices.Contains(all, a) {
					all = append(all, a)
				}
			}
		}
		if len(all) > mostAggregates {
			return fmt.Errorf("node type %s: %d columns of counts, and %d are the most; name the relations that matter", t.Name, len(all), mostAggregates)
		}
		if len(all) > 0 {
			b.aggregates[t.Name] = all
		}
	}
	if len(b.aggregates) > 0 && b.features.kind == "mean" {
		return errors.New("{features} mean: it takes means of whole rows, and counts are no part of them; leave out one of the two")
	}
	return nil
}

// askedAggregates returns the texts of aggregates by node type.
func (b *builder) askedAggregates() (map[string][]string, error) {
	if b.LikeAggregates != nil {
		return b.LikeAggregates, nil
	}
	asked := map[string][]string{}
	featured, some := map[string]bool{}, false
	for _, t := range b.schema.Tables {
		if t.Relation == "" {
			featured[t.NodeType], some = true, true
		}
	}
	for name := range b.makes {
		featured[name], some = featured[name] || b.makes[name], some || b.makes[name]
	}
	types := strings.Split(b.Counts, ",")
	for _, t := range b.schema.NodeTypes {
		switch {
		case b.Counts == "":
			asked[t.Name] = t.Aggregates
		case b.Counts == "all" && (featured[t.Name] || !some) || slices.Contains(types, t.Name):
			asked[t.Name] = append([]string{aggCount + ":" + allRelations}, t.Aggregates...)
		}
	}
	if b.Counts == "" || b.Counts == "all" || b.Counts == "none" {
		return asked, nil
	}
	for _, name := range types {
		if b.schema.NodeType(name) < 0 {
			var names []string
			for _, t := range b.schema.NodeTypes {
				names = append(names, t.Name)
			}
			return nil, fmt.Errorf("{counts} %s: no node type %s; there are %s, or choose all or none", b.Counts, name, strings.Join(names, ", "))
		}
	}
	return asked, nil
}

// firstTable reports whether a table has the aggregates of its node type behind its columns.
func (b *builder) firstTable(t ingest.Table) bool {
	if t.Relation != "" || len(b.aggregates[t.NodeType]) == 0 {
		return false
	}
	if b.makes[t.NodeType] {
		return t.Name == madeTable
	}
	i := b.tableOf(t.NodeType)
	return i < 0 || b.schema.Tables[i].Name == t.Name
}

// tableOf returns the source's first table of a node type, or -1.
func (b *builder) tableOf(nodeType string) int {
	return slices.IndexFunc(b.schema.Tables, func(t ingest.Table) bool { return t.Relation == "" && t.NodeType == nodeType })
}

// width returns the number of columns that a table has in the dataset.
func (b *builder) width(t ingest.Table) int {
	if b.firstTable(t) {
		return t.Dim + len(b.aggregates[t.NodeType])
	}
	return t.Dim
}

// aggregateColumns describes the aggregates of a node type.
func (b *builder) aggregateColumns(nodeType string) (all []store.Encoding) {
	for _, a := range b.aggregates[nodeType] {
		all = append(all, store.Encoding{Name: b.nameOf(a), Kind: store.NumberColumn, Width: 1, Aggregate: a.kind})
	}
	return all
}

// makeAggregates writes tables of aggregates alone, for node types without another table.
func (b *builder) makeAggregates(s *sizes, do func(pass)) {
	for i, t := range b.schema.NodeTypes {
		if b.makes[t.Name] || b.tableOf(t.Name) >= 0 || len(b.aggregates[t.Name]) == 0 {
			continue
		}
		table := ingest.Table{Name: madeTable, NodeType: t.Name}
		do(pass{name: "count edges of " + t.Name, total: s.nodes[i], unit: "rows", cost: b.tableCost(table, s.nodes[i]),
			run: func(ctx context.Context) error { return b.makeAggregatesOf(ctx, table) }})
	}
}

func (b *builder) makeAggregatesOf(ctx context.Context, t ingest.Table) error {
	w, err := b.newTable(t, true)
	if err != nil {
		return err
	}
	if err := w.open(); err != nil {
		return err
	}
	chunk := max(1, madeChunk/len(w.aggregates))
	for lo := 0; lo < int(w.count); lo += chunk {
		n := min(chunk, int(w.count)-lo)
		if err := errors.Join(ctx.Err(), w.putRows(ctx, int64(lo), n, nil)); err != nil {
			return err
		}
		b.addMeter(n)
	}
	return w.close()
}

// slot holds a number of each node, from which columns are computed.
type slot struct {
	aggregate           // a count or a sum
	numbers   []float64 // of the nodes of the part
}

// aggregator computes the aggregates of nodes in stored order.
type aggregator struct {
	b       *builder
	columns []aggregate
	slots   []slot
	edges   []aggregatedEdges
	nodes   int64 // of the type
	most    int64 // the largest number of nodes in a part
	lo, hi  int64 // the part
	row     []float32
	out     []byte
}

// aggregatedEdges are the edges of a relation in one direction.
type aggregatedEdges struct {
	relation *store.RelationReader
	columns  []*store.ColumnReader // of the slots that have one
	slots    []int
	scan     bool // all edges are read for each part: nodes of the part are their sources
	lists    int64
}

func (b *builder) newAggregator(nodeType string) (*aggregator, error) {
	g := &aggregator{b: b, columns: b.aggregates[nodeType], nodes: int64(b.typeOf(nodeType).count)}
	need := func(a aggregate) {
		if !slices.ContainsFunc(g.slots, func(s slot) bool { return s.aggregate == a }) {
			g.slots = append(g.slots, slot{aggregate: a})
		}
	}
	for _, a := range g.columns {
		if a.kind != aggSum {
			need(aggregate{kind: aggCount, relation: a.relation, out: a.out})
		}
		if a.kind != aggCount {
			need(aggregate{kind: aggSum, relation: a.relation, out: a.out, column: a.column})
		}
	}
	g.most = max(1, min(b.room()/8/int64(8*len(g.slots)), g.nodes))
	if b.test.aggregates > 0 {
		g.most = b.test.aggregates
	}
	for i := range g.slots {
		g.slots[i].numbers = make([]float64, g.most)
		if err := g.open(i); err != nil {
			return nil, errors.Join(err, g.close())
		}
	}
	return g, nil
}

// open opens the edges of a slot.
func (g *aggregator) open(i int) error {
	s, at, scan := &g.slots[i], g.slots[i].relation, g.slots[i].out
	for k := range g.b.relations() {
		if s.out && k >= g.b.given && g.b.madeFrom(k) == s.relation {
			at, scan = k, false
		}
	}
	key := g.b.schema.Relations[at].Key()
	k := slices.IndexFunc(g.edges, func(e aggregatedEdges) bool {
		of := &g.slots[e.slots[0]]
		return of.relation == s.relation && of.out == s.out
	})
	if k < 0 {
		r, err := g.b.w.OpenRelation(key)
		if err != nil {
			return err
		}
		lists := int64(g.b.typeOf(g.b.schema.Relations[at].Dst).count)
		k, g.edges = len(g.edges), append(g.edges, aggregatedEdges{relation: r, scan: scan, lists: lists})
	}
	e := &g.edges[k]
	e.slots = append(e.slots, i)
	if s.kind == aggCount {
		e.columns = append(e.columns, nil)
		return nil
	}
	c, err := g.b.w.OpenColumn(key, s.column)
	if err == nil {
		e.columns = append(e.columns, c)
	}
	return err
}

func (g *aggregator) close() error {
	var errs []error
	for _, e := range g.edges {
		errs = append(errs, e.relation.Close())
		for _, c := range e.columns {
			if c != nil {
				errs = append(errs, c.Close())
			}
		}
	}
	g.edges = nil
	return errors.Join(errs...)
}

// aggregateEdges is the number of edges that are read at a time.
const aggregateEdges = 1 << 16

// fill computes the slots of nodes lo to hi.
func (g *aggregator) fill(ctx context.Context, lo, hi int64) error {
	g.lo, g.hi = lo, hi
	for i := range g.slots {
		clear(g.slots[i].numbers[:hi-lo])
	}
	for i := range g.edges {
		e := &g.edges[i]
		first, end := lo, hi
		if e.scan {
			first, end = 0, e.lists
		}
		if err := g.add(ctx, e, first, end); err != nil {
			return err
		}
	}
	return nil
}

// add adds the edges of lists first to end.
func (g *aggregator) add(ctx context.Context, e *aggregatedEdges, first, end int64) error {
	offsets := make([]uint64, 1<<13+1)
	items, values := make([]store.NodeID, aggregateEdges), make([]float64, aggregateEdges)
	buf := make([]byte, 8*aggregateEdges)
	for first < end {
		n := min(end-first, int64(len(offsets)-1))
		if err := errors.Join(ctx.Err(), e.relation.Offsets(first, offsets[:n+1])); err != nil {
			return err
		}
		list := int64(0) // of these
		for at := offsets[0]; at < offsets[n]; {
			k := min(uint64(len(items)), offsets[n]-at)
			if err := ctx.Err(); err != nil {
				return err
			}
			if e.scan {
				if err := e.relation.Neighbors(int64(at), items[:k]); err != nil {
					return err
				}
			} else {
				for i := range items[:k] {
					for at+uint64(i) >= offsets[list+1] {
						list++
					}
					items[i] = store.NodeID(first + list)
				}
			}
			for c, column := range e.columns {
				numbers := g.slots[e.slots[c]].numbers
				if column != nil {
					if err := column.Numbers(int64(at), values[:k], buf); err != nil {
						return err
					}
				}
				for i, v := range items[:k] {
					if v := int64(v) - g.lo; v < 0 || int64(items[i]) >= g.hi {
						continue
					} else if column == nil {
						numbers[v]++
					} else {
						numbers[v] += values[i]
					}
				}
			}
			at += k
		}
		first += n
	}
	return nil
}

// appendTo appends the elements of a node's aggregates to dst.
func (g *aggregator) appendTo(dst []byte, node int64) []byte {
	at := func(kind string, a aggregate) float64 {
		a.kind = kind
		if kind == aggCount {
			a.column = ""
		}
		i := slices.IndexFunc(g.slots, func(s slot) bool { return s.aggregate == a })
		return g.slots[i].numbers[node-g.lo]
	}
	g.row = g.row[:0]
	for _, a := range g.columns {
		x := 0.0
		switch a.kind {
		case aggMean:
			if n := at(aggCount, a); n > 0 {
				x = at(aggSum, a) / n
			}
		default:
			x = at(a.kind, a)
		}
		g.row = append(g.row, float32(math.Copysign(math.Log1p(math.Abs(x)), x)))
	}
	if g.b.DType == F32 {
		for _, x := range g.row {
			dst = binary.LittleEndian.AppendUint32(dst, math.Float32bits(x))
		}
		return dst
	}
	var halves [64]uint16
	for part := range slices.Chunk(g.row, len(halves)) {
		kernels.Float32ToHalf(halves[:len(part)], part)
		for _, h := range halves[:len(part)] {
			dst = binary.LittleEndian.AppendUint16(dst, h)
		}
	}
	return dst
}

// widen returns n rows from first on with the aggregates behind the columns of rows.
func (g *aggregator) widen(ctx context.Context, first int64, n int, rows []byte) ([]byte, error) {
	width := len(rows) / max(n, 1)
	g.out = g.out[:0]
	for i := range n {
		node := first + int64(i)
		if node >= g.hi || node < g.lo {
			if err := g.fill(ctx, node, min(node+g.most, g.nodes)); err != nil {
				return nil, err
			}
		}
		g.out = g.appendTo(append(g.out, rows[i*width:(i+1)*width]...), node)
	}
	return g.out, nil
}
