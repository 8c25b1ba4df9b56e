package ingest

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// The way of an event, each step a pass:
//
//	read, resolve   as edges are: see edges.go and join.go. Its number as read, its time, label and part ride on it
//	sort            into runs by time, those of one time by number; a log that is in that order already is the one run
//	write           the runs are merged into the dataset; and of each event two halves are parted by the node that they are of,
//	                sorted, and written behind it as the lists of nodes
//
// Tables of events follow in the order of events: where that is not the order in which they were read, the write pass leaves the place of
// each for them.

// defaultStreamSplit is that of TGN, DyGLib and TGB.
var defaultStreamSplit = splitPlan{kind: "time", fractions: [3]float64{0.7, 0.15, 0.15}}

// eventTable is the name of a table of made features of events.
const eventTable = "feat"

// streams says that the source's edges are events. Such a source has no other relations.
func (b *builder) streams() bool { return b.schema.streams() }

func (s *Schema) streams() bool { return len(s.Relations) > 0 && s.Relations[0].Stream != nil }

// checkStreams refuses what streams are not made of, and options that mean nothing for them.
func (b *builder) checkStreams() error {
	names := map[string]bool{}
	for _, r := range b.schema.Relations {
		if (r.Stream != nil) != b.streams() {
			return errors.New("the source has streams and relations, and a dataset is made of one of the two; this is a fault of the reader, please report it")
		}
		if r.Stream == nil {
			continue
		}
		want := []EdgeColumn{{r.Stream.Time, store.F64}}
		if r.Stream.Label != "" {
			want = append(want, EdgeColumn{r.Stream.Label, store.I32})
		}
		if !slices.Equal(r.Columns, want) || r.Held != nil || names[r.Name] {
			return fmt.Errorf("stream %s: it has a time and perhaps a label, and a name of its own; this is a fault of the reader, please report it", r.Name)
		}
		names[r.Name] = true
	}
	if !b.streams() {
		switch {
		case b.split.kind == "time":
			return errors.New("--split time: the source has no stream of events; choose another split, or read a stream: gnnstore ingest events")
		case b.EdgeFeatures != "" || b.TimeScale != 0:
			return errors.New("--edge-features random:D and --time-scale: they are for streams of events, and the source has none; leave them out")
		}
		return nil
	}
	for _, c := range []struct {
		is   bool
		flag string
	}{
		{b.Undirected, "--undirected"}, {b.Reverse, "--reverse"}, {b.SelfLoops != SelfLoopsKeep, "--self-loops"}, {b.EdgeIDs, "--edge-ids"},
		{b.Duplicates != DuplicatesKeep, "--duplicates"}, {len(b.EdgeSplit) > 0, "--edge-split"},
	} {
		if c.is {
			return fmt.Errorf("%s: it is about edges; the source is a stream, whose events are kept as they are, at both of their ends; leave it out", c.flag)
		}
	}
	if b.Order == OrderAccess {
		return errors.New("--order access: it follows the edges of relations, and the source is a stream of events; degree numbers nodes by their events")
	}
	if k := b.features.kind; k == "fastrp" || k == "mean" || k == "degree" {
		return fmt.Errorf("--features %s: it is made of the edges of relations, and the source is a stream of events; choose random:D or none", b.Features)
	}
	for _, t := range b.schema.Tables {
		if b.EdgeFeatures != "" && t.Relation != "" {
			return fmt.Errorf("--edge-features %s: the source has features of its events, %s; leave it out", b.EdgeFeatures, t.Name)
		}
	}
	return nil
}

// chooseStreamSplit settles how streams are split.
func (b *builder) chooseStreamSplit() error {
	parted := true
	for _, r := range b.schema.Relations {
		parted = parted && r.Parted
	}
	switch b.split.kind {
	case "":
		if b.split = (splitPlan{kind: "given"}); !parted {
			b.split = defaultStreamSplit
			b.note("the source has no split: made %v, by quantiles of the times", b.split)
		}
	case "given":
		if !parted {
			return errors.New("--split given: the source has no split; choose time:a/b/c with the parts' shares, as in time:0.7/0.15/0.15")
		}
	case "time":
		if parted {
			b.drop("the source's split: --split %v takes its place", b.split)
		}
	default:
		return fmt.Errorf("--split %v: it parts nodes, and the source is a stream of events, which is parted by time; choose time:0.7/0.15/0.15", b.split)
	}
	return nil
}

// streamState is what the passes over a stream leave for later ones.
type streamState struct {
	Ordered bool             `json:"ordered"` // as read, it is in the order of time
	Runs    []extsort.Bucket `json:"runs,omitempty"`
	// Places are the events' numbers and one, by their numbers as read, four bytes each; 0 is one that was passed over. There are none
	// where nobody asks, or nothing changes.
	Places []extsort.Bucket `json:"places,omitempty"`
	Report StreamReport     `json:"report"`
}

// timeBits are the bits of a time as events carry it: of the two zeros, one.
func timeBits(x float64) uint64 { return math.Float64bits(x + 0) }

// checkTimes refuses times that are none, and numbers the stream cannot have; it notices what is out of order.
func (s *streamState) checkTimes(r *Relation, c *EdgeChunk, last *float64) error {
	if c.First+int64(c.Len()) > store.MaxEvents {
		return fmt.Errorf("%s: stream %s: %d events and more; they are numbered in 32 bits, so at most %d; cut it into several datasets",
			c.File, r.Name, c.First+int64(c.Len()), uint32(store.MaxEvents))
	}
	times := c.Values[0]
	for k, bits := range times {
		t := math.Float64frombits(bits)
		if t-t != 0 {
			return fmt.Errorf("%s: event %d (counting from 0): its time is %v, and times are finite numbers; mend it", c.File, c.First+int64(k), t)
		}
		s.Ordered = s.Ordered && t >= *last
		*last, times[k] = t, timeBits(t)
	}
	return nil
}

// event is the record of one: its ends by rows, its number as read, its time, and perhaps its label and part.
type event []byte

func (e event) src() uint32    { return binary.LittleEndian.Uint32(e) }
func (e event) dst() uint32    { return binary.LittleEndian.Uint32(e[4:]) }
func (e event) number() uint64 { return binary.LittleEndian.Uint64(e[8:]) }
func (e event) time() uint64   { return binary.LittleEndian.Uint64(e[16:]) } // its bits
func (e event) label() int32   { return int32(binary.LittleEndian.Uint32(e[24:])) }
func (e event) part() Part     { return Part(e[len(e)-1]) }

// byTime is the order of events: by time, and of one time as read.
func byTime(record []byte) (first, second uint64) {
	return timeKey(store.F64, event(record).time()), event(record).number()
}

func sortEventsPass(r Relation) string  { return "sort " + r.Name }
func writeEventsPass(r Relation) string { return "write " + r.Name }

// isRun says that the log of a stream is in order, as it is where ends are rows.
func (s *streamState) isRun(f *edgeForm) bool { return s.Ordered && !f.own() }

// writeStreams sorts and writes every stream.
func (b *builder) writeStreams(ctx context.Context) error {
	for i, r := range b.read() {
		if r.Stream == nil {
			continue
		}
		rel := &b.state.Relations[i]
		f := b.form(i)
		events := rel.Report.EdgesRead - rel.Report.Skipped
		if events == 0 {
			return fmt.Errorf("stream %s: there is no event in it; is %s complete?", r.Name, b.schema.Name)
		}
		if !rel.Stream.isRun(&f) {
			if err := b.pass(ctx, sortEventsPass(r), events, "events", func() error { return b.sortEvents(ctx, i) }); err != nil {
				return err
			}
		}
		if err := b.pass(ctx, writeEventsPass(r), 3*events, "events and ends", func() error { return b.writeStream(ctx, i) }); err != nil {
			return err
		}
	}
	return nil
}

// sortEvents makes runs of the log.
func (b *builder) sortEvents(ctx context.Context, i int) (err error) {
	f, rel := b.form(i), &b.state.Relations[i]
	memory := b.room()
	if b.test.records > 0 {
		memory = b.test.records * int64(f.width)
	}
	rel.Stream.Runs, err = b.area.SortRuns(ctx, fmt.Sprintf("run-%d", i), rel.Given, f.width, memory, workers(), byTime, b.addMeter)
	if err != nil {
		return err
	}
	b.discard(rel.Given...)
	rel.Given = nil
	return nil
}

// streamWriter is a stream on its way into the dataset.
type streamWriter struct {
	b        *builder
	form     edgeForm
	rel      *relation
	runs     []extsort.Bucket
	out      *store.StreamWriter
	src, dst []store.NodeID // stored ids by row; nil: the rows
	behind   uint32         // nodes before the first place of a destination
	places   uint64
	report   *StreamReport
	split    streamSplit
	memory   int64 // of the placer of events

	// Of the batch that is gathered.
	sources, destinations []store.NodeID
	times                 []float64
	labels                []int32
}

// eventBatch is how many events are written at a time.
const eventBatch = 1 << 14

// halfBytes is a half-edge on its way: place and event, the time, the node at the other end.
const halfBytes = 20

func (b *builder) writeStream(ctx context.Context, i int) (err error) {
	rel := &b.state.Relations[i]
	w := &streamWriter{b: b, form: b.form(i), rel: rel, runs: rel.Given, report: &rel.Stream.Report}
	if rel.Stream.Runs != nil {
		w.runs = rel.Stream.Runs
	}
	f := &w.form
	w.src, w.dst, w.places = f.src.storedIDs(), f.dst.storedIDs(), uint64(f.src.count)
	if f.src != f.dst {
		w.behind, w.places = uint32(f.src.count), w.places+uint64(f.dst.count)
	}
	if w.places > math.MaxUint32 {
		return fmt.Errorf("stream %s: %d nodes of types %s and %s; both together are numbered in 32 bits, so at most %d", f.Name, w.places, f.Src, f.Dst, uint32(math.MaxUint32))
	}
	*w.report = StreamReport{Name: f.Name, Src: f.Src, Dst: f.Dst, Skipped: rel.Report.Skipped, SelfLoops: rel.Report.SelfLoops}
	for _, run := range w.runs {
		w.report.Events += run.Bytes / int64(f.width)
	}
	w.split = b.newStreamSplit(w.report.Events)
	w.out, err = b.w.AddStream(store.StreamSpec{Name: f.Name, Src: f.Src, Dst: f.Dst, Labels: f.Stream.Label != ""})
	if err != nil {
		return err
	}
	halves, starts, err := w.writeEvents(ctx, i)
	if err != nil {
		return err
	}
	defer b.discard(halves...)
	gap, err := w.writeLists(ctx, i, halves, starts)
	if err != nil {
		return err
	}
	w.scale(gap)
	if w.report.Split = w.split.report(); w.report.Split.Valid == 0 || w.report.Split.Test == 0 {
		b.note("stream %s: its split %s leaves %d events to validate and %d to test; those of one time stay together", f.Name, w.report.Split.Name,
			w.report.Split.Valid, w.report.Split.Test)
	}
	w.report.Labels = f.Stream.Label != ""
	classes := max(f.Stream.Classes, len(f.Stream.ClassNames))
	if w.report.Labels && classes == 0 {
		classes = w.report.Classes
	}
	w.report.Classes, w.report.ClassNames = classes, f.Stream.ClassNames
	if err := w.out.Close(store.StreamEnd{TimeScale: w.report.TimeScale, Split: w.report.Split, Classes: classes, ClassNames: f.Stream.ClassNames}); err != nil {
		return err
	}
	b.discard(rel.Given...)
	b.discard(rel.Stream.Runs...)
	rel.Given, rel.Stream.Runs = nil, nil
	return nil
}

// writeEvents merges the runs into the dataset, and parts the halves of events by their nodes: the parts begin at starts.
func (w *streamWriter) writeEvents(ctx context.Context, i int) (halves []extsort.Bucket, starts []uint32, err error) {
	b := w.b
	b.halved = true
	defer func() { b.halved = false }()
	buckets, block := b.spread(2*w.report.Events, int64(w.places), halfBytes, 1)
	ranges, err := b.sampleRanges(w.runs, w.form.width, w.places, buckets, b.sorting(halfBytes, 1).lists, func(record []byte, sample []uint32) []uint32 {
		e := event(record)
		return append(sample, storedID(w.src, e.src()), w.behind+storedID(w.dst, e.dst()))
	})
	if err != nil {
		return nil, nil, err
	}
	parts, err := b.area.NewWriter(fmt.Sprintf("halves-%d", i), ranges.Len(), block)
	if err != nil {
		return nil, nil, err
	}
	to := parts.NewAppender()
	room := b.room()
	var places *extsort.Placer
	if !w.rel.inOrder() && b.hasEdgeTable(w.form.Key()) {
		room /= 2
		if w.memory, err = b.forPlacer(w.rel.Report.EdgesRead, rowBytes, room); err == nil {
			places, err = b.area.NewPlacer(fmt.Sprintf("places-%d", i), w.rel.Report.EdgesRead, rowBytes, w.memory)
		}
		if err != nil {
			_, _ = parts.Close()
			return nil, nil, err
		}
		defer places.Free()
	}
	number := uint32(0)
	var half [halfBytes]byte
	var place [rowBytes]byte
	put := func(at, other uint32, bits uint64) {
		binary.LittleEndian.PutUint64(half[:], extsort.MakeKey(at, number))
		binary.LittleEndian.PutUint64(half[8:], bits)
		binary.LittleEndian.PutUint32(half[16:], other)
		to.Put(ranges.Find(at), half[:])
	}
	err = b.area.MergeRuns(w.runs, w.form.width, room, byTime, func(record []byte) error {
		e := event(record)
		u, v, bits := storedID(w.src, e.src()), storedID(w.dst, e.dst()), e.time()
		put(u, v, bits)
		put(w.behind+v, u, bits)
		if places != nil {
			binary.LittleEndian.PutUint32(place[:], number+1)
			places.Put(uint32(e.number()), place[:])
		}
		if err := w.add(e, u, v, math.Float64frombits(bits), int64(number)); err != nil {
			return err
		}
		if number++; number%eventBatch == 0 {
			return errors.Join(w.flush(), parts.Err(), ctx.Err())
		}
		return nil
	})
	if err == nil {
		err = w.flush()
	}
	to.Flush()
	halves, cerr := parts.Close()
	if err = cmp.Or(err, cerr); err == nil && places != nil {
		w.rel.Stream.Places, err = w.keepPlaces(i, places)
	}
	return halves, ranges.Starts(), err
}

// inOrder says that events are numbered as they were read.
func (r *relation) inOrder() bool { return r.Stream.Ordered && r.Report.Skipped == 0 }

// add gathers event number n.
func (w *streamWriter) add(e event, u, v store.NodeID, t float64, n int64) error {
	w.sources, w.destinations, w.times = append(w.sources, u), append(w.destinations, v), append(w.times, t)
	if w.form.Stream.Label != "" {
		label := max(e.label(), -1)
		w.labels = append(w.labels, label)
		w.report.Classes = max(w.report.Classes, int(label)+1)
	}
	if n == 0 {
		w.report.First = t
	}
	w.report.Last = t
	part := Train
	if w.form.parted {
		part = e.part()
	}
	if err := w.split.add(n, t, part); err != nil {
		return fmt.Errorf("stream %s: event %d (counting from 0, as read): %w", w.form.Name, e.number(), err)
	}
	return nil
}

func (w *streamWriter) flush() error {
	err := w.out.Append(w.sources, w.destinations, w.times, w.labels)
	w.b.addMeter(len(w.times))
	w.sources, w.destinations, w.times, w.labels = w.sources[:0], w.destinations[:0], w.times[:0], w.labels[:0]
	return err
}

// keepPlaces makes a log of them, in the order of events as read.
func (w *streamWriter) keepPlaces(i int, places *extsort.Placer) ([]extsort.Bucket, error) {
	b, events := w.b, w.rel.Report.EdgesRead
	buckets, err := places.Close()
	if err != nil {
		return nil, err
	}
	log, err := b.area.NewWriter(fmt.Sprintf("placed-%d", i), 1, extsort.MinBlock)
	if err != nil {
		return nil, err
	}
	to := log.NewAppender()
	emit := func(_ int64, rows []byte) error {
		for ; len(rows) > 0; rows = rows[rowBytes:] {
			to.Put(0, rows[:rowBytes])
		}
		return log.Err()
	}
	if buckets == nil {
		err = places.Each(emit)
	} else {
		err = b.area.Placed(buckets, events, rowBytes, w.memory, emit)
		b.discard(buckets...)
	}
	to.Flush()
	kept, cerr := log.Close()
	return kept, cmp.Or(err, cerr)
}

// writeLists sorts the halves into the dataset. gap is the median of the times between an event of a node and its next, of those above 0;
// 0 where there is none, or nobody asks.
func (w *streamWriter) writeLists(ctx context.Context, i int, halves []extsort.Bucket, starts []uint32) (gap float64, err error) {
	b := w.b
	l := &eventLists{out: w.out}
	if w.wantsGap() {
		if l.gaps, err = b.area.NewWriter(fmt.Sprintf("gaps-%d", i), 1, extsort.MinBlock); err != nil {
			return 0, err
		}
		l.to = l.gaps.NewAppender()
	}
	form := edgeForm{Relation: w.form.Relation, dst: &nodes{count: int(w.places)}, width: halfBytes}
	err = b.sortBuckets(ctx, &form, &relation{Given: halves, Starts: starts}, func(_ int, wait turn, m *merged) error {
		if err := wait(); err != nil {
			return err
		}
		return l.append(m)
	})
	if err == nil {
		err = l.finish()
	}
	if l.gaps == nil {
		return 0, err
	}
	l.to.Flush()
	log, cerr := l.gaps.Close()
	defer b.discard(log...)
	if err = cmp.Or(err, cerr); err != nil || l.count == 0 {
		return 0, err
	}
	middle, err := b.nth(ctx, log[0], l.count, [2]int64{(l.count - 1) / 2, l.count / 2})
	return (math.Float64frombits(middle[0]) + math.Float64frombits(middle[1])) / 2, err
}

// eventLists writes the lists of nodes, which may come in pieces, in ascending order.
type eventLists struct {
	out     *store.StreamWriter
	next    uint64 // place that has not begun
	open    uint64 // length so far of the list before it
	last    float64
	lengths []uint64         // of lists that have ended
	near    []store.HalfEdge // of lists, up to here
	gaps    *extsort.Writer  // nil: nobody asks
	to      *extsort.Appender
	count   int64 // of gaps
}

func (l *eventLists) append(m *merged) error {
	at := 0
	for k, n := range m.lengths {
		if place := uint64(m.list) + uint64(k); place == l.next {
			if place > 0 {
				l.lengths = append(l.lengths, l.open)
			}
			l.next, l.open = place+1, 0
		}
		for range n {
			r := m.records[at*halfBytes:]
			h := store.HalfEdge{
				Time: math.Float64frombits(binary.LittleEndian.Uint64(r[8:])), Event: m.items[at], Neighbor: binary.LittleEndian.Uint32(r[16:]),
			}
			if gap := h.Time - l.last; l.gaps != nil && l.open > 0 && gap > 0 {
				l.to.Put8(0, math.Float64bits(gap))
				l.count++
			}
			at, l.open, l.last = at+1, l.open+1, h.Time
			if l.near = append(l.near, h); len(l.near) == eventBatch {
				if err := l.flush(); err != nil {
					return err
				}
			}
		}
		if len(l.lengths) == eventBatch {
			if err := l.flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func (l *eventLists) flush() error {
	err := l.out.AppendNear(l.near)
	if err == nil {
		err = l.out.AppendLengths(l.lengths)
	}
	l.near, l.lengths = l.near[:0], l.lengths[:0]
	return err
}

// finish ends the last list.
func (l *eventLists) finish() error {
	if l.next > 0 {
		l.lengths = append(l.lengths, l.open)
	}
	return l.flush()
}

const (
	// shortSpan is the number of units of time below which they are not taken for seconds: networks see times by waves of a second and
	// longer, and of a stream that is over in one they would see nothing.
	shortSpan = 1e4
	usualGap  = 1e3 // the median of a node's gaps then
)

// wantsGap says whether the scale of time goes by the gaps between events.
func (w *streamWriter) wantsGap() bool {
	return w.b.TimeScale == 0 && w.report.Last-w.report.First < shortSpan
}

// scale settles what differences of times are multiplied with.
func (w *streamWriter) scale(gap float64) {
	w.report.TimeScale = cmp.Or(w.b.TimeScale, 1)
	if w.b.TimeScale != 0 || gap == 0 {
		return
	}
	w.report.TimeScale = math.Min(usualGap/gap, math.MaxFloat64)
	w.b.note("stream %s: its times span %g, which is little for seconds: networks will see differences of times %g times as long, so that the median "+
		"from one event of a node to its next is %g; --time-scale says otherwise", w.form.Name, w.report.Last-w.report.First, w.report.TimeScale, float64(usualGap))
}

// streamSplit counts the events of the parts as they come.
type streamSplit struct {
	plan   splitPlan
	n      int64
	counts [3]int64
	at     [2]quantile // the last times of the first two parts
}

// quantile is found as the values come in ascending order: by linear interpolation, as NumPy has it.
type quantile struct {
	place  int64 // of the value before it
	beyond float64
	before float64
	bound  float64
	known  bool
}

func (q *quantile) add(n int64, t float64) {
	switch {
	case n == q.place:
		q.before, q.bound, q.known = t, t, q.beyond == 0
	case n == q.place+1 && !q.known:
		if d := t - q.before; q.beyond < 0.5 {
			q.bound = q.before + d*q.beyond
		} else {
			q.bound = t - d*(1-q.beyond)
		}
		q.known = true
	}
}

func (b *builder) newStreamSplit(events int64) streamSplit {
	s := streamSplit{plan: b.split, n: events}
	share := 0.0
	for k := range s.at {
		share += b.split.fractions[k]
		at := float64(events-1) * share
		s.at[k].place = int64(at)
		s.at[k].beyond = at - math.Floor(at)
	}
	return s
}

// add takes event number n, which the source has in part given.
func (s *streamSplit) add(n int64, t float64, given Part) error {
	if s.plan.kind == "given" {
		for later := given + 1; later <= Test; later++ {
			if s.counts[later] > 0 {
				return fmt.Errorf("it is to %s, and one before it in time is to %s; a stream is parted by time: choose --split time:0.7/0.15/0.15", partVerb[given], partVerb[later])
			}
		}
		s.counts[given]++
		return nil
	}
	part := Test
	for k := range s.at {
		if s.at[k].add(n, t); part == Test && (!s.at[k].known || t <= s.at[k].bound) {
			part = Part(k)
		}
	}
	s.counts[part]++
	return nil
}

var partVerb = [...]string{"train", "validate", "test"}

func (s *streamSplit) report() store.StreamSplit {
	return store.StreamSplit{Name: s.plan.String(), Train: s.counts[Train], Valid: s.counts[Valid], Test: s.counts[Test]}
}
