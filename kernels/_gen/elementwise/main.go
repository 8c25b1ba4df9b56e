// Command elementwise writes the operations that take each element by itself, and those on rows that are as simple.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(fill, add, addRow, columnSum, relu, reluGrad, reluMask, adam)
}

func fill(t vector.Target) {
	t.Func("fill", "(dst *float32, n int, v float32)", "sets n elements to v.")
	dst, n := vector.Param64("dst"), vector.Param64("n")
	v := t.Broadcast("v")
	t.Each("vector", n, 4, func(at vector.At) { at.Write(v, dst) })
	vector.End()
}

func add(t vector.Target) {
	t.Func("add", "(dst, src *float32, n int)", "computes dst += src.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	t.Each("vector", n, 4, func(at vector.At) {
		d := at.Read(dst)
		VADDPS(at.Read(src), d, d)
		at.Write(d, dst)
	})
	vector.End()
}

func addRow(t vector.Target) {
	t.Func("addRow", "(dst, row *float32, rows, cols int)", "adds row to each of the rows of dst.")
	dst, row, rows, cols := vector.Param64("dst"), vector.Param64("row"), vector.Param64("rows"), vector.Param64("cols")
	t.Rows(rows, func() {
		t.Each("vector", cols, 4, func(at vector.At) {
			d := at.Read(dst)
			VADDPS(at.Read(row), d, d)
			at.Write(d, dst)
		})
		vector.Next(cols, dst)
	})
	vector.End()
}

// columnSum takes four rows at a time, for one load and store of the sum; the additions stay in the order of the rows.
func columnSum(t vector.Target) {
	t.Func("columnSum", "(drow, src *float32, rows, cols int)", "adds the rows of src, in order, to drow.")
	drow, src, rows, cols := vector.Param64("drow"), vector.Param64("src"), vector.Param64("rows"), vector.Param64("cols")
	second, third, fourth := GP64(), GP64(), GP64()
	Label("four")
	CMPQ(rows, U8(4))
	JLT(LabelRef("rest"))
	LEAQ(Mem{Base: src, Index: cols, Scale: 4}, second)
	LEAQ(Mem{Base: second, Index: cols, Scale: 4}, third)
	LEAQ(Mem{Base: third, Index: cols, Scale: 4}, fourth)
	t.Each("four", cols, 2, func(at vector.At) {
		sum := at.Read(drow)
		VADDPS(at.Read(src), sum, sum)
		VADDPS(at.Read(second), sum, sum)
		VADDPS(at.Read(third), sum, sum)
		VADDPS(at.Read(fourth), sum, sum)
		at.Write(sum, drow)
	})
	LEAQ(Mem{Base: fourth, Index: cols, Scale: 4}, src)
	SUBQ(U8(4), rows)
	JMP(LabelRef("four"))
	Label("rest")
	t.Rows(rows, func() {
		t.Each("one", cols, 2, func(at vector.At) {
			sum := at.Read(drow)
			VADDPS(at.Read(src), sum, sum)
			at.Write(sum, drow)
		})
		vector.Next(cols, src)
	})
	vector.End()
}

func relu(t vector.Target) {
	t.Func("relu", "(dst, src *float32, n int)", "computes dst = max(0, src); NaN stays NaN, and -0 becomes 0.")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	zero := t.Zero()
	t.Each("vector", n, 4, func(at vector.At) {
		x := at.Read(src)
		VMAXPS(x, zero, x) // the second source, x, where one is NaN or both are 0
		VADDPS(zero, x, x)
		at.Write(x, dst)
	})
	vector.End()
}

func reluGrad(t vector.Target) {
	t.Func("reluGrad", "(dx, dy, y *float32, n int)", "adds dy to dx where y > 0.")
	dx, dy, y, n := vector.Param64("dx"), vector.Param64("dy"), vector.Param64("y"), vector.Param64("n")
	zero := t.Zero()
	t.Each("vector", n, 2, func(at vector.At) {
		d, positive := at.Read(dx), at.Read(y) // 0 outside the mask, and so not positive
		if t.Wide() {
			k, g := K(), t.Vec()
			VCMPPS(U8(vector.Greater), zero, positive, k)
			VMOVUPS_Z(at.Float(dy), k, g)
			VADDPS(g, d, d)
		} else {
			VCMPPS(U8(vector.Greater), zero, positive, positive)
			VANDPS(at.Read(dy), positive, positive)
			VADDPS(positive, d, d)
		}
		at.Write(d, dx)
	})
	vector.End()
}

func reluMask(t vector.Target) {
	t.Func("reluMask", "(d, y *float32, n int)", "sets d to 0 where y is not above 0.")
	d, y, n := vector.Param64("d"), vector.Param64("y"), vector.Param64("n")
	zero := t.Zero()
	t.Each("vector", n, 4, func(at vector.At) {
		g, positive := at.Read(d), at.Read(y)
		if t.Wide() {
			k := K()
			VCMPPS(U8(vector.Greater), zero, positive, k)
			VMOVAPS_Z(g, k, g)
		} else {
			VCMPPS(U8(vector.Greater), zero, positive, positive)
			VANDPS(positive, g, g)
		}
		at.Write(g, d)
	})
	vector.End()
}

// adam multiplies by the reciprocals of the bias corrections instead of dividing twice more per element.
func adam(t vector.Target) {
	t.Func("adam", "(param, grad, m, v *float32, n int, lr, eps, decay, beta1, rest1, beta2, rest2, inverse1, inverse2 float32)",
		"updates n parameters. rest is 1-beta, inverse the reciprocal of a bias correction.")
	param, grad, m, v, n := vector.Param64("param"), vector.Param64("grad"), vector.Param64("m"), vector.Param64("v"), vector.Param64("n")
	lr, eps, decay := t.Broadcast("lr"), t.Broadcast("eps"), t.Broadcast("decay")
	beta1, rest1, inverse1 := t.Broadcast("beta1"), t.Broadcast("rest1"), t.Broadcast("inverse1")
	beta2, rest2, inverse2 := t.Broadcast("beta2"), t.Broadcast("rest2"), t.Broadcast("inverse2")
	t.Each("vector", n, 1, func(at vector.At) {
		w, g := at.Read(param), at.Read(grad)
		VFMADD231PS(w, decay, g)
		mean := at.Read(m)
		VMULPS(beta1, mean, mean)
		VFMADD231PS(g, rest1, mean)
		at.Write(mean, m)
		square := at.Read(v)
		VMULPS(beta2, square, square)
		part := t.Vec()
		VMULPS(g, rest2, part)
		VFMADD231PS(part, g, square)
		at.Write(square, v)
		VMULPS(inverse2, square, square)
		VSQRTPS(square, square)
		VADDPS(eps, square, square)
		VMULPS(inverse1, mean, mean)
		VDIVPS(square, mean, mean)
		VFNMADD231PS(mean, lr, w)
		at.Write(w, param)
	})
	vector.End()
}
