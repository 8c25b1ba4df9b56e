//go:build cuda && linux && gorgonia

package driver

/*
#cgo LDFLAGS: -lcuda -ldl
#include <cuda.h>
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

// In the libcuda.a that tools/libcuda writes. If the linker does not find them, it took another.
void gnnstore_cuda_bind(void *library);
CUresult gnnstore_cuda_init(unsigned int flags);

// Handles come as numbers: to Go they are no pointers.

static CUresult launch(uintptr_t f, unsigned int gx, unsigned int gy, unsigned int gz, unsigned int bx,
		unsigned int by, unsigned int bz, unsigned int shared, uintptr_t stream, uintptr_t extra) {
	return cuLaunchKernel((CUfunction)f, gx, gy, gz, bx, by, bz, shared, (CUstream)stream, NULL, (void **)extra);
}

static CUresult set_attribute(uintptr_t f, int attribute, int value) {
	return cuFuncSetAttribute((CUfunction)f, (CUfunction_attribute)attribute, value);
}

static CUresult host_register(uintptr_t p, size_t bytes, unsigned int flags) {
	return cuMemHostRegister((void *)p, bytes, flags);
}

static CUresult host_unregister(uintptr_t p) { return cuMemHostUnregister((void *)p); }

static CUresult device_pointer(CUdeviceptr *d, uintptr_t p) { return cuMemHostGetDevicePointer(d, (void *)p, 0); }

static const char *error_name(CUresult code) {
	const char *text = NULL;
	cuGetErrorName(code, &text);
	return text;
}

static const char *error_string(CUresult code) {
	const char *text = NULL;
	cuGetErrorString(code, &text);
	return text;
}

// open_library and find return the linker's words in a buffer: a thread has one text of its own.
static void *open_library(const char *file, char *text, size_t n) {
	void *library = dlopen(file, RTLD_NOW | RTLD_GLOBAL);
	if (!library) snprintf(text, n, "%s", dlerror());
	return library;
}

static uintptr_t find(void *library, const char *name, char *text, size_t n) {
	void *symbol = dlsym(library, name);
	if (!symbol) snprintf(text, n, "%s", dlerror());
	return (uintptr_t)symbol;
}

// call passes 20 arguments, whatever number the function has: it leaves the rest alone, since the
// caller owns them (System V ABI for x86-64 and AAPCS64).
static int call(uintptr_t function, const uintptr_t *a) {
	typedef uintptr_t u;
	return ((int (*)(u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u, u))function)(a[0], a[1], a[2], a[3], a[4],
		a[5], a[6], a[7], a[8], a[9], a[10], a[11], a[12], a[13], a[14], a[15], a[16], a[17], a[18], a[19]);
}
*/
import "C"

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"
	"gorgonia.org/cu"
)

// Provider is the name of the package that calls the driver, for records.
const Provider = "gorgonia"

// bound is the driver that the process calls: the jumps of libcuda.a lead to one.
var bound struct {
	sync.Mutex
	library unsafe.Pointer // of dlopen; nil before Open
}

// Open opens the driver's library and leads the linked functions to it. "" stands for
// [DefaultLibrary]. A missing library or function is an [*OpenError]. A process calls one driver,
// and its library stays open until the process ends.
func Open(library string) (*Calls, error) {
	library = cmp.Or(library, DefaultLibrary)
	l, err := OpenLibrary(library)
	if err != nil {
		return nil, &OpenError{Library: library, Err: err}
	}
	for _, row := range Table() {
		if _, err := l.Symbol(row.Symbol); err != nil {
			return nil, &OpenError{Library: library, Symbol: row.Symbol, Err: err}
		}
	}
	bound.Lock()
	defer bound.Unlock()
	switch bound.library {
	case nil:
		C.gnnstore_cuda_bind(l.handle)
		bound.library = l.handle
	case l.handle:
	default:
		return nil, fmt.Errorf("%s: the process has opened another driver", library)
	}
	return newCalls(), nil
}

// Library is an open shared library. It is safe for concurrent use.
type Library struct{ handle unsafe.Pointer }

// OpenLibrary opens a shared library, such as cuBLAS. It stays open until the process ends.
func OpenLibrary(file string) (*Library, error) {
	name := C.CString(file)
	defer C.free(unsafe.Pointer(name))
	var text [512]C.char
	handle := C.open_library(name, &text[0], C.size_t(len(text)))
	if handle == nil {
		return nil, errors.New(C.GoString(&text[0]))
	}
	return &Library{handle}, nil
}

// Symbol looks up a function of the library.
func (l *Library) Symbol(name string) (Symbol, error) {
	cName := C.CString(name)
	defer C.free(unsafe.Pointer(cName))
	var text [512]C.char
	at := C.find(l.handle, cName, &text[0], C.size_t(len(text)))
	if at == 0 {
		return 0, errors.New(C.GoString(&text[0]))
	}
	return Symbol(at), nil
}

// Call calls the function with at most [MaxArguments] integers or addresses, and returns its int.
// Addresses lie outside the Go heap.
func (s Symbol) Call(args ...uintptr) int32 {
	checkArguments(args)
	var a [MaxArguments]C.uintptr_t
	for i, v := range args {
		a[i] = C.uintptr_t(v)
	}
	return int32(C.call(C.uintptr_t(s), &a[0]))
}

// The handles of gorgonia.org/cu are structs with a pointer of C in a private field.

func stream(s Stream) cu.Stream       { return *(*cu.Stream)(unsafe.Pointer(&s)) }
func event(e Event) cu.Event          { return *(*cu.Event)(unsafe.Pointer(&e)) }
func module(m Module) cu.Module       { return *(*cu.Module)(unsafe.Pointer(&m)) }
func function(f Function) cu.Function { return *(*cu.Function)(unsafe.Pointer(&f)) }
func context(c Context) cu.CUContext  { return *(*cu.CUContext)(unsafe.Pointer(&c)) }

// The conversions are wrong for handles of another size.
var (
	_ [unsafe.Sizeof(Stream(0))]byte   = [unsafe.Sizeof(cu.Stream{})]byte{}
	_ [unsafe.Sizeof(Event(0))]byte    = [unsafe.Sizeof(cu.Event{})]byte{}
	_ [unsafe.Sizeof(Module(0))]byte   = [unsafe.Sizeof(cu.Module{})]byte{}
	_ [unsafe.Sizeof(Function(0))]byte = [unsafe.Sizeof(cu.Function{})]byte{}
	_ [unsafe.Sizeof(Context(0))]byte  = [unsafe.Sizeof(cu.CUContext{})]byte{}
)

// number returns the handle in a struct of gorgonia.org/cu.
func number[T cu.Stream | cu.Event | cu.Module | cu.Function | cu.CUContext](h T) uintptr {
	return *(*uintptr)(unsafe.Pointer(&h))
}

// codeOf returns the code in an error of gorgonia.org/cu, whose type is private: an int.
func codeOf(err error) Code {
	if err == nil {
		return 0
	}
	if v := reflect.ValueOf(err); v.Kind() == reflect.Int {
		return Code(v.Int())
	}
	return ErrUnknown
}

// of is result for an error of gorgonia.org/cu.
func (c *Calls) of(call string, err error) error {
	if err == nil {
		return nil
	}
	return c.Failure(call, codeOf(err))
}

func newCalls() *Calls {
	c := &Calls{}
	c.general()
	c.memory()
	c.order()
	c.kernels()
	return c
}

// general sets errors, versions, devices and contexts.
func (c *Calls) general() {
	c.GetErrorName = func(code Code) string { return C.GoString(C.error_name(C.CUresult(code))) }
	c.GetErrorString = func(code Code) string { return C.GoString(C.error_string(C.CUresult(code))) }

	c.Init = func(flags uint32) error { return c.result("cuInit", Code(C.gnnstore_cuda_init(C.uint(flags)))) }
	c.DriverGetVersion = func() (int, error) {
		v := cu.Version()
		if v < 0 { // it keeps the code to itself
			return 0, c.Failure("cuDriverGetVersion", ErrUnknown)
		}
		return v, nil
	}

	c.DeviceGetCount = func() (int, error) {
		n, err := cu.NumDevices()
		return n, c.of("cuDeviceGetCount", err)
	}
	c.DeviceGet = func(ordinal int) (Device, error) {
		d, err := cu.GetDevice(ordinal)
		return Device(d), c.of("cuDeviceGet", err)
	}
	c.DeviceGetName = func(d Device) (string, error) {
		name, err := cu.Device(d).Name()
		return name, c.of("cuDeviceGetName", err)
	}
	c.DeviceGetAttribute = func(a DeviceAttribute, d Device) (int, error) {
		v, err := cu.Device(d).Attribute(cu.DeviceAttribute(a))
		return v, c.of("cuDeviceGetAttribute", err)
	}
	c.DeviceTotalMem = func(d Device) (uint64, error) {
		n, err := cu.Device(d).TotalMem()
		return uint64(n), c.of("cuDeviceTotalMem", err)
	}
	c.DeviceGetUUID = func(d Device) ([16]byte, error) {
		id, err := cu.Device(d).UUID()
		return id, c.of("cuDeviceGetUuid", err)
	}

	c.DevicePrimaryCtxRetain = func(d Device) (Context, error) {
		x, err := cu.Device(d).RetainPrimaryCtx()
		return Context(number(x)), c.of("cuDevicePrimaryCtxRetain", err)
	}
	c.DevicePrimaryCtxRelease = func(d Device) error {
		return c.of("cuDevicePrimaryCtxRelease", cu.Device(d).ReleasePrimaryCtx())
	}
	c.CtxSetCurrent = func(x Context) error { return c.of("cuCtxSetCurrent", cu.SetCurrentContext(context(x))) }
	c.CtxGetCurrent = func() (Context, error) {
		x, err := cu.CurrentContext()
		return Context(number(x)), c.of("cuCtxGetCurrent", err)
	}
	c.CtxSynchronize = func() error { return c.of("cuCtxSynchronize", cu.Synchronize()) }
}

// memory sets allocations, copies and sets.
func (c *Calls) memory() {
	c.MemAlloc = func(bytes uint64) (Ptr, error) {
		p, err := cu.MemAlloc(int64(bytes))
		return Ptr(p), c.of("cuMemAlloc", err)
	}
	c.MemFree = func(p Ptr) error { return c.of("cuMemFree", cu.MemFree(cu.DevicePtr(p))) }
	c.MemGetInfo = func() (free, total uint64, err error) {
		f, t, err := cu.MemInfo()
		return uint64(f), uint64(t), c.of("cuMemGetInfo", err)
	}

	c.MemHostAlloc = func(bytes uint64, flags uint32) (unsafe.Pointer, error) {
		var p unsafe.Pointer
		code := C.cuMemHostAlloc(&p, C.size_t(bytes), C.uint(flags))
		return p, c.result("cuMemHostAlloc", Code(code))
	}
	c.MemFreeHost = func(p unsafe.Pointer) error { return c.of("cuMemFreeHost", cu.MemFreeHost(p)) }
	c.MemHostRegister = func(p unsafe.Pointer, bytes uint64, flags uint32) error {
		code := C.host_register(C.uintptr_t(uintptr(p)), C.size_t(bytes), C.uint(flags))
		return c.result("cuMemHostRegister", Code(code))
	}
	c.MemHostUnregister = func(p unsafe.Pointer) error {
		return c.result("cuMemHostUnregister", Code(C.host_unregister(C.uintptr_t(uintptr(p)))))
	}
	c.MemHostGetDevicePointer = func(p unsafe.Pointer) (Ptr, error) {
		var d C.CUdeviceptr
		code := C.device_pointer(&d, C.uintptr_t(uintptr(p)))
		return Ptr(d), c.result("cuMemHostGetDevicePointer", Code(code))
	}

	c.MemcpyHtoDAsync = func(dst Ptr, src unsafe.Pointer, bytes uint64, s Stream) error {
		return c.of("cuMemcpyHtoDAsync", cu.MemcpyHtoDAsync(cu.DevicePtr(dst), src, int64(bytes), stream(s)))
	}
	c.MemcpyDtoHAsync = func(dst unsafe.Pointer, src Ptr, bytes uint64, s Stream) error {
		return c.of("cuMemcpyDtoHAsync", cu.MemcpyDtoHAsync(dst, cu.DevicePtr(src), int64(bytes), stream(s)))
	}
	c.MemcpyDtoDAsync = func(dst, src Ptr, bytes uint64, s Stream) error {
		err := cu.MemcpyDtoDAsync(cu.DevicePtr(dst), cu.DevicePtr(src), int64(bytes), stream(s))
		return c.of("cuMemcpyDtoDAsync", err)
	}
	c.MemsetD8Async = func(dst Ptr, value uint8, n uint64, s Stream) error {
		return c.of("cuMemsetD8Async", cu.MemsetD8Async(cu.DevicePtr(dst), value, int64(n), stream(s)))
	}
	c.MemsetD32Async = func(dst Ptr, value uint32, n uint64, s Stream) error {
		return c.of("cuMemsetD32Async", cu.MemsetD32Async(cu.DevicePtr(dst), uint(value), int64(n), stream(s)))
	}
}

// order sets streams and events.
func (c *Calls) order() {
	c.StreamCreate = func(flags uint32) (Stream, error) {
		s, err := cu.MakeStream(cu.StreamFlags(flags))
		return Stream(number(s)), c.of("cuStreamCreate", err)
	}
	c.StreamDestroy = func(s Stream) error {
		own := stream(s) // Destroy clears it
		return c.of("cuStreamDestroy", own.Destroy())
	}
	c.StreamSynchronize = func(s Stream) error { return c.of("cuStreamSynchronize", stream(s).Synchronize()) }
	c.StreamQuery = func(s Stream) (bool, error) { return c.ready("cuStreamQuery", codeOf(stream(s).Query())) }
	c.StreamWaitEvent = func(s Stream, e Event) error {
		return c.of("cuStreamWaitEvent", stream(s).Wait(event(e), 0))
	}

	c.EventCreate = func(flags uint32) (Event, error) {
		e, err := cu.MakeEvent(cu.EventFlags(flags))
		return Event(number(e)), c.of("cuEventCreate", err)
	}
	c.EventDestroy = func(e Event) error {
		own := event(e) // DestroyEvent clears it
		return c.of("cuEventDestroy", cu.DestroyEvent(&own))
	}
	c.EventRecord = func(e Event, s Stream) error { return c.of("cuEventRecord", event(e).Record(stream(s))) }
	c.EventSynchronize = func(e Event) error { return c.of("cuEventSynchronize", event(e).Synchronize()) }
	c.EventQuery = func(e Event) (bool, error) { return c.ready("cuEventQuery", codeOf(event(e).Query())) }
	c.EventElapsedTime = func(start, end Event) (float32, error) {
		ms, err := event(start).Elapsed(event(end))
		return float32(ms), c.of("cuEventElapsedTime", err)
	}
}

// jitLog is the size of each of the compiler's two logs.
const jitLog = 16 << 10

// kernels sets modules, functions and launches.
func (c *Calls) kernels() {
	c.ModuleLoadDataEx = func(ptx string) (Module, string, error) {
		// The driver gets the addresses of the logs as numbers, which do not keep Go memory in
		// place.
		logs, err := unix.Mmap(-1, 0, 2*jitLog, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
		if err != nil {
			return 0, "", fmt.Errorf("memory for PTX: %w", err)
		}
		defer func() { _ = unix.Munmap(logs) }() // it fails for no address that Mmap returned
		remarks, failed := logs[:jitLog:jitLog], logs[jitLog:]
		m, err := cu.LoadDataEx(ptx, &cu.JITInfoLogBuffer{Buffer: remarks}, &cu.JITErrorLogBuffer{Buffer: failed})
		log := joinLogs(failed, remarks)
		return Module(number(m)), log, c.refusedPTX(codeOf(err), log)
	}
	c.ModuleUnload = func(m Module) error { return c.of("cuModuleUnload", module(m).Unload()) }
	c.ModuleGetFunction = func(m Module, name string) (Function, error) {
		f, err := module(m).Function(name)
		return Function(number(f)), c.of("cuModuleGetFunction "+name, err)
	}

	c.FuncGetAttribute = func(a FuncAttribute, f Function) (int, error) {
		v, err := function(f).Attribute(cu.FunctionAttribute(a))
		return v, c.of("cuFuncGetAttribute", err)
	}
	c.FuncSetAttribute = func(f Function, a FuncAttribute, value int) error {
		return c.result("cuFuncSetAttribute", Code(C.set_attribute(C.uintptr_t(f), C.int(a), C.int(value))))
	}
	c.LaunchKernel = func(f Function, grid, block Dim, shared uint32, s Stream, p *Params) error {
		grid, block = grid.Full(), block.Full()
		code := C.launch(C.uintptr_t(f), C.uint(grid.X), C.uint(grid.Y), C.uint(grid.Z),
			C.uint(block.X), C.uint(block.Y), C.uint(block.Z),
			C.uint(shared), C.uintptr_t(s), C.uintptr_t(uintptr(p.extra())))
		return c.result("cuLaunchKernel", Code(code))
	}
	c.OccupancyMaxActiveBlocksPerMultiprocessor = func(f Function, threads int, shared uint64) (int, error) {
		n, err := function(f).MaxActiveBlocksPerMultiProcessor(threads, int64(shared))
		return n, c.of("cuOccupancyMaxActiveBlocksPerMultiprocessor", err)
	}
}
