package task

import (
	"math/bits"

	"github.com/gnnstore/gnnstore/train/sample"
)

// permutation is an order of the numbers below n, one for each key, that takes no memory: a Feistel
// network of four rounds over the next power of four (Luby and Rackoff 1988: three make a
// permutation that looks random), walked until it comes below n (Black and Rogaway 2002), fewer
// than four times on average.
type permutation struct {
	n    uint64
	half int // bits of each half
	keys [4]uint64
}

func newPermutation(n, key uint64) permutation {
	p := permutation{n: n, half: max(1, (bits.Len64(n-1)+1)/2)}
	for i := range p.keys {
		p.keys[i] = sample.Hash(key, uint64(i))
	}
	return p
}

// at returns the number in place i.
func (p *permutation) at(i uint64) uint64 {
	mask := uint64(1)<<p.half - 1
	for {
		left, right := i>>p.half, i&mask
		for _, key := range p.keys {
			left, right = right, left^sample.Hash(key, right)&mask
		}
		if i = left<<p.half | right; i < p.n {
			return i
		}
	}
}
