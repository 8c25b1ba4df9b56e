package trace

import (
	"slices"

	"github.com/gnnstore/gnnstore/kernels"
)

// simulator simulates caches of several sizes under one policy. It is asked for the rows of a trace
// from the first to the last.
type simulator interface {
	// ask adds to misses[i] the number of requests that the i-th cache did not have. Requests are
	// rows, or for belady the places of next requests.
	ask(requests []uint32, misses []int64)
	// close gives up the memory.
	close()
}

// static holds the rows below each of its sizes.
type static struct{ sizes []uint32 }

func (s *static) ask(rows []uint32, misses []int64) {
	for i, size := range s.sizes {
		n := int64(0)
		for _, v := range rows {
			if v >= size {
				n++
			}
		}
		misses[i] += n
	}
}

func (s *static) close() {}

// lru is caches of ascending sizes that hold the rows asked for last. One list has them all, the
// latest row first: the cache of size c holds the first c. Each row knows its zone, how many of the
// caches do not hold it, and each cache its edge, the last row that it holds; so a request moves
// one row, and one past each edge in front of where that was.
type lru struct {
	sizes   []uint32
	numbers *kernels.HostBuf
	marks   *kernels.HostBuf
	links   []uint32 // two a row: the one asked for after it, and the one before
	zone    []byte   // of a row, plus 1; 0 where it is not in the list
	edge    []uint32 // of caches that are full

	held        uint32
	first, last uint32
}

// Directions in a list: places in links.
const (
	newer = iota
	older
)

// maxCaches is the most sizes of a trace, far below the largest zone that a byte holds.
const maxCaches = 32

func newLRU(nodes int, sizes []uint32) (*lru, error) {
	numbers, err := kernels.NewHostBuf(8 * nodes)
	if err != nil {
		return nil, err
	}
	marks, err := kernels.NewHostBuf(nodes)
	if err != nil {
		numbers.Close()
		return nil, err
	}
	return &lru{
		sizes: sizes, numbers: numbers, marks: marks,
		links: numbers.Uint32s(), zone: marks.Bytes(), edge: make([]uint32, len(sizes)),
	}, nil
}

func (l *lru) close() {
	l.numbers.Close()
	l.marks.Close()
}

func (l *lru) ask(rows []uint32, misses []int64) {
	for _, v := range rows {
		z := len(l.sizes)
		if of := l.zone[v]; of > 0 {
			z = int(of) - 1
			l.toFront(v, z)
		} else {
			l.push(v)
		}
		for i := range z {
			misses[i]++
		}
	}
}

func (l *lru) at(v uint32, direction int) *uint32 { return &l.links[2*int(v)+direction] }

// toFront moves v, of zone z, to the front of the list.
func (l *lru) toFront(v uint32, z int) {
	if v == l.first {
		return
	}
	before := *l.at(v, newer)
	if l.held >= l.sizes[z] && l.edge[z] == v {
		l.edge[z] = before
	}
	if v == l.last {
		l.last = before
	} else {
		behind := *l.at(v, older)
		*l.at(before, older), *l.at(behind, newer) = behind, before
	}
	l.link(v)
	l.shift(z)
}

// push puts v, which is new, in front; the last row leaves a list that is as long as the largest
// cache.
func (l *lru) push(v uint32) {
	if l.held == 0 {
		l.first, l.last, l.zone[v] = v, v, 1
	} else {
		l.link(v)
	}
	l.shift(len(l.sizes))
	if l.held == l.sizes[len(l.sizes)-1] {
		gone := l.last
		l.last, l.zone[gone] = *l.at(gone, newer), 0
		return
	}
	l.held++
	if i, full := slices.BinarySearch(l.sizes, l.held); full {
		l.edge[i] = l.last
	}
}

// link puts v before the first row.
func (l *lru) link(v uint32) {
	*l.at(v, older), *l.at(l.first, newer) = l.first, v
	l.first = v
	l.zone[v] = 1
}

// shift moves the row at the edge of each of the first z caches out of it, since a row came in
// front.
func (l *lru) shift(z int) {
	for i := range z {
		if l.held >= l.sizes[i] {
			row := l.edge[i]
			l.zone[row]++
			l.edge[i] = *l.at(row, newer)
		}
	}
}

// sieve is one cache under SIEVE: a queue of rows in the order in which they came, and a hand that
// goes from the oldest to the newest and then from the oldest again. It takes the mark from rows
// that were asked for since it last came by, and evicts the first that has none; there it stays.
type sieve struct {
	size    uint32
	numbers *kernels.HostBuf
	marks   *kernels.HostBuf
	slot    []uint32 // of a row, plus 1; 0 where it has none
	row     []uint32 // of a slot
	links   []uint32 // two a slot: the slots of the newer and of the older neighbour, none at the ends
	visited []byte   // of a slot

	held        uint32
	first, last uint32 // the newest and the oldest
	hand        uint32 // none: at the oldest
}

// none is no slot.
const none = 1<<32 - 1

func newSieve(nodes int, size uint32) (*sieve, error) {
	numbers, err := kernels.NewHostBuf(4 * (nodes + 3*int(size)))
	if err != nil {
		return nil, err
	}
	marks, err := kernels.NewHostBuf(int(size))
	if err != nil {
		numbers.Close()
		return nil, err
	}
	all := numbers.Uint32s()
	return &sieve{
		size: size, numbers: numbers, marks: marks,
		slot: all[:nodes], row: all[nodes : nodes+int(size)], links: all[nodes+int(size):], visited: marks.Bytes(),
		first: none, last: none, hand: none,
	}, nil
}

func (s *sieve) close() {
	s.numbers.Close()
	s.marks.Close()
}

func (s *sieve) at(slot uint32, direction int) *uint32 { return &s.links[2*int(slot)+direction] }

func (s *sieve) ask(rows []uint32, misses []int64) {
	missed := int64(0)
	for _, v := range rows {
		if of := s.slot[v]; of > 0 {
			s.visited[of-1] = 1
			continue
		}
		missed++
		slot := s.held
		if s.held == s.size {
			slot = s.evict()
		} else {
			s.held++
		}
		s.row[slot], s.slot[v], s.visited[slot] = v, slot+1, 0
		*s.at(slot, older), *s.at(slot, newer) = s.first, none
		if s.first == none {
			s.last = slot
		} else {
			*s.at(s.first, newer) = slot
		}
		s.first = slot
	}
	misses[0] += missed
}

// evict takes a slot out of the queue.
func (s *sieve) evict() uint32 {
	at := s.hand
	for {
		if at == none {
			at = s.last
		}
		if s.visited[at] == 0 {
			break
		}
		s.visited[at] = 0
		at = *s.at(at, newer)
	}
	before, behind := *s.at(at, newer), *s.at(at, older)
	s.hand = before
	if before == none {
		s.first = behind
	} else {
		*s.at(before, older) = behind
	}
	if behind == none {
		s.last = before
	} else {
		*s.at(behind, newer) = before
	}
	s.slot[s.row[at]] = 0
	return at
}
