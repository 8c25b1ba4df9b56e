package tape

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestSoftmaxProduct: losses and gradients are those of CrossEntropy of all logits, however many are had at a time, and on a tape that
// does not record there are no gradients.
func TestSoftmaxProduct(t *testing.T) {
	const rows, n, cols = 7, 11, 3
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	tensor := func(rows int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	}
	q, z := tensor(rows), tensor(n)
	for _, x := range []kernels.Tensor{q, z} {
		values := make([]float64, x.Len())
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		be.UploadF64(x, values)
	}
	labels := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	be.UploadU32(labels, []uint32{0, 10, 3, 3, 1, 9, 0})
	defer func(before int) { productElements = before }(productElements)
	run := func(record bool, loss func(t *Tape, q, z *Var) kernels.Tensor) (all []float64) {
		tape, dq, dz := New(be), tensor(rows), tensor(n)
		tape.Reset(record)
		l := loss(tape, NewParam(q, dq), NewParam(z, dz))
		tape.Backward()
		for _, x := range []kernels.Tensor{l, dq, dz} {
			values := make([]float64, x.Len())
			be.DownloadF64(values, x)
			all = append(all, values...)
		}
		tape.Close()
		return all
	}
	want := run(true, func(t *Tape, q, z *Var) kernels.Tensor {
		return t.CrossEntropy(t.Affine(nil, Term{X: q, W: z}), labels, 0.25)
	})
	for _, productElements = range []int{1, 3 * n, 1 << 20} {
		product := func(t *Tape, q, z *Var) kernels.Tensor { return t.SoftmaxProduct(q, z, labels, 0.25) }
		require.InDeltaSlice(t, want, run(true, product), 1e-12)
		still := run(false, product)
		require.InDeltaSlice(t, want[:rows], still[:rows], 1e-12)
		require.Equal(t, make([]float64, len(want)-rows), still[rows:])
	}
}
