// Command loss writes the exponential, the softmax of a row and the place of its largest element.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(exps, softmax, argMax)
}

const negativeInfinity = 0xff80_0000

func exps(t vector.Target) {
	t.Func("exp", "(dst, src *float32, n int)", "computes dst = e^src.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	e := vector.NewExp(t)
	t.Each("vector", n, 2, func(at vector.At) {
		x := at.Read(src)
		e.Of(x)
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

	e := vector.NewExp(t)
	total := t.Sum(t.Sums("exp", cols, 2, func(at vector.At, sum reg.VecVirtual) {
		v := at.Read(src)
		VSUBPS(offset, v, v)
		e.Of(v)
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
