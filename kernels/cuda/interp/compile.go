package interp

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An instruction is a statement that was compiled: what it does is a closure over the indices of
// its operands.
type instruction struct {
	kind     instructionKind
	guard    int32 // predicate, or -1
	negated  bool
	target   int32            // of a branch
	register int32            // of a jump: the slot with its target; of a meeting: the slot with its mask
	run      func(*warp)      // of a plain instruction and of a meeting
	reduce   func(*run) error // of a barrier that computes something over its block; else nil
	opcode   string
	text     string
	line     int
}

type instructionKind uint8

const (
	plain   instructionKind = iota
	branch                  // to target
	jump                    // to where the slot register says
	exit                    // ends lanes
	meeting                 // of the lanes that the slot register names
	barrier                 // of the block
)

// A slot is an operand that an instruction reads by its index: a register, a constant, the address
// of a variable of the module, or a special register.
type slot struct {
	kind  slotKind
	name  string
	typ   ptype
	value uint64
}

type slotKind uint8

const (
	slotRegister slotKind = iota
	slotConstant
	slotAddress
	slotSpecial
)

// specials fill a slot at the start of a block.
var specials = map[string]func(*warp, *values){
	"%tid.x":       func(w *warp, v *values) { w.fillThread(v, 0) },
	"%tid.y":       func(w *warp, v *values) { w.fillThread(v, 1) },
	"%tid.z":       func(w *warp, v *values) { w.fillThread(v, 2) },
	"%ntid.x":      func(w *warp, v *values) { fill(v, w.run.config.Block[0]) },
	"%ntid.y":      func(w *warp, v *values) { fill(v, w.run.config.Block[1]) },
	"%ntid.z":      func(w *warp, v *values) { fill(v, w.run.config.Block[2]) },
	"%ctaid.x":     func(w *warp, v *values) { fill(v, w.ctaid[0]) },
	"%ctaid.y":     func(w *warp, v *values) { fill(v, w.ctaid[1]) },
	"%ctaid.z":     func(w *warp, v *values) { fill(v, w.ctaid[2]) },
	"%nctaid.x":    func(w *warp, v *values) { fill(v, w.run.config.Grid[0]) },
	"%nctaid.y":    func(w *warp, v *values) { fill(v, w.run.config.Grid[1]) },
	"%nctaid.z":    func(w *warp, v *values) { fill(v, w.run.config.Grid[2]) },
	"%laneid":      func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return uint32(l) }) },
	"%lanemask_eq": func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return 1 << l }) },
	"%lanemask_lt": func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return 1<<l - 1 }) },
	"%lanemask_le": func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return 2<<l - 1 }) },
	"%lanemask_gt": func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return allLanes << l << 1 }) },
	"%lanemask_ge": func(_ *warp, v *values) { fillLanes(v, func(l int) uint32 { return allLanes << l }) },
	"%warpid":      func(w *warp, v *values) { fill(v, uint32(w.index)) },
	"%nwarpid":     func(w *warp, v *values) { fill(v, uint32(len(w.run.warps))) },
}

func (w *warp) fillThread(v *values, axis int) {
	for l := range v {
		v[l] = uint64(w.run.threadAt(w.index*warpLanes + l)[axis])
	}
}

func fillLanes(v *values, f func(lane int) uint32) {
	for l := range v {
		v[l] = uint64(f(l))
	}
}

func fill(v *values, x uint32) {
	for l := range v {
		v[l] = uint64(x)
	}
}

// A compiler makes a kernel of an entry and the functions that it calls.
type compiler struct {
	m      *Module
	k      *Kernel
	errs   []error
	frames map[*function]*frame

	f     *frame // whose statements are being compiled
	s     *statement
	guard int32

	constants map[uint64]int32
	named     map[string]int32 // special registers and addresses
}

// A frame is a function as part of a kernel. Functions do not call themselves, so that its
// registers and variables have fixed places.
type frame struct {
	f         *function
	registers []int32           // slots, or predicates; -1: not used so far
	offsets   map[*variable]int // in local or shared memory
	start     int32             // its first instruction
	caller    int32             // slot with the instruction to which each lane returns
	indices   []int32           // of the first instruction of each statement
	open      bool              // it, or what it calls, is being compiled
}

// compile returns the kernel, or what is wrong with it.
func compile(m *Module, entry *function) (*Kernel, []error) {
	c := &compiler{m: m, frames: map[*function]*frame{}, constants: map[uint64]int32{}, named: map[string]int32{}}
	c.k = &Kernel{Name: entry.name, MaxThreads: entry.maxThreads, ExactThreads: entry.exact, module: m}
	for _, v := range entry.params {
		c.k.Params = append(c.k.Params, Param{v.name, v.typ.String(), v.size, v.align, v.offset})
		c.k.ParamBytes = v.offset + v.size
	}
	c.k.sharedGranule, c.k.globalGranule = 16, 16
	c.layShared(entry)
	c.k.localBytes = 0
	fr := c.add(entry, 0)
	c.k.start = fr.start
	if len(c.errs) == 0 {
		c.link()
	}
	if c.k.localBytes > maxLocal {
		c.k.localBytes = 0
		c.errs = append(c.errs, &Error{Err: ErrSyntax, Kernel: entry.name, Line: entry.line,
			Detail: "too much local memory"})
	}
	for _, s := range c.k.slots {
		defined := allLanes
		if s.kind == slotRegister {
			defined = 0
		}
		c.k.defined = append(c.k.defined, defined)
	}
	return c.k, c.errs
}

// layShared gives the shared variables of the entry, and of the module, their places. Those that
// come with the launch begin where the others end.
func (c *compiler) layShared(entry *function) {
	vars := slices.Clone(entry.shareds)
	for _, v := range c.m.sortedVariables() {
		if v.space == "shared" && !v.extern {
			vars = append(vars, v)
		}
	}
	end := 0
	for _, v := range vars {
		v.offset = roundUp(end, v.align)
		end = v.offset + v.size
	}
	for _, v := range c.m.sortedVariables() {
		if v.space == "shared" && v.extern {
			end = roundUp(end, max(v.align, 16))
		}
	}
	for _, v := range c.m.sortedVariables() {
		if v.space == "shared" && v.extern {
			v.offset = end
		}
	}
	c.k.SharedBytes = end
	if end > maxShared {
		c.errs = append(c.errs, &Error{Err: ErrSyntax, Kernel: entry.name, Line: entry.line,
			Detail: fmt.Sprintf("%d bytes of static shared memory, and a block may have %d", end, maxShared)})
	}
}

func (m *Module) sortedVariables() []*variable {
	var vars []*variable
	for _, name := range slices.Sorted(maps.Keys(m.variables)) {
		vars = append(vars, m.variables[name])
	}
	return vars
}

// add appends the code of f, and of what f calls, to the kernel.
func (c *compiler) add(f *function, depth int) *frame {
	fr := &frame{f: f, offsets: map[*variable]int{}, caller: -1, open: true}
	defer func() { fr.open = false }()
	c.frames[f] = fr
	for range f.regs {
		fr.registers = append(fr.registers, -1)
	}
	vars := f.locals
	if !f.entry {
		if len(f.shareds) > 0 {
			c.errs = append(c.errs, &Error{Err: ErrUnknown, Kernel: f.name, Line: f.line,
				Detail: "a function with shared memory of its own"})
		}
		vars = slices.Concat(f.params, f.results, f.locals)
		fr.caller = c.slot(slot{kind: slotRegister, name: "the return address of " + f.name, typ: u64})
	}
	for _, v := range vars {
		fr.offsets[v] = roundUp(c.k.localBytes, v.align)
		c.k.localBytes = fr.offsets[v] + v.size
		if c.k.localBytes > maxLocal {
			return fr
		}
	}
	for i := range f.statements {
		// What a call needs of its callee is known before the call is compiled.
		s := &f.statements[i]
		if root, _, _ := strings.Cut(s.opcode, "."); root != "call" {
			continue
		}
		callee := c.callee(s)
		switch {
		case callee == nil || !callee.defined || callee.entry:
			c.failAt(s, ErrUnknown, "the called function is not in the module")
		case depth > 16 || c.frames[callee] != nil && c.frames[callee].open:
			c.failAt(s, ErrUnknown, "a function that calls itself")
		case c.frames[callee] == nil:
			c.add(callee, depth+1)
		}
	}
	c.body(fr)
	return fr
}

func (c *compiler) callee(s *statement) *function {
	for _, a := range s.args {
		if a.kind == argSymbol {
			return c.m.functions[a.name]
		}
	}
	return nil
}

// body compiles the statements of a frame, with an end behind the last.
func (c *compiler) body(fr *frame) {
	c.f = fr
	fr.start = int32(len(c.k.code))
	end := statement{opcode: "ret", text: "the end of the body", line: fr.f.line}
	statements := append(slices.Clone(fr.f.statements), end)
	for i := range statements {
		c.s = &statements[i]
		fr.indices = append(fr.indices, int32(len(c.k.code)))
		c.guard = -1
		if c.s.guarded {
			c.guard = c.predicate(*c.s.guard)
		}
		if !c.statement() {
			c.fail(ErrUnknown, "")
		}
		c.f = fr
	}
}

// link resolves the branches, which are compiled as indices of statements.
func (c *compiler) link() {
	for i := range c.k.code {
		if in := &c.k.code[i]; in.kind == branch && in.target < 0 {
			in.target = c.frames[c.owner(i)].indices[-in.target-1]
		}
	}
}

// owner returns the function that has instruction i.
func (c *compiler) owner(i int) *function {
	var best *frame
	for _, fr := range c.frames {
		if int(fr.start) <= i && (best == nil || fr.start > best.start) {
			best = fr
		}
	}
	return best.f
}

// emit appends an instruction of the current statement.
func (c *compiler) emit(in instruction) {
	in.guard, in.negated = c.guard, c.s.negated
	in.opcode, in.text, in.line = c.s.opcode, c.s.text, c.s.line
	c.k.code = append(c.k.code, in)
}

// plain appends an instruction that computes.
func (c *compiler) plain(run func(*warp)) bool {
	c.emit(instruction{kind: plain, run: run})
	return true
}

func (c *compiler) fail(err error, detail string) { c.failAt(c.s, err, detail) }

// failAt records one error a statement.
func (c *compiler) failAt(s *statement, err error, detail string) {
	if n := len(c.errs); n > 0 {
		if last, ok := c.errs[n-1].(*Error); ok && last.Line == s.line && last.Text == s.text {
			return
		}
	}
	c.errs = append(c.errs, &Error{Err: err, Kernel: c.k.Name, Line: s.line, Text: s.text, Detail: detail})
}

func (c *compiler) slot(s slot) int32 {
	c.k.slots = append(c.k.slots, s)
	return int32(len(c.k.slots) - 1)
}

func (c *compiler) constant(v uint64) int32 {
	if i, ok := c.constants[v]; ok {
		return i
	}
	i := c.slot(slot{kind: slotConstant, name: fmt.Sprintf("%#x", v), value: v, typ: b64})
	c.constants[v] = i
	return i
}

// register returns the slot of a register, which has to be as wide as t. With wide, a wider one is
// fine too: ld, st and cvt take it.
func (c *compiler) register(a argument, t ptype, wide bool) int32 {
	if a.kind != argRegister || a.negated {
		c.fail(ErrUnknown, "an operand that is no register")
		return 0
	}
	r := c.f.f.regs[a.register]
	if r.typ.kind == 'p' || r.typ.bits < t.bits || r.typ.bits > t.bits && !wide {
		c.fail(ErrUnknown, fmt.Sprintf("%s is a register of type %v", r.name, r.typ))
		return 0
	}
	at := &c.f.registers[a.register]
	if *at < 0 {
		*at = c.slot(slot{kind: slotRegister, name: r.name, typ: r.typ})
	}
	return *at
}

// width returns the width of the register that a names, in bits.
func (c *compiler) width(a argument) int {
	if a.kind == argRegister {
		return c.f.f.regs[a.register].typ.bits
	}
	return 0
}

// predicate returns the index of a predicate register.
func (c *compiler) predicate(a argument) int32 {
	if a.kind != argRegister || c.f.f.regs[a.register].typ != prd {
		c.fail(ErrUnknown, "an operand that is no predicate")
		return 0
	}
	at := &c.f.registers[a.register]
	if *at < 0 {
		*at = int32(len(c.k.predicates))
		c.k.predicates = append(c.k.predicates, a.name)
	}
	return *at
}

// source returns the slot of an operand that is read as a value of type t.
func (c *compiler) source(a argument, t ptype) int32 { return c.operand(a, t, false) }

func (c *compiler) operand(a argument, t ptype, wide bool) int32 {
	switch a.kind {
	case argRegister:
		return c.register(a, t, wide)
	case argImmediate:
		switch {
		case a.float == 'f' && t.bits == 32, a.float == 'd' && t.bits == 64, a.float == 0 && t.kind != 'f':
			return c.constant(a.value & t.mask())
		}
		c.fail(ErrUnknown, fmt.Sprintf("%s is no value of type %v", a.name, t))
	case argSpecial:
		if t.bits != 32 {
			c.fail(ErrUnknown, a.name+" has 32 bits")
		}
		if i, ok := c.named[a.name]; ok {
			return i
		}
		i := c.slot(slot{kind: slotSpecial, name: a.name, typ: u32})
		c.named[a.name] = i
		return i
	case argSymbol:
		return c.address(a)
	default:
		c.fail(ErrUnknown, "an operand of this kind")
	}
	return 0
}

// address returns the slot with the address of a variable, in its own space.
func (c *compiler) address(a argument) int32 {
	v := a.variable
	if v == nil {
		v = c.m.variables[a.name]
	}
	if v == nil {
		c.fail(ErrSyntax, a.name+" is not declared")
		return 0
	}
	switch v.space {
	case "shared":
		return c.constant(uint64(sharedStart + v.offset))
	case "local", "param":
		if offset, ok := c.f.offsets[v]; ok {
			return c.constant(uint64(localStart + offset))
		}
		return c.constant(uint64(v.offset)) // a parameter of the kernel
	}
	if v.extern || v.size == 0 {
		c.fail(ErrUnknown, a.name+" is declared and has no memory")
		return 0
	}
	if i, ok := c.named[v.name]; ok {
		return i
	}
	i := c.slot(slot{kind: slotAddress, name: v.name, typ: u64})
	c.named[v.name] = i
	return i
}
