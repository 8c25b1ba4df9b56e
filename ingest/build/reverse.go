package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/store"
)

// Reverses. Options.Reverse wants for each relation another with its edges the other way round.
// They stand behind the source's relations in the schema, and from the order of nodes on they are
// relations like any other. Before it, when equal edges of the source's relations are merged:
//
//	look for reverses   relations of the source that are each other's, or their own: those get none
//	reverse R           R's edges, turned round, with what rides on them, as if they had been read

const reversePrefix = "rev_"

// relations yields the relations that the dataset will have, as far as is known, by number. It
// leaves out streams.
func (b *builder) relations() iter.Seq2[int, ingest.Relation] {
	return func(yield func(int, ingest.Relation) bool) {
		for i, r := range b.schema.Relations {
			if !b.state.Relations[i].Absent && r.Stream == nil && !yield(i, r) {
				return
			}
		}
	}
}

// read returns the source's relations.
func (b *builder) read() []ingest.Relation { return b.schema.Relations[:b.given] }

// madeFrom returns the relation whose reverse relation i is, or i itself when it is read.
func (b *builder) madeFrom(i int) int {
	if i < b.given {
		return i
	}
	return b.mirrored[i-b.given]
}

// wantReverses adds reverses if the source's kind of data wants them and no option decides.
func (b *builder) wantReverses() {
	held := len(b.EdgeSplit) > 0 || slices.ContainsFunc(b.schema.Relations, func(r ingest.Relation) bool { return r.Parted || r.Held != nil })
	if !b.schema.BackWanted || b.Reverse || b.Undirected || b.OneWay || held {
		return
	}
	b.Reverse = true
	b.note("nodes are labelled and messages flow from sources to destinations alone, so each relation without a reverse gets one, as by {reverse}; {reverse}=false stores them as given")
}

// addReverses puts the reverses behind the source's relations.
func (b *builder) addReverses() error {
	b.given = len(b.schema.Relations)
	b.wantReverses()
	if !b.Reverse {
		return nil
	}
	b.schema.Relations = slices.Clone(b.schema.Relations)
	for i, r := range b.schema.Relations {
		if b.Undirected && r.Src == r.Dst {
			continue
		}
		name := reversePrefix + r.Name
		if store.CleanWord(name) != name {
			return fmt.Errorf("{reverse}: relation %s: its reverse would be called %s, and names have up to 100 letters; give it a shorter name", r.Key(), name)
		}
		b.schema.Relations = append(b.schema.Relations, ingest.Relation{Src: r.Dst, Name: name, Dst: r.Src, Edges: -1, Columns: r.Columns})
		b.mirrored = append(b.mirrored, i)
	}
	switch {
	case b.given == 0:
		return errors.New("{reverse}: the source has no relation, so there is nothing to reverse; leave it out")
	case len(b.mirrored) == 0:
		return errors.New("{reverse}: {undirected} stores the reverse of every edge already, since each relation is within a node type; leave one of the two out")
	}
	return nil
}

// candidates returns the source's relations that may be the reverse of relation i by their types; i
// is one of them where it is within a type.
func (b *builder) candidates(i int) (found []int) {
	r := b.schema.Relations[i]
	for k, o := range b.read() {
		if o.Src == r.Dst && o.Dst == r.Src && !b.form(k).reverse {
			found = append(found, k)
		}
	}
	return found
}

// compared returns the relations that have candidates, and the relations whose split needs to know
// whether they are their own reverse. A candidate is among them, since the relation is a candidate
// of it in turn.
func (b *builder) compared() (found []int) {
	for i := range b.read() {
		if slices.Contains(b.mirrored, i) && len(b.candidates(i)) > 0 || b.splitsBoth(i) {
			found = append(found, i)
		}
	}
	return found
}

// splitsBoth reports whether relation i is compared with itself because of its split: where the
// source has both directions of its links, both are held out. A split asks for no other reverses.
// Edges with columns are left out: each direction may have values of its own.
func (b *builder) splitsBoth(i int) bool {
	r, split := b.schema.Relations[i], b.edgeSplits[i]
	return split != nil && split.kind != "given" && r.Src == r.Dst && len(r.Columns) == 0 && !b.form(i).reverse && !slices.Contains(b.mirrored, i)
}

// findReverses decides which reverses the source has already.
func (b *builder) findReverses(s *sizes, do func(pass)) {
	compared := b.compared()
	if len(compared) == 0 {
		return
	}
	total, c := int64(0), cost{leaves: true}
	for _, i := range compared {
		f := b.form(i)
		total += b.state.Relations[i].Report.EdgesRead
		c.items += s.stored[i]
		c.spillRead += s.stored[i] * int64(f.width)
	}
	c.seconds = workerSeconds(c.items, rateCompare)
	p := pass{name: "look for reverses", total: total, unit: "edges", cost: c}
	p.run = func(ctx context.Context) error {
		sums := map[int]edgeSums{}
		for _, i := range compared {
			s, err := b.sumEdges(ctx, i)
			if err != nil {
				return err
			}
			sums[i] = s
		}
		for _, i := range compared {
			if b.splitsBoth(i) {
				if s := sums[i]; s.edges[ingest.Train] > 0 && s.forth == s.back {
					b.state.Relations[i].Symmetric = true
					b.note("relation %s has the reverse of each of its edges, so {edge_split} %v holds a link out once, in one of its directions",
						b.schema.Relations[i].Key(), b.edgeSplits[i])
				}
				continue
			}
			candidates := b.candidates(i)
			if slices.Contains(candidates, i) { // a relation that is its own reverse needs no other
				candidates = append([]int{i}, candidates...)
			}
			for _, k := range candidates {
				if sums[i].edges == sums[k].edges && sums[i].forth == sums[k].back {
					b.hasReverse(i, k)
					break
				}
			}
		}
		for j, i := range b.mirrored {
			made, key := &b.state.Relations[b.given+j], b.schema.Relations[b.given+j].Key()
			for _, o := range b.read() {
				if !made.Absent && o.Key() == key {
					return fmt.Errorf("{reverse}: relation %s has the name that the reverse of %s would have, and other edges; leave {reverse} out, or rename it",
						key, b.schema.Relations[i].Key())
				}
			}
		}
		return nil
	}
	do(p)
}

// hasReverse notes that relation k of the source is the reverse of relation i.
func (b *builder) hasReverse(i, k int) {
	rel, r := &b.state.Relations[i], b.schema.Relations[i]
	b.state.Relations[b.given+slices.Index(b.mirrored, i)].Absent = true
	if i == k {
		rel.Symmetric = true
		b.note("relation %s has the reverse of each of its edges already, so {reverse} adds none", r.Key())
		return
	}
	b.note("relation %s has its reverse in the source, %s, so {reverse} adds none", r.Key(), b.schema.Relations[k].Key())
	// One of them is said to be the other's reverse: the later, but where only the earlier has
	// tables of edges, it. The ids of a reverse without tables are rows of the other's, which here
	// they are not.
	of, later := min(i, k), max(i, k)
	if b.hasEdgeTable(b.schema.Relations[of].Key()) && !b.hasEdgeTable(b.schema.Relations[later].Key()) {
		of, later = later, of
	}
	from, to := &b.state.Relations[later], b.state.Relations[of]
	named := func(o relation) bool { return o.ReverseOf == b.schema.Relations[later].Key() }
	if from.ReverseOf == "" && to.ReverseOf == "" && !slices.ContainsFunc(b.state.Relations, named) {
		from.ReverseOf = b.schema.Relations[of].Key()
	}
}

// edgeSums are the edges of a relation, to be compared: as they are, and turned round. Those that
// an edge split holds out are apart, by Part.
type edgeSums struct {
	edges       [3]int64
	forth, back [3]store.EdgeSum
}

func (b *builder) sumEdges(ctx context.Context, i int) (edgeSums, error) {
	var all edgeSums
	var mu sync.Mutex
	f := b.form(i)
	sum := func(p ingest.Part) func(records []byte) error {
		return func(records []byte) error {
			var edges int64
			var forth, back store.EdgeSum
			for ; len(records) > 0; records = records[f.width:] {
				e := binary.LittleEndian.Uint64(records)
				edges++
				forth.Add(uint32(e), uint32(e>>32))
				back.Add(uint32(e>>32), uint32(e))
			}
			mu.Lock()
			defer mu.Unlock()
			all.edges[p] += edges
			all.forth[p].AddSum(forth)
			all.back[p].AddSum(back)
			return nil
		}
	}
	err := b.eachRecord(ctx, i, sum(ingest.Train))
	if b.edgeSplits[i] != nil {
		for p := ingest.Valid; p <= ingest.Test && err == nil; p++ {
			err = b.eachHeld(ctx, i, p, sum(p))
		}
	}
	return all, err
}

// eachHeld visits the held-out edges of relation i, by rows, when equal ones are merged, as
// eachRecord does.
func (b *builder) eachHeld(ctx context.Context, i int, p ingest.Part, visit func(records []byte) error) error {
	f, log := b.form(i), b.state.Relations[i].Held[p-ingest.Valid:p-ingest.Valid+1]
	if !f.merge {
		return b.eachChunk(ctx, log, f.width, visitAll(visit))
	}
	f.tabled = f.tabled && !f.reverse
	var part relation
	var err error
	if part.Given, part.Starts, err = b.partLogs(ctx, &f, log, fmt.Sprintf("held-%d-%v", i, p), nil, nil, nil); err != nil {
		return err
	}
	err = b.sortBuckets(ctx, &f, &part, func(_ int, _ turn, m *merged) error { return visit(m.keyed(f.width)) })
	b.discard(part.Given...)
	return err
}

// visitAll is the work of a worker that visits the records it is given.
func visitAll(visit func(records []byte) error) func(next func() ([]byte, error)) error {
	return func(next func() ([]byte, error)) error {
		for {
			records, err := next()
			if err != nil || records == nil {
				return err
			}
			if err := visit(records); err != nil {
				return err
			}
		}
	}
}

// eachRecord visits the edges of relation i, by rows, when equal ones are merged: some records at a
// time, from several goroutines.
func (b *builder) eachRecord(ctx context.Context, i int, visit func(records []byte) error) error {
	f, rel := b.form(i), &b.state.Relations[i]
	if f.merge && b.Order == OrderOriginal { // then edges are merged when they are written
		report := rel.Report
		defer func() { rel.Report = report }() // which counts them again
		return b.sortBuckets(ctx, &f, rel, func(_ int, _ turn, m *merged) error {
			return visit(m.keyed(f.width))
		})
	}
	return b.eachChunk(ctx, f.log(rel), f.width, visitAll(func(records []byte) error {
		b.addMeter(len(records) / f.width)
		return visit(records)
	}))
}

// reverseEdges makes the reverses.
func (b *builder) reverseEdges(s *sizes, do func(pass)) {
	for j, i := range b.mirrored {
		if b.state.Relations[b.given+j].Absent {
			continue
		}
		n, from, to := s.stored[i], b.form(i), b.form(b.given+j)
		do(pass{name: "reverse " + b.schema.Relations[i].Key(), total: b.edgesLeft(i), unit: "edges",
			cost: cost{items: n, seconds: workerSeconds(n, rateReverse),
				spillRead: n * int64(from.width), spillWritten: n * int64(to.width), leaves: true},
			run: func(ctx context.Context) error { return b.reverseRelation(ctx, i, b.given+j) }})
	}
}

// edgesLeft is the number of edges of a relation that the source has, as far as it is known before
// they are written.
func (b *builder) edgesLeft(i int) int64 {
	r := &b.state.Relations[i].Report
	if r.Edges > 0 {
		return r.Edges
	}
	return r.EdgesRead
}

// reverseRelation makes relation j of the edges of relation i.
func (b *builder) reverseRelation(ctx context.Context, i, j int) error {
	rel := &b.state.Relations[j]
	rel.Report = RelationReport{Key: b.schema.Relations[j].Key()}
	rel.ReverseOf = b.schema.Relations[i].Key()
	if b.form(i).merge && b.Order == OrderOriginal {
		b.halved = true // see eachRecord
		defer func() { b.halved = false }()
	}
	sinks, err := b.newEdgeSinks(j, b.edgesLeft(i))
	if err != nil {
		return err
	}
	width, from := sinks.form.width, b.form(i).width // without the part, which is the last
	var mu sync.Mutex
	var all, free []*edgeSink
	err = b.eachRecord(ctx, i, func(records []byte) error {
		mu.Lock()
		var sink *edgeSink
		if n := len(free); n > 0 {
			sink, free = free[n-1], free[:n-1]
		} else {
			sink = sinks.sink()
			all = append(all, sink)
		}
		mu.Unlock()
		for ; len(records) > 0; records = records[from:] {
			copy(sink.record[8:], records[8:from])
			e := binary.LittleEndian.Uint64(records)
			sink.put(uint32(e>>32), uint32(e))
		}
		mu.Lock()
		free = append(free, sink)
		mu.Unlock()
		return sinks.err()
	})
	for _, sink := range all {
		sink.flush()
	}
	err = sinks.close(rel, err)
	for _, bucket := range rel.Given {
		rel.Report.Edges += bucket.Bytes / int64(width)
	}
	return err
}
