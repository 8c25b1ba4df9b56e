package build

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// writeHeldEdges writes the held-out edges of relation i that the source has by themselves, in its
// order, which negatives follow.
func (b *builder) writeHeldEdges(ctx context.Context, i int) error {
	f, src := b.form(i), b.extras
	if rel := &b.state.Relations[i]; rel.ReverseOf != "" {
		return fmt.Errorf("{reverse}: relation %s has the edges of %s the other way round, and a split of its own in the source; leave {reverse} out", f.Key(), rel.ReverseOf)
	}
	spec := store.EdgeSplitSpec{Name: "given", SrcNegatives: f.Held.SrcNegatives, DstNegatives: f.Held.DstNegatives, Pool: f.Held.Pool}
	for _, c := range f.Held.Columns {
		spec.Columns = append(spec.Columns, store.ColumnSpec{Name: c.Name, Elem: c.Elem})
	}
	w, err := b.w.NewEdgeSplit(f.Src, f.Name, f.Dst, spec)
	if err != nil {
		return err
	}
	keys, err := b.area.NewWriter(fmt.Sprintf("held-%d", i), 1, minPartBlock)
	if err != nil {
		return err
	}
	h := heldWriter{b: b, f: &f, w: w, keys: keys.NewAppender()}
	report := EdgeSplitReport{Name: "given", Relation: f.Key(), Train: b.state.Relations[i].Report.Edges}
	for p, count := range []*int64{&report.Valid, &report.Test} {
		part := ingest.Valid + ingest.Part(p)
		h.own.part(f.Held.Pool[p], b.room())
		h.part, h.negatives = store.HeldPart(p), [2]int{f.Held.SrcNegatives[p], f.Held.DstNegatives[p]}
		if err = src.HeldEdges(ctx, i, part, h.from(ctx, h.edges)); err != nil {
			break
		}
		*count = h.at.next
		if !f.Held.Pool[p] {
			continue
		}
		if err = src.HeldPool(ctx, i, part, h.from(ctx, h.pool)); err != nil {
			break
		}
	}
	h.keys.Flush()
	logs, err := extsort.CloseAfter(err, keys.Close)
	if err != nil {
		return err
	}
	if err := w.Close(); err != nil {
		return err
	}
	h.own.note(b, f.Key())
	again, err := b.countHeld(ctx, i, logs)
	if err != nil {
		return err
	}
	b.discard(logs...)
	if again > 0 {
		b.note("%d held-out edges of relation %s are among its training edges as well, as the source has them", again, f.Key())
	}
	b.report.EdgeSplits = append(b.report.EdgeSplits, report)
	return nil
}

// countHeld counts the logged edges, by stored ids, that relation i has.
func (b *builder) countHeld(ctx context.Context, i int, logs []extsort.Bucket) (n int64, err error) {
	f := b.form(i)
	f.reverse, f.merge, f.width = false, false, 8
	var keys relation
	if keys.Given, keys.Starts, err = b.partLogs(ctx, &f, logs, fmt.Sprintf("held-keys-%d", i), nil, nil, nil); err != nil {
		return 0, err
	}
	left, err := b.w.OpenRelation(f.Key())
	if err != nil {
		return 0, err
	}
	defer left.Close()
	err = b.sortBuckets(ctx, &f, &keys, func(_ int, wait turn, m *merged) error {
		if err := wait(); err != nil {
			return err
		}
		more, err := inTopology(left, m)
		n += more
		return err
	})
	b.discard(keys.Given...)
	return n, err
}

// heldWriter turns chunks of held-out edges into stored ids, and writes them.
type heldWriter struct {
	b         *builder
	f         *edgeForm
	w         *store.EdgeSplitWriter
	keys      *extsort.Appender // of the edges, to be looked for in the topology
	own       ownNegatives
	part      store.HeldPart
	negatives [2]int // nodes in the place of each edge's source, and of its destination
	at        origin
	stored    [4][]store.NodeID // memory
	values    [][]byte
}

// from begins a section, whose chunks write takes.
func (h *heldWriter) from(ctx context.Context, write func(c *ingest.HeldChunk) error) func(ingest.HeldChunk) error {
	h.at = origin{}
	return func(c ingest.HeldChunk) error {
		if err := h.at.follow(ctx, c.Place, len(c.Src)); err != nil {
			return err
		}
		if len(c.Dst) != len(c.Src) {
			return fmt.Errorf("%s: the reader gave %d sources and %d destinations; this is a fault of the reader, please report it", c.File, len(c.Src), len(c.Dst))
		}
		return write(&c)
	}
}

// ids are the stored ids of rows, each of them the width-th part of an edge. what names them in
// messages.
func (h *heldWriter) ids(slot int, n *nodes, c *ingest.HeldChunk, rows []int64, width int, what string) ([]store.NodeID, error) {
	stored, out := n.storedIDs(), h.stored[slot][:0]
	for k, row := range rows {
		if row < 0 || row >= int64(n.count) {
			return nil, fmt.Errorf("%s: %s %s", c.Row(k/width), what, n.unknown(fmt.Sprint(row)))
		}
		out = append(out, storedID(stored, uint32(row)))
	}
	h.stored[slot] = out
	return out, nil
}

// edges takes edges with their negatives and values.
func (h *heldWriter) edges(c *ingest.HeldChunk) error {
	var given [4][]store.NodeID
	for slot, of := range []struct {
		n     *nodes
		rows  []int64
		width int
		what  string
	}{
		{h.f.src, c.Src, 1, "source"}, {h.f.dst, c.Dst, 1, "destination"},
		{h.f.src, c.SrcNegatives, h.negatives[0], "negative source"}, {h.f.dst, c.DstNegatives, h.negatives[1], "negative destination"},
	} {
		if len(of.rows) != len(c.Src)*of.width {
			return fmt.Errorf("%s: the reader gave %d of %s for %d edges; this is a fault of the reader, please report it", c.File, len(of.rows), of.what, len(c.Src))
		}
		var err error
		if given[slot], err = h.ids(slot, of.n, c, of.rows, max(of.width, 1), of.what); err != nil {
			return err
		}
	}
	for k, u := range given[0] {
		h.keys.Put8(0, extsort.MakeKey(given[1][k], u))
		h.own.positive(extsort.MakeKey(given[1][k], u))
		if w := h.negatives[0]; slices.Contains(given[2][k*w:(k+1)*w], u) {
			h.own.found(c, k)
		} else if w := h.negatives[1]; slices.Contains(given[3][k*w:(k+1)*w], given[1][k]) {
			h.own.found(c, k)
		}
	}
	h.values = h.values[:0]
	for k, column := range h.f.Held.Columns {
		var b []byte
		for _, x := range c.Values[k] {
			b = binary.LittleEndian.AppendUint64(b, x)[:len(b)+column.Elem.Size()]
		}
		h.values = append(h.values, b)
	}
	h.b.addMeter(len(c.Src))
	if err := h.w.Append(h.part, given[0], given[1], h.values...); err != nil {
		return err
	}
	return h.w.AppendNegatives(h.part, given[2], given[3])
}

// pool takes pairs that are no edges.
func (h *heldWriter) pool(c *ingest.HeldChunk) error {
	src, err := h.ids(0, h.f.src, c, c.Src, 1, "pair that is no edge: source")
	if err != nil {
		return err
	}
	dst, err := h.ids(1, h.f.dst, c, c.Dst, 1, "pair that is no edge: destination")
	if err != nil {
		return err
	}
	for k, u := range src {
		if h.own.has(extsort.MakeKey(dst[k], u)) {
			h.own.found(c, k)
		}
	}
	return h.w.AppendPool(h.part, src, dst)
}

// ownNegatives counts held-out edges that are among their own negatives: in the row of the edge, or
// in the pool of its part.
type ownNegatives struct {
	edges  []uint64 // of the part, if it has a pool
	sorted bool
	room   int // the most edges that are kept
	over   bool
	n      int64
	first  string
}

// positive takes an edge of a part that has a pool.
func (o *ownNegatives) positive(key uint64) {
	if o.room == 0 || o.over {
		return
	}
	if o.edges = append(o.edges, key); len(o.edges) > o.room {
		o.edges, o.over = nil, true
	}
}

func (o *ownNegatives) has(key uint64) bool {
	if !o.sorted {
		slices.Sort(o.edges)
		o.sorted = true
	}
	_, found := slices.BinarySearch(o.edges, key)
	return found
}

func (o *ownNegatives) found(c *ingest.HeldChunk, k int) {
	if o.n++; o.n == 1 {
		o.first = c.Row(k)
	}
}

// part begins a part. Its edges are kept if it has a pool.
func (o *ownNegatives) part(pool bool, room int64) {
	o.edges, o.sorted, o.room = o.edges[:0], false, 0
	if pool {
		// 8 bytes an edge, twice while the list grows, in half of the room
		o.room = int(room / 32)
	}
}

// note adds notes about the edges that were found.
func (o *ownNegatives) note(b *builder, relation string) {
	if o.n > 0 {
		b.note("%d negatives of relation %s are held-out edges themselves, so that the metric counts them against the edges; the first is %s", o.n, relation, o.first)
	}
	if o.over {
		b.note("relation %s: whether its negatives are held-out edges was not looked at, since that takes more than {memory}", relation)
	}
}
