// Command distances writes the distances between rows that edges join, and the gradients of these
// distances. A destination's row stays in the first-level cache while the rows of its list are
// read.
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

// rows documents the rows that a function reads.
func rows(complex bool) string {
	if complex {
		return "A row has width real parts, and then width imaginary parts."
	}
	return "A row has width columns."
}

// lists emits a loop over the lists, and in it a loop over the entries of a list. edge emits the
// code of an entry. It gets the pointer to the list's own row, the number of the entry, and the
// pointer to the row of others that the entry names. end emits the code after a list's last entry.
func lists(own, others string, stride Mem, edge func(own, e, other reg.GPVirtual), end func()) {
	mine, i := vector.Param64(own), GP64()
	XORQ(i, i)
	Label("list")
	CMPQ(i, vector.Slot("n"))
	JE(LabelRef("done"))
	e, last, base := GP64(), GP64(), GP64()
	vector.List(i, e, last, base)
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
	end()
	ADDQ(stride, mine)
	INCQ(i)
	JMP(LabelRef("list"))

	vector.ReturnBad()
	Label("done")
	vector.ReturnGood()
}

// strideOf stores the number of bytes of a row, which has width numbers.
func strideOf(width reg.GPVirtual, complex bool) Mem {
	stride, bytes := AllocLocal(8), GP64()
	shift := U8(2)
	if complex {
		shift = U8(3)
	}
	MOVQ(width, bytes)
	SHLQ(shift, bytes)
	MOVQ(bytes, stride)
	return stride
}

// imaginary returns the pointer to the imaginary parts of a row.
func imaginary(row, width reg.GPVirtual) reg.GPVirtual {
	p := GP64()
	LEAQ(Mem{Base: row, Index: width, Scale: 4}, p)
	return p
}

func forward(t vector.Target, name string, complex bool) {
	t.Func(name, "(dst, q, k *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int, scale float32) (bad uint64)",
		"sets dst[e], for each entry e of nbr[start[i]:end[i]], to scale times",
		"the distance between q's row i and k's row nbr[e]. width is at least 1.", rows(complex),
		"It stops and returns 1 at a list outside nbr[:edges] or a row outside",
		"k[:rows], and does not read them.")
	width := vector.Param64("width")
	stride := strideOf(width, complex)
	var positive reg.VecVirtual
	if !complex {
		positive = t.Const(0x7fff_ffff)
	}
	lists("q", "k", stride, func(own, e, other reg.GPVirtual) {
		var ownIm, otherIm reg.GPVirtual
		if complex {
			ownIm, otherIm = imaginary(own, width), imaginary(other, width)
		}
		sum := t.Sum(t.Sums("sum", width, 2, func(at vector.At, sum reg.VecVirtual) {
			d := at.Read(own)
			VSUBPS(at.Read(other), d, d)
			if !complex {
				VANDPS(positive, d, d)
				VADDPS(d, sum, sum)
				return
			}
			im := at.Read(ownIm)
			VSUBPS(at.Read(otherIm), im, im)
			VMULPS(d, d, d)
			VFMADD231PS(im, im, d)
			VSQRTPS(d, d)
			VADDPS(d, sum, sum)
		}))
		VMULSS(vector.Slot("scale"), sum, sum)
		dst := GP64()
		MOVQ(vector.Slot("dst"), dst)
		VMOVSS(sum, Mem{Base: dst, Index: e, Scale: 4})
	}, func() {})
}

func backward(t vector.Target, name string, complex bool) {
	t.Func(name, "(dx, x, y, w *float32, width, rows int, start, end *uint32, n int, nbr *uint32, edges int) (bad uint64)",
		"adds to dx's row i, for each entry e of nbr[start[i]:end[i]], w[e]",
		"times the gradient of the distance between x's row i and y's row nbr[e],",
		"with respect to x's row i. width is at least 1.", rows(complex),
		"It stops and returns 1 at a list outside nbr[:edges] or a row outside",
		"y[:rows], and does not read them.")
	width := vector.Param64("width")
	stride, dx := strideOf(width, complex), AllocLocal(8)
	to := vector.Param64("dx")
	MOVQ(to, dx)
	var r root
	var sign reg.VecVirtual
	if complex {
		r = newRoot(t)
	} else {
		sign = t.Const(0x8000_0000)
	}
	lists("x", "y", stride, func(own, e, other reg.GPVirtual) {
		d, w := GP64(), GP64()
		MOVQ(dx, d)
		MOVQ(vector.Slot("w"), w)
		by := t.Vec()
		VBROADCASTSS(Mem{Base: w, Index: e, Scale: 4}, by)
		var ownIm, otherIm, dIm reg.GPVirtual
		if complex {
			ownIm, otherIm, dIm = imaginary(own, width), imaginary(other, width), imaginary(d, width)
		}
		t.Each("add", width, 1, func(at vector.At) {
			diff := at.Read(own)
			VSUBPS(at.Read(other), diff, diff)
			sum := at.Read(d)
			if !complex {
				addSign(t, sum, diff, by, sign)
				at.Write(sum, d)
				return
			}
			im := at.Read(ownIm)
			VSUBPS(at.Read(otherIm), im, im)
			square := t.Vec()
			VMULPS(diff, diff, square)
			VFMADD231PS(im, im, square)
			f := r.inverse(square, by)
			VFMADD231PS(f, diff, sum)
			at.Write(sum, d)
			sum = at.Read(dIm)
			VFMADD231PS(f, im, sum)
			at.Write(sum, dIm)
		})
	}, func() {
		t := GP64()
		MOVQ(stride, t)
		ADDQ(t, dx)
	})
}

// root divides by square roots.
type root struct {
	vector.Target
	half, threeHalves reg.VecVirtual // 1/2 and 3/2; only for AVX-512
}

func newRoot(t vector.Target) root {
	r := root{Target: t}
	if t.Wide() {
		r.half, r.threeHalves = t.Const(0x3f00_0000), t.Const(0x3fc0_0000)
	}
	return r
}

// inverse returns by/√x, and 0 where x is 0. AVX-512 estimates 1/√x to 14 bits, and a step of
// Newton's method doubles their number.
func (r *root) inverse(x, by reg.VecVirtual) reg.VecVirtual {
	f := r.Vec()
	if r.Wide() {
		zero, is := r.Zero(), K()
		VCMPPS(U8(vector.Unequal), zero, x, is)
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
	VCMPPS(U8(vector.Unequal), zero, x, zero)
	VSQRTPS(x, f)
	VDIVPS(f, by, f)
	VANDPS(zero, f, f)
	return f
}

// addSign adds by to sum where d is above 0, and subtracts it where d is below 0. Where d is NaN,
// sum becomes NaN.
func addSign(t vector.Target, sum, d, by, sign reg.VecVirtual) {
	f, zero := t.Vec(), t.Zero()
	VANDPS(sign, d, f)
	VXORPS(by, f, f)
	if t.Wide() {
		is, nan := K(), K()
		VCMPPS(U8(vector.Unequal), zero, d, is)
		VCMPPS(U8(vector.Unordered), d, d, nan)
		VMOVAPS(d, nan, f)
		VMOVAPS_Z(f, is, f)
	} else {
		is, nan := t.Vec(), t.Vec()
		VCMPPS(U8(vector.Unequal), zero, d, is)
		VCMPPS(U8(vector.Unordered), d, d, nan)
		VBLENDVPS(nan, d, f, f)
		VANDPS(is, f, f)
	}
	VADDPS(f, sum, sum)
}
