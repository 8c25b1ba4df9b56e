package npy

import "math"

// float8 has the value of each byte, by kind. The layouts are from the OCP 8-bit floating point
// specification 1.0, for E8M0 from the microscaling formats 1.0, and for the two kinds without
// negative zero from "8-bit numerical formats for deep neural networks" (arXiv 2206.02915).
var float8 = map[Kind]*[256]float32{
	E4M3: float8Values(4, 7, func(b byte) bool { return b&0x7f == 0x7f }),
	E5M2: float8Values(5, 15, func(b byte) bool { return b&0x7f > 0x7c }),
	// The byte that would be negative zero is NaN.
	E4M3Z: float8Values(4, 8, func(b byte) bool { return b == 0x80 }),
	E5M2Z: float8Values(5, 16, func(b byte) bool { return b == 0x80 }),
	E8M0:  powers(),
}

// float8Values decodes every byte: a bit of sign, exponentBits, and the rest are the fraction.
func float8Values(exponentBits, bias int, isNaN func(b byte) bool) *[256]float32 {
	var values [256]float32
	fractionBits := 7 - exponentBits
	for i := range values {
		b := byte(i)
		exponent, fraction := int(b&0x7f)>>fractionBits, int(b)&(1<<fractionBits-1)
		switch v := float64(fraction) / float64(int(1)<<fractionBits); {
		case isNaN(b):
			values[i] = float32(math.NaN())
			continue
		case exponentBits == 5 && bias == 15 && exponent == 31:
			values[i] = float32(math.Inf(1))
		case exponent == 0: // subnormal
			values[i] = float32(math.Ldexp(v, 1-bias))
		default:
			values[i] = float32(math.Ldexp(1+v, exponent-bias))
		}
		if b >= 0x80 {
			values[i] = -values[i]
		}
	}
	return &values
}

// powers returns the powers of two from 2^-127 on; the last byte is NaN.
func powers() *[256]float32 {
	var values [256]float32
	for i := range values {
		values[i] = float32(math.Ldexp(1, i-127))
	}
	values[255] = float32(math.NaN())
	return &values
}
