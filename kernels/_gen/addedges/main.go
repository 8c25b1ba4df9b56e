// Command addedges writes the adding of rows to rows that lie anywhere.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// lineBytes is what a prefetch brings.
const lineBytes = 64

func main() {
	vector.Write(func(t vector.Target) {
		addEdges(t, "addEdges", false, false)
		addEdges(t, "addEdgesBy", true, false)
		addEdges(t, "addEdgesHalf", false, true)
		addEdges(t, "addEdgesHalfBy", true, true)
	})
}

// addEdges is a loop over edges, and in it one over columns that also fetches those of an edge to come. With half, rows of src are float16,
// and for AVX2, which has no mask for them, whole vectors.
func addEdges(t vector.Target, name string, weighs, half bool) {
	elem, times, whole := "float32", "", ""
	if half {
		elem = "uint16"
	}
	if half && !t.Wide() {
		whole = " cols is a multiple of 8."
	}
	signature := "(dst *float32, src *" + elem + ", cols, stride int, to, from *uint32, n, ahead int"
	if weighs {
		signature, times = signature+", w *float32", ", times w[e],"
	}
	of := ""
	if half {
		of = ", half of that in src"
	}
	t.Func(name, signature+")",
		"adds row from[e] of src"+times+" to row to[e] of dst, for n edges one after the other. Of either row these are the first",
		"cols columns of stride bytes"+of+". It prefetches those of the edge that is ahead: the lists have n+ahead edges."+whole)
	dst, src, cols, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("cols"), vector.Param64("n")
	to, from := vector.Param64("to"), vector.Param64("from")
	var w reg.GPVirtual
	if weighs {
		w = vector.Param64("w")
	}
	t.Rows(n, func() {
		ahead := GP64()
		MOVQ(vector.Slot("ahead"), ahead)
		nextD, nextS := place(Mem{Base: to, Index: ahead, Scale: 4}, dst, false), place(Mem{Base: from, Index: ahead, Scale: 4}, src, half)
		d, s := place(Mem{Base: to}, dst, false), place(Mem{Base: from}, src, half)
		ADDQ(U8(4), to)
		ADDQ(U8(4), from)
		var by reg.VecVirtual
		if weighs {
			by = t.Vec()
			VBROADCASTSS(Mem{Base: w}, by)
			ADDQ(U8(4), w)
		}
		body := func(at vector.At) {
			if 4*at.Off%lineBytes == 0 {
				PREFETCHT0(at.Float(nextD))
			}
			sum := at.Read(d)
			var x reg.VecVirtual
			if half {
				if 2*at.Off%lineBytes == 0 {
					PREFETCHT0(at.Half(nextS))
				}
				x = t.Vec()
				t.LoadHalf(at.Half(s), at.Mask, x)
			} else {
				if 4*at.Off%lineBytes == 0 {
					PREFETCHT0(at.Float(nextS))
				}
				x = at.Read(s)
			}
			if weighs {
				VFMADD231PS(x, by, sum)
			} else {
				VADDPS(x, sum, sum)
			}
			at.Write(sum, d)
		}
		if half && !t.Wide() {
			t.Whole("vector", cols, 4, body)
		} else {
			t.Each("vector", cols, 4, body)
		}
	})
	vector.End()
}

// place is where the row whose number is at m begins, in a table of stride bytes a row, or of half as many.
func place(m Mem, base reg.GPVirtual, half bool) reg.GPVirtual {
	at := GP64()
	MOVL(m, at.As32())
	IMULQ(vector.Slot("stride"), at)
	if half {
		SHRQ(U8(1), at)
	}
	ADDQ(base, at)
	return at
}
