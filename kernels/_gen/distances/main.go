// Command distances writes the distances of rows that edges join, and their gradients. A destination's row stays in the
// first-level cache while the rows of its list come.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(
		func(t vector.Target) { forward(t, "edgeDistance", false) },
		func(t vector.Target) { forward(t, "edgeModulus", true) },
		func(t vector.Target) { backward(t, "edgeDistanceGrad", false) },
		func(t vector.Target) { backward(t, "edgeModulusGrad", true) },
	)
}

// what documents the rows of a function.
func what(pairs bool) string {
	if pairs {
		return "Rows have width real parts and then as many imaginary parts."
	}
	return "Rows have width columns."
}

// lists emits a loop over the lists, and in it a loop over the entries of a list. row emits the
// code at the start of a list, and end the code at its end; both get the pointer to the list's own
// row. edge emits the code of an entry. It gets that pointer, the number of the entry, and the
// pointer to the entry's row of others.
func lists(own, others string, stride Mem, row func(own reg.GPVirtual), edge func(own, e, other reg.GPVirtual), end func(own reg.GPVirtual)) {
	mine, i := vector.Param64(own), GP64()
	XORQ(i, i)
	Label("list")
	CMPQ(i, vector.Slot("n"))
	JE(LabelRef("done"))
	e, last, base := GP64(), GP64(), GP64()
	MOVQ(vector.Slot("start"), base)
	MOVL(Mem{Base: base, Index: i, Scale: 4}, e.As32())
	MOVQ(vector.Slot("end"), base)
	MOVL(Mem{Base: base, Index: i, Scale: 4}, last.As32())
	CMPQ(e, last)
	JHI(LabelRef("bad"))
	CMPQ(last, vector.Slot("edges"))
	JHI(LabelRef("bad"))
	row(mine)
	Label("edge")
	CMPQ(e, last)
	JE(LabelRef("next"))
	other := GP64()
	MOVQ(vector.Slot("nbr"), base)
	MOVL(Mem{Base: base, Index: e, Scale: 4}, other.As32())
	CMPQ(other, vector.Slot("rows"))
	JCC(LabelRef("bad"))
	IMULQ(stride, other)
	ADDQ(vector.Slot(others), other)
	edge(mine, e, other)
	INCQ(e)
	JMP(LabelRef("edge"))
	Label("next")
	end(mine)
	ADDQ(stride, mine)
	INCQ(i)
	JMP(LabelRef("list"))

	Label("bad")
	flag := GP64()
	MOVQ(U32(1), flag)
	Store(flag, ReturnIndex(0))
	vector.End()
	Label("done")
	XORQ(flag, flag)
	Store(flag, ReturnIndex(0))
	vector.End()
}

// strideOf stores the bytes of a row of width columns, or of twice as many.
func strideOf(width reg.GPVirtual, pairs bool) Mem {
	stride, bytes := AllocLocal(8), GP64()
	shift := U8(2)
	if pairs {
		shift = U8(3)
	}
	MOVQ(width, bytes)
	SHLQ(shift, bytes)
	MOVQ(bytes, stride)
	return stride
}

// second returns the pointer to the imaginary parts of a row.
func second(row, width reg.GPVirtual) reg.GPVirtual {
	p := GP64()
	LEAQ(Mem{Base: row, Index: width, Scale: 4}, p)
	return p
}

func forward(t vector.Target, name string, pairs bool) {
	t.Func(name, "(dst, q, k *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int, scale float32) (bad uint64)",
		"sets dst[e], for the entries e of nbr[start[i]:end[i]], to scale times the distance of q's row i",
		"and of k's row nbr[e]. A width is 1 at least.", what(pairs),
		"It stops and returns 1 at a list outside nbr[:edges] or a row outside k[:rows], which it does not read.")
	width := vector.Param64("width")
	stride := strideOf(width, pairs)
	var positive reg.VecVirtual
	if !pairs {
		positive = t.Const(0x7fff_ffff)
	}
	none := func(reg.GPVirtual) {}
	lists("q", "k", stride, none, func(own, e, other reg.GPVirtual) {
		var ownSecond, otherSecond reg.GPVirtual
		if pairs {
			ownSecond, otherSecond = second(own, width), second(other, width)
		}
		sum := t.Sum(t.Sums("sum", width, 2, func(at vector.At, sum reg.VecVirtual) {
			d := at.Read(own)
			VSUBPS(at.Read(other), d, d)
			if !pairs {
				VANDPS(positive, d, d)
				VADDPS(d, sum, sum)
				return
			}
			im := at.Read(ownSecond)
			VSUBPS(at.Read(otherSecond), im, im)
			VMULPS(d, d, d)
			VFMADD231PS(im, im, d)
			VSQRTPS(d, d)
			VADDPS(d, sum, sum)
		}))
		VMULSS(vector.Slot("scale"), sum, sum)
		dst := GP64()
		MOVQ(vector.Slot("dst"), dst)
		VMOVSS(sum, Mem{Base: dst, Index: e, Scale: 4})
	}, none)
}

func backward(t vector.Target, name string, pairs bool) {
	t.Func(name, "(dx, x, y, w *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int) (bad uint64)",
		"adds to dx's row i, for the entries e of nbr[start[i]:end[i]], w[e] times the gradient of the",
		"distance of x's row i and of y's row nbr[e] by the former. A width is 1 at least.", what(pairs),
		"It stops and returns 1 at a list outside nbr[:edges] or a row outside y[:rows], which it does not read.")
	width := vector.Param64("width")
	stride, dx := strideOf(width, pairs), AllocLocal(8)
	to := vector.Param64("dx")
	MOVQ(to, dx)
	r := root{Target: t}
	var sign reg.VecVirtual
	if pairs {
		r.load()
	} else {
		sign = t.Const(0x8000_0000)
	}
	lists("x", "y", stride, func(reg.GPVirtual) {}, func(own, e, other reg.GPVirtual) {
		d, w := GP64(), GP64()
		MOVQ(dx, d)
		MOVQ(vector.Slot("w"), w)
		by := t.Vec()
		VBROADCASTSS(Mem{Base: w, Index: e, Scale: 4}, by)
		var ownSecond, otherSecond, dSecond reg.GPVirtual
		if pairs {
			ownSecond, otherSecond, dSecond = second(own, width), second(other, width), second(d, width)
		}
		t.Each("add", width, 1, func(at vector.At) {
			diff := at.Read(own)
			VSUBPS(at.Read(other), diff, diff)
			sum := at.Read(d)
			if !pairs {
				r.addSign(sum, diff, by, sign)
				at.Write(sum, d)
				return
			}
			im := at.Read(ownSecond)
			VSUBPS(at.Read(otherSecond), im, im)
			square := t.Vec()
			VMULPS(diff, diff, square)
			VFMADD231PS(im, im, square)
			f := r.inverse(square, by)
			VFMADD231PS(f, diff, sum)
			at.Write(sum, d)
			sum = at.Read(dSecond)
			VFMADD231PS(f, im, sum)
			at.Write(sum, dSecond)
		})
	}, func(reg.GPVirtual) {
		t := GP64()
		MOVQ(stride, t)
		ADDQ(t, dx)
	})
}

// root computes w/√x.
type root struct {
	vector.Target
	half, threeHalves reg.VecVirtual // AVX-512
}

func (r *root) load() {
	if r.Wide() {
		r.half, r.threeHalves = r.Const(0x3f00_0000), r.Const(0x3fc0_0000)
	}
}

// unequal is the predicate of VCMPPS that is true for numbers that differ, and for NaN.
const unequal = 4

// inverse returns by/√x, and 0 where x is 0. AVX-512 estimates 1/√x to 14 bits, and one step of Newton's method doubles
// them.
func (r *root) inverse(x, by reg.VecVirtual) reg.VecVirtual {
	f := r.Vec()
	if r.Wide() {
		zero, is := r.Vec(), K()
		VXORPS(zero, zero, zero)
		VCMPPS(U8(unequal), zero, x, is)
		VRSQRT14PS(x, f)
		p := r.Vec()
		VMULPS(x, f, p)
		VMULPS(r.half, p, p)
		VFNMADD213PS(r.threeHalves, f, p) // 3/2 - x·f²/2
		VMULPS(by, f, f)
		VMULPS_Z(p, f, is, f)
		return f
	}
	zero := r.Vec()
	VXORPS(zero, zero, zero)
	VCMPPS(U8(unequal), zero, x, zero)
	VSQRTPS(x, f)
	VDIVPS(f, by, f)
	VANDPS(zero, f, f)
	return f
}

// addSign adds by to sum where d is above 0, and subtracts it where d is below. Where d is NaN, sum becomes NaN.
func (r *root) addSign(sum, d, by, sign reg.VecVirtual) {
	f, zero := r.Vec(), r.Vec()
	VANDPS(sign, d, f)
	VXORPS(by, f, f)
	VXORPS(zero, zero, zero)
	if r.Wide() {
		is, nan := K(), K()
		VCMPPS(U8(unequal), zero, d, is)
		VCMPPS(U8(vector.Unordered), d, d, nan)
		VMOVAPS(d, nan, f)
		VMOVAPS_Z(f, is, f)
	} else {
		is, nan := r.Vec(), r.Vec()
		VCMPPS(U8(unequal), zero, d, is)
		VCMPPS(U8(vector.Unordered), d, d, nan)
		VBLENDVPS(nan, d, f, f)
		VANDPS(is, f, f)
	}
	VADDPS(f, sum, sum)
}
