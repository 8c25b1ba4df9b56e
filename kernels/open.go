package kernels

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Options chooses what to compute on. The zero value is the CPU with its fastest kernels.
type Options struct {
	Device  string // one of Devices, or AutoDevice; default the CPU
	Set     Set    // of the CPU's kernels, one of Sets; default the first
	Threads int    // goroutines in an operation of the CPU, at most; default GOMAXPROCS
	// Products is the precision of products: Float32, the default; BF16, of the CPU alone; or TF32,
	// of a GPU alone. BF16 and TF32 round their factors to 7 and 10 bits of mantissa, and add up in
	// float32.
	Products Precision
}

// Precision is a precision of products.
type Precision string

// Precisions of products. The empty one is Float32.
const (
	Float32 Precision = "f32"
	BF16    Precision = "bf16"
	TF32    Precision = "tf32"
)

// ErrNoTF32 is the error of Open where the device has no products in TF32.
var ErrNoTF32 = errors.New("only cuBLAS has products in tf32")

// ErrNoBF16 is the error of Open where the device has no products in BF16.
var ErrNoBF16 = errors.New("only the CPU has products in bf16")

// Use is memory in bytes.
type Use struct{ Host, Device int64 }

// Sub returns u less what there was before.
func (u Use) Sub(before Use) Use { return Use{u.Host - before.Host, u.Device - before.Device} }

var devices struct {
	sync.Mutex
	open map[string]func(Options) (Backend, error)
}

// Register adds a device to those that Open knows. A package calls it in init, once a device.
func Register(device string, open func(Options) (Backend, error)) {
	devices.Lock()
	defer devices.Unlock()
	if devices.open == nil {
		devices.open = map[string]func(Options) (Backend, error){}
	}
	if devices.open[device] != nil || device == CPUDevice || device == AutoDevice {
		panic("kernels: Register: device " + device + " is registered already")
	}
	devices.open[device] = open
}

// Names of devices. CUDADevice is an NVIDIA GPU, which builds with the tag cuda know. Commands
// replace AutoDevice by what [Auto] returns; elsewhere it is the CPU.
const (
	AutoDevice = "auto"
	CPUDevice  = "cpu"
	CUDADevice = "cuda"
)

// ParseDevice returns the device of a name: the CPU for AutoDevice and for the empty text, else one
// of Devices. Where this build lacks the device, the error names the build that has it.
func ParseDevice(name string) (string, error) {
	known := Devices()
	switch {
	case IsCPU(name):
		return CPUDevice, nil
	case slices.Contains(known, name):
		return name, nil
	case name == CUDADevice:
		return "", errors.New("cuda: this build of gnnstore computes on the CPU alone; " +
			"take the one of the archive gnnstore-cuda, or compute on the CPU")
	}
	return "", fmt.Errorf("%s: there are %s, and this build has %s", name,
		strings.Join([]string{AutoDevice, CPUDevice, CUDADevice}, ", "), strings.Join(known, ", "))
}

// Devices lists the devices of this build, the CPU first.
func Devices() []string {
	devices.Lock()
	defer devices.Unlock()
	names := []string{CPUDevice}
	for name := range devices.open {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	return names
}

// IsCPU reports whether the name of a device means the CPU.
func IsCPU(name string) bool { return name == "" || name == AutoDevice || name == CPUDevice }

// Open returns a backend of a device. Buffers that it allocates are the caller's, as is a backend
// that is an io.Closer: close it when its buffers are freed.
func Open(o Options) (Backend, error) {
	device, err := ParseDevice(o.Device)
	if err != nil {
		return nil, err
	}
	switch o.Products {
	case "", Float32, BF16, TF32:
	default:
		return nil, fmt.Errorf("products in %s: there are %s, %s and %s", o.Products, Float32, BF16, TF32)
	}
	if device == CPUDevice {
		if o.Products == TF32 {
			return nil, fmt.Errorf("%w: the device is the CPU", ErrNoTF32)
		}
		if _, err := ParseSet(string(o.Set), o.Products); err != nil {
			return nil, err
		}
		return NewCPU(CPUOptions{Threads: o.Threads, Set: o.Set, Products: o.Products}), nil
	}
	if o.Products == BF16 {
		return nil, fmt.Errorf("%w: the device is %s", ErrNoBF16, device)
	}
	devices.Lock()
	open := devices.open[device]
	devices.Unlock()
	return open(o)
}
