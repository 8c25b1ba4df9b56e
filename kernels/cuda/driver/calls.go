package driver

import "unsafe"

// The handles of the driver. Their zero values are no device memory, and the default stream.
type (
	Device   int32   // CUdevice
	Context  uintptr // CUcontext
	Stream   uintptr // CUstream
	Event    uintptr // CUevent
	Module   uintptr // CUmodule
	Function uintptr // CUfunction
	Ptr      uint64  // CUdeviceptr, an address of the device
)

// Dim is the size of a grid in blocks, or of a block in threads. A size of 0 counts as 1.
type Dim struct{ X, Y, Z uint32 }

// Full returns d with 1 for each 0.
func (d Dim) Full() Dim { return Dim{max(d.X, 1), max(d.Y, 1), max(d.Z, 1)} }

// DeviceAttribute is a CUdevice_attribute. Values here and below are as in cuda.h.
type DeviceAttribute int32

const (
	MaxSharedPerBlock         DeviceAttribute = 8
	ClockKHz                  DeviceAttribute = 13
	MultiprocessorCount       DeviceAttribute = 16
	Integrated                DeviceAttribute = 18
	CanMapHostMemory          DeviceAttribute = 19
	ComputeMode               DeviceAttribute = 20 // 0: shared, 2: prohibited, 3: one process
	L2Bytes                   DeviceAttribute = 38
	MaxThreadsPerSM           DeviceAttribute = 39
	CopyEngines               DeviceAttribute = 40
	UnifiedAddressing         DeviceAttribute = 41
	ComputeCapabilityMajor    DeviceAttribute = 75
	ComputeCapabilityMinor    DeviceAttribute = 76
	MaxSharedPerSM            DeviceAttribute = 81
	MaxRegistersPerSM         DeviceAttribute = 82
	HostPointerIsDevicePtr    DeviceAttribute = 91 // of registered memory
	MaxSharedPerBlockOptIn    DeviceAttribute = 97
	HostRegisterSupported     DeviceAttribute = 99
	ReadOnlyRegisterSupported DeviceAttribute = 113
)

// FuncAttribute is a CUfunction_attribute. MaxDynamicShared is the only one here that can be set.
type FuncAttribute int32

const (
	MaxThreadsPerBlock FuncAttribute = 0
	SharedBytes        FuncAttribute = 1
	ConstBytes         FuncAttribute = 2
	LocalBytes         FuncAttribute = 3
	Registers          FuncAttribute = 4
	PTXVersion         FuncAttribute = 5
	BinaryVersion      FuncAttribute = 6
	MaxDynamicShared   FuncAttribute = 8
)

// Flags of calls.
const (
	StreamNonBlocking  uint32 = 1 // of StreamCreate: does not wait for the default stream
	EventDisableTiming uint32 = 2 // of EventCreate: cheaper to record, and no EventElapsedTime
	EventBlockingSync  uint32 = 1 // of EventCreate: EventSynchronize sleeps instead of spinning
	HostPortable       uint32 = 1 // of MemHostAlloc and MemHostRegister: page-locked for all contexts
	HostMapped         uint32 = 2 // of both: the device can address it, see MemHostGetDevicePointer
	HostWriteCombined  uint32 = 4 // of MemHostAlloc: slow for the host to read
	HostReadOnly       uint32 = 8 // of MemHostRegister: the device only reads it
)

// Calls has a function for each call of the driver. All are set. An error is an [*Error]; the time
// of an asynchronous error is any later call's.
//
// Host memory is an unsafe.Pointer to memory outside the Go heap, and sizes are in bytes except
// where the comment says otherwise. Calls whose name ends in Async return before the copy is done,
// and the host's memory belongs to the driver until then.
type Calls struct {
	// Init is to be the first call. It needs no context, as all calls down to CtxGetCurrent.
	Init             func(flags uint32) error
	DriverGetVersion func() (int, error) // 13000 for CUDA 13.0

	DeviceGetCount     func() (int, error)
	DeviceGet          func(ordinal int) (Device, error)
	DeviceGetName      func(d Device) (string, error)
	DeviceGetAttribute func(a DeviceAttribute, d Device) (int, error)
	DeviceTotalMem     func(d Device) (uint64, error)
	DeviceGetUUID      func(d Device) ([16]byte, error)

	// The primary context of a device is shared by the process. Retain makes it, or counts one more
	// user; Release takes one off, and the last destroys it with all that it has.
	DevicePrimaryCtxRetain  func(d Device) (Context, error)
	DevicePrimaryCtxRelease func(d Device) error

	// CtxSetCurrent is for the thread of the caller: see [GPU.Do].
	CtxSetCurrent  func(c Context) error
	CtxGetCurrent  func() (Context, error)
	CtxSynchronize func() error

	MemAlloc   func(bytes uint64) (Ptr, error)
	MemFree    func(p Ptr) error
	MemGetInfo func() (free, total uint64, err error)

	// MemHostAlloc allocates page-locked memory. MemHostRegister locks the pages of memory that is
	// there. The device can address both where their flags have HostMapped, and then
	// MemHostGetDevicePointer returns the address.
	MemHostAlloc            func(bytes uint64, flags uint32) (unsafe.Pointer, error)
	MemFreeHost             func(p unsafe.Pointer) error
	MemHostRegister         func(p unsafe.Pointer, bytes uint64, flags uint32) error
	MemHostUnregister       func(p unsafe.Pointer) error
	MemHostGetDevicePointer func(p unsafe.Pointer) (Ptr, error)

	MemcpyHtoDAsync func(dst Ptr, src unsafe.Pointer, bytes uint64, s Stream) error
	MemcpyDtoHAsync func(dst unsafe.Pointer, src Ptr, bytes uint64, s Stream) error
	MemcpyDtoDAsync func(dst, src Ptr, bytes uint64, s Stream) error
	MemsetD8Async   func(dst Ptr, value uint8, n uint64, s Stream) error  // n bytes
	MemsetD32Async  func(dst Ptr, value uint32, n uint64, s Stream) error // n words of 4 bytes

	StreamCreate      func(flags uint32) (Stream, error)
	StreamDestroy     func(s Stream) error
	StreamSynchronize func(s Stream) error
	StreamQuery       func(s Stream) (done bool, err error)
	StreamWaitEvent   func(s Stream, e Event) error

	EventCreate      func(flags uint32) (Event, error)
	EventDestroy     func(e Event) error
	EventRecord      func(e Event, s Stream) error
	EventSynchronize func(e Event) error
	EventQuery       func(e Event) (done bool, err error)
	EventElapsedTime func(start, end Event) (milliseconds float32, err error)

	// ModuleLoadDataEx compiles PTX for the device. log has what the compiler said, also where it
	// refused, and then the error ends with it.
	ModuleLoadDataEx  func(ptx string) (m Module, log string, err error)
	ModuleUnload      func(m Module) error
	ModuleGetFunction func(m Module, name string) (Function, error)

	FuncGetAttribute func(a FuncAttribute, f Function) (int, error)
	FuncSetAttribute func(f Function, a FuncAttribute, value int) error

	// LaunchKernel launches f with the arguments in p, which the driver has copied when it returns:
	// p is free for the next launch. shared is the dynamic shared memory. It panics where p lacks
	// an argument.
	LaunchKernel func(f Function, grid, block Dim, shared uint32, s Stream, p *Params) error

	// OccupancyMaxActiveBlocksPerMultiprocessor is for blocks of that many threads with that much
	// dynamic shared memory.
	OccupancyMaxActiveBlocksPerMultiprocessor func(f Function, threads int, shared uint64) (int, error)

	// GetErrorName and GetErrorString return the driver's name and text of a code, "" if it knows
	// none.
	GetErrorName   func(c Code) string
	GetErrorString func(c Code) string
}

// Failure returns the error of a call that returned code, which is not 0.
func (c *Calls) Failure(call string, code Code) *Error {
	return &Error{Call: call, Code: code, Name: c.GetErrorName(code), Text: c.GetErrorString(code)}
}
