package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Edge splits hold edges out of the topology, for link prediction. Which part an edge goes to is
// decided when it is read, from the edge alone, so that it takes no memory: held-out edges go to
// logs of their own, and all later passes know only those that are left. Reverses and made features
// so are of these. When the topology is written, the logs are sorted into the dataset.
//
// At random, an edge goes by a hash of its two nodes, whatever the relation and direction: parallel
// copies, both directions of an undirected relation, and a relation that the source has in both
// directions all agree; where that is one relation, a pass finds it out (reverse.go), and its links
// are held out once, in one of their directions. By time, it goes by a column: a pass before reads
// the column alone and finds the times that the shares end at (timesplit.go). Edges of one time
// stay together, and a pair that comes again later is held out although it was there before, as it
// is when the future is predicted. A self loop is always a training edge.

// edgeSplit holds edges of one relation out.
type edgeSplit struct {
	edgeSplitPlan
	types uint64 // of the ends, in the seed of the hash
	// bounds are the least hash, or time, of a validation and of a test edge. Times are known when
	// they have been read.
	bounds [2]uint64
	// Of the column of times: what it holds, and where in a record behind the key.
	elem store.Elem
	at   int
	// times has the times of the sources instead, by row, where the split goes by a column of the
	// sources: keys of 32 bits, while edges are read.
	times *kernels.HostBuf
}

// ofSource returns the column of the sources that a split goes by, "" when it goes by a column of
// the edges.
func (p edgeSplitPlan) ofSource() string {
	if column, ok := strings.CutPrefix(p.column, "src."); ok {
		return column
	}
	return ""
}

// edgeSplitPlan is a read element of Options.EdgeSplit.
type edgeSplitPlan struct {
	relation string // "": of all
	kind     string // "random", "time" or "given"
	column   string // of times
	shares   [3]float64
}

const edgeSplitChoices = "random:a/b/c with the shares of training, validation and test edges, as in random:0.85/0.05/0.1, or time:COLUMN:a/b/c, the earliest first, by a column of edges, or src.COLUMN of their sources, or given"

func parseEdgeSplit(s string) (p edgeSplitPlan, err error) {
	spec := s
	if relation, after, ok := strings.Cut(s, "="); ok {
		if p.relation, spec = relation, after; relation == "" {
			return p, fmt.Errorf("{edge_split} %q: no relation before the =; name one, or leave the = out for all of them", s)
		}
	}
	kind, arg, _ := strings.Cut(spec, ":")
	switch p.kind = kind; kind {
	case "given":
		if spec != kind {
			err = errors.New("given has no shares; choose random:a/b/c for some")
			return p, fmt.Errorf("{edge_split} %q: %w", s, err)
		}
	case "random":
		p.shares, err = parseShares(arg)
	case "time":
		p.column, arg, _ = strings.Cut(arg, ":")
		if p.column == "" {
			return p, fmt.Errorf("{edge_split} %q: name the column of times, as in time:year:0.85/0.05/0.1", s)
		}
		spec = "time:" + p.column
		p.shares, err = parseShares(arg)
	default:
		return p, fmt.Errorf("{edge_split} %q: there is no such split; choose %s", s, edgeSplitChoices)
	}
	if err != nil {
		if kind == "random" {
			spec = kind
		}
		return p, fmt.Errorf("{edge_split} %q: %w, as in %s:0.85/0.05/0.1", s, err, spec)
	}
	return p, nil
}

// parseShares reads the shares of training, validation and test edges.
func parseShares(s string) (shares [3]float64, err error) {
	parts := strings.Split(s, "/")
	if len(parts) != 3 {
		return shares, errors.New("want three shares, of training, validation and test edges")
	}
	sum := 0.0
	for i, part := range parts {
		f, err := strconv.ParseFloat(part, 64)
		if err != nil || !(f >= 0 && f <= 1) {
			return shares, fmt.Errorf("share %q is no number from 0 to 1; want three", part)
		}
		shares[i] = f
		sum += f
	}
	switch {
	case math.Abs(sum-1) > 1e-9:
		return shares, fmt.Errorf("the shares add up to %g; want three that add up to 1", sum)
	case shares[0] == 0:
		return shares, errors.New("no edge would be left to train on and to carry messages; want a share above 0 first")
	case shares[0] == 1:
		return shares, errors.New("no edge would be held out; want shares of validation and test edges")
	}
	return shares, nil
}

// String is the split as the dataset names it.
func (p edgeSplitPlan) String() string {
	kind := p.kind
	if kind == "given" {
		return kind
	}
	if p.column != "" {
		kind += ":" + p.column
	}
	return fmt.Sprintf("%s:%g/%g/%g", kind, p.shares[0], p.shares[1], p.shares[2])
}

// chooseEdgeSplits settles which of the source's relations are split, and how.
func (b *builder) chooseEdgeSplits() error {
	b.edgeSplits = make([]*edgeSplit, len(b.schema.Relations))
	for _, p := range b.edgeSplitPlans {
		given := false
		found, lacking := false, []ingest.Relation(nil)
		for i, r := range b.read() {
			if p.relation != "" && p.relation != r.Key() && p.relation != r.Name {
				continue
			}
			if old := b.edgeSplits[i]; old != nil && p.relation != "" && old.relation != "" {
				return fmt.Errorf("{edge_split}: relation %s has two, %v and %v; leave one out", r.Key(), old, p)
			}
			found = true
			if p.kind == "given" && !givenParts(r) {
				if p.relation != "" {
					return fmt.Errorf("{edge_split} %s=given: the source has no split of its edges; choose another", p.relation)
				}
				continue
			}
			given = given || p.kind == "given"
			if name := p.ofSource(); name != "" {
				t := b.schema.NodeTypes[slices.IndexFunc(b.schema.NodeTypes, func(t ingest.NodeType) bool { return t.Name == r.Src })]
				if !slices.Contains(t.Columns, name) {
					return fmt.Errorf("{edge_split} %v: the nodes of type %s, which edges of %s are from, have no column %s; they have %s", p, t.Name, r.Key(), name,
						cmp.Or(strings.Join(t.Columns, ", "), "none"))
				}
			} else if p.column != "" && !slices.ContainsFunc(r.Columns, func(c ingest.EdgeColumn) bool { return c.Name == p.column }) {
				if lacking = append(lacking, r); p.relation == "" {
					continue
				}
				return noColumn(r, p)
			}
			if old := b.edgeSplits[i]; old == nil || p.relation != "" { // one that names the relation goes before one for all
				b.edgeSplits[i] = b.newEdgeSplit(p, r)
			}
		}
		if !found {
			var keys []string
			for _, r := range b.read() {
				keys = append(keys, r.Key())
			}
			return fmt.Errorf("{edge_split} %s=%v: the source has no such relation; it has %s", p.relation, p,
				cmp.Or(strings.Join(keys, ", "), "none"))
		}
		if p.kind == "given" && !given {
			return errors.New("{edge_split} given: the source has no split of its edges; choose random:a/b/c or time:COLUMN:a/b/c")
		}
		if len(lacking) == b.given && b.given > 0 {
			return noColumn(lacking[0], p)
		}
		for _, r := range lacking {
			if b.edgeSplits[b.schema.Relation(r.Key())] == nil {
				b.note("relation %s has no column %s, so that {edge_split} %v holds none of its edges out", r.Key(), p.column, p)
			}
		}
	}
	for i, r := range b.read() { // what is given is the default
		if r.Stream != nil {
			continue // see streams.go
		}
		if s := b.edgeSplits[i]; givenParts(r) && s == nil {
			b.edgeSplits[i] = b.newEdgeSplit(edgeSplitPlan{kind: "given"}, r)
		} else if r.Held != nil && s.kind != "given" {
			b.drop("the edges of %s that the source holds out: {edge_split} %v takes the place of its split", r.Key(), s)
		} else if r.Parted && s.kind != "given" {
			b.drop("the source's split of the edges of %s: {edge_split} %v takes its place", r.Key(), s)
		}
	}
	for i, r := range b.read() {
		if b.edgeSplits[i] == nil || b.edgeSplits[i].kind == "given" {
			continue
		}
		for k, o := range b.read() {
			if b.edgeSplits[k] == nil && i != k && o.Src == r.Dst && o.Dst == r.Src {
				b.note("relation %s has an edge split, and %s, between the same types, has none: if it holds the same edges the other way round, they show what is held out, and {edge_split} %s=%v splits it alike",
					r.Key(), o.Key(), o.Key(), b.edgeSplits[i])
			}
		}
	}
	return nil
}

// givenParts reports whether the source splits the edges.
func givenParts(r ingest.Relation) bool { return r.Parted || r.Held != nil }

// noColumn is the error of a split by a column that the relation lacks.
func noColumn(r ingest.Relation, p edgeSplitPlan) error {
	var names []string
	for _, c := range r.Columns {
		names = append(names, c.Name)
	}
	return fmt.Errorf("{edge_split} %v: relation %s has no column %s; it has %s", p, r.Key(), p.column, cmp.Or(strings.Join(names, ", "), "none"))
}

func (b *builder) newEdgeSplit(p edgeSplitPlan, r ingest.Relation) *edgeSplit {
	index := func(name string) int {
		return slices.IndexFunc(b.schema.NodeTypes, func(t ingest.NodeType) bool { return t.Name == name })
	}
	src, dst := index(r.Src), index(r.Dst)
	s := &edgeSplit{edgeSplitPlan: p, types: mix(b.Seed ^ mix(uint64(min(src, dst))<<32|uint64(max(src, dst))))}
	if p.kind == "given" {
		return s
	}
	if p.kind == "random" {
		s.bounds = [2]uint64{fraction(p.shares[0]), fraction(p.shares[0] + p.shares[1])}
		return s
	}
	if p.ofSource() != "" {
		return s
	}
	s.at = 8 // behind the number
	for _, c := range r.Columns {
		if c.Name == p.column {
			s.elem = c.Elem
			break
		}
		s.at += c.Elem.Size()
	}
	return s
}

// fraction is f of all 64-bit numbers: of 1, the largest.
func fraction(f float64) uint64 {
	if f >= 1-1e-9 { // a sum that rounding left below
		return math.MaxUint64
	}
	return uint64(f * (1 << 63) * 2)
}

// hash hashes the pair of nodes at the ends of an edge, the same in both directions.
func (s *edgeSplit) hash(f *edgeForm, u, v uint32) uint64 {
	if f.src.number > f.dst.number || f.src == f.dst && u > v {
		u, v = v, u
	}
	return cell(s.types, uint64(u), uint64(v))
}

// part returns the part of u→v, whose record goes on with tail: 0 is training, else 1 + the
// store.HeldPart.
func (s *edgeSplit) part(f *edgeForm, u, v uint32, tail []byte) int {
	if s.kind == "given" {
		if !f.parted { // those that are held out come by themselves: see heldedges.go
			return 0
		}
		return int(tail[len(tail)-1])
	}
	if u == v && f.src == f.dst {
		return 0
	}
	var x uint64
	if s.times != nil {
		x = uint64(s.times.Uint32s()[u])
	} else if s.kind == "time" {
		x = timeKey(s.elem, getBits(tail[s.at:], s.elem.Size()))
	} else {
		x = s.hash(f, u, v)
	}
	switch {
	case x < s.bounds[0]:
		return 0
	case x < s.bounds[1] || s.bounds[1] == math.MaxUint64:
		return 1
	}
	return 2
}

// turned reports whether an edge between rows u and v that is there once for both directions goes
// from v to u. It is as likely either way.
func (s *edgeSplit) turned(f *edgeForm, u, v uint32) bool { return (s.hash(f, u, v)&1 == 0) == (u < v) }

// checkEdgesLeft refuses splits that leave no edge.
func (b *builder) checkEdgesLeft(context.Context) error {
	left, held := int64(0), int64(0)
	for i := range b.read() {
		if b.edgeSplits[i] != nil {
			left, held = left+b.state.Relations[i].Report.Edges, held+b.state.Relations[i].Report.HeldOut
		}
	}
	if held > 0 && left == 0 {
		return errors.New("{edge_split}: no edge is left to train on and to carry messages; give training a larger share")
	}
	return nil
}

// writeEdgeSplits sorts the held-out edges into the dataset.
func (b *builder) writeEdgeSplits(s *sizes, do func(pass)) {
	_, shared := b.sharedGroups(s)
	for i, r := range b.read() {
		split := b.edgeSplits[i]
		if split == nil || shared[i] {
			continue
		}
		f := b.form(i)
		held, bytes := int64(float64(s.edges[i])*(1-split.shares[0])), int64(8)
		for _, c := range f.columns {
			bytes += int64(c.Elem.Size())
		}
		log := held * int64(f.width)
		do(pass{name: "write edge split " + r.Key(), total: b.state.Relations[i].Report.HeldOut, unit: "edges",
			cost: cost{items: held, seconds: workerSeconds(held, rateWrite), spillRead: 2 * log, spillWritten: log,
				leaves: true, written: held * bytes, padding: 4 * sectionOverhead},
			run: func(ctx context.Context) error { return b.writeEdgeSplit(ctx, i) }})
	}
}

func (b *builder) writeEdgeSplit(ctx context.Context, i int) error {
	f, rel, split := b.form(i), &b.state.Relations[i], b.edgeSplits[i]
	if f.Held != nil && split.kind == "given" {
		return b.writeHeldEdges(ctx, i)
	}
	if rel.ReverseOf != "" { // the other's split holds out the same edges
		b.discard(rel.Held...)
		rel.Held = nil
		return nil
	}
	f.tabled = f.tabled && !f.reverse // a held-out link stands for the rows of both directions
	f.reverse = false                 // they have been turned already, and are there once
	w, err := b.w.NewEdgeSplit(f.Src, f.Name, f.Dst, store.EdgeSplitSpec{Name: split.String(), Columns: f.columns})
	if err != nil {
		return err
	}
	left, err := b.w.OpenRelation(f.Key())
	if err != nil {
		return err
	}
	defer left.Close()
	again := int64(0)
	report := EdgeSplitReport{Name: split.String(), Relation: f.Key(), Train: rel.Report.Edges}
	for p, count := range []*int64{&report.Valid, &report.Test} {
		// Of a relation that is its own reverse as it was read, both directions are there.
		var keep func(rows extsort.Key) bool
		if rel.Symmetric {
			keep = func(rows extsort.Key) bool {
				u, v := uint32(rows), uint32(rows>>32)
				return u == v || !split.turned(&f, u, v)
			}
		}
		part := relation{}
		part.Given, part.Starts, err = b.partLogs(ctx, &f, rel.Held[p:p+1], fmt.Sprintf("held-%d-%d", i, p), f.src.storedIDs(), f.dst.storedIDs(), keep)
		if err != nil {
			return err
		}
		err = b.sortBuckets(ctx, &f, &part, func(_ int, wait turn, m *merged) error {
			columns := f.columnsOf(m)
			var dst []store.NodeID
			for l, n := range m.lengths {
				for range n {
					dst = append(dst, m.list+uint32(l))
				}
			}
			if err := wait(); err != nil {
				return err
			}
			n, err := inTopology(left, m)
			if err != nil {
				return err
			}
			again += n
			return w.Append(store.HeldPart(p), m.items, dst, columns...)
		})
		if err != nil {
			return err
		}
		*count = part.Report.Edges
		b.discard(part.Given...)
	}
	if err := w.Close(); err != nil {
		return err
	}
	b.discard(rel.Held...)
	rel.Held = nil
	if again > 0 {
		b.note("%d held-out edges of relation %s are among its training edges as well: by %v, an edge that is there twice may be in two parts",
			again, f.Key(), split)
	}
	b.report.EdgeSplits = append(b.report.EdgeSplits, report)
	for p, n := range []int64{report.Valid, report.Test} {
		if n == 0 && split.shares[1+p] > 0 {
			b.note("the edge split %v of relation %s has no %v edges: the relation has few, or many of one time", split, f.Key(), store.HeldPart(p))
		}
	}
	return nil
}

// inTopology counts the edges that a relation has.
func inTopology(r *store.RelationReader, m *merged) (n int64, err error) {
	var ends [2]uint64
	var list []store.NodeID
	at := 0
	for l, length := range m.lengths {
		if length == 0 {
			continue
		}
		if err := r.Offsets(int64(m.list)+int64(l), ends[:]); err != nil {
			return n, err
		}
		list = slices.Grow(list[:0], int(ends[1]-ends[0]))[:ends[1]-ends[0]]
		if err := r.Neighbors(int64(ends[0]), list); err != nil {
			return n, err
		}
		for _, u := range m.items[at : at+int(length)] {
			if _, ok := slices.BinarySearch(list, u); ok {
				n++
			}
		}
		at += int(length)
	}
	return n, nil
}

// putHeld takes u→v with what is in the record to the held-out edges.
func (s *edgeSink) putHeld(part int, u, v uint32) {
	s.heldOut.Add(1)
	if s.form.reverse && s.split.turned(&s.form, u, v) {
		u, v = v, u
	}
	if s.form.width == 8 {
		s.held.Put8(part, extsort.MakeKey(v, u))
		return
	}
	binary.LittleEndian.PutUint64(s.record, extsort.MakeKey(v, u))
	s.held.Put(part, s.record)
}
