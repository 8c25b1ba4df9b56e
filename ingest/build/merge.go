package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
)

// mergeEdges makes equal edges one in the relations that want it, and adds reverses. What is left
// goes to a log; where nodes keep their order it goes into the dataset instead.
func (b *builder) mergeEdges(s *sizes, do func(pass)) {
	for i, r := range b.read() {
		f := b.form(i)
		if !f.merge || b.Order == OrderOriginal {
			continue
		}
		edges := b.state.Relations[i].Report.EdgesRead
		if f.reverse {
			edges *= 2
		}
		n := s.stored[i]
		do(pass{name: "merge " + r.Key(), total: edges, unit: "edges",
			cost: cost{items: n, seconds: workerSeconds(n, rateMerge),
				spillRead: f.logBytes(s.edges[i]), spillWritten: n * int64(f.width)},
			run: func(ctx context.Context) error { return b.mergeRelation(ctx, i) }})
	}
}

func (b *builder) mergeRelation(ctx context.Context, i int) error {
	f, rel := b.form(i), &b.state.Relations[i]
	counts, err := b.countsOf(&f)
	if err != nil {
		return err
	}
	w, err := b.area.NewWriter(fmt.Sprintf("merged-%d", i), 1, extsort.MaxBlock)
	if err != nil {
		return err
	}
	err = b.sortBuckets(ctx, &f, rel, func(_ int, _ turn, m *merged) error {
		to := w.NewAppender() // a run is large
		at := 0
		var batch []extsort.Key
		for l, n := range m.lengths {
			for range n {
				k := extsort.MakeKey(m.list+uint32(l), m.items[at])
				if f.width == 8 {
					to.Put8(0, k)
				} else {
					to.Put(0, m.records[at*f.width:(at+1)*f.width])
				}
				if counts != nil {
					if batch = append(batch, k); len(batch) == countBatch {
						counts.add(batch)
						batch = batch[:0]
					}
				}
				at++
			}
		}
		if counts != nil {
			counts.add(batch)
		}
		to.Flush()
		return w.Err()
	})
	merged, err := extsort.CloseAfter(err, w.Close)
	if err != nil {
		return err
	}
	b.discard(rel.Given...)
	b.discard(rel.Reverse...)
	rel.Given, rel.Reverse, rel.Starts, rel.Merged = nil, nil, nil, merged
	return nil
}

// merged is sorted edges of some lists, those that are kept.
type merged struct {
	list    uint32
	lengths []uint32
	items   []uint32
	records []byte // of wider ones, one behind the other
}

// keyed is the edges as records of this width.
func (m *merged) keyed(width int) []byte {
	if width > 8 {
		return m.records
	}
	records, at := make([]byte, 0, 8*len(m.items)), 0
	for l, n := range m.lengths {
		for range n {
			records = binary.LittleEndian.AppendUint64(records, extsort.MakeKey(m.list+uint32(l), m.items[at]))
			at++
		}
	}
	return records
}

// turn waits until all buckets before this one are done, so that what follows is in order.
type turn func() error

// sortBuckets sorts the newest buckets of a relation, by several workers, and calls visit with what
// is to be kept: from one goroutine a bucket, and in order within it. It counts duplicates.
func (b *builder) sortBuckets(ctx context.Context, f *edgeForm, rel *relation, visit func(bucket int, wait turn, m *merged) error) error {
	given := rel.Given
	if rel.Stored != nil {
		given = rel.Stored
	}
	inputs := 1
	if rel.Reverse != nil {
		inputs = 2
	}
	ranges := extsort.NewRanges(rel.Starts, uint64(f.dst.count))
	s := b.sorting(f.width, inputs)
	var mu sync.Mutex
	done := sync.NewCond(&mu)
	turnOf, stopped := 0, false
	next := 0
	mergeNow := f.merge && rel.Stored == nil
	rel.Report.Edges = 0
	if !f.merge || mergeNow {
		rel.Report.Duplicates, rel.Report.ReverseAdded = 0, 0
	}
	s.fit(given, rel.Reverse, f.width, ranges)
	outer := ctx // lives on when a worker fails
	g, ctx := errgroup.WithContext(ctx)
	defer context.AfterFunc(ctx, func() {
		mu.Lock()
		stopped = true
		mu.Unlock()
		done.Broadcast()
	})()
	for range min(s.workers, max(1, len(given))) {
		g.Go(func() error {
			sorter, err := b.area.NewSorter(s.records, s.lists, f.width, inputs)
			if err != nil {
				return err
			}
			defer sorter.Close()
			c := combiner{form: *f, merge: mergeNow, folds: mergeNow && f.width > 8}
			c.join.form = &c.form
			for {
				mu.Lock()
				k := next
				next++
				mu.Unlock()
				if k >= len(given) {
					return nil
				}
				wait := func() error {
					mu.Lock()
					defer mu.Unlock()
					for turnOf < k && !stopped {
						done.Wait()
					}
					if turnOf < k {
						return ctx.Err()
					}
					return nil
				}
				lo, end := ranges.Bounds(k)
				buckets := []extsort.Bucket{given[k]}
				if inputs == 2 {
					buckets = append(buckets, rel.Reverse[k])
				}
				c.begin()
				if end > lo { // a type without nodes has one range, of none
					err = sorter.Runs(buckets, lo<<32, end<<32-1, func(runs []extsort.Run) error {
						if err := ctx.Err(); err != nil {
							return err
						}
						m, err := c.combine(runs)
						if err != nil {
							return err
						}
						b.addMeter(len(m.items))
						return visit(k, wait, m)
					})
				}
				if err == nil {
					if m := c.finish(); m != nil {
						err = visit(k, wait, m)
					}
				}
				if err == nil {
					err = wait()
				}
				if err != nil {
					return err
				}
				mu.Lock()
				turnOf = k + 1
				rel.Report.Duplicates += c.duplicates
				rel.Report.ReverseAdded += c.reversed
				rel.Report.Edges += c.kept
				mu.Unlock()
				done.Broadcast()
			}
		})
	}
	if err := g.Wait(); err != nil {
		return b.explain(outer, err)
	}
	if mergeNow {
		rel.Report.DuplicatesMerged = rel.Report.Duplicates
	}
	return nil
}

// combiner merges equal edges, or counts them, over the runs of a bucket. Edges with values are
// merged by fold.
type combiner struct {
	form       edgeForm
	merge      bool
	duplicates int64 // given edges that repeat a given one
	reversed   int64 // kept edges that only the given reverse implies
	kept       int64

	last    extsort.Key // of the edges so far
	any     bool
	m       merged
	items   []uint32
	records []byte

	// Of fold, see fold.go:
	folds   bool
	join    joiner
	held    []byte // record of the edge that is held back
	single  bool   // no other edge was joined to it
	side    int    // of it, while it is single
	end     uint32 // the list behind the last of the runs
	lengths []uint32
}

// begin turns to another bucket.
func (c *combiner) begin() { c.duplicates, c.reversed, c.kept, c.any = 0, 0, 0, false }

// combine takes a run of given edges and perhaps one of reverses, over the same lists. What it
// returns is good until the next call.
func (c *combiner) combine(runs []extsort.Run) (*merged, error) {
	if c.folds {
		return c.fold(runs)
	}
	given := &runs[0]
	c.m = merged{list: given.List, lengths: given.Lengths, items: given.Items}
	if len(runs) == 1 {
		c.one(given)
	} else {
		c.two(given, &runs[1])
	}
	c.kept += int64(len(c.m.items))
	if given.Width > 8 {
		c.m.records = c.records
	}
	return &c.m, nil
}

// one goes through given edges alone; equal ones follow each other, the first by number first.
func (c *combiner) one(r *extsort.Run) {
	at, out := 0, 0
	wide := r.Width > 8
	c.records = c.records[:0]
	for l, n := range r.Lengths {
		kept := uint32(0)
		for range n {
			k := extsort.MakeKey(r.List+uint32(l), r.Items[at])
			again := c.any && k == c.last
			c.last, c.any = k, true
			if again {
				c.duplicates++
			}
			if !again || !c.merge {
				r.Items[out] = r.Items[at]
				if wide { // then none is merged
					c.records = append(c.records, r.Record(at)...)
				}
				out++
				kept++
			}
			at++
		}
		r.Lengths[l] = kept
	}
	c.m.items = r.Items[:out]
}

// two merges given edges and reverses without values, and keeps one of equal ones.
func (c *combiner) two(g, r *extsort.Run) {
	if need := len(g.Items) + len(r.Items); cap(c.items) < need {
		c.items = make([]uint32, 0, need)
	}
	items := c.items[:0]
	i, j := 0, 0
	for l, n := range g.Lengths {
		iEnd, jEnd, before := i+int(n), j+int(r.Lengths[l]), len(items)
		for i < iEnd || j < jEnd {
			fromGiven := j == jEnd || i < iEnd && g.Items[i] <= r.Items[j]
			var u uint32
			if fromGiven {
				u = g.Items[i]
			} else {
				u = r.Items[j]
			}
			k := extsort.MakeKey(g.List+uint32(l), u)
			again := c.any && k == c.last
			c.last, c.any = k, true
			if !again {
				items = append(items, u)
			}
			if fromGiven {
				if again {
					c.duplicates++
				}
				i++
			} else {
				if !again {
					c.reversed++
				}
				j++
			}
		}
		g.Lengths[l] = uint32(len(items) - before)
	}
	c.items, c.m.items = items, items
}
