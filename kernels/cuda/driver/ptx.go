package driver

import (
	"fmt"
	"strconv"
	"strings"
)

// Param is a parameter of a kernel, as its PTX declares it.
type Param struct {
	Name   string
	Type   string // "u64", "f32", "b8"; of an array, of its elements
	Count  int    // the elements of an array; 0 for a single value
	Size   int    // in bytes, of all elements
	Align  int
	Offset int // of the first byte in the packed parameters
}

// ParamList is the list of a kernel's parameters. It does not change, and is safe for concurrent
// use.
type ParamList struct {
	Kernel string
	Params []Param
	Size   int // of the packed parameters; nothing is padded after the last
}

// maxParams is the most bytes of parameters that a kernel may have on every GPU (NVIDIA, CUDA C++
// Programming Guide: 4 KiB before compute capability 7.0, 32,764 bytes since).
const maxParams = 4096

// ParamLists reads the parameter lists of all kernels in a PTX file, by the kernel's name. It reads
// the .entry directives and skips the rest, which the driver's compiler checks.
func ParamLists(ptx string) (map[string]*ParamList, error) {
	p := &ptxParser{text: ptx, line: 1}
	lists := map[string]*ParamList{}
	for p.next(); p.token != ""; {
		if p.token != ".entry" {
			p.next()
			continue
		}
		list, err := p.entry()
		if err != nil {
			return nil, fmt.Errorf("PTX, line %d: %w", p.line, err)
		}
		if lists[list.Kernel] != nil {
			return nil, fmt.Errorf("PTX, line %d: kernel %s stands there twice", p.line, list.Kernel)
		}
		lists[list.Kernel] = list
	}
	return lists, nil
}

// ptxParser splits PTX into tokens: names, numbers, directives with their dot, single signs, and
// strings as "\"". Comments are skipped.
type ptxParser struct {
	text  string // what follows token
	token string // "" at the end
	line  int
}

// next reads the next token.
func (p *ptxParser) next() {
	for p.text != "" {
		switch {
		case p.text[0] == '\n':
			p.line++
			p.text = p.text[1:]
		case strings.IndexByte(" \t\r", p.text[0]) >= 0:
			p.text = p.text[1:]
		case strings.HasPrefix(p.text, "//"):
			p.skip(strings.IndexByte(p.text, '\n'))
		case strings.HasPrefix(p.text, "/*"):
			end := strings.Index(p.text[2:], "*/")
			if end >= 0 {
				end += 4
			}
			p.skip(end)
		case p.text[0] == '"':
			end := strings.IndexByte(p.text[1:], '"')
			if end >= 0 {
				end += 2
			}
			p.skip(end)
			p.token = `"`
			return
		default:
			n := 1
			if word(p.text[0]) || p.text[0] == '.' {
				for n < len(p.text) && word(p.text[n]) {
					n++
				}
			}
			p.token, p.text = p.text[:n], p.text[n:]
			return
		}
	}
	p.token = ""
}

// skip skips n bytes, and everything if n is negative.
func (p *ptxParser) skip(n int) {
	if n < 0 {
		n = len(p.text)
	}
	p.line += strings.Count(p.text[:n], "\n")
	p.text = p.text[n:]
}

// word reports whether a name may have c in it.
func word(c byte) bool {
	return c == '_' || c == '$' || c == '%' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// name reads a name.
func (p *ptxParser) name(what string) (string, error) {
	name := p.token
	if name == "" || !word(name[0]) || '0' <= name[0] && name[0] <= '9' {
		return "", fmt.Errorf("%q is no name of a %s", name, what)
	}
	p.next()
	return name, nil
}

// number reads a number from 1 to most.
func (p *ptxParser) number(what string, most int) (int, error) {
	n, err := strconv.ParseUint(p.token, 0, 32)
	if err != nil || n == 0 || n > uint64(most) {
		return 0, fmt.Errorf("%s %q: want a number from 1 to %d", what, p.token, most)
	}
	p.next()
	return int(n), nil
}

// align reads what follows .align.
func (p *ptxParser) align() (int, error) {
	p.next()
	n, err := p.number("alignment", 4096)
	if err == nil && n&(n-1) != 0 {
		err = fmt.Errorf("alignment %d is no power of 2", n)
	}
	return n, err
}

// accept skips token if it is next, and reports whether it was.
func (p *ptxParser) accept(token string) bool {
	if p.token != token {
		return false
	}
	p.next()
	return true
}

// entry reads what follows .entry, up to the end of the parameters.
func (p *ptxParser) entry() (*ParamList, error) {
	p.next()
	name, err := p.name("kernel")
	if err != nil {
		return nil, err
	}
	list := &ParamList{Kernel: name}
	if !p.accept("(") || p.accept(")") {
		return list, nil // no parameters
	}
	for {
		param, err := p.param()
		if err != nil {
			return nil, fmt.Errorf("kernel %s, parameter %d: %w", name, len(list.Params), err)
		}
		param.Offset = (list.Size + param.Align - 1) &^ (param.Align - 1)
		list.Size = param.Offset + param.Size
		if list.Size > maxParams {
			return nil, fmt.Errorf("kernel %s: parameters take %d bytes, and at most %d fit a launch", name, list.Size, maxParams)
		}
		list.Params = append(list.Params, param)
		if p.accept(")") {
			return list, nil
		}
		if !p.accept(",") {
			return nil, fmt.Errorf("kernel %s: %q after parameter %s: want a comma or a parenthesis", name, p.token, param.Name)
		}
	}
}

// sizes has the bytes of the types that a parameter may have.
var sizes = map[string]int{
	".b8": 1, ".u8": 1, ".s8": 1, ".b16": 2, ".u16": 2, ".s16": 2, ".f16": 2, ".b32": 4, ".u32": 4, ".s32": 4,
	".f32": 4, ".b64": 8, ".u64": 8, ".s64": 8, ".f64": 8,
}

// param reads a declaration such as
//
//	.param .align 8 .b8 name[16]
//	.param .u64 .ptr .global .align 16 name
//
// An .align after .ptr belongs to the memory that the parameter points to.
func (p *ptxParser) param() (param Param, err error) {
	if !p.accept(".param") {
		return param, fmt.Errorf("%q: want .param", p.token)
	}
	if p.token == ".align" {
		if param.Align, err = p.align(); err != nil {
			return param, err
		}
	}
	size := sizes[p.token]
	if size == 0 {
		return param, fmt.Errorf("type %q is not known", p.token)
	}
	param.Type, param.Size, param.Align = p.token[1:], size, max(param.Align, size)
	p.next()
	if p.accept(".ptr") {
		for _, space := range []string{".global", ".const", ".shared", ".local"} {
			if p.accept(space) {
				break
			}
		}
		if p.token == ".align" {
			if _, err := p.align(); err != nil {
				return param, err
			}
		}
	}
	if param.Name, err = p.name("parameter"); err != nil {
		return param, err
	}
	if p.accept("[") {
		if param.Count, err = p.number("size of array "+param.Name, maxParams); err != nil {
			return param, err
		}
		param.Size *= param.Count
		if !p.accept("]") {
			return param, fmt.Errorf("array %s: %q: want a bracket", param.Name, p.token)
		}
	}
	return param, nil
}
