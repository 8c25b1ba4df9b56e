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

// whole has the loop over 32 lanes of the most frequent instructions, which saves a call a lane.
var whole = map[string]func(to, x, y *values){}

func init() {
	loop := func(f func(to, x, y *values), names ...string) {
		for _, name := range names {
			whole[name] = f
		}
	}
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = uint64(uint32(x[l]) + uint32(y[l]))
		}
	}, "add.s32", "add.u32")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = x[l] + y[l]
		}
	}, "add.s64", "add.u64")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = x[l] & y[l]
		}
	}, "and.b32", "and.b64")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = x[l] | y[l]
		}
	}, "or.b32", "or.b64")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = x[l] ^ y[l]
		}
	}, "xor.b32", "xor.b64")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = x[l] * y[l] // of 32 bits each
		}
	}, "mul.wide.u32")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = bits32(float32of(x[l]) + float32of(y[l]))
		}
	}, "add.f32", "add.rn.f32")
	loop(func(to, x, y *values) {
		for l := range to {
			to[l] = bits32(float32of(x[l]) * float32of(y[l]))
		}
	}, "mul.f32", "mul.rn.f32")
}

func (c *compiler) binary(d, a, b int32, f func(a, b uint64) uint64) bool {
	all := whole[c.s.opcode]
	if all == nil {
		all = func(to, x, y *values) {
			for l := range to {
				to[l] = f(x[l], y[l])
			}
		}
	}
	return c.plain(func(w *warp) {
		m := w.mask
		if m&^(w.defined[a]&w.defined[b]) != 0 && !(w.has(m, a) && w.has(m, b)) {
			return
		}
		w.defined[d] |= m
		to, x, y := &w.regs[d], &w.regs[a], &w.regs[b]
		if m == allLanes {
			all(to, x, y)
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
