package kernels

import (
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Options chooses what to compute on. The zero value is the CPU with its fastest kernels.
type Options struct {
	Device  string // one of Devices; default "cpu"
	Set     Set    // of the CPU's kernels, one of Sets; default the first
	Threads int    // goroutines in an operation of the CPU, at most; default GOMAXPROCS
}

// Use is memory in bytes.
type Use struct{ Host, Device int64 }

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
	if devices.open[device] != nil || device == cpuDevice {
		panic("kernels: Register: device " + device + " is registered already")
	}
	devices.open[device] = open
}

const cpuDevice = "cpu"

// Devices lists the devices of this build, the CPU first.
func Devices() []string {
	devices.Lock()
	defer devices.Unlock()
	names := []string{cpuDevice}
	for name := range devices.open {
		names = append(names, name)
	}
	slices.Sort(names[1:])
	return names
}

// Open returns a backend of a device. Buffers that it allocates are the caller's.
func Open(o Options) (Backend, error) {
	if o.Device == "" || o.Device == cpuDevice {
		if _, err := ParseSet(string(o.Set)); err != nil {
			return nil, err
		}
		return NewCPU(CPUOptions{Threads: o.Threads, Set: o.Set}), nil
	}
	devices.Lock()
	open := devices.open[o.Device]
	devices.Unlock()
	if open == nil {
		return nil, fmt.Errorf("device %q: this build has %s", o.Device, strings.Join(Devices(), ", "))
	}
	return open(o)
}
