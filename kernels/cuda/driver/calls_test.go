//go:build cuda && linux

package driver

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// pointer makes a pointer of a number, which no call of the fake follows. The detour keeps vet from
// reporting it.
func pointer(n uint64) unsafe.Pointer {
	p := uintptr(n)
	return *(*unsafe.Pointer)(unsafe.Pointer(&p))
}

// Arguments that use every bit of their type: one that is cut, swapped or widened is another
// number.
const (
	ptrA, ptrB        Ptr      = 0xf1e2d3c4b5a69788, 0xe122334455667799
	hostA             uint64   = 0x00007123456789a0 // of a form that the race detector's checks accept
	bytesA            uint64   = 0x8877665544332211
	streamA           Stream   = 0xd1d2d3d4d5d6d7d8
	eventA, eventB    Event    = 0xc1c2c3c4c5c6c7c8, 0xb1b2b3b4b5b6b7b8
	moduleA           Module   = 0xa1a2a3a4a5a6a7a8
	functionA         Function = 0x9192939495969798
	contextA          Context  = 0x8182838485868788
	deviceA           Device   = 0x12345678
	flagsA            uint32   = 0xfedcba98
	minusFive         int      = -5
	minusFiveAsUint64 uint64   = ^uint64(4)
)

// TestABI makes each call with arguments that tell one from the other, and compares what C got with
// them, and the results with the constants of fake.c.
func TestABI(t *testing.T) {
	f := openFake(t)
	p, err := NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	list := mustList(t, "scale", scalePTX)
	none := func(err error) (any, error) { return nil, err }
	for _, c := range []struct {
		call string
		do   func() (any, error)
		want any
		args []uint64
	}{
		{"Init", func() (any, error) { return none(f.Init(flagsA)) }, nil, []uint64{uint64(flagsA)}},
		{"DriverGetVersion", func() (any, error) { return f.DriverGetVersion() }, 13000, []uint64{}},
		{"DeviceGetCount", func() (any, error) { return f.DeviceGetCount() }, 0x1234567, []uint64{}},
		{"DeviceGet", func() (any, error) { return f.DeviceGet(minusFive) }, Device(0x2345678), []uint64{minusFiveAsUint64}},
		{"DeviceGetName", func() (any, error) { return f.DeviceGetName(deviceA) }, "Fake GPU 305419896", []uint64{256, uint64(deviceA)}},
		{"DeviceGetAttribute", func() (any, error) { return f.DeviceGetAttribute(0x7654321, deviceA) }, -7, []uint64{0x7654321, uint64(deviceA)}},
		{"DeviceTotalMem", func() (any, error) { return f.DeviceTotalMem(deviceA) }, uint64(0x1122334455667788), []uint64{uint64(deviceA)}},
		{"DeviceGetUUID", func() (any, error) { return f.DeviceGetUUID(deviceA) },
			[16]byte{0xf0, 0xef, 0xee, 0xed, 0xec, 0xeb, 0xea, 0xe9, 0xe8, 0xe7, 0xe6, 0xe5, 0xe4, 0xe3, 0xe2, 0xe1},
			[]uint64{uint64(deviceA)}},
		{"DevicePrimaryCtxRetain", func() (any, error) { return f.DevicePrimaryCtxRetain(deviceA) }, Context(0x1020304050607080), []uint64{uint64(deviceA)}},
		{"DevicePrimaryCtxRelease", func() (any, error) { return none(f.DevicePrimaryCtxRelease(deviceA)) }, nil, []uint64{uint64(deviceA)}},
		{"CtxSetCurrent", func() (any, error) { return none(f.CtxSetCurrent(contextA)) }, nil, []uint64{uint64(contextA)}},
		{"CtxGetCurrent", func() (any, error) { return f.CtxGetCurrent() }, Context(0x1121314151617181), []uint64{}},
		{"CtxSynchronize", func() (any, error) { return none(f.CtxSynchronize()) }, nil, []uint64{}},
		{"MemAlloc", func() (any, error) { return f.MemAlloc(bytesA) }, Ptr(0x7f01020304050607), []uint64{bytesA}},
		{"MemFree", func() (any, error) { return none(f.MemFree(ptrA)) }, nil, []uint64{uint64(ptrA)}},
		{"MemGetInfo", func() (any, error) { free, total, err := f.MemGetInfo(); return [2]uint64{free, total}, err },
			[2]uint64{0x0102030405060708, 0x1112131415161718}, []uint64{}},
		{"MemHostAlloc", func() (any, error) { p, err := f.MemHostAlloc(bytesA, flagsA); return uintptr(p), err },
			uintptr(0x7172737475767778), []uint64{bytesA, uint64(flagsA)}},
		{"MemFreeHost", func() (any, error) { return none(f.MemFreeHost(pointer(hostA))) }, nil, []uint64{hostA}},
		{"MemHostRegister", func() (any, error) { return none(f.MemHostRegister(pointer(hostA), bytesA, flagsA)) }, nil, []uint64{hostA, bytesA, uint64(flagsA)}},
		{"MemHostUnregister", func() (any, error) { return none(f.MemHostUnregister(pointer(hostA))) }, nil, []uint64{hostA}},
		{"MemHostGetDevicePointer", func() (any, error) { return f.MemHostGetDevicePointer(pointer(hostA)) }, Ptr(0x0807060504030201), []uint64{hostA, 0}},
		{"MemcpyHtoDAsync", func() (any, error) { return none(f.MemcpyHtoDAsync(ptrA, pointer(hostA), bytesA, streamA)) },
			nil, []uint64{uint64(ptrA), hostA, bytesA, uint64(streamA)}},
		{"MemcpyDtoHAsync", func() (any, error) { return none(f.MemcpyDtoHAsync(pointer(hostA), ptrA, bytesA, streamA)) },
			nil, []uint64{hostA, uint64(ptrA), bytesA, uint64(streamA)}},
		{"MemcpyDtoDAsync", func() (any, error) { return none(f.MemcpyDtoDAsync(ptrA, ptrB, bytesA, streamA)) },
			nil, []uint64{uint64(ptrA), uint64(ptrB), bytesA, uint64(streamA)}},
		{"MemsetD8Async", func() (any, error) { return none(f.MemsetD8Async(ptrA, 0xfe, bytesA, streamA)) },
			nil, []uint64{uint64(ptrA), 0xfe, bytesA, uint64(streamA)}},
		{"MemsetD32Async", func() (any, error) { return none(f.MemsetD32Async(ptrA, flagsA, bytesA, streamA)) },
			nil, []uint64{uint64(ptrA), uint64(flagsA), bytesA, uint64(streamA)}},
		{"StreamCreate", func() (any, error) { return f.StreamCreate(StreamNonBlocking) }, Stream(0x5152535455565758), []uint64{1}},
		{"StreamDestroy", func() (any, error) { return none(f.StreamDestroy(streamA)) }, nil, []uint64{uint64(streamA)}},
		{"StreamSynchronize", func() (any, error) { return none(f.StreamSynchronize(streamA)) }, nil, []uint64{uint64(streamA)}},
		{"StreamQuery", func() (any, error) { return f.StreamQuery(streamA) }, true, []uint64{uint64(streamA)}},
		{"StreamWaitEvent", func() (any, error) { return none(f.StreamWaitEvent(streamA, eventA)) }, nil, []uint64{uint64(streamA), uint64(eventA), 0}},
		{"EventCreate", func() (any, error) { return f.EventCreate(EventDisableTiming | EventBlockingSync) }, Event(0x6162636465666768), []uint64{3}},
		{"EventDestroy", func() (any, error) { return none(f.EventDestroy(eventA)) }, nil, []uint64{uint64(eventA)}},
		{"EventRecord", func() (any, error) { return none(f.EventRecord(eventA, streamA)) }, nil, []uint64{uint64(eventA), uint64(streamA)}},
		{"EventSynchronize", func() (any, error) { return none(f.EventSynchronize(eventA)) }, nil, []uint64{uint64(eventA)}},
		{"EventQuery", func() (any, error) { return f.EventQuery(eventA) }, true, []uint64{uint64(eventA)}},
		{"EventElapsedTime", func() (any, error) { return f.EventElapsedTime(eventA, eventB) }, float32(1.5), []uint64{uint64(eventA), uint64(eventB)}},
		{"ModuleLoadDataEx", func() (any, error) {
			m, log, err := f.ModuleLoadDataEx(scalePTX)
			return fmt.Sprintf("%x %s", m, log), err
		},
			"4142434445464748 compiled", []uint64{4, 3, 4, 5, 6}},
		{"ModuleUnload", func() (any, error) { return none(f.ModuleUnload(moduleA)) }, nil, []uint64{uint64(moduleA)}},
		{"ModuleGetFunction", func() (any, error) { return f.ModuleGetFunction(moduleA, "gather_mean") }, Function(0x3132333435363738), []uint64{uint64(moduleA)}},
		{"FuncGetAttribute", func() (any, error) { return f.FuncGetAttribute(Registers, functionA) }, 0x3456789, []uint64{4, uint64(functionA)}},
		{"FuncSetAttribute", func() (any, error) { return none(f.FuncSetAttribute(functionA, MaxDynamicShared, minusFive)) },
			nil, []uint64{uint64(functionA), 8, minusFiveAsUint64}},
		{"LaunchKernel", func() (any, error) {
			p.Start(list).Ptr(ptrA).F32(2.5).U32(7)
			return none(f.LaunchKernel(functionA, Dim{0x7fffffff, 0xfffe, 3}, Dim{1024, 4, 5}, 0xf0000006, streamA, p))
		}, nil, []uint64{
			uint64(functionA), 0x7fffffff, 0xfffe, 3, 1024, 4, 5, 0xf0000006, uint64(streamA), 0, 16, uint64(ptrA),
		}},
		{"OccupancyMaxActiveBlocksPerMultiprocessor", func() (any, error) {
			return f.OccupancyMaxActiveBlocksPerMultiprocessor(functionA, 0x7654321, bytesA)
		}, 0x4567891, []uint64{uint64(functionA), 0x7654321, bytesA}},
	} {
		t.Run(c.call, func(t *testing.T) {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			f.control(t, "fake_echo", 1)
			got, err := c.do()
			require.NoError(t, err)
			require.Equal(t, c.want, got)
			name, args := f.last(t)
			require.Equal(t, strings.ToLower("cu"+c.call), strings.ToLower(name))
			require.Equal(t, c.args, args)

			// A call that fails returns the driver's words.
			f.control(t, "fake_fail", 0, 700)
			_, err = c.do()
			if c.call == "DriverGetVersion" && Provider == "gorgonia" {
				require.ErrorIs(t, err, ErrUnknown) // its Version returns no code
				return
			}
			var refused *Error
			require.ErrorAs(t, err, &refused)
			require.ErrorIs(t, err, ErrIllegalAddress)
			call, _, _ := strings.Cut(refused.Call, " ")
			require.Equal(t, name, call)
			require.Equal(t, "CUDA_ERROR_ILLEGAL_ADDRESS", refused.Name)
			require.Equal(t, "an illegal memory access was encountered", refused.Text)
			require.True(t, refused.Sticky())
		})
	}
	require.Equal(t, "CUDA_ERROR_NOT_READY", f.GetErrorName(ErrNotReady))
	require.Equal(t, "", f.GetErrorName(12345))
	require.Equal(t, "", f.GetErrorString(12345))
}

// TestQueries: work that is not done is no error.
func TestQueries(t *testing.T) {
	f := openFake(t)
	f.control(t, "fake_echo", 1)
	for _, query := range []func() (bool, error){
		func() (bool, error) { return f.StreamQuery(streamA) },
		func() (bool, error) { return f.EventQuery(eventA) },
	} {
		f.control(t, "fake_fail", 0, uintptr(ErrNotReady))
		done, err := query()
		require.NoError(t, err)
		require.False(t, done)
		f.control(t, "fake_fail", 0, uintptr(ErrInvalidContext))
		done, err = query()
		require.ErrorIs(t, err, ErrInvalidContext)
		require.False(t, done)
	}
}

// TestNineteen calls a function with as many arguments as cublasGemmEx.
func TestNineteen(t *testing.T) {
	f := openFake(t)
	args, want := make([]uintptr, 19), make([]uint64, 19)
	wide := map[int]bool{0: true, 6: true, 7: true, 10: true, 13: true, 14: true} // pointers, others are int
	for i := range args {
		args[i] = uintptr(i+1)<<56 | 0x00ab00cd<<24 | uintptr(0x800000+i)
		if want[i] = uint64(args[i]); !wide[i] {
			want[i] = uint64(int32(args[i]))
		}
	}
	require.EqualValues(t, -13, f.control(t, "fake_nineteen", args...))
	name, got := f.last(t)
	require.Equal(t, "fake_nineteen", name)
	require.Equal(t, want, got)
	_, err := f.library.Symbol("no_such_function")
	require.ErrorContains(t, err, "no_such_function")
	_, err = OpenLibrary("libno-such-library.so.7")
	require.ErrorContains(t, err, "libno-such-library.so.7")
	require.PanicsWithValue(t, "driver: 21 arguments for a call, and at most 20 are passed", func() { Symbol(0).Call(make([]uintptr, 21)...) })
}

// scale is a loaded kernel of the fake.
type scale struct {
	gpu      *GPU
	list     *ParamList
	stream   Stream
	function Function
}

func openScale(t testing.TB, f *fakeDriver, ordinal int) *scale {
	t.Helper()
	g, err := NewGPU(f.Calls, ordinal, MinVersion)
	require.NoError(t, err)
	s := &scale{gpu: g, list: mustList(t, "scale", scalePTX)}
	require.NoError(t, g.Do(func(c *Calls) (err error) {
		m, log, err := c.ModuleLoadDataEx(scalePTX)
		if err != nil {
			return err
		}
		require.Equal(t, fmt.Sprint(len(scalePTX), " bytes"), log)
		if s.function, err = c.ModuleGetFunction(m, "scale"); err != nil {
			return err
		}
		s.stream, err = c.StreamCreate(StreamNonBlocking)
		return err
	}))
	return s
}

// launch multiplies the n floats at x by factor.
func (s *scale) launch(x Ptr, n uint32, factor float32, p *Params) error {
	return s.gpu.Do(func(c *Calls) error { return s.launchIn(c, x, n, factor, p) })
}

// launchIn is launch inside Do.
func (s *scale) launchIn(c *Calls, x Ptr, n uint32, factor float32, p *Params) error {
	p.Start(s.list).Ptr(x).F32(factor).U32(n)
	return c.LaunchKernel(s.function, Dim{X: 1}, Dim{X: 32}, 0, s.stream, p)
}

// TestContexts launches from 8 goroutines on two GPUs, while threads begin and end. The goroutines
// move between threads, also inside Do if it lets them. Every launch has the context of its GPU.
func TestContexts(t *testing.T) {
	f := openFake(t)
	f.control(t, "fake_devices", 2)
	gpus := []*scale{openScale(t, f, 0), openScale(t, f, 1)}
	const goroutines = 8
	each := 20_000
	if testing.Short() {
		each = 2_000
	}
	var group sync.WaitGroup
	var failed atomic.Value
	for g := range goroutines {
		group.Go(func() {
			s := gpus[g%2]
			p, err := NewParams()
			if err != nil {
				failed.Store(err)
				return
			}
			defer p.Close()
			var x Ptr
			err = s.gpu.Do(func(c *Calls) (err error) {
				if x, err = c.MemAlloc(16); err != nil {
					return err
				}
				return c.MemsetD32Async(x, math.Float32bits(float32(g+1)), 4, s.stream)
			})
			for i := 0; i < each && err == nil; i++ {
				// A power of 2 and its inverse: the sum of exponents shows a launch that got lost.
				factor := float32(2)
				if i%2 == 1 {
					factor = 0.5
				}
				err = s.gpu.Do(func(c *Calls) error {
					if i%8 == 0 {
						runtime.Gosched()
					}
					return s.launchIn(c, x, 4, factor, p)
				})
				switch {
				case i%64 == 0:
					_ = make([]byte, 10_000) // so that the collector runs
				case i%500 == 0: // a goroutine that ends with its thread locked ends the thread
					ended := make(chan error)
					go func() {
						runtime.LockOSThread()
						ended <- s.gpu.Do(func(c *Calls) error { return c.StreamSynchronize(s.stream) })
					}()
					err = errors.Join(err, <-ended)
				}
			}
			if err == nil {
				want := float32(g + 1)
				if got := *(*[4]float32)(pointer(uint64(x))); got != [4]float32{want, want, want, want} {
					err = fmt.Errorf("goroutine %d has %v", g, got)
				}
			}
			if err != nil {
				failed.Store(err)
			}
		})
	}
	group.Wait()
	require.Nil(t, failed.Load())
	launches, lost, retained, _ := f.counts(t)
	require.EqualValues(t, goroutines*each, launches)
	require.Zero(t, lost)
	require.EqualValues(t, 2, retained)
	for _, s := range gpus {
		require.NoError(t, s.gpu.Close())
	}
	_, _, retained, _ = f.counts(t)
	require.Zero(t, retained)
}

// TestNoContext: without GPU.Do, a call on a fresh thread has no context, and says so. Do inside Do
// is fine, and the error of f comes back.
func TestNoContext(t *testing.T) {
	f := openFake(t)
	_, err := f.MemAlloc(64)
	require.ErrorIs(t, err, ErrNotInitialized)
	g, err := NewGPU(f.Calls, 0, MinVersion)
	require.NoError(t, err)
	_, err = f.MemAlloc(64)
	require.EqualError(t, err, "cuMemAlloc: CUDA error 201 CUDA_ERROR_INVALID_CONTEXT (invalid device context): "+
		"no context is current on this thread")
	require.NoError(t, g.Do(func(c *Calls) error {
		require.NoError(t, g.Do(func(*Calls) error { return nil }))
		now, err := c.CtxGetCurrent()
		require.NoError(t, err)
		require.Equal(t, g.context, now)
		_, err = c.MemAlloc(64)
		return err
	}))
	require.ErrorIs(t, g.Do(func(*Calls) error { return errors.ErrUnsupported }), errors.ErrUnsupported)
	f.control(t, "fake_fail", 0, uintptr(ErrIllegalAddress))
	require.ErrorIs(t, g.Do(func(*Calls) error { panic("not reached") }), ErrIllegalAddress)
	require.NoError(t, g.Close())
}

// TestEveryCallFails runs a small program, and has its n-th call fail, for each n. The error names
// the call and is the first.
func TestEveryCallFails(t *testing.T) {
	f := openFake(t)
	p, err := NewParams()
	require.NoError(t, err)
	defer func() { require.NoError(t, p.Close()) }()
	list := mustList(t, "scale", scalePTX)
	host := (*[4]float32)(f.at(4096))
	program := func() error {
		g, err := NewGPU(f.Calls, 0, MinVersion)
		if err != nil {
			return err
		}
		err = g.Do(func(c *Calls) error {
			m, _, err := c.ModuleLoadDataEx(scalePTX)
			if err != nil {
				return err
			}
			k, err := c.ModuleGetFunction(m, "scale")
			if err != nil {
				return err
			}
			x, err := c.MemAlloc(16)
			if err != nil {
				return err
			}
			for _, step := range []func() error{
				func() error { return c.MemHostRegister(unsafe.Pointer(host), 16, HostPortable) },
				func() error { return c.MemcpyHtoDAsync(x, unsafe.Pointer(host), 16, 0) },
				func() error {
					p.Start(list).Ptr(x).F32(3).U32(4)
					return c.LaunchKernel(k, Dim{X: 1}, Dim{X: 4}, 0, 0, p)
				},
				func() error { return c.MemcpyDtoHAsync(unsafe.Pointer(host), x, 16, 0) },
				func() error { return c.StreamSynchronize(0) },
				func() error { return c.MemHostUnregister(unsafe.Pointer(host)) },
				func() error { return c.MemFree(x) },
				func() error { return c.ModuleUnload(m) },
			} {
				if err := step(); err != nil {
					return err
				}
			}
			return nil
		})
		return errors.Join(err, g.Close())
	}
	*host = [4]float32{1, 2, 3, 4}
	require.NoError(t, program())
	require.Equal(t, [4]float32{3, 6, 9, 12}, *host)
	_, _, _, calls := f.counts(t)
	require.EqualValues(t, 19, calls)
	for n := range calls {
		f.control(t, "fake_reset")
		f.control(t, "fake_fail", uintptr(n), 999)
		err := program()
		require.ErrorIs(t, err, ErrUnknown, n)
		require.ErrorContains(t, err, "cu", n)
	}
}

// TestOpenGPU: what NewGPU refuses, and in which words.
func TestOpenGPU(t *testing.T) {
	f := openFake(t)
	_, err := NewGPU(f.Calls, 3, MinVersion)
	require.EqualError(t, err, "GPU 3 of 1: cuDeviceGet: CUDA error 101 CUDA_ERROR_INVALID_DEVICE (invalid device ordinal): "+
		"GPUs are counted from 0, and CUDA_VISIBLE_DEVICES may hide some: nvidia-smi -L lists all")
	f.control(t, "fake_version", 11040)
	_, err = NewGPU(f.Calls, 0, MinVersion)
	require.EqualError(t, err, "the NVIDIA driver is of CUDA 11.4, and the kernels need 11.8: update the driver")
	f.control(t, "fake_reset")
	f.control(t, "fake_devices", 0)
	_, err = NewGPU(f.Calls, 0, MinVersion)
	require.EqualError(t, err, "cuInit: CUDA error 100 CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected): "+
		"no GPU is visible: see nvidia-smi, CUDA_VISIBLE_DEVICES, and whether the container was given one")
	_, _, retained, _ := f.counts(t)
	require.Zero(t, retained)

	f.control(t, "fake_reset")
	g, err := NewGPU(f.Calls, 0, MinVersion)
	require.NoError(t, err)
	require.Equal(t, 13000, g.Version())
	require.Equal(t, Device(0), g.Device())
	require.NoError(t, g.Do(func(c *Calls) error {
		_, log, err := c.ModuleLoadDataEx(strings.Replace(scalePTX, ".version 7.8", ".version 9.9", 1))
		require.ErrorIs(t, err, ErrUnsupportedPTX)
		require.Contains(t, log, "Unsupported .version 9.9")
		require.EqualError(t, err, "cuModuleLoadDataEx: CUDA error 222 CUDA_ERROR_UNSUPPORTED_PTX_VERSION "+
			"(the provided PTX was compiled with an unsupported toolchain.): the NVIDIA driver is too old for the kernels: update it\n"+
			"ptxas application ptx input, line 1; fatal   : Unsupported .version 9.9; current version is '9.0'")
		_, _, err = c.ModuleLoadDataEx(".version 7.8\nnonsense;\n")
		require.ErrorIs(t, err, ErrInvalidPTX)
		require.ErrorContains(t, err, "Parsing error near 'nonsense'")
		_, err = c.ModuleGetFunction(0, "no_such_kernel")
		require.EqualError(t, err, "cuModuleGetFunction no_such_kernel: CUDA error 500 CUDA_ERROR_NOT_FOUND (named symbol not found)")
		return nil
	}))
	require.NoError(t, g.Close())
}

// TestNoLibrary opens files that are not there, or are no library.
func TestNoLibrary(t *testing.T) {
	var missing *OpenError
	_, err := Open("/nowhere/libcuda.so.1")
	require.ErrorAs(t, err, &missing)
	require.Empty(t, missing.Symbol)
	require.ErrorContains(t, err, "no NVIDIA driver: /nowhere/libcuda.so.1: cannot open shared object file")
	_, err = Open("testdata/fake.c")
	require.ErrorAs(t, err, &missing)
	if _, err = Open(""); errors.As(err, &missing) { // or else there is a driver
		require.Equal(t, DefaultLibrary, missing.Library)
	}
}

// TestMissingSymbols opens drivers that lack a function.
func TestMissingSymbols(t *testing.T) {
	for _, s := range []string{"cuInit", "cuDeviceGetUuid_v2", "cuMemHostRegister_v2", "cuGetErrorString"} {
		folder := filepath.Join(fakeFolder, s)
		require.NoError(t, os.MkdirAll(folder, 0o777))
		library := compile(t, folder, "-D"+s+"=other")
		_, err := Open(library)
		require.EqualError(t, err, library+" has no function "+s+": the NVIDIA driver is too old: update it")
		var missing *OpenError
		require.ErrorAs(t, err, &missing)
		require.Equal(t, s, missing.Symbol)
	}
}

func BenchmarkDo(b *testing.B) {
	f := openFake(b)
	s := openScale(b, f, 0)
	p, err := NewParams()
	require.NoError(b, err)
	defer p.Close()
	x := Ptr(uintptr(f.at(4096)))
	b.Run("call=launch", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.launch(x, 1, 1, p); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("call=record", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if err := s.gpu.Do(func(c *Calls) error { return c.EventRecord(1, s.stream) }); err != nil {
				b.Fatal(err)
			}
		}
	})
}
