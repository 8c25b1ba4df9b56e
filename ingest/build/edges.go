package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// The way of an edge, each step a pass over all edges of a relation that reads what the one before
// wrote:
//
//	read       the source's edges, by rows: a log, or parted by destination where they are to be merged or are in order;
//	           those that are held out leave here: see edgesplit.go
//	merge      equal edges become one, and reverses are added (undirected)
//	reverse    another relation of the edges the other way round, where that is asked for: see reverse.go
//	renumber   rows become stored ids, parted by destination
//	write      sorted, into the dataset
//
// Between read and the others the order of nodes is found. Records are a [extsort.Key], destination
// and source; where something rides on an edge, its number as read and its columns follow.

// relation is one relation under way, as the journal keeps it.
type relation struct {
	Report RelationReport `json:"report"`
	// Given and Reverse are the edges as read, by rows: one log each, or parted at Starts. There
	// are reverses only where they are to be merged with the others.
	Given   []extsort.Bucket `json:"given,omitempty"`
	Reverse []extsort.Bucket `json:"reverse,omitempty"`
	Merged  []extsort.Bucket `json:"merged,omitempty"` // by rows, a log
	Stored  []extsort.Bucket `json:"stored,omitempty"` // by stored ids, parted
	Starts  []uint32         `json:"starts,omitempty"` // of the parts of the newest of these
	Keyed   []extsort.Bucket `json:"keyed,omitempty"`  // before ids are resolved: see join.go
	Held    []extsort.Bucket `json:"held,omitempty"`   // by rows, a log of each part that an edge split holds out
	Bounds  [2]uint64        `json:"bounds"`           // of a split by time, once its column has been read
	Read    bool             `json:"read,omitempty"`

	// See reverse.go.
	Absent    bool   `json:"absent,omitempty"`     // there will be no such relation: the source has its edges
	Symmetric bool   `json:"symmetric,omitempty"`  // it is its own reverse as it was read
	ReverseOf string `json:"reverse_of,omitempty"` // the Key of the relation that it is the reverse of

	Stream *streamState `json:"stream,omitempty"` // nil where the edges are no events
}

// edgeForm describes the edges that the builder makes of relation i.
type edgeForm struct {
	ingest.Relation
	src, dst *nodes
	reverse  bool       // add reverses
	merge    bool       // keep one of equal edges; so it is with reverses
	rule     Duplicates // for their values
	tabled   bool       // edges have rows of features
	made     bool       // the relation is made from another, as its reverse
	ids      bool       // keep numbers
	parted   bool       // the last byte of a record is the Part that the source has for the edge
	width    int        // of a record
	columns  []store.ColumnSpec
}

func (b *builder) form(i int) edgeForm {
	r := b.schema.Relations[i]
	f := edgeForm{Relation: r, src: b.typeOf(r.Src), dst: b.typeOf(r.Dst), width: 8}
	f.made = i >= b.given
	f.reverse = b.Undirected && r.Src == r.Dst
	f.merge = (f.reverse || b.merges()) && !f.made && f.Stream == nil // the other's are merged
	f.rule, f.tabled = b.rule(), b.hasEdgeTable(b.schema.Relations[b.madeFrom(i)].Key())
	f.ids = f.Stream == nil && (b.EdgeIDs || f.tabled)
	f.parted = r.Parted && !f.made
	if f.ids || len(r.Columns) > 0 || f.parted {
		f.width += 8 // the number, which tells equal edges apart
	}
	if f.parted {
		f.width++
	}
	if f.ids {
		f.columns = append(f.columns, store.ColumnSpec{Name: store.EdgeID, Elem: store.U64})
	}
	for _, c := range r.Columns {
		f.width += c.Elem.Size()
		f.columns = append(f.columns, store.ColumnSpec{Name: c.Name, Elem: c.Elem})
	}
	return f
}

// logBytes returns the bytes of so many edges as they are read, with room for their reverses.
func (f *edgeForm) logBytes(edges int64) int64 {
	if f.reverse {
		edges *= 2
	}
	return edges * int64(f.width)
}

// log returns the buckets of a relation's edges: the merged ones if Build merges duplicates.
func (f *edgeForm) log(r *relation) []extsort.Bucket {
	if f.merge {
		return r.Merged
	}
	return r.Given
}

func (b *builder) hasEdgeTable(key string) bool {
	return slices.ContainsFunc(b.schema.Tables, func(t ingest.Table) bool { return t.Relation == key })
}

// edgeSink takes edges by rows to where they are sorted. One goroutine uses it; the sinks of one
// relation share an edgeSinks.
type edgeSink struct {
	*edgeSinks
	given, reverse *extsort.Appender
	held           *extsort.Appender
	ascending      int64 // not yet added to edgeSinks.ascending
	record         []byte
	counted        []extsort.Key // edges that are not yet in times and degree
}

// countBatch is the number of edges counted under one lock. Atomic counts would wait for a cache
// line each, one after the other; plain ones overlap.
const countBatch = 4096

// edgeSinks is the state that the sinks of a relation share.
type edgeSinks struct {
	b              *builder
	form           edgeForm
	ranges         *extsort.Ranges // nil: a log
	given, reverse *extsort.Writer
	counts         *counts // when nothing is merged, which comes before counting; else nil
	loops          atomic.Int64
	pairs          *pairSample     // nil: pairs are not sampled
	ascending      atomic.Int64    // edges from a smaller row to a larger one; counted with pairs
	split          *edgeSplit      // nil: none is held out
	held           *extsort.Writer // of it, by store.HeldPart
	heldOut        atomic.Int64
}

// newEdgeSinks begins the buckets of relation i. edges may be -1.
func (b *builder) newEdgeSinks(i int, edges int64) (*edgeSinks, error) {
	s := &edgeSinks{b: b, form: b.form(i)}
	if b.samplesPairs(i) {
		s.pairs = newPairSample()
	}
	var err error
	if !s.form.merge {
		if s.counts, err = b.countsOf(&s.form); err != nil {
			return nil, err
		}
	}
	inputs := 1
	if s.form.reverse {
		inputs = 2
	}
	count, block := 1, extsort.MaxBlock
	if edges >= 0 && edges < fewEdges {
		block = minPartBlock
	}
	if s.form.Stream == nil && (s.form.merge || b.Order == OrderOriginal) {
		if edges >= 0 && b.SelfLoops == SelfLoopsAdd {
			edges += int64(s.form.dst.count)
		}
		count, block = b.spread(edges, int64(s.form.dst.count), s.form.width, inputs)
		s.ranges = extsort.EvenRanges(uint64(s.form.dst.count), count)
		count = s.ranges.Len()
	}
	if s.given, err = b.area.NewWriter(fmt.Sprintf("read-%d", i), count, block); err != nil {
		return nil, err
	}
	if s.form.reverse {
		if s.reverse, err = b.area.NewWriter(fmt.Sprintf("reverse-%d", i), count, block); err != nil {
			_, _ = s.given.Close()
			return nil, err
		}
	}
	if s.split = b.edgeSplits[i]; s.split != nil {
		if s.held, err = b.area.NewWriter(fmt.Sprintf("held-%d", i), 2, block); err != nil {
			_, _ = s.given.Close()
			if s.reverse != nil {
				_, _ = s.reverse.Close()
			}
			return nil, err
		}
	}
	return s, nil
}

func (s *edgeSinks) sink() *edgeSink {
	k := &edgeSink{edgeSinks: s, given: s.given.NewAppender(), record: make([]byte, s.form.width)}
	if s.reverse != nil {
		k.reverse = s.reverse.NewAppender()
	}
	if s.split != nil {
		k.held = s.held.NewAppender()
	}
	return k
}

// add takes u→v, edge k of a chunk.
func (s *edgeSink) add(u, v uint32, c *ingest.EdgeChunk, k int) {
	s.form.pack(s.record[8:], c, k)
	s.addPacked(u, v, nil)
}

// addPacked is add with the rest of the record packed in tail; nil: the record has it already.
func (s *edgeSink) addPacked(u, v uint32, tail []byte) {
	if u == v && s.form.src == s.form.dst {
		s.loops.Add(1)
		if s.b.SelfLoops != SelfLoopsKeep {
			return
		}
	}
	if s.pairs != nil && u != v {
		s.pairs.add(u, v)
		if u < v {
			s.ascending++
		}
	}
	if tail != nil {
		copy(s.record[8:], tail)
	}
	if s.split != nil {
		if part := s.split.part(&s.form, u, v, s.record[8:]); part > 0 {
			s.putHeld(part-1, u, v)
			return
		}
	}
	s.put(u, v)
}

// pack writes what rides on edge k of a chunk: its number as read, the bits of its columns, and its
// part.
func (f *edgeForm) pack(dst []byte, c *ingest.EdgeChunk, k int) {
	if f.width == 8 {
		return
	}
	binary.LittleEndian.PutUint64(dst, uint64(c.First)+uint64(k))
	at := 8
	for i, column := range f.Columns {
		at += putBits(dst[at:], column.Elem.Size(), c.Values[i][k])
	}
	if f.parted {
		dst[at] = byte(c.Parts[k])
	}
}

// put takes u→v with what is in the record, whatever the policy on self loops.
func (s *edgeSink) put(u, v uint32) {
	if s.counts != nil {
		if s.counted = append(s.counted, extsort.MakeKey(v, u)); len(s.counted) == countBatch {
			s.counts.add(s.counted)
			s.counted = s.counted[:0]
		}
	}
	part, back := 0, 0
	if s.ranges != nil {
		part = s.ranges.Find(v)
		if s.reverse != nil {
			back = s.ranges.Find(u)
		}
	}
	if s.form.width == 8 {
		s.given.Put8(part, extsort.MakeKey(v, u))
		if s.reverse != nil && u != v {
			s.reverse.Put8(back, extsort.MakeKey(u, v))
		}
		return
	}
	binary.LittleEndian.PutUint64(s.record, extsort.MakeKey(v, u))
	s.given.Put(part, s.record)
	if s.reverse != nil && u != v {
		binary.LittleEndian.PutUint64(s.record, extsort.MakeKey(u, v))
		s.reverse.Put(back, s.record)
	}
}

// getBits reads what putBits wrote.
func getBits(src []byte, size int) uint64 {
	switch size {
	case 1:
		return uint64(src[0])
	case 4:
		return uint64(binary.LittleEndian.Uint32(src))
	}
	return binary.LittleEndian.Uint64(src)
}

// putBits writes the low bytes of x, size of them.
func putBits(dst []byte, size int, x uint64) int {
	switch size {
	case 1:
		dst[0] = byte(x)
	case 2:
		binary.LittleEndian.PutUint16(dst, uint16(x))
	case 4:
		binary.LittleEndian.PutUint32(dst, uint32(x))
	default:
		binary.LittleEndian.PutUint64(dst, x)
	}
	return size
}

func (s *edgeSink) flush() {
	if s.counts != nil {
		s.counts.add(s.counted)
		s.counted = s.counted[:0]
	}
	s.edgeSinks.ascending.Add(s.ascending)
	s.ascending = 0
	s.given.Flush()
	if s.reverse != nil {
		s.reverse.Flush()
	}
	if s.held != nil {
		s.held.Flush()
	}
}

// err is the first error of a write so far.
func (s *edgeSinks) err() error {
	for _, w := range []*extsort.Writer{s.given, s.reverse, s.held} {
		if w != nil && w.Err() != nil {
			return w.Err()
		}
	}
	return nil
}

// close ends the relation's reading: all sinks are flushed. Loops are added last, where they are
// asked for.
func (s *edgeSinks) close(r *relation, failed error) error {
	if failed == nil && s.b.SelfLoops == SelfLoopsAdd && s.form.src == s.form.dst && !s.form.made {
		sink := s.sink()
		for v := range uint32(s.form.dst.count) {
			sink.put(v, v)
		}
		sink.flush()
		r.Report.SelfLoopsAdded = int64(s.form.dst.count)
	}
	var err error
	r.Given, err = s.given.Close()
	for _, more := range []struct {
		w  *extsort.Writer
		to *[]extsort.Bucket
	}{{s.reverse, &r.Reverse}, {s.held, &r.Held}} {
		if more.w != nil {
			var werr error
			if *more.to, werr = more.w.Close(); err == nil {
				err = werr
			}
		}
	}
	if failed != nil {
		return failed
	}
	r.Report.SelfLoops, r.Report.HeldOut = s.loops.Load(), s.heldOut.Load()
	if s.pairs != nil {
		r.Report.PairsCompared, r.Report.PairsBothWays = s.pairs.counts()
		r.Report.EdgesAscending = s.ascending.Load()
	}
	if s.b.SelfLoops != SelfLoopsKeep {
		r.Report.SelfLoopsDropped = r.Report.SelfLoops
	}
	if s.ranges != nil {
		r.Starts = s.ranges.Starts()
	}
	r.Read = true
	return err
}

// readEdges reads every relation.
func (b *builder) readEdges(s *sizes, do func(pass)) {
	for i, r := range b.read() {
		form := b.form(i)
		if form.own() {
			continue // see join.go
		}
		n := s.edges[i]
		do(pass{name: "read " + r.Key(), total: r.Edges, unit: "edges",
			cost: cost{items: n, seconds: float64(n) / rateRead, spillWritten: form.logBytes(n)},
			run:  func(ctx context.Context) error { return b.readRelation(ctx, i) }})
	}
}

// readRelation reads relation i, whose ends are rows.
func (b *builder) readRelation(ctx context.Context, i int) error {
	rel := &b.state.Relations[i]
	rel.Report = RelationReport{Key: b.schema.Relations[i].Key()}
	sinks, err := b.newEdgeSinks(i, b.schema.Relations[i].Edges)
	if err != nil {
		return err
	}
	sink := sinks.sink()
	form := &sinks.form
	src, dst := uint64(form.src.count), uint64(form.dst.count)
	err = b.eachEdges(ctx, i, &rel.Report, func(c *ingest.EdgeChunk) error {
		for k, u := range c.Src {
			v := c.Dst[k]
			if uint64(u) >= src || uint64(v) >= dst {
				if err := b.unknownEnd(form, c, k); err != nil {
					return err
				}
				rel.Report.Skipped++
				continue
			}
			sink.add(uint32(u), uint32(v), c, k)
		}
		return sinks.err()
	})
	sink.flush()
	return sinks.close(rel, err)
}

// row is the word for an edge in messages.
func (f *edgeForm) row() string {
	if f.Stream != nil {
		return "event"
	}
	return "edge"
}

// unknownEnd is the error of edge k of a chunk, one of whose ends is no row; nil when it may be
// passed over.
func (b *builder) unknownEnd(form *edgeForm, c *ingest.EdgeChunk, k int) error {
	end, n, id := "source", form.src, c.Src[k]
	if id >= 0 && id < int64(n.count) {
		end, n, id = "destination", form.dst, c.Dst[k]
	}
	err := fmt.Errorf("%s: %s %s", c.Edge(k, form.row()), end, n.unknown(fmt.Sprint(id)))
	return b.skip(err)
}

// offerSkip adds to the error of a bad edge how to leave it out.
func offerSkip(err error) error {
	sep := ";"
	if strings.HasSuffix(err.Error(), "?") {
		sep = ""
	}
	return fmt.Errorf("%w%s {skip_bad} N passes over up to N such edges", err, sep)
}

// skip counts a bad edge. It returns err once Options.SkipBad edges were passed over.
func (b *builder) skip(err error) error {
	if b.SkipBad == 0 {
		return offerSkip(err)
	}
	if b.state.Skipped >= b.SkipBad {
		return fmt.Errorf("%w; %d bad edges were passed over before it, which is all that {skip_bad} allows", err, b.state.Skipped)
	}
	b.state.Skipped++
	if b.state.FirstSkipped == "" {
		b.state.FirstSkipped = err.Error()
	}
	return nil
}

// eachEdges streams relation i and checks the form of its chunks and their number.
func (b *builder) eachEdges(ctx context.Context, i int, rep *RelationReport, visit func(c *ingest.EdgeChunk) error) error {
	r := b.schema.Relations[i]
	var from origin
	stream, last := b.state.Relations[i].Stream, math.Inf(-1)
	if stream != nil {
		stream.Ordered = true
	}
	err := b.src.Edges(ctx, i, func(c ingest.EdgeChunk) error {
		n := c.Len()
		if err := from.follow(ctx, c.Place, n); err != nil {
			return err
		}
		fits := func(kind ingest.IDs, ids []int64, texts *ingest.Texts) bool {
			if kind == ingest.TextIDs {
				return texts.Len() == n
			}
			return len(ids) == n
		}
		ok := fits(b.typeOf(r.Src).kind, c.Src, &c.SrcTexts) && fits(b.typeOf(r.Dst).kind, c.Dst, &c.DstTexts) && len(c.Values) == len(r.Columns)
		for _, column := range c.Values {
			ok = ok && len(column) == n
		}
		if r.Parted {
			ok = ok && len(c.Parts) == n && !slices.ContainsFunc(c.Parts, func(p ingest.Part) bool { return p > ingest.Test })
		}
		if !ok {
			return fmt.Errorf("%s: the reader gave edges with parts of different lengths; this is a fault of the reader, please report it", c.File)
		}
		if stream != nil {
			if err := stream.checkTimes(&r, &c, &last); err != nil {
				return err
			}
		}
		rep.EdgesRead += int64(n)
		b.meter.add(n)
		return visit(&c)
	})
	if err != nil {
		return err
	}
	if want := r.Edges; want >= 0 && want != rep.EdgesRead {
		return fmt.Errorf("%s: %d edges, and %d are declared; is the file complete?", from.name(rep.Key), rep.EdgesRead, want)
	}
	return nil
}
