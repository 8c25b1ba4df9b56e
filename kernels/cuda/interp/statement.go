package interp

import (
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// statement compiles the current statement, and returns false where its form is unknown.
func (c *compiler) statement() bool {
	if op, ok := operations[c.s.opcode]; ok {
		return c.operation(op)
	}
	words := strings.Split(c.s.opcode, ".")
	mods := words[1:]
	switch words[0] {
	case "mov":
		return c.move(mods)
	case "cvta":
		return c.convertAddress(mods)
	case "cvt":
		return c.convert(mods)
	case "setp", "set":
		return c.compare(words[0], mods)
	case "selp":
		return c.selectValue(mods)
	case "and", "or", "xor", "not":
		return len(mods) == 1 && mods[0] == "pred" && c.predicateLogic(words[0])
	case "bfi":
		return c.insert(mods)
	case "ld", "st":
		return c.access(words[0] == "st", mods)
	case "atom", "red":
		return c.atomic(words[0] == "red", mods)
	case "bra", "ret", "exit", "trap", "call":
		return c.control(words[0], mods)
	case "shfl", "vote", "match", "redux", "bar", "barrier", "activemask":
		return c.synchronize(words[0], mods)
	case "mma":
		return c.multiplyMatrices(strings.Join(mods, "."))
	case "membar", "fence":
		// Blocks and warps run one after the other here, so that memory is always in order.
		return c.plain(func(*warp) {})
	}
	return false
}

// operation compiles a form of the table.
func (c *compiler) operation(op operation) bool {
	args := c.s.args
	if len(args) != 1+len(op.from) {
		return false
	}
	var from [3]int32
	for i, t := range op.from {
		from[i] = c.source(args[i+1], t)
	}
	d := c.register(args[0], op.to, false)
	switch {
	case op.divides:
		c.refuseZero(from[1])
		return c.binary(d, from[0], from[1], func(a, b uint64) uint64 {
			if b == 0 {
				return 0 // refuseZero has failed, or the lane does not take part
			}
			return op.f2(a, b)
		})
	case c.s.opcode == "fma.rn.f32":
		return c.multiplyAdd32(d, from[0], from[1], from[2])
	case op.f1 != nil:
		return c.unary(d, from[0], op.f1)
	case op.f2 != nil:
		return c.binary(d, from[0], from[1], op.f2)
	}
	return c.ternary(d, from[0], from[1], from[2], op.f3)
}

// refuseZero makes an integer division by zero an error: its result is "an unspecified,
// machine-specific value" (PTX ISA, div).
func (c *compiler) refuseZero(b int32) {
	c.plain(func(w *warp) {
		w.run.counters.Instructions-- // it counts as one with the division
		w.run.counters.Lanes -= int64(bits.OnesCount32(w.mask))
		for l := range w.regs[b] {
			if w.mask&w.defined[b]>>l&1 == 1 && w.regs[b][l] == 0 {
				w.fail(ErrArgument, l, "a division by zero")
				return
			}
		}
	})
}

// move compiles mov: of a value, of an address, or of a vector into one register and back. A lane
// without a value stays so in the copy, since clang copies registers on paths where they are not
// used.
func (c *compiler) move(mods []string) bool {
	args := c.s.args
	t, ok := types[strings.Join(mods, ".")]
	if !ok || len(args) != 2 {
		return false
	}
	if t == prd {
		d := c.predicate(args[0])
		if v := args[1]; v.kind == argImmediate && v.float == 0 {
			all := uint32(0)
			if v.value != 0 {
				all = allLanes
			}
			return c.plain(func(w *warp) { w.setPredicate(d, all) })
		}
		a := c.predicate(args[1])
		return c.plain(func(w *warp) {
			m := w.mask
			w.preds[d] = w.preds[d]&^m | w.preds[a]&m
			w.definedPreds[d] = w.definedPreds[d]&^m | w.definedPreds[a]&m
		})
	}
	switch {
	case args[0].kind == argVector && args[1].kind == argVector:
		return false
	case args[0].kind == argVector:
		return c.unpack(args[0].parts, args[1], t)
	case args[1].kind == argVector:
		return c.pack(args[0], args[1].parts, t)
	}
	a := args[1]
	if a.kind == argImmediate && a.float != 0 { // mov.b32 %r1, 0f3F800000 is fine
		a.float = 0
	}
	bitsOnly := t
	if t.kind == 'f' {
		bitsOnly = ptype{'b', t.bits}
	}
	d, from := c.register(args[0], t, false), c.source(a, bitsOnly)
	return c.plain(func(w *warp) {
		m := w.mask
		w.defined[d] = w.defined[d]&^m | w.defined[from]&m
		if m == allLanes {
			w.regs[d] = w.regs[from]
			return
		}
		to, x := &w.regs[d], &w.regs[from]
		for ; m != 0; m &= m - 1 {
			l := bits.TrailingZeros32(m) & 31
			to[l] = x[l]
		}
	})
}

// unpack cuts a register into parts, the first from the low bits.
func (c *compiler) unpack(parts []argument, from argument, t ptype) bool {
	if len(parts) != 2 && len(parts) != 4 || t.bits/len(parts) < 8 {
		return false
	}
	part := ptype{'b', t.bits / len(parts)}
	a := c.source(from, ptype{'b', t.bits})
	var to []int32
	for _, p := range parts {
		if p.kind == argSink {
			to = append(to, -1)
			continue
		}
		to = append(to, c.register(p, part, false))
	}
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.has(m, a) {
			return
		}
		from := w.regs[a] // a copy: a part may be the register itself
		for i, d := range to {
			if d < 0 {
				continue
			}
			w.defined[d] |= m
			for l := range from {
				if m>>l&1 == 1 {
					w.regs[d][l] = from[l] >> (i * part.bits) & part.mask()
				}
			}
		}
	})
}

func (c *compiler) pack(to argument, parts []argument, t ptype) bool {
	if len(parts) != 2 && len(parts) != 4 || t.bits/len(parts) < 8 {
		return false
	}
	part := ptype{'b', t.bits / len(parts)}
	d := c.register(to, t, false)
	var from []int32
	for _, p := range parts {
		from = append(from, c.source(p, part))
	}
	return c.plain(func(w *warp) {
		m := w.mask
		var v values
		for i, a := range from {
			if !w.has(m, a) {
				return
			}
			for l := range v {
				v[l] |= w.regs[a][l] << (i * part.bits)
			}
		}
		w.defined[d] |= m
		for l := range v {
			if m>>l&1 == 1 {
				w.regs[d][l] = v[l]
			}
		}
	})
}

// convertAddress compiles cvta: an address of a space to a generic one, or back. A global address
// is the same in both.
func (c *compiler) convertAddress(mods []string) bool {
	to := len(mods) > 0 && mods[0] == "to"
	if to {
		mods = mods[1:]
	}
	if len(mods) != 2 || mods[1] != "u64" || len(c.s.args) != 2 {
		return false
	}
	window, ok := map[string]uint64{"global": 0, "const": 0, "shared": sharedWindow, "local": localWindow}[mods[0]]
	if !ok {
		return false
	}
	d, a := c.register(c.s.args[0], b64, false), c.source(c.s.args[1], b64)
	return c.unary(d, a, func(v uint64) uint64 {
		switch {
		case v == 0: // a null pointer stays one
			return 0
		case to:
			return v - window
		}
		return v + window
	})
}

func (c *compiler) insert(mods []string) bool {
	if len(c.s.args) != 5 || len(mods) != 1 || mods[0] != "b32" && mods[0] != "b64" {
		return false
	}
	t := types[mods[0]]
	d := c.register(c.s.args[0], t, false)
	a, b := c.source(c.s.args[1], t), c.source(c.s.args[2], t)
	at, width := c.source(c.s.args[3], u32), c.source(c.s.args[4], u32)
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.has(m, a) || !w.has(m, b) || !w.has(m, at) || !w.has(m, width) {
			return
		}
		w.defined[d] |= m
		for l := range warpLanes {
			if m>>l&1 == 1 {
				w.regs[d][l] = insertBits(w.regs[a][l], w.regs[b][l], w.regs[at][l], w.regs[width][l], t)
			}
		}
	})
}

// control compiles what changes the program counter.
func (c *compiler) control(name string, mods []string) bool {
	args := c.s.args
	if len(mods) > 0 && (len(mods) > 1 || mods[0] != "uni" || name != "bra" && name != "ret" && name != "call") {
		return false
	}
	switch name {
	case "bra":
		if len(args) != 1 || args[0].kind != argSymbol {
			return false
		}
		to, ok := c.f.f.labels[args[0].name]
		if !ok {
			c.fail(ErrSyntax, "no label "+args[0].name)
			return true
		}
		c.emit(instruction{kind: branch, target: int32(-to - 1)})
	case "exit":
		c.emit(instruction{kind: exit})
	case "ret":
		if c.f.f.entry {
			c.emit(instruction{kind: exit})
			break
		}
		c.emit(instruction{kind: jump, register: c.f.caller})
	case "trap":
		c.plain(func(w *warp) { w.fail(ErrTrap, bits.TrailingZeros32(w.mask), "") })
	case "call":
		return c.call()
	}
	return true
}

// call compiles "call (results), function, (arguments)", whose operands are .param variables: it
// copies the arguments, notes where to return, jumps, and copies the results.
func (c *compiler) call() bool {
	args := c.s.args
	var lists [][]argument
	for _, a := range args {
		if a.kind == argList {
			lists = append(lists, a.parts)
		}
	}
	callee := c.callee(c.s)
	frame := c.frames[callee]
	if frame == nil || len(args) != len(lists)+1 {
		return false
	}
	// A list before the name is the results.
	if args[0].kind != argList {
		lists = slices.Insert(lists, 0, []argument{})
	}
	if len(lists) < 2 {
		lists = append(lists, []argument{})
	}
	copies := func(from, to []int, sizes []int) {
		k := c.k
		c.plain(func(w *warp) {
			for l := range warpLanes {
				if w.mask>>l&1 == 1 {
					lane := w.local[l*k.localBytes : (l+1)*k.localBytes]
					for i, n := range sizes {
						copy(lane[to[i]:to[i]+n], lane[from[i]:from[i]+n])
					}
				}
			}
		})
	}
	places := func(own []argument, theirs []*variable) (mine, other, sizes []int, ok bool) {
		if len(own) != len(theirs) {
			return nil, nil, nil, false
		}
		for i, a := range own {
			offset, known := c.f.offsets[a.variable]
			if !known || a.variable.size != theirs[i].size {
				return nil, nil, nil, false
			}
			mine = append(mine, offset)
			other = append(other, frame.offsets[theirs[i]])
			sizes = append(sizes, theirs[i].size)
		}
		return mine, other, sizes, true
	}
	from, to, sizes, ok := places(lists[1], callee.params)
	if !ok {
		c.fail(ErrSyntax, fmt.Sprintf("arguments that do not fit %s", callee.name))
		return true
	}
	copies(from, to, sizes)
	back, register := uint64(len(c.k.code)+2), frame.caller
	c.plain(func(w *warp) {
		w.defined[register] |= w.mask
		for l := range warpLanes {
			if w.mask>>l&1 == 1 {
				w.regs[register][l] = back
			}
		}
	})
	c.emit(instruction{kind: branch, target: frame.start})
	to, from, sizes, ok = places(lists[0], callee.results)
	if !ok {
		c.fail(ErrSyntax, fmt.Sprintf("results that do not fit %s", callee.name))
		return true
	}
	copies(from, to, sizes)
	return true
}
