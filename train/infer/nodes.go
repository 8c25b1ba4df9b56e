package infer

import (
	"math/bits"
	"slices"
)

// nodeSet has a bit a node.
type nodeSet []uint64

func newNodeSet(nodes int) nodeSet { return make(nodeSet, (nodes+63)/64) }

func (s nodeSet) add(v uint32) { s[v/64] |= 1 << (v % 64) }

func (s nodeSet) count() int {
	n := 0
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// all yields the nodes in ascending order.
func (s nodeSet) all(yield func(uint32) bool) {
	for i, w := range s {
		for ; w != 0; w &= w - 1 {
			if !yield(uint32(i*64 + bits.TrailingZeros64(w))) {
				return
			}
		}
	}
}

// from yields the nodes from one on, in ascending order.
func (s nodeSet) from(first uint32) func(yield func(uint32) bool) {
	return func(yield func(uint32) bool) {
		for v := range s[first/64:].all {
			if v += first / 64 * 64; v >= first && !yield(v) {
				return
			}
		}
	}
}

// but is the set without its first nodes, n of them.
func (s nodeSet) but(n int) nodeSet {
	if n == 0 {
		return s
	}
	rest := slices.Clone(s)
	for i, w := range rest {
		if have := bits.OnesCount64(w); have <= n {
			rest[i], n = 0, n-have
			continue
		}
		for ; n > 0; n-- {
			rest[i] &= rest[i] - 1
		}
		break
	}
	return rest
}

// rank writes each node's number within the set.
func (s nodeSet) rank(place []uint32) {
	n := uint32(0)
	for v := range s.all {
		place[v] = n
		n++
	}
}

// places finds the number of a node within a set, as rank writes it, with 4 bytes for 512 nodes
// beside the set.
type places struct {
	set    nodeSet
	before []uint32 // nodes of the set before each block of words
}

const blockWords = 8 // 512 nodes: seven words to count at most

func newPlaces(s nodeSet) places {
	p := places{set: s}
	n := 0
	for i, w := range s {
		if i%blockWords == 0 {
			p.before = append(p.before, uint32(n))
		}
		n += bits.OnesCount64(w)
	}
	return p
}

// of is the number of v, which is in the set.
func (p places) of(v uint32) uint32 {
	word := int(v / 64)
	block := word / blockWords
	n := p.before[block]
	for _, w := range p.set[block*blockWords : word] {
		n += uint32(bits.OnesCount64(w))
	}
	return n + uint32(bits.OnesCount64(p.set[word]&(1<<(v%64)-1)))
}
