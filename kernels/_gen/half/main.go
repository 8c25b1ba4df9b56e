// Command half writes the conversions between float16 and float32, for whole vectors.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(widen, narrow)
}

func widen(t vector.Target) {
	t.Func("widen", "(dst *float32, src *uint16, n int)", "widens n halves, n a multiple of 16.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	t.Whole("vector", n, 4, func(at vector.At) {
		v := t.Vec()
		t.LoadHalf(at.Half(src), nil, v)
		at.Write(v, dst)
	})
	vector.End()
}

func narrow(t vector.Target) {
	t.Func("narrow", "(dst *uint16, src *float32, n int) (overflowed int)",
		"narrows n float32s, n a multiple of 16, to the nearest half, ties to even, and counts", "the finite ones that became Inf.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	abs, limit, inf := t.Const(0x7fff_ffff), t.Const(0x477f_f000), t.Const(0x7f80_0000)
	overflowed := GP64()
	XORQ(overflowed, overflowed)
	t.Whole("vector", n, 2, func(at vector.At) {
		x, a, lanes := at.Read(src), t.Vec(), GP64()
		VCVTPS2PH(U8(0), x, at.Half(dst))
		VANDPS(x, abs, a)
		if t.Wide() {
			k := K()
			VCMPPS(U8(vector.GreaterOrEqual), limit, a, k)
			VCMPPS(U8(vector.Less), inf, a, k, k)
			KMOVW(k, lanes.As32())
		} else {
			large := t.Vec()
			VCMPPS(U8(vector.GreaterOrEqual), limit, a, large)
			VCMPPS(U8(vector.Less), inf, a, a)
			VANDPS(a, large, large)
			VMOVMSKPS(large, lanes.As32())
		}
		POPCNTQ(lanes, lanes)
		ADDQ(lanes, overflowed)
	})
	Store(overflowed, ReturnIndex(0))
	vector.End()
}
