package interp

import "math"

// A device's NaN has all bits but the sign (PTX ISA, "Floating-Point Instructions"). All NaNs are
// made to be that one, so that results do not depend on the host.
const (
	nan32 = 0x7fffffff
	nan64 = 0x7fffffffffffffff
	nan16 = 0x7fff
)

func float32of(v uint64) float32 { return math.Float32frombits(uint32(v)) }
func float64of(v uint64) float64 { return math.Float64frombits(v) }

func bits32(f float32) uint64 {
	if f != f {
		return nan32
	}
	return uint64(math.Float32bits(f))
}

func bits64(f float64) uint64 {
	if f != f {
		return nan64
	}
	return math.Float64bits(f)
}

// addFloats adds what is exact or correctly rounded. add and mul without .rn are here as they
// stand; ptxas may fuse the two into one fma, and then a device gives other last bits.
func addFloats() {
	pair := func(name string, f func(a, b float32) float32, g func(a, b float64) float64) {
		two(name+".f32", f32, f32, f32, func(a, b uint64) uint64 { return bits32(f(float32of(a), float32of(b))) })
		two(name+".f64", f64, f64, f64, func(a, b uint64) uint64 { return bits64(g(float64of(a), float64of(b))) })
	}
	for _, rounding := range []string{"", ".rn"} {
		pair("add"+rounding, func(a, b float32) float32 { return a + b }, func(a, b float64) float64 { return a + b })
		pair("sub"+rounding, func(a, b float32) float32 { return a - b }, func(a, b float64) float64 { return a - b })
		pair("mul"+rounding, func(a, b float32) float32 { return a * b }, func(a, b float64) float64 { return a * b })
	}
	pair("div.rn", func(a, b float32) float32 { return a / b }, func(a, b float64) float64 { return a / b })
	for name, order := range map[string][2]bool{
		"min": {true, false}, "max": {false, false}, "min.NaN": {true, true}, "max.NaN": {false, true},
	} {
		pair(name, func(a, b float32) float32 { return float32(extreme(float64(a), float64(b), order[0], order[1])) },
			func(a, b float64) float64 { return extreme(a, b, order[0], order[1]) })
	}

	single := func(name string, f func(a float64) float64) { // of one operation, so that float64 first is right
		one(name+".f32", f32, f32, func(a uint64) uint64 { return bits32(float32(f(float64(float32of(a))))) })
		one(name+".f64", f64, f64, func(a uint64) uint64 { return bits64(f(float64of(a))) })
	}
	single("sqrt.rn", math.Sqrt)
	one("rcp.rn.f32", f32, f32, func(a uint64) uint64 { return bits32(1 / float32of(a)) })
	one("rcp.rn.f64", f64, f64, func(a uint64) uint64 { return bits64(1 / float64of(a)) })
	for _, t := range []ptype{f32, f64} {
		sign := uint64(1) << (t.bits - 1)
		one("neg."+t.String(), t, t, func(a uint64) uint64 { return a ^ sign })
		one("abs."+t.String(), t, t, func(a uint64) uint64 { return a &^ sign })
		two("copysign."+t.String(), t, t, t, func(a, b uint64) uint64 { return a&sign | b&^sign })
	}
	one("cvt.rna.tf32.f32", b32, f32, roundTF32)
	three("fma.rn.f32", f32, f32, f32, f32, fma32)
	three("fma.rn.f64", f64, f64, f64, f64, func(a, b, c uint64) uint64 {
		return bits64(math.FMA(float64of(a), float64of(b), float64of(c)))
	})
}

// extreme is min or max: of a number and a NaN it takes the number, or, if nan, the NaN. -0 is less
// than 0.
func extreme(a, b float64, least, nan bool) float64 {
	switch {
	case a != a && b != b, nan && (a != a || b != b):
		return math.NaN()
	case a != a:
		return b
	case b != b:
		return a
	case least:
		return math.Min(a, b)
	}
	return math.Max(a, b)
}

// fma32 computes a·b + c, rounded once. The product is exact in float64. The sum is rounded to odd
// there, which makes the second rounding right (Boldo and Melquiond 2008, theorem 2).
func fma32(a, b, c uint64) uint64 {
	product := float64(float32of(a)) * float64(float32of(b))
	addend := float64(float32of(c))
	sum := product + addend
	// Rounding twice goes wrong only where sum is half way between two float32, so that it has a 1
	// and then zeros behind their bits. Below 2^-126 they have fewer bits.
	if math.Float64bits(sum)<<35 != 1<<63 && (sum >= 0x1p-126 || sum <= -0x1p-126 || sum == 0) {
		return uint64(math.Float32bits(float32(sum)))
	}
	return fma32Odd(product, addend)
}

func fma32Odd(product, addend float64) uint64 {
	sum := product + addend
	// What the sum lost, by Knuth's two-sum.
	part := sum - product
	lost := (product - (sum - part)) + (addend - part)
	if lost != 0 && sum-sum == 0 {
		if v := math.Float64bits(sum); v&1 == 0 {
			if (lost > 0) == (sum > 0) {
				v++
			} else {
				v--
			}
			sum = math.Float64frombits(v)
		}
	}
	return bits32(float32(sum))
}

// addApproximations adds the instructions that a device computes coarsely. What they give here is
// as far from the truth as the PTX ISA allows, in either direction and by a hash of the argument:
// so a tolerance that holds here holds on a device too. Arguments with an exact result keep it.
func addApproximations() {
	relative := func(bound float64) func(v, by float64) float64 {
		return func(v, by float64) float64 { return v * (1 + bound*by) }
	}
	absolute := func(bound float64) func(v, by float64) float64 {
		return func(v, by float64) float64 { return v + bound*by }
	}
	approximate := func(name string, f func(a float64) float64, move func(v, by float64) float64) {
		one(name+".f32", f32, f32, func(a uint64) uint64 {
			v := f(float64(float32of(a)))
			if v != 0 && v-v == 0 && a<<33>>33 != 0 { // not of 0, and neither 0 nor infinite
				v = move(v, direction(a))
			}
			return bits32(float32(v))
		})
	}
	approximate("ex2.approx", math.Exp2, relative(0x1p-22))
	approximate("lg2.approx", math.Log2, func(v, by float64) float64 {
		// Absolute where the result is small, relative where it is large.
		return v + max(0x1p-22, math.Abs(v)*0x1p-23)*by
	})
	approximate("rsqrt.approx", func(a float64) float64 { return 1 / math.Sqrt(a) }, relative(0x1p-22))
	approximate("sqrt.approx", math.Sqrt, relative(0x1p-22))
	approximate("rcp.approx", func(a float64) float64 { return 1 / a }, relative(0x1p-23))
	approximate("sin.approx", math.Sin, absolute(0x1p-20))
	approximate("cos.approx", math.Cos, absolute(0x1p-20))
	approximate("tanh.approx", math.Tanh, func(v, by float64) float64 { return min(max(v*(1+0x1p-11*by), -1), 1) })
	for _, name := range []string{"div.approx.f32", "div.full.f32"} {
		two(name, f32, f32, f32, func(a, b uint64) uint64 {
			v := float64(float32of(a)) / float64(float32of(b))
			return bits32(float32(v * (1 + 0x1p-22*direction(a^b<<7))))
		})
	}
}

// direction returns a number between -1 and 1, most often near one of them.
func direction(a uint64) float64 {
	a = (a ^ a>>15) * 0x9e3779b97f4a7c15
	by := 1 - float64(a>>33&0xff)/1024
	if a>>63 == 1 {
		return -by
	}
	return by
}
