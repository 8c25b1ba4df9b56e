package kerneltest

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Remote is be, but like a GPU: the host cannot address its memory, so that Host always says no,
// and what is fetched arrives when a Mark is waited for. Until then NaN or ones stand in its place.
// Its buffers count as memory of the device.
func Remote(be kernels.Backend) *RemoteBackend { return &RemoteBackend{Backend: be} }

// RemoteBackend is the backend that [Remote] returns. It counts what a step should do rarely.
type RemoteBackend struct {
	kernels.Backend
	Waits   atomic.Int64 // for operations: by a Mark, or a download
	Uploads atomic.Int64
	Copied  atomic.Int64 // bytes of them
	Ahead   atomic.Int64 // Marks that were made while an earlier one was not waited for
	// Pause, where it is not nil, is called by Mark, so that what runs beside operations gets
	// ahead.
	Pause func()

	mu struct {
		sync.Mutex
		sizes   map[kernels.Buffer]int64 // bytes of buffers
		held    int64                    // their sum
		outside int64                    // bytes that they take outside the Go heap
	}

	fetched []func()     // since the last Mark
	coming  map[any]bool // the first element of each fetch that has not arrived
	open    int          // Marks that were not waited for
}

// Alloc implements kernels.Backend.
func (r *RemoteBackend) Alloc(t kernels.DType, n int) kernels.Buffer {
	b := r.Backend.Alloc(t, n)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.mu.sizes == nil {
		r.mu.sizes = map[kernels.Buffer]int64{}
	}
	size := int64(n) * int64(t.Size())
	r.mu.sizes[b] = size
	r.mu.held, r.mu.outside = r.mu.held+size, r.mu.outside+kernels.OutsideHeap(b)
	return b
}

// Free implements kernels.Backend.
func (r *RemoteBackend) Free(b kernels.Buffer) {
	r.mu.Lock()
	r.mu.held, r.mu.outside = r.mu.held-r.mu.sizes[b], r.mu.outside-kernels.OutsideHeap(b)
	delete(r.mu.sizes, b)
	r.mu.Unlock()
	r.Backend.Free(b)
}

// Bytes implements kernels.Backend.
func (r *RemoteBackend) Bytes() kernels.Use {
	use := r.Backend.Bytes()
	r.mu.Lock()
	defer r.mu.Unlock()
	return kernels.Use{Host: use.Host - r.mu.outside, Device: use.Device + r.mu.held}
}

// Host implements kernels.Backend.
func (*RemoteBackend) Host(kernels.Tensor) (b []byte, ok bool) { return nil, false }

// Behind implements kernels.Backend.
func (*RemoteBackend) Behind() bool { return true }

// Counts implements kernels.Counter. No launches are counted.
func (r *RemoteBackend) Counts() kernels.Counts {
	return kernels.Counts{Waits: r.Waits.Load(), Uploads: r.Uploads.Load(), UploadBytes: r.Copied.Load()}
}

// UploadF32 implements kernels.Backend.
func (r *RemoteBackend) UploadF32(dst kernels.Tensor, src []float32) {
	r.Uploads.Add(1)
	r.Copied.Add(4 * int64(len(src)))
	r.Backend.UploadF32(dst, src)
}

// UploadU32 implements kernels.Backend.
func (r *RemoteBackend) UploadU32(dst kernels.Tensor, src []uint32) {
	r.Uploads.Add(1)
	r.Copied.Add(4 * int64(len(src)))
	r.Backend.UploadU32(dst, src)
}

// UploadHalf implements kernels.Backend.
func (r *RemoteBackend) UploadHalf(dst kernels.Tensor, src []uint16) {
	r.Uploads.Add(1)
	r.Copied.Add(2 * int64(len(src)))
	r.Backend.UploadHalf(dst, src)
}

// DownloadF32 implements kernels.Backend.
func (r *RemoteBackend) DownloadF32(dst []float32, src kernels.Tensor) {
	r.Waits.Add(1)
	r.Backend.DownloadF32(dst, src)
}

// DownloadU32 implements kernels.Backend.
func (r *RemoteBackend) DownloadU32(dst []uint32, src kernels.Tensor) {
	r.Waits.Add(1)
	r.Backend.DownloadU32(dst, src)
}

// FetchF32 implements kernels.Backend.
func (r *RemoteBackend) FetchF32(dst []float32, src kernels.Tensor) {
	fetch(r, dst, src, r.Backend.DownloadF32, float32(math.NaN()))
}

// FetchU32 implements kernels.Backend.
func (r *RemoteBackend) FetchU32(dst []uint32, src kernels.Tensor) {
	fetch(r, dst, src, r.Backend.DownloadU32, ^uint32(0))
}

func fetch[T any](r *RemoteBackend, dst []T, src kernels.Tensor, download func([]T, kernels.Tensor), until T) {
	now := make([]T, len(dst))
	download(now, src)
	for i := range dst {
		dst[i] = until
	}
	if len(dst) == 0 {
		return
	}
	if r.coming[&dst[0]] {
		panic("kerneltest: a fetch into memory that another one has not filled yet")
	}
	if r.coming == nil {
		r.coming = map[any]bool{}
	}
	r.coming[&dst[0]] = true
	r.fetched = append(r.fetched, func() {
		copy(dst, now)
		delete(r.coming, &dst[0])
	})
}

// Mark implements kernels.Backend.
func (r *RemoteBackend) Mark() (wait func()) {
	fetched := r.fetched
	r.fetched = nil
	if r.open > 0 {
		r.Ahead.Add(1)
	}
	r.open++
	if r.Pause != nil {
		r.Pause()
	}
	return func() {
		r.open--
		r.Waits.Add(1)
		for _, arrive := range fetched {
			arrive()
		}
		fetched = nil
	}
}
