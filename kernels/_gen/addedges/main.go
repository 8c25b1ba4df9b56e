// Command addedges writes the adding of rows to rows that lie anywhere.
package main

import (
	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/gnnstore/gnnstore/kernels/_gen/vector"
)

// line is what a prefetch brings, in float32s.
const line = 16

func main() {
	ConstraintExpr("amd64,!purego")
	for _, t := range vector.Targets {
		addEdges(t, "addEdges", false)
		addEdges(t, "addEdgesBy", true)
	}
	Generate()
}

// addEdges is a loop over edges, and in it one over columns that also fetches those of an edge to come.
func addEdges(t vector.Target, name string, weighs bool) {
	signature, times := "(dst, src *float32, cols, stride int, to, from *uint32, n, ahead int", ""
	if weighs {
		signature, times = signature+", w *float32", ", times w[e],"
	}
	t.Func(name, signature+")",
		"adds row from[e] of src"+times+" to row to[e] of dst, for n edges one after the other. Of either row these are the first",
		"cols columns of stride bytes. It prefetches those of the edge that is ahead: the lists have n+ahead edges.")
	dst, src, cols, n := vector.Param64("dst"), vector.Param64("src"), vector.Param64("cols"), vector.Param64("n")
	to, from := vector.Param64("to"), vector.Param64("from")
	var w reg.GPVirtual
	if weighs {
		w = vector.Param64("w")
	}
	t.Rows(n, func() {
		ahead := GP64()
		MOVQ(vector.Slot("ahead"), ahead)
		nextD, nextS := place(Mem{Base: to, Index: ahead, Scale: 4}, dst), place(Mem{Base: from, Index: ahead, Scale: 4}, src)
		d, s := place(Mem{Base: to}, dst), place(Mem{Base: from}, src)
		ADDQ(U8(4), to)
		ADDQ(U8(4), from)
		var by reg.VecVirtual
		if weighs {
			by = t.Vec()
			VBROADCASTSS(Mem{Base: w}, by)
			ADDQ(U8(4), w)
		}
		t.Each("vector", cols, 4, func(at vector.At) {
			if at.Off%line == 0 {
				PREFETCHT0(at.Float(nextD))
				PREFETCHT0(at.Float(nextS))
			}
			sum := at.Read(d)
			if weighs {
				VFMADD231PS(at.Read(s), by, sum)
			} else {
				VADDPS(at.Read(s), sum, sum)
			}
			at.Write(sum, d)
		})
	})
	vector.End()
}

// place is where the row whose number is at m begins.
func place(m Mem, base reg.GPVirtual) reg.GPVirtual {
	at := GP64()
	MOVL(m, at.As32())
	IMULQ(vector.Slot("stride"), at)
	ADDQ(base, at)
	return at
}
