package sample

import "math/bits"

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood 2014): every bit of x reaches every bit
// of the result.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}

const golden = 0x9e3779b97f4a7c15 // 2⁶⁴ divided by the golden ratio: SplitMix64's step

// Hash folds words into one, order mattering.
func Hash(words ...uint64) uint64 {
	h := uint64(golden)
	for _, w := range words {
		h = Fold(h, w)
	}
	return h
}

// Fold adds a word to a hash: if h is the Hash of some words, Fold returns the Hash of these and w.
func Fold(h, w uint64) uint64 { return mix((h ^ w) + golden) }

// Key returns x's key for type or relation i. For i = 0 that is x itself, so a graph of one type
// and one relation still draws as before there were several.
func Key(x uint64, i int) uint64 {
	if i == 0 {
		return x
	}
	return Hash(x, uint64(i))
}

// StepSeed returns a hash of a step, for draws that each step makes anew: dropout, and batches that
// share nothing ([Alone]).
func StepSeed(seed uint64, epoch, step int) uint64 {
	return Hash(seed, 1, uint64(epoch), uint64(step))
}

// draw returns the j-th number of a sequence of numbers below n that key starts.
func draw(key uint64, j, n int) int {
	hi, _ := bits.Mul64(mix(key+uint64(j+1)*golden), uint64(n)) // Lemire's range reduction; its bias is n/2⁶⁴
	return int(hi)
}

// Shuffle permutes ids in place, a permutation for each (seed, epoch): the order in which an epoch
// meets its seeds.
func Shuffle(ids []uint32, seed uint64, epoch int) {
	key := Hash(seed, 2, uint64(epoch))
	for i := len(ids) - 1; i > 0; i-- {
		j := draw(key, i, i+1)
		ids[i], ids[j] = ids[j], ids[i]
	}
}
