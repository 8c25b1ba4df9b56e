package build

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// Means. A node of a type without features gets the mean of its in-neighbours' rows, as often as
// there are edges. Types are made in rounds, each once, from the tables of earlier rounds: from
// papers their authors, from authors their institutions.
//
//	sum[v]  = Σ row[u], in float32, relation by relation, and in each by ascending u
//	mean[v] = sum[v] / number of edges, rounded once; zeros where there are none
//
// Neither the sums nor the rows need fit in memory. Destinations come in parts whose sums fit, and
// sources in blocks whose rows fit. For each part all blocks are read, in order, and each brings
// the edges from it to the part. Edges are stored by destination, so the edges of a part follow
// each other. Where there are many blocks, edges are parted by block first, which leaves them by
// destination. A sum meets its rows in one order, however the two are cut.
//
// Where all rows fit they are read once and stay, and parts are small. Else most of the memory is
// for sums, since each part is a pass over the rows.

// meanPlan is the mean features of one node type.
type meanPlan struct {
	nodeType int
	round    int // from 1; tables that are read are of round 0
	dim      int
}

// chooseMeans finds the rounds of the types without features.
func (b *builder) chooseMeans(has map[string]bool) error {
	type table struct {
		round, dim int
		name       string
	}
	tables := map[string]table{}
	for _, t := range b.schema.Tables {
		if _, seen := tables[t.NodeType]; t.Relation == "" && !seen {
			tables[t.NodeType] = table{0, t.Dim, t.Name}
		}
	}
	switch {
	case len(has) == 0:
		return errors.New("{features} mean: the source has no features to take means of; choose degree, random:D or fastrp:D")
	case len(has) == len(b.schema.NodeTypes):
		return errors.New("{features} mean: every node type has features, so there are none to make; leave it out")
	}
	for round := 1; ; round++ {
		var made []meanPlan
		for i, t := range b.schema.NodeTypes {
			if _, ok := tables[t.Name]; ok {
				continue
			}
			var from []string
			p := meanPlan{nodeType: i, round: round}
			for _, r := range b.schema.Relations {
				s, ok := tables[r.Src]
				if r.Dst != t.Name || !ok {
					continue
				}
				if from = append(from, fmt.Sprintf("%d of %s", s.dim, r.Src)); p.dim != 0 && p.dim != s.dim {
					return fmt.Errorf("{features} mean: node type %s has in-neighbours with rows of unlike width (%s columns), which have no mean; choose degree, random:D or fastrp:D",
						t.Name, strings.Join(from, ", "))
				}
				p.dim = s.dim
			}
			if p.dim > 0 {
				made = append(made, p)
			}
		}
		if len(made) == 0 {
			break
		}
		for _, p := range made {
			name := b.schema.NodeTypes[p.nodeType].Name
			tables[name] = table{round, p.dim, madeTable}
			b.makes[name] = true
		}
		b.means = append(b.means, made...)
	}
	for _, t := range b.schema.NodeTypes {
		if _, ok := tables[t.Name]; ok {
			continue
		}
		remedy := "give it features, or choose degree, random:D or fastrp:D"
		if !b.Reverse {
			remedy = "add {reverse}, or choose degree, random:D or fastrp:D"
		}
		return fmt.Errorf("{features} mean: no relation leads to node type %s from a type with features; %s", t.Name, remedy)
	}
	return nil
}

// meanSource is a relation that brings rows to a mean.
type meanSource struct {
	relation int
	src, dst *nodes
	table    string
	dim      int
}

// width is the bytes of a row.
func (b *builder) meanWidth(dim int) int64 { return int64(dim * b.elem().Size()) }

// meanSources are the relations that lead to p's type from types of earlier rounds.
func (b *builder) meanSources(p meanPlan) (found []meanSource) {
	for i, r := range b.relations() {
		if r.Dst != b.schema.NodeTypes[p.nodeType].Name {
			continue
		}
		s := meanSource{relation: i, src: b.typeOf(r.Src), dst: b.typeOf(r.Dst), dim: p.dim}
		for _, t := range b.schema.Tables {
			if t.Relation == "" && t.NodeType == r.Src && s.table == "" {
				s.table = t.Name
			}
		}
		for _, q := range b.means {
			if b.schema.NodeTypes[q.nodeType].Name == r.Src && q.round < p.round {
				s.table = madeTable
			}
		}
		if s.table != "" {
			found = append(found, s)
		}
	}
	return found
}

// meanRoom divides the memory of a pass.
type meanRoom struct {
	held  bool  // all rows fit, and stay
	rows  int64 // bytes for the rows of a block, when two are held at a time; or for all
	parts int64 // of the destinations
	nodes int64 // in one of them
}

// divideMeans is for sums of nodes nodes, of dim columns, and tables of so many bytes in all.
func divideMeans(room, nodes int64, dim int, tables int64) meanRoom {
	sum := 4*int64(dim) + 4
	r := meanRoom{held: tables <= room/4*3, rows: room / 16}
	left := room - 2*r.rows
	if r.held {
		r.rows, left = tables, room-tables
	}
	r.nodes = max(1, min(left/sum, nodes))
	r.parts = max(1, (nodes+r.nodes-1)/r.nodes)
	r.nodes = max(1, (nodes+r.parts-1)/r.parts) // even ones
	return r
}

// partedAbove is the number of blocks from which edges are parted by block: reading all edges for
// each block and leaving most of them costs 4 bytes an edge and block, parting and reading the
// parts 20.
const partedAbove = 4

// parted is the edges of a relation by blocks of sources, as the journal keeps them: records of 8
// bytes, keys of destination and source, ascending in each.
type parted struct {
	NodeType int              `json:"node_type"` // that the means are for
	Relation int              `json:"relation"`
	Starts   []uint32         `json:"starts"` // of the blocks
	Buckets  []extsort.Bucket `json:"buckets"`
}

// makeMeans writes the mean features.
func (b *builder) makeMeans(s *sizes, do func(pass)) {
	for _, p := range b.means {
		b.makeMeansOf(p, s, do)
	}
}

// makeMeansOf writes the mean features of one node type, after it has parted edges where that pays.
func (b *builder) makeMeansOf(p meanPlan, s *sizes, do func(pass)) {
	table := "features " + b.nodes[p.nodeType].name + "/" + madeTable
	if b.did("make " + table) { // less memory now would part edges again
		return
	}
	rows, sources := s.nodes[p.nodeType], b.meanSources(p)
	if s.counted {
		sources = slices.DeleteFunc(sources, func(m meanSource) bool { return s.stored[m.relation] == 0 })
	}
	tables, edges, parted := b.meanTables(sources), int64(0), int64(0)
	room := divideMeans(cmp.Or(b.test.means, s.room()/4*3), rows, p.dim, tables)
	for _, m := range sources {
		n, blocks := s.stored[m.relation], b.meanBlocks(room, m)
		if edges += n; n == 0 || blocks <= partedAbove {
			continue
		}
		do(pass{name: "part " + b.schema.Relations[m.relation].Key() + " for means", total: n, unit: "edges",
			cost: cost{items: n, seconds: float64(n) / ratePart, spillWritten: 8 * n},
			run:  func(ctx context.Context) error { return b.partEdges(ctx, p, m, blocks) }})
		parted += 8 * n
	}
	c := cost{items: edges, spillRead: parted, written: rows*b.rowBytes(p.dim) + sectionOverhead, datasetRead: tables}
	if !room.held {
		c.datasetRead *= room.parts
		c.notes = append(c.notes, fmt.Sprintf("features of node type %s are means: %d passes over %d MiB of rows; more memory makes it fewer",
			b.nodes[p.nodeType].name, room.parts, tables>>20))
	}
	seconds := float64(edges)*float64(p.dim)/rateMean/float64(workers()) + float64(rows)*float64(p.dim)/rateValues
	c.seconds = math.Max(seconds, float64(c.datasetRead)/rateDisk)
	do(pass{name: "make " + table, total: edges, unit: "edges", cost: c,
		run: func(ctx context.Context) error { return b.makeMean(ctx, p, sources, room) }})
}

// meanTables is the bytes of the rows of all source types.
func (b *builder) meanTables(sources []meanSource) (bytes int64) {
	seen := map[*nodes]bool{}
	for _, s := range sources {
		if !seen[s.src] {
			bytes += int64(s.src.count) * b.meanWidth(s.dim)
		}
		seen[s.src] = true
	}
	return bytes
}

// meanBlocks returns the number of blocks that the rows of a source take.
func (b *builder) meanBlocks(room meanRoom, s meanSource) int64 {
	if room.held {
		return 1
	}
	width := b.meanWidth(s.dim)
	per := max(1, room.rows/width)
	return (int64(s.src.count) + per - 1) / per
}

// partEdges parts the edges of a source by blocks of about equally many sources.
func (b *builder) partEdges(ctx context.Context, p meanPlan, s meanSource, blocks int64) error {
	block := extsort.MaxBlock
	for block > minPartBlock && extsort.WriterBytes(int(min(blocks, maxBuckets)), block) > b.room()/2 {
		block /= 2
	}
	most := max(1, b.room()/2/int64(block)-8)
	ranges := extsort.EvenRanges(uint64(s.src.count), int(min(blocks, maxBuckets, most)))
	w, err := b.area.NewWriter(fmt.Sprintf("means-%d-%d", p.nodeType, s.relation), ranges.Len(), block)
	if err != nil {
		return err
	}
	to := w.NewAppender() // one: a bucket's records stay in order
	edges, err := b.openStored(s)
	if err == nil {
		err = edges.each(ctx, 0, uint32(s.dst.count), func(records []byte) error {
			b.addMeter(len(records) / 8)
			for ; len(records) > 0; records = records[8:] {
				e := binary.LittleEndian.Uint64(records)
				to.Put8(ranges.Find(uint32(e)), e)
			}
			return w.Err()
		})
		err = errors.Join(err, edges.close())
	}
	to.Flush()
	buckets, err := extsort.CloseAfter(err, w.Close)
	if err != nil {
		return err
	}
	b.state.Parted = append(b.state.Parted, parted{NodeType: p.nodeType, Relation: s.relation, Starts: ranges.Starts(), Buckets: buckets})
	return nil
}

// meaner makes the means of one node type, part by part.
type meaner struct {
	b       *builder
	room    meanRoom
	sources []meanSource
	dim     int
	width   int64                // bytes of a row
	tables  []*store.TableReader // by source
	streams [][]meanStream       // by source, by ascending sources
	held    map[*nodes]*kernels.HostBuf
	bufs    []*kernels.HostBuf // to be closed at the end
	spill   *kernels.HostBuf   // of spilledEdges

	sums, counts *kernels.HostBuf // of the destinations from lo on
	lo           uint32
}

// meanStream is the edges from sources first to end.
type meanStream struct {
	edges      meanEdges
	first, end uint32
}

// meanBlock is some rows of a source, and the stream of the edges from them. base is the first row
// in buf.
type meanBlock struct {
	source     int
	edges      meanEdges
	first, end uint32
	buf        *kernels.HostBuf
	base       uint32
}

// makeMean writes the table of p's type.
func (b *builder) makeMean(ctx context.Context, p meanPlan, sources []meanSource, room meanRoom) (err error) {
	n := b.nodes[p.nodeType]
	w, err := b.newTable(ingest.Table{Name: madeTable, NodeType: n.name, Dim: p.dim}, true)
	if err != nil {
		return err
	}
	w.lossy = true
	if err := w.open(); err != nil {
		return err
	}
	m := &meaner{b: b, room: room, sources: sources, dim: p.dim, width: b.meanWidth(p.dim), held: map[*nodes]*kernels.HostBuf{}}
	err = m.open(ctx, p)
	for lo := int64(0); lo < int64(n.count) && err == nil; lo += room.nodes {
		if err = m.part(ctx, uint32(lo), uint32(min(lo+room.nodes, int64(n.count)))); err == nil {
			err = m.write(ctx, w, min(room.nodes, int64(n.count)-lo))
		}
	}
	if err = errors.Join(err, m.close()); err != nil {
		return err
	}
	if err := w.checkRounding(); err != nil {
		return err
	}
	b.state.Parted = slices.DeleteFunc(b.state.Parted, func(q parted) bool {
		if q.NodeType != p.nodeType {
			return false
		}
		b.discard(q.Buckets...)
		return true
	})
	return w.close()
}

// buffer allocates memory that is freed at the end.
func (m *meaner) buffer(bytes int64) (*kernels.HostBuf, error) {
	buf, err := kernels.NewHostBuf(int(extsort.RoundUp(max(bytes, 1))))
	if err == nil {
		m.bufs = append(m.bufs, buf)
	}
	return buf, err
}

// open opens tables and edges, and reads the rows that stay.
func (m *meaner) open(ctx context.Context, p meanPlan) (err error) {
	if m.sums, err = m.buffer(4 * m.room.nodes * int64(m.dim)); err != nil {
		return err
	}
	if m.counts, err = m.buffer(4 * m.room.nodes); err != nil {
		return err
	}
	if m.spill, err = m.buffer(8 * edgeRecords); err != nil {
		return err
	}
	for _, s := range m.sources {
		table := m.b.w.OpenTable(s.table, s.src.name)
		m.tables, m.streams = append(m.tables, table), append(m.streams, nil)
		of := &m.streams[len(m.streams)-1]
		if m.room.held && m.held[s.src] == nil {
			if m.held[s.src], err = m.buffer(int64(s.src.count) * m.width); err != nil {
				return err
			}
			if err := m.load(ctx, table, 0, uint32(s.src.count), m.held[s.src]); err != nil {
				return err
			}
		}
		at := slices.IndexFunc(m.b.state.Parted, func(q parted) bool { return q.NodeType == p.nodeType && q.Relation == s.relation })
		if at < 0 {
			edges, err := m.b.openStored(s)
			if err != nil {
				return err
			}
			*of = []meanStream{{edges, 0, uint32(s.src.count)}}
			continue
		}
		q := &m.b.state.Parted[at]
		for i, bucket := range q.Buckets {
			edges, err := newSpilledEdges(m.b.area, bucket, m.spill)
			if err != nil {
				return err
			}
			end := uint32(s.src.count)
			if i+1 < len(q.Starts) {
				end = q.Starts[i+1]
			}
			*of = append(*of, meanStream{edges, q.Starts[i], end})
		}
	}
	return nil
}

func (m *meaner) close() error {
	var errs []error
	for i, t := range m.tables {
		errs = append(errs, t.Close())
		for _, s := range m.streams[i] {
			errs = append(errs, s.edges.close())
		}
	}
	for _, buf := range m.bufs {
		buf.Close()
	}
	return errors.Join(errs...)
}

// loadStep is the bytes after which a load looks at its context.
const loadStep = 16 << 20

// load reads rows first to end.
func (m *meaner) load(ctx context.Context, table *store.TableReader, first, end uint32, buf *kernels.HostBuf) error {
	dst := buf.Bytes()[:int64(end-first)*m.width]
	step := max(1, loadStep/m.width)
	for at := int64(first); len(dst) > 0; at += step {
		n := min(step*m.width, int64(len(dst)))
		if err := errors.Join(ctx.Err(), table.ReadRows(at, dst[:n])); err != nil {
			return err
		}
		dst = dst[n:]
	}
	return nil
}

// blocks lists the blocks with edges to destinations from lo to end, in the order in which they are
// added.
func (m *meaner) blocks(lo, end uint32) (found []meanBlock, err error) {
	per := max(1, uint32(min(m.room.rows/m.width, 1<<31)))
	for i, s := range m.sources {
		for _, stream := range m.streams[i] {
			if some, err := stream.edges.any(lo, end); err != nil {
				return nil, err
			} else if !some {
				continue
			}
			if m.room.held {
				found = append(found, meanBlock{source: i, edges: stream.edges, first: stream.first, end: stream.end, buf: m.held[s.src]})
				continue
			}
			for at := stream.first; at < stream.end; {
				next := at + min(per, stream.end-at)
				found = append(found, meanBlock{source: i, edges: stream.edges, first: at, end: next, base: at})
				at = next
			}
		}
	}
	return found, nil
}

// part sums the rows of the in-neighbours of nodes lo to end.
func (m *meaner) part(ctx context.Context, lo, end uint32) error {
	m.lo = lo
	clear(m.sums.Bytes()[:4*int64(end-lo)*int64(m.dim)])
	clear(m.counts.Bytes()[:4*int64(end-lo)])
	blocks, err := m.blocks(lo, end)
	if err != nil {
		return err
	}
	add := func(ctx context.Context, k meanBlock) error {
		return k.edges.each(ctx, lo, end, func(records []byte) error { return m.add(ctx, &k, records) })
	}
	if m.room.held {
		for _, k := range blocks {
			if err := add(ctx, k); err != nil {
				return err
			}
		}
		return nil
	}
	// The rows of a block are read while the rows of the one before are added.
	const ahead = 2
	free, full := make(chan *kernels.HostBuf, ahead), make(chan meanBlock)
	for range ahead {
		buf, err := kernels.NewHostBuf(int(extsort.RoundUp(max(m.room.rows, m.width))))
		if err != nil {
			return err
		}
		defer buf.Close()
		free <- buf
	}
	g, ctx := errgroup.WithContext(ctx)
	g.Go(func() error {
		defer close(full)
		for _, k := range blocks {
			select {
			case k.buf = <-free:
			case <-ctx.Done():
				return ctx.Err()
			}
			if err := m.load(ctx, m.tables[k.source], k.first, k.end, k.buf); err != nil {
				return err
			}
			select {
			case full <- k:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		return nil
	})
	g.Go(func() error {
		for k := range full {
			if err := add(ctx, k); err != nil {
				return err
			}
			free <- k.buf
		}
		return nil
	})
	return g.Wait()
}

// addPiece is the number of edges that one goroutine adds at a time.
const addPiece = 1 << 11

// add adds the rows of the edges that come from a block, to destinations that ascend.
func (m *meaner) add(ctx context.Context, k *meanBlock, records []byte) error {
	edges, dim := len(records)/8, m.dim
	at := func(i int) uint64 { return binary.LittleEndian.Uint64(records[8*i:]) }
	sums, counts := m.sums.Float32s(), m.counts.Uint32s()
	var added atomic.Int64
	err := parallel(ctx, edges, addPiece, func(from, to int) {
		// All edges of a destination belong to one goroutine, the one with the first of them.
		for from > 0 && from < to && at(from)>>32 == at(from-1)>>32 {
			from++
		}
		for from < to && to < edges && at(to)>>32 == at(to-1)>>32 {
			to++
		}
		n := 0
		wide := make([]float32, dim)
		for ; from < to; from++ {
			e := at(from)
			u := uint32(e)
			if u < k.first || u >= k.end {
				continue
			}
			n++
			v, row := int(uint32(e>>32)-m.lo), int(u-k.base)*dim
			counts[v]++
			sum := sums[v*dim : (v+1)*dim]
			if m.b.DType == F32 {
				kernels.Add(sum, k.buf.Float32s()[row:row+dim])
				continue
			}
			kernels.HalfToFloat32(wide, k.buf.Uint16s()[row:row+dim])
			kernels.Add(sum, wide)
		}
		added.Add(int64(n))
	})
	m.b.addMeter(int(added.Load()))
	return err
}

// write makes the sums of nodes nodes means, and writes them.
func (m *meaner) write(ctx context.Context, w *tableWriter, nodes int64) error {
	dim, size := m.dim, m.b.elem().Size()
	chunk := int64(max(1, madeChunk/dim))
	out := make([]byte, min(chunk, nodes)*int64(dim*size))
	sums, counts := m.sums.Float32s(), m.counts.Uint32s()
	for at := int64(0); at < nodes; at += chunk {
		n := min(chunk, nodes-at)
		values, counts := sums[at*int64(dim):(at+n)*int64(dim)], counts[at:at+n]
		err := parallel(ctx, int(n), max(1, convertPiece/dim), func(from, to int) {
			for v := from; v < to; v++ {
				if c := float32(counts[v]); c > 1 {
					row := values[v*dim : (v+1)*dim]
					for i := range row {
						row[i] /= c
					}
				}
			}
		})
		if err != nil {
			return err
		}
		out := out[:n*int64(dim*size)]
		if err := w.convert(ingest.Place{File: "{features} mean", First: int64(m.lo) + at}, values, out); err != nil {
			return err
		}
		if err := w.rows.PutRows(store.NodeID(int64(m.lo)+at), out); err != nil {
			return err
		}
	}
	return nil
}
