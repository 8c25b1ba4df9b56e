// Command gelu writes GELU and its gradient.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(forward, backward)
}

// normal computes Φ(-a) as e^(-a²/2)·ratio(a): see gelu.go, which has the polynomial in decimals.
type normal struct {
	vector.Target
	exp                        *vector.Exp
	limit                      reg.VecVirtual
	abs, minusHalf, one, steep Op
}

func newNormal(t vector.Target) *normal {
	return &normal{
		Target: t, exp: vector.NewExp(t), limit: t.Const(0x4280_0000), // 64
		abs: t.Operand(0x7fff_ffff), minusHalf: t.Operand(0xbf00_0000), one: t.Operand(0x3f80_0000), steep: t.Operand(0x3eb0_0000),
	}
}

var coefficients = []uint32{0xbce1_f41c, 0x3e12_3b36, 0xbe8a_1390, 0x3e41_45e2, 0xbd1b_450d, 0x3de5_987f, 0x3def_5959,
	0x3e0c_d391, 0x3e0c_6954}

// of returns a = |x|, NaN or 64 at most, e = e^(-a²/2) and the ratio.
func (n *normal) of(x reg.VecVirtual) (a, e, ratio reg.VecVirtual) {
	a, e, ratio = n.Vec(), n.Vec(), n.Vec()
	square, lost, t := n.Vec(), n.Vec(), n.Vec()
	VANDPS(n.abs, x, a)
	VMINPS(a, n.limit, a) // a where it is NaN
	// What rounding takes from a² is a factor of the exponential: 1 + lost, as it is small.
	VMULPS(a, a, square)
	VMOVAPS(square, lost)
	VFMSUB231PS(a, a, lost)
	VMULPS(n.minusHalf, lost, lost)
	VMULPS(n.minusHalf, square, e)
	n.exp.Of(e)
	VFMADD231PS(lost, e, e)
	// t = 1/(1 + 0.34375·a)
	VMOVUPS(n.one, t)
	VFMADD231PS(n.steep, a, t)
	VMOVUPS(n.one, lost)
	VDIVPS(t, lost, t)
	VBROADCASTSS(vector.Word(coefficients[0]), ratio)
	for _, c := range coefficients[1:] {
		if n.Wide() {
			VFMADD213PS_BCST(vector.Word(c), t, ratio)
		} else {
			VFMADD213PS(n.Operand(c), t, ratio)
		}
	}
	VMULPS(t, ratio, ratio)
	return a, e, ratio
}

func forward(t vector.Target) {
	t.Func("gelu", "(dst, src *float32, n int)", "computes dst = src·Φ(src).")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	normal, zero := newNormal(t), t.Zero()
	t.Each("vector", n, 1, func(at vector.At) {
		x := at.Read(src)
		a, e, ratio := normal.of(x)
		VMULPS(e, ratio, ratio)
		VMULPS(a, ratio, ratio)
		VMAXPS(zero, x, x) // 0 where it is NaN, but then the ratio is
		VSUBPS(ratio, x, x)
		at.Write(x, dst)
	})
	vector.End()
}

func backward(t vector.Target) {
	t.Func("geluGrad", "(dx, dy, x *float32, n int)", "adds dy·(Φ(x) + x·Φ'(x)) to dx.")
	dx, dy, src, n := vector.Param64("dx"), vector.Param64("dy"), vector.Param64("x"), vector.Param64("n")
	normal, density := newNormal(t), t.Operand(0x3ecc_422a) // 1/√(2π)
	t.Each("vector", n, 1, func(at vector.At) {
		x := at.Read(src)
		a, e, below := normal.of(x) // the slope at -a, and above that at a
		VFNMADD231PS(density, a, below)
		VMULPS(e, below, below)
		slope := t.Vec()
		VMOVUPS(normal.one, slope)
		VSUBPS(below, slope, slope)
		if t.Wide() {
			negative := K()
			VPMOVD2M(x, negative)
			VMOVAPS(below, negative, slope)
		} else {
			VBLENDVPS(x, below, slope, slope)
		}
		d := at.Read(dx)
		VFMADD231PS(at.Read(dy), slope, d)
		at.Write(d, dx)
	})
	vector.End()
}
