package tape

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestSoftmaxProduct: losses and gradients equal CrossEntropy of all logits, however many are had
// at a time, and on a tape that does not record there are no gradients.
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

// TestShared compares both losses of rows that chunks share, and their gradients, with loops;
// however many rows are had at a time.
func TestShared(t *testing.T) {
	const rows, n, cols, chunk, each, scale = 7, 11, 3, 3, 4, 0.25
	be, rng := kernels.NewReference(), rand.New(rand.NewPCG(3, 4))
	random := func(n int) (x []float64) {
		for range n {
			x = append(x, rng.NormFloat64())
		}
		return x
	}
	uints := func(list []uint32) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.U32, len(list)), Type: kernels.U32, Rows: len(list), Cols: 1}
		be.UploadU32(x, list)
		return x
	}
	q, x, own := random(rows*cols), random(n*cols), random(rows)
	ids := []uint32{0, 3, 3, 10, 5, 6, 7, 3, 1, 1, 1, 2}
	defer func(before int) { productElements = before }(productElements)
	for _, softmax := range []bool{false, true} {
		var want []float64 // losses, then gradients of q, x and own
		dq, dx, down := make([]float64, len(q)), make([]float64, len(x)), make([]float64, rows)
		for i := range rows {
			list := ids[i/chunk*each:][:each]
			row := q[i*cols:][:cols]
			scores, total, loss := make([]float64, each), 0.0, 0.0
			for j, id := range list {
				for c, v := range row {
					scores[j] += v * x[int(id)*cols+c]
				}
				if softmax && j == 0 { // the place of the row's own
					scores[j] = own[i]
				}
				total += math.Exp(scores[j])
				loss += math.Log1p(math.Exp(scores[j]))
			}
			if softmax {
				loss = math.Log(total) - own[i]
			}
			want = append(want, loss)
			for j, id := range list {
				d := scale / (1 + math.Exp(-scores[j]))
				if softmax {
					d = scale * math.Exp(scores[j]) / total
				}
				if softmax && j == 0 {
					down[i] += d - scale
					continue
				}
				for c, v := range row {
					dq[i*cols+c] += d * x[int(id)*cols+c]
					dx[int(id)*cols+c] += d * v
				}
			}
		}
		want = slices.Concat(want, dq, dx, down)
		for _, productElements = range []int{1, 2 * each, 1 << 20} {
			for _, record := range []bool{true, false} {
				tape := New(be)
				tape.Reset(record)
				var all []float64
				var values, grads []kernels.Tensor
				for i, v := range [][]float64{q, x, own} {
					of := []int{cols, cols, 1}[i]
					tensor := kernels.Tensor{Buf: be.Alloc(kernels.F32, len(v)), Rows: len(v) / of, Cols: of}
					be.UploadF64(tensor, v)
					grad := tensor
					grad.Buf = be.Alloc(kernels.F32, len(v))
					values, grads = append(values, tensor), append(grads, grad)
				}
				seen := 0
				s := Shared{X: NewParam(values[1], grads[1]), IDs: uints(ids), Chunk: chunk, Each: each, Seen: func(lo int, scores kernels.Tensor) {
					require.Equal(t, seen, lo)
					seen += scores.Rows
				}}
				var loss kernels.Tensor
				if qv := NewParam(values[0], grads[0]); softmax {
					loss = tape.SoftmaxShared(NewParam(values[2], grads[2]), qv, s, uints(make([]uint32, rows)), uints([]uint32{0, each, 2 * each}), scale)
				} else {
					loss = tape.SigmoidShared(qv, s, scale)
				}
				require.Equal(t, rows, seen)
				for _, tensor := range append([]kernels.Tensor{loss}, grads...) {
					v := make([]float64, tensor.Len())
					be.DownloadF64(v, tensor)
					all = append(all, v...)
				}
				if record {
					require.InDeltaSlice(t, want, all, 1e-12)
				} else {
					require.InDeltaSlice(t, want[:rows], all[:rows], 1e-12)
					require.Equal(t, make([]float64, len(want)-rows), all[rows:])
				}
				tape.Close()
			}
		}
	}
}
