package store

import (
	"fmt"
	"slices"
)

// MissingBit is the value of a multi-label cell that is unknown.
const MissingBit = 255

// Labels is one prediction target of one node type.
type Labels struct {
	Label  *Label
	class  []int32
	multi  []uint8
	stride int
}

// Labels returns label i of the manifest.
func (d *Dataset) Labels(i int) *Labels {
	l := &d.manifest.Labels[i]
	p := d.sections[l.Values.Path].payload()
	if l.Multi {
		return &Labels{Label: l, multi: p, stride: int(l.Classes)}
	}
	return &Labels{Label: l, class: cast[int32](p)}
}

// Classes is the number of classes.
func (l *Labels) Classes() int { return int(l.Label.Classes) }

// Class is v's class, -1 when it is missing. It is for labels that are not Multi.
func (l *Labels) Class(v NodeID) int32 { return l.class[v] }

// Bits is v's row of zeros, ones and [MissingBit], for labels that are Multi. The slice is borrowed.
func (l *Labels) Bits(v NodeID) []uint8 {
	return l.multi[int(v)*l.stride : (int(v)+1)*l.stride : (int(v)+1)*l.stride]
}

// Has says whether v has a label: a class, or of those that are Multi a bit that is known.
func (l *Labels) Has(v NodeID) bool {
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

// Sets are the three parts of a split: stored ids, ascending, borrowed.
type Sets struct{ Train, Valid, Test []NodeID }

// Split returns split i of the manifest.
func (d *Dataset) Split(i int) Sets {
	s := &d.manifest.Splits[i]
	ids := func(f *File) []NodeID { return cast[NodeID](d.sections[f.Path].payload()) }
	return Sets{ids(&s.Train), ids(&s.Valid), ids(&s.Test)}
}

// Labelled copies those of ids, a part of a split of so many nodes, that have a label, all where l is nil. It believes neither ids
// nor their order, since opening did not look at them.
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

// IDs translates between stored ids and the ids that users know: integers, or, where HasNames, texts. It is safe for
// concurrent use.
type IDs struct {
	original []int64
	order    []NodeID
	names    *texts // nil when there are none
}

// IDs returns the id map of node type i of the manifest.
func (d *Dataset) IDs(i int) IDs {
	t := &d.manifest.NodeTypes[i]
	return IDs{
		cast[int64](d.sections[t.Original.Path].payload()), cast[NodeID](d.sections[t.Order.Path].payload()), d.texts[i],
	}
}

// Original is the user's id of stored node v, or its row in the source where it HasNames.
func (m IDs) Original(v NodeID) int64 { return m.original[v] }

// Stored finds the node that users know as id. It is a look-up in the dense case and a binary search with gaps.
func (m IDs) Stored(id int64) (NodeID, bool) {
	if id >= 0 && id < int64(len(m.order)) {
		if v := m.order[id]; m.original[v] == id {
			return v, true
		}
	}
	k, ok := slices.BinarySearchFunc(m.order, id, func(v NodeID, id int64) int {
		switch o := m.original[v]; {
		case o < id:
			return -1
		case o > id:
			return 1
		}
		return 0
	})
	if !ok {
		return 0, false
	}
	return m.order[k], true
}
