package build

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/errgroup"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
)

// Nodes with ids of their own, IntIDs and TextIDs, are found by joining: ids and the ends of edges
// are parted by a hash of the id, and one part after another is resolved in memory, first by
// sources, then by destinations. No part is ever looked up on disk. An integer is the text of its
// eight bytes, biggest first and with the sign turned, so that texts sort as numbers do; an id
// travels as its 128-bit hash (XXH3 under a seed that nobody outside knows beforehand), and its
// text is kept once, in the dictionary. Two ids of one hash would be one node: at a billion ids the
// odds are 1 in 10²⁰.
//
//	ids of T        the listed ids, sorted; a part holds (hash, row)
//	read R          edges by hashes, parted by the source's hash (or the destination's, when the
//	                source is a row)
//	gather T        the ids that edges name, once each, sorted: a row is a place among them
//	sources of R    (row, hash), parted by the hash of the destination
//	targets of R    rows: from here on see edges.go

// ends are the two sides of an edge.
type end int

const (
	source end = iota
	target
)

func (f *edgeForm) end(e end) *nodes {
	if e == source {
		return f.src
	}
	return f.dst
}

func (f *edgeForm) own() bool { return f.src.kind != ingest.RowIDs || f.dst.kind != ingest.RowIDs }

// joinEdges reads the relations that have ends with ids of their own, gathers the nodes that only
// edges name, and resolves the ends.
func (b *builder) joinEdges(s *sizes, do func(pass)) {
	gathered := make([]int64, len(b.nodes)) // ids that edges name
	for i, r := range b.read() {
		f := b.form(i)
		if !f.own() {
			continue
		}
		n := s.edges[i]
		written := n * f.keyedBytes()
		for e := source; e <= target; e++ {
			if end := f.end(e); end.gathered {
				gathered[end.number] += n
				written += n * idBytes
			}
		}
		do(pass{name: "read " + r.Key(), total: r.Edges, unit: "edges",
			cost: cost{items: n, seconds: float64(n) / rateRead * 2, spillWritten: written},
			run:  func(ctx context.Context) error { return b.readKeyed(ctx, i) }})
	}
	for i, t := range b.schema.NodeTypes {
		if !t.Gathered {
			continue
		}
		do(pass{name: "gather ids of " + t.Name, total: -1, unit: "nodes",
			cost: cost{items: s.nodes[i], seconds: float64(gathered[i]) / rateIDs,
				spillRead: gathered[i] * idBytes, spillWritten: s.nodes[i] * 2 * idBytes},
			run: func(ctx context.Context) error { return b.gather(ctx, i) }})
	}
	for i := range b.read() {
		b.resolveEnds(i, s.edges[i], do)
	}
}

// resolveEnds resolves the ends of relation i, which is expected to have so many edges.
func (b *builder) resolveEnds(i int, edges int64, do func(pass)) {
	f := b.form(i)
	read := edges * f.keyedBytes()
	resolve := func(e end, name string, written int64) {
		do(pass{name: name + f.Key(), total: b.state.Relations[i].Report.EdgesRead, unit: "edges",
			cost: cost{items: edges, seconds: workerSeconds(edges, rateJoin), spillRead: read, spillWritten: written},
			run:  func(ctx context.Context) error { return b.resolve(ctx, i, e) }})
		read = written
	}
	if f.src.kind != ingest.RowIDs {
		written := f.logBytes(edges)
		if f.dst.kind != ingest.RowIDs {
			written = read - edges*(hashBytes-rowBytes)
		}
		resolve(source, "resolve sources of ", written)
	}
	if f.dst.kind != ingest.RowIDs {
		resolve(target, "resolve targets of ", f.logBytes(edges))
	}
}

// keyedBytes returns the bytes of an edge before its ends are resolved.
func (f *edgeForm) keyedBytes() int64 { return int64(keyBytes(f.src) + keyBytes(f.dst) + f.width - 8) }

// keyBytes returns the bytes of an end of an edge in a record: a hash before it is resolved, else a
// row.
func keyBytes(n *nodes) int {
	if n.kind == ingest.RowIDs {
		return rowBytes
	}
	return hashBytes
}

// readKeyed reads relation i by hashes.
func (b *builder) readKeyed(ctx context.Context, i int) error {
	rel, f := &b.state.Relations[i], b.form(i)
	rel.Report = RelationReport{Key: f.Key()}
	dicts := [2]*dictionary{b.dictionaryOf(f.src), b.dictionaryOf(f.dst)}
	by := dicts[source]
	if by == nil {
		by = dicts[target]
	}
	block := b.partBlock(3, f.Edges)
	w, err := b.area.NewWriter(fmt.Sprintf("keyed-%d", i), by.Parts, block)
	if err != nil {
		return err
	}
	to := w.NewAppender()
	var gather [2]*gatherer
	for e := source; e <= target; e++ {
		if n := f.end(e); n.gathered {
			g := &gatherer{d: dicts[e]}
			if g.w, err = b.area.NewWriter(fmt.Sprintf("gathered-%d-%d", i, e), g.d.Parts, block); err != nil {
				_, _ = w.Close()
				if first := gather[source]; first != nil {
					_, _ = first.w.Close()
				}
				return err
			}
			g.to = g.w.NewAppender()
			gather[e] = g
		}
	}
	record := make([]byte, keyBytes(f.src)+keyBytes(f.dst)+f.width-8)
	var int8 []byte
	err = b.eachEdges(ctx, i, &rel.Report, func(c *ingest.EdgeChunk) error {
		for k := range c.Len() {
			at, part, bad := 0, -1, false
			for e := source; e <= target; e++ {
				ids, texts, name := c.Src, &c.SrcTexts, "source"
				if e == target {
					ids, texts, name = c.Dst, &c.DstTexts, "destination"
				}
				n := f.end(e)
				// An edge that is passed over names nodes nevertheless: whether the others know
				// both their ends turns out later.
				pass := func(what string) error {
					if bad { // and counted
						return nil
					}
					bad = true
					rel.Report.Skipped++
					return b.skip(fmt.Errorf("%s: %s %s", c.Edge(k, f.row()), name, what))
				}
				if n.kind == ingest.RowIDs {
					if id := ids[k]; id < 0 || id >= int64(n.count) {
						if err := pass(n.unknown(fmt.Sprint(id))); err != nil {
							return err
						}
						continue
					}
					binary.LittleEndian.PutUint32(record[at:], uint32(ids[k]))
					at += rowBytes
					continue
				}
				var text []byte
				if n.kind == ingest.IntIDs {
					int8 = idText(int8, ids[k])
					text = int8
				} else if text = texts.At(k); len(text) == 0 || len(text) > ingest.MaxIDBytes {
					if err := pass(fmt.Sprintf("has %d bytes; ids have 1 to %d", len(text), ingest.MaxIDBytes)); err != nil {
						return err
					}
					continue
				}
				h := dicts[e].hash(text)
				putHash(record[at:], h)
				at += hashBytes
				if part == -1 {
					part = dicts[e].part(h)
				}
				if g := gather[e]; g != nil {
					g.add(text, h)
				}
			}
			if bad {
				continue
			}
			f.pack(record[at:], c, k)
			to.Put(part, record)
		}
		return w.Err()
	})
	to.Flush()
	rel.Keyed, err = extsort.CloseAfter(err, w.Close)
	for e, g := range gather {
		if g == nil {
			continue
		}
		g.to.Flush()
		var parts []extsort.Bucket
		parts, err = extsort.CloseAfter(err, g.w.Close)
		dicts[e].Gathered = append(dicts[e].Gathered, parts...)
	}
	return err
}

// unknownID is the error of an end whose id no node has; see find.
type unknownID struct {
	relation int
	end      end
	hash     xxh3.Uint128
}

func (u *unknownID) Error() string { return "an edge names an unknown node" }

// resolve finds the rows of one end of relation i: of the sources while the destinations are hashes
// still, or rows from the beginning.
func (b *builder) resolve(ctx context.Context, i int, e end) error {
	rel, f := &b.state.Relations[i], b.form(i)
	d := b.dictionaryOf(f.end(e))
	next := b.dictionaryOf(f.dst) // nil: this is the last end
	if e == target {
		next = nil
	}
	// A record is two keys and what rides on the edge; the one to resolve is a hash, and the other
	// is a row or, after sources, a hash.
	width := keyBytes(f.src) + keyBytes(f.dst) + f.width - 8
	at, other := 0, hashBytes // of the keys
	if e == target {
		if f.src.kind != ingest.RowIDs {
			width -= hashBytes - rowBytes
		}
		at, other = rowBytes, 0
	}
	var sinks *edgeSinks
	var w *extsort.Writer
	var err error
	if next != nil {
		w, err = b.area.NewWriter(fmt.Sprintf("half-%d", i), next.Parts, b.partBlock(2, rel.Report.EdgesRead))
	} else {
		sinks, err = b.newEdgeSinks(i, rel.Report.EdgesRead)
	}
	if err != nil {
		return err
	}
	var part atomic.Int64
	var missing atomic.Pointer[unknownID]
	var mu sync.Mutex
	g, gctx := errgroup.WithContext(ctx)
	for range min(workers(), d.Parts) {
		g.Go(func() error {
			buf, err := extsort.Buffer(width, 1<<20)
			if err != nil {
				return err
			}
			defer buf.Close()
			var to *extsort.Appender
			var sink *edgeSink
			if next != nil {
				to = w.NewAppender()
				defer to.Flush()
			} else {
				sink = sinks.sink()
				defer sink.flush()
			}
			half := make([]byte, width)
			for {
				p := int(part.Add(1)) - 1
				if p >= d.Parts {
					return nil
				}
				if rel.Keyed[p].Bytes == 0 {
					continue
				}
				table, err := b.load(d, p)
				if err != nil {
					return err
				}
				err = b.area.Each(rel.Keyed[p], width, buf.Bytes(), func(records []byte) error {
					b.addMeter(len(records) / width)
					for ; len(records) > 0; records = records[width:] {
						r := records[:width]
						row, ok := table.row(r[at:])
						if !ok {
							u := &unknownID{i, e, getHash(r[at:])}
							missing.CompareAndSwap(nil, u)
							mu.Lock()
							over := b.state.Skipped >= b.SkipBad
							if !over {
								b.state.Skipped++
								rel.Report.Skipped++
							}
							mu.Unlock()
							if over {
								return u
							}
							continue
						}
						if next != nil {
							binary.LittleEndian.PutUint32(half, row)
							copy(half[rowBytes:], r[other:])
							to.Put(next.part(getHash(r[other:])), half[:rowBytes+width-other])
							continue
						}
						if e == source {
							sink.addPacked(row, binary.LittleEndian.Uint32(r[other:]), r[other+rowBytes:])
						} else {
							sink.addPacked(binary.LittleEndian.Uint32(r), row, r[at+hashBytes:])
						}
					}
					if w != nil {
						return errors.Join(gctx.Err(), w.Err())
					}
					return errors.Join(gctx.Err(), sinks.err())
				})
				if err != nil {
					return err
				}
			}
		})
	}
	err = g.Wait()
	keyed := rel.Keyed
	rel.Keyed = nil
	if next != nil {
		rel.Keyed, err = extsort.CloseAfter(err, w.Close)
	} else {
		err = sinks.close(rel, err)
	}
	if u := missing.Load(); u != nil && (err == nil && b.state.FirstSkipped == "" || errors.As(err, &u)) {
		found := b.find(ctx, u)
		if err != nil {
			if b.SkipBad == 0 {
				return offerSkip(found)
			}
			return fmt.Errorf("%w; %d bad edges were passed over before it, which is all that {skip_bad} allows", found, b.state.Skipped)
		}
		b.state.FirstSkipped = found.Error()
	}
	if err != nil {
		return err
	}
	b.discard(keyed...)
	return nil
}

// find reads a relation once more to find the edge that has an unknown id.
func (b *builder) find(ctx context.Context, u *unknownID) error {
	f := b.form(u.relation)
	n := f.end(u.end)
	d := b.dictionaryOf(n)
	var found error
	var int8 []byte
	err := b.src.Edges(ctx, u.relation, func(c ingest.EdgeChunk) error {
		ids, texts, name := c.Src, &c.SrcTexts, "source"
		if u.end == target {
			ids, texts, name = c.Dst, &c.DstTexts, "destination"
		}
		for k := range c.Len() {
			text := n.textOf(ids, texts, k, &int8)
			if d.hash(text) == u.hash {
				found = fmt.Errorf("%s: %s %s", c.Edge(k, f.row()), name, n.unknown(n.display(text)))
				return found
			}
		}
		return ctx.Err()
	})
	if found == nil && err == nil {
		err = fmt.Errorf("relation %s: an edge names an unknown node, and is not there in another reading; did the source change?", f.Key())
	}
	if found != nil {
		return found
	}
	return err
}

// joinSplit resolves split i of a type with ids of its own.
func (b *builder) joinSplit(ctx context.Context, i int, p *partition) error {
	n := p.nodes
	d := b.dictionaryOf(n)
	b.meter.begin("read split "+p.name, -1, "nodes")
	defer b.meter.end()
	w, err := b.area.NewWriter(fmt.Sprintf("split-%d", i), d.Parts, b.partBlock(1, -1))
	if err != nil {
		return err
	}
	to := w.NewAppender()
	const width = hashBytes + 1 + 8 // and the part, and the place in it
	var record [width]byte
	var int8 []byte
	textOf := func(c *ingest.IDChunk, k int) []byte { return n.textOf(c.IDs, &c.Texts, k, &int8) }
	for part := ingest.Train; part <= ingest.Test && err == nil; part++ {
		err = b.eachSplitID(ctx, i, part, func(c *ingest.IDChunk, k int) error {
			h := d.hash(textOf(c, k))
			putHash(record[:], h)
			record[hashBytes] = byte(part)
			binary.LittleEndian.PutUint64(record[hashBytes+1:], uint64(c.First)+uint64(k))
			to.Put(d.part(h), record[:])
			return w.Err()
		})
	}
	to.Flush()
	buckets, err := extsort.CloseAfter(err, w.Close)
	if err != nil {
		return err
	}
	defer b.discard(buckets...)
	buf, err := extsort.Buffer(width, 1<<20)
	if err != nil {
		return err
	}
	defer buf.Close()
	of := p.of.Bytes()
	for q, bucket := range buckets {
		if bucket.Bytes == 0 {
			continue
		}
		table, err := b.load(d, q)
		if err != nil {
			return err
		}
		err = b.area.Each(bucket, width, buf.Bytes(), func(records []byte) error {
			for ; len(records) > 0; records = records[width:] {
				part, place := ingest.Part(records[hashBytes]), int64(binary.LittleEndian.Uint64(records[hashBytes+1:]))
				row, ok := table.row(records)
				if ok && of[row] == 0 {
					of[row] = uint8(part) + 1
					continue
				}
				// Say which it is: read the part once more.
				err := b.eachSplitID(ctx, i, part, func(c *ingest.IDChunk, k int) error {
					if c.First+int64(k) != place {
						return nil
					}
					text := n.display(textOf(c, k))
					if !ok {
						return fmt.Errorf("%s: node %s", c.Row(k), n.unknown(text))
					}
					return p.put(row, part, c.Place, k, text)
				})
				if err == nil {
					err = fmt.Errorf("split %s: differs in another reading; did the source change?", p.name)
				}
				return err
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}
