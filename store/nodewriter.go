package store

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
)

// NodeTypeWriter writes the id map of a node type. Its calls may alternate in any way. If users
// know the nodes by texts, AppendName and AppendText write these, and the original ids are the
// nodes' rows in the source.
type NodeTypeWriter struct {
	w        *Writer
	node     NodeType
	rows     int64 // nodes whose ids are written
	original *sectionWriter
	order    *sectionWriter
	done     [2]int64 // rows written of original and order
	names    [2]textWriter
	id       [4]byte
}

// NewNodeType begins the id map of a node type of count nodes.
func (w *Writer) NewNodeType(name string, count int64) (*NodeTypeWriter, error) {
	return w.NewPartOfNodes(name, count, count)
}

// NewPartOfNodes begins the id map of stored nodes of a node type, which has count nodes in the
// whole: see [Part].
func (w *Writer) NewPartOfNodes(name string, count, stored int64) (*NodeTypeWriter, error) {
	if err := checkNames("node type", name); err != nil {
		return nil, err
	}
	if count > math.MaxUint32 {
		return nil, fmt.Errorf("node type %s: %d nodes; ids are 32 bits, so at most %d", name, count, uint32(math.MaxUint32))
	}
	t := &NodeTypeWriter{w: w, node: NodeType{Name: name, Count: count}, rows: stored}
	for i, by := range []string{byName, byNode} {
		t.names[i] = textWriter{w: w, node: &t.node, by: by, limit: maxTextTable}
	}
	var err error
	if t.original, err = w.section(t.node.originalPath(), I64, 1, 8, 0); err != nil {
		return nil, err
	}
	if t.order, err = w.section(t.node.orderPath(), U32, 1, 4, 0); err != nil {
		return nil, errors.Join(err, t.original.discard())
	}
	return t, nil
}

// AppendOriginal writes the ids that users know the next stored nodes by. They are unique within a
// node type.
func (t *NodeTypeWriter) AppendOriginal(ids []int64) error {
	t.done[0] += int64(len(ids))
	return t.original.append(bytesOf(ids))
}

// AppendOrder writes all stored nodes by ascending original id, each once.
func (t *NodeTypeWriter) AppendOrder(nodes []NodeID) error {
	t.done[1] += int64(len(nodes))
	return t.order.append(bytesOf(nodes))
}

// Close ends the id map.
func (t *NodeTypeWriter) Close() error {
	names, err := t.closeNames()
	if n := t.rows; err == nil && t.done != [2]int64{n, n} {
		err = fmt.Errorf("node type %s: %d original ids and an order of %d for %d nodes; please report it",
			t.node.Name, t.done[0], t.done[1], n)
	}
	if err != nil {
		_, _ = t.original.discard(), t.order.discard()
		return err
	}
	t.node.Names = names
	var err2 error
	t.node.Original, err = t.original.close(t.rows)
	t.node.Order, err2 = t.order.close(t.rows)
	if err = errors.Join(err, err2); err == nil {
		t.w.manifest.NodeTypes = append(t.w.manifest.NodeTypes, t.node)
	}
	return err
}

// AddNodeType writes the id map of a node type: users know stored node v as original[v].
func (w *Writer) AddNodeType(name string, original []int64) error {
	t, err := w.NewNodeType(name, int64(len(original)))
	if err != nil {
		return err
	}
	order := make([]NodeID, len(original))
	for i := range order {
		order[i] = NodeID(i)
	}
	slices.SortFunc(order, func(a, b NodeID) int { return cmp.Compare(original[a], original[b]) })
	for k := 1; k < len(order) && err == nil; k++ {
		if original[order[k]] == original[order[k-1]] {
			err = fmt.Errorf("node type %s: original id %d is used twice", name, original[order[k]])
		}
	}
	if err == nil {
		err = t.AppendOriginal(original)
	}
	if err == nil {
		err = t.AppendOrder(order)
	}
	if err != nil {
		_, _ = t.original.discard(), t.order.discard()
		return err
	}
	return t.Close()
}
