package kerneltest

import (
	"math"
	"sync/atomic"

	"github.com/gnnstore/gnnstore/kernels"
)

// Remote is be, but like a GPU: the host cannot address its memory, so that Host always says no,
// and what is fetched arrives when a Mark is waited for. Until then NaN or ones stand in its place.
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

	fetched []func()     // since the last Mark
	coming  map[any]bool // first elements of what is fetched and has not arrived
	open    int          // Marks that were not waited for
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
