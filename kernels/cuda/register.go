//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"regexp"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// A program that imports this package has the device "cuda": kernels.Open opens the first GPU.
func init() {
	kernels.Register(kernels.CUDADevice, func(o kernels.Options) (kernels.Backend, error) {
		own := placed()
		own.TF32 = o.Products == kernels.TF32
		b, err := Open(own)
		if err != nil {
			return nil, err
		}
		return b, nil
	})
	kernels.RegisterInfo(kernels.CUDADevice, func() (kernels.DeviceInfo, error) { return LookClosely(placed()) })
	kernels.RegisterProbe(kernels.CUDADevice, func() error { return Probe(placed()) })
}

// Probe returns nil where there is a GPU that can run the kernels. It makes no context, so it takes
// no memory of the GPU. Where there is no GPU, or no driver, the error is kernels.ErrAbsent.
func Probe(o Options) error {
	calls, err := o.calls()
	var missing *driver.OpenError
	if errors.As(err, &missing) && missing.Symbol == "" {
		return fmt.Errorf("%w: %w", kernels.ErrAbsent, err)
	}
	if err != nil {
		return err
	}
	_, _, err = driver.Find(calls, o.Ordinal, driver.MinVersion)
	if errors.Is(err, driver.ErrNoDevice) {
		return fmt.Errorf("%w: %w", kernels.ErrAbsent, err)
	}
	return err
}

// calls returns o.Calls, or opens the driver.
func (o Options) calls() (*driver.Calls, error) {
	if o.Calls != nil {
		return o.Calls, nil
	}
	return driver.Open(o.Library)
}

// LookClosely is Look that also measures how rows of the host get to the GPU. For that it opens a
// backend, which may take the driver some seconds: it compiles the kernels.
func LookClosely(o Options) (kernels.DeviceInfo, error) {
	info, err := Look(o)
	if err != nil {
		return info, err
	}
	b, err := Open(o)
	if err != nil {
		info.Gather = &kernels.GatherRates{Why: fmt.Sprintf("not measured: %v", err)}
		return info, nil
	}
	rates := b.GatherRates()
	info.Gather = &rates
	return info, b.Close()
}

// Look describes the GPU that Open would open. It loads no kernels.
func Look(o Options) (info kernels.DeviceInfo, err error) {
	calls, err := o.calls()
	if err != nil {
		return info, err
	}
	gpu, err := driver.NewGPU(calls, o.Ordinal, driver.MinVersion)
	if err != nil {
		return info, err
	}
	defer func() { err = errors.Join(err, gpu.Close()) }()
	v := gpu.Version()
	info = kernels.DeviceInfo{
		CUDA: fmt.Sprintf("%d.%d", v/1000, v%1000/10), Driver: driverVersion(), Provider: driver.Provider,
	}
	return info, gpu.Do(func(c *driver.Calls) error {
		if err := describe(&info, c, gpu.Device()); err != nil {
			return err
		}
		info.Products, err = describeProducts(o)
		return err
	})
}

// describe sets what the driver knows of a device whose context is current.
func describe(info *kernels.DeviceInfo, c *driver.Calls, d driver.Device) (err error) {
	if info.Devices, err = c.DeviceGetCount(); err != nil {
		return err
	}
	if info.Name, err = c.DeviceGetName(d); err != nil {
		return err
	}
	major, err := c.DeviceGetAttribute(driver.ComputeCapabilityMajor, d)
	if err != nil {
		return err
	}
	minor, err := c.DeviceGetAttribute(driver.ComputeCapabilityMinor, d)
	if err != nil {
		return err
	}
	info.Arch = fmt.Sprintf("sm_%d%d", major, minor)
	free, total, err := c.MemGetInfo()
	info.Free, info.Total = int64(free), int64(total)
	return err
}

// versionFile has a line like "NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu…".
const versionFile = "/proc/driver/nvidia/version"

var versionPattern = regexp.MustCompile(`^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)?)\s`)

// driverVersion returns the version of the kernel module, or "" where there is no such file.
func driverVersion() string {
	text, err := os.ReadFile(versionFile)
	if err != nil {
		return ""
	}
	return versionIn(text)
}

func versionIn(text []byte) string {
	m := versionPattern.FindSubmatch(text)
	if m == nil {
		return ""
	}
	return string(m[1])
}
