package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// The way of an event, each step a pass:
//
//	read, resolve   as edges are: see edges.go and join.go. Its number as read, its time, label and part ride on it
//	sort            into runs by time, equal times by number; a log in that order is one run
//	write           the runs are merged into the dataset; and of each event two halves are parted by the node that they are of,
//	                sorted, and written behind it as the lists of nodes
//
// Tables of events follow in the order of events: where that is not the order in which they were
// read, the write pass leaves the place of each for them.

// eventTable is the name of a table of made features of events.
const eventTable = "feat"

// streams reports whether the source's edges are events. Such a source has no other relations.
func (b *builder) streams() bool {
	return len(b.schema.Relations) > 0 && b.schema.Relations[0].Stream != nil
}

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
		want := []ingest.EdgeColumn{{Name: r.Stream.Time, Elem: store.F64}}
		if r.Stream.Label != "" {
			want = append(want, ingest.EdgeColumn{Name: r.Stream.Label, Elem: store.I32})
		}
		if !slices.Equal(r.Columns, want) || r.Held != nil || names[r.Name] {
			return fmt.Errorf("stream %s: it has a time and perhaps a label, and a name of its own; this is a fault of the reader, please report it", r.Name)
		}
		names[r.Name] = true
	}
	if !b.streams() {
		switch {
		case b.split.kind == "time":
			return errors.New("{split} time: the source has no stream of events; choose another split, or read a stream: gnnstore ingest events")
		case b.EdgeFeatures != "" || b.TimeScale != 0:
			return errors.New("{edge_features} random:D and {time_scale}: they are for streams of events, and the source has none; leave them out")
		}
		return nil
	}
	for _, c := range []struct {
		is   bool
		flag string
	}{
		{b.Undirected, "{undirected}"}, {b.Reverse, "{reverse}"}, {b.SelfLoops != SelfLoopsKeep, "{self_loops}"}, {b.EdgeIDs, "{edge_ids}"},
		{b.Duplicates != DuplicatesKeep, "{duplicates}"}, {len(b.EdgeSplit) > 0, "{edge_split}"},
	} {
		if c.is {
			return fmt.Errorf("%s: it is about edges; the source is a stream, whose events are kept as they are, at both of their ends; leave it out", c.flag)
		}
	}
	if b.Order == OrderAccess {
		return errors.New("{order} access: it follows the edges of relations, and the source is a stream of events; degree numbers nodes by their events")
	}
	if k := b.features.kind; k == "fastrp" || k == "mean" || k == "degree" {
		return fmt.Errorf("{features} %s: it is made of the edges of relations, and the source is a stream of events; choose random:D or none", b.Features)
	}
	for _, t := range b.schema.Tables {
		if b.EdgeFeatures != "" && t.Relation != "" {
			return fmt.Errorf("{edge_features} %s: the source has features of its events, %s; leave it out", b.EdgeFeatures, t.Name)
		}
	}
	return nil
}

// streamState is the state that the passes over a stream leave for later ones.
type streamState struct {
	Ordered bool             `json:"ordered"` // events are read in the order of time
	Runs    []extsort.Bucket `json:"runs,omitempty"`
	// Places has each event's number plus one, by its number as read, four bytes each; 0 if the
	// event was passed over. There are none where nobody asks, or nothing changes.
	Places []extsort.Bucket `json:"places,omitempty"`
	Report StreamReport     `json:"report"`
}

// timeBits returns the bits of a time as events carry it; both zeros have the same.
func timeBits(x float64) uint64 { return math.Float64bits(x + 0) }

// checkTimes refuses times that are not finite, and more events than a stream can number. It notes
// in s.Ordered whether events are in the order of time.
func (s *streamState) checkTimes(r *ingest.Relation, c *ingest.EdgeChunk, last *float64) error {
	if c.First+int64(c.Len()) > store.MaxEvents {
		return fmt.Errorf("%s: stream %s: %d events and more; they are numbered in 32 bits, so at most %d; cut it into several datasets",
			c.File, r.Name, c.First+int64(c.Len()), uint32(store.MaxEvents))
	}
	times := c.Values[0]
	for k, bits := range times {
		t := math.Float64frombits(bits)
		if t-t != 0 {
			return fmt.Errorf("%s: its time is %v, and times are finite numbers; mend it", c.Edge(k, "event"), t)
		}
		s.Ordered = s.Ordered && t >= *last
		*last, times[k] = t, timeBits(t)
	}
	return nil
}

// event is the record of one: its ends by rows, its number as read, its time, and perhaps its label
// and part.
type event []byte

func (e event) src() uint32       { return binary.LittleEndian.Uint32(e) }
func (e event) dst() uint32       { return binary.LittleEndian.Uint32(e[4:]) }
func (e event) number() uint64    { return binary.LittleEndian.Uint64(e[8:]) }
func (e event) time() uint64      { return binary.LittleEndian.Uint64(e[16:]) } // its bits
func (e event) label() int32      { return int32(binary.LittleEndian.Uint32(e[24:])) }
func (e event) part() ingest.Part { return ingest.Part(e[len(e)-1]) }

// byTime is the order of events: by time, and of one time as read.
func byTime(record []byte) (first, second uint64) {
	return timeKey(store.F64, event(record).time()), event(record).number()
}

// events returns the number of events of a stream, once they are read.
func (r *relation) events() int64 { return r.Report.EdgesRead - r.Report.Skipped }

// checkEvents refuses a stream without events.
func (b *builder) checkEvents(context.Context) error {
	for i, r := range b.read() {
		if r.Stream != nil && b.state.Relations[i].events() == 0 {
			return fmt.Errorf("stream %s: there is no event in it; is %s complete?", r.Name, b.schema.Name)
		}
	}
	return nil
}

// writeStreams sorts and writes every stream.
func (b *builder) writeStreams(s *sizes, do func(pass)) {
	for i, r := range b.read() {
		if r.Stream == nil {
			continue
		}
		rel, f, n, each := &b.state.Relations[i], b.form(i), s.edges[i], float64(workers())
		log := f.logBytes(n)
		// Where ends are rows, a log that is in the order of time is a run. A plan takes it to be.
		if f.own() || rel.Read && !rel.Stream.Ordered {
			do(pass{name: "sort " + r.Name, total: rel.events(), unit: "events",
				cost: cost{items: n, seconds: float64(n) / rateMerge / each, spillRead: log, spillWritten: log},
				run:  func(ctx context.Context) error { return b.sortEvents(ctx, i) }})
		}
		c := b.givenCost(r.Stream, n)
		c.items = 3 * n
		c.seconds += float64(n)/rateEvents + 2*float64(n)/rateMerge/each
		c.spillWritten += 2 * halfBytes * n
		c.spillRead = log + c.spillWritten
		c.written += b.streamBytes(i, s)
		do(pass{name: "write " + r.Name, total: 3 * rel.events(), unit: "events and ends", cost: c,
			run: func(ctx context.Context) error { return b.writeStream(ctx, i) }})
	}
}

// streamBytes returns the bytes of stream i in the dataset, but for what comes with its events.
func (b *builder) streamBytes(i int, s *sizes) int64 {
	r, n := b.schema.Relations[i], s.edges[i]
	places := s.nodes[b.schema.NodeType(r.Src)]
	if r.Src != r.Dst {
		places += s.nodes[b.schema.NodeType(r.Dst)]
	}
	size := n*(4+4+8+2*16) + 8*(places+1) + 5*sectionOverhead
	if r.Stream.Label != "" {
		size += 4*n + sectionOverhead
	}
	return size
}

// givenCost returns the cost of what comes with n events of a stream: negatives and labels of
// nodes. streamWriter writes one after the other, so the spill is the larger of the two.
func (b *builder) givenCost(s *ingest.Stream, n int64) (c cost) {
	a := s.About
	if s.Negatives {
		if a.Negatives == 0 {
			c.unknown = append(c.unknown, "the number of negatives; as if there were none")
		}
		ranked := a.Lists // events behind those to learn from
		if b.split.kind == "time" {
			ranked = int64(float64(n) * (1 - b.split.fractions[0]))
		}
		c.spillWritten = 2*keyedBytes*(ranked+a.Lists) + 4*a.Negatives + 2*ofEventBytes*ranked
		c.written += 8*(ranked+1) + 4*a.Negatives + 2*sectionOverhead
		c.seconds += float64(ranked+a.Lists)/rateMerge + float64(a.Negatives)/rateNegatives
	}
	if s.NodeLabels {
		if a.NodeLabels == 0 {
			c.unknown = append(c.unknown, "the number of labels of nodes; as if there were none")
		}
		c.spillWritten = max(c.spillWritten, 2*saidBytes*a.NodeLabels)
		c.written += 16*a.NodeLabels + 3*sectionOverhead
		c.seconds += float64(a.NodeLabels) / rateEvents
	}
	return c
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
