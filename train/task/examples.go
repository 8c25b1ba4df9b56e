package task

import (
	"math/bits"
	"slices"

	"github.com/gnnstore/gnnstore/train/data"
	"github.com/gnnstore/gnnstore/train/sample"
)

// examples are the links of a step and the nodes that replace their ends in negatives, as rows of
// its seeds. They are a function of (seed, epoch, step), and each goroutine that needs them makes
// its own.
type examples struct {
	seeds [][]uint32 // by type: distinct ends, in the order in which they first come
	// The i-th positive goes from row src[i] to row dst[i] of the seeds of its types; links are
	// these ends themselves.
	src, dst []uint32
	links    [][2]uint32
	first    int      // index in the step of this worker's first link
	of       []uint32 // index of each link's relation, as learnt; empty where there is one
	sides    []side

	rows  []map[uint32]uint32 // by type: of each seed
	edges []int64
	order []int
}

// side is the negatives in which one end of a positive is replaced.
type side struct {
	dst bool // the destination is replaced; else the source
	// The lists of negatives are nodes[start[n]:start[n+1]], rows of the seeds. Each list is for
	// chunk positives.
	chunk        int
	start, nodes []uint32
}

// list returns the negatives of positive i.
func (s *side) list(i int) []uint32 {
	n := i / s.chunk
	return s.nodes[s.start[n]:s.start[n+1]]
}

// relation returns the number of the i-th positive's relation.
func (x *examples) relation(i int) int {
	if len(x.of) == 0 {
		return 0
	}
	return int(x.of[i])
}

// phases keep draws for different ends apart.
const (
	phaseOrder = 11 + iota
	phaseTrain
	phaseEval
)

// below returns the i-th number of a sequence of numbers below n that key starts.
func below(key uint64, i, n int) uint32 {
	hi, _ := bits.Mul64(sample.Hash(key, uint64(i)), uint64(n)) // Lemire's range reduction; its bias is n/2⁶⁴
	return uint32(hi)
}

// row returns the row of node v of type t, which becomes a seed.
func (x *examples) row(t int, v uint32) uint32 {
	n, ok := x.rows[t][v]
	if !ok {
		n = uint32(len(x.seeds[t]))
		x.rows[t][v] = n
		x.seeds[t] = append(x.seeds[t], v)
	}
	return n
}

// begin forgets all, for so many types. Seeds are new each time: batches keep them.
func (x *examples) begin(types int) {
	x.seeds, x.src, x.dst, x.links, x.sides = make([][]uint32, types), x.src[:0], x.dst[:0], x.links[:0], x.sides[:0]
	x.first = 0
	if len(x.rows) != types {
		x.rows = make([]map[uint32]uint32, types)
		for t := range x.rows {
			x.rows[t] = map[uint32]uint32{}
		}
	}
	for t := range x.rows {
		clear(x.rows[t])
	}
}

// read sets links to the ends of edges, which it reads in the order of the files. Edges are
// numbered through all relations, the first of each being first[i].
func (x *examples) read(relations []data.Relation, first, edges []int64) {
	x.order = x.order[:0]
	for i := range edges {
		x.order = append(x.order, i)
	}
	slices.SortFunc(x.order, func(a, b int) int { return int(edges[a] - edges[b]) })
	x.links = append(x.links[:0], make([][2]uint32, len(edges))...)
	x.of = relationsOf(x.of[:0], first, edges)
	for _, i := range x.order {
		r := x.relation(i)
		u, v := relations[r].Edge(edges[i] - first[r])
		x.links[i] = [2]uint32{u, v}
	}
}

// relationsOf appends the relation of each of edges to dst; nothing if there is one relation.
func relationsOf(dst []uint32, begins, edges []int64) []uint32 {
	if len(begins) > 2 {
		for _, e := range edges {
			dst = append(dst, uint32(relationOf(begins, e)))
		}
	}
	return dst
}

// without returns every edge between the two ends of a link, in the learnt relation and in its
// reverse.
func (x *examples) without(d *data.Data) []sample.Without {
	l := d.Links
	r := &d.Relations[l.Relation]
	forth, back := make([]uint64, 0, 2*len(x.links)), make([]uint64, 0, 2*len(x.links))
	for i, ends := range x.links {
		forth = append(forth, uint64(x.dst[i])<<32|uint64(ends[0]))
		back = append(back, uint64(x.src[i])<<32|uint64(ends[1]))
	}
	if r.Src == r.Dst { // either direction, in either relation
		forth = append(forth, back...)
		back = append(back[:0], forth...)
	}
	all := make([]sample.Without, len(d.Relations))
	all[l.Relation].Fill(len(x.seeds[r.Dst]), forth)
	if l.Mirror >= 0 {
		all[l.Mirror].Fill(len(x.seeds[r.Src]), back)
	}
	return all
}

// mostRedraws bounds how often a filtered negative is drawn anew. For a node that is linked to nine
// tenths of the others, one negative in a thousand is a link in the end.
const mostRedraws = 64

// filtered draws a node until isLink denies it, or until it has been drawn anew mostRedraws times.
func filtered(key uint64, i, nodes int, isLink func(v uint32) bool) uint32 {
	v := redrawn(key, i, nodes, 0)
	for try := 1; try <= mostRedraws && isLink(v); try++ {
		v = redrawn(key, i, nodes, try)
	}
	return v
}

// redrawn returns the node that is drawn for filtered negative i after so many tries.
func redrawn(key uint64, i, nodes, tries int) uint32 {
	if tries > 0 {
		key = sample.Hash(key, uint64(tries))
	}
	return below(key, i, nodes)
}

// draw adds the sides of negatives n, in chunks of positives. x.first is a multiple of chunk if
// negatives are shared. Links go from nodes of type src, sources in number, to nodes of type dst,
// targets in number. linked reports whether the pair from u to v must not be a negative of positive
// i. It is called for filtered negatives, if tries is nil. tries counts, by side and negative of
// the step, how often a node is drawn anew.
func (x *examples) draw(
	n Negatives, ends string, chunk int, key uint64, src, dst, sources, targets int, linked func(i int, u, v uint32) bool,
	tries [][]uint8,
) {
	for number, isDst := range corrupted(ends) {
		s := side{dst: isDst, chunk: 1, start: []uint32{0}}
		if n.Way == Shared {
			s.chunk = chunk
		}
		t, nodes, own, key := src, sources, x.src, sample.Hash(key, uint64(number))
		if isDst {
			t, nodes, own = dst, targets, x.dst
		}
		for i := range x.links {
			switch n.Way {
			case Uniform:
				for j := range n.Of {
					s.nodes = append(s.nodes, x.row(t, below(key, (x.first+i)*n.Of+j, nodes)))
				}
			case Filtered:
				isLink := func(v uint32) bool {
					if isDst {
						return linked(i, x.links[i][0], v)
					}
					return linked(i, v, x.links[i][1])
				}
				for j := range n.Of {
					at, v := (x.first+i)*n.Of+j, uint32(0)
					if tries != nil {
						v = redrawn(key, at, nodes, int(tries[number][at]))
					} else {
						v = filtered(key, at, nodes, isLink)
					}
					s.nodes = append(s.nodes, x.row(t, v))
				}
			case Shared:
				if i%chunk > 0 {
					continue
				}
				for j := range n.Of {
					s.nodes = append(s.nodes, x.row(t, below(key, (x.first+i)/chunk*n.Of+j, nodes)))
				}
			case InBatch:
				lo := i / chunk * chunk
				hi := min(lo+chunk, len(own))
				s.nodes = append(append(s.nodes, own[lo:i]...), own[i+1:hi]...)
			}
			s.start = append(s.start, uint32(len(s.nodes)))
		}
		x.sides = append(x.sides, s)
	}
}
