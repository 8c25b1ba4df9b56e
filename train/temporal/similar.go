package temporal

import (
	"fmt"
	"sort"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/store"
)

// SimilarNodes is the most similar nodes of a node (MSPipe, arXiv 2402.15113, section 4).
const SimilarNodes = 10

// recentPartners bounds a node's partners to the other ends of its latest events, this many. So it
// bounds the cost of a node: one step for each event of each of its partners.
const recentPartners = 1000

// Similar finds the nodes most similar to one as of an event: those that had events with the same
// nodes before it. It takes 6 bytes a node outside the Go heap. When asked for a node, it reads the
// lists of the node and of its partners. One goroutine uses it.
//
// # Why not
//
// Why not find them once for all nodes, as MSPipe does: found from the whole training part, they
// would tell a step about later events.
type Similar struct {
	e       *store.Events
	recent  int
	buf     *kernels.HostBuf
	marks   []uint32 // by place: the number of the last list that had it
	counts  *kernels.HostBuf
	common  []uint16 // by place: partners in common, at most recent; zeros between calls
	list    uint32   // the number of the newest list
	touched []uint32 // places whose count is not 0
	of      []uint32
	found   [SimilarNodes]uint32
}

// SimilarBytes returns the bytes that Similar takes for so many nodes.
func SimilarBytes(places int64) int64 { return 6 * places }

// NewSimilar finds similar nodes of a stream. The caller keeps the stream open. Close it.
func NewSimilar(e *store.Events) (*Similar, error) { return newSimilar(e, recentPartners) }

func newSimilar(e *store.Events, recent int) (_ *Similar, err error) {
	if err := numbered(e); err != nil {
		return nil, err
	}
	s := &Similar{e: e, recent: recent}
	if s.buf, err = kernels.NewHostBuf(int(4 * e.Places())); err != nil {
		return nil, fmt.Errorf("temporal: similar nodes of %d: %w", e.Places(), err)
	}
	if s.counts, err = kernels.NewHostBuf(int(2 * e.Places())); err != nil {
		s.buf.Close()
		return nil, fmt.Errorf("temporal: similar nodes of %d: %w", e.Places(), err)
	}
	s.marks, s.common = s.buf.Uint32s(), s.counts.Uint16s()
	return s, nil
}

// Of returns the places of the nodes similar to the one at place, by the events before one, most
// similar first. The partners of a node are the other ends of its latest thousand events, each
// once. Node u is similar to v if u is a partner of a partner of v; the more such partners, the
// more similar. Of equally similar nodes, smaller places come first. The slice is borrowed: it is
// valid until the next Of.
//
// A damaged list panics with a *store.SectionError.
func (s *Similar) Of(place uint32, before int64) []uint32 {
	s.of = s.partners(s.of[:0], place, before)
	s.touched = s.touched[:0]
	for _, w := range s.of {
		first := len(s.touched)
		s.touched = s.partners(s.touched, w, before)
		all := s.touched[first:]
		s.touched = s.touched[:first]
		for _, u := range all {
			if s.common[u] == 0 {
				s.touched = append(s.touched, u)
			}
			s.common[u]++
		}
	}
	// ascending by count; of equal counts, larger places come first
	var best [SimilarNodes]uint64
	n := 0
	for _, u := range s.touched {
		key := uint64(s.common[u])<<32 | uint64(^u)
		s.common[u] = 0
		if u == place || key < best[0] {
			continue
		}
		n = min(n+1, SimilarNodes)
		i := 1
		for ; i < len(best) && best[i] < key; i++ {
			best[i-1] = best[i]
		}
		best[i-1] = key
	}
	for i := range n {
		s.found[i] = ^uint32(best[len(best)-1-i])
	}
	return s.found[:n]
}

// partners appends the partners of the node at place, by the events before one, latest first.
func (s *Similar) partners(list []uint32, place uint32, before int64) []uint32 {
	if s.list++; s.list == 0 { // the numbers overflowed
		clear(s.marks)
		s.list = 1
	}
	e := s.e
	near := e.Near(int64(place))
	end := sort.Search(len(near), func(i int) bool { return int64(near[i].Event) >= before })
	nodes, first := e.Sources, int64(0)
	if e.Stream.Src != e.Stream.Dst && int64(place) < e.Sources {
		nodes, first = e.Destinations, e.Sources
	}
	for i := end - 1; i >= max(0, end-s.recent); i-- {
		if int64(near[i].Neighbor) >= nodes {
			lo, _ := e.List(int64(place))
			panic(e.Corrupt(&e.Stream.Near, store.HalfEdgeBytes*(int64(lo)+int64(i)), "event %d is of node %d of %d", near[i].Event, near[i].Neighbor, nodes))
		}
		if u := uint32(first) + near[i].Neighbor; s.marks[u] != s.list {
			s.marks[u] = s.list
			list = append(list, u)
		}
	}
	return list
}

// bytes is the memory taken in the Go heap.
func (s *Similar) bytes() int64 { return 4 * int64(cap(s.touched)+cap(s.of)) }

// Close frees the memory. A second Close does nothing.
func (s *Similar) Close() {
	s.buf.Close()
	s.counts.Close()
	s.marks, s.common = nil, nil
}
