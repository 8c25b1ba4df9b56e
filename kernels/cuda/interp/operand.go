package interp

import (
	"strconv"
	"strings"
)

// statement reads an instruction up to its semicolon.
func (p *parser) statement() error {
	start := p.tokens[p.next]
	s := statement{line: start.line}
	if p.accept("@") {
		s.guarded = true
		s.negated = p.accept("!")
		a, err := p.argument()
		if err != nil {
			return err
		}
		if a.kind != argRegister || p.f.regs[a.register].typ != prd {
			return p.errorf("@ without a predicate")
		}
		s.guard = &a
	}
	if s.opcode = p.take(); s.opcode == "" || !(s.opcode[0] >= 'a' && s.opcode[0] <= 'z') {
		p.next--
		return p.errorf("%q, where an instruction is expected", s.opcode)
	}
	for p.peek() != ";" {
		if len(s.args) > 0 {
			if err := p.expect(","); err != nil {
				return err
			}
		}
		a, err := p.argument()
		if err != nil {
			return err
		}
		s.args = append(s.args, a)
	}
	s.text = strings.Join(strings.Fields(p.source[start.at:p.tokens[p.next].at]), " ")
	p.next++
	p.f.statements = append(p.f.statements, s)
	return nil
}

// argument reads one operand.
func (p *parser) argument() (a argument, err error) {
	switch text := p.peek(); {
	case text == "{" || text == "(":
		end := "}"
		a.kind = argVector
		if text == "(" {
			end, a.kind = ")", argList
		}
		p.next++
		for !p.accept(end) {
			if len(a.parts) > 0 {
				if err := p.expect(","); err != nil {
					return a, err
				}
			}
			part, err := p.plain()
			if err != nil {
				return a, err
			}
			a.parts = append(a.parts, part)
		}
		return a, nil
	case text == "[":
		p.next++
		a.kind = argAddress
		base, err := p.plain()
		if err != nil {
			return a, err
		}
		a.parts = []argument{base}
		if p.accept("+") {
			offset, err := p.literal()
			if err != nil {
				return a, err
			}
			a.offset = int64(offset.value)
		}
		return a, p.expect("]")
	case text == "!":
		p.next++
		a, err := p.plain()
		a.negated = true
		return a, err
	}
	first, err := p.plain()
	if err != nil || !p.accept("|") {
		return first, err
	}
	second, err := p.plain()
	return argument{kind: argPair, parts: []argument{first, second}}, err
}

// plain reads a register, a number, a special register, a symbol or the sink.
func (p *parser) plain() (a argument, err error) {
	text := p.peek()
	switch {
	case text == "":
		return a, p.errorf("an operand is missing")
	case text == "-" || text[0] >= '0' && text[0] <= '9':
		return p.literal()
	case !isWord(text[0]):
		return a, p.errorf("%q, where an operand is expected", text)
	}
	p.next++
	if text == "_" {
		return argument{kind: argSink}, nil
	}
	if r, v, ok := p.lookup(text); ok {
		if v != nil {
			return argument{kind: argSymbol, name: text, variable: v}, nil
		}
		return argument{kind: argRegister, register: r, name: text}, nil
	}
	if text[0] == '%' {
		if _, ok := specials[text]; ok {
			return argument{kind: argSpecial, name: text}, nil
		}
		p.next--
		return a, p.errorf("register %s is not declared", text)
	}
	return argument{kind: argSymbol, name: text, variable: p.m.variables[text]}, nil
}

// lookup finds a register or a variable of the body, in the innermost scope that has it.
func (p *parser) lookup(name string) (r int, v *variable, ok bool) {
	stem := strings.TrimRight(name, "0123456789")
	for i := len(p.scopes) - 1; i >= 0; i-- {
		s := &p.scopes[i]
		if r, ok := s.registers[name]; ok {
			return r, nil, true
		}
		if v, ok := s.variables[name]; ok {
			return 0, v, true
		}
		for _, f := range s.families {
			// A prefix may end in a digit itself, so the stem need not be all of it.
			if !strings.HasPrefix(name, f.prefix) || len(f.prefix) < len(stem) || len(f.prefix) == len(name) {
				continue
			}
			number := name[len(f.prefix):]
			n, err := strconv.ParseUint(number, 10, 64)
			if err != nil || n >= f.count || number[0] == '0' && len(number) > 1 {
				continue
			}
			r = len(p.f.regs)
			p.f.regs = append(p.f.regs, register{name, f.typ})
			s.registers[name] = r
			return r, nil, true
		}
	}
	return 0, nil, false
}

// literal reads a number: an integer, or a float by its bits, 0f3F800000 or 0d3FF0000000000000.
func (p *parser) literal() (a argument, err error) {
	negative := p.accept("-")
	text := p.take()
	a = argument{kind: argImmediate, name: text}
	switch {
	case len(text) > 2 && (text[:2] == "0f" || text[:2] == "0F"):
		a.float = 'f'
		a.value, err = strconv.ParseUint(text[2:], 16, 32)
	case len(text) > 2 && (text[:2] == "0d" || text[:2] == "0D"):
		a.float = 'd'
		a.value, err = strconv.ParseUint(text[2:], 16, 64)
	default:
		a.value, err = strconv.ParseUint(strings.TrimSuffix(text, "U"), 0, 64)
	}
	if err != nil || negative && a.float != 0 {
		return a, p.errorf("%q, where a number is expected", text)
	}
	if negative {
		a.value = -a.value
	}
	return a, nil
}
