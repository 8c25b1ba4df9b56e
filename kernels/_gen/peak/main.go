// Command peak writes loops that multiply and add in registers and do nothing else: what bounds every product of matrices.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// sums are added to in turn, none of which waits for another: more than the latency of an instruction, 4 or 5 cycles,
// times the two that start in one. They and the factor fit in the 16 registers of AVX2.
const sums = 12

func main() {
	vector.Write(func(t vector.Target) {
		t.Func("peak", "(n int)", "multiplies and adds n times 12 vectors.")
		n := vector.Param64("n")
		factor, acc := t.Zero(), t.Vecs(sums)
		for _, a := range acc {
			VXORPS(a, a, a)
		}
		Label("loop")
		for _, a := range acc {
			VFMADD231PS(factor, factor, a)
		}
		DECQ(n)
		JNZ(LabelRef("loop"))
		vector.End()
	})
}
