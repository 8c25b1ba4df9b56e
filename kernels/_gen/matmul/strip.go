package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine is what the strips of one kernel set are made of.
type machine struct {
	set       string // as in matMulStripAVX512x2
	rows      int    // of a tile: what the registers beside two vectors of b and two elements of a hold, at two vectors a row
	lanes     int    // of a vector
	registers []reg.VecPhysical
}

var (
	avx512 = machine{"AVX512", 14, 16, []reg.VecPhysical{
		reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
		reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
	}}
	avx2 = machine{"AVX2", 6, 8, []reg.VecPhysical{
		reg.Y0, reg.Y1, reg.Y2, reg.Y3, reg.Y4, reg.Y5, reg.Y6, reg.Y7, reg.Y8, reg.Y9, reg.Y10, reg.Y11, reg.Y12, reg.Y13, reg.Y14, reg.Y15,
	}}
)

// strip is one routine in the making.
type strip struct {
	machine
	vectors int // across: two, or one of which some lanes may be no columns

	dst, dstRow, a, aRow, aRow3, aStep, bStep, ahead, aheadStep reg.GPVirtual
	aTile, b, cols, k, add                                      Mem // parameters that are read where they are used

	element, vector, sum []reg.VecPhysical // of a, in all lanes; of b; of dst, row by row
	mask                 reg.VecPhysical   // AVX2's lanes that are columns, where vectors is 1; AVX-512 has them in K1
}

// strip writes the routine for strips of this many vectors.
func (m machine) strip(vectors int) {
	columns := fmt.Sprintf("cols = %d", vectors*m.lanes)
	if vectors == 1 {
		columns = fmt.Sprintf("cols ≤ %d", m.lanes)
	}
	name := fmt.Sprintf("matMulStrip%sx%d", m.set, vectors)
	TEXT(name, NOSPLIT, "func(dst *float32, dstRow int, a *float32, aRow, aStep, aTile int, b *float32, bStep int, "+
		"ahead *float32, aheadStep, rows, cols, k int, add bool)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes dst[i][j] = Σ a[i][l]·b[l][j], or += with add, for i < rows, j < cols, l < k, where %s", name, columns),
		fmt.Sprintf("and k > 0. Row i of dst starts at dstRow·i, row l of b at bStep·l. a[i][l] is at aTile·(i/%d) + aRow·(i%%%d) + aStep·l. For", m.rows, m.rows),
		fmt.Sprintf("every %d rows and every l, a line at ahead is prefetched, and ahead moves by aheadStep. All distances are in bytes.", m.rows))
	s := strip{machine: m, vectors: vectors}
	s.element, s.vector, s.sum = m.registers[:2], m.registers[2:2+vectors], m.registers[4:]
	s.dst, s.dstRow, s.ahead, s.aheadStep = GP64(), GP64(), GP64(), GP64()
	s.a, s.aRow, s.aRow3, s.aStep, s.bStep = GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("dst"), s.dst)
	Load(Param("dstRow"), s.dstRow)
	Load(Param("a"), s.a)
	Load(Param("aRow"), s.aRow)
	Load(Param("aStep"), s.aStep)
	Load(Param("bStep"), s.bStep)
	Load(Param("ahead"), s.ahead)
	Load(Param("aheadStep"), s.aheadStep)
	LEAQ(Mem{Base: s.aRow, Index: s.aRow, Scale: 2}, s.aRow3)
	s.aTile, s.b, s.k, s.add = parameter("aTile"), parameter("b"), parameter("k"), parameter("add")
	if vectors == 1 {
		s.cols = parameter("cols")
		s.mask = m.registers[3]
		s.setMask()
	}
	rows := GP64()
	Load(Param("rows"), rows)

	Label("tiles")
	CMPQ(rows, Imm(uint64(m.rows)))
	JLT(LabelRef("rest"))
	s.tile(m.rows)
	ADDQ(s.aTile, s.a)
	SUBQ(Imm(uint64(m.rows)), rows)
	JMP(LabelRef("tiles"))
	Label("rest")
	for r := m.rows - 1; r > 0; r-- {
		CMPQ(rows, Imm(uint64(r)))
		JEQ(LabelRef(fmt.Sprintf("rest%d", r)))
	}
	JMP(LabelRef("done"))
	for r := m.rows - 1; r > 0; r-- {
		Label(fmt.Sprintf("rest%d", r))
		s.tile(r)
		JMP(LabelRef("done"))
	}
	Label("done")
	VZEROUPPER()
	RET()
}

func parameter(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// setMask finds the lanes that are columns.
func (s *strip) setMask() {
	if s.lanes == 16 {
		MOVQ(s.cols, reg.RCX)
		bits := GP32()
		MOVL(U32(1), bits)
		SHLL(reg.CL, bits)
		DECL(bits)
		KMOVW(bits, reg.K1)
		return
	}
	lanes, cols := GP64(), GP64()
	LEAQ(laneMasks, lanes)
	MOVQ(s.cols, cols)
	SHLQ(Imm(2), cols)
	SUBQ(cols, lanes)
	VMOVUPS(Mem{Base: lanes, Disp: 32}, s.mask)
}

// laneMasks are eight dwords of ones, then eight of zeros: the mask for c columns starts 8-c dwords in.
var laneMasks = func() Mem {
	table := GLOBL("matMulLaneMasks", attributes)
	for i := range 8 {
		bits := uint64(0)
		if i < 4 {
			bits = 1<<64 - 1
		}
		DATA(8*i, U64(bits))
	}
	return table
}()

// tile multiplies some rows of a, and moves dst past them.
func (s *strip) tile(rows int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, rows) }
	for _, sum := range s.sum[:rows*s.vectors] {
		if s.lanes == 16 {
			VPXORD(sum, sum, sum)
		} else {
			VXORPS(sum, sum, sum)
		}
	}
	// The tile of dst is wanted when the sums are done, which leaves its lines time to arrive.
	row := GP64()
	MOVQ(s.dst, row)
	for r := range rows {
		for v := 0; v < s.vectors*s.lanes; v += 16 {
			PREFETCHT0(Mem{Base: row, Disp: v * 4})
		}
		if r < rows-1 {
			ADDQ(s.dstRow, row)
		}
	}
	// One address reaches five rows: those at 0, 1, 2 and 4 times aRow, and at aRow3.
	var bases []reg.GPVirtual
	for r := 0; r < rows; r += 5 {
		base := GP64()
		if r == 0 {
			MOVQ(s.a, base)
		} else {
			LEAQ(Mem{Base: bases[len(bases)-1], Index: s.aRow, Scale: 4}, base)
			ADDQ(s.aRow, base)
		}
		bases = append(bases, base)
	}
	b, left := GP64(), GP64()
	MOVQ(s.b, b)
	MOVQ(s.k, left)

	Label(label("step"))
	for v := range s.vectors {
		s.load(s.at(b, v), s.vector[v])
	}
	for r := range rows {
		at := Mem{Base: bases[r/5]}
		switch r % 5 {
		case 1, 2, 4:
			at.Index, at.Scale = s.aRow, uint8(r%5)
		case 3:
			at.Index, at.Scale = s.aRow3, 1
		}
		element := s.element[r%2]
		VBROADCASTSS(at, element)
		for v := range s.vectors {
			VFMADD231PS(s.vector[v], element, s.sum[r*s.vectors+v])
		}
	}
	for _, base := range bases {
		ADDQ(s.aStep, base)
	}
	ADDQ(s.bStep, b)
	PREFETCHT0(Mem{Base: s.ahead})
	ADDQ(s.aheadStep, s.ahead)
	DECQ(left)
	JNE(LabelRef(label("step")))

	CMPB(s.add, Imm(0))
	JNE(LabelRef(label("add")))
	s.store(rows, false)
	JMP(LabelRef(label("stored")))
	Label(label("add"))
	s.store(rows, true)
	Label(label("stored"))
}

func (s *strip) at(base reg.Register, vector int) Mem {
	return Mem{Base: base, Disp: vector * s.lanes * 4}
}

// load reads the lanes that are columns.
func (s *strip) load(from Mem, to reg.VecPhysical) {
	switch {
	case s.vectors == 2:
		VMOVUPS(from, to)
	case s.lanes == 16:
		VMOVUPS_Z(from, reg.K1, to)
	default:
		VMASKMOVPS(from, s.mask, to)
	}
}

// store writes the sums, or adds them, to the lanes that are columns.
func (s *strip) store(rows int, add bool) {
	for r := range rows {
		for v := range s.vectors {
			sum, at := s.sum[r*s.vectors+v], s.at(s.dst, v)
			if add {
				s.load(at, s.vector[v])
				VADDPS(s.vector[v], sum, sum)
			}
			switch {
			case s.vectors == 2:
				VMOVUPS(sum, at)
			case s.lanes == 16:
				VMOVUPS(sum, reg.K1, at)
			default:
				VMASKMOVPS(sum, s.mask, at)
			}
		}
		ADDQ(s.dstRow, s.dst)
	}
}
