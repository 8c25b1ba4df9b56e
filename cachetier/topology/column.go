package topology

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// column is a file with a value of fixed size for every edge: its neighbour, its weight, another
// value or the number of its row. In columns of one value size an edge has the same offset.
type column[T uint32 | float32] struct {
	file int // its number in the reader; 0 (the file of offsets) means that there is no such column
	size int // bytes of a value
	// first is the number in the file of the graph's first edge, above 0 where relations share the
	// file.
	first uint64
	lend  func(b []byte) (values []T, ok bool)
	of    func(b []byte, i int) T // returns value i of b
	// check looks for damage in part, a part of v's edges that begins at v's edge from. It is nil
	// if every value is valid.
	check func(v uint32, from int, part []T) error
}

func idAt(b []byte, i int) uint32 { return binary.LittleEndian.Uint32(b[4*i:]) }

func floatAt(b []byte, i int) float32 { return math.Float32frombits(idAt(b, i)) }

// view returns b as values. It copies them to scratch if the file has another type, or if b is not
// aligned. The latter is rare, since engines align memory as the file is.
func (c *column[T]) view(b []byte, scratch *[]T) []T {
	if values, ok := c.lend(b); ok {
		return values
	}
	n := len(b) / c.size
	values := slices.Grow((*scratch)[:0], n)[:n]
	for i := range values {
		values[i] = c.of(b, i)
	}
	*scratch = values
	return values
}

// edge returns the first edge of extent s of the column. place returns the offset of edge e in its
// file.
func (c *column[T]) edge(s disk.Extent) uint64 {
	return uint64(s.Offset-store.PageSize)/uint64(c.size) - c.first
}
func (c *column[T]) place(e uint64) int64 { return store.PageSize + int64(c.size)*int64(c.first+e) }
func (c *column[T]) request(lo, hi uint64) disk.Request {
	return disk.Request{File: c.file, Offset: c.place(lo), Size: c.size * int(hi-lo)}
}

// fill completes b, which holds column c from edge 0 on: it reads all but the first known edges.
func fill[T uint32 | float32](ctx context.Context, t *Tier, c *column[T], b []byte, known int) (disk.Traffic, error) {
	return t.reader.Read(ctx, c.edges(uint64(known), uint64(len(b)/c.size)), func(s disk.Extent, part []byte) error {
		copy(b[uint64(c.size)*c.edge(s):], part)
		if c.check == nil {
			return nil
		}
		return each(t, c, s, part, c.check)
	})
}

// most returns the number of values of the column that are read at once, at most: MaxPart, or fewer
// if so many exceed an extent.
func (c *column[T]) most() int { return min(MaxPart, disk.MaxExtent/c.size) }

// edges yields extents that together hold the edges from lo to hi of the column, each with up to
// c.most() edges. All but the last end with a page of the file, so no page is read twice.
func (c *column[T]) edges(lo, hi uint64) func() (disk.Extent, bool) {
	most := uint64(c.most())
	return func() (s disk.Extent, ok bool) {
		if lo == hi {
			return s, false
		}
		n := min(hi-lo, most-(c.first+lo)%most)
		s = disk.Extent{File: c.file, Offset: c.place(lo), Size: c.size * int(n)}
		lo += n
		return s, true
	}
}

// each calls do for every list that lies in s, wholly or in part. b holds the bytes of s, and part
// begins at v's edge from.
func each[T uint32 | float32](t *Tier, c *column[T], s disk.Extent, b []byte, do func(v uint32, from int, part []T) error) error {
	var scratch []T
	values := c.view(b, &scratch)
	lo := c.edge(s)
	for v, e := t.offsets.owner(lo), lo; e < lo+uint64(len(values)); v++ {
		begin, end := t.offsets.span(v)
		end = min(end, lo+uint64(len(values)))
		if err := do(v, int(e-begin), values[e-lo:end-lo]); err != nil {
			return err
		}
		e = end
	}
	return nil
}

// read reads column c for Read, ReadWeights, ReadValues and ReadRows, and counts that as reading so
// many lists.
func read[T uint32 | float32](
	ctx context.Context, t *Tier, c *column[T], nodes []uint32, lists int64, serve func(i, from int, part []T) error,
) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.offsets.lines.Lend()
	defer t.offsets.lines.Return()
	wanted := int64(0)
	t.mu.long = t.mu.long[:0]
	for i, v := range nodes {
		n := t.Degree(v)
		if v < t.resident || i > 0 && nodes[i-1] >= v || n == 0 {
			panic(fmt.Sprintf("topology: Read: nodes[%d] is %d, which has %d neighbours, and %d lists are resident",
				i, v, n, t.resident))
		}
		wanted += int64(c.size) * int64(n)
		if n > c.most() {
			t.mu.long = append(t.mu.long, i)
		}
	}
	traffic, err := t.reader.Read(ctx, extents(t, c, nodes, t.mu.long), func(s disk.Extent, b []byte) error {
		first, size := c.edge(s), uint64(c.size)
		var scratch []T
		for i := s.Lo; i < s.Hi; i++ {
			lo, hi := t.offsets.span(nodes[i])
			from := max(lo, first)
			part := c.view(b[(from-first)*size:min((hi-first)*size, uint64(len(b)))], &scratch)
			if c.check != nil {
				if err := c.check(nodes[i], int(from-lo), part); err != nil {
					return err
				}
			}
			if err := serve(i, int(from-lo), part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("topology: %w", err)
	}
	t.stats.Lock()
	defer t.stats.Unlock()
	t.stats.Cold.Count(lists, 0, wanted, traffic)
	return nil
}

// extents yields what to read of a column for the lists of nodes, in file order. long has each i
// for which the list of nodes[i] is longer than c.most(). Those lists are cut into parts, and Merge
// makes few extents of the others.
func extents[T uint32 | float32](t *Tier, c *column[T], nodes []uint32, long []int) func() (disk.Extent, bool) {
	merged := func(lo, hi int) func() (disk.Extent, bool) {
		next := t.reader.Merge(hi-lo, func(i int) disk.Request {
			return c.request(t.offsets.span(nodes[lo+i]))
		})
		return func() (disk.Extent, bool) {
			s, ok := next()
			s.Lo, s.Hi = s.Lo+lo, s.Hi+lo
			return s, ok
		}
	}
	cut := func(i int) func() (disk.Extent, bool) {
		next := c.edges(t.offsets.span(nodes[i]))
		return func() (disk.Extent, bool) {
			s, ok := next()
			s.Lo, s.Hi = i, i+1
			return s, ok
		}
	}
	// In turns: the lists up to a long one, the long one, the lists up to the next.
	begin, inLong := 0, false
	end := func() int {
		if len(long) > 0 {
			return long[0]
		}
		return len(nodes)
	}
	next := merged(begin, end())
	return func() (disk.Extent, bool) {
		for {
			if s, ok := next(); ok {
				return s, true
			}
			switch {
			case len(long) == 0:
				return disk.Extent{}, false
			case inLong:
				begin, long, inLong = long[0]+1, long[1:], false
				next = merged(begin, end())
			default:
				inLong = true
				next = cut(long[0])
			}
		}
	}
}
