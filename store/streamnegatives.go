package store

import (
	"cmp"
	"fmt"
)

// StreamNegatives are destinations that came with a stream's data, for each event that is not for
// training: the event's own destination is ranked among them. Row k - Split.Train of Offsets is
// where the negatives of event k begin, and the next row where they end.
type StreamNegatives struct {
	Offsets File `json:"offsets"` // U64, one row more than there are such events
	Nodes   File `json:"nodes"`   // U32, of type Dst; may repeat a node
}

// check compares the manifest's sections with what their places need.
func (n *StreamNegatives) check(s *Stream) []error {
	return []error{
		shape(&n.Offsets, s.path("negative-offsets.u64"), U64, s.Split.Valid+s.Split.Test+1, 1),
		shape(&n.Nodes, s.path("negatives.u32"), U32, n.Nodes.Rows, 1),
	}
}

// HasNegatives reports whether negatives came with the data.
func (e *Events) HasNegatives() bool { return e.Stream.Negatives != nil }

// Negatives returns the destinations that came with the data for an event that is not for training.
// It checks only these. It returns nil if the stream has no negatives.
func (e *Events) Negatives(event int64) []NodeID {
	n := e.Stream.Negatives
	if n == nil {
		return nil
	}
	lo, hi := e.negativeList(event)
	e.negatives.touch(4*int64(lo), 4*int64(hi))
	ids := cast[NodeID](e.negatives.payload())[lo:hi:hi]
	for i, v := range ids {
		if int64(v) >= e.Destinations {
			panic(e.Corrupt(&n.Nodes, 4*(int64(lo)+int64(i)), "event %d is ranked among node %d of %d", event, v, e.Destinations))
		}
	}
	return ids
}

// NegativesBefore returns the number of negatives of the events that are not for training and come
// before event. event may be one past the last.
func (e *Events) NegativesBefore(event int64) int64 {
	if event == e.Stream.Split.Train { // there may be no such events
		return 0
	}
	_, hi := e.negativeList(event - 1)
	return int64(hi)
}

// negativeList returns the range of an event's negatives.
func (e *Events) negativeList(event int64) (lo, hi uint64) {
	n, i := e.Stream.Negatives, event-e.Stream.Split.Train
	e.negativesAt.touch(8*i, 8*i+16)
	offsets := cast[uint64](e.negativesAt.payload())
	if lo, hi = offsets[i], offsets[i+1]; lo > hi || hi > uint64(n.Nodes.Rows) {
		panic(e.Corrupt(&n.Offsets, 8*i, "event %d has negatives %d to %d of %d", event, lo, hi, n.Nodes.Rows))
	}
	return lo, hi
}

// checkNegatives checks all negatives.
func (e *Events) checkNegatives() error {
	for event := e.Stream.Split.Train; event < e.Len(); event++ {
		e.Negatives(event)
	}
	return nil
}

func (e *Events) checkNegativeOffsets() error {
	return checkOffsets(cast[uint64](e.negativesAt.payload()), uint64(e.Stream.Negatives.Nodes.Rows), "negatives")
}

// negativesWriter writes the sections of a StreamNegatives.
type negativesWriter struct {
	offsets, nodes *sectionWriter
	events         int64
	end            uint64
}

// begin begins the sections.
func (n *negativesWriter) begin(s *StreamWriter) (err error) {
	if n.offsets, err = s.w.section(s.stream.path("negative-offsets.u64"), U64, 1, 8, 0); err != nil {
		return err
	}
	if n.nodes, err = s.w.section(s.stream.path("negatives.u32"), U32, 1, 4, 0); err != nil {
		return err
	}
	return n.offsets.append(bytesOf([]uint64{0}))
}

// AppendNegatives writes the negatives of the next event that is not for training, before or after
// the events themselves.
func (s *StreamWriter) AppendNegatives(nodes []NodeID) error {
	n := &s.negatives
	n.events++
	n.end += uint64(len(nodes))
	if err := n.nodes.append(bytesOf(nodes)); err != nil {
		return err
	}
	return n.offsets.append(bytesOf([]uint64{n.end}))
}

// close ends the sections, if there are any, and adds them to s. events is the number of events
// that are not for training.
func (n *negativesWriter) close(s *Stream, events int64) error {
	if n.offsets == nil {
		return nil
	}
	var err, err2 error
	if n.events != events {
		err = fmt.Errorf("stream %s: negatives of %d events, and %d are not to learn from; please report it", s.Name, n.events, events)
	}
	s.Negatives = new(StreamNegatives)
	s.Negatives.Offsets, err2 = n.offsets.close(n.events + 1)
	err = cmp.Or(err, err2)
	s.Negatives.Nodes, err2 = n.nodes.close(int64(n.end))
	return cmp.Or(err, err2)
}
