package kerneltest

import (
	"encoding/binary"
	"math/rand/v2"
	"sync"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// delivery is a buffer that a loader filled, lent until back is closed.
type delivery struct {
	tensor kernels.Tensor
	floats []float32 // what was written, of an F32 or, widened, of an F16
	uints  []uint32  // of a U32
	back   chan struct{}
}

// testBeside has loaders allocate, fill and free buffers while this goroutine computes, as a
// pipeline does that brings rows in ahead of the step. The loaders must deliver what they wrote,
// and the results must equal the results of computing alone. Run it under the race detector.
func testBeside(r *rig) {
	const loaders, rounds = 3, 30
	x, w, y := r.normal(130, 70), r.normal(50, 70), r.normal(130, 50)
	g, mean, sum := r.layer(lists(r.rng, 130, 90), 90), r.normal(130, 50), r.normal(1, 50)
	src := r.normal(90, 50)
	compute := func() (results [][]float32) {
		r.b.MatMul(y.tensor, x.tensor, w.tensor, false, true, false)
		r.b.NeighborMean(mean.tensor, src.tensor, g.on(func(o operand) kernels.Tensor { return o.tensor }))
		r.b.Fill(sum.tensor, 0)
		r.b.ColumnSumGrad(sum.tensor, y.tensor)
		for _, o := range []operand{y, mean, sum} {
			results = append(results, r.download(o)[o.off:][:o.tensor.Len()])
		}
		return results
	}
	alone := compute()

	delivered := make(chan delivery)
	var running sync.WaitGroup
	for i := range loaders {
		running.Go(func() { load(r.b, rand.New(rand.NewPCG(uint64(i), 3)), rounds, delivered) })
	}
	go func() {
		running.Wait()
		close(delivered)
	}()
	for d := range delivered {
		require.Equal(r.t, alone, compute())
		n := d.tensor.Len()
		if d.tensor.Type == kernels.U32 {
			got := make([]uint32, n)
			r.b.DownloadU32(got, d.tensor)
			require.Equal(r.t, d.uints, got)
		} else {
			wide := kernels.Tensor{Buf: r.b.Alloc(kernels.F32, n), Rows: n, Cols: 1}
			r.b.Convert(wide, d.tensor)
			got := make([]float32, n)
			r.b.DownloadF32(got, wide)
			require.Equal(r.t, d.floats, got)
			r.b.Free(wide.Buf)
		}
		close(d.back)
	}
}

// load delivers buffers of every type, small and large, filled through Host and by uploads in turn.
func load(b kernels.Backend, rng *rand.Rand, rounds int, out chan<- delivery) {
	for i := range rounds {
		n := []int{1, 300, 1 << 14, 50_000}[i%4]
		d := delivery{back: make(chan struct{})}
		d.tensor = kernels.Tensor{Type: []kernels.DType{kernels.F16, kernels.U32, kernels.F32}[i%3], Rows: n, Cols: 1}
		d.tensor.Buf = b.Alloc(d.tensor.Type, n)
		host, ok := b.Host(d.tensor)
		ok = ok && i%2 == 0
		switch d.tensor.Type {
		case kernels.U32:
			d.uints = make([]uint32, n)
			for k := range d.uints {
				d.uints[k] = rng.Uint32()
			}
			if ok {
				_, _ = binary.Encode(host, binary.LittleEndian, d.uints)
			} else {
				b.UploadU32(d.tensor, d.uints)
			}
		default:
			halves := make([]uint16, n)
			d.floats = make([]float32, n)
			for k := range d.floats {
				d.floats[k] = float32(rng.IntN(1000))
			}
			kernels.Float32ToHalf(halves, d.floats)
			switch half := d.tensor.Type == kernels.F16; {
			case half && ok:
				_, _ = binary.Encode(host, binary.LittleEndian, halves)
			case half:
				b.UploadHalf(d.tensor, halves)
			case ok:
				_, _ = binary.Encode(host, binary.LittleEndian, d.floats)
			default:
				b.UploadF32(d.tensor, d.floats)
			}
		}
		out <- d
		<-d.back
		b.Free(d.tensor.Buf)
	}
}
