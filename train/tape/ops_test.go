package tape

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestGatherRowsGradient compares the gradient of a loss of rows that a list names, one of them
// three times and one never, with finite differences, in float64.
func TestGatherRowsGradient(t *testing.T) {
	const rows, cols = 5, 4
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	uints := func(values ...uint32) kernels.Tensor {
		u := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(values)), Type: kernels.U32, Rows: len(values), Cols: 1}
		be.UploadU32(u, values)
		return u
	}
	table := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	grad := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	point := make([]float64, rows*cols)
	for i := range point {
		point[i] = rng.NormFloat64()
	}
	ids, labels := uints(4, 1, 1, 0, 3, 1), uints(0, 1, 2, 3, 3, 0)
	tape := New(be)
	defer tape.Close()
	loss := func(record bool) (sum float64) {
		tape.Reset(record)
		be.UploadF64(table, point)
		losses := make([]float64, ids.Rows)
		be.DownloadF64(losses, tape.CrossEntropy(tape.GatherRows(NewParam(table, grad), ids), labels, 1))
		for _, l := range losses {
			sum += l
		}
		return sum
	}
	loss(true)
	tape.Backward()
	got := make([]float64, rows*cols)
	be.DownloadF64(got, grad)
	require.Equal(t, make([]float64, cols), got[2*cols:3*cols], "row 2 is in no list")
	for i, v := range point {
		const h = 1e-5
		point[i] = v + h
		above := loss(false)
		point[i] = v - h
		below := loss(false)
		point[i] = v
		require.InDelta(t, (above-below)/(2*h), got[i], 1e-7, "element %d", i)
	}

	tape.Reset(true) // a leaf, in float16: no gradient, and none is asked for
	halves := kernels.Tensor{Buf: be.Alloc(kernels.F16, rows), Type: kernels.F16, Rows: rows, Cols: 1}
	be.UploadHalf(halves, []uint16{0x3c00, 0x4000, 0x4200, 0x4400, 0x4500})
	picked := make([]float32, ids.Rows)
	be.DownloadF32(picked, tape.GatherRows(tape.Leaf(halves), ids).Value)
	require.Equal(t, []float32{5, 2, 2, 1, 4, 2}, picked)
	tape.Backward()
}

// TestLearntLeaf: its value is the beginning of the records, its gradient is like a parameter's,
// and zeros where nothing reads it.
func TestLearntLeaf(t *testing.T) {
	be := kernels.NewReference()
	tensor := func(rows, cols int) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
		host := make([]float32, x.Len())
		for i := range host {
			host[i] = float32(i%7) - 3
		}
		be.UploadF32(x, host)
		return x
	}
	down := func(x kernels.Tensor) []float32 {
		host := make([]float32, x.Len())
		be.DownloadF32(host, x)
		return host
	}
	records, weight := tensor(4, 9), NewParam(tensor(2, 3), tensor(2, 3))
	tp := New(be)
	tp.Reset(true)
	x, unread := tp.LearntLeaf(records, 3), tp.LearntLeaf(records, 3)
	value := tensor(4, 3)
	be.Columns(value, records, 0)
	require.Equal(t, down(value), down(x.Value))
	grad := tensor(4, 3)
	be.Fill(grad, 0)
	same := NewParam(value, grad)
	for _, in := range []*Var{x, same} {
		y := tp.Affine(nil, Term{X: in, W: weight})
		be.Fill(tp.grad(y), 0.5)
	}
	tp.Backward()
	require.Equal(t, down(same.Grad), down(tp.Gradient(x)))
	require.NotContains(t, down(same.Grad), float32(0.25))
	require.Equal(t, make([]float32, 12), down(tp.Gradient(unread)))

	tp.Reset(false)
	require.False(t, tp.LearntLeaf(records, 3).needsGrad)
}
