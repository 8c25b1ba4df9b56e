package vector

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// List loads the first entry of list i, and the entry behind its last, from the arrays that the
// parameters start and end point to. If the list does not lie within the number of entries in the
// parameter edges, it jumps to the label of ReturnBad. It destroys t.
func List(i, entry, end, t reg.GPVirtual) {
	MOVQ(Slot("start"), t)
	MOVL(Mem{Base: t, Index: i, Scale: 4}, entry.As32())
	MOVQ(Slot("end"), t)
	MOVL(Mem{Base: t, Index: i, Scale: 4}, end.As32())
	CMPQ(entry, end)
	JHI(LabelRef("bad"))
	CMPQ(end, Slot("edges"))
	JHI(LabelRef("bad"))
}

// ReturnBad makes the function return 1 from the label bad on.
func ReturnBad() {
	Label("bad")
	flag := GP64()
	MOVQ(U32(1), flag)
	Store(flag, ReturnIndex(0))
	End()
}

// ReturnGood makes the function return 0.
func ReturnGood() {
	flag := GP64()
	XORQ(flag, flag)
	Store(flag, ReturnIndex(0))
	End()
}
