package interp

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Limits that keep a small text from asking for much memory. A device has less: 48 KiB of static
// shared memory, 4 KiB of parameters (CUDA C++ Programming Guide, table of technical
// specifications).
const (
	maxVariable = 64 << 20 // bytes
	maxShared   = 48 << 10
	maxLocal    = 512 << 10 // of a thread
	maxParams   = 4 << 10
)

// Parse reads a PTX module and compiles its kernels. Its error joins what it found: an [Error] for
// each line with an instruction that it does not know.
func Parse(text string) (*Module, error) {
	if len(text) > maxSource {
		return nil, syntaxError(0, fmt.Sprintf("%d bytes of text, and at most %d are read", len(text), maxSource))
	}
	tokens, err := lex(text)
	if err != nil {
		return nil, err
	}
	p := &parser{source: text, tokens: tokens, m: &Module{
		kernels: map[string]*Kernel{}, functions: map[string]*function{}, variables: map[string]*variable{},
	}}
	for !p.done() {
		if err := p.item(); err != nil {
			return nil, err
		}
	}
	if p.m.Version == "" || p.m.Target == "" {
		return nil, syntaxError(0, "no .version or no .target")
	}
	var findings []error
	for _, f := range p.entries {
		k, errs := compile(p.m, f)
		if findings = append(findings, errs...); len(findings) > 20 {
			break
		}
		p.m.kernels[f.name] = k
		p.m.names = append(p.m.names, f.name)
	}
	if len(findings) > 0 {
		return nil, errors.Join(findings...)
	}
	return p.m, nil
}

// A parser reads tokens from left to right, and resolves names as it goes.
type parser struct {
	source  string
	tokens  []token
	next    int
	m       *Module
	entries []*function

	f      *function // whose body is being read
	scopes []scope   // of the body, the innermost last
}

// A scope has the names between two braces.
type scope struct {
	registers map[string]int // to the index in f.regs
	families  []family
	variables map[string]*variable
}

// A family is a declaration like %r<9>. Its registers come to be as they are named, so that a
// large count costs nothing.
type family struct {
	prefix string
	count  uint64
	typ    ptype
}

func (p *parser) done() bool { return p.next == len(p.tokens) }

// peek returns the next token's text, or "" at the end.
func (p *parser) peek() string {
	if p.done() {
		return ""
	}
	return p.tokens[p.next].text
}

func (p *parser) take() string {
	text := p.peek()
	if !p.done() {
		p.next++
	}
	return text
}

// line returns the line of the token that was taken last.
func (p *parser) line() int {
	if p.next == 0 {
		return 1
	}
	return p.tokens[p.next-1].line
}

func (p *parser) accept(text string) bool {
	if p.peek() == text {
		p.next++
		return true
	}
	return false
}

func (p *parser) expect(text string) error {
	if got := p.peek(); got != text {
		return p.errorf("%q, where %q is expected", got, text)
	}
	p.next++
	return nil
}

func (p *parser) errorf(format string, args ...any) error {
	line := p.line()
	if !p.done() {
		line = p.tokens[p.next].line
	}
	err := &Error{Err: ErrSyntax, Line: line, Detail: fmt.Sprintf(format, args...)}
	if p.f != nil {
		err.Kernel = p.f.name
	}
	return err
}

// item reads a directive, a variable, a function or an entry of the module.
func (p *parser) item() error {
	extern := false
	for {
		switch word := p.take(); word {
		case ".version":
			p.m.Version = p.take()
			return nil
		case ".target":
			p.m.Target = p.take()
			for p.accept(",") {
				p.take()
			}
			return nil
		case ".address_size":
			if size := p.take(); size != "64" {
				return p.errorf("addresses of %s bits", size)
			}
			return nil
		case ".visible", ".weak":
		case ".extern":
			extern = true
		case ".entry", ".func":
			return p.function(word == ".entry")
		case ".global", ".const", ".shared":
			v, err := p.variable(word[1:], extern)
			if err != nil {
				return err
			}
			if p.m.variables[v.name] != nil {
				return p.errorf("%s is declared twice", v.name)
			}
			p.m.variables[v.name] = v
			return p.expect(";")
		default:
			p.next--
			return p.errorf("unknown directive %q", word)
		}
	}
}

// number reads an unsigned integer below most.
func (p *parser) number(most uint64) (uint64, error) {
	text := p.take()
	n, err := strconv.ParseUint(strings.TrimSuffix(text, "U"), 0, 64)
	if err != nil || n > most {
		return 0, p.errorf("%q, where a number up to %d is expected", text, most)
	}
	return n, nil
}

// variable reads "[.align n] .type name[size] [= values]". The directive of the space was taken.
func (p *parser) variable(space string, extern bool) (*variable, error) {
	v := &variable{space: space, extern: extern}
	for v.typ == (ptype{}) {
		switch word := p.take(); word {
		case ".align":
			n, err := p.number(1 << 10)
			if err != nil {
				return nil, err
			}
			if n == 0 || n&(n-1) != 0 {
				return nil, p.errorf("an alignment of %d", n)
			}
			v.align = int(n)
		case ".ptr", ".global", ".const", ".shared", ".local": // what a parameter points to: unused
			if space != "param" {
				return nil, p.errorf("%s in a variable", word)
			}
		default:
			t, ok := types[strings.TrimPrefix(word, ".")]
			if !ok || !strings.HasPrefix(word, ".") || t == prd {
				return nil, p.errorf("%q, where a type is expected", word)
			}
			v.typ = t
		}
	}
	for slices.Contains([]string{".ptr", ".align", ".global", ".shared", ".const"}, p.peek()) {
		if p.take() == ".align" {
			p.take() // of what the pointer points to
		}
	}
	if v.name = p.take(); v.name == "" || !isWord(v.name[0]) || v.name[0] == '.' {
		return nil, p.errorf("%q, where a name is expected", v.name)
	}
	v.size = v.typ.bytes()
	v.align = max(v.align, v.size)
	for p.accept("[") {
		if p.accept("]") {
			if !extern || space != "shared" {
				return nil, p.errorf("%s has no size", v.name)
			}
			v.size = 0
			continue
		}
		n, err := p.number(maxVariable)
		if err != nil {
			return nil, err
		}
		if n > 0 && v.size > maxVariable/int(n) {
			return nil, p.errorf("%s has over %d bytes", v.name, maxVariable)
		}
		v.size *= int(n)
		if err := p.expect("]"); err != nil {
			return nil, err
		}
	}
	if p.accept("=") {
		if space != "global" && space != "const" {
			return nil, p.errorf("an initial value in .%s", space)
		}
		if err := p.values(v); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// values reads the initial value of v: a number, or numbers in braces.
func (p *parser) values(v *variable) error {
	if p.accept("{") {
		for !p.accept("}") {
			if err := p.values(v); err != nil {
				return err
			}
			if p.peek() != "}" {
				if err := p.expect(","); err != nil {
					return err
				}
			}
		}
		return nil
	}
	a, err := p.literal()
	if err != nil {
		return err
	}
	if len(v.init)+v.typ.bytes() > v.size {
		return p.errorf("%s has more values than room", v.name)
	}
	for i := range v.typ.bytes() {
		v.init = append(v.init, byte(a.value>>(8*i)))
	}
	return nil
}

// function reads an entry or a function. The directive was taken.
func (p *parser) function(entry bool) error {
	f := &function{entry: entry, line: p.line(), labels: map[string]int{}}
	var err error
	if !entry && p.peek() == "(" {
		if f.results, err = p.params(); err != nil {
			return err
		}
	}
	f.name = p.take()
	if f.name == "" || !isWord(f.name[0]) {
		return p.errorf("%q, where the name of a function is expected", f.name)
	}
	if p.peek() == "(" {
		if f.params, err = p.params(); err != nil {
			return err
		}
	}
	for p.peek() != "{" && p.peek() != ";" {
		switch word := p.take(); word {
		case ".maxntid":
			f.maxThreads, err = p.threads()
		case ".reqntid":
			f.exact, err = p.threads()
		case ".minnctapersm", ".maxnreg":
			_, err = p.number(1 << 16)
		case ".noreturn":
		default:
			p.next--
			return p.errorf("unknown directive %q of %s", word, f.name)
		}
		if err != nil {
			return err
		}
	}
	if old := p.m.functions[f.name]; old != nil {
		if old.defined && p.peek() == "{" || old.entry != entry {
			return p.errorf("%s is declared twice", f.name)
		}
		if old.defined { // a declaration after the definition
			return p.expect(";")
		}
		*old = *f // keeps the pointer that earlier calls may have
		f = old
	} else {
		p.m.functions[f.name] = f
	}
	if p.accept(";") {
		return nil
	}
	f.defined = true
	p.f, p.scopes = f, nil
	err = p.body()
	p.f = nil
	if entry {
		p.entries = append(p.entries, f)
	}
	return err
}

// threads reads up to three numbers of .maxntid; the ones left out are 1.
func (p *parser) threads() (n [3]uint32, err error) {
	n = [3]uint32{1, 1, 1}
	for i := range n {
		v, err := p.number(1 << 10)
		if err != nil {
			return n, err
		}
		n[i] = uint32(v)
		if !p.accept(",") {
			break
		}
	}
	return n, nil
}

// params reads a list of .param variables, and lays them out one after the other.
func (p *parser) params() ([]*variable, error) {
	var vars []*variable
	if err := p.expect("("); err != nil {
		return nil, err
	}
	end := 0
	for !p.accept(")") {
		if len(vars) > 0 {
			if err := p.expect(","); err != nil {
				return nil, err
			}
		}
		if err := p.expect(".param"); err != nil {
			return nil, err
		}
		v, err := p.variable("param", false)
		if err != nil {
			return nil, err
		}
		v.offset = roundUp(end, v.align)
		if end = v.offset + v.size; end > maxParams {
			return nil, p.errorf("over %d bytes of parameters", maxParams)
		}
		vars = append(vars, v)
	}
	return vars, nil
}

func roundUp(n, multiple int) int { return (n + multiple - 1) / multiple * multiple }

func (p *parser) body() error {
	if err := p.expect("{"); err != nil {
		return err
	}
	p.scopes = append(p.scopes, scope{registers: map[string]int{}, variables: map[string]*variable{}})
	for _, v := range slices.Concat(p.f.params, p.f.results) {
		p.scopes[0].variables[v.name] = v
	}
	for len(p.scopes) > 0 {
		switch text := p.peek(); {
		case text == "":
			return p.errorf("the body of %s does not end", p.f.name)
		case text == "{":
			p.next++
			if len(p.scopes) > 16 {
				return p.errorf("braces nested over 16 deep")
			}
			p.scopes = append(p.scopes, scope{registers: map[string]int{}, variables: map[string]*variable{}})
		case text == "}":
			p.next++
			p.scopes = p.scopes[:len(p.scopes)-1]
		case text == ";":
			p.next++
		case text[0] == '.':
			if err := p.declaration(); err != nil {
				return err
			}
		case p.next+1 < len(p.tokens) && p.tokens[p.next+1].text == ":":
			if _, ok := p.f.labels[text]; ok {
				return p.errorf("label %s stands there twice", text)
			}
			p.f.labels[text] = len(p.f.statements)
			p.next += 2
		default:
			if err := p.statement(); err != nil {
				return err
			}
		}
	}
	return nil
}

// declaration reads a directive inside a body.
func (p *parser) declaration() error {
	top := &p.scopes[len(p.scopes)-1]
	switch word := p.take(); word {
	case ".reg":
		t, ok := types[strings.TrimPrefix(p.peek(), ".")]
		if !ok {
			return p.errorf("registers of type %q", p.peek())
		}
		p.next++
		for {
			name := p.take()
			if name == "" || !isWord(name[0]) {
				return p.errorf("%q, where the name of a register is expected", name)
			}
			if p.accept("<") {
				n, err := p.number(1 << 32)
				if err != nil {
					return err
				}
				top.families = append(top.families, family{name, n, t})
				if err := p.expect(">"); err != nil {
					return err
				}
			} else {
				top.registers[name] = len(p.f.regs)
				p.f.regs = append(p.f.regs, register{name, t})
			}
			if !p.accept(",") {
				break
			}
		}
	case ".local", ".shared", ".param":
		v, err := p.variable(word[1:], false)
		if err != nil {
			return err
		}
		top.variables[v.name] = v
		if word == ".shared" {
			p.f.shareds = append(p.f.shareds, v)
		} else {
			p.f.locals = append(p.f.locals, v)
		}
	case ".pragma":
		if text := p.take(); text != `"nounroll"` {
			return p.errorf("unknown pragma %s", text)
		}
	default:
		p.next--
		return p.errorf("unknown directive %q", word)
	}
	return p.expect(";")
}
