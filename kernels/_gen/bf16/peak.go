package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// peaks writes loops that only multiply and add in registers. No product of matrices is faster.
func peaks() {
	const sums = 24 // more than the latency of an instruction, 6 cycles, times the one or two that start in one
	function("peakAVX512BF16", "(n int)", "multiplies and adds n times 24 vectors of pairs.")
	Load(Param("n"), reg.RAX)
	for i := range sums + 1 {
		VPXORD(z(i), z(i), z(i))
	}
	Label("loop")
	for i := range sums {
		dot(z(sums), z(sums), z(i))
	}
	DECQ(reg.RAX)
	JNZ(LabelRef("loop"))
	VZEROUPPER()
	RET()

	function("peakAMX", "(config *[64]byte, n int)", "multiplies and adds n times four tiles.")
	Load(Param("config"), reg.RAX)
	configure(reg.RAX)
	Load(Param("n"), reg.RAX)
	for t := range tile(8) {
		zero(t)
	}
	Label("loop")
	for r := range 2 {
		for c := range 2 {
			multiply(aTile(r), bTile(c), sumTile(r, c))
		}
	}
	DECQ(reg.RAX)
	JNZ(LabelRef("loop"))
	release()
	RET()
}
