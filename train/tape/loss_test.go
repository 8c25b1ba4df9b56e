package tape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestLossGradients compares the gradient of the mean loss by a weight matrix with finite differences, in float64.
func TestLossGradients(t *testing.T) {
	const rows, in, out = 4, 3, 5
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	tensor := func(rows, cols int, values ...float64) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
		if values == nil {
			for range rows * cols {
				values = append(values, rng.NormFloat64())
			}
		}
		be.UploadF64(x, values)
		return x
	}
	read := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	labels := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	be.UploadU32(labels, []uint32{4, kernels.NoLabel, 0, 0})
	weights := tensor(rows, 1, 0.5, 3, 2, 2)
	targets := tensor(rows, out)
	cells, known := make([]float64, rows*out), 0
	for i := range cells {
		if cells[i] = float64(i % 2); i%3 == 0 {
			cells[i] = math.NaN()
		} else {
			known++
		}
	}
	be.UploadF64(targets, cells)
	x := tensor(rows, in)
	for name, loss := range map[string]struct {
		of    func(*Tape, *Var, float32) kernels.Tensor
		total float64 // what the losses' sum is divided by
	}{
		"weighted": {func(t *Tape, y *Var, scale float32) kernels.Tensor {
			return t.WeightedCrossEntropy(y, labels, weights, scale)
		}, 0.5 + 2 + 2},
		"sigmoid": {func(t *Tape, y *Var, scale float32) kernels.Tensor {
			return t.SigmoidCrossEntropy(y, targets, scale)
		}, float64(known)},
	} {
		w, grad := tensor(out, in), tensor(out, in, make([]float64, out*in)...)
		tape := New(be)
		forward := func(record bool) (mean float64) {
			tape.Reset(record)
			for _, l := range read(loss.of(tape, tape.Affine(nil, Term{X: tape.Leaf(x), W: NewParam(w, grad)}), float32(1/loss.total))) {
				mean += l / loss.total
			}
			return mean
		}
		forward(true)
		tape.Backward()
		got, point := read(grad), read(w)
		for i, v := range point {
			const h = 1e-5
			point[i] = v + h
			be.UploadF64(w, point)
			above := forward(false)
			point[i] = v - h
			be.UploadF64(w, point)
			below := forward(false)
			point[i] = v
			// scale is a float32: 1e-7 of it is lost.
			require.InDelta(t, (above-below)/(2*h), got[i], 1e-6, "%s, weight %d", name, i)
		}
		tape.Close()
	}
}
