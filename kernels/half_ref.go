package kernels

import "math"

// halfToFloatRef reads a half by its definition.
func halfToFloatRef[T float](h uint16) T {
	sign, exponent, mantissa := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch {
	case exponent == 31 && mantissa != 0:
		return T(math.NaN())
	case exponent == 31:
		return T(math.Inf(int(sign)))
	case exponent == 0:
		return T(sign * math.Ldexp(mantissa, -24))
	}
	return T(sign * math.Ldexp(1024+mantissa, exponent-25))
}

// floatToHalfRef rounds to the nearest half, in units of the last place at v's magnitude.
func floatToHalfRef(v float64) uint16 {
	var sign uint16
	if math.Signbit(v) {
		sign = 0x8000
	}
	abs := math.Abs(v)
	switch {
	case math.IsNaN(v):
		return sign | 0x7e00
	case abs >= 65520:
		return sign | 0x7c00
	case abs < 0x1p-14:
		return sign | uint16(math.RoundToEven(abs*0x1p24))
	}
	exponent := math.Ilogb(abs)
	mantissa := math.RoundToEven(math.Ldexp(abs, 10-exponent)) // 1024 … 2048
	return sign | (uint16(exponent+15)<<10 + uint16(mantissa) - 1024)
}
