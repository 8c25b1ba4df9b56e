// Command loss writes the exponential, the softmax of a row and the place of its largest element.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, t := range vector.Targets {
		exps(t)
		softmax(t)
		argMax(t)
	}
	Generate()
}

const (
	one              = 0x3f80_0000
	negativeInfinity = 0xff80_0000
)

// exp computes e^x as 2^n·e^r with n = round(x/ln 2) and r = x - n·ln 2, which two fused multiply-adds leave exact to
// float32; |r| ≤ ln 2/2. There e^r is 1 + r + r²·q(r), q the polynomial of degree 4 whose largest relative error in e^r is
// smallest, by Remez's exchange: 3.1e-9, a fortieth of a float32's last place. Rounding of the last additions makes it
// one place in all. NaN stays NaN. Below -104 the result is 0, above 89 it is Inf; between, it over- and underflows
// as it should.
type exp struct {
	vector.Target
	low, high                reg.VecVirtual
	log2e, ln2, ln2Rest, one Op
	q                        []Op
	bias                     Op // AVX2
}

func newExp(t vector.Target) *exp {
	e := &exp{Target: t, low: t.Const(0xc2d0_0000), high: t.Const(0x42b2_0000)}
	e.log2e, e.ln2, e.ln2Rest, e.one = t.Operand(0x3fb8_aa3b), t.Operand(0x3f31_7218), t.Operand(0xb102_e308), t.Operand(one)
	for _, c := range []uint32{0x3ab5_11e8, 0x3c09_1d10, 0x3d2a_ac79, 0x3e2a_aa49, 0x3eff_fffe} {
		e.q = append(e.q, t.Operand(c))
	}
	if !t.Wide() {
		e.bias = t.Operand(127)
	}
	return e
}

// of replaces x by e^x.
func (e *exp) of(x reg.VecVirtual) {
	n, p, square := e.Vec(), e.Vec(), e.Vec()
	VMAXPS(x, e.low, x) // x where it is NaN
	VMINPS(x, e.high, x)
	VMULPS(e.log2e, x, n)
	if e.Wide() {
		VRNDSCALEPS(U8(8), n, n)
	} else {
		VROUNDPS(U8(8), n, n)
	}
	VFNMADD231PS(e.ln2, n, x)
	VFNMADD231PS(e.ln2Rest, n, x)
	VMOVUPS(e.q[0], p)
	for _, c := range e.q[1:] {
		VFMADD213PS(c, x, p)
	}
	VMULPS(x, x, square)
	VFMADD213PS(x, square, p)
	VADDPS(e.one, p, p)
	if e.Wide() {
		VSCALEFPS(n, p, x)
		return
	}
	// 2^n in two factors, neither of which overflows or is subnormal.
	half := e.Vec()
	VCVTPS2DQ(n, n)
	VPSRAD(U8(1), n, half)
	VPSUBD(half, n, n)
	for _, power := range []reg.VecVirtual{half, n} {
		VPADDD(e.bias, power, power)
		VPSLLD(U8(23), power, power)
		VMULPS(power, p, p)
	}
	VMOVAPS(p, x)
}

func exps(t vector.Target) {
	t.Func("exp", "(dst, src *float32, n int)", "computes dst = e^src.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	e := newExp(t)
	t.Each("vector", n, 2, func(at vector.At) {
		x := at.Read(src)
		e.of(x)
		at.Write(x, dst)
	})
	vector.End()
}

func softmax(t vector.Target) {
	t.Func("softmax", "(dst, x *float32, cols int, scale float32) (top, total float32)",
		"writes a row's softmax times scale to dst, and returns its largest element and the sum of e^(x-top).",
		"Where the row has a NaN, the sum and all of dst are NaN, and top means nothing.")
	dst, src, cols := vector.Param64("dst"), vector.Param64("x"), vector.Param64("cols")
	lowest := t.Const(negativeInfinity)
	most := t.Vec()
	VMOVAPS(lowest, most)
	t.Each("top", cols, 2, func(at vector.At) { VMAXPS(at.ReadOr(src, lowest), most, most) })
	top := t.Max(most)
	Store(top, ReturnIndex(0))
	offset := t.Spread(top)

	e := newExp(t)
	total := t.Sum(t.Sums("exp", cols, 2, func(at vector.At, sum reg.VecVirtual) {
		v := at.Read(src)
		VSUBPS(offset, v, v)
		e.of(v)
		at.Write(v, dst)
		at.Only(v)
		VADDPS(v, sum, sum)
	}))
	Store(total, ReturnIndex(1))
	factor := XMM()
	VMOVSS(vector.Slot("scale"), factor)
	VDIVSS(total, factor, factor)
	by := t.Spread(factor)
	t.Each("scale", cols, 2, func(at vector.At) {
		v := at.Read(dst)
		VMULPS(by, v, v)
		at.Write(v, dst)
	})
	vector.End()
}

// argMax finds the largest element, then where it first is; if there was a NaN on the way, where that is.
func argMax(t vector.Target) {
	t.Func("argMax", "(dst *uint32, src *float32, rows, cols int)", "writes the column of each row's largest element: the first of equals, or the first NaN.")
	dst, src, rows, cols := vector.Param64("dst"), vector.Param64("src"), vector.Param64("rows"), vector.Param64("cols")
	lowest := t.Const(negativeInfinity)
	t.Rows(rows, func() {
		most, unordered, lanes := t.Vec(), t.Vec(), GP64()
		VMOVAPS(lowest, most)
		XORQ(lanes, lanes)
		if !t.Wide() {
			VXORPS(unordered, unordered, unordered)
		}
		t.Each("top", cols, 2, func(at vector.At) {
			x := at.ReadOr(src, lowest)
			VMAXPS(x, most, most)
			if t.Wide() {
				k, bits := K(), GP64()
				VCMPPS(U8(vector.Unordered), x, x, k)
				KMOVW(k, bits.As32())
				ORQ(bits, lanes)
				return
			}
			VCMPPS(U8(vector.Unordered), x, x, x)
			VORPS(x, unordered, unordered)
		})
		if !t.Wide() {
			VMOVMSKPS(unordered, lanes.As32())
		}
		top := t.Spread(t.Max(most))
		TESTQ(lanes, lanes)
		JNE(LabelRef("findNaN"))
		find(t, "equal", cols, src, lanes, func(x reg.VecVirtual) (uint8, Op) { return vector.Equal, top })
		JMP(LabelRef("found"))
		Label("findNaN")
		find(t, "nan", cols, src, lanes, func(x reg.VecVirtual) (uint8, Op) { return vector.Unordered, x })
		Label("found")
		MOVL(lanes.As32(), Mem{Base: dst})
		ADDQ(U8(4), dst)
		vector.Next(cols, src)
	})
	vector.End()
}

// find sets place to the first column whose element compares true.
func find(t vector.Target, prefix string, cols, src, place reg.GPVirtual, with func(x reg.VecVirtual) (uint8, Op)) {
	index := GP64()
	t.Each(prefix, cols, 1, func(at vector.At) {
		x := at.Read(src)
		predicate, other := with(x)
		if t.Wide() {
			k := K()
			if at.Mask != nil {
				VCMPPS(U8(predicate), other, x, at.Mask.K(), k)
			} else {
				VCMPPS(U8(predicate), other, x, k)
			}
			KMOVW(k, place.As32())
		} else {
			VCMPPS(U8(predicate), other, x, x)
			at.Only(x)
			VMOVMSKPS(x, place.As32())
		}
		MOVQ(at.Index, index)
		TESTQ(place, place)
		JNE(LabelRef(prefix + "Found"))
	})
	Label(prefix + "Found")
	TZCNTQ(place, place)
	ADDQ(index, place)
}
