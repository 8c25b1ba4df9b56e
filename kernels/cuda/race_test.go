//go:build cuda && linux

package cuda

import (
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
	"github.com/gnnstore/gnnstore/kernels/cuda/driver"
	"github.com/gnnstore/gnnstore/kernels/cuda/drivertest"
)

// idle is a runner whose kernels compute nothing.
type idle struct{}

func (idle) Launch(string, driver.Dim, driver.Dim, uint32, []byte) error { return nil }

// Loaders allocate, fill and free buffers while a step computes, as a pipeline has them do. The
// kernels compute nothing, so that this is a test of the backend's own memory, for -race.
func TestRace(t *testing.T) {
	for _, mode := range []drivertest.Mode{drivertest.Lazy, drivertest.Ahead, drivertest.Eager} {
		b, _ := openDevice(t, drivertest.Options{Runner: idle{}, Mode: mode}, Options{})
		const rows, cols = 60, 8
		f := func(rows, cols int) kernels.Tensor { return kernels.NewTensor(b, kernels.F32, rows, cols) }
		x, y, w, dw, gain, stats := f(rows, cols), f(rows, cols), f(cols, cols), f(cols, cols), f(1, cols), f(rows, 2)
		ids := kernels.NewTensor(b, kernels.U32, rows, 1)
		filled := make(chan kernels.Tensor)
		var loaders sync.WaitGroup
		for i := range 3 {
			loaders.Go(func() {
				for n := range 40 {
					of := f(rows, cols)
					if n%2 == 0 {
						memory, send := b.Stage(of)
						clear(memory)
						send(n%4 == 0)
					} else {
						b.UploadF32(of, make([]float32, rows*cols))
					}
					if n%5 == i {
						b.Free(of.Buf)
						continue
					}
					filled <- of
				}
			})
		}
		go func() {
			loaders.Wait()
			close(filled)
		}()
		steps := 0
		for in := range filled {
			b.MatMul(x, in, w, false, false, false)
			b.LayerNorm(y, stats, x, gain, gain, 1e-5)
			b.ReLU(y, y)
			b.Dropout(y, y, ids, 1, 0.5)
			b.ColumnSumGrad(gain, y)
			b.MatMul(dw, in, y, true, false, true)
			b.FetchF32(make([]float32, rows*cols), y)
			wait := b.Mark()
			b.Free(in.Buf)
			wait()
			steps++
		}
		require.Equal(t, 96, steps)
	}
}
