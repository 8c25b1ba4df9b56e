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

// MinCapability is the least compute capability, its major number, that the PTX is compiled for.
const MinCapability = 8

// GPU is a device with its primary context. It is safe for concurrent use; Close wants every Do to
// have returned.
type GPU struct {
	calls   *Calls
	device  Device
	context Context
	version int
}

// NewGPU retains the primary context of the device that Find finds.
func NewGPU(c *Calls, ordinal, minVersion int) (*GPU, error) {
	d, v, err := Find(c, ordinal, minVersion)
	if err != nil {
		return nil, err
	}
	context, err := c.DevicePrimaryCtxRetain(d)
	if err != nil {
		return nil, fmt.Errorf("GPU %d: %w", ordinal, err)
	}
	return &GPU{calls: c, device: d, context: context, version: v}, nil
}

// Find initialises the driver and returns a device, and the driver's version. ordinal counts the
// devices that CUDA_VISIBLE_DEVICES leaves, from 0. Find refuses a driver whose version is below
// minVersion, with a [*VersionError], and a device below MinCapability.
func Find(c *Calls, ordinal, minVersion int) (d Device, version int, err error) {
	if err := c.Init(0); err != nil {
		return d, 0, err
	}
	if version, err = c.DriverGetVersion(); err != nil {
		return d, 0, err
	}
	if version < minVersion {
		return d, 0, &VersionError{Has: version, Needs: minVersion}
	}
	n, err := c.DeviceGetCount()
	if err != nil {
		return d, 0, err
	}
	if n == 0 { // cuInit should have failed then
		return d, 0, c.Failure("cuDeviceGetCount", ErrNoDevice)
	}
	if d, err = c.DeviceGet(ordinal); err != nil {
		return d, 0, fmt.Errorf("GPU %d of %d: %w", ordinal, n, err)
	}
	major, err := c.DeviceGetAttribute(ComputeCapabilityMajor, d)
	if err == nil && major < MinCapability {
		err = fmt.Errorf("GPU %d of %d has compute capability %d, and the kernels need %d or later", ordinal, n, major, MinCapability)
	}
	return d, version, err
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
