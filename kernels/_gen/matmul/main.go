// Matmul generates the inner loops of kernels.CPU.MatMul, of the kernel sets avx512 and avx2; ../generate.go runs it.
//
// A strip is a few rows of a product, as wide as two vectors: the operand to its left is read where it lies, one element
// at a time, and the one above it from a panel, that is a copy in which what the strip reads next lies next. The product of
// a tile of it stays in registers. How matrices are cut into strips is in ../matmul_blocked.go.
package main

import . "github.com/mmcloughlin/avo/build"

func main() {
	ConstraintExpr("amd64,!purego")
	for _, m := range []machine{avx512, avx2} {
		m.strip(2)
		m.strip(1)
	}
	Generate()
}
