package kernels

import "errors"

// DeviceInfo describes a device for people. Its JSON keys are stable.
type DeviceInfo struct {
	Name     string `json:"name"`             // of the processor
	Arch     string `json:"architecture"`     // "sm_90"
	Devices  int    `json:"devices"`          // that are visible; the first is used
	CUDA     string `json:"cuda"`             // "12.9", the version that the driver speaks
	Driver   string `json:"driver,omitempty"` // version of the driver, where the system tells it
	Provider string `json:"provider"`         // the package that calls the driver
	Total    int64  `json:"total_bytes"`      // of its memory
	Free     int64  `json:"free_bytes"`       // of that
	Products string `json:"matrix_products"`  // what computes them
	// Gather compares the ways by which rows of the host get to the device.
	Gather *GatherRates `json:"gather,omitempty"`
}

// The lock of devices guards both.
var (
	infos  = map[string]func() (DeviceInfo, error){}
	probes = map[string]func() error{}
)

// RegisterInfo has [Info] look for a device by look. A package calls it in init, beside [Register].
func RegisterInfo(device string, look func() (DeviceInfo, error)) {
	devices.Lock()
	defer devices.Unlock()
	infos[device] = look
}

// Info looks for a device without opening a backend on it. known is false if this build has no such
// device.
func Info(device string) (info DeviceInfo, known bool, err error) {
	devices.Lock()
	look := infos[device]
	devices.Unlock()
	if look == nil {
		return info, false, nil
	}
	info, err = look()
	return info, true, err
}

// ErrAbsent is the error of a probe where there is no device, or no driver for one.
var ErrAbsent = errors.New("no such device")

// RegisterProbe has [Auto] find out by probe whether a device can be used. A package calls it in
// init, beside [Register].
func RegisterProbe(device string, probe func() error) {
	devices.Lock()
	defer devices.Unlock()
	probes[device] = probe
}

// Auto returns the device that AutoDevice stands for: CUDADevice where this build has it and the
// machine has a GPU that can be used, else the CPU. If there is a GPU that cannot be used, Auto
// returns the CPU and the reason.
func Auto() (device string, err error) {
	devices.Lock()
	probe := probes[CUDADevice]
	devices.Unlock()
	if probe == nil {
		return CPUDevice, nil
	}
	switch err := probe(); {
	case err == nil:
		return CUDADevice, nil
	case errors.Is(err, ErrAbsent):
		return CPUDevice, nil
	default:
		return CPUDevice, err
	}
}
