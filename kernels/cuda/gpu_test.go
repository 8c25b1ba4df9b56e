//go:build cuda && linux

package cuda

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"sync"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
	"github.com/gnnstore/gnnstore/kernels/kerneltest"
)

// The tests named TestGPU use the libcuda.so.1 that is installed, and run where GNNSTORE_GPU is 1.
// tools/gpu runs them on a machine with a GPU. With GNNSTORE_GPU_SMALL=1 their sizes suit a
// library that runs kernels on the host.

// needGPU skips the test unless GNNSTORE_GPU is 1.
func needGPU(t testing.TB) {
	t.Helper()
	if os.Getenv("GNNSTORE_GPU") != "1" {
		t.Skip("no GPU: GNNSTORE_GPU is not 1")
	}
}

// sized returns large on a GPU, and small where GNNSTORE_GPU_SMALL is 1.
func sized(large, small int) int {
	if os.Getenv("GNNSTORE_GPU_SMALL") == "1" {
		return small
	}
	return large
}

// openGPU opens the installed driver's first GPU, and closes it when the test ends.
func openGPU(t testing.TB, o Options) *Backend {
	t.Helper()
	needGPU(t)
	b, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, b.Close()) })
	return b
}

// figure prints a line for tools/gpu.
func figure(name string, value float64, unit string) {
	fmt.Printf("figure %s %.4g %s\n", name, value, unit)
}

// The driver compiles every PTX file. No kernel spills registers to local memory. The time runs
// from loading a file until the driver has described its last kernel, since a driver that loads
// lazily compiles when it is asked for a function.
func TestGPUModules(t *testing.T) {
	needGPU(t)
	calls, err := driver.Open("")
	require.NoError(t, err)
	start := time.Now()
	gpu, err := driver.NewGPU(calls, 0, driver.MinVersion)
	require.NoError(t, err)
	defer func() { require.NoError(t, gpu.Close()) }()
	figure("context", time.Since(start).Seconds(), "s")
	all, err := ptx.Kernels()
	require.NoError(t, err)
	var took time.Duration
	most := 0
	require.NoError(t, gpu.Do(func(c *driver.Calls) error {
		for _, file := range ptx.Files() {
			text, err := ptx.Source(file)
			if err != nil {
				return err
			}
			start := time.Now()
			m, log, err := c.ModuleLoadDataEx(string(text))
			if log != "" {
				fmt.Printf("%s.ptx: %s\n", file, log)
			}
			if err != nil {
				return fmt.Errorf("%s.ptx: %w", file, err)
			}
			for name, k := range all {
				if k.File != file {
					continue
				}
				f, err := c.ModuleGetFunction(m, name)
				if err != nil {
					return fmt.Errorf("%s.ptx: %s: %w", file, name, err)
				}
				registers, err := c.FuncGetAttribute(driver.Registers, f)
				if err != nil {
					return err
				}
				local, err := c.FuncGetAttribute(driver.LocalBytes, f)
				if err != nil {
					return err
				}
				most = max(most, registers)
				fmt.Printf("%s: %d registers, %d bytes of local memory\n", name, registers, local)
				require.Zero(t, local, "%s spills", name)
			}
			took += time.Since(start)
			if err := c.ModuleUnload(m); err != nil {
				return err
			}
		}
		return nil
	}))
	figure("jit", took.Seconds(), "s")
	figure("kernels", float64(len(all)), "")
	figure("registers", float64(most), "at most")
}

// Goroutines on threads of their own launch side by side, and no launch is lost.
func TestGPUContexts(t *testing.T) {
	b := openGPU(t, Options{})
	const n, goroutines = 1000, 8
	launches := sized(20_000, 100)
	one := kernels.NewTensor(b, kernels.F32, n, 1)
	b.Fill(one, 1)
	errs := make([]error, goroutines)
	sums := make([]kernels.Tensor, goroutines)
	for i := range sums {
		sums[i] = kernels.NewTensor(b, kernels.F32, n, 1)
	}
	b.Mark()()
	start := time.Now()
	var done sync.WaitGroup
	for i := range goroutines {
		done.Go(func() {
			p, err := driver.NewParams()
			if err == nil {
				err = recovered(func() {
					for range launches {
						b.launch(p, "add", b.flat(n), b.f32("Add", "dst", sums[i]), b.f32("Add", "src", one), n)
					}
				})
				err = errors.Join(err, p.Close())
			}
			errs[i] = err
		})
	}
	done.Wait()
	require.NoError(t, errors.Join(errs...))
	b.Mark()()
	figure("launch", time.Since(start).Seconds()*1e6/float64(goroutines*launches), "µs")
	got := make([]float32, n)
	for _, s := range sums {
		b.DownloadF32(got, s)
		require.Equal(t, float32(launches), slices.Min(got))
		require.Equal(t, float32(launches), slices.Max(got))
	}
}

// Memory of the host is page-locked, and copied up and down unchanged.
func TestGPUCopies(t *testing.T) {
	b := openGPU(t, Options{})
	bytes := sized(1<<30, 8<<20)
	host, err := kernels.NewHostBuf(bytes)
	require.NoError(t, err)
	defer host.Close()
	memory := host.Bytes()
	var at driver.Ptr
	watch := newStopwatch(t, b)
	b.do("test", func(c *driver.Calls) error {
		start := time.Now()
		if err := c.MemHostRegister(unsafe.Pointer(&memory[0]), uint64(bytes), driver.HostPortable); err != nil {
			return err
		}
		figure("register", time.Since(start).Seconds()*1e3, "ms")
		at, err = c.MemAlloc(uint64(bytes))
		return err
	})
	for i := 0; i < bytes; i += 8 {
		binary.LittleEndian.PutUint64(memory[i:], uint64(i)*0x9e3779b97f4a7c15)
	}
	up := func(from unsafe.Pointer) float64 {
		return watch.best(func(c *driver.Calls) error {
			return c.MemcpyHtoDAsync(at, from, uint64(bytes), b.compute)
		})
	}
	down := func(to unsafe.Pointer) float64 {
		return watch.best(func(c *driver.Calls) error {
			return c.MemcpyDtoHAsync(to, at, uint64(bytes), b.compute)
		})
	}
	upRate := rate(bytes, up(unsafe.Pointer(&memory[0])))
	clear(memory)
	downRate := rate(bytes, down(unsafe.Pointer(&memory[0])))
	for i := 0; i < bytes; i += 8 {
		if got, want := binary.LittleEndian.Uint64(memory[i:]), uint64(i)*0x9e3779b97f4a7c15; got != want {
			t.Fatalf("byte %d: %x came back, want %x", i, got, want)
		}
	}
	// The driver's own page-locked memory is the measure.
	var own unsafe.Pointer
	b.do("test", func(c *driver.Calls) (err error) {
		own, err = c.MemHostAlloc(uint64(bytes), driver.HostPortable)
		return err
	})
	ownUp, ownDown := rate(bytes, up(own)), rate(bytes, down(own))
	figure("up", upRate, "GB/s")
	figure("down", downRate, "GB/s")
	figure("up_of_own", 100*upRate/ownUp, "%")
	figure("down_of_own", 100*downRate/ownDown, "%")
	b.do("test", func(c *driver.Calls) error {
		return errors.Join(c.MemFreeHost(own), c.MemHostUnregister(unsafe.Pointer(&memory[0])), c.MemFree(at))
	})
}

// Uploads, operations and fetches of the same buffers come in order, on two streams.
func TestGPUOrder(t *testing.T) {
	b := openGPU(t, Options{})
	n := sized(4<<20, 1<<12)
	x, sum := kernels.NewTensor(b, kernels.F32, n, 1), kernels.NewTensor(b, kernels.F32, n, 1)
	values, got := make([]float32, n), make([]float32, n)
	for i := range sized(100, 20) {
		for k := range values {
			values[k] = float32(i)
		}
		b.UploadF32(x, values)
		b.Fill(sum, 10)
		b.Add(sum, x)
		b.Add(sum, x)
		b.FetchF32(got, sum)
		b.Mark()()
		require.Equal(t, float32(10+2*i), slices.Min(got))
		require.Equal(t, float32(10+2*i), slices.Max(got))
	}
	for seed := range uint64(sized(40, 6)) {
		s := newScene(b, 1+int(seed%3)*260, []int{8, 5}[seed%2])
		draw := func() *rand.Rand { return rand.New(rand.NewPCG(seed, 5)) }
		want := s.play(draw(), 14, func() { b.Mark()() })
		require.True(t, slices.Equal(want, s.play(draw(), 14, nil)), "seed %d", seed)
		s.free()
	}
}

// Every operation conforms: at odd offsets, where kernels move an element at a time, and aligned.
func TestGPUConform(t *testing.T) {
	needGPU(t)
	for _, c := range []struct {
		name string
		o    Options
		run  func(*testing.T, func() kernels.Backend)
	}{
		{"odd", Options{}, kerneltest.Run},
		{"aligned", Options{}, kerneltest.RunAligned},
		{"narrow", Options{Narrow: true}, kerneltest.RunAligned},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := openGPU(t, c.o)
			c.run(t, func() kernels.Backend { return b })
		})
	}
}
