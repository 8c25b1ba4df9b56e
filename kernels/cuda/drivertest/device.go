//go:build cuda && linux

package drivertest

import (
	"fmt"
	"maps"
	"sync"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// Runner runs kernels.
type Runner interface {
	// Launch runs a kernel to its end, on addresses of this process. An error is a fault of the
	// kernel: the context is lost.
	Launch(kernel string, grid, block driver.Dim, shared uint32, params []byte) error
}

// Memory is a Runner that has to know the memory of the device, and page-locked memory of the host.
type Memory interface {
	Allocated(at driver.Ptr, memory []byte) error
	Freed(at driver.Ptr) error
}

// Mode decides when queued work runs.
type Mode int

const (
	// Lazy runs what somebody waits for, and nothing else.
	Lazy Mode = iota
	// Ahead runs all other streams first, as far as their events let them.
	Ahead
	// Eager runs work as soon as it is queued.
	Eager
)

// Options configures New.
type Options struct {
	Runner Runner
	Mode   Mode
	Memory uint64 // bytes of device memory; default 8 GiB
	Locked uint64 // bytes of the host that can be page-locked; default no limit
}

// Device is a GPU with its driver.
type Device struct {
	options Options
	calls   *driver.Calls

	mu        sync.Mutex
	counts    map[string]int
	launched  map[string]int // by kernel
	fails     map[string]failure
	lost      error // the fault of a kernel, or nil
	retained  int
	current   map[int]driver.Context // by thread
	handles   uintptr                // the last one given out
	streams   map[driver.Stream]*stream
	events    map[driver.Event]*event
	modules   map[driver.Module]map[string]*driver.ParamList
	functions map[driver.Function]string // kernels
	memory    map[driver.Ptr]allocation
	held      uint64
	locked    map[uintptr]uint64 // sizes of registered memory of the host
	heldHost  uint64
}

// failure is a call that is to fail.
type failure struct {
	in   int // calls until then
	code driver.Code
}

// allocation is device memory: the last bytes of a map, behind which a page faults.
type allocation struct {
	bytes []byte
	whole []byte
}

const (
	theContext   driver.Context = 0xc0de
	deviceMemory                = 8 << 30
	page                        = 4096
)

// New returns a device without streams, events and memory. Calls that destroy or free give back
// what was made; Held returns what is left.
func New(o Options) *Device {
	if o.Memory == 0 {
		o.Memory = deviceMemory
	}
	if o.Locked == 0 {
		o.Locked = 1 << 62
	}
	d := &Device{
		options: o, counts: map[string]int{}, launched: map[string]int{}, fails: map[string]failure{},
		current: map[int]driver.Context{},
		streams: map[driver.Stream]*stream{}, events: map[driver.Event]*event{},
		modules:   map[driver.Module]map[string]*driver.ParamList{},
		functions: map[driver.Function]string{}, memory: map[driver.Ptr]allocation{}, locked: map[uintptr]uint64{},
	}
	d.calls = &driver.Calls{}
	d.general()
	d.hold()
	d.order()
	d.kernels()
	return d
}

// Calls returns the driver of the device. A test that plants a fault copies it and changes a call.
func (d *Device) Calls() *driver.Calls { return d.calls }

// Counts returns how often each call was made, by name: "LaunchKernel".
func (d *Device) Counts() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.counts)
}

// Launched returns how often each kernel was launched.
func (d *Device) Launched() map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return maps.Clone(d.launched)
}

// Fail has the n-th call of that name from now on, from 1, fail with code.
func (d *Device) Fail(call string, n int, code driver.Code) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.fails[call] = failure{n, code}
}

// Held returns what was not given back: bytes of the device, pieces of page-locked memory, streams,
// events and modules.
func (d *Device) Held() (bytes uint64, pieces int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.held, len(d.locked) + len(d.streams) + len(d.events) + len(d.modules)
}

// call begins a call: it counts it, refuses it if the test wants that, and locks the device until
// done is called. needs is set where a context has to be current on the thread.
func (d *Device) call(name string, needs bool) (done func(), err error) {
	d.mu.Lock()
	d.counts[name]++
	code := driver.Code(0)
	if f, ok := d.fails[name]; ok {
		if f.in--; f.in == 0 {
			code = f.code
			delete(d.fails, name)
		} else {
			d.fails[name] = f
		}
	}
	switch {
	case code != 0:
	case needs && d.current[unix.Gettid()] == 0:
		code = driver.ErrInvalidContext
	case needs && d.lost != nil:
		code = driver.ErrIllegalAddress
	}
	if code != 0 {
		d.mu.Unlock()
		return nil, d.refuse(name, code)
	}
	return d.mu.Unlock, nil
}

func (d *Device) refuse(call string, code driver.Code) error {
	e := d.calls.Failure("cu"+call, code)
	if d.lost != nil && code == driver.ErrIllegalAddress {
		e.Text = d.lost.Error()
	}
	return e
}

// handle returns a new one.
func (d *Device) handle() uintptr {
	d.handles += 8
	return d.handles
}

// do makes a call that needs a context and returns nothing.
func (d *Device) do(name string, f func() driver.Code) error {
	done, err := d.call(name, true)
	if err != nil {
		return err
	}
	defer done()
	if code := f(); code != 0 {
		return d.refuse(name, code)
	}
	return nil
}

func (d *Device) general() {
	c := d.calls
	c.GetErrorName = func(code driver.Code) string { return names[code] }
	c.GetErrorString = func(code driver.Code) string { return "" }
	c.Init = func(uint32) error { return d.free("Init", nil) }
	c.DriverGetVersion = func() (v int, err error) { return 13000, d.free("DriverGetVersion", nil) }
	c.DeviceGetCount = func() (int, error) { return 1, d.free("DeviceGetCount", nil) }
	c.DeviceGet = func(ordinal int) (driver.Device, error) {
		return 0, d.free("DeviceGet", func() driver.Code { return refuseIf(ordinal != 0, driver.ErrInvalidDevice) })
	}
	c.DeviceGetName = func(driver.Device) (string, error) { return "a device of Go", d.free("DeviceGetName", nil) }
	c.DeviceGetAttribute = func(a driver.DeviceAttribute, _ driver.Device) (int, error) {
		return attributes[a], d.free("DeviceGetAttribute", nil)
	}
	c.DeviceTotalMem = func(driver.Device) (uint64, error) { return d.options.Memory, d.free("DeviceTotalMem", nil) }
	c.DeviceGetUUID = func(driver.Device) ([16]byte, error) { return [16]byte{1}, d.free("DeviceGetUUID", nil) }
	c.DevicePrimaryCtxRetain = func(driver.Device) (driver.Context, error) {
		return theContext, d.free("DevicePrimaryCtxRetain", func() driver.Code { d.retained++; return 0 })
	}
	c.DevicePrimaryCtxRelease = func(driver.Device) error {
		return d.free("DevicePrimaryCtxRelease", func() driver.Code {
			d.retained--
			return refuseIf(d.retained < 0, driver.ErrInvalidContext)
		})
	}
	c.CtxSetCurrent = func(of driver.Context) error {
		return d.free("CtxSetCurrent", func() driver.Code {
			if of != theContext && of != 0 || d.retained == 0 {
				return driver.ErrInvalidContext
			}
			d.current[unix.Gettid()] = of
			return 0
		})
	}
	c.CtxGetCurrent = func() (of driver.Context, err error) {
		err = d.free("CtxGetCurrent", func() driver.Code { of = d.current[unix.Gettid()]; return 0 })
		return of, err
	}
}

// free makes a call that needs no context. f may be nil.
func (d *Device) free(name string, f func() driver.Code) error {
	done, err := d.call(name, false)
	if err != nil {
		return err
	}
	defer done()
	if f == nil {
		return nil
	}
	if code := f(); code != 0 {
		return d.refuse(name, code)
	}
	return nil
}

func refuseIf(bad bool, code driver.Code) driver.Code {
	if bad {
		return code
	}
	return 0
}

var names = map[driver.Code]string{
	driver.ErrInvalidValue:      "CUDA_ERROR_INVALID_VALUE",
	driver.ErrOutOfMemory:       "CUDA_ERROR_OUT_OF_MEMORY",
	driver.ErrInvalidContext:    "CUDA_ERROR_INVALID_CONTEXT",
	driver.ErrIllegalAddress:    "CUDA_ERROR_ILLEGAL_ADDRESS",
	driver.ErrAlreadyRegistered: "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED",
}

var attributes = map[driver.DeviceAttribute]int{
	driver.MaxSharedPerBlock:      48 << 10,
	driver.ClockKHz:               1_000_000,
	driver.MultiprocessorCount:    2,
	driver.CanMapHostMemory:       1,
	driver.MaxThreadsPerSM:        2048,
	driver.CopyEngines:            2,
	driver.UnifiedAddressing:      1,
	driver.ComputeCapabilityMajor: 8,
	driver.HostRegisterSupported:  1,
}

// hold has the calls about memory.
func (d *Device) hold() {
	c := d.calls
	c.MemAlloc = func(bytes uint64) (at driver.Ptr, err error) {
		err = d.do("MemAlloc", func() driver.Code {
			if bytes == 0 {
				return driver.ErrInvalidValue
			}
			if bytes > d.options.Memory-d.held {
				return driver.ErrOutOfMemory
			}
			at = d.allocate(bytes)
			return 0
		})
		return at, err
	}
	c.MemFree = func(p driver.Ptr) error {
		return d.do("MemFree", func() driver.Code {
			of, ok := d.memory[p]
			if !ok {
				return driver.ErrInvalidValue
			}
			if code := d.runAll(); code != 0 { // the driver waits too
				return code
			}
			d.held -= uint64(len(of.bytes))
			delete(d.memory, p)
			if m, ok := d.options.Runner.(Memory); ok {
				must(m.Freed(p))
			}
			must(unix.Munmap(of.whole))
			return 0
		})
	}
	c.MemGetInfo = func() (free, total uint64, err error) {
		err = d.do("MemGetInfo", func() driver.Code { free = d.options.Memory - d.held; return 0 })
		return free, d.options.Memory, err
	}
	c.MemHostAlloc = func(bytes uint64, _ uint32) (p unsafe.Pointer, err error) {
		err = d.do("MemHostAlloc", func() driver.Code { return driver.ErrNotSupported })
		return nil, err
	}
	c.MemFreeHost = func(unsafe.Pointer) error {
		return d.do("MemFreeHost", func() driver.Code { return driver.ErrNotSupported })
	}
	c.MemHostRegister = func(p unsafe.Pointer, bytes uint64, _ uint32) error {
		return d.do("MemHostRegister", func() driver.Code {
			if _, ok := d.locked[uintptr(p)]; ok {
				return driver.ErrAlreadyRegistered
			}
			if bytes > d.options.Locked-d.heldHost {
				return driver.ErrOutOfMemory
			}
			d.locked[uintptr(p)] = bytes
			d.heldHost += bytes
			if m, ok := d.options.Runner.(Memory); ok {
				must(m.Allocated(driver.Ptr(uintptr(p)), unsafe.Slice((*byte)(p), bytes)))
			}
			return 0
		})
	}
	c.MemHostUnregister = func(p unsafe.Pointer) error {
		return d.do("MemHostUnregister", func() driver.Code {
			n, ok := d.locked[uintptr(p)]
			if !ok {
				return driver.ErrInvalidValue
			}
			code := d.runAll()
			delete(d.locked, uintptr(p))
			d.heldHost -= n
			if m, ok := d.options.Runner.(Memory); ok {
				must(m.Freed(driver.Ptr(uintptr(p))))
			}
			return code
		})
	}
	c.MemHostGetDevicePointer = func(p unsafe.Pointer) (at driver.Ptr, err error) {
		err = d.do("MemHostGetDevicePointer", func() driver.Code {
			at = driver.Ptr(uintptr(p))
			return refuseIf(!d.isLocked(p, 1), driver.ErrInvalidValue)
		})
		return at, err
	}
}

// allocate maps memory whose last byte is followed by a page that faults.
func (d *Device) allocate(bytes uint64) driver.Ptr {
	size := int(bytes+page-1) / page * page
	whole, err := unix.Mmap(-1, 0, size+page, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	must(err)
	must(unix.Mprotect(whole[size:], unix.PROT_NONE))
	of := allocation{whole[size-int(bytes) : size : size], whole}
	for i := range of.bytes {
		of.bytes[i] = 0xff
	}
	at := driver.Ptr(uintptr(unsafe.Pointer(&of.bytes[0])))
	if at%256 != 0 {
		panic(fmt.Sprintf("drivertest: MemAlloc of %d bytes, which is no multiple of 256", bytes))
	}
	d.memory[at] = of
	d.held += bytes
	if m, ok := d.options.Runner.(Memory); ok {
		must(m.Allocated(at, of.bytes))
	}
	return at
}

// must is for what fails only where the test is broken.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

// window returns n bytes of the device at p, or false where they are not in one allocation.
func (d *Device) window(p driver.Ptr, n uint64) ([]byte, bool) {
	for at, of := range d.memory {
		if size := uint64(len(of.bytes)); p >= at && uint64(p-at) <= size && n <= size-uint64(p-at) {
			return of.bytes[p-at:][:n:n], true
		}
	}
	return nil, false
}

// isLocked reports whether n bytes of the host lie in registered memory.
func (d *Device) isLocked(p unsafe.Pointer, n uint64) bool {
	for at, size := range d.locked {
		if uintptr(p) >= at && uint64(uintptr(p)-at)+n <= size {
			return true
		}
	}
	return false
}
