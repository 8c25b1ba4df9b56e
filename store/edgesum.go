package store

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// EdgeSum is a 128-bit sum of the XXH3 hashes of edges. It does not depend on their order. If two
// multisets of equally many edges have equal sums, they hold the same edges. The zero value is the
// sum of no edges.
type EdgeSum struct{ hi, lo uint64 }

// Add adds the edge u→v.
func (s *EdgeSum) Add(u, v NodeID) {
	var edge [8]byte
	binary.LittleEndian.PutUint32(edge[:], u)
	binary.LittleEndian.PutUint32(edge[4:], v)
	h := xxh3.Hash128(edge[:])
	s.AddSum(EdgeSum{h.Hi, h.Lo})
}

// AddSum adds the edges of another sum.
func (s *EdgeSum) AddSum(o EdgeSum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}
