// Command norm writes layer normalisation. A row is read three times forward and twice backward, from the first-level
// cache after the first time.
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

func forward(t vector.Target) {
	t.Func("layerNorm", "(dst, stats, x, gain, bias *float32, rows, cols int, eps float32)",
		"normalises rows, and writes their mean and 1/sqrt(var+eps) to stats.")
	dst, stats, x := vector.Param64("dst"), vector.Param64("stats"), vector.Param64("x")
	gain, bias := vector.Param64("gain"), vector.Param64("bias")
	rows, cols := vector.Param64("rows"), vector.Param64("cols")
	n, one := float(cols), XMM()
	VMOVSS(vector.Word(0x3f80_0000), one)
	t.Rows(rows, func() {
		mean := t.Sum(t.Sums("sum", cols, 4, func(at vector.At, sum reg.VecVirtual) {
			VADDPS(at.Read(x), sum, sum)
		}))
		VDIVSS(n, mean, mean)
		VMOVSS(mean, Mem{Base: stats})
		center := t.Spread(mean)
		inverse := t.Sum(t.Sums("square", cols, 4, func(at vector.At, sum reg.VecVirtual) {
			v := at.Read(x)
			VSUBPS(center, v, v)
			at.Only(v)
			VFMADD231PS(v, v, sum)
		}))
		VDIVSS(n, inverse, inverse)
		VADDSS(vector.Slot("eps"), inverse, inverse)
		VSQRTSS(inverse, inverse, inverse)
		VDIVSS(inverse, one, inverse)
		VMOVSS(inverse, Mem{Base: stats, Disp: 4})
		factor := t.Spread(inverse)
		t.Each("write", cols, 2, func(at vector.At) {
			v := at.Read(x)
			VSUBPS(center, v, v)
			VMULPS(factor, v, v)
			b := at.Read(bias)
			VFMADD231PS(at.Read(gain), v, b)
			at.Write(b, dst)
		})
		ADDQ(U8(8), stats)
		vector.Next(cols, x, dst)
	})
	vector.End()
}

// float is cols as a float32.
func float(cols reg.GPVirtual) reg.VecVirtual {
	n := XMM()
	VXORPS(n, n, n)
	VCVTSI2SSQ(cols, n, n)
	return n
}

func backward(t vector.Target) {
	t.Func("layerNormGrad", "(dx, dgain, dbias, dy, x, stats, gain *float32, rows, cols, keep int)",
		"adds the gradients of layerNorm. With keep 0 it sets dx instead.")
	dx, dgain, dbias, dy := vector.Param64("dx"), vector.Param64("dgain"), vector.Param64("dbias"), vector.Param64("dy")
	x, stats, gain := vector.Param64("x"), vector.Param64("stats"), vector.Param64("gain")
	rows, cols := vector.Param64("rows"), vector.Param64("cols")
	n := float(cols)
	t.Rows(rows, func() {
		mean, inverse := t.Vec(), t.Vec()
		VBROADCASTSS(Mem{Base: stats}, mean)
		VBROADCASTSS(Mem{Base: stats, Disp: 4}, inverse)
		normal := func(at vector.At) reg.VecVirtual {
			h := at.Read(x)
			VSUBPS(mean, h, h)
			VMULPS(inverse, h, h)
			return h
		}
		acc := t.Vecs(4) // of g and of g·h, in turn
		for _, a := range acc {
			VXORPS(a, a, a)
		}
		t.Each("sum", cols, 2, func(at vector.At) {
			sumG, sumGH := acc[2*(at.Off/t.Lanes)], acc[2*(at.Off/t.Lanes)+1]
			h, up := normal(at), at.Read(dy)
			at.Only(h)
			db := at.Read(dbias)
			VADDPS(up, db, db)
			at.Write(db, dbias)
			dg := at.Read(dgain)
			VFMADD231PS(up, h, dg)
			at.Write(dg, dgain)
			VMULPS(at.Read(gain), up, up)
			VADDPS(up, sumG, sumG)
			VFMADD231PS(up, h, sumGH)
		})
		VADDPS(acc[2], acc[0], acc[0])
		VADDPS(acc[3], acc[1], acc[1])
		part := func(sum reg.VecVirtual) reg.VecVirtual {
			s := t.Sum(sum)
			VDIVSS(n, s, s)
			return t.Spread(s)
		}
		meanG, meanGH := part(acc[0]), part(acc[1])
		write := func(at vector.At, d reg.VecVirtual) {
			h, g := normal(at), at.Read(dy)
			VMULPS(at.Read(gain), g, g)
			VSUBPS(meanG, g, g)
			VFNMADD231PS(h, meanGH, g)
			VFMADD231PS(g, inverse, d)
			at.Write(d, dx)
		}
		CMPQ(vector.Slot("keep"), U8(0))
		JNE(LabelRef("adds"))
		t.Each("set", cols, 2, func(at vector.At) {
			d := t.Vec()
			VXORPS(d, d, d) // and adds to it: the zeros of a sum are positive
			write(at, d)
		})
		JMP(LabelRef("written"))
		Label("adds")
		t.Each("add", cols, 2, func(at vector.At) { write(at, at.Read(dx)) })
		Label("written")
		ADDQ(U8(8), stats)
		vector.Next(cols, dx, dy, x)
	})
	vector.End()
}
