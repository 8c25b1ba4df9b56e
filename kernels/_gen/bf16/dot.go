package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// dotRows is the rows of a tile. A row has two vectors of sums. The registers also hold two vectors
// of b and two pairs of a.
const dotRows = 14

// dots writes the routine of AVX512_BF16 for a panel of this many vectors.
func dots(vectors int) {
	function(fmt.Sprintf("dotPanelAVX512BF16x%d", vectors), "(dst *float32, dstRow int, a *uint16, aRow int, b *uint16, rows, cols, pairs int, add bool)",
		"computes dst[i][j] = Σ pairs of row i of a times pairs of column j of b, or +=",
		fmt.Sprintf("with add, for i < rows, j < cols ≤ %d. pairs > 0. A row of b has %d bytes; other rows are dstRow and aRow bytes apart.", 16*vectors, pairRow))
	d := dotter{vectors}
	Load(Param("dst"), d.dst())
	Load(Param("a"), d.a())
	Load(Param("aRow"), d.aRow())
	Load(Param("rows"), d.rows())
	Load(Param("cols"), reg.R9)
	maskColumns(reg.R9)
	LEAQ(Mem{Base: d.aRow(), Index: d.aRow(), Scale: 2}, d.aRow3())
	Label("tiles")
	CMPQ(d.rows(), Imm(dotRows))
	JLT(LabelRef("rest"))
	d.tile(dotRows)
	IMUL3Q(Imm(dotRows), d.aRow(), reg.RAX)
	ADDQ(reg.RAX, d.a())
	SUBQ(Imm(dotRows), d.rows())
	JMP(LabelRef("tiles"))
	Label("rest")
	for r := dotRows - 1; r > 0; r-- {
		CMPQ(d.rows(), Imm(uint64(r)))
		JEQ(LabelRef(fmt.Sprintf("rest%d", r)))
	}
	JMP(LabelRef("done"))
	for r := dotRows - 1; r > 0; r-- {
		Label(fmt.Sprintf("rest%d", r))
		d.tile(r)
		JMP(LabelRef("done"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

// dotter names the registers of such a routine.
type dotter struct{ vectors int }

func (dotter) dst() reg.GPPhysical    { return reg.RBX }
func (dotter) a() reg.GPPhysical      { return reg.RDX }
func (dotter) aRow() reg.GPPhysical   { return reg.RSI }
func (dotter) aRow3() reg.GPPhysical  { return reg.R8 }
func (dotter) b() reg.GPPhysical      { return reg.RDI }
func (dotter) left() reg.GPPhysical   { return reg.R12 }
func (dotter) rows() reg.GPPhysical   { return reg.R13 }
func (dotter) dstRow() reg.GPPhysical { return reg.RCX }

// sum is the vector of sums of a row.
func (d dotter) sum(row, v int) reg.VecPhysical { return z(4 + row*d.vectors + v) }

// tile multiplies some rows of a, and moves dst past them.
func (d dotter) tile(rows int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, rows) }
	masks := []reg.Register{reg.K1, reg.K2}
	Load(Param("dstRow"), d.dstRow())
	eachRow := func(f func(r, v int, at Mem)) {
		MOVQ(d.dst(), reg.RAX)
		for r := range rows {
			for v := range d.vectors {
				f(r, v, Mem{Base: reg.RAX, Disp: 64 * v})
			}
			if r < rows-1 {
				ADDQ(d.dstRow(), reg.RAX)
			}
		}
	}
	CMPB(parameter("add"), Imm(0))
	JNE(LabelRef(label("add")))
	eachRow(func(r, v int, at Mem) {
		PREFETCHT0(at) // the tile of dst is wanted when the sums are done
		VPXORD(d.sum(r, v), d.sum(r, v), d.sum(r, v))
	})
	JMP(LabelRef(label("start")))
	Label(label("add"))
	eachRow(func(r, v int, at Mem) { VMOVUPS_Z(at, masks[v], d.sum(r, v)) })
	Label(label("start"))
	// One address reaches five rows: those at 0, 1, 2 and 4 times aRow, and at aRow3.
	bases := []reg.GPPhysical{reg.R9, reg.R10, reg.R11}[:(rows+4)/5]
	for i, base := range bases {
		if i == 0 {
			MOVQ(d.a(), base)
		} else {
			LEAQ(Mem{Base: bases[i-1], Index: d.aRow(), Scale: 4}, base)
			ADDQ(d.aRow(), base)
		}
	}
	Load(Param("b"), d.b())
	Load(Param("pairs"), d.left())
	Label(label("step"))
	for v := range d.vectors {
		VMOVUPS(Mem{Base: d.b(), Disp: 64 * v}, z(2+v))
	}
	for r := range rows {
		at := Mem{Base: bases[r/5]}
		switch r % 5 {
		case 1, 2, 4:
			at.Index, at.Scale = d.aRow(), uint8(r%5)
		case 3:
			at.Index, at.Scale = d.aRow3(), 1
		}
		pair := z(r % 2)
		VPBROADCASTD(at, pair)
		for v := range d.vectors {
			dot(pair, z(2+v), d.sum(r, v))
		}
	}
	for _, base := range bases {
		ADDQ(Imm(4), base)
	}
	ADDQ(Imm(pairRow), d.b())
	DECQ(d.left())
	JNZ(LabelRef(label("step")))
	eachRow(func(r, v int, at Mem) { VMOVUPS(d.sum(r, v), masks[v], at) })
	ADDQ(d.dstRow(), reg.RAX)
	MOVQ(reg.RAX, d.dst())
}
