package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// Knowledge graphs have thousands of small relations. Files of their own would cost each of them
// some 8 ms for syncs and 8 bytes for each node, so small relations between the same types share
// sections: see store.Shared. What shares depends on the source alone, so that equal sources give
// equal datasets in any memory.

const (
	// sharesFrom is the least number of small relations between two types that share sections.
	// Fewer have sections of their own, which networks read a little faster.
	sharesFrom = 128
	// mostShared bounds the edges of a relation that shares sections, since it is sorted in memory:
	// 8 MiB of keys, and as much of held-out edges.
	mostShared = 1 << 20
)

// sharedGroup lists relations that share sections.
type sharedGroup struct {
	src, dst  string
	relations []int
}

// sharedGroups returns the groups. shared is true for the relations in them.
func (b *builder) sharedGroups(s *sizes) (groups []sharedGroup, shared []bool) {
	of := map[[2]string]int{}
	shared = make([]bool, len(b.schema.Relations))
	for i, r := range b.relations() {
		f := b.form(i)
		if len(f.columns) > 0 || r.Held != nil || s.edges[b.madeFrom(i)] > mostShared {
			continue
		}
		key := [2]string{r.Src, r.Dst}
		k, ok := of[key]
		if !ok {
			k, of[key] = len(groups), len(groups)
			groups = append(groups, sharedGroup{src: r.Src, dst: r.Dst})
		}
		groups[k].relations = append(groups[k].relations, i)
	}
	groups = slices.DeleteFunc(groups, func(g sharedGroup) bool { return len(g.relations) < b.sharesFrom() })
	for _, g := range groups {
		for _, i := range g.relations {
			shared[i] = true
		}
	}
	return groups, shared
}

func (b *builder) sharesFrom() int {
	if b.test.shares > 0 {
		return b.test.shares
	}
	return sharesFrom
}

// writeShared writes the relations of each group, with their held-out edges.
func (b *builder) writeShared(s *sizes, do func(pass)) {
	groups, _ := b.sharedGroups(s)
	for _, g := range groups {
		n, left := int64(0), int64(0)
		for _, i := range g.relations {
			n, left = n+s.stored[i], left+b.edgesLeft(i)
		}
		name := fmt.Sprintf("write %d relations of %s and %s", len(g.relations), g.src, g.dst)
		do(pass{name: name, total: left, unit: "edges",
			cost: cost{items: n, seconds: workerSeconds(n, rateWrite), spillRead: 8 * n, written: 16*n + 7*sectionOverhead},
			run:  func(ctx context.Context) error { return b.writeGroup(ctx, g) }})
	}
}

// splitOf returns the split of relation i as the dataset has it; nil where it has none.
func (b *builder) splitOf(i int) *edgeSplit {
	if i >= b.given || b.state.Relations[i].ReverseOf != "" {
		return nil // the split of the other relation holds out the same edges
	}
	return b.edgeSplits[i]
}

func (b *builder) writeGroup(ctx context.Context, group sharedGroup) error {
	split := slices.ContainsFunc(group.relations, func(i int) bool { return b.splitOf(i) != nil })
	w, err := b.w.NewShared(group.src, group.dst, split)
	if err != nil {
		return err
	}
	g := groupWriter{b: b, w: w, reports: b.report.EdgeSplits}
	for _, i := range group.relations {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := g.write(i); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	b.report.EdgeSplits = g.reports
	g.notes()
	for _, i := range group.relations {
		rel := &b.state.Relations[i]
		b.discard(slices.Concat(rel.Given, rel.Reverse, rel.Stored, rel.Held)...)
		rel.Given, rel.Reverse, rel.Stored, rel.Starts, rel.Held = nil, nil, nil, nil, nil
	}
	return nil
}

// groupWriter writes relations that share sections.
type groupWriter struct {
	b       *builder
	w       *store.SharedWriter
	reports []EdgeSplitReport
	again   int64    // held-out edges that are among the training edges of their relation
	lack    [2]int64 // relations without an edge in a part that should have some
	first   [2]string
	keys    []extsort.Key // memory
	held    []extsort.Key
	items   []store.NodeID
	dst     []store.NodeID
}

func (g *groupWriter) write(i int) error {
	b, f, rel := g.b, g.b.form(i), &g.b.state.Relations[i]
	logs := rel.Stored
	if logs == nil {
		logs = rel.Given
	}
	var err error
	if g.keys, err = g.load(g.keys[:0], &f, logs, nil, nil, nil); err != nil {
		return err
	}
	slices.Sort(g.keys)
	r := &rel.Report
	switch {
	case f.merge && rel.Stored == nil: // nodes keep their order, so nothing has been merged yet
		if err := g.merge(&f, rel); err != nil {
			return err
		}
	case !f.merge:
		r.Duplicates, r.ReverseAdded = 0, 0
		for k := 1; k < len(g.keys); k++ {
			if g.keys[k] == g.keys[k-1] {
				r.Duplicates++
			}
		}
	}
	r.Edges = int64(len(g.keys))
	split, name := b.splitOf(i), ""
	if split != nil {
		name = split.String()
	}
	if err := g.w.Begin(f.Name, f.reverse || rel.Symmetric, rel.ReverseOf, name); err != nil {
		return err
	}
	for at := 0; at < len(g.keys); {
		v := uint32(g.keys[at] >> 32)
		g.items = g.items[:0]
		for ; at < len(g.keys) && uint32(g.keys[at]>>32) == v; at++ {
			g.items = append(g.items, uint32(g.keys[at]))
		}
		if err := g.w.AppendList(v, g.items); err != nil {
			return err
		}
	}
	b.addMeter(len(g.keys))
	if f.made {
		r.Duplicates, r.ReverseAdded = 0, r.Edges // none was read
	}
	if split == nil {
		return nil
	}
	return g.split(i, split)
}

// merge makes one of equal keys, and adds reverses. It counts like a combiner.
func (g *groupWriter) merge(f *edgeForm, rel *relation) error {
	counts, err := g.b.countsOf(f)
	if err != nil {
		return err
	}
	r := &rel.Report
	given := len(g.keys)
	g.keys = slices.Compact(g.keys)
	r.Duplicates, r.ReverseAdded = int64(given-len(g.keys)), 0
	r.DuplicatesMerged = r.Duplicates
	if rel.Reverse != nil {
		given = len(g.keys)
		if g.keys, err = g.load(g.keys, f, rel.Reverse, nil, nil, nil); err != nil {
			return err
		}
		slices.Sort(g.keys)
		g.keys = slices.Compact(g.keys)
		r.ReverseAdded = int64(len(g.keys) - given)
	}
	if counts != nil {
		counts.add(g.keys)
	}
	return nil
}

// split writes the held-out edges of relation i, whose training edges are in keys.
func (g *groupWriter) split(i int, split *edgeSplit) error {
	f, rel := g.b.form(i), &g.b.state.Relations[i]
	f.reverse = false // they have been turned already, and are there once
	report := EdgeSplitReport{Name: split.String(), Relation: f.Key(), Train: rel.Report.Edges}
	for p, count := range []*int64{&report.Valid, &report.Test} {
		var keep func(rows extsort.Key) bool
		if rel.Symmetric {
			keep = func(rows extsort.Key) bool {
				u, v := uint32(rows), uint32(rows>>32)
				return u == v || !split.turned(&f, u, v)
			}
		}
		var err error
		g.held, err = g.load(g.held[:0], &f, rel.Held[p:p+1], f.src.storedIDs(), f.dst.storedIDs(), keep)
		if err != nil {
			return err
		}
		slices.Sort(g.held)
		if f.merge {
			g.held = slices.Compact(g.held)
		}
		g.items, g.dst = g.items[:0], g.dst[:0]
		for _, k := range g.held {
			if _, again := slices.BinarySearch(g.keys, k); again {
				g.again++
			}
			g.items, g.dst = append(g.items, uint32(k)), append(g.dst, uint32(k>>32))
		}
		if err := g.w.AppendHeld(store.HeldPart(p), g.items, g.dst); err != nil {
			return err
		}
		if *count = int64(len(g.held)); *count == 0 && split.shares[1+p] > 0 {
			if g.lack[p]++; g.lack[p] == 1 {
				g.first[p] = f.Key()
			}
		}
	}
	g.reports = append(g.reports, report)
	return nil
}

// load appends the keys of the records in buckets. If src and dst are set, they map rows to stored
// ids. keep selects keys by their rows; nil keeps all.
func (g *groupWriter) load(
	keys []extsort.Key, f *edgeForm, buckets []extsort.Bucket, src, dst []store.NodeID, keep func(rows extsort.Key) bool,
) ([]extsort.Key, error) {
	total := int64(0)
	for _, bucket := range buckets {
		total += bucket.Bytes
	}
	if total == 0 {
		return keys, nil
	}
	buf, err := extsort.Buffer(f.width, int(min(extsort.RoundUp(total), streamBytes)))
	if err != nil {
		return nil, err
	}
	defer buf.Close()
	for _, bucket := range buckets {
		err := g.b.area.Each(bucket, f.width, buf.Bytes(), func(records []byte) error {
			for ; len(records) > 0; records = records[f.width:] {
				k := binary.LittleEndian.Uint64(records)
				if keep == nil || keep(k) {
					keys = append(keys, extsort.MakeKey(storedID(dst, uint32(k>>32)), storedID(src, uint32(k))))
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return keys, nil
}

// notes adds one note for all relations of the group, where other relations have a note each.
func (g *groupWriter) notes() {
	if g.again > 0 {
		g.b.note("%d held-out edges are among the training edges of their relation as well: "+
			"an edge that is there twice may be in two parts", g.again)
	}
	for p, n := range g.lack {
		if n > 0 {
			g.b.note("%d relations have no %v edges in their split, the first of them %s: they have few, or many of one time",
				n, store.HeldPart(p), g.first[p])
		}
	}
}
