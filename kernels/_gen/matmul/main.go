// Matmul generates the inner loops of kernels.CPU.MatMul, of the kernel sets avx512 and avx2; ../../generate.go runs it.
//
// A strip is some rows of a product, as wide as one or two vectors. It is computed in tiles, whose sums stay in registers
// while the operands are read where they lie: the left one an element at a time, the right one a vector at a time. How
// matrices are cut into strips is in ../../matmul_strips.go.
package main

import (
	"github.com/mmcloughlin/avo/attr"
	. "github.com/mmcloughlin/avo/build"
)

const attributes = attr.RODATA | attr.NOPTR

func main() {
	ConstraintExpr("amd64,!purego")
	for _, m := range []machine{avx512, avx2} {
		m.strip(2)
		m.strip(1)
	}
	pack()
	addAll()
	Generate()
}
