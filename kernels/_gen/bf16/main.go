// Command bf16 generates the products of matrices in bfloat16, of the kernel sets avx512bf16 and
// amx; ../../generate.go runs it. ../../matmul_bf16.go says what is rounded, how it is packed, and in
// which order it is added.
package main

import (
	"strings"
	"unicode/utf8"

	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

const (
	width      = 97 // columns of a line of documentation, behind its two slashes
	attributes = attr.RODATA | attr.NOPTR
	pairRow    = 128 // bytes of a row of pairs of a panel, which is 32 columns wide
)

func main() {
	ConstraintExpr("amd64,!purego")
	for _, half := range []bool{false, true} {
		roundRows(half)
		roundPairs(half)
		turnPairs(half)
	}
	turnRows()
	dots(2)
	dots(1)
	for _, shape := range [][2]int{{2, 2}, {2, 1}, {1, 2}, {1, 1}} {
		tiles(shape[0], shape[1])
	}
	peaks()
	Generate()
}

// z is a vector by its number.
func z(i int) reg.VecPhysical { return registers[i] }

var registers = []reg.VecPhysical{
	reg.Z0, reg.Z1, reg.Z2, reg.Z3, reg.Z4, reg.Z5, reg.Z6, reg.Z7, reg.Z8, reg.Z9, reg.Z10, reg.Z11, reg.Z12, reg.Z13, reg.Z14, reg.Z15,
	reg.Z16, reg.Z17, reg.Z18, reg.Z19, reg.Z20, reg.Z21, reg.Z22, reg.Z23, reg.Z24, reg.Z25, reg.Z26, reg.Z27, reg.Z28, reg.Z29, reg.Z30, reg.Z31,
}

// function begins a routine. doc is one text, which is broken into lines.
func function(name, signature string, doc ...string) {
	TEXT(name, NOSPLIT, "func"+signature)
	Pragma("noescape")
	line := name
	var lines []string
	for _, word := range strings.Fields(strings.Join(doc, " ")) {
		if utf8.RuneCountInString(line+" "+word) > width {
			lines, line = append(lines, line), word
			continue
		}
		line += " " + word
	}
	Doc(append(lines, line)...)
}

// parameter is where a parameter lies.
func parameter(name string) Mem {
	c, err := Param(name).Resolve()
	if err != nil {
		panic(err)
	}
	return c.Addr
}

// maskColumns sets K1 to the first 16 of count columns, and K2 to the next 16. It changes RAX and
// RCX.
func maskColumns(count reg.GPPhysical) {
	MOVQ(count, reg.RCX)
	MOVQ(U64(1), reg.RAX)
	SHLQ(reg.CL, reg.RAX)
	DECQ(reg.RAX)
	KMOVW(reg.EAX, reg.K1)
	SHRQ(Imm(16), reg.RAX)
	KMOVW(reg.EAX, reg.K2)
}
