package interp

import (
	"math/bits"
	"strings"
)

// unsignedNames has the second names of comparisons of unsigned integers.
var unsignedNames = map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}

// comparison returns the function of a comparison of type t, or nil.
func comparison(name string, t ptype) func(a, b uint64) bool {
	if t.kind == 'f' && t != f16 {
		return floatComparison(name, t)
	}
	if !t.integer() || t.bits < 16 {
		return nil
	}
	if t.kind == 'b' && name != "eq" && name != "ne" {
		return nil
	}
	if alias, ok := unsignedNames[name]; ok && t.kind == 'u' {
		name = alias
	}
	value := func(v uint64) int64 { return int64(t.extend(v)) }
	switch name {
	case "eq":
		return func(a, b uint64) bool { return a == b }
	case "ne":
		return func(a, b uint64) bool { return a != b }
	}
	if t.kind == 'u' {
		switch name {
		case "lt":
			return func(a, b uint64) bool { return a < b }
		case "le":
			return func(a, b uint64) bool { return a <= b }
		case "gt":
			return func(a, b uint64) bool { return a > b }
		case "ge":
			return func(a, b uint64) bool { return a >= b }
		}
		return nil
	}
	switch name {
	case "lt":
		return func(a, b uint64) bool { return value(a) < value(b) }
	case "le":
		return func(a, b uint64) bool { return value(a) <= value(b) }
	case "gt":
		return func(a, b uint64) bool { return value(a) > value(b) }
	case "ge":
		return func(a, b uint64) bool { return value(a) >= value(b) }
	}
	return nil
}

// floatComparison: a name that ends in u is true as well where an operand is NaN, and any other is
// false then, ne included.
func floatComparison(name string, t ptype) func(a, b uint64) bool {
	read := float64of
	if t == f32 {
		read = func(v uint64) float64 { return float64(float32of(v)) }
	}
	nan := func(a, b float64) bool { return a != a || b != b }
	f, ok := map[string]func(a, b float64) bool{
		"eq": func(a, b float64) bool { return a == b }, "equ": func(a, b float64) bool { return a == b || nan(a, b) },
		"ne": func(a, b float64) bool { return a != b && !nan(a, b) }, "neu": func(a, b float64) bool { return a != b },
		"lt": func(a, b float64) bool { return a < b }, "ltu": func(a, b float64) bool { return !(a >= b) },
		"le": func(a, b float64) bool { return a <= b }, "leu": func(a, b float64) bool { return !(a > b) },
		"gt": func(a, b float64) bool { return a > b }, "gtu": func(a, b float64) bool { return !(a <= b) },
		"ge": func(a, b float64) bool { return a >= b }, "geu": func(a, b float64) bool { return !(a < b) },
		"num": func(a, b float64) bool { return !nan(a, b) }, "nan": nan,
	}[name]
	if !ok {
		return nil
	}
	return func(a, b uint64) bool { return f(read(a), read(b)) }
}

// compare compiles setp.comparison{.and|.or|.xor}.type p{|q}, a, b{, c}, and set, which writes a
// number instead.
func (c *compiler) compare(name string, mods []string) bool {
	args := c.s.args
	if name == "set" {
		return c.set(mods)
	}
	if len(mods) < 2 || len(mods) > 3 || len(args) != len(mods)+1 {
		return false
	}
	t := types[mods[len(mods)-1]]
	f := comparison(mods[0], t)
	if f == nil {
		return false
	}
	a, b := c.source(args[1], t), c.source(args[2], t)
	combine := func(x, _ uint32) uint32 { return x }
	with, negated := int32(-1), false
	if len(mods) == 3 {
		if combine = logic[mods[1]]; combine == nil {
			return false
		}
		with, negated = c.predicate(args[3]), args[3].negated
	}
	to := []argument{args[0]}
	if args[0].kind == argPair {
		to = args[0].parts
	}
	var d [2]int32
	for i := range d {
		d[i] = -1
		if i < len(to) && to[i].kind != argSink {
			d[i] = c.predicate(to[i])
		}
	}
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.has(m, a) || !w.has(m, b) {
			return
		}
		x, y := &w.regs[a], &w.regs[b]
		var r, other uint32
		for rest := m; rest != 0; rest &= rest - 1 {
			l := bits.TrailingZeros32(rest) & 31
			if f(x[l], y[l]) {
				r |= 1 << l
			}
		}
		if with >= 0 {
			if !w.hasPredicate(m, with) {
				return
			}
			if other = w.preds[with]; negated {
				other = ^other
			}
		}
		if d[0] >= 0 {
			w.setPredicate(d[0], combine(r, other))
		}
		if d[1] >= 0 {
			w.setPredicate(d[1], combine(^r, other))
		}
	})
}

var logic = map[string]func(a, b uint32) uint32{
	"and": func(a, b uint32) uint32 { return a & b },
	"or":  func(a, b uint32) uint32 { return a | b },
	"xor": func(a, b uint32) uint32 { return a ^ b },
}

// set compiles set.comparison.to.type: all bits, or 1 as a float, where the comparison holds.
func (c *compiler) set(mods []string) bool {
	if len(mods) != 3 || len(c.s.args) != 3 {
		return false
	}
	to, t := types[mods[1]], types[mods[2]]
	f := comparison(mods[0], t)
	if f == nil || to != u32 && to != s32 && to != f32 {
		return false
	}
	yes := to.mask()
	if to == f32 {
		yes = bits32(1)
	}
	d := c.register(c.s.args[0], to, false)
	return c.binary(d, c.source(c.s.args[1], t), c.source(c.s.args[2], t), func(a, b uint64) uint64 {
		if f(a, b) {
			return yes
		}
		return 0
	})
}

// selectValue compiles selp.type d, a, b, p. Only the value that is taken has to be there.
func (c *compiler) selectValue(mods []string) bool {
	args := c.s.args
	t, ok := types[strings.Join(mods, ".")]
	if !ok || len(args) != 4 || t.bits < 16 || t == f16 {
		return false
	}
	d, a, b := c.register(args[0], t, false), c.source(args[1], t), c.source(args[2], t)
	p := c.predicate(args[3])
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.hasPredicate(m, p) {
			return
		}
		yes := w.preds[p]
		if !w.has(m&yes, a) || !w.has(m&^yes, b) {
			return
		}
		w.defined[d] |= m
		to, x, y := &w.regs[d], &w.regs[a], &w.regs[b]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			if yes>>l&1 == 1 {
				to[l] = x[l]
			} else {
				to[l] = y[l]
			}
		}
	})
}

// predicateLogic compiles and.pred, or.pred, xor.pred and not.pred.
func (c *compiler) predicateLogic(name string) bool {
	args := c.s.args
	if name == "not" {
		if len(args) != 2 {
			return false
		}
		d, a := c.predicate(args[0]), c.predicate(args[1])
		return c.plain(func(w *warp) {
			if w.hasPredicate(w.mask, a) {
				w.setPredicate(d, ^w.preds[a])
			}
		})
	}
	if len(args) != 3 {
		return false
	}
	combine := logic[name]
	d, a, b := c.predicate(args[0]), c.predicate(args[1]), c.predicate(args[2])
	return c.plain(func(w *warp) {
		if w.hasPredicate(w.mask, a) && w.hasPredicate(w.mask, b) {
			w.setPredicate(d, combine(w.preds[a], w.preds[b]))
		}
	})
}

func (w *warp) hasPredicate(m uint32, p int32) bool {
	if missing := m &^ w.definedPreds[p]; missing != 0 {
		w.fail(ErrUndefined, bits.TrailingZeros32(missing), "%s is read and was never written",
			w.run.kernel.predicates[p])
		return false
	}
	return true
}

// setPredicate sets p to v in the lanes of the mask.
func (w *warp) setPredicate(p int32, v uint32) {
	w.preds[p] = w.preds[p]&^w.mask | v&w.mask
	w.definedPreds[p] |= w.mask
}
