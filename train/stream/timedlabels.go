package stream

import (
	"math"

	"github.com/gnnstore/gnnstore/store"
)

// timedLabels has the labels to predict, numbered in the order of time. If the stream has labels of
// nodes, which have times of their own, it takes these; else it takes the labels of events, each as
// a label of the event's source.
type timedLabels struct {
	e       *store.Events
	ofNodes bool
	count   int64
	classes int
	split   store.StreamSplit
	seen    []uint32 // for each label of a node that is listed, the number of events before it
}

func timedLabelsOf(e *store.Events) timedLabels {
	if n := e.Stream.NodeLabels; n != nil {
		return timedLabels{e: e, ofNodes: true, count: n.Count, classes: int(n.Classes), split: n.Split}
	}
	return timedLabels{e: e, count: e.Len(), classes: int(e.Stream.Classes), split: e.Stream.Split}
}

// each visits the labels that are not missing, except labels of nodes before the first event.
func (l *timedLabels) each(visit func(number int64, class int32)) {
	first := math.Inf(-1)
	if l.ofNodes && l.e.Len() > 0 {
		first = l.e.Times(0, 1)[0]
	}
	for lo := int64(0); lo < l.count; lo += 1 << 16 {
		hi := min(lo+1<<16, l.count)
		if !l.ofNodes {
			for i, class := range l.e.Labels(lo, hi) {
				if class >= 0 && int(class) < l.classes {
					visit(lo+int64(i), class)
				}
			}
			continue
		}
		_, times, classes := l.e.LabelledNodes(lo, hi)
		for i, class := range classes {
			if times[i] >= first {
				visit(lo+int64(i), class)
			}
		}
	}
}

// at returns a label: the place of its node, its time and its class.
func (l *timedLabels) at(number int64) (place uint32, time float64, class int32) {
	if l.ofNodes {
		nodes, times, classes := l.e.LabelledNodes(number, number+1)
		return nodes[0], times[0], classes[0]
	}
	src, _ := l.e.Ends(number, number+1)
	return src[0], l.e.Times(number, number+1)[0], l.e.Labels(number, number+1)[0]
}
