package store

import (
	"cmp"
	"fmt"
	"math"
)

// StreamSpec describes a stream as it begins.
type StreamSpec struct {
	Name, Src, Dst string
	Labels         bool
	Negatives      bool // the data has negatives: see StreamNegatives
}

// StreamEnd holds the facts about a stream that its writer knows only after the last event.
type StreamEnd struct {
	TimeScale  float64
	Split      StreamSplit
	Classes    int // number of classes of the events' labels
	ClassNames []string
	NodeLabels StreamSplit // of NodeLabels, if there are any
}

// StreamWriter writes a stream: its events, in the order of their times, and the lists of its
// nodes, in the order of their places. Calls for events and calls for lists may alternate in any
// way.
type StreamWriter struct {
	w      *Writer
	stream Stream
	parts  [6]*sectionWriter // of sources, destinations, times, labels (nil if there are none), offsets, near
	last   float64           // time of the last event
	most   int32             // the largest class
	places int64             // number of places whose lists have ended
	end    uint64            // half-edges in these lists
	near   uint64            // half-edges written

	negatives  negativesWriter
	nodeLabels nodeLabelsWriter
}

// AddStream begins a stream.
func (w *Writer) AddStream(spec StreamSpec) (_ *StreamWriter, err error) {
	if err := checkNames("stream", spec.Name, spec.Src, spec.Dst); err != nil {
		return nil, err
	}
	s := &StreamWriter{w: w, stream: Stream{Name: spec.Name, Src: spec.Src, Dst: spec.Dst}, last: math.Inf(-1), most: -1}
	if spec.Labels {
		s.stream.Labels = new(File)
	}
	for i, part := range []struct {
		name string
		elem Elem
		cols int64
	}{{"src.u32", U32, 1}, {"dst.u32", U32, 1}, {"time.f64", F64, 1}, {"label.i32", I32, 1}, {"offsets.u64", U64, 1}, {"near.u64", U64, 2}} {
		if part.elem == I32 && !spec.Labels {
			continue
		}
		if s.parts[i], err = w.section(s.stream.path(part.name), part.elem, part.cols, part.cols*int64(part.elem.Size()), 0); err != nil {
			return nil, err
		}
	}
	if spec.Negatives {
		if err := s.negatives.begin(s); err != nil {
			return nil, err
		}
	}
	return s, s.parts[4].append(bytesOf([]uint64{0}))
}

// Append writes the next events: their ends; their times, which are finite and never decrease; and
// their classes, -1 where missing. A stream without labels ignores the classes.
func (s *StreamWriter) Append(src, dst []NodeID, times []float64, labels []int32) error {
	if len(src) != len(times) || len(dst) != len(times) || s.stream.Labels != nil && len(labels) != len(times) {
		panic("store: events with ends, times or labels of another number")
	}
	if s.stream.Events+int64(len(times)) > MaxEvents {
		return fmt.Errorf("stream %s: more than %d events; they are numbered in 32 bits", s.stream.Name, uint32(MaxEvents))
	}
	for i, t := range times {
		if t-t != 0 || t < s.last {
			return fmt.Errorf("stream %s: event %d has the time %v behind %v; please report it", s.stream.Name, s.stream.Events+int64(i), t, s.last)
		}
		s.last = t
	}
	s.stream.Events += int64(len(times))
	bytes := [4][]byte{bytesOf(src), bytesOf(dst), bytesOf(times), nil}
	if s.stream.Labels != nil {
		for _, c := range labels {
			if c < -1 {
				return fmt.Errorf("stream %s: class %d; -1 is missing", s.stream.Name, c)
			}
			s.most = max(s.most, c)
		}
		bytes[3] = bytesOf(labels)
	}
	for i, b := range bytes {
		if s.parts[i] == nil {
			continue
		}
		if err := s.parts[i].append(b); err != nil {
			return err
		}
	}
	return nil
}

// AppendNear writes half-edges of the next places, one list behind the other. One call may end in
// the middle of a list: AppendLengths sets where lists end.
func (s *StreamWriter) AppendNear(near []HalfEdge) error {
	s.near += uint64(len(near))
	return s.parts[5].append(bytesOfHalfEdges(near))
}

// AppendLengths writes the numbers of half-edges of the next places, before or after the half-edges
// themselves.
func (s *StreamWriter) AppendLengths(lengths []uint64) error {
	offsets := make([]uint64, len(lengths))
	for i, n := range lengths {
		s.end += n
		offsets[i] = s.end
	}
	s.places += int64(len(lengths))
	return s.parts[4].append(bytesOf(offsets))
}

// Close ends the stream.
func (s *StreamWriter) Close(end StreamEnd) error {
	if s.end != s.near || s.near != 2*uint64(s.stream.Events) {
		panic("store: the lists of a stream do not add up to its events")
	}
	if int64(s.most) >= int64(end.Classes) && s.stream.Labels != nil {
		return fmt.Errorf("stream %s: an event has class %d of %d", s.stream.Name, s.most, end.Classes)
	}
	s.stream.TimeScale, s.stream.Split = end.TimeScale, end.Split
	s.stream.Classes, s.stream.ClassNames = int64(end.Classes), toValidAll(end.ClassNames)
	rows := [6]int64{s.stream.Events, s.stream.Events, s.stream.Events, s.stream.Events, s.places + 1, 2 * s.stream.Events}
	files := [6]*File{&s.stream.Sources, &s.stream.Destinations, &s.stream.Times, s.stream.Labels, &s.stream.Offsets, &s.stream.Near}
	var err, err2 error // a full disk causes many errors; the first is reported
	for i, part := range s.parts {
		if part != nil {
			*files[i], err2 = part.close(rows[i])
			err = cmp.Or(err, err2)
		}
	}
	err = cmp.Or(err, s.negatives.close(&s.stream, end.Split.Valid+end.Split.Test), s.nodeLabels.close(&s.stream, end.NodeLabels))
	if err == nil {
		s.w.manifest.Streams = append(s.w.manifest.Streams, s.stream)
	}
	return err
}
