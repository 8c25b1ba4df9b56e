package ingest

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/store"
)

// nodes is one node type. A node has three names: its id, which users and edges say; its row, which features and labels
// follow; and its stored id, which the dataset uses. Without external ids, id and row are the same.
type nodes struct {
	name   string
	count  int
	ids    []int64        // id of a row; nil: the row
	byID   []uint32       // rows by ascending id; nil: the row
	stored []store.NodeID // stored id of a row; nil: the row
	rowOf  []uint32       // row of a stored id; nil: the id
}

// row finds the row of an id.
func (n *nodes) row(id int64) (uint32, bool) {
	if n.ids == nil {
		return uint32(id), id >= 0 && id < int64(n.count)
	}
	k, ok := slices.BinarySearchFunc(n.byID, id, func(row uint32, id int64) int { return cmp.Compare(n.ids[row], id) })
	if !ok {
		return 0, false
	}
	return n.byID[k], true
}

// id is what users call the node of a row.
func (n *nodes) id(row uint32) int64 {
	if n.ids == nil {
		return int64(row)
	}
	return n.ids[row]
}

func (n *nodes) storedID(row uint32) store.NodeID {
	if n.stored == nil {
		return row
	}
	return n.stored[row]
}

func (n *nodes) storedRow(v store.NodeID) uint32 {
	if n.rowOf == nil {
		return v
	}
	return n.rowOf[v]
}

// unknown says why an id has no row, and what to try.
func (n *nodes) unknown(id int64) string {
	if n.ids == nil {
		return fmt.Sprintf("%d is not one of the %d nodes of type %s, which count from 0; are the ids 1-based, or the node count of another file?",
			id, n.count, n.name)
	}
	return fmt.Sprintf("%d is not among the %d node ids of type %s; is the node list complete?", id, n.count, n.name)
}

// readNodes fixes the nodes of every type.
func (b *builder) readNodes(ctx context.Context) error {
	for i, t := range b.schema.NodeTypes {
		n := &nodes{name: t.Name, count: int(t.Count)}
		b.nodes = append(b.nodes, n)
		if t.IDs == RowIDs {
			continue
		}
		b.meter.begin("read node ids", t.Count, "nodes")
		if err := n.readIDs(ctx, b.src, i, t.Count, &b.meter); err != nil {
			return err
		}
		b.meter.end()
	}
	return nil
}

func (n *nodes) readIDs(ctx context.Context, src Source, nodeType int, declared int64, m *meter) error {
	n.ids = []int64{}
	var from origin
	err := src.NodeIDs(ctx, nodeType, func(c IDChunk) error {
		if err := from.follow(ctx, c.Place, len(c.IDs)); err != nil {
			return err
		}
		n.ids = append(n.ids, c.IDs...)
		if int64(len(n.ids)) > math.MaxUint32 {
			return tooManyNodes(n.name, int64(len(n.ids)))
		}
		m.add(len(c.IDs))
		return nil
	})
	if err != nil {
		return err
	}
	if declared > 0 && declared != int64(len(n.ids)) {
		return fmt.Errorf("node type %s: %d ids for %d nodes; is %s complete?", n.name, len(n.ids), declared, from.name(n.name))
	}
	n.count = len(n.ids)
	n.byID = make([]uint32, n.count)
	for i := range n.byID {
		n.byID[i] = uint32(i)
	}
	slices.SortFunc(n.byID, func(a, b uint32) int {
		return cmp.Or(cmp.Compare(n.ids[a], n.ids[b]), cmp.Compare(a, b))
	})
	for k := 1; k < n.count; k++ {
		if first, again := n.byID[k-1], n.byID[k]; n.ids[first] == n.ids[again] {
			return fmt.Errorf("%s: row %d (counting from 0): node id %d is already that of row %d; ids must be unique within node type %s",
				from.file(int64(again)), again, n.ids[again], first, n.name)
		}
	}
	return nil
}

func tooManyNodes(nodeType string, n int64) error {
	return fmt.Errorf("node type %s: %d nodes; ids are 32 bits, so at most %d of a type; split it into several types", nodeType, n, uint32(math.MaxUint32))
}

// writeIDs writes the id maps, the last thing that needs the rows' order.
func (b *builder) writeIDs(ctx context.Context) error {
	for _, n := range b.nodes {
		b.meter.begin("write ids", int64(n.count), "nodes")
		original := make([]int64, n.count)
		for v := range original {
			original[v] = n.id(n.storedRow(store.NodeID(v)))
		}
		if err := b.w.AddNodeType(n.name, original); err != nil {
			return err
		}
		b.meter.add(n.count)
		b.meter.end()
		b.report.NodeTypes = append(b.report.NodeTypes, NodeTypeReport{Name: n.name, Count: int64(n.count)})
	}
	return nil
}

// origin checks that the chunks of a section follow each other, and remembers which file each row came from.
type origin struct {
	next  int64
	files []Place // where each file begins
}

// follow takes the next chunk of a section: rows from p on. It is also where a cancelled context is noticed.
func (f *origin) follow(ctx context.Context, p Place, rows int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if p.First != f.next {
		return fmt.Errorf("%s: the reader gave row %d where row %d follows; this is a fault of the reader, please report it", p.File, p.First, f.next)
	}
	if len(f.files) == 0 || f.files[len(f.files)-1].File != p.File {
		f.files = append(f.files, p)
	}
	f.next += int64(rows)
	return nil
}

// file is the file that holds a row.
func (f *origin) file(row int64) string {
	name := ""
	for _, p := range f.files {
		if p.First > row {
			break
		}
		name = p.File
	}
	return name
}

// name is the last file read, or what stands in for it when there was none.
func (f *origin) name(otherwise string) string {
	if len(f.files) == 0 {
		return otherwise
	}
	return f.files[len(f.files)-1].File
}
