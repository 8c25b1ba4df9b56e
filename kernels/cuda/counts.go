//go:build cuda && linux

package cuda

import (
	"sync/atomic"
	"unsafe"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
)

// counted counts calls of the driver.
type counted struct{ waits, uploads, bytes, launches atomic.Int64 }

// Counts implements [kernels.Counter]. A set of memory counts as a launch.
func (b *Backend) Counts() kernels.Counts {
	n := b.counted
	return kernels.Counts{
		Waits: n.waits.Load(), Uploads: n.uploads.Load(), UploadBytes: n.bytes.Load(), Launches: n.launches.Load(),
	}
}

// through returns calls that n counts.
func (n *counted) through(calls *driver.Calls) *driver.Calls {
	c := *calls
	c.EventSynchronize = func(e driver.Event) error {
		n.waits.Add(1)
		return calls.EventSynchronize(e)
	}
	c.StreamSynchronize = func(s driver.Stream) error {
		n.waits.Add(1)
		return calls.StreamSynchronize(s)
	}
	c.MemcpyHtoDAsync = func(dst driver.Ptr, src unsafe.Pointer, bytes uint64, s driver.Stream) error {
		n.uploads.Add(1)
		n.bytes.Add(int64(bytes))
		return calls.MemcpyHtoDAsync(dst, src, bytes, s)
	}
	c.MemsetD8Async = func(dst driver.Ptr, value uint8, size uint64, s driver.Stream) error {
		n.launches.Add(1)
		return calls.MemsetD8Async(dst, value, size, s)
	}
	c.MemsetD32Async = func(dst driver.Ptr, value uint32, size uint64, s driver.Stream) error {
		n.launches.Add(1)
		return calls.MemsetD32Async(dst, value, size, s)
	}
	c.LaunchKernel = func(
		f driver.Function, grid, block driver.Dim, shared uint32, s driver.Stream, p *driver.Params,
	) error {
		n.launches.Add(1)
		return calls.LaunchKernel(f, grid, block, shared, s, p)
	}
	return &c
}
