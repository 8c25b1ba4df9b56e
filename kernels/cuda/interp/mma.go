package interp

import "math"

// multiplyMatrices compiles mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32: D = A·B + C of a
// warp, where A is 16×8, B is 8×8, and C and D are 16×8. The lanes hold the elements as the PTX
// ISA draws them ("Matrix Fragments for mma.m16n8k8"): with row = lane/4 and col = lane%4,
//
//	A  a0 (row, col)    a1 (row+8, col)    a2 (row, col+4)      a3 (row+8, col+4)
//	B  b0 (col, row)    b1 (col+4, row)
//	C  c0 (row, 2·col)  c1 (row, 2·col+1)  c2 (row+8, 2·col)    c3 (row+8, 2·col+1)
//
// Operands lose the 13 bits that tf32 has not. Sums are made in float64 and rounded once. A device
// rounds more often, in an order that is not specified, so bits may differ.
func (c *compiler) multiplyMatrices(form string) bool {
	args := c.s.args
	if form != "sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32" || len(args) != 4 {
		return false
	}
	var slots [4][]int32
	for i, n := range []int{4, 4, 2, 4} {
		if args[i].kind != argVector || len(args[i].parts) != n {
			return false
		}
		for _, part := range args[i].parts {
			if i == 0 {
				slots[i] = append(slots[i], c.register(part, f32, false))
			} else {
				slots[i] = append(slots[i], c.source(part, b32))
			}
		}
	}
	all := argument{kind: argImmediate, value: uint64(allLanes)}
	return c.meet(all, func(w *warp) {
		if w.mask != allLanes {
			w.fail(ErrDivergent, -1, "a warp of fewer than 32 lanes")
			return
		}
		for _, s := range slots[1:] {
			for _, a := range s {
				if !w.has(allLanes, a) {
					return
				}
			}
		}
		var a [16][8]float64
		var b [8][8]float64
		var sum [16][8]float64
		tf32 := func(s int32, l int) float64 { return float64(float32of(w.regs[s][l] &^ 0x1fff)) }
		for l := range warpLanes {
			row, col := l/4, l%4
			for i := range 4 {
				a[row+i%2*8][col+i/2*4] = tf32(slots[1][i], l)
				sum[row+i/2*8][2*col+i%2] = float64(float32of(w.regs[slots[3][i]][l]))
			}
			for i := range 2 {
				b[col+4*i][row] = tf32(slots[2][i], l)
			}
		}
		for i := range a {
			for j := range b[0] {
				for k := range b {
					sum[i][j] += a[i][k] * b[k][j]
				}
			}
		}
		for i, d := range slots[0] {
			w.defined[d] = allLanes
			for l := range warpLanes {
				w.regs[d][l] = bits32(float32(sum[l/4+i/2*8][2*(l%4)+i%2]))
			}
		}
	})
}

// roundTF32 is cvt.rna.tf32.f32: 10 bits of mantissa, to the nearest, ties away from zero.
func roundTF32(v uint64) uint64 {
	if f := float32of(v); f != f || math.IsInf(float64(f), 0) {
		return bits32(f)
	}
	return (v + 0x1000) &^ 0x1fff
}
