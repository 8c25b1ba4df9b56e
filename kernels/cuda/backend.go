//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/ptx"
)

// Options configures Open. The zero value is the first GPU of the installed driver.
type Options struct {
	// Library is the file of the driver. Default driver.DefaultLibrary.
	Library string
	// Calls, if not nil, replaces the calls of the library. It is for tests.
	Calls *driver.Calls
	// Ordinal is the number of the GPU among the visible ones.
	Ordinal int
	// Products is OwnProducts, CublasProducts or, by default, cuBLAS if it opens and our own
	// kernels else.
	Products string
	// CublasFolder has libcublas.so.13, .12 or .11, with its libcublasLt. By default the dynamic
	// linker finds them; it does not know where Python keeps those that pip installs.
	CublasFolder string
	// TF32 rounds the factors of products to 10 bits of mantissa. It wants cuBLAS: our own kernels
	// do not have it.
	TF32 bool
	// Narrow has no kernel move 16 bytes at a time. It is for tests.
	Narrow bool
	// Gather is the way by which rows of the host get to the device. Default Measured.
	Gather GatherWay
}

// Backend computes on a GPU. Use [Open].
type Backend struct {
	shapes  kernels.Shapes // only its checks are called
	options Options
	gpu     *driver.GPU
	name    string
	blocks  int // of a grid at most: eight a multiprocessor
	kernels map[string]*kernel
	modules []driver.Module

	compute, copies driver.Stream
	counted         *counted
	params          *driver.Params // of the goroutine that computes
	failures        operand        // the error word of all kernels
	scratch         operand        // sums of chunks and keys of the operation under way
	tables          map[string]*table
	fetched         []fetch // since the last Mark

	cublas    *cublas    // nil: it is not used
	library   multiplier // computes products, and is cublas but in tests; nil: our own kernels do
	workspace operand    // of cublas

	pinned   pinned
	locks    locks
	rates    rates
	deferred deferred
	lost     atomic.Bool    // the context is lost: every call fails
	mu       sync.Mutex     // of all below, and of the tickets of blocks
	reads    *driver.Params // of GatherHost
	tickets
	allocator
}

var (
	_ kernels.Backend = (*Backend)(nil)
	_ kernels.Stager  = (*Backend)(nil)
)

// kernel is a loaded kernel.
type kernel struct {
	function driver.Function
	list     *driver.ParamList
}

// Open opens a GPU.
func Open(o Options) (_ *Backend, err error) {
	calls, err := o.calls()
	if err != nil {
		return nil, err
	}
	n := new(counted)
	gpu, err := driver.NewGPU(n.through(calls), o.Ordinal, driver.MinVersion)
	if err != nil {
		return nil, err
	}
	b := &Backend{options: o, gpu: gpu, counted: n, kernels: map[string]*kernel{}, tickets: tickets{span: 1}}
	b.pinned.by = b
	defer func() {
		if err != nil {
			err = errors.Join(err, b.Close())
		}
	}()
	for _, p := range []**driver.Params{&b.params, &b.deferred.params, &b.reads} {
		if *p, err = driver.NewParams(); err != nil {
			return nil, err
		}
	}
	if err := gpu.Do(b.open); err != nil {
		return nil, err
	}
	if err := gpu.Do(b.load); err != nil {
		return nil, err
	}
	defer kernels.RecoverMemory(&err)
	if err := gpu.Do(b.openProducts); err != nil {
		return nil, err
	}
	b.failures = b.operandOf(b.Alloc(kernels.U32, 2))
	return b, nil
}

// open makes what needs no memory of buffers.
func (b *Backend) open(c *driver.Calls) error {
	d := b.gpu.Device()
	name, err := c.DeviceGetName(d)
	if err != nil {
		return err
	}
	processors, err := c.DeviceGetAttribute(driver.MultiprocessorCount, d)
	if err != nil {
		return err
	}
	b.name, b.blocks = name, 8*max(processors, 1)
	if b.compute, err = c.StreamCreate(driver.StreamNonBlocking); err != nil {
		return err
	}
	b.copies, err = c.StreamCreate(driver.StreamNonBlocking)
	return err
}

// load has the driver compile all kernels.
func (b *Backend) load(c *driver.Calls) error {
	for _, file := range ptx.Files() {
		text, err := ptx.Source(file)
		if err != nil {
			return err
		}
		lists, err := driver.ParamLists(string(text))
		if err != nil {
			return fmt.Errorf("%s.ptx: %w", file, err)
		}
		m, _, err := c.ModuleLoadDataEx(string(text))
		if err != nil {
			return fmt.Errorf("%s.ptx: %w", file, err)
		}
		b.modules = append(b.modules, m)
		for name, list := range lists {
			f, err := c.ModuleGetFunction(m, name)
			if err != nil {
				return fmt.Errorf("%s.ptx: %s: %w", file, name, err)
			}
			b.kernels[name] = &kernel{f, list}
		}
	}
	return nil
}

// Close gives back everything: memory of buffers that were not freed too, and locks of memory that
// is still open. Nothing may be under way. It returns what failed when memory was unlocked earlier.
func (b *Backend) Close() error {
	errs := []error{b.gpu.Do(func(c *driver.Calls) error {
		var errs []error
		if b.compute != 0 {
			errs = append(errs, c.StreamSynchronize(b.compute))
		}
		if b.copies != 0 {
			errs = append(errs, c.StreamSynchronize(b.copies))
		}
		if b.cublas != nil {
			errs = append(errs, b.cublas.close())
		}
		errs = append(errs, b.pinned.close(c), b.unlockAll(), b.tickets.close(c), b.allocator.close(c))
		for _, m := range b.modules {
			errs = append(errs, c.ModuleUnload(m))
		}
		for _, s := range []driver.Stream{b.compute, b.copies} {
			if s != 0 {
				errs = append(errs, c.StreamDestroy(s))
			}
		}
		return errors.Join(errs...)
	})}
	for _, p := range []*driver.Params{b.params, b.deferred.params, b.reads} {
		if p != nil {
			errs = append(errs, p.Close())
		}
	}
	return errors.Join(append(errs, b.gpu.Close())...)
}

// Name implements [kernels.Backend]. It has the version of cuBLAS, which decides the bits of
// products.
func (b *Backend) Name() string {
	if b.cublas != nil {
		return "cuda+cublas-" + b.cublas.version
	}
	return "cuda"
}

// Device returns the driver's name of the GPU.
func (b *Backend) Device() string { return b.name }

// Behind implements [kernels.Backend].
func (b *Backend) Behind() bool { return true }

// TakesHalf implements [kernels.Backend].
func (b *Backend) TakesHalf() bool { return false }

// Host implements [kernels.Backend].
func (b *Backend) Host(kernels.Tensor) ([]byte, bool) { return nil, false }

// do makes calls for an operation, and panics if one is refused.
func (b *Backend) do(op string, f func(c *driver.Calls) error) {
	err := b.gpu.Do(f)
	var memory *kernels.MemoryError
	if errors.As(err, &memory) { // of the host
		panic(memory)
	}
	if err != nil {
		var call *driver.Error
		if errors.As(err, &call) && call.Sticky() {
			b.lost.Store(true)
		}
		panic(&kernels.DeviceError{Device: b.name, Operation: op, Err: err})
	}
}
