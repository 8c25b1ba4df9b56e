// Command timeencode writes the cosines of times, and their gradient.
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

// A wave computes sines or cosines of phases. Of a phase p it takes k = round(p/π), or round(p/π + ½) for the cosine, in float64, so
// that p is k·π + r, or (k - ½)·π + r, with |r| ≤ π/2, and both are sin(r) times -1 to the k. π is the sum of two float64, and the products are
// fused, so that r has the digits that p has. To round, k is 1.5·2⁵² and something, whose last bit is k's. From 2⁵² on p is no angle
// any more, and r is only kept within bounds. sin(r) is r + r³·q(r²), q the polynomial of degree 3 whose largest error is
// smallest, 5e-9; rounding makes it 1.2e-7 in all.
type wave struct {
	vector.Target
	cosine                                      bool
	perPi, half, round, pi, piRest, top, bottom Op
	q                                           []Op
}

func newWave(t vector.Target, cosine bool) *wave {
	v := &wave{
		Target: t, cosine: cosine,
		perPi: t.Double(0x3fd4_5f30_6dc9_c883), half: t.Double(0x3fe0_0000_0000_0000), round: t.Double(0x4338_0000_0000_0000),
		pi: t.Double(0x4009_21fb_5444_2d18), piRest: t.Double(0x3ca1_a626_3314_5c07),
		top: t.Operand(0x3fc9_0fdb), bottom: t.Operand(0xbfc9_0fdb), // π/2
	}
	for _, c := range []uint32{0x362e_7c9a, 0xb94f_affa, 0x3c08_8735, 0xbe2a_aaa4} {
		v.q = append(v.q, t.Operand(c))
	}
	return v
}

// of is the wave of time·w + b, time having float64 lanes.
func (v *wave) of(time, w, b reg.VecVirtual) reg.VecVirtual {
	r := v.join(v.turn(time, v.low(w), v.low(b)), v.turn(time, v.high(w), v.high(b)))
	VMINPS(r, v.bound(v.top), r) // r where it is NaN
	VMAXPS(r, v.bound(v.bottom), r)
	square, p := v.Vec(), v.Vec()
	VMULPS(r, r, square)
	VMOVUPS(v.q[0], p)
	for _, c := range v.q[1:] {
		VFMADD213PS(c, square, p)
	}
	VMULPS(r, square, square)
	VFMADD231PS(square, p, r)
	return r
}

// bound is a constant in a register: the first of two compared values may be NaN, and the second lies in a register.
func (v *wave) bound(c Op) reg.VecVirtual {
	x := v.Vec()
	VMOVUPS(c, x)
	return x
}

// turn is r with the sign of the wave, in float32, of half as many phases as a vector has lanes.
func (v *wave) turn(time, w, b reg.VecVirtual) reg.VecVirtual {
	p, k, sign := v.Vec(), v.Vec(), v.Vec()
	VCVTPS2PD(w, k)
	VCVTPS2PD(b, p)
	VFMADD231PD(time, k, p)
	if v.cosine {
		VMOVUPD(v.half, k)
		VFMADD231PD(v.perPi, p, k)
	} else {
		VMULPD(v.perPi, p, k)
	}
	VADDPD(v.round, k, k)
	VPSLLQ(U8(63), k, sign)
	VSUBPD(v.round, k, k)
	if v.cosine {
		VSUBPD(v.half, k, k)
	}
	VFNMADD231PD(v.pi, k, p)
	VFNMADD231PD(v.piRest, k, p)
	VXORPD(sign, p, p)
	r := v.halfVec()
	if v.Wide() {
		VCVTPD2PS(p, r)
	} else {
		VCVTPD2PSY(p, r)
	}
	return r
}

// halfVec is a new vector of half a vector's size, and low and high are the halves of one.
func (v *wave) halfVec() reg.VecVirtual {
	if v.Wide() {
		return YMM()
	}
	return XMM()
}

func (v *wave) low(x reg.VecVirtual) reg.VecVirtual {
	h := v.halfVec()
	if v.Wide() {
		VMOVAPS(x.AsY(), h)
	} else {
		VMOVAPS(x.AsX(), h)
	}
	return h
}

func (v *wave) high(x reg.VecVirtual) reg.VecVirtual {
	h := v.halfVec()
	if v.Wide() {
		VEXTRACTF64X4(U8(1), x, h)
	} else {
		VEXTRACTF128(U8(1), x, h)
	}
	return h
}

func (v *wave) join(low, high reg.VecVirtual) reg.VecVirtual {
	x := v.Vec()
	if v.Wide() {
		VINSERTF64X4(U8(1), high, low.AsZ(), x)
	} else {
		VINSERTF128(U8(1), high, low.AsY(), x)
	}
	return x
}

// time is the time at p in float64, in all lanes.
func time(t vector.Target, p reg.GPVirtual) reg.VecVirtual {
	high, low, all := XMM(), XMM(), t.Vec()
	VMOVSS(Mem{Base: p}, high)
	VMOVSS(Mem{Base: p, Disp: 4}, low)
	VCVTSS2SD(high, high, high)
	VCVTSS2SD(low, low, low)
	VADDSD(low, high, high)
	VBROADCASTSD(high, all)
	return all
}

func forward(t vector.Target) {
	t.Func("timeEncode", "(dst, times, w, b *float32, rows, cols int)", "computes cosines of times, times w and plus b.")
	dst, times, w, b := vector.Param64("dst"), vector.Param64("times"), vector.Param64("w"), vector.Param64("b")
	rows, cols := vector.Param64("rows"), vector.Param64("cols")
	v := newWave(t, true)
	t.Rows(rows, func() {
		now := time(t, times)
		t.Each("column", cols, 1, func(at vector.At) { at.Write(v.of(now, at.Read(w), at.Read(b)), dst) })
		ADDQ(U8(8), times)
		vector.Next(cols, dst)
	})
	vector.End()
}

func backward(t vector.Target) {
	t.Func("timeEncodeGrad", "(dw, db, dy, times, w, b *float32, rows, cols int)", "adds the gradients of timeEncode by w and b.")
	dw, db, dy, times := vector.Param64("dw"), vector.Param64("db"), vector.Param64("dy"), vector.Param64("times")
	w, b := vector.Param64("w"), vector.Param64("b")
	rows, cols := vector.Param64("rows"), vector.Param64("cols")
	v := newWave(t, false)
	t.Rows(rows, func() {
		now, rough := time(t, times), t.Vec()
		VBROADCASTSS(Mem{Base: times, Disp: 4}, rough)
		high := t.Vec()
		VBROADCASTSS(Mem{Base: times}, high)
		VADDPS(high, rough, rough)
		t.Each("column", cols, 1, func(at vector.At) {
			g := v.of(now, at.Read(w), at.Read(b))
			VMULPS(at.Read(dy), g, g)
			d := at.Read(db)
			VSUBPS(g, d, d)
			at.Write(d, db)
			d = at.Read(dw)
			VFNMADD231PS(g, rough, d)
			at.Write(d, dw)
		})
		ADDQ(U8(8), times)
		vector.Next(cols, dy)
	})
	vector.End()
}
