package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/gnnstore/gnnstore/store"
)

type inspectedStream struct {
	Name       string            `json:"name"`
	Src        string            `json:"src"`
	Dst        string            `json:"dst"`
	Events     int64             `json:"events"`
	First      float64           `json:"first_time"`
	Last       float64           `json:"last_time"`
	TimeScale  float64           `json:"time_scale"`
	Tied       int64             `json:"tied"`   // events at the time of the one before
	Silent     int64             `json:"silent"` // nodes without an event
	MostEvents int64             `json:"most_events"`
	Classes    int64             `json:"classes,omitempty"`
	ClassNames []string          `json:"class_names,omitempty"`
	Labelled   int64             `json:"labelled,omitempty"` // events with a label
	Split      store.StreamSplit `json:"split"`
	Negatives  int64             `json:"negatives,omitempty"` // of all events that are not to train on
	NodeLabels *inspectedLabels  `json:"node_labels,omitempty"`
	Bytes      int64             `json:"bytes"` // without tables
}

// inspectedLabels counts the classes of nodes at times of their own.
type inspectedLabels struct {
	Count   int64             `json:"count"`
	Classes int64             `json:"classes"`
	Split   store.StreamSplit `json:"split"`
}

// inspectStream reads times, labels and offsets, and nothing larger.
func inspectStream(e *store.Events) inspectedStream {
	s := e.Stream
	in := inspectedStream{
		Name: s.Name, Src: s.Src, Dst: s.Dst, Events: s.Events, TimeScale: s.TimeScale, Classes: s.Classes, ClassNames: s.ClassNames, Split: s.Split,
		Bytes: s.Sources.Bytes + s.Destinations.Bytes + s.Times.Bytes + s.Offsets.Bytes + s.Near.Bytes,
	}
	if s.Labels != nil {
		in.Bytes += s.Labels.Bytes
	}
	if n := s.Negatives; n != nil {
		in.Bytes += n.Offsets.Bytes + n.Nodes.Bytes
		in.Negatives = n.Nodes.Rows
	}
	if n := s.NodeLabels; n != nil {
		in.Bytes += n.Nodes.Bytes + n.Times.Bytes + n.Values.Bytes
		in.NodeLabels = &inspectedLabels{n.Count, n.Classes, n.Split}
	}
	const batch = 1 << 16
	for lo := int64(0); lo < e.Len(); lo += batch {
		hi := min(lo+batch, e.Len())
		for i, t := range e.Times(lo, hi) {
			if lo+int64(i) == 0 {
				in.First = t
			} else if t == in.Last {
				in.Tied++
			}
			in.Last = t
		}
		for _, c := range e.Labels(lo, hi) {
			if c >= 0 {
				in.Labelled++
			}
		}
	}
	for v := range e.Places() {
		n := e.Degree(v)
		in.MostEvents = max(in.MostEvents, n)
		if n == 0 {
			in.Silent++
		}
	}
	return in
}

// plain writes a number without an exponent, unless that takes many digits.
func plain(x float64) string {
	if s := strconv.FormatFloat(x, 'f', -1, 64); len(s) <= 20 {
		return s
	}
	return fmt.Sprint(x)
}

func printStream(line func(key, format string, args ...any), s inspectedStream) {
	line("stream", "%s: %s events from %s to %s, at times %s to %s, %s at the time of the one before, at most %s of a node, none of %s, %s",
		s.Name, count(s.Events), s.Src, s.Dst, plain(s.First), plain(s.Last), count(s.Tied), count(s.MostEvents), count(s.Silent), size(s.Bytes))
	if s.TimeScale != 1 {
		line("", "networks see differences of times %s times as long", plain(s.TimeScale))
	}
	if s.Labelled > 0 {
		text := fmt.Sprintf("%s have one of %d classes", count(s.Labelled), s.Classes)
		if names := classMap(s.ClassNames); names != "" {
			text += ": " + strings.TrimSuffix(names, ", ")
		}
		line("", "%s", text)
	}
	line("split", "%s of %s: %s train, %s valid, %s test events", s.Split.Name, s.Name, count(s.Split.Train), count(s.Split.Valid), count(s.Split.Test))
	if n := s.NodeLabels; n != nil {
		line("labels", "%s of nodes at times of their own, of %d classes: %s train, %s valid, %s test", count(n.Count), n.Classes, count(n.Split.Train),
			count(n.Split.Valid), count(n.Split.Test))
	}
	if s.Negatives > 0 {
		line("negatives", "%s came with the source, %.4g of an event to validate or to test on", count(s.Negatives), float64(s.Negatives)/float64(s.Split.Valid+s.Split.Test))
	}
}
