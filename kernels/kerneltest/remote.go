package kerneltest

import (
	"math"

	"github.com/gnnstore/gnnstore/kernels"
)

// Remote is be, but like a GPU: the host cannot address its memory, so that Host always says no,
// and what is fetched arrives when a Mark is waited for. Until then NaN or ones stand in its place.
func Remote(be kernels.Backend) kernels.Backend { return &remote{Backend: be} }

type remote struct {
	kernels.Backend
	fetched []func() // since the last Mark
}

// Host implements kernels.Backend.
func (*remote) Host(kernels.Tensor) (b []byte, ok bool) { return nil, false }

// Behind implements kernels.Backend.
func (*remote) Behind() bool { return true }

// FetchF32 implements kernels.Backend.
func (r *remote) FetchF32(dst []float32, src kernels.Tensor) {
	fetch(r, dst, src, r.DownloadF32, float32(math.NaN()))
}

// FetchU32 implements kernels.Backend.
func (r *remote) FetchU32(dst []uint32, src kernels.Tensor) {
	fetch(r, dst, src, r.DownloadU32, ^uint32(0))
}

func fetch[T any](r *remote, dst []T, src kernels.Tensor, download func([]T, kernels.Tensor), until T) {
	now := make([]T, len(dst))
	download(now, src)
	for i := range dst {
		dst[i] = until
	}
	r.fetched = append(r.fetched, func() { copy(dst, now) })
}

// Mark implements kernels.Backend.
func (r *remote) Mark() (wait func()) {
	fetched := r.fetched
	r.fetched = nil
	return func() {
		for _, arrive := range fetched {
			arrive()
		}
		fetched = nil
	}
}
