// Package vector writes one kernel for two instruction sets. A [Target] knows how wide a vector is and how the end of a
// row is masked; [Target.Each] is the loop over elements. Everything else a generator says in avo's own words, since the
// three-operand instructions have the same names at both widths.
package vector

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Target is a kernel set: AVX-512 (F, DQ, BW, VL) or AVX2 with FMA and F16C.
type Target struct {
	Name  string // the suffix of its functions
	Lanes int    // float32s in a vector
}

// Targets are the sets that have assembly.
var Targets = []Target{{"AVX512", 16}, {"AVX2", 8}}

// Write generates the file. For each target it calls the functions of emit in order.
func Write(emit ...func(t Target)) {
	ConstraintExpr("amd64,!purego")
	for _, t := range Targets {
		for _, one := range emit {
			one(t)
		}
	}
	Generate()
}

// Wide reports AVX-512, which masks any instruction and has 32 registers.
func (t Target) Wide() bool { return t.Lanes == 16 }

// Func starts the function name of this target. Whoever calls it keeps the pointers alive: they do not escape.
func (t Target) Func(name, signature string, doc ...string) {
	TEXT(name+t.Name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	doc[0] = name + t.Name + " " + doc[0]
	Doc(doc...)
}

// End ends a function: code that follows may use the old encodings.
func End() {
	VZEROUPPER()
	RET()
}

// Vec is a new vector.
func (t Target) Vec() reg.VecVirtual {
	if t.Wide() {
		return ZMM()
	}
	return YMM()
}

// Vecs are n new vectors.
func (t Target) Vecs(n int) []reg.VecVirtual {
	v := make([]reg.VecVirtual, n)
	for i := range v {
		v[i] = t.Vec()
	}
	return v
}

// Zero returns a vector of zeros.
func (t Target) Zero() reg.VecVirtual {
	v := t.Vec()
	VXORPS(v, v, v)
	return v
}

// Param64 loads an integer or pointer parameter into a new register.
func Param64(name string) reg.GPVirtual {
	return Load(Param(name), GP64()).(reg.GPVirtual)
}

// Slot is where a parameter lies in memory.
func Slot(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// Broadcast returns a vector of one float32 parameter.
func (t Target) Broadcast(name string) reg.VecVirtual {
	v := t.Vec()
	VBROADCASTSS(Slot(name), v)
	return v
}

// Const returns a vector of one 32-bit constant, which is stored in the read-only data of the file.
func (t Target) Const(bits uint32) reg.VecVirtual {
	v := t.Vec()
	VBROADCASTSS(Word(bits), v)
	return v
}

// Operand is Const where registers are plenty, and on AVX2 a vector in memory.
func (t Target) Operand(bits uint32) Op {
	if t.Wide() {
		return t.Const(bits)
	}
	return table(fmt.Sprintf("vector_%08x", bits), 4, func(uint64) uint64 { return uint64(bits)<<32 | uint64(bits) })
}

// Double is Operand for 64-bit lanes.
func (t Target) Double(bits uint64) Op {
	if t.Wide() {
		v := t.Vec()
		VBROADCASTSD(Quad(bits), v)
		return v
	}
	return table(fmt.Sprintf("double_%016x", bits), 4, func(uint64) uint64 { return bits })
}

// Word is a 32-bit constant in memory.
func Word(bits uint32) Mem {
	name := fmt.Sprintf("word_%08x", bits)
	if _, ok := tables[name]; !ok {
		tables[name] = ConstData(name, U32(bits))
	}
	return tables[name]
}

// Quad is a 64-bit constant in memory.
func Quad(bits uint64) Mem {
	return table(fmt.Sprintf("quad_%016x", bits), 1, func(uint64) uint64 { return bits })
}

var tables = map[string]Mem{}

// table is n 64-bit constants in memory.
func table(name string, n int, value func(i uint64) uint64) Mem {
	if _, ok := tables[name]; !ok {
		m := GLOBL(name, RODATA|NOPTR)
		for i := range n {
			DATA(8*i, U64(value(uint64(i))))
		}
		tables[name] = m
	}
	return tables[name]
}

// Multiples fills v with 0, by, 2·by … in 64-bit lanes.
func (t Target) Multiples(by uint64, v reg.VecVirtual) {
	m := table(fmt.Sprintf("multiples_%016x", by), 8, func(i uint64) uint64 { return i * by })
	if t.Wide() {
		VMOVDQU64(m, v)
		return
	}
	VMOVDQU(m, v)
}

// A Mask names the lanes of a vector that lie inside a row; nil names all of them.
type Mask struct {
	k reg.Register   // AVX-512: an opmask
	v reg.VecVirtual // AVX2: all bits of a lane
}

// K is the opmask of an AVX-512 mask.
func (m *Mask) K() reg.Register { return m.k }

// NewMask returns a mask that names nothing yet: see Low, LowPair and High.
func (t Target) NewMask() *Mask {
	if t.Wide() {
		return &Mask{k: K()}
	}
	return &Mask{v: YMM()}
}

// Low makes m name the first n lanes, 0 ≤ n ≤ Lanes. It destroys n.
func (t Target) Low(m *Mask, n reg.GPVirtual) {
	if t.Wide() {
		bits := GP64()
		MOVQ(I32(-1), bits)
		BZHIQ(n, bits, bits)
		KMOVW(bits.As32(), m.k)
		return
	}
	NEGQ(n)
	t.edge(m, n)
}

// LowPair makes two masks name the first n lanes of two vectors, 1 ≤ n < 2·Lanes. It destroys n.
func (t Target) LowPair(low, high *Mask, n reg.GPVirtual) {
	if t.Wide() {
		bits := GP64()
		MOVQ(I32(-1), bits)
		BZHIQ(n, bits, bits)
		KMOVW(bits.As32(), low.k)
		SHRQ(U8(16), bits)
		KMOVW(bits.As32(), high.k)
		return
	}
	part := GP64()
	MOVQ(U32(8), part)
	CMPQ(n, part)
	CMOVQCS(n, part)
	SUBQ(part, n)
	t.Low(low, part)
	t.Low(high, n)
}

// High makes an AVX2 mask name the last n lanes. It destroys n.
func (t Target) High(m *Mask, n reg.GPVirtual) { t.edge(m, n) }

// edge reads lanes 8+at to 15+at of the table of edges.
func (t Target) edge(m *Mask, at reg.GPVirtual) {
	base := GP64()
	LEAQ(edges(), base)
	VMOVDQU(Mem{Base: base, Index: at, Scale: 4, Disp: 32}, m.v)
}

// edges is a table of eight lanes set, eight clear, eight set, from which unaligned reads make masks.
func edges() Mem {
	return table("edges", 12, func(i uint64) uint64 {
		if i/4 == 1 {
			return 0
		}
		return 1<<64 - 1
	})
}

// Load reads float32s into v; lanes outside the mask become 0 and are not read.
func (t Target) Load(m Mem, mask *Mask, v reg.VecVirtual) {
	switch {
	case mask == nil:
		VMOVUPS(m, v)
	case t.Wide():
		VMOVUPS_Z(m, mask.k, v)
	default:
		VMASKMOVPS(m, mask.v, v)
	}
}

// LoadHalf reads and widens float16s. AVX2 has no mask for them: there, the mask must be nil.
func (t Target) LoadHalf(m Mem, mask *Mask, v reg.VecVirtual) {
	switch {
	case mask == nil:
		VCVTPH2PS(m, v)
	case t.Wide():
		VCVTPH2PS_Z(m, mask.k, v)
	default:
		panic("AVX2 cannot mask float16")
	}
}

// Store writes float32s; lanes outside the mask are not written.
func (t Target) Store(v reg.VecVirtual, mask *Mask, m Mem) {
	switch {
	case mask == nil:
		VMOVUPS(v, m)
	case t.Wide():
		VMOVUPS(v, mask.k, m)
	default:
		VMASKMOVPS(v, mask.v, m)
	}
}

// Sum adds the lanes of v in halves: lane i and lane i+n/2 first, then quarters. The result is in lane 0 of the XMM.
func (t Target) Sum(v reg.VecVirtual) reg.VecVirtual {
	return t.fold(v, func(a, b Op, to reg.VecVirtual) { VADDPS(a, b, to) })
}

// Max is the largest lane of v, as VMAXPS has it.
func (t Target) Max(v reg.VecVirtual) reg.VecVirtual {
	return t.fold(v, func(a, b Op, to reg.VecVirtual) { VMAXPS(a, b, to) })
}

func (t Target) fold(v reg.VecVirtual, with func(a, b Op, to reg.VecVirtual)) reg.VecVirtual {
	y := v.AsY()
	if t.Wide() {
		high, folded := YMM(), YMM()
		VEXTRACTF64X4(U8(1), v, high)
		with(high, v.AsY(), folded)
		y = folded.AsY()
	}
	x, high := XMM(), XMM()
	VEXTRACTF128(U8(1), y, high)
	with(high, y.(reg.Vec).AsX(), x)
	VPSHUFD(U8(0x0e), x, high)
	with(high, x, x)
	VPSHUFD(U8(0x01), x, high)
	with(high, x, x)
	return x
}

// Spread copies lane 0 of an XMM to all lanes.
func (t Target) Spread(x reg.VecVirtual) reg.VecVirtual {
	v := t.Vec()
	VBROADCASTSS(x, v)
	return v
}

// At is one step of [Target.Each]: a vector of elements, the last one masked.
type At struct {
	Target
	Mask  *Mask // nil where all lanes are inside
	Index reg.GPVirtual
	Off   int // elements after Index
}

// Float is the address of these elements in an array of float32.
func (a At) Float(base reg.Register) Mem {
	return Mem{Base: base, Index: a.Index, Scale: 4, Disp: 4 * a.Off}
}

// Half is their address in an array of float16.
func (a At) Half(base reg.Register) Mem {
	return Mem{Base: base, Index: a.Index, Scale: 2, Disp: 2 * a.Off}
}

// Read loads these float32s into a new vector.
func (a At) Read(base reg.Register) reg.VecVirtual {
	v := a.Vec()
	a.Load(a.Float(base), a.Mask, v)
	return v
}

// Write stores these float32s.
func (a At) Write(v reg.VecVirtual, base reg.Register) { a.Store(v, a.Mask, a.Float(base)) }

// ReadOr is Read with the lanes outside the mask taken from fill.
func (a At) ReadOr(base reg.Register, fill reg.VecVirtual) reg.VecVirtual {
	v := a.Vec()
	switch {
	case a.Mask == nil:
		VMOVUPS(a.Float(base), v)
	case a.Wide():
		VMOVAPS(fill, v)
		VMOVUPS(a.Float(base), a.Mask.k, v)
	default:
		VMASKMOVPS(a.Float(base), a.Mask.v, v)
		VBLENDVPS(a.Mask.v, v, fill, v)
	}
	return v
}

// Only sets the lanes of v outside the mask to 0.
func (a At) Only(v reg.VecVirtual) {
	switch {
	case a.Mask == nil:
	case a.Wide():
		VMOVAPS_Z(v, a.Mask.k, v)
	default:
		VANDPS(a.Mask.v, v, v)
	}
}

// Rows emits a loop that runs body rows times. It destroys rows. A function has one such loop.
func (t Target) Rows(rows reg.GPVirtual, body func()) {
	Label("nextRow")
	SUBQ(U8(1), rows)
	JLT(LabelRef("noRow"))
	body()
	JMP(LabelRef("nextRow"))
	Label("noRow")
}

// Next moves pointers on by a row of float32s.
func Next(cols reg.GPVirtual, rows ...reg.GPVirtual) {
	for _, p := range rows {
		LEAQ(Mem{Base: p, Index: cols, Scale: 4}, p)
	}
}

// Each emits a loop over the elements [0, n): several vectors at a time, then one, then the masked rest. prefix makes
// labels of this function unique. n is not changed.
func (t Target) Each(prefix string, n reg.GPVirtual, unroll int, body func(At)) {
	i := t.Whole(prefix, n, unroll, body)
	left := GP64()
	MOVQ(n, left)
	SUBQ(i, left)
	JE(LabelRef(prefix + "Done"))
	mask := t.NewMask()
	t.Low(mask, left)
	body(At{Target: t, Mask: mask, Index: i})
	Label(prefix + "Done")
}

// Sums is Each for a sum, which it returns. Several vectors take turns at adding, since one would wait for each addition to
// end before the next.
func (t Target) Sums(prefix string, n reg.GPVirtual, unroll int, body func(at At, sum reg.VecVirtual)) reg.VecVirtual {
	acc := t.Vecs(unroll)
	for _, a := range acc {
		VXORPS(a, a, a)
	}
	t.Each(prefix, n, unroll, func(at At) { body(at, acc[at.Off/t.Lanes]) })
	for half := unroll / 2; half > 0; half /= 2 {
		for i := range half {
			VADDPS(acc[half+i], acc[i], acc[i])
		}
	}
	return acc[0]
}

// Whole is Each without the rest that fills no vector. It returns the number of elements done.
func (t Target) Whole(prefix string, n reg.GPVirtual, unroll int, body func(At)) reg.GPVirtual {
	i, next := GP64(), GP64()
	XORQ(i, i)
	for _, u := range slices.Compact([]int{unroll, 1}) {
		label := fmt.Sprintf("%s%d", prefix, u)
		Label(label)
		LEAQ(Mem{Base: i, Disp: u * t.Lanes}, next)
		CMPQ(next, n)
		JHI(LabelRef(label + "End"))
		for j := range u {
			body(At{Target: t, Index: i, Off: j * t.Lanes})
		}
		MOVQ(next, i)
		JMP(LabelRef(label))
		Label(label + "End")
	}
	return i
}

// Predicates of VCMPPS. NaN makes Unordered and Unequal true, and the others false. Only NaN makes
// Unordered true.
const (
	Equal          = 0
	Unordered      = 3
	Unequal        = 4
	Less           = 17
	GreaterOrEqual = 29
	Greater        = 30
)
