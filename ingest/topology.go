package ingest

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/store"
)

// topology is one relation in memory, by rows: the in-neighbours of each destination, ascending.
type topology struct {
	offsets   []uint64
	neighbors []uint32
	symmetric bool
}

func (t *topology) nodes() int { return len(t.offsets) - 1 }

// list is v's in-neighbours, borrowed.
func (t *topology) list(v uint32) []uint32 { return t.neighbors[t.offsets[v]:t.offsets[v+1]] }

// edge is u→v by rows.
type edge struct{ u, v uint32 }

// edgeBlock is the number of edges in a block of an edge list: 8 MiB, so that a list grows without copying and shrinks
// while it is consumed.
const edgeBlock = 1 << 20

// readEdges builds the topology of every relation.
func (b *builder) readEdges(ctx context.Context) error {
	for i, r := range b.schema.Relations {
		src, dst := b.typeOf(r.Src), b.typeOf(r.Dst)
		rep := RelationReport{Key: r.Key()}
		b.meter.begin("read edges", r.Edges, "edges")
		blocks, err := b.readRelation(ctx, i, src, dst, &rep)
		if err != nil {
			return err
		}
		b.meter.end()
		b.meter.begin("sort edges", rep.EdgesRead, "edges")
		t := sortByDestination(blocks, dst.count)
		if rep.Duplicates, err = t.sortLists(ctx); err != nil {
			return err
		}
		if b.Undirected && r.Src == r.Dst {
			t.mergeDuplicates()
			rep.DuplicatesMerged = rep.Duplicates
			if t, err = t.addReverses(ctx); err != nil {
				return err
			}
			rep.ReverseAdded = int64(len(t.neighbors)) - rep.EdgesRead + rep.DuplicatesMerged
		}
		b.meter.add(int(rep.EdgesRead))
		b.meter.end()
		rep.Edges = int64(len(t.neighbors))
		b.topology = append(b.topology, t)
		b.report.Relations = append(b.report.Relations, rep)
	}
	return b.checkSpace()
}

// readRelation reads and resolves the edges of relation i.
func (b *builder) readRelation(ctx context.Context, i int, src, dst *nodes, rep *RelationReport) ([][]edge, error) {
	var blocks [][]edge
	var from origin
	err := b.src.Edges(ctx, i, func(c EdgeChunk) error {
		if err := from.follow(ctx, c.Place, len(c.Src)); err != nil {
			return err
		}
		for k, s := range c.Src {
			u, ok := src.row(s)
			if !ok {
				return fmt.Errorf("%s: edge %d (counting from 0): source %s", c.File, c.First+int64(k), src.unknown(s))
			}
			v, ok := dst.row(c.Dst[k])
			if !ok {
				return fmt.Errorf("%s: edge %d (counting from 0): destination %s", c.File, c.First+int64(k), dst.unknown(c.Dst[k]))
			}
			if u == v && src == dst {
				rep.SelfLoops++
			}
			if last := len(blocks) - 1; last < 0 || len(blocks[last]) == cap(blocks[last]) {
				blocks = append(blocks, make([]edge, 0, blockSize(b.schema.Relations[i].Edges, rep.EdgesRead+int64(k))))
			}
			blocks[len(blocks)-1] = append(blocks[len(blocks)-1], edge{u, v})
		}
		rep.EdgesRead += int64(len(c.Src))
		b.meter.add(len(c.Src))
		return nil
	})
	if err != nil {
		return nil, err
	}
	if want := b.schema.Relations[i].Edges; want >= 0 && want != rep.EdgesRead {
		return nil, fmt.Errorf("%s: %d edges, and %d are declared; is the file complete?", from.name(rep.Key), rep.EdgesRead, want)
	}
	return blocks, nil
}

// blockSize is the capacity of the next block: small for small graphs, and never more than a block on the word of a file.
func blockSize(declared, read int64) int64 {
	if declared < 0 {
		return min(edgeBlock, max(1024, read))
	}
	return min(edgeBlock, max(1024, declared-read))
}

// sortByDestination is a counting sort of edges into rows, which are not yet sorted within. It consumes blocks.
func sortByDestination(blocks [][]edge, n int) *topology {
	t := &topology{offsets: make([]uint64, n+1)}
	total := 0
	for _, block := range blocks {
		total += len(block)
		for _, e := range block {
			t.offsets[e.v]++
		}
	}
	t.startsFromCounts()
	t.neighbors = make([]uint32, total)
	for i, block := range blocks {
		for _, e := range block {
			t.neighbors[t.offsets[e.v]] = e.u
			t.offsets[e.v]++
		}
		blocks[i] = nil
	}
	t.startsFromEnds()
	return t
}

// startsFromCounts turns counts in offsets[:n] into the place of each row's first neighbour.
func (t *topology) startsFromCounts() {
	sum := uint64(0)
	for v, c := range t.offsets {
		t.offsets[v] = sum
		sum += c
	}
}

// startsFromEnds turns the place after each row's last neighbour, where filling left the offsets, into offsets proper.
func (t *topology) startsFromEnds() {
	copy(t.offsets[1:], t.offsets[:t.nodes()])
	t.offsets[0] = 0
}

// sortLists sorts every row and counts the neighbours that repeat the one before.
func (t *topology) sortLists(ctx context.Context) (duplicates int64, err error) {
	var total atomic.Int64
	err = parallel(ctx, t.nodes(), nodeChunk, func(lo, hi int) {
		found := 0
		for v := lo; v < hi; v++ {
			list := t.list(uint32(v))
			slices.Sort(list)
			for i := 1; i < len(list); i++ {
				if list[i] == list[i-1] {
					found++
				}
			}
		}
		total.Add(int64(found))
	})
	return total.Load(), err
}

// mergeDuplicates keeps one of equal neighbours in every row, in place.
func (t *topology) mergeDuplicates() {
	end, start := uint64(0), uint64(0)
	for v := range t.nodes() {
		list := slices.Compact(t.neighbors[start:t.offsets[v+1]])
		start = t.offsets[v+1]
		copy(t.neighbors[end:], list)
		end += uint64(len(list))
		t.offsets[v+1] = end
	}
	t.neighbors = t.neighbors[:end]
}

// addReverses returns t with v→u for every u→v that lacks it. t has sorted rows without duplicates.
func (t *topology) addReverses(ctx context.Context) (*topology, error) {
	n := t.nodes()
	lacking := func(lo, hi int, visit func(u, v uint32)) {
		for v := uint32(lo); v < uint32(hi); v++ {
			for _, u := range t.list(v) {
				if _, ok := slices.BinarySearch(t.list(u), v); !ok {
					visit(u, v)
				}
			}
		}
	}
	s := &topology{offsets: make([]uint64, n+1), symmetric: true}
	err := parallel(ctx, n, nodeChunk, func(lo, hi int) {
		lacking(lo, hi, func(u, _ uint32) { atomic.AddUint64(&s.offsets[u], 1) })
	})
	if err != nil {
		return nil, err
	}
	for v := range n {
		s.offsets[v] += t.offsets[v+1] - t.offsets[v]
	}
	s.startsFromCounts()
	s.neighbors = make([]uint32, s.offsets[n])
	for v := range n {
		s.offsets[v] += uint64(copy(s.neighbors[s.offsets[v]:], t.list(uint32(v))))
	}
	err = parallel(ctx, n, nodeChunk, func(lo, hi int) {
		lacking(lo, hi, func(u, v uint32) { s.neighbors[atomic.AddUint64(&s.offsets[u], 1)-1] = v })
	})
	if err != nil {
		return nil, err
	}
	s.startsFromEnds()
	_, err = s.sortLists(ctx) // whoever placed them first, they end up in one order
	return s, err
}

// transposed returns the out-neighbours of each of n sources, ascending.
func (t *topology) transposed(n int) *topology {
	r := &topology{offsets: make([]uint64, n+1), neighbors: make([]uint32, len(t.neighbors))}
	for _, u := range t.neighbors {
		r.offsets[u]++
	}
	r.startsFromCounts()
	for v := range uint32(t.nodes()) {
		for _, u := range t.list(v) {
			r.neighbors[r.offsets[u]] = v
			r.offsets[u]++
		}
	}
	r.startsFromEnds()
	return r
}

// writeTopology writes every relation under the stored ids.
func (b *builder) writeTopology(ctx context.Context) error {
	for i, r := range b.schema.Relations {
		t, src, dst := b.topology[i], b.typeOf(r.Src), b.typeOf(r.Dst)
		g, err := b.w.AddRelation(r.Src, r.Name, r.Dst, t.symmetric)
		if err != nil {
			return err
		}
		b.meter.begin("write topology", int64(len(t.neighbors)), "edges")
		var list []store.NodeID
		for v := range t.nodes() {
			list = append(list[:0], t.list(dst.storedRow(store.NodeID(v)))...)
			if src.stored != nil {
				for k, u := range list {
					list[k] = src.stored[u]
				}
				slices.Sort(list)
			}
			if err := g.Append(list); err != nil {
				return err
			}
			b.meter.add(len(list))
			if v%nodeChunk == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
		}
		if err := g.Close(); err != nil {
			return err
		}
		b.meter.end()
	}
	return nil
}
