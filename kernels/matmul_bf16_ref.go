package kernels

import "math"

// roundToBF16 rounds v to the nearest bfloat16, ties to even, as VCVTNE2PS2BF16 does.
func roundToBF16(v float32) uint16 {
	bits := math.Float32bits(v)
	switch exponent := bits >> 23 & 0xff; {
	case exponent == 0: // zero, or a denormal
		return uint16(bits>>16) & 0x8000
	case exponent == 0xff && bits&0x007f_ffff != 0:
		return uint16(bits>>16) | 0x0040 // quiet
	}
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// widenBF16 is the float32 of a bfloat16.
func widenBF16(b uint16) float32 { return math.Float32frombits(uint32(b) << 16) }

// roundBF16 copies src to dst, rounded to bfloat16.
func roundBF16(dst, src []float32) {
	for i, v := range src {
		dst[i] = widenBF16(roundToBF16(v))
	}
}
