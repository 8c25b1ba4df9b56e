// Command cells writes what recurrent cells do after their products.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(cell, cellGrad, tanh, tanhGrad)
}

// curves are σ and tanh, by exponentials.
type curves struct {
	vector.Target
	exp                   *vector.Exp
	one, sign, abs, minus Op
}

func newCurves(t vector.Target) *curves {
	return &curves{
		Target: t, exp: vector.NewExp(t),
		one: t.Operand(0x3f80_0000), sign: t.Operand(0x8000_0000), abs: t.Operand(0x7fff_ffff), minus: t.Operand(0xc000_0000), // -2
	}
}

// sigmoid replaces x by 1/(1+e^-x).
func (c *curves) sigmoid(x reg.VecVirtual) {
	VXORPS(c.sign, x, x)
	c.exp.Of(x)
	VADDPS(c.one, x, x)
	top := c.Vec()
	VMOVUPS(c.one, top)
	VDIVPS(x, top, x)
}

// tanh replaces x by the sign of x times (1-e)/(1+e), with e = e^(-2|x|).
func (c *curves) tanh(x reg.VecVirtual) {
	sign, top := c.Vec(), c.Vec()
	VANDPS(c.sign, x, sign)
	VANDPS(c.abs, x, x)
	VMULPS(c.minus, x, x)
	c.exp.Of(x)
	VMOVUPS(c.one, top)
	VSUBPS(x, top, top)
	VADDPS(c.one, x, x)
	VDIVPS(x, top, x)
	VORPS(sign, x, x)
}

// parts are the places of the second and third part of a row whose first part is at.
func parts(at vector.At, cols reg.GPVirtual) (second, third vector.At) {
	second, third = at, at
	second.Index, third.Index = GP64(), GP64()
	LEAQ(Mem{Base: at.Index, Index: cols, Scale: 1}, second.Index)
	LEAQ(Mem{Base: at.Index, Index: cols, Scale: 2}, third.Index)
	return second, third
}

// nextThree moves pointers on by three times a row of cols float32s.
func nextThree(cols reg.GPVirtual, rows ...reg.GPVirtual) {
	for range 3 {
		vector.Next(cols, rows...)
	}
}

func cell(t vector.Target) {
	t.Func("gruCell", "(dst, gates, x, h, s *float32, rows, cols int)", "computes gates and new states from what the products have made.")
	dst, gates, x, h, s := vector.Param64("dst"), vector.Param64("gates"), vector.Param64("x"), vector.Param64("h"), vector.Param64("s")
	rows, cols := vector.Param64("rows"), vector.Param64("cols")
	c := newCurves(t)
	t.Rows(rows, func() {
		t.Each("column", cols, 1, func(at vector.At) {
			at2, at3 := parts(at, cols)
			reset, keep, fresh := at.Read(x), at2.Read(x), at.Vec()
			VADDPS(at.Read(h), reset, reset)
			c.sigmoid(reset)
			at.Write(reset, gates)
			VADDPS(at2.Read(h), keep, keep)
			c.sigmoid(keep)
			at2.Write(keep, gates)
			fresh = at3.Read(x)
			VFMADD231PS(at3.Read(h), reset, fresh)
			c.tanh(fresh)
			at3.Write(fresh, gates)
			old := at.Read(s)
			VSUBPS(fresh, old, old)
			VFMADD231PS(old, keep, fresh)
			at.Write(fresh, dst)
		})
		vector.Next(cols, dst, s)
		nextThree(cols, gates, x, h)
	})
	vector.End()
}

func cellGrad(t vector.Target) {
	t.Func("gruCellGrad", "(dx, dh, ds, dy, gates, h, s *float32, rows, cols int)", "adds the gradients of gruCell.")
	dx, dh, ds, dy := vector.Param64("dx"), vector.Param64("dh"), vector.Param64("ds"), vector.Param64("dy")
	gates, h, s := vector.Param64("gates"), vector.Param64("h"), vector.Param64("s")
	cols := vector.Param64("cols")
	one := t.Operand(0x3f80_0000)
	rest := func(v reg.VecVirtual) reg.VecVirtual { // 1-v
		r := t.Vec()
		VMOVUPS(one, r)
		VSUBPS(v, r, r)
		return r
	}
	add := func(at vector.At, v reg.VecVirtual, to reg.GPVirtual) {
		d := at.Read(to)
		VADDPS(v, d, d)
		at.Write(d, to)
	}
	t.Rows(vector.Param64("rows"), func() {
		t.Each("column", cols, 1, func(at vector.At) {
			at2, at3 := parts(at, cols)
			g, keep, fresh := at.Read(dy), at2.Read(gates), at3.Read(gates)
			d := at.Read(ds)
			VFMADD231PS(keep, g, d)
			at.Write(d, ds)
			// dKeep
			v, other := at.Read(s), rest(keep)
			VSUBPS(fresh, v, v)
			VMULPS(g, v, v)
			VMULPS(keep, v, v)
			VMULPS(other, v, v)
			add(at2, v, dx)
			add(at2, v, dh)
			// dFresh
			VMULPS(other, g, g)
			slope := at.Vec()
			VMOVUPS(one, slope)
			VFNMADD231PS(fresh, fresh, slope)
			VMULPS(slope, g, g)
			add(at3, g, dx)
			reset := at.Read(gates)
			d = at3.Read(dh)
			VFMADD231PS(g, reset, d)
			at3.Write(d, dh)
			// dReset
			VMULPS(at3.Read(h), g, g)
			VMULPS(reset, g, g)
			VMULPS(rest(reset), g, g)
			add(at, g, dx)
			add(at, g, dh)
		})
		vector.Next(cols, ds, dy, s)
		nextThree(cols, dx, dh, gates, h)
	})
	vector.End()
}

func tanh(t vector.Target) {
	t.Func("tanh", "(dst, src *float32, n int)", "computes dst = tanh(src).")
	dst, src, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("n")
	c := newCurves(t)
	t.Each("vector", n, 1, func(at vector.At) {
		x := at.Read(src)
		c.tanh(x)
		at.Write(x, dst)
	})
	vector.End()
}

func tanhGrad(t vector.Target) {
	t.Func("tanhGrad", "(dx, dy, y *float32, n int)", "adds dy·(1-y²) to dx.")
	dx, dy, y, n := vector.Param64("dx"), vector.Param64("dy"), vector.Param64("y"), vector.Param64("n")
	one := t.Operand(0x3f80_0000)
	t.Each("vector", n, 2, func(at vector.At) {
		slope, v, d := at.Vec(), at.Read(y), at.Read(dx)
		VMOVUPS(one, slope)
		VFNMADD231PS(v, v, slope)
		VFMADD231PS(at.Read(dy), slope, d)
		at.Write(d, dx)
	})
	vector.End()
}
