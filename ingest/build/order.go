package build

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"

	"github.com/gnnstore/gnnstore/ingest/internal/extsort"
	"github.com/gnnstore/gnnstore/kernels"
)

// counts has the numbers that nodes are ordered by: how many neighbour lists a row is in, and the
// length of its own. A slice is nil where nobody asks. Counts wrap at 2³²; so many edges of one
// node would change its place and nothing else.
type counts struct {
	mu     sync.Mutex
	times  []uint32 // by row of the source type
	degree []uint32 // by row of the destination type
}

// add counts edges.
func (c *counts) add(edges []extsort.Key) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.times != nil {
		for _, e := range edges {
			c.times[uint32(e)]++
		}
	}
	if c.degree != nil {
		for _, e := range edges {
			c.degree[e>>32]++
		}
	}
}

// countsOf makes the counts of a relation's ends, where the order or the features want them; nil
// when neither does.
func (b *builder) countsOf(f *edgeForm) (*counts, error) {
	c := &counts{}
	if f.Stream != nil { // an event counts at both ends
		if b.Order == OrderOriginal {
			return nil, nil
		}
		if err := errors.Join(b.count(&f.src.times, f.src.count), b.count(&f.dst.times, f.dst.count)); err != nil {
			return nil, err
		}
		return &counts{times: f.src.times.Uint32s()[:f.src.count], degree: f.dst.times.Uint32s()[:f.dst.count]}, nil
	}
	if b.Order == OrderDegree || b.makes[f.Src] && b.features.kind == "degree" {
		if err := b.count(&f.src.times, f.src.count); err != nil {
			return nil, err
		}
		c.times = f.src.times.Uint32s()[:f.src.count]
	}
	if b.Order == OrderAccess || b.makes[f.Dst] && b.features.kind == "degree" {
		if err := b.count(&f.dst.degree, f.dst.count); err != nil {
			return nil, err
		}
		c.degree = f.dst.degree.Uint32s()[:f.dst.count]
	}
	if c.times == nil && c.degree == nil {
		return nil, nil
	}
	return c, nil
}

func (b *builder) count(buf **kernels.HostBuf, nodes int) (err error) {
	if *buf == nil {
		*buf, err = b.hold(4 * int64(max(nodes, 1)))
	}
	return err
}

// numberNodes gives every node its stored id: by degree, the nodes that are in most neighbour lists
// first; by access, the nodes that training is expected to read most. Ties are as given.
func (b *builder) numberNodes(s *sizes, do func(pass)) {
	if b.Order == OrderOriginal {
		return
	}
	n := s.allNodes()
	c := cost{items: n, seconds: float64(n) / rateNodes, spillWritten: 4 * n}
	p := pass{name: "order nodes", total: b.state.total(), unit: "nodes", cost: c}
	p.run = func(ctx context.Context) error {
		if b.Order == OrderAccess {
			if err := b.countVisits(ctx); err != nil {
				return err
			}
		}
		for _, n := range b.nodes {
			if err := ctx.Err(); err != nil {
				return err
			}
			by := n.times
			if by == nil { // nothing starts there
				if err := b.count(&by, n.count); err != nil {
					return err
				}
			}
			if b.makes[n.name] && b.features.kind == "degree" {
				if n.out == nil { // kept for the features
					if err := b.count(&n.out, n.count); err != nil {
						return err
					}
					copy(n.out.Bytes(), by.Bytes())
				}
			} else {
				b.release(&n.degree)
			}
			rank(by.Uint32s()[:n.count])
			n.times, n.stored = nil, by
			b.meter.add(n.count)
		}
		return nil
	}
	do(p)
}

// rank replaces each count by the number of rows that come before its row: rows with larger counts,
// and smaller rows with an equal count. It sorts by counting in place: common counts have a table,
// and the few nodes with large ones a map.
func rank(counts []uint32) {
	const common = 1 << 16
	table := make([]uint32, common)
	rare := map[uint32]uint32{}
	for _, c := range counts {
		if c < common {
			table[c]++
		} else {
			rare[c]++
		}
	}
	large := make([]uint32, 0, len(rare))
	for c := range rare {
		large = append(large, c)
	}
	slices.Sort(large)
	next := uint32(0)
	for _, c := range slices.Backward(large) {
		n := rare[c]
		rare[c] = next
		next += n
	}
	for c := common - 1; c >= 0; c-- {
		n := table[c]
		table[c] = next
		next += n
	}
	for i, c := range counts {
		if c < common {
			counts[i] = table[c]
			table[c]++
		} else {
			counts[i] = rare[c]
			rare[c]++
		}
	}
}

// Expected visits, for OrderAccess. A training epoch starts once at every training node. A node v
// that is expected x times in a layer draws min(k, d) of its d in-neighbours, so each of them is
// expected x·min(1, k/d) times more in the next. The sum over all layers is the number of times a
// row is read, drawn without a cache:
//
//	x₀ = 1 at training nodes    xₗ₊₁[u] = Σ xₗ[v]·min(1, kₗ/d(v)) over the edges u→v    visits = Σ xₗ
//
// Numbers are fixed-point, so that sums do not depend on the order of edges, which depends on the
// memory there is.
const (
	visitOne = 1 << 12 // one visit
)

// accessFanouts are the neighbours drawn per layer, as in the published GraphSAGE runs and by
// train's default.
var accessFanouts = []uint32{15, 10, 5}

// countVisits fills n.times with expected visits.
func (b *builder) countVisits(ctx context.Context) error {
	type layer struct{ now, next *kernels.HostBuf }
	visits := map[*nodes]*layer{}
	for _, n := range b.nodes {
		size := 4 * int64(max(n.count, 1))
		l := &layer{}
		if b.makes[n.name] && b.features.kind == "degree" && n.times == nil { // nothing starts there
			if err := b.count(&n.times, n.count); err != nil {
				return err
			}
		}
		n.out, n.times = n.times, nil // counted for features, if it is there
		if err := b.count(&n.degree, n.count); err != nil {
			return err
		}
		for _, buf := range []**kernels.HostBuf{&l.now, &l.next, &n.times} {
			var err error
			if *buf, err = b.hold(size); err != nil {
				return err
			}
		}
		visits[n] = l
		defer func() { b.release(&l.now); b.release(&l.next) }()
		now := l.now.Uint32s()
		b.eachTrainingRow(n, func(row uint32) { now[row] = visitOne })
		copy(n.times.Bytes(), l.now.Bytes())
	}
	for _, fanout := range accessFanouts {
		for i := range b.relations() {
			f, rel := b.form(i), &b.state.Relations[i]
			buf, err := extsort.Buffer(f.width, streamBytes)
			if err != nil {
				return err
			}
			now, next, degree := visits[f.dst].now.Uint32s(), visits[f.src].next.Uint32s(), f.dst.degree.Uint32s()
			for _, bucket := range f.log(rel) {
				err := b.area.Each(bucket, f.width, buf.Bytes(), func(records []byte) error {
					for at := 0; at < len(records); at += f.width {
						k := binary.LittleEndian.Uint64(records[at:])
						v := k >> 32
						x := uint64(now[v])
						if x == 0 {
							continue
						}
						if d := degree[v]; d > fanout {
							x = x * uint64(fanout) / uint64(d)
						}
						u := uint32(k)
						next[u] = uint32(min(uint64(next[u])+x, math.MaxUint32))
					}
					return ctx.Err()
				})
				if err != nil {
					buf.Close()
					return err
				}
			}
			buf.Close()
		}
		for _, n := range b.nodes {
			l := visits[n]
			times, next := n.times.Uint32s(), l.next.Uint32s()
			for v := range n.count {
				times[v] = uint32(min(uint64(times[v])+uint64(next[v]), math.MaxUint32))
			}
			l.now, l.next = l.next, l.now
			clear(l.next.Bytes())
		}
	}
	return nil
}
