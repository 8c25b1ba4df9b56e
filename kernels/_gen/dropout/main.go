// Command dropout writes dropout and its gradient: SplitMix64 in 64-bit lanes, four columns to a hash, so that the 16-bit
// lanes of a vector of hashes are those of consecutive columns.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// As in dropout.go.
const (
	golden = 0x9e37_79b9_7f4a_7c15
	first  = 0xbf58_476d_1ce4_e5b9
	second = 0x94d0_49bb_1331_11eb
)

func main() {
	vector.Write(func(t vector.Target) {
		newDropout(t, "dropout", "float32", "writes to dst what dropout keeps of src, times factor, and 0 elsewhere.").emit(at{})
		if t.Wide() {
			newDropout(t, "dropoutHalf", "uint16", "is dropout of halves.").emit(at{half: true})
		}
		newDropout(t, "dropoutGrad", "float32", "adds to dst what dropout keeps of src, times factor.").emit(at{add: true})
	})
}

// at says what is done with the elements.
type at struct{ half, add bool }

type dropout struct {
	vector.Target
	hashes int // in a vector; twice as many columns as there are lanes share their words

	dst, src, ids, rows, cols, key reg.GPVirtual
	factor, threshold              reg.VecVirtual
	steps, lanes                   reg.VecVirtual // golden times the hashes of a vector, and times 0, 1, 2 …
	first, second                  multiplier
}

// multiplier is a 64-bit constant in every lane and, for AVX2, its upper half in the lower half of every lane.
type multiplier struct{ all, high reg.VecVirtual }

func newDropout(t vector.Target, name, element, doc string) *dropout {
	t.Func(name, "(dst *float32, src *"+element+", ids *uint32, rows, cols int, key uint64, threshold uint64, factor float32)", doc,
		"threshold is, four times over, the number of 16 bits below which a lane is dropped.")
	d := &dropout{Target: t, hashes: t.Lanes / 2}
	d.dst, d.src, d.ids = vector.Param64("dst"), vector.Param64("src"), vector.Param64("ids")
	d.rows, d.cols, d.key = vector.Param64("rows"), vector.Param64("cols"), vector.Param64("key")
	d.factor, d.threshold = t.Broadcast("factor"), t.Vec()
	VPBROADCASTQ(vector.Slot("threshold"), d.threshold)
	d.steps, d.lanes = t.Vec(), t.Vec()
	VPBROADCASTQ(vector.Quad(wrap(golden, uint64(d.hashes))), d.steps)
	t.Multiples(golden, d.lanes)
	d.first, d.second = d.multiplier(first), d.multiplier(second)
	return d
}

// wrap is a·b modulo 2⁶⁴, which a constant expression may not overflow.
func wrap(a, b uint64) uint64 { return a * b }

func (d *dropout) multiplier(c uint64) multiplier {
	m := multiplier{all: d.Vec()}
	VPBROADCASTQ(vector.Quad(c), m.all)
	if !d.Wide() {
		m.high = d.Vec()
		VPBROADCASTQ(vector.Quad(c>>32), m.high)
	}
	return m
}

func (d *dropout) emit(what at) {
	d.Rows(d.rows, func() {
		// The first hash of a row is number id·2³².
		state, id, c := d.Vec(), GP64(), GP64()
		MOVL(Mem{Base: d.ids}, id.As32())
		ADDQ(U8(4), d.ids)
		MOVQ(U64(wrap(golden, 1<<32)), c)
		IMULQ(c, id)
		ADDQ(d.key, id)
		x := XMM()
		VMOVQ(id, x)
		VPBROADCASTQ(x, state)
		d.add64(d.lanes, state)

		XORQ(c, c)
		next := GP64()
		pair := 2 * d.Lanes
		Label("pair")
		LEAQ(Mem{Base: c, Disp: pair}, next)
		CMPQ(next, d.cols)
		JHI(LabelRef("rest"))
		d.pair(what, state, c, nil, nil)
		d.add64(d.steps, state)
		MOVQ(next, c)
		JMP(LabelRef("pair"))
		Label("rest")
		left := GP64()
		MOVQ(d.cols, left)
		SUBQ(c, left)
		JE(LabelRef("rowDone"))
		low, high := d.NewMask(), d.NewMask()
		d.LowPair(low, high, left)
		d.pair(what, state, c, low, high)
		Label("rowDone")
		size := uint8(4)
		if what.half {
			size = 2
		}
		LEAQ(Mem{Base: d.src, Index: d.cols, Scale: size}, d.src)
		vector.Next(d.cols, d.dst)
	})
	vector.End()
}

func (d *dropout) add64(x, to reg.VecVirtual) { VPADDQ(x, to, to) }

// xorShift computes x ^= x>>by.
func (d *dropout) xorShift(x reg.VecVirtual, by uint8) {
	shifted := d.Vec()
	VPSRLQ(U8(by), x, shifted)
	if d.Wide() {
		VPXORQ(shifted, x, x)
		return
	}
	VPXOR(shifted, x, x)
}

// multiply computes x *= m. Without an instruction for it, the three products that reach the lower 64 bits are added.
func (d *dropout) multiply(x reg.VecVirtual, m multiplier) {
	if d.Wide() {
		VPMULLQ(m.all, x, x)
		return
	}
	high, cross := d.Vec(), d.Vec()
	VPSRLQ(U8(32), x, high)
	VPMULUDQ(m.all, high, high)
	VPMULUDQ(m.high, x, cross)
	VPADDQ(cross, high, high)
	VPSLLQ(U8(32), high, high)
	VPMULUDQ(m.all, x, x)
	VPADDQ(high, x, x)
}

// pair does two vectors of columns from c on, which share one vector of hashes.
func (d *dropout) pair(what at, state reg.VecVirtual, c reg.GPVirtual, low, high *vector.Mask) {
	hash := d.Vec()
	if d.Wide() {
		VMOVDQA64(state, hash)
	} else {
		VMOVDQA(state, hash)
	}
	d.xorShift(hash, 30)
	d.multiply(hash, d.first)
	d.xorShift(hash, 27)
	d.multiply(hash, d.second)
	d.xorShift(hash, 31)

	if d.Wide() {
		keep, keepHigh := K(), K()
		VPCMPUW(U8(5), d.threshold, hash, keep) // not below
		KSHIFTRD(U8(16), keep, keepHigh)
		for i, k := range []reg.Register{keep, keepHigh} {
			mask := []*vector.Mask{low, high}[i]
			if mask != nil {
				KANDW(mask.K(), k, k)
			}
			step := vector.At{Target: d.Target, Mask: mask, Index: c, Off: i * d.Lanes}
			v := d.Vec()
			if what.half {
				VCVTPH2PS_Z(step.Half(d.src), k, v)
				VMULPS(d.factor, v, v)
			} else {
				VMULPS_Z(step.Float(d.src), d.factor, k, v)
			}
			d.put(what, step, v)
		}
		return
	}
	words := d.Vec()
	VPMAXUW(d.threshold, hash, words)
	VPCMPEQW(words, hash, words)
	highWords := XMM()
	VEXTRACTI128(U8(1), words, highWords)
	for i, w := range []reg.Register{words.AsX(), highWords} {
		step := vector.At{Target: d.Target, Mask: []*vector.Mask{low, high}[i], Index: c, Off: i * d.Lanes}
		keep := d.Vec()
		VPMOVSXWD(w, keep)
		v := step.Read(d.src)
		VMULPS(d.factor, v, v)
		VANDPS(keep, v, v)
		d.put(what, step, v)
	}
}

// put writes or adds v.
func (d *dropout) put(what at, step vector.At, v reg.VecVirtual) {
	if what.add {
		VADDPS(step.Read(d.dst), v, v)
	}
	step.Write(v, d.dst)
}
