// Command aggregate writes the sums over neighbours: rows that a list names, added in registers, while the rows named a
// few entries later are on their way from memory.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(func(t vector.Target) {
		for _, s := range []sum{
			{name: "sumLists"},
			{name: "sumListsHalf", half: true},
			{name: "weightedSum", weights: byEdge},
			{name: "weightedSumHalf", half: true, weights: byEdge},
			{name: "rowWeightedSum", weights: byRow},
		} {
			s.Target = t
			s.emit()
		}
	})
}

// weights says what a row is multiplied by before it is added.
type weights int

const (
	none   weights = iota // nothing; the sum is divided by the length of its list
	byEdge                // the weight of its place in the list
	byRow                 // the weight of its number
)

// blockBytes is what a block takes of a row, at most: four lines. With eight, the lines asked for ahead take up the buffers
// for misses, and rows that have arrived wait: on a Xeon with AVX512-FP16, float32 rows of 256 columns then came from a
// table of 64 MB at 8.9 GB/s instead of 12.9, float16 rows at 6.7 instead of 8.7.
const blockBytes = 256

// widest is the number of vectors in the widest block.
func (s *sum) widest() int { return min(blockBytes/(s.Lanes<<s.size()), 8) }

// ahead is how many list entries ahead the rows of a block are fetched into the second-level cache: 4 KB of them. Lists lie
// behind one another, so that this reaches into those of the next destinations.
func (s *sum) ahead(k int) int {
	return min(4096/(k*s.Lanes<<s.size()), 32)
}

// sum is one function. It works on blocks of columns that fit in registers; each block has its loop over destinations,
// and inside it the one over a list.
type sum struct {
	vector.Target
	name    string
	half    bool
	weights weights

	dst, src, stride, nbr reg.GPVirtual // dst and src of the block; stride of src in bytes
	last                  reg.GPVirtual // the last entry of nbr
	w                     reg.GPVirtual
	tail                  *vector.Mask  // of a block's last vector
	tailOff               reg.GPVirtual // AVX2, half: where the last vector starts, in bytes of a row's block
	left, block, dstStep  Mem           // columns left, dst of the block, strides in bytes
	weightStep            Mem
}

// size is log2 of the bytes of an element of src.
func (s *sum) size() uint64 {
	if s.half {
		return 1
	}
	return 2
}

// overlaps reports that the last vector of a row starts early enough to end with it, for want of a mask.
func (s *sum) overlaps() bool { return s.half && !s.Wide() }

func (s *sum) emit() {
	element := "float32"
	if s.half {
		element = "uint16"
	}
	signature := fmt.Sprintf("(dst *float32, dstStride, cols int, src *%s, stride, rows int, start, end *uint32, n int, nbr *uint32, edges int", element)
	doc := []string{"adds rows of src to the n rows of dst: to row i those that nbr[start[i]:end[i]] names."}
	switch s.weights {
	case none:
		signature += ", keep int"
		doc = []string{
			"sets the n rows of dst to means of rows of src: row i to that of the rows that nbr[start[i]:end[i]]",
			"names, 0 if there is none. With keep 1, it adds those rows to row i instead, and divides nothing.",
		}
	case byEdge:
		signature += ", w *float32, wstride int"
		doc = append(doc, "Entry e of nbr has the weight w[e*wstride].")
	case byRow:
		signature += ", w *float32, keep int"
		doc = append(doc, "Row u has the weight w[u]. With keep 0 it sets the rows of dst instead.")
	}
	doc = append(doc, "It stops and returns 1 at a list outside nbr[:edges] or a row outside src[:rows], which it does not read.",
		"Strides count elements.")
	if s.overlaps() {
		doc = append(doc, "There are at least eight columns.")
	}
	s.Func(s.name, signature+") (bad uint64)", doc...)

	s.left, s.block, s.dstStep = AllocLocal(8), AllocLocal(8), AllocLocal(8)
	left := vector.Param64("cols")
	MOVQ(left, s.left)
	s.dst = vector.Param64("dst")
	MOVQ(s.dst, s.block)
	step := vector.Param64("dstStride")
	SHLQ(U8(2), step)
	MOVQ(step, s.dstStep)
	s.src, s.stride = vector.Param64("src"), vector.Param64("stride")
	SHLQ(U8(s.size()), s.stride)
	s.last = vector.Param64("edges")
	s.nbr = vector.Param64("nbr")
	LEAQ(Mem{Base: s.nbr, Index: s.last, Scale: 4, Disp: -4}, s.last)
	switch s.weights {
	case byEdge:
		s.weightStep = AllocLocal(8)
		step := vector.Param64("wstride")
		SHLQ(U8(2), step)
		MOVQ(step, s.weightStep)
		s.w = GP64()
	case byRow:
		s.w = vector.Param64("w")
	}
	s.tail = s.NewMask()
	if s.overlaps() {
		s.tailOff = GP64()
	}
	s.choose()
	for k := s.widest(); k > 0; k-- {
		s.columns(k)
	}

	vector.ReturnBad()
}

// choose jumps to the block for the columns left: the widest if they fill it, else the one that takes them all.
func (s *sum) choose() {
	Label("choose")
	left, vectors, lanes := GP64(), GP64(), GP64()
	MOVQ(s.left, left)
	full := s.widest() * s.Lanes
	CMPQ(left, U32(full))
	JCS(LabelRef("narrow"))
	MOVQ(U32(full), left)
	Label("narrow")
	// The last vector holds ((left-1) mod Lanes) + 1 columns.
	LEAQ(Mem{Base: left, Disp: -1}, lanes)
	ANDQ(U32(s.Lanes-1), lanes)
	INCQ(lanes)
	LEAQ(Mem{Base: left, Disp: s.Lanes - 1}, vectors)
	SHRQ(U8(map[int]uint64{16: 4, 8: 3}[s.Lanes]), vectors)
	if s.overlaps() {
		s.setTail(lanes, left)
	} else {
		s.Low(s.tail, lanes)
	}
	for k := s.widest(); k > 0; k-- {
		CMPQ(vectors, U32(k))
		JE(LabelRef(fmt.Sprintf("columns%d", k)))
	}
	// No column is left.
	vector.ReturnGood()
}

// setTail makes the last vector end at a block's last column, and names the lanes that no other vector has.
func (s *sum) setTail(lanes, columns reg.GPVirtual) {
	s.High(s.tail, lanes)
	LEAQ(Mem{Base: columns, Index: columns, Scale: 1, Disp: -2 * s.Lanes}, s.tailOff)
}

// columns emits the loop over destinations for a block of k vectors.
func (s *sum) columns(k int) {
	at := func(name string) string { return fmt.Sprintf("%s%d", name, k) }
	Label(at("columns"))
	i, entry, end, t := GP64(), GP64(), GP64(), GP64()
	XORQ(i, i)
	Label(at("list"))
	CMPQ(i, vector.Slot("n"))
	JE(LabelRef(at("next")))
	vector.List(i, entry, end, t)
	if s.weights == byEdge {
		MOVQ(s.weightStep, s.w)
		IMULQ(entry, s.w)
		ADDQ(vector.Slot("w"), s.w)
	}
	LEAQ(Mem{Base: s.nbr, Index: entry, Scale: 4}, entry)
	LEAQ(Mem{Base: s.nbr, Index: end, Scale: 4}, end)

	acc := s.Vecs(k)
	s.start(at, acc)
	CMPQ(entry, end)
	JE(LabelRef(at("sum")))
	Label(at("row"))
	s.row(k, entry, acc)
	ADDQ(U8(4), entry)
	if s.weights == byEdge {
		ADDQ(s.weightStep, s.w)
	}
	CMPQ(entry, end)
	JNE(LabelRef(at("row")))
	if s.weights == none {
		s.mean(at, i, acc)
	}
	Label(at("sum"))
	s.each(k, func(j int, m Mem, mask *vector.Mask) { s.Store(acc[j], mask, m) })
	ADDQ(s.dstStep, s.dst)
	INCQ(i)
	JMP(LabelRef(at("list")))

	Label(at("next"))
	left := GP64()
	MOVQ(s.left, left)
	SUBQ(U32(k*s.Lanes), left)
	JLS(LabelRef(at("done")))
	MOVQ(left, s.left)
	ADDQ(U32(k*s.Lanes<<s.size()), s.src)
	MOVQ(s.block, s.dst)
	ADDQ(U32(4*k*s.Lanes), s.dst)
	MOVQ(s.dst, s.block)
	JMP(LabelRef("choose"))
	Label(at("done"))
	vector.ReturnGood()
}

// each visits the vectors of a destination's block.
func (s *sum) each(k int, visit func(j int, m Mem, mask *vector.Mask)) {
	for j := range k - 1 {
		visit(j, Mem{Base: s.dst, Disp: 4 * j * s.Lanes}, nil)
	}
	m := Mem{Base: s.dst, Disp: 4 * (k - 1) * s.Lanes}
	if s.overlaps() {
		m = Mem{Base: s.dst, Index: s.tailOff, Scale: 2}
	}
	visit(k-1, m, s.tail)
}

// start sets the accumulators to 0, or to dst where the sum adds to it.
func (s *sum) start(at func(string) string, acc []reg.VecVirtual) {
	read := func() {
		s.each(len(acc), func(j int, m Mem, mask *vector.Mask) { s.Load(m, mask, acc[j]) })
	}
	if s.weights == byEdge {
		read()
		return
	}
	for _, a := range acc {
		VXORPS(a, a, a)
	}
	CMPQ(vector.Slot("keep"), U8(0))
	JE(LabelRef(at("begin")))
	read()
	Label(at("begin"))
}

// row adds one row, and fetches the one that is some entries ahead, or the last.
func (s *sum) row(k int, entry reg.GPVirtual, acc []reg.VecVirtual) {
	ahead := GP64()
	LEAQ(Mem{Base: entry, Disp: 4 * s.ahead(k)}, ahead)
	CMPQ(ahead, s.last)
	CMOVQHI(s.last, ahead)
	MOVL(Mem{Base: ahead}, ahead.As32())
	IMULQ(s.stride, ahead)
	for line := 0; line < k*s.Lanes<<s.size(); line += 64 {
		PREFETCHT1(Mem{Base: s.src, Index: ahead, Scale: 1, Disp: line})
	}

	u := GP64()
	MOVL(Mem{Base: entry}, u.As32())
	CMPQ(u, vector.Slot("rows"))
	JCC(LabelRef("bad"))
	var w reg.VecVirtual
	switch s.weights {
	case byEdge:
		w = s.Vec()
		VBROADCASTSS(Mem{Base: s.w}, w)
	case byRow:
		w = s.Vec()
		VBROADCASTSS(Mem{Base: s.w, Index: u, Scale: 4}, w)
	}
	IMULQ(s.stride, u)
	ADDQ(s.src, u)
	for j, a := range acc {
		m, mask := Mem{Base: u, Disp: j * s.Lanes << s.size()}, (*vector.Mask)(nil)
		if j == k-1 {
			mask = s.tail
			if s.overlaps() {
				m, mask = Mem{Base: u, Index: s.tailOff, Scale: 1}, nil
			}
		}
		s.add(a, m, mask, w)
	}
}

// add adds the row's elements at m, times w if there is one.
func (s *sum) add(acc reg.VecVirtual, m Mem, mask *vector.Mask, w reg.VecVirtual) {
	var x Op = m
	if s.half || mask != nil {
		v := s.Vec()
		if s.half {
			s.LoadHalf(m, mask, v)
		} else {
			s.Load(m, mask, v)
		}
		x = v
	}
	if w == nil {
		VADDPS(x, acc, acc)
		return
	}
	VFMADD231PS(x, w, acc)
}

// mean divides the sum by the length of its list, unless it is to be kept.
func (s *sum) mean(at func(string) string, i reg.GPVirtual, acc []reg.VecVirtual) {
	CMPQ(vector.Slot("keep"), U8(0))
	JNE(LabelRef(at("sum")))
	length, t := GP64(), GP64()
	MOVQ(vector.Slot("end"), t)
	MOVL(Mem{Base: t, Index: i, Scale: 4}, length.As32())
	MOVQ(vector.Slot("start"), t)
	SUBL(Mem{Base: t, Index: i, Scale: 4}, length.As32())
	n, one := XMM(), XMM()
	VXORPS(n, n, n)
	VCVTSI2SSQ(length, n, n)
	VMOVSS(vector.Word(0x3f80_0000), one)
	VDIVSS(n, one, n)
	factor := s.Spread(n)
	for _, a := range acc {
		VMULPS(factor, a, a)
	}
}
