package interp

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strings"
)

// hints are modifiers of ld and st that concern caches and order, and not the value. Memory here is
// always in order.
var hints = map[string]bool{
	"nc": true, "weak": true, "volatile": true, "relaxed": true, "acquire": true, "release": true,
	"cta": true, "gpu": true, "sys": true,
	"ca": true, "cg": true, "cs": true, "lu": true, "cv": true, "wb": true, "wt": true,
	"L1::evict_last": true, "L1::evict_first": true, "L1::no_allocate": true,
	"L2::64B": true, "L2::128B": true, "L2::256B": true,
}

// A place is the operand of an access: an address in a register, plus an offset, in a space.
type place struct {
	space  string // "global", "const", "shared", "local", "param", or "" for a generic address
	base   int32
	offset uint64
	strong bool  // the access may meet others of its kind, as an atomic one may
	global bool  // space is "global"
	at     int32 // the instruction's index, for the allocation that it used last
}

// place reads an operand [base+offset].
func (c *compiler) place(a argument, space string) (place, bool) {
	if a.kind != argAddress {
		return place{}, false
	}
	base := a.parts[0]
	p := place{space: space, global: space == "global", offset: uint64(a.offset), at: int32(len(c.k.code))}
	if space == "param" {
		_, own := c.f.offsets[base.variable]
		if own || !c.f.f.entry { // of a call, and so in local memory
			p.space = "local"
		}
	}
	t := u64
	if base.kind == argRegister && c.width(base) == 32 && space != "" && space != "global" {
		t = u32 // shared, local and param addresses may have 32 bits
	}
	p.base = c.source(base, t)
	return p, true
}

// access compiles ld and st, with up to four elements.
func (c *compiler) access(store bool, mods []string) bool {
	if len(mods) == 0 || len(c.s.args) != 2 {
		return false
	}
	t, ok := types[mods[len(mods)-1]]
	if !ok || t == prd || t == f16 {
		return false
	}
	space, count, strong := "", 1, false
	for _, mod := range mods[:len(mods)-1] {
		switch {
		case slices.Contains([]string{"global", "shared", "const", "local", "param"}, mod) && space == "":
			space = mod
		case mod == "v2" && count == 1:
			count = 2
		case mod == "v4" && count == 1:
			count = 4
		case !hints[mod]:
			return false
		}
		strong = strong || mod == "volatile" || mod == "relaxed" || mod == "acquire" || mod == "release"
	}
	switch {
	case count*t.bytes() > 16, store && space == "const", slices.Contains(mods, "nc") && (store || space != "global"):
		return false
	}
	memory, data := c.s.args[1], c.s.args[0]
	if store {
		memory, data = data, memory
	}
	elements := []argument{data}
	if data.kind == argVector {
		elements = data.parts
	}
	if len(elements) != count || (count > 1) != (data.kind == argVector) {
		return false
	}
	p, ok := c.place(memory, space)
	p.strong = strong
	if !ok || store && p.space == "param" {
		return false
	}
	c.touch(p.space, t.bytes())
	var slots []int32
	var wide []uint64 // of each register that is loaded: its bits
	for _, e := range elements {
		switch {
		case store:
			slots = append(slots, c.operand(e, t, true))
		case e.kind == argSink:
			slots, wide = append(slots, -1), append(wide, 0)
		default:
			slots = append(slots, c.register(e, t, true))
			wide = append(wide, ptype{'b', max(c.width(e), t.bits)}.mask())
		}
	}
	if store {
		return c.plain(func(w *warp) { w.store(p, t.bytes(), slots) })
	}
	if t.kind != 's' {
		wide = nil // nothing to extend: the bits above are 0
	}
	return c.plain(func(w *warp) { w.load(p, t, slots, wide) })
}

// touch notes the size of an access, which may be the smallest.
func (c *compiler) touch(space string, n int) {
	if space == "shared" || space == "" {
		c.k.sharedGranule = min(c.k.sharedGranule, n)
	}
	if space == "global" || space == "" {
		c.k.globalGranule = min(c.k.globalGranule, n)
	}
}

// load reads len(slots) elements of type t for each lane.
func (w *warp) load(p place, t ptype, slots []int32, wide []uint64) {
	m, n := w.mask, t.bytes()
	if !w.has(m, p.base) {
		return
	}
	base := &w.regs[p.base]
	for rest := m; rest != 0; rest &= rest - 1 {
		l := bits.TrailingZeros32(rest) & 31
		b := w.at(l, p, base[l]+p.offset, n*len(slots), reading)
		if b == nil {
			return
		}
		if n == 4 && wide == nil {
			for i, d := range slots {
				if d >= 0 {
					w.regs[d][l] = uint64(binary.LittleEndian.Uint32(b[4*i:]))
				}
			}
			continue
		}
		for i, d := range slots {
			if d < 0 {
				continue
			}
			v := little(b[i*n:], n)
			if wide != nil {
				v = t.extend(v) & wide[i]
			}
			w.regs[d][l] = v
		}
	}
	for _, d := range slots {
		if d >= 0 {
			w.defined[d] |= m
		}
	}
}

func (w *warp) store(p place, n int, slots []int32) {
	m := w.mask
	if !w.has(m, p.base) {
		return
	}
	for _, a := range slots {
		if !w.has(m, a) {
			return
		}
	}
	base := &w.regs[p.base]
	for rest := m; rest != 0; rest &= rest - 1 {
		l := bits.TrailingZeros32(rest) & 31
		b := w.at(l, p, base[l]+p.offset, n*len(slots), writing)
		if b == nil {
			return
		}
		for i, a := range slots {
			putLittle(b[i*n:], n, w.regs[a][l])
		}
	}
}

func little(b []byte, n int) uint64 {
	switch n {
	case 1:
		return uint64(b[0])
	case 2:
		return uint64(binary.LittleEndian.Uint16(b))
	case 4:
		return uint64(binary.LittleEndian.Uint32(b))
	}
	return binary.LittleEndian.Uint64(b)
}

func putLittle(b []byte, n int, v uint64) {
	switch n {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, v)
	}
}

// at returns the n bytes of an access by lane l, or fails and returns nil.
func (w *warp) at(l int, p place, addr uint64, n int, kind accessKind) []byte {
	if addr&uint64(n-1) != 0 {
		w.fail(ErrAlignment, l, "%d bytes at %#x%s", n, addr, w.owner(p, addr, n))
		return nil
	}
	if p.global {
		return w.atGlobal(l, p, addr, n, kind)
	}
	space := p.space
	if space == "" {
		switch {
		case addr-sharedWindow < windowBytes:
			space, addr = "shared", addr-sharedWindow
		case addr-localWindow < windowBytes:
			space, addr = "local", addr-localWindow
		default:
			space = "global"
		}
	}
	switch space {
	case "shared":
		offset := addr - sharedStart
		shared := w.run.shared
		if addr < sharedStart || offset > uint64(len(shared)) || uint64(len(shared))-offset < uint64(n) {
			w.fail(ErrBounds, l, "%d bytes at shared address %#x: the block has %d from %#x on",
				n, addr, len(shared), sharedStart)
			return nil
		}
		if w.run.touched.check(w, l, kind, int(offset), n); w.err != nil {
			return nil
		}
		return shared[offset : offset+uint64(n)]
	case "local":
		total := uint64(w.run.kernel.localBytes)
		offset := addr - localStart
		if addr < localStart || offset > total || total-offset < uint64(n) {
			w.fail(ErrBounds, l, "%d bytes at local address %#x: the thread has %d from %#x on",
				n, addr, total, localStart)
			return nil
		}
		offset += uint64(l) * total
		return w.local[offset : offset+uint64(n)]
	case "param":
		params := w.run.config.Params
		if addr > uint64(len(params)) || uint64(len(params))-addr < uint64(n) {
			w.fail(ErrBounds, l, "%d bytes at parameter offset %d of %d", n, addr, len(params))
			return nil
		}
		return params[addr : addr+uint64(n)]
	}
	return w.atGlobal(l, p, addr, n, kind)
}

// atGlobal is at for global memory.
func (w *warp) atGlobal(l int, p place, addr uint64, n int, kind accessKind) []byte {
	near := &w.run.near[p.at]
	a := near.allocation
	b, ok := a.at(addr, n)
	if !ok {
		ranges := w.run.ranges
		i := search(ranges, addr)
		if i < 0 {
			w.fail(ErrBounds, l, "%s", nearby(ranges, addr, n))
			return nil
		}
		a = ranges[i]
		if b, ok = a.at(addr, n); !ok {
			w.fail(ErrBounds, l, "%s", nearby(ranges, addr, n))
			return nil
		}
		*near = neighbourhood{allocation: a}
		if w.run.global != nil {
			near.shadow = w.run.global[a]
			if near.shadow == nil {
				near.shadow = newShadow(len(a.data), w.run.kernel.globalGranule, true)
				w.run.global[a] = near.shadow
			}
		}
	}
	if a.read && kind != reading {
		w.fail(ErrBounds, l, "a write to %s, which is .const", a.name)
		return nil
	}
	if s := near.shadow; s != nil {
		if p.strong {
			kind = updating
		}
		if s.check(w, l, kind, int(addr-a.base), n); w.err != nil {
			return nil
		}
	}
	return b
}

// owner describes where in its allocation a global address lies.
func (w *warp) owner(p place, addr uint64, n int) string {
	if p.space != "" && p.space != "global" {
		return " of " + p.space + " memory"
	}
	if i := search(w.run.ranges, addr); i >= 0 {
		if a := w.run.ranges[i]; addr-a.base < uint64(len(a.data)) {
			return fmt.Sprintf(", %d bytes into the %d at %#x", addr-a.base, len(a.data), a.base)
		}
	}
	return ", outside every allocation"
}

// atomic compiles atom, which returns the old value, and red, which does not.
func (c *compiler) atomic(red bool, mods []string) bool {
	args := c.s.args
	if len(mods) < 2 {
		return false
	}
	t := types[mods[len(mods)-1]]
	name := mods[len(mods)-2]
	space := ""
	for _, mod := range mods[:len(mods)-2] {
		switch mod {
		case "global", "shared":
			if space != "" {
				return false
			}
			space = mod
		case "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys":
		default:
			return false
		}
	}
	f := update(name, t)
	operands := 1
	if name == "cas" {
		operands = 2
	}
	if !red {
		if len(args) == 0 {
			return false
		}
		args = args[1:]
	}
	if f == nil || len(args) != 1+operands || red && (name == "cas" || name == "exch") {
		return false
	}
	p, ok := c.place(args[0], space)
	if !ok {
		return false
	}
	c.touch(space, t.bytes())
	d := int32(-1)
	if !red && c.s.args[0].kind != argSink {
		d = c.register(c.s.args[0], t, false)
	}
	a := c.source(args[1], t)
	b := a
	if operands == 2 {
		b = c.source(args[2], t)
	}
	return c.plain(func(w *warp) {
		m := w.mask
		if !w.has(m, p.base) || !w.has(m, a) || !w.has(m, b) {
			return
		}
		for rest := m; rest != 0; rest &= rest - 1 {
			l := bits.TrailingZeros32(rest) & 31
			bytes := w.at(l, p, w.regs[p.base][l]+p.offset, t.bytes(), updating)
			if bytes == nil {
				return
			}
			old := little(bytes, t.bytes())
			putLittle(bytes, t.bytes(), f(old, w.regs[a][l], w.regs[b][l]))
			if d >= 0 {
				w.regs[d][l] = old
			}
		}
		if d >= 0 {
			w.defined[d] |= m
		}
	})
}

// update returns what an atomic operation makes of the old value and its operands, or nil.
func update(name string, t ptype) func(old, a, b uint64) uint64 {
	if t.bits != 32 && t.bits != 64 {
		return nil
	}
	switch name {
	case "cas":
		if t.kind != 'b' {
			return nil
		}
		return func(old, a, b uint64) uint64 {
			if old == a {
				return b
			}
			return old
		}
	case "exch":
		if t.kind != 'b' {
			return nil
		}
		return func(_, a, _ uint64) uint64 { return a }
	case "add", "min", "max", "and", "or", "xor":
		bitwise := strings.Contains("and or xor", name)
		if bitwise != (t.kind == 'b') || t.kind == 'f' && name != "add" {
			return nil
		}
		op, ok := operations[name+"."+t.String()]
		if !ok {
			return nil
		}
		return func(old, a, _ uint64) uint64 { return op.f2(old, a) }
	case "inc", "dec":
		if t != u32 {
			return nil
		}
		if name == "inc" {
			return func(old, a, _ uint64) uint64 {
				if old >= a {
					return 0
				}
				return old + 1
			}
		}
		return func(old, a, _ uint64) uint64 {
			if old == 0 || old > a {
				return a
			}
			return old - 1
		}
	}
	return nil
}
