package main

import (
	. "github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/ir"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// Neither avo nor Go's assembler knows the instructions of AVX512_BF16 and AMX, so they are written
// as bytes. avo does not see the operands in them: a routine that has them names all its registers.

// Prefixes of opcodes, as VEX and EVEX number them.
const (
	prefixNone = iota
	prefix66
	prefixF3
	prefixF2
)

// emit writes bytes, with what they say as a comment.
func emit(say string, code ...byte) {
	Comment(say)
	for len(code) > 0 {
		directive, n := "BYTE", 1
		switch {
		case len(code) >= 4:
			directive, n = "LONG", 4
		case len(code) >= 2:
			directive, n = "WORD", 2
		}
		var word uint64
		for i, b := range code[:n] {
			word |= uint64(b) << (8 * i)
		}
		Instruction(&ir.Instruction{Opcode: directive, Operands: []Op{Imm(word)}})
		code = code[n:]
	}
}

// number is the number of a register in an instruction. avo has the same.
func number(r reg.Physical) byte { return byte(r.PhysicalIndex()) }

// evex encodes an instruction of three vectors of 512 bits in the map 0F38, W0: to, first, second.
func evex(say string, prefix, opcode byte, to, first, second reg.VecPhysical) {
	t, f, s := number(to), number(first), number(second)
	p0 := 0x02 | inverted(t, 3)<<7 | inverted(s, 4)<<6 | inverted(s, 3)<<5 | inverted(t, 4)<<4
	p1 := 0x04 | prefix | (^f&0xf)<<3
	p2 := 0x40 | inverted(f, 4)<<3
	emit(say, 0x62, p0, p1, p2, opcode, 0xc0|t&7<<3|s&7)
}

// inverted is bit i of a register's number, as VEX and EVEX store it.
func inverted(n byte, i uint) byte { return ^(n >> i) & 1 }

// dot is VDPBF16PS: it multiplies the pairs of bfloat16 in x and y, and adds both products of a pair
// to the float32 in sum.
func dot(x, y, sum reg.VecPhysical) { evex("VDPBF16PS sum, pairs, pairs", prefixF3, 0x52, sum, x, y) }

// narrow is VCVTNE2PS2BF16: rounds 16 float32 of low and 16 of high to the 32 bfloat16 of to.
func narrow(low, high, to reg.VecPhysical) {
	evex("VCVTNE2PS2BF16 high, low", prefixF2, 0x72, to, high, low)
}

// tile is a register of AMX.
type tile byte

// vex encodes an instruction of AMX: map 0F38, 128 bits, W0. bits are R, X and B of the prefix,
// inverted: the high bits of the operands' registers.
func vex(say string, prefix, opcode, third byte, bits byte, rest ...byte) {
	emit(say, append([]byte{0xc4, bits<<5 | 0x02, (^third&0xf)<<3 | prefix, opcode}, rest...)...)
}

const noBits = 7

// configure is LDTILECFG: takes rows and columns of the tiles from 64 bytes.
func configure(at reg.GPPhysical) {
	r := number(at)
	if r&7 == 4 || r&7 == 5 {
		panic("configure: this register wants a longer encoding")
	}
	vex("LDTILECFG", prefixNone, 0x49, 0, 6|inverted(r, 3), r&7)
}

// release is TILERELEASE.
func release() { vex("TILERELEASE", prefixNone, 0x49, 0, noBits, 0xc0) }

// zero is TILEZERO.
func zero(t tile) { vex("TILEZERO", prefixF2, 0x49, 0, noBits, 0xc0|byte(t)<<3) }

// load is TILELOADD: reads the rows of a tile, which start row bytes apart, from base+at on.
func load(t tile, base reg.GPPhysical, at int, row reg.GPPhysical) {
	move("TILELOADD", prefixF2, t, base, at, row)
}

// store is TILESTORED.
func store(t tile, base reg.GPPhysical, at int, row reg.GPPhysical) {
	move("TILESTORED", prefixF3, t, base, at, row)
}

func move(say string, prefix byte, t tile, base reg.GPPhysical, at int, row reg.GPPhysical) {
	b, r := number(base), number(row)
	if r == 4 {
		panic("move: the stack pointer is no index")
	}
	vex(say, prefix, 0x4b, 0, inverted(r, 3)<<1|inverted(b, 3)|4, 0x80|byte(t)<<3|4, r&7<<3|b&7, byte(at), byte(at>>8), 0, 0)
}

// multiply is TDPBF16PS: sum += x·y.
func multiply(x, y, sum tile) {
	vex("TDPBF16PS", prefixF3, 0x5c, byte(y), noBits, 0xc0|byte(sum)<<3|byte(x))
}
