package interp

import "math/bits"

// The functions of this file apply a function of one lane to all lanes of an instruction's mask.
// The common case, all 32 lanes, has a loop without a test.

func (c *compiler) unary(d, a int32, f func(a uint64) uint64) bool {
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.has(m, a) {
			return
		}
		w.defined[d] |= m
		to, x := &w.regs[d], &w.regs[a]
		if m == allLanes {
			for l := range to {
				to[l] = f(x[l])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			to[l] = f(x[l])
		}
	})
}

func (c *compiler) binary(d, a, b int32, f func(a, b uint64) uint64) bool {
	return c.plain(func(w *warp) {
		m := w.mask
		if m&^(w.defined[a]&w.defined[b]) != 0 && !(w.has(m, a) && w.has(m, b)) {
			return
		}
		w.defined[d] |= m
		to, x, y := &w.regs[d], &w.regs[a], &w.regs[b]
		if m == allLanes {
			for l := range to {
				to[l] = f(x[l], y[l])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			to[l] = f(x[l], y[l])
		}
	})
}

func (c *compiler) ternary(d, a, b, e int32, f func(a, b, c uint64) uint64) bool {
	return c.plain(func(w *warp) {
		m := w.mask
		if m&^(w.defined[a]&w.defined[b]&w.defined[e]) != 0 && !(w.has(m, a) && w.has(m, b) && w.has(m, e)) {
			return
		}
		w.defined[d] |= m
		to, x, y, z := &w.regs[d], &w.regs[a], &w.regs[b], &w.regs[e]
		if m == allLanes {
			for l := range to {
				to[l] = f(x[l], y[l], z[l])
			}
			return
		}
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			to[l] = f(x[l], y[l], z[l])
		}
	})
}

// multiplyAdd32 is ternary for fma.rn.f32, the most frequent instruction of a product of matrices.
func (c *compiler) multiplyAdd32(d, a, b, e int32) bool {
	return c.plain(func(w *warp) {
		m := w.mask
		if m&^(w.defined[a]&w.defined[b]&w.defined[e]) != 0 && !(w.has(m, a) && w.has(m, b) && w.has(m, e)) {
			return
		}
		w.defined[d] |= m
		to, x, y, z := &w.regs[d], &w.regs[a], &w.regs[b], &w.regs[e]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			to[l] = fma32(x[l], y[l], z[l])
		}
	})
}

// has reports whether all lanes of m have a value in slot s, and else fails.
func (w *warp) has(m uint32, s int32) bool {
	if missing := m &^ w.defined[s]; missing != 0 {
		w.undefined(missing, s)
		return false
	}
	return true
}
