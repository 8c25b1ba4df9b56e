package interp

import (
	"math"
	"strings"
)

// convert compiles cvt{.rounding}{.sat}.to.from.
func (c *compiler) convert(mods []string) bool {
	if len(mods) < 2 || len(c.s.args) != 2 {
		return false
	}
	to, ok1 := types[mods[len(mods)-2]]
	from, ok2 := types[mods[len(mods)-1]]
	if !ok1 || !ok2 || to.kind == 'b' || from.kind == 'b' || to == prd || from == prd {
		return false
	}
	rounding, saturate := "", false
	for _, mod := range mods[:len(mods)-2] {
		switch {
		case mod == "sat" && !saturate:
			saturate = true
		case len(mod) >= 2 && strings.Contains("rn rz rm rp rni rzi rmi rpi", mod) && rounding == "" && !saturate:
			rounding = mod
		default:
			return false
		}
	}
	f := conversion(to, from, rounding, saturate)
	if f == nil {
		return false
	}
	// Registers may be wider than the types: the source's low bits count, and the result is
	// extended by the sign of its type.
	d, a := c.register(c.s.args[0], to, true), c.operand(c.s.args[1], from, true)
	wide := ptype{'b', max(c.width(c.s.args[0]), to.bits)}
	return c.unary(d, a, func(v uint64) uint64 { return to.extend(f(v&from.mask())) & wide.mask() })
}

// conversion returns the function of a cvt, or nil if PTX has none of that form.
func conversion(to, from ptype, rounding string, saturate bool) func(uint64) uint64 {
	toInteger := len(rounding) == 3
	switch {
	case to.integer() && from.integer():
		if rounding != "" {
			return nil
		}
		if saturate {
			return func(v uint64) uint64 { return clampInteger(from.extend(v), from.kind == 's', to) }
		}
		return func(v uint64) uint64 { return from.extend(v) & to.mask() }
	case to.integer():
		if !toInteger { // conversions to integers saturate by themselves
			return nil
		}
		return func(v uint64) uint64 { return toInt(roundInteger(readFloat(v, from), rounding), to, from) }
	case from.integer():
		if rounding == "" || toInteger || saturate {
			return nil
		}
		if rounding != "rn" {
			return nil
		}
		return func(v uint64) uint64 { return fromInt(from.extend(v), from.kind == 's', to) }
	}
	// From float to float: a narrower result needs a rounding, a wider one has none.
	if (to.bits < from.bits) != (rounding != "" && !toInteger) || toInteger && to.bits != from.bits {
		return nil
	}
	if to.bits == from.bits && rounding == "" && !saturate {
		return nil
	}
	if rounding != "" && !toInteger && rounding != "rn" && rounding != "rz" {
		return nil
	}
	return func(v uint64) uint64 {
		f := readFloat(v, from)
		if toInteger {
			f = roundInteger(f, rounding)
		}
		if saturate {
			if f = min(max(f, 0), 1); f != f {
				f = 0
			}
		}
		return writeFloat(f, to, rounding == "rz")
	}
}

func readFloat(v uint64, t ptype) float64 {
	switch t {
	case f16:
		return halfToFloat(uint16(v))
	case f32:
		return float64(float32of(v))
	}
	return float64of(v)
}

func writeFloat(f float64, t ptype, toZero bool) uint64 {
	switch t {
	case f16:
		return uint64(floatToHalf(f, toZero))
	case f32:
		r := float32(f)
		if toZero && math.Abs(float64(r)) > math.Abs(f) {
			r = math.Nextafter32(r, 0)
		}
		return bits32(r)
	}
	return bits64(f)
}

func roundInteger(f float64, rounding string) float64 {
	switch rounding {
	case "rni":
		return math.RoundToEven(f)
	case "rzi":
		return math.Trunc(f)
	case "rmi":
		return math.Floor(f)
	}
	return math.Ceil(f)
}

// toInt converts a float without a fraction, and clamps. A NaN gives 0; from f64, or to 64 bits, it
// gives the top bit alone (PTX ISA, cvt).
func toInt(f float64, to, from ptype) uint64 {
	if f != f {
		if from == f64 || to.bits == 64 {
			return 1 << (to.bits - 1)
		}
		return 0
	}
	if to.kind == 'u' {
		switch {
		case f <= 0:
			return 0
		case f >= math.Ldexp(1, to.bits):
			return to.mask()
		}
		return uint64(f)
	}
	half := math.Ldexp(1, to.bits-1)
	switch {
	case f >= half:
		return to.mask() >> 1
	case f <= -half:
		return 1 << (to.bits - 1)
	}
	return uint64(int64(f)) & to.mask()
}

// fromInt converts an integer of 64 bits with one rounding.
func fromInt(v uint64, signed bool, to ptype) uint64 {
	switch {
	case to == f64 && signed:
		return math.Float64bits(float64(int64(v)))
	case to == f64:
		return math.Float64bits(float64(v))
	case to == f32 && signed:
		return bits32(float32(int64(v)))
	case to == f32:
		return bits32(float32(v))
	}
	// A half: what is above 65520 is infinite, and float64 has all below exactly.
	if signed {
		return uint64(floatToHalf(float64(int64(v)), false))
	}
	return uint64(floatToHalf(float64(v), false))
}

func clampInteger(v uint64, signed bool, to ptype) uint64 {
	if to.kind == 'u' {
		if signed && int64(v) < 0 {
			return 0
		}
		return min(v, to.mask())
	}
	most := to.mask() >> 1
	if !signed {
		return min(v, most)
	}
	return uint64(min(max(int64(v), -int64(most)-1), int64(most))) & to.mask()
}

func halfToFloat(h uint16) float64 {
	exponent, mantissa := int(h>>10&31), float64(h&1023)
	var f float64
	switch {
	case exponent == 31 && mantissa != 0:
		return math.NaN()
	case exponent == 31:
		f = math.Inf(1)
	case exponent == 0:
		f = math.Ldexp(mantissa, -24)
	default:
		f = math.Ldexp(1024+mantissa, exponent-25)
	}
	if h>>15 == 1 {
		return -f
	}
	return f
}

// floatToHalf rounds to the nearest half, ties to even, or toward zero.
func floatToHalf(f float64, toZero bool) uint16 {
	if f != f {
		return nan16
	}
	var sign uint16
	if math.Signbit(f) {
		sign, f = 0x8000, -f
	}
	round := math.RoundToEven
	if toZero {
		round = math.Trunc
	}
	switch {
	case math.IsInf(f, 0) || f >= 65520 && !toZero:
		return sign | 0x7c00
	case f >= 65504:
		return sign | 0x7bff
	case f < 0x1p-14:
		return sign | uint16(round(f*0x1p24))
	}
	exponent := math.Ilogb(f)
	return sign | uint16((exponent+15)<<10+int(round(math.Ldexp(f, 10-exponent)))-1024)
}
