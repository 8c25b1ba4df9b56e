//go:build cuda && linux

package clib_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// A build with the address sanitizer ends too-far, beside and before with its own report.
var faultScenarios = []scenario{
	// After a kernel that goes too far the context is lost.
	{name: "too-far", says: "libcuda of the host: kernel fill: block ", run: func(t *testing.T, d *device) {
		g := d.begin()
		d.load("elementwise")
		s, e, p, h := d.stream(), d.event(), d.alloc(1000), locked[byte](d, 8)
		d.fill(p, 300, 1, s)
		require.NoError(t, d.EventRecord(e, s))
		lost := driver.ErrIllegalAddress
		require.ErrorIs(t, d.StreamSynchronize(s), lost)
		require.ErrorIs(t, d.EventSynchronize(e), lost)
		require.ErrorIs(t, d.StreamSynchronize(0), lost)
		require.ErrorIs(t, d.MemcpyHtoDAsync(p, at(h), 8, s), lost)
		require.ErrorIs(t, d.MemFree(p), lost)
		_, err := d.MemAlloc(8)
		require.ErrorIs(t, err, lost)
		require.NoError(t, g.Do(func(*driver.Calls) error { return nil }))
		_, err = d.DevicePrimaryCtxRetain(0)
		require.ErrorIs(t, err, lost)
		require.NoError(t, g.Close())
		require.ErrorIs(t, d.DevicePrimaryCtxRelease(0), lost)
		_, err = d.DevicePrimaryCtxRetain(0)
		require.ErrorIs(t, err, lost)
	}},

	// In a kernel whose threads wait for each other.
	{name: "too-far-with-barriers", says: "kernel matmul_nn_small: block 0", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("matmul")
		p := d.alloc(4 * 64 * 16)
		d.launch("matmul_nn_small", driver.Dim{}, 0, d.params("matmul_nn_small").Ptr(p).Ptr(p).Ptr(p).Ptr(0).
			U32(64).U32(64).U32(32).U32(32).U32(0))
		require.ErrorIs(t, d.CtxSynchronize(), driver.ErrIllegalAddress)
	}},

	{name: "freed", says: "which is no memory of the device", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		p := d.alloc(4096)
		require.NoError(t, d.MemFree(p))
		d.fill(p, 1, 1, 0)
		require.ErrorIs(t, d.StreamSynchronize(0), driver.ErrIllegalAddress)
	}},

	{name: "odd-address", says: "kernel fill_wide: block 0,0,0 thread 0: an access of 16 bytes at an address that is",
		run: func(t *testing.T, d *device) {
			d.begin()
			d.load("elementwise")
			p := d.alloc(4096)
			d.launch("fill_wide", driver.Dim{}, 0, d.params("fill_wide").Ptr(p+4).U64(16).F32(1))
			require.ErrorIs(t, d.StreamSynchronize(0), driver.ErrIllegalAddress)
		}},

	// A few elements too many do not reach the guard page. They are seen later.
	{name: "beside", says: "something was written beside the 1000 bytes", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		p := d.alloc(1000)
		d.fill(p, 251, 1, 0)
		require.NoError(t, d.StreamSynchronize(0))
		require.ErrorIs(t, d.MemFree(p), driver.ErrIllegalAddress)
	}},

	{name: "before", says: "something was written beside the 1000 bytes", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		p := d.alloc(1000)
		d.fill(p-4, 1, 1, 0)
		require.ErrorIs(t, d.CtxSynchronize(), driver.ErrIllegalAddress)
	}},

	// The signals of other threads are Go's, also while a kernel runs.
	{name: "signals", run: func(t *testing.T, d *device) {
		d.begin()
		d.load("elementwise")
		p := d.alloc(1 << 20)
		stop, stopped := make(chan struct{}), make(chan int)
		go func() {
			caught := 0
			for {
				select {
				case <-stop:
					stopped <- caught
					return
				default:
					func() {
						defer func() {
							if recover() != nil {
								caught++
							}
						}()
						var nothing *[8]int
						nothing[caught%8]++
					}()
				}
			}
		}()
		for range 200 {
			d.fill(p, 1<<18, 1, 0)
			require.NoError(t, d.StreamSynchronize(0))
		}
		close(stop)
		require.Positive(t, <-stopped)
	}},
}
