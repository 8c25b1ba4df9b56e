package sample

import (
	"math"
	"math/bits"
	"sync"
)

// quantile turns a uniform number x of 64 bits, which stands for the probability (x + ½)/2⁶⁴, into
// the number below which a standard normal one lies with that probability. It interpolates between
// exact values, octaveKnots to each power of two of the probability, so that its tails are as exact
// as its middle: to 10⁻⁵ of the probability. It never falls where x rises. Call makeKnots first.
func quantile(x uint64) float64 {
	upper := uint64(int64(x) >> 63) // all ones in the upper half: a branch would be guessed wrong each other time
	m := (x^upper)<<1 | 1           // of the nearer tail, in 2⁶⁵ths
	octave := bits.LeadingZeros64(m)
	m <<= octave // its highest bit is set
	at := octave*(octaveKnots+1) + int(m<<1>>(64-octaveBits))
	share := float64(m<<(1+octaveBits)>>11) * 0x1p-53
	lo, hi := knots[at], knots[at+1]
	return math.Float64frombits(math.Float64bits(lo+(hi-lo)*share) ^ ^upper&(1<<63))
}

const (
	octaveBits  = 7
	octaveKnots = 1 << octaveBits
)

// knots has, for each octave o and i up to octaveKnots, both ends included, how far from the middle
// a tail of the probability 2⁻⁽ᵒ⁺²⁾·(1 + i/octaveKnots) begins.
var knots [64 * (octaveKnots + 1)]float64

// floors[c] is the least quantile of numbers whose first floorBits are c.
var floors [1 << floorBits]float64

const floorBits = 11 // 16 KiB, half of the fastest cache

var makeKnots = sync.OnceFunc(func() {
	for o := range 64 {
		for i := range octaveKnots + 1 {
			knots[o*(octaveKnots+1)+i] = -normalQuantile(math.Ldexp(1+float64(i)/octaveKnots, -(o + 2)))
		}
	}
	for c := range floors {
		floors[c] = quantile(uint64(c) << (64 - floorBits))
	}
})

// normalQuantile returns the number where the standard normal distribution reaches probability p,
// from 0 to 1, exact in both tails: Newton's method on the logarithm of the nearer one, which is
// nearly a parabola.
func normalQuantile(p float64) float64 {
	switch {
	case p == 0.5:
		return 0
	case p > 0.5:
		return -normalQuantile(1 - p)
	case p == 0:
		return math.Inf(-1)
	}
	z := math.Sqrt(-2 * math.Log(2*p)) // beyond it, so that the steps do not overshoot
	for range 100 {
		tail := normalTail(z)
		step := math.Log(tail/p) * tail / (math.Exp(-z*z/2) / math.Sqrt(2*math.Pi))
		if z += step; math.Abs(step) <= 1e-15*z {
			break
		}
	}
	return -z
}

// normalTail returns the probability of a standard normal number above z.
func normalTail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// ordered maps floats to integers in the same order.
func ordered(x float64) uint64 {
	b := math.Float64bits(x)
	return b ^ (uint64(int64(b)>>63) | 1<<63)
}

// unordered is the inverse of ordered.
func unordered(x uint64) float64 {
	if int64(x) < 0 {
		return math.Float64frombits(x &^ (1 << 63))
	}
	return math.Float64frombits(^x)
}
