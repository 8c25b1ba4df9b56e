//go:build cuda && linux

package main

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// code is a CUresult.
type code uint32

const (
	success       code = 0
	outOfMemory   code = 2
	illegalAccess code = 700
)

// symbol is the address of a C function.
type symbol uintptr

// call calls s. Arguments are numbers, device addresses, or addresses off the Go heap.
func (s symbol) call(args ...uintptr) code {
	r, _, _ := purego.SyscallN(uintptr(s), args...)
	return code(uint32(r))
}

// failure is a call that the driver refused.
type failure struct {
	call string
	code code
	name string
}

func (f failure) Error() string { return fmt.Sprintf("%s: error %d %s", f.call, f.code, f.name) }

// address is a place in the device's memory.
type address uint64

// The handles of the driver.
type (
	stream   uintptr
	event    uintptr
	function uintptr
)

// driver holds the functions of libcuda. Any goroutine may call, on a thread that has the context
// (see [driver.enter]).
type driver struct {
	handle  uintptr
	symbols map[string]symbol
	device  int
	context uintptr
	memory  *arena // for results; one goroutine at a time

	// Timed calls are looked up once.
	setCurrent, launch, copyUp, copyDown, copyWithin, record, wait symbol
}

// required has the functions that the tool calls. A driver that lacks one of them is refused.
var required = []string{
	"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetName",
	"cuDeviceGetAttribute", "cuDeviceTotalMem_v2", "cuDeviceGetUuid_v2",
	"cuDevicePrimaryCtxRetain", "cuDevicePrimaryCtxRelease_v2", "cuDevicePrimaryCtxReset_v2",
	"cuCtxSetCurrent", "cuCtxGetCurrent", "cuCtxSynchronize",
	"cuMemAlloc_v2", "cuMemFree_v2", "cuMemAllocAsync", "cuMemFreeAsync", "cuMemGetInfo_v2",
	"cuDeviceGetDefaultMemPool", "cuMemPoolSetAttribute",
	"cuMemHostAlloc", "cuMemFreeHost", "cuMemHostRegister_v2", "cuMemHostUnregister",
	"cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuMemcpyDtoDAsync_v2", "cuMemsetD32Async",
	"cuStreamCreate", "cuStreamDestroy_v2", "cuStreamSynchronize", "cuStreamQuery",
	"cuStreamWaitEvent", "cuEventCreate", "cuEventDestroy_v2", "cuEventRecord",
	"cuEventSynchronize", "cuEventQuery", "cuEventElapsedTime", "cuModuleLoadDataEx",
	"cuModuleUnload", "cuModuleGetFunction", "cuFuncGetAttribute", "cuLaunchKernel",
	"cuOccupancyMaxActiveBlocksPerMultiprocessor", "cuGetErrorName", "cuGetErrorString",
}

// openDriver loads and initialises the driver from library. It makes no context.
func openDriver(library string) (*driver, error) {
	handle, err := purego.Dlopen(library, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, fmt.Errorf("loading the driver: %w", err)
	}
	d := &driver{handle: handle, symbols: map[string]symbol{}, memory: newArena(1 << 20)}
	for _, name := range required {
		at, err := purego.Dlsym(handle, name)
		if err != nil {
			return nil, fmt.Errorf("the driver lacks a function: %w", err)
		}
		d.symbols[name] = symbol(at)
	}
	d.setCurrent = d.symbols["cuCtxSetCurrent"]
	d.launch = d.symbols["cuLaunchKernel"]
	d.copyUp = d.symbols["cuMemcpyHtoDAsync_v2"]
	d.copyDown = d.symbols["cuMemcpyDtoHAsync_v2"]
	d.copyWithin = d.symbols["cuMemcpyDtoDAsync_v2"]
	d.record = d.symbols["cuEventRecord"]
	d.wait = d.symbols["cuStreamWaitEvent"]
	if c := d.try("cuInit", 0); c != success {
		return nil, d.failure("cuInit", c)
	}
	return d, nil
}

// open calls openDriver, and then makes the primary context of device 0 current on this thread.
func open(o *options) (*driver, error) {
	d, err := openDriver(o.library)
	if err != nil {
		return nil, err
	}
	out := d.memory.words(2)
	d.do("cuDeviceGet", at(out), 0)
	d.device = int(out[0])
	context := d.memory.longs(1)
	d.do("cuDevicePrimaryCtxRetain", at(context), uintptr(d.device))
	d.context = uintptr(context[0])
	d.enter()
	return d, nil
}

// enter makes the context current on the caller's thread, which the caller has locked.
func (d *driver) enter() { d.must("cuCtxSetCurrent", d.setCurrent.call(d.context)) }

// try calls the function of this name.
func (d *driver) try(name string, args ...uintptr) code {
	s, known := d.symbols[name]
	if !known {
		panic("not looked up: " + name)
	}
	return s.call(args...)
}

// do is try, but panics with a failure.
func (d *driver) do(name string, args ...uintptr) { d.must(name, d.try(name, args...)) }

func (d *driver) must(name string, c code) {
	if c != success {
		panic(d.failure(name, c))
	}
}

func (d *driver) failure(call string, c code) failure {
	return failure{call: call, code: c, name: d.errorName(c)}
}

// errorName returns the driver's name of an error, and its text.
func (d *driver) errorName(c code) string {
	out := newArena(4096)
	defer out.free()
	pointers := out.longs(2)
	d.try("cuGetErrorName", uintptr(c), at(pointers[:1]))
	d.try("cuGetErrorString", uintptr(c), at(pointers[1:]))
	return fmt.Sprintf("%s (%s)", text(pointers[0]), text(pointers[1]))
}

// text copies the C string at p.
func text(p uint64) string {
	if p == 0 {
		return "?"
	}
	base := fromC(uintptr(p))
	n := 0
	for *(*byte)(unsafe.Add(base, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(base), n))
}

// fromC returns an address from C as a pointer. The address is off the Go heap, so the collector
// ignores it. The detour over &p keeps vet from reporting a misused unsafe.Pointer.
func fromC(p uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&p)) }

// attribute is cuDeviceGetAttribute.
func (d *driver) attribute(which int) int {
	out := d.memory.words(1)
	d.do("cuDeviceGetAttribute", at(out), uintptr(which), uintptr(d.device))
	return int(int32(out[0]))
}

func (d *driver) alloc(bytes int) address {
	out := d.memory.longs(1)
	d.do("cuMemAlloc_v2", at(out), uintptr(bytes))
	return address(out[0])
}

func (d *driver) freeMemory(a address) { d.do("cuMemFree_v2", uintptr(a)) }

// newStream makes a non-blocking stream: it does not wait for the default stream.
func (d *driver) newStream() stream {
	out := d.memory.longs(1)
	d.do("cuStreamCreate", at(out), 1)
	return stream(out[0])
}

// newEvent makes an event. Timed events cost more to record.
func (d *driver) newEvent(timed bool) event {
	out := d.memory.longs(1)
	flags := uintptr(2) // CU_EVENT_DISABLE_TIMING
	if timed {
		flags = 0
	}
	d.do("cuEventCreate", at(out), flags)
	return event(out[0])
}

func (d *driver) upload(to address, from uintptr, bytes int, s stream) {
	d.must("cuMemcpyHtoDAsync", d.copyUp.call(uintptr(to), from, uintptr(bytes), uintptr(s)))
}

func (d *driver) download(to uintptr, from address, bytes int, s stream) {
	d.must("cuMemcpyDtoHAsync", d.copyDown.call(to, uintptr(from), uintptr(bytes), uintptr(s)))
}

func (d *driver) copyDevice(to, from address, bytes int, s stream) {
	c := d.copyWithin.call(uintptr(to), uintptr(from), uintptr(bytes), uintptr(s))
	d.must("cuMemcpyDtoDAsync", c)
}

// fill sets the n words at a to value.
func (d *driver) fill(a address, value uint32, n int, s stream) {
	d.do("cuMemsetD32Async", uintptr(a), uintptr(value), uintptr(n), uintptr(s))
}

func (d *driver) recordOn(e event, s stream) {
	d.must("cuEventRecord", d.record.call(uintptr(e), uintptr(s)))
}

func (d *driver) waitOn(s stream, e event) {
	d.must("cuStreamWaitEvent", d.wait.call(uintptr(s), uintptr(e), 0))
}

func (d *driver) syncEvent(e event)   { d.do("cuEventSynchronize", uintptr(e)) }
func (d *driver) syncStream(s stream) { d.do("cuStreamSynchronize", uintptr(s)) }
func (d *driver) sync()               { d.do("cuCtxSynchronize") }
