package driver

import (
	"fmt"
	"math"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Params has the packed arguments of one launch, in memory outside the Go heap. Start begins a
// launch, and a method for each argument follows, in the order of the kernel's parameters:
//
//	p.Start(list).Ptr(dst).Ptr(src).U32(rows).F32(scale)
//	err := c.LaunchKernel(f, grid, block, 0, stream, p)
//
// LaunchKernel copies the arguments before it returns (NVIDIA, CUDA Driver API, cuLaunchKernel), so
// that one Params serves all launches of a goroutine, without an allocation. A Params belongs to
// one goroutine at a time; whoever made it closes it.
//
// An argument that does not fit the parameter is a bug of the caller, and panics with the names of
// kernel and parameter. On an H100 the driver did not notice a buffer that was 8 bytes too short
// (tools/results/gpu.md).
type Params struct {
	memory []byte     // two halves: packed arguments; the option list of a launch
	list   *ParamList // of the launch; nil before Start
	next   int        // the parameter that the next argument is for
}

// NewParams maps the memory of a Params.
func NewParams() (*Params, error) {
	memory, err := unix.Mmap(-1, 0, 2*maxParams, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("memory for the arguments of a launch: %w", err)
	}
	p := &Params{memory: memory}
	// The list of cuLaunchKernel's extra: CU_LAUNCH_PARAM_BUFFER_POINTER is 1, and then its value;
	// CU_LAUNCH_PARAM_BUFFER_SIZE is 2, and then the address of the size; CU_LAUNCH_PARAM_END is 0.
	option := p.options()
	option[0], option[1] = 1, uint64(uintptr(unsafe.Pointer(&memory[0])))
	option[2], option[3] = 2, uint64(uintptr(unsafe.Pointer(&option[5])))
	return p, nil
}

// options returns the option list and, as its last element, the size of the arguments.
func (p *Params) options() *[6]uint64 { return (*[6]uint64)(unsafe.Pointer(&p.memory[maxParams])) }

// Close gives the memory back.
func (p *Params) Close() error {
	memory := p.memory
	p.memory, p.list = nil, nil
	return unix.Munmap(memory)
}

// Start begins the arguments of a launch of a kernel with this list, and forgets the last.
func (p *Params) Start(list *ParamList) *Params {
	p.list, p.next = list, 0
	p.options()[5] = uint64(list.Size)
	return p
}

// The kinds of arguments, with their sizes in the low bits: see take.
const (
	integer = 16
	float   = 32
	block   = 64
)

// accepts reports whether a parameter of this type takes an argument of that kind. Signs make no
// difference: clang declares an int as .u32.
func accepts(typ string, kind int) bool {
	switch typ[0] {
	case 'u', 's':
		return kind&integer != 0
	case 'f':
		// Go has no float16: its bits are a uint16.
		return kind&float != 0 || typ == "f16" && kind == integer|2
	}
	return true // b8 to b64 are bits
}

// take returns the place of the next argument, which is of this kind.
func (p *Params) take(kind int, argument string) unsafe.Pointer {
	if p.list == nil {
		panic("driver: an argument before Start")
	}
	if p.next >= len(p.list.Params) {
		panic(fmt.Sprintf("driver: kernel %s has %d parameters, and gets another argument, a %s", p.list.Kernel, p.next, argument))
	}
	at := &p.list.Params[p.next]
	if kind&15 != at.Size || at.Count != 0 || !accepts(at.Type, kind) {
		p.refuse(at, argument)
	}
	p.next++
	return unsafe.Pointer(&p.memory[at.Offset])
}

func (p *Params) refuse(at *Param, argument string) {
	typ := "." + at.Type
	if at.Count != 0 {
		typ = fmt.Sprintf("%s[%d]", typ, at.Count)
	}
	panic(fmt.Sprintf("driver: kernel %s: parameter %d, %s, is %s of %d bytes, and the argument a %s",
		p.list.Kernel, p.next, at.Name, typ, at.Size, argument))
}

// Ptr adds an address of the device.
func (p *Params) Ptr(v Ptr) *Params {
	*(*Ptr)(p.take(integer|8, "Ptr")) = v
	return p
}

// U64 adds an integer of 64 bits.
func (p *Params) U64(v uint64) *Params {
	*(*uint64)(p.take(integer|8, "uint64")) = v
	return p
}

// U32 adds an integer of 32 bits.
func (p *Params) U32(v uint32) *Params {
	*(*uint32)(p.take(integer|4, "uint32")) = v
	return p
}

// I32 adds an integer of 32 bits.
func (p *Params) I32(v int32) *Params {
	*(*int32)(p.take(integer|4, "int32")) = v
	return p
}

// U16 adds an integer of 16 bits, or the bits of a float16.
func (p *Params) U16(v uint16) *Params {
	*(*uint16)(p.take(integer|2, "uint16")) = v
	return p
}

// U8 adds an integer of 8 bits, or a bool.
func (p *Params) U8(v uint8) *Params {
	*(*uint8)(p.take(integer|1, "uint8")) = v
	return p
}

// F32 adds a float32.
func (p *Params) F32(v float32) *Params {
	*(*uint32)(p.take(float|4, "float32")) = math.Float32bits(v)
	return p
}

// F64 adds a float64.
func (p *Params) F64(v float64) *Params {
	*(*uint64)(p.take(float|8, "float64")) = math.Float64bits(v)
	return p
}

// Block adds the bytes of a struct that is passed by value: PTX declares it as an array.
func (p *Params) Block(v []byte) *Params {
	if p.list == nil || p.next >= len(p.list.Params) {
		p.take(block, fmt.Sprintf("block of %d bytes", len(v))) // panics
	}
	at := &p.list.Params[p.next]
	if at.Count == 0 || at.Size != len(v) {
		p.refuse(at, fmt.Sprintf("block of %d bytes", len(v)))
	}
	copy(p.memory[at.Offset:], v)
	p.next++
	return p
}

// Bytes returns the packed arguments, which are lent until the next Start. It panics if one is
// missing. Bytes between parameters are undefined.
func (p *Params) Bytes() []byte {
	p.complete()
	return p.memory[:p.list.Size:p.list.Size]
}

func (p *Params) complete() {
	switch {
	case p.list == nil:
		panic("driver: a launch before Start")
	case p.next < len(p.list.Params):
		panic(fmt.Sprintf("driver: kernel %s has %d parameters, and gets %d arguments: %s is missing",
			p.list.Kernel, len(p.list.Params), p.next, p.list.Params[p.next].Name))
	}
}
