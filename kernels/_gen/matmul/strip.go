package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// machine is what the strips of one kernel set are made of.
type machine struct {
	set   string // as in matMulStripAVX512x2
	rows  int    // of a tile: as many as leave registers for two vectors of the panel and two elements of the left operand
	lanes int    // of a vector
	all   []reg.VecPhysical
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
	vectors                  int // across
	dst, dstRow              reg.GPVirtual
	a, aRow, aRow3, aStep    reg.GPVirtual
	bStep                    reg.GPVirtual
	mask                     []reg.VecPhysical // AVX2
	element                  []reg.VecPhysical // of the left operand, in all lanes
	panel                    []reg.VecPhysical
	sum                      []reg.VecPhysical // row by row
	add, cols, aTile, b, len Mem               // parameters, read where they are used
}

// strip writes the routine for strips that are vectors wide.
func (m machine) strip(vectors int) {
	width := vectors * m.lanes
	name := fmt.Sprintf("matMulStrip%sx%d", m.set, vectors)
	TEXT(name, NOSPLIT, "func(dst *float32, dstRow int, a *float32, aRow, aStep, aTile int, b *float32, bStep int, rows, cols, k int, add bool)")
	Pragma("noescape")
	Doc(fmt.Sprintf("%s computes dst[i][j] = Σ a[i][l]·b[l][j], or += with add, for i < rows, j < cols ≤ %d, l < k; k > 0.", name, width),
		fmt.Sprintf("Row i of a starts at aTile·(i/%d) + aRow·(i%%%d), row i of dst at dstRow·i, row l of b, of which", m.rows, m.rows),
		fmt.Sprintf("%d elements are read, at bStep·l; the elements of a row of a are aStep apart. All distances are in bytes.", width))
	s := strip{machine: m, vectors: vectors}
	s.element, s.panel, s.sum = m.all[:2], m.all[2:2+vectors], m.all[4:]
	s.dst, s.dstRow = GP64(), GP64()
	s.a, s.aRow, s.aRow3, s.aStep, s.bStep = GP64(), GP64(), GP64(), GP64(), GP64()
	Load(Param("dst"), s.dst)
	Load(Param("dstRow"), s.dstRow)
	Load(Param("a"), s.a)
	Load(Param("aRow"), s.aRow)
	Load(Param("aStep"), s.aStep)
	Load(Param("bStep"), s.bStep)
	LEAQ(Mem{Base: s.aRow, Index: s.aRow, Scale: 2}, s.aRow3)
	s.add, s.cols, s.aTile, s.b, s.len = parameter("add"), parameter("cols"), parameter("aTile"), parameter("b"), parameter("k")
	if m.lanes == 16 {
		s.laneMasks()
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

// laneMasks sets K1 and, for two vectors, K2 to the lanes of columns that exist.
func (s *strip) laneMasks() {
	MOVQ(s.cols, reg.RCX)
	bits := GP64()
	MOVQ(U32(1), bits)
	SHLQ(reg.CL, bits)
	DECQ(bits)
	KMOVW(bits.As32(), reg.K1)
	if s.vectors == 2 {
		SHRQ(Imm(16), bits)
		KMOVW(bits.As32(), reg.K2)
	}
}

// tile multiplies rows rows of the left operand and moves dst past them.
func (s *strip) tile(rows int) {
	label := func(name string) string { return fmt.Sprintf("%s%d", name, rows) }
	for _, v := range s.sum[:rows*s.vectors] {
		if s.lanes == 16 {
			VPXORD(v, v, v)
		} else {
			VXORPS(v, v, v)
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
	MOVQ(s.len, left)

	Label(label("step"))
	for v := range s.vectors {
		VMOVUPS(Mem{Base: b, Disp: v * s.lanes * 4}, s.panel[v])
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
			VFMADD231PS(s.panel[v], element, s.sum[r*s.vectors+v])
		}
	}
	for _, base := range bases {
		ADDQ(s.aStep, base)
	}
	ADDQ(s.bStep, b)
	DECQ(left)
	JNE(LabelRef(label("step")))

	if s.lanes == 16 {
		s.storeMasked512(rows, label)
	} else {
		s.store256(rows, label)
	}
}

// storeMasked512 writes the sums: a store under a full mask costs no more than one without.
func (s *strip) storeMasked512(rows int, label func(string) string) {
	masks := []reg.Register{reg.K1, reg.K2}
	store := func(add bool) {
		for r := range rows {
			for v := range s.vectors {
				sum, at := s.sum[r*s.vectors+v], Mem{Base: s.dst, Disp: v * s.lanes * 4}
				if add {
					VADDPS(at, sum, masks[v], sum)
				}
				VMOVUPS(sum, masks[v], at)
			}
			ADDQ(s.dstRow, s.dst)
		}
	}
	s.either(store, label)
}

// either writes store twice, and the choice between the two.
func (s *strip) either(store func(add bool), label func(string) string) {
	CMPB(s.add, Imm(0))
	JNE(LabelRef(label("add")))
	store(false)
	JMP(LabelRef(label("stored")))
	Label(label("add"))
	store(true)
	Label(label("stored"))
}

// store256 writes the sums, past the last full vector under a mask. A masked store is slow on some machines, so there is
// one only where a column is missing.
func (s *strip) store256(rows int, label func(string) string) {
	masks := s.element[:s.vectors] // idle by now, like the panel's registers
	CMPQ(s.cols, Imm(uint64(s.vectors*s.lanes)))
	JNE(LabelRef(label("narrow")))
	s.either(func(add bool) {
		for r := range rows {
			for v := range s.vectors {
				sum, at := s.sum[r*s.vectors+v], Mem{Base: s.dst, Disp: v * s.lanes * 4}
				if add {
					VADDPS(at, sum, sum)
				}
				VMOVUPS(sum, at)
			}
			ADDQ(s.dstRow, s.dst)
		}
	}, label)
	JMP(LabelRef(label("wrote")))

	Label(label("narrow"))
	first := GP64()
	LEAQ(lanes, first)
	cols := GP64()
	MOVQ(s.cols, cols)
	SHLQ(Imm(2), cols)
	SUBQ(cols, first)
	for v := range s.vectors {
		VMOVUPS(Mem{Base: first, Disp: (v*s.lanes + 16) * 4}, masks[v])
	}
	s.either(func(add bool) {
		for r := range rows {
			for v := range s.vectors {
				sum, at := s.sum[r*s.vectors+v], Mem{Base: s.dst, Disp: v * s.lanes * 4}
				if add {
					VMASKMOVPS(at, masks[v], s.panel[v])
					VADDPS(s.panel[v], sum, sum)
				}
				VMASKMOVPS(sum, masks[v], at)
			}
			ADDQ(s.dstRow, s.dst)
		}
	}, func(name string) string { return label("narrow_" + name) })
	Label(label("wrote"))
}

// lanes are 16 dwords of ones, then 16 of zeros: c columns are the vectors that start 16-c dwords in.
var lanes = func() Mem {
	table := GLOBL("matMulLanes", attr.RODATA|attr.NOPTR)
	for i := range 32 {
		DATA(4*i, U32(0xffffffff*uint64(1-i/16)))
	}
	return table
}()
