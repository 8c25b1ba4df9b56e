//go:build cuda && linux

package cuda

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// TestRegistered: a build with this package has the device.
func TestRegistered(t *testing.T) {
	require.Contains(t, kernels.Devices(), kernels.CUDADevice)
	_, known, err := kernels.Info(kernels.CUDADevice)
	require.True(t, known)
	if err == nil {
		t.Skip("there is a GPU")
	}
	var open *driver.OpenError
	require.ErrorAs(t, err, &open)
	_, err = kernels.Open(kernels.Options{Device: kernels.CUDADevice})
	require.ErrorAs(t, err, &open)
}

// TestLook describes a device, and gives it back whatever fails.
func TestLook(t *testing.T) {
	d := drivertest.New(drivertest.Options{})
	info, err := Look(Options{Calls: d.Calls()})
	require.NoError(t, err)
	require.Equal(t, "a device of Go", info.Name)
	require.Regexp(t, `^sm_\d+$`, info.Arch)
	require.Regexp(t, `^\d+\.\d+$`, info.CUDA)
	require.Equal(t, 1, info.Devices)
	require.Equal(t, driver.Provider, info.Provider)
	require.Positive(t, info.Total)
	require.Equal(t, info.Total, info.Free)
	require.NotEmpty(t, info.Products)
	requireNothingHeld(t, d)
	for _, call := range []string{"Init", "DeviceGetCount", "DevicePrimaryCtxRetain", "DeviceGetName", "DeviceGetAttribute", "MemGetInfo"} {
		d := drivertest.New(drivertest.Options{})
		d.Fail(call, 1, driver.ErrUnknown)
		_, err := Look(Options{Calls: d.Calls()})
		require.ErrorIs(t, err, driver.ErrUnknown, call)
		requireNothingHeld(t, d)
	}
}

// TestProbe: Probe finds a GPU without making a context. It returns ErrAbsent only where there is
// no driver or no GPU.
func TestProbe(t *testing.T) {
	d := drivertest.New(drivertest.Options{})
	require.NoError(t, Probe(Options{Calls: d.Calls()}))
	require.Zero(t, d.Counts()["DevicePrimaryCtxRetain"])
	require.ErrorIs(t, Probe(Options{Library: "libnone.so.1"}), kernels.ErrAbsent)
	for call, code := range map[string]driver.Code{
		"Init": driver.ErrNoDevice, "DeviceGet": driver.ErrInvalidDevice, "DeviceGetAttribute": driver.ErrUnknown,
		"DriverGetVersion": driver.ErrUnknown,
	} {
		d := drivertest.New(drivertest.Options{})
		d.Fail(call, 1, code)
		err := Probe(Options{Calls: d.Calls()})
		require.ErrorIs(t, err, code, call)
		require.Equal(t, code == driver.ErrNoDevice, errors.Is(err, kernels.ErrAbsent), call)
	}
}

// TestLookClosely: a GPU that cannot be opened is described all the same, and nothing is held.
func TestLookClosely(t *testing.T) {
	d := newDevice(t, drivertest.Options{})
	info, err := LookClosely(Options{Calls: d.Calls()})
	require.NoError(t, err)
	require.Positive(t, info.Gather.Staged)
	require.Positive(t, info.Gather.Read)
	requireNothingHeld(t, d)
	d.Fail("ModuleLoadDataEx", 1, driver.ErrInvalidPTX)
	info, err = LookClosely(Options{Calls: d.Calls()})
	require.NoError(t, err)
	require.Equal(t, "a device of Go", info.Name)
	require.False(t, info.Gather.Reads)
	require.Contains(t, info.Gather.Why, "not measured: ")
	requireNothingHeld(t, d)
	d.Fail("Init", 1, driver.ErrUnknown)
	_, err = LookClosely(Options{Calls: d.Calls()})
	require.ErrorIs(t, err, driver.ErrUnknown)
}

func TestVersionIn(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  550.54.14  Thu Feb 22 01:44:30 UTC 2024\nGCC version: 12\n":                 "550.54.14",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  570.86.15  Release Build  (dvs-builder@U16-I1)  Thu Jan 23 2025\n": "570.86.15",
		"something else\n": "",
		"":                 "",
	} {
		require.Equal(t, want, versionIn([]byte(text)), text)
	}
}

// TestCounts: waits, copies up and launches are counted as the driver sees them.
func TestCounts(t *testing.T) {
	b, d := openDevice(t, drivertest.Options{}, Options{})
	x := kernels.NewTensor(b, kernels.F32, 10, 10)
	defer b.Free(x.Buf)
	before, calls := b.Counts(), d.Counts()
	b.UploadF32(x, make([]float32, 100))
	b.Fill(x, 1)
	b.Scale(x, 2)
	b.DownloadF32(make([]float32, 100), x)
	after, now := b.Counts().Sub(before), d.Counts()
	require.Equal(t, kernels.Counts{Waits: 1, Uploads: 1, UploadBytes: 400, Launches: 2}, after)
	require.Equal(t, now["EventSynchronize"]-calls["EventSynchronize"], int(after.Waits))
	require.Equal(t, now["MemcpyHtoDAsync"]-calls["MemcpyHtoDAsync"], int(after.Uploads))
	require.Equal(t, now["LaunchKernel"]+now["MemsetD32Async"]-calls["LaunchKernel"]-calls["MemsetD32Async"], int(after.Launches))
	require.Equal(t, "a device of Go", kernels.DeviceName(kernels.NewSizing(b)))
}
