// Command rownorms writes the Euclidean norms of rows.
package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// together is how many rows are summed side by side: a sum is a chain of additions of four cycles each, and there is one to a row.
const together = 4

func main() {
	ConstraintExpr("amd64,!purego")
	TEXT("rowNormsAVX2", NOSPLIT, "func(dst, src *float32, rows, cols int)")
	Pragma("noescape")
	Doc("rowNormsAVX2 sets each of rows elements of dst, a multiple of 4, to the norm of a row of src. A product of two float32s has all its",
		"bits in float64, so that multiplying and adding at once rounds as one after the other does.")
	dst, src, rows, cols := vector.Param64("dst"), vector.Param64("src"), vector.Param64("rows"), vector.Param64("cols")
	vectors, rest := GP64(), GP64()
	MOVQ(cols, vectors)
	SHRQ(U8(2), vectors)
	MOVQ(cols, rest)
	ANDQ(U8(3), rest)

	Label("rows")
	at := []reg.GPVirtual{src}
	var sums []reg.VecVirtual
	for i := range together {
		if i > 0 {
			next := GP64()
			LEAQ(Mem{Base: at[i-1], Index: cols, Scale: 4}, next)
			at = append(at, next)
		}
		sum := YMM()
		VXORPD(sum, sum, sum)
		sums = append(sums, sum)
	}
	left := GP64()
	each := func(label string, count reg.GPVirtual, bytes int, add func(i int)) {
		MOVQ(count, left)
		TESTQ(left, left)
		JZ(LabelRef(label + "Done"))
		Label(label)
		for i := range at {
			add(i)
			ADDQ(U8(bytes), at[i])
		}
		DECQ(left)
		JNZ(LabelRef(label))
		Label(label + "Done")
	}
	each("four", vectors, 16, func(i int) {
		x := YMM()
		VCVTPS2PD(Mem{Base: at[i]}, x)
		VFMADD231PD(x, x, sums[i])
	})
	// Lanes 0 and 1 and lanes 2 and 3 apart: what is left of a row goes to lane 0, by instructions that clear the upper two.
	var upper []reg.VecVirtual
	for i := range at {
		u := XMM()
		VEXTRACTF128(U8(1), sums[i], u)
		upper = append(upper, u)
	}
	each("one", rest, 4, func(i int) {
		x := XMM()
		VXORPS(x, x, x)
		VCVTSS2SD(Mem{Base: at[i]}, x, x)
		VFMADD231SD(x, x, sums[i].AsX())
	})
	for i := range at {
		low := sums[i].AsX()
		VHADDPD(low, low, low)
		VHADDPD(upper[i], upper[i], upper[i])
		VADDSD(upper[i], low, low)
		VSQRTSD(low, low, low)
		VCVTSD2SS(low, low, low)
		VMOVSS(low, Mem{Base: dst, Disp: 4 * i})
	}
	Comment(fmt.Sprintf("The last row of %d ends where the next one begins.", together))
	MOVQ(at[together-1], src)
	ADDQ(U8(4*together), dst)
	SUBQ(U8(together), rows)
	JNZ(LabelRef("rows"))
	vector.End()
	Generate()
}
