package tape

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestKeep holds what Keep keeps to finite differences, and everything else to a tape that keeps
// nothing. The rows pass dropout afterwards, which without Keep writes over them.
func TestKeep(t *testing.T) {
	const rows, in, hidden, out = 6, 3, 4, 5
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(1, 2))
	tensor := func(rows, cols int) kernels.Tensor {
		return kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
	}
	normal := func(rows, cols int) kernels.Tensor {
		x, values := tensor(rows, cols), make([]float64, rows*cols)
		for i := range values {
			values[i] = rng.NormFloat64()
		}
		be.UploadF64(x, values)
		return x
	}
	read := func(x kernels.Tensor) []float64 {
		s := make([]float64, x.Len())
		be.DownloadF64(s, x)
		return s
	}
	ids := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	be.UploadU32(ids, []uint32{3, 1, 4, 15, 9, 2})
	labels := kernels.Tensor{Buf: be.Alloc(kernels.U32, rows), Type: kernels.U32, Rows: rows, Cols: 1}
	be.UploadU32(labels, []uint32{4, 0, 0, 1, 2, 3})
	x, first, last := normal(rows, in), normal(hidden, in), normal(out, hidden)
	gain, shift := normal(1, hidden), normal(1, hidden)

	tape := New(be)
	defer tape.Close()
	// loss returns the loss of the rows y after dropout, from y on.
	loss := func(y, w *Var) (sum float64) {
		y = tape.Dropout(y, ids, 7, 0.4)
		for _, l := range read(tape.CrossEntropy(tape.Affine(nil, Term{X: y, W: w}), labels, 1)) {
			sum += l
		}
		return sum
	}
	for name, layer := range map[string]func(w, gain, shift *Var) *Var{
		"relu": func(w, gain, _ *Var) *Var { return tape.AffineReLU(gain, Term{X: tape.Leaf(x), W: w}) },
		"layernorm": func(w, gain, shift *Var) *Var {
			return tape.ReLU(tape.LayerNorm(tape.Affine(nil, Term{X: tape.Leaf(x), W: w}), gain, shift))
		},
		"elu": func(w, gain, _ *Var) *Var { return tape.ELU(tape.Affine(gain, Term{X: tape.Leaf(x), W: w})) },
	} {
		run := func(keep bool) (y *Var, sum float64, grads [][]float64) {
			params := []*Var{}
			for _, v := range []kernels.Tensor{first, gain, shift, last} {
				params = append(params, NewParam(v, tensor(v.Rows, v.Cols)))
			}
			tape.Reset(true)
			y = layer(params[0], params[1], params[2])
			if keep {
				tape.Keep(y)
			}
			sum = loss(y, params[3])
			tape.Backward()
			for _, p := range params {
				grads = append(grads, read(p.Grad))
			}
			return y, sum, grads
		}
		_, wantLoss, wantGrads := run(false)
		y, sum, grads := run(true)
		require.Equal(t, wantLoss, sum, name)
		require.Equal(t, wantGrads, grads, name)

		value, gradient := read(y.Value), read(y.Grad)
		tape.Reset(false)
		require.Equal(t, read(layer(tape.Leaf(first), tape.Leaf(gain), tape.Leaf(shift)).Value), value, name)
		at := func(i int, v float64) float64 {
			moved, changed := tensor(rows, hidden), append([]float64{}, value...)
			changed[i] = v
			be.UploadF64(moved, changed)
			tape.Reset(false)
			return loss(tape.Leaf(moved), tape.Leaf(last))
		}
		const h = 1e-5
		for i, v := range value {
			require.InDelta(t, (at(i, v+h)-at(i, v-h))/(2*h), gradient[i], 1e-7, "%s, element %d", name, i)
		}
	}
}

// TestGradientOfAnEmptyHead: a head without rows sets no gradient, so the rest of it is zeroed.
func TestGradientOfAnEmptyHead(t *testing.T) {
	be := kernels.NewReference()
	tensor := func(rows, cols int, v float32) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
		be.Fill(x, v)
		return x
	}
	tape := New(be)
	defer tape.Close()
	for range 2 { // the arena's memory is used again
		tape.Reset(true)
		w := NewParam(tensor(2, 2, 1), tensor(2, 2, 0))
		x := tape.ReLU(tape.Affine(nil, Term{X: tape.Leaf(tensor(3, 2, 1)), W: w}))
		all := tape.Affine(nil, Term{X: x, W: w})
		none := tape.Affine(nil, Term{X: tape.Head(x, 0), W: w})
		be.Fill(tape.grad(none), float32(math.NaN()))
		be.Fill(tape.grad(all), 1)
		tape.Backward()
		got := make([]float32, 6)
		be.DownloadF32(got, tape.Gradient(x))
		require.Equal(t, []float32{2, 2, 2, 2, 2, 2}, got)
	}
}
