package tape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestFrugal: a frugal tape has the gradients and what is kept of another one, bit for bit, in less
// memory, and the same of it each step.
func TestFrugal(t *testing.T) {
	const rows, cols = 3000, 8
	be, rng := kernels.NewCPU(kernels.CPUOptions{Threads: 2}), rand.New(rand.NewPCG(3, 4))
	tensor := func(rows, cols int) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Type: kernels.F32, Rows: rows, Cols: cols}
		values := make([]float32, x.Len())
		for i := range values {
			values[i] = float32(rng.NormFloat64())
		}
		be.UploadF32(x, values)
		return x
	}
	count := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	ids := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	numbers, some := make([]uint32, rows), make([]uint32, rows)
	for i := range numbers {
		numbers[i], some[i] = uint32(i), rng.Uint32N(rows)
	}
	be.UploadU32(count, numbers)
	be.UploadU32(ids, some)
	x, values := tensor(rows, cols), []kernels.Tensor{tensor(3*cols, cols), tensor(3*cols, cols), tensor(1, 3*cols), tensor(cols, cols), tensor(1, cols), tensor(1, cols)}
	step := func(tp *Tape) (grads [][]float32) {
		var params []*Var
		for _, v := range values {
			grad := kernels.Tensor{Buf: be.Alloc(kernels.F32, v.Len()), Type: kernels.F32, Rows: v.Rows, Cols: v.Cols}
			be.Fill(grad, 0)
			params = append(params, NewParam(v, grad))
		}
		tp.Reset(true)
		table := tp.Affine(params[2], Term{X: tp.Leaf(x), W: params[0]})
		in := tp.AddRows(tp.Affine(nil, Term{X: tp.Leaf(x), W: params[1]}), table, ids, count)
		tp.Done(table)
		other := tp.Affine(params[2], Term{X: tp.Leaf(x), W: params[1]})
		h := tp.GatherRows(other, ids)
		tp.Done(other)
		tp.Done(tp.Leaf(x)) // x is the caller's
		y := tp.GRUCell(in, h, tp.Leaf(x))
		y = tp.Dropout(tp.AffineReLU(nil, Term{X: y, W: params[3]}), count, 5, 0.2)
		kept := y
		tp.Keep(kept)
		y = tp.LayerNorm(tp.Sum(tp.Tanh(y), tp.GatherRows(y, ids)), params[4], params[5])
		tp.SquaredError(tp.Sum(tp.Window(y, 0, rows/2), tp.Window(y, rows/2, rows)), x.Slice(0, rows/2), 0.5)
		tp.Backward()
		download := func(x kernels.Tensor) {
			values := make([]float32, x.Len())
			be.DownloadF32(values, x)
			grads = append(grads, values)
		}
		for _, p := range params {
			download(p.Grad)
		}
		download(kept.Value)
		download(kept.Grad)
		return grads
	}
	plain, frugal := New(be), New(be)
	defer plain.Close()
	defer frugal.Close()
	frugal.Frugal = true
	want := step(plain)
	require.NotZero(t, want[0][0])
	size := int64(0)
	for range 4 {
		require.Equal(t, want, step(frugal))
		plain.Reset(true)
		frugal.Reset(true)
		if size > 0 {
			require.Equal(t, size, frugal.Bytes())
		}
		size = frugal.Bytes()
		be.Fill(frugal.arena.alloc(1, frugal.arena.chunks[0].Len()), float32(math.NaN())) // no step may read it
	}
	require.Less(t, size, plain.Bytes()*2/3)
}
