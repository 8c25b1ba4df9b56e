//go:build cuda && linux

package clib_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels/cuda/clib"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// A scenario is a test in a process of its own: the library reads its settings once, and a process
// that has lost the context gets no other.
type scenario struct {
	name string
	env  []string
	run  func(t *testing.T, d *device)
	says string // what it writes to standard error
}

// libraryVariable names a library that is taken as it is, such as one with sanitizers, and
// childVariable is set in a process that runs a scenario.
const (
	libraryVariable = "GNN_CLIB_DRIVER"
	childVariable   = "GNN_CLIB_SCENARIO"
)

// TestDriver runs the scenarios by the provider that this binary was built with.
func TestDriver(t *testing.T) {
	library := os.Getenv(libraryVariable)
	_, child := os.LookupEnv(childVariable)
	if library == "" {
		folder := t.TempDir()
		err := clib.BuildDriver(folder)
		if errors.Is(err, clib.ErrNoCompiler) {
			t.Skip(err)
		}
		require.NoError(t, err)
		library = filepath.Join(folder, driver.DefaultLibrary)
	}
	for _, s := range slices.Concat(
		generalScenarios, memoryScenarios, orderScenarios, launchScenarios, faultScenarios,
	) {
		t.Run(s.name, func(t *testing.T) {
			if child {
				runScenario(t, library, s)
				return
			}
			start := exec.Command(os.Args[0], "-test.v", "-test.run", "^TestDriver$/^"+s.name+"$")
			start.Env = append(os.Environ(), append(s.env, libraryVariable+"="+library, childVariable+"=1")...)
			out, err := start.CombinedOutput()
			require.NoError(t, err, "%s", out)
			require.Contains(t, string(out), "--- PASS: TestDriver/"+s.name)
			require.Contains(t, string(out), s.says)
			if s.says == "" {
				require.NotContains(t, string(out), "libcuda of the host")
			}
		})
	}
}

func runScenario(t *testing.T, library string, s scenario) {
	calls, err := driver.Open(library)
	require.NoError(t, err)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	s.run(t, &device{Calls: calls, t: t, library: library})
}

// A device is the driver of a scenario.
type device struct {
	*driver.Calls
	t       *testing.T
	library string
	kernels map[string]kernel
}

// A kernel is a function of a module.
type kernel struct {
	driver.Function
	list *driver.ParamList
}

// begin initialises the driver and makes the context current on this thread.
func (d *device) begin() *driver.GPU {
	d.t.Helper()
	g, err := driver.NewGPU(d.Calls, 0, driver.MinVersion)
	require.NoError(d.t, err)
	c, err := d.DevicePrimaryCtxRetain(0)
	require.NoError(d.t, err)
	require.NoError(d.t, d.CtxSetCurrent(c))
	return g
}

func (d *device) alloc(bytes int) driver.Ptr {
	d.t.Helper()
	p, err := d.MemAlloc(uint64(bytes))
	require.NoError(d.t, err)
	return p
}

func (d *device) stream() driver.Stream {
	d.t.Helper()
	s, err := d.StreamCreate(driver.StreamNonBlocking)
	require.NoError(d.t, err)
	return s
}

func (d *device) event() driver.Event {
	d.t.Helper()
	e, err := d.EventCreate(0)
	require.NoError(d.t, err)
	return e
}

// load loads all PTX files of these names.
func (d *device) load(files ...string) {
	d.t.Helper()
	if d.kernels == nil {
		d.kernels = map[string]kernel{}
	}
	for _, file := range files {
		source, err := ptx.Source(file)
		require.NoError(d.t, err)
		m, log, err := d.ModuleLoadDataEx(string(source))
		require.NoError(d.t, err)
		require.Empty(d.t, log)
		lists, err := driver.ParamLists(string(source))
		require.NoError(d.t, err)
		for name, list := range lists {
			f, err := d.ModuleGetFunction(m, name)
			require.NoError(d.t, err)
			d.kernels[name] = kernel{f, list}
		}
	}
}

// params returns the parameters of a kernel, without arguments. They are given back with the test.
func (d *device) params(name string) *driver.Params {
	d.t.Helper()
	p, err := driver.NewParams()
	require.NoError(d.t, err)
	d.t.Cleanup(func() { require.NoError(d.t, p.Close()) })
	k, ok := d.kernels[name]
	require.True(d.t, ok, name)
	return p.Start(k.list)
}

// launch launches a kernel with blocks of 256 threads.
func (d *device) launch(name string, grid driver.Dim, s driver.Stream, p *driver.Params) {
	d.t.Helper()
	require.NoError(d.t, d.LaunchKernel(d.kernels[name].Function, grid, driver.Dim{X: 256}, 0, s, p))
}

// fill launches the kernel fill.
func (d *device) fill(at driver.Ptr, n int, v float32, s driver.Stream) {
	d.t.Helper()
	d.launch("fill", driver.Dim{X: 2}, s, d.params("fill").Ptr(at).U64(uint64(n)).F32(v))
}

// host returns memory outside the Go heap, which is no memory that the driver knows.
func host[T any](t *testing.T, n int) []T {
	t.Helper()
	size := n * int(unsafe.Sizeof(*new(T)))
	b, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_ANON|unix.MAP_PRIVATE)
	require.NoError(t, err)
	t.Cleanup(func() { _ = unix.Munmap(b) })
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), n)
}

// at returns the address of a slice's first element.
func at[T any](s []T) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(s)) }

// locked returns page-locked memory, registered.
func locked[T any](d *device, n int) []T {
	d.t.Helper()
	s := host[T](d.t, n)
	require.NoError(d.t, d.MemHostRegister(at(s), bytesOf(s), driver.HostPortable))
	return s
}

func bytesOf[T any](s []T) uint64 { return uint64(len(s)) * uint64(unsafe.Sizeof(*new(T))) }

// upload copies numbers to new memory of the device.
func upload[T any](d *device, values ...T) driver.Ptr {
	d.t.Helper()
	h := host[T](d.t, len(values))
	copy(h, values)
	p := d.alloc(int(bytesOf(h)))
	require.NoError(d.t, d.MemcpyHtoDAsync(p, at(h), bytesOf(h), 0))
	require.NoError(d.t, d.StreamSynchronize(0))
	return p
}

// download waits for a stream and copies numbers from the device.
func download[T any](d *device, p driver.Ptr, n int, s driver.Stream) []T {
	d.t.Helper()
	h := host[T](d.t, n)
	require.NoError(d.t, d.MemcpyDtoHAsync(at(h), p, bytesOf(h), s))
	return slices.Clone(h)
}

// called returns how often the driver was asked for a function.
func (d *device) called(name string) int {
	d.t.Helper()
	l, err := driver.OpenLibrary(d.library)
	require.NoError(d.t, err)
	s, err := l.Symbol("gnn_cuda_calls")
	require.NoError(d.t, err)
	text := host[byte](d.t, len(name)+1)
	copy(text, name)
	return int(s.Call(uintptr(at(text))))
}

// on runs f on another thread, which has no current context.
func on(f func()) {
	done := make(chan struct{})
	go func() {
		runtime.LockOSThread() // for good: the thread ends with the goroutine
		defer close(done)
		f()
	}()
	<-done
}

var smallDevice = []string{"GNN_CUDA_MEMORY=3MiB", "GNN_CUDA_VERSION=12090"}

var generalScenarios = []scenario{
	{name: "device", env: smallDevice, run: func(t *testing.T, d *device) {
		_, err := d.DeviceGetCount()
		require.ErrorIs(t, err, driver.ErrNotInitialized)
		_, err = d.MemAlloc(1)
		require.ErrorIs(t, err, driver.ErrNotInitialized)
		require.ErrorIs(t, d.Init(1), driver.ErrInvalidValue)
		require.NoError(t, d.Init(0))

		v, err := d.DriverGetVersion()
		require.NoError(t, err)
		require.Equal(t, 12090, v)
		n, err := d.DeviceGetCount()
		require.NoError(t, err)
		require.Equal(t, 1, n)
		for _, ordinal := range []int{1, -1} {
			_, err = d.DeviceGet(ordinal)
			require.ErrorIs(t, err, driver.ErrInvalidDevice)
		}
		gpu, err := d.DeviceGet(0)
		require.NoError(t, err)
		name, err := d.DeviceGetName(gpu)
		require.NoError(t, err)
		require.Equal(t, "gnnstore host device", name)
		bytes, err := d.DeviceTotalMem(gpu)
		require.NoError(t, err)
		require.EqualValues(t, 3<<20, bytes)
		id, err := d.DeviceGetUUID(gpu)
		require.NoError(t, err)
		require.Equal(t, "gnnstore host 00", string(id[:]))
		for a, want := range map[driver.DeviceAttribute]int{
			driver.ComputeCapabilityMajor: 8, driver.ComputeCapabilityMinor: 0, driver.MaxThreadsPerSM: 2048,
			driver.MultiprocessorCount: 8, driver.MaxSharedPerBlock: 48 << 10, driver.HostRegisterSupported: 1,
			driver.HostPointerIsDevicePtr: 1, driver.Integrated: 0, driver.CopyEngines: 2, driver.ClockKHz: 1410000,
			driver.CanMapHostMemory: 1, driver.ComputeMode: 0, driver.L2Bytes: 40 << 20, driver.UnifiedAddressing: 1,
			driver.MaxSharedPerSM: 164 << 10, driver.MaxRegistersPerSM: 65536, driver.MaxSharedPerBlockOptIn: 163 << 10,
			driver.ReadOnlyRegisterSupported: 1,
		} {
			v, err := d.DeviceGetAttribute(a, gpu)
			require.NoError(t, err)
			require.Equal(t, want, v, "attribute %d", a)
		}
		_, err = d.DeviceGetAttribute(9999, gpu)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
		require.Equal(t, "CUDA_ERROR_OUT_OF_MEMORY", d.GetErrorName(driver.ErrOutOfMemory))
		require.Equal(t, "out of memory", d.GetErrorString(driver.ErrOutOfMemory))
		require.Empty(t, d.GetErrorName(54321))
	}},

	// Contexts belong to threads, and a primary context to all that retain it.
	{name: "contexts", run: func(t *testing.T, d *device) {
		g := d.begin()
		own, err := d.CtxGetCurrent()
		require.NoError(t, err)
		require.NotZero(t, own)
		on(func() {
			c, err := d.CtxGetCurrent()
			require.NoError(t, err)
			require.Zero(t, c)
			_, err = d.MemAlloc(64)
			require.ErrorIs(t, err, driver.ErrInvalidContext)
			require.ErrorIs(t, d.CtxSynchronize(), driver.ErrInvalidContext)
			require.NoError(t, d.CtxSetCurrent(own))
			_, err = d.MemAlloc(64)
			require.NoError(t, err)
		})
		require.ErrorIs(t, d.CtxSetCurrent(12345), driver.ErrInvalidContext)
		require.NoError(t, d.CtxSetCurrent(0))
		_, err = d.StreamCreate(0)
		require.ErrorIs(t, err, driver.ErrInvalidContext)
		require.NoError(t, g.Do(func(*driver.Calls) error { _, err := d.MemAlloc(64); return err }))

		s := d.stream()
		require.NoError(t, g.Close()) // begin has retained it too
		require.NoError(t, d.StreamSynchronize(s))
		free, total, err := d.MemGetInfo()
		require.NoError(t, err)
		require.Less(t, free, total)
		require.NoError(t, d.DevicePrimaryCtxRelease(0))
		require.ErrorIs(t, d.DevicePrimaryCtxRelease(0), driver.ErrInvalidContext)
		require.ErrorIs(t, d.StreamSynchronize(s), driver.ErrContextIsDestroyed)

		d.begin() // another context, without what the first had
		require.ErrorIs(t, d.StreamSynchronize(s), driver.Code(400))
		free, total, err = d.MemGetInfo()
		require.NoError(t, err)
		require.Equal(t, total, free)
	}},

	// Eight goroutines that set the context lose none.
	{name: "threads", run: func(t *testing.T, d *device) {
		g := d.begin()
		d.load("elementwise")
		const rounds = 100
		errs := make(chan error)
		for range 8 {
			go func() {
				errs <- func() error {
					p, err := driver.NewParams()
					if err != nil {
						return err
					}
					defer p.Close()
					k := d.kernels["fill"]
					var s driver.Stream
					var to driver.Ptr
					if err := g.Do(func(c *driver.Calls) (err error) {
						if s, err = c.StreamCreate(1); err == nil {
							to, err = c.MemAlloc(4096)
						}
						return err
					}); err != nil {
						return err
					}
					for i := range rounds {
						if err := g.Do(func(c *driver.Calls) error {
							p.Start(k.list).Ptr(to).U64(1000).F32(float32(i))
							return c.LaunchKernel(k.Function, driver.Dim{X: 3}, driver.Dim{X: 256}, 0, s, p)
						}); err != nil {
							return err
						}
					}
					return g.Do(func(c *driver.Calls) error { return c.StreamSynchronize(s) })
				}()
			}()
		}
		for range 8 {
			require.NoError(t, <-errs)
		}
		require.Equal(t, 8*rounds, d.called("cuLaunchKernel"))
	}},

	{name: "no-device", env: []string{"GNN_CUDA_DEVICES=0"}, run: func(t *testing.T, d *device) {
		_, err := driver.NewGPU(d.Calls, 0, driver.MinVersion)
		require.ErrorIs(t, err, driver.ErrNoDevice)
	}},

	{name: "old-driver", env: []string{"GNN_CUDA_VERSION=11040"}, run: func(t *testing.T, d *device) {
		_, err := driver.NewGPU(d.Calls, 0, driver.MinVersion)
		require.Equal(t, &driver.VersionError{Has: 11040, Needs: driver.MinVersion}, err)
	}},

	{name: "bad-setting", env: []string{"GNN_CUDA_ORDER=sideways"}, says: "GNN_CUDA_ORDER=sideways is not understood",
		run: func(t *testing.T, d *device) { require.ErrorIs(t, d.Init(0), driver.ErrInvalidValue) }},

	{name: "streams-and-events", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		_, err := d.StreamCreate(2)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
		s, e, f := d.stream(), d.event(), d.event()
		p := d.alloc(4096)

		// An event that was never recorded is done; one that was is done when its work is.
		done, err := d.EventQuery(e)
		require.NoError(t, err)
		require.True(t, done)
		_, err = d.EventElapsedTime(e, f)
		require.ErrorIs(t, err, driver.Code(400))
		require.NoError(t, d.EventRecord(e, s))
		d.fill(p, 1000, 1, s)
		require.NoError(t, d.EventRecord(f, s))
		_, err = d.EventElapsedTime(e, f)
		require.ErrorIs(t, err, driver.ErrNotReady)
		require.NoError(t, d.EventSynchronize(f))
		ms, err := d.EventElapsedTime(e, f)
		require.NoError(t, err)
		require.Positive(t, ms)
		done, err = d.EventQuery(f)
		require.NoError(t, err)
		require.True(t, done)

		// Queries get there.
		d.fill(p, 1000, 2, s)
		require.NoError(t, d.EventRecord(f, s))
		for _, query := range []func() (bool, error){
			func() (bool, error) { return d.EventQuery(f) }, func() (bool, error) { return d.StreamQuery(s) },
		} {
			asked := 0
			for done = false; !done && asked < 10; asked++ {
				done, err = query()
				require.NoError(t, err)
			}
			require.True(t, done)
		}
		require.Equal(t, []float32{2}, download[float32](d, p, 1, s))

		// Without times.
		g, err := d.EventCreate(driver.EventDisableTiming | driver.EventBlockingSync)
		require.NoError(t, err)
		require.NoError(t, d.EventRecord(g, s))
		require.NoError(t, d.EventSynchronize(g))
		_, err = d.EventElapsedTime(e, g)
		require.ErrorIs(t, err, driver.Code(400))

		// What is gone is refused. A stream's work goes on.
		d.fill(p, 1000, 3, s)
		require.NoError(t, d.StreamDestroy(s))
		require.ErrorIs(t, d.StreamDestroy(s), driver.Code(400))
		require.ErrorIs(t, d.EventRecord(e, s), driver.Code(400))
		require.NoError(t, d.EventDestroy(e))
		require.ErrorIs(t, d.EventDestroy(e), driver.Code(400))
		require.ErrorIs(t, d.StreamWaitEvent(0, e), driver.Code(400))
		require.NoError(t, d.CtxSynchronize())
		require.Equal(t, []float32{3}, download[float32](d, p, 1, 0))
	}},

	{name: "fails", env: []string{"GNN_CUDA_FAIL=cuMemAlloc:2:2,cuStreamCreate:2+:999,cuEventRecord:1:719"},
		run: func(t *testing.T, d *device) {
			d.begin()
			for i, want := range []error{nil, driver.ErrOutOfMemory, nil} {
				_, err := d.MemAlloc(64)
				require.Equal(t, want == nil, err == nil, "call %d", i)
				require.ErrorIs(t, err, want)
			}
			for i := range 4 {
				_, err := d.StreamCreate(0)
				require.Equal(t, i == 0, err == nil, "call %d", i)
			}
			e := d.event()
			require.ErrorIs(t, d.EventRecord(e, 0), driver.ErrLaunchFailed)
			require.ErrorIs(t, d.CtxSynchronize(), driver.ErrLaunchFailed) // the context is lost
		}},
}
