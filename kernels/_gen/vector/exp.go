package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Exp computes e^x as 2^n·e^r with n = round(x/ln 2) and r = x - n·ln 2, which two fused multiply-adds leave exact to
// float32; |r| ≤ ln 2/2. There e^r is 1 + r + r²·q(r), q the polynomial of degree 4 whose largest relative error in e^r is
// smallest, by Remez's exchange: 3.1e-9, a fortieth of a float32's last place. Rounding of the last additions makes it
// one place in all. NaN stays NaN. Below -104 the result is 0, above 89 it is Inf; between, it over- and underflows
// as it should.
type Exp struct {
	Target
	low, high                reg.VecVirtual
	log2e, ln2, ln2Rest, one Op
	q                        []Op
	bias                     Op // AVX2
}

// NewExp loads its constants.
func NewExp(t Target) *Exp {
	e := &Exp{Target: t, low: t.Const(0xc2d0_0000), high: t.Const(0x42b2_0000)}
	e.log2e, e.ln2, e.ln2Rest, e.one = t.Operand(0x3fb8_aa3b), t.Operand(0x3f31_7218), t.Operand(0xb102_e308), t.Operand(0x3f80_0000)
	for _, c := range []uint32{0x3ab5_11e8, 0x3c09_1d10, 0x3d2a_ac79, 0x3e2a_aa49, 0x3eff_fffe} {
		e.q = append(e.q, t.Operand(c))
	}
	if !t.Wide() {
		e.bias = t.Operand(127)
	}
	return e
}

// Of replaces x by e^x.
func (e *Exp) Of(x reg.VecVirtual) {
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
