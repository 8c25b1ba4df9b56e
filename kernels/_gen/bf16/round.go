package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// source is what a routine reads: float32, or float16 with half.
type source struct{ half bool }

func (s source) name() string {
	if s.half {
		return "Half"
	}
	return ""
}

func (s source) pointer() string {
	if s.half {
		return "*uint16"
	}
	return "*float32"
}

// bytes is the size of n elements.
func (s source) bytes(n int) int {
	if s.half {
		return 2 * n
	}
	return 4 * n
}

// read reads 16 elements, from element at on, as float32.
func (s source) read(base reg.GPPhysical, at int, to reg.VecPhysical) {
	from := Mem{Base: base, Disp: s.bytes(at)}
	if s.half {
		VCVTPH2PS(from, to)
	} else {
		VMOVUPS(from, to)
	}
}

// readSome is read of the elements in a mask; the others are 0.
func (s source) readSome(base reg.GPPhysical, at int, mask, to reg.Register) {
	from := Mem{Base: base, Disp: s.bytes(at)}
	if s.half {
		VCVTPH2PS_Z(from, mask, to)
	} else {
		VMOVUPS_Z(from, mask, to)
	}
}

// roundRows writes the routine that rounds rows as they are.
func roundRows(half bool) {
	s := source{half}
	function("roundRows"+s.name()+"AVX512BF16", "(dst *uint16, dstRow, dstStep int, src "+s.pointer()+", srcRow, rows, cols int)",
		"rounds rows of cols elements, and adds zeros up to a multiple of 32. rows > 0. Rows start dstRow",
		"and srcRow bytes apart, and every 32 elements of a row of dst dstStep bytes.")
	dst, src, to, from, full, rows, left := reg.RDI, reg.RSI, reg.RBX, reg.RDX, reg.R8, reg.R9, reg.R10
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("rows"), rows)
	Load(Param("cols"), full)
	MOVQ(full, reg.R11)
	ANDQ(Imm(31), reg.R11)
	SHRQ(Imm(5), full)
	maskColumns(reg.R11)
	dstRow, srcRow := parameter("dstRow"), parameter("srcRow")
	Load(Param("dstStep"), reg.R12)

	Label("row")
	MOVQ(dst, to)
	MOVQ(src, from)
	MOVQ(full, left)
	TESTQ(left, left)
	JZ(LabelRef("tail"))
	Label("block")
	s.read(from, 0, z(0))
	s.read(from, 16, z(1))
	narrow(z(0), z(1), z(2))
	VMOVUPS(z(2), Mem{Base: to})
	ADDQ(Imm(uint64(s.bytes(32))), from)
	ADDQ(reg.R12, to)
	DECQ(left)
	JNZ(LabelRef("block"))
	Label("tail")
	TESTQ(reg.R11, reg.R11)
	JZ(LabelRef("done"))
	s.readSome(from, 0, reg.K1, z(0))
	s.readSome(from, 16, reg.K2, z(1))
	narrow(z(0), z(1), z(2))
	VMOVUPS(z(2), Mem{Base: to})
	Label("done")
	ADDQ(dstRow, dst)
	ADDQ(srcRow, src)
	DECQ(rows)
	JNZ(LabelRef("row"))
	VZEROUPPER()
	RET()
}

// pairWords has a row of 16 words, and behind it another, taken in turns.
var pairWords = func() Mem {
	table := GLOBL("bf16PairWords", attributes)
	for i := range 16 {
		DATA(4*i, U32(uint32(i)|uint32(16+i)<<16))
	}
	return table
}()

// roundPairs writes the routine that rounds rows and joins every two to a row of pairs.
func roundPairs(half bool) {
	s := source{half}
	function("roundPairs"+s.name()+"AVX512BF16", "(dst *uint16, panel int, src "+s.pointer()+", srcRow, rows, cols int)",
		"rounds rows, and joins elements of rows 2p and 2p+1 to row p of pairs; a row",
		"that is missing is 0. rows > 0. The pairs of 32 columns lie together in a panel, 128 bytes a row. Panels start panel bytes apart,",
		"rows of src srcRow bytes.")
	dst, src, to, first, second, left := reg.RDI, reg.RSI, reg.RBX, reg.RDX, reg.R10, reg.R9
	full, rows, tail, panel, srcRow := reg.R8, reg.R12, reg.R11, reg.R13, reg.RCX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("cols"), full)
	MOVQ(full, tail)
	ANDQ(Imm(31), tail)
	SHRQ(Imm(5), full)
	maskColumns(tail)
	Load(Param("rows"), rows)
	Load(Param("panel"), panel)
	Load(Param("srcRow"), srcRow)
	words := z(31)
	VMOVUPS(pairWords, words)
	join := func(low, high reg.VecPhysical, at int) {
		narrow(low, high, low)
		VPERMW(low, words, low)
		VMOVUPS(low, Mem{Base: to, Disp: at})
	}
	pair := func(name string, both bool) {
		Label(name)
		MOVQ(dst, to)
		MOVQ(src, first)
		LEAQ(Mem{Base: src, Index: srcRow, Scale: 1}, second)
		if !both {
			VPXORD(z(2), z(2), z(2))
			VPXORD(z(3), z(3), z(3))
		}
		MOVQ(full, left)
		TESTQ(left, left)
		JZ(LabelRef(name + "tail"))
		Label(name + "block")
		s.read(first, 0, z(0))
		s.read(first, 16, z(1))
		if both {
			s.read(second, 0, z(2))
			s.read(second, 16, z(3))
		}
		join(z(0), z(2), 0)
		join(z(1), z(3), 64)
		ADDQ(Imm(uint64(s.bytes(32))), first)
		ADDQ(Imm(uint64(s.bytes(32))), second)
		ADDQ(panel, to)
		DECQ(left)
		JNZ(LabelRef(name + "block"))
		Label(name + "tail")
		TESTQ(tail, tail)
		JZ(LabelRef(name + "done"))
		s.readSome(first, 0, reg.K1, z(0))
		s.readSome(first, 16, reg.K2, z(1))
		if both {
			s.readSome(second, 0, reg.K1, z(2))
			s.readSome(second, 16, reg.K2, z(3))
		}
		join(z(0), z(2), 0)
		join(z(1), z(3), 64)
		Label(name + "done")
		ADDQ(Imm(pairRow), dst)
		LEAQ(Mem{Base: src, Index: srcRow, Scale: 2}, src)
	}
	SUBQ(Imm(2), rows)
	JL(LabelRef("rest"))
	pair("both", true)
	SUBQ(Imm(2), rows)
	JGE(LabelRef("both"))
	Label("rest")
	CMPQ(rows, I8(-1))
	JNE(LabelRef("end"))
	pair("one", false)
	Label("end")
	VZEROUPPER()
	RET()
}

// turnRows writes the routine that rounds 16 rows and transposes their pairs.
func turnRows() {
	s := source{}
	function("turnRowsAVX512BF16", "(dst *uint16, src *float32, srcRow, rows, cols int)",
		"rounds up to 16 rows, and writes the pair of elements 2p and 2p+1 of row j to column j of row p",
		"of pairs, with zeros behind cols up to a multiple of 32. rows > 0. Rows of pairs start 128 bytes apart, rows of src srcRow bytes.",
		"Columns past rows repeat the last row; nothing reads them.")
	dst, src, at, rows, left, srcRow := reg.RDI, reg.RSI, reg.RDX, reg.R9, reg.R10, reg.R11
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("srcRow"), srcRow)
	Load(Param("rows"), rows)
	Load(Param("cols"), left)
	MOVL(U32(0xffff), reg.R12L)
	KMOVW(reg.R12L, reg.K1)
	KMOVW(reg.R12L, reg.K2)
	Label("block")
	CMPQ(left, Imm(32))
	JGE(LabelRef("whole"))
	TESTQ(left, left)
	JLE(LabelRef("end"))
	maskColumns(left)
	Label("whole")
	MOVQ(src, at)
	for r := range 16 {
		s.readSome(at, 0, reg.K1, z(r))
		s.readSome(at, 16, reg.K2, z(16))
		narrow(z(r), z(16), z(r))
		if r < 15 { // the last row stands in for one that is missing
			LEAQ(Mem{Base: at, Index: srcRow, Scale: 1}, reg.RAX)
			CMPQ(rows, Imm(uint64(r+1)))
			CMOVQGT(reg.RAX, at)
		}
	}
	transpose(func(p int, v reg.VecPhysical) { VMOVUPS(v, Mem{Base: dst, Disp: pairRow * p}) })
	ADDQ(Imm(128), src)
	ADDQ(U32(16*pairRow), dst)
	SUBQ(Imm(32), left)
	JMP(LabelRef("block"))
	Label("end")
	VZEROUPPER()
	RET()
}

// turnPairs writes the routine that rounds 32 rows, and transposes the pairs of every two.
func turnPairs(half bool) {
	s := source{half}
	function("turnPairs"+s.name()+"AVX512BF16", "(dst *uint16, dstRow int, src "+s.pointer()+", srcRow, rows, cols int)",
		"rounds up to 32 rows, and writes column j as row j of dst, 64 bytes long; rows that are missing are 0.",
		"rows > 0. Rows start dstRow and srcRow bytes apart. dst has room for a multiple of 16 rows. The lines of the 32 rows that follow are",
		"prefetched.")
	dst, src, at, ahead, rows, left := reg.RDI, reg.RSI, reg.RDX, reg.R8, reg.R9, reg.R10
	srcRow, to := reg.R11, reg.RBX
	Load(Param("dst"), dst)
	Load(Param("src"), src)
	Load(Param("srcRow"), srcRow)
	Load(Param("rows"), rows)
	Load(Param("cols"), left)
	dstRow := parameter("dstRow")
	words := z(31)
	MOVL(U32(0xffff), reg.R12L)
	KMOVW(reg.R12L, reg.K1)
	Label("block")
	CMPQ(left, Imm(16))
	JGE(LabelRef("whole"))
	TESTQ(left, left)
	JLE(LabelRef("end"))
	maskColumns(left)
	Label("whole")
	VMOVUPS(pairWords, words)
	MOVQ(src, at)
	MOVQ(srcRow, ahead)
	SHLQ(Imm(5), ahead)
	ADDQ(src, ahead)
	CMPQ(rows, Imm(32))
	JL(LabelRef("some"))
	for p := range 16 {
		for _, v := range []reg.VecPhysical{z(p), z(16)} {
			s.readSome(at, 0, reg.K1, v)
			ADDQ(srcRow, at)
			PREFETCHT0(Mem{Base: ahead})
			ADDQ(srcRow, ahead)
		}
		narrow(z(p), z(16), z(p))
		VPERMW(z(p), words, z(p))
	}
	JMP(LabelRef("turn"))
	Label("some")
	for p := range 16 {
		VPXORD(z(p), z(p), z(p))
	}
	for p := range 16 {
		CMPQ(rows, Imm(uint64(2*p)))
		JLE(LabelRef("turn"))
		s.readSome(at, 0, reg.K1, z(p))
		ADDQ(srcRow, at)
		VPXORD(z(16), z(16), z(16))
		CMPQ(rows, Imm(uint64(2*p+1)))
		JLE(LabelRef(fmt.Sprint("odd", p)))
		s.readSome(at, 0, reg.K1, z(16))
		ADDQ(srcRow, at)
		Label(fmt.Sprint("odd", p))
		narrow(z(p), z(16), z(p))
		VPERMW(z(p), words, z(p))
	}
	Label("turn")
	MOVQ(dst, to)
	var turned [16]reg.VecPhysical
	transpose(func(j int, v reg.VecPhysical) { turned[j] = v })
	for _, v := range turned {
		VMOVUPS(v, Mem{Base: to})
		ADDQ(dstRow, to)
	}
	MOVQ(to, dst)
	ADDQ(Imm(uint64(s.bytes(16))), src)
	SUBQ(Imm(16), left)
	JMP(LabelRef("block"))
	Label("end")
	VZEROUPPER()
	RET()
}

// transpose transposes the 16×16 dwords of vectors 0 to 15. It hands over each column of them, in a
// vector. Vectors 16 to 31 are changed.
func transpose(result func(column int, v reg.VecPhysical)) {
	for i := 0; i < 16; i += 2 {
		VPUNPCKLDQ(z(i+1), z(i), z(16+i))
		VPUNPCKHDQ(z(i+1), z(i), z(17+i))
	}
	// Four rows of each column that is c beyond a multiple of 4 are in vector 4g+c.
	for g := 0; g < 16; g += 4 {
		for c := range 2 {
			VPUNPCKLQDQ(z(16+g+2+c), z(16+g+c), z(g+2*c))
			VPUNPCKHQDQ(z(16+g+2+c), z(16+g+c), z(g+2*c+1))
		}
	}
	for c := range 4 {
		low, high := [2]reg.VecPhysical{z(16 + 4*c), z(17 + 4*c)}, [2]reg.VecPhysical{z(18 + 4*c), z(19 + 4*c)}
		for side, lanes := range []uint64{0x44, 0xee} {
			VSHUFI32X4(Imm(lanes), z(4+c), z(c), low[side])
			VSHUFI32X4(Imm(lanes), z(12+c), z(8+c), high[side])
		}
		for side := range 2 {
			VSHUFI32X4(Imm(0x88), high[side], low[side], z(c+8*side))
			VSHUFI32X4(Imm(0xdd), high[side], low[side], z(c+8*side+4))
			result(8*side+c, z(c+8*side))
			result(8*side+4+c, z(c+8*side+4))
		}
	}
}
