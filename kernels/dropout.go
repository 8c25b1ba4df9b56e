package kernels

import "math"

// golden is 2⁶⁴ divided by the golden ratio: the step of SplitMix64 (Steele, Lea, Flood 2014).
const golden = 0x9e37_79b9_7f4a_7c15

// splitMix is SplitMix64's output function.
func splitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58_476d_1ce4_e5b9
	x = (x ^ x>>27) * 0x94d0_49bb_1331_11eb
	return x ^ x>>31
}

// DropoutKeep reports whether [Dropout] keeps column col of the row with this id. Four columns
// share one 64-bit hash: it is number id·2³² + col/4 of the SplitMix64 sequence that starts at key,
// and the column's own 16 bits of it are its lane. The element is dropped when lane <
// round(p·65536), so the effective rate is p' = round(p·65536)/65536. Above 65535/65536 it stays
// there: scaling by 1/(1-p') must not divide by zero.
func DropoutKeep(key uint64, id uint32, col int, p float32) bool {
	hash := splitMix(key + golden*(uint64(id)<<32|uint64(col/4)))
	lane := uint32(hash>>(16*(col%4))) & 0xffff
	return lane >= dropoutThreshold(p)
}

// dropoutThreshold is the number of lanes, of 65536, that are dropped. In float64 the sum is exact
// where it matters.
func dropoutThreshold(p float32) uint32 {
	return min(uint32(float64(p)*65536+0.5), 65535)
}

// dropoutScale is 1/(1-p') for p' = threshold/65536.
func dropoutScale(threshold uint32) float64 {
	return 65536 / float64(65536-threshold)
}

// Dropping returns the numbers that dropout at rate p is computed with: an element is dropped if
// its 16 bits of the hash are below threshold, and otherwise multiplied by factor. See DropoutKeep.
func Dropping(p float32) (threshold uint32, factor float32) {
	threshold = dropoutThreshold(p)
	return threshold, float32(dropoutScale(threshold))
}

// Dropout keeps the elements of src that DropoutKeep names, scaled by 1/(1-p'), and sets the others
// to 0. There is a row for every id. dst may be src itself.
func Dropout(dst, src []float32, ids []uint32, cols int, key uint64, p float32) {
	threshold, factor := Dropping(p)
	for r, id := range ids {
		d, s := dst[r*cols:][:cols], src[r*cols:][:cols]
		d = d[:len(s)]
		state := key + golden*(uint64(id)<<32)
		for len(s) >= 4 && len(d) >= 4 {
			hash := splitMix(state)
			state += golden
			d[0] = keepLane(s[0]*factor, hash, threshold)
			d[1] = keepLane(s[1]*factor, hash>>16, threshold)
			d[2] = keepLane(s[2]*factor, hash>>32, threshold)
			d[3] = keepLane(s[3]*factor, hash>>48, threshold)
			d, s = d[4:], s[4:]
		}
		hash := splitMix(state)
		for c, v := range s {
			d[c] = keepLane(v*factor, hash>>(16*c), threshold)
		}
	}
}

// DropoutHalf is Dropout of float16 rows.
func DropoutHalf(dst []float32, src []uint16, ids []uint32, cols int, key uint64, p float32) {
	widenPlain(dst, src)
	Dropout(dst, dst, ids, cols, key, p)
}

// DropoutGrad adds to dx the elements of dy that Dropout kept, scaled as it does.
func DropoutGrad(dx, dy []float32, ids []uint32, cols int, key uint64, p float32) {
	threshold, factor := Dropping(p)
	for r, id := range ids {
		d, s := dx[r*cols:][:cols], dy[r*cols:][:cols]
		state := key + golden*(uint64(id)<<32)
		for len(s) >= 4 && len(d) >= 4 {
			hash := splitMix(state)
			state += golden
			d[0] += keepLane(s[0]*factor, hash, threshold)
			d[1] += keepLane(s[1]*factor, hash>>16, threshold)
			d[2] += keepLane(s[2]*factor, hash>>32, threshold)
			d[3] += keepLane(s[3]*factor, hash>>48, threshold)
			d, s = d[4:], s[4:]
		}
		hash := splitMix(state)
		for c, v := range s {
			d[c] += keepLane(v*factor, hash>>(16*c), threshold)
		}
	}
}

// keepLane is v where the lowest 16 bits of hash keep it, else 0, without a branch that nothing
// could predict.
func keepLane(v float32, hash uint64, threshold uint32) float32 {
	dropped := uint32(int32(uint32(hash&0xffff)-threshold) >> 31)
	return math.Float32frombits(math.Float32bits(v) &^ dropped)
}
