package build

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/zeebo/xxh3"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/store"
)

// dictionary is the ids of one node type, as the journal keeps it.
type dictionary struct {
	Parts    int              `json:"parts"`
	Rows     []extsort.Bucket `json:"rows,omitempty"`     // by part: hash and row
	Gathered []extsort.Bucket `json:"gathered,omitempty"` // by relation and end, then by part: texts
	Sorted   extsort.Bucket   `json:"sorted"`             // texts, ascending, and rows
	Seed     uint64           `json:"seed"`
}

const (
	hashBytes  = 16
	rowBytes   = 4
	entryBytes = hashBytes + rowBytes
	// tableBytes is the memory of an entry while its part is resolved: the entry and two slots.
	tableBytes = entryBytes + 8
	maxParts   = 256
)

// idText is the text of an integer.
func idText(dst []byte, id int64) []byte {
	return binary.BigEndian.AppendUint64(dst[:0], uint64(id)^1<<63)
}

// textOf returns the text of the k-th id. It writes the text of an integer to *buf.
func (n *nodes) textOf(id []int64, texts *ingest.Texts, k int, buf *[]byte) []byte {
	if n.kind == ingest.TextIDs {
		return texts.At(k)
	}
	*buf = idText(*buf, id[k])
	return *buf
}

func textID(text []byte) int64 { return int64(binary.BigEndian.Uint64(text) ^ 1<<63) }

// display formats an id as users write it.
func (n *nodes) display(text []byte) string {
	if n.kind == ingest.IntIDs {
		return fmt.Sprint(textID(text))
	}
	return fmt.Sprintf("%q", text)
}

// part is the part of a hash.
func (d *dictionary) part(h xxh3.Uint128) int { return int(h.Hi >> 32 * uint64(d.Parts) >> 32) }

func (d *dictionary) hash(text []byte) xxh3.Uint128 { return xxh3.Hash128Seed(text, d.Seed) }

func putHash(dst []byte, h xxh3.Uint128) {
	binary.LittleEndian.PutUint64(dst, h.Hi)
	binary.LittleEndian.PutUint64(dst[8:], h.Lo)
}

func getHash(b []byte) xxh3.Uint128 {
	return xxh3.Uint128{Hi: binary.LittleEndian.Uint64(b), Lo: binary.LittleEndian.Uint64(b[8:])}
}

// dictionaryOf returns the dictionary of a node type; nil for RowIDs.
func (b *builder) dictionaryOf(n *nodes) *dictionary {
	if n.kind == ingest.RowIDs {
		return nil
	}
	for i, m := range b.nodes {
		if m == n {
			return &b.state.Dictionaries[i]
		}
	}
	panic("ingest: a node type that is none")
}

// beginDictionaries chooses the parts of every dictionary, unless an earlier Build did.
func (b *builder) beginDictionaries(context.Context) error {
	if b.state.Dictionaries != nil {
		return nil
	}
	b.state.Dictionaries = make([]dictionary, len(b.nodes))
	for i, t := range b.schema.NodeTypes {
		d := &b.state.Dictionaries[i]
		if t.IDs == ingest.RowIDs {
			continue
		}
		ids := t.Count
		if ids <= 0 {
			ids = 0
			for _, r := range b.read() {
				for _, end := range []string{r.Src, r.Dst} {
					if end == t.Name && r.Edges < 0 {
						ids += unknownEdges / 8
					} else if end == t.Name {
						ids += r.Edges
					}
				}
			}
		}
		each := b.room() / 2 / int64(workers())
		d.Parts = 1
		for d.Parts < maxParts && ids*tableBytes > each*int64(d.Parts) {
			d.Parts *= 2
		}
		d.Parts = cmp.Or(b.test.parts, d.Parts)
		d.Seed = rand.Uint64()
	}
	return nil
}

// partBlock returns the block size for each of this many Writers. edges is -1 if their number is
// not known.
func (b *builder) partBlock(writers int, edges int64) int {
	if edges >= 0 && edges < fewEdges {
		return minPartBlock
	}
	block := extsort.MaxBlock
	for block > minPartBlock && extsort.WriterBytes(maxParts, block)*int64(writers) > b.room()/2 {
		block /= 2
	}
	return block
}

const minPartBlock = 64 << 10

// readNodes reads the ids that are listed.
func (b *builder) readNodes(s *sizes, do func(pass)) {
	for i, t := range b.schema.NodeTypes {
		if t.IDs == ingest.RowIDs || t.Gathered {
			continue
		}
		n := s.nodes[i]
		do(pass{name: "read ids of " + t.Name, total: t.Count, unit: "nodes",
			cost: cost{items: n, seconds: float64(n) / rateIDs, spillWritten: n * 2 * idBytes},
			run:  func(ctx context.Context) error { return b.readIDs(ctx, i) }})
	}
}

func (b *builder) readIDs(ctx context.Context, i int) error {
	n, d := b.nodes[i], &b.state.Dictionaries[i]
	w, err := b.area.NewWriter(fmt.Sprintf("ids-%d", i), d.Parts, b.partBlock(1, -1))
	if err != nil {
		return err
	}
	to := w.NewAppender()
	texts := b.area.NewTextSorter(fmt.Sprintf("sort-%d", i), b.forTexts())
	var from origin
	var entry [entryBytes]byte
	var int8 []byte
	err = b.src.NodeIDs(ctx, i, func(c ingest.IDChunk) error {
		if err := from.follow(ctx, c.Place, c.Len()); err != nil {
			return err
		}
		if from.next > math.MaxUint32 {
			return tooManyNodes(n.name, from.next)
		}
		for k := range c.Len() {
			var text []byte
			if n.kind == ingest.IntIDs {
				int8 = idText(int8, c.IDs[k])
				text = int8
			} else if text = c.Texts.At(k); len(text) == 0 || len(text) > ingest.MaxIDBytes {
				return fmt.Errorf("%s: an id of %d bytes; ids have 1 to %d", c.Row(k), len(text), ingest.MaxIDBytes)
			}
			h := d.hash(text)
			putHash(entry[:], h)
			row := uint32(c.First) + uint32(k)
			binary.LittleEndian.PutUint32(entry[hashBytes:], row)
			to.Put(d.part(h), entry[:])
			if err := texts.Add(text, row); err != nil {
				return err
			}
		}
		b.addMeter(c.Len())
		return w.Err()
	})
	to.Flush()
	rows, err := extsort.CloseAfter(err, w.Close)
	if err != nil {
		return err
	}
	if declared := b.schema.NodeTypes[i].Count; declared > 0 && declared != from.next {
		return fmt.Errorf("node type %s: %d ids for %d nodes; is %s complete?", n.name, from.next, declared, from.name(n.name))
	}
	sorted, err := b.area.NewTextWriter(fmt.Sprintf("sorted-%d", i))
	if err != nil {
		return err
	}
	var last []byte
	var lastRow uint32
	any := false
	err = texts.Sorted(func(text []byte, row uint32) error {
		if any && bytes.Equal(last, text) {
			return fmt.Errorf("%s: row %d (counting from 0): node id %s is already that of row %d; ids must be unique within node type %s",
				from.file(int64(row)), row, n.display(text), lastRow, n.name)
		}
		last, lastRow, any = append(last[:0], text...), row, true
		return sorted.Put(text, row)
	})
	d.Sorted, err = extsort.CloseAfter(err, sorted.Close)
	d.Rows = rows
	b.setCount(i, from.next)
	return err
}

func (b *builder) setCount(i int, count int64) {
	b.nodes[i].count, b.state.Counts[i] = int(count), count
}

// gatherer takes the ids of one end of a relation to the parts of a gathered type.
type gatherer struct {
	d      *dictionary
	w      *extsort.Writer
	to     *extsort.Appender
	recent [1 << 14]uint64 // hashes of ids that were just there
	record []byte
}

func (g *gatherer) add(text []byte, h xxh3.Uint128) {
	if slot := &g.recent[h.Lo%uint64(len(g.recent))]; *slot != h.Lo|1 {
		*slot = h.Lo | 1
		g.record = extsort.AppendText(g.record[:0], text, 0)
		g.to.Put(g.d.part(h), g.record)
	}
}

// gather makes the dictionary of a gathered type.
func (b *builder) gather(ctx context.Context, i int) error {
	n, d := b.nodes[i], &b.state.Dictionaries[i]
	texts := b.area.NewTextSorter(fmt.Sprintf("sort-%d", i), b.forTexts())
	for p := range d.Parts {
		seen := map[xxh3.Uint128]struct{}{}
		for at := p; at < len(d.Gathered); at += d.Parts {
			err := b.area.EachText(d.Gathered[at], func(text []byte, _ uint32) error {
				h := d.hash(text)
				if _, again := seen[h]; again {
					return nil
				}
				seen[h] = struct{}{}
				if int64(len(seen))*mapBytes > b.room()/2 {
					return b.tooLittle(b.Memory + b.room())
				}
				b.addMeter(1)
				return texts.Add(text, 0)
			})
			if err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	w, err := b.area.NewWriter(fmt.Sprintf("ids-%d", i), d.Parts, b.partBlock(2, -1))
	if err != nil {
		return err
	}
	to := w.NewAppender()
	sorted, err := b.area.NewTextWriter(fmt.Sprintf("sorted-%d", i))
	if err != nil {
		_, _ = w.Close()
		return err
	}
	var entry [entryBytes]byte
	row := uint64(0)
	err = texts.Sorted(func(text []byte, _ uint32) error {
		if row > math.MaxUint32-1 {
			return tooManyNodes(n.name, int64(row)+1)
		}
		h := d.hash(text)
		putHash(entry[:], h)
		binary.LittleEndian.PutUint32(entry[hashBytes:], uint32(row))
		to.Put(d.part(h), entry[:])
		row++
		return errors.Join(w.Err(), sorted.Put(text, uint32(row-1)))
	})
	to.Flush()
	rows, err := extsort.CloseAfter(err, w.Close)
	d.Sorted, err = extsort.CloseAfter(err, sorted.Close)
	if err != nil {
		return err
	}
	b.discard(d.Gathered...)
	d.Rows, d.Gathered = rows, nil
	b.setCount(i, int64(row))
	return nil
}

// mapBytes is about what an entry of a map of hashes takes.
const mapBytes = 40

// rowTable finds the rows of the ids of one part.
type rowTable struct {
	entries []byte
	slots   []uint32 // 1 + the entry
}

// tableCache holds the parts of dictionaries that small relations need again and again.
type tableCache struct {
	mu     sync.Mutex
	tables map[extsort.Bucket]*rowTable
	bytes  int64 // of tables
}

// keeps reports whether a dictionary may stay in memory as a whole: if it takes a quarter of the
// room at most.
func (b *builder) keeps(d *dictionary) bool {
	n := int64(0)
	for _, bucket := range d.Rows {
		n += bucket.Bytes / entryBytes
	}
	return n*tableBytes <= b.room()/4
}

// keep puts a part of a dictionary into the cache, unless all of the cache would take more than a
// quarter of the room.
func (b *builder) keep(bucket extsort.Bucket, t *rowTable) {
	b.cached.mu.Lock()
	defer b.cached.mu.Unlock()
	bytes := bucket.Bytes / entryBytes * tableBytes
	if b.cached.tables[bucket] != nil || b.cached.bytes+bytes > b.room()/4 {
		return
	}
	if b.cached.tables == nil {
		b.cached.tables = map[extsort.Bucket]*rowTable{}
	}
	b.cached.tables[bucket] = t
	b.cached.bytes += bytes
}

// freeTables drops the parts of dictionaries that are in memory.
func (b *builder) freeTables(context.Context) error {
	b.cached.tables, b.cached.bytes = nil, 0
	return nil
}

// load brings a part of a dictionary into memory.
func (b *builder) load(d *dictionary, part int) (*rowTable, error) {
	bucket := d.Rows[part]
	if bucket.Name == "" || !b.keeps(d) {
		return b.loadTable(bucket)
	}
	b.cached.mu.Lock()
	t := b.cached.tables[bucket]
	b.cached.mu.Unlock()
	if t != nil {
		return t, nil
	}
	t, err := b.loadTable(bucket)
	if err == nil {
		b.keep(bucket, t)
	}
	return t, err
}

func (b *builder) loadTable(bucket extsort.Bucket) (*rowTable, error) {
	n := bucket.Bytes / entryBytes
	if n*tableBytes > b.room()/int64(workers())*3/4 {
		return nil, b.tooLittle(b.Memory + n*tableBytes*int64(workers()))
	}
	t := &rowTable{entries: make([]byte, 0, bucket.Bytes)}
	buf, err := extsort.Buffer(entryBytes, int(min(bucket.Bytes, 1<<20)))
	if err != nil {
		return nil, err
	}
	defer buf.Close()
	err = b.area.Each(bucket, entryBytes, buf.Bytes(), func(records []byte) error {
		t.entries = append(t.entries, records...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	size := 1
	for int64(size) < 2*n {
		size *= 2
	}
	t.slots = make([]uint32, size)
	mask := uint64(size - 1)
	for k := range n {
		at := binary.LittleEndian.Uint64(t.entries[k*entryBytes+8:]) & mask
		for t.slots[at] != 0 {
			at = (at + 1) & mask
		}
		t.slots[at] = uint32(k) + 1
	}
	return t, nil
}

// row finds the row of a hash, sixteen bytes.
func (t *rowTable) row(h []byte) (uint32, bool) {
	mask := uint64(len(t.slots) - 1)
	for at := binary.LittleEndian.Uint64(h[8:]) & mask; ; at = (at + 1) & mask {
		k := t.slots[at]
		if k == 0 {
			return 0, false
		}
		if e := t.entries[int(k-1)*entryBytes:][:entryBytes]; bytes.Equal(e[:hashBytes], h[:hashBytes]) {
			return binary.LittleEndian.Uint32(e[hashBytes:]), true
		}
	}
}

// writeOwnIDs writes the ids of a type that has its own.
func (b *builder) writeOwnIDs(ctx context.Context, i int, n *nodes, w *store.NodeTypeWriter) error {
	d := &b.state.Dictionaries[i]
	err := b.writeNumbers(ctx, n, d, w)
	if err == nil && n.kind == ingest.TextIDs {
		err = b.writeNames(ctx, i, n, w)
	}
	if err == nil {
		b.discard(append(d.Rows, d.Sorted)...)
		d.Rows, d.Sorted = nil, extsort.Bucket{}
	}
	return err
}

// writeNumbers writes integer ids; for texts, the rows of the source in their place.
func (b *builder) writeNumbers(ctx context.Context, n *nodes, d *dictionary, w *store.NodeTypeWriter) error {
	if n.kind == ingest.TextIDs {
		return b.writeRowIDs(ctx, n, w)
	}
	stored := n.storedIDs()
	order := make([]store.NodeID, 0, idChunk)
	return b.placeOriginals(n, w, func(put func(row uint32, id int64)) error {
		err := b.area.EachText(d.Sorted, func(text []byte, row uint32) error {
			put(row, textID(text))
			if order = append(order, storedID(stored, row)); len(order) == idChunk {
				b.addMeter(len(order))
				err := w.AppendOrder(order)
				order = order[:0]
				return errors.Join(err, ctx.Err())
			}
			return nil
		})
		if err != nil {
			return err
		}
		b.addMeter(len(order))
		return w.AppendOrder(order)
	})
}

// writeNames writes the texts of a type, by text and by stored id.
func (b *builder) writeNames(ctx context.Context, i int, n *nodes, w *store.NodeTypeWriter) error {
	d := &b.state.Dictionaries[i]
	stored := n.storedIDs()
	// A third of the room holds a range of stored ids with their texts.
	room := b.forTexts()
	count := int((d.Sorted.Bytes+8*int64(n.count))/room) + 1
	ranges := extsort.EvenRanges(uint64(max(n.count, 1)), count)
	by, err := b.area.NewWriter(fmt.Sprintf("names-%d", i), ranges.Len(), b.partBlock(1, -1))
	if err != nil {
		return err
	}
	to := by.NewAppender()
	var record []byte
	err = b.area.EachText(d.Sorted, func(text []byte, row uint32) error {
		v := storedID(stored, row)
		record = extsort.AppendText(record[:0], text, v)
		to.Put(ranges.Find(v), record)
		return errors.Join(w.AppendName(text, v), by.Err())
	})
	to.Flush()
	buckets, err := extsort.CloseAfter(err, by.Close)
	if err != nil {
		return err
	}
	defer b.discard(buckets...)
	for k, bucket := range buckets {
		lo, end := ranges.Bounds(k)
		places := make([]uint64, end-lo) // 1 + where the record of each stored id begins
		all := make([]byte, 0, bucket.Bytes)
		err := b.area.EachText(bucket, func(text []byte, v uint32) error {
			places[uint64(v)-lo] = uint64(len(all)) + 1
			all = extsort.AppendText(all, text, v)
			return nil
		})
		if err != nil {
			return err
		}
		for _, at := range places {
			if at == 0 {
				continue // a type without nodes
			}
			text, _, _ := extsort.CutText(all[at-1:])
			if err := w.AppendText(text); err != nil {
				return err
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return nil
}
