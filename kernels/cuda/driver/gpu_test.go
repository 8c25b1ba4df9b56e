package driver

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
)

// goCalls returns the calls that a GPU makes, of a driver in Go whose call of this name fails. log
// gets the names.
func goCalls(failing string, log *[]string) *Calls {
	did := func(name string) error {
		*log = append(*log, name)
		if name == failing {
			return &Error{Call: name, Code: ErrUnknown}
		}
		return nil
	}
	return &Calls{
		Init:                    func(uint32) error { return did("cuInit") },
		DriverGetVersion:        func() (int, error) { return 12090, did("cuDriverGetVersion") },
		DeviceGetCount:          func() (int, error) { return 2, did("cuDeviceGetCount") },
		DeviceGet:               func(ordinal int) (Device, error) { return Device(ordinal), did("cuDeviceGet") },
		DeviceGetAttribute:      func(DeviceAttribute, Device) (int, error) { return MinCapability, did("cuDeviceGetAttribute") },
		DevicePrimaryCtxRetain:  func(d Device) (Context, error) { return Context(d + 70), did("cuDevicePrimaryCtxRetain") },
		DevicePrimaryCtxRelease: func(Device) error { return did("cuDevicePrimaryCtxRelease") },
		CtxSetCurrent: func(c Context) error {
			if c != 71 {
				return ErrInvalidContext
			}
			return did("cuCtxSetCurrent")
		},
		GetErrorName:   func(Code) string { return "NAME" },
		GetErrorString: func(Code) string { return "text" },
	}
}

// TestGPU opens a GPU, uses and closes it, on a driver in Go.
func TestGPU(t *testing.T) {
	var log []string
	c := goCalls("", &log)
	g, err := NewGPU(c, 1, 12090)
	require.NoError(t, err)
	require.Equal(t, Device(1), g.Device())
	require.Equal(t, 12090, g.Version())
	require.Same(t, c, g.Calls())
	require.ErrorIs(t, g.Do(func(got *Calls) error {
		require.Same(t, c, got)
		log = append(log, "f")
		return errors.ErrUnsupported
	}), errors.ErrUnsupported)
	require.NoError(t, g.Close())
	require.Equal(t, []string{
		"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute",
		"cuDevicePrimaryCtxRetain", "cuCtxSetCurrent", "f", "cuDevicePrimaryCtxRelease",
	}, log)

	for _, name := range log[:6] {
		_, err := NewGPU(goCalls(name, new([]string)), 1, 12090)
		require.ErrorIs(t, err, ErrUnknown)
		require.ErrorContains(t, err, name)
	}
	_, err = NewGPU(c, 1, 13000)
	require.Equal(t, &VersionError{Has: 12090, Needs: 13000}, err)
	c.DeviceGetAttribute = func(DeviceAttribute, Device) (int, error) { return 7, nil }
	_, err = NewGPU(c, 1, 12090)
	require.EqualError(t, err, "GPU 1 of 2 has compute capability 7, and the kernels need 8 or later")
	c.DeviceGetCount = func() (int, error) { return 0, nil }
	_, err = NewGPU(c, 1, 12090)
	require.ErrorIs(t, err, ErrNoDevice)
	require.ErrorContains(t, err, "cuDeviceGetCount: CUDA error 100 NAME (text): no GPU is visible")

	// Without the context, f is not called.
	g, err = NewGPU(goCalls("cuCtxSetCurrent", new([]string)), 1, 12090)
	require.NoError(t, err)
	require.ErrorIs(t, g.Do(func(*Calls) error { panic("not reached") }), ErrUnknown)
}
