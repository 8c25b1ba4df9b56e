package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// pack writes the routine that transposes eight rows, in blocks of eight columns.
func pack() {
	TEXT("matMulPack8", NOSPLIT, "func(dst *float32, dstRow int, src *float32, srcRow int, blocks int)")
	Pragma("noescape")
	Doc("matMulPack8 computes dst[l][r] = src[r][l] for r < 8, l < 8·blocks, where blocks > 0. Row l of dst starts at dstRow·l,",
		"row r of src at srcRow·r, in bytes.")
	dst, dstRow := Load(Param("dst"), GP64()), Load(Param("dstRow"), GP64())
	src, srcRow := Load(Param("src"), GP64()), Load(Param("srcRow"), GP64())
	blocks := Load(Param("blocks"), GP64())
	srcRow3, src5 := GP64(), GP64()
	LEAQ(Mem{Base: srcRow, Index: srcRow, Scale: 2}, srcRow3)
	LEAQ(Mem{Base: src, Index: srcRow, Scale: 4}, src5)
	ADDQ(srcRow, src5)
	rows := [8]Mem{{Base: src}, {Base: src, Index: srcRow, Scale: 1}, {Base: src, Index: srcRow, Scale: 2}, {Base: src, Index: srcRow3, Scale: 1},
		{Base: src, Index: srcRow, Scale: 4}, {Base: src5}, {Base: src5, Index: srcRow, Scale: 1}, {Base: src5, Index: srcRow, Scale: 2}}

	Label("block")
	for half := range 2 { // columns 0 to 3, then 4 to 7
		// y[r] holds four elements of row r and, in its upper half, of row r+4; what follows transposes both halves.
		var y [4]reg.VecVirtual
		for r := range y {
			low := XMM()
			VMOVUPS(rows[r].Offset(16*half), low)
			y[r] = YMM()
			VINSERTF128(Imm(1), rows[r+4].Offset(16*half), low.AsY(), y[r])
		}
		var pairs [4]reg.VecVirtual // of rows 0 and 1: columns 0 and 1, then 2 and 3; then of rows 2 and 3
		for i := range 2 {
			pairs[2*i], pairs[2*i+1] = YMM(), YMM()
			VUNPCKLPS(y[2*i+1], y[2*i], pairs[2*i])
			VUNPCKHPS(y[2*i+1], y[2*i], pairs[2*i+1])
		}
		for column := range 4 {
			transposed := YMM()
			VSHUFPS(Imm([]uint64{0x44, 0xee}[column%2]), pairs[2+column/2], pairs[column/2], transposed)
			VMOVUPS(transposed, Mem{Base: dst})
			ADDQ(dstRow, dst)
		}
	}
	ADDQ(Imm(32), src)
	ADDQ(Imm(32), src5)
	DECQ(blocks)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}

// addAll writes the routine that adds up partial products.
func addAll() {
	TEXT("matMulAdd8", NOSPLIT, "func(dst, src *float32, srcRow, rows, blocks int)")
	Pragma("noescape")
	Doc("matMulAdd8 adds src[0][j], src[1][j] … src[rows-1][j], in this order, to dst[j] for j < 8·blocks, where rows > 0 and blocks",
		"> 0. Row r of src starts at srcRow·r, in bytes.")
	dst, src := Load(Param("dst"), GP64()), Load(Param("src"), GP64())
	srcRow, blocks := Load(Param("srcRow"), GP64()), Load(Param("blocks"), GP64())
	rows := parameter("rows")
	sum, at, left := YMM(), GP64(), GP64()
	Label("block")
	VMOVUPS(Mem{Base: dst}, sum)
	MOVQ(src, at)
	MOVQ(rows, left)
	Label("row")
	VADDPS(Mem{Base: at}, sum, sum)
	ADDQ(srcRow, at)
	DECQ(left)
	JNE(LabelRef("row"))
	VMOVUPS(sum, Mem{Base: dst})
	ADDQ(Imm(32), dst)
	ADDQ(Imm(32), src)
	DECQ(blocks)
	JNE(LabelRef("block"))
	VZEROUPPER()
	RET()
}
