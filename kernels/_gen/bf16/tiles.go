package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Tiles of the routines of AMX: four of sums, two of a, two of b.
func sumTile(row, col int) tile { return tile(2*row + col) }
func aTile(row int) tile        { return tile(4 + row) }
func bTile(col int) tile        { return tile(6 + col) }

// tiles writes the routine of AMX that computes blocks of so many tiles down and across.
func tiles(down, across int) {
	function(fmt.Sprintf("tilePanelsAMX%dx%d", down, across),
		"(config *[64]byte, dst *float32, dstRow int, a, b *uint16, panel, blocks, panels, steps int, add bool)",
		"computes dst = a·b, or += with add, for panels of columns, 32 apart, and blocks of",
		fmt.Sprintf("rows, %d apart. config has the rows and columns of tiles: 0 to 3 are the sums of a block, 4 and 5 rows of a, 6 and 7", 16*down),
		"columns of b. The inner dimension is 32 times steps. blocks, panels, steps > 0. Panels of b start panel bytes apart, and their rows",
		"128 bytes. Rows of dst start dstRow bytes apart. a has 32 rows of 64 bytes for each block and step.")
	dst, dstRow, a, aRow, b, bRow := reg.RBX, reg.RCX, reg.RDX, reg.RSI, reg.RDI, reg.R8
	left, dstLow, blocks, panels, row := reg.R9, reg.R11, reg.R12, reg.R13, reg.RAX
	Load(Param("config"), reg.RAX)
	configure(reg.RAX)
	locals := AllocLocal(16)
	dstPanel, bPanel := locals, locals.Offset(8)
	Load(Param("dst"), dst)
	Load(Param("dstRow"), dstRow)
	Load(Param("b"), b)
	Load(Param("panels"), panels)
	MOVQ(U32(pairRow), bRow)
	MOVQ(U32(64), aRow)
	MOVQ(b, bPanel)
	Label("panel")
	MOVQ(dst, dstPanel)
	Load(Param("a"), a)
	Load(Param("blocks"), blocks)
	Label("block")
	far := func(base, row, to reg.GPPhysical) { // 16 rows further
		MOVQ(row, to)
		SHLQ(Imm(4), to)
		ADDQ(base, to)
	}
	if down == 2 {
		far(dst, dstRow, dstLow)
	}
	eachSum := func(f func(t tile, base reg.GPPhysical, at int)) {
		for r := range down {
			for c := range across {
				f(sumTile(r, c), []reg.GPPhysical{dst, dstLow}[r], 64*c)
			}
		}
	}
	CMPB(parameter("add"), Imm(0))
	JNE(LabelRef("add"))
	for r := range down { // dst is wanted when the sums are done
		MOVQ([]reg.GPPhysical{dst, dstLow}[r], row)
		for i := range 16 {
			for c := range across {
				PREFETCHT0(Mem{Base: row, Disp: 64 * c})
			}
			if i < 15 {
				ADDQ(dstRow, row)
			}
		}
	}
	eachSum(func(t tile, _ reg.GPPhysical, _ int) { zero(t) })
	JMP(LabelRef("start"))
	Label("add")
	eachSum(func(t tile, base reg.GPPhysical, at int) { load(t, base, at, dstRow) })
	Label("start")
	MOVQ(bPanel, b)
	Load(Param("steps"), left)
	Label("step")
	for c := range across {
		load(bTile(c), b, 64*c, bRow)
	}
	for r := range down {
		load(aTile(r), a, 1024*r, aRow)
		for c := range across {
			multiply(aTile(r), bTile(c), sumTile(r, c))
		}
	}
	ADDQ(U32(32*64), a)
	ADDQ(U32(16*pairRow), b)
	DECQ(left)
	JNZ(LabelRef("step"))
	eachSum(func(t tile, base reg.GPPhysical, at int) { store(t, base, at, dstRow) })
	for range down { // to the next block
		far(dst, dstRow, left)
		MOVQ(left, dst)
	}
	DECQ(blocks)
	JNZ(LabelRef("block"))
	MOVQ(dstPanel, dst)
	ADDQ(Imm(pairRow), dst)
	MOVQ(bPanel, b)
	ADDQ(parameter("panel"), b)
	MOVQ(b, bPanel)
	DECQ(panels)
	JNZ(LabelRef("panel"))
	release()
	RET()
}
