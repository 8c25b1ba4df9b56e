package driver

import (
	"fmt"
	"runtime"
)

// DefaultLibrary is the file that Open asks the dynamic linker for. The driver installs it; the
// name without .1 belongs to the toolkit, and may be its stub.
const DefaultLibrary = "libcuda.so.1"

// MinVersion is the version of CUDA that compiles PTX 7.8 (NVIDIA, PTX ISA, release notes), as
// DriverGetVersion returns it.
const MinVersion = 11080

// GPU is a device with its primary context. It is safe for concurrent use; Close wants every Do to
// have returned.
type GPU struct {
	calls   *Calls
	device  Device
	context Context
	version int
}

// NewGPU initialises the driver and retains the primary context of a device. ordinal counts the
// devices that CUDA_VISIBLE_DEVICES leaves, from 0. A driver whose version is below minVersion is
// refused with a [*VersionError].
func NewGPU(c *Calls, ordinal, minVersion int) (*GPU, error) {
	if err := c.Init(0); err != nil {
		return nil, err
	}
	v, err := c.DriverGetVersion()
	if err != nil {
		return nil, err
	}
	if v < minVersion {
		return nil, &VersionError{Has: v, Needs: minVersion}
	}
	n, err := c.DeviceGetCount()
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, c.Failure("cuDeviceGetCount", ErrNoDevice)
	}
	d, err := c.DeviceGet(ordinal)
	if err != nil {
		return nil, fmt.Errorf("GPU %d of %d: %w", ordinal, n, err)
	}
	context, err := c.DevicePrimaryCtxRetain(d)
	if err != nil {
		return nil, fmt.Errorf("GPU %d: %w", ordinal, err)
	}
	return &GPU{calls: c, device: d, context: context, version: v}, nil
}

// Do calls f on a thread on which g's context is current, and returns its error. The goroutine
// stays on that thread until f returns. Do may be called inside f. It costs one CtxSetCurrent; f
// does not escape, so that a closure costs no allocation.
func (g *GPU) Do(f func(c *Calls) error) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := g.calls.CtxSetCurrent(g.context); err != nil {
		return err
	}
	return f(g.calls)
}

// Calls returns the calls, for those that need no context.
func (g *GPU) Calls() *Calls { return g.calls }

// Device returns the device.
func (g *GPU) Device() Device { return g.device }

// Version returns the driver's version of CUDA: 13000 for 13.0.
func (g *GPU) Version() int { return g.version }

// Close gives the primary context back. Where nothing else in the process retains it, that destroys
// its memory, streams, events and modules.
func (g *GPU) Close() error { return g.calls.DevicePrimaryCtxRelease(g.device) }
