package edgelist

import (
	"context"
	"fmt"
	"math"
	"math/bits"
	"path/filepath"
	"slices"
	"strings"

	"github.com/gnnstore/gnnstore/ingest"
	"github.com/gnnstore/gnnstore/ingest/lines"
)

// kinds tells a list of edges between two kinds of nodes, both numbered from 0 or 1 (users and the
// films they rated), from one whose two columns number the same nodes. Read as the latter, user 5
// and film 5 would be one node.
//
// Where names show two kinds, one id that is in both columns is enough. Otherwise all of this must
// hold:
//
//   - both columns have nearly all ids from the same 0 or 1 up to their largest, and one has a tenth fewer: columns of one
//     space agree, or leave gaps;
//   - so many rows have the same id in both columns as they would if the columns had nothing to do with each other. Graphs
//     have no self loops or many more. This tells a crawl, whose sources are the first of its
//     pages, from ratings.
//
// # Why not
//
// Why not refuse the first alone? A breadth-first crawl that numbers pages as it finds them passes
// it, and so do small graphs; they get a remark. Why not look at a sample? Lists are mostly sorted
// by their first column.
type kinds struct {
	named string // the names that show two kinds; "" when none do
	on    bool   // it is looked at
	sides [2]idBits
	rows  int64
}

const (
	kindIDs    = 1 << 26 // larger ones are not looked at: 16 MiB of bits in all
	loopIDs    = 1 << 22 // whose edges are counted: 32 MiB
	fewestRows = 20      // a smaller list gets no remark
)

// kindNames are in the names of files of ratings.
var kindNames = []string{"bipartite", "user_item", "user-item", "useritem", "ratings", "movielens"}

// findKinds looks at names.
func (s *Source) findKinds(r *edgeReader) {
	s.kinds.on = !s.o.OneSpace && !s.o.Bipartite && s.o.Nodes == "" && s.o.Count == 0 && s.declared == 0
	base := strings.ToLower(filepath.Base(r.Name()))
	switch {
	case r.header != nil && twoKinds(r.header[r.src], r.header[r.dst]):
		s.kinds.named = fmt.Sprintf("columns %s and %s are", lines.ClipText(r.header[r.src]), lines.ClipText(r.header[r.dst]))
	case r.bipartite:
		s.kinds.named = "a comment says that the columns are"
	case base == "u.data" || slices.ContainsFunc(kindNames, func(part string) bool { return strings.Contains(base, part) }):
		s.kinds.named = "by the name of the file, the columns are"
	}
}

func (k *kinds) add(c ingest.EdgeChunk) {
	for side, ids := range [][]int64{c.Src, c.Dst} {
		for _, id := range ids {
			if id < kindIDs {
				k.sides[side].add(id)
			} else if k.named == "" {
				k.on = false
				return
			}
		}
	}
	k.rows += int64(len(c.Src))
}

// judge refuses two kinds of nodes with ids of one space, once all edges are read.
func (s *Source) judgeKinds(ctx context.Context) error {
	k := &s.kinds
	if !k.on || k.rows == 0 {
		return nil
	}
	refuse := func(format string, args ...any) error {
		remedy := fmt.Sprintf("or describe both types: gnnstore ingest table {infer} %s writes a first schema", filepath.Dir(s.files[0]))
		if s.o.Events {
			remedy = "or {bipartite} if they are two"
		}
		return fmt.Errorf("%s: %s; say {one_id_space} if they are one kind, %s", s.files[0], fmt.Sprintf(format, args...), remedy)
	}
	if k.named != "" {
		if both, first := k.sides[0].both(k.sides[1]); both > 0 {
			return refuse("%s two kinds of nodes, and the ids in both (%d, the first is %d) would make one node of two", k.named, both, first)
		}
		return nil
	}
	a, b := k.sides[0].spread(), k.sides[1].spread()
	if a.first != b.first || a.first > 1 || !a.full() || !b.full() || 10*max(a.count, b.count) < 11*min(a.count, b.count) {
		return nil
	}
	chance, loops, err := s.loopsByChance(ctx, min(a.last, b.last, loopIDs-1))
	if err != nil {
		return err
	}
	switch {
	case chance < 3 && k.rows >= fewestRows:
		s.remarks = append(s.remarks, fmt.Sprintf("%s: %d sources and %d destinations, both numbered from %d, are taken for one kind of node",
			s.files[0], a.count, b.count, a.first))
	case chance >= 3 && chance <= 2*loops && loops <= 2*chance:
		return refuse("its columns look like two kinds of nodes, both numbered from %d: %d and %d ids, and %.0f rows with one id in both where "+
			"chance makes %.0f", a.first, a.count, b.count, loops, chance)
	}
	return nil
}

// loopsByChance returns how many rows would have one id, up to last, in both columns if these were
// shuffled, and how many have it.
func (s *Source) loopsByChance(ctx context.Context, last int64) (chance, loops float64, err error) {
	degrees := [2][]uint32{make([]uint32, last+1), make([]uint32, last+1)}
	rows := 0.0
	err = s.eachEdge(ctx, func(c ingest.EdgeChunk) error {
		rows += float64(len(c.Src))
		for i, u := range c.Src {
			v := c.Dst[i]
			if u <= last {
				degrees[0][u]++
			}
			if v <= last {
				degrees[1][v]++
			}
			if u == v && u <= last {
				loops++
			}
		}
		return nil
	})
	for id, n := range degrees[0] {
		chance += float64(n) * float64(degrees[1][id]) / math.Max(rows, 1)
	}
	return chance, loops, err
}

// idBits has a bit an id.
type idBits []uint64

func (b *idBits) add(id int64) {
	if word := int(id >> 6); word >= len(*b) {
		*b = append(*b, make([]uint64, max(1024, min(len(*b), kindIDs/64-len(*b)), word+1-len(*b)))...)
	}
	(*b)[id>>6] |= 1 << (id & 63)
}

// both counts the ids that are in a and b, and gives the first.
func (b idBits) both(other idBits) (n int, first int64) {
	for i := range min(len(b), len(other)) {
		if word := b[i] & other[i]; word != 0 {
			if n == 0 {
				first = int64(i)*64 + int64(bits.TrailingZeros64(word))
			}
			n += bits.OnesCount64(word)
		}
	}
	return n, first
}

// spread describes a set of ids by its ends and size.
type spread struct{ first, last, count int64 }

func (b idBits) spread() (s spread) {
	for i, word := range b {
		if word == 0 {
			continue
		}
		if s.count == 0 {
			s.first = int64(i)*64 + int64(bits.TrailingZeros64(word))
		}
		s.last = int64(i)*64 + int64(bits.Len64(word)) - 1
		s.count += int64(bits.OnesCount64(word))
	}
	return s
}

// full reports whether at least nine tenths of the ids from the first to the last are there.
func (s spread) full() bool { return 10*s.count >= 9*(s.last-s.first+1) }
