package optim

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/gnnstore/gnnstore/kernels"
)

// TestRowsAreParameters: rows that every step reads move as a parameter does, and what they keep is
// what it keeps; the clipping norm is of both. Under RowAdamSteps so do rows that come late, from
// their first step on.
func TestRowsAreParameters(t *testing.T) {
	const rows, cols, late = 5, 7, 3
	be := kernels.NewCPU(kernels.CPUOptions{})
	start := func(_, i int) float32 { return float32(math.Sin(float64(i))) }
	grad := func(step, i int) float32 { return float32(math.Cos(float64(i*step + i))) }
	for _, clip := range []float64{0, 2} {
		for _, kind := range []RowKind{RowAdam, RowAdamSteps} {
			width := kind.Rule().Columns(cols)
			dense := New(be, params(t, be, [][]int{{rows, cols}, {rows, cols}}, start), Options{ClipNorm: clip})
			sparse := New(be, params(t, be, [][]int{{rows, cols}}, start), Options{ClipNorm: clip, Rows: kind})
			rec := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*width), Rows: rows, Cols: width}
			g := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
			upload(be, rec, func(i int) float32 {
				if i%width < cols {
					return start(0, i/width*cols+i%width)
				}
				return 0
			})
			for step := 1; step <= 4; step++ {
				for n := range 2 {
					upload(be, dense.params[n].Grad, func(i int) float32 { return grad(step, i) })
				}
				upload(be, sparse.params[0].Grad, func(i int) float32 { return grad(step, i) })
				upload(be, g, func(i int) float32 { return grad(step, i) })
				require.Equal(t, normOf(dense, 0.1), normOf(sparse, 0.1, Rows{Records: rec, Grad: g}))
			}
			require.Equal(t, download(be, dense.params[0].Value), download(be, sparse.params[0].Value))
			got, p := download(be, rec), dense.adam[1]
			for part, want := range [][]float32{download(be, p.Value), download(be, p.M), download(be, p.V)} {
				for i, x := range want {
					require.Equal(t, x, got[i/cols*width+part*cols+i%cols])
				}
			}
		}
	}

	fresh := New(be, params(t, be, [][]int{{1, cols}}, start), Options{Rows: RowAdamSteps})
	old := New(be, nil, Options{Rows: RowAdamSteps})
	rec := func() kernels.Tensor {
		width := RowAdamSteps.Rule().Columns(cols)
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, width), Rows: 1, Cols: width}
		upload(be, x, func(i int) float32 {
			if i < cols {
				return start(0, i)
			}
			return 0
		})
		return x
	}
	a, b := rec(), rec()
	g := kernels.Tensor{Buf: be.Alloc(kernels.F32, cols), Rows: 1, Cols: cols}
	upload(be, g, func(i int) float32 { return grad(1, i) })
	for range late {
		old.Step(0.1, kernels.Tensor{})
	}
	fresh.Step(0.1, kernels.Tensor{}, Rows{Records: a, Grad: g})
	old.Step(0.1, kernels.Tensor{}, Rows{Records: b, Grad: g})
	require.Equal(t, download(be, a), download(be, b))
}

// TestAdagradOfRows: by the formula, without a rate that depends on the step.
func TestAdagradOfRows(t *testing.T) {
	const cols = 6
	be := kernels.NewReference()
	o := New(be, nil, Options{Rows: RowAdagrad})
	rec := kernels.Tensor{Buf: be.Alloc(kernels.F32, cols+1), Rows: 1, Cols: cols + 1}
	g := kernels.Tensor{Buf: be.Alloc(kernels.F32, cols), Rows: 1, Cols: cols}
	want, sum := make([]float64, cols), 0.0
	for step := 1; step <= 5; step++ {
		values := make([]float64, cols)
		for i := range values {
			values[i] = float64(float32(math.Cos(float64(i*step + i))))
			sum += values[i] * values[i] / cols
		}
		upload(be, g, func(i int) float32 { return float32(values[i]) })
		o.Step(0.25, kernels.Tensor{}, Rows{Records: rec, Grad: g})
		for i := range want {
			want[i] -= 0.25 * values[i] / (math.Sqrt(sum) + 1e-10)
		}
	}
	got := download(be, rec)
	for i := range want {
		require.InDelta(t, want[i], float64(got[i]), 1e-6)
	}
	require.InDelta(t, sum, float64(got[cols]), 1e-6)
}

// TestNormsOfRows: rows that several owners have are clipped by the norm of all of their gradients.
func TestNormsOfRows(t *testing.T) {
	const cols = 4
	be := kernels.NewReference()
	tensor := func(rows, cols int, fill func(i int) float32) kernels.Tensor {
		x := kernels.Tensor{Buf: be.Alloc(kernels.F32, rows*cols), Rows: rows, Cols: cols}
		upload(be, x, fill)
		return x
	}
	width := RowAdam.Rule().Columns(cols)
	records := func(rows int) kernels.Tensor { return tensor(rows, width, func(int) float32 { return 0 }) }
	grad := func(i int) float32 { return float32(i + 1) }
	norm := func(from, to int) float32 {
		sum := 0.0
		for i := from; i < to; i++ {
			sum += float64(grad(i)) * float64(grad(i))
		}
		return float32(math.Sqrt(sum))
	}
	o := Options{ClipNorm: 1}
	all := records(3)
	one := normOf(New(be, nil, o), 0.1, Rows{Records: all, Grad: tensor(3, cols, grad)})
	norms := []float32{norm(0, cols), norm(cols, 3*cols)}
	var got []float32
	for owner, rows := range []int{1, 2} {
		own := records(rows)
		r := Rows{Records: own, Grad: tensor(rows, cols, func(i int) float32 { return grad(owner*cols + i) })}
		r.Norms = tensor(2, 1, func(i int) float32 { return norms[i] })
		require.InEpsilon(t, one, normOf(New(be, nil, o), 0.1, r), 1e-6)
		got = append(got, download(be, own)...)
	}
	require.InDeltaSlice(t, download(be, all), got, 1e-6)
}
