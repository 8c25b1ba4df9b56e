package store

import (
	"cmp"
	"fmt"
	"sort"
)

// MissingBit marks an unknown cell of a multi-label target.
const MissingBit = 255

// Labels is one prediction target of one node type.
type Labels struct {
	Label  *Label
	class  []int32
	number []float32
	multi  []uint8
	stride int
	file   SectionFile // of class, number or multi
}

// Labels returns label i of the manifest.
func (d *Dataset) Labels(i int) *Labels {
	l := &d.manifest.Labels[i]
	s := d.sections[l.Values.Path]
	if l.Multi {
		return &Labels{Label: l, multi: s.payload(), stride: int(l.Classes), file: s.open(d.path)}
	}
	if l.Numbers {
		return &Labels{Label: l, number: cast[float32](s.payload()), file: s.open(d.path)}
	}
	return &Labels{Label: l, class: cast[int32](s.payload()), file: s.open(d.path)}
}

// Section returns the file of the labels.
func (l *Labels) Section() SectionFile { return l.file }

// Classes returns the number of classes.
func (l *Labels) Classes() int { return int(l.Label.Classes) }

// Class returns v's class, or -1 if it is missing. The labels must be neither Multi nor Numbers. A
// page that fails its checksum panics with an error that [Guard] returns.
func (l *Labels) Class(v NodeID) int32 {
	l.file.s.touch(4*int64(v), 4*int64(v)+4)
	return l.class[v]
}

// Number returns v's number, or NaN if it is missing. The labels must be Numbers. It panics as
// Class does.
func (l *Labels) Number(v NodeID) float32 {
	l.file.s.touch(4*int64(v), 4*int64(v)+4)
	return l.number[v]
}

// Bits returns v's row of zeros, ones and [MissingBit]. The labels must be Multi. The slice is
// borrowed. It panics as Class does.
func (l *Labels) Bits(v NodeID) []uint8 {
	l.file.s.touch(int64(v)*int64(l.stride), (int64(v)+1)*int64(l.stride))
	return l.multi[int(v)*l.stride : (int(v)+1)*l.stride : (int(v)+1)*l.stride]
}

// Has reports whether v has a label: a class, a number, or, if the labels are Multi, at least one
// known bit.
func (l *Labels) Has(v NodeID) bool {
	if l.Label.Numbers {
		x := l.Number(v)
		return x == x
	}
	if !l.Label.Multi {
		return l.Class(v) >= 0
	}
	for _, b := range l.Bits(v) {
		if b != MissingBit {
			return true
		}
	}
	return false
}

// Sets holds the three parts of a split: stored ids, ascending, borrowed.
type Sets struct{ Train, Valid, Test []NodeID }

// Split returns split i of the manifest, after checking all its pages. A page that fails its
// checksum panics with an error that [Guard] returns.
func (d *Dataset) Split(i int) Sets {
	s := &d.manifest.Splits[i]
	ids := func(f *File) []NodeID { return cast[NodeID](d.sections[f.Path].whole()) }
	return Sets{ids(&s.Train), ids(&s.Valid), ids(&s.Test)}
}

// Labelled returns the ids that have a label, in memory of their own; all ids if l is nil. ids are
// a part of a split of a node type with the given number of nodes. Labelled checks their range and
// order, which Open did not.
func (d *Dataset) Labelled(ids []NodeID, nodes int, l *Labels) ([]NodeID, error) {
	corrupt := func(format string, args ...any) error {
		return fmt.Errorf("%s: %w: the split names %s; run gnnstore verify", d.path, ErrCorrupt, fmt.Sprintf(format, args...))
	}
	some := make([]NodeID, 0, len(ids))
	for i, v := range ids {
		if int(v) >= nodes {
			return nil, corrupt("node %d of %d", v, nodes)
		}
		if i > 0 && ids[i-1] >= v {
			return nil, corrupt("node %d after node %d", v, ids[i-1])
		}
		if l == nil || l.Has(v) {
			some = append(some, v)
		}
	}
	return some, nil
}

// IDs translates between stored ids and the ids that users know: integers, or texts if HasNames.
// Safe for concurrent use. A page that fails its checksum panics with an error that [Guard]
// returns.
type IDs struct {
	original []int64
	order    []NodeID
	names    *texts      // nil when there are none
	in       [2]*section // of original and order
	path     string      // of the dataset
}

// IDs returns the id map of node type i of the manifest.
func (d *Dataset) IDs(i int) IDs {
	t := &d.manifest.NodeTypes[i]
	original, order := d.sections[t.Original.Path], d.sections[t.Order.Path]
	return IDs{
		cast[int64](original.payload()), cast[NodeID](order.payload()), d.texts[i], [2]*section{original, order}, d.path,
	}
}

// Original returns the user's id of stored node v; if HasNames, v's row in the source.
func (m IDs) Original(v NodeID) int64 {
	m.in[0].touch(8*int64(v), 8*int64(v)+8)
	return m.original[v]
}

// Nth returns the node with the nth smallest original id. An entry that is not a node panics with a
// *SectionError.
func (m IDs) Nth(n int) NodeID {
	m.in[1].touch(4*int64(n), 4*int64(n)+4)
	v := m.order[n]
	if int(v) >= len(m.original) {
		err := fmt.Errorf("entry %d is node %d of %d; run gnnstore verify", n, v, len(m.original))
		panic(&SectionError{m.path, m.in[1].spec.Path, PageSize + 4*int64(n), err})
	}
	return v
}

// Stored returns the node that users know as id. Ids 0 to n-1 take one look-up; other ids take a
// binary search.
func (m IDs) Stored(id int64) (NodeID, bool) {
	if id >= 0 && id < int64(len(m.order)) {
		if v := m.Nth(int(id)); m.Original(v) == id {
			return v, true
		}
	}
	n, ok := sort.Find(len(m.order), func(n int) int { return cmp.Compare(id, m.Original(m.Nth(n))) })
	if !ok {
		return 0, false
	}
	return m.Nth(n), true
}

// Order returns the stored ids by ascending original id, after checking all pages. The slice is
// borrowed.
func (m IDs) Order() []NodeID {
	m.in[1].touch(0, 4*int64(len(m.order)))
	return m.order
}
