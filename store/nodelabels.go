package store

import (
	"cmp"
	"fmt"
	"math"
	"unicode/utf8"
)

// NodeLabels assigns classes to nodes of a stream at times of their own. Labels are ordered by
// time.
type NodeLabels struct {
	Count      int64       `json:"count"`
	Classes    int64       `json:"classes"`
	ClassNames []string    `json:"class_names,omitempty"`
	Split      StreamSplit `json:"split"`  // parts the labels by number, in the order of time
	Nodes      File        `json:"nodes"`  // U32, of type Src
	Times      File        `json:"times"`  // F64, finite, never decreasing
	Values     File        `json:"values"` // I32, the class, never missing
}

// check compares the manifest's sections with what their places need.
func (n *NodeLabels) check(s *Stream) []error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("stream %s: labels of nodes: %w", s.Name, fmt.Errorf(format, args...)))
	}
	if n.Classes < 1 || n.Classes > math.MaxInt32 {
		fail("%d classes", n.Classes)
	}
	if p := n.Split; p.Train < 0 || p.Valid < 0 || p.Test < 0 || p.Train > n.Count || p.Valid > n.Count-p.Train || p.Test != n.Count-p.Train-p.Valid {
		fail("their split has %d, %d and %d of %d", p.Train, p.Valid, p.Test, n.Count)
	}
	if name := n.Split.Name; name == "" || len(name) > maxSplitName || !utf8.ValidString(name) {
		fail("the name of their split is %.100q; it is one to %d bytes of UTF-8", name, maxSplitName)
	}
	return append(errs,
		shape(&n.Nodes, s.path("node-labels/node.u32"), U32, n.Count, 1),
		shape(&n.Times, s.path("node-labels/time.f64"), F64, n.Count, 1),
		shape(&n.Values, s.path("node-labels/class.i32"), I32, n.Count, 1))
}

// LabelledNodes returns the nodes, times and classes of labels lo to hi-1 of Stream.NodeLabels. The
// slices are borrowed. It panics for a node or class out of range, but does not check the times.
func (e *Events) LabelledNodes(lo, hi int64) (nodes []NodeID, times []float64, classes []int32) {
	n := e.Stream.NodeLabels
	at, of, values := e.d.sections[n.Times.Path], e.d.sections[n.Nodes.Path], e.d.sections[n.Values.Path]
	of.touch(4*lo, 4*hi)
	at.touch(8*lo, 8*hi)
	values.touch(4*lo, 4*hi)
	nodes, times, classes = cast[NodeID](of.payload())[lo:hi:hi], cast[float64](at.payload())[lo:hi:hi], cast[int32](values.payload())[lo:hi:hi]
	for i, v := range nodes {
		if int64(v) >= e.Sources {
			panic(e.Corrupt(&n.Nodes, 4*(lo+int64(i)), "label %d is of node %d of %d", lo+int64(i), v, e.Sources))
		}
		if c := classes[i]; c < 0 || int64(c) >= n.Classes {
			panic(e.Corrupt(&n.Values, 4*(lo+int64(i)), "label %d is class %d of %d", lo+int64(i), c, n.Classes))
		}
	}
	return nodes, times, classes
}

// checkNodeLabels reads all labels, and checks that times are finite and do not decrease.
func (e *Events) checkNodeLabels() error {
	last := math.Inf(-1)
	for lo := int64(0); lo < e.Stream.NodeLabels.Count; lo += verifyBatch {
		_, times, _ := e.LabelledNodes(lo, min(lo+verifyBatch, e.Stream.NodeLabels.Count))
		for i, t := range times {
			if t-t != 0 || t < last {
				return fmt.Errorf("label %d has the time %v, and the one before it %v; times are finite and do not decrease", lo+int64(i), t, last)
			}
			last = t
		}
	}
	return nil
}

// nodeLabelsWriter writes the sections of a NodeLabels.
type nodeLabelsWriter struct {
	nodes, times, values *sectionWriter
	count                int64
	last                 float64
	most                 int32
}

// AddNodeLabels begins the labels of nodes at times of their own.
func (s *StreamWriter) AddNodeLabels() (err error) {
	n := &s.nodeLabels
	n.last, n.most = math.Inf(-1), -1
	if n.nodes, err = s.w.section(s.stream.path("node-labels/node.u32"), U32, 1, 4, 0); err != nil {
		return err
	}
	if n.times, err = s.w.section(s.stream.path("node-labels/time.f64"), F64, 1, 8, 0); err != nil {
		return err
	}
	n.values, err = s.w.section(s.stream.path("node-labels/class.i32"), I32, 1, 4, 0)
	return err
}

// AppendNodeLabels writes the next labels. Times are finite and never decrease.
func (s *StreamWriter) AppendNodeLabels(nodes []NodeID, times []float64, classes []int32) error {
	n := &s.nodeLabels
	if len(nodes) != len(times) || len(nodes) != len(classes) {
		panic("store: labels of nodes with times or classes of another number")
	}
	for i, t := range times {
		if t-t != 0 || t < n.last || classes[i] < 0 {
			return fmt.Errorf("stream %s: label %d is class %d at %v, behind %v; please report it", s.stream.Name, n.count+int64(i), classes[i], t, n.last)
		}
		n.last, n.most = t, max(n.most, classes[i])
	}
	n.count += int64(len(nodes))
	return cmp.Or(n.nodes.append(bytesOf(nodes)), n.times.append(bytesOf(times)), n.values.append(bytesOf(classes)))
}

// close ends the sections, if there are any, and adds them to s.
func (n *nodeLabelsWriter) close(s *Stream, split StreamSplit) error {
	if n.nodes == nil {
		return nil
	}
	s.NodeLabels = &NodeLabels{Count: n.count, Classes: int64(n.most) + 1, Split: split}
	var err, err2 error
	for _, part := range []struct {
		w    *sectionWriter
		file *File
	}{{n.nodes, &s.NodeLabels.Nodes}, {n.times, &s.NodeLabels.Times}, {n.values, &s.NodeLabels.Values}} {
		*part.file, err2 = part.w.close(n.count)
		err = cmp.Or(err, err2)
	}
	return err
}
