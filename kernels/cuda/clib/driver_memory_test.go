//go:build cuda && linux

package clib_test

import (
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

var memoryScenarios = []scenario{
	{name: "allocations", env: []string{"GNN_CUDA_MEMORY=1MiB"}, run: func(t *testing.T, d *device) {
		d.begin()
		_, err := d.MemAlloc(0)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
		_, err = d.MemAlloc(1<<20 + 1)
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
		_, err = d.MemAlloc(1 << 63)
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
		a, b := d.alloc(1000), d.alloc(512<<10)
		require.Zero(t, a%256)
		require.Zero(t, b%256)
		free, total, err := d.MemGetInfo()
		require.NoError(t, err)
		require.EqualValues(t, 1<<20, total)
		require.EqualValues(t, 512<<10-1024, free)
		_, err = d.MemAlloc(512 << 10)
		require.ErrorIs(t, err, driver.ErrOutOfMemory)
		require.NoError(t, d.MemFree(a))
		require.ErrorIs(t, d.MemFree(a), driver.ErrInvalidValue)
		require.ErrorIs(t, d.MemFree(b+256), driver.ErrInvalidValue)
		require.NoError(t, d.MemFree(0))
		c := d.alloc(512 << 10)
		require.NotEqual(t, a, c) // no address is given twice
		require.NoError(t, d.MemFree(b))
		require.NoError(t, d.MemFree(c))
		free, _, err = d.MemGetInfo()
		require.NoError(t, err)
		require.EqualValues(t, 1<<20, free)
	}},

	{name: "sets-and-copies", run: func(t *testing.T, d *device) {
		d.begin()
		s := d.stream()
		p, q := d.alloc(1001), d.alloc(1001)
		require.NoError(t, d.MemsetD8Async(p, 0x7e, 1001, s))
		require.NoError(t, d.MemsetD32Async(p+4, 0x01020304, 2, s))
		require.NoError(t, d.MemcpyDtoDAsync(q+1, p+3, 11, s))
		require.NoError(t, d.MemsetD8Async(q+12, 0, 1001-12, s))
		require.Equal(t, []byte{0x7e, 4, 3, 2, 1, 4, 3, 2, 1, 0x7e, 0x7e, 0}, download[byte](d, q+1, 12, s))
		h := host[byte](t, 1001)
		for i := range h {
			h[i] = byte(i)
		}
		require.NoError(t, d.MemcpyHtoDAsync(p, at(h), 1001, s))
		require.Equal(t, h, download[byte](d, p, 1001, s))

		// The bytes of an allocation, and no others.
		invalid := driver.ErrInvalidValue
		require.ErrorIs(t, d.MemsetD8Async(p+1, 0, 1001, s), invalid)
		require.ErrorIs(t, d.MemsetD8Async(p-1, 0, 2, s), invalid)
		require.ErrorIs(t, d.MemsetD8Async(p, 0, 1<<63, s), invalid)
		require.ErrorIs(t, d.MemsetD32Async(p+2, 0, 1, s), invalid) // at an odd address
		require.ErrorIs(t, d.MemsetD32Async(p, 0, 1<<62+1, s), invalid)
		require.ErrorIs(t, d.MemcpyDtoDAsync(q, p+1, 1001, s), invalid)
		require.ErrorIs(t, d.MemcpyDtoDAsync(q+1, p, 1001, s), invalid)
		require.ErrorIs(t, d.MemcpyHtoDAsync(p+1, at(h), 1001, s), invalid)
		require.ErrorIs(t, d.MemcpyDtoHAsync(at(h), p+1, 1001, s), invalid)
		require.ErrorIs(t, d.MemcpyHtoDAsync(p, nil, 8, s), invalid)
		require.ErrorIs(t, d.MemcpyHtoDAsync(0, at(h), 8, s), invalid)
		require.ErrorIs(t, d.MemcpyDtoDAsync(driver.Ptr(uintptr(at(h))), p, 8, s), invalid)
		require.ErrorIs(t, d.MemcpyDtoDAsync(q, p, 8, 12345), driver.Code(400))
		// Nothing of nothing.
		require.NoError(t, d.MemcpyHtoDAsync(p, at(h), 0, s))
		require.NoError(t, d.MemcpyDtoHAsync(at(h), p, 0, s))
		require.NoError(t, d.MemcpyDtoDAsync(q, p, 0, s))
		require.NoError(t, d.MemsetD32Async(p, 1, 0, s))
		require.Equal(t, h, download[byte](d, p, 1001, s))

		require.NoError(t, d.MemFree(p))
		require.ErrorIs(t, d.MemsetD8Async(p, 0, 1, s), invalid)
	}},

	{name: "new-memory-is-garbage", run: func(t *testing.T, d *device) {
		d.begin()
		require.Equal(t, []uint32{0xffffffff, 0xffffffff}, download[uint32](d, d.alloc(8), 2, 0))
	}},

	{name: "page-locked", run: func(t *testing.T, d *device) {
		d.begin()
		h := host[byte](t, 3*4096)
		require.ErrorIs(t, d.MemHostRegister(nil, 4096, 0), driver.ErrInvalidValue)
		require.ErrorIs(t, d.MemHostRegister(at(h), 0, 0), driver.ErrInvalidValue)
		require.NoError(t, d.MemHostRegister(at(h[4096:]), 4096, driver.HostPortable))
		require.ErrorIs(t, d.MemHostRegister(at(h[4096:]), 4096, 0), driver.ErrAlreadyRegistered)
		require.ErrorIs(t, d.MemHostRegister(at(h), 3*4096, 0), driver.ErrAlreadyRegistered)
		require.ErrorIs(t, d.MemHostRegister(at(h[2*4096-1:]), 1, 0), driver.ErrAlreadyRegistered)
		require.NoError(t, d.MemHostRegister(at(h[2*4096:]), 4096, driver.HostMapped|driver.HostReadOnly))

		// A copy takes memory of one kind, and none into what is only read.
		p := d.alloc(2 * 4096)
		require.ErrorIs(t, d.MemcpyHtoDAsync(p, at(h), 2*4096, 0), driver.ErrInvalidValue)
		require.NoError(t, d.MemcpyHtoDAsync(p, at(h[2*4096:]), 4096, 0))
		require.ErrorIs(t, d.MemcpyDtoHAsync(at(h[2*4096:]), p, 4096, 0), driver.ErrInvalidValue)

		_, err := d.MemHostGetDevicePointer(at(h[4096:]))
		require.ErrorIs(t, err, driver.ErrInvalidValue) // not mapped
		q, err := d.MemHostGetDevicePointer(at(h[2*4096+8:]))
		require.NoError(t, err)
		h[2*4096+8] = 9
		require.NoError(t, d.MemcpyDtoDAsync(p, q, 8, 0))
		require.Equal(t, []byte{9}, download[byte](d, p, 1, 0))

		require.ErrorIs(t, d.MemHostUnregister(at(h)), driver.Code(713))
		require.ErrorIs(t, d.MemHostUnregister(at(h[4096+1:])), driver.Code(713))
		require.NoError(t, d.MemHostUnregister(at(h[4096:])))
		require.ErrorIs(t, d.MemHostUnregister(at(h[4096:])), driver.Code(713))

		// Memory that is not there.
		gone, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ, unix.MAP_ANON|unix.MAP_PRIVATE)
		require.NoError(t, err)
		was := unsafe.Pointer(&gone[0])
		require.NoError(t, unix.Munmap(gone))
		require.ErrorIs(t, d.MemHostRegister(was, 4096, 0), driver.ErrInvalidValue)

		a, err := d.MemHostAlloc(1<<20, driver.HostPortable|driver.HostMapped)
		require.NoError(t, err)
		_, err = d.MemHostGetDevicePointer(a)
		require.NoError(t, err)
		require.ErrorIs(t, d.MemHostRegister(a, 4096, 0), driver.ErrAlreadyRegistered)
		require.ErrorIs(t, d.MemHostUnregister(a), driver.Code(713))
		require.NoError(t, d.MemFreeHost(a))
		require.ErrorIs(t, d.MemFreeHost(a), driver.ErrInvalidValue)
		_, err = d.MemHostAlloc(0, 0)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
		_, err = d.MemHostAlloc(8, 99)
		require.ErrorIs(t, err, driver.ErrInvalidValue)
	}},
}
