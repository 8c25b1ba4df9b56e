package store

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/zeebo/xxh3"
)

// Stream is a sequence of events between nodes of type Src and nodes of type Dst, which may be one
// type. Events are numbered from 0 in the order of their times; events at the same time keep the
// order in which they were read.
//
// A stream also has a list for each node at either end: the events of that node, in order. A list
// is found by the node's place. The place of a Src node is its id. If Dst is another type, its
// nodes come behind, in the order of their ids.
type Stream struct {
	Name   string `json:"name"`
	Src    string `json:"src"`
	Dst    string `json:"dst"`
	Events int64  `json:"events"` // at most 4,294,967,295
	// TimeScale multiplies time differences before a network sees them, so that they have the
	// magnitude that seconds would give. Times are stored as given.
	TimeScale float64 `json:"time_scale"`
	// Classes is the number of classes of Labels; 0 without Labels.
	Classes      int64       `json:"classes,omitempty"`
	ClassNames   []string    `json:"class_names,omitempty"`
	Split        StreamSplit `json:"split"`
	Sources      File        `json:"sources"`          // U32, the source of each event
	Destinations File        `json:"destinations"`     // U32, the destination of each event
	Times        File        `json:"times"`            // F64, finite, never decreasing
	Labels       *File       `json:"labels,omitempty"` // I32: the class of the source from the event on, -1 missing
	Offsets      File        `json:"offsets"`          // U64, one row more than there are places
	Near         File        `json:"near"`             // U64, 2 columns: see HalfEdge
	// Negatives is set if negatives came with the data.
	Negatives *StreamNegatives `json:"negatives,omitempty"`
	// NodeLabels is set if nodes have classes at times of their own, apart from Labels.
	NodeLabels *NodeLabels `json:"node_labels,omitempty"`
}

// StreamSplit parts the events by number: the first Train events are for training, the next Valid
// for validation, the last Test for testing.
type StreamSplit struct {
	Name  string `json:"name"` // how it was made, for people: "time:0.7/0.15/0.15", "given"
	Train int64  `json:"train"`
	Valid int64  `json:"valid"`
	Test  int64  `json:"test"`
}

// HalfEdge is an event as one of its two nodes sees it: its time, its number, and the id of the
// node at the other end. Its layout is the same in memory and in the file.
type HalfEdge struct {
	Time     float64
	Event    uint32
	Neighbor NodeID
}

// HalfEdgeBytes is the size of a HalfEdge. In the file it is two columns of U64: the bits of Time,
// and Neighbor << 32 | Event.
const HalfEdgeBytes = 16

// MaxEvents is the largest number of events of a stream: events, and the rows of their tables, are
// numbered in 32 bits.
const MaxEvents = math.MaxUint32

// files returns all sections of the stream.
func (s *Stream) files() []*File {
	fs := []*File{&s.Sources, &s.Destinations, &s.Times}
	if s.Labels != nil {
		fs = append(fs, s.Labels)
	}
	fs = append(fs, &s.Offsets, &s.Near)
	if n := s.Negatives; n != nil {
		fs = append(fs, &n.Offsets, &n.Nodes)
	}
	if n := s.NodeLabels; n != nil {
		fs = append(fs, &n.Nodes, &n.Times, &n.Values)
	}
	return fs
}

func (s *Stream) path(name string) string { return "stream/" + s.Name + "/" + name }

// places returns the number of places, given the number of nodes of either type.
func (s *Stream) places(sources, destinations int64) int64 {
	if s.Src == s.Dst {
		return sources
	}
	return sources + destinations
}

// check compares the manifest's sections of a stream with what their places need.
func (s *Stream) check(sources, destinations int64) (errs []error) {
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %s: %w", s.Name, fmt.Errorf(format, args...)))
	}
	if s.Events < 0 || s.Events > MaxEvents {
		fail("%d events; they are numbered in 32 bits, so at most %d", s.Events, uint32(MaxEvents))
		return errs
	}
	if !(s.TimeScale > 0 && s.TimeScale <= math.MaxFloat64) {
		fail("times are multiplied with %v", s.TimeScale)
	}
	if p := s.Split; p.Train < 0 || p.Valid < 0 || p.Test < 0 || p.Train > s.Events || p.Valid > s.Events-p.Train || p.Test != s.Events-p.Train-p.Valid {
		fail("its split has %d, %d and %d of %d events", p.Train, p.Valid, p.Test, s.Events)
	}
	if name := s.Split.Name; name == "" || len(name) > maxSplitName || !utf8.ValidString(name) {
		fail("the name of its split is %.100q; it is one to %d bytes of UTF-8", name, maxSplitName)
	}
	places := s.places(sources, destinations)
	errs = append(errs,
		shape(&s.Sources, s.path("src.u32"), U32, s.Events, 1),
		shape(&s.Destinations, s.path("dst.u32"), U32, s.Events, 1),
		shape(&s.Times, s.path("time.f64"), F64, s.Events, 1),
		shape(&s.Offsets, s.path("offsets.u64"), U64, places+1, 1),
		shape(&s.Near, s.path("near.u64"), U64, 2*s.Events, 2))
	if s.Classes < 0 || s.Classes > math.MaxInt32 || s.Classes > 0 && s.Labels == nil {
		fail("%d classes", s.Classes)
	}
	if s.Labels != nil {
		errs = append(errs, shape(s.Labels, s.path("label.i32"), I32, s.Events, 1))
	}
	if s.Negatives != nil {
		errs = append(errs, s.Negatives.check(s)...)
	}
	if s.NodeLabels != nil {
		errs = append(errs, s.NodeLabels.check(s)...)
	}
	return errs
}

// Events reads a stream. Its slices are borrowed, like all that a Dataset lends. Methods are safe
// for concurrent use. A page that fails its checksum, or an impossible offset or id, panics with an
// error that [Guard] returns.
type Events struct {
	Stream *Stream
	// Sources and Destinations are the numbers of nodes of types Src and Dst.
	Sources, Destinations int64

	d                               *Dataset
	src, dst, time, labels, at, all *section // Sources, Destinations, Times, Labels (or nil), Offsets, Near
	negativesAt, negatives          *section
}

// Events returns stream i of the manifest.
func (d *Dataset) Events(i int) *Events {
	s := &d.manifest.Streams[i]
	src, _ := d.NodeType(s.Src)
	dst, _ := d.NodeType(s.Dst)
	e := &Events{
		Stream: s, Sources: src.Count, Destinations: dst.Count, d: d,
		src: d.sections[s.Sources.Path], dst: d.sections[s.Destinations.Path], time: d.sections[s.Times.Path],
		at: d.sections[s.Offsets.Path], all: d.sections[s.Near.Path],
	}
	if s.Labels != nil {
		e.labels = d.sections[s.Labels.Path]
	}
	if n := s.Negatives; n != nil {
		e.negativesAt, e.negatives = d.sections[n.Offsets.Path], d.sections[n.Nodes.Path]
	}
	return e
}

// Len returns the number of events.
func (e *Events) Len() int64 { return e.Stream.Events }

// Places returns the number of places: the nodes of Src and, if it is another type, of Dst.
func (e *Events) Places() int64 { return e.Stream.places(e.Sources, e.Destinations) }

// Place returns the place of a node of type Dst. The place of a node of type Src is its id.
func (e *Events) Place(dst NodeID) int64 { return e.Places() - e.Destinations + int64(dst) }

// Ends returns the two nodes of events lo to hi-1.
func (e *Events) Ends(lo, hi int64) (src, dst []NodeID) {
	return e.ends(e.src, lo, hi, e.Sources), e.ends(e.dst, lo, hi, e.Destinations)
}

func (e *Events) ends(s *section, lo, hi, nodes int64) []NodeID {
	s.touch(4*lo, 4*hi)
	ids := cast[NodeID](s.payload())[lo:hi:hi]
	for i, v := range ids {
		if int64(v) >= nodes {
			panic(e.Corrupt(s.spec, 4*(lo+int64(i)), "event %d is of node %d of %d", lo+int64(i), v, nodes))
		}
	}
	return ids
}

// Times returns the times of events lo to hi-1.
func (e *Events) Times(lo, hi int64) []float64 {
	e.time.touch(8*lo, 8*hi)
	return cast[float64](e.time.payload())[lo:hi:hi]
}

// Labels returns the classes of events lo to hi-1, -1 where missing; nil if the stream has no
// labels.
func (e *Events) Labels(lo, hi int64) []int32 {
	if e.labels == nil {
		return nil
	}
	e.labels.touch(4*lo, 4*hi)
	return cast[int32](e.labels.payload())[lo:hi:hi]
}

// Near returns the list of the node at a place: all its events, in order. An event from a node to
// itself appears twice. Compare a neighbour with the number of nodes before using it as an index.
func (e *Events) Near(place int64) []HalfEdge {
	lo, hi := e.List(place)
	e.all.touch(HalfEdgeBytes*int64(lo), HalfEdgeBytes*int64(hi))
	return halfEdges(e.all.payload())[lo:hi:hi]
}

// Degree returns the length of the list of the node at a place.
func (e *Events) Degree(place int64) int64 {
	lo, hi := e.List(place)
	return int64(hi - lo)
}

// NearFile returns the file of the lists, for readers that do their own reading. Half-edge i lies
// at byte [PageSize] + HalfEdgeBytes·i.
func (e *Events) NearFile() SectionFile { return e.all.open(e.d.path) }

// List returns the range of half-edges of the node at a place, from lo up to but without hi.
func (e *Events) List(place int64) (lo, hi uint64) {
	e.at.touch(8*place, 8*place+16)
	offsets := cast[uint64](e.at.payload())
	if lo, hi = offsets[place], offsets[place+1]; lo > hi || hi > 2*uint64(e.Len()) {
		panic(e.Corrupt(&e.Stream.Offsets, 8*place, "the node at place %d has half-edges %d to %d of %d", place, lo, hi, 2*e.Len()))
	}
	return lo, hi
}

// Corrupt returns the error for an impossible value in file f of the stream; at counts bytes from
// the end of the file's header. Readers that do their own reading return it.
func (e *Events) Corrupt(f *File, at int64, format string, args ...any) *SectionError {
	return &SectionError{e.d.path, f.Path, PageSize + at, fmt.Errorf("%w; run gnnstore verify", fmt.Errorf(format, args...))}
}

// StreamTable returns the stream's table of that name. Row k belongs to event k. ok is false if
// there is no such table.
func (d *Dataset) StreamTable(stream, name string) (f *Features, ok bool) {
	for i := range d.manifest.Tables {
		if t := &d.manifest.Tables[i]; t.Stream == stream && t.Name == name {
			return d.Features(i), true
		}
	}
	return nil, false
}

// verifyBatch is the number of events that are checked at a time.
const verifyBatch = 1 << 16

// batches calls visit with consecutive ranges of up to verifyBatch events.
func (e *Events) batches(visit func(lo, hi int64) error) error {
	for lo := int64(0); lo < e.Len(); lo += verifyBatch {
		if err := visit(lo, min(lo+verifyBatch, e.Len())); err != nil {
			return err
		}
	}
	return nil
}

func (e *Events) checkTimes() error {
	last := math.Inf(-1)
	return e.batches(func(lo, hi int64) error {
		for i, t := range e.Times(lo, hi) {
			if t-t != 0 {
				return fmt.Errorf("event %d has the time %v; times are finite", lo+int64(i), t)
			}
			if t < last {
				return fmt.Errorf("event %d has the time %v, and the one before it %v", lo+int64(i), t, last)
			}
			last = t
		}
		return nil
	})
}

func (e *Events) checkLabels() error {
	return e.batches(func(lo, hi int64) error {
		for i, c := range e.Labels(lo, hi) {
			if c < -1 || int64(c) >= e.Stream.Classes {
				return fmt.Errorf("event %d has class %d of %d", lo+int64(i), c, e.Stream.Classes)
			}
		}
		return nil
	})
}

// checkNear checks each list alone. Then it compares all lists with the events, by a sum over each
// side that does not depend on the order.
func (e *Events) checkNear() error {
	var lists, events EdgeSum
	for place := range e.Places() {
		var last HalfEdge
		for i, h := range e.Near(place) {
			loop := h == last && e.Stream.Src == e.Stream.Dst && int64(h.Neighbor) == place
			if i > 0 && h.Event <= last.Event && !loop {
				return fmt.Errorf("the list of the node at place %d has event %d behind event %d", place, h.Event, last.Event)
			}
			lists.addHalfEdge(place, h)
			last = h
		}
	}
	err := e.batches(func(lo, hi int64) error {
		src, dst := e.Ends(lo, hi)
		for i, t := range e.Times(lo, hi) {
			number := uint32(lo + int64(i))
			events.addHalfEdge(int64(src[i]), HalfEdge{t, number, dst[i]})
			events.addHalfEdge(e.Place(dst[i]), HalfEdge{t, number, src[i]})
		}
		return nil
	})
	if err == nil && lists != events {
		err = fmt.Errorf("the lists of nodes have other events than %s, %s and %s", e.Stream.Sources.Path, e.Stream.Destinations.Path, e.Stream.Times.Path)
	}
	return err
}

func (s *EdgeSum) addHalfEdge(place int64, h HalfEdge) {
	sum := xxh3.Hash128Seed(bytesOfHalfEdges([]HalfEdge{h}), uint64(place))
	s.AddSum(EdgeSum{sum.Hi, sum.Lo})
}

// checkStream verifies stream i.
func (v *verifier) checkStream(i int) {
	e := v.d.Events(i)
	s := e.Stream
	all := func(read func(lo, hi int64)) func() error {
		return func() error { return e.batches(func(lo, hi int64) error { read(lo, hi); return nil }) }
	}
	v.check(&s.Sources, all(func(lo, hi int64) { e.ends(e.src, lo, hi, e.Sources) }))
	v.check(&s.Destinations, all(func(lo, hi int64) { e.ends(e.dst, lo, hi, e.Destinations) }))
	v.check(&s.Times, e.checkTimes)
	if s.Labels != nil {
		v.check(s.Labels, e.checkLabels)
	}
	v.check(&s.Offsets, func() error { return checkOffsets(cast[uint64](e.at.payload()), 2*uint64(e.Len()), "half-edges") })
	v.check(&s.Near, e.checkNear, &s.Offsets, &s.Sources, &s.Destinations, &s.Times)
	if n := s.Negatives; n != nil {
		v.check(&n.Offsets, e.checkNegativeOffsets)
		v.check(&n.Nodes, e.checkNegatives, &n.Offsets)
	}
	if n := s.NodeLabels; n != nil {
		v.check(&n.Nodes, nil)
		v.check(&n.Values, nil)
		v.check(&n.Times, e.checkNodeLabels, &n.Nodes, &n.Values)
	}
}
