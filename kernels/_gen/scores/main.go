// Command scores writes the products of rows that edges join: a destination's row stays in the first-level cache while the
// rows of its list come, and those named a few entries later are on their way from memory.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

func main() {
	vector.Write(edgeDot)
}

func edgeDot(t vector.Target) {
	t.Func("edgeDot", "(dst, q, k *float32, heads, width, rows int, start, end *uint32, n int, nbr *uint32, edges, ahead int, scale float32) (bad uint64)",
		"sets dst[e*heads+h], for the entries e of nbr[start[i]:end[i]] and every head h, to scale times the",
		"product of head h of q's row i and of k's row nbr[e]. A head has width columns, 1 at least.",
		"It stops and returns 1 at a list outside nbr[:edges] or a row outside k[:rows], which it does not read.",
		"It fetches rows that are named ahead entries later.")
	stride, last := AllocLocal(8), AllocLocal(8) // bytes of a row; the last entry of nbr
	width, t0 := vector.Param64("width"), vector.Param64("heads")
	IMULQ(width, t0)
	SHLQ(U8(2), t0)
	MOVQ(t0, stride)
	entry := vector.Param64("nbr")
	MOVQ(vector.Slot("edges"), t0)
	LEAQ(Mem{Base: entry, Index: t0, Scale: 4, Disp: -4}, t0)
	MOVQ(t0, last)
	own, i := vector.Param64("q"), GP64()
	XORQ(i, i)

	Label("list")
	CMPQ(i, vector.Slot("n"))
	JE(LabelRef("done"))
	end, base, dst := GP64(), GP64(), GP64()
	vector.List(i, entry, end, base)
	MOVQ(vector.Slot("heads"), dst)
	IMULQ(entry, dst)
	SHLQ(U8(2), dst)
	ADDQ(vector.Slot("dst"), dst)
	MOVQ(vector.Slot("nbr"), base)
	LEAQ(Mem{Base: base, Index: entry, Scale: 4}, entry)
	LEAQ(Mem{Base: base, Index: end, Scale: 4}, end)
	CMPQ(entry, end)
	JE(LabelRef("next"))

	Label("edge")
	ahead := vector.Param64("ahead")
	LEAQ(Mem{Base: entry, Index: ahead, Scale: 4}, ahead)
	CMPQ(ahead, last)
	CMOVQHI(last, ahead)
	MOVL(Mem{Base: ahead}, ahead.As32())
	IMULQ(stride, ahead)
	ADDQ(vector.Slot("k"), ahead)
	other, mine, head := GP64(), GP64(), GP64()
	MOVL(Mem{Base: entry}, other.As32())
	CMPQ(other, vector.Slot("rows"))
	JCC(LabelRef("bad"))
	IMULQ(stride, other)
	ADDQ(vector.Slot("k"), other)
	MOVQ(own, mine)
	MOVQ(vector.Slot("heads"), head)
	Label("head")
	// Two sums in turn: heads wait for nothing of each other, so that their additions overlap as well.
	product := t.Sum(t.Sums("dot", width, 2, func(at vector.At, sum reg.VecVirtual) {
		PREFETCHT1(at.Float(ahead))
		v := at.Read(mine)
		if at.Mask == nil {
			VFMADD231PS(at.Float(other), v, sum)
			return
		}
		VFMADD231PS(at.Read(other), v, sum)
	}))
	VMULSS(vector.Slot("scale"), product, product)
	VMOVSS(product, Mem{Base: dst})
	ADDQ(U8(4), dst)
	vector.Next(width, mine, other, ahead)
	DECQ(head)
	JNE(LabelRef("head"))
	ADDQ(U8(4), entry)
	CMPQ(entry, end)
	JNE(LabelRef("edge"))

	Label("next")
	ADDQ(stride, own)
	INCQ(i)
	JMP(LabelRef("list"))

	vector.ReturnBad()
	Label("done")
	vector.ReturnGood()
}
