package kernels

import (
	"fmt"
	"math"
)

// A half is sign 1, exponent 5 (bias 15), mantissa 10; a float32 is 1, 8 (bias 127), 23. A half's
// exponent and mantissa, shifted left by 13, form a float32 whose value is 2¹¹² = 2^(127-15) times
// too small. That holds for subnormals as well, and fails only for Inf and NaN, whose exponent 31
// is an ordinary one in float32.
const (
	halfScale     = 0x1p112
	halfCarry     = 0x0080_0000 // added to a shifted half, carries into bit 28 exactly from exponent 31
	halfNonFinite = 0x1000_0000
)

// shiftHalf returns h's bits in their float32 places, to be read as a float32 and multiplied by
// halfScale. Sign extension brings the sign to bit 31 and copies of it to the bits 28 to 30, which
// the mask clears.
func shiftHalf(h uint16) uint32 {
	return uint32(int32(int16(h))<<13) & 0x8fff_ffff
}

// halfToFloat32 is one element of [HalfToFloat32].
func halfToFloat32(h uint16) float32 {
	s := shiftHalf(h)
	if (s+halfCarry)&halfNonFinite != 0 {
		return nonFiniteHalf(s)
	}
	return math.Float32frombits(s) * halfScale
}

// nonFiniteHalf widens a shifted Inf or NaN. A NaN becomes quiet and keeps its payload, as the F16C
// instruction has it.
func nonFiniteHalf(s uint32) float32 {
	if s&0x007f_ffff != 0 {
		s |= 0x0040_0000
	}
	return math.Float32frombits(s | 0x7f80_0000)
}

// HalfToFloat32 widens float16 bits to float32, exactly. The slices have equal length. It has the
// fastest loop of this machine.
func HalfToFloat32(dst []float32, src []uint16) {
	if len(dst) != len(src) {
		panic(fmt.Sprintf("kernels: HalfToFloat32: dst has %d elements, src %d", len(dst), len(src)))
	}
	fastest.widen(dst, src)
}

// widenPlain is HalfToFloat32 in Go.
func widenPlain(dst []float32, src []uint16) {
	dst = dst[:len(src)]
	for i, h := range src {
		s := shiftHalf(h)
		if (s+halfCarry)&halfNonFinite != 0 {
			dst[i] = nonFiniteHalf(s)
			continue
		}
		dst[i] = math.Float32frombits(s) * halfScale
	}
}

// Float32ToHalf narrows to float16 bits, rounding to nearest even, and returns how many finite
// values became Inf (values of 65520 and more). NaN stays NaN, quiet, with the upper bits of its
// payload. The slices have equal length. It runs this machine's fastest loop.
func Float32ToHalf(dst []uint16, src []float32) (overflowed int) {
	if len(dst) != len(src) {
		panic(fmt.Sprintf("kernels: Float32ToHalf: dst has %d elements, src %d", len(dst), len(src)))
	}
	return fastest.narrow(dst, src)
}

// narrowPlain is Float32ToHalf in Go.
func narrowPlain(dst []uint16, src []float32) (overflowed int) {
	dst = dst[:len(src)]
	const (
		infinity  = 0x7f80_0000
		overflow  = 0x477f_f000 // 65520, halfway between the largest half and what would follow it
		minNormal = 0x3880_0000 // 2⁻¹⁴
		rebias    = (127 - 15) << 23
	)
	for i, v := range src {
		bits := math.Float32bits(v)
		sign := uint16(bits>>16) & 0x8000
		abs := bits & 0x7fff_ffff
		switch {
		case abs-minNormal < overflow-minNormal:
			// Half a unit less one rounds up what lies above the middle; the last kept bit decides
			// the middle itself. A carry out of the mantissa enlarges the exponent, as it should.
			dst[i] = sign | uint16((abs-rebias+0x0fff+(abs>>13)&1)>>13)
		case abs < minNormal:
			// One unit in the last place of 0.5 as float32 is 2⁻²⁴, the smallest half: the addition
			// rounds to it.
			dst[i] = sign | uint16(math.Float32bits(math.Float32frombits(abs)+0.5)-math.Float32bits(0.5))
		case abs > infinity:
			dst[i] = sign | 0x7e00 | uint16(abs>>13)&0x03ff
		default:
			dst[i] = sign | 0x7c00
			if abs < infinity {
				overflowed++
			}
		}
	}
	return overflowed
}
