// Command copyrows writes the copying of rows that lie anywhere.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// line is what a prefetch brings, and what is copied at a time: two vectors of AVX2. Wider ones wait for memory just as long.
const line = 64

func main() {
	ConstraintExpr("amd64,!purego")
	TEXT("copyRowsAVX2", NOSPLIT, "func(dst, src *byte, moves *uint32, n, size, ahead int)")
	Pragma("noescape")
	Doc("copyRowsAVX2 copies n rows of size bytes, at least 64, by pairs of their numbers in src and dst,",
		"and prefetches those of the move that is ahead: the list of moves has n+ahead.")
	dst, src, moves, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("moves"), vector.Param64("n")
	size, ahead := vector.Param64("size"), vector.Param64("ahead")
	lines, rest := GP64(), GP64()
	MOVQ(size, lines)
	SHRQ(U8(6), lines)
	MOVQ(size, rest)
	ANDQ(U8(line-1), rest)

	Label("row")
	from, to := place(Mem{Base: moves}, src, size), place(Mem{Base: moves, Disp: 4}, dst, size)
	nextFrom := place(Mem{Base: moves, Index: ahead, Scale: 8}, src, size)
	nextTo := place(Mem{Base: moves, Index: ahead, Scale: 8, Disp: 4}, dst, size)
	ADDQ(U8(8), moves)
	left := GP64()
	MOVQ(lines, left)
	Label("line")
	PREFETCHT0(Mem{Base: nextFrom})
	PREFETCHT0(Mem{Base: nextTo})
	copyLine(Mem{Base: from}, Mem{Base: to})
	for _, at := range []reg.GPVirtual{from, to, nextFrom, nextTo} {
		ADDQ(U8(line), at)
	}
	DECQ(left)
	JNZ(LabelRef("line"))

	TESTQ(rest, rest) // of a row that is no multiple of lines the last one overlaps the one before
	JZ(LabelRef("whole"))
	PREFETCHT0(Mem{Base: nextFrom, Index: rest, Scale: 1, Disp: -1})
	PREFETCHT0(Mem{Base: nextTo, Index: rest, Scale: 1, Disp: -1})
	copyLine(Mem{Base: from, Index: rest, Scale: 1, Disp: -line}, Mem{Base: to, Index: rest, Scale: 1, Disp: -line})
	Label("whole")
	DECQ(n)
	JNZ(LabelRef("row"))
	vector.End()
	Generate()
}

// place is where the row whose number is at m begins.
func place(m Mem, base, size reg.GPVirtual) reg.GPVirtual {
	at := GP64()
	MOVL(m, at.As32())
	IMULQ(size, at)
	ADDQ(base, at)
	return at
}

func copyLine(from, to Mem) {
	a, b := YMM(), YMM()
	VMOVDQU(from, a)
	VMOVDQU(from.Offset(32), b)
	VMOVDQU(a, to)
	VMOVDQU(b, to.Offset(32))
}
