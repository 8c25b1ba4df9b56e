package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

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

	nodeLabels store.StreamSplit // of labels of nodes
	memory     int64             // of the placer of events

	// Of the batch that is gathered.
	sources, destinations []store.NodeID
	times                 []float64
	labels                []int32
}

// eventBatch is the number of events written at a time.
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
	w.out, err = b.w.AddStream(store.StreamSpec{Name: f.Name, Src: f.Src, Dst: f.Dst, Labels: f.Stream.Label != "", Negatives: f.Stream.Negatives})
	if err != nil {
		return err
	}
	keys, err := w.newNegativeKeys(i)
	if err != nil {
		return err
	}
	halves, starts, err := w.writeEvents(ctx, i, keys)
	err = b.explainEvent(ctx, i, err)
	held, kerr := keys.close()
	if err = cmp.Or(err, kerr); err != nil {
		return err
	}
	defer b.discard(halves...)
	gap, err := w.writeLists(ctx, i, halves, starts)
	if err != nil {
		return err
	}
	if err := w.writeNegatives(ctx, i, held); err != nil {
		return err
	}
	if err := w.writeNodeLabels(ctx, i); err != nil {
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
	if err := w.out.Close(store.StreamEnd{TimeScale: w.report.TimeScale, Split: w.report.Split, Classes: classes, ClassNames: f.Stream.ClassNames, NodeLabels: w.nodeLabels}); err != nil {
		return err
	}
	b.discard(rel.Given...)
	b.discard(rel.Stream.Runs...)
	rel.Given, rel.Stream.Runs = nil, nil
	return nil
}

// writeEvents merges the runs into the dataset, and parts the halves of events by their nodes: the
// parts begin at starts. keys takes those that are not to learn from.
func (w *streamWriter) writeEvents(ctx context.Context, i int, keys *negativeKeys) (halves []extsort.Bucket, starts []uint32, err error) {
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
		learnt := w.split.counts[ingest.Train]
		if err := w.add(e, u, v, math.Float64frombits(bits), int64(number)); err != nil {
			return err
		}
		if w.split.counts[ingest.Train] == learnt {
			keys.add(e, number)
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
	halves, err = extsort.CloseAfter(err, parts.Close)
	if places != nil {
		var spilled []extsort.Bucket
		if spilled, err = extsort.CloseAfter(err, places.Close); err == nil {
			w.rel.Stream.Places, err = w.keepPlaces(i, places, spilled)
		}
	}
	return halves, ranges.Starts(), err
}

// inOrder reports whether events are numbered as they were read.
func (r *relation) inOrder() bool { return r.Stream.Ordered && r.Report.Skipped == 0 }

// badEvent is the error of one event, by its number as read.
type badEvent struct {
	number uint64
	err    error
}

func (e *badEvent) Error() string { return e.err.Error() }
func (e *badEvent) Unwrap() error { return e.err }

// explainEvent adds the place of a bad event of relation i to its error, and returns other errors
// as they are.
func (b *builder) explainEvent(ctx context.Context, i int, err error) error {
	var bad *badEvent
	if !errors.As(err, &bad) {
		return err
	}
	place, err := b.edgeAt(ctx, i, bad.number)
	if err != nil {
		return err
	}
	return fmt.Errorf("stream %s: %s: %w", b.schema.Relations[i].Name, place, bad.err)
}

// add gathers event number n.
func (w *streamWriter) add(e event, u, v store.NodeID, t float64, n int64) error {
	w.sources, w.destinations, w.times = append(w.sources, u), append(w.destinations, v), append(w.times, t)
	if w.form.Stream.Label != "" {
		label := max(e.label(), -1)
		if label >= ingest.MaxClasses {
			return &badEvent{uint64(e.number()), fmt.Errorf("label %d; labels of events are classes, numbers from 0 to %d: "+
				"number them anew, or leave them out", label, ingest.MaxClasses-1)}
		}
		w.labels = append(w.labels, label)
		w.report.Classes = max(w.report.Classes, int(label)+1)
	}
	if n == 0 {
		w.report.First = t
	}
	w.report.Last = t
	part := ingest.Train
	if w.form.parted {
		part = e.part()
	}
	if err := w.split.add(n, t, part); err != nil {
		return &badEvent{uint64(e.number()), err}
	}
	return nil
}

func (w *streamWriter) flush() error {
	err := w.out.Append(w.sources, w.destinations, w.times, w.labels)
	w.b.addMeter(len(w.times))
	w.sources, w.destinations, w.times, w.labels = w.sources[:0], w.destinations[:0], w.times[:0], w.labels[:0]
	return err
}

// keepPlaces makes a log of them, in the order of events as read; spilled is nil where they are in
// memory.
func (w *streamWriter) keepPlaces(i int, places *extsort.Placer, spilled []extsort.Bucket) ([]extsort.Bucket, error) {
	b := w.b
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
	err = places.Each(emit)
	b.discard(spilled...)
	to.Flush()
	return extsort.CloseAfter(err, log.Close)
}
