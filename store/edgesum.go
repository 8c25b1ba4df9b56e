package store

import (
	"encoding/binary"
	"math/bits"

	"github.com/zeebo/xxh3"
)

// EdgeSum is a sum of 128 bits over edges, each hashed by XXH3, which does not depend on their
// order. Of two sets of as many edges, duplicates counted, equal sums are equal edges. The zero
// value has none.
type EdgeSum struct{ hi, lo uint64 }

// Add takes the edge u→v.
func (s *EdgeSum) Add(u, v NodeID) {
	var edge [8]byte
	binary.LittleEndian.PutUint32(edge[:], u)
	binary.LittleEndian.PutUint32(edge[4:], v)
	h := xxh3.Hash128(edge[:])
	s.AddSum(EdgeSum{h.Hi, h.Lo})
}

// AddSum takes the edges of another sum.
func (s *EdgeSum) AddSum(o EdgeSum) {
	var carry uint64
	s.lo, carry = bits.Add64(s.lo, o.lo, 0)
	s.hi, _ = bits.Add64(s.hi, o.hi, carry)
}
