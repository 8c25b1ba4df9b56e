package topology

import (
	"context"
	"encoding/binary"
	"fmt"

	"github.com/gnnstore/gnnstore/cachetier/disk"
	"github.com/gnnstore/gnnstore/store"
)

// column is a file with 4 bytes for every edge: its neighbour, or its weight. An edge has the same offset in every column.
type column[T uint32 | float32] struct {
	file  int // its number in the reader; 0, which is the offsets, if there is no such column
	lend  func(b []byte) (values []T, ok bool)
	of    func(bits uint32) T
	check func(v uint32, from int, part []T) error // looks for damage in v's edges; part begins with edge from of v
}

// view returns b as values. It copies them if b is not aligned, which is rare: engines align memory as the file is.
func (c *column[T]) view(b []byte) []T {
	if values, ok := c.lend(b); ok {
		return values
	}
	aligned := make([]T, len(b)/4)
	for i := range aligned {
		aligned[i] = c.of(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return aligned
}

// place is the offset of edge e in the file of a column.
func place(e uint64) int64 { return store.PageSize + 4*int64(e) }

// fill fills b, which holds column c from edge 0 on: the first known edges are there, and the others are read.
func fill[T uint32 | float32](ctx context.Context, t *Tier, c *column[T], b []byte, known int) (disk.Traffic, error) {
	return t.reader.Read(ctx, t.edges(c.file, uint64(known), uint64(len(b))/4), func(s disk.Extent, part []byte) error {
		copy(b[s.Offset-store.PageSize:], part)
		return each(t, c, s, part, c.check)
	})
}

// edges gives extents that together hold the edges from lo to hi of a column, at most MaxPart each. All but the last end with
// a page of the file, so no page is read twice.
func (t *Tier) edges(file int, lo, hi uint64) func() (disk.Extent, bool) {
	return func() (s disk.Extent, ok bool) {
		if lo == hi {
			return s, false
		}
		n := min(hi-lo, MaxPart-lo%MaxPart)
		s = disk.Extent{File: file, Offset: place(lo), Size: 4 * int(n)}
		lo += n
		return s, true
	}
}

// each calls do for every list that lies in s, wholly or in part; b is the bytes of s. The part of v's list begins with edge
// from of v.
func each[T uint32 | float32](t *Tier, c *column[T], s disk.Extent, b []byte, do func(v uint32, from int, part []T) error) error {
	values := c.view(b)
	lo := uint64(s.Offset-store.PageSize) / 4
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

// read reads column c for Read and ReadWeights, and counts that as so many lists.
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
		wanted += 4 * int64(n)
		if n > MaxPart {
			t.mu.long = append(t.mu.long, i)
		}
	}
	traffic, err := t.reader.Read(ctx, t.extents(c.file, nodes, t.mu.long), func(s disk.Extent, b []byte) error {
		values, first := c.view(b), uint64(s.Offset-store.PageSize)/4
		for i := s.Lo; i < s.Hi; i++ {
			lo, hi := t.offsets.span(nodes[i])
			from := max(lo, first)
			part := values[from-first : min(hi-first, uint64(len(values)))]
			if err := c.check(nodes[i], int(from-lo), part); err != nil {
				return err
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

// extents gives what to read of a column for the lists of nodes, in the order of the file. nodes[i] has a list longer than
// MaxPart for each i in long: those are cut into parts, and of the others Merge makes few extents.
func (t *Tier) extents(file int, nodes []uint32, long []int) func() (disk.Extent, bool) {
	merged := func(lo, hi int) func() (disk.Extent, bool) {
		next := t.reader.Merge(hi-lo, func(i int) disk.Request {
			begin, end := t.offsets.span(nodes[lo+i])
			return disk.Request{File: file, Offset: place(begin), Size: 4 * int(end-begin)}
		})
		return func() (disk.Extent, bool) {
			s, ok := next()
			s.Lo, s.Hi = s.Lo+lo, s.Hi+lo
			return s, ok
		}
	}
	cut := func(i int) func() (disk.Extent, bool) {
		lo, hi := t.offsets.span(nodes[i])
		next := t.edges(file, lo, hi)
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
