package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// nodes is one node type. A node has three names: its id, which users and edges say; its row, which
// features and labels follow; and its stored id, which the dataset uses. For RowIDs, id and row are
// the same; else see join.go.
type nodes struct {
	name     string
	number   int // of the type
	count    int
	kind     ingest.IDs
	gathered bool

	// One uint32 a row each, nil where nobody needs them: see order.go.
	times  *kernels.HostBuf // neighbour lists that the row is in
	degree *kernels.HostBuf // neighbours
	out    *kernels.HostBuf // times, kept for features
	stored *kernels.HostBuf // stored id; nil: the row
}

// storedIDs are the stored ids of all rows, borrowed; nil when they are the rows.
func (n *nodes) storedIDs() []store.NodeID {
	if n.stored == nil {
		return nil
	}
	return n.stored.Uint32s()[:n.count]
}

// storedID is the stored id of a row.
func storedID(stored []store.NodeID, row uint32) store.NodeID {
	if stored == nil {
		return row
	}
	return stored[row]
}

// unknown returns a message for an id without a row, with the reason and a remedy.
func (n *nodes) unknown(id string) string {
	if n.kind == ingest.RowIDs {
		return fmt.Sprintf("%s is not one of the %d nodes of type %s, which count from 0; are the ids 1-based, or the node count of another file?",
			id, n.count, n.name)
	}
	return fmt.Sprintf("%s is not among the %d node ids of type %s; is the node list complete?", id, n.count, n.name)
}

func tooManyNodes(nodeType string, n int64) error {
	return fmt.Errorf("node type %s: %d nodes; ids are 32 bits, so at most %d of a type; split it into several types", nodeType, n, uint32(math.MaxUint32))
}

// writeIDs writes the id maps, the last thing that needs the rows' order.
func (b *builder) writeIDs(s *sizes, do func(pass)) {
	for i, n := range b.nodes {
		ids := s.nodes[i]
		c := cost{items: ids, seconds: float64(ids) / rateNodes, written: 12*ids + 2*sectionOverhead}
		if n.kind == ingest.TextIDs {
			c.written += 2 * idBytes * ids
		}
		p := pass{name: "write ids of " + n.name, total: int64(n.count), unit: "nodes", cost: c}
		p.run = func(ctx context.Context) error {
			w, err := b.w.NewNodeType(n.name, int64(n.count))
			if err != nil {
				return err
			}
			if n.kind == ingest.RowIDs {
				err = b.writeRowIDs(ctx, n, w)
			} else {
				err = b.writeOwnIDs(ctx, i, n, w)
			}
			if err != nil {
				return err
			}
			b.report.NodeTypes = append(b.report.NodeTypes, NodeTypeReport{Name: n.name, Count: int64(n.count)})
			return w.Close()
		}
		do(p)
	}
}

// idChunk is the number of ids written at a time.
const idChunk = 1 << 17

// writeRowIDs writes the ids of a type that is called by its rows: ascending ids are ascending
// rows.
func (b *builder) writeRowIDs(ctx context.Context, n *nodes, w *store.NodeTypeWriter) error {
	stored := n.storedIDs()
	order := make([]store.NodeID, 0, min(n.count, idChunk))
	flush := func() error {
		err := w.AppendOrder(order)
		b.addMeter(len(order))
		order = order[:0]
		if err == nil {
			err = ctx.Err()
		}
		return err
	}
	for row := range uint32(n.count) {
		if order = append(order, storedID(stored, row)); len(order) == idChunk {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	if err := flush(); err != nil {
		return err
	}
	return b.placeOriginals(n, w, func(put func(row uint32, id int64)) error {
		for row := range uint32(n.count) {
			put(row, int64(row))
		}
		return nil
	})
}

// placeOriginals writes the ids of rows, which each gives in any order, in stored order.
func (b *builder) placeOriginals(n *nodes, w *store.NodeTypeWriter, each func(put func(row uint32, id int64)) error) error {
	stored := n.storedIDs()
	memory, err := b.forPlacer(int64(n.count), 8, b.room()/2)
	if err != nil {
		return err
	}
	p, err := b.area.NewPlacer("originals-"+n.name, int64(n.count), 8, memory)
	if err != nil {
		return err
	}
	defer p.Free()
	var id8 [8]byte
	err = each(func(row uint32, id int64) {
		binary.LittleEndian.PutUint64(id8[:], uint64(id))
		p.Put(storedID(stored, row), id8[:])
	})
	buckets, err := extsort.CloseAfter(err, p.Close)
	if err != nil {
		return err
	}
	ids := make([]int64, idChunk)
	emit := func(_ int64, rows []byte) error {
		for len(rows) > 0 {
			k := min(len(rows)/8, idChunk)
			for i := range ids[:k] {
				ids[i] = int64(binary.LittleEndian.Uint64(rows[8*i:]))
			}
			if err := w.AppendOriginal(ids[:k]); err != nil {
				return err
			}
			rows = rows[8*k:]
		}
		return nil
	}
	err = p.Each(emit)
	b.discard(buckets...)
	return err
}

// origin checks that the chunks of a section follow each other, and remembers which file each row
// came from.
type origin struct {
	next  int64
	files []ingest.Place // where each file begins
}

// follow takes the next chunk of a section: rows from p on. It is also where a cancelled context is
// noticed.
func (f *origin) follow(ctx context.Context, p ingest.Place, rows int) error {
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
