package infer

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/kernels"
)

// edgeList has the edges of one relation to the destinations of a part, in bins: one for each range
// of sources. Within a bin, edges keep the order of destinations and of their lists. So each
// destination has its sources in ascending order from bin to bin, though nothing is sorted. Bins
// take pages of the list's memory as they grow.
//
// Concurrency: one goroutine fills it; then any may read.
type edgeList struct {
	bins  []bin
	shift int      // a bin has 1<<shift sources
	page  int      // log2 of the edges of a page
	next  []uint32 // by page: the one behind it in its bin
	edges []uint64 // source, and below it the number of the destination in the part
	// weight[i] is the weight of edges[i], where mayWeigh. weighs means that weights may differ
	// from 1.
	weight           []float32
	mayWeigh, weighs bool
	memory, weights  *kernels.HostBuf // of edges, and of weight

	used  int // pages
	count int // edges
	most  int // edges that have room, whatever their bins
}

// bin is the edges of a range of sources.
type bin struct {
	first, last uint32 // pages
	edges       int
}

const (
	leastPage   = 7  // log2 of edges: 1 KiB of them
	mostPage    = 13 // 64 KiB, beyond which a page has nothing to gain
	mostSources = 18 // log2 of the sources of a bin; tables are indexed by them
)

// newEdgeList returns a list without memory, for edges from so many sources. A bin has about
// together sources, which are read together. It has more if pages that are not full would otherwise
// take more than slack bytes.
func newEdgeList(sources, together int, slack int64, mayWeigh bool) edgeList {
	l := edgeList{mayWeigh: mayWeigh, page: leastPage, shift: min(bits.Len(uint(max(together, 1)))-1, mostSources)}
	unused := func(page int) int64 { return int64(sources>>l.shift+1) * l.bytes(1<<page) }
	for l.shift < mostSources && unused(leastPage) > slack {
		l.shift++
	}
	for l.page < mostPage && unused(l.page+1) <= slack {
		l.page++
	}
	l.bins = make([]bin, sources>>l.shift+1)
	return l
}

// The bytes of an edge while its part is held: both ends and, where it may have one, its weight.
const (
	edgeBytes   = 8
	weightBytes = 4
)

// bytes returns the bytes of n edges.
func (l *edgeList) bytes(n int) int64 {
	if l.mayWeigh {
		return int64(n) * (edgeBytes + weightBytes)
	}
	return int64(n) * edgeBytes
}

// clear empties l.
func (l *edgeList) clear() {
	clear(l.bins)
	l.used, l.count = 0, 0
}

// free gives up the memory.
func (l *edgeList) free() {
	if l.memory != nil {
		l.memory.Close()
	}
	if l.weights != nil {
		l.weights.Close()
	}
	l.memory, l.weights, l.edges, l.weight, l.most = nil, nil, nil, nil, 0
}

// fits reports whether l has room for n edges, and at most a quarter more.
func (l *edgeList) fits(n int) bool { return l.most >= n && l.most <= n+n/4 }

// grow makes room for n edges in all.
func (l *edgeList) grow(n int) (err error) {
	pages := n>>l.page + len(l.bins) + 1
	more := *l
	more.memory, more.weights, more.most = nil, nil, n
	if more.memory, err = kernels.NewHostBuf(edgeBytes * pages << l.page); err != nil {
		return err
	}
	more.edges = more.memory.Uint64s()
	if l.mayWeigh {
		if more.weights, err = kernels.NewHostBuf(weightBytes * pages << l.page); err != nil {
			more.memory.Close()
			return err
		}
		more.weight = more.weights.Float32s()
	}
	more.next = make([]uint32, pages)
	copy(more.next, l.next[:l.used])
	copy(more.edges, l.edges[:l.used<<l.page])
	if l.mayWeigh {
		copy(more.weight, l.weight[:l.used<<l.page])
	}
	l.free()
	*l = more
	return nil
}

// room makes room for n more edges, and for some that follow, unless there is.
func (l *edgeList) room(n int) error {
	if n += l.count; n > l.most {
		return l.grow(n + n/4)
	}
	return nil
}

// weigh has edges have weights; those so far weigh 1.
func (l *edgeList) weigh() {
	if l.weighs {
		return
	}
	l.weighs = true
	for i := range l.weight[:l.used<<l.page] {
		l.weight[i] = 1
	}
}

// add takes note of an edge, for which there is room.
func (l *edgeList) add(source, dst uint32, weight float32) {
	n := source >> l.shift
	b := &l.bins[n]
	at := b.edges & (1<<l.page - 1)
	if at == 0 {
		if b.edges == 0 {
			b.first = uint32(l.used)
		} else {
			l.next[b.last] = uint32(l.used)
		}
		b.last = uint32(l.used)
		l.used++
	}
	at += int(b.last) << l.page
	l.edges[at] = uint64(source)<<32 | uint64(dst)
	if l.weighs {
		l.weight[at] = weight
	}
	b.edges++
	l.count++
}

// of yields the edges of a bin, and their weights if they have some, a page at a time.
func (l *edgeList) of(b int) func(yield func(edges []uint64, weight []float32) bool) {
	return func(yield func(edges []uint64, weight []float32) bool) {
		left, page := l.bins[b].edges, l.bins[b].first
		for left > 0 {
			n := min(left, 1<<l.page)
			lo := int(page) << l.page
			var weight []float32
			if l.weighs {
				weight = l.weight[lo : lo+n]
			}
			if !yield(l.edges[lo:lo+n], weight) {
				return
			}
			if left -= n; left > 0 {
				page = l.next[page]
			}
		}
	}
}

// sources lists the sources of l in ascending order.
type sources struct {
	l     *edgeList
	bin   int
	found bool
	seen  nodeSet // if found, sources of the bin that are not listed yet, from its first one on
}

// next puts sources in ids, which is empty, up to most of them, and none at the end. It stops
// before a bin whose sources do not all fit.
func (s *sources) next(ids []uint32, most int) []uint32 {
	for ; s.bin < len(s.l.bins); s.bin, s.found = s.bin+1, false {
		if s.l.bins[s.bin].edges == 0 {
			continue
		}
		if !s.found {
			s.find()
		}
		if len(ids) > 0 && len(ids)+s.seen.count() > most {
			return ids
		}
		for v := range s.seen.all {
			if len(ids) == most {
				return ids
			}
			s.seen[v/64] &^= 1 << (v % 64)
			ids = append(ids, uint32(s.bin)<<s.l.shift+v)
		}
	}
	return ids
}

// find finds the sources of the bin.
func (s *sources) find() {
	if s.seen == nil {
		s.seen = newNodeSet(1 << s.l.shift)
	}
	clear(s.seen)
	for edges := range s.l.of(s.bin) {
		for _, e := range edges {
			s.seen.add(uint32(e>>32) & (1<<s.l.shift - 1))
		}
	}
	s.found = true
}
