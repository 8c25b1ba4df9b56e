package generate

import (
	"math"
	"math/bits"
)

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio: SplitMix64's step

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of x reaches every bit
// of the result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

// What keys are for; no two draws share one.
const (
	forIDs uint64 = iota + 1
	forSplit
	forEdges
	forMeans
	forNoise
	forYears
	forHomes
	forEvents
	forTraits
	forMoves
	forStrong
	forGrowth
	forInOrder
	forOutOrder
	forChurn
)

// key begins the draws of a purpose for the which-th thing of it; draw k of them is mix(key +
// k·golden).
func key(seed, purpose, which uint64) uint64 {
	return mix(mix(mix(seed+golden)^purpose*golden) ^ which*golden)
}

// draw is the k-th of a key's draws.
func draw(key, k uint64) uint64 { return mix(key + k*golden) }

// unit makes a hash a number of [0, 1).
func unit(h uint64) float64 { return float64(h>>11) * 0x1p-53 }

// bijection scatters [0, n) over itself: a Feistel network on two digits (Black and Rogaway,
// Ciphers with Arbitrary Finite Domains, 2002) to a base whose square is barely more than n, so
// that one walk of 2/√n leaves the range and goes on. Four rounds make it look random, which is all
// that is wanted here.
type bijection struct {
	n       uint32
	base    uint64 // at most 2¹⁶
	inverse uint64 // ⌈2⁶⁴/base⌉: a multiplication by it divides 32 bits exactly
	keys    [4]uint64
}

func newBijection(n uint32, k uint64) bijection {
	base := max(2, uint64(math.Sqrt(float64(n))))
	for base*base < uint64(n) {
		base++
	}
	b := bijection{n: n, base: base, inverse: math.MaxUint64/base + 1}
	for i := range b.keys {
		b.keys[i] = draw(k, uint64(i))
	}
	return b
}

// round is a digit that depends on another.
func (b *bijection) round(i int, digit uint64) uint64 {
	h := (digit + b.keys[i]) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>32) * 0x94d049bb133111eb
	return h >> 32 * b.base >> 32
}

func (b *bijection) digits(x uint32) (high, low uint64) {
	high, _ = bits.Mul64(uint64(x), b.inverse)
	return high, uint64(x) - high*b.base
}

// id returns the id of the node of a rank.
func (b *bijection) id(rank uint32) uint32 {
	for {
		h, l := b.digits(rank)
		h = b.plus(h, b.round(0, l))
		l = b.plus(l, b.round(1, h))
		h = b.plus(h, b.round(2, l))
		l = b.plus(l, b.round(3, h))
		rank = uint32(h*b.base + l)
		if rank < b.n {
			return rank
		}
	}
}

// rank undoes id.
func (b *bijection) rank(id uint32) uint32 {
	for {
		h, l := b.digits(id)
		l = b.minus(l, b.round(3, h))
		h = b.minus(h, b.round(2, l))
		l = b.minus(l, b.round(1, h))
		h = b.minus(h, b.round(0, l))
		id = uint32(h*b.base + l)
		if id < b.n {
			return id
		}
	}
}

// plus and minus are modulo base, of digits.
func (b *bijection) plus(x, y uint64) uint64 {
	x += y
	if x >= b.base {
		x -= b.base
	}
	return x
}

func (b *bijection) minus(x, y uint64) uint64 {
	if x < y {
		x += b.base
	}
	return x - y
}
