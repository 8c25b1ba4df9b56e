//go:build cuda && linux && !gorgonia

package driver

import (
	"cmp"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego"
	"golang.org/x/sys/unix"
)

// Provider is the name of the package that calls the driver, for records.
const Provider = "purego"

// Open opens the driver's library and looks up its functions. "" stands for [DefaultLibrary]. A
// missing library or function is an [*OpenError]. The library stays open until the process ends:
// the driver has threads of its own.
func Open(library string) (*Calls, error) {
	library = cmp.Or(library, DefaultLibrary)
	l, err := OpenLibrary(library)
	if err != nil {
		return nil, &OpenError{Library: library, Err: err}
	}
	symbols := map[string]symbol{}
	for _, row := range Table() {
		s, err := l.Symbol(row.Symbol)
		if err != nil {
			return nil, &OpenError{Library: library, Symbol: row.Symbol, Err: err}
		}
		symbols[row.Symbol] = symbol(s)
	}
	return callsOf(symbols), nil
}

// Library is an open shared library. It is safe for concurrent use.
type Library struct{ handle uintptr }

// OpenLibrary opens a shared library, such as cuBLAS. It stays open until the process ends.
func OpenLibrary(file string) (*Library, error) {
	// The text of an error belongs to the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	handle, err := purego.Dlopen(file, purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return nil, err
	}
	return &Library{handle}, nil
}

// Symbol looks up a function of the library.
func (l *Library) Symbol(name string) (Symbol, error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	at, err := purego.Dlsym(l.handle, name)
	return Symbol(at), err
}

// Call calls the function with at most [MaxArguments] integers or addresses, and returns its int.
// Addresses lie outside the Go heap.
func (s Symbol) Call(args ...uintptr) int32 {
	checkArguments(args)
	return int32(symbol(s).call(args...))
}

// symbol is the address of a function that returns a CUresult.
type symbol uintptr

type arguments [MaxArguments]uintptr

// A slice of the pool saves an allocation a call: what a variadic call passes to SyscallN escapes.
var argumentPool = sync.Pool{New: func() any { return new(arguments) }}

// call calls s with numbers, handles, and addresses outside the Go heap.
func (s symbol) call(args ...uintptr) Code {
	a := argumentPool.Get().(*arguments)
	n := copy(a[:], args)
	r, _, _ := purego.SyscallN(uintptr(s), a[:n]...)
	argumentPool.Put(a)
	return Code(r)
}

// Where a call writes a result to a variable of Go, SyscallN is called with its address right
// there: that keeps the variable in its place until the call returns (see go:uintptrescapes).

// text copies a C string; it returns "" for nil.
func text(p unsafe.Pointer) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(p, n)) != 0 {
		n++
	}
	return string(unsafe.Slice((*byte)(p), n))
}

// words returns a function of the driver that writes the address of a text.
func words(s symbol) func(Code) string {
	return func(code Code) string {
		var at unsafe.Pointer // memory of C, which the collector ignores
		_, _, _ = purego.SyscallN(uintptr(s), uintptr(code), uintptr(unsafe.Pointer(&at)))
		return text(at)
	}
}

// callsOf returns the calls by the symbols that Table lists.
func callsOf(symbols map[string]symbol) *Calls {
	c := &Calls{}
	c.general(symbols)
	c.memory(symbols)
	c.order(symbols)
	c.kernels(symbols)
	return c
}

// returnsNumber returns a call that writes an int through its first argument.
func (c *Calls) returnsNumber(call string, s symbol) func(args ...uintptr) (int, error) {
	return func(args ...uintptr) (int, error) {
		var n int32
		var a [3]uintptr
		copy(a[:], args)
		r, _, _ := purego.SyscallN(uintptr(s), uintptr(unsafe.Pointer(&n)), a[0], a[1], a[2])
		return int(n), c.result(call, Code(r))
	}
}

// returnsHandle returns a call that writes 8 bytes through its first argument.
func (c *Calls) returnsHandle(call string, s symbol) func(args ...uintptr) (uint64, error) {
	return func(args ...uintptr) (uint64, error) {
		var h uint64
		var a [3]uintptr
		copy(a[:], args)
		r, _, _ := purego.SyscallN(uintptr(s), uintptr(unsafe.Pointer(&h)), a[0], a[1], a[2])
		return h, c.result(call, Code(r))
	}
}

// general sets errors, versions, devices and contexts.
func (c *Calls) general(symbols map[string]symbol) {
	c.GetErrorName, c.GetErrorString = words(symbols["cuGetErrorName"]), words(symbols["cuGetErrorString"])

	initialise := symbols["cuInit"]
	c.Init = func(flags uint32) error { return c.result("cuInit", initialise.call(uintptr(flags))) }
	version := c.returnsNumber("cuDriverGetVersion", symbols["cuDriverGetVersion"])
	c.DriverGetVersion = func() (int, error) { return version() }

	count := c.returnsNumber("cuDeviceGetCount", symbols["cuDeviceGetCount"])
	c.DeviceGetCount = func() (int, error) { return count() }
	get := c.returnsNumber("cuDeviceGet", symbols["cuDeviceGet"])
	c.DeviceGet = func(ordinal int) (Device, error) {
		d, err := get(uintptr(ordinal))
		return Device(d), err
	}
	name := symbols["cuDeviceGetName"]
	c.DeviceGetName = func(d Device) (string, error) {
		var b [256]byte
		r, _, _ := purego.SyscallN(uintptr(name), uintptr(unsafe.Pointer(&b)), uintptr(len(b)), uintptr(d))
		return unix.ByteSliceToString(b[:]), c.result("cuDeviceGetName", Code(r))
	}
	attribute := c.returnsNumber("cuDeviceGetAttribute", symbols["cuDeviceGetAttribute"])
	c.DeviceGetAttribute = func(a DeviceAttribute, d Device) (int, error) { return attribute(uintptr(a), uintptr(d)) }
	total := c.returnsHandle("cuDeviceTotalMem", symbols["cuDeviceTotalMem_v2"])
	c.DeviceTotalMem = func(d Device) (uint64, error) { return total(uintptr(d)) }
	uuid := symbols["cuDeviceGetUuid_v2"]
	c.DeviceGetUUID = func(d Device) ([16]byte, error) {
		var b [16]byte
		r, _, _ := purego.SyscallN(uintptr(uuid), uintptr(unsafe.Pointer(&b)), uintptr(d))
		return b, c.result("cuDeviceGetUuid", Code(r))
	}

	retain := c.returnsHandle("cuDevicePrimaryCtxRetain", symbols["cuDevicePrimaryCtxRetain"])
	c.DevicePrimaryCtxRetain = func(d Device) (Context, error) {
		h, err := retain(uintptr(d))
		return Context(h), err
	}
	release := symbols["cuDevicePrimaryCtxRelease_v2"]
	c.DevicePrimaryCtxRelease = func(d Device) error {
		return c.result("cuDevicePrimaryCtxRelease", release.call(uintptr(d)))
	}
	setCurrent := symbols["cuCtxSetCurrent"]
	c.CtxSetCurrent = func(x Context) error { return c.result("cuCtxSetCurrent", setCurrent.call(uintptr(x))) }
	getCurrent := c.returnsHandle("cuCtxGetCurrent", symbols["cuCtxGetCurrent"])
	c.CtxGetCurrent = func() (Context, error) {
		h, err := getCurrent()
		return Context(h), err
	}
	synchronize := symbols["cuCtxSynchronize"]
	c.CtxSynchronize = func() error { return c.result("cuCtxSynchronize", synchronize.call()) }
}

// memory sets allocations, copies and sets.
func (c *Calls) memory(symbols map[string]symbol) {
	alloc := c.returnsHandle("cuMemAlloc", symbols["cuMemAlloc_v2"])
	c.MemAlloc = func(bytes uint64) (Ptr, error) {
		h, err := alloc(uintptr(bytes))
		return Ptr(h), err
	}
	free := symbols["cuMemFree_v2"]
	c.MemFree = func(p Ptr) error { return c.result("cuMemFree", free.call(uintptr(p))) }
	info := symbols["cuMemGetInfo_v2"]
	c.MemGetInfo = func() (free, total uint64, err error) {
		var n [2]uint64
		r, _, _ := purego.SyscallN(uintptr(info), uintptr(unsafe.Pointer(&n[0])), uintptr(unsafe.Pointer(&n[1])))
		return n[0], n[1], c.result("cuMemGetInfo", Code(r))
	}

	hostAlloc := symbols["cuMemHostAlloc"]
	c.MemHostAlloc = func(bytes uint64, flags uint32) (unsafe.Pointer, error) {
		var p unsafe.Pointer // memory of C, which the collector ignores
		r, _, _ := purego.SyscallN(uintptr(hostAlloc), uintptr(unsafe.Pointer(&p)), uintptr(bytes), uintptr(flags))
		return p, c.result("cuMemHostAlloc", Code(r))
	}
	freeHost := symbols["cuMemFreeHost"]
	c.MemFreeHost = func(p unsafe.Pointer) error { return c.result("cuMemFreeHost", freeHost.call(uintptr(p))) }
	register := symbols["cuMemHostRegister_v2"]
	c.MemHostRegister = func(p unsafe.Pointer, bytes uint64, flags uint32) error {
		return c.result("cuMemHostRegister", register.call(uintptr(p), uintptr(bytes), uintptr(flags)))
	}
	unregister := symbols["cuMemHostUnregister"]
	c.MemHostUnregister = func(p unsafe.Pointer) error {
		return c.result("cuMemHostUnregister", unregister.call(uintptr(p)))
	}
	devicePointer := c.returnsHandle("cuMemHostGetDevicePointer", symbols["cuMemHostGetDevicePointer_v2"])
	c.MemHostGetDevicePointer = func(p unsafe.Pointer) (Ptr, error) {
		h, err := devicePointer(uintptr(p), 0) // flags have to be 0
		return Ptr(h), err
	}

	up, down, within := symbols["cuMemcpyHtoDAsync_v2"], symbols["cuMemcpyDtoHAsync_v2"], symbols["cuMemcpyDtoDAsync_v2"]
	c.MemcpyHtoDAsync = func(dst Ptr, src unsafe.Pointer, bytes uint64, s Stream) error {
		return c.result("cuMemcpyHtoDAsync", up.call(uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)))
	}
	c.MemcpyDtoHAsync = func(dst unsafe.Pointer, src Ptr, bytes uint64, s Stream) error {
		return c.result("cuMemcpyDtoHAsync", down.call(uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)))
	}
	c.MemcpyDtoDAsync = func(dst, src Ptr, bytes uint64, s Stream) error {
		return c.result("cuMemcpyDtoDAsync", within.call(uintptr(dst), uintptr(src), uintptr(bytes), uintptr(s)))
	}
	set8, set32 := symbols["cuMemsetD8Async"], symbols["cuMemsetD32Async"]
	c.MemsetD8Async = func(dst Ptr, value uint8, n uint64, s Stream) error {
		return c.result("cuMemsetD8Async", set8.call(uintptr(dst), uintptr(value), uintptr(n), uintptr(s)))
	}
	c.MemsetD32Async = func(dst Ptr, value uint32, n uint64, s Stream) error {
		return c.result("cuMemsetD32Async", set32.call(uintptr(dst), uintptr(value), uintptr(n), uintptr(s)))
	}
}

// order sets streams and events.
func (c *Calls) order(symbols map[string]symbol) {
	streamCreate := c.returnsHandle("cuStreamCreate", symbols["cuStreamCreate"])
	c.StreamCreate = func(flags uint32) (Stream, error) {
		h, err := streamCreate(uintptr(flags))
		return Stream(h), err
	}
	streamDestroy := symbols["cuStreamDestroy_v2"]
	c.StreamDestroy = func(s Stream) error { return c.result("cuStreamDestroy", streamDestroy.call(uintptr(s))) }
	streamSynchronize := symbols["cuStreamSynchronize"]
	c.StreamSynchronize = func(s Stream) error {
		return c.result("cuStreamSynchronize", streamSynchronize.call(uintptr(s)))
	}
	streamQuery := symbols["cuStreamQuery"]
	c.StreamQuery = func(s Stream) (bool, error) { return c.ready("cuStreamQuery", streamQuery.call(uintptr(s))) }
	waitEvent := symbols["cuStreamWaitEvent"]
	c.StreamWaitEvent = func(s Stream, e Event) error {
		return c.result("cuStreamWaitEvent", waitEvent.call(uintptr(s), uintptr(e), 0))
	}

	eventCreate := c.returnsHandle("cuEventCreate", symbols["cuEventCreate"])
	c.EventCreate = func(flags uint32) (Event, error) {
		h, err := eventCreate(uintptr(flags))
		return Event(h), err
	}
	eventDestroy := symbols["cuEventDestroy_v2"]
	c.EventDestroy = func(e Event) error { return c.result("cuEventDestroy", eventDestroy.call(uintptr(e))) }
	eventRecord := symbols["cuEventRecord"]
	c.EventRecord = func(e Event, s Stream) error {
		return c.result("cuEventRecord", eventRecord.call(uintptr(e), uintptr(s)))
	}
	eventSynchronize := symbols["cuEventSynchronize"]
	c.EventSynchronize = func(e Event) error { return c.result("cuEventSynchronize", eventSynchronize.call(uintptr(e))) }
	eventQuery := symbols["cuEventQuery"]
	c.EventQuery = func(e Event) (bool, error) { return c.ready("cuEventQuery", eventQuery.call(uintptr(e))) }
	elapsed := symbols["cuEventElapsedTime"]
	c.EventElapsedTime = func(start, end Event) (float32, error) {
		var ms float32
		r, _, _ := purego.SyscallN(uintptr(elapsed), uintptr(unsafe.Pointer(&ms)), uintptr(start), uintptr(end))
		return ms, c.result("cuEventElapsedTime", Code(r))
	}
}

// kernels sets modules, functions and launches.
func (c *Calls) kernels(symbols map[string]symbol) {
	load := symbols["cuModuleLoadDataEx"]
	c.ModuleLoadDataEx = func(ptx string) (Module, string, error) {
		j, err := newJIT(ptx)
		if err != nil {
			return 0, "", err
		}
		defer j.free()
		code := load.call(j.module, j.image, j.count, j.options, j.values)
		return Module(*j.handle), j.log(), c.refusedPTX(code, j.log())
	}
	unload := symbols["cuModuleUnload"]
	c.ModuleUnload = func(m Module) error { return c.result("cuModuleUnload", unload.call(uintptr(m))) }
	getFunction := symbols["cuModuleGetFunction"]
	c.ModuleGetFunction = func(m Module, name string) (Function, error) {
		var f Function
		b, err := unix.ByteSliceFromString(name)
		if err != nil {
			return 0, err
		}
		r, _, _ := purego.SyscallN(uintptr(getFunction), uintptr(unsafe.Pointer(&f)), uintptr(m),
			uintptr(unsafe.Pointer(&b[0])))
		return f, c.result("cuModuleGetFunction "+name, Code(r))
	}

	getAttribute := c.returnsNumber("cuFuncGetAttribute", symbols["cuFuncGetAttribute"])
	c.FuncGetAttribute = func(a FuncAttribute, f Function) (int, error) { return getAttribute(uintptr(a), uintptr(f)) }
	setAttribute := symbols["cuFuncSetAttribute"]
	c.FuncSetAttribute = func(f Function, a FuncAttribute, value int) error {
		return c.result("cuFuncSetAttribute", setAttribute.call(uintptr(f), uintptr(a), uintptr(value)))
	}
	launch := symbols["cuLaunchKernel"]
	c.LaunchKernel = func(f Function, grid, block Dim, shared uint32, s Stream, p *Params) error {
		grid, block = grid.Full(), block.Full()
		return c.result("cuLaunchKernel", launch.call(uintptr(f), uintptr(grid.X), uintptr(grid.Y), uintptr(grid.Z),
			uintptr(block.X), uintptr(block.Y), uintptr(block.Z), uintptr(shared), uintptr(s), 0, uintptr(p.extra())))
	}
	occupancy := c.returnsNumber("cuOccupancyMaxActiveBlocksPerMultiprocessor",
		symbols["cuOccupancyMaxActiveBlocksPerMultiprocessor"])
	c.OccupancyMaxActiveBlocksPerMultiprocessor = func(f Function, threads int, shared uint64) (int, error) {
		return occupancy(uintptr(f), uintptr(threads), uintptr(shared))
	}
}
